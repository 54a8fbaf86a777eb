// A field for code, C++ or Python: coloured, with line numbers, and marks at lines. What is typed into is a textarea whose
// own letters cannot be seen; below it lies a row for each line, which shows them.

/** @import { Marked } from "../messages.js" */

import { within } from "../model/figures.js";
import { code } from "./listing.js";
import { classed, find, focusOn, h, link, put, rect, set, take } from "./dom.js";
import { LARGEST_WRAPPED, ROW_PIXELS } from "./rows.js";

const INDENT = "    ";

/**
 * `element` is put where it has a height, such as a flex box. Lines wrap where the explorer's `wrap` is on; otherwise they
 * scroll sideways, and the numbers stay. Where it was scrolled to is kept while it is hidden or out of the page. Tab
 * goes on to the next control; Ctrl+] and Ctrl+[ indent the selected lines more and less, Enter keeps the indentation.
 */
export class Editor {
  /** @type {string[]} */
  #lines = [];
  /** @type {Map<Element, Pick<Marked, "kind" | "message">>} */
  #marks = new Map();
  #first = 1;
  #place = [0, 0];
  #text = h("div.text", { "aria-hidden": true });
  #listed = h("div.marks");
  #area;
  #sheet;
  #language;
  #oninput;

  /**
   * @param {string} label what the field is called
   * @param {string} language one of `model/highlight.js`: "cpp", "python"
   * @param {(text: string) => void} [oninput] is told of all that the user changes, not of a new `value`
   */
  constructor(label, language, oninput) {
    this.#language = language;
    this.#oninput = oninput;
    this.#area = h("textarea", {
      spellcheck: false, label,
      oninput: () => this.#changed(), onkeydown: (event) => this.#key(event), onselectionchange: () => this.#follow(),
    });
    this.#sheet = h("div.sheet", { onscroll: () => this.#scrolled() }, h("div.paper", this.#text, this.#area, this.#listed));
    this.element = h("div.editor", this.#sheet);
    // Out of the page, an element forgets where it was scrolled to.
    const observer = new ResizeObserver(() => {
      this.#sheet.scrollTo(this.#place[0], this.#place[1]);
      this.#lay();
    });
    observer.observe(this.#sheet);
    // Lines that wrap in another way move what lies under them.
    observer.observe(this.#text);
    this.#draw();
  }

  /** The text. A new one keeps the caret and the place, and the marks of lines that stay. */
  get value() {
    return this.#area.value;
  }

  set value(text) {
    if (text === this.value) return;
    const { selectionStart } = this.#area;
    this.#area.value = text;
    this.#area.setSelectionRange(selectionStart, selectionStart);
    this.#draw();
  }

  /** The number of the first line, 1 unless it is set: a kernel's lines have those of its file. @param {number} number */
  set first(number) {
    this.#first = number;
    this.#text.style.setProperty("--before", `${number - 1}`);
    this.#list();
  }

  /**
   * Marks lines, by their numbers as shown, and no others: `error`, `stuck` (a kernel waits here for ever), `changed`. A mark
   * moves with its line and goes when the line is changed. Its message lies under it, over the next line, which is seen
   * through it once the caret is there.
   * @param {Pick<Marked, "line" | "kind" | "message">[]} marks
   */
  marks(marks) {
    for (const row of this.#marks.keys()) row.removeAttribute("data-mark");
    this.#marks.clear();
    const rows = this.#rows;
    for (const mark of marks) {
      const row = rows[mark.line - this.#first];
      if (!row) continue;
      this.#marks.set(row, mark);
      set(row, { "data-mark": mark.kind });
    }
    this.#list();
    // Where something is being typed, what is said of it is in sight.
    const typed = this.#told.findIndex(([row]) => row.classList.contains("at"));
    if (typed >= 0) {
      const { bottom } = rect(this.#listed.children[typed]);
      this.#sheet.scrollBy(0, Math.max(0, bottom - rect(this.#sheet).bottom + 4));
    }
  }

  /** Puts the caret at a line, by its number as shown, in sight and focused. @param {number} line */
  goTo(line) {
    const i = within(line - this.#first, this.#lines.length - 1);
    const at = this.#start(i);
    focusOn(this.#area);
    this.#area.setSelectionRange(at, at);
    this.#follow();
    this.#show(i);
  }

  get #rows() {
    return [...this.#text.children];
  }

  /** Where line `i` starts. @param {number} i */
  #start(i) {
    return this.#lines.slice(0, i).reduce((sum, line) => sum + line.length + 1, 0);
  }

  /** The line that a place in the text is in. @param {number} place */
  #line(place) {
    return this.value.slice(0, place).split("\n").length - 1;
  }

  /** Brings line `i` into sight, near the middle if it is not. @param {number} i */
  #show(i) {
    const { offsetTop: top, offsetHeight: height } = /** @type {HTMLElement} */ (this.#text.children[i]);
    const { scrollTop, clientHeight } = this.#sheet;
    // Kept even where there is no room yet.
    if (top < scrollTop || top + height > scrollTop + clientHeight) this.#place[1] = Math.max(0, top - clientHeight / 2);
    this.#sheet.scrollTo(0, this.#place[1]);
  }

  #scrolled() {
    const { scrollLeft, scrollTop, classList } = this.#sheet;
    this.#place = [scrollLeft, scrollTop];
    // Numbers that stay in sight are slow where there are many, and mostly need not.
    classList.toggle("aside", scrollLeft > 0);
  }

  /** Shows which line the caret is in. */
  #follow() {
    classed(find(this.#text, ".at"), "at", false);
    classed(this.#text.children[this.#line(this.#area.selectionEnd)], "at", true);
    this.#lay();
  }

  #changed() {
    this.#draw();
    // What was pasted had no room yet.
    if (this.#area.scrollTop || this.#area.scrollLeft) {
      this.#area.scrollTo(0, 0);
      this.#show(this.#line(this.#area.selectionEnd));
    }
    this.#oninput?.(this.value);
  }

  /** Makes the rows of the lines that are others now. */
  #draw() {
    const [old, lines] = [this.#lines, this.value.split("\n")];
    const least = Math.min(old.length, lines.length);
    let start = 0;
    while (start < least && old[start] === lines[start]) start++;
    let same = 0;
    while (same < least - start && old[old.length - 1 - same] === lines[lines.length - 1 - same]) same++;
    const rows = this.#rows;
    for (const row of rows.slice(start, old.length - same)) {
      this.#marks.delete(row);
      row.remove();
    }
    // As in listings, what is very long would be slow.
    const made = lines.slice(start, lines.length - same).map((text) => h("div", lines.length > LARGEST_WRAPPED ? text : code(text, this.#language)));
    if (start) rows[start - 1].after(...made);
    else this.#text.prepend(...made);
    this.#lines = lines;
    this.#follow();
    this.#list();
  }

  get #told() {
    return [...this.#marks].filter(([, { message }]) => message);
  }

  #list() {
    const rows = this.#rows;
    put(this.#listed, this.#told.map(([row, { kind, message }]) => {
      const line = this.#first + rows.indexOf(row);
      return link(`line ${line}: ${message}`, () => this.goTo(line), { class: "link m", "data-mark": kind });
    }));
    this.#lay();
  }

  /** Lays messages under their lines. */
  #lay() {
    const told = this.#told;
    [...this.#listed.children].forEach((message, i) => {
      const row = /** @type {HTMLElement | undefined} */ (told[i]?.[0]);
      if (!row) return;
      /** @type {HTMLElement} */ (message).style.top = `${row.offsetTop + row.offsetHeight}px`;
      classed(message, "through", !!row.nextElementSibling?.classList.contains("at"));
    });
  }

  /** Types, so that it can be undone. @param {number} from @param {number} to @param {string} text */
  #type(from, to, text) {
    this.#area.setSelectionRange(from, to);
    document.execCommand("insertText", false, text);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const { key, altKey, shiftKey } = event;
    const control = event.ctrlKey || event.metaKey;
    const { selectionStart: start, selectionEnd: end } = this.#area;
    const [from, to] = [this.#line(start), this.#line(end)];
    const page = { PageDown: 1, PageUp: -1 }[key];
    if (altKey || event.isComposing) return;
    if (control && (key === "]" || key === "[")) {
      const lines = this.#lines.slice(from, to + 1);
      const { length } = lines.join("\n");
      const text = lines.map((line) => (key === "]" ? line && INDENT + line : line.replace(/^ {1,4}|^\t/, ""))).join("\n");
      const begin = this.#start(from);
      const grown = text.length - length;
      if (grown) this.#type(begin, begin + length, text);
      if (from === to) this.#area.setSelectionRange(Math.max(begin, start + grown), Math.max(begin, end + grown));
      else this.#area.setSelectionRange(begin, begin + text.length);
    } else if (key === "Enter" && !control && !shiftKey) {
      const before = this.#lines[from].slice(0, start - this.#start(from));
      this.#type(start, end, `\n${/^\s*/.exec(before)?.[0]}${/[:{([]\s*$/.test(before) ? INDENT : ""}`);
    } else if (page && !control && !shiftKey) {
      // The field itself is as high as its text.
      this.goTo(this.#first + to + page * Math.max(1, Math.floor(this.#sheet.clientHeight / ROW_PIXELS) - 1));
    } else return;
    take(event);
  }
}
