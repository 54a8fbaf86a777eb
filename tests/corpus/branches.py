# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false
"""Branches around operations on blocks, whose conditions are known only when the kernel runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ttexplore.language as T
from tests.corpus.case import Case

Condition = Callable[..., Any]


def skipped(condition: Condition, size: int = 64, *, dtype: str = "bfloat16", steps: int = 4) -> Any:
    """The sum of A[bx, k] @ B[k] over those k for which the condition on (bx, k) holds."""

    @T.prim_func
    def kernel(
        A: T.Tensor((3 * size, 32 * steps), dtype), B: T.Tensor((32 * steps, size), dtype),
        C: T.Tensor((3 * size, size), "float32"),
    ):  # fmt: skip
        with T.Kernel(3) as bx:
            a = T.alloc_shared((size, 32), dtype)
            b = T.alloc_shared((32, size), dtype)
            c = T.alloc_fragment((size, size), "float32")
            T.clear(c)
            for k in T.Pipelined(steps, num_stages=2):
                if condition(bx, k):
                    T.copy(A[bx * size, k * 32], a)
                    T.copy(B[k * 32, 0], b)
                    T.gemm(a, b, c)
            T.copy(c, C[bx * size, 0])

    return kernel


def last_products(condition: Condition, steps: int = 4) -> Any:
    """A sum of products of which some terms have another factor, followed by work that shares DST with the last."""

    @T.prim_func
    def kernel(
        A: T.Tensor((192, 32 * steps), "bfloat16"), B: T.Tensor((32 * steps, 64), "bfloat16"),
        C: T.Tensor((192, 64), "float32"),
    ):  # fmt: skip
        with T.Kernel(3) as bx:
            a = T.alloc_shared((64, 32), "bfloat16")
            b = T.alloc_shared((32, 64), "bfloat16")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in range(steps):
                T.copy(A[bx * 64, k * 32], a)
                T.copy(B[k * 32, 0], b)
                if condition(bx, k):
                    for i, j in T.Parallel(64, 64):
                        c[i, j] = c[i, j] * 0.5
                T.gemm(a, b, c)
            for i, j in T.Parallel(64, 64):
                c[i, j] = T.max(c[i, j], 0.0)
            T.copy(c, C[bx * 64, 0])

    return kernel


def chosen_source(first: Condition, second: Condition) -> Any:
    """One of three tensors for each block, and what is computed of it."""

    @T.prim_func
    def kernel(
        A: T.Tensor((192, 64), "float32"), B: T.Tensor((192, 64), "float32"), D: T.Tensor((192, 64), "float32"),
        C: T.Tensor((192, 64), "float32"),
    ):  # fmt: skip
        with T.Kernel(6) as bx:
            a = T.alloc_shared((32, 64), "float32")
            if first(bx):
                T.copy(A[bx * 32, 0], a)
            elif second(bx):
                T.copy(B[bx * 32, 0], a)
            else:
                T.copy(D[bx * 32, 0], a)
            for i, j in T.Parallel(32, 64):
                a[i, j] = a[i, j] * 2.0 + 1.0
            T.copy(a, C[bx * 32, 0])

    return kernel


def ways(condition: Condition) -> Any:
    """A block that is loaded before the branch is used by one side, and by both."""

    @T.prim_func
    def kernel(A: T.Tensor((192, 64), "bfloat16"), C: T.Tensor((192, 64), "float32")):
        with T.Kernel(6) as bx:
            a = T.alloc_shared((32, 64), "bfloat16")
            c = T.alloc_fragment((32, 64), "float32")
            T.copy(A[bx * 32, 0], a)
            T.fill(c, 3.0)
            if condition(bx):
                for i, j in T.Parallel(32, 64):
                    c[i, j] = T.exp(a[i, j])
                if bx < 3:
                    for i, j in T.Parallel(32, 64):
                        c[i, j] += 1.0
            else:
                for i, j in T.Parallel(32, 64):
                    c[i, j] -= a[i, j]
            T.copy(c, C[bx * 32, 0])

    return kernel


def waves(rows: int, columns: int, blocks: int, group: int = 2) -> Any:
    """A product whose tiles a launch of any size covers: each block computes those of its own that exist."""
    tiles = rows * columns
    turns = -(-tiles // blocks) + 1

    @T.prim_func
    def kernel(
        A: T.Tensor((rows * 32, 64), "bfloat16"), B: T.Tensor((64, columns * 32), "bfloat16"),
        C: T.Tensor((rows * 32, columns * 32), "float32"),
    ):  # fmt: skip
        with T.Kernel(blocks) as block:
            a = T.alloc_shared((32, 64), "bfloat16")
            b = T.alloc_shared((64, 32), "bfloat16")
            c = T.alloc_fragment((32, 32), "float32")
            for w in T.serial(turns):
                tile = blocks * w + block
                bx = (tile // group) % rows
                by = (tile % group) + (tile // group) // rows * group
                if bx * 32 < rows * 32 and by * 32 < columns * 32:
                    T.clear(c)
                    T.copy(A[bx * 32, 0], a)
                    T.copy(B[0, by * 32], b)
                    T.gemm(a, b, c)
                    T.copy(c, C[bx * 32, by * 32])

    return kernel


BRANCHES = [
    Case("branch_odd_turns", lambda: skipped(lambda bx, k: (bx + k) % 2 == 0)),
    Case("branch_large_sum", lambda: skipped(lambda bx, k: k <= bx, 128), {}, on_chip=False),
    Case("branch_any_of", lambda: skipped(lambda bx, k: (bx == 1) | (k > 2), dtype="float32"), {}, on_chip=False),
    Case("branch_before_the_product", lambda: last_products(lambda bx, k: (bx > 0) & (k >= bx))),
    Case("branch_three_tensors", lambda: chosen_source(lambda bx: bx % 3 == 0, lambda bx: bx < 3)),
    Case("branch_both_sides", lambda: ways(lambda bx: bx % 2 == 1)),
    Case("branch_waves", lambda: waves(3, 5, 4)),
]  # fmt: skip
