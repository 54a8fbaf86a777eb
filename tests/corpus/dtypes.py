# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false, reportOperatorIssue=false
"""Tensors of integers."""

from __future__ import annotations

from typing import Any

import ttexplore.language as T
from tests.corpus.case import Case

INT32, UINT8, BF16, FP32 = "int32", "uint8", "bfloat16", "float32"


def integers() -> Any:
    """Operations on integers, with a row and a column of them, and numbers of places."""

    @T.prim_func
    def mixed(
        A: T.Tensor((40, 70), INT32),
        R: T.Tensor((70,), INT32),
        C: T.Tensor((40,), INT32),
        Out: T.Tensor((40, 70), INT32),
    ):
        with T.Kernel(2, 2) as (bx, by):
            a, o = T.alloc_shared((32, 64), INT32), T.alloc_fragment((32, 64), INT32)
            r, c = T.alloc_shared((64,), INT32), T.alloc_shared((32,), INT32)
            T.copy(A[by * 32, bx * 64], a)
            T.copy(R[bx * 64], r)
            T.copy(C[by * 32], c)
            for i, j in T.Parallel(32, 64):
                o[i, j] = T.if_then_else(a[i, j] < r[j], T.abs(a[i, j]) + c[i], (a[i, j] >> 3) ^ ~(c[i] << (j & 7)))
            T.copy(o, Out[by * 32, bx * 64])

    return mixed


def conversions() -> Any:
    """Numbers to integers and back, in expressions and by copies."""

    @T.prim_func
    def converted(
        A: T.Tensor((64, 32), BF16), B: T.Tensor((64, 32), INT32), Out: T.Tensor((64, 32), INT32),
        P: T.Tensor((64, 32), BF16), Q: T.Tensor((64, 32), FP32),
    ):  # fmt: skip
        with T.Kernel(2) as by:
            a, b = T.alloc_shared((32, 32), BF16), T.alloc_shared((32, 32), INT32)
            o, p = T.alloc_fragment((32, 32), INT32), T.alloc_fragment((32, 32), BF16)
            T.copy(A[by * 32, 0], a)
            T.copy(B[by * 32, 0], b)
            for i, j in T.Parallel(32, 32):
                o[i, j] = T.cast(T.exp(a[i, j]) * 8.0, INT32) + T.max(b[i, j], -100)
                p[i, j] = T.if_then_else(b[i, j] != 0, a[i, j], T.cast(b[i, j] & 3, FP32))
            T.copy(o, Out[by * 32, 0])
            T.copy(p, P[by * 32, 0])
            T.copy(o, Q[by * 32, 0])

    return converted


def polynomial() -> Any:
    """Products that wrap around, of integers that stay in DST through a loop."""

    @T.prim_func
    def horner(A: T.Tensor((32, 128), INT32), Out: T.Tensor((32, 32), INT32)):
        with T.Kernel(1) as bx:
            a, o = T.alloc_shared((32, 32), INT32), T.alloc_fragment((32, 32), INT32)
            T.fill(o, 5)
            for k in T.serial(4):
                T.copy(A[0, k * 32], a)
                for i, j in T.Parallel(32, 32):
                    o[i, j] = o[i, j] * 1000003 + a[i, j] // 4 * a[i, j]
            T.copy(o, Out)

    return horner


def spilled_integers() -> Any:
    """More integers at once than DST holds."""

    @T.prim_func
    def spilled(A: T.Tensor((32, 64), INT32), B: T.Tensor((32, 64), INT32), Out: T.Tensor((32, 64), INT32)):
        with T.Kernel(1) as bx:
            a, b, o = (T.alloc_shared((32, 64), INT32) for _ in range(3))
            T.copy(A, a)
            T.copy(B, b)
            for i, j in T.Parallel(32, 64):
                x, y = a[i, j] + b[i, j], a[i, j] - b[i, j]
                z, w = a[i, j] & b[i, j], a[i, j] | b[i, j]
                left = (x + T.max(y, z)) ^ (x - T.min(z, w))
                o[i, j] = left + T.if_then_else(x < w, y | z, (x & w) - (y + z))
            T.copy(o, Out)

    return spilled


def plain_copies() -> Any:
    """A block that becomes numbers on its way out, and a strip that is no tile."""

    @T.prim_func
    def copies(A: T.Tensor((3, 70), INT32), Out: T.Tensor((3, 70), FP32), P: T.Tensor((3, 70), INT32)):
        with T.Kernel(3, 2) as (bx, by):
            a = T.alloc_shared((1, 48), INT32)
            T.copy(A[bx, by * 48], a)
            T.copy(a, Out[bx, by * 48])
            T.copy(a, P[bx, by * 48])

    return copies


def masks() -> Any:
    """A mask chooses elements, a row of one as well; comparisons give another."""

    @T.prim_func
    def masked(
        A: T.Tensor((40, 70), BF16), M: T.Tensor((40, 70), UINT8), R: T.Tensor((70,), UINT8),
        Out: T.Tensor((40, 70), BF16), N: T.Tensor((40, 70), UINT8),
    ):  # fmt: skip
        with T.Kernel(2, 2) as (bx, by):
            a, m, r = T.alloc_shared((32, 64), BF16), T.alloc_shared((32, 64), UINT8), T.alloc_shared((64,), UINT8)
            o, n = T.alloc_fragment((32, 64), BF16), T.alloc_fragment((32, 64), UINT8)
            T.copy(A[by * 32, bx * 64], a)
            T.copy(M[by * 32, bx * 64], m)
            T.copy(R[bx * 64], r)
            for i, j in T.Parallel(32, 64):
                o[i, j] = T.if_then_else(m[i, j] != 0 and r[j] > 9, a[i, j], 0.0)
                n[i, j] = T.if_then_else(a[i, j] > 0.5, T.cast(1, UINT8), m[i, j] & T.cast(12, UINT8))
            T.copy(o, Out[by * 32, bx * 64])
            T.copy(n, N[by * 32, bx * 64])

    return masked


def bytes_from_numbers() -> Any:
    """What no byte holds wraps around; bytes become numbers and integers."""

    @T.prim_func
    def wrapped(
        A: T.Tensor((32, 32), FP32), M: T.Tensor((32, 32), UINT8), Out: T.Tensor((32, 32), UINT8),
        P: T.Tensor((32, 32), INT32), Q: T.Tensor((32, 32), FP32),
    ):  # fmt: skip
        with T.Kernel(1) as bx:
            a, m, o = T.alloc_shared((32, 32), FP32), T.alloc_shared((32, 32), UINT8), T.alloc_shared((32, 32), UINT8)
            T.copy(A, a)
            T.copy(M, m)
            for i, j in T.Parallel(32, 32):
                o[i, j] = T.cast(a[i, j] * 300.0, UINT8)
            T.copy(o, Out)
            T.copy(m, P)
            T.copy(m, Q)

    return wrapped


DTYPES = (
    Case("int32", integers),
    Case("int32_conversions", conversions),
    Case("uint8_masks", masks),
    Case("uint8_wraps", bytes_from_numbers, on_chip=False),
    Case("int32_products", polynomial, on_chip=False),
    Case("int32_spilled", spilled_integers, on_chip=False),
    Case("int32_copies", plain_copies, on_chip=False),
)
