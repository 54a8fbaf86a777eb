# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false
# pyright: reportIndexIssue=false, reportOperatorIssue=false
"""Elements of tensors that T.Parallel compares with indices too large for float32, and tensors of open matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

import ttexplore as ttx
import ttexplore.language as T

FP32, INT32 = "float32", "int32"


def compared(kernel: Any, cases: list[tuple[list[Any], Any]]) -> None:
    """Compare the steps, the interpreted kernels and the emulated ones with what NumPy says."""
    ex = ttx.explore(kernel)
    assert ex.error is None, str(ex.error)
    for given, expected in cases:
        assert ex.check(given)
        for run in (ex.run(given), ex.run(given, backend="emulator")):
            for output, wanted in zip(run.outputs, expected, strict=True):
                np.testing.assert_array_equal(output, wanted)


def test_elements_compared_with_indices_that_float32_may_not_hold() -> None:
    """Elements far below and above all indices, at both ends of a block, and in the middle of one."""
    n = T.dynamic("n")

    @T.prim_func
    def kernel(S: T.Tensor((4,), INT32), A: T.Tensor((n, 32), FP32), C: T.Tensor((n, 32), FP32)):
        with T.Kernel(1):
            a = T.alloc_shared((32, 32), FP32)
            for k in T.serial(T.ceildiv(n, 32)):
                T.copy(A[k * 32, 0], a)
                for i, j in T.Parallel(32, 32):
                    a[i, j] += T.if_then_else((k * 32 + i) * 4096 + j < S[0], 10.0, 0.0)
                    a[i, j] += T.if_then_else(S[1] <= j + k * 131072, 100.0, 0.0)
                    a[i, j] += T.if_then_else(k * 131072 + j - 3 == S[2], 1000.0, 0.0)
                    a[i, j] += T.if_then_else(k * 131072 - i + 40 != S[3], 10000.0, 0.0)
                T.copy(a, C[k * 32, 0])

    a = np.random.default_rng(0).integers(1, 9, (64, 32)).astype(np.float32)
    row, column = np.meshgrid(np.arange(64), np.arange(32), indexing="ij")
    block, i = row // 32, row % 32
    cases = []
    for s in ((0, 0, -3, 40), (33 * 4096 + 7, 131072 + 5, 131072 + 7, 131072 + 31), (-(2**20), 2**20, 5, 9),
              (2**20, -(2**20), -1, -1)):  # fmt: skip
        expected = a + 10 * (row * 4096 + column < s[0]) + 100 * (s[1] <= column + block * 131072)
        expected = expected + 1000 * (block * 131072 + column - 3 == s[2]) + 10000 * (block * 131072 - i + 40 != s[3])
        cases.append(([np.array(s, np.int32), a], [expected]))
    compared(kernel, cases)


def test_names_of_elements_compared_with_places_that_elements_choose() -> None:
    """Limits that names hold, and indices below and above all of them, which an element chooses."""

    @T.prim_func
    def kernel(
        P: T.Tensor((4,), INT32), S: T.Tensor((2,), INT32), A: T.Tensor((64, 32), FP32), C: T.Tensor((128, 32), FP32)
    ):
        with T.Kernel(4) as bx:
            a = T.alloc_shared((32, 32), FP32)
            low = S[0]
            high = S[1]
            start = P[bx] * 16
            T.copy(A[0, 0], a)
            for i, j in T.Parallel(32, 32):
                row = start + i
                if row < low or row >= high:
                    a[i, j] = -1.0
            T.copy(a, C[bx * 32, 0])

    a = np.random.default_rng(0).integers(1, 9, (64, 32)).astype(np.float32)
    cases = []
    for limits in ((5, 40), (-3, 2**20), (2**20, 2**20), (16 * 9 + 3, 16 * 9 + 30)):
        places = np.array([0, -(2**20), 2**20, 9], np.int32)
        rows = (places.astype(np.int64)[:, None] * 16 + np.arange(32)).reshape(-1, 1)
        inside = (rows >= limits[0]) & (rows < limits[1])
        cases.append(([places, np.array(limits, np.int32), a], [np.where(inside, np.tile(a[:32], (4, 1)), -1)]))
    compared(kernel, cases)


def test_rows_that_lie_in_several_matrices_of_open_size() -> None:
    n = T.dynamic("n")

    @T.prim_func
    def kernel(A: T.Tensor((2, 16, n, 32), FP32), C: T.Tensor((16, n, 32), FP32),
               D: T.Tensor((16, n, 32), FP32)):  # fmt: skip
        with T.Kernel(n) as bx:
            a = T.alloc_shared((16, 32), FP32)
            b = T.alloc_shared((16, 32), FP32)
            T.copy(A[0, :, bx, :], a)
            T.copy(A[1, :, bx, :], b)
            for i, j in T.Parallel(16, 32):
                a[i, j] += 2 * b[i, j]
            T.copy(a, C[:, bx, :])
            for i, j in T.Parallel(16, 32):
                if i < 5:
                    D[i, bx, j] = a[i, j] + 1

    cases = []
    for size in (3, 40):
        a = np.random.default_rng(0).integers(0, 99, (2, 16, size, 32)).astype(np.float32)
        sums, kept = a[0] + 2 * a[1], np.full((16, size, 32), -7, np.float32)
        cases.append(([a, kept], (sums, np.concatenate([sums[:5] + 1, kept[5:]]))))
    compared(kernel, cases)


def test_variables_that_are_read_before_they_are_stored_are_zero() -> None:
    """Where a branch, or a loop without iterations, stores them, and where nothing does; of each dtype."""

    @T.prim_func
    def kernel(A: T.Tensor((64, 32), FP32), M: T.Tensor((2,), INT32), C: T.Tensor((64, 32), FP32)):
        with T.Kernel(2) as bx:
            a = T.alloc_shared((32, 32), FP32)
            number = T.alloc_var(FP32)
            count = T.alloc_var(INT32)
            nothing = T.alloc_var(FP32)
            found = T.alloc_var("bool")
            T.copy(A[bx * 32, 0], a)
            if M[bx] > 1:
                number = a[0, 1]
            for k in T.serial(M[bx]):
                count = k + 5
                if a[k, 0] > 4:
                    found = True
            for i, j in T.Parallel(32, 32):
                a[i, j] = a[i, j] + number * 10 + nothing
                a[i, j] += T.if_then_else(found, 5.0, 0.0)
                a[i, j] += T.cast(count, FP32) * 100
            T.copy(a, C[bx * 32, 0])

    a = np.random.default_rng(0).integers(1, 9, (64, 32)).astype(np.float32)
    cases = []
    for counts in ((0, 1), (2, 0), (3, 2)):
        expected = a.copy()
        for bx, count in enumerate(counts):
            rows = slice(bx * 32, bx * 32 + 32)
            expected[rows] += 10 * a[bx * 32, 1] if count > 1 else 0
            expected[rows] += 5 * any(a[bx * 32 : bx * 32 + count, 0] > 4)
            expected[rows] += 100 * (count + 4) if count else 0
        cases.append(([a, np.array(counts, np.int32)], [expected]))
    compared(kernel, cases)
