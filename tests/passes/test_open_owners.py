# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
"""Tensors of sizes known only at run time that a kernel reads and writes, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.said import said
from ttexplore.errors import Unsupported


def in_place(rows: int, columns: str) -> Any:
    """Each block doubles rows of its own, or of its neighbour, too."""
    n, m = T.dynamic("n"), T.dynamic("m")

    @T.prim_func
    def kernel(A: T.Tensor((n, m), "float32")):
        with T.Kernel(T.ceildiv(n, 32), T.ceildiv(m, 64)) as (bx, by):
            a = T.alloc_fragment((32, 64), "float32")
            T.copy(A[bx * rows, by * 64 if columns == "own" else 0], a)
            for i, j in T.Parallel(32, 64):
                a[i, j] = a[i, j] * 2
            T.copy(a, A[bx * rows, by * 64 if columns == "own" else 0])

    return kernel


def scattered() -> Any:
    n = T.dynamic("n")

    @T.prim_func
    def kernel(A: T.Tensor((n, 64), "float32"), N: T.Tensor((n,), "int32"), C: T.Tensor((n, 64), "float32")):
        with T.Kernel(T.ceildiv(n, 32)) as bx:
            a = T.alloc_fragment((32, 64), "float32")
            T.copy(A[bx * 32, 0], a)
            for i, j in T.Parallel(32, 64):
                if bx * 32 + i < n:
                    T.atomic_add(C[N[bx * 32 + i], j], a[i, j])

    return kernel


@pytest.mark.parametrize("n", [70, 128])
def test_blocks_that_share_no_elements_keep_their_cores(n: int) -> None:
    exploration = ttx.explore(in_place(32, "own"), sizes={"n": 100, "m": 130})
    assert exploration.error is None, str(exploration.error)
    assert not any("on one core" in note for note in said(exploration.plan))
    a = np.random.default_rng(n).normal(size=(n, 90)).astype(np.float32)
    assert exploration.check([a])
    for backend in ("reference", "interpreter", "emulator"):
        np.testing.assert_array_equal(exploration.run([a], backend=backend).outputs[0], a * 2)


@pytest.mark.parametrize(("rows", "columns", "axis"), [(16, "own", "bx"), (32, "shared", "by")])
def test_blocks_that_may_share_elements_are_refused(rows: int, columns: str, axis: str) -> None:
    error = ttx.explore(in_place(rows, columns), sizes={"n": 100, "m": 130}).error
    assert isinstance(error, Unsupported)
    assert f"blocks that differ in {axis} may use the same elements" in error.message


@pytest.mark.parametrize("n", [40, 96])
def test_updates_that_elements_place_run_on_one_core(n: int) -> None:
    exploration = ttx.explore(scattered(), sizes={"n": 64})
    assert exploration.error is None, str(exploration.error)
    random = np.random.default_rng(n)
    a, c = (random.integers(-8, 9, (n, 64)).astype(np.float32) for _ in range(2))
    index = random.integers(0, 5, n).astype(np.int32)
    result = c.copy()
    np.add.at(result, index, a)
    assert exploration.check([a, index, c])
    for backend in ("reference", "interpreter", "emulator"):
        np.testing.assert_array_equal(exploration.run([a, index, c], backend=backend).outputs[0], result)
