"""T.Parallel nests in which an iteration uses what another one stores, and such in which none does, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx

Numbers = np.ndarray[Any, Any]

_HEAD = """
import ttexplore.language as T


@T.prim_func
def kernel(A: T.Tensor((64, 64), "float32"), N: T.Tensor((4,), "int32"), B: T.Tensor((64, 64), "float32")):
    with T.Kernel(1) as by:
        a = T.alloc_shared((64, 64), "float32")
        b = T.alloc_shared((64, 64), "float32")
        T.copy(A, a)
        T.fill(b, 0.0)
"""
_READ, _STORE = "stores to {} and reads it at other elements", "stores to the same elements of {} in several iterations"


def explored(body: str, folder: Path) -> ttx.Exploration:
    file = folder / "kernel.py"
    file.write_text(_HEAD + "".join(f"        {line}\n" for line in (*body.split("\n"), "T.copy(a, B)")))
    return ttx.explore(f"{file}::kernel")


@pytest.mark.parametrize(
    ("body", "line", "message"),
    [
        ("for i, j in T.Parallel(64, 63):\n    a[i, j + 1] = a[i, j]", 1, _READ),
        ("for i, j in T.Parallel(64, 63):\n    a[i, j] = a[i, j] + a[i, j + 1]", 1, _READ),
        ("for i, j in T.Parallel(64, 40):\n    a[i, j] = a[i, j + 24]", 1, _READ),
        ("for i, j in T.Parallel(64, 64):\n    a[i, j] = a[j, i]", 1, _READ),
        ("for i, j in T.Parallel(64, 64):\n    a[i, j] = a[i, (j + 1) % 64]", 1, _READ),
        ("for i, j in T.Parallel(64, 64):\n    a[i, j] = a[i, j] - a[i, 0]", 1, _READ),
        ("for i, j in T.Parallel(64, 63):\n    x = a[i, j + 1]\n    a[i, j] = x * 2.0", 1, _READ),
        ("for i, j in T.Parallel(64, 63):\n    b[i, j] = a[i, j + 1]\n    a[i, j] = 0.0", 1, _READ),
        ("for i, j in T.Parallel(64, 63):\n    if i < 3:\n        a[i, j] = a[i, j + 1]", 2, _READ),
        ("for i, j in T.Parallel(64, 64):\n    a[i, j] = T.if_then_else(j > 0, a[i, j - 1], 0.0)", 1, _READ),
        ("for i, j in T.Parallel(64, 64):\n    if j > 0 and a[i, j - 1] > 0.0:\n        a[i, j] = 0.0", 1, _READ),
        ("for k in range(2):\n    for i, j in T.Parallel(64, 32):\n        a[i, j] = a[i, j + 48 - k * 32]", 2, _READ),
        ("for i, j in T.Parallel(64, 48):\n    for k in range(2):\n        a[i, j] = a[i, j + k * 8]", 2, _READ),
        ("for j in T.Parallel(63):\n    a[3, j] = a[3, j + 1]", 1, _READ),
        ("v = T.reshape(a, (4096,))\nfor j in T.Parallel(4095):\n    v[j] = v[j + 1]", 2, _READ),
        ("for i, j in T.Parallel(64, 63):\n    B[i, j + 1] = B[i, j]", 1, _READ),
        ("n = T.clamp(N[1], 0, 4)\nfor i, j in T.Parallel(64, 60):\n    a[i, j] = a[i, j + n]", 2, _READ),
        ("for i, j in T.Parallel(64, 63):\n    a[i, j] = 1.0\n    a[i, j + 1] = 2.0", 2, _STORE),
    ],
)  # fmt: skip
def test_races_between_iterations(body: str, line: int, message: str, tmp_path: Path) -> None:
    error = explored(body, tmp_path).error
    assert error is not None
    assert error.code == "TTX-L003"
    assert error.message == f"one T.Parallel {message.format('B' if 'B[' in body else 'a')}"
    assert error.hint.startswith("its iterations run in any order: ")
    assert error.span is not None
    assert error.span.line == _HEAD.count("\n") + 1 + line


def _halves(a: Numbers) -> None:
    a[:, :32] = a[:, 32:]


def _even(a: Numbers) -> None:
    a[:, ::2] = a[:, 1::2]


def _row(a: Numbers) -> None:
    a[1] = a[0]


def _parts(a: Numbers) -> None:
    for k in range(2):
        a[:, 16 * k : 16 * k + 16] += a[:, 32 + 16 * k : 48 + 16 * k]


def _column(a: Numbers) -> None:
    a[:, 0] = a[:, 5]


def _twice(a: Numbers) -> None:
    a *= 3


@pytest.mark.parametrize(
    ("body", "meaning"),
    [
        ("for i, j in T.Parallel(64, 32):\n    a[i, j] = a[i, j + 32]", _halves),
        ("for i, j in T.Parallel(64, 32):\n    a[i, j * 2] = a[i, j * 2 + 1]", _even),
        ("for j in T.Parallel(64):\n    a[1, j] = a[0, j]", _row),
        ("for k in range(2):\n    for i, j in T.Parallel(64, 16):\n"
         "        a[i, k * 16 + j] = a[i, k * 16 + j] + a[i, 32 + k * 16 + j]", _parts),
        ("for i in T.Parallel(64):\n    a[i, 0] = a[i, 5]", _column),
        ("for j in T.Parallel(64):\n    a[N[0] + 1, j] = a[N[1], j]", _row),
        ("for i, j in T.Parallel(64, 64):\n    b[i, j] = a[i, j] * 2.0\n    a[i, j] = b[i, j] + a[i, j]", _twice),
    ],
)  # fmt: skip
def test_iterations_that_use_elements_of_their_own(
    body: str, meaning: Callable[[Numbers], None], tmp_path: Path
) -> None:
    exploration = explored(body, tmp_path)
    assert exploration.error is None, str(exploration.error)
    given = np.random.default_rng(0).integers(-9, 9, (64, 64)).astype(np.float32)
    want = given.copy()
    meaning(want)
    for backend in ("interpreter", "emulator"):
        run = exploration.run([given, np.zeros(4, np.int32)], backend=backend)
        np.testing.assert_array_equal(run.outputs[0], want)
