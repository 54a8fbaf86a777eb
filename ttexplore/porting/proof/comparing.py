"""Comparing what a source and its skeleton give, element by element.

Two measures hold at once. Relative to the largest result of a tensor they may be apart by a little. And each element
must be what rounding to float32 can make of the number that the skeleton gives in float64: that number with the error
that rounding in each operation adds up to, found while the skeleton is evaluated, rounded to the dtype of the tensor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ttexplore.porting.proof.launches import TrialLaunch
from ttexplore.porting.proof.results import Difference
from ttexplore.porting.proof.running import SourceRun

Array = NDArray[Any]
# How far results may be apart, relative to the largest one: by constants such as log2(e) that have few digits, and in a
# source whose numbers are float32 by its rounding.
_EXACT, _ROUNDED = 2e-5, 2e-3
_LARGE = 20.0
# How far apart two numbers are that are the same but for the rounding of a few operations.
_SAME = 2.0**-21


@dataclass(frozen=True, eq=False)
class BothOutputs:
    """The run of a source, and the outputs of both by the names of the source's tensors, in float64: the skeleton's as
    it rounds, where the source does. `problem` is what the source does that has no result."""

    run: SourceRun
    source: Mapping[str, Array]
    skeleton: Mapping[str, Array]
    problem: str = ""
    # The dtypes in which the source stores elements.
    dtypes: Mapping[str, np.dtype[Any]] = field(default_factory=dict[str, np.dtype[Any]])


@dataclass(frozen=True, eq=False)
class Evaluated:
    """What a skeleton gives in float64, by the names of the source's tensors, and how far rounding in float32 may move
    each element."""

    values: Mapping[str, Array]
    errors: Mapping[str, Array]


def compared(launch: TrialLaunch, inputs: str, both: BothOutputs, *, rounds: bool) -> tuple[Difference | None, float]:
    """The first element that is further apart than results may be, relative to the largest, and the largest difference
    that is none."""
    largest = 0.0
    bound = (_ROUNDED if rounds else _EXACT) * (_LARGE if inputs == "large" else 1.0)
    for tensor, expected in both.source.items():
        result = both.skeleton[tensor]
        finite = np.isfinite(expected) & np.isfinite(result)
        scale = max(float(np.max(np.abs(expected[finite]), initial=0.0)), 1e-30)
        with np.errstate(all="ignore"):
            errors = np.abs(result - expected) / scale
        same = (result == expected) | (np.isnan(result) & np.isnan(expected))
        wrong = ~same & ~(finite & (errors <= bound))
        if np.any(wrong):
            return difference(tensor, wrong, expected, result, launch, inputs, both.run), 0.0
        largest = max(largest, float(np.max(errors[finite], initial=0.0)))
    return None, largest


def overflown(launch: TrialLaunch, inputs: str, both: BothOutputs, *, keeps_nan: bool = False) -> Difference | None:
    """The first element that is finite in the source, and not in the skeleton; NaN where the skeleton `keeps_nan` that
    the source drops does not count."""
    for tensor, expected in both.source.items():
        result = both.skeleton[tensor]
        wrong = np.isfinite(expected) & (np.isinf(result) | (np.isnan(result) & (not keeps_nan)))
        if np.any(wrong):
            return difference(tensor, wrong, expected, result, launch, inputs, both.run)
    return None


def unexplained(
    launch: TrialLaunch,
    inputs: str,
    both: BothOutputs,
    evaluated: Evaluated,
    allowance: float = 0.0,
    *,
    keeps_nan: bool = False,
) -> Difference | None:
    """The first element of the source that no rounding to float32 makes of what the skeleton gives, and that is not
    that of the skeleton as it rounds. `allowance` is what else may be between them."""
    for tensor, expected in both.source.items():
        value, error = evaluated.values[tensor], evaluated.errors[tensor] + allowance
        with np.errstate(all="ignore"):
            low, high = (end.astype(both.dtypes[tensor]).astype(np.float64) for end in (value - error, value + error))
        is_inside = ((expected >= low) & (expected <= high)) | (np.isnan(expected) & np.isnan(value))
        rounded = both.skeleton[tensor]
        with np.errstate(all="ignore"):
            is_same = np.isfinite(rounded) & (np.abs(expected - rounded) <= _SAME * np.abs(rounded))
        is_same |= (expected == rounded) | (np.isnan(expected) & np.isnan(rounded))
        # Where both overflow on the way, the order of sums decides which infinite number comes of it, or none.
        is_same |= ~np.isfinite(expected) & ~np.isfinite(rounded) & np.isfinite(value)
        # An overflow on the way may be NaN, which a maximum of the source drops.
        is_same |= np.isnan(rounded) & np.isfinite(value) & keeps_nan
        wrong = ~is_inside & ~is_same
        if np.any(wrong):
            return difference(tensor, wrong, expected, value, launch, inputs, both.run)
    return None


def difference(
    tensor: str, wrong: Array, expected: Array, result: Array, launch: TrialLaunch, inputs: str, run: SourceRun
) -> Difference:
    """The first of the elements that are wrong."""
    index = tuple(int(number[0]) for number in np.nonzero(wrong))
    line = run.lines.get(tensor, 0)
    return Difference(tensor, index, float(expected[index]), float(result[index]), launch.sizes, inputs, line)
