# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
"""Scalar variables that places of blocks and lengths depend on."""

from __future__ import annotations

from typing import Any

import ttexplore.language as T
from tests.corpus.case import Case


def searched(count: int = 3) -> Any:
    """A product for each group of rows, which each block looks up; groups are padded to whole blocks."""

    @T.prim_func
    def kernel(
        A: T.Tensor((96, 64), "bfloat16"), B: T.Tensor((count, 64, 64), "bfloat16"), Sizes: T.Tensor((count,), "int32"),
        Starts: T.Tensor((count,), "int32"), Padded: T.Tensor((count,), "int32"), C: T.Tensor((96, 64), "bfloat16"),
    ):  # fmt: skip
        with T.Kernel(6) as bx:
            a = T.alloc_shared((32, 64), "bfloat16")
            b = T.alloc_shared((64, 64), "bfloat16")
            c = T.alloc_fragment((32, 64), "float32")
            group = T.alloc_var("int32")
            size = T.alloc_var("int32")
            group = 0
            for i in range(count):
                group = T.if_then_else(bx * 32 >= Padded[i], i, group)
            size = Sizes[group]
            start = bx * 32 - Padded[group] + Starts[group]
            rows = T.max(0, T.min(32, size + Padded[group] - bx * 32))
            T.copy(A[start, 0], a)
            T.copy(B[group, 0, 0], b)
            T.clear(c)
            T.gemm(a, b, c)
            for i, j in T.Parallel(32, 64):
                if i < rows:
                    C[start + i, j] = c[i, j]

    return kernel


def summed_before(columns: int = 64) -> Any:
    """Rows from where those of all groups before end; each group has a block, the rest of which is 0."""

    @T.prim_func
    def kernel(
        A: T.Tensor((96, columns), "float32"), Sizes: T.Tensor((3,), "int32"),
        C: T.Tensor((3, 32, columns), "float32"),
    ):  # fmt: skip
        with T.Kernel(3) as bx:
            a = T.alloc_shared((32, columns), "float32")
            c = T.alloc_fragment((32, columns), "float32")
            start = T.alloc_var("int32")
            start = 0
            for i in T.serial(bx):
                if Sizes[i] > 0:
                    start += Sizes[i]
            T.copy(A[start, 0], a)
            for i, j in T.Parallel(32, columns):
                c[i, j] = T.if_then_else(i < Sizes[bx], a[i, j], 0.0)
            T.copy(c, C[bx, 0, 0])

    return kernel


def gathered_rows(dtype: str = "float32", rows: int = 32, columns: int = 64) -> Any:
    """Rows that an index tensor chooses, with a name for the index."""

    @T.prim_func
    def kernel(
        A: T.Tensor((48, 2, columns), dtype), Index: T.Tensor((2, 2 * rows), "int32"),
        C: T.Tensor((2, 2 * rows, columns), dtype),
    ):  # fmt: skip
        with T.Kernel(2) as bx:
            a = T.alloc_shared((rows, columns), dtype)
            for k in T.Pipelined(2, num_stages=2):
                for i, j in T.Parallel(rows, columns):
                    row = Index[bx, k * rows + i]
                    a[i, j] = A[row, bx, j]
                for i, j in T.Parallel(rows, columns):
                    C[bx, k * rows + i, j] = a[i, j] * 2

    return kernel


DECIDING_VARIABLES = [
    Case("variables_summed_before", summed_before, on_chip=False),
    Case("variables_summed_before_few", lambda: summed_before(32)),
    Case("gathered_rows", gathered_rows, on_chip=False),
    # A simulated chip takes its time for each row.
    Case("gathered_rows_few", lambda: gathered_rows(rows=4, columns=32)),
]
