# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
"""Stores of as many rows and columns of a block as are known when the kernel runs."""

from __future__ import annotations

from typing import Any

import ttexplore.language as T
from tests.corpus.case import Case


def sequences(dtype: str = "bfloat16", heads: int = 2, most: int = 2, total: int = 96) -> Any:
    """Attention of sequences of any lengths, one after the other, in blocks that may reach into the next one."""
    q_shape = (total, heads, 32)

    @T.prim_func
    def kernel(
        Q: T.Tensor(q_shape, dtype), K: T.Tensor(q_shape, dtype), V: T.Tensor(q_shape, dtype),
        Starts: T.Tensor((4,), "int32"), Out: T.Tensor(q_shape, dtype),
    ):  # fmt: skip
        with T.Kernel(most, heads, 3) as (bx, head, n):
            q, k, v = (T.alloc_shared((32, 32), dtype) for _ in range(3))
            scores = T.alloc_fragment((32, 32), "float32")
            weights = T.alloc_fragment((32, 32), dtype)
            out = T.alloc_fragment((32, 32), "float32")
            most_so_far, before, scale, sums, total_sum = (T.alloc_fragment((32,), "float32") for _ in range(5))
            start = Starts[n]
            length = Starts[n + 1] - start
            T.copy(Q[start + bx * 32 : start + bx * 32 + 32, head, :], q)
            T.clear(out)
            T.clear(total_sum)
            T.fill(most_so_far, -1e9)
            for step in range(T.ceildiv(length, 32)):
                T.copy(K[start + step * 32 : start + step * 32 + 32, head, :], k)
                for i, j in T.Parallel(32, 32):
                    scores[i, j] = T.if_then_else(step * 32 + j < length, 0.0, -1e9)
                T.gemm(q, k, scores, transpose_B=True)
                T.copy(most_so_far, before)
                T.reduce_max(scores, most_so_far, dim=1, clear=False)
                for i in T.Parallel(32):
                    scale[i] = T.exp(before[i] - most_so_far[i])
                for i, j in T.Parallel(32, 32):
                    scores[i, j] = T.exp(scores[i, j] - most_so_far[i])
                T.reduce_sum(scores, sums, dim=1)
                for i in T.Parallel(32):
                    total_sum[i] = total_sum[i] * scale[i] + sums[i]
                for i, j in T.Parallel(32, 32):
                    out[i, j] *= scale[i]
                T.copy(scores, weights)
                T.copy(V[start + step * 32 : start + step * 32 + 32, head, :], v)
                T.gemm(weights, v, out)
            for i, j in T.Parallel(32, 32):
                if bx * 32 + i < length:
                    Out[start + bx * 32 + i, head, j] = out[i, j] / total_sum[i]

    return kernel


def groups(dtype: str = "bfloat16", total: int = 96) -> Any:
    """A product for each group of rows; groups have any number of rows and lie one after the other."""

    @T.prim_func
    def kernel(
        A: T.Tensor((total, 64), dtype), B: T.Tensor((3, 64, 64), dtype), Starts: T.Tensor((4,), "int32"),
        C: T.Tensor((total, 64), dtype),
    ):  # fmt: skip
        with T.Kernel(2, 2, 3) as (bx, by, n):
            a = T.alloc_shared((64, 32), dtype)
            b = T.alloc_shared((32, 32), dtype)
            c = T.alloc_fragment((64, 32), "float32")
            start = Starts[n]
            rows = T.max(0, T.min(64, Starts[n + 1] - start - by * 64))
            T.clear(c)
            for k in range(2):
                T.copy(A[start + by * 64, k * 32], a)
                T.copy(B[n, k * 32, bx * 32], b)
                T.gemm(a, b, c)
            for i, j in T.Parallel(64, 32):
                if i < rows:
                    C[start + by * 64 + i, bx * 32 + j] = c[i, j]

    return kernel


def corners(dtype: str = "float32", columns: int = 64, blocks: tuple[int, int] = (2, 3)) -> Any:
    """The first rows and columns of each block."""
    shape = (32 * blocks[1], columns * blocks[0])

    @T.prim_func
    def kernel(
        A: T.Tensor(shape, dtype), Rows: T.Tensor((blocks[1],), "int32"), Columns: T.Tensor((blocks[0],), "int32"),
        C: T.Tensor(shape, dtype),
    ):  # fmt: skip
        with T.Kernel(*blocks) as (bx, by):
            a = T.alloc_shared((32, columns), dtype)
            T.copy(A[by * 32, bx * columns], a)
            for i, j in T.Parallel(32, columns):
                if i < Rows[by] and bx * columns + j < Columns[bx]:
                    C[by * 32 + i, bx * columns + j] = a[i, j] + 1

    return kernel


# Of the others, most numbers name nothing that there is.
LIMITED = [
    Case("limited_corners", corners, on_chip=False),
    Case("limited_corners_few", lambda: corners(columns=32, blocks=(1, 2))),
]
