# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false, reportOperatorIssue=false
"""Dtypes of 8 bits and fewer: floating-point numbers, integers and masks."""

from __future__ import annotations

from typing import Any

import ttexplore.language as T
from tests.corpus.case import Case

E4M3, E5M2, INT8, INT4, BOOL = "float8_e4m3fn", "float8_e5m2", "int8", "int4", "bool"
INT32, BF16, FP32 = "int32", "bfloat16", "float32"


def product_of(
    dtype: str, other: str, accumulator: str, out: str, rows: int = 32, columns: int = 64, depth: int = 64
) -> Any:
    """``C = A @ B.T`` of blocks, in a loop over two of them."""

    @T.prim_func
    def multiplied(
        A: T.Tensor((rows, 2 * depth), dtype), B: T.Tensor((columns, 2 * depth), other),
        C: T.Tensor((rows, columns), out),
    ):  # fmt: skip
        with T.Kernel(1) as bx:
            a = T.alloc_shared((rows, depth), dtype)
            b = T.alloc_shared((columns, depth), other)
            c = T.alloc_fragment((rows, columns), accumulator)
            T.clear(c)
            for k in T.Pipelined(2, num_stages=2):
                T.copy(A[0, k * depth], a)
                T.copy(B[0, k * depth], b)
                T.gemm(a, b, c, transpose_B=True)
            T.copy(c, C)

    return multiplied


def casts() -> Any:
    """Casts from every kind of dtype to every kind of dtype of 8 bits."""

    @T.prim_func
    def cast(
        A: T.Tensor((40, 70), BF16), B: T.Tensor((40, 70), E5M2), N: T.Tensor((40, 70), INT8),
        M: T.Tensor((40, 70), BOOL), P: T.Tensor((40, 70), E4M3), Q: T.Tensor((40, 70), E5M2),
        R: T.Tensor((40, 70), INT8), S: T.Tensor((40, 70), BOOL),
    ):  # fmt: skip
        with T.Kernel(2, 2) as (bx, by):
            a, b = T.alloc_shared((32, 64), BF16), T.alloc_shared((32, 64), E5M2)
            n, m = T.alloc_shared((32, 64), INT8), T.alloc_shared((32, 64), BOOL)
            p, q = T.alloc_fragment((32, 64), E4M3), T.alloc_fragment((32, 64), E5M2)
            r, s = T.alloc_fragment((32, 64), INT8), T.alloc_fragment((32, 64), BOOL)
            T.copy(A[by * 32, bx * 64], a)
            T.copy(B[by * 32, bx * 64], b)
            T.copy(N[by * 32, bx * 64], n)
            T.copy(M[by * 32, bx * 64], m)
            for i, j in T.Parallel(32, 64):
                p[i, j] = T.if_then_else(m[i, j], a[i, j] * 3.0, T.cast(n[i, j], FP32))
                q[i, j] = T.cast(b[i, j], FP32) + T.cast(p[i, j], FP32) * 0.3
                r[i, j] = n[i, j] + T.cast(a[i, j] * 100.0, INT8)
                s[i, j] = a[i, j] > T.cast(b[i, j], FP32)
            T.copy(p, P[by * 32, bx * 64])
            T.copy(q, Q[by * 32, bx * 64])
            T.copy(r, R[by * 32, bx * 64])
            T.copy(s, S[by * 32, bx * 64])

    return cast


def rows_scaled() -> Any:
    """Rows divided by their largest magnitude, and the product with that again: quantization and its inverse."""

    @T.prim_func
    def quantized(A: T.Tensor((32, 128), FP32), Q: T.Tensor((32, 128), E4M3), Out: T.Tensor((32, 128), BF16)):
        with T.Kernel(1) as bx:
            a, q = T.alloc_fragment((32, 128), FP32), T.alloc_fragment((32, 128), E4M3)
            most, o = T.alloc_fragment((32,), FP32), T.alloc_fragment((32, 128), BF16)
            T.copy(A, a)
            T.reduce_absmax(a, most, dim=1)
            for i in T.Parallel(32):
                most[i] = T.max(most[i], 1e-4) / 448.0
            for i, j in T.Parallel(32, 128):
                a[i, j] = T.clamp(a[i, j] / most[i], -448.0, 448.0)
            T.copy(a, q)
            for i, j in T.Parallel(32, 128):
                o[i, j] = T.cast(q[i, j], FP32) * most[i]
            T.copy(q, Q)
            T.copy(o, Out)

    return quantized


def copies() -> Any:
    """Copies that convert: between tensors and blocks on the chip, of whole blocks and of parts."""

    @T.prim_func
    def converted(A: T.Tensor((64, 64), FP32), B: T.Tensor((64, 64), E4M3), C: T.Tensor((64, 64), INT8)):
        with T.Kernel(2) as by:
            low = T.alloc_shared((32, 64), E4M3)
            wide = T.alloc_fragment((32, 64), BF16)
            T.copy(A[by * 32, 0], low)
            T.copy(low, wide)
            T.copy(low, B[by * 32, 0])
            T.copy(wide, C[by * 32, 0])

    return converted


FORMATS = (
    Case("float8_product", lambda: product_of(E4M3, E4M3, FP32, E4M3)),
    Case("float8_mixed_product", lambda: product_of(E5M2, E4M3, FP32, BF16), on_chip=False),
    Case("int8_product", lambda: product_of(INT8, INT8, INT32, INT32)),
    Case("int4_product", lambda: product_of(INT4, INT8, INT32, FP32, columns=32), on_chip=False),
    Case("small_casts", casts),
    Case("rows_scaled", rows_scaled, on_chip=False),
    Case("converting_copies", copies, on_chip=False),
)
