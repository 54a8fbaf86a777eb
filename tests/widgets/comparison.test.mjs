import assert from "node:assert/strict";
import { test } from "node:test";
import { changes } from "../../widgets/model/comparison.js";
import { withListings } from "../../widgets/model/lowering.js";

const step = (ir, plan) => ({ ir: { after: ir }, plan: { after: plan } });
const lowering = (steps) => withListings({
  texts: ["one", "two", "options.stages: 2", "options.stages: 3", "cores: 4"],
  listings: [[0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 0, 0], [4, 0, 0]], steps,
});

test("steps differ in the program, else in what was decided, not in what was asked for", () => {
  const here = lowering([step(0, 2), step(0, 2), step(0, 2), step(0, 2)]);
  const there = lowering([step(0, 3), step(0, 4), step(1, 2)]);
  assert.deepEqual(changes(here, there).map(([glyph]) => glyph), ["=", "◐", "●", "✖"]);
});
