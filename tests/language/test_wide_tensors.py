# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportOperatorIssue=false
"""Tensors of int64: elements that choose places against NumPy, and what would need arithmetic in int64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from ttexplore.errors import Unsupported


def test_blocks_that_elements_of_int64_choose() -> None:
    """As an index, in the name of a place, and in a condition."""

    @T.prim_func
    def kernel(
        N: T.Tensor((4,), "int64"), A: T.Tensor((256, 32), "float32"), C: T.Tensor((128, 32), "float32"),
        R: T.Tensor((4, 32), "float32"),
    ):  # fmt: skip
        with T.Kernel(4) as bx:
            a, r = T.alloc_shared((32, 32), "float32"), T.alloc_shared((32,), "float32")
            start = T.cast(N[bx], T.int32) * 32
            T.copy(A[start, 0], a)
            if T.int32(N[bx]) > 5:
                for i, j in T.Parallel(32, 32):
                    a[i, j] += 100.0
            T.copy(a, C[bx * 32, 0])
            for j in T.Parallel(32):
                r[j] = A[N[bx], j]
            T.copy(r, R[bx, 0])

    exploration = ttx.explore(kernel)
    assert exploration.error is None, str(exploration.error)
    assert "N is int64 in the kernel: it is a tensor of int32 here" in map(str, exploration.plan.notes)
    indices = np.array([7, 0, 3, 6], np.int64)
    a = np.arange(256 * 32, dtype=np.float32).reshape(256, 32)
    assert (check := exploration.check([indices, a])), str(check)
    run = exploration.run([indices, a])
    assert run.passed, run.message
    c, r = run.outputs
    want = [a[32 * index : 32 * index + 32] + 100.0 * (index > 5) for index in indices]
    np.testing.assert_array_equal(c, np.concatenate(want))
    np.testing.assert_array_equal(r, a[indices])


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint8", "int32"])
def test_an_element_that_is_cast_twice(dtype: str) -> None:
    """It is an int32 whatever it was: a fraction is cut off, and what is computed with it does not wrap at 8 bits."""

    @T.prim_func
    def kernel(A: T.Tensor((32, 32), dtype), B: T.Tensor((32, 32), "int32")):
        with T.Kernel(1):
            a, b = T.alloc_fragment((32, 32), dtype), T.alloc_fragment((32, 32), "int32")
            T.copy(A, a)
            for i, j in T.Parallel(32, 32):
                b[i, j] = T.cast(T.cast(a[i, j], "int64"), "int32") * 2
            T.copy(b, B)

    a = (np.arange(1024).reshape(32, 32) % 120 + (0.75 if dtype == "float32" else 0)).astype(dtype)
    run = ttx.explore(kernel).run([a])
    assert run.passed, run.message
    np.testing.assert_array_equal(run.outputs[0], np.trunc(a).astype(np.int32) * 2)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_sums_and_products_that_choose_places(dtype: str) -> None:
    """Their lowest 32 bits are the place, wherever a step on the way there is beyond them."""

    @T.prim_func
    def kernel(N: T.Tensor((8,), dtype), A: T.Tensor((256, 32), "float32"), C: T.Tensor((256, 32), "float32")):
        with T.Kernel(8) as b:
            a = T.alloc_shared((32, 32), "float32")
            row = T.cast(N[b], "int64") * 100_000 - T.cast(N[b], "int64") * 99_968
            T.copy(A[row, 0], a)
            T.copy(a, C[b * 32, 0])

    indices = np.array([7, 0, 3, 6, 5, 4, 1, 2], dtype)
    a = np.arange(256 * 32, dtype=np.float32).reshape(256, 32)
    exploration = ttx.explore(kernel)
    assert (check := exploration.check([indices, a])), str(check)
    run = exploration.run([indices, a])
    np.testing.assert_array_equal(run.outputs[0], a.reshape(8, 32, 32)[indices].reshape(256, 32))


def test_a_float_of_an_element() -> None:
    @T.prim_func
    def kernel(N: T.Tensor((64,), "int64"), C: T.Tensor((64, 32), "float32")):
        with T.Kernel(1):
            c = T.alloc_shared((64, 32), "float32")
            for i, j in T.Parallel(64, 32):
                c[i, j] = N[i]
            T.copy(c, C)

    indices = np.arange(64) * 10_000 - 300_000
    run = ttx.explore(kernel).run([indices])
    assert run.passed, run.message
    np.testing.assert_array_equal(run.outputs[0], np.repeat(indices[:, None], 32, 1))


def refused(using: Any) -> Unsupported:
    @T.prim_func
    def kernel(N: T.Tensor((64,), "int64"), A: T.Tensor((256, 32), "float32"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((32, 32), "float32")
            using(N, A, a)
            T.copy(a, C)

    error = ttx.explore(kernel).error
    assert isinstance(error, Unsupported)
    return error


@T.macro
def quotient(N: Any, A: Any, a: Any) -> None:
    T.copy(A[N[0] * 100_000 // 100_000, 0], a)


@T.macro
def name(N: Any, A: Any, a: Any) -> None:
    row = N[0] * 100_000
    T.copy(A[row % 32, 0], a)


@T.macro
def comparison(N: Any, A: Any, a: Any) -> None:
    if T.cast(T.int32(N[0]), "int64") * 100_000 > 5:
        T.copy(A[0, 0], a)


@T.macro
def stored(N: Any, A: Any, a: Any) -> None:
    T.copy(A[0, 0], a)
    for i in T.Parallel(64):
        N[i] = i


@pytest.mark.parametrize(("using", "message", "hint"), [
    (quotient, "arithmetic in int64 with an element of N", "T.cast(element, T.int32)"),
    (name, "arithmetic in int64 with an element of N", "T.cast(element, T.int32)"),
    (comparison, "arithmetic in int64 with an element of N", "T.cast(element, T.int32)"),
    (stored, "storing to N, which is int64: no tile format supports this dtype", "use int32"),
])  # fmt: skip
def test_what_needs_int64(using: Any, message: str, hint: str) -> None:
    with pytest.raises(Unsupported) as caught:
        raise refused(using)
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert caught.value.span is not None
