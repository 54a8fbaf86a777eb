# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
"""Loops of T.Parallel behind the end of the block that they store, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T


@pytest.mark.parametrize("half", [0, 1])
def test_a_condition_keeps_stores_inside_of_a_smaller_block(half: int) -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float32"), B: T.Tensor((32, 32), "float32")):
        with T.Kernel(2) as bx:
            a = T.alloc_fragment((32, 64), "float32")
            b = T.alloc_shared((16, 32), "float32")
            T.copy(A[bx * 32, 0], a)
            for i, j in T.Parallel(32, 64):
                if i < 16 and j < 32:
                    b[i, j] = a[i + half * 16, j]
            T.copy(b, B[bx * 16, 0])

    exploration = ttx.explore(kernel)
    assert exploration.error is None, str(exploration.error)
    a = np.random.default_rng(half).normal(size=(64, 64)).astype(np.float32)
    result = a.reshape(2, 2, 16, 64)[:, half, :, :32].reshape(32, 32)
    assert exploration.check([a])
    for backend in ("reference", "interpreter", "emulator"):
        np.testing.assert_array_equal(exploration.run([a], backend=backend).outputs[0], result)


def test_another_condition_stays() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32, 32), "float32"), B: T.Tensor((16, 32), "float32")):
        with T.Kernel(1):
            a = T.alloc_fragment((32, 32), "float32")
            b = T.alloc_shared((16, 32), "float32")
            T.copy(A, a)
            T.clear(b)
            for i, j in T.Parallel(32, 32):
                if i < 16 and i + j < 30:
                    b[i, j] = a[i + 16, j]
            T.copy(b, B)

    exploration = ttx.explore(kernel)
    assert exploration.error is None, str(exploration.error)
    a = np.random.default_rng(3).normal(size=(32, 32)).astype(np.float32)
    i, j = np.ogrid[:16, :32]
    assert exploration.check([a])
    for backend in ("reference", "interpreter", "emulator"):
        np.testing.assert_array_equal(exploration.run([a], backend=backend).outputs[0], np.where(i + j < 30, a[16:], 0))
