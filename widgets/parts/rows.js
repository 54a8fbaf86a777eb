// Long lists in little DOM: only the rows in sight exist, each of the same height.

import { all, focusIn, focusOn, h } from "./dom.js";

export const ROW_PIXELS = 18;
const MARGIN_ROWS = 12;
// Wrapped rows have heights of their own, so they all exist; more than these would be slow.
export const LARGEST_WRAPPED = 1500;

/** A scrolling list. `make(i)` gives the element of row `i`. */
export class Rows {
  count = 0;
  cursor = -1;
  #make;
  #wrapped = false;
  #first = -1;
  #last = -1;
  #window = h("div.window", { role: "presentation" });
  /** Is told when the cursor has moved. */
  onmove = () => {};
  #spacer = h("div.spacer", { role: "presentation" }, this.#window);

  /** @param {string} label @param {string} kinds classes @param {(i: number) => HTMLElement} make */
  constructor(label, kinds, make) {
    this.#make = make;
    this.element = h("div", { class: `rows ${kinds}`, tabindex: "0", role: "list", label, onscroll: () => this.#scrolled() }, this.#spacer);
    new ResizeObserver(() => this.#draw()).observe(this.element);
  }

  /** The rows that exist now, each with its position. @returns {[HTMLElement, number][]} */
  get drawn() {
    return /** @type {HTMLElement[]} */ ([...this.#window.children]).map((row, k) => [row, this.#first + k]);
  }

  /**
   * Shows `count` rows from the top, or from where the list is; the longest has so many characters.
   * @param {number} count
   * Where the list keeps its place, the row of the cursor may have become row `cursor`: it stays at its height.
   * @param {{ keep?: boolean, cursor?: number | undefined, wrapped: boolean, longest: number }} how
   */
  reset(count, { keep = false, cursor = this.cursor, wrapped, longest }) {
    const [height] = this.#place(this.cursor);
    const wraps = wrapped && count <= LARGEST_WRAPPED;
    // Only what has other heights now has to be found again.
    const top = keep && wraps !== this.#wrapped ? this.#top() : -1;
    this.count = count;
    this.#wrapped = wraps;
    this.element.classList.toggle("wrapped", this.#wrapped);
    this.element.style.setProperty("--long", `${longest}`);
    this.#spacer.style.height = this.#wrapped ? "auto" : `${count * ROW_PIXELS}px`;
    this.#window.style.transform = "";
    if (!keep) {
      this.element.scrollTo(0, 0);
      this.cursor = -1;
    }
    else this.cursor = cursor;
    this.#first = this.#last = -1;
    this.#draw();
    if (keep && cursor >= 0) this.element.scrollTop += this.#place(cursor)[0] - height;
    if (top >= 0) {
      this.element.scrollTo(0, this.#place(top)[0]);
      this.#draw();
    }
  }

  /** Rows stay where they are while their code moves sideways, so that numbers and origins remain in sight. */
  #scrolled() {
    this.#window.style.setProperty("--left", `${-this.element.scrollLeft}px`);
    this.#draw();
  }

  /** The first row in sight. */
  #top() {
    const { scrollTop } = this.element;
    const row = this.#wrapped && this.drawn.find(([row]) => row.offsetTop + row.offsetHeight > scrollTop);
    return row ? row[1] : Math.floor(scrollTop / ROW_PIXELS);
  }

  #draw() {
    const { scrollTop, clientHeight } = this.element;
    const top = Math.floor(scrollTop / ROW_PIXELS);
    const bottom = Math.ceil((scrollTop + (clientHeight || 400)) / ROW_PIXELS);
    const first = this.#wrapped ? 0 : Math.max(0, top - MARGIN_ROWS);
    const last = this.#wrapped ? this.count : Math.min(this.count, bottom + MARGIN_ROWS);
    if (this.#first >= 0 && top >= this.#first && bottom <= this.#last && last - MARGIN_ROWS <= this.#last) return;
    this.#first = first;
    this.#last = last;
    /** @type {HTMLElement[]} */
    const made = [];
    for (let i = first; i < last; i++) {
      const row = this.#make(i);
      row.dataset.i = `${i}`;
      row.classList.toggle("cursor", i === this.cursor);
      // What is wrapped stays right of where its line begins.
      if (this.#wrapped) for (const code of all(row, "code")) code.style.setProperty("--in", `${code.textContent.search(/\S|$/)}`);
      made.push(row);
    }
    // A row that had the focus is gone now; the list keeps it.
    if (focusIn(this.#window)) focusOn(this.element);
    this.#window.replaceChildren(...made);
    if (!this.#wrapped) this.#window.style.transform = `translateY(${first * ROW_PIXELS}px)`;
  }

  /** The element of row `i` if it exists now. @param {number} i */
  #row(i) {
    return i < this.#first ? undefined : /** @type {HTMLElement | undefined} */ (this.#window.children[i - this.#first]);
  }

  /** Where row `i` begins and ends. @param {number} i */
  #place(i) {
    const row = this.#wrapped && this.#row(i);
    return row ? [row.offsetTop, row.offsetTop + row.offsetHeight] : [i * ROW_PIXELS, (i + 1) * ROW_PIXELS];
  }

  /** @param {number} i */
  inSight(i) {
    const { scrollTop, clientHeight } = this.element;
    const [start, end] = this.#place(i);
    return start >= scrollTop && end <= scrollTop + clientHeight;
  }

  /** Brings row `i` into sight, near the middle if it is not. @param {number} i */
  show(i) {
    if (!this.inSight(i)) this.element.scrollTop = Math.max(0, this.#place(i)[0] - this.element.clientHeight / 2);
    this.#draw();
  }

  /** Moves the line cursor and gives the row that it is on. @param {number} i */
  move(i) {
    if (!this.count) return -1;
    this.#row(this.cursor)?.classList.remove("cursor");
    this.cursor = Math.max(0, Math.min(this.count - 1, i));
    this.show(this.cursor);
    this.#row(this.cursor)?.classList.add("cursor");
    this.onmove();
    return this.cursor;
  }
}
