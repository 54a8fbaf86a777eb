// The tiles of a tensor: an index for each dimension, of which the last two are the row and the column.

import { within } from "./figures.js";

/** The tile that is there and nearest to an index, which may be short, long or outside. @param {number[]} index @param {number[]} grid how many there are */
export const nearest = (index, grid) => grid.map((most, axis) => within(index[axis] ?? 0, most - 1));

/** The tile at a place in the picture of a matrix, in shares of its width and height. @param {number[]} index its leading indices @param {number[]} grid @param {number} x @param {number} y */
export function tileAt(index, grid, x, y) {
  const last = grid.length - 1;
  const at = (/** @type {number} */ share, /** @type {number} */ most) => Math.floor(share * most);
  return nearest(index.map((one, axis) => (axis === last ? at(x, grid[axis]) : axis === last - 1 ? at(y, grid[axis]) : one)), grid);
}
