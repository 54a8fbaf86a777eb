"""Blocks of float32 on the FPU: which operands it gets, from where, and that the result is right to 10 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import ttexplore as ttx
import ttexplore.language as T
from ttexplore.ops import OPS

Array = NDArray[Any]
# Two operands are cut to 10 bits of mantissa.
CUT = 2**-9


def used(ex: ttx.Exploration) -> set[str]:
    """The operations of the compute kernel, by the names of their C++ functions."""
    text = ex.code["compute"].text
    return {op.called for op in OPS.values() if op.called and f" {op.called}(" in text}


def numbers(seed: int, shape: tuple[int, ...] = (64, 96)) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def with_most(function: Any, shape: tuple[int, int] = (64, 96)) -> Any:
    """A block, and what `function` makes of each element and the largest of its row."""

    @T.prim_func
    def kernel(A: T.Tensor(shape, "float32"), B: T.Tensor(shape, "float32")):
        with T.Kernel(1):
            a = T.alloc_shared(shape, "float32")
            b = T.alloc_fragment(shape, "float32")
            most = T.alloc_fragment((shape[0],), "float32")
            T.copy(A, a)
            for i, j in T.Parallel(*shape):
                b[i, j] = a[i, j] * 2
            T.reduce_max(b, most, dim=1)
            for i, j in T.Parallel(*shape):
                b[i, j] = function(b[i, j], most[i])
            T.copy(b, B)

    return kernel


def exponential(b: Any, m: Any) -> Any:
    return T.exp((b - m) * 0.5)


@pytest.mark.parametrize(
    ("function", "formula", "called"),
    [
        (lambda b, m: b - m, lambda b, m: b - m, "sub_tiles_bcast_cols"),
        (lambda b, m: b * m, lambda b, m: b * m, "mul_tiles_bcast_cols"),
        (lambda b, m: m + b, lambda b, m: m + b, "add_tiles_bcast_cols"),
        (exponential, lambda b, m: np.exp((b - m) * 0.5), "sub_tiles_bcast_cols"),
        # The FPU broadcasts only what it subtracts, and takes nothing that is computed first.
        (lambda b, m: m - b, lambda b, m: m - b, None), (lambda b, m: b - m * 2, lambda b, m: b - m * 2, None),
    ],
)  # fmt: skip
def test_a_block_made_in_the_same_loop_goes_to_the_fpu(function: Any, formula: Any, called: str | None) -> None:
    a = numbers(1)
    ex = ttx.explore(with_most(function), options={"eltwise": "fpu"})
    assert {name for name in used(ex) if name.endswith("_tiles_bcast_cols")} == ({called} if called else set())
    doubled = a.astype(np.float64) * 2
    most = doubled.max(axis=1, keepdims=True)
    run = ex.run([a])
    assert run.passed
    bound = CUT * (np.abs(doubled) + 2 * most) * np.maximum(1, most)
    assert (np.abs(run.outputs[0] - formula(doubled, most)) <= bound).all()
    assert ex.check([a]).ok


def test_by_default_float32_stays_whole() -> None:
    a = numbers(2)
    ex = ttx.explore(with_most(lambda b, m: b - m))
    np.testing.assert_array_equal(ex.run([a]).outputs[0], a * 2 - (a * 2).max(axis=1, keepdims=True))


def carried(turns: int) -> Any:
    """A sum that a loop carries, scaled by a number of each row in each iteration."""

    @T.prim_func
    def kernel(A: T.Tensor((32 * turns, 64), "float32"), B: T.Tensor((32, 64), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((32, 64), "float32")
            total = T.alloc_fragment((32, 64), "float32")
            most = T.alloc_fragment((32,), "float32")
            T.clear(total)
            for k in T.serial(turns):
                T.copy(A[k * 32, 0], a)
                T.reduce_max(a, most, dim=1)
                for i, j in T.Parallel(32, 64):
                    total[i, j] = total[i, j] * most[i]
                for i, j in T.Parallel(32, 64):
                    total[i, j] = total[i, j] + a[i, j]
            T.copy(total, B)

    return kernel


@pytest.mark.parametrize("turns", [1, 3])
def test_what_a_loop_carries_stays_in_dst(turns: int) -> None:
    a = numbers(3, (32 * turns, 64))
    ex = ttx.explore(carried(turns), options={"eltwise": "fpu"})
    assert "mul_tiles_bcast_cols" not in used(ex)
    want = np.zeros((32, 64))
    for k in range(turns):
        part = a[k * 32 : k * 32 + 32].astype(np.float64)
        want = want * part.max(axis=1, keepdims=True) + part
    assert np.abs(ex.run([a]).outputs[0] - want).max() < 0.02 * np.abs(want).max()
    assert ex.check([a]).ok


def twice() -> Any:
    """Two reductions of one value, which is then changed and reduced once more."""

    @T.prim_func
    def kernel(A: T.Tensor((32, 64), "float32"), B: T.Tensor((3, 32), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((32, 64), "float32")
            b = T.alloc_fragment((32, 64), "float32")
            most = T.alloc_fragment((32,), "float32")
            least = T.alloc_fragment((32,), "float32")
            total = T.alloc_fragment((32,), "float32")
            T.copy(A, a)
            for i, j in T.Parallel(32, 64):
                b[i, j] = a[i, j] + 1
            T.reduce_max(b, most, dim=1)
            T.reduce_min(b, least, dim=1)
            for i, j in T.Parallel(32, 64):
                b[i, j] = b[i, j] - most[i]
            T.reduce_sum(b, total, dim=1)
            T.copy(most, B[0, :])
            T.copy(least, B[1, :])
            T.copy(total, B[2, :])

    return kernel


@pytest.mark.parametrize(("options", "exact"), [({}, True), ({"eltwise": "fpu"}, False)])
def test_uses_of_one_value_share_what_was_packed_for_them(options: dict[str, Any], exact: bool) -> None:
    a = numbers(4, (32, 64))
    ex = ttx.explore(twice(), options=options)
    b = a.astype(np.float64) + 1
    want = np.stack([b.max(axis=1), b.min(axis=1), (b - b.max(axis=1, keepdims=True)).sum(axis=1)])
    result = ex.run([a]).outputs[0]
    assert np.abs(result - want).max() < (1e-4 if exact else 64 * CUT * np.abs(b).max())
    assert ex.check([a]).ok
