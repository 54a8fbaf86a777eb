# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
"""T.Parallel nests that conditions of Python leave empty, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from ttexplore.errors import KernelError
from ttexplore.ir.dataflow import is_parallel
from ttexplore.ir.rewrite import walk


def kernel(asked: str) -> Any:
    """Only one of its nests does something."""

    @T.prim_func
    def nests(A: T.Tensor((64, 40), "float32"), C: T.Tensor((64, 40), "float32")):
        with T.Kernel(2) as bx:
            a = T.alloc_shared((32, 40), "float32")
            T.copy(A[bx * 32, 0], a)
            for i, j in T.Parallel(32, 40):
                if asked == "whole":
                    a[i, j] = a[i, j] + 1
            for k in range(3):
                for i in T.Parallel(32):
                    for j in T.Parallel(40):
                        if asked == "in a loop":
                            a[i, j] = a[i, j] + k
            if bx > 0:
                for i, j in T.Parallel(32, 40):
                    if asked == "in a branch":
                        a[i, j] = 7
            for i, j in T.Parallel(32, 40):
                if i < bx + 3:
                    for k in range(2):
                        if asked == "around a branch":
                            a[i, j] = a[i, j] * 2 + k
            if asked != "nothing":
                T.copy(a, C[bx * 32, 0])

    return nests


def expected(asked: str, a: Any) -> Any:
    match asked:
        case "whole":
            return a + 1
        case "in a loop":
            return a + 3
        case "in a branch":
            return np.where(np.arange(64)[:, None] < 32, a, 7)
        case "around a branch":
            rows = np.arange(64)[:, None]
            return np.where(rows % 32 < rows // 32 + 3, a * 4 + 1, a)
        case _:
            return a


@pytest.mark.parametrize("asked", ["none", "whole", "in a loop", "in a branch", "around a branch"])
def test_nests_that_do_nothing_are_left_out(asked: str) -> None:
    exploration = ttx.explore(kernel(asked))
    assert exploration.error is None, str(exploration.error)
    a = (np.arange(64 * 40).reshape(64, 40) % 61 - 30).astype(np.float32)
    check = exploration.check([a])
    assert check, str(check)
    made = exploration.run([a])
    assert made.passed, made.message
    np.testing.assert_array_equal(made.outputs[0], expected(asked, a))
    nests = [one for one in walk(exploration._lowered.steps[0].after.kernel.body) if is_parallel(one)]
    assert bool(nests) == (asked != "none")


def test_nothing_is_left() -> None:
    error = ttx.explore(kernel("nothing")).error
    assert isinstance(error, KernelError)
    assert error.message == "the kernel writes no tensor"
