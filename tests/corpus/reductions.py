# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false, reportOperatorIssue=false
"""Reductions of blocks along rows and columns, and vectors that are computed with their results."""

from __future__ import annotations

from typing import Any

import ttexplore.language as T
from tests.corpus.case import Case

BF16, FP32, INT32 = "bfloat16", "float32", "int32"


def reduced(
    kind: str, shape: tuple[int, int], dim: int, dtype: str = FP32, out: str = FP32, *, keeps: bool = False
) -> Any:
    """A block reduced along one axis; if `keeps`, another one, changed first, is joined with the result."""
    rows, columns = shape
    length = rows if dim == 1 else columns
    reduce = getattr(T, f"reduce_{kind}")

    @T.prim_func
    def kernel(A: T.Tensor((2, 2 * rows, columns), dtype), Out: T.Tensor((2, length), out)):
        with T.Kernel(2) as bx:
            a, b = T.alloc_shared((rows, columns), dtype), T.alloc_fragment((rows, columns), dtype)
            r = T.alloc_fragment((length,), out)
            T.copy(A[bx, 0, 0], a)
            reduce(a, r, dim=dim)
            if keeps:
                T.copy(A[bx, rows, 0], b)
                for i, j in T.Parallel(rows, columns):
                    b[i, j] = b[i, j] * 0.5
                reduce(b, r, dim=dim, clear=False)
            T.copy(r, Out[bx, 0])

    return kernel


def softmax(rows: int, columns: int, dtype: str) -> Any:
    """The softmax of each row, and the logarithm of its sum: statistics that are columns, used and stored."""

    @T.prim_func
    def kernel(
        A: T.Tensor((2 * rows, columns), dtype), Out: T.Tensor((2 * rows, columns), dtype),
        L: T.Tensor((2 * rows,), FP32),
    ):  # fmt: skip
        with T.Kernel(2) as bx:
            a, s = T.alloc_shared((rows, columns), dtype), T.alloc_fragment((rows, columns), FP32)
            m, total = T.alloc_fragment((rows,), FP32), T.alloc_fragment((rows,), FP32)
            T.copy(A[bx * rows, 0], a)
            T.reduce_max(a, m, dim=1)
            for i, j in T.Parallel(rows, columns):
                s[i, j] = T.exp(a[i, j] - m[i])
            T.reduce_sum(s, total, dim=1)
            for i, j in T.Parallel(rows, columns):
                s[i, j] = s[i, j] / total[i]
            for i in T.Parallel(rows):
                total[i] = T.log(total[i]) + m[i]
            T.copy(s, Out[bx * rows, 0])
            T.copy(total, L[bx * rows])

    return kernel


def online_softmax(turns: int) -> Any:
    """Statistics carried through a loop: maxima that grow, sums scaled anew, and a product scaled with them."""

    @T.prim_func
    def kernel(
        Q: T.Tensor((64, 32), BF16), K: T.Tensor((turns * 32, 32), BF16), V: T.Tensor((turns * 32, 64), BF16),
        Out: T.Tensor((64, 64), BF16),
    ):  # fmt: skip
        with T.Kernel(2) as bx:
            q, k, v = T.alloc_shared((32, 32), BF16), T.alloc_shared((32, 32), BF16), T.alloc_shared((32, 64), BF16)
            s, p, o = (
                T.alloc_fragment((32, 32), FP32),
                T.alloc_fragment((32, 32), BF16),
                T.alloc_fragment((32, 64), FP32),
            )
            m, before, scale = (
                T.alloc_fragment((32,), FP32),
                T.alloc_fragment((32,), FP32),
                T.alloc_fragment((32,), FP32),
            )
            total, part = T.alloc_fragment((32,), FP32), T.alloc_fragment((32,), FP32)
            T.copy(Q[bx * 32, 0], q)
            T.fill(o, 0)
            T.fill(total, 0)
            T.fill(m, -T.infinity(FP32))
            for step in T.Pipelined(turns, num_stages=2):
                T.copy(K[step * 32, 0], k)
                T.clear(s)
                T.gemm(q, k, s, transpose_B=True)
                T.copy(m, before)
                T.fill(m, -T.infinity(FP32))
                T.reduce_max(s, m, dim=1, clear=False)
                for i in T.Parallel(32):
                    m[i] = T.max(m[i], before[i])
                for i in T.Parallel(32):
                    scale[i] = T.exp(before[i] - m[i])
                for i, j in T.Parallel(32, 32):
                    s[i, j] = T.exp(s[i, j] - m[i])
                T.reduce_sum(s, part, dim=1)
                for i in T.Parallel(32):
                    total[i] = total[i] * scale[i] + part[i]
                T.copy(s, p)
                for i, j in T.Parallel(32, 64):
                    o[i, j] *= scale[i]
                T.copy(V[step * 32, 0], v)
                T.gemm(p, v, o)
            for i, j in T.Parallel(32, 64):
                o[i, j] /= total[i]
            T.copy(o, Out[bx * 32, 0])

    return kernel


def scaled_rows() -> Any:
    """A vector that is loaded beside a column of results, and one that is a row of them used as a column."""

    @T.prim_func
    def kernel(
        A: T.Tensor((64, 64), FP32), W: T.Tensor((64,), FP32), Out: T.Tensor((64, 64), FP32), R: T.Tensor((64,), FP32)
    ):  # fmt: skip
        with T.Kernel(1) as bx:
            a, w = T.alloc_shared((64, 64), FP32), T.alloc_shared((64,), FP32)
            r, c, o = T.alloc_fragment((64,), FP32), T.alloc_fragment((64,), FP32), T.alloc_fragment((64, 64), FP32)
            T.copy(A[0, 0], a)
            T.copy(W[0], w)
            T.reduce_sum(a, r, dim=1)
            T.reduce_max(a, c, dim=0)
            for i in T.Parallel(64):
                r[i] = r[i] * w[i]
            for i, j in T.Parallel(64, 64):
                o[i, j] = a[i, j] * r[i] + c[i] + r[j] * c[j]
            T.copy(o, Out[0, 0])
            T.copy(r, R[0])

    return kernel


def one_number() -> Any:
    """A vector reduced to one element, which every element of a block is divided by."""

    @T.prim_func
    def kernel(A: T.Tensor((4, 96), FP32), Out: T.Tensor((4, 96), FP32)):
        with T.Kernel(4) as bx:
            a, o = T.alloc_fragment((96,), FP32), T.alloc_fragment((96,), FP32)
            r = T.alloc_fragment((1,), FP32)
            T.copy(A[bx, 0], a)
            T.reduce_abssum(a, r, dim=0)
            for j in T.Parallel(96):
                o[j] = a[j] / r[0]
            T.copy(o, Out[bx, 0])

    return kernel


REDUCTIONS: tuple[Case, ...] = (
    # wolfpine computes sums and some extremes wrongly on the SFPU, and is refused them: its cases use the FPU.
    Case("reduce_sum_rows", lambda: reduced("sum", (32, 96), 1), {"eltwise": "fpu"}),
    Case("reduce_sum_whole", lambda: reduced("sum", (32, 96), 1), on_chip=False),
    Case("reduce_max_columns", lambda: reduced("max", (64, 64), 0, BF16, BF16)),
    Case("reduce_min_tail", lambda: reduced("min", (40, 80), 1), on_chip=False),
    Case("reduce_absmax_tail", lambda: reduced("absmax", (33, 50), 0), on_chip=False),
    Case("reduce_abssum_kept", lambda: reduced("abssum", (32, 64), 1, keeps=True), on_chip=False),
    Case("reduce_many_tiles", lambda: reduced("sum", (32, 480), 1, BF16, keeps=True)),
    Case("reduce_int32", lambda: reduced("max", (40, 50), 1, INT32, INT32), on_chip=False),
    Case("softmax", lambda: softmax(32, 100, BF16), {"eltwise": "fpu"}),
    Case("softmax_fp32", lambda: softmax(48, 64, FP32), on_chip=False),
    Case("online_softmax", lambda: online_softmax(3), {"eltwise": "fpu"}),
    Case("online_softmax_whole", lambda: online_softmax(2), on_chip=False),
    Case("scaled_rows", scaled_rows, {"eltwise": "fpu"}),
    Case("one_number", one_number, on_chip=False),
)
