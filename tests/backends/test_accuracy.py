# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
"""The functions of the kernel language are as accurate on every magnitude as docs/numerics.md says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.backends.accuracy import ACCURACIES, PAGE, Accuracy

# The smallest number that is no subnormal.
TINY = 1.2e-38


def kernel_of(function: Any) -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((32, 256), "float32"), Out: T.Tensor((32, 256), "float32")):
        with T.Kernel(8) as bx:
            a, o = T.alloc_shared((32, 32), "float32"), T.alloc_shared((32, 32), "float32")
            T.copy(A[0, bx * 32], a)
            for i, j in T.Parallel(32, 32):
                o[i, j] = function(a[i, j])
            T.copy(o, Out[0, bx * 32])

    return kernel


def relative_errors(function: Any, meaning: Any, operands: np.ndarray) -> np.ndarray:
    """Of the emulator and of the reference; infinite where one side overflows alone."""
    exploration = ttx.explore(kernel_of(function))
    got = [exploration.run([operands]).outputs[0], exploration.reference([operands])[0]]
    with np.errstate(all="ignore"):
        wanted = meaning(operands.astype(np.float64))
        held = wanted.astype(np.float32)
        errors = np.abs(np.asarray(got, np.float64) - wanted) / np.abs(wanted)
        errors[:, np.abs(held) < TINY] = 0.0
        errors[:, ~np.isfinite(held)] = 0.0
        errors[np.isfinite(got) != np.isfinite(held)] = np.inf
    return errors


@pytest.mark.parametrize("accuracy", ACCURACIES, ids=lambda one: one.name)
def test_functions_are_accurate_on_every_magnitude(accuracy: Accuracy) -> None:
    errors = relative_errors(getattr(T, accuracy.name), accuracy.meaning, accuracy.operands())
    assert errors.max() <= accuracy.bound
    # A bound that is much too wide says nothing.
    assert errors.max() > accuracy.bound / 3


def test_the_logarithm_of_little_less_than_one() -> None:
    operands = -np.exp(np.random.default_rng(2).uniform(np.log(1e-36), np.log(0.5), (32, 256))).astype(np.float32)
    assert relative_errors(T.log1p, np.log1p, operands).max() <= 2e-7


def test_the_ends_of_the_range() -> None:
    """Both grow beyond the exponential's own range; T.log1p has its ends as well."""
    operands = np.resize(np.array([89.0, -89.0, 89.4, 90.0, -90.0, np.inf, -np.inf, 0.0], np.float32), (32, 256))
    for function, meaning in ((T.sinh, np.sinh), (T.cosh, np.cosh)):
        errors = relative_errors(function, meaning, operands)
        assert np.nanmax(errors) <= 1e-6
    ends = np.resize(np.array([-1.0, np.inf, -2.0, np.nan, 3e38, 0.0], np.float32), (32, 256))
    result = ttx.explore(kernel_of(T.log1p)).run([ends]).outputs[0]
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(result, np.log1p(ends), rtol=1e-6)


def test_the_page_tells_them() -> None:
    page = (Path(__file__).parents[2] / "docs" / "numerics.md").read_text(encoding="utf-8")
    assert page.endswith(PAGE)
