"""Arrays that carry bounds of their rounding errors: the interpreter computes with them as with plain arrays.

Errors of different operations are taken as independent, so that those of sums add in squares. A function's is how far
its result moves when its operands do; where a comparison may fall either way, both results count.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import DTypeLike

from ttexplore.ops.storage import Array
from ttexplore.ops.wide import product

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Other = TypeVar("Other")

# Chips have no subnormal numbers, so that each operation may be wrong by 2^-126; several, as units of rounding are.
_SMALLEST = np.float32(2**-124)


class Uncertain(NDArrayOperatorsMixin):
    """An array of any dtype and how far each element may lie `below` and `above` its value, float32; of conditions,
    both say whether they may be otherwise. `unit` is the rounding error of one operation, relative to its result.
    `whole` numbers, of any dtype, are rounded by no operation among them."""

    __slots__ = ("above", "below", "unit", "value", "whole")

    def __init__(self, value: Array, below: Array, above: Array, unit: float, *, whole: bool = False) -> None:
        self.value, self.below, self.above, self.unit = value, below, above, unit
        self.whole = whole or value.dtype.kind != "f"

    @classmethod
    def stored(
        cls, values: Array, unit: float, errors: Array | None = None, *, whole: bool = False
    ) -> Uncertain:  # fmt: skip
        """What a tensor holds, with the `errors` below and above that it already has: engines may cut what they read
        of it, unless it holds whole numbers."""
        exact = whole or values.dtype.kind != "f"
        sizes = np.zeros(values.shape) if exact else np.where(np.isfinite(values), np.abs(values), 0)
        cut = (sizes * unit).astype(np.float32)
        below, above = (cut, cut.copy()) if errors is None else np.hypot(cut, errors)
        return cls(values, below, above, unit, whole=exact)

    @classmethod
    def exact(
        cls, values: Array, unit: float, errors: Array | None = None, *, whole: bool = False
    ) -> Uncertain:  # fmt: skip
        """What a tensor holds of which nothing is cut, with the `errors` below and above that it already has."""
        both = np.zeros((2, *values.shape), np.float32) if errors is None else errors
        return cls(values, both[0], both[1], unit, whole=whole)

    @property
    def error(self) -> Array:
        """How far each element may lie from its value, on either side."""
        return np.maximum(self.below, self.above)

    # What arrays have

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.value.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def ndim(self) -> int:
        return self.value.ndim

    @property
    def T(self) -> Uncertain:
        return self.moved(np.transpose)

    def moved(self, move: Callable[[Array], Array]) -> Uncertain:
        """The elements in other places, or some of them."""
        return Uncertain(move(self.value), move(self.below), move(self.above), self.unit, whole=self.whole)

    def reshape(self, *shape: Any) -> Uncertain:
        return self.moved(lambda array: array.reshape(*shape))

    def astype(self, dtype: DTypeLike) -> Elements:
        def cast_to(values: Array) -> Array:
            return values.astype(dtype)

        return _applied(cast_to, (self,))

    def rounded(self, function: Callable[[Array], Array], *, whole: bool = False, kept: bool = False) -> Elements:
        """Round by a function, to `whole` numbers or others. Where numbers may also be `kept` as they are, as a program
        does that does not store them in between, the errors reach that far."""
        result = _applied(function, (self,), to_whole=whole)
        if not kept or not isinstance(result, Uncertain):
            return result
        low, high = _ends(self)
        below, above = (np.where(np.isfinite(error), error, 0) for error in (result.value - low, high - result.value))
        low, high = (
            np.maximum(*both).astype(np.float32) for both in ((result.below, below), (result.above, above))
        )  # fmt: skip
        return Uncertain(result.value, low, high, result.unit, whole=whole)

    def __getitem__(self, index: Any) -> Uncertain:
        return self.moved(lambda array: np.asarray(array[index]))

    def __setitem__(self, index: Any, values: Operand) -> None:
        self.value[index] = value_of(values)
        self.below[index], self.above[index] = _errors_of(values)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __index__(self) -> int:
        return int(self.value)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *operands: Operand, **options: object) -> Elements:
        return NotImplemented if method != "__call__" or options else _applied(ufunc, operands)

    def __array_function__(
        self, function: object, types: object, operands: Sequence[Operand], options: Mapping[str, object]
    ) -> Elements:
        return NotImplemented if function is not np.where or options else _chosen(*operands)


# What the interpreter computes with, and what it computes of that.
Elements = Array | Uncertain
Operand = Elements | float


def value_of(operand: Uncertain | Other) -> Array | Other:
    """Return an operand without its error."""
    return operand.value if isinstance(operand, Uncertain) else operand


def lifted(function: Callable[Parameters, Result], *, to_whole: bool = False) -> Callable[Parameters, Result]:
    """Extend a function of arrays to uncertain arrays, for which it returns an uncertain array: `to_whole` numbers that
    the function does not round once more, or to others."""

    @wraps(function)
    def either(*operands: Parameters.args, **options: Parameters.kwargs) -> Result:
        if any(isinstance(operand, Uncertain) for operand in operands):
            return cast(Result, _applied(function, cast(Sequence[Operand], operands), to_whole=to_whole))
        return function(*operands, **options)

    return either


def whole_product(left: Elements, right: Elements) -> Elements:
    """The product of matrices of whole numbers. Their sums may wrap around; float64 holds those of one product."""
    values = [np.asarray(value_of(operand), np.float64) for operand in (left, right)]
    result = product(*values).astype(np.int64)
    uncertain = [operand for operand in (left, right) if isinstance(operand, Uncertain)]
    if not uncertain:
        return result
    errors = _of_products((left, right), exact=True)
    return _made(result, (errors, errors), uncertain[0].unit)


# What is below, and what is above.
_Errors = tuple[Array, Array]
_NO_ERRORS = (np.zeros((), np.float32), np.zeros((), np.float32))
# What gives whole numbers of whole numbers, whatever their dtype.
_OF_WHOLE = (np.add, np.subtract, np.multiply, product, np.maximum, np.minimum, np.absolute, np.negative)
# What gives one of its operands, so that it rounds nothing; and up to where whole numbers are exact in any format.
_CHOOSING, _EXACT_UP_TO = (np.maximum, np.minimum), 256


def _errors_of(operand: Operand) -> _Errors:
    return (operand.below, operand.above) if isinstance(operand, Uncertain) else _NO_ERRORS


def _applied(function: Callable[..., object], operands: Sequence[Operand], *, to_whole: bool = False) -> Elements:
    uncertain = [operand for operand in operands if isinstance(operand, Uncertain)]
    result = np.asarray(function(*map(value_of, operands)))
    exact = to_whole or (function in _OF_WHOLE and _is_exact(function, operands, result))
    if function in (np.add, np.subtract):
        first, second = map(_errors_of, operands)
        second = second if function is np.add else (second[1], second[0])
        errors = _together(exact, first, second)
    elif function is np.multiply and not exact:
        first, second = operands
        errors = _together(exact, _scaled(first, second), _scaled(second, first))
    elif function in (np.equal, np.not_equal):
        either = _overlap(*operands)
        errors = (either, either)
    elif function is product:
        either = _of_products(operands, exact=exact)
        errors = (either, either)
    else:
        errors = _moved_by(function, operands, result)
    return _made(result, errors, uncertain[0].unit, exact=exact)


def _is_whole(operand: Operand) -> bool:
    return operand.whole if isinstance(operand, Uncertain) else np.asarray(operand).dtype.kind in "iub"


def _is_exact(function: Callable[..., object], operands: Sequence[Operand], result: Array) -> bool:
    """Whether a function of `_OF_WHOLE` rounds nothing."""
    if all(map(_is_whole, operands)):
        return True
    exact = function in _CHOOSING or bool(np.all(np.abs(result) <= _EXACT_UP_TO))
    return exact and all(map(_holds_whole, operands))


def _holds_whole(operand: Operand) -> bool:
    """Whether an operand is whole in fact: a limit such as 127.0 is, whatever its dtype."""
    return _is_whole(operand) or (not isinstance(operand, Uncertain) and bool(np.all(np.rint(operand) == operand)))


def _together(exact: bool, first: _Errors, second: _Errors) -> _Errors:
    """The errors of a sum. Those of whole numbers are no rounding, but other numbers: they add up."""
    add: Callable[[Array, Array], Array] = np.add if exact else np.hypot
    return add(first[0], second[0]), add(first[1], second[1])


def _scaled(operand: Operand, factor: Operand) -> _Errors:
    """The errors of a product that come from one factor."""
    below, above = _errors_of(operand)
    size, rising = np.abs(value_of(factor)) + np.maximum(*_errors_of(factor)), np.greater_equal(value_of(factor), 0)
    return size * np.where(rising, below, above), size * np.where(rising, above, below)


def _of_products(operands: Sequence[Operand], *, exact: bool) -> Array:
    """The errors of a product of matrices."""
    sizes = [np.abs(np.asarray(value_of(operand), np.float64)) for operand in operands]
    wrong = [np.asarray(np.maximum(*_errors_of(operand)), np.float64) for operand in operands]
    if exact:
        return (sizes[0] + wrong[0]) @ wrong[1] + wrong[0] @ sizes[1]
    # Sums round as they grow, by about as much as operands that nothing is cut of would have been.
    units = [operand.unit for operand in operands if isinstance(operand, Uncertain)]
    wrong = [np.maximum(error, units[0] * size) for error, size in zip(wrong, sizes, strict=True)]
    squares, wrong = [np.square(size) for size in sizes], [np.square(error) for error in wrong]
    return np.sqrt((squares[0] + wrong[0]) @ wrong[1] + wrong[0] @ squares[1])


def _made(result: Array, errors: _Errors, unit: float, *, exact: bool = False) -> Elements:
    exact = exact or result.dtype.kind != "f"
    if exact:
        if result.dtype.kind != "f" and not any(map(np.any, errors)):
            return result
        below, above = errors
    else:
        rounding = np.where(np.isfinite(result), np.abs(result) * np.float32(unit), 0) + _SMALLEST
        below, above = (np.hypot(np.where(np.isnan(error), np.inf, error), rounding) for error in errors)
    kind = bool if result.dtype.kind == "b" else np.float32
    below, above = (np.asarray(np.broadcast_to(error, result.shape), kind) for error in (below, above))
    return Uncertain(result, below, above, unit, whole=exact)


def _overlap(first: Operand, second: Operand) -> Array:
    """Where numbers may be equal or not: somewhere in their intervals, which the ends do not tell."""
    both = [_ends(operand) if isinstance(operand, Uncertain) else (operand, operand) for operand in (first, second)]
    (low, high), (other_low, other_high) = ((np.minimum(*ends), np.maximum(*ends)) for ends in both)
    certain = np.logical_and(*(np.equal(*ends) for ends in both))
    return np.less_equal(low, other_high) & np.less_equal(other_low, high) & ~certain


def _moved_by(function: Callable[..., object], operands: Sequence[Operand], result: Array) -> _Errors:
    """Return how far the result moves when each operand takes either end of its interval."""
    below: Array = np.zeros(result.shape, bool if result.dtype.kind == "b" else np.float64)
    above = below
    ends = [_ends(operand) if isinstance(operand, Uncertain) else (operand,) for operand in operands]
    for corner in itertools.product(*ends):
        with np.errstate(all="ignore"):
            moved = np.asarray(function(*corner))
        less, more = _distances(moved, result)
        below, above = np.maximum(below, less), np.maximum(above, more)
    return below, above


def _ends(operand: Uncertain) -> tuple[Array, Array]:
    value, below, above = operand.value, operand.below, operand.above
    match value.dtype.kind:
        case "b":
            return value, value ^ above.astype(bool)
        case "f":
            return value - below, value + above
        case _:
            limits = np.iinfo(value.dtype)
            ends = (value - below.astype(np.float64), value + above.astype(np.float64))
            low, high = (np.clip(np.rint(end), limits.min, limits.max) for end in ends)
            return low.astype(value.dtype), high.astype(value.dtype)


def _distances(moved: Array, result: Array) -> _Errors:
    """How far what moved lies below a result, and how far above."""
    same = (moved == result) | ((moved != moved) & (result != result))
    if result.dtype.kind == "b":
        return ~same, ~same
    with np.errstate(invalid="ignore"):
        rise = np.where(same, 0.0, moved.astype(np.float64) - result)
    # What is no number is anything.
    return np.where(np.isnan(rise), np.inf, np.maximum(-rise, 0)), np.where(np.isnan(rise), np.inf, np.maximum(rise, 0))


def _chosen(condition: Operand, first: Operand, second: Operand) -> Uncertain:
    """One of two by a condition; where that may be otherwise the errors reach as far as both do."""
    uncertain = [operand for operand in (first, second) if isinstance(operand, Uncertain)]
    unit = next(operand.unit for operand in (condition, *uncertain) if isinstance(operand, Uncertain))
    chosen, rejected = (
        np.where(value_of(condition), *map(value_of, both)) for both in ((first, second), (second, first))
    )
    errors = [np.where(value_of(condition), *both) for both in zip(_errors_of(first), _errors_of(second), strict=True)]
    if isinstance(condition, Uncertain):
        of_other = [
            np.where(value_of(condition), *both) for both in zip(_errors_of(second), _errors_of(first), strict=True)
        ]
        apart = _distances(rejected, chosen)
        for side in (0, 1):
            less = of_other[side] if chosen.dtype.kind == "b" else np.maximum(of_other[side] - apart[1 - side], 0)
            far = apart[side] + less
            errors[side] = np.where(condition.above, np.maximum(errors[side], far), errors[side])
    kind = bool if chosen.dtype.kind == "b" else np.float32
    below, above = (np.asarray(np.broadcast_to(error, chosen.shape), kind) for error in errors)
    return Uncertain(chosen, below, above, unit, whole=bool(uncertain) and all(operand.whole for operand in uncertain))
