// Tiles that are there, whatever was asked for.

import assert from "node:assert/strict";
import { test } from "node:test";

import { nearest, tileAt } from "../../widgets/model/tiles.js";

test("an index that is short, long or outside becomes the nearest tile", () => {
  assert.deepEqual(nearest([], [2, 8, 8]), [0, 0, 0]);
  assert.deepEqual(nearest([1, -3, 99, 4], [2, 8, 8]), [1, 0, 7]);
  assert.deepEqual(nearest([5], [40]), [5]);
});

test("a place in the picture is a tile of the matrix that is shown", () => {
  assert.deepEqual(tileAt([1, 0, 0], [2, 8, 4], 0.99, 0.51), [1, 4, 3]);
  assert.deepEqual(tileAt([1, 0, 0], [2, 8, 4], 1, 1), [1, 7, 3]);
  assert.deepEqual(tileAt([3], [40], 0.5, 0.9), [20]);
});
