import assert from "node:assert/strict";
import { test } from "node:test";
import { inTime, isIdle, isLeaf, neighbourOf, positionOf } from "../../widgets/model/steps.js";

// Z is a part that changed nothing; the parts of A are B, C, Z and D, those of E are F.
const steps = [["A", -1, "●"], ["B", 0, "◐"], ["Z", 0, "○"], ["C", 0, "●"], ["Z", 0, "○"], ["D", 0, "✖"], ["E", -1, "○"], ["F", 6, "○"], ["G", -1, "◐"]]
  .map(([letter, part_of, glyph]) => ({ letter, part_of, glyph }));
const all = [...steps.keys()];

test("only parts that changed nothing are idle", () => {
  assert.deepEqual(all.filter((i) => isIdle(steps[i])), [2, 4, 7]);
});

test("steps with parts are no leaves", () => {
  assert.deepEqual(all.filter((i) => !isLeaf(steps, i)), [0, 6]);
});

test("keys pass over idle parts, and stay at the ends", () => {
  const way = (i, direction) => {
    const next = neighbourOf(steps, i, direction);
    return next === i ? [i] : [i, ...way(next, direction)];
  };
  assert.deepEqual(way(0, 1), [0, 1, 3, 5, 6, 8]);
  assert.deepEqual(way(8, -1), [8, 6, 5, 3, 1, 0]);
  // From an idle part, too.
  assert.deepEqual([neighbourOf(steps, 4, 1), neighbourOf(steps, 4, -1), neighbourOf(steps.slice(0, 8), 6, 1)], [5, 3, 6]);
});

test("steps are counted among steps, parts among those of their step", () => {
  assert.deepEqual([0, 3, 6, 7, 8].map((i) => positionOf(steps, i)), ["step 1 of 3", "C, part 3 of 5 of A", "step 2 of 3", "F, part 1 of 1 of E", "step 3 of 3"]);
});

test("a step ends after its parts", () => {
  assert.deepEqual([[0, 3], [3, 0], [1, 3], [3, 1], [0, 8], [8, 5], [6, 5]].map(([a, b]) => inTime(steps, a, b)), [[3, 0], [3, 0], [1, 3], [1, 3], [0, 8], [5, 8], [5, 6]]);
});
