// What a run is given, in words.

import assert from "node:assert/strict";
import { test } from "node:test";

import { inputsWords } from "../../widgets/model/inputs.js";

const kinds = [["random", "", true], ["ones", "", false]];

test("a seed is told of where it matters, and names stand for themselves", () => {
  const words = (inputs) => inputsWords({ inputs: { seed: 3, names: "a, b", ...inputs }, kinds });
  assert.deepEqual(
    [words({ inputs: "random" }), words({ inputs: "ones" }), words({ inputs: "yours" })],
    ["inputs random, seed 3", "inputs ones", "inputs a, b"],
  );
});
