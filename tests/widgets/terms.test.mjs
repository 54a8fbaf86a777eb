import assert from "node:assert/strict";
import { test } from "node:test";
import { finder, meaning } from "../../widgets/model/terms.js";

// The longest spelling comes first.
const terms = { "circular buffer": "a queue", "sub-block": "a part", buffer: "room", stages: "how many", noc: "a network" };
const find = finder(terms);
const found = (text) => find(text).flatMap(([piece, meaning]) => (meaning ? [[piece, meaning]] : []));

test("the pieces of a label are the label", () => {
  for (const text of ["", "kernel line", "NoC", "circular buffers, L1", "tiles in / out per buffer"])
    assert.equal(find(text).map(([piece]) => piece).join(""), text);
});

test("terms are found in any case, in the plural, and as whole words", () => {
  assert.deepEqual(found("NoC in"), [["NoC", "a network"]]);
  assert.deepEqual(found("Buffers × stages"), [["Buffers", "room"], ["stages", "how many"]]);
  assert.deepEqual(found("A_buffer, buffered, buffer_2, nocturnal"), []);
});

test("a word has the definition of its singular, unless the plural is the term", () => {
  assert.deepEqual(["Buffers", "NoC", "stages", "stage", "tile"].map((word) => meaning(terms, word)), ["room", "a network", "how many", undefined, undefined]);
});

test("the longest term is found", () => {
  assert.deepEqual(found("circular buffers and a buffer"), [["circular buffers", "a queue"], ["buffer", "room"]]);
  assert.deepEqual(found("sub-block"), [["sub-block", "a part"]]);
});
