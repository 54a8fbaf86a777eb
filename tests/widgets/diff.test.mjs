import assert from "node:assert/strict";
import { test } from "node:test";
import { ADDED, CHANGED, EQUAL, MOVED, REMOVED, nextChange, piecesOf, shownRows } from "../../widgets/model/diff.js";

const visible = () => false;
const how = { collapsed: true, split: false, open: new Set(), isPinned: () => false };
const places = ({ rows }) => rows.map(({ kind, i, j, gap }) => (gap ? `…${gap}` : `${kind}:${i},${j}`));

// Ten equal lines, one that is changed, ten equal ones.
const packed = [[EQUAL, 0, 0, 10], [CHANGED, 10, 10, [2, 1], [2, 3]], [EQUAL, 11, 11, 10]];

test("equal rows fold, but for three beside a change", () => {
  assert.deepEqual(places(shownRows(packed, visible, how)), [
    "…7", "0:7,7", "0:8,8", "0:9,9", "2:10,-1", "1:-1,10", "0:11,11", "0:12,12", "0:13,13", "…7",
  ]);
});

test("a fold that would save one row is none", () => {
  assert.deepEqual(places(shownRows([[EQUAL, 0, 0, 4], [ADDED, -1, 4]], visible, how)), ["0:0,0", "0:1,1", "0:2,2", "0:3,3", "1:-1,4"]);
  assert.equal(places(shownRows([[EQUAL, 0, 0, 5], [ADDED, -1, 5]], visible, how))[0], "…2");
});

test("folds open one by one, or all", () => {
  const { rows } = shownRows(packed, visible, how);
  assert.deepEqual([rows[0].key, rows.at(-1).key], [0, 2]);
  assert.equal(shownRows(packed, visible, { ...how, open: new Set([0]) }).rows.length, 10 + 2 + 4);
  assert.equal(shownRows(packed, visible, { ...how, collapsed: false }).rows.length, 22);
});

test("no fold hides what is pinned", () => {
  const pinned = (...lines) => places(shownRows(packed, visible, { ...how, isPinned: (line) => lines.includes(line) }));
  assert.deepEqual(pinned(3).slice(0, 4), ["…3", "0:3,3", "…3", "0:7,7"]);
  // What is left of a fold may be a single row.
  assert.deepEqual(pinned(1, 15).slice(0, 4), ["0:0,0", "0:1,1", "…5", "0:7,7"]);
  const [one, , other] = shownRows(packed, visible, { ...how, isPinned: (line) => line === 3 }).rows;
  assert.deepEqual([one.key, other.key], [0, 0]);
});

test("a changed line is one row side by side, two below one another", () => {
  const [row] = shownRows([packed[1]], visible, { ...how, split: true }).rows;
  assert.deepEqual(row, { kind: CHANGED, i: 10, j: 10, before: [2, 1], after: [2, 3] });
  const [removed, added] = shownRows([packed[1]], visible, how).rows;
  assert.deepEqual([removed.kind, removed.before, added.kind, added.after], [REMOVED, [2, 1], ADDED, [2, 3]]);
});

test("a moved line knows where it is on the other side", () => {
  assert.deepEqual(shownRows([[MOVED, 4, -1, 9]], visible, how).rows, [{ kind: MOVED, i: 4, j: -1, partner: 9 }]);
});

test("hidden lines are counted, on the side where they are", () => {
  const rows = [[EQUAL, 0, 0, 2], [REMOVED, 2, -1], [ADDED, -1, 2]];
  assert.deepEqual(places(shownRows(rows, (side) => side === "i", how)), ["0:0,0", "0:1,1", "1:-1,2"]);
  assert.equal(shownRows(rows, () => true, how).hiddenRows, 4);
});

test("of a change both halves are shown, or none", () => {
  const change = [[CHANGED, 10, 20, [2, 1], [2, 3]]];
  for (const split of [false, true]) {
    const shown = (isHidden) => places(shownRows(change, isHidden, { ...how, split })).length;
    const whole = split ? 1 : 2;
    assert.equal(shown((side) => side === "i"), whole);
    assert.equal(shown((side) => side === "j"), whole);
    assert.equal(shown(() => true), 0);
  }
});

test("the lines of both sides have numbers of their own", () => {
  const row = [[EQUAL, 0, 5, 1]];
  assert.equal(shownRows(row, (side, line) => line === (side === "j" ? 5 : 0), how).hiddenRows, 1);
  assert.equal(shownRows(row, (side, line) => line === (side === "i" ? 5 : 0), how).hiddenRows, 0);
});

test("the next change is one of another group", () => {
  const rows = [EQUAL, ADDED, ADDED, EQUAL, REMOVED].map((kind, i) => ({ kind, i, j: i }));
  assert.deepEqual([-1, 0, 1, 2, 3, 4].map((from) => nextChange(rows, from, 1)), [1, 1, 4, 4, 4, -1]);
  assert.deepEqual([4, 3, 2, 0, -1].map((from) => nextChange(rows, from, -1)), [2, 2, -1, -1, -1]);
  assert.equal(nextChange([{ kind: ADDED, i: -1, j: -1, gap: 5 }], -1, 1), -1);
});

test("pieces add up to the line", () => {
  assert.deepEqual(piecesOf("abcdef", [2, 3, 1]), [["ab", false], ["cde", true], ["f", false]]);
  assert.deepEqual(piecesOf("abc", [3]), [["abc", false]]);
  assert.deepEqual(piecesOf("abc", undefined), [["abc", false]]);
});
