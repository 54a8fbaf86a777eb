# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false, reportOperatorIssue=false
"""Tensors whose tiles are Bfp8_b: 16 numbers share an exponent. Of the simulators wolfpine does not model them."""

from __future__ import annotations

from typing import Any

import ttexplore.language as T
from tests.corpus.case import Case

BF16, FP32 = "bfloat16", "float32"
BFP8 = {"dtype": "bfp8_b"}


def block_floats() -> Any:
    """A block, a row and a column in such tiles beside others; the vectors end inside of a group of 16."""

    @T.prim_func
    def scaled(
        A: T.Tensor((40, 80), BF16), B: T.Tensor((40, 80), BF16), R: T.Tensor((80,), FP32),
        Out: T.Tensor((40, 80), BF16), Q: T.Tensor((40, 80), FP32), C: T.Tensor((40,), BF16),
    ):  # fmt: skip
        T.annotate_tt_layout({A: BFP8, R: BFP8, Out: BFP8, C: BFP8})
        with T.Kernel(2, 2) as (bx, by):
            a, b, r = T.alloc_shared((32, 64), BF16), T.alloc_shared((32, 64), BF16), T.alloc_shared((64,), FP32)
            c, o = T.alloc_shared((32,), BF16), T.alloc_fragment((32, 64), FP32)
            T.copy(A[by * 32, bx * 64], a)
            T.copy(B[by * 32, bx * 64], b)
            T.copy(R[bx * 64], r)
            T.copy(C[by * 32], c)
            for i, j in T.Parallel(32, 64):
                o[i, j] = T.exp(a[i, j] * r[j]) + b[i, j] * c[i]
            T.copy(o, Out[by * 32, bx * 64])
            T.copy(o, Q[by * 32, bx * 64])

    return scaled


def block_float_product() -> Any:
    """A product of such operands, with a tail along the summed axis; float32 in the kernel."""

    @T.prim_func
    def product(A: T.Tensor((64, 72), FP32), B: T.Tensor((72, 64), FP32), Out: T.Tensor((64, 64), FP32)):
        T.annotate_tt_layout({A: BFP8, B: BFP8, Out: BFP8})
        with T.Kernel(1, 2) as (bx, by):
            a, b = T.alloc_shared((32, 32), FP32), T.alloc_shared((32, 64), FP32)
            c = T.alloc_fragment((32, 64), FP32)
            T.clear(c)
            for k in T.Pipelined(3, num_stages=2):
                T.copy(A[by * 32, k * 32], a)
                T.copy(B[k * 32, 0], b)
                T.gemm(a, b, c)
            T.copy(c, Out[by * 32, 0])

    return product


def block_float_copies() -> Any:
    """Tiles that pass as they are, that are repacked, and that are summed."""

    @T.prim_func
    def copies(
        A: T.Tensor((2, 64, 32), BF16), Out: T.Tensor((2, 64, 32), BF16), P: T.Tensor((2, 64, 32), BF16),
        S: T.Tensor((2, 64, 32), BF16),
    ):  # fmt: skip
        T.annotate_tt_layout({A: BFP8, Out: BFP8, S: BFP8})
        with T.Kernel(2) as bx:
            a, b, s = (T.alloc_shared((64, 32), BF16) for _ in range(3))
            T.copy(A[bx, 0, 0], a)
            T.copy(a, Out[bx, 0, 0])
            T.copy(A[bx, 0, 0], b)
            T.copy(b, P[bx, 0, 0])
            for i, j in T.Parallel(64, 32):
                s[i, j] = b[i, j] + b[i, j]
            T.copy(s, S[bx, 0, 0])

    return copies


BLOCK_FLOATS = (
    Case("bfp8", block_floats, on_chip=False),
    Case("bfp8_product", block_float_product, on_chip=False),
    Case("bfp8_copies", block_float_copies, on_chip=False),
)
