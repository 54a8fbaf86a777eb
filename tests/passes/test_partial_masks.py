"""Masks run only for the blocks that they change, and change them as NumPy says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T

COUNT = 192


def masked(rows: int, columns: int, kind: str) -> Any:
    """B[r] sums the elements of the row that a mask leaves as they are, and -2 for each of the others. E is the unit
    matrix, so that the product is A."""
    blocks = COUNT // columns

    @T.macro
    def mask(a: Any, at: Any, first: Any):
        if kind == "causal":
            for i, j in T.Parallel(rows, columns):
                a[i, j] = T.if_then_else(at + i >= first + j, a[i, j], -2)
        elif kind == "later":
            for i, j in T.Parallel(rows, columns):
                a[i, j] = T.if_then_else(first + j > at + i, -2, a[i, j])
        elif kind == "window":
            for i, j in T.Parallel(rows, columns):
                a[i, j] = T.if_then_else((at + i >= first + j) & (at + i < first + j + 50), a[i, j], -2)
        elif kind == "twice":
            for i, j in T.Parallel(rows, columns):
                a[i, j] = T.if_then_else(2 * (at + i) - 3 * (first + j) <= 7, a[i, j], -2)
        elif kind == "backwards":
            for i, j in T.Parallel(rows, columns):
                if at + (rows - 1 - i) < first + j:
                    a[i, j] = -2
        elif kind == "one diagonal":
            for i, j in T.Parallel(rows, columns):
                a[i, j] = T.if_then_else(at + i == first + j, a[i, j], -2)
        else:
            for i, j in T.Parallel(rows, columns):
                a[i, j] = T.if_then_else(at + i >= first + j, a[i, j] * 2, -2)

    @T.prim_func
    def main(
        A: T.Tensor((COUNT, COUNT), "bfloat16"), E: T.Tensor((columns, columns), "bfloat16"),
        B: T.Tensor((COUNT, columns), "float32"),
    ):  # fmt: skip
        with T.Kernel(COUNT // rows) as bx:
            part = T.alloc_shared((rows, columns), "bfloat16")
            e = T.alloc_shared((columns, columns), "bfloat16")
            a = T.alloc_fragment((rows, columns), "float32")
            total = T.alloc_fragment((rows, columns), "float32")
            T.clear(total)
            T.copy(E, e)
            for k in T.serial(blocks):
                T.copy(A[bx * rows, k * columns], part)
                T.clear(a)
                T.gemm(part, e, a)
                mask(a, bx * rows, k * columns)
                for i, j in T.Parallel(rows, columns):
                    total[i, j] = total[i, j] + a[i, j]
            T.copy(total, B[bx * rows, 0])

    return main


def expected(A: Any, columns: int, kind: str, rows: int) -> Any:
    row, column = np.indices((COUNT, COUNT))
    reversed_row = row // rows * rows + (rows - 1 - row % rows)
    left = {
        "causal": row >= column, "later": column <= row, "window": (row >= column) & (row < column + 50),
        "twice": 2 * row - 3 * column <= 7, "backwards": reversed_row >= column, "one diagonal": row == column,
        "doubled": row >= column,
    }[kind]  # fmt: skip
    values = np.where(left, A * 2 if kind == "doubled" else A, -2)
    return values.reshape(COUNT, COUNT // columns, columns).sum(axis=1)


@pytest.mark.parametrize(
    ("rows", "columns", "kind", "branches"),
    [
        (64, 64, "causal", 1), (64, 32, "causal", 1), (32, 96, "later", 1), (64, 64, "window", 1), (32, 64, "twice", 1),
        (64, 64, "backwards", 1), (64, 64, "one diagonal", 0), (64, 64, "doubled", 0), (32, 32, "causal", 0),
    ],
)  # fmt: skip
def test_only_blocks_that_a_mask_changes_are_masked(rows: int, columns: int, kind: str, branches: int) -> None:
    ex = ttx.explore(masked(rows, columns, kind), options={"cores": (2, 1)})
    assert ex.error is None, str(ex.error)
    assert sum(" if (" in line and "bx" in line for line in str(ex.code["compute"]).splitlines()) == branches
    A = np.random.default_rng(rows + columns).integers(-3, 4, (COUNT, COUNT)).astype(np.float32)
    run = ex.run(inputs=[A, np.eye(columns, dtype=np.float32)])
    assert np.array_equal(run.outputs[0], expected(A, columns, kind, rows))
    assert ex.check()


def test_a_mask_costs_only_where_it_changes_something() -> None:
    """Causal attention has masks on the diagonal only, and so takes little more than its share of full attention."""
    arguments: dict[str, Any] = {"heads": 1, "seq_len": 512, "block_M": 64, "block_N": 64}
    causal = ttx.explore("notebooks/gallery/attention.py::causal_attention", options={"cores": (1, 1)}, **arguments)
    full = ttx.explore("notebooks/gallery/attention.py::full_attention", options={"cores": (1, 1)}, **arguments)
    # 36 blocks instead of 64, of which eight have a mask; with 36 masks it would take 0.72 times as long.
    assert causal.estimate().us < 0.65 * full.estimate().us


def test_a_mask_outside_of_loops_has_no_branch() -> None:
    @T.prim_func
    def main(
        A: T.Tensor((256, 64), "bfloat16"), E: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((256, 64), "float32")
    ):  # fmt: skip
        with T.Kernel(4) as bx:
            a = T.alloc_shared((64, 64), "bfloat16")
            e = T.alloc_shared((64, 64), "bfloat16")
            p = T.alloc_fragment((64, 64), "float32")
            T.copy(A[bx * 64, 0], a)
            T.copy(E, e)
            T.clear(p)
            T.gemm(a, e, p)
            for i, j in T.Parallel(64, 64):
                p[i, j] = T.if_then_else(bx * 64 + i >= j + 80, p[i, j], 0)
            T.copy(p, B[bx * 64, 0])

    ex = ttx.explore(main)
    assert "if (b" not in str(ex.code["compute"])
    A = np.random.default_rng(3).integers(1, 9, (256, 64)).astype(np.float32)
    row, column = np.indices(A.shape)
    run = ex.run(inputs=[A, np.eye(64, dtype=np.float32)])
    assert np.array_equal(run.outputs[0], np.where(row >= column + 80, A, 0))
