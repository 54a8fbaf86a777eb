// A diff as Python packs it, as the rows that are shown.

/** @import { Pieces, Row } from "../messages.js" */

export const ROWS = ["equal", "added", "removed", "changed", "indented", "renamed", "moved"];
export const GLYPHS = ["", "+", "−", "±", "~", "≈", "⇄"];
export const EQUAL = 0;
export const ADDED = 1;
export const REMOVED = 2;
export const CHANGED = 3;
export const INDENTED = 4;
export const RENAMED = 5;
export const MOVED = 6;

// Equal lines that stay beside a change.
const CONTEXT_ROWS = 3;

/**
 * A row: line `i` before and line `j` after, -1 for none. A fold stands for `gap` equal lines and has the position of
 * their run as `key`.
 * @typedef {object} ShownRow
 * @property {number} kind
 * @property {number} i
 * @property {number} j
 * @property {Pieces | undefined} [before] the pieces of the line before
 * @property {Pieces | undefined} [after]
 * @property {number} [partner] the number of the line that a moved one is at on the other side
 * @property {number} [gap]
 * @property {number} [key]
 */

/**
 * The rows to show: runs of equal ones folded, but for those in `open` and lines of which the one after is pinned, lines
 * of hidden classes left out, never one side of a change alone.
 * @param {Row[]} packed
 * @param {(side: "i" | "j", line: number) => boolean} isHidden
 * @param {{ collapsed: boolean, split: boolean, open: Set<number>, isPinned: (line: number) => boolean }} how
 */
export function shownRows(packed, isHidden, { collapsed, split, open, isPinned }) {
  /** @type {ShownRow[]} */
  const rows = [];
  let hiddenRows = 0;
  /** @param {ShownRow} row @param {boolean} [hidden] */
  const push = (row, hidden = hides(row.i, row.j)) => {
    if (hidden) hiddenRows++;
    else rows.push(row);
  };
  /** Whether a row is left out: where one side of it is to be seen, so is the other. @param {number} i @param {number} j */
  const hides = (i, j) => (i < 0 || isHidden("i", i)) && (j < 0 || isHidden("j", j));
  packed.forEach((row, key) => {
    const [kind, i, j] = row;
    if (row[0] === EQUAL) {
      const length = row[3];
      const top = key ? CONTEXT_ROWS : 0;
      const bottom = key + 1 < packed.length ? CONTEXT_ROWS : 0;
      for (let k = 0; k < length; k++) {
        let gap = 0;
        if (collapsed && !open.has(key) && k >= top) while (k + gap < length - bottom && !isPinned(j + k + gap)) gap++;
        if (gap > 1) {
          rows.push({ kind, i: -1, j: -1, gap, key });
          k += gap - 1;
        } else push({ kind, i: i + k, j: j + k });
      }
    } else if (row[0] === CHANGED && !split) {
      push({ kind: REMOVED, i, j: -1, before: row[3] }, hides(i, j));
      push({ kind: ADDED, i: -1, j, after: row[4] }, hides(i, j));
    } else if (row[0] === MOVED) push({ kind, i, j, partner: row[3] });
    else push({ kind, i, j, before: row[3], after: row[4] });
  });
  return { rows, hiddenRows };
}

/** @param {ShownRow | undefined} row */
export const isChange = (row) => !!row && !row.gap && row.kind !== EQUAL;

/**
 * The first row of the next change from row `from` on, in direction 1 or -1; -1 for none. The rest of the change that
 * `from` is in is no next one.
 * @param {ShownRow[]} rows
 * @param {number} from
 * @param {number} direction
 */
export function nextChange(rows, from, direction) {
  let i = from;
  while (isChange(rows[i])) i += direction;
  if (i < 0 && direction > 0) i = 0;
  while (rows[i] && !isChange(rows[i])) i += direction;
  return rows[i] ? i : -1;
}

/**
 * A line in its pieces, each with whether it differs.
 * @param {string} text
 * @param {Pieces | undefined} lengths
 * @returns {[string, boolean][]}
 */
export function piecesOf(text, lengths) {
  if (!lengths || lengths.length < 2) return [[text, false]];
  let start = 0;
  return lengths.map((length, position) => [text.slice(start, (start += length)), position % 2 > 0]);
}
