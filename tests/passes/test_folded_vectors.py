# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
"""Vectors that hold matrices row by row, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from ttexplore.ir.build import shape_of
from ttexplore.ir.rewrite import walk


def joined(rows: int, columns: int, kind: str, clear: bool, named: bool) -> Any:
    """Products of two matrices, element by element, in a vector, and what they join to."""
    length = rows * columns
    reduce = getattr(T, f"reduce_{kind}")

    @T.prim_func
    def kernel(
        A: T.Tensor((2 * rows, columns), "float32"), B: T.Tensor((2 * rows, columns), "float32"),
        Out: T.Tensor((2,), "float32"),
    ):  # fmt: skip
        with T.Kernel(2) as bx:
            a, b = T.alloc_shared((rows, columns), "float32"), T.alloc_shared((rows, columns), "float32")
            p = T.alloc_fragment((length,), "float32")
            q = T.alloc_fragment((length,), "float32")
            s = T.alloc_fragment((1,), "float32")
            T.copy(A[bx * rows, 0], a)
            T.copy(B[bx * rows, 0], b)
            T.clear(p)
            T.fill(s, 3.0)
            for v in T.Parallel(length):
                if named:
                    i, j = v // columns, v % columns
                    q[v] = a[i, j] * b[i, j]
                else:
                    q[v] = a[v // columns, v % columns] * b[v // columns, v % columns]
            for v in T.Parallel(length):
                p[v] += q[v] * 2.0
            reduce(p, s, dim=-1, clear=clear)
            T.copy(s, Out[bx])

    return kernel


@pytest.mark.parametrize(("kind", "clear"), [("sum", True), ("sum", False), ("max", False), ("absmax", True)])
@pytest.mark.parametrize(("rows", "columns", "named"), [(32, 64, True), (20, 48, False), (64, 3, True)])
def test_what_a_vector_joins_to(rows: int, columns: int, named: bool, kind: str, clear: bool) -> None:
    exploration = ttx.explore(joined(rows, columns, kind, clear, named))
    assert exploration.error is None, str(exploration.error)
    arrays = exploration.inputs()
    assert (check := exploration.check(arrays)), str(check)
    run = exploration.run(arrays)
    assert run.passed, run.message
    products = 2 * np.prod([np.asarray(array, np.float64).reshape(2, -1) for array in arrays], axis=0)
    start = products[:, :0] if clear else np.full((2, 1), 3.0)
    values = np.concatenate([start, products], axis=1)
    want = {"sum": values.sum, "max": values.max, "absmax": np.abs(values).max}[kind](axis=1)
    np.testing.assert_allclose(run.outputs[0], want, rtol=2e-2, atol=0.3)


def allocated(exploration: Any, step: str) -> dict[str, tuple[int, ...]]:
    body = next(iter(exploration.steps[step].applied.after.functions.values())).body
    return {str(node.buffer.name): shape_of(node.buffer) for node in walk(body) if type(node).__name__ == "AllocBuffer"}


def test_a_vector_takes_the_room_of_its_matrix() -> None:
    """Each of 4,096 elements in a row takes 128 tiles, in 64 rows four."""
    exploration = ttx.explore(joined(64, 64, "sum", True, True))
    before, after = (allocated(exploration, step) for step in ("stage_tensors", "flatten_blocks"))
    assert (before["p"], before["q"]) == ((4096,), (4096,))
    assert (after["p"], after["q"]) == ((64, 64), (64, 64))


def test_vectors_that_are_used_in_other_ways_stay() -> None:
    """One that is stored to a tensor, one of two matrices with other rows, and what is computed beside one of them."""

    @T.prim_func
    def kernel(
        A: T.Tensor((16, 16), "float32"), B: T.Tensor((32, 8), "float32"), Whole: T.Tensor((256,), "float32"),
        Out: T.Tensor((2,), "float32"),
    ):  # fmt: skip
        with T.Kernel(1):
            a, b = T.alloc_shared((16, 16), "float32"), T.alloc_shared((32, 8), "float32")
            p = T.alloc_fragment((256,), "float32")
            q = T.alloc_fragment((256,), "float32")
            r = T.alloc_fragment((256,), "float32")
            s, t = T.alloc_fragment((1,), "float32"), T.alloc_fragment((1,), "float32")
            T.copy(A, a)
            T.copy(B, b)
            for v in T.Parallel(256):
                p[v] = a[v // 16, v % 16] + 1.0
                r[v] = a[v // 16, v % 16] - 1.0
            for v in T.Parallel(256):
                q[v] = a[v // 16, v % 16] * b[v // 8, v % 8]
            T.reduce_sum(q, s, dim=0)
            T.reduce_max(r, t, dim=0)
            T.copy(p, Whole)
            T.copy(s, Out[0])
            T.copy(t, Out[1])

    exploration = ttx.explore(kernel)
    assert exploration.error is None, str(exploration.error)
    after = allocated(exploration, "flatten_blocks")
    assert (after["p"], after["q"], after["r"]) == ((256,),) * 3
    a, b = exploration.inputs()
    run = exploration.run([a, b])
    assert run.passed, run.message
    whole, out = run.outputs
    np.testing.assert_allclose(whole, a.reshape(-1) + 1, rtol=1e-2)
    want = (a.astype(np.float64).reshape(-1) * b.reshape(-1)).sum(), a.max() - 1
    np.testing.assert_allclose(out, want, rtol=2e-2, atol=0.3)
