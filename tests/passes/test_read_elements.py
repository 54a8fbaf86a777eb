# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
"""Elements of blocks that are read outside of T.Parallel: what is certainly outside is refused at its line."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from ttexplore.errors import KernelError

Body = Callable[[Any, Any, Any], None]


def kernel(body: Body) -> Any:
    """A kernel that loads 64 numbers into `a`, and stores what the macro `body` puts into `b`."""
    macro = T.macro(body)

    @T.prim_func
    def elements(A: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32")):
        with T.Kernel(2) as block:
            a = T.alloc_fragment((64,), "float32")
            b = T.alloc_fragment((64,), "float32")
            T.copy(A, a)
            T.clear(b)
            macro(a, b, block)
            if block == 0:
                T.copy(b, C)

    return elements


def named(a: Any, b: Any, block: Any) -> None:
    x = a[64]
    for i in T.Parallel(64):
        b[i] = x


def filled(a: Any, b: Any, block: Any) -> None:
    T.fill(b, a[-1])


def stored(a: Any, b: Any, block: Any) -> None:
    b[3] = a[64] * 2


def added(a: Any, b: Any, block: Any) -> None:
    for k in range(33):
        place = k * 2
        b[0] = b[0] + a[place]


def of_the_block(a: Any, b: Any, block: Any) -> None:
    b[0] = a[block * 64]


def of_two_loops(a: Any, b: Any, block: Any) -> None:
    for k in range(8):
        for n in range(9):
            b[0] += a[k * 8 + 7 - n]


@pytest.mark.parametrize(
    ("body", "told", "text"),
    [
        (named, "this index is 64", "x = a[64]"),
        (filled, "this index is -1", "T.fill(b, a[-1])"),
        (stored, "this index is 64", "b[3] = a[64] * 2"),
        (added, "this index reaches 64", "b[0] = b[0] + a[place]"),
        (of_the_block, "this index reaches 64", "b[0] = a[block * 64]"),
        (of_two_loops, "this index reaches -1", "b[0] += a[k * 8 + 7 - n]"),
    ],
)
def test_outside(body: Body, told: str, text: str) -> None:
    error = ttx.explore(kernel(body)).error
    assert isinstance(error, KernelError)
    assert (error.code, error.message) == ("TTX-K001", f"a has 64 elements along axis 0, but {told}")
    lines, first = inspect.getsourcelines(body)
    assert error.span is not None
    assert lines[error.span.line - first].strip() == text
    assert error.hint == ("check the index" + (" and the lengths of the loops around" if "reaches" in told else ""))


def test_numbers_that_decide() -> None:
    @T.prim_func
    def counted(A: T.Tensor((64,), "float32"), N: T.Tensor((4,), "int32"), C: T.Tensor((64,), "float32")):
        with T.Kernel(1):
            a = T.alloc_fragment((64,), "float32")
            T.clear(a)
            for _ in range(N[4]):
                T.copy(A, a)
            T.copy(a, C)

    error = ttx.explore(counted).error
    assert isinstance(error, KernelError)
    assert error.message == "N has 4 elements along axis 0, but this index is 4"


def guarded(a: Any, b: Any, block: Any) -> None:
    for k in range(66):
        if k < 64:
            b[0] = b[0] + a[k]


def to_the_end(a: Any, b: Any, block: Any) -> None:
    for k in range(64):
        b[0] = b[0] + a[63 - k]


@pytest.mark.parametrize("body", [guarded, to_the_end])
def test_inside(body: Body) -> None:
    exploration = ttx.explore(kernel(body))
    assert exploration.error is None, str(exploration.error)
    (a,) = exploration.inputs()
    made = exploration.run()
    assert made.passed, made.message
    np.testing.assert_allclose(made.outputs[0][0], a.astype(np.float64).sum(), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(made.outputs[0][1:], 0)


@pytest.mark.parametrize("held", [False, True])
def test_elements_that_elements_of_a_tensor_choose(held: bool) -> None:
    """The index is an element of the tensor, and of a block that holds it."""

    @T.prim_func
    def chosen(A: T.Tensor((64, 32), "float32"), N: T.Tensor((2, 4), "int32"), C: T.Tensor((64, 32), "float32")):
        with T.Kernel(2) as bx:
            a = T.alloc_shared((32, 32), "float32")
            n = T.alloc_shared((4,), "int32")
            c = T.alloc_fragment((32, 32), "float32")
            x = T.alloc_var("float32", init=1)
            T.copy(A[bx * 32, 0], a)
            T.copy(N[bx, 0:4], n)
            T.clear(c)
            if held:
                c[0, 0] = a[n[3], 2] * 0.5
            else:
                c[0, 0] = a[N[bx, 3], 2] * 0.5
            for k in range(3):
                c[N[bx, k], 1] += k + 1
            x = c[N[bx, 1], n[0]] + 4
            c[2, 2] = x
            T.copy(c, C[bx * 32, 0])

    exploration = ttx.explore(chosen)
    assert exploration.error is None, str(exploration.error)
    rng = np.random.default_rng(3)
    a = rng.integers(-9, 9, (64, 32)).astype(np.float32)
    n = np.array([[1, 5, 5, 31], [2, 0, 7, 0]], np.int32)
    want = np.zeros((2, 32, 32), np.float32)
    for bx in range(2):
        want[bx, 0, 0] = a[bx * 32 + n[bx, 3], 2] * 0.5
        for k in range(3):
            want[bx, n[bx, k], 1] += k + 1
        want[bx, 2, 2] = want[bx, n[bx, 1], n[bx, 0]] + 4
    for backend in ("interpreter", "emulator"):
        made = exploration.run({"A": a, "N": n}, backend)
        assert made.passed, made.message
        np.testing.assert_array_equal(made.outputs[0], want.reshape(64, 32))
