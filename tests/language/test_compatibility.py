"""Forms of TileLang's language that mean the same here: each computes what NumPy computes from its meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from ttexplore.errors import KernelError

ROWS, COLUMNS = np.mgrid[:64, :64]
A = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)


def copied(annotation: Any, shape: tuple[int, ...] = (64, 64)) -> Any:
    """A kernel that copies a tensor of this annotation."""

    @T.prim_func
    def kernel(A: annotation, B: T.Tensor(shape, "float32")):  # type: ignore[valid-type] # pyright: ignore
        with T.Kernel(1):
            a = T.alloc_shared(shape, "float32")
            T.copy(A, a)
            T.copy(a, B)

    return kernel


def mapped(element: Callable[..., Any]) -> Any:
    """A kernel that computes each element from the one of A and its place."""

    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):  # pyright: ignore
        with T.Kernel(1):
            a = T.alloc_shared((64, 64), "float32")
            T.copy(A, a)
            for i, j in T.Parallel(64, 64):
                a[i, j] = element(a[i, j], i, j)
            T.copy(a, B)

    return kernel


def result(kernel: Any, array: Any) -> Any:
    exploration = ttx.explore(kernel)
    assert exploration.check([array])
    return exploration.run([array], backend="interpreter").outputs[0]


n = 64


@pytest.mark.parametrize(
    "annotation",
    [
        T.Tensor[(n), "float32"], T.Tensor[(n,), T.float32], T.Tensor[[n], "float32"],
        T.Tensor[(n), np.float32], T.Tensor[np.int64(n), T.float32], T.Tensor[n], T.Tensor[(n,)], T.Tensor[[n]],
        T.Tensor((n), "float32"), T.Tensor[(n), T.tfloat32], T.Tensor[n, "tfloat32"], T.Tensor((n,), "tf32"),
    ],
)  # fmt: skip
def test_forms_of_a_vector(annotation: Any) -> None:
    np.testing.assert_array_equal(result(copied(annotation, (n,)), A[0]), A[0])


@pytest.mark.parametrize(
    "annotation",
    [
        T.Tensor[n, n], T.Tensor[[n, n]], T.Tensor[n, n, "float32"], T.Tensor[(n, n), T.float32],
        T.Tensor[[n, n], T.tfloat32], T.Buffer[(n, n), "float32"], T.Tensor[np.int32(n), np.int32(n)],
    ],
)  # fmt: skip
def test_forms_of_a_matrix(annotation: Any) -> None:
    np.testing.assert_array_equal(result(copied(annotation), A), A)


@pytest.mark.parametrize(
    ("element", "wanted"),
    [
        (lambda a, i, j: T.Cast("float32", T.Cast("int32", a * 8)), np.trunc(A * 8)),
        (lambda a, i, j: T.Select(a > 0, a, -1.0), np.where(A > 0, A, -1)),
        (lambda a, i, j: T.Select(T.And(a > 0, i > 3), a, 0.0), np.where((A > 0) & (ROWS > 3), A, 0)),
        (lambda a, i, j: T.Select(T.Or(a > 0, i > 3), a, 0.0), np.where((A > 0) | (ROWS > 3), A, 0)),
        (lambda a, i, j: T.Select(T.Not(a > 0), a, 0.0), np.where(A > 0, 0, A)),
        (lambda a, i, j: T.Select((a > 0) & ~(i > 3) | (j < 2), a, 0.0),
         np.where((A > 0) & (ROWS <= 3) | (COLUMNS < 2), A, 0)),
        (lambda a, i, j: T.Select(T.all(a > 0, i > 3, j > 2), a, 0.0),
         np.where((A > 0) & (ROWS > 3) & (COLUMNS > 2), A, 0)),
        (lambda a, i, j: T.Select(T.any(a > 1, i < 3, j < 2), a, 0.0),
         np.where((A > 1) | (ROWS < 3) | (COLUMNS < 2), A, 0)),
        (lambda a, i, j: T.Select(T.all(a > 0, True), a, 0.0), np.where(A > 0, A, 0)),
        (lambda a, i, j: T.Select(T.any(a > 0, False), a, 0.0), np.where(A > 0, A, 0)),
        (lambda a, i, j: T.Select(T.all(True), a, 0.0), A),
        (lambda a, i, j: T.Select(T.And(True, False), a, 0.0), A * 0),
    ],
)  # fmt: skip
def test_logic_and_casts(element: Callable[..., Any], wanted: Any) -> None:
    np.testing.assert_array_equal(result(mapped(element), A), wanted.astype(np.float32))


@pytest.mark.parametrize(
    ("element", "hint"),
    [
        (lambda a, i, j: T.Cast(a, "float32"), "write T.Cast(dtype, value) or T.cast(value, dtype)"),
        (lambda a, i, j: T.cast("float32", a), "write T.cast(value, dtype) or T.Cast(dtype, value)"),
    ],
)
def test_the_operands_of_a_cast_in_the_wrong_order(element: Callable[..., Any], hint: str) -> None:
    with pytest.raises(KernelError, match="is not a dtype") as caught:
        mapped(element)
    assert caught.value.hint == hint
    assert caught.value.span is not None


def test_logic_of_nothing() -> None:
    with pytest.raises(KernelError, match=r"T\.all needs at least one condition") as caught:
        T.all()
    assert caught.value.hint == "write T.all(i > 0, j > 0)"


def in_its_own(block: Any, i: Any, j: Any) -> Any:
    """A helper in plain Python: what it gets are a buffer and indices."""
    assert block.dtype == block[i, j].dtype == T.float32
    assert (i + 1).dtype == "int32"
    assert (block[i, j] > 0).dtype == "bool"
    return T.cast(T.cast(block[i, j] * 4, "int32"), block[i, j].dtype) + T.cast(i, block.dtype)


def test_dtypes_in_helpers_and_kernels() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):  # pyright: ignore
        with T.Kernel(1):
            a = T.alloc_shared((64, 64), A.dtype)
            b = T.alloc_shared(a.shape, a.dtype)
            T.copy(A, a)
            for i, j in T.Parallel(64, 64):
                b[i, j] = in_its_own(a, i, j) + a.dtype(a.dtype.bits) + a[i, j].dtype(j)  # pyright: ignore
            T.copy(b, B)

    np.testing.assert_array_equal(result(kernel, A), np.trunc(A * 4) + ROWS + COLUMNS + 32)


def test_a_loop_inside_of_parallel() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):  # pyright: ignore
        with T.Kernel(1):
            a = T.alloc_shared((64, 64), "float32")
            T.copy(A, a)
            for i, j in T.Parallel(64, 64):
                for _ in T.serial(3):
                    a[i, j] = a[i, j] * 2.0
            T.copy(a, B)

    array = np.linspace(-4, 4, 64 * 64, dtype=np.float32).reshape(64, 64)
    np.testing.assert_array_equal(result(kernel, array), array * 8)
