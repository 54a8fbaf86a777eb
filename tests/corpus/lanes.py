# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false
"""Loops of T.Parallel that count together through one axis, as the lanes of a vector do."""

from __future__ import annotations

from typing import Any

import ttexplore.language as T
from tests.corpus.case import Case


def lanes(width: int) -> Any:
    """Elements read and stored by lanes, under a condition, with a name, and with a start; and tensors added to."""

    @T.prim_func
    def kernel(
        A: T.Tensor((4, 32, 64), "float32"), Out: T.Tensor((32, 256), "float32"), Sum: T.Tensor((32, 64), "float32")
    ):
        with T.Kernel(4) as bx:
            a = T.alloc_shared((32, 64), "float32")
            b = T.alloc_fragment((32, 64), "float32")
            T.copy(A[bx, 0, 0], a)
            for i, j in T.Parallel(32, 64 // width):
                for v in T.vectorized(width):
                    x = a[i, j * width + v] * 2.0
                    if j * width + v > i:
                        b[i, j * width + v] = x + A[bx, i, v + j * width]
                    else:
                        b[i, j * width + v] = x
            for i, j, v in T.Parallel(32, 64 // width, width):
                Out[i, bx * 64 + j * width + v] = b[i, j * width + v]
            for i, j in T.Parallel(32, 64 // width):
                getattr(T, f"atomic_addx{width}")(Sum[i, j * width], b[i, j * width])

    return kernel


LANES: tuple[Case, ...] = (Case("lanes", lambda: lanes(4)), Case("lanes_of_two", lambda: lanes(2), on_chip=False))
