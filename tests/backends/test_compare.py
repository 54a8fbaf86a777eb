"""The comparison of results: what passes, what does not, and what it says."""

from __future__ import annotations

import dataclasses
import re
import tracemalloc
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ttexplore.backends import compare as comparing
from ttexplore.backends.compare import ULP_CLASSES, NamedComparison, compare, sides_text, tile_errors

BF16 = ml_dtypes.bfloat16


def test_a_correctly_rounded_result_passes() -> None:
    want = np.random.default_rng(0).standard_normal((96, 96))
    result = compare([want.astype(BF16)], [want])
    assert result.passed
    assert result.pcc > 0.999999 - 1e-5
    assert result.max_rel_error < 2**-8
    assert result.max_ulp <= 0.5


def test_equal_results_have_no_error() -> None:
    want = np.random.default_rng(0).standard_normal((32, 32)).astype(np.float32)
    result = compare([want, want], [want, want])
    assert (result.passed, result.pcc, result.max_rel_error, result.max_ulp) == (True, 1.0, 0.0, 0.0)


def test_one_wrong_tile_is_found_and_named() -> None:
    want = np.random.default_rng(0).standard_normal((2, 96, 128)).astype(np.float32)
    got = want.copy()
    got[1, 40, 100] += 0.5
    result = compare([want, got], [want, want])
    assert not result.passed
    assert result.worst_tile is not None
    assert (result.worst_tile.output, result.worst_tile.index) == (1, (1, 1, 3))
    assert result.worst_tile.max_abs_error == pytest.approx(0.5)
    assert result.message.startswith("output 1 differs: PCC 0.99")
    assert result.message.endswith("worst tile (1, 1, 3)")
    named = compare([want, got], [want, want], names=["C", "D"])
    assert named.message == result.message.replace("output 1", "D")
    assert named.worst_tile is not None
    assert named.worst_tile.name == "D"


def test_nan_where_the_reference_is_finite_fails() -> None:
    want = np.ones((32, 64), np.float32) * np.arange(64)
    got = want.copy()
    got[:, 40:42] = np.nan
    result = compare([got], [want])
    assert not result.passed
    assert result.message.startswith(
        "output 0 differs: 64 of 2,048 elements are not finite where the reference is; PCC"
    )
    assert result.max_rel_error == np.inf
    assert result.worst_tile is not None
    assert result.worst_tile.index == (0, 1)


def test_infinities_and_nan_of_the_reference_are_accepted() -> None:
    want = np.random.default_rng(0).standard_normal((32, 32)).astype(np.float32)
    want[0, :3] = [np.inf, -np.inf, np.nan]
    assert compare([want], [want]).passed
    wrong = want.copy()
    wrong[0, 0] = -np.inf
    wrong[0, 2] = 1.0
    result = compare([wrong], [want])
    assert not result.passed
    assert result.message.startswith(
        "output 0 differs: 2 of 1,024 elements are not the reference's infinity or NaN; PCC"
    )


def test_constant_results_have_pcc_1_if_equal_and_0_if_not() -> None:
    want = np.full((32, 32), 3.0, np.float32)
    assert compare([want], [want]).pcc == 1.0
    assert compare([want], [want]).passed
    wrong = compare([want + 1], [want])
    assert (wrong.pcc, wrong.passed) == (0.0, False)
    zero = np.zeros((32, 32), np.float32)
    assert compare([zero], [zero]).passed
    assert not compare([zero + 1], [zero]).passed


def test_a_constant_that_is_rounded_in_different_ways_passes() -> None:
    """Ones that are 1 but for some last places have no correlation, and it says nothing."""
    places = np.random.default_rng(0).integers(-2, 3, (2, 32, 32)) * 2.0**-23
    got, want = (1.0 + places).astype(np.float32)
    assert compare([got], [want]).pcc == 1.0
    assert compare([got], [want]).passed
    assert not compare([got + 0.1], [want]).passed
    wider = (1.0 + 8 * places).astype(np.float32)
    assert not compare([wider[0]], [wider[1]]).passed


def alike(spread: float, dtype: Any = BF16) -> tuple[np.ndarray, np.ndarray]:
    """Numbers that differ by a share of their size, unrounded, and as a chip that cuts instead of rounding has them."""
    values = 1500.0 * (1 + spread * np.random.default_rng(4).standard_normal((96, 128)))
    cut = values.astype(np.float32)
    if dtype is BF16:
        cut = (cut.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    return values.astype(dtype), cut.astype(dtype)


@pytest.mark.parametrize("spread", [0.03, 0.01, 0.006])
def test_right_results_that_differ_little_pass(spread: float) -> None:
    """Rounding leaves no correlation of them; then each element is judged, and the message says so."""
    want, got = alike(spread)
    result = compare([got], [want])
    assert result.passed, result.message
    assert result.pcc < 0.9999
    assert re.search(
        r"; the values vary too little for a correlation, so each was judged: the largest error is 1.00 last places "
        r"\(bound 2\), the largest root mean square of a row or column of a tile 0.\d\d \(bound 1.25\)$", result.message
    )  # fmt: skip
    for little in (0.003, 0.001, 0.0001):
        want, got = alike(little)
        assert compare([got], [want]).passed


def shifted_row(values: np.ndarray) -> None:
    values[40] = values[41].copy()


def shifted_column(values: np.ndarray) -> None:
    values[:32, 70] = values[:32, 71].copy()


def swapped_tiles(values: np.ndarray) -> None:
    first = values[:32, :32].copy()
    values[:32, :32] = values[32:64, 32:64]
    values[32:64, 32:64] = first


def transposed_tile(values: np.ndarray) -> None:
    values[64:, 96:] = values[64:, 96:].T.copy()


def scaled_tile(values: np.ndarray) -> None:
    values[:32, 32:64] = (values[:32, 32:64].astype(np.float32) * 1.008).astype(values.dtype)


def one_element(values: np.ndarray) -> None:
    values[3, 5] = values[3, 5].astype(np.float32) * 1.025


@pytest.mark.parametrize("spread", [0.004, 0.005, 0.01])
@pytest.mark.parametrize(
    "fault", [shifted_row, shifted_column, swapped_tiles, transposed_tile, scaled_tile, one_element]
)
def test_small_faults_among_numbers_that_differ_little_are_found(fault: Any, spread: float) -> None:
    """Though the error is within the bound for the whole output, and a correlation says nothing."""
    want, got = alike(spread)
    fault(got)
    result = compare([got], [want])
    assert not result.passed
    assert result.message.startswith("output 0 differs: PCC 0.")
    assert "rounding cannot explain it" in result.message or result.max_rel_error > 0.02


def test_what_float32_passed_through_is_what_it_may_lose() -> None:
    want, _ = alike(1e-4, np.float32)
    cut = (want.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    assert compare([cut], [want], ["tf32"]).passed
    assert compare([cut], [want], ["bfloat16"]).passed
    assert not compare([cut], [want], ["full"]).passed
    assert not compare([want.astype(BF16).astype(np.float32)], [want], ["tf32"]).passed


def test_what_is_only_moved_is_exact() -> None:
    want = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    got = want.copy()
    assert compare([got], [want], ["exact"]).passed
    got[40, 3] = np.nextafter(got[40, 3], np.float32(9))
    result = compare([got], [want], ["exact"])
    assert not result.passed
    assert "(required: PCC >= 0.9999, max error <= 0)" in result.message
    assert compare([got], [want]).passed


def test_a_proportional_result_fails_although_its_pcc_is_1() -> None:
    want = np.random.default_rng(0).standard_normal((32, 32)).astype(np.float32)
    result = compare([want * 1.1], [want])
    assert result.pcc == pytest.approx(1.0)
    assert not result.passed


def test_vectors_scalars_and_empty_arrays() -> None:
    vector = np.arange(70, dtype=np.float32)
    wrong = vector.copy()
    wrong[65] = 0
    result = compare([wrong], [vector])
    assert result.worst_tile is not None
    assert result.worst_tile.index == (0, 2)
    assert compare([np.float32(2.0) * np.ones(())], [np.array(2.0)]).passed
    assert compare([np.zeros((0, 32), np.float32)], [np.zeros((0, 32))]).passed
    assert compare([], []).passed


def test_shapes_must_be_the_same() -> None:
    with pytest.raises(ValueError, match=r"output 0 has shape \(2,\), but its reference \(3,\)"):
        compare([np.zeros(2)], [np.zeros(3)])
    with pytest.raises(ValueError, match="1 outputs to compare with 0 references"):
        compare([np.zeros(2)], [])


def test_errors_are_counted_by_their_ulp() -> None:
    want = np.ones((32, 32), np.float32)
    got = want.copy()
    ulp = np.float32(2**-23)
    for place, error in enumerate((1, 2, 3, 8, 9, 64, 65)):
        got[0, place] += error * ulp
    got[1, 0] = np.nan
    result = compare([got, want], [want, want])
    counts = dict(zip(ULP_CLASSES, result.ulp_histogram, strict=True))
    assert counts == {
        "equal": 2048 - 8, "≤ 1": 1, "≤ 2": 1, "≤ 4": 1, "≤ 8": 1, "≤ 16": 1, "≤ 64": 1, "more": 1, "broken": 1,
    }  # fmt: skip
    assert result.equal_share == 2040 / 2048
    assert not result.passed


def test_the_classes_are_those_of_the_largest_error() -> None:
    want = np.random.default_rng(3).standard_normal((70, 90)).astype(BF16)
    got = (want.astype(np.float64) * (1 + np.linspace(-0.2, 0.2, 90))).astype(BF16)
    result = compare([got], [want])
    assert sum(result.ulp_histogram) == want.size
    assert result.ulp_histogram[0] == np.count_nonzero(got == want)
    assert 16 < result.max_ulp <= 64
    assert [count > 0 for count in result.ulp_histogram] == [True] * 7 + [False, False]


def test_ulp_are_those_of_the_reference_down_to_a_share_of_the_largest_value() -> None:
    want = np.array([2.0, 1.9921875, 256.0, 2**-20], BF16)
    got = np.array([2.015625, 2.0, 256.0, 2**-7], BF16)
    # The last places: 2^-6 at 2, 2^-7 below 2, and at the smallest value that of 256 / 256.
    expected = [(2**-6) / 2**-6, (2**-7) / 2**-7, 0.0, (2**-7 - 2**-20) / 2**-7]
    errors = [compare([np.append(got[i], got[2])], [np.append(want[i], want[2])]).max_ulp for i in range(4)]
    assert errors == expected


def test_what_is_not_finite_is_no_number_of_ulp() -> None:
    want = np.array([1.0, np.inf, -np.inf, np.nan, np.nan, 2.0], np.float32)
    equal = compare([np.array([1.0, np.inf, -np.inf, np.nan, -np.inf, 2.0], np.float32)], [want])
    assert (equal.max_ulp, equal.max_rel_error, equal.equal_share, equal.passed) == (0.0, 0.0, 1.0, True)
    for place, value in ((0, np.inf), (0, np.nan), (1, -np.inf), (2, 7.0), (3, 0.0)):
        got = want.copy()
        got[place] = value
        result = compare([got], [want])
        assert (result.max_ulp, result.max_rel_error, result.passed) == (np.inf, np.inf, False)
        assert result.ulp_histogram == (5, 0, 0, 0, 0, 0, 0, 0, 1)


@pytest.mark.parametrize("shape", [(), (5,), (70,), (32, 32), (33, 65), (2, 40, 31), (2, 3, 64, 33), (0, 40), (3, 0)])
def test_each_tile_has_its_largest_error(shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(5)
    want = np.asarray(random.standard_normal(shape), np.float32)
    got = np.asarray(want + random.standard_normal(shape), np.float32)
    errors = tile_errors(got, want)
    rows, columns = (1, 1, *shape)[-2:]
    assert errors.shape == (*shape[:-2], -(-rows // 32), -(-columns // 32))
    difference = np.abs(got.astype(np.float64) - want).reshape((*shape[:-2], rows, columns))
    for index in np.ndindex(errors.shape):
        *leading, row, column = index
        tile = difference[(*leading, slice(32 * row, 32 * row + 32), slice(32 * column, 32 * column + 32))]
        assert errors[index] == tile.max()
    side = NamedComparison.of("a against b", [got], [want])
    worst = side.comparison.worst_tile
    if want.size:
        assert worst is not None
        assert errors[worst.index] == errors.max() == worst.max_abs_error
        assert side == NamedComparison(
            "a against b", compare([got], [want]), tuple(map(tuple, errors[worst.index[:-2]].tolist()))
        )
    else:
        assert (worst, side.worst_slice) == (None, ())


def test_broken_elements_make_the_error_of_their_tile_infinite() -> None:
    want = np.zeros((64, 64), np.float32)
    got = want.copy()
    got[40, 2] = np.nan
    got[2, 40] = 0.25
    np.testing.assert_array_equal(tile_errors(got, want), [[0.0, 0.25], [np.inf, 0.0]])
    with pytest.raises(ValueError, match=r"the output has shape \(2,\), but its reference \(3,\)"):
        tile_errors(np.zeros(2), np.zeros(3))


def test_the_worst_tile_is_that_of_the_output_that_fails() -> None:
    large = np.linspace(1e4, 2e4, 4096, dtype=np.float32).reshape(64, 64)
    rounded = large.copy()
    rounded[0, 0] += 8  # more than the other's error, but little of this output's values
    small = np.random.default_rng(0).standard_normal((2, 32, 64)).astype(np.float32)
    wrong = small.copy()
    wrong[1, 3, 40] += 1
    side = NamedComparison.of("a against b", [rounded, wrong], [large, small])
    worst = side.comparison.worst_tile
    assert worst is not None
    assert (worst.output, worst.index) == (1, (1, 0, 1))
    assert side.worst_slice == ((0.0, pytest.approx(1.0)),)
    assert not side.comparison.passed


@pytest.mark.parametrize(
    ("precision", "error", "passed"),
    [
        ("full", 0.005, True), ("full", 0.015, False), ("block_float", 0.025, True), ("block_float", 0.04, False),
        ("low_fidelity", 0.07, True), ("low_fidelity", 0.09, False),
    ],
)  # fmt: skip
def test_outputs_of_less_precision_have_wider_bounds(precision: Any, error: float, passed: bool) -> None:
    want = np.linspace(1e4, 2e4, 4096, dtype=np.float32).reshape(64, 64)
    exact = want.astype(np.float32)
    got = want.copy()
    got[3, 3] += np.float32(2e4 * error)
    comparison = compare([exact, got], [exact, want], ["full", precision])
    assert comparison.passed == passed
    # The bound is that of this output, not of those beside it.
    assert compare([got, exact], [want, exact], ["full", precision]).passed == (error <= 0.01)
    # Integers have no rounding to allow.
    assert not compare([np.array([3], np.int32)], [np.array([4], np.int32)], [precision]).passed


def test_sides_stand_in_a_table() -> None:
    want = np.linspace(1, 2, 1024, dtype=np.float32).reshape(32, 32)
    got = want.copy()
    got[3, 4] *= 1 + 2**-20
    sides = [
        NamedComparison("ttnn against reference", compare([got], [want])),
        NamedComparison("same", compare([want], [want])),
    ]
    table = sides_text(sides)
    error = float(got[3, 4]) - float(want[3, 4])
    figures = ("1.0000000", f"{error / 2:.2e}", f"{error / 2**-23:.1f}", "99.90%", "output 0: (0, 0)")
    same = ("1.0000000", "0.00e+00", "0.0", "100.00%", "-")
    measures, histograms = (
        [re.split(r"  +", line.strip()) for line in part.split("\n")] for part in table.split("\n\n")
    )
    assert measures == [
        ["ttnn", "same"],
        ["against reference"],
        *map(list, zip(("PCC", "max rel error", "max ULP", "equal", "worst tile"), figures, same, strict=True)),
    ]
    assert histograms == [
        ["elements by ULP"],
        *map(list, zip(ULP_CLASSES, ("1,023", *"----1---"), ("1,024", *"--------"), strict=True)),
    ]
    long = [
        NamedComparison(f"wolfpine against {other}", compare([got], [want]))
        for other in ("reference", "emulator", "ttsim")
    ]
    assert max(map(len, sides_text(long).splitlines())) <= 80
    many = sides_text(long * 3)
    assert max(map(len, many.splitlines())) <= 80
    assert many.count("wolfpine") == 9
    assert many.count("elements by ULP") == 3


@pytest.mark.parametrize("shape", [(3, 100, 70), (2, 2, 33, 40), (1000, 33), (5000,), (7, 1, 20)])
def test_strips_give_what_the_whole_gives(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(len(shape))
    want = rng.standard_normal(shape).astype(np.float32)
    outputs = [want + rng.standard_normal(shape).astype(np.float32) * 1e-3, want * np.float32(1.05), want + 100]
    outputs.append(np.where(rng.random(shape) < 0.01, np.nan, want).astype(np.float32))
    near = (1000 + want * 0.1).astype(ml_dtypes.bfloat16)
    pairs = [*((one, want) for one in outputs), (near, (1000 + want * 0.1).astype(np.float32)), (near, near[::-1])]
    whole = [compare([got], [expected]) for got, expected in pairs]
    monkeypatch.setattr(comparing, "_STRIP_ELEMENTS", 1 << 11)
    for (got, expected), one in zip(pairs, whole, strict=True):
        strips = compare([got], [expected])
        assert strips.pcc == pytest.approx(one.pcc, abs=1e-12)
        assert dataclasses.replace(strips, pcc=one.pcc) == one


def test_a_comparison_needs_little_memory() -> None:
    """Whatever its size: an output of 64 MiB in float64 would be 128 MiB for each side."""
    want = np.ones((4096, 4096), np.float32)
    got = want.copy()
    tracemalloc.start()
    try:
        assert compare([got], [want]).passed
        assert tracemalloc.get_traced_memory()[1] < 112 << 20
    finally:
        tracemalloc.stop()


def by_size(want: np.ndarray) -> Any:
    """What rounding explains of results that are computed from numbers of their own size."""
    return lambda unit: [np.stack([np.abs(want.astype(np.float32)) * np.float32(unit)] * 2)]


def zeroed(values: np.ndarray) -> None:
    values[16:32] = 0


def negated(values: np.ndarray) -> None:
    values[16:32] *= -1


def another_row(values: np.ndarray) -> None:
    values[20] = values[21].copy()


def another_column(values: np.ndarray) -> None:
    values[16:48, 40] = values[16:48, 41].copy()


@pytest.mark.parametrize("fault", [zeroed, negated, another_row, another_column])
@pytest.mark.parametrize("dtype", [np.float32, BF16])
def test_a_wrong_part_of_small_numbers_is_found(fault: Any, dtype: Any) -> None:
    want = np.random.default_rng(0).standard_normal((64, 64))
    want[16:48] *= 1e-3
    want = want.astype(dtype)
    got = want.copy()
    fault(got)
    assert compare([got], [want]).passed, "the whole says nothing"
    result = compare([got], [want], (), by_size(want))
    assert not result.passed
    assert re.fullmatch(
        r"output 0 differs: PCC .* ULP \(required: PCC >= 0.9999, max error <= 0.0[12]\); (row|column) \d+ of tile "
        r"\(\d, \d\), of norm (\S+), is wrong by (\S+) \(bound (\S+), what rounding of the intermediate results "
        r"explains\); worst tile \(\d, \d\)", result.message
    )  # fmt: skip
    assert result.worst_tile is not None
    assert f"of tile {result.worst_tile.index}" in result.message
    assert compare([want], [want], (), by_size(want)).passed


def test_garbage_beside_one_large_value_is_found() -> None:
    random = np.random.default_rng(0)
    want = random.standard_normal((3, 33, 40)) * 1e-3
    want[1, 5, 7] = 1000
    got = random.standard_normal((3, 33, 40)) * 1e-3
    got[1, 5, 7] = 1000
    got, want = got.astype(np.float32), want.astype(np.float32)
    assert compare([got], [want]).passed
    result = compare([got], [want], (), by_size(want))
    assert not result.passed
    assert re.search(r"(row|column) \d+ of tile \(\d, \d\) of matrix \d, of norm", result.message)


def test_what_rounding_of_larger_numbers_explains_is_right() -> None:
    """Sums that cancel, beside ones that do not."""
    random = np.random.default_rng(0)
    want = random.standard_normal((64, 64)).astype(np.float32)
    want[40] *= 1e-6
    got = want.copy()
    got[40] += 1e-5 * random.standard_normal(64).astype(np.float32)
    assert not compare([got], [want], (), by_size(want)).passed
    assert compare([got], [want], (), lambda unit: [np.full((2, *want.shape), 16 * unit)]).passed


def test_rounding_is_asked_only_where_something_is_far_off() -> None:
    want = np.random.default_rng(0).standard_normal((64, 64)).astype(BF16)
    got = (want.astype(np.float32) * 1.003).astype(BF16)

    def never(unit: float) -> Any:
        raise AssertionError("it was asked")

    assert compare([got], [want], (), never).passed
    exact = np.arange(1024, dtype=np.int32).reshape(32, 32)
    assert compare([exact], [exact], (), never).passed
    assert not compare([exact + 1], [exact], ["exact"], never).passed
    assert not compare([want + BF16(0.5)], [want], ["exact"], never).passed


def test_an_output_of_nothing_but_cancelled_sums_is_right_within_its_rounding() -> None:
    random = np.random.default_rng(0)
    want = (1e-6 * random.standard_normal((64, 64))).astype(np.float32)
    got = want + (2.0**-22 * random.standard_normal(want.shape)).astype(np.float32)
    assert not compare([got], [want]).passed
    result = compare([got], [want], (), lambda unit: [np.full((2, *want.shape), unit)])
    assert result.passed
    assert "; rounding explains each row and column of a tile: " in result.message
    # One unit of each operation explains it, not the two that a part beside larger ones may be off.
    assert not compare([want + 40 * (got - want)], [want], (), lambda unit: [np.full((2, *want.shape), unit)]).passed
    # Errors of which nothing is known explain nothing.
    assert not compare([got], [want], (), lambda unit: [np.full((2, *want.shape), np.inf, np.float32)]).passed
    broken = got.copy()
    broken[3, 3] = np.nan
    assert not compare([broken], [want], (), lambda unit: [np.full((2, *want.shape), 1.0)]).passed


@pytest.mark.parametrize(("factor", "passed"), [(0.95, True), (1.05, False)])
def test_the_bound_of_rounding_is_two_units_beside_larger_numbers_and_else_one(factor: float, passed: bool) -> None:
    unit = 2.0**-20  # eight last places of float32
    want = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    want[40] *= 1e-9
    got = want.copy()
    got[40] += np.float32(2 * factor * unit)
    assert compare([got], [want]).passed
    assert compare([got], [want], (), lambda unit: [np.full((2, *want.shape), unit)]).passed is passed
    want *= np.float32(1e-6)
    got = want + np.float32(factor * unit)
    assert not compare([got], [want]).passed
    assert compare([got], [want], (), lambda unit: [np.full((2, *want.shape), unit)]).passed is passed


def test_casts_to_8_bits_round_to_the_nearest() -> None:
    """A few elements may lie on the other side of a middle; half of them do not."""
    want = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32) * 100
    nearest = want.astype(ml_dtypes.float8_e4m3fn)
    near = (want * np.float32(1 + 2**-8)).astype(ml_dtypes.float8_e4m3fn)
    assert 0.01 < np.mean(near.astype(np.float32) != nearest.astype(np.float32)) < 0.1
    assert compare([near], [nearest]).passed
    cut = (want.view(np.uint32) & np.uint32(0xFFF00000)).view(np.float32).astype(ml_dtypes.float8_e4m3fn)
    result = compare([cut], [nearest])
    assert not result.passed
    assert "of the elements differ, but casts to float8_e4m3fn round to the nearest" in result.message
