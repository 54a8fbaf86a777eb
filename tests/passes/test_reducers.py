# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false
"""Reducers and elements on the chip that several turns update, against NumPy, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus.reducers import extremes, gemv, shared_elements
from ttexplore.errors import KernelError, Unsupported


def run(kernel: Any, *arrays: Any) -> tuple[Any, ...]:
    """The emulator's outputs; every step of the lowering is right."""
    exploration = ttx.explore(kernel)
    assert exploration.error is None, str(exploration.error)
    check = exploration.check([*arrays])
    assert check, str(check)
    made = exploration.run([*arrays])
    assert made.passed, made.message
    return made.outputs


def normal(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def test_rows_are_added_up_over_turns_and_loops() -> None:
    a, x = normal(80, 140), normal(140)
    (found,) = run(gemv(40, 70, 2, "float32"), a, x)
    np.testing.assert_allclose(found, a.astype(np.float64) @ x, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("op", ["max", "min"])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_extremes_of_columns_and_of_a_block(op: str, dtype: str) -> None:
    """Of numbers on either side of what the reducer starts with."""
    a = (normal(66, 50) * 100 - 20 * (op == "max") - 500).astype(dtype)
    columns, everything = run(extremes(op, 33, 50, dtype), a)
    blocks, rows = a.reshape(2, 33, 50), np.arange(33)[:, None]
    changed = np.where(rows > np.arange(50), blocks, blocks + blocks)
    extreme = {"max": np.max, "min": np.min}[op]
    np.testing.assert_array_equal(columns, extreme(changed, 1))
    np.testing.assert_array_equal(everything, {"max": np.maximum, "min": np.minimum}[op](extreme(blocks, (1, 2)), 1))


def test_turns_share_an_element_on_the_chip() -> None:
    a = normal(2, 70)
    (found,) = run(shared_elements(70), a)
    np.testing.assert_allclose(found, a + 1 + a.sum(1, keepdims=True), rtol=1e-5, atol=1e-5)


def refused(what: str) -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((32, 32), "float32"), Out: T.Tensor((32,), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((32, 32), "float32")
            s = T.alloc_fragment((32,), "float32")
            r = T.alloc_reducer((32,), "float32", "max" if what == "other" else "sum")
            T.copy(A, a)
            T.clear(r)
            if what == "part":
                for i, j in T.Parallel(16, 32):
                    r[i + 16] += a[i, j]
            elif what == "three":
                for i, j, k in T.Parallel(32, 8, 4):
                    r[i] += a[i, j * 4 + k]
            elif what == "other":
                for i, j in T.Parallel(32, 32):
                    r[i] += a[i, j]
            elif what == "early":
                for i, j in T.Parallel(32, 32):
                    r[i] += a[i, j]
                    s[i] = r[i]
            elif what == "plain":
                T.reducer_update(s[0], a[0, 0])
            elif what == "finish":
                T.finalize_reducer(s)
            elif what == "op":
                T.alloc_reducer((32,), "float32", "bitxor")
            T.copy(r, Out)

    return kernel


def lowered(what: str) -> None:
    error = ttx.explore(refused(what)).error
    if error is not None:
        raise error


@pytest.mark.parametrize(
    ("what", "kind", "message"),
    [
        ("part", Unsupported, "is updated by all turns of j"),
        ("three", Unsupported, "r[i], of the shape (32,), is updated by all turns of j"),
        ("other", Unsupported, "each turn of j stores to the same element"),
        ("early", KernelError, "r is read in the T.Parallel whose turns update it"),
        ("plain", KernelError, "T.reducer_update takes a reducer, not"),
        ("finish", KernelError, "T.finalize_reducer takes a reducer, not s"),
        ("op", Unsupported, "T.alloc_reducer with op='bitxor' is not lowered"),
    ],
)
def test_reducers_that_are_not_lowered(what: str, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as error:
        lowered(what)
    assert message in str(error.value)
