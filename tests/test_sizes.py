"""Sizes that are known only when the program runs: lowered once, run with any."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus.sizes import any_size_add, any_size_gemm
from ttexplore.errors import KernelError, UsageError
from ttexplore.plan import KERNEL_ROLES
from ttexplore.target import TARGETS


@pytest.mark.parametrize("sizes", [(1, 1, 1), (31, 33, 32), (100, 70, 50), (129, 40, 65)])
@pytest.mark.parametrize("policy", ["contiguous", "strided", "rectangular", "z_order"])
def test_one_lowering_runs_with_many_sizes(sizes: tuple[int, int, int], policy: str) -> None:
    """Every step and the emulator, against the float64 product; kernels and steps are those of the first size."""
    exploration = ttx.explore(any_size_gemm(), options={"policy": policy, "cores": (2, 2)})
    m, n, k = sizes
    random = np.random.default_rng(7)
    a, b = (random.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n)))
    run = exploration.run([a, b])
    assert run.passed, run.message
    assert run.outputs[0].shape == (m, n)
    want = a.astype(ml_dtypes.bfloat16).astype(np.float64) @ b.astype(ml_dtypes.bfloat16).astype(np.float64)
    assert np.abs(run.outputs[0] - want).max() <= 1e-3 * np.abs(want).max()
    assert exploration.check([a, b])
    other = exploration.with_sizes(m=m, n=n, k=k)
    assert [step.listing.text for step in other.steps] == [step.listing.text for step in exploration.steps]
    assert [other.code[role].text for role in KERNEL_ROLES] == [exploration.code[role].text for role in KERNEL_ROLES]


@pytest.mark.parametrize("target", TARGETS)
def test_a_long_tail_on_every_target(target: str) -> None:
    run = ttx.explore(any_size_add(), target=target).run(sizes={"n": 4097})
    assert run.passed, run.message
    assert run.outputs[0].shape == (64, 4097)


def test_sizes_come_from_the_inputs_or_are_given() -> None:
    exploration = ttx.explore(any_size_gemm(), sizes={"m": 64})
    assert exploration.plan.size_values == {"m": 64, "k": 168, "n": 136}
    assert exploration.with_sizes(k=32).plan.size_values == {"m": 64, "k": 32, "n": 136}
    assert exploration.with_sizes() is exploration
    assert exploration.reference(sizes={"m": 5})[0].shape == (5, 136)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"mm": 3}, "the kernel has no size mm.*did you mean m?"),
        ({"m": 0}, "the size m is 0.*sizes are 1 to 16,777,215"),
        ({"m": 1 << 24}, "the size m is 16777216.*sizes are 1 to 16,777,215"),
        ({"m": 1.5}, "the size m is 1.5"),
    ],
)
def test_wrong_sizes_are_refused(sizes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=f"(?s){message}"):
        ttx.explore(any_size_gemm()).with_sizes(**sizes)


def test_inputs_that_disagree_on_a_size_are_refused() -> None:
    exploration = ttx.explore(any_size_gemm())
    with pytest.raises(UsageError, match=r"input 1 has k = 40, but k is already 33"):
        exploration.run([np.zeros((32, 33)), np.zeros((40, 32))])


def test_a_kernel_without_sizes_says_so() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32, 32), "bfloat16"), B: T.Tensor((32, 32), "bfloat16")):
        with T.Kernel(1):
            a = T.alloc_shared((32, 32), "bfloat16")
            T.copy(A, a)
            T.copy(a, B)

    with pytest.raises(UsageError, match=r"(?s)no size m.*T\.dynamic"):
        ttx.explore(kernel).run(sizes={"m": 1})


def test_a_kernel_may_ask_for_shapes_and_dtypes() -> None:
    n = T.dynamic("n")

    @T.prim_func
    def double(A: T.Tensor((32, n), "float32"), B: T.Tensor((32, n), "float32")):
        rows, columns = A.shape
        with T.Kernel(T.ceildiv(columns, 32)) as bx:
            a = T.alloc_shared((rows, 32), A.dtype)
            T.copy(A[0, bx * 32], a)
            for i, j in T.Parallel(rows, 32):
                value = a[i, j]
                a[i, j] = value * T.cast(2, value.dtype)
            T.copy(a, B[0, bx * 32])

    run = ttx.explore(double).run(sizes={"n": 45})
    assert run.passed, run.message
    assert run.outputs[0].shape == (32, 45)


def test_a_size_of_no_tensor_is_refused() -> None:
    m = T.dynamic("m")
    with pytest.raises(KernelError, match="no tensor has the size m"):

        @T.prim_func
        def kernel(A: T.Tensor((32, 32), "bfloat16"), B: T.Tensor((32, 32), "bfloat16")):
            with T.Kernel(m):
                a = T.alloc_shared((32, 32), "bfloat16")
                T.copy(A, a)
                T.copy(a, B)


def test_two_sizes_of_one_name_are_refused() -> None:
    with pytest.raises(KernelError, match="two sizes are named m"):

        @T.prim_func
        def kernel(A: T.Tensor((T.dynamic("m"), 32), "bfloat16"), B: T.Tensor((T.dynamic("m"), 32), "bfloat16")):
            with T.Kernel(1):
                a = T.alloc_shared((32, 32), "bfloat16")
                T.copy(A[0, 0], a)
                T.copy(a, B[0, 0])


@pytest.mark.parametrize(("names", "message"), [("", "T.dynamic needs a name"), ("1m", "'1m' is not a name")])
def test_names_of_sizes_are_checked(names: str, message: str) -> None:
    with pytest.raises(KernelError, match=message):
        T.dynamic(names)


def test_work_lists_are_for_one_grid() -> None:
    exploration = ttx.explore(any_size_gemm(), options={"work_lists": {(0, 0): [0]}})
    assert "work lists need a constant grid" in str(exploration.error)
