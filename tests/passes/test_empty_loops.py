# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false
"""Loops without iterations, against NumPy: of constant length, and of one that is known when the kernel runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from ttexplore.errors import KernelError


def run(kernel: Any, *arrays: Any) -> list[Any]:
    """The outputs of the emulator, to which those of the interpreter are equal."""
    exploration = ttx.explore(kernel)
    assert exploration.error is None, str(exploration.error)
    emulated, interpreted = (exploration.run(arrays, backend=name) for name in ("emulator", "interpreter"))
    assert emulated.passed, emulated.message
    for one, other in zip(emulated.outputs, interpreted.outputs, strict=True):
        np.testing.assert_array_equal(one, other)
    return [*emulated.outputs]


# Each makes as many iterations as its argument says.
LOOPS: dict[str, Callable[[int], Any]] = {
    "serial": T.serial,
    "unrolled": T.unroll,
    "pipelined": lambda n: T.Pipelined(n, num_stages=2),
    "from": lambda n: T.serial(3, 3 + n),
    "down": lambda n: range(n, 0, -1),
    "of a range below 0": lambda n: range(n - 2) if n == 0 else range(n),
}


@pytest.mark.parametrize("name", [*LOOPS])
def test_formats_change_in_loops_that_may_be_empty(name: str) -> None:
    """int32 to float32 in the loop, float32 before and after it; a loop in a loop, and one in a branch."""

    def kernel(n: int) -> Any:
        @T.prim_func
        def main(A: T.Tensor((24, 20), "int32"), B: T.Tensor((24, 20), "float32")):
            with T.Kernel(1):
                a, b = T.alloc_shared((24, 20), "int32"), T.alloc_fragment((24, 20), "float32")
                T.copy(A, a)
                T.fill(b, 1.0)
                for _ in LOOPS[name](n):
                    for i, j in T.Parallel(22, 19):
                        b[i + 2, j + 1] = b[i + 2, j + 1] + T.cast(a[i, j], "float32")
                for _ in T.serial(2):
                    for _ in LOOPS[name](n):
                        for i, j in T.Parallel(24, 20):
                            b[i, j] = T.exp(b[i, j])
                    for i, j in T.Parallel(24, 20):
                        b[i, j] = b[i, j] * 2.0
                if A[0, 1] > 0:
                    for _ in LOOPS[name](n):
                        T.fill(b, 0.0)
                T.copy(b, B)

        return main

    a = np.arange(480, dtype=np.int32).reshape(24, 20)
    (found,) = run(kernel(0), a)
    np.testing.assert_array_equal(found, np.full((24, 20), 4.0))
    (found,) = run(kernel(1), a)
    np.testing.assert_array_equal(found, np.zeros((24, 20)))


def test_a_loop_of_no_length_that_is_no_number() -> None:
    """Passes find that it makes no iteration."""

    @T.prim_func
    def kernel(A: T.Tensor((24, 20), "int32"), B: T.Tensor((48, 20), "float32")):
        with T.Kernel(2) as by:
            a, b = T.alloc_shared((24, 20), "int32"), T.alloc_fragment((24, 20), "float32")
            T.copy(A, a)
            T.fill(b, 1.0)
            for _ in T.serial(by * 0):
                for i, j in T.Parallel(22, 19):
                    b[i + 2, j + 1] = T.cast(a[i, j], "float32")
            T.copy(b, B[by * 24, 0])

    (found,) = run(kernel, np.arange(480, dtype=np.int32).reshape(24, 20))
    np.testing.assert_array_equal(found, np.ones((48, 20)))


def test_a_loop_that_only_some_sizes_enter() -> None:
    n = T.dynamic("n")

    @T.prim_func
    def kernel(A: T.Tensor((n, 20), "int32"), B: T.Tensor((24, 20), "float32")):
        with T.Kernel(1):
            a, b = T.alloc_shared((24, 20), "int32"), T.alloc_fragment((24, 20), "float32")
            T.fill(b, 1.0)
            for k in T.serial((n - 1) // 24):
                T.copy(A[k * 24, 0], a)
                for i, j in T.Parallel(22, 19):
                    b[i + 2, j + 1] = b[i + 2, j + 1] + T.cast(a[i, j], "float32")
            T.copy(b, B)

    for rows in (24, 25, 50):
        a = np.arange(rows * 20, dtype=np.int32).reshape(rows, 20)
        (found,) = run(kernel, a)
        want = np.ones((24, 20))
        for k in range((rows - 1) // 24):
            want[2:, 1:] += a[k * 24 : k * 24 + 22, :19]
        np.testing.assert_array_equal(found, want)


def test_products_after_a_first_one() -> None:
    def kernel(steps: int) -> Any:
        @T.prim_func
        def main(
            A: T.Tensor((32, 32 * steps), "bfloat16"), W: T.Tensor((32 * steps, 32), "bfloat16"),
            C: T.Tensor((32, 32), "float32"),
        ):  # fmt: skip
            with T.Kernel(1):
                a, w = T.alloc_shared((32, 32), "bfloat16"), T.alloc_shared((32, 32), "bfloat16")
                c = T.alloc_fragment((32, 32), "float32")
                T.copy(A[0, 0], a)
                T.copy(W[0, 0], w)
                T.gemm(a, w, c, clear_accum=True)
                for k in T.Pipelined(steps - 1, num_stages=2):
                    T.copy(A[0, k * 32 + 32], a)
                    T.copy(W[k * 32 + 32, 0], w)
                    T.gemm(a, w, c)
                T.copy(c, C)

        return main

    for steps in (1, 2):
        a, w = (np.arange(1024 * steps) % 5).reshape(32, -1), (np.arange(1024 * steps) % 3).reshape(-1, 32)
        (found,) = run(kernel(steps), a.astype(np.float32), w.astype(np.float32))
        np.testing.assert_array_equal(found, a @ w)


def only_in_a_loop() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((24, 20), "int32"), B: T.Tensor((24, 20), "int32")):
        with T.Kernel(1):
            a = T.alloc_shared((24, 20), "int32")
            for _ in T.serial(0):
                T.copy(A, a)
                T.copy(a, B)

    return kernel


def parallel() -> Any:
    @T.prim_func
    def kernel(B: T.Tensor((24, 20), "int32")):
        with T.Kernel(1):
            for i, j in T.Parallel(0, 20):
                B[i, j] = 1

    return kernel


def grid() -> Any:
    @T.prim_func
    def kernel(B: T.Tensor((24, 20), "int32")):
        with T.Kernel(2, 0):
            T.fill(B, 1)

    return kernel


@pytest.mark.parametrize(("made", "message"), [
    (only_in_a_loop, "the kernel writes no tensor"),
    (parallel, "T.Parallel: the extent 0 leaves nothing to do"),
    (grid, "T.Kernel: the extent 0 leaves nothing to do"),
])  # fmt: skip
def test_nothing_to_do_is_refused(made: Callable[[], Any], message: str) -> None:
    try:
        error = ttx.explore(made()).error
    except KernelError as raised:
        error = raised
    assert isinstance(error, KernelError)
    assert message in error.message
    assert error.hint
    assert error.span is not None


@pytest.mark.parametrize("atomic", [True, False])
@pytest.mark.parametrize("turns", [lambda by: by * 0, lambda by: by - by])
@pytest.mark.parametrize("to", [lambda by, k: by, lambda by, k: k])
def test_stores_in_a_loop_whose_length_is_computed_to_be_zero(turns: Any, to: Any, *, atomic: bool) -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 32), "float32"), C: T.Tensor((64, 32), "float32")):
        with T.Kernel(2) as by:
            x = T.alloc_shared((32, 32), "float32")
            T.copy(A[by * 32, 0], x)
            for k in T.serial(turns(by)):
                if atomic:
                    T.atomic_add(C[to(by, k) * 32, 0], x)
                else:
                    T.copy(x, C[to(by, k) * 32, 0])

    exploration = ttx.explore(kernel)
    assert exploration.error is None, str(exploration.error)
    a, c = np.ones((64, 32), np.float32), np.arange(64 * 32, dtype=np.float32).reshape(64, 32)
    for backend in ("interpreter", "emulator"):
        run = exploration.run([a, c], backend=backend)
        assert run.passed, run.message
        assert np.array_equal(run.outputs[0], c)
