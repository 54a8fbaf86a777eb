// Listings whose lines are linked: the kernel source, the emitted files. Hovering lights up, Enter or a click pins.

import { h } from "./dom.js";
import { pieces } from "./highlight.js";
import { Rows } from "./rows.js";
import { KINDS } from "./data.js";

/** The code of one line: coloured, with search hits marked. */
export function code(text, language, query) {
  const parts = [];
  let rest = 0;
  const found = query ? text.toLowerCase().indexOf(query) : -1;
  for (const [piece, kind] of pieces(text, language)) {
    const start = rest;
    rest += piece.length;
    const from = found - start;
    const to = from + (query?.length || 0);
    if (found < 0 || to <= 0 || from >= piece.length) parts.push(kind ? h("span", { class: kind }, piece) : piece);
    else
      for (const [a, b, hit] of [[0, Math.max(0, from)], [Math.max(0, from), to, true], [to, piece.length]])
        if (piece.slice(a, b)) parts.push(h(hit ? "mark" : "span", { class: kind }, piece.slice(a, b)));
  }
  return parts;
}

/** "L27" with a line under it: solid, dashed or dotted. */
export function originLabel(lowering, originId) {
  const labels = lowering.labels(originId);
  const shown = labels.slice(0, 2).map(([line, kind]) => h("i", { class: KINDS[kind][0], title: KINDS[kind] }, `L${line}`));
  return h("span.o", { title: labels.map(([line]) => `L${line}`).join(" ") }, ...shown.flatMap((one, i) => (i ? [" ", one] : [one])), labels.length > 2 ? ` +${labels.length - 2}` : "");
}

/** A link that pins a kernel line. */
export function pinLink(store, line, label) {
  const pin = () => store.set({ pinned: store.state.lowering.lineAsActive(line), say: `pinned kernel line ${line}` });
  return h("button", { type: "button", class: "link m", onclick: pin }, label);
}

/** The classes that say how a line is linked to what is lit. */
export function mark(element, kind) {
  for (let k = 0; k < KINDS.length; k++) element.classList.toggle(`lit${k}`, k === kind);
}

/** Makes the rows of a list react: `origin(i)` is the origins of row `i`, -1 for none; `where(i)` says what it is. */
export function linkRows(rows, store, origin, where) {
  const { element } = rows;
  const lowering = () => store.state.lowering;
  const active = (i) => {
    const id = i >= 0 && i < rows.count ? origin(i) : -1;
    const places = id >= 0 ? lowering().places(id) : [];
    return places.length ? { places: new Set(places), from: where(i) } : null;
  };
  const rowOf = (event) => Number(event.target.closest("[data-i]")?.dataset.i ?? -1);
  const pin = (i) => {
    const wanted = active(i);
    const { pinned } = store.state;
    const same = wanted && pinned && [...wanted.places].join() === [...pinned.places].join();
    store.set({ pinned: same ? null : wanted, say: wanted ? (same ? "unpinned" : `pinned ${wanted.from}`) : "no origin is known" });
  };
  let last = -1;
  element.addEventListener("mouseover", (event) => {
    const i = rowOf(event);
    if (i === last) return;
    last = i;
    store.set({ hover: active(i) });
  });
  element.addEventListener("mouseleave", () => {
    last = -1;
    store.set({ hover: null });
  });
  element.addEventListener("click", (event) => {
    if (event.target.closest("button,a") || getSelection()?.toString()) return;
    rows.move(rowOf(event));
    pin(rowOf(event));
  });
  element.addEventListener("keydown", (event) => {
    const page = Math.max(1, Math.floor(element.clientHeight / 18) - 1);
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -rows.count, End: rows.count };
    if (event.key in moves && !event.ctrlKey && !event.metaKey) {
      const i = rows.move(rows.cursor + moves[event.key]);
      store.set({ hover: active(i), say: where(i) });
    } else if (event.key === "Enter" || event.key === " ") pin(rows.cursor);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  store.on(["hover", "pinned"], () => {
    const lit = store.state.hover || store.state.pinned;
    for (const row of rows.window.children) {
      const id = origin(Number(row.dataset.i));
      mark(row, id >= 0 ? lowering().link(id, lit) : -1);
    }
  });
}

/** A listing with line numbers. `numberOf(i)` is the number shown beside line `i`. */
export class ListingView {
  constructor(store, label, { numberOf = (i) => i + 1, withOrigins = true } = {}) {
    this.store = store;
    this.listing = null;
    this.language = "python";
    this.name = label;
    this.rows = new Rows(label, (i) => this.row(i, numberOf, withOrigins));
    this.rows.element.classList.add("listing", withOrigins ? "linked" : "own");
    linkRows(this.rows, store, (i) => this.listing?.originId(i) ?? -1, (i) => `${this.name} line ${numberOf(i)}`);
    this.element = this.rows.element;
    store.on(["pinned"], () => this.reveal());
  }

  show(listing, language, name) {
    const same = this.listing === listing;
    Object.assign(this, { listing, language, name });
    this.rows.element.setAttribute("aria-label", name);
    this.rows.reset(listing.count, { keep: same });
    this.reveal();
  }

  row(i, numberOf, withOrigins) {
    const { lowering, hover, pinned } = this.store.state;
    const id = this.listing.originId(i);
    const row = h("div.l", { role: "listitem" },
      h("span.n", `${numberOf(i)}`),
      withOrigins && originLabel(lowering, id),
      h("code", ...code(this.listing.text(i), this.language)));
    mark(row, lowering.link(id, hover || pinned));
    return row;
  }

  /** Scrolls to the first line that is linked to what is pinned, if none is in sight. */
  reveal() {
    const { lowering, pinned } = this.store.state;
    if (this.listing && pinned) this.rows.reveal(lowering.linked(this.listing, pinned).map(([i]) => i));
  }
}
