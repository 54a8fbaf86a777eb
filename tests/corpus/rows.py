# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
"""Row-major tensors: a page is a row, and a tail of one is no whole run."""

from __future__ import annotations

from typing import Any

import ttexplore.language as T
from tests.corpus.case import Case
from tests.corpus.spine import gemm

ROWS = {"page": "row"}


def total(shape: tuple[int, Any], block: tuple[int, int], dtype: str) -> Any:
    """A sum, block by block; the last ones of rows and columns are not full. The width may be a T.dynamic size."""
    (height, width), (rows, columns) = shape, block

    @T.prim_func
    def total(A: T.Tensor(shape, dtype), B: T.Tensor(shape, dtype), C: T.Tensor(shape, dtype)):
        with T.Kernel(T.ceildiv(width, columns), T.ceildiv(height, rows)) as (bx, by):
            a = T.alloc_shared(block, dtype)
            b = T.alloc_shared(block, dtype)
            c = T.alloc_shared(block, dtype)
            T.copy(A[by * rows, bx * columns], a)
            T.copy(B[by * rows, bx * columns], b)
            for i, j in T.Parallel(*block):
                c[i, j] = a[i, j] + b[i, j]
            T.copy(c, C[by * rows, bx * columns])

    return total


def scaled(shape: tuple[int, int], block: tuple[int, int], dtype: str, out: str) -> Any:
    """Twice a block, and the block itself: its rows are also copied as they are."""
    (height, width), (rows, columns) = shape, block

    @T.prim_func
    def scaled(A: T.Tensor(shape, dtype), B: T.Tensor(shape, out), C: T.Tensor(shape, dtype)):
        with T.Kernel(T.ceildiv(width, columns), T.ceildiv(height, rows)) as (bx, by):
            a = T.alloc_shared(block, dtype)
            copied = T.alloc_shared(block, dtype)
            b = T.alloc_fragment(block, out)
            T.copy(A[by * rows, bx * columns], a)
            for i, j in T.Parallel(*block):
                b[i, j] = T.cast(a[i, j], out) * 2.0
            T.copy(b, B[by * rows, bx * columns])
            T.copy(A[by * rows, bx * columns], copied)
            T.copy(copied, C[by * rows, bx * columns])

    return scaled


def planes(dtype: str = "int32") -> Any:
    """Each row of a block is a row of another matrix; the blocks of a vector are read as well."""

    @T.prim_func
    def planes(A: T.Tensor((3, 5, 39), dtype), V: T.Tensor((39,), dtype), B: T.Tensor((3, 5, 39), dtype)):
        with T.Kernel(5) as i:
            a = T.alloc_shared((3, 39), dtype)
            v = T.alloc_shared((39,), dtype)
            T.copy(A[0:3, i, 0:39], a)
            T.copy(V, v)
            for r, c in T.Parallel(3, 39):
                a[r, c] = a[r, c] - v[c]
            T.copy(a, B[0:3, i, 0:39])

    return planes


ROW_MAJOR: tuple[Case, ...] = (
    Case("rows_sum", lambda: total((33, 50), (32, 32), "float32"), {"layouts": {"A": ROWS, "C": ROWS}}),
    Case("rows_of_planes", planes, {"layouts": dict.fromkeys("AVB", ROWS)}, on_chip=False),
    Case("rows_product", lambda: gemm(64, 96, 64, 32, 32, 32), {"layouts": {"C": ROWS}}, on_chip=False),
    Case(
        "rows_through_tilize", lambda: total((70, 150), (32, 160), "bfloat16"), {"layouts": dict.fromkeys("ABC", ROWS)}
    ),
    Case(
        "rows_of_operands", lambda: gemm(64, 96, 128, 64, 96, 64, tb=True, relu=True, bias=True),
        {"layouts": dict.fromkeys("ABVC", ROWS)},
    ),
    Case(
        "rows_of_half_planes", lambda: planes("float16"), {"layouts": dict.fromkeys("AVB", ROWS)}, on_chip=False
    ),
    Case(
        "rows_copied", lambda: scaled((40, 144), (8, 144), "bfloat16", "float32"),
        {"layouts": dict.fromkeys("ABC", ROWS)}, on_chip=False,
    ),
    Case(
        "rows_to_tiles", lambda: scaled((40, 70), (40, 32), "bfloat16", "bfloat16"),
        {"layouts": {"A": ROWS, "B": ROWS}}, on_chip=False,
    ),
    Case(
        "tiles_to_rows", lambda: scaled((40, 70), (40, 32), "bfloat16", "bfloat16"), {"layouts": {"C": ROWS}},
        on_chip=False,
    ),
    Case(
        "rows_in_runs", lambda: total((33, 50), (32, 32), "bfloat16"),
        {"layouts": {"C": {"page": "row", "through": "runs"}}}, on_chip=False,
    ),
)  # fmt: skip
