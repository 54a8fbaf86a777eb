# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false
"""Blocks over the memory of others: T.reshape and T.view."""

from __future__ import annotations

from typing import Any

import ttexplore.language as T
from tests.corpus.case import Case


def weighted_scores(queries: int, heads: int) -> Any:
    """Products of keys with queries of several heads, whose weighted sum over the heads is taken in another shape."""

    @T.prim_func
    def kernel(
        K: T.Tensor((64, 32), "bfloat16"), Q: T.Tensor((queries * heads, 32), "bfloat16"),
        W: T.Tensor((queries, heads), "float32"), Out: T.Tensor((64, queries), "float32"),
    ):  # fmt: skip
        with T.Kernel(2) as bx:
            k, q = T.alloc_shared((32, 32), "bfloat16"), T.alloc_shared((queries * heads, 32), "bfloat16")
            s, w = T.alloc_fragment((32, queries * heads), "float32"), T.alloc_fragment((queries, heads), "float32")
            o = T.alloc_fragment((32, queries), "float32")
            by_head = T.reshape(s, (32, queries, heads))
            T.copy(K[bx * 32, 0], k)
            T.copy(Q, q)
            T.copy(W, w)
            T.gemm(k, q, s, transpose_B=True, clear_accum=True)
            for i, n, h in T.Parallel(32, queries, heads):
                by_head[i, n, h] = T.max(by_head[i, n, h], 0) * w[n, h]
            T.reduce_sum(by_head, o, dim=-1)
            T.copy(o, Out[bx * 32, 0])

    return kernel


def read_and_stored(shape: tuple[int, ...], other: tuple[int, int], dim: int) -> Any:
    """A block that is loaded in one shape, and read, reduced and stored to in another one."""
    left = other[1 - dim]

    @T.prim_func
    def kernel(
        A: T.Tensor(shape, "float32"), Twice: T.Tensor(other, "float32"), Most: T.Tensor((left,), "float32"),
        Stored: T.Tensor(shape, "float32"),
    ):  # fmt: skip
        with T.Kernel(1):
            a = T.alloc_shared(shape, "float32")
            v = T.view(a, other)
            b, r = T.alloc_fragment(other, "float32"), T.alloc_fragment((left,), "float32")
            T.copy(A, a)
            for i, j in T.Parallel(*other):
                b[i, j] = v[i, j] * 2.0
            T.reduce_max(v, r, dim=dim)
            T.copy(b, Twice)
            T.copy(r, Most)
            T.copy(b, v)
            T.copy(a, Stored)

    return kernel


RESHAPED: tuple[Case, ...] = (
    Case("reshaped_scores", lambda: weighted_scores(2, 32), on_chip=False),
    Case("reshaped_split", lambda: read_and_stored((32, 64), (64, 32), 1), on_chip=False),
    Case("reshaped_merged", lambda: read_and_stored((2, 32, 32), (64, 32), 0), on_chip=False),
)
