"""Branches between the loops of a T.Parallel nest hold for what the inner loops store."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import ttexplore as ttx
import ttexplore.language as T
from ttexplore.errors import Unsupported

X = np.arange(1.0, 1025.0, dtype=np.float32).reshape(32, 32)


@T.prim_func
def by_row(X: T.Tensor((32, 32), "float32"), Y: T.Tensor((32, 64), "float32")):
    with T.Kernel(1):
        x, y = T.alloc_fragment((32, 32), "float32"), T.alloc_fragment((32, 64), "float32")
        T.copy(X, x)
        T.clear(y)
        for i in T.Parallel(32):
            if x[i, 0] > 300:
                for j in T.Parallel(32):
                    y[i, j] = x[i, j] + 1
        T.copy(y, Y)


@T.prim_func
def by_column(X: T.Tensor((32, 32), "float32"), Y: T.Tensor((32, 64), "float32")):
    with T.Kernel(1):
        x, y = T.alloc_fragment((32, 32), "float32"), T.alloc_fragment((32, 64), "float32")
        T.copy(X, x)
        T.clear(y)
        for i, j in T.Parallel(32, 8):
            if j < 4:
                for k in T.Parallel(8):
                    y[i, j * 8 + k] = x[i, j] + k
        T.copy(y, Y)


@T.prim_func
def by_both(X: T.Tensor((32, 32), "float32"), Y: T.Tensor((32, 64), "float32")):
    with T.Kernel(1):
        x, y = T.alloc_fragment((32, 32), "float32"), T.alloc_fragment((32, 64), "float32")
        T.copy(X, x)
        T.clear(y)
        for i in T.Parallel(32):
            if i > 3:
                for j in T.Parallel(8):
                    if j < 5:
                        for k in T.Parallel(8):
                            y[i, j * 8 + k] = x[i, j] - k
        T.copy(y, Y)


@T.prim_func
def either(X: T.Tensor((32, 32), "float32"), Y: T.Tensor((32, 64), "float32")):
    with T.Kernel(1):
        x, y = T.alloc_fragment((32, 32), "float32"), T.alloc_fragment((32, 64), "float32")
        T.copy(X, x)
        T.clear(y)
        for i in T.Parallel(32):
            if x[i, 0] > 300:
                for j in T.Parallel(32):
                    y[i, j] = x[i, j] + 1
            else:
                for j in T.Parallel(32):
                    y[i, j] = x[i, j] - 1
        T.copy(y, Y)


@T.prim_func
def updates(X: T.Tensor((32, 32), "float32"), Y: T.Tensor((32, 64), "float32")):
    with T.Kernel(1):
        x = T.alloc_fragment((32, 32), "float32")
        T.copy(X, x)
        for i, j in T.Parallel(32, 8):
            if x[i, j] > 100:
                T.atomic_addx4(Y[i, j * 4], x[i, j * 4])


def expected(name: str) -> NDArray[np.float64]:
    """Element by element, as the kernel says."""
    y = np.zeros((32, 64))
    for i in range(32):
        for j in range(32 if name == "by_row" else 8):
            for k in range({"by_row": 1, "updates": 4}.get(name, 8)):
                match name:
                    case "by_row" if X[i, 0] > 300:
                        y[i, j] = X[i, j] + 1
                    case "by_column" if j < 4:
                        y[i, j * 8 + k] = X[i, j] + k
                    case "by_both" if i > 3 and j < 5:
                        y[i, j * 8 + k] = X[i, j] - k
                    case "updates" if X[i, j] > 100:
                        y[i, j * 4 + k] += X[i, j * 4 + k]
                    case _:
                        pass
    return y


KERNELS = {"by_row": by_row, "by_column": by_column, "by_both": by_both, "updates": updates}


@pytest.mark.parametrize("name", KERNELS)
def test_a_branch_holds_for_the_loops_inside_of_it(name: str) -> None:
    exploration = ttx.explore(KERNELS[name])
    inputs = {"X": X, **({"Y": np.zeros((32, 64), np.float32)} if name == "updates" else {})}
    for backend in ("reference", "interpreter", "emulator"):
        result = exploration.run(inputs=inputs, backend=backend)
        assert result.passed, backend
        np.testing.assert_allclose(result.outputs[0], expected(name), rtol=1e-6)
    assert exploration.check()


def test_loops_on_both_sides_of_a_branch_are_refused() -> None:
    with pytest.raises(Unsupported, match=r"a loop inside T\.Parallel is not lowered"):
        ttx.explore(either).run(inputs={"X": X}, backend="emulator")
