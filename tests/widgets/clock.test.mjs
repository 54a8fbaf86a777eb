import assert from "node:assert/strict";
import { test } from "node:test";
import { goToMoment, jump, momentsOf, spans, started, ticks, together, zoom } from "../../widgets/model/clock.js";
import { Recorded } from "../../widgets/model/moments.js";
import { Store } from "../../widgets/model/store.js";

// One kernel that waits from 10 to 15 and from 40 to 60; its last event is at 100.
const recorded = new Recorded({
  kernels: ["reader"], operations: ["finish"], buffers: [], lines: [[1, "x", 0]], core: [2, 1], cores: [[2, 1, 0]],
  patterns: [{ time: [15, 45, 40], kernel: [0, 0, 0], operation: [1, 1, 0], buffer: [-1, -1, -1], amount: [0, 0, 0], line: [0, 0, 0], waits: [[0, 10, 15, 0, 0, 1, 0, "", 0], [0, 40, 60, 0, 0, 1, 0, "", 0]] }],
});
const opened = (patch) => new Store({ ...started(recorded), waitsOf: -1, ...patch });

test("a recording starts at its beginning, on its core, as a whole, at a speed for it", () => {
  assert.deepEqual(started(recorded), { recording: recorded, time: 0, window: [0, 100], core: "2,1", playing: false, speed: 10 });
  assert.equal(momentsOf(opened().state), recorded.patterns[0]);
  assert.equal(momentsOf(opened({ core: "0,0" }).state), undefined);
  assert.equal(started({ recording: { core: [0, 0] }, end: 1e9 }).speed, 10000);
});

test("moments stay in the run, and the window goes with them", () => {
  const store = opened({ window: [20, 40], time: 30 });
  const went = (time) => {
    goToMoment(store, time);
    return [store.state.time, store.state.window];
  };
  assert.deepEqual(went(40), [40, [20, 40]]);
  assert.deepEqual(went(41), [41, [41, 61]]);
  assert.deepEqual(went(40), [40, [20, 40]]);
  assert.deepEqual(went(Infinity), [100, [80, 100]]);
  assert.deepEqual(went(-7), [0, [0, 20]]);
});

test("zoom keeps the moment where it is, between 16 steps and the whole run", () => {
  const store = opened({ time: 50 });
  zoom(store, 0.5);
  assert.deepEqual(store.state.window, [25, 75]);
  zoom(store, 0.01);
  assert.deepEqual(store.state.window, [42, 58]);
  zoom(store, 2);
  assert.deepEqual(store.state.window, [34, 66]);
  zoom(store, Infinity);
  assert.deepEqual(store.state.window, [0, 100]);
});

test("jumps stop playing, and stay where there is no further wait", () => {
  const store = opened({ playing: true });
  jump(store, 1);
  assert.deepEqual([store.state.time, store.state.playing], [10, false]);
  jump(store, 1);
  jump(store, 1);
  assert.deepEqual([store.state.time, store.state.say], [40, "no further wait"]);
  jump(store, -1);
  assert.equal(store.state.time, 10);
});

test("labels stand at round steps", () => {
  assert.deepEqual(ticks([0, 100], 5), [0, 20, 40, 60, 80, 100]);
  assert.deepEqual(ticks([13, 29], 8), [14, 16, 18, 20, 22, 24, 26, 28]);
  assert.deepEqual(ticks([0, 3], 8), [0, 1, 2, 3]);
  assert.deepEqual(ticks([0, 2304], 8), [0, 500, 1000, 1500, 2000]);
});

test("waits are cut to the window, and those of one column are one", () => {
  const waits = [[0, 0, 10], [0, 12, 13], [0, 20, 40], [1, 50, 99, 0, 0, 0, 0, "", 1]];
  assert.deepEqual(spans(waits, [5, 60], 55), [[5, 10], [12, 13], [20, 40], [50, 60]]);
  assert.deepEqual(spans(waits, [0, 100], 20), [[0, 13], [20, 40], [50, 100]]);
  assert.deepEqual(spans(waits, [13, 20], 10), []);
});

test("a core does what its compute kernel does, until that is done", () => {
  assert.equal(together(["done", "runs", "waits"]), "runs");
  assert.equal(together(["runs", "waits", "waits"]), "waits");
  assert.equal(together(["runs", "", "waits"]), "waits");
  assert.equal(together(["done", "done", "runs"]), "runs");
  assert.equal(together(["done", "done", "waits"]), "waits");
  assert.equal(together(["done", "done", "done"]), "done");
  assert.equal(together(["runs", "waits", "stuck"]), "stuck");
});
