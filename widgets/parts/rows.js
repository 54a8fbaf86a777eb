// Long lists in little DOM: only the rows in sight exist, each of the same height.

import { within } from "../model/figures.js";
import { all, classed, focusIn, focusOn, h, markup } from "./dom.js";

export const ROW_PIXELS = 18;
// About: what stands beside the code of a line, and the width of a character.
const BESIDE_PIXELS = 100;
const CHARACTER_PIXELS = 7.3;
const MARGIN_ROWS = 12;
// How many marks have room on a ruler.
const MARKS = 150;
// Wrapped rows have heights of their own, so they all exist; more than these would be slow.
export const LARGEST_WRAPPED = 1500;

/** A scrolling list. `make(i)` gives the element of row `i`. */
export class Rows {
  count = 0;
  cursor = -1;
  #make;
  wrapped = false;
  #first = -1;
  #last = -1;
  #height = 0;
  #ruled = "";
  #window = h("div.window", { role: "presentation" });
  /** Is told when the cursor has moved. */
  onmove = () => {};
  /** Is told when there are other rows. */
  onreset = () => {};
  /** What a row is, for whom that is of interest: the class of a change, and whether it has what was searched for. @type {(i: number) => [change: string, isHit: boolean]} */
  about = () => ["", false];
  #ruler = h("div.ruler", { "aria-hidden": true });
  #spacer = h("div.spacer", { role: "presentation" }, this.#window);

  /** @param {string} label @param {string} kinds classes @param {(i: number) => HTMLElement} make */
  constructor(label, kinds, make) {
    this.#make = make;
    this.element = h("div", { class: `rows ${kinds}`, tabindex: "0", role: "list", label, onscroll: () => this.#scrolled() }, this.#ruler, this.#spacer);
    new ResizeObserver(() => {
      this.#draw();
      this.#tighten();
    }).observe(this.element);
  }

  /** The rows that exist now, each with its position. @returns {[HTMLElement, number][]} */
  get drawn() {
    return /** @type {HTMLElement[]} */ ([...this.#window.children]).map((row, k) => [row, this.#first + k]);
  }

  /**
   * Shows `count` rows from the top, or from where the list is; the longest has so many characters.
   * Where the list keeps its place, the row of the cursor may have become row `cursor`: it stays at its height. Where it
   * does not, `draw` makes the rows, or whatever brings one of them into sight.
   * @param {number} count
   * @param {{ keep?: boolean, cursor?: number | undefined, wrapped: boolean, longest: number }} how
   */
  reset(count, { keep = false, cursor = this.cursor, wrapped, longest }) {
    const [height] = this.#place(this.cursor);
    const wraps = wrapped && count <= LARGEST_WRAPPED;
    // Only what has other heights now has to be found again.
    const top = keep && wraps !== this.wrapped ? this.#top() : -1;
    if (!keep) this.element.scrollTo(0, 0);
    // Read before anything changes: afterwards what is going to be replaced would be laid out for it.
    this.#height = this.element.clientHeight;
    this.count = count;
    this.wrapped = wraps;
    classed(this.element, "wrapped", this.wrapped);
    this.element.style.setProperty("--long", `${longest}`);
    this.#spacer.style.height = this.wrapped ? "auto" : `${count * ROW_PIXELS}px`;
    this.#window.style.transform = "";
    this.cursor = keep ? cursor : -1;
    this.onreset();
    this.#first = this.#last = -1;
    if (!keep && !wraps) {
      this.#leaveRows();
      this.#window.replaceChildren();
      return;
    }
    this.#draw();
    if (keep && cursor >= 0) this.element.scrollTop += this.#place(cursor)[0] - height;
    if (top >= 0) {
      this.element.scrollTo(0, this.#place(top)[0]);
      this.#draw();
    }
  }

  /** Makes the rows in sight, unless they are there. */
  draw() {
    if (this.#first < 0) this.#draw(0, this.#height);
  }

  /** Rows stay where they are while their code moves sideways, so that numbers and origins remain in sight. */
  #scrolled() {
    this.#window.style.setProperty("--left", `${-this.element.scrollLeft}px`);
    this.#draw();
  }

  /** The first row in sight. */
  #top() {
    const { scrollTop } = this.element;
    const row = this.wrapped && this.drawn.find(([row]) => row.offsetTop + row.offsetHeight > scrollTop);
    return row ? row[1] : Math.floor(scrollTop / ROW_PIXELS);
  }

  #draw(scrollTop = this.element.scrollTop, clientHeight = this.element.clientHeight) {
    const top = Math.floor(scrollTop / ROW_PIXELS);
    const bottom = Math.min(this.count, Math.ceil((scrollTop + (clientHeight || 400)) / ROW_PIXELS));
    const [before, after] = [this.#first, this.#last];
    if (before >= 0 && top >= before && bottom <= after) return;
    const first = this.wrapped ? 0 : Math.max(0, top - MARGIN_ROWS);
    const last = this.wrapped ? this.count : Math.min(this.count, bottom + MARGIN_ROWS);
    this.#leaveRows();
    for (const [row, i] of this.drawn) if (before < 0 || i < first || i >= last) row.remove();
    this.#first = first;
    this.#last = last;
    /** @type {HTMLElement[][]} */
    const [above, below] = [[], []];
    for (let i = first; i < last; i++) {
      if (i >= before && i < after) continue;
      const row = this.#make(i);
      row.dataset.i = `${i}`;
      classed(row, "cursor", i === this.cursor);
      // What is wrapped stays right of where its line begins.
      if (this.wrapped) for (const code of all(row, "code")) code.style.setProperty("--in", `${code.textContent.search(/\S|$/)}`);
      (i < before ? above : below).push(row);
    }
    this.#window.prepend(...above);
    this.#window.append(...below);
    if (this.wrapped) this.#tighten();
    else this.#window.style.transform = `translateY(${first * ROW_PIXELS}px)`;
  }

  /** Shows at the right edge where rows of several kinds are. @param {Record<string, number[]>} kinds */
  rule(kinds) {
    const height = Math.max(1, this.count / MARKS);
    const paths = Object.entries(kinds).map(([kind, rows]) => rows.length > 0 && `<path class="${kind}" d="${rows.map((i) => `M0 ${i}h1v${height}h-1z`).join("")}"/>`);
    const svg = `<svg viewBox="0 0 1 ${Math.max(1, this.count)}" preserveAspectRatio="none">${paths.filter(Boolean).join("")}</svg>`;
    if (svg !== this.#ruled) this.#ruler.replaceChildren(...markup((this.#ruled = svg)).childNodes);
  }

  /** A word that does not fit after its indentation would leave a line empty, so it is broken. */
  #tighten() {
    const columns = (this.element.clientWidth - BESIDE_PIXELS) / CHARACTER_PIXELS;
    if (this.wrapped && columns > 0) for (const code of all(this.#window, "code")) classed(code, "tight", (/^\s*\S*/.exec(code.textContent)?.[0].length ?? 0) > columns);
  }

  /** A row that has the focus may go; the list keeps it. */
  #leaveRows() {
    if (focusIn(this.#window)) focusOn(this.element);
  }

  /** The element of row `i` if it exists now. @param {number} i */
  #row(i) {
    return i < this.#first ? undefined : /** @type {HTMLElement | undefined} */ (this.#window.children[i - this.#first]);
  }

  /** Where row `i` begins and ends. @param {number} i */
  #place(i) {
    const row = this.wrapped && this.#row(i);
    return row ? [row.offsetTop, row.offsetTop + row.offsetHeight] : [i * ROW_PIXELS, (i + 1) * ROW_PIXELS];
  }

  /** @param {number} i */
  inSight(i) {
    const { scrollTop, clientHeight } = this.element;
    const [start, end] = this.#place(i);
    return start >= scrollTop && end <= scrollTop + clientHeight;
  }

  /** Makes row `i` the first in sight, where there is enough after it. @param {number} i */
  begin(i) {
    this.element.scrollTop = this.#place(i)[0];
    this.#draw();
  }

  /** Brings row `i` into sight, near the middle if it is not. @param {number} i */
  show(i) {
    if (!this.inSight(i)) this.element.scrollTop = Math.max(0, this.#place(i)[0] - this.element.clientHeight / 2);
    this.#draw();
  }

  /** Moves the line cursor and gives the row that it is on. @param {number} i */
  move(i) {
    if (!this.count) return -1;
    classed(this.#row(this.cursor), "cursor", false);
    this.cursor = within(i, this.count - 1);
    this.show(this.cursor);
    classed(this.#row(this.cursor), "cursor", true);
    this.onmove();
    return this.cursor;
  }
}
