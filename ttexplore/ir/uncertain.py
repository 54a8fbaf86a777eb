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
    """An array of any dtype and the error of each element, float32; of conditions, whether they may be otherwise.
    `unit` is the rounding error of one operation, relative to its result."""

    __slots__ = ("error", "unit", "value")

    def __init__(self, value: Array, error: Array, unit: float) -> None:
        self.value, self.error, self.unit = value, error, unit

    @classmethod
    def stored(cls, values: Array, unit: float, error: Array | None = None) -> Uncertain:
        """What a tensor holds, with the `error` that it already has: engines may cut what they read of it."""
        sizes = np.where(np.isfinite(values), np.abs(values), 0) if values.dtype.kind == "f" else np.zeros(values.shape)
        cut = (sizes * unit).astype(np.float32)
        return cls(values, cut if error is None else np.hypot(cut, error), unit)

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
        return Uncertain(self.value.T, self.error.T, self.unit)

    def reshape(self, *shape: Any) -> Uncertain:
        return Uncertain(self.value.reshape(*shape), self.error.reshape(*shape), self.unit)

    def astype(self, dtype: DTypeLike) -> Elements:
        def cast_to(values: Array) -> Array:
            return values.astype(dtype)

        return _applied(cast_to, (self,))

    def __getitem__(self, index: Any) -> Uncertain:
        return Uncertain(self.value[index], self.error[index], self.unit)

    def __setitem__(self, index: Any, values: Operand) -> None:
        self.value[index], self.error[index] = value_of(values), _error_of(values)

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


def lifted(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Extend a function of arrays to uncertain arrays, for which it returns an uncertain array."""

    @wraps(function)
    def either(*operands: Parameters.args, **options: Parameters.kwargs) -> Result:
        if any(isinstance(one, Uncertain) for one in operands):
            return cast(Result, _applied(function, cast(Sequence[Operand], operands)))
        return function(*operands, **options)

    return either


def _error_of(operand: Operand) -> Array | np.float32:
    return operand.error if isinstance(operand, Uncertain) else np.float32(0)


def _applied(function: Callable[..., object], operands: Sequence[Operand]) -> Elements:
    unit = next(one.unit for one in operands if isinstance(one, Uncertain))
    values, errors = [value_of(one) for one in operands], [_error_of(one) for one in operands]
    result = np.asarray(function(*values))
    if function in (np.add, np.subtract):
        error = np.hypot(errors[0], errors[1])
    elif function is np.multiply:
        sizes = [np.abs(value) + error for value, error in zip(values, errors, strict=True)]
        error = np.hypot(sizes[0] * errors[1], sizes[1] * errors[0])
    elif function is product:
        squares = [np.square(np.asarray(value, np.float64)) for value in values]
        wrong = [np.square(np.asarray(error, np.float64)) for error in errors]
        error = np.sqrt((squares[0] + wrong[0]) @ wrong[1] + wrong[0] @ squares[1])
    else:
        error = _moved_by(function, operands, result)
    return _made(result, error, unit)


def _made(result: Array, error: Array, unit: float) -> Elements:
    if result.dtype.kind != "f":
        return Uncertain(result, np.broadcast_to(error, result.shape), unit) if np.any(error) else result
    rounding = np.where(np.isfinite(result), np.abs(result) * np.float32(unit), 0) + _SMALLEST
    error = np.hypot(np.where(np.isnan(error), np.inf, error), rounding)
    return Uncertain(result, np.asarray(np.broadcast_to(error, result.shape), np.float32), unit)


def _moved_by(function: Callable[..., object], operands: Sequence[Operand], result: Array) -> Array:
    """Return how far the result moves when each operand takes either end of its interval."""
    furthest = np.zeros(result.shape, bool if result.dtype.kind == "b" else np.float64)
    ends = [_ends(one) if isinstance(one, Uncertain) else (one,) for one in operands]
    for corner in itertools.product(*ends):
        with np.errstate(all="ignore"):
            moved = np.asarray(function(*corner))
        furthest = np.maximum(furthest, _distance(moved, result))
    return furthest


def _ends(operand: Uncertain) -> tuple[Array, Array]:
    value, error = operand.value, operand.error
    match value.dtype.kind:
        case "b":
            return value, value ^ error.astype(bool)
        case "f":
            return value - error, value + error
        case _:
            limits = np.iinfo(value.dtype)
            low, high = (np.clip(np.rint(value + sign * error), limits.min, limits.max) for sign in (-1.0, 1.0))
            return low.astype(value.dtype), high.astype(value.dtype)


def _distance(moved: Array, result: Array) -> Array:
    same = (moved == result) | ((moved != moved) & (result != result))
    if result.dtype.kind == "b":
        return ~same
    return np.where(same, 0.0, np.abs(moved.astype(np.float64) - result))


def _chosen(condition: Operand, first: Operand, second: Operand) -> Uncertain:
    """One of two by a condition; where that may be otherwise the error is how far they lie apart."""
    unit = next(one.unit for one in (condition, first, second) if isinstance(one, Uncertain))
    result = np.where(value_of(condition), value_of(first), value_of(second))
    errors = _error_of(first), _error_of(second)
    error = np.where(value_of(condition), *errors)
    if isinstance(condition, Uncertain):
        apart = _distance(np.asarray(value_of(first)), np.asarray(value_of(second)))
        error = np.where(_error_of(condition), apart + np.maximum(*errors), error)
    return Uncertain(result, np.asarray(np.broadcast_to(error, result.shape), np.float32), unit)
