import assert from "node:assert/strict";
import { test } from "node:test";
import { followed } from "../../widgets/model/live.js";
import { withListings } from "../../widgets/model/lowering.js";

// Lines of the kernel's file from `first` on, one place for each, and a macro in another file.
const kernel = (count, first = 1) => {
  const rows = Array.from({ length: count }, (_, row) => row);
  return withListings({
    places: [...rows.map((row) => ["k.py (edited)", first + row]), ["macros.py", 2]],
    origins: rows.map((row) => [row, 0]),
    listings: [rows.flatMap((row) => [0, row, 0, 0])], texts: ["x"], source: { listing: 0, lines: rows.map((row) => first + row) },
  });
};
const lit = (...places) => ({ places: new Set(places), from: "" });

test("what is pinned moves with its lines", () => {
  const found = followed(kernel(3, 10), kernel(4, 10), [0, 2, 3], lit(1, 2));
  assert.deepEqual(found, { places: new Set([2, 3]), from: "the edited kernel" });
});

test("a line that is gone is not pinned any more", () => {
  assert.deepEqual(followed(kernel(3), kernel(2), [0, -1, 1], lit(1, 2)).places, new Set([1]));
  assert.equal(followed(kernel(3), kernel(2), [0, -1, 1], lit(1)), null);
  assert.equal(followed(kernel(3), kernel(3), [0, 1, 2], null), null);
});

test("the line of a macro, whose number a line of the kernel has too, stays what it is", () => {
  assert.deepEqual(followed(kernel(3), kernel(5), [2, 3, 4], lit(3)).places, new Set([5]));
  assert.equal(followed(kernel(3), { ...kernel(5), places: kernel(5).places.slice(0, 5) }, [2, 3, 4], lit(3)), null);
});
