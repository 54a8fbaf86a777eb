"""The exercises of the notebooks: the solutions pass in their notebooks, unsolved and wrong answers do not."""

from __future__ import annotations

import json
import linecache
import re
import symtable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import ttexplore as ttx
from ttexplore.errors import UsageError
from ttexplore.exercises.checks import EXERCISES
from ttexplore.exercises.exercise import Exercise, Verdict, source_of

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"

# For each exercise: texts in place of the learner's, and what is said to them.
WRONG: dict[str, list[tuple[str, str]]] = {
    "all_cores": [
        ("block_M, block_N = 128, 128", "16 of 64 cores work: blocks of 128 x 128 make a launch grid of 4 x 4 blocks"),
        ("block_M, block_N = 64, 128", "32 of 64 cores work"),
        ("block_M, block_N = 512, 512", r"Line \d+ of .*: the circular buffers need [\d,]+ B of L1"),
        ("block_M, block_N = 0, 64", "block_M is 0; a whole number from 1 on is asked for"),
        ("block_M, block_N = 64, '64'", "block_N is '64'; a whole number"),
    ],
    "add_row": [
        ("T.max(a[i, j] + row[j], 0.0) -> a[i, j] + row[j]", r"C\[0, \d+\] is -\S+, and NumPy gives 0\. .*stores C: "),
        ("row[j] -> row[i]", r"C\[0, \d+\] is \S+, and NumPy gives \S+\. [\d,]+ of 4,096 elements are wrong"),
        ("M // 64 -> M // 128", r"Line 4 of .*: T\.Kernel: the extent 0 leaves nothing to do"),
        ("N // 64, M -> 1, M", r"With M=128, N=192, C\[0, 64\] is NaN: .*within \[0 to 127, 64 to 191\]"),
        ("bias[bx * 64] -> bias[0]", r"With M=128, N=192, C\[\d+, \d+\] is .* within \[0 to 127, 64 to 191\]"),
    ],
    "stays_in_dst": [
        ("block_M, block_N = 128, 64", "holds partial sums in L1: a block of 128 x 64 is 8 tiles, too many for DST"),
        ("block_M, block_N = 256, 32", "a block of 256 x 32 is 8 tiles"),
        ("block_M, block_N = 128, 32", r"640 tiles are read. For 4 tiles of a block's sum, .* takes 4 \+ 1 tiles"),
        ("block_M, block_N = 32, 32", "1024 tiles are read"),
        ("block_M, block_N = 64.0, 64", r"block_M is 64\.0; a whole number"),
    ],
    "count_packed": [
        ("<= 4 -> <= 8", r"With block_M=128, block_N=64, block_K=64, K=192, the packer moves 24 tiles, not 8\."),
        ("K // block_K -> K // 32", "With block_M=128, block_N=64, .* 24 tiles, not 48"),
        ("tiles * (K // block_K) -> tiles", "With block_M=128, block_N=64, .* 24 tiles, not 8"),
        ("tiles if tiles <= 4 else -> ", "With block_M=64, block_N=64, .* 4 tiles, not 16"),
        ("K // block_K) -> K // block_K - 1)", "With block_M=128, block_N=64, .* 24 tiles, not 16"),
    ],
    "depths": [
        ('"C_local_out": 1 -> "C_local_out": 2', "As fast as with two blocks each, but 192 KiB of L1; at most 160 KiB"),
        ('"A_shared": 2 -> "A_shared": 1', r"Too slow: [\d.]+ µs, and [\d.]+ µs with two blocks each"),
        ('"B_shared": 2, "C_local_out": 1 -> "B_shared": 1, "C_local_out": 1', "Too slow: "),
        ('"A_shared" -> "A_shred"', "there is no circular buffer.*A_shared|cb_depth"),
        ("depths = 160", "depths is 160; a dictionary is asked for"),
    ],
    "handshake": [
        ("B_sender_y, 2 -> B_sender_y, 3", "still hangs: .*semaphore 0 waits for 3, it is 6"),
        ("B_valid.set(1) -> B_valid.set(0)", "still hangs: .*semaphore 0 waits for 3, it is 0"),
        ("B_valid.set(1) -> B_valid.set(2)", "still hangs: .*semaphore 0 waits for 3, it is 0"),
        ("B_valid.set(1) -> B_vaild.set(1)", r"reader\.cpp.*B_vaild"),
        ("reader = broken -> reader = 4 #", "reader is 4; the text of the kernel is asked for"),
    ],
    "tf32": [
        ("0xFFFFE000 -> 0xFFFF0000", r"Of \S+, the matrix engine sees \S+, and `seen` gives \S+\. [\d,]+ of 1,024"),
        ("0xFFFFE000 -> 0xFFFFF000", r"Of \S+, the matrix engine sees \S+, and `seen` gives"),
        ("x.view(np.uint32) & -> (x.view(np.uint32) + np.uint32(0x1000)) &", "the matrix engine sees"),
        ("x.view -> x.wiev", "`seen` raises AttributeError: 'numpy.ndarray' object has no attribute 'wiev'"),
        ("np.float32) -> np.float64)", r"returns an array of the shape \(32, 16\) for one of the shape \(32, 32\)"),
    ],
    "cancellation": [
        ("columns = 0, 1, 2", r"With 1, -1 and 2\^-12, the sum is 0, .* column 2 in group 0"),
        ("columns = 0, 8, 1", r"the sum is 0, not 2\^-12 .* column 8 in group 1"),
        ("columns = 0, 1, 1", "two numbers stand in the same column"),
        ("columns = 0, 1, 40", "the matrix has the columns 0 to 31"),
        ("columns = 0, 1", "three columns are asked for"),
    ],
    "first_step": [
        ("word = 'wait_front'", "'wait_front' appears first in D3, "),
        ("word = 'blockIdx'", "'blockIdx' appears first in A0, "),
        ("word = 'work_count'", "'work_count' appears first in B1.1, assign each work item"),
        ("word = 'alloc_shared'", "'alloc_shared' stands in no step"),
        ("word = 8", "word is 8; a string is asked for"),
    ],
    "count_tiles": [
        (" * (N // block_N) -> ", r"With M=64, N=128, .*, 32 tiles of A are moved, not 16"),
        (" * (M // block_M) -> ", "tiles of B are moved, not"),
        (" * parts * 2 -> * 2", "With .* parts=2, .* 16 tiles of C are moved, not 8"),
        ("M // 32 -> M", "16 tiles of A are moved, not 512"),
        ("return A, B, C -> return A, B", r"`tiles` returns \(16, 16\); three numbers are asked for"),
    ],
    "window_start": [
        ("T.max((bx * 32 - 47) // 32, 0) -> bx * 0", "right, but 36 blocks of keys are read, and only 21 have a key"),
        ("T.max((bx * 32 - 47) // 32, 0) -> bx", r"With 256 keys, Out\[0, 0, 32, \d+\] is \S+, and NumPy gives \S+"),
        ("bx * 32 - 47 -> bx * 32 - 31", r"Out\[0, 0, 64, \d+\] is .* stores Out: `T\.copy\(out"),
        ("T.max((bx * 32 - 47) // 32, 0) -> bx - 2", r"Out\[0, 0, 0, 0\] is \S+, and NumPy"),
        ("bx * 32 - 47 -> bx * 32 - 79", "blocks of keys are read, and only 21 have a key in a window"),
    ],
    "online_step": [
        ("acc[i, j] * alpha[i] -> acc[i, j]", r"With 64 keys, Out\[0, 0, \d+, \d+\] is \S+, and NumPy gives"),
        ("total[i] * alpha[i] + -> total[i] +", r"With 64 keys, Out\[0, 0, \d+, \d+\] is \S+, and NumPy gives"),
        ("alpha[i] - m[i] -> m[i] - alpha[i]", r"With \d+ keys, Out\[0, 0, \d+, \d+\] is"),
        ("T.gemm(p, v, acc) -> T.gemm(v, p, acc)", r"Line \d+ of .*T\.gemm"),
        ("T.copy(s, p) -> T.clear(p)", r"With 32 keys, Out\[0, 0, 0, 0\] is 0, and NumPy gives .* stores Out: "),
    ],
    "faster": [
        ('"block_M": 64, "block_N": 64 -> "block_M": 128, "block_N": 128', r"Too slow: [\d.]+ µs on 16 cores"),
        ('"auto" -> "off"', r"Too slow: [\d.]+ µs on 64 cores, bound by NoC"),
        ('"multicast" -> "multicats"', "there is no option 'multicats'.*did you mean multicast"),
        ('"block_K" -> "block_k"', "block_k"),
        ("128} -> 4096}", "L1"),
    ],
    "stays_home": [
        ('"block_M": 32 -> "block_M": 64, "block_N": 32} #', "no shard can be a circular buffer"),
        ('    "mode": "local_shard",\n -> ', "right, but the program makes 1,024 reads and 512 writes"),
        ('"policy": "match_shard" -> "policy": "strided"', "match|shard"),
        ('{"shard": "height"} -> "DRAM"', "shard"),
        ('for name in "ABC" -> for name in "AC"', "right, but the program makes 512 reads and 0 writes"),
    ],
    "tuned": [
        ('"block_N": 128 -> "block_N": 32', r"Too slow: [\d.]+ µs. At most [\d.]+ µs are asked for"),
        ('"sfpu": "fast", "eltwise": "fpu", -> ', r"Too slow: [\d.]+ µs. At most [\d.]+ µs are asked for"),
        ('"block_M": 64 -> "block_M": 128', r"Too slow: [\d.]+ µs. At most [\d.]+ µs are asked for"),
        ('"fast" -> "quick"', "quick"),
        ('"block_N": 128} -> "block_N": 8192}', "L1|Too slow|block_N"),
    ],
    "read_once": [
        ("a[i, j] * a[i, j] -> a[i, j] * A[by * 64 + i, bx * 64 + j]", "right, but 8 tiles of A are read; A has 4"),
        (" + a[i, j] -> ", r"C\[0, \d+\] is \S+, and NumPy gives .* stores C: `T\.copy\(c, C"),
        ("N // 64, M // 64 -> N // 64, 1", r"With M=128, N=192, C\[64, 0\] is NaN: "),
        ("a[i, j] * a[i, j] -> a[i, j] * a[j, i]", r"C\[0, \d+\] is|kernel|Line \d+ of"),
        ("N), \"bfloat16\"), C -> M), \"bfloat16\"), C", r"With M=128, N=192, the inputs have the shapes \(128, 128\)"),
    ],
    "unhang": [
        ('"k < 4" -> "k < 3"', "still hangs: .*reader has finished.*compute .*A_shared., which has 0 of 8 tiles"),
        ("pop_front(4)\") -> pop_front(2)\")", r"still hangs: .*reserve_back\(4\) on .*B_shared.*2 of 8 tiles free"),
        ('"k < 4" -> "k < 5"', "A_shared|B_shared|page"),
        ("pop_front(4)\") -> pop_front(4\")", r"compute\.cpp|Line \d+"),
        ('reader = broken["reader"].replace("k < 3", "k < 4") -> reader = 4', "reader is 4; the text of the kernel is"),
    ],
    "transposed": [
        ("a[j, i] -> a[i, j]", r"With M=64, N=64, C\[0, \d+\] is \S+, and NumPy gives \S+"),
        ("C[bx * 32, by * 32] -> C[by * 32, bx * 32]", r"C\[\d+, \d+\] is|outside|is NaN: "),
        ("T.ceildiv(N, 32), T.ceildiv(M, 32) -> 2, 2", r"With M=96, N=32, C\[\d+, \d+\] is NaN: "),
        ("(N, M) -> (M, N)", r"With M=96, N=32, C has the shape \(96, 32\); the exercise asks for \(32, 96\)"),
        ("c[i, j] = a[j, i] -> c[j, i] = a[j, i]", r"With M=64, N=64, C\[0, \d+\] is|Line \d+ of"),
    ],
    "outer": [
        ("column[i] * row[j] -> column[j] * row[i]", r"With M=64, N=64, C\[0, \d+\] is \S+, and NumPy gives"),
        ("column[i] * row[j] -> column[i] + row[j]", r"C\[0, 0\] is \S+, and NumPy gives"),
        ("b[bx * 64] -> b[0]", r"With M=96, N=192, C\[0, \d+\] is \S+.* within \[0 to 95, 64 to 191\]"),
        ("a[by * 64] -> a[bx * 64]", r"With M=96, N=192, C\[\d+, \d+\] is"),
        ("T.ceildiv(M, 64) -> M // 64", r"With M=96, N=192, C\[64, 0\] is NaN: "),
    ],
    "triangle": [
        ("bx * 64 + j <= by * 64 + i -> j <= i", r"With M=160, C\[\d+, \d+\] is \S+, and NumPy gives"),
        ("bx * 64 + j <= -> bx * 64 + j <", r"With M=64, C\[0, 0\] is 0, and NumPy gives"),
        ("bx * 64 + j <= by * 64 + i -> bx * 64 + j >= by * 64 + i", r"With M=64, C\[0, \d+\] is"),
        ("bx * 64 + j <= by * 64 + i -> bx <= by", r"With M=64, C\[0, 1\] is \S+, and NumPy gives 0"),
        ("a[i, j], 0.0 -> a[i, j], 1.0", r"With M=64, C\[0, 1\] is 1, and NumPy gives 0"),
    ],
    "long_rows": [
        ("a[i, j] = T.abs(a[i, j]) -> a[i, j] = a[i, j]", r"With M=32, N=128, total\[0\] is \S+, and NumPy gives"),
        (", clear=False) -> )", r"With M=64, N=8288, total\[0\] is \S+, and NumPy gives"),
        ("T.ceildiv(N, 128), num -> N // 128, num", r"With M=64, N=8288, total\[0\] is \S+, and NumPy gives"),
        ("T.clear(sums) -> T.fill(sums, 1e3)", r"With M=32, N=128, total\[0\] is \S+, and NumPy gives"),
        ("T.clear(sums) -> pass", r"Line \d+ of .*sums is read before anything is written|read before"),
    ],
    "softmax_rows": [
        ("x[i, j] - largest[i] -> x[i, j]", r"With M=32, N=64 and numbers up to about 200, Y\[\d+, \d+\] is NaN: "),
        ("x[i, j] - largest[i] -> x[i, j] - 100", r"With M=32, N=64 and numbers \w+ .*, Y\[\d+, \d+\] is"),
        ("T.reduce_max(x, largest, dim=1) -> T.fill(largest, 0)", "numbers up to about 200, Y"),
        (" / total[i] -> ", r"With M=32, N=64 and numbers around 1, Y\[0, \d+\] is"),
        ("T.reduce_sum(e, total, dim=1) -> T.reduce_max(e, total, dim=1)", r"numbers around 1, Y\[0, \d+\] is"),
    ],
    "causal_rows": [
        ("j <= by * 32 + i -> j <= i", r"With M=96 and numbers around 1, P\[32, \d+\] is"),
        ('-T.infinity("float32") -> 0.0', r"With M=32 and numbers around 1, P\[0, \d+\] is"),
        ("T.reduce_max(p, largest -> T.reduce_max(s, largest", "the largest numbers hidden, P|up to about 200, P"),
        ("j <= by -> j < by", r"With M=32 and numbers around 1, P\[0, 0\] is"),
        ("p[i, j] - largest[i] -> p[i, j]", r"numbers up to about 200, P\[\d+, \d+\] is"),
    ],
    "scaled_rows": [
        (" + 1e-5 -> ", r"With M=32, N=64 and a row of zeros, Y\[3, 0\] is"),
        ("squares[i] / N -> squares[i]", r"With M=32, N=64 and numbers around 1, Y\[0, \d+\] is"),
        (" * w[j] -> ", r"With M=32, N=64 and numbers around 1, Y\[0, \d+\] is"),
        ("T.rsqrt( -> T.sqrt(", r"numbers around 1, Y\[0, \d+\] is|up to about 200, Y"),
        ("x[i, j] * x[i, j] -> x[i, j]", r"numbers around 1, Y\[\d+, \d+\] is"),
    ],
    "online_rows": [
        (" * T.exp(before[i] - largest[i]) -> ", r"With M=64, N=256 and .*, Y\[\d+\] is"),
        ("dim=1, clear=False) -> dim=1)", r"With M=64, N=256 and numbers \S+ \S+, Y\[\d+\] is|With M=64"),
        ("largest[i] + T.log(total[i]) -> T.log(total[i])", r"With M=32, N=64 and numbers around 1, Y\[0\] is"),
        ("-1e30 -> 0.0", r"numbers below -150, Y\[\d+\] is"),
        ("before[i] - largest[i] -> largest[i] - before[i]", r"Y\[\d+\] is"),
    ],
    "bias_relu": [
        ("c[i, j] + row[j] -> c[i, j] + row[i]", r"With M=64, N=64, K=64, C\[0, \d+\] is"),
        ("T.max(c[i, j] + row[j], 0.0) -> c[i, j] + row[j]", r"With M=64, N=64, K=64, C\[0, \d+\] is -\S+"),
        ("T.max(c[i, j] + row[j], 0.0) -> T.max(c[i, j], 0.0) + row[j]", r"With M=64, N=64, K=64, C\[0, \d+\] is"),
        ("T.ceildiv(M, 64) -> M // 64", r"With M=96, N=160, K=96, C\[64, 0\] is NaN: "),
        ("bias[bx * 64] -> bias[by * 64]", r"With M=96, N=160, K=96, C\[\d+, \d+\] is"),
    ],
    "by_transposed": [
        (", transpose_B=True -> ", r"With M=64, N=64, K=64, C\[0, 0\] is \S+, and NumPy gives"),
        ("B[bx * 64, k * 64] -> B[k * 64, bx * 64]", r"With M=96, N=160, K=96, C\[\d+, \d+\] is"),
        ("transpose_B=True -> transpose_A=True", r"With M=64, N=64, K=64, C\[0, 0\] is|Line \d+ of"),
        ("T.ceildiv(K, 64) -> K // 64", r"With M=96, N=160, K=96, C\[0, 0\] is"),
        ("T.clear(c) -> T.fill(c, 1)", r"With M=64, N=64, K=64, C\[0, 0\] is"),
    ],
    "batched": [
        ("A[bz, by -> A[0, by", r"With batch=3, M=96, N=160, K=96, C\[1, 0, 0\] is"),
        ("C[bz, by -> C[0, by", r"With batch=3, .* C\[\d+, \d+, \d+\] is|Line \d+ of"),
        ("T.ceildiv(M, 64), batch -> T.ceildiv(M, 64), 1", r"With batch=3, .*, C\[1, 0, 0\] is NaN: "),
        ("T.ceildiv(K, 32) -> 2", r"With batch=3, M=96, N=160, K=96, C\[0, 0, 0\] is"),
        ("B[bz, k * 32, bx * 64] -> B[bz, bx * 64, k * 32]", r"With batch=\d, .*C\[\d+, \d+, \d+\] is"),
    ],
    "embedding": [
        ("index[by * 32 + i] -> by * 32 + i", r"With words=64, .* and any rows, Y\[0, 0\] is"),
        ("index[by * 32 + i] -> index[i]", r"With words=40, dim=96, tokens=96 and any rows, Y\[\d+, \d+\] is"),
        ("Y[by * 32, 0] -> Y[0, 0]", r"With words=40, .*Y\[\d+, \d+\] is|Line \d+ of"),
        ("+ i], j] -> + i], 0]", r"With words=64, .* and any rows, Y\[0, 1\] is"),
        ("T.ceildiv(tokens, 32) -> 1", r"With words=40, dim=96, tokens=96 and any rows, Y\[32, 0\] is NaN: "),
    ],
    "gated": [

        ("g[i, j] * T.sigmoid -> T.sigmoid", r"With M=32, N=64 and numbers around 1, out\[0, \d+\] is"),
        (" * u[i, j] -> ", r"With M=32, N=64 and numbers around 1, out\[0, \d+\] is"),
        ("T.ceildiv(N, 64), T -> N // 64, T", r"With M=96, N=160 .*, out\[0, 128\] is NaN: "),
        ("up[by * 32, bx * 64] -> up[by * 32, 0]", r"With M=96, N=160 .*, out\[0, \d+\] is"),
        ("T.sigmoid(g[i, j]) -> (T.exp(g[i, j]) / (1 + T.exp(g[i, j])))", "numbers up to about 200, out"),
    ],
    "column_sums": [
        (", clear=False) -> )", r"With M=64, N=64, sums\[0\] is"),
        ("dim=0 -> dim=1", r"Line \d+ of|shape"),
        ("T.ceildiv(M, 32), num -> 2, num", r"With M=2080, N=160, sums\[0\] is"),
        ("T.ceildiv(N, 64) -> N // 64", r"With M=2080, N=160, sums\[128\] is NaN: "),
        ("T.clear(total) -> T.fill(total, 1)", r"With M=64, N=64, sums\[0\] is"),
    ],
    "reader_loop": [
        ("    B_shared_buffer.push_back(2);\n -> ", r"The program hangs: .*compute .*B_shared., which has 0 of"),
        ("noc.async_read_barrier(); -> ", "read|barrier|NumPy gives"),
        ("(k * 2 + t) * 2 + bx -> k * 4 + t * 2", r"With your loop, C\[\d+, \d+\] is"),
        ("k < 2 -> k < 1", "The program hangs: .*reader has finished"),
        ("t < 2; -> t < 3;", r"reader|page|is \S+, and NumPy"),
    ],
    "compute_loop": [
        ("    B_shared_buffer.pop_front(2);\n -> ", "The program hangs: |tiles left in circular buffer"),
        ("t, t, 0, 0, 1, 1, 2 -> t, 0, 0, 0, 1, 1, 2", r"With your loop, C\[\d+, \d+\] is"),
        ("t < 2 -> t < 1", r"With your loop, C\[\d+, \d+\] is"),
        ("k < 2 -> k < 3", "The program hangs: .*wait_front"),
        ("matmul_block( -> matmul_blok(", r"compute\.cpp.*matmul_blok"),
    ],
}  # fmt: skip

WRONG_CASES = [
    pytest.param(name, *case, id=f"{name}-{number}")
    for name, cases in WRONG.items()
    for number, case in enumerate(cases)
]


@cache
def code_cells(notebook: str) -> tuple[str, ...]:
    cells = json.loads((NOTEBOOKS / f"{notebook}.ipynb").read_text(encoding="utf-8"))["cells"]
    return tuple("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


def place_of_check(name: str) -> int:
    """Which code cell of its notebook checks the answer to an exercise; the one before it is the learner's."""
    (place,) = (
        number
        for number, text in enumerate(code_cells(EXERCISES[name].notebook))
        if text.startswith(f'ttx.exercise("{name}").check(')
    )
    return place


def bound_and_used(text: str) -> tuple[set[str], set[str]]:
    """The names that a cell binds, and those of the notebook that it uses, also in its functions."""
    cell = symtable.symtable(text, "<cell>", "exec")
    bound = {one.get_name() for one in cell.get_symbols() if one.is_assigned() or one.is_imported()}
    used = {one.get_name() for one in cell.get_symbols() if one.is_referenced()}
    tables = cell.get_children()
    while tables:
        table = tables.pop()
        used |= {one.get_name() for one in table.get_symbols() if one.is_global()}
        tables += table.get_children()
    return bound, used


def needed_cells(cells: tuple[str, ...], last: str) -> list[str]:
    """Those of `cells`, in order, that bind a name which `last` or a needed cell after them uses."""
    _, needed = bound_and_used(last)
    found: list[str] = []
    for text in reversed(cells):
        bound, used = bound_and_used(text)
        if bound & needed:
            found.insert(0, text)
            needed |= used
    return found


def test_only_needed_cells_are_executed() -> None:
    cells = ("import a as b", "c = 1", "def d():\n    c = b\n    return c", "for e in f: pass")
    assert needed_cells(cells, "d()") == [cells[0], cells[2]]
    assert needed_cells(cells, "e + c") == ["c = 1", "for e in f: pass"]


def verdict(name: str, lines: str, monkeypatch: pytest.MonkeyPatch) -> Verdict:
    """What the cell that checks an exercise gives with these lines in the learner's cell, the one before."""
    folder, notebook = NOTEBOOKS, EXERCISES[name].notebook
    cells, place = code_cells(notebook), place_of_check(name)
    before, check = cells[: place - 1], cells[place]
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    names: dict[str, Any] = {}
    for number, text in enumerate([*needed_cells(before, f"{lines}\n{check}"), lines]):
        # Kernels are read from their source, as IPython makes it known.
        file = f"<cell {number} of {notebook}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        exec(compile(text, file, "exec"), names)
    found: Verdict = eval(check, names)
    return found


@pytest.mark.parametrize("name", EXERCISES)
def test_the_cell_before_the_check_is_the_learners(name: str) -> None:
    assert code_cells(EXERCISES[name].notebook)[place_of_check(name) - 1] == source_of(name).yours


def test_each_notebook_ends_with_an_exercise() -> None:
    checks = {(one.notebook, place_of_check(name)) for name, one in EXERCISES.items()}
    last = {(path.stem, len(code_cells(path.stem)) - 1) for path in NOTEBOOKS.glob("*.ipynb")}
    assert last <= checks


@pytest.mark.parametrize("name", EXERCISES)
def test_the_solution_passes_in_its_notebook(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = verdict(name, source_of(name).solution, monkeypatch)
    assert found, found
    assert repr(found).startswith(f"{name}: solved. ")


@pytest.mark.parametrize("name", EXERCISES)
def test_unsolved_is_said_calmly(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = verdict(name, source_of(name).yours, monkeypatch)
    assert (found.state, bool(found)) == ("unsolved", False)
    assert re.match(r"Write `\w+`( and `\w+`)? in the cell above, and run both cells\. ", found.message)
    assert f"`ttx.exercise('{name}').hint()`" in found.message


@pytest.mark.slow
@pytest.mark.parametrize(("name", "change", "complaint"), WRONG_CASES)
def test_a_wrong_answer_is_told_what_is_wrong(
    name: str, change: str, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, arrow, new = change.partition(" -> ")
    lines = source_of(name).solution.replace(old, new) if arrow else change
    assert lines != source_of(name).solution
    found = verdict(name, lines, monkeypatch)
    assert found.state == "wrong", found
    assert re.search(complaint, found.message, re.DOTALL), found.message


# Right for scores around 0: without any maximum, and with one that is 0 at least.
NO_MAXIMUM = """def step(s, p, v, m, total, acc, alpha, part):
    for i, j in T.Parallel(32, 32):
        s[i, j] = T.exp(s[i, j])
    T.reduce_sum(s, part, dim=1)
    for i in T.Parallel(32):
        total[i] = total[i] + part[i]
    T.copy(s, p)
    T.gemm(p, v, acc)
"""
FROM_ZERO = source_of("online_step").solution.replace(
    "    for i in T.Parallel(32):\n        alpha[i]",
    "    for i in T.Parallel(32):\n        m[i] = T.max(m[i], 0.0)\n        alpha[i]",
)


@pytest.mark.parametrize(
    ("lines", "scores"), [(NO_MAXIMUM, "scores up to 128"), (FROM_ZERO, "scores below -128")],
    ids=["no maximum", "from zero"],
)  # fmt: skip
def test_a_step_is_tried_with_scores_of_all_sizes(lines: str, scores: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert lines != source_of("online_step").solution
    found = verdict("online_step", lines, monkeypatch)
    assert found.state == "wrong"
    assert re.search(rf"With \d+ keys and {scores}, Out\[0, 0, \d+, \d+\] is \S+, and NumPy gives", found.message), (
        found.message
    )


def test_five_wrong_answers_each() -> None:
    assert {name: len(cases) for name, cases in WRONG.items()} == dict.fromkeys(EXERCISES, 5)


@pytest.mark.parametrize("name", EXERCISES)
def test_hints_go_one_step_further_with_each_call(name: str) -> None:
    one = Exercise(name, EXERCISES[name])
    hints = source_of(name).hints
    assert len(hints) >= 2
    for number, hint in enumerate(hints, 1):
        assert repr(one.hint()) == f"Hint {number} of {len(hints)}: {hint}"
    for _ in range(2):
        assert repr(one.hint()) == f"That was the last hint. `ttx.exercise('{name}').solution()` shows a solution."


def test_the_same_exercise_has_the_same_hints() -> None:
    assert ttx.exercise("all_cores") is ttx.exercise("all_cores")


def test_an_unknown_exercise() -> None:
    with pytest.raises(UsageError) as raised:
        ttx.exercise("al_cores")
    assert raised.value.message == "there is no exercise 'al_cores'"
    assert raised.value.hint == f"did you mean all_cores? use one of {', '.join(EXERCISES)}"


def test_wrong_arguments_of_check() -> None:
    with pytest.raises(UsageError, match=r"all_cores\.check: missing a required argument: 'block_M'") as raised:
        ttx.exercise("all_cores").check("gemm.py::matmul")
    assert raised.value.hint == "all_cores.check takes (kernel, block_M, block_N)"


def test_an_answer_may_be_a_lambda() -> None:
    """Its source may be a part of a statement, which is not Python by itself."""
    answers = {
        "two": lambda **sizes: (1, 2),
    }
    assert ttx.exercise("count_tiles").check("gemm.py::matmul", answers["two"]).state == "wrong"


def test_what_a_notebook_shows() -> None:
    one = Exercise("all_cores", EXERCISES["all_cores"])
    assert repr(one) == (
        "<exercise all_cores of notebook 00_start: .check(kernel, block_M, block_N), 2 hints, .solution()>"
    )
    folded = one.solution()._repr_html_()
    assert folded.startswith("<details><summary>Solution of all_cores</summary>")
    assert "<code>DST</code>" in Exercise("stays_in_dst", EXERCISES["stays_in_dst"]).hint()._repr_html_()
    unsolved = one.check("gemm.py::matmul", None, None)
    assert "<code>block_M</code> and <code>block_N</code>" in unsolved._repr_html_()
    wrong = Verdict("all_cores", "wrong", "<b>")
    assert "card fault" in wrong._repr_html_()
    assert "&lt;b&gt;" in wrong._repr_html_()
    assert "card good" in Verdict("all_cores", "solved", "")._repr_html_()
