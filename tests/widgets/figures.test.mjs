import assert from "node:assert/strict";
import { test } from "node:test";
import { bytes, compact, grouped, ranges } from "../../widgets/model/figures.js";
import { coloured } from "../../widgets/model/highlight.js";

test("numbers are grouped", () => assert.deepEqual([0, 999, 1234567, 2.6].map(grouped), ["0", "999", "1,234,567", "3"]));

test("bytes have the unit that fits", () => {
  assert.deepEqual([0, 1023, 1024, 1536, 1024 ** 2 - 1, 1024 ** 2, -2048].map(bytes), ["0 B", "1,023 B", "1 KiB", "1.5 KiB", "1,024 KiB", "1 MiB", "-2 KiB"]);
});

test("compact numbers have four characters at most", () => {
  const numbers = [0, 960, 1000, 3400, 9949, 12345, 3.4e6, 25e6, 7e9];
  assert.deepEqual(numbers.map(compact), ["0", "960", "1.0k", "3.4k", "9.9k", "12k", "3.4M", "25M", "7.0G"]);
  assert.ok(numbers.every((number) => compact(number).length <= 4));
});

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
