# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false, reportOperatorIssue=false
"""Parts of blocks: rows, columns, elements and regions that are read and stored."""

from __future__ import annotations

from typing import Any

import ttexplore.language as T
from tests.corpus.case import Case

BF16, FP32, INT32 = "bfloat16", "float32", "int32"


def mixed_rows(dtype: str = FP32) -> Any:
    """Rows of a small block joined with its columns and elements, by constant indices and by that of a loop."""

    @T.prim_func
    def kernel(
        M: T.Tensor((4, 4), dtype), A: T.Tensor((4, 192), dtype), C: T.Tensor((4,), dtype),
        Out: T.Tensor((4, 192), FP32), S: T.Tensor((3, 40, 4), FP32),
    ):  # fmt: skip
        with T.Kernel(3) as bx:
            m, a, c = T.alloc_shared((4, 4), dtype), T.alloc_shared((4, 64), dtype), T.alloc_shared((4,), dtype)
            o, s = T.alloc_fragment((4, 64), FP32), T.alloc_fragment((40, 4), FP32)
            T.copy(M, m)
            T.copy(C, c)
            T.copy(A[0, bx * 64], a)
            for i, j in T.Parallel(4, 64):
                o[i, j] = c[i] * a[1, j]
                for k in T.serial(2):
                    o[i, j] += m[k, i] * a[k, j]
            for k in T.serial(4):
                for i, j in T.Parallel(4, 64):
                    o[i, j] = o[i, j] + m[i, k] * a[k, 5]
            T.copy(o, Out[0, bx * 64])
            for i, j in T.Parallel(40, 4):
                s[i, j] = m[j, 3] + c[0]
            T.copy(s, S[bx, 0, 0])

    return kernel


def stored_columns(dtype: str = FP32) -> Any:
    """Statistics put into the columns of a block, one turn of a loop after the other, a row, and a region of it."""

    @T.prim_func
    def kernel(A: T.Tensor((40, 96), dtype), Out: T.Tensor((40, 64), FP32), V: T.Tensor((40,), FP32)):
        with T.Kernel(1):
            a, b = T.alloc_shared((40, 96), dtype), T.alloc_fragment((40, 64), FP32)
            r, w = T.alloc_fragment((40,), FP32), T.alloc_fragment((64,), FP32)
            T.copy(A, a)
            for k in T.serial(64):
                for i in T.Parallel(40):
                    r[i] = a[i, k] * 2.0
                T.copy(r, b[:, k])
            for j in T.Parallel(64):
                b[7, j] = a[3, j + 32]
            T.copy(a[5, 32:], w)
            for j in T.Parallel(32):
                b[9, j] = w[j + 32]
                b[9, j + 32] = w[j]
            T.fill(b[32:33, 32:], 7.0)
            T.copy(b, Out)
            for i in T.Parallel(40):
                r[i] = b[i, 63] + w[3] + r[i]
            T.copy(r, V)

    return kernel


def rotated(rows: int, columns: int, dtype: str = BF16) -> Any:
    """Rotary embedding: pairs of elements that lie half a row apart."""
    half = columns // 2

    @T.prim_func
    def kernel(
        A: T.Tensor((2 * rows, columns), dtype), Turn: T.Tensor((2 * rows, columns), dtype),
        Out: T.Tensor((2 * rows, columns), dtype),
    ):  # fmt: skip
        with T.Kernel(2) as bx:
            a, t = T.alloc_shared((rows, columns), dtype), T.alloc_shared((rows, columns), dtype)
            b = T.alloc_fragment((rows, columns), dtype)
            T.copy(A[bx * rows, 0], a)
            T.copy(Turn[bx * rows, 0], t)
            for i, j in T.Parallel(rows, half):
                b[i, j] = a[i, j] * t[i, j] - a[i, j + half] * t[i, j + half]
                b[i, j + half] = a[i, j] * t[i, j + half] + a[i, j + half] * t[i, j]
            T.copy(b, Out[bx * rows, 0])

    return kernel


def products_of_parts(dtype: str = BF16) -> Any:
    """Matrix products of parts of blocks, whose places depend on a loop, one of them added to a part."""

    @T.prim_func
    def kernel(A: T.Tensor((64, 128), dtype), B: T.Tensor((128, 96), dtype), Out: T.Tensor((64, 96), FP32)):
        with T.Kernel(1):
            a, b = T.alloc_shared((64, 128), dtype), T.alloc_shared((128, 96), dtype)
            c = T.alloc_fragment((64, 96), FP32)
            T.copy(A[:, :64], a[:, :64])
            T.copy(A[:, 64:], a[:, 64:])
            T.copy(B, b)
            T.clear(c)
            for k in range(2):
                T.gemm(a[:, k * 64 : (k + 1) * 64], b[k * 64 : (k + 1) * 64, :], c)
            T.gemm(a[32:, :32], b[64:96, 32:], c[32:, 32:])
            T.copy(c, Out)

    return kernel


def turned_parts(dtype: str = FP32) -> Any:
    """Parts of blocks read and stored transposed, first rows of a block, and vectors as blocks of one row or column."""

    @T.prim_func
    def kernel(
        A: T.Tensor((64, 96), dtype), B: T.Tensor((32, 64), dtype), C: T.Tensor((96, 64), dtype),
        D: T.Tensor((8, 40), dtype),
    ):  # fmt: skip
        with T.Kernel(1):
            a, b = T.alloc_fragment((64, 96), dtype), T.alloc_fragment((32, 64), dtype)
            c, d = T.alloc_fragment((96, 64), dtype), T.alloc_fragment((8, 40), dtype)
            r, q, p = T.alloc_fragment((64,), dtype), T.alloc_fragment((64, 1), dtype), T.alloc_fragment((1, 64), dtype)
            T.copy(A, a)
            T.reduce_max(a, r, dim=1)
            T.copy(r, q)
            T.copy(r, p)
            for i, j in T.Parallel(32, 64):
                b[i, j] = a[j, i + 32] * q[j, 0] + p[0, i]
            for i, j in T.Parallel(64, 64):
                c[j + 32, i] = a[i, j]
            for i, j in T.Parallel(32, 64):
                c[i, j] = a[j, i]
            T.copy(a[:8, :40], d)
            T.copy(b, B)
            T.copy(c, C)
            T.copy(d, D)

    return kernel


PARTS: tuple[Case, ...] = (
    Case("mixed_rows", mixed_rows, on_chip=False),
    Case("stored_columns", lambda: stored_columns(BF16), on_chip=False),
    Case("rotated", lambda: rotated(32, 128)),
    Case("products_of_parts", products_of_parts, on_chip=False),
    Case("turned_parts", turned_parts, on_chip=False),
)
