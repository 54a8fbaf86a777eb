"""The comparison of results: what passes, what does not, and what it says."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

from ttexplore.backends.compare import ULP_CLASSES, Side, compare, sides_text

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


def test_nan_where_the_reference_is_finite_fails() -> None:
    want = np.ones((32, 64), np.float32) * np.arange(64)
    got = want.copy()
    got[:, 40:42] = np.nan
    result = compare([got], [want])
    assert not result.passed
    assert result.message.startswith("64 elements of output 0 are not finite where the reference is")
    assert result.max_rel_error == np.inf
    assert result.worst_tile is not None
    assert result.worst_tile.index == (0, 1)


def test_infinities_and_nan_of_the_reference_are_accepted() -> None:
    want = np.random.default_rng(0).standard_normal((32, 32)).astype(np.float32)
    want[0, :3] = [np.inf, -np.inf, np.nan]
    assert compare([want], [want]).passed
    wrong = want.copy()
    wrong[0, 0] = -np.inf
    assert not compare([wrong], [want]).passed


def test_constant_results_have_pcc_1_if_equal_and_0_if_not() -> None:
    want = np.full((32, 32), 3.0, np.float32)
    assert compare([want], [want]).pcc == 1.0
    assert compare([want], [want]).passed
    wrong = compare([want + 1], [want])
    assert (wrong.pcc, wrong.passed) == (0.0, False)
    zero = np.zeros((32, 32), np.float32)
    assert compare([zero], [zero]).passed
    assert not compare([zero + 1], [zero]).passed


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
    with pytest.raises(ValueError, match=r"output 0 has shape \(2,\), its reference \(3,\)"):
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


def test_sides_stand_in_a_table() -> None:
    want = np.linspace(1, 2, 1024, dtype=np.float32).reshape(32, 32)
    got = want.copy()
    got[3, 4] *= 1 + 2**-20
    sides = [Side("ttnn against reference", compare([got], [want])), Side("same", compare([want], [want]))]
    lines = sides_text(sides).splitlines()
    titles = ("", "PCC", "max rel error", "max ULP", "equal", "worst tile", *ULP_CLASSES[1:])
    error = float(got[3, 4]) - float(want[3, 4])
    figures = ("1.0000000", f"{error / 2:.2e}", f"{error / 2**-23:.1f}", "99.90%", "0: (0, 0)")
    rows = [
        titles,
        ("ttnn against reference", *figures, *"00001000"),
        ("same", "1.0000000", "0.00e+00", "0.0", "100.00%", "-", *"00000000"),
    ]
    assert [re.split(r"  +", line.strip()) for line in lines] == [[word for word in row if word] for row in rows]
    assert len({len(line) for line in lines}) == 1
