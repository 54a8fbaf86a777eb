import assert from "node:assert/strict";
import { test } from "node:test";
import { ranges } from "../../widgets/model/figures.js";
import { coloured } from "../../widgets/model/highlight.js";

test("positions become ranges of lines", () => {
  assert.equal(ranges([]), "");
  assert.equal(ranges([4]), "5");
  assert.equal(ranges([0, 1, 2, 4, 6, 7]), "1–3, 5, 7–8");
});

test("the pieces of a line are the line", () => {
  for (const language of ["python", "tir", "cpp", "json", "unknown"])
    for (const text of ["", "  for i in range(4): # 7", '#include "a.h" // x', "'open", "a // b 'c'", "μ = 1e-3", '{"a": true}'])
      assert.equal(coloured(text, language).map(([piece]) => piece).join(""), text);
});

test("each language has its own words and comments", () => {
  const kinds = (text, language) => coloured(text, language).filter(([, kind]) => kind);
  assert.deepEqual(kinds("for x1 in 3: # for", "python"), [["for", "kw"], ["in", "kw"], ["3", "nu"], ["# for", "co"]]);
  assert.deepEqual(kinds("i // 8 # half", "tir"), [["8", "nu"], ["# half", "co"]]);
  assert.deepEqual(kinds('return "//"; // 1', "cpp"), [["return", "kw"], ['"//"', "st"], ["// 1", "co"]]);
  assert.deepEqual(kinds("  #include <a>", "cpp"), [["  #include <a>", "pp"]]);
  assert.deepEqual(kinds('{"if": null, "b": 2}', "json"), [['"if"', "st"], ["null", "kw"], ['"b"', "st"], ["2", "nu"]]);
});
