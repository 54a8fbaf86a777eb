"""Every fault that random kernels have found, with the smallest kernel that shows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

import ttexplore as ttx
from tests.few_buffers import with_few_buffers
from tests.said import said


def holds(
    text: str, folder: Path, *, target: str = "wormhole_n150", options: dict[str, Any] | None = None,
    sizes: dict[str, int] | None = None, later: dict[str, int] | None = None, few_buffers: bool = False,
) -> None:  # fmt: skip
    """The kernel lowers, every step gives the reference's result, and so does the emulator; with `later` sizes too."""
    path = folder / "kernel.py"
    path.write_text(text, encoding="utf-8")
    explore = with_few_buffers if few_buffers else ttx.explore
    exploration = explore(f"{path}::kernel", target=target, options=options, sizes=sizes)
    assert exploration.error is None, str(exploration.error)
    for one in (exploration, *([exploration.with_sizes(**later)] if later else [])):
        check = one.check()
        assert check, str(check)
        run = one.run()
        assert run.passed, run.message


def test_a_load_that_nothing_reads(tmp_path: Path) -> None:
    """It is left out, and its tensor keeps its place among the inputs."""
    text = """\
import ttexplore.language as T


@T.prim_func
def kernel(
    A: T.Tensor((32, 32), "bfloat16"),
    V: T.Tensor((32,), "bfloat16"),
    B: T.Tensor((32, 32), "bfloat16"),
    C: T.Tensor((32, 32), "bfloat16"),
):
    with T.Kernel(1) as bx:
        a = T.alloc_shared((32, 32), "bfloat16")
        v = T.alloc_shared((32,), "bfloat16")
        T.copy(V, v)
        T.copy(A, a)
        T.copy(B, a)
        T.copy(a, C)
"""
    holds(text, tmp_path)
    exploration = ttx.explore(f"{tmp_path / 'kernel.py'}::kernel")
    assert [note for note in said(exploration.plan) if "never used" in note] == [
        "the value of v of line 14 is never used: it is removed",
        "the value of a of line 15 is never used: it is removed",
    ]


def test_a_result_that_its_nest_reads(tmp_path: Path) -> None:
    text = """\
import ttexplore.language as T


@T.prim_func
def kernel(
    A: T.Tensor((64, 32), "bfloat16"),
    B: T.Tensor((64, 32), "bfloat16"),
    C: T.Tensor((64, 32), "bfloat16"),
    D: T.Tensor((64, 32), "bfloat16"),
):
    with T.Kernel(1, 2) as (bx, by):
        a = T.alloc_shared((32, 32), "bfloat16")
        r = T.alloc_shared((32, 32), "bfloat16")
        s = T.alloc_shared((32, 32), "bfloat16")
        unused = T.alloc_shared((32, 32), "float32")
        T.copy(A[by * 32, bx * 32], a)
        for i, j in T.Parallel(32, 32):
            unused[i, j] = a[i, j] * 3.0
            r[i, j] = a[i, j] + a[i, j]
            s[i, j] = r[i, j]
        T.copy(a, B[by * 32, bx * 32])
        T.copy(r, C[by * 32, bx * 32])
        T.copy(s, D[by * 32, bx * 32])
"""
    holds(text, tmp_path)


def test_an_element_that_is_stored_twice(tmp_path: Path) -> None:
    text = """\
import ttexplore.language as T


@T.prim_func
def kernel(A: T.Tensor((32, 32), "bfloat16"), B: T.Tensor((32, 32), "bfloat16"), C: T.Tensor((32, 32), "bfloat16")):
    with T.Kernel(1, 1) as (bx, by):
        a = T.alloc_shared((32, 32), "bfloat16")
        r = T.alloc_shared((32, 32), "bfloat16")
        T.copy(A[by * 32, bx * 32], a)
        for i, j in T.Parallel(32, 32):
            r[i, j] = a[i, j] + a[i, j]
            r[i, j] = a[i, j] - 1.0
        T.copy(a, B[by * 32, bx * 32])
        T.copy(r, C[by * 32, bx * 32])
"""
    holds(text, tmp_path)


def test_a_value_from_before_a_loop_that_each_turn_stores(tmp_path: Path) -> None:
    text = """\
import ttexplore.language as T


@T.prim_func
def kernel(A: T.Tensor((32, 96), "bfloat16"), C: T.Tensor((2, 32, 96), "bfloat16")):
    with T.Kernel(3) as bx:
        a = T.alloc_shared((32, 32), "bfloat16")
        m = T.alloc_shared((32, 32), "bfloat16")
        T.copy(A[0, bx * 32], a)
        T.copy(a, m)
        for k in T.serial(2):
            T.copy(m, C[k, 0, bx * 32])
"""
    holds(text, tmp_path)


def test_a_value_that_a_nest_reads_and_changes(tmp_path: Path) -> None:
    """What is changed in place may be read for another result of the same nest."""
    text = """\
import ttexplore.language as T


@T.prim_func
def kernel(A: T.Tensor((32, 32), "bfloat16"), C: T.Tensor((32, 32), "bfloat16")):
    with T.Kernel(1, 1) as (bx, by):
        a = T.alloc_shared((32, 32), "bfloat16")
        r = T.alloc_shared((32, 32), "bfloat16")
        s = T.alloc_shared((32, 32), "bfloat16")
        T.copy(A[by * 32, bx * 32], a)
        for i, j in T.Parallel(32, 32):
            r[i, j] = a[i, j] + 1.0
        for i, j in T.Parallel(32, 32):
            s[i, j] = a[i, j] * r[i, j]
            r[i, j] = r[i, j] + 2.0
        T.copy(s, C[by * 32, bx * 32])
"""
    holds(text, tmp_path)


def test_a_loop_of_two_turns_with_one_stage(tmp_path: Path) -> None:
    """Its turns are taken apart, and the second one must not wait before the first one has popped."""
    text = """\
import ttexplore.language as T


@T.prim_func
def kernel(
    A5: T.Tensor((64, 96), "bfloat16"),
    A7: T.Tensor((64, 96), "bfloat16"),
    C12: T.Tensor((96, 96), "bfloat16"),
):
    with T.Kernel(1, 1) as (bx, by):
        c3 = T.alloc_shared((32, 96), "bfloat16")
        T.clear(c3)
        s6 = T.alloc_shared((32, 32), "bfloat16")
        s8 = T.alloc_shared((32, 96), "bfloat16")
        for k4 in T.Pipelined(2, num_stages=1):
            T.copy(A5[k4 * 32 : k4 * 32 + 32, bx * 32 : bx * 32 + 32], s6)
            T.copy(A7[((k4 + 1) % 2) * 32, by * 96], s8)
            T.gemm(s6, s8, c3, transpose_A=True)
        T.copy(c3, C12[bx * 32, by * 96])
"""
    holds(text, tmp_path)


def test_values_in_16_bits_are_rounded_already(tmp_path: Path) -> None:
    """A cast to bfloat16 asked for an operation that is wrong in 16-bit DST, where nothing is left to round."""
    text = """\
import ttexplore.language as T


@T.prim_func
def kernel(A: T.Tensor((32, 64), "bfloat16"), B: T.Tensor((32, 64), "bfloat16"), C: T.Tensor((32, 64), "bfloat16")):
    with T.Kernel(1):
        a = T.alloc_shared((32, 64), "float32")
        b = T.alloc_shared((32, 64), "bfloat16")
        c = T.alloc_shared((32, 64), "bfloat16")
        T.copy(A[0, 0], a)
        for i, j in T.Parallel(32, 64):
            b[i, j] = a[i, j]
            c[i, j] = b[i, j] * 2.0
        T.copy(b, B[0, 0])
        T.copy(c, C[0, 0])
"""
    holds(text, tmp_path, options={"accumulate_dtype": "bfloat16"})


def test_a_tail_in_a_loop_over_blocks(tmp_path: Path) -> None:
    """Which pages are read depends on the loop's turn and on the tile's row: no range of either alone says so."""
    text = """\
import ttexplore.language as T


@T.prim_func
def kernel(A: T.Tensor((92, 120), "bfloat16"), C: T.Tensor((60, 120), "bfloat16")):
    with T.Kernel(1, 1) as (bx, by):
        c = T.alloc_shared((64, 64), "bfloat16")
        p = T.alloc_shared((64, 64), "bfloat16")
        s = T.alloc_shared((64, 64), "bfloat16")
        T.clear(c)
        for k in T.serial(2):
            T.fill(p, 0.5)
            T.copy(A[k * 64, bx * 64], s)
            T.gemm(p, s, c)
        T.copy(c, C[by * 64, bx * 64])
"""
    holds(text, tmp_path)


def test_a_store_of_fewer_rows_of_tiles_than_the_block_has(tmp_path: Path) -> None:
    """The verifier lost which pages a writer touches behind a test of one loop variable alone."""
    text = """\
import ttexplore.language as T


@T.prim_func
def kernel(A: T.Tensor((70, 133), "bfloat16"), C: T.Tensor((25, 133), "bfloat16")):
    with T.Kernel(1) as bx:
        s = T.alloc_shared((64, 64), "bfloat16")
        T.copy(A[0, bx * 64], s)
        T.copy(s, C[0, bx * 64])
"""
    holds(text, tmp_path)


def test_a_name_that_nothing_uses(tmp_path: Path) -> None:
    """It goes with the load that only it reads; the stores beside it are kept, and no note says otherwise."""
    text = """\
import ttexplore.language as T


@T.prim_func
def kernel(A: T.Tensor((32, 32), "float32"), C: T.Tensor((32, 32), "float32")):
    with T.Kernel(1) as bx:
        a = T.alloc_shared((32, 32), "float32")
        c = T.alloc_fragment((32, 32), "float32")
        T.copy(A[0, 0], a)
        T.fill(c, 2.0)
        for i, j in T.Parallel(32, 32):
            x = a[i, j] + 0.25
            y = c[i, j] * 3.0
            c[i, j] = y + 1.0
        T.copy(c, C[0, 0])
"""
    holds(text, tmp_path)
    exploration = ttx.explore(f"{tmp_path / 'kernel.py'}::kernel")
    assert [note for note in said(exploration.plan) if "never used" in note] == [
        "the value of a of line 9 is never used: it is removed",
        "the value of x of line 12 is never used: it is removed",
    ]


def test_a_product_with_one_column(tmp_path: Path) -> None:
    text = """\
import ttexplore.language as T


@T.prim_func
def kernel(A: T.Tensor((8, 32), "bfloat16"), B: T.Tensor((1, 32), "bfloat16"), C: T.Tensor((8, 1), "float32")):
    with T.Kernel(1) as bx:
        a = T.alloc_shared((8, 32), "bfloat16")
        b = T.alloc_shared((1, 32), "bfloat16")
        c = T.alloc_fragment((8, 1), "float32")
        T.clear(c)
        T.copy(A, a)
        T.copy(B, b)
        T.gemm(a, b, c, transpose_B=True)
        T.copy(c, C)
"""
    holds(text, tmp_path)


def test_rectangles_of_a_row_of_blocks_of_any_length(tmp_path: Path) -> None:
    """Cores below the first row would have done its work again."""
    text = """\
import ttexplore.language as T

n = T.dynamic("n")


@T.prim_func
def kernel(A: T.Tensor((32, n), "bfloat16"), C: T.Tensor((32, n), "bfloat16")):
    with T.Kernel(T.ceildiv(n, 96)) as bx:
        c = T.alloc_shared((32, 96), "bfloat16")
        T.copy(A[0, bx * 96], c)
        T.copy(c, C[0, bx * 96])
"""
    holds(text, tmp_path, options={"policy": "rectangular"}, sizes={"n": 267}, later={"n": 57})


def test_a_value_that_only_an_unused_name_reads(tmp_path: Path) -> None:
    """What a nest covers is not needed from before it, and what only a dropped statement has read goes as well."""
    text = """\
import ttexplore.language as T


@T.prim_func
def kernel(A: T.Tensor((32, 32), "bfloat16"), B: T.Tensor((32, 32), "bfloat16"), C: T.Tensor((32, 32), "bfloat16")):
    with T.Kernel(1) as bx:
        a = T.alloc_shared((32, 32), "bfloat16")
        b = T.alloc_shared((32, 32), "bfloat16")
        c = T.alloc_shared((32, 32), "bfloat16")
        T.copy(A, a)
        T.copy(B, b)
        T.clear(c)
        T.gemm(a, b, c)
        for i, j in T.Parallel(32, 32):
            x = c[i, j] * 0.5
            c[i, j] = c[i, j] * 3.0
            c[i, j] = 1.0
        T.copy(c, C)
"""
    holds(text, tmp_path)
    exploration = ttx.explore(f"{tmp_path / 'kernel.py'}::kernel")
    assert [note.partition(" is never used")[0] for note in said(exploration.plan) if "never used" in note] == [
        f"the value of {name} of line {line}"
        for name, line in (("x", 15), ("c", 16), ("a", 10), ("b", 11), ("c", 12), ("c", 13))
    ]


def test_float32_factors_that_are_copied_on_stay_whole(tmp_path: Path) -> None:
    """The circular buffers of factors are cut to TF32, also where a tile of them is only copied."""
    path = tmp_path / "kernel.py"
    path.write_text(
        """\
import ttexplore.language as T


@T.prim_func
def kernel(
    A: T.Tensor((32, 64), "float32"),
    B: T.Tensor((32, 64), "float32"),
    V: T.Tensor((32,), "float32"),
    C: T.Tensor((32, 32), "bfloat16"),
    D: T.Tensor((32, 64), "float32"),
    E: T.Tensor((32, 64), "float32"),
    W: T.Tensor((32,), "float32"),
):
    with T.Kernel(1):
        a = T.alloc_shared((32, 32), "float32")
        b = T.alloc_shared((32, 32), "float32")
        m = T.alloc_shared((32, 32), "float32")
        v = T.alloc_shared((32,), "float32")
        c = T.alloc_fragment((32, 32), "float32")
        T.clear(c)
        T.copy(V, v)
        for k in T.serial(2):
            T.copy(A[0, k * 32], a)
            T.copy(B[0, k * 32], b)
            T.gemm(a, b, c, transpose_A=True, transpose_B=True)
            T.copy(b, m)
            T.copy(a, D[0, k * 32])
            T.copy(m, E[0, k * 32])
        for i, j in T.Parallel(32, 32):
            c[i, j] = c[i, j] + v[i]
        T.copy(c, C)
        T.copy(v, W)
""",
        encoding="utf-8",
    )
    exploration = ttx.explore(f"{path}::kernel")
    check = exploration.check()
    assert check, str(check)
    whole = {one.name: one.unpack_to_dest for one in exploration.plan.buffers if one.producer == "reader"}
    assert whole == {"a": True, "b": True, "v": True}
    reasons = {one.name: one.reason for one in exploration.plan.buffers if one.reason}
    assert reasons["b_operand"] == "the FPU reads float32 as TF32, and b is also used exactly"
    random = np.random.default_rng(0)
    inputs = [random.standard_normal(shape, np.float32) for shape in ((32, 64), (32, 64), (32,))]
    run = exploration.run(inputs)
    assert run.passed, run.message
    for copy, tensor in zip(run.outputs[1:], inputs, strict=True):
        np.testing.assert_array_equal(copy, tensor)


def test_a_value_in_a_loop_beside_one_from_before_it(tmp_path: Path) -> None:
    """Its partial sums got the circular buffer of a value that only goes after the loop."""
    text = """\
import ttexplore.language as T


@T.prim_func
def kernel(
    A: T.Tensor((32, 32), "float32"),
    B: T.Tensor((64, 32), "bfloat16"),
    D: T.Tensor((32, 32), "bfloat16"),
    E: T.Tensor((32, 64), "bfloat16"),
    C: T.Tensor((32, 64), "float32"),
    F: T.Tensor((32, 64), "float32"),
):
    with T.Kernel(1):
        c = T.alloc_shared((32, 64), "bfloat16")
        u = T.alloc_shared((32, 32), "bfloat16")
        p = T.alloc_shared((32, 32), "bfloat16")
        s = T.alloc_shared((32, 32), "bfloat16")
        b = T.alloc_shared((64, 32), "bfloat16")
        d = T.alloc_shared((32, 32), "bfloat16")
        e = T.alloc_fragment((32, 64), "float32")
        f = T.alloc_fragment((32, 64), "float32")
        T.clear(c)
        T.copy(A, s)
        for k in T.serial(2):
            T.clear(u)
            T.gemm(s, s, u)
            for i, j in T.Parallel(32, 32):
                p[i, j] = u[i, j]
            T.copy(B, b)
            T.gemm(p, b, c, transpose_B=True)
        T.clear(f)
        for k in T.serial(1):
            T.copy(D, d)
            T.copy(E, e)
            T.gemm(d, e, f)
        T.copy(c, C)
        T.copy(f, F)
"""
    holds(text, tmp_path)


def test_a_vector_of_one_element_is_a_column_of_one_row(tmp_path: Path) -> None:
    """The interpreter took the turned block, which has one row, for a vector."""
    text = """\
import ttexplore.language as T


@T.prim_func
def kernel(A: T.Tensor((1,), "bfloat16"), C: T.Tensor((1, 33), "bfloat16")):
    with T.Kernel(1) as bx:
        v = T.alloc_shared((1,), "bfloat16")
        c = T.alloc_shared((1, 33), "bfloat16")
        T.copy(A, v)
        for i, j in T.Parallel(1, 33):
            c[i, j] = v[i]
        T.copy(c, C[0, bx * 33])
"""
    holds(text, tmp_path)


def test_a_product_is_filled_again_where_the_turns_of_its_loop_lie_apart(tmp_path: Path) -> None:
    """The epilogue's turn began with the sums of the turn before: both fills had been left out for one first turn."""
    text = """\
import ttexplore.language as T


@T.prim_func
def kernel(
    A: T.Tensor((32, 96), "bfloat16"),
    L: T.Tensor((2, 32, 64), "bfloat16"),
    R: T.Tensor((2, 64, 96), "bfloat16"),
    C: T.Tensor((32, 96), "float32"),
):
    with T.Kernel(1):
        a = T.alloc_shared((32, 96), "bfloat16")
        r = T.alloc_shared((32, 96), "bfloat16")
        c = T.alloc_shared((32, 96), "bfloat16")
        l = T.alloc_shared((32, 32), "bfloat16")
        T.copy(A, a)
        for n in T.serial(2):
            T.clear(c)
            for k in T.serial(2):
                T.copy(L[n, 0, k * 32], l)
                T.copy(R[n, k * 32, 0], r)
                T.gemm(l, r, c)
            for i, j in T.Parallel(32, 96):
                a[i, j] = T.max(a[i, j], c[i, j])
        T.copy(a, C)
"""
    holds(text, tmp_path)


def test_a_flag_in_a_short_page(tmp_path: Path) -> None:
    """A row of four flags is a page of 16 bytes: nothing behind it is read for one of them."""
    text = """\
import ttexplore.language as T


@T.prim_func
def kernel(
    A: T.Tensor((64, 32), "bfloat16"),
    Flags: T.Tensor((4, 4), "int32"),
    C: T.Tensor((64, 32), "float32"),
):
    with T.Kernel(2) as bx:
        a = T.alloc_shared((32, 32), "bfloat16")
        T.copy(A[bx * 32, 0], a)
        if Flags[bx, 3] > 0:
            for i, j in T.Parallel(32, 32):
                a[i, j] = a[i, j] + 1.0
        T.copy(a, C[bx * 32, 0])
"""
    for target in ("wormhole_n150", "blackhole_p150"):
        holds(text, tmp_path, target=target, options={"layouts": {"Flags": {"page": "row"}}})


def test_a_branch_by_turns_and_by_a_listed_item(tmp_path: Path) -> None:
    """Items come from the list of a core: how many tiles a turn moves for one is known when the kernel runs."""
    text = """\
import ttexplore.language as T


@T.prim_func
def kernel(
    A: T.Tensor((96, 32), "bfloat16"),
    C: T.Tensor((96, 32), "float32"),
):
    with T.Kernel(1, 3) as (bx, by):
        c = T.alloc_shared((32, 32), "float32")
        T.fill(c, 1.0)
        for k in T.serial(3):
            if k % 2 == 1 or by == 0:
                T.copy(A[by * 32, 0], c)
                for i, j in T.Parallel(32, 32):
                    c[i, j] = c[i, j] + 0.5
        T.copy(c, C[by * 32, 0])
"""
    for options in ({"policy": "block_linear(2)"}, {"work_lists": {(0, 0): [2, 0], (1, 0): [1]}}):
        holds(text, tmp_path, options=options)


def test_a_branch_by_a_block_and_an_element(tmp_path: Path) -> None:
    """The half of a condition that is known before the kernel runs says which pages are read."""
    text = """\
import ttexplore.language as T


@T.prim_func
def kernel(
    Flags: T.Tensor((4, 4), "uint8"),
    A: T.Tensor((128, 229), "bfloat16"),
    C: T.Tensor((32, 229), "bfloat16"),
):
    with T.Kernel(3) as bx:
        c = T.alloc_shared((32, 96), "bfloat16")
        T.clear(c)
        a = T.alloc_shared((64, 96), "bfloat16")
        ones = T.alloc_shared((32, 64), "bfloat16")
        for k in T.serial(2):
            if bx < 2 and Flags[bx, k] != 0:
                T.fill(ones, 1.0)
                T.copy(A[k * 64, bx * 96], a)
                T.gemm(ones, a, c)
        T.copy(c, C[0, bx * 96])
"""
    holds(text, tmp_path)


def test_a_turn_beside_its_loop_has_names_of_its_own(tmp_path: Path) -> None:
    """Two turns of a loop stood in one scope of C++, each with the constant k."""
    text = """\
import ttexplore.language as T


@T.prim_func
def kernel(
    A: T.Tensor((64, 64), "bfloat16"),
    C: T.Tensor((2, 64, 64), "bfloat16"),
    D: T.Tensor((64, 32), "bfloat16"),
):
    with T.Kernel(1, 1) as (bx, by):
        a = T.alloc_shared((64, 32), "bfloat16")
        for k in T.serial(-3, -1):
            T.copy(A[bx * 64, (by + 1) * 32], a)
            for i, j in T.Parallel(64, 32):
                C[k + 3, bx * 64 + i, by * 32 + j] = (k + 3) * 32 + j
        e = T.alloc_shared((64, 32), "bfloat16")
        T.copy(a, e)
        T.copy(e, D[bx * 64, by * 32])
"""
    holds(text, tmp_path)


def test_rows_of_a_loop_that_begins_before_0(tmp_path: Path) -> None:
    """How many turns there are depends on the block: the ranges of both alone allow a column behind the end."""
    text = """\
import ttexplore.language as T


@T.prim_func
def kernel(A: T.Tensor((3, 64, 64), "bfloat16"), C: T.Tensor((3, 64, 64), "bfloat16")):
    with T.Kernel(2) as bx:
        T.annotate_tt_layout(A, page="row")
        a = T.alloc_shared((32, 64), "bfloat16")
        c = T.alloc_shared((32, 64), "bfloat16")
        for k in T.serial(3):
            T.clear(c)
            for m in T.serial(T.min(bx - 1, 0), 1):
                T.copy(A[k, bx * 32 : bx * 32 + 32, T.max(m, 0) * 64 : T.max(m, 0) * 64 + 64], a)
                for i, j in T.Parallel(32, 64):
                    c[i, j] = c[i, j] + a[i, j]
            T.copy(c, C[k, bx * 32, 0])
"""
    holds(text, tmp_path)


def test_a_loop_that_begins_at_the_block_is_not_empty(tmp_path: Path) -> None:
    """No core has block 3, but start and number of blocks alone allow it."""
    text = """\
import ttexplore.language as T


@T.prim_func
def kernel(A: T.Tensor((96, 96), "bfloat16"), C: T.Tensor((96, 32), "float32")):
    with T.Kernel(3) as bx:
        a = T.alloc_shared((32, 32), "bfloat16")
        c = T.alloc_fragment((32, 32), "float32")
        T.clear(c)
        for k in T.serial(bx, 3):
            T.copy(A[bx * 32, k * 32], a)
            T.gemm(a, a, c)
        T.copy(c, C[bx * 32, 0])
"""
    holds(text, tmp_path, options={"cores": (2, 1)})


def test_a_block_for_the_writer_is_read_before_the_next_one(tmp_path: Path) -> None:
    """The compute kernel waited for d before it packed what the writer stores before b."""
    text = """\
import ttexplore.language as T


@T.prim_func
def kernel(
    A: T.Tensor((32, 96), "float32"),
    B: T.Tensor((32, 96), "bfloat16"),
    D: T.Tensor((32, 96), "uint8"),
    X: T.Tensor((32, 96), "float32"),
    Y: T.Tensor((6, 32, 96), "bfloat16"),
    Z: T.Tensor((32, 96), "float32"),
):
    with T.Kernel(1):
        a = T.alloc_shared((32, 96), "bfloat16")
        b = T.alloc_shared((32, 96), "bfloat16")
        d = T.alloc_shared((32, 96), "bfloat16")
        z = T.alloc_shared((32, 96), "bfloat16")
        T.copy(A, a)
        T.copy(a, X)
        for k in T.serial(6):
            T.copy(B, b)
            T.copy(b, Y[k, 0, 0])
        T.copy(D, d)
        for i, j in T.Parallel(32, 96):
            z[i, j] = -d[i, j]
        T.copy(z, Z)
"""
    holds(text, tmp_path)
    holds(text, tmp_path, options={"stages": 1})


def test_names_of_the_machine(tmp_path: Path) -> None:
    """A buffer had the name of all of DST, a tensor that of a macro."""
    text = """\
import ttexplore.language as T


@T.prim_func
def kernel(unix: T.Tensor((32, 64), "bfloat16"), C: T.Tensor((32, 64), "int32")):
    with T.Kernel(1):
        linux = T.alloc_shared((32, 64), "bfloat16")
        dst = T.alloc_shared((32, 64), "int32")
        T.copy(unix, linux)
        for i, j in T.Parallel(32, 64):
            dst[i, j] = linux[i, j]
        T.copy(dst, C)
"""
    holds(text, tmp_path)


def test_a_shard_that_is_also_read_under_a_condition(tmp_path: Path) -> None:
    """Only the unconditional copy was counted, and the tensor had no accessor."""
    text = """\
import ttexplore.language as T


@T.prim_func
def kernel(
    A: T.Tensor((96, 32), "float32"),
    C: T.Tensor((96, 32), "bfloat16"),
):
    with T.Kernel(3) as bx:
        s = T.alloc_shared((32, 32), "bfloat16")
        T.copy(A[bx * 32, 0], s)
        if bx < 2:
            for i, j in T.Parallel(32, 32):
                s[i, j] = s[i, j] + A[bx * 32 + i, j]
        T.copy(s, C[bx * 32, 0])
"""
    layouts = {"A": {"shard": "height"}, "C": {"shard": "height"}}
    holds(text, tmp_path, options={"layouts": layouts, "mode": "local_shard"})


def test_a_block_that_a_branch_in_a_loop_only_reads(tmp_path: Path) -> None:
    """It waits once for all turns; the branch took it out of its buffer and put it there again."""
    text = """\
import ttexplore.language as T


@T.prim_func
def kernel(
    A: T.Tensor((32, 64), "bfloat16"),
    B: T.Tensor((32, 64), "bfloat16"),
    N: T.Tensor((4,), "int32"),
    D: T.Tensor((32, 64), "bfloat16"),
    C: T.Tensor((2, 32, 64), "bfloat16"),
):
    with T.Kernel(1):
        r = T.alloc_shared((32, 64), "bfloat16")
        s = T.alloc_shared((32, 64), "bfloat16")
        t = T.alloc_shared((32, 64), "bfloat16")
        T.copy(A, r)
        for i, j in T.Parallel(32, 64):
            s[i, j] = r[i, j]
            t[i, j] = B[i, j]
        for k in T.serial(2):
            for i, j in T.Parallel(32, 64):
                C[k, i, j] = T.floor(T.if_then_else(j * 3 < i, T.min(t[i, j], s[i, j]), s[i, j] * r[i, j]))
            if N[k] == 0:
                for i, j in T.Parallel(32, 64):
                    r[i, j] = T.min(D[i, j], s[i, j])
"""
    holds(text, tmp_path)


def test_a_fill_under_a_condition_in_turns_of_python(tmp_path: Path) -> None:
    """The one of the first turn counted as a certain one, and what nothing reads was refused."""
    text = """\
import ttexplore.language as T


@T.prim_func
def kernel(A: T.Tensor((32, 64), "bfloat16"), N: T.Tensor((4,), "uint8"), C: T.Tensor((32, 64), "bfloat16")):
    with T.Kernel(1) as bx:
        a = T.alloc_shared((32, 64), "bfloat16")
        f = T.alloc_shared((32, 64), "bfloat16")
        T.copy(A, a)
        for k in [0, 1]:
            if N[k] != 0:
                T.fill(f, -0.5)
        T.copy(a, C)
"""
    holds(text, tmp_path)


def test_an_element_of_rows_of_a_dynamic_length(tmp_path: Path) -> None:
    """It is no row, and has no end of one."""
    text = """\
import ttexplore.language as T

n = T.dynamic("n")


@T.prim_func
def kernel(A: T.Tensor((6, n), "bfloat16"), C: T.Tensor((6, n), "bfloat16")):
    with T.Kernel(1, T.ceildiv(n, 64)) as (bx, by):
        x = T.alloc_shared((1,), "bfloat16")
        x = A[0, 0]
        for i, j in T.Parallel(64, 64):
            C[bx * 64 + i, by * 64 + j] = x
"""
    for layout in ({"page": "row", "through": "runs"}, {"page": "row"}):
        holds(text, tmp_path, options={"layouts": {"A": layout}}, sizes={"n": 66}, later={"n": 100})


def test_a_branch_after_elements_read_in_another_one(tmp_path: Path) -> None:
    """The condition of the first branch was taken to hold in the second one as well, where everything followed."""
    text = """\
import ttexplore.language as T


@T.prim_func
def kernel(
    N: T.Tensor((4,), "uint8"),
    V: T.Tensor((192,), "bfloat16"),
    A: T.Tensor((20, 64), "bfloat16"),
    C: T.Tensor((64, 32), "float32"),
):
    with T.Kernel(2) as bx:
        s = T.alloc_shared((32, 32), "bfloat16")
        if bx < 1 or N[bx] > 20:
            for i, j in T.Parallel(32, 32):
                s[i, j] = T.round(V[3 * (bx * 32 + 9 + i)])
        else:
            for i, j in T.Parallel(32, 32):
                s[i, j] = A[j - 28, bx * 32 + i]
        T.copy(s, C[bx * 32, 0])
"""
    holds(text, tmp_path)


def test_a_cast_that_wraps_in_an_index_of_elements(tmp_path: Path) -> None:
    """-1 as uint8 is 255: proofs of TVM took it for no number at all, and so the block for one inside of its tensor."""
    text = """\
import ttexplore.language as T


@T.prim_func
def kernel(A: T.Tensor((2, 1, 6), "bfloat16"), C: T.Tensor((2, 48), "bfloat16")):
    with T.Kernel(3, 1, 2) as (bx, by, bz):
        a = T.alloc_shared((1, 16), "bfloat16")
        for i, j in T.Parallel(1, 16):
            a[i, j] = A[bz, i, T.cast(bx - 3, "uint8") % 3 * 16 + j]
        T.copy(a, C[bz, bx * 16])
"""
    holds(text, tmp_path)
    exploration = ttx.explore(f"{tmp_path / 'kernel.py'}::kernel")
    a = exploration.inputs()[0].astype(np.float32)
    expected = np.zeros((2, 48), np.float32)
    for bx in range(3):
        start = (bx - 3) % 256 % 3 * 16
        inside = a[:, 0, start : start + 16]
        expected[:, bx * 16 : bx * 16 + inside.shape[1]] = inside
    np.testing.assert_array_equal(exploration.run().outputs[0].astype(np.float32), expected)


def test_one_side_of_a_branch_overwrites_in_a_loop(tmp_path: Path) -> None:
    """The loop makes a turn, so both sides overwrite the block."""
    text = """\
import ttexplore.language as T


@T.prim_func
def kernel(
    L: T.Tensor((2,), "int32"), A: T.Tensor((64, 16), "bfloat16"), B: T.Tensor((16, 48), "bfloat16"),
    C: T.Tensor((64, 48), "float32"),
):
    with T.Kernel(2) as bx:
        c = T.alloc_fragment((32, 48), "float32")
        a = T.alloc_shared((32, 16), "bfloat16")
        b = T.alloc_shared((16, 48), "bfloat16")
        if L[bx] > 0:
            for k in T.serial(2):
                T.copy(A[bx * 32, 0], a)
                T.copy(B, b)
                T.gemm(a, b, c, clear_accum=True)
        else:
            T.fill(c, 2.0)
        T.copy(c, C[bx * 32, 0])
"""
    holds(text, tmp_path)
    exploration = ttx.explore(f"{tmp_path / 'kernel.py'}::kernel")
    _, a, b = exploration.inputs()
    product = a.astype(np.float64) @ b.astype(np.float64)
    for chosen in ([1, 0], [0, 1]):
        expected = np.where(np.repeat(chosen, 32)[:, None] > 0, product, 2.0)
        run = exploration.run([np.array(chosen, np.int32), a, b])
        np.testing.assert_allclose(run.outputs[0], expected, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize(("first", "end"), [("bx - 2", "1"), ("bx", "2"), ("bx % 2 - 1", "bx - 1")])
@pytest.mark.parametrize("options", [{"cores": (1, 2)}, {"cores": (3, 1), "policy": "z_order"}])
def test_a_loop_that_counts_from_or_to_a_block(tmp_path: Path, first: str, end: str, options: dict[str, Any]) -> None:
    """Start and number of work items of a core say together which blocks there are, and so whether a loop may run zero
    iterations; one that does leaves what its accumulator held."""
    text = f"""\
import ttexplore.language as T


@T.prim_func
def kernel(
    A: T.Tensor((64, 128), "bfloat16"), B: T.Tensor((128, 64), "float32"), C: T.Tensor((192, 64), "float32")
):
    with T.Kernel(3) as bx:
        c = T.alloc_shared((64, 64), "float32")
        a = T.alloc_shared((64, 32), "bfloat16")
        doubled = T.alloc_shared((64, 32), "bfloat16")
        b = T.alloc_shared((32, 64), "bfloat16")
        T.clear(c)
        for k in T.serial({first}, {end}):
            T.copy(A[0, (k + 2) * 32], a)
            for i, j in T.Parallel(64, 32):
                doubled[i, j] = a[i, j] * 2.0
            T.copy(B[(k + 2) * 32, 0], b)
            T.gemm(doubled, b, c)
        T.copy(c, C[bx * 64, 0])
"""
    holds(text, tmp_path, options=options)
    exploration = ttx.explore(f"{tmp_path / 'kernel.py'}::kernel", options=options)
    draw = np.random.default_rng(1)
    a, b = (draw.integers(-4, 5, shape).astype(np.float32) for shape in ((64, 128), (128, 64)))
    expected = np.zeros((3, 64, 64))
    for bx, of_block in enumerate(expected):
        for k in range(*(eval(one, {"bx": bx}) for one in (first, end))):
            at = slice((k + 2) * 32, (k + 3) * 32)
            of_block += 2 * a[:, at] @ b[at]
    np.testing.assert_array_equal(exploration.run([a.astype(bfloat16), b]).outputs[0].reshape(3, 64, 64), expected)


def test_each_side_of_a_branch_gives_a_variable_a_value_that_nothing_reads(tmp_path: Path) -> None:
    """A variable that only `else` wrote was read where the condition holds, to keep what it held."""
    text = """\
import ttexplore.language as T
from tests.said import said

n = T.dynamic("n")


@T.prim_func
def kernel(A: T.Tensor((n,), "float16"), C: T.Tensor((n,), "bfloat16")):
    with T.Kernel(T.ceildiv(n, 64)) as bx:
        T.annotate_tt_schedule(order="z_order")
        a = T.alloc_shared((64,), "bfloat16")
        T.copy(A[bx * 64], a)
        x = T.alloc_var("bfloat16")
        y = T.alloc_var("bfloat16")
        if bx > 0 and bx < 2:
            x = T.min(a[53], bx * 3 - 2)
        else:
            y = -0.25
        T.copy(a, C[bx * 64])
"""
    holds(text, tmp_path, sizes={"n": 98}, later={"n": 142})
