# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false
"""T.view in another dtype against NumPy: memory that is used again, and what would read other bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from ttexplore.errors import KernelError, Unsupported


def used_again(guarded: bool) -> Any:
    """Keys that a product reads, whose memory then takes the product, half of its rows in each of two turns."""
    rows = 16

    @T.prim_func
    def kernel(
        K: T.Tensor((128, 64), "bfloat16"), X: T.Tensor((64, 64), "bfloat16"), Out: T.Tensor((128, 64), "float32")
    ):
        with T.Kernel(2) as bx:
            k, x = T.alloc_shared((32, 64), "bfloat16"), T.alloc_shared((64, 64), "bfloat16")
            c = T.alloc_fragment((32, 64), "float32")
            part = T.view(k, shape=[rows, 64], dtype=T.float32)
            T.copy(X, x)
            for n in range(2):
                for i, j in T.Parallel(32, 64):
                    k[i, j] = K[bx * 64 + n * 32 + i, j]
                T.gemm(k, x, c, clear_accum=True)
                for s in range(2):
                    if guarded:
                        for i, j in T.Parallel(32, 64):
                            if i < rows:
                                part[i, j] = c[i + s * rows, j] * 2.0
                    else:
                        for i, j in T.Parallel(rows, 64):
                            part[i, j] = c[i + s * rows, j] * 2.0
                    T.copy(part, Out[bx * 64 + n * 32 + s * rows, 0])

    return kernel


@pytest.mark.parametrize("guarded", [False, True])
def test_memory_that_takes_another_dtype_once_it_is_read(guarded: bool) -> None:
    """Rows of a product in float32 over the memory of the keys in bfloat16, which each turn loads anew."""
    exploration = ttx.explore(used_again(guarded))
    assert exploration.error is None, str(exploration.error)
    arrays = exploration.inputs()
    assert (check := exploration.check(arrays)), str(check)
    run = exploration.run(arrays)
    assert run.passed, run.message
    k, x = (np.asarray(array, np.float64) for array in arrays)
    np.testing.assert_allclose(run.outputs[0], 2 * k @ x, rtol=2e-2, atol=0.1)


def stores_then_reads(store: Callable[..., None], again: Callable[..., None]) -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((32, 64), "bfloat16"), N: T.Tensor((4,), "int32"), Out: T.Tensor((32, 64), "bfloat16")):
        with T.Kernel(1):
            a = T.alloc_shared((32, 64), "bfloat16")
            o = T.alloc_shared((32, 64), "bfloat16")
            v = T.view(a, (16, 64), "float32")
            T.copy(A, a)
            T.copy(a, o)
            store(v, N)
            again(A, a)
            T.copy(a, o)
            T.copy(o, Out)

    return kernel


@T.macro
def fill(v: Any, N: Any) -> None:
    T.fill(v, 1.0)


@T.macro
def nothing(first: Any, second: Any) -> None:
    pass


@T.macro
def fill_under_condition(v: Any, N: Any) -> None:
    if N[0] > 2:
        T.fill(v, 1.0)


@T.macro
def load(A: Any, a: Any) -> None:
    T.copy(A, a)


@T.macro
def load_half(A: Any, a: Any) -> None:
    T.copy(A[0:16, :], a[0:16, :])


@T.macro
def load_rows_of_triangle(A: Any, a: Any) -> None:
    for i, j in T.Parallel(32, 64):
        if i <= j:
            a[i, j] = A[i, j]


@T.macro
def load_under_condition(A: Any, a: Any) -> None:
    for i, j in T.Parallel(32, 64):
        if A[0, 0] > 0:
            a[i, j] = A[i, j]


@T.macro
def load_reversed(A: Any, a: Any) -> None:
    for i, j in T.Parallel(32, 64):
        a[31 - i, j] = A[31 - i, j]


@pytest.mark.parametrize(("store", "again"), [
    (fill, nothing), (fill_under_condition, nothing), (fill, load_half), (fill, load_rows_of_triangle),
    (fill, load_under_condition),
])  # fmt: skip
def test_bits_of_another_dtype_are_not_read(store: Any, again: Any) -> None:
    """Where a block may still hold what its view stored, in parts or in some runs, the read is refused."""
    error = ttx.explore(stores_then_reads(store, again)).error
    assert isinstance(error, Unsupported)
    assert "reading a, whose memory may hold what was stored to v in another dtype," in error.message
    assert "store all of a before" in error.hint
    assert error.span is not None


@pytest.mark.parametrize(("store", "again"), [(nothing, nothing), (fill, load), (fill, load_reversed)])
def test_what_is_stored_again_is_read(store: Any, again: Any) -> None:
    exploration = ttx.explore(stores_then_reads(store, again))
    assert exploration.error is None, str(exploration.error)
    a, n = exploration.inputs()
    run = exploration.run([a, n])
    assert run.passed, run.message
    np.testing.assert_array_equal(run.outputs[0].astype(np.float32), np.asarray(a, np.float32))


def test_a_loop_reads_what_its_last_turn_stored() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32, 64), "bfloat16"), Out: T.Tensor((32, 64), "bfloat16")):
        with T.Kernel(1):
            a = T.alloc_shared((32, 64), "bfloat16")
            o = T.alloc_shared((32, 64), "bfloat16")
            v = T.view(a, (16, 64), "float32")
            T.copy(A, a)
            for _ in T.serial(2):
                T.copy(a, o)
                T.fill(v, 1.0)
            T.copy(o, Out)

    error = ttx.explore(kernel).error
    assert isinstance(error, Unsupported)
    assert "reading a, whose memory" in error.message


def test_views_of_other_sizes_and_of_single_threads() -> None:
    with pytest.raises(KernelError, match=r"which has 32,768 bits, as \(32, 64\) float32 of 65,536") as caught:

        @T.prim_func
        def larger(A: T.Tensor((32, 64), "bfloat16"), Out: T.Tensor((32, 64), "bfloat16")):
            with T.Kernel(1):
                a = T.alloc_shared((32, 64), "bfloat16")
                T.view(a, dtype="float32")

    assert "the same number of bits" in caught.value.hint
    with pytest.raises(Unsupported, match="view of A, which is bfloat16, as float32"):

        @T.prim_func
        def of_a_tensor(A: T.Tensor((32, 64), "bfloat16"), Out: T.Tensor((32, 64), "bfloat16")):
            v = T.view(A, (32, 32), "float32")
            with T.Kernel(1):
                a = T.alloc_shared((32, 32), "float32")
                T.copy(v, a)
