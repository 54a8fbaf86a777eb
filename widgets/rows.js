// Long lists in little DOM: only the rows in sight exist, each of the same height.

import { h } from "./dom.js";

export const ROW_PIXELS = 18;
const MARGIN_ROWS = 12;
// Wrapped rows have heights of their own, so they all exist; more than these would be slow.
export const LARGEST_WRAPPED = 1500;

/** A scrolling list. `make(i)` gives the element of row `i`. */
export class Rows {
  constructor(label, make, properties) {
    this.make = make;
    this.count = 0;
    this.wrapped = false;
    this.cursor = -1;
    this.window = h("div.window", { role: "presentation" });
    this.spacer = h("div.spacer", { role: "presentation" }, this.window);
    this.element = h("div.rows", { tabindex: "0", role: "list", "aria-label": label, ...properties }, this.spacer);
    this.first = this.last = -1;
    this.element.addEventListener("scroll", () => this.draw(), { passive: true });
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  /** Shows `count` rows from the top, or from where the list is. */
  reset(count, { keep = false, wrapped = false } = {}) {
    this.count = count;
    this.wrapped = wrapped && count <= LARGEST_WRAPPED;
    this.element.classList.toggle("wrapped", this.wrapped);
    this.spacer.style.height = this.wrapped ? "auto" : `${count * ROW_PIXELS}px`;
    this.window.style.transform = "";
    if (!keep) {
      this.element.scrollTop = 0;
      this.cursor = -1;
    }
    this.refresh();
  }

  /** Makes the rows in sight anew. */
  refresh() {
    this.first = this.last = -1;
    this.draw();
  }

  draw() {
    const top = this.element.scrollTop;
    const height = this.element.clientHeight || 400;
    const first = this.wrapped ? 0 : Math.max(0, Math.floor(top / ROW_PIXELS) - MARGIN_ROWS);
    const last = this.wrapped ? this.count : Math.min(this.count, Math.ceil((top + height) / ROW_PIXELS) + MARGIN_ROWS);
    const seen = Math.floor(top / ROW_PIXELS) >= this.first && Math.ceil((top + height) / ROW_PIXELS) <= this.last;
    if (this.first >= 0 && seen && last - MARGIN_ROWS <= this.last) return;
    this.first = first;
    this.last = last;
    const made = [];
    for (let i = first; i < last; i++) {
      const row = this.make(i);
      row.dataset.i = i;
      row.classList.toggle("cursor", i === this.cursor);
      made.push(row);
    }
    // A row that had the focus is gone now; the list keeps it.
    if (this.window.contains(this.element.getRootNode().activeElement)) this.element.focus({ preventScroll: true });
    this.window.replaceChildren(...made);
    if (!this.wrapped) this.window.style.transform = `translateY(${first * ROW_PIXELS}px)`;
  }

  /** The element of row `i` if it exists now. */
  row(i) {
    return i >= this.first && i < this.last ? this.window.children[i - this.first] : null;
  }

  /** Brings row `i` into sight, near the middle if it is not. */
  show(i) {
    if (this.wrapped) {
      this.row(i)?.scrollIntoView({ block: "nearest" });
      return;
    }
    const top = i * ROW_PIXELS;
    const { scrollTop, clientHeight } = this.element;
    if (top < scrollTop || top + ROW_PIXELS > scrollTop + clientHeight)
      this.element.scrollTop = Math.max(0, top - clientHeight / 2);
    this.draw();
  }

  /** Brings the first of some rows into sight if none of them is. */
  reveal(positions) {
    const { scrollTop, clientHeight } = this.element;
    if (!clientHeight || !positions.length) return;
    const seen = (i) => i * ROW_PIXELS >= scrollTop && (i + 1) * ROW_PIXELS <= scrollTop + clientHeight;
    if (!positions.some(seen)) this.show(positions[0]);
  }

  /** Moves the line cursor and gives the row that it is on. */
  move(i) {
    if (!this.count) return -1;
    this.row(this.cursor)?.classList.remove("cursor");
    this.cursor = Math.max(0, Math.min(this.count - 1, i));
    this.show(this.cursor);
    this.row(this.cursor)?.classList.add("cursor");
    return this.cursor;
  }
}
