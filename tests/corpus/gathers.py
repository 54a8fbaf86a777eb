# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false, reportOperatorIssue=false
"""Blocks gathered from computed places of tensors, and tensors of other shapes over the memory of tensors."""

from __future__ import annotations

from typing import Any

import ttexplore.language as T
from tests.corpus.case import Case

BF16, FP32 = "bfloat16", "float32"


def convolution(
    image: tuple[int, int, int, int], filters: int, size: int, stride: int, dilation: int, padding: int, block_k: int,
    dtype: str = BF16,
) -> Any:  # fmt: skip
    """A convolution as a product: the blocks of the image under the filter are gathered, the filters are flattened."""
    batch, height, width, channels = image
    rows, columns = ((one + 2 * padding - dilation * (size - 1) - 1) // stride + 1 for one in (height, width))
    places, depth, block_m = batch * rows * columns, size * size * channels, (2 - rows % 2) * columns

    @T.prim_func
    def kernel(
        Image: T.Tensor(image, dtype), Filters: T.Tensor((size, size, channels, filters), dtype),
        Out: T.Tensor((batch, rows, columns, filters), dtype),
    ):  # fmt: skip
        with T.Kernel(places // block_m) as bx:
            a, b = T.alloc_shared((block_m, block_k), dtype), T.alloc_shared((block_k, filters), dtype)
            c = T.alloc_fragment((block_m, filters), FP32)
            flat = T.Tensor((depth, filters), dtype, Filters.data)
            out = T.Tensor((places, filters), dtype, Out.data)
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(depth, block_k), num_stages=2):
                T.im2col(Image, a, bx, k, size, stride, dilation, padding)
                T.copy(flat[k * block_k, 0], b)
                T.gemm(a, b, c)
            T.copy(c, out[bx * block_m, 0])

    return kernel


def gathered(dtype: str = FP32) -> Any:
    """Places that are multiples, quotients and remainders of loop variables, a border, and a diagonal."""

    @T.prim_func
    def kernel(
        A: T.Tensor((3, 40, 70), dtype), V: T.Tensor((100,), dtype), Out: T.Tensor((2, 40, 33), FP32),
        D: T.Tensor((2, 40), FP32), E: T.Tensor((2, 40, 8), dtype),
    ):  # fmt: skip
        with T.Kernel(2) as bx:
            o, d = T.alloc_fragment((40, 33), FP32), T.alloc_fragment((40,), FP32)
            for i, j in T.Parallel(40, 33):
                y = i + bx - 1
                o[i, j] = A[bx, i // 2, 2 * j] + A[bx + 1, 39 - i, j % 7] * V[i + 2 * j]
                if y >= 0 and y < 39:
                    o[i, j] += A[(i + j) % 3, y, j * 2 + 1]
            for i in T.Parallel(40):
                d[i] = A[bx, i, i]
            T.copy(o, Out[bx, 0, 0])
            for i, j in T.Parallel(40, 8):
                E[bx, i, j] = A[bx, i, j * 3]
            T.copy(d, D[bx, 0])

    return kernel


def viewed(dtype: str = BF16) -> Any:
    """Blocks of a flattened tensor, stored to one whose rows are split; and single elements of a view."""

    @T.prim_func
    def kernel(A: T.Tensor((2, 16, 16, 64), dtype), B: T.Tensor((2, 8, 32, 64), dtype), C: T.Tensor((8, 64), FP32)):
        with T.Kernel(2, 8) as (bx, by):
            a = T.alloc_shared((64, 32), dtype)
            c = T.alloc_fragment((1, 32), FP32)
            rows, out = T.Tensor((512, 64), dtype, A.data), T.Tensor((512, 64), dtype, B.data)
            T.copy(rows[by * 64, bx * 32], a)
            for i, j in T.Parallel(64, 32):
                a[i, j] = a[i, j] * 2.0
            T.copy(a, out[by * 64, bx * 32])
            line = T.Tensor((32768,), dtype, rows.data)
            for i, j in T.Parallel(1, 32):
                c[i, j] = line[by * 4096 + j * 64 + bx]
            T.copy(c, C[by, bx * 32])

    return kernel


GATHERS: tuple[Case, ...] = (
    Case("convolution", lambda: convolution((1, 8, 16, 32), 32, 3, 1, 1, 1, 32)),
    Case("gathered", gathered, on_chip=False),
    Case("viewed", viewed, on_chip=False),
)
