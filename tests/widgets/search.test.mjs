import assert from "node:assert/strict";
import { test } from "node:test";
import { withListings } from "../../widgets/model/lowering.js";
import { search } from "../../widgets/model/search.js";

const line = (text) => [text, 0, 0, 0];
const diff = (before, after) => ({ before, after });
const step = (letter, name, part_of, ir, plan) => ({ letter, name, summary: `${name} does it`, part_of, ir, plan });
// Listings: 0 the kernel and the traced program, 1 the program after A0.2, 2 the plan before, 3 the plan after B1, 4 a file.
const lowering = withListings({
  texts: ["copy", "Gemm(A)", "wait"],
  origins: [[]],
  listings: [[...line(0), ...line(1)], [...line(1), ...line(2), ...line(1)], line(2), line(1), [...line(2), ...line(2)]],
  source: { listing: 0 },
  steps: [
    step("A0", "defaults", -1, diff(0, 1), diff(2, 2)),
    step("A0.1", "first", 0, diff(0, 0), diff(2, 2)),
    step("A0.2", "second", 0, diff(0, 1), diff(2, 2)),
    step("B1", "partition", -1, diff(1, 1), diff(2, 3)),
  ],
  files: [{ name: "compute.cpp", listing: 4, language: "cpp" }],
});
const found = (words) => search(lowering, words).map(({ name, step, part, file, matches }) => [name, step, file || part, matches.map((match) => match.line)]);

test("lines are found in the kernel, in programs, plans and files, whatever their case", () => {
  assert.deepEqual(found("gemm("), [["kernel", -1, "ir", [1]], ["A0.1 program", 1, "ir", [1]], ["A0.2 program", 2, "ir", [0, 2]], ["B1 plan", 3, "plan", [0]]]);
  assert.deepEqual(found("wait"), [["A0.1 plan", 1, "plan", [0]], ["A0.2 program", 2, "ir", [1]], ["compute.cpp", -1, "compute.cpp", [0, 1]]]);
  assert.deepEqual(found("nothing of that"), []);
});

test("steps are found by their names and by what they do", () => {
  assert.deepEqual(found("does it").map(([name]) => name), ["A0 step", "A0.1 step", "A0.2 step", "B1 step"]);
  assert.deepEqual(found("partition"), [["B1 step", 3, "ir", [-1]]]);
});

test("the first step without parts has its program though it leaves it as it was", () => {
  const alone = { ...lowering, steps: [step("A1", "layouts", -1, diff(0, 0), diff(2, 2))] };
  assert.deepEqual(search(alone, "copy").map(({ name }) => name), ["kernel", "A1 program"]);
});
