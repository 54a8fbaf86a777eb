import assert from "node:assert/strict";
import { test } from "node:test";
import { aligned } from "../../widgets/model/align.js";
import { ADDED, CHANGED, EQUAL, INDENTED, REMOVED, piecesOf } from "../../widgets/model/diff.js";

const trim = (line) => line.trim();

test("equal lines are one run, the others stand where they come and go", () => {
  assert.deepEqual(aligned(["a", "b", "c", "d"], ["a", "b", "x = 1", "d"], trim), [[EQUAL, 0, 0, 2], [REMOVED, 2, -1], [ADDED, -1, 2], [EQUAL, 3, 3, 1]]);
  assert.deepEqual(aligned([], ["a"], trim), [[ADDED, -1, 0]]);
  assert.deepEqual(aligned(["a"], [], trim), [[REMOVED, 0, -1]]);
  assert.deepEqual(aligned([], [], trim), []);
});

test("a line in another place of its loop is only indented", () => {
  assert.deepEqual(aligned(["go(1)"], ["  go(1)"], trim), [[INDENTED, 0, 0]]);
});

test("similar lines are one changed line with its pieces, without the indentation", () => {
  const [row] = aligned(["work = start + item"], ["    work = start + item * 16"], trim);
  assert.equal(row[0], CHANGED);
  assert.deepEqual(piecesOf("work = start + item", row[3]), [["work = start + item", false]]);
  assert.deepEqual(piecesOf("    work = start + item * 16", row[4]), [["    work = start + item", false], [" * 16", true]]);
});

test("keys align lines whose rest differs", () => {
  const rows = aligned(["grid: 4", "stages: 2", "name: a"], ["stages: 2", "name: b"], (line) => line.split(": ")[0]);
  assert.deepEqual(rows.map(([kind, i, j]) => [kind, i, j]), [[REMOVED, 0, -1], [EQUAL, 1, 0], [CHANGED, 2, 1]]);
});
