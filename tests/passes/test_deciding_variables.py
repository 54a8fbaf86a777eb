# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
"""Scalar variables that decide places and lengths, against NumPy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus.deciding_variables import searched, summed_before
from tests.passes.test_limited_stores import Numbers, held
from ttexplore.errors import KernelError, Unsupported


@pytest.mark.parametrize("sizes", [[40, 1, 55], [0, 64, 32], [32, 32, 32], [96, 0, 0], [0, 0, 3]])
def test_groups_that_each_block_looks_up(sizes: Sequence[int]) -> None:
    ends = np.cumsum(sizes)
    starts = ends - sizes
    padded = np.cumsum([0, *(-(-size // 32) * 32 for size in sizes[:-1])])

    def expected(a: Numbers, b: Numbers, *_: Numbers) -> Numbers:
        out = np.full((96, 64), np.nan)
        for n in range(3):
            out[starts[n] : ends[n]] = a[starts[n] : ends[n]] @ b[n]
        return out

    held(searched(), {2: sizes, 3: starts, 4: padded}, expected, 2e-2)


@pytest.mark.parametrize("sizes", [[10, 32, 7], [0, -5, 32], [32, 32, 32]])
def test_starts_that_a_loop_sums_up(sizes: Sequence[int]) -> None:
    def expected(a: Numbers, _: Numbers) -> Numbers:
        out, start = np.zeros((3, 32, 64)), 0
        for n, size in enumerate(sizes):
            out[n, : max(size, 0)] = a[start:][: max(size, 0)]
            start += max(size, 0)
        return out

    held(summed_before(), {1: sizes}, expected)


def test_both_sides_of_a_branch_and_a_variable_that_changes_its_own_condition() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((128, 64), "float32"), S: T.Tensor((4,), "int32"), B: T.Tensor((128, 64), "float32")):
        with T.Kernel(4) as bx:
            a = T.alloc_shared((32, 64), "float32")
            row = T.alloc_var("int32")
            row = S[bx]
            if row < 2:
                row += 2
            else:
                row = row - 2 + 0 * bx
            for i in range(2):
                if row > 2:
                    row -= 1
                elif i == 1:
                    row = 0
            T.copy(A[row * 32, 0], a)
            T.copy(a, B[bx * 32, 0])

    def expected(a: Numbers, s: Numbers) -> Numbers:
        out = np.zeros((4, 32, 64))
        for n in range(4):
            row = s[n] + 2 if s[n] < 2 else s[n] - 2
            for i in range(2):
                row = row - 1 if row > 2 else 0 if i == 1 else row
            out[n] = a[row * 32 : row * 32 + 32]
        return out.reshape(128, 64)

    held(kernel, {1: [0, 1, 2, 3]}, expected)


def test_a_variable_of_each_turn_of_a_loop() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((128, 64), "float32"), S: T.Tensor((4,), "int32"), B: T.Tensor((128, 64), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((32, 64), "float32")
            row = T.alloc_var("int32")
            for k in range(4):
                row = 3 - S[k]
                T.copy(A[row * 32, 0], a)
                T.copy(a, B[k * 32, 0])

    def expected(a: Numbers, s: Numbers) -> Numbers:
        return np.concatenate([a[(3 - one) * 32 :][:32] for one in s])

    held(kernel, {1: [3, 0, 2, 2]}, expected)


def test_elements_that_only_a_branch_reads_need_not_be_there() -> None:
    """The last blocks and turns would read behind the end of S: as a condition, and as a name."""

    @T.prim_func
    def kernel(A: T.Tensor((256, 64), "float32"), S: T.Tensor((5,), "int32"), B: T.Tensor((192, 64), "float32")):
        with T.Kernel(6) as bx:
            a = T.alloc_shared((32, 64), "float32")
            row = T.alloc_var("int32")
            row = 0
            if bx < 4:
                if S[bx + 1] > 50:
                    row = 3
                else:
                    row += 2
            for i in T.serial(bx):
                if i < 4:
                    size = S[i + 1]
                    if size > 20:
                        row += 1
            T.copy(A[row * 32, 0], a)
            T.copy(a, B[bx * 32, 0])

    def expected(a: Numbers, s: Numbers) -> Numbers:
        rows = [(2 + (s[n + 1] > 50) if n < 4 else 0) + sum(one > 20 for one in s[1 : n + 1]) for n in range(6)]
        return np.concatenate([a[row * 32 :][:32] for row in rows])

    held(kernel, {1: [99, 51, 3, 70, 21]}, expected)


@pytest.mark.parametrize("way", ["carried", "stored in a branch", "many turns"])
def test_variables_that_are_not_known(way: str) -> None:
    @T.prim_func
    def kernel(A: T.Tensor((128, 64), "float32"), S: T.Tensor((99,), "int32"), B: T.Tensor((128, 64), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((32, 64), "float32")
            row = T.alloc_var("int32")
            row = 0
            if way == "many turns":
                for k in range(99):
                    row += S[k]
            for k in range(4):
                T.copy(A[row * 32, 0], a)
                T.copy(a, B[k * 32, 0])
                if way == "carried":
                    row = S[k]
                if way == "stored in a branch" and S[k] > 2:
                    T.copy(A[0, 0], a)
                    row = S[k]

    error = ttx.explore(kernel).error
    assert isinstance(error, Unsupported)
    assert "an element of S" in error.message or "the variable row" in error.message


def test_a_branch_that_begins_with_what_decides_nothing() -> None:
    """Also where nothing in it decides, and where only the other side does."""

    @T.prim_func
    def kernel(A: T.Tensor((64, 32), "float32"), N: T.Tensor((2,), "int32"), C: T.Tensor((64, 32), "float32")):
        with T.Kernel(2) as bx:
            a = T.alloc_shared((32, 32), "float32")
            T.copy(A[bx * 32, 0], a)
            if N[bx] > 0:
                for i, j in T.Parallel(32, 32):
                    a[i, j] = a[i, j] + 1
                T.copy(A[N[bx] * 8, 0], a)
            if N[bx] > 1:
                T.fill(a, 3)
            T.copy(a, C[bx * 32, 0])

    exploration = ttx.explore(kernel)
    assert exploration.error is None, str(exploration.error)
    check = exploration.check()
    assert check, str(check)
    a, n = exploration.inputs()
    assert all(one * 8 < 64 for one in n), "as the copies need it"
    made = exploration.run()
    assert made.passed
    for one in range(2):
        rows = slice(one * 32, one * 32 + 32)
        start = int(n[one]) * 8 if n[one] > 0 else one * 32
        want = np.zeros((32, 32), np.float32)
        want[: len(a[start : start + 32])] = a[start : start + 32]
        np.testing.assert_array_equal(made.outputs[0][rows], np.full((32, 32), 3) if n[one] > 1 else want)


@pytest.mark.parametrize("place", ["parallel", "name", "number", "store", "held", "rows"])
def test_inputs_that_nobody_gives_lie_in_the_blocks_that_they_index(place: str) -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 40), "float32"), N: T.Tensor((2, 4), "int32"), C: T.Tensor((64, 40), "float32")):
        with T.Kernel(2) as bx:
            a = T.alloc_shared((32, 40), "float32")
            b = T.alloc_fragment((32, 40), "float32")
            n = T.alloc_shared((4,), "int32")
            T.copy(A[bx * 32, 0], a)
            T.clear(b)
            if place == "parallel":
                for i, j in T.Parallel(32, 40):
                    b[i, j] = a[N[bx, 1], j]
            if place == "name":
                row = N[bx, 1]
                for i, j in T.Parallel(32, 40):
                    b[i, j] = a[row, j]
            if place == "number":
                b[0, 0] = a[N[bx, 1], 3]
            if place == "store":
                b[N[bx, 1], 3] = 5
            if place == "held":
                T.copy(N[bx, 0:4], n)
                b[n[1], 3] = 5
            if place == "rows":
                for i, j in T.Parallel(32, 40):
                    b[i, j] = a[(i + N[bx, 1]) % 64, j]
            T.copy(b, C[bx * 32, 0])

    exploration = ttx.explore(kernel)
    if place == "rows":
        # No number is right for all turns: the numbers stay as they were drawn, and the reference says so.
        with pytest.raises(KernelError, match="a has 32 elements along axis 0"):
            exploration.check()
        return
    assert exploration.error is None, str(exploration.error)
    check = exploration.check()
    assert check, str(check)
    a, n = exploration.inputs()
    assert n[:, 1].min() >= 0
    assert n[:, 1].max() < 32
    made = exploration.run()
    assert made.passed, made.message
    want = np.zeros((2, 32, 40), np.float32)
    for bx in range(2):
        row = n[bx, 1]
        match place:
            case "parallel" | "name":
                want[bx] = a[bx * 32 + row]
            case "number":
                want[bx, 0, 0] = a[bx * 32 + row, 3]
            case _:
                want[bx, row, 3] = 5
    np.testing.assert_allclose(made.outputs[0], want.reshape(64, 40), rtol=1e-2)
