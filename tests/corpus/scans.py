# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false
"""Scans of blocks along rows and columns: running sums and maxima."""

from __future__ import annotations

from typing import Any

import ttexplore.language as T
from tests.corpus.case import Case

BF16, FP32, INT32 = "bfloat16", "float32", "int32"


def scanned(
    name: str, shape: tuple[int, ...], dim: int, dtype: str = FP32, *, reverse: bool = False, in_place: bool = True
) -> Any:
    """A block scanned along one axis, in place or into another block."""
    rank = len(shape)

    @T.prim_func
    def kernel(A: T.Tensor((2, *shape), dtype), Out: T.Tensor((2, *shape), dtype)):
        with T.Kernel(2) as bx:
            a = T.alloc_shared(shape, dtype)
            b = T.alloc_fragment(shape, dtype)
            at = (bx, *[0] * rank)
            T.copy(A[at], a)
            if in_place:
                getattr(T, name)(a, dim=dim, reverse=reverse)
                T.copy(a, Out[at])
            else:
                getattr(T, name)(a, b, dim=dim, reverse=reverse)
                T.copy(b, Out[at])

    return kernel


def part(length: int) -> Any:
    """Sums within a part of a block, used with the elements that they are sums of."""

    @T.prim_func
    def kernel(A: T.Tensor((128, length), FP32), Out: T.Tensor((64, length), FP32)):
        with T.Kernel(2) as bx:
            a = T.alloc_shared((64, length), FP32)
            s = T.alloc_fragment((32, length), FP32)
            o = T.alloc_fragment((32, length), FP32)
            T.copy(A[bx * 64, 0], a)
            T.cumsum(a[32:64, :], s, dim=1)
            for i, j in T.Parallel(32, length):
                o[i, j] = T.exp(s[i, j] * 0.125) - a[i, j]
            T.copy(o, Out[bx * 32, 0])

    return kernel


SCANS: tuple[Case, ...] = (
    Case("cumsum_rows", lambda: scanned("cumsum", (32, 48), 1), on_chip=False),
    # wolfpine computes sums on the SFPU wrongly, and takes its time for each column: its case uses the FPU, for few.
    Case("cumsum_few", lambda: scanned("cumsum", (8, 12), 1), {"eltwise": "fpu"}),
    Case("cumsum_tail", lambda: scanned("cumsum", (40, 9), 0, reverse=True), on_chip=False),
    Case("cumsum_int32", lambda: scanned("cumsum", (5, 70), 1, INT32, in_place=False), on_chip=False),
    Case("cumsum_vector", lambda: scanned("cumsum", (70,), 0, BF16, reverse=True), on_chip=False),
    Case("cumsum_part", lambda: part(20), on_chip=False),
    Case("cummax_rows", lambda: scanned("cummax", (33, 20), 1, in_place=False), on_chip=False),
)
