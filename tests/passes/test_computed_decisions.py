"""Decisions by what the chip computes, by way of names and variables: refused at the line that decides."""

from __future__ import annotations

from pathlib import Path

import pytest

import ttexplore as ttx

_HEAD = """
import ttexplore.language as T


@T.prim_func
def kernel(
    A: T.Tensor((32, 32), "int8"), F: T.Tensor((8,), "int32"), G: T.Tensor((32, 32), "float32"),
    P: T.Tensor((1, 32), "float32"),
):
    with T.Kernel(1) as by:
        a = T.alloc_fragment((32, 32), "int8")
        q = T.alloc_shared((32, 32), "int32")
        c = T.alloc_fragment((32,), "float32")
        v = T.alloc_var("int32")
        T.copy(A, a)
        T.fill(q, 1)
        T.fill(c, 0.0)
"""
_STORE = "\n    T.copy(G[0, 0:32], c)"


@pytest.mark.parametrize(
    ("body", "line", "what"),
    [
        ("v = T.if_then_else(F[3] < T.if_then_else(0 < q[by, by], q[0, 4], F[1]), 3, 1)\nif v > 2:", 2,
         "a condition around operations on blocks"),
        ("v = F[1] + q[0, 0]\nif v > 2:", 2, "a condition around operations on blocks"),
        ("n = T.if_then_else(F[1] > 2, q[0, 0], F[2])\nif n > 2:", 2, "a condition around operations on blocks"),
        ("v = 0\nfor k in range(4):\n    if q[k, k] > 0:\n        v = v + F[k]\nif v > 2:", 5,
         "a condition around operations on blocks"),
        ("if F[q[0, 0]] > 2:", 1, "a condition around operations on blocks"),
        ("if T.any_of(q[0, :]) and F[1] > 2:", 1, "a condition around operations on blocks"),
        ("v = q[1, 1]\nfor k in range(v):", 2, "the length of a loop"),
        ("for i in T.Parallel(32):\n    if i < T.if_then_else(q[0, 0] > 0, F[1], 2):\n        P[0, i] = 4.0\n"
         "if F[0] > 0:", 3, "a condition around a store to a tensor"),
    ],
)  # fmt: skip
def test_what_only_the_compute_kernel_knows(body: str, line: int, what: str, tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    text = f"{body}{_STORE}\nT.copy(c, P[by, 0:32])"
    file.write_text(_HEAD + "".join(f"        {one}\n" for one in text.split("\n")))
    error = ttx.explore(f"{file}::kernel").error
    assert error is not None
    assert error.code == "TTX-L005"
    assert error.message == f"{what} depends on an element of the block q, which only the compute kernel knows"
    assert error.span is not None
    assert error.span.line == _HEAD.count("\n") + line


@pytest.mark.parametrize(("dtype", "advised"), [("uint8", True), ("int32", False)])
def test_variables_of_int32_are_advised(dtype: str, advised: bool, tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    # Of a block, nothing can be decided; of an element of F, only by a variable of int32.
    value = "F[1]" if advised else "q[0, 0]"
    body = f"v = T.alloc_var('{dtype}', init=0)\nif {value} > 1:\n    v = 2\nelif {value} > 0:\n    v = 3\nif v > 2:"
    text = f"{body}{_STORE}\nT.copy(c, P[by, 0:32])"
    file.write_text(_HEAD + "".join(f"        {one}\n" for one in text.split("\n")))
    error = ttx.explore(f"{file}::kernel").error
    assert error is not None
    assert error.code == "TTX-L005"
    assert ('or variables of int32, T.alloc_var("int32", init=0);' in error.hint) == advised
