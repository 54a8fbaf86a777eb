# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false
# pyright: reportIndexIssue=false, reportUnusedVariable=false, reportCallIssue=false, reportArgumentType=false
"""Branches that the compute kernel decides choose the elements that they store."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from ttexplore.errors import Unsupported

FP32, INT32 = "float32", "int32"
BLOCKS = 3
MASKS = [[0, 0, 0], [1, 0, 0], [0, 0, 1], [1, 1, 1]]


def compared(kernel: Any, cases: list[tuple[list[Any], list[Any]]]) -> None:
    """Compare the steps, the interpreted kernels and the emulated ones with what NumPy says."""
    ex = ttx.explore(kernel)
    assert ex.error is None, str(ex.error)
    for given, expected in cases:
        assert ex.check(given)
        for run in (ex.run(given), ex.run(given, backend="emulator")):
            for output, wanted in zip(run.outputs, expected, strict=True):
                np.testing.assert_array_equal(output, wanted)


def numbers(*shape: int) -> Any:
    return np.random.default_rng(0).integers(1, 5, shape).astype(np.float32)


@pytest.mark.parametrize("dtype", ["bool", FP32])
def test_a_variable_that_a_loop_over_blocks_stores(dtype: str) -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32, 32 * BLOCKS), FP32), M: T.Tensor((BLOCKS,), INT32), C: T.Tensor((32, 32), FP32),
               S: T.Tensor((32,), FP32)):  # fmt: skip
        with T.Kernel(1):
            a = T.alloc_shared((32, 32), FP32)
            c = T.alloc_fragment((32, 32), FP32)
            s = T.alloc_fragment((32,), FP32)
            found = T.alloc_var(dtype)
            T.clear(c)
            T.fill(s, 3)
            found = 0
            for k in T.serial(BLOCKS):
                if M[k] > 0:
                    found = 1
                    T.copy(A[0, k * 32], a)
                    for i, j in T.Parallel(32, 32):
                        c[i, j] += a[i, j]
                    T.reduce_sum(c, s, dim=1)
            if found != 0:
                for i, j in T.Parallel(32, 32):
                    c[i, j] = c[i, j] - s[i]
                for i in T.Parallel(32):
                    s[i] = s[i] * 2 + c[i, 0]
            else:
                T.fill(s, 7)
            T.copy(c, C)
            T.copy(s, S)

    a = numbers(32, 32 * BLOCKS)

    def expected(mask: list[int]) -> list[Any]:
        blocks = [a[:, k * 32 : k * 32 + 32] for k in range(BLOCKS) if mask[k]]
        if not blocks:
            return [np.zeros((32, 32)), np.full(32, 7)]
        c, s = sum(blocks), sum(blocks).sum(1)
        return [c - s[:, None], s * 2 + c[:, 0] - s]

    compared(kernel, [([a, np.array(mask, np.int32)], expected(mask)) for mask in MASKS])


def test_a_branch_that_stores_what_decides_it() -> None:
    """Both sides run by the value from before; a block that only the branch uses needs nothing from before."""

    @T.prim_func
    def kernel(A: T.Tensor((32, 32), FP32), C: T.Tensor((32, 32), FP32), D: T.Tensor((1,), FP32)):
        with T.Kernel(1):
            a = T.alloc_shared((32, 32), FP32)
            most = T.alloc_fragment((32,), FP32)
            top = T.alloc_fragment((1,), FP32)
            inner = T.alloc_fragment((32, 32), FP32)
            T.copy(A, a)
            T.reduce_max(a, most, dim=1)
            T.reduce_max(most, top, dim=0)
            if top[0] > 0:
                for i in T.Parallel(1):
                    top[i] = top[i] - 10
                for i, j in T.Parallel(32, 32):
                    inner[i, j] = a[i, j] * 2
                T.copy(inner, a)
            else:
                for i in T.Parallel(1):
                    top[i] = top[i] + 100
                if top[0] > 99.5:
                    for i, j in T.Parallel(32, 32):
                        a[i, j] = 5
            T.copy(a, C)
            T.copy(top, D)

    cases = []
    for value in (-1, 0, 2):
        a = np.full((32, 32), -3, np.float32)
        a[4, 5] = value
        c = a * 2 if value > 0 else np.full_like(a, 5) if value == 0 else a
        cases.append(([a], [c, np.array([value - 10 if value > 0 else value + 100])]))
    compared(kernel, cases)


def test_a_branch_in_a_loop_reads_a_tensor() -> None:
    """Where a name that the compute kernel knows is compared with a loop's variable, zero turns included."""
    n = T.dynamic("n")

    @T.prim_func
    def kernel(A: T.Tensor((n, 32), FP32), L: T.Tensor((1,), FP32), C: T.Tensor((32,), FP32)):
        with T.Kernel(1):
            part = T.alloc_fragment((32,), FP32)
            c = T.alloc_fragment((32,), FP32)
            last = T.alloc_var(INT32)
            factor = T.alloc_var(FP32)
            factor = 1.0
            last = -1
            for k in T.serial(n):
                if L[0] >= k:
                    last = k
            T.clear(c)
            for k in T.serial(n):
                if k <= last:
                    for i in T.Parallel(32):
                        part[i] = A[k, i] * factor
                    factor = factor + 1.0
                    for i in T.Parallel(32):
                        c[i] += part[i]
            T.copy(c, C)

    a = numbers(4, 32)
    cases = []
    for limit in (-1, 0, 2, 9):
        c = sum((a[k] * (k + 1) for k in range(min(limit + 1, 4))), np.zeros(32))
        cases.append(([a, np.array([limit], np.float32)], [c]))
    compared(kernel, cases)


@pytest.mark.parametrize("what", ["copy", "reduce", "store", "element"])
def test_a_branch_that_others_have_a_part_in_is_refused(what: str) -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32, 32), FP32), P: T.Tensor((32,), INT32), C: T.Tensor((32, 32), FP32)):
        with T.Kernel(1):
            a = T.alloc_shared((32, 32), FP32)
            s = T.alloc_fragment((32,), FP32)
            T.copy(A, a)
            T.reduce_sum(a, s, dim=1)
            if s[0] > 0:
                for i in T.Parallel(32):
                    s[i] += 1
                if what == "copy":
                    T.copy(A, a)
                elif what == "reduce":
                    T.reduce_max(a, s, dim=1)
                elif what == "store":
                    for i, j in T.Parallel(32, 32):
                        C[i, j] = a[i, j]
                else:
                    for i, j in T.Parallel(32, 32):
                        a[i, j] = A[P[3], j]
            T.copy(a, C)

    error = ttx.explore(kernel).error
    assert isinstance(error, Unsupported), str(error)
    assert error.code == "TTX-L005"
    assert error.span is not None
