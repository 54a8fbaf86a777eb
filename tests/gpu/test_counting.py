"""Counted executions are those of a C++ compiler, and what the text does not decide is said."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from ttexplore.gpu.counting import StatementCount, count_blocks, function_named, read_text
from ttexplore.record import Line

KERNEL = """\
void kernel() {
    const int start = ((int)blockIdx.x) * 4;
    const int count = 4 - ((int)blockIdx.x);
    constexpr uint32_t bytes = 64;
    hit(5, bytes);
    for (uint32_t item = 0; item < count; ++item) {
        const uint32_t work = start + item;
        const uint32_t by = work / 3;
        const uint32_t bx = work % 3;
        hit(10, bytes * 2);
        for (uint32_t k = 0; k < bx + 1; ++k) {
            hit(12, (k + 1) * bytes);
            if (k > 0 && by != 1) {
                hit(14, 1);
            } else if (k == 0) {
                hit(16, 2);
            } else {
                hit(18,
                    3);
            }
            for (uint32_t r = 2; r < 12; r += 4) {
                hit(22, 1);
            }
        }
        if (!(bx == 1)) {
            hit(26, 1);
        }
        {
            hit(29, by - by / 2);
        }
        for (int32_t n = -3; n < min(-7 / 2, 5) + 6; ++n) {
            hit(32, -7 / 2 + 4);
        }
        hit(34, ((int)blockIdx.x) + item);
    }
}
"""
HARNESS = """\
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
using std::min;
static struct { int x; } blockIdx;
static std::map<int, std::pair<int, long>> hits;
static void hit(int line, long bytes) { hits[line].first += 1; hits[line].second += bytes; }
"""
BLOCKS = 3


def amount(text: str) -> str | None:
    found = re.fullmatch(r"hit\(\d+, (.*)\)", text)
    return found[1] if found else None


def lines_of(text: str) -> list[Line]:
    return [Line(line) for line in text.splitlines()]


def test_blocks_execute_what_a_compiler_says(tmp_path: Path) -> None:
    main = f"int main() {{\nfor (blockIdx.x = 0; blockIdx.x < {BLOCKS}; ++blockIdx.x) kernel();\n"
    main += 'for (auto& [line, hit] : hits) std::printf("%d %d %ld\\n", line, hit.first, hit.second);\n}\n'
    (tmp_path / "counted.cpp").write_text(HARNESS + KERNEL + main)
    program = tmp_path / "counted"
    subprocess.run(["g++", "-std=c++17", "-o", str(program), str(tmp_path / "counted.cpp")], check=True)
    said = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout
    expected = {int(line): (int(times), int(moved)) for line, times, moved in map(str.split, said.splitlines())}
    function = function_named(read_text(lines_of(KERNEL), amount), "kernel")
    assert function is not None
    found = count_blocks(function, {"blockIdx_x": BLOCKS}, 1)
    counted = {one.line: found.get(one.line, StatementCount()) for one in function.statements if amount(one.text)}
    assert {line: (one.times, one.bytes) for line, one in counted.items()} == expected
    assert not any(one.most for one in counted.values())


GPU = """\
extern "C" __global__ void __launch_bounds__(256, 1) kernel(const float* __restrict__ A) {
  for (int k = 0; k < (((int)blockIdx.x) + 1); ++k) {
    all();
  }
  if (tl::tl_shuffle_elect<0>()) {
    one();
  }
  if (((int)threadIdx.x) < 64) {
    producers();
    if (tl::tl_shuffle_elect<64>()) {
      elected();
    }
  } else {
    consumers();
  }
  if ((((int)threadIdx.x) & 3) == A[0]) {
    some();
  } else {
    others();
  }
  while (waiting()) {
    often();
  }
  for (int n = 0; n < A[0]; ++n) {
    unknown();
  }
}
"""


def counted(grid: dict[str, int | None]) -> dict[str, StatementCount]:
    function = function_named(read_text(lines_of(GPU), lambda text: None), "__global__")
    assert function is not None
    found = count_blocks(function, grid, 256)
    return {one.text.removesuffix("()"): found[one.line] for one in function.statements}


def test_blocks_of_threads() -> None:
    found = counted({"blockIdx_x": 3, "blockIdx_y": 2})
    assert {name: (one.times, one.threads) for name, one in found.items()} == {
        "all": (12, 12 * 256), "one": (6, 6), "producers": (6, 6 * 64), "elected": (6, 6),
        "consumers": (6, 6 * 192), "some": (6, 6 * 256), "others": (6, 6 * 256), "often": (None, None),
        "unknown": (None, None),
    }  # fmt: skip
    assert {name for name, one in found.items() if one.most} == {"some", "others"}


def test_a_grid_of_unknown_extent_counts_nothing() -> None:
    assert counted({"blockIdx_x": 3, "blockIdx_y": None})["all"].times is None


@pytest.mark.parametrize("bound", ["n", "1 / 0", "a ? 2 : 3", "sizeof(x)", "x.size()"])
def test_bounds_that_are_not_numbers_are_unknown(bound: str) -> None:
    text = f"void f() {{\n  for (int i = 0; i < {bound}; ++i) {{\n    work();\n  }}\n  done();\n}}\n"
    function = function_named(read_text(lines_of(text), lambda text: None), "f")
    assert function is not None
    found = count_blocks(function, {}, 1)
    assert (found[3].times, found[5].times) == (None, 1)
