"""Comparing what a backend gives with what the reference gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ttexplore.plan import TILE_COLUMNS, TILE_ROWS

Array = NDArray[Any]

# The bar of upstream's tests for bfloat16 (metalium.md 5.4) and the issue's.
MINIMUM_PCC = 0.9999

# Largest error relative to the largest absolute reference value. bfloat16: one rounding is 2^-9 = 0.2 %; a result of a
# few roundings stays below 2 %. float32: what passes the FPU is cut to TF32 (2^-10), sums of many such to below 1 %.
MAXIMUM_RELATIVE_ERROR = {"bfloat16": 0.02, "float32": 0.01}

# LoFi multiplies 5 bits of one operand: each product is cut by up to 2^-5 (metalium.md 5.1). The other fidelities drop
# less than bfloat16's last place.
LOW_FIDELITY_PCC, LOW_FIDELITY_RELATIVE_ERROR = 0.999, 0.08


# The classes of the ULP histogram: the upper ends; beyond them "more", and what is not finite though it should be.
ULP_ENDS = (0, 1, 2, 4, 8, 16, 64)
ULP_CLASSES = ("equal", *(f"≤ {end}" for end in ULP_ENDS[1:]), "more", "broken")


@dataclass(frozen=True, slots=True)
class TileError:
    """The 32x32 tile with the largest error: the output's number, the tile's index (leading dimensions, tile row, tile
    column) and its largest absolute error."""

    output: int
    index: tuple[int, ...]
    max_abs_error: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """How close outputs are to their references; of several outputs the worst of each measure.

    `pcc` is Pearson's correlation coefficient of the elements; where one side is constant it is 1 if all elements are
    within the bound, else 0. `max_rel_error` is the largest absolute error divided by the largest absolute reference
    value (by 1 where the reference is all zero), infinite where an element is not finite and its reference is.
    `max_ulp` is the largest error in units of the output dtype's last place at the reference value, taken no finer
    than at 1/256 of the largest reference value, so that cancellation near zero does not count. `ulp_histogram` counts
    the elements of all outputs by their error, in the classes of ULP_CLASSES.
    """

    passed: bool
    pcc: float
    max_rel_error: float
    max_ulp: float
    worst_tile: TileError | None
    message: str
    ulp_histogram: tuple[int, ...] = (0,) * len(ULP_CLASSES)

    @property
    def equal_share(self) -> float:
        """The share of elements that are equal, 1 if there are none."""
        total = sum(self.ulp_histogram)
        return self.ulp_histogram[0] / total if total else 1.0


@dataclass(frozen=True, slots=True)
class Side:
    """One of the comparisons of a run, as "ttnn against emulator"."""

    name: str
    comparison: Comparison


def sides_text(sides: Sequence[Side]) -> str:
    """The comparisons as a table, one line each, with the numbers of elements by ULP of error."""
    rows: list[tuple[str, ...]] = [("", "PCC", "max rel error", "max ULP", "equal", "worst tile", *ULP_CLASSES[1:])]
    for side in sides:
        one = side.comparison
        tile = f"{one.worst_tile.output}: {one.worst_tile.index}" if one.worst_tile and one.equal_share < 1 else "-"
        figures = (f"{one.pcc:.7f}", f"{one.max_rel_error:.2e}", f"{one.max_ulp:.1f}", f"{one.equal_share:.2%}")
        rows.append((side.name, *figures, tile, *(str(count) for count in one.ulp_histogram[1:])))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(word.ljust(width) if place == 0 else word.rjust(width) for place, (word, width) in columns).rstrip()
        for columns in (tuple(enumerate(zip(row, widths, strict=True))) for row in rows)
    )


def compare(outputs: Sequence[Array], references: Sequence[Array], *, low_fidelity: bool = False) -> Comparison:
    """Compares each output with its reference (any float dtype, same shapes).

    Passed: every output is finite where its reference is (and infinite or NaN where that is), its PCC is at least
    0.9999, and its largest error relative to the largest reference value is at most 0.02 (bfloat16) or 0.01 (float32);
    with `low_fidelity` (math fidelity LoFi) 0.999 and 0.08.
    Raises ValueError for differing shapes.
    """
    if len(outputs) != len(references):
        raise ValueError(f"{len(outputs)} outputs to compare with {len(references)} references")
    results = [
        _compare_one(i, out, ref, low_fidelity) for i, (out, ref) in enumerate(zip(outputs, references, strict=True))
    ]
    if not results:
        return Comparison(True, 1.0, 0.0, 0.0, None, "no outputs to compare")
    tiles = [result.worst_tile for result in results if result.worst_tile is not None]
    failed = next((result for result in results if not result.passed), None)
    worst = failed or min(results, key=lambda result: result.pcc)
    return Comparison(
        passed=failed is None,
        pcc=min(result.pcc for result in results),
        max_rel_error=max(result.max_rel_error for result in results),
        max_ulp=max(result.max_ulp for result in results),
        worst_tile=max(tiles, key=lambda tile: tile.max_abs_error, default=None),
        message=worst.message,
        ulp_histogram=tuple(map(sum, zip(*(result.ulp_histogram for result in results), strict=True))),
    )


def _compare_one(number: int, output: Array, reference: Array, low_fidelity: bool) -> Comparison:
    if output.shape != reference.shape:
        raise ValueError(f"output {number} has shape {output.shape}, its reference {reference.shape}")
    got, want = output.astype(np.float64), reference.astype(np.float64)
    bound = MAXIMUM_RELATIVE_ERROR.get(output.dtype.name, MAXIMUM_RELATIVE_ERROR["float32"])
    least_pcc = MINIMUM_PCC
    if low_fidelity:
        least_pcc, bound = LOW_FIDELITY_PCC, LOW_FIDELITY_RELATIVE_ERROR
    if want.size == 0:
        return Comparison(True, 1.0, 0.0, 0.0, None, f"output {number} is empty")
    counted = np.isfinite(want)
    # The packer may turn NaN into infinity (metalium.md 5.2); an infinity keeps its sign.
    broken = np.where(counted, ~np.isfinite(got), np.where(np.isnan(want), np.isfinite(got), got != want))
    usable = counted & ~broken
    error = np.abs(np.where(usable, got, 0.0) - np.where(usable, want, 0.0))
    error = np.where(broken, np.inf, error)
    largest = float(np.max(np.abs(want[counted]), initial=0.0))
    scale = largest or 1.0
    relative = float(error.max()) / scale
    pcc = _pcc(got[usable], want[usable], within=relative <= bound)
    ulps = error / _ulp(np.maximum(np.abs(np.where(counted, want, 0.0)), scale / 256), output.dtype)
    ulp = float(ulps.max())
    tile = _worst_tile(number, error)
    passed = not broken.any() and pcc >= least_pcc and relative <= bound
    message = f"PCC {pcc:.7f}, max error {relative:.2e} of the largest value, {ulp:.1f} ULP"
    if broken.any():
        message = f"{int(broken.sum())} elements of output {number} are not finite where the reference is; {message}"
    elif not passed:
        message = f"output {number} differs: {message} (wanted PCC >= {least_pcc}, max error <= {bound:g})"
    if not passed:
        message += f"; worst tile {tile.index}"
    return Comparison(passed, pcc, relative, ulp, tile, message, _histogram(ulps))


def _pcc(got: NDArray[np.float64], want: NDArray[np.float64], *, within: bool) -> float:
    if got.size == 0:
        return 1.0
    a, b = got - got.mean(), want - want.mean()
    norm = float(np.sqrt(np.dot(a, a) * np.dot(b, b)))
    tiny = np.finfo(np.float64).eps * max(1.0, float(np.abs(want).max())) ** 2 * got.size
    if norm <= tiny:  # a constant has no correlation
        return 1.0 if within else 0.0
    return float(np.clip(np.dot(a, b) / norm, -1.0, 1.0))


def _histogram(ulps: NDArray[np.float64]) -> tuple[int, ...]:
    """How many of the errors lie in each class of ULP_CLASSES; an infinite error is that of a broken element."""
    classes = np.searchsorted(ULP_ENDS, ulps.ravel(), side="left")
    classes[np.isinf(ulps.ravel())] = len(ULP_CLASSES) - 1
    return tuple(int(count) for count in np.bincount(classes, minlength=len(ULP_CLASSES)))


def _ulp(values: NDArray[np.float64], dtype: np.dtype[Any]) -> NDArray[np.float64]:
    mantissa_bits = 7 if dtype == np.dtype(ml_dtypes.bfloat16) else 23
    return np.exp2(np.floor(np.log2(values)) - mantissa_bits)


def _worst_tile(number: int, error: NDArray[np.float64]) -> TileError:
    place = np.unravel_index(int(np.argmax(error)), error.shape)
    index = tuple(int(i) for i in place)
    rows_columns = (0, *index)[-2:] if index else (0, 0)
    tile = (*index[:-2], rows_columns[0] // TILE_ROWS, rows_columns[1] // TILE_COLUMNS)
    return TileError(number, tile, float(error.max()))
