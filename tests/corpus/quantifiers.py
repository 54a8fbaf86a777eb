# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false
"""Reductions of bits, and whether any or all elements of a block are true."""

from __future__ import annotations

from typing import Any

import ttexplore.language as T
from tests.corpus.case import Case


def joined_bits(
    kind: str, shape: tuple[int, ...], dim: int, dtype: str = "int32", out: str = "int32", *, keeps: bool = False
) -> Any:
    """The bits of a block joined along one axis, and with those of another block if `keeps`."""
    left = [length for axis, length in enumerate(shape) if axis != dim] or [1]
    first, start = [0] * len(shape), [0] * len(left)

    @T.prim_func
    def kernel(A: T.Tensor((2, *shape), dtype), S: T.Tensor((2, *left), out), Out: T.Tensor((2, *left), out)):
        with T.Kernel(2) as bx:
            a = T.alloc_shared(shape, dtype)
            r = T.alloc_fragment(left, out)
            T.copy(A[(bx, *first)], a)
            T.copy(S[(bx, *start)], r)
            getattr(T, f"reduce_{kind}")(a, r, dim=dim, clear=not keeps)
            T.copy(r, Out[(bx, *start)])

    return kernel


def sparse_sum(name: str, length: int, dtype: str = "bool", *, from_tensor: bool = False) -> Any:
    """The sum of the blocks whose mask has a true element, or only true ones; the first element of a mask is not
    asked."""
    holds = getattr(T, name)

    @T.prim_func
    def kernel(
        A: T.Tensor((4, 32, 32), "float32"), Mask: T.Tensor((2, 4, length + 1), dtype),
        Out: T.Tensor((2, 32, 32), "float32"),
    ):  # fmt: skip
        with T.Kernel(2) as bx:
            a, o = T.alloc_shared((32, 32), "float32"), T.alloc_fragment((32, 32), "float32")
            mask = T.alloc_shared((length + 1,), dtype)
            T.clear(o)
            for k in range(4):
                T.copy(Mask[bx, k, 0], mask)
                if holds(Mask[bx, k, 1:] if from_tensor else mask[1:]):
                    T.copy(A[k, 0, 0], a)
                    for i, j in T.Parallel(32, 32):
                        o[i, j] = o[i, j] + a[i, j]
            T.copy(o, Out[bx, 0, 0])

    return kernel


QUANTIFIERS: tuple[Case, ...] = (
    Case("bits_and_rows", lambda: joined_bits("bitand", (5, 40), 1, keeps=True), on_chip=False),
    Case("bits_or_columns", lambda: joined_bits("bitor", (40, 5), 0, "int8", "int8"), on_chip=False),
    Case("bits_xor_deep", lambda: joined_bits("bitxor", (2, 4, 33), 1, "uint8", "int32"), on_chip=False),
    Case("bits_of_bools", lambda: joined_bits("bitxor", (40, 9), 1, "bool", "bool", keeps=True), on_chip=False),
    Case("any_of_few", lambda: sparse_sum("any_of", 3)),
    Case("all_of_tensor", lambda: sparse_sum("all_of", 12, "int32", from_tensor=True), on_chip=False),
)
