// The rows of a diff: folded, linked to kernel lines, with a cursor that goes from change to change.

/** @import { Row } from "../messages.js" */
/** @import { ShownRow } from "../model/diff.js" */
/** @import { Listing } from "../model/lowering.js" */
/** @import { Explorer } from "../model/state.js" */

import { CHANGED, GLYPHS, RENAMED, ROWS, isChange, nextChange, piecesOf, shownRows } from "../model/diff.js";
import { distance, link as linkOf } from "../model/lowering.js";
import { costsOf, showCost } from "../parts/costs.js";
import { classed, closest, h, set } from "../parts/dom.js";
import { code, linkRows, mark, originLabel } from "../parts/listing.js";
import { followPins } from "../parts/pins.js";
import { Rows } from "../parts/rows.js";

// By kind, in the order of ROWS.
const ROW_CLASSES = ["", "a", "r", "c", "w", "w", "v"];

// What stays unfolded before and after a line that was searched for.
const CONTEXT_LINES = 3;

/**
 * Two listings and the rows that align them. Rows stay where they are scrolled to while the `name` is the same; `why`
 * has words about the row that the cursor is on.
 * @typedef {object} Compared
 * @property {string} name
 * @property {Listing} before
 * @property {Listing} after
 * @property {Row[]} rows
 * @property {string} language
 * @property {boolean} split whether both sides are beside each other
 * @property {(() => string) | undefined} [why]
 * @property {Set<string>[] | null | undefined} [known] the lines of both before the kernel's text was edited
 */

/** @param {Explorer} store @param {string} label */
export function changeRows(store, label) {
  /** @type {ShownRow[]} */
  let shown = [];
  /** @type {Compared} */
  let compared;
  /** What was shown when the rows were made. @type {import("../model/lowering.js").Lowering | undefined} */
  let of;
  const rows = new Rows(label, "diff", (i) => {
    const row = diffRow(store, shown[i], compared);
    costly(row, i);
    return row;
  });
  /** @param {Element} row @param {number} i */
  const costly = (row, i) => {
    const { costs, lowering } = store.state;
    const { j, gap } = shown[i];
    if (!gap && compared.language === "tir" && j >= 0) showCost(row, costs ? costsOf(lowering, compared.after, costs).get(j) : undefined, ".n:nth-last-of-type(3)");
  };
  store.on(["costs"], () => rows.drawn.forEach(([row, i]) => costly(row, i)));
  /** The side of a row that stands for it, and its line there. @type {(row: ShownRow) => [Listing, number]} */
  const sideOf = ({ i, j }) => (j >= 0 ? [compared.after, j] : [compared.before, i]);
  /** @param {ShownRow | undefined} row */
  const originsOf = (row) => {
    if (!row || row.gap) return -1;
    const [listing, line] = sideOf(row);
    return listing.origins(line);
  };
  /** @param {ShownRow} row */
  const place = (row) => {
    if (row.gap) return `${row.gap} unchanged lines`;
    const [, line] = sideOf(row);
    return `${ROWS[row.kind]} line ${1 + line}`;
  };
  /** @param {number} i */
  const said = (i) => {
    const row = shown[i];
    if (row.gap) return place(row);
    const [listing, line] = sideOf(row);
    return `${place(row)}: ${listing.text(line)}${compared.why?.() ?? ""}`;
  };
  rows.about = (i) => {
    const [listing, line] = sideOf(shown[i]);
    const { query } = store.state;
    return shown[i].gap ? ["", false] : [ROW_CLASSES[shown[i].kind], !!query && listing.text(line).toLowerCase().includes(query)];
  };
  const pinCursor = linkRows(rows, store, (i) => originsOf(shown[i]), (i) => place(shown[i]), said);
  set(rows.element, { onclick: ({ target }) => {
    const key = closest(target, ".gap")?.dataset.key;
    if (key) store.set({ open: new Set([...store.state.open, Number(key)]) });
  } });
  // Before what is pinned is looked for: no fold may hide it.
  store.on(["pinned"], () => {
    if (of !== store.state.lowering) return;
    const was = shown.slice(Math.max(0, rows.cursor)).find((row) => !row.gap);
    fold();
    const at = was ? shown.findIndex((row) => (was.j < 0 ? row.i === was.i : row.j >= was.j)) : -1;
    reset(true, rows.cursor < 0 ? -1 : at < 0 ? shown.length - 1 : at);
  });
  store.on(["found"], ({ found, lowering }) => {
    if (of !== lowering || found?.listing !== compared.after || found.line < 0) return;
    fold();
    reset(true);
    rows.move(rowOf("j", found.line));
  });
  const pins = followPins(store, rows, () => {
    const { lowering, pinned } = store.state;
    return [...shown.keys()].flatMap((i) => {
      const kind = linkOf(lowering, originsOf(shown[i]), pinned);
      if (kind < 0) return [];
      // What is gone comes after what is there.
      return [[i, distance(...sideOf(shown[i]), kind) + (shown[i].j < 0 ? 1000 : 0)]];
    });
  }, said);

  /** Shows the rows; gives how many of them are hidden. @param {Compared} next */
  function show(next) {
    const keep = compared?.name === next.name && (compared.after === next.after || store.state.updating);
    compared = next;
    const hiddenRows = fold();
    classed(rows.element, "split", next.split);
    reset(keep);
    if (!keep) {
      const first = shown.findIndex(isChange);
      if (first > 10) rows.show(first);
    }
    pins.reveal();
    rows.draw();
    return hiddenRows;
  }

  /** Makes the rows; gives how many of them are hidden. */
  function fold() {
    const { state } = store;
    const { hidden, lowering, pinned, found } = state;
    const { before, after, rows: packed, split } = compared;
    /** @param {Listing} listing @param {number} line */
    const isFound = (listing, line) => found?.listing === listing && Math.abs(found.line - line) < CONTEXT_LINES;
    const made = shownRows(packed, (side, i) => {
      const listing = side === "j" ? after : before;
      return hidden.has(lowering.classes[listing.class(i) - 1]) && !isFound(listing, i);
    }, { ...state, split, isPinned: (line) => linkOf(lowering, after.origins(line), pinned) >= 0 || isFound(after, line) });
    of = lowering;
    shown = made.rows;
    return made.hiddenRows;
  }

  /** @param {boolean} keep @param {number} [cursor] */
  function reset(keep, cursor) {
    const { before, after } = compared;
    const longest = shown.reduce((most, { i, j }) => Math.max(most, i < 0 ? 0 : before.width(i), j < 0 ? 0 : after.width(j)), 0);
    rows.reset(shown.length, { keep, cursor, wrapped: store.state.wrap, longest });
  }

  /** The row of line `line` of one side; -1 where it is not shown. @param {"i" | "j"} side @param {number} line */
  function rowOf(side, line) {
    return shown.findIndex((row) => row[side] === line && !row.gap);
  }

  /** Goes to line `line` of one side, if it is shown. @param {"i" | "j"} side @param {number} line */
  function goTo(side, line) {
    const i = rowOf(side, line);
    if (i < 0) return;
    moveTo(i);
    rows.element.focus({ preventScroll: true });
  }

  /** @param {number} i */
  function moveTo(i) {
    rows.move(i);
    store.set({ say: said(i) });
  }

  /** @param {number} direction */
  function goToChange(direction) {
    const next = nextChange(shown, rows.cursor, direction);
    if (next < 0) store.set({ say: "no more changes" });
    else moveTo(next);
  }
  return {
    element: rows.element, rows, pins, show, goTo, row: (/** @type {number} */ i) => shown[i], keys: { n: () => goToChange(1), p: () => goToChange(-1), h: pinCursor },
  };
}

/** @param {Explorer} store @param {ShownRow} row @param {Compared} compared */
function diffRow(store, row, { before, after, language, split, known }) {
  const { kind, i, j, gap, partner } = row;
  const { lowering, query } = store.state;
  if (gap) return h("div.l.gap", { role: "listitem", "data-key": row.key }, h("button", { type: "button", tabindex: "-1" }, `⋯ ${gap} unchanged lines`));
  const glyph = GLYPHS[kind];
  /** The code of a line with the pieces that differ in bold. @param {"before" | "after"} name @param {string} sign */
  const side = (name, sign) => {
    const [listing, line] = name === "after" ? [after, j] : [before, i];
    const pieces = line >= 0 ? piecesOf(listing.text(line), row[name]) : [];
    const bare = pieces.length === 1;
    return [
      h("span.n", line >= 0 && `${line + 1}`),
      h("span.g", line >= 0 && sign),
      h("code", ...pieces.map(([text, differs]) => (bare ? code(text, language, query) : text && h(differs ? "b" : "span", ...code(text, language, query))))),
    ];
  };
  const origins = j >= 0 ? after.origins(j) : before.origins(i);
  const element = h("div", {
    class: `l ${ROW_CLASSES[kind]} ${i < 0 ? "new" : j < 0 ? "old" : ""}`, role: "listitem",
    title: partner && `moved ${j >= 0 ? "from" : "to"} line ${partner}`,
  },
  ...(split
    ? [side("before", kind === CHANGED ? "−" : j >= 0 && kind !== RENAMED ? "" : glyph), side("after", kind === CHANGED ? "+" : glyph)]
    : [side(j >= 0 ? "after" : "before", glyph)]),
  originLabel(lowering, origins));
  mark(element, store, origins);
  if (store.state.before && known?.[+(j >= 0)].has(j >= 0 ? after.text(j) : before.text(i)) === false) classed(element, "flash", true);
  return element;
}
