import assert from "node:assert/strict";
import { test } from "node:test";
import { changes, figures } from "../../widgets/model/comparison.js";
import { withListings } from "../../widgets/model/lowering.js";
import { MEASURES, heat, imbalance, known, most, working } from "../../widgets/model/measures.js";

const cores = {
  cores: [{ x: 0, y: 0, items: 6 }, { x: 1, y: 0, items: 2 }, { x: 2, y: 0, items: 0 }],
  tiles_per_item: 3, bytes_per_item: null, l1_bytes: 4096,
};
const even = { ...cores, cores: [{ x: 0, y: 0, items: 5 }, { x: 0, y: 1, items: 5 }] };

test("the work of all cores", () => {
  assert.equal(working(cores).length, 2);
  assert.equal(most(cores), 6);
  assert.equal(imbalance(cores), 1.5);
  assert.equal(imbalance({ ...cores, cores: [] }), null);
});

test("what is not known is no measure", () => {
  assert.deepEqual(known(cores).map(([name]) => name), ["work items", "tiles moved", "L1 in use", "share of the mean"]);
  assert.deepEqual(known(cores).map(([, { of, shown }]) => shown(of(cores.cores[0], cores))), ["6", "18", "4 KiB", "150 %"]);
  assert.equal(MEASURES["L1 in use"].of(cores.cores[2], cores), 0);
});

test("the map shows each core that has something, between the ends of the scale", () => {
  assert.deepEqual([...heat(cores, "tiles moved")], [["0,0", { label: "18", step: 8 }], ["1,0", { label: "6", step: 3 }]]);
  assert.deepEqual([...heat(even, "L1 in use").values()], [{ label: "4.1k", step: 2 }, { label: "4.1k", step: 2 }]);
  assert.equal(heat(cores, "bytes moved").size, 0);
});

const step = (ir, plan) => ({ ir: { after: ir }, plan: { after: plan } });
const lowering = (steps, more) => withListings({
  texts: ["one", "two", "options.stages: 2", "options.stages: 3", "cores: 4"], listings: [[0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 0, 0], [4, 0, 0]],
  files: [{ name: "reader.cpp", listing: 0 }], buffers: { buffers: [{}, {}] }, cores, steps, ...more,
});

test("steps differ in the program, else in what was decided, not in what was asked for", () => {
  const here = lowering([step(0, 2), step(0, 2), step(0, 2), step(0, 2)]);
  const there = lowering([step(0, 3), step(0, 4), step(1, 2)]);
  assert.deepEqual(changes(here, there).map(([glyph]) => glyph), ["=", "◐", "●", "✖"]);
});

test("figures of both lowerings", () => {
  const found = new Map(figures(lowering([]), lowering([], { cores: null, buffers: null, files: [] })).map(([what, ...both]) => [what, both]));
  assert.deepEqual(found.get("cores that work"), ["2", "–"]);
  assert.deepEqual(found.get("items of the busiest core"), ["6", "–"]);
  assert.deepEqual(found.get("circular buffers"), ["2", "–"]);
  assert.deepEqual(found.get("L1 of each core"), ["4 KiB", "–"]);
  assert.deepEqual(found.get("tiles per work item"), ["3", "–"]);
  assert.deepEqual(found.get("lines of reader.cpp"), ["1", "–"]);
  assert.deepEqual(found.get("lines of writer.cpp"), ["–", "–"]);
});
