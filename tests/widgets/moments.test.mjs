import assert from "node:assert/strict";
import { test } from "node:test";
import { Moments } from "../../widgets/model/moments.js";

// The reader pushes two pages at 1 and 3; compute waits for them from 0 to 4, then pops two and finishes.
const recording = {
  kernels: ["reader", "compute"], operations: ["push_back", "pop_front", "finish"], buffers: [["A", 0, 4]],
  time: [1, 2, 1, 1], kernel: [0, 0, 1, 1], operation: [0, 0, 1, 2], buffer: [0, 0, 0, -1], amount: [2, 2, 2, 0], line: [0, 0, 1, 1],
  lines: [[7, "push", 10], [9, "pop", 11]],
  waits: [[1, 0, 4, 0, 0, 4, 1, "reader", 0]],
};
const moments = new Moments(recording);

test("times are sums, pages are pushes less pops", () => {
  assert.deepEqual(moments.times, [1, 3, 4, 5]);
  assert.equal(moments.end, 5);
  assert.deepEqual(moments.pages, [[2], [4], [2], [2]]);
});

test("a kernel waits until its wait ends, and is done at its finish", () => {
  assert.deepEqual([0, 1, 2, 3].map((i) => moments.doing(i).map(({ state }) => state)), [["runs", "waits"], ["runs", "waits"], ["runs", "runs"], ["runs", "done"]]);
  const [reader, compute] = moments.doing(1);
  assert.deepEqual([reader.line, compute.line], recording.lines);
  assert.equal(compute.wait, recording.waits[0]);
});

test("a kernel that has done nothing has not started", () => {
  const [, compute] = new Moments({ ...recording, waits: [] }).doing(0);
  assert.deepEqual(compute, { kernel: "compute", state: "", wait: undefined, line: undefined });
});

test("a buffer's level is a line in steps from empty (18) to full (3)", () => {
  const { path, waits } = moments.level(0, 100, 21);
  assert.equal(path, "M0 18.0H20.0V10.5H60.0V3.0H80.0V10.5H100");
  assert.deepEqual(waits, [["0.0", "80"]]);
});

test("a wait that is too short to see is one pixel wide", () => {
  const short = new Moments({ ...recording, waits: [[1, 4, 4, 0, 0, 4, 1, "reader", 0]] });
  assert.deepEqual(short.level(0, 100, 21).waits, [["80.0", "1"]]);
});

test("a run without events has no moments", () => {
  const none = new Moments({ ...recording, time: [], kernel: [], operation: [], buffer: [], amount: [], line: [], waits: [] });
  assert.deepEqual([none.times, none.end, none.level(0, 100, 21).path], [[], 1, "M0 18.0H100"]);
});
