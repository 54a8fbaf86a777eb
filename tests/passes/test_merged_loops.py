# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false
"""Loops that count together through an axis, and additions of neighbouring elements, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus.lanes import lanes
from ttexplore.errors import Unsupported


@pytest.mark.parametrize("width", [2, 4])
def test_lanes_are_columns(width: int) -> None:
    exploration = ttx.explore(lanes(width))
    assert exploration.error is None, str(exploration.error)
    random = np.random.default_rng(width)
    a, before = (random.normal(size=shape).astype(np.float32) for shape in ((4, 32, 64), (32, 64)))
    assert exploration.check([a, before])
    out, total = exploration.run([a, before]).outputs
    want = np.where(np.arange(64) > np.arange(32)[:, None], a * 3, a * 2)
    np.testing.assert_allclose(out, np.concatenate([*want], 1), rtol=1e-6)
    np.testing.assert_allclose(total, before + want.sum(0), rtol=1e-5, atol=1e-5)


def test_lanes_of_rows_that_an_index_tensor_chooses() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float32"), N: T.Tensor((32,), "int32"), Out: T.Tensor((32, 64), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((32, 64), "float32")
            for i, j in T.Parallel(32, 16):
                for v in T.vectorized(4):
                    a[i, j * 4 + v] = A[N[i], j * 4 + v]
            T.copy(a, Out)

    exploration = ttx.explore(kernel)
    assert exploration.error is None, str(exploration.error)
    random = np.random.default_rng(5)
    a, n = random.normal(size=(64, 64)).astype(np.float32), random.integers(0, 64, 32).astype(np.int32)
    assert exploration.check([a, n])
    np.testing.assert_array_equal(exploration.run([a, n]).outputs[0], a[n])


def alone(kind: str) -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((32, 64), "float32"), Out: T.Tensor((32, 64), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((32, 64), "float32")
            T.copy(A, a)
            if kind == "alone":
                for i, j, v in T.Parallel(32, 16, 4):
                    a[i, j * 4 + v] = a[i, j * 4 + v] + v
            elif kind == "factor":
                for i, j, v in T.Parallel(32, 16, 4):
                    a[i, j * 2 + v] = 0
            elif kind == "previous":
                for i, j in T.Parallel(32, 16):
                    T.atomic_addx4(Out[i, j * 4], a[i, j * 4], return_prev=True)
            elif kind == "blocks":
                T.atomic_addx4(Out, a)
            T.copy(a, Out)

    return kernel


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("factor", "at indices other than its loop variables in order"),
        ("previous", "T.atomic_addx4 with return_prev=True is not lowered"),
        ("blocks", "T.atomic_addx4 of anything but two elements is not lowered"),
    ],
)
def test_what_is_not_lowered(kind: str, message: str) -> None:
    """Loops that count through an axis in other steps than theirs stay as they are, which has no block."""
    with pytest.raises(Unsupported, match=message):
        lowered(kind)


def test_variables_that_are_used_apart() -> None:
    exploration = ttx.explore(alone("alone"))
    assert exploration.error is None, str(exploration.error)
    (a,) = given = exploration.inputs()
    assert exploration.check(given)
    (found,) = exploration.run(given).outputs
    np.testing.assert_array_equal(found, a + np.arange(64, dtype=np.float32) % 4)


def lowered(kind: str) -> None:
    error = ttx.explore(alone(kind)).error
    if error is not None:
        raise error
