"""How wrong rounding may make a result: against NumPy in float64, and against results that are rounded at random."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ttexplore.ir.arithmetic.functions import FUNCTIONS
from ttexplore.ir.arithmetic.uncertain import Uncertain, lifted, whole_product

UNIT, BF16 = 2.0**-10, ml_dtypes.bfloat16


def stored(values: Any, unit: float = UNIT) -> Uncertain:
    return Uncertain.stored(np.asarray(values, np.float32), unit)


def noisy(random: np.random.Generator, values: Any) -> Any:
    return values * (1 + UNIT * random.choice([-1.0, 1.0], np.shape(values)))


def deviation(compute: Callable[[Callable[[Any], Any]], Any], times: int = 400) -> Any:
    """How far a result is off, where each operation is wrong by one unit, up or down."""
    random = np.random.default_rng(3)
    exact = compute(lambda values: values)
    return np.sqrt(np.mean([np.square(compute(lambda v: noisy(random, v)) - exact) for _ in range(times)], axis=0))


X = np.random.default_rng(0).standard_normal((8, 8))
Y = np.random.default_rng(1).standard_normal((8, 8))


@pytest.mark.parametrize(
    ("carried", "apart"),
    [
        (lambda x, y: x - y, lambda r: r(r(X) - r(Y))),
        (lambda x, y: (x + np.float32(1000)) - np.float32(1000), lambda r: r(r(r(X) + 1000) - 1000)),
        (lambda x, y: x * y * x, lambda r: r(r(r(X) * r(Y)) * r(X))),
        (lambda x, y: x @ y, lambda r: r(r(X) @ r(Y))),
        (lambda x, y: lifted(np.exp)(x) / (y * y + np.float32(1)), lambda r: r(r(np.exp(r(X))) / r(r(r(Y) ** 2) + 1))),
        (lambda x, y: lifted(np.tanh)(x * np.float32(3)), lambda r: r(np.tanh(r(r(X) * 3)))),
    ],
)  # fmt: skip
def test_errors_are_those_of_operations_that_are_wrong_by_a_unit(carried: Any, apart: Any) -> None:
    error, found = carried(stored(X), stored(Y)).error, deviation(apart)
    assert (found <= 2 * error).all()
    # Not many times too wide: such a bound would find nothing.
    assert np.median(error / found) < 2


def test_what_may_jump_counts_as_far_as_it_jumps() -> None:
    x = stored([1.0, 1.9999, 2.0001, 2.5])
    np.testing.assert_allclose(lifted(np.floor)(x).error, [1, 1, 1, 0], atol=2.1 * UNIT)
    chosen: Any = np.where(x > np.float32(2), np.float32(5), np.float32(1))
    np.testing.assert_allclose(chosen.value, [1, 1, 5, 5])
    np.testing.assert_allclose(chosen.error, [0, 4, 4, 0])
    both = (x > np.float32(2)) & (x < np.float32(2.4))
    np.testing.assert_array_equal(both.error, [False, True, True, False])
    # What is certain is an array as others are.
    assert isinstance(stored([1.0, 3.0]) > np.float32(2), np.ndarray)
    whole: Any = stored([1.5, 1.9999]).astype(np.int32)
    assert whole.error.tolist() == [0, 1]


def test_infinities_and_subnormal_numbers_are_no_error_of_what_follows() -> None:
    numbers: Any = stored([1.0, 2.0])
    masked: Any = np.where(np.array([True, False]), numbers, np.float32(-np.inf))
    weights = lifted(np.exp)(masked - np.float32(1))
    assert weights.value[1] == 0
    assert weights.error[1] < 1e-36
    assert 0 < weights.error[0] < 4 * UNIT
    small: Any = stored([-90.0])
    assert (lifted(np.exp)(small).error > 1e-38).all()
    # The logarithm of what may be negative is anything.
    logarithm: Any = lifted(FUNCTIONS["log"])(stored([0.0]) + np.float32(1e-40))
    assert logarithm.error[0] == np.inf


def test_errors_lie_on_the_side_to_which_a_number_may_go() -> None:
    x = stored([1.9999, 2.0001, 2.5])
    floor: Any = lifted(np.floor, to_whole=True)(x)
    assert (floor.below.tolist(), floor.above.tolist()) == ([0, 1, 0], [1, 0, 0])
    for moved, below, above in ((floor + floor, [0, 2, 0], [2, 0, 0]), (-floor, [1, 0, 0], [0, 1, 0])):
        assert (moved.below.tolist(), moved.above.tolist()) == (below, above)
    chosen: Any = np.where(x > np.float32(2), np.float32(5), np.float32(1))
    assert (chosen.below.tolist(), chosen.above.tolist()) == ([0, 4, 0], [4, 0, 0])
    # What is equal to a number somewhere in its interval may be equal, wherever the ends are.
    assert (stored([1.9999, 2.0, 2.5]) == np.float32(2)).error.tolist() == [True, True, False]


def test_whole_numbers_are_rounded_by_nothing_among_them() -> None:
    large: Any = Uncertain.stored(np.full((4, 4), 1e6, np.float32), UNIT, whole=True)
    assert not (large + large).error.any()
    assert not np.any(getattr(whole_product(large, large), "error", 0))
    unsure = Uncertain(np.ones((1, 3), np.float32), np.zeros((1, 3)), np.ones((1, 3)), UNIT, whole=True)
    sums: Any = whole_product(unsure, Uncertain.stored(np.full((3, 1), 5, np.float32), UNIT, whole=True))
    assert (sums.value.tolist(), sums.above.tolist()) == ([[15]], [[15]])


def test_what_is_rounded_on_its_way_may_be_kept() -> None:
    """The errors of a sum that is rounded at each step reach to sums that are rounded less often, or never."""
    total: Any = stored([0.0], 2.0**-24)
    for _ in range(1000):
        total = (total + np.float32(0.75)).rounded(lambda v: v.astype(BF16).astype(np.float32), kept=True)
    # Half of a last place of 256 is more than 0.75.
    assert total.value[0] == 256
    assert 750 <= total.value[0] + total.above[0] < 1200
    assert total.below[0] < 1
