// What lines cost, as Python predicts it: a bar below the number of a line, in the gutter.

/** @import { Cost, Costs } from "../messages.js" */
/** @import { Listing, Lowering } from "../model/lowering.js" */

import { distance, labelled } from "../model/lowering.js";
import { classed, find } from "./dom.js";

/** Shows what a line costs in its row; its number is the last one there. @param {Element} row @param {Cost | undefined} cost @param {string} [which] */
export function showCost(row, cost, which = ".n") {
  const number = /** @type {HTMLElement | null} */ (find(row, which));
  if (!number) return;
  classed(number, "cost", !!cost);
  number.title = cost?.[2] ?? "";
  number.style.setProperty("--works", `${cost?.[0]}%`);
  number.style.setProperty("--waits", `${cost ? cost[0] + cost[1] : 0}%`);
}

/** @type {WeakMap<Costs, WeakMap<Listing, Map<number, Cost>>>} */
const known = new WeakMap();

/** What the lines of a program cost: a kernel line's cost stands where its work is done. @param {Lowering} lowering @param {Listing} listing @param {Costs} costs */
export function costsOf(lowering, listing, costs) {
  const listings = known.get(costs) ?? new WeakMap();
  known.set(costs, listings);
  const before = listings.get(listing);
  if (before) return before;
  /** @type {Map<number, [row: number, far: number]>} */
  const nearest = new Map();
  for (const i of listing.lines()) {
    const origins = listing.origins(i);
    for (const [line, kind] of origins < 0 ? [] : labelled(lowering, origins)) {
      const far = distance(listing, i, kind);
      if (costs.kernel[line] && far < (nearest.get(line)?.[1] ?? Infinity)) nearest.set(line, [i, far]);
    }
  }
  /** @type {Map<number, Cost>} */
  const rows = new Map();
  for (const [line, [row]] of nearest) {
    const [cost, other] = [costs.kernel[line], rows.get(row)];
    if (!other || other[0] + other[1] < cost[0] + cost[1]) rows.set(row, [cost[0], cost[1], `kernel line ${line}: ${cost[2]}`]);
  }
  listings.set(listing, rows);
  return rows;
}
