import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateSync } from "node:zlib";
import { countLinked, distance, kernelFile, labels, landing, link, linesOf, linked, linkedShare, litByLine, litByOrigins, unpacked, withListings, beside } from "../../widgets/model/lowering.js";

// Kernel lines 10 and 20. Listing 0 is before, 1 after: "b" comes from line 10 exactly, "c" from 10 (inferred) and 20.
const data = {
  texts: ["a", "B", "c b"],
  places: [["k.py", 10], ["k.py", 20]],
  origins: [[], [0, 0], [0, 2, 1, 1]],
  listings: [[0, 0, 0, 3], [1, 1, 2, 2, 2, 2, 0, 0, 0, 0, 1, 3]],
  steps: [{ ir: { after: 0 }, plan: { after: 0 } }, { ir: { after: 1 }, plan: { after: 0 } }],
  files: [{ name: "reader.cpp", listing: 1 }],
};
const lowering = withListings(data);
const [, after] = lowering.listings;

test("a lowering arrives as deflated JSON", async () => {
  const arrived = await unpacked(deflateSync(JSON.stringify(data)));
  assert.deepEqual(arrived.places, data.places);
  assert.equal(`${arrived.listings[1]}`, "B\nc b\na\n");
});

test("listings have texts, origins and classes by line", () => {
  assert.equal(after.count, 3);
  assert.deepEqual(after.lines().map((i) => [after.text(i), after.origins(i), after.class(i)]), [["B", 1, 2], ["c b", 2, 0], ["a", 0, 1]]);
});

test("the origins of a line are named best first", () => {
  assert.deepEqual(labels(lowering, 2), [[20, 1], [10, 2]]);
  assert.deepEqual(labels(lowering, 0), []);
});

test("a kernel line lights up what comes from it, by the best link", () => {
  const lit = litByLine(lowering, 10);
  assert.deepEqual(lit.places, new Set([0]));
  assert.deepEqual([0, 1, 2].map((origins) => link(lowering, origins, lit)), [-1, 0, 2]);
  assert.deepEqual(linked(lowering, after, lit), [[0, 0], [1, 2]]);
  assert.equal(countLinked(lowering, after, lit), 2);
  assert.equal(countLinked(lowering, lowering.listings[0], lit), 0);
  assert.deepEqual(linked(lowering, after, litByLine(lowering, 20)), [[1, 1]]);
  assert.equal(litByLine(lowering, 11), null);
});

test("a line lights up all that it comes from", () => {
  assert.deepEqual(litByOrigins(lowering, 2, "here").places, new Set([0, 1]));
  assert.equal(link(lowering, 2, litByOrigins(lowering, 2, "here")), 1);
  assert.equal(litByOrigins(lowering, 0, "here"), null);
  assert.equal(litByOrigins(lowering, -1, "here"), null);
  assert.equal(link(lowering, 1, null), -1);
  assert.equal(link(lowering, -1, litByLine(lowering, 10)), -1);
});

test("what is followed lands on the line that does the work", () => {
  // All from place 0, as [kind, work]: a wait, the operation, its loop, the kernel's own line, one that is only around.
  const lines = [[1, 3], [1, 0], [1, 2], [0, 2], [2, 0]];
  const made = withListings({
    ...data, origins: [[], ...lines.map(([kind]) => [0, kind])], listings: [lines.flatMap(([, work], i) => [0, i + 1, 0, work]), [0, 0, 0, 0]],
  });
  const [listing, other] = made.listings;
  const lit = litByLine(made, 10);
  const near = linked(made, listing, lit).sort(([a, x], [b, y]) => distance(listing, a, x) - distance(listing, b, y));
  assert.deepEqual(near.map(([i]) => i), [1, 3, 2, 0, 4]);
  assert.equal(landing(made, listing, lit), 1);
  assert.equal(landing(made, other, lit), -1);
});

test("the kernel lines that are lit come in their order, each once", () => {
  const places = [["k.py", 20], ["k.py", 10], ["other.py", 20]];
  assert.deepEqual(linesOf({ places }, { places: new Set([0, 1, 2]), from: "" }), [10, 20]);
  assert.deepEqual(linesOf({ places }, null), []);
});

test("kernels are found by their role", () => {
  assert.equal(kernelFile(lowering, "reader").listing, after);
  assert.deepEqual(kernelFile(lowering, "writer"), { file: undefined, listing: undefined });
});

test("exact and derived statements are linked ones", () => {
  assert.equal(linkedShare([1, 1, 1, 0]), 67);
  assert.equal(linkedShare([0, 0, 0, 0]), null);
});

test("another lowering takes part in what is lit and pinned", () => {
  const base = { places: [["k.py", 3], ["k.py", 5]], origins: [[], [0, 0]] };
  const data = { places: [["k.py", 5], ["k.py", 7], ["k.py", 3]], origins: [[0, 1, 1, 0], [2, 0]], listings: [[0, 0, 0, 3, 1, 1, 2, 3]] };
  const other = beside(data, base);
  assert.deepEqual(base.places, [["k.py", 3], ["k.py", 5], ["k.py", 7]]);
  assert.deepEqual(base.origins, [[], [0, 0], [1, 1, 2, 0]]);
  assert.deepEqual(other.listings, [[0, 2, 0, 3, 1, 1, 2, 3]]);
  assert.equal(other.places, base.places);
  assert.equal(other.origins, base.origins);
});
