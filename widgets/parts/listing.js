// Listings whose lines are linked: the kernel source, the emitted files. Hovering lights up, Enter or a click pins.

/** @import { Marked } from "../messages.js" */
/** @import { Listing, Lowering } from "../model/lowering.js" */
/** @import { Explorer } from "../model/state.js" */

import { coloured } from "../model/highlight.js";
import { KINDS, distance, labels, link as linkOf, linked, litByLine, litByOrigins } from "../model/lowering.js";
import { textsOf } from "../model/live.js";
import { showCost } from "./costs.js";
import { classed, closest, focusOn, h, link, set, take } from "./dom.js";
import { followPins } from "./pins.js";
import { ROW_PIXELS, Rows } from "./rows.js";

/** A part of a line, from 0, in an element of its own. @typedef {[from: number, to: number, tag: string, title?: string | undefined]} Part */

/** The code of one line: coloured, with search hits marked, else the given parts. @param {string} text @param {string} language @param {string} [query] in lower case @param {Part[]} [marked] */
export function code(text, language, query = "", marked = []) {
  /** @type {(Node | string)[]} */
  const parts = [];
  const found = query ? text.toLowerCase().indexOf(query) : -1;
  /** @type {Part[]} */
  const own = found < 0 ? marked : [[found, found + query.length, "mark"]];
  let start = 0;
  for (const [piece, kind] of coloured(text, language)) {
    const end = start + piece.length;
    while (start < end) {
      const inside = own.find(([a, b]) => a <= start && start < b);
      const to = own.length ? Math.min(end, inside?.[1] ?? Math.min(...own.map(([a]) => (a > start ? a : end)))) : end;
      const part = text.slice(start, to);
      parts.push(inside || kind ? h(inside?.[2] ?? "span", { class: kind, title: inside?.[3] }, part) : part);
      start = to;
    }
  }
  return parts;
}

/** "L27" with a line under it: solid, dashed or dotted; `most` of them are shown. @param {Lowering} lowering @param {number} origins @param {number} [most] */
export function originLabel(lowering, origins, most = 2) {
  const found = labels(lowering, origins);
  return h("span.o", { title: found.map(([line]) => `L${line}`).join(" ") },
    ...found.slice(0, most).map(([line, kind], i) => [i > 0 && " ", h("i", { class: KINDS[kind][0], title: KINDS[kind] }, `L${line}`)]),
    found.length > most && ` +${found.length - most}`);
}

/** A link that pins a kernel line; nothing for line 0. @param {Explorer} store @param {number} line @param {string} [label] */
export const pinLink = (store, line, label = `L${line}`) => line
  ? link(label, () => store.set({ pinned: litByLine(store.state.lowering, line), say: `pinned kernel line ${line}` }), { class: "link m" })
  : "";

// Hues of lines that follow each other are far apart.
const TURN = 137;

/** Shows how a line with these origins is linked to what is lit. @param {Element} element @param {Explorer} store @param {number} origins */
export function mark(element, { state: { lowering, hover, pinned, colours } }, origins) {
  const line = colours && origins >= 0 ? labels(lowering, origins)[0]?.[0] : 0;
  // Of an empty line there is the number alone.
  classed(element, "hued", !!line && /\D/.test(element.textContent ?? ""));
  if (line) /** @type {HTMLElement} */ (element).style.setProperty("--line", `${(line * TURN) % 360}`);
  const kind = linkOf(lowering, origins, hover || pinned);
  KINDS.forEach((_, k) => classed(element, `lit${k}`, k === kind));
}

/**
 * Makes the rows of a list react: `origins(i)` are those of row `i`, -1 for none; `where(i)` says what it is, and
 * `said(i)` what is said of it to who hears the page. Gives what pins the row that the cursor is on.
 * @param {Rows} rows
 * @param {Explorer} store
 * @param {(i: number) => number} origins
 * @param {(i: number) => string} where
 * @param {(i: number) => string} [said]
 */
export function linkRows(rows, store, origins, where, said = where) {
  const { element } = rows;
  /** @param {number} i */
  const lit = (i) => (i >= 0 && i < rows.count ? litByOrigins(store.state.lowering, origins(i), where(i)) : null);
  /** @param {Event} event */
  const rowOf = (event) => Number(closest(event.target, "[data-i]")?.dataset.i ?? -1);
  /** @param {number} i */
  const pin = (i) => {
    const wanted = lit(i);
    const { pinned } = store.state;
    const same = wanted && pinned && [...wanted.places].join() === [...pinned.places].join();
    store.set({ pinned: same ? null : wanted, say: wanted ? (same ? "unpinned" : `pinned ${wanted.from}`) : "no known origin" });
  };
  let last = -1;
  set(element, {
    onmouseover: (event) => {
      const i = rowOf(event);
      if (i !== last) store.set({ hover: lit((last = i)) });
    },
    onmouseleave: () => store.set({ hover: lit((last = -1)) }),
    onclick: (event) => {
      if (closest(event.target, "button,a") || getSelection()?.toString()) return;
      const i = rowOf(event);
      rows.move(i);
      pin(i);
    },
    onkeydown: (event) => {
      const page = Math.max(1, Math.floor(element.clientHeight / ROW_PIXELS) - 1);
      const step = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -rows.count, End: rows.count }[event.key];
      if (step && !event.ctrlKey && !event.metaKey) {
        const i = rows.move(rows.cursor + step);
        store.set({ hover: lit(i), say: said(i) });
      } else if (event.key === "Enter" || event.key === " ") pin(rows.cursor);
      else return;
      take(event);
    },
  });
  let ruling = 0;
  /** Once for all that changes together, after what is in sight. */
  const rule = () => {
    cancelAnimationFrame(ruling);
    ruling = requestAnimationFrame(() => {
      const { lowering, hover, pinned } = store.state;
      /** @type {Record<string, number[]>} */
      const kinds = { a: [], r: [], c: [], w: [], v: [], hit: [], pin: [], over: [] };
      for (let i = 0; i < rows.count; i++) {
        const [change, isHit] = rows.about(i);
        kinds[change]?.push(i);
        if (isHit) kinds.hit.push(i);
        if (linkOf(lowering, origins(i), pinned) >= 0) kinds.pin.push(i);
        if (linkOf(lowering, origins(i), hover) >= 0) kinds.over.push(i);
      }
      rows.rule(kinds);
    });
  };
  rows.onreset = rule;
  store.on(["hover", "pinned", "query", "lowering"], rule);
  store.on(["hover", "pinned", "colours"], () => rows.drawn.forEach(([row, i]) => mark(row, store, origins(i))));
  return () => pin(rows.cursor);
}

/** A listing with line numbers. `numberOf(i)` is the number shown beside line `i`. */
export class ListingView {
  /** @type {Listing | undefined} */
  #listing;
  #language = "";
  /** @type {Map<number, Marked>} */
  #marks = new Map();
  /** The lines before the kernel's text was edited. @type {Set<string> | null | undefined} */
  #known;
  /** How many lines at the top are folded away. */
  #folded = 0;
  /** The line that is to be the first in sight, once there is a place for it; 0 for none. */
  #start = 0;
  #store;
  #rows;

  /** @param {Explorer} store @param {string} name @param {{ numberOf?: (i: number) => number, withOrigins?: boolean, marked?: (i: number) => Part[] }} [how] */
  constructor(store, name, { numberOf = (i) => i + 1, withOrigins = true, marked } = {}) {
    this.name = name;
    this.#store = store;
    const origins = (/** @type {number} */ i) => this.#listing?.origins(i) ?? -1;
    const cost = (/** @type {number} */ i) => (withOrigins ? store.state.costs?.files[this.name] : store.state.costs?.kernel)?.[numberOf(i)];
    this.#rows = new Rows(name, `listing ${withOrigins ? "linked" : ""}`, (i) => {
      if (i < this.#folded && this.#rows.wrapped) return h("div.l.gap", { role: "listitem", hidden: i > 0 },
        !i && h("button", { type: "button", tabindex: "-1", onclick: () => this.#unfold() }, `⋯ ${this.#folded} lines of comments and includes`));
      const { kind, message } = this.#marks.get(i + 1) ?? {};
      const row = h("div.l", { role: "listitem", "data-mark": kind, title: message },
        h("span.n", `${numberOf(i)}`),
        withOrigins && originLabel(store.state.lowering, origins(i), 1),
        h("code", ...code(this.#listing?.text(i) ?? "", this.#language, store.state.query, marked?.(i))));
      mark(row, store, origins(i));
      showCost(row, cost(i));
      if (store.state.before && this.#known?.has(this.#listing?.text(i) ?? "") === false) classed(row, "flash", true);
      return row;
    });
    /** @param {number} i */
    const where = (i) => `${this.name} line ${numberOf(i)} ${this.#marks.get(i + 1)?.message ?? ""}`.trim();
    linkRows(this.#rows, store, origins, where);
    this.#rows.about = (i) => ["", !!store.state.query && (this.#listing?.text(i).toLowerCase().includes(store.state.query) ?? false)];
    this.element = this.#rows.element;
    this.pins = followPins(store, this.#rows, () => {
      const { lowering, pinned } = store.state;
      const listing = this.#listing;
      return listing && pinned ? linked(lowering, listing, pinned).map(([i, kind]) => [i, distance(listing, i, kind)]) : [];
    }, where);
    const { onmove } = this.#rows;
    this.#rows.onmove = () => {
      if (this.#rows.cursor < this.#folded) this.#unfold();
      onmove();
    };
    store.on(["wrapCode", "query"], () => this.#draw(true));
    store.on(["found"], ({ found }) => { if (found && found.listing === this.#listing) this.#rows.move(found.line); });
    store.on(["costs"], () => this.#rows.drawn.forEach(([row, i]) => showCost(row, cost(i))));
  }

  /** @param {boolean} keep */
  #draw(keep) {
    const listing = this.#listing;
    if (listing) this.#rows.reset(listing.count, { keep, wrapped: this.#store.state.wrapCode, longest: listing.longest });
  }

  /** @param {Listing} listing @param {string} language @param {string} [name] */
  show(listing, language, name = this.name) {
    const { before, updating } = this.#store.state;
    const keep = this.#listing === listing || (updating && this.name === name);
    const twin = before?.files.find((file) => file.name === name);
    this.#known = before && twin && textsOf(before.listings[twin.listing]);
    this.#listing = listing;
    this.#language = language;
    this.name = name;
    this.element.ariaLabel = name;
    if (!keep) [this.#folded, this.#start] = beginning(listing, language);
    this.#draw(keep);
    this.reveal();
    this.#rows.draw();
  }

  /** Goes to what is pinned, and at first to where the file does its work. Lists have no height before they are in the page. */
  reveal() {
    if (this.#start && this.element.clientHeight) {
      this.#rows.begin(this.#start);
      this.#start = 0;
    }
    this.pins.reveal();
  }

  #unfold() {
    this.#folded = 0;
    this.#draw(true);
  }

  /** Marks lines, and no others. @param {Marked[]} marks */
  marks(marks) {
    this.#marks = new Map(marks.map((mark) => [mark.line, mark]));
    this.#draw(true);
  }

  /** Puts the cursor at line `line`, from 1, and the focus there. @param {number} line */
  goTo(line) {
    focusOn(this.element);
    this.#rows.move(line - 1);
  }
}

// Fewer lines are not worth a fold.
const LEAST_FOLDED = 4;
const HEADS = /** @type {Record<string, RegExp>} */ ({ cpp: /^\s*(\/\/.*|#.*)?$/, python: /^(#.*|""".*"""|from .*|import .*)?$/ });

/** How many lines of comments and includes a file begins with, and the line before its main loop. @param {Listing} listing @param {string} language */
function beginning(listing, language) {
  const lines = listing.lines().map((i) => listing.text(i));
  const head = HEADS[language] ? lines.findIndex((line) => !HEADS[language].test(line)) : 0;
  const main = lines.findIndex((line) => line.startsWith("void kernel_main("));
  const loop = main < 0 ? -1 : lines.findIndex((line, i) => i > main && /^\s*(for|while) \(/.test(line));
  return [head < LEAST_FOLDED ? 0 : head, Math.max(0, loop - 1)];
}

/** The kernel's own lines with the numbers that they have in its file. @param {Explorer} store */
export function kernelSource(store) {
  const view = new ListingView(store, "kernel source", { numberOf: (i) => store.state.lowering.source.lines[i], withOrigins: false });
  store.on(["lowering"], ({ lowering }) => view.show(lowering.listings[lowering.source.listing], "python"));
  return view;
}
