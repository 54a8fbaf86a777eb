"""Comparing the results of a backend with the reference."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ttexplore.ops.sfpu import FAST_ERROR
from ttexplore.ops.small import FLOATS
from ttexplore.plan import TILE_COLUMNS, TILE_ROWS, Precision

Array = NDArray[Any]

# How far rounding can move each element of each output below and above the reference, float32 of shape [2, *shape],
# given the relative rounding error of one operation; the errors of operations are added in quadrature.
RoundingErrors = Callable[[float], Sequence[Array]]

# The threshold of upstream's tests for bfloat16 (metalium.md 5.4).
MINIMUM_PCC = 0.9999

# Largest error relative to the largest absolute reference value. bfloat16: one rounding is 2^-9 = 0.2 %; a result of a
# few roundings stays below 2 %. float32: operands of the FPU are truncated to TF32 (2^-10), and the error of long sums
# stays below 1 %. Integers are not rounded.
MAXIMUM_RELATIVE_ERROR = {
    "bfloat16": 0.02, "float32": 0.01, "int32": 0.0, **dict.fromkeys(("uint8", "int8", "bool"), 0.0)
}  # fmt: skip
# For outputs in floating-point dtypes of 8 bits, where a number near the middle between two others may become either:
# the largest error in last places of the largest reference value, the least PCC by the bits of the fraction, and the
# largest share of elements that differ, because half of them do if one side rounds towards zero. A share of few says
# nothing.
_SMALL_LAST_PLACES, _SMALL_PCC = 1.0, {1: 0.98, 2: 0.997, 3: 0.999, 4: 0.9997}
_SMALL_SHARE, _LEAST_SHARED = 0.25, 64

# For outputs of lower precision: the smallest PCC and the largest relative error.
# LoFi multiplies 5 bits of one operand: each product loses up to 2^-5 (metalium.md 5.1). The other fidelities lose less
# than bfloat16's last place. Bfp8_b's packer rounds twice to 7 bits of the largest number of a group: 2^-7 each time,
# in addition to bfloat16's rounding. The fast exponential is up to 3.5 % off.
COARSE_BOUNDS: dict[Precision, tuple[float, float]] = {
    "low_fidelity": (0.999, 0.08),
    "fast": (0.999, 0.06),
    "block_float": (0.9998, 0.03),
}

# Numbers that are nearly equal lose their correlation when they are rounded: then each element is judged by itself. The
# error that rounding explains in an element is this unit, relative to the power of two below it: the last place of
# bfloat16, eight of float32 for its functions, two operands truncated to TF32, a product of LoFi, a group of Bfp8_b, a
# fast exponential.
_UNITS: dict[Precision, float] = {
    "tf32": 2**-9,
    "bfloat16": 2**-7,
    "low_fidelity": 2**-4,
    "block_float": 2**-6,
    "fast": FAST_ERROR,
}
# The largest error of an element in units, and the largest root mean square of the errors in the 32 elements of a row
# or column of a tile: if one side truncates and the other rounds, about half of the elements differ by one.
_ELEMENT_UNITS, _STRIP_UNITS = 2.0, 1.25

# Elements that are small compared with the largest value are judged by the row and column of 32 elements in a tile: if
# the error (root of the sum of squares) exceeds this share of the reference, rounding of the intermediate results must
# explain it: so many units per operation, because the sides may round in opposite directions.
_STRIP_SHARE, _STRIP_ROUNDINGS = 0.25, 2.0
# Where rounding explains what is far off, no element may be wrong by more than so many times what explains it: the
# others of its row and column, some of which may be either of two numbers, do not speak for it.
_ELEMENT_ROUNDINGS = 4.0

# Two sides whose numbers vary by at most so many last places count as constants that are rounded differently.
_CONSTANT_ULP = 4

# The number of elements that are compared at a time, in float64: some arrays of 8 MiB.
_STRIP_ELEMENTS = 1 << 20

# The upper ends of the ULP histogram's classes; above them come "more", and "broken" for wrong infinities and NaN.
ULP_ENDS = (0, 1, 2, 4, 8, 16, 64)
ULP_CLASSES = ("equal", *(f"≤ {end}" for end in ULP_ENDS[1:]), "more", "broken")


@dataclass(frozen=True, slots=True)
class TileError:
    """The 32x32 tile with the largest error: the output's number and name, the tile's index (leading dimensions, tile
    row, tile column), its largest absolute error, and the largest one that the comparison allows in that output."""

    output: int
    name: str
    index: tuple[int, ...]
    max_abs_error: float
    bound: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """How close outputs are to their references; for several outputs, the worst of each measure.

    `pcc` is Pearson's correlation coefficient of the elements; if one side is constant, or both are except for their
    last places, it is 1 if all elements are within the bound, otherwise 0. `max_rel_error` is the largest absolute
    error divided by the largest absolute reference value (by 1 if the reference is all zero), and infinite if an
    element is not finite although its reference is. `max_ulp` is the largest error in units of the output dtype's last
    place at the reference value, but not finer than at 1/256 of the largest reference value, so that cancellation near
    zero does not count; it is infinite if `max_rel_error` is. If the reference is infinite or NaN, the same infinity or
    any NaN is correct (so is an infinity for NaN, because the packer makes one). `ulp_histogram` counts the
    elements of all outputs by their error, in the classes of ULP_CLASSES. `worst_tile` is the worst tile of the first
    failed output or, if none failed, of the output with the largest relative error. `explained` says why outputs passed
    whose figures alone would not.
    """

    passed: bool
    pcc: float
    max_rel_error: float
    max_ulp: float
    worst_tile: TileError | None
    message: str
    ulp_histogram: tuple[int, ...] = (0,) * len(ULP_CLASSES)
    explained: str = ""

    @classmethod
    def of_nothing(cls, why: str) -> Comparison:
        """What takes its place where nothing is compared."""
        return cls(False, math.nan, math.nan, math.nan, None, why)

    @property
    def equal_share(self) -> float:
        """The share of elements that are equal, 1 if there are no elements."""
        total = sum(self.ulp_histogram)
        return self.ulp_histogram[0] / total if total else 1.0


@dataclass(frozen=True, slots=True)
class NamedComparison:
    """One of the comparisons of a run, such as "ttnn against emulator".

    `worst_slice` has the largest absolute error of each tile, by tile row and tile column, in the output and leading
    indices of the worst tile; empty if nothing was compared.
    """

    name: str
    comparison: Comparison
    worst_slice: tuple[tuple[float, ...], ...] = ()

    @classmethod
    def of(
        cls, name: str, outputs: Sequence[Array], references: Sequence[Array], precisions: Sequence[Precision] = (),
        rounding: RoundingErrors | None = None, names: Sequence[str] = (),
    ) -> NamedComparison:  # fmt: skip
        """Compare as :func:`compare` does, and keep the errors around the worst tile."""
        comparison = compare(outputs, references, precisions, rounding, names)
        if comparison.worst_tile is None:
            return cls(name, comparison)
        number, leading = comparison.worst_tile.output, comparison.worst_tile.index[:-2]
        errors = tile_errors(np.asarray(outputs[number][leading]), np.asarray(references[number][leading]))
        return cls(name, comparison, tuple(tuple(row) for row in errors.tolist()))


_TABLE_WIDTH = 80


def sides_text(sides: Sequence[NamedComparison]) -> str:
    """The comparisons as tables with a column for each: what is compared, the measures, and below them the numbers of
    elements by ULP of error. A table has as many columns as fit a terminal of 80."""
    heads = ("", "", "PCC", "max rel error", "max ULP", "equal", "worst tile", "", "elements by ULP")
    labels = (*heads, *(f"  {ulp_class}" for ulp_class in ULP_CLASSES))
    tables: list[list[Sequence[str]]] = [[labels]]
    for side in sides:
        comparison = side.comparison
        tile = (
            f"{comparison.worst_tile.name}: {comparison.worst_tile.index}"
            if comparison.worst_tile and comparison.equal_share < 1
            else "-"
        )
        figures = (
            f"{comparison.pcc:.7f}",
            f"{comparison.max_rel_error:.2e}",
            f"{comparison.max_ulp:.1f}",
            f"{comparison.equal_share:.2%}",
        )
        counts = (f"{count:,}" if count else "-" for count in comparison.ulp_histogram)
        first, against, second = side.name.partition(" against ")
        column = (first, f"{against}{second}".strip(), *figures, tile, "", "", *counts)
        if len(tables[-1]) > 1 and _width([*tables[-1], column]) > _TABLE_WIDTH:
            tables.append([labels])
        tables[-1].append(column)
    return "\n\n".join(map(_aligned, tables))


def _width(columns: Sequence[Sequence[str]]) -> int:
    return sum(max(map(len, column)) + 2 for column in columns) - 2


def _aligned(columns: Sequence[Sequence[str]]) -> str:
    """Columns side by side, the first to the left and the others to the right."""
    first, *rest = (max(map(len, column)) for column in columns)
    rows = zip(*columns, strict=True)
    return "\n".join("  ".join((row[0].ljust(first), *map(str.rjust, row[1:], rest))).rstrip() for row in rows)


def compare(
    outputs: Sequence[Array], references: Sequence[Array], precisions: Sequence[Precision] = (),
    rounding: RoundingErrors | None = None, names: Sequence[str] = (),
) -> Comparison:  # fmt: skip
    """Compare each output with its reference (any float dtype or integers, same shapes).

    An output passes if it is finite where its reference is (and infinite or NaN where that is), its largest error
    relative to the largest reference value is at most 0.02 (bfloat16), 0.01 (float32) or 0 (integers, and tiles that
    were only moved), and its PCC is at least 0.9999, or rounding explains the error of each element; outputs of lower
    precision, given by `precisions`, have COARSE_BOUNDS. With `rounding`, each row and each column of a tile must also
    be near its own reference, or its error must be explained by rounding; an output also passes if rounding explains
    the error of each of them. `rounding` is called only if an output, or a row or column, is not near. `names` are what
    messages call the outputs. Raises ValueError for different shapes.
    """
    if len(outputs) != len(references):
        raise ValueError(f"{len(outputs)} outputs to compare with {len(references)} references")
    asked: Sequence[Precision] = precisions or ("full",) * len(outputs)
    pairs = list(zip(outputs, references, asked, strict=True))
    called = names or [f"output {number}" for number in range(len(pairs))]
    units = [_relative_unit(precision, output.dtype) for output, _, precision in pairs]
    # Floating-point outputs share the formats of what they are computed from. A coarse bound would find no wrong
    # integer, and no wrong output that nothing coarse flows into.
    fine = [
        unit
        for unit, (output, _, precision) in zip(units, pairs, strict=True)
        if not (_is_whole(output) or precision in COARSE_BOUNDS)
    ]
    shared = max(fine, default=0.0)
    results: list[Comparison] = []
    for number, (unit, pair) in enumerate(zip(units, pairs, strict=True)):
        output_unit = unit if _is_whole(pair[0]) else max(unit, shared)
        explained = _Rounding(rounding, number, output_unit) if rounding is not None else None
        results.append(_compare_one(number, called[number], *pair, explained))
    if not results:
        return Comparison(True, 1.0, 0.0, 0.0, None, "no outputs to compare")
    failed = next((result for result in results if not result.passed), None)
    told = failed or min(results, key=lambda result: result.pcc)
    worst = failed or max(results, key=lambda result: result.max_rel_error)
    return Comparison(
        passed=failed is None,
        pcc=min(result.pcc for result in results),
        max_rel_error=max(result.max_rel_error for result in results),
        max_ulp=max(result.max_ulp for result in results),
        worst_tile=worst.worst_tile,
        message=told.message,
        ulp_histogram=tuple(map(sum, zip(*(result.ulp_histogram for result in results), strict=True))),
        explained="; ".join(dict.fromkeys(result.explained for result in results if result.explained)),
    )


def _is_whole(output: Array) -> bool:
    return output.dtype.kind in "iub"


def tile_errors(output: Array, reference: Array) -> NDArray[np.float64]:
    """The largest absolute error of each 32x32 tile, shape [*leading dimensions, tile rows, tile columns].

    Trailing tiles of a row or column may be smaller; a vector is one row. The error is infinite if an element is not
    finite although its reference is, or vice versa. Raises ValueError for different shapes.
    """
    if output.shape != reference.shape:
        raise ValueError(f"the output has shape {output.shape}, but its reference {reference.shape}")
    return _by_tile(_errors(*np.atleast_1d(_wide(output), _wide(reference))))


def _wide(values: Array) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore"):  # a signalling NaN is as good as another
        return values.astype(np.float64)


def _strips(shape: tuple[int, ...]) -> Iterator[tuple[slice, slice]]:
    """Split an array of matrices into parts of whole tiles: index ranges of the matrices, and of their rows. Comparing
    part by part limits the memory for float64 copies of large outputs."""
    matrices, rows, columns = shape
    at_once = max(_STRIP_ELEMENTS // max(columns, 1) // TILE_ROWS, 1) * TILE_ROWS
    many = max(at_once // max(rows, 1), 1)
    for matrix in range(0, matrices, many):
        for row in range(0, rows, at_once):
            yield slice(matrix, matrix + many), slice(row, row + at_once)


@dataclass
class _Moments:
    """Statistics of both sides where both are finite: count, sums, and the smallest and largest number of each."""

    count: int = 0
    sums: NDArray[np.float64] = field(default_factory=lambda: np.zeros(2))
    lowest: NDArray[np.float64] = field(default_factory=lambda: np.full(2, np.inf))
    highest: NDArray[np.float64] = field(default_factory=lambda: np.full(2, -np.inf))
    # The largest absolute value of the reference, also where the output is not finite.
    scale: float = 0.0

    def add(self, got: NDArray[np.float64], want: NDArray[np.float64]) -> None:
        finite = want if np.isfinite(want).all() else want[np.isfinite(want)]
        if finite.size:
            self.scale = max(self.scale, -float(finite.min()), float(finite.max()))
        sides = _usable(got, want)
        self.count += sides[0].size
        for side, values in enumerate(sides if sides[0].size else ()):
            self.sums[side] += values.sum()
            self.lowest[side] = min(self.lowest[side], values.min())
            self.highest[side] = max(self.highest[side], values.max())


def _usable(got: NDArray[np.float64], want: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The numbers of both sides where both are finite, flattened."""
    usable = np.isfinite(got)
    usable &= np.isfinite(want)
    return (got.ravel(), want.ravel()) if usable.all() else (got[usable], want[usable])


@dataclass(frozen=True)
class _Rounding:
    """What rounding explains in one output, and the relative error of one operation."""

    errors: RoundingErrors
    number: int
    unit: float

    def sides(self, shape: tuple[int, ...], roundings: float = 1.0) -> Array:
        """How far each element may lie below and above its reference."""
        return self.errors(roundings * self.unit)[self.number].reshape((2, *shape))

    def of(self, shape: tuple[int, ...], *, near: bool) -> Array:
        """How far each element may lie from its reference, where the output as a whole is `near`, or not."""
        return self.sides(shape, _STRIP_ROUNDINGS if near else 1.0).max(axis=0)


def _compare_one(
    number: int, name: str, output: Array, reference: Array, precision: Precision, explained: _Rounding | None
) -> Comparison:  # fmt: skip
    if output.shape != reference.shape:
        raise ValueError(f"{name} has shape {output.shape}, but its reference {reference.shape}")
    bound = MAXIMUM_RELATIVE_ERROR.get(output.dtype.name, MAXIMUM_RELATIVE_ERROR["float32"])
    least_pcc = MINIMUM_PCC
    if output.dtype.name in FLOATS:
        bits = _mantissa_bits(output.dtype)
        least_pcc, bound = _SMALL_PCC[bits], _SMALL_LAST_PLACES * 2.0**-bits
    if precision in COARSE_BOUNDS and bound:
        least, largest = COARSE_BOUNDS[precision]
        least_pcc, bound = min(least, least_pcc), max(largest, bound)
    if precision == "exact":
        bound = 0.0
    if output.size == 0:
        return Comparison(True, 1.0, 0.0, 0.0, None, f"{name} is empty")
    matrices: Array = np.atleast_2d(output)
    rows, columns = matrices.shape[-2:]
    outputs: Array = matrices.reshape((-1, rows, columns))
    references: Array = reference.reshape(outputs.shape)

    def strips() -> Iterator[tuple[tuple[slice, slice], NDArray[np.float64], NDArray[np.float64]]]:
        for region in _strips(outputs.shape):
            yield region, _wide(outputs[region]), _wide(references[region])

    def last_places() -> Iterator[NDArray[np.float64]]:
        for _, got, want in strips():
            yield _in_ulp(_errors(got, want), _magnitudes(want, scale), output.dtype)

    moments = _Moments()
    for _, got, want in strips():
        moments.add(got, want)
    scale = moments.scale or 1.0
    tiles = np.zeros((len(outputs), -(-rows // TILE_ROWS), -(-columns // TILE_COLUMNS)))
    broken = lost = 0
    for (which, row_slice), got, want in strips():
        error = _errors(got, want)
        tiles[which, row_slice.start // TILE_ROWS : -(-row_slice.stop // TILE_ROWS)] = _by_tile(error)
        broken += int(np.count_nonzero(np.isinf(error)))
        lost += int(np.count_nonzero(np.isfinite(want) & ~np.isfinite(got)))
    relative = float(tiles.max()) / scale
    histogram, ulp = np.zeros(len(ULP_CLASSES), np.int64), 0.0
    for ulps in last_places():
        histogram += _histogram(ulps)
        ulp = max(ulp, float(ulps.max()))
    pcc = _pcc(((got, want) for _, got, want in strips()), moments, output.dtype, within=relative <= bound)
    tiles = tiles.reshape((*matrices.shape[:-2], *tiles.shape[1:]))
    position = np.unravel_index(int(np.argmax(tiles)), tiles.shape)
    tile = TileError(number, name, tuple(int(i) for i in position), float(tiles.max()), bound * scale)
    passed = not broken and relative <= bound
    judged = ""
    if passed and pcc < least_pcc:
        passed, judged = _explained(last_places(), _unit(precision, output.dtype))
    different = 1.0 - histogram[0] / output.size
    if passed and output.dtype.name in FLOATS and output.size >= _LEAST_SHARED and different > _SMALL_SHARE:
        passed = False
        judged = f"; {different:.0%} of the elements differ, but casts to {output.dtype.name} round to the nearest"
    message = f"PCC {pcc:.7f}, max error {relative:.2e} of the largest value, {ulp:.1f} ULP"
    strip = None
    if bound and not broken and explained is not None:
        strip = _worst_strip(outputs, references, functools.partial(explained.of, outputs.shape), near=passed)
    if strip is not None and passed and strip.ratio > 1:
        passed, judged = False, f"; {strip.message}"
        position = np.unravel_index(strip.matrix, matrices.shape[:-2])
        tile = TileError(
            number, name, (*map(int, position), *strip.tile), float(tiles[(*position, *strip.tile)]), bound * scale
        )
    elif strip is not None and not passed and strip.ratio <= 1:
        passed, judged = True, f"; rounding explains each row and column of a tile: {strip.message}"
    if not passed and _is_whole(output) and precision != "exact" and explained is not None:
        passed, judged = _between_integers(outputs, references, explained.sides(outputs.shape))
    if broken:
        faults = ((lost, "not finite where the reference is"), (broken - lost, "not the reference's infinity or NaN"))
        counts = ", ".join(f"{count:,} of {output.size:,} elements are {fault}" for count, fault in faults if count)
        message = f"{name} differs: {counts}; {message}"
    elif not passed:
        message = f"{name} differs: {message} (required: PCC >= {least_pcc:g}, max error <= {bound:g}){judged}"
    elif judged:
        message += judged
    if precision == "fast":
        message += f"; fast exponentials explain errors of up to {FAST_ERROR:.1%} each"
    if not passed:
        message += f"; worst tile {tile.index}"
    told = judged.removeprefix("; ") if passed else ""
    return Comparison(passed, pcc, relative, ulp, tile, message, tuple(histogram.tolist()), told)


@dataclass(frozen=True)
class _Strip:
    """A row or column of a tile: the matrix, the tile's row and column, its error as a multiple of the error that
    rounding explains, and the message about it."""

    matrix: int
    tile: tuple[int, int]
    ratio: float
    message: str


def _between_integers(outputs: Array, references: Array, errors: Array) -> tuple[bool, str]:
    """Whether rounding decides which of several integers each wrong element is, and what to say of it."""
    wrong = unexplained = 0
    for region in _strips(outputs.shape):
        off = _wide(outputs[region]) - _wide(references[region])
        below, above = (_wide(errors[side][region]) for side in (0, 1))
        wrong += int(np.count_nonzero(off))
        unexplained += int(np.count_nonzero(~((off >= -below) & (off <= above) & np.isfinite(below + above))))
    if unexplained:
        return False, f"; rounding before the cast explains {wrong - unexplained:,} of {wrong:,} wrong elements"
    return (
        True,
        f"; {wrong:,} of {outputs.size:,} elements lie so near a step that rounding decides which integer they are",
    )


def _worst_strip(
    outputs: Array, references: Array, explained: Callable[..., Array], *, near: bool
) -> _Strip | None:  # fmt: skip
    """The strip with the largest error relative to the error that rounding explains. If the output as a whole is `near`
    its reference, only strips that are far off count; if there are none, `explained` is not called."""
    worst = None
    for region in _strips(outputs.shape):
        got, want = _wide(outputs[region]), _wide(references[region])
        error = _errors(got, want)
        size = np.abs(want, out=want)
        # Where no element is far off, no strip is.
        if near and not (error > _STRIP_SHARE * size).any():
            continue
        size[~np.isfinite(size)] = 0.0
        for axis, direction, length in ((-1, "row", TILE_COLUMNS), (-2, "column", TILE_ROWS)):
            wrong, norms = _norms(error, axis, length), _norms(size, axis, length)
            judged = wrong > (_STRIP_SHARE * norms if near else 0.0)
            if not judged.any():
                continue
            rounding = _wide(explained(near=near)[region])
            if not near:  # an unknown rounding error explains nothing
                rounding[~np.isfinite(rounding)] = 0.0
            allowed = _norms(rounding, axis, length)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.where(judged, wrong / allowed, 0.0)
                alone = np.zeros_like(error) if near else np.where(error > 0, error / rounding, 0.0)
            single = _largest(alone, axis, length)
            ratio = np.maximum(ratio, single / _ELEMENT_ROUNDINGS)
            at = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
            if worst is not None and ratio[at] <= worst.ratio:
                continue
            matrix, row, column = (int(index) for index in at)
            line = row % TILE_ROWS if axis == -1 else column % TILE_COLUMNS
            tile = (row // TILE_ROWS, column) if axis == -1 else (row, column // TILE_COLUMNS)
            tile, matrix = (tile[0] + region[1].start // TILE_ROWS, tile[1]), matrix + region[0].start
            where = f"tile {tile}" if len(outputs) == 1 else f"tile {tile} of matrix {matrix}"
            told = (
                f"{direction} {line} of {where}, of norm {norms[at]:.2e}, is wrong by {wrong[at]:.2e} (bound "
                f"{allowed[at]:.2e}, what rounding of the intermediate results explains)"
            )
            if single[at] > _ELEMENT_ROUNDINGS:
                told += f", one element by {single[at]:.2g} times what explains it (bound {_ELEMENT_ROUNDINGS:g})"
            worst = _Strip(matrix, tile, float(ratio[at]), told)
    return worst


def _largest(values: NDArray[np.float64], axis: int, length: int) -> NDArray[np.float64]:
    """The largest of groups of `length` numbers along an axis."""
    return np.maximum.reduceat(values, np.arange(0, int(values.shape[axis]), length), axis=axis)


def _norms(values: NDArray[np.float64], axis: int, length: int) -> NDArray[np.float64]:
    """The Euclidean norms of groups of `length` numbers along an axis."""
    starts = np.arange(0, int(values.shape[axis]), length)
    return np.sqrt(np.add.reduceat(np.square(values), starts, axis=axis))


def _magnitudes(want: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """The values whose last places are the units of errors; overwrites `want`."""
    size = np.abs(want, out=want)
    size[~np.isfinite(size)] = 0.0
    return np.maximum(size, scale / 256, out=size)


def _unit(precision: Precision, dtype: np.dtype[Any]) -> float:
    """The error that rounding explains, in last places."""
    format_unit = 1.0 if _mantissa_bits(dtype) < 8 else 8.0
    return max(format_unit, _UNITS.get(precision, 0.0) * 2.0 ** _mantissa_bits(dtype))


def _relative_unit(precision: Precision, dtype: np.dtype[Any]) -> float:
    """The relative error that rounding explains in the result of one operation. Operations do not round
    to 8 bits: casts do, which the interpreter knows; integers are cast from float32, in the precision given."""
    if dtype.name in FLOATS:
        dtype = np.dtype(ml_dtypes.bfloat16)
    return _unit(precision, dtype) * 2.0 ** -_mantissa_bits(dtype)


def _explained(errors: Iterable[NDArray[np.float64]], unit: float) -> tuple[bool, str]:
    """Whether rounding explains the errors of all elements, given in last places for each strip, and the reason."""
    worst = strip = 0.0
    for ulps in errors:
        squares: NDArray[np.float64] = np.square(ulps / unit)
        worst = max(worst, float(np.sqrt(squares.max())))
        for axis, size in ((-1, TILE_COLUMNS), (-2, TILE_ROWS)):
            starts = np.arange(0, int(squares.shape[axis]), size)
            lengths = np.minimum(starts + size, int(squares.shape[axis])) - starts
            lengths = lengths if axis == -1 else lengths[:, None]
            strip = max(strip, float(np.sqrt((np.add.reduceat(squares, starts, axis=axis) / lengths).max())))
    unit_text = f"{unit:g} last places" if unit != 1 else "last places"
    right = worst <= _ELEMENT_UNITS and strip <= _STRIP_UNITS
    why = "the values vary too little for a correlation, so each was judged" if right else "rounding cannot explain it"
    return right, (
        f"; {why}: the largest error is {worst:.2f} {unit_text} (bound {_ELEMENT_UNITS:g}), the largest root mean "
        f"square of a row or column of a tile {strip:.2f} (bound {_STRIP_UNITS:g})"
    )


def _pcc(
    sides: Iterable[tuple[NDArray[np.float64], NDArray[np.float64]]], moments: _Moments, dtype: np.dtype[Any], *,
    within: bool,
) -> float:  # fmt: skip
    """Pearson's correlation coefficient of both sides, given strip by strip."""
    if not moments.count:
        return 1.0
    means = moments.sums / moments.count
    products = np.zeros(3)
    for strip in sides:
        got, want = (values - mean for values, mean in zip(_usable(*strip), means, strict=True))
        # Not np.dot: a BLAS adds in an order of its own for each processor.
        products += (got * got).sum(), (want * want).sum(), (got * want).sum()
    norm = float(np.sqrt(products[0] * products[1]))
    largest = max(1.0, -moments.lowest[1], moments.highest[1])
    tiny = np.finfo(np.float64).eps * largest**2 * moments.count
    last_places = _CONSTANT_ULP * 2.0 ** -_mantissa_bits(dtype) * max(-moments.lowest[1], moments.highest[1])
    constant = within and bool((moments.highest - moments.lowest <= last_places).all())
    if norm <= tiny or constant:  # a constant has no correlation
        return 1.0 if within else 0.0
    return float(np.clip(products[2] / norm, -1.0, 1.0))


def _errors(got: NDArray[np.float64], want: NDArray[np.float64]) -> NDArray[np.float64]:
    """The absolute error of each element; infinite if only one side is finite or infinities have different signs."""
    with np.errstate(invalid="ignore"):  # such elements are replaced below
        error = got - want
    np.abs(error, out=error)
    if not np.isfinite(error).all():
        # The packer may turn NaN into infinity (metalium.md 5.2); an infinity keeps its sign.
        same = np.where(np.isnan(want), ~np.isfinite(got), got == want)
        error[~np.isfinite(got) | ~np.isfinite(want)] = np.inf
        error[same] = 0.0
    return error


def _by_tile(error: NDArray[np.float64]) -> NDArray[np.float64]:
    """The largest error of each tile."""
    error = error.reshape((*error.shape[:-2], *(1, 1, *error.shape)[-2:]))
    if not error.size:
        rows, columns = error.shape[-2:]
        return np.zeros((*error.shape[:-2], -(-rows // TILE_ROWS), -(-columns // TILE_COLUMNS)))
    by_columns = np.maximum.reduceat(error, list(range(0, error.shape[-1], TILE_COLUMNS)), axis=-1)
    return np.maximum.reduceat(by_columns, list(range(0, error.shape[-2], TILE_ROWS)), axis=-2)


def _histogram(ulps: NDArray[np.float64]) -> tuple[int, ...]:
    """The number of errors in each class of ULP_CLASSES; infinite errors count as "broken"."""
    up_to = [int(np.count_nonzero(ulps <= end)) for end in ULP_ENDS]
    up_to += [int(np.count_nonzero(ulps < np.inf)), ulps.size]
    return tuple(upper - lower for lower, upper in zip([0, *up_to], up_to, strict=False))


def _in_ulp(error: NDArray[np.float64], values: NDArray[np.float64], dtype: np.dtype[Any]) -> NDArray[np.float64]:
    """Errors in units of the last place of `dtype` at positive `values`; overwrites `error`."""
    if dtype.kind in "iub":
        return error
    # frexp gives values from 0.5 to 1, one binary place below the leading one of a float.
    _, exponents = np.frexp(values)
    return np.ldexp(error, np.subtract(_mantissa_bits(dtype) + 1, exponents, out=exponents), out=error)


def _mantissa_bits(dtype: np.dtype[Any]) -> int:
    if dtype == np.dtype(ml_dtypes.bfloat16):
        return 7
    return FLOATS[dtype.name].fraction_bits if dtype.name in FLOATS else 23
