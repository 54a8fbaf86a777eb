import assert from "node:assert/strict";
import { test } from "node:test";
import { Moments, Recorded } from "../../widgets/model/moments.js";

// The reader pushes two pages at 1 and 3; compute waits for them from 0 to 4, then pops two and finishes.
const pattern = {
  time: [1, 2, 1, 1], kernel: [0, 0, 1, 1], operation: [0, 0, 1, 2], buffer: [0, 0, 0, -1], amount: [2, 2, 2, 0], line: [0, 0, 1, 1],
  tensor: [-1, -1, -1, -1], cut: 0, waits: [[1, 0, 4, 0, 0, 4, 1, "reader", 0]],
};
const recording = {
  kernels: ["reader", "compute"], operations: ["push_back", "pop_front", "finish"], buffers: [["A", 0, 4]],
  lines: [[7, "push", 10], [9, "pop", 11]], patterns: [pattern], cores: [[0, 0, 0], [1, 0, 0]], core: [1, 0],
};
const moments = new Moments(recording, pattern);
const at = (change) => new Moments(recording, { ...pattern, ...change });
const times = [0, 1, 2, 3, 4, 5, 6];

test("times are sums, pages are pushes less pops", () => {
  assert.deepEqual(moments.times, [1, 3, 4, 5]);
  assert.equal(moments.end, 5);
  assert.deepEqual(times.map((time) => moments.held(0, time)), [0, 2, 2, 4, 2, 2, 2]);
});

test("a kernel waits until its wait ends, and is done at its finish", () => {
  assert.deepEqual(times.map((time) => moments.doing(time).map(({ state }) => state)),
    [["", "waits"], ["runs", "waits"], ["runs", "waits"], ["runs", "waits"], ["runs", "runs"], ["runs", "done"], ["runs", "done"]]);
  const [reader, compute] = moments.doing(3);
  assert.deepEqual([reader.line, compute.line], recording.lines);
  assert.equal(compute.wait, pattern.waits[0]);
});

test("a kernel that has done nothing has not started", () => {
  const [, compute] = at({ waits: [] }).doing(1);
  assert.deepEqual(compute, { kernel: "compute", state: "", wait: undefined, line: undefined });
});

test("a kernel that is stuck stays so, one moment longer than the last event", () => {
  const stuck = at({ waits: [...pattern.waits, [0, 4, 7, 1, 0, 4, 0, "compute", 1]] });
  assert.equal(stuck.end, 6);
  assert.deepEqual([3, 4, 6, 99].map((time) => stuck.doing(time)[0].state), ["runs", "stuck", "stuck", "stuck"]);
});

test("waits of a kernel, or of any, are found in both directions", () => {
  const many = at({ waits: [[1, 0, 4, 0, 0, 4, 1, "reader", 0], [0, 2, 3, 1, 0, 2, 0, "compute", 0], [1, 6, 8, 0, 0, 4, 1, "reader", 0]] });
  assert.deepEqual([many.wait(0, -1, 1), many.wait(0, 1, 1), many.wait(0, 0, 1), many.wait(6, -1, 1)], [2, 6, 2, null]);
  assert.deepEqual([many.wait(6, -1, -1), many.wait(6, 1, -1), many.wait(2, 0, -1)], [2, 0, null]);
});

test("a buffer's level is a line in steps from empty (18) to full (3)", () => {
  assert.equal(moments.level(0, [0, 5], 21, 100), "M0 18.0H1V10.5H3V3.0H4V10.5H5");
  assert.equal(moments.level(0, [2, 3], 21, 100), "M2 10.5H3V3.0H3");
});

test("levels that share a column are drawn as their range", () => {
  const long = at({ time: Array(400).fill(1), kernel: Array(400).fill(0), operation: [..."01".repeat(200)].map(Number), buffer: Array(400).fill(0), amount: Array(400).fill(4), line: Array(400).fill(0), waits: [] });
  const path = long.level(0, [0, 400], 21, 10);
  assert.match(path, /^M0 18.0H1V18.0V3.0V18.0H41V/);
  assert.ok(path.length < 10 * 30);
});

test("a run without events has no moments", () => {
  const none = at({ time: [], kernel: [], operation: [], buffer: [], amount: [], line: [], waits: [] });
  assert.deepEqual([none.times, none.end, none.level(0, [0, 1], 21, 100)], [[], 0, "M0 18.0H1"]);
});

test("cores that are alike share their moments", () => {
  const all = new Recorded(recording);
  assert.equal(all.end, 5);
  assert.deepEqual([...all.cores.keys()], ["0,0", "1,0"]);
  assert.equal(all.cores.get("0,0"), all.cores.get("1,0"));
});
