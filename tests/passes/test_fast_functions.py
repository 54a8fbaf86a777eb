"""Functions in the fast form of the SFPU: where, with which factor, and that the result is that of the SDK's code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import ttexplore as ttx
import ttexplore.language as T
from ttexplore.backends.compare import compare
from ttexplore.errors import UsageError

Array = NDArray[Any]


def unary(function: Any, *, dtype: str = "float32") -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((32, 64), dtype), B: T.Tensor((32, 64), dtype)):
        with T.Kernel(1):
            a = T.alloc_shared((32, 64), dtype)
            b = T.alloc_fragment((32, 64), dtype)
            T.copy(A, a)
            for i, j in T.Parallel(32, 64):
                b[i, j] = function(a[i, j])
            T.copy(b, B)

    return kernel


def scaled_difference(factor: float, other: float) -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((32, 64), "float32"), M: T.Tensor((32, 64), "float32"), B: T.Tensor((32, 64), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((32, 64), "float32")
            m = T.alloc_shared((32, 64), "float32")
            b = T.alloc_fragment((32, 64), "float32")
            T.copy(A, a)
            T.copy(M, m)
            for i, j in T.Parallel(32, 64):
                b[i, j] = T.exp2(a[i, j] * factor - m[i, j] * other)
            T.copy(b, B)

    return kernel


def schraudolph(x: Array, factor: float) -> Array:
    """The upper 16 bits of the result, without its sign, are 32500.8 and 369.33 times the operand."""
    scale = np.float32(factor)
    slope = np.float32(np.float32(256 * np.float32(1.4426950408889634)) * scale)
    limited = np.maximum(x, np.float32(-88.5) / scale)
    number = np.abs((limited.astype(np.float64) * slope + np.float64(np.float32(32500.818359375))).astype(np.float32))
    return (np.minimum(np.floor(number + 0.5), 65535).astype(np.uint32) << 15).view(np.float32)


def numbers(seed: int, spread: float = 8) -> Array:
    return (np.random.default_rng(seed).standard_normal((32, 64)) * spread).astype(np.float32)


@pytest.mark.parametrize(
    ("function", "operand", "factor"),
    [
        (T.exp, lambda a: a, 1.0), (T.exp2, lambda a: a, np.log(2)), (lambda x: T.exp(x * 0.125), lambda a: a, 0.125),
        (lambda x: T.exp2(x * 0.3), lambda a: a, 0.3 * np.log(2)),
        # The chip limits its operand before it multiplies, so the factor must be positive.
        (lambda x: T.exp(x * -0.5), lambda a: a * np.float32(-0.5), 1.0), (lambda x: T.exp(-x), lambda a: -a, 1.0),
        (lambda x: T.exp(x * 1e-30), lambda a: a * np.float32(1e-30), 1.0),
    ],
)  # fmt: skip
def test_the_emulator_computes_it_as_the_sdk_does(function: Any, operand: Any, factor: float) -> None:
    a = numbers(1)
    a[0, :8] = 0, -0.0, 88, -88, -100, -1e30, 1e-30, -np.inf
    ex = ttx.explore(
        unary(function), target="wormhole_n150" if factor == 1 else "blackhole_p150", options={"sfpu": "fast"}
    )
    a = np.clip(a, -80, 80) if factor == 1.0 and operand(np.float32(1)) < 0 else a
    np.testing.assert_array_equal(ex.run([a]).outputs[0], schraudolph(operand(a), float(np.float32(factor))))


def test_a_difference_of_products_with_one_factor_has_it_after_the_difference() -> None:
    a, m = numbers(2), np.maximum(numbers(2), numbers(3))
    ex = ttx.explore(scaled_difference(0.25, 0.25), options={"sfpu": "fast"})
    assert "mul_unary" not in ex.code["compute"].text
    (result,) = ex.run([a, m]).outputs
    np.testing.assert_array_equal(result, schraudolph(a - m, float(np.float32(0.25 * np.log(2)))))
    other = ttx.explore(scaled_difference(0.25, 0.5), options={"sfpu": "fast"})
    (result,) = other.run([a, m]).outputs
    products = a * np.float32(0.25) - m * np.float32(0.5)
    np.testing.assert_array_equal(result, schraudolph(products, float(np.float32(np.log(2)))))


def rows(of_block: bool) -> Any:
    """The exponential of a number of each row, stored as such or beside an element of a block."""

    @T.prim_func
    def kernel(A: T.Tensor((32, 64), "float32"), B: T.Tensor((32, 64), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((32, 64), "float32")
            most = T.alloc_fragment((32,), "float32")
            b = T.alloc_fragment((32, 64), "float32")
            T.copy(A, a)
            T.reduce_max(a, most, dim=1)
            if of_block:
                for i, j in T.Parallel(32, 64):
                    b[i, j] = a[i, j] * T.exp(most[i])
            else:
                for i in T.Parallel(32):
                    most[i] = T.exp(most[i])
                for i, j in T.Parallel(32, 64):
                    b[i, j] = a[i, j] * most[i]
            T.copy(b, B)

    return kernel


def rows_less_maximum() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((32, 64), "float32"), B: T.Tensor((32, 64), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((32, 64), "float32")
            most = T.alloc_fragment((32,), "float32")
            b = T.alloc_fragment((32, 64), "float32")
            T.copy(A, a)
            T.reduce_max(a, most, dim=1)
            for i, j in T.Parallel(32, 64):
                b[i, j] = T.exp(a[i, j] - most[i])
            T.copy(b, B)

    return kernel


@pytest.mark.parametrize("of_block", [False, True])
def test_what_is_the_same_for_a_row_stays_exact(of_block: bool) -> None:
    a = numbers(4, 1)
    ex = ttx.explore(rows(of_block), options={"sfpu": "fast"})
    (result,) = ex.run([a]).outputs
    np.testing.assert_allclose(result, a * np.exp(a.max(axis=1, keepdims=True)), rtol=1e-5)
    assert ex.plan.compute is not None
    assert ex.plan.compute.fast == ()
    assert ex.plan.precisions == ("full",)


def test_the_check_says_what_is_fast_and_how_far_off_it_may_be() -> None:
    a = numbers(5, 2)
    ex = ttx.explore(unary(T.exp), options={"sfpu": {"exp": "fast"}})
    run = ex.run([a])
    assert run.passed
    assert "fast exponentials explain errors of up to 3.5%" in run.message
    errors = np.abs(run.outputs[0] / np.exp(a.astype(np.float64)) - 1)
    assert 0.02 < errors.max() < 0.035
    wrong = run.outputs[0] * np.float32(1.2)
    assert not compare([wrong], [np.exp(a)], ex.plan.precisions).passed


def test_one_function_is_fast_and_another_is_not() -> None:
    a = numbers(6, 1)
    ex = ttx.explore(unary(lambda x: T.exp2(x) + T.exp(x)), options={"sfpu": {"exp": "fast", "exp2": "exact"}})
    want = np.exp2(a.astype(np.float64)) + schraudolph(a, 1.0)
    np.testing.assert_allclose(ex.run([a]).outputs[0], want, rtol=1e-6)


def shares(by_row: bool) -> Any:
    """Numbers divided by the sum of their row, or by another block."""

    @T.prim_func
    def kernel(A: T.Tensor((32, 64), "float32"), D: T.Tensor((32, 64), "float32"), B: T.Tensor((32, 64), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((32, 64), "float32")
            d = T.alloc_shared((32, 64), "float32")
            total = T.alloc_fragment((32,), "float32")
            b = T.alloc_fragment((32, 64), "float32")
            T.copy(A, a)
            T.copy(D, d)
            T.reduce_sum(d, total, dim=1)
            for i, j in T.Parallel(32, 64):
                b[i, j] = a[i, j] / (total[i] if by_row else d[i, j])
            T.copy(b, B)

    return kernel


@pytest.mark.parametrize("target", ["wormhole_n150", "blackhole_p150"])
@pytest.mark.parametrize("by_row", [True, False])
def test_a_fast_quotient_is_a_product_with_a_reciprocal(by_row: bool, target: str) -> None:
    a, d = numbers(7), numbers(8)
    a[0, :4], d[1] = (0, -0.0, 1e30, -1e-30), 1e-20
    d[2], d[3], a[4] = -1e30, 3.0, 0
    ex = ttx.explore(shares(by_row), target=target, options={"sfpu": {"div": "fast"}})
    compute = ex.code["compute"].text
    assert "recip_tile(" in compute
    assert "div_binary_tile(" not in compute
    assert ex.check([a, d])
    (result,) = ex.run([a, d]).outputs
    divisors = d.sum(axis=1, keepdims=True, dtype=np.float64) if by_row else d.astype(np.float64)
    np.testing.assert_allclose(result, a / divisors, rtol=1e-5)
    assert ex.plan.precisions == ("full",)
    assert ex.plan.compute is not None
    assert "b: quotients as products with reciprocals, as requested" in ex.plan.compute.reasons


def test_quotients_stay_exact_where_exponentials_are_fast_and_of_what_a_row_shares() -> None:
    assert "div_binary_tile(" in ttx.explore(shares(True), options={"sfpu": {"exp": "fast"}}).code["compute"].text
    assert "div_binary_tile(" in ttx.explore(shares(True)).code["compute"].text


@pytest.mark.parametrize("target", ["wormhole_n150", "blackhole_p150"])
def test_tiles_of_the_fpu_take_turns_with_those_of_the_vector_unit(target: str) -> None:
    """Each tile's exponential comes right after its difference, so that others are unpacked meanwhile."""
    ex = ttx.explore(rows_less_maximum(), target=target, options={"sfpu": "fast", "eltwise": "fpu"})
    lines = [line.strip() for line in ex.code["compute"].text.splitlines()]
    at = next(number for number, line in enumerate(lines) if line.startswith("sub_tiles_bcast_cols("))
    assert any(line.startswith("exp_tile<true>(") for line in lines[at : at + 3])
    a = numbers(9)
    a[0], a[1], a[2, 0] = -1e30, 0, 1e4
    assert ex.check([a])
    (result,) = ex.run([a]).outputs
    most = a.max(axis=1, keepdims=True)
    np.testing.assert_allclose(result, np.exp(a - most), rtol=0.08, atol=1e-5)


@pytest.mark.parametrize(
    ("value", "told"), [("fats", "no sfpu 'fats'"), ({"log": "fast"}, "'log'"), ({"exp": "quick"}, "'quick'"), (3, "3")]
)
def test_what_has_no_fast_form_is_refused(value: Any, told: str) -> None:
    with pytest.raises(UsageError, match=told) as caught:
        ttx.explore(unary(T.exp), options={"sfpu": value})
    assert caught.value.hint or "exact" in str(caught.value)
