# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false
"""Loops whose length a block decides, some of which make no turn, and what they leave behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ttexplore.language as T
from tests.corpus.case import Case

Length = Callable[[Any], Any]


def triangle(
    turns: tuple[Length, Length], columns: int = 64, *, first: float = 0.0, anew: bool = False, factor: bool = False,
    after: bool = False,
) -> Any:  # fmt: skip
    """The sum over a block's own turns of A[block, k] @ B[k], with the factor computed in the loop, the sum begun anew
    in each turn, and the result changed after the loop, as asked for."""
    start, end = turns

    @T.prim_func
    def kernel(
        A: T.Tensor((192, 192), "bfloat16"), B: T.Tensor((192, columns), "bfloat16"),
        C: T.Tensor((192, columns), "float32"),
    ):  # fmt: skip
        with T.Kernel(3) as bx:
            a = T.alloc_shared((64, 64), "bfloat16")
            b = T.alloc_shared((64, columns), "bfloat16")
            c = T.alloc_fragment((64, columns), "float32")
            d = T.alloc_fragment((64, 64), "bfloat16")
            T.fill(c, first)
            for k in T.serial(start(bx), end(bx)):
                if anew:
                    T.clear(c)
                T.copy(A[bx * 64, k * 64], a)
                T.copy(B[k * 64, 0], b)
                if factor:
                    for i, j in T.Parallel(64, 64):
                        d[i, j] = a[i, j] * 0.5
                    T.gemm(d, b, c)
                else:
                    T.gemm(a, b, c)
            if after:
                for i, j in T.Parallel(64, columns):
                    c[i, j] = c[i, j] * 2.0 + 1.0
            T.copy(c, C[bx * 64, 0])

    return kernel


def last_load(length: Length, columns: int = 64, *, changed: bool = False, first: float | None = None) -> Any:
    """The last of several loads, stored as it is or changed."""

    @T.prim_func
    def kernel(A: T.Tensor((96, columns), "float32"), C: T.Tensor((96, columns), "float32")):
        with T.Kernel(3) as bx:
            a = T.alloc_shared((32, columns), "float32")
            c = T.alloc_fragment((32, columns), "float32")
            if first is not None:
                T.fill(a, first)
            for k in T.serial(length(bx)):
                T.copy(A[k * 32, 0], a)
            if changed:
                for i, j in T.Parallel(32, columns):
                    c[i, j] = a[i, j] * 2.0
                T.copy(c, C[bx * 32, 0])
            else:
                T.copy(a, C[bx * 32, 0])

    return kernel


def stored_in_turns() -> Any:
    """One load, stored several times in loops of their own."""

    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float32"), C: T.Tensor((128, 64), "float32")):
        with T.Kernel(2) as bx:
            a = T.alloc_shared((32, 64), "float32")
            T.copy(A[bx * 32, 0], a)
            for k in T.serial(bx):
                T.copy(a, C[bx * 64 + k * 32, 0])
            for k in T.serial(2 - bx):
                T.copy(a, C[bx * 96 + k * 32, 0])

    return kernel


def turns_in_turns(columns: int = 64) -> Any:
    """Loops of any length in each other: what the inner one leaves in its last turn is read in turns in which it makes
    none, and after all of them."""

    @T.prim_func
    def kernel(A: T.Tensor((128, columns), "float32"), C: T.Tensor((128, columns), "float32")):
        with T.Kernel(4) as bx:
            a = T.alloc_shared((32, columns), "float32")
            m = T.alloc_fragment((32, columns), "float32")
            c = T.alloc_fragment((32, columns), "float32")
            T.fill(m, -1.0)
            T.clear(c)
            for q in T.serial(bx):
                for k in T.serial(q):
                    T.copy(A[k * 32, 0], a)
                    for i, j in T.Parallel(32, columns):
                        m[i, j] = a[i, j] + 1.0
                for i, j in T.Parallel(32, columns):
                    c[i, j] = c[i, j] + m[i, j]
            for i, j in T.Parallel(32, columns):
                c[i, j] = c[i, j] * 2.0 + m[i, j]
            T.copy(c, C[bx * 32, 0])

    return kernel


def window(length: tuple[Length, Length]) -> Any:
    """The last block of a window whose ends are minima, maxima, choices and bits of the block index."""
    start, end = length

    @T.prim_func
    def kernel(A: T.Tensor((160, 64), "float32"), C: T.Tensor((128, 64), "float32")):
        with T.Kernel(4) as bx:
            a = T.alloc_shared((32, 64), "float32")
            for k in T.serial(start(bx), end(bx)):
                T.copy(A[k * 32, 0], a)
            T.copy(a, C[bx * 32, 0])

    return kernel


def cleared_by_product(
    condition: Callable[[Any, Any], Any],
    turns: tuple[Length, Length],
    columns: int = 64,
    *,
    filled: bool = False,
    stored: bool = True,
) -> Any:
    """Products that clear their sum where a condition on the turn and the block holds, stored after all turns or after
    each."""
    start, end = turns

    @T.prim_func
    def kernel(
        A: T.Tensor((192, 192), "bfloat16"), B: T.Tensor((192, columns), "bfloat16"),
        C: T.Tensor((192, columns), "float32"),
    ):  # fmt: skip
        with T.Kernel(3) as bx:
            a = T.alloc_shared((64, 64), "bfloat16")
            b = T.alloc_shared((64, columns), "bfloat16")
            c = T.alloc_fragment((64, columns), "float32")
            if filled:
                T.fill(c, 7.0)
            for k in T.Pipelined(start(bx), end(bx), num_stages=2):
                T.copy(A[bx * 64, k * 64], a)
                T.copy(B[k * 64, 0], b)
                T.gemm(a, b, c, clear_accum=condition(k, bx))
                if not stored:
                    T.copy(c, C[bx * 64, 0])
            if stored:
                T.copy(c, C[bx * 64, 0])

    return kernel


def turned_loops() -> Any:
    """T.Parallel nests whose loops are not in the order of the axes; a square block is read across, too."""

    @T.prim_func
    def kernel(
        A: T.Tensor((64, 32), "float32"), V: T.Tensor((32,), "float32"), C: T.Tensor((64, 32), "float32"),
        D: T.Tensor((64, 64), "float32"), E: T.Tensor((64, 64), "float32"),
    ):  # fmt: skip
        with T.Kernel(1) as bx:
            a = T.alloc_shared((64, 32), "float32")
            v = T.alloc_shared((32,), "float32")
            c = T.alloc_fragment((64, 32), "float32")
            d = T.alloc_shared((64, 64), "float32")
            e = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            T.copy(V, v)
            T.copy(D, d)
            for n, m in T.Parallel(32, 64):
                x = a[m, n] + v[n]
                c[m, n] = T.if_then_else(n > m, x, 0.0)
            for j, i in T.Parallel(64, 64):
                e[i, j] = d[j, i] * 2.0 + d[i, j]
            T.copy(c, C)
            T.copy(e, E)

    return kernel


UP_TO = (lambda bx: 0, lambda bx: bx)
UP_TO_AND_WITH = (lambda bx: 0, lambda bx: bx + 1)
FROM = (lambda bx: bx, lambda bx: 3)

TURNS = (
    Case("turns_none", lambda: triangle(UP_TO), {"cores": (1, 1)}),
    Case("turns_none_factor", lambda: triangle(UP_TO, factor=True, after=True), on_chip=False),
    Case("turns_none_reload", lambda: triangle(UP_TO, 256, after=True), {"cores": (1, 1)}),
    Case("turns_none_anew", lambda: triangle(UP_TO, 256, first=3.0, anew=True, after=True), on_chip=False),
    Case("turns_causal_factor", lambda: triangle(UP_TO_AND_WITH, factor=True, after=True)),
    Case("turns_causal_anew", lambda: triangle(UP_TO_AND_WITH, first=3.0, anew=True), on_chip=False),
    Case("turns_causal_l1", lambda: triangle(UP_TO_AND_WITH, 256, after=True), {"accumulate": "l1"}, on_chip=False),
    Case("turns_from", lambda: triangle(FROM, 256, factor=True, after=True), {"cores": (1, 1)}),
    Case("turns_last_load", lambda: last_load(lambda bx: 3)),
    Case("turns_last_load_none", lambda: last_load(lambda bx: bx, 256, changed=True, first=7.0), on_chip=False),
    Case("turns_of_window", lambda: window((lambda bx: T.max(bx - 2, 0), lambda bx: bx + 1)), {"cores": (1, 1)}),
    Case("turns_chosen", lambda: window((lambda bx: 0, lambda bx: T.if_then_else(bx > 1, 3, 1))), on_chip=False),
    Case("turns_clear", lambda: cleared_by_product(lambda k, bx: k == 0, UP_TO_AND_WITH, 256), {"cores": (1, 1)}),
    Case("turns_clear_some", lambda: cleared_by_product(lambda k, bx: k == bx, UP_TO_AND_WITH, 256, filled=True)),
    Case("turned_loops", turned_loops),
    Case("turns_stored", stored_in_turns, {"cores": (1, 1)}),
    Case("turns_in_turns", turns_in_turns, {"cores": (1, 1)}),
    Case("turns_in_turns_wide", lambda: turns_in_turns(256), on_chip=False),
)
