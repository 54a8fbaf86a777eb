"""What a kernel gives, computed in NumPy from its description, with bounds of what rounding may do to each element.

Every value is an interval around its float64 value. Each operation widens it by the rounding that the machine is
allowed; comparisons and roundings that the interval leaves open let both ways pass. So a result outside of its
interval is a fault and no matter of conditioning.
"""

from __future__ import annotations

import itertools
import math
import unicodedata
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tests.fuzz.description import (
    BLOCK_INDICES,
    INDEX_FUNCTIONS,
    Allocate,
    Bind,
    Branch,
    Call,
    Constant,
    Copy,
    Expression,
    Fill,
    Gemm,
    Kernel,
    Load,
    Loop,
    Named,
    Parallel,
    Position,
    Reduce,
    Region,
    Scalar,
    Statement,
    Store,
    Tensor,
    inputs,
    outputs,
)
from ttexplore.ops.block_float import GROUP, rounded_in_groups
from ttexplore.ops.sfpu import FAST_ERROR

Array = NDArray[np.float64]

INTEGERS = ("int32", "uint8", "int8")
_EXTREMES = {"min": np.minimum, "max": np.maximum, "absmax": np.maximum}
BITS = {"bitand": np.bitwise_and, "bitor": np.bitwise_or, "bitxor": np.bitwise_xor}
# Of float8: the bits of the fraction, the least exponent, and the largest number.
_SMALL_FLOATS = {"float8_e4m3fn": (3, -6, 448), "float8_e5m2": (2, -14, 57344)}


@dataclass(frozen=True)
class Interval:
    """Values with the bounds that a right result lies in; bounds may be infinite. Conditions are 0 and 1."""

    value: Array
    low: Array
    high: Array

    @classmethod
    def exact(cls, value: Any) -> Interval:
        array = np.asarray(value, np.float64)
        return cls(array, array, array)

    def widened(self, radius: Any) -> Interval:
        return Interval(self.value, self.low - radius, self.high + radius)

    @property
    def size(self) -> Array:
        """The largest absolute value of each element."""
        return np.maximum(np.abs(self.low), np.abs(self.high))

    def contains(self, result: NDArray[Any]) -> NDArray[np.bool_]:
        """Which elements of `result` are right; where a bound is not finite, any is."""
        got = result.astype(np.float64)
        # Below the smallest normal float32 the machine may give zero.
        slack = np.maximum(self.size * 1e-7, 1e-30)
        inside = (self.low - slack <= got) & (got <= self.high + slack)
        return inside | ~np.isfinite(self.low) | ~np.isfinite(self.high)


@dataclass(frozen=True)
class Precision:
    """What the machine is allowed: `unit` relative to each operation's result, `product` relative to each product of
    the matrix unit or of an elementwise multiplication, `mantissa_bits` of an operand of the FPU, and whether a narrow
    intermediate may keep the precision that it was computed in. `copied_bits` are those of a mantissa that
    is copied, which may pass DST. `exponential` is the relative error of an exponential beside its unit."""

    unit: float
    product: float
    mantissa_bits: int
    keeps_more: bool
    copied_bits: int = 52
    exponential: float = 0.0


# The reference computes in float32 and rounds where the kernel stores.
_WHOLE = Precision(unit=0.0, product=0.0, mantissa_bits=52, keeps_more=False)
REFERENCE = Precision(unit=2**-22, product=2**-21, mantissa_bits=23, keeps_more=False)
_PRODUCT = {"LoFi": 2**-4, "HiFi2": 2**-7, "HiFi3": 2**-8, "HiFi4": 2**-9}


def device_precision(*, wide: bool, fidelity: str, fast: bool = False) -> Precision:
    """A chip with a DST of 32 bits (`wide`) or 16, at a math fidelity, with exponentials that may be `fast`."""
    unit = 2**-9 if wide else 2**-6
    bits = 10 if wide else 7
    return Precision(unit, max(unit, _PRODUCT[fidelity]), bits, keeps_more=True, copied_bits=52 if wide else 7,
                     exponential=FAST_ERROR if fast else 0.0)  # fmt: skip


# Operations


@dataclass(frozen=True)
class Operation:
    """How an operation is written, and what it gives. `kind` tells conditions from numbers, of the result."""

    text: str
    meaning: Callable[..., Interval]
    kind: Literal["number", "condition"] = "number"


def _add(p: Precision, a: Interval, b: Interval) -> Interval:
    made = Interval(a.value + b.value, a.low + b.low, a.high + b.high)
    return made.widened(p.unit * np.maximum(made.size, np.maximum(a.size, b.size)))


def _subtract(p: Precision, a: Interval, b: Interval) -> Interval:
    return _add(p, a, Interval(-b.value, -b.high, -b.low))


def _corners(a: Interval, b: Interval, function: Callable[[Array, Array], Array]) -> Interval:
    corners = [function(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    low, high = np.minimum.reduce(corners), np.maximum.reduce(corners)
    return Interval(function(a.value, b.value), low, high)


def _multiply(p: Precision, a: Interval, b: Interval) -> Interval:
    made = _corners(a, b, lambda x, y: x * y)
    return made.widened(p.product * made.size)


def _divide(p: Precision, a: Interval, b: Interval) -> Interval:
    made = _corners(a, b, lambda x, y: x / y)
    open_ = (b.low <= 0) & (b.high >= 0)
    made = Interval(made.value, np.where(open_, -np.inf, made.low), np.where(open_, np.inf, made.high))
    return made.widened(2 * p.unit * made.size)


def _both(function: Callable[[Array, Array], Array]) -> Callable[..., Interval]:
    """An operation that grows with both operands and gives one of them."""
    return lambda p, a, b: Interval(
        function(a.value, b.value), function(a.low, b.low), function(a.high, b.high)
    ).widened(p.unit * np.maximum(a.size, b.size))  # fmt: skip


def _absolute(p: Precision, a: Interval) -> Interval:
    crosses = (a.low <= 0) & (a.high >= 0)
    low = np.where(crosses, 0.0, np.minimum(np.abs(a.low), np.abs(a.high)))
    return Interval(np.abs(a.value), low, a.size).widened(p.unit * a.size)


def _negative(p: Precision, a: Interval) -> Interval:
    return Interval(-a.value, -a.high, -a.low).widened(p.unit * a.size)


def _growing(function: Callable[[Array], Array], floor: float = 0.0) -> Callable[..., Interval]:
    """A function that grows, wrong by a few units of its value, or of `floor` where that is more."""

    def meaning(p: Precision, a: Interval) -> Interval:
        made = Interval(function(a.value), function(a.low), function(a.high))
        return made.widened(4 * p.unit * np.maximum(made.size, floor))

    return meaning


def _exponential(function: Callable[[Array], Array]) -> Callable[..., Interval]:
    plain = _growing(function)

    def meaning(p: Precision, a: Interval) -> Interval:
        made = plain(p, a)
        return made.widened(p.exponential * made.size)

    return meaning


def _falling(function: Callable[[Array], Array]) -> Callable[..., Interval]:
    """A function of positive numbers that falls; where the operand may be 0, anything."""

    def meaning(p: Precision, a: Interval) -> Interval:
        made = Interval(function(a.value), function(a.high), np.where(a.low > 0, function(a.low), np.inf))
        return made.widened(4 * p.unit * made.size)

    return meaning


def _smooth(function: Callable[[Array], Array], slope: float, low: float, high: float) -> Callable[..., Interval]:
    """A function with a largest slope and a range, wrong by a few units."""

    def meaning(p: Precision, a: Interval) -> Interval:
        value = function(a.value)
        radius = slope * np.maximum(a.high - a.value, a.value - a.low)
        made = Interval(value, np.maximum(value - radius, low), np.minimum(value + radius, high))
        return made.widened(4 * p.unit * np.maximum(made.size, 1.0))

    return meaning


def _steps(function: Callable[[Array], Array]) -> Callable[..., Interval]:
    """A function to whole numbers that grows."""
    return lambda p, a: Interval(function(a.value), function(a.low), function(a.high)).widened(p.unit * a.size)


def _less(p: Precision, a: Interval, b: Interval) -> Interval:
    return _condition(a.value < b.value, a.high < b.low, a.low < b.high)


def _less_equal(p: Precision, a: Interval, b: Interval) -> Interval:
    return _condition(a.value <= b.value, a.high <= b.low, a.low <= b.high)


def _equal(p: Precision, a: Interval, b: Interval) -> Interval:
    certain = (a.low == a.high) & (b.low == b.high) & (a.low == b.low)
    return _condition(a.value == b.value, certain, (a.low <= b.high) & (b.low <= a.high))


def _condition(value: Any, certain: Any, possible: Any) -> Interval:
    return Interval(*(np.asarray(one, np.float64) for one in (value, certain, possible)))


def _swapped(function: Callable[..., Interval]) -> Callable[..., Interval]:
    return lambda p, a, b: function(p, b, a)


def _not(p: Precision, a: Interval) -> Interval:
    return Interval(1 - a.value, 1 - a.high, 1 - a.low)


def _and(p: Precision, a: Interval, b: Interval) -> Interval:
    return Interval(np.minimum(a.value, b.value), np.minimum(a.low, b.low), np.minimum(a.high, b.high))


def _or(p: Precision, a: Interval, b: Interval) -> Interval:
    return Interval(np.maximum(a.value, b.value), np.maximum(a.low, b.low), np.maximum(a.high, b.high))


def _select(p: Precision, test: Interval, a: Interval, b: Interval) -> Interval:
    sure, never = test.low == 1, test.high == 0
    low = np.where(sure, a.low, np.where(never, b.low, np.minimum(a.low, b.low)))
    high = np.where(sure, a.high, np.where(never, b.high, np.maximum(a.high, b.high)))
    made = Interval(np.where(test.value == 1, a.value, b.value), low, high)
    return made.widened(p.unit * made.size)


def _whole(function: Callable[[Any, Any], Any]) -> Callable[..., Interval]:
    """An operation on two whole numbers, which are exact."""
    return lambda p, a, b: Interval.exact(function(a.value.astype(np.int64), b.value.astype(np.int64)))


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-np.clip(x, -700, 700)))


_erf = np.vectorize(math.erf, otypes=[np.float64])

OPERATIONS: dict[str, Operation] = {
    "add": Operation("({0} + {1})", _add),
    "subtract": Operation("({0} - {1})", _subtract),
    "multiply": Operation("({0} * {1})", _multiply),
    "divide": Operation("({0} / {1})", _divide),
    "max": Operation("T.max({0}, {1})", _both(np.maximum)),
    "min": Operation("T.min({0}, {1})", _both(np.minimum)),
    "abs": Operation("T.abs({0})", _absolute),
    "negative": Operation("(-{0})", _negative),
    "exp": Operation("T.exp({0})", _exponential(np.exp)),
    "exp2": Operation("T.exp2({0})", _exponential(np.exp2)),
    "log": Operation("T.log({0})", _growing(np.log, 1.0)),
    "log2": Operation("T.log2({0})", _growing(np.log2, 1.0)),
    "sqrt": Operation("T.sqrt({0})", _growing(lambda x: np.sqrt(np.maximum(x, 0)))),
    "rsqrt": Operation("T.rsqrt({0})", _falling(lambda x: 1 / np.sqrt(np.maximum(x, 0)))),
    "reciprocal": Operation("(1.0 / {0})", _falling(lambda x: 1 / x)),
    "sigmoid": Operation("T.sigmoid({0})", _smooth(_sigmoid, 0.25, 0.0, 1.0)),
    "tanh": Operation("T.tanh({0})", _smooth(np.tanh, 1.0, -1.0, 1.0)),
    "erf": Operation("T.erf({0})", _smooth(_erf, 1.13, -1.0, 1.0)),
    "sin": Operation("T.sin({0})", _smooth(np.sin, 1.0, -1.0, 1.0)),
    "cos": Operation("T.cos({0})", _smooth(np.cos, 1.0, -1.0, 1.0)),
    "floor": Operation("T.floor({0})", _steps(np.floor)),
    "ceil": Operation("T.ceil({0})", _steps(np.ceil)),
    "round": Operation("T.round({0})", _steps(lambda x: np.trunc(x + np.copysign(0.5, x)))),
    "floor_divide": Operation("({0} // {1})", _whole(np.floor_divide)),
    "remainder": Operation("({0} % {1})", _whole(np.mod)),
    "bit_and": Operation("({0} & {1})", _whole(np.bitwise_and)),
    "bit_or": Operation("({0} | {1})", _whole(np.bitwise_or)),
    "bit_xor": Operation("({0} ^ {1})", _whole(np.bitwise_xor)),
    "shift_left": Operation("({0} << {1})", _whole(np.left_shift)),
    "shift_right": Operation("({0} >> {1})", _whole(np.right_shift)),
    "less": Operation("({0} < {1})", _less, "condition"),
    "less_equal": Operation("({0} <= {1})", _less_equal, "condition"),
    "greater": Operation("({0} > {1})", _swapped(_less), "condition"),
    "greater_equal": Operation("({0} >= {1})", _swapped(_less_equal), "condition"),
    "equal": Operation("({0} == {1})", _equal, "condition"),
    "not_equal": Operation("({0} != {1})", lambda p, a, b: _not(p, _equal(p, a, b)), "condition"),
    "and": Operation("T.logical_and({0}, {1})", _and, "condition"),
    "or": Operation("T.logical_or({0}, {1})", _or, "condition"),
    "not": Operation("T.logical_not({0})", _not, "condition"),
    "select": Operation("T.if_then_else({0}, {1}, {2})", _select),
    "float32": Operation('T.cast({0}, "float32")', lambda p, a: rounded(a, "float32", p)),
    "bfloat16": Operation('T.cast({0}, "bfloat16")', lambda p, a: rounded(a, "bfloat16", p)),
}


# Those that Python spells.
_OPERATORS = (
    "add", "subtract", "multiply", "divide", "less", "less_equal", "greater", "greater_equal", "equal", "not_equal",
)  # fmt: skip
_CASTS = ("float32", "bfloat16")


# Rounding


def to_dtype(values: Any, dtype: str) -> Array:
    """`values` as what the chip holds of a kernel dtype: float16 is held as bfloat16."""
    if dtype in INTEGERS:
        return np.trunc(np.asarray(values, np.float64))
    if dtype in _SMALL_FLOATS:
        fraction_bits, least, largest = _SMALL_FLOATS[dtype]
        numbers = np.clip(np.asarray(values, np.float64), -largest, largest)
        step = np.ldexp(1.0, np.maximum(np.frexp(numbers)[1] - 1, least) - fraction_bits)
        return np.rint(numbers / step) * step
    held = ml_dtypes.bfloat16 if dtype in ("bfloat16", "float16") else np.float32
    return np.asarray(values, np.float64).astype(np.float32).astype(held).astype(np.float64)


def rounded(interval: Interval, dtype: str, precision: Precision) -> Interval:
    """What a buffer of `dtype` holds of `interval`: rounding is monotone, so the bounds are rounded as well."""
    low, high = to_dtype(interval.low, dtype), to_dtype(interval.high, dtype)
    if precision.keeps_more and dtype not in _SMALL_FLOATS:
        low, high = np.minimum(low, interval.low), np.maximum(high, interval.high)
    made = Interval(to_dtype(interval.value, dtype), low, high)
    if dtype in INTEGERS:
        return made
    # A chip may cut where the reference rounds.
    coarse = precision.keeps_more and dtype != "float32" and dtype not in _SMALL_FLOATS
    return made.widened(2**-7 * made.size) if coarse else made


def _packed(interval: Interval) -> Interval:
    """What groups with one exponent hold: twice rounded to 7 bits of the largest number, or cut to fit."""
    groups = interval.size.reshape(-1, GROUP).max(axis=1, keepdims=True)
    radius = np.broadcast_to(groups * 2**-6, (groups.shape[0], GROUP)).reshape(interval.size.shape)
    return interval.widened(np.where(np.isfinite(radius), radius, np.inf))


def _operand(interval: Interval, precision: Precision) -> Interval:
    """What an engine gets of a loaded value: the FPU cuts mantissas."""
    return _cut(interval, precision.mantissa_bits)


def _cut(interval: Interval, mantissa_bits: int) -> Interval:
    scale = 2.0**mantissa_bits
    mantissa, _ = np.frexp(interval.value)
    is_whole = np.floor(mantissa * 2 * scale) == mantissa * 2 * scale
    return interval.widened(np.where(is_whole, 0.0, interval.size / scale))


# Running


def random_inputs(kernel: Kernel, seed: int, updated: Collection[str] = ()) -> tuple[NDArray[Any], ...]:
    """An array for each input tensor, and for those that are updated."""
    random = np.random.default_rng(seed)
    return tuple(_random(random, kernel.shape(tensor), tensor) for tensor in inputs(kernel, updated))


def _random(random: np.random.Generator, shape: tuple[int, ...], tensor: Tensor) -> NDArray[Any]:
    match tensor.values:
        case "coarse":
            values = random.integers(-64, 65, shape) / 32
        case "positive":
            values = random.integers(16, 65, shape) / 32
        case "normal":
            values = np.clip(random.standard_normal(shape), -4, 4)
        case "whole":
            return random.integers(-200, 201, shape).astype(np.int32)
        case "signed":
            return random.integers(-128, 128, shape).astype(np.int8)
        case "bytes":
            return np.maximum(random.integers(-128, 256, shape), 0).astype(np.uint8)
    return values.astype(np.float32)


def expected(
    kernel: Kernel, arrays: Sequence[NDArray[Any]], precision: Precision, block_floats: Collection[str] = (),
    updated: Collection[str] = (),
) -> tuple[Interval, ...]:  # fmt: skip
    """The output tensors in the order of parameters, each element with its bounds; where nothing is stored, what an
    updated tensor had, else NaN. `block_floats` are the tensors whose tiles are Bfp8_b."""
    given = [
        rounded_in_groups(to_dtype(array, tensor.dtype)) if tensor.name in block_floats else array
        for tensor, array in zip(inputs(kernel, updated), arrays, strict=True)
    ]
    run = _Run(kernel, given, precision, updated)
    with np.errstate(all="ignore"):
        for block in itertools.product(*(range(kernel.number(extent)) for extent in reversed(kernel.grid))):
            run.names = dict(zip(BLOCK_INDICES, reversed(block), strict=False))
            run.body(kernel.body)
    return tuple(
        _packed(run.storage[tensor.name]) if tensor.name in block_floats else run.storage[tensor.name]
        for tensor in outputs(kernel)
    )


class _Run:
    def __init__(
        self, kernel: Kernel, arrays: Sequence[NDArray[Any]], precision: Precision, updated: Collection[str] = ()
    ) -> None:
        self.kernel, self.precision = kernel, precision
        self.names: dict[str, Any] = {}
        self.numbers: dict[str, Any] = {}
        self.values: dict[str, Interval] = {}
        self.value_dtypes: dict[str, str | None] = {}
        self.is_number: dict[str, bool] = {}
        self.dtypes = {tensor.name: tensor.dtype for tensor in kernel.tensors}
        self.storage = {tensor.name: Interval.exact(np.full(kernel.shape(tensor), np.nan)) for tensor in kernel.tensors}
        for tensor, array in zip(inputs(kernel, updated), arrays, strict=True):
            self.storage[tensor.name] = Interval.exact(to_dtype(array, tensor.dtype))
            if tensor.dtype in INTEGERS:
                # Python reads names in this form.
                self.numbers[unicodedata.normalize("NFKC", tensor.name)] = array

    def index(self, text: str) -> Any:
        return eval(text, {"__builtins__": {}, "T": INDEX_FUNCTIONS}, {**self.numbers, **self.names})

    def body(self, body: tuple[Statement, ...]) -> None:
        for statement in body:
            self.statement(statement)

    def statement(self, statement: Statement) -> None:
        match statement:
            case Allocate(name, shape, dtype):
                self.dtypes[name] = dtype
                self.storage[name] = Interval.exact(np.full(shape, np.nan))
            case Copy(source, target):
                self.copy(source, target)
            case Fill(buffer, value):
                shape = self.storage[buffer].value.shape
                self.put(buffer, Interval.exact(np.full(shape, value)))
            case Gemm():
                self.gemm(statement)
            case Reduce():
                self.reduce(statement)
            case Loop(variable, extent, _, body, own=own):
                first, shift = (self.index(text) if text else 0 for text in (statement.first, statement.shift))
                end = self.kernel.number(extent)
                end = min(end, self.index(own)) if own else end
                for turn in range(first + shift, end + shift):
                    self.names[variable] = turn
                    if not statement.test or self.index(statement.test):
                        self.body(body)
            case Branch(test, body, other):
                self.body(body if self.index(test) else other)
            case Parallel():
                self.parallel(statement)
            case Scalar():
                self.scalar(statement)

    def put(self, buffer: str, interval: Interval) -> None:
        self.storage[buffer] = rounded(interval, self.dtypes[buffer], self.precision)

    def copy(self, source: Region, target: Region) -> None:
        """Outside of a tensor a copy reads zeros and stores nothing."""
        block = _cut(self.block(source), self.precision.copied_bits)
        block = rounded(block, self.dtypes[target.name], self.precision)
        whole = self.storage[target.name]
        picked, places = self.inside(target, whole.value.shape)
        value, low, high = (np.array(part) for part in (whole.value, whole.low, whole.high))
        for array, values in ((value, block.value), (low, block.low), (high, block.high)):
            array[places] = values.reshape(tuple(target.extents))[picked]
        self.storage[target.name] = Interval(value, low, high)

    def inside(self, region: Region, shape: tuple[int, ...]) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """Which part of the block lies inside of the tensor, and where."""
        picked: list[slice] = []
        places: list[slice] = []
        for start, extent, length in zip(self.starts(region), region.extents, shape, strict=True):
            low, high = max(start, 0), min(start + extent, length)
            high = max(high, low)
            picked.append(slice(low - start, high - start))
            places.append(slice(low, high))
        return tuple(picked), tuple(places)

    def starts(self, region: Region) -> list[int]:
        return [0] * len(region.extents) if region.form == "whole" else [self.index(text) for text in region.starts]

    def block(self, region: Region) -> Interval:
        whole = self.storage[region.name]
        picked, places = self.inside(region, whole.value.shape)
        made: list[Array] = []
        for part in (whole.value, whole.low, whole.high):
            block = np.zeros(region.extents)
            block[picked] = part[places]
            made.append(block)
        return Interval(*made)

    def gemm(self, gemm: Gemm) -> None:
        p = _WHOLE if self.dtypes[gemm.c] in INTEGERS else self.precision
        a, b = (_operand(self.storage[name], p) for name in (gemm.a, gemm.b))
        a = _transposed(a) if gemm.transpose_a else a
        b = _transposed(b) if gemm.transpose_b else b
        a_radius, b_radius = (np.maximum(x.high - x.value, x.value - x.low) for x in (a, b))
        size = np.abs(a.value) @ np.abs(b.value)
        radius = np.abs(a.value) @ b_radius + a_radius @ (np.abs(b.value) + b_radius) + p.product * size
        product = Interval.exact(a.value @ b.value).widened(radius)
        if not gemm.clear:
            old = self.storage[gemm.c]
            total = Interval(product.value + old.value, product.low + old.low, product.high + old.high)
            product = total.widened(2 * p.unit * (size + old.size))
        self.put(gemm.c, product)

    def scalar(self, one: Scalar) -> None:
        value = self.value(one.value)
        if one.form == "name":
            self.values[one.name], self.value_dtypes[one.name] = value, self.dtype(one.value)
            self.is_number[one.name] = self.is_float(one.value)
            return
        dtype = self.dtypes[one.name]
        value = rounded(value, dtype, self.precision)
        if one.form == "variable":
            self.values[one.name], self.value_dtypes[one.name], self.is_number[one.name] = value, dtype, False
            return
        whole, at = self.storage[one.name], tuple(map(self.index, one.indices))
        parts = [np.array(part) for part in (whole.value, whole.low, whole.high)]
        for array, element in zip(parts, (value.value, value.low, value.high), strict=True):
            array[at] = element
        self.storage[one.name] = Interval(*parts)

    def reduce(self, reduction: Reduce) -> None:
        """Sums are those of products with 1, as exact as a product of matrices; extremes are elements."""
        p = self.precision
        whole = _operand(self.storage[reduction.source], p)
        if reduction.kind.startswith("abs"):
            low = np.where((whole.low <= 0) & (whole.high >= 0), 0, np.minimum(np.abs(whole.low), np.abs(whole.high)))
            whole = Interval(np.abs(whole.value), low, whole.size)
        old = self.storage[reduction.target]
        if reduction.kind in BITS:
            assert np.array_equal(whole.low, whole.high), "integers are exact"
            join = BITS[reduction.kind]
            joined = join.reduce(whole.value.astype(np.int64), axis=reduction.dim)
            made = Interval.exact(joined if reduction.clear else join(joined, old.value.astype(np.int64)))
        elif reduction.kind.endswith("sum"):
            size = whole.size.sum(axis=reduction.dim)
            made = Interval(*(part.sum(axis=reduction.dim) for part in (whole.value, whole.low, whole.high)))
            made = made.widened((p.product + 2 * p.unit) * size)
            if not reduction.clear:
                total = Interval(made.value + old.value, made.low + old.low, made.high + old.high)
                made = total.widened(2 * p.unit * (size + old.size))
        else:
            extreme = _EXTREMES[reduction.kind]
            made = Interval(
                *(extreme.reduce(part, axis=reduction.dim) for part in (whole.value, whole.low, whole.high))
            )
            if not reduction.clear:
                parts = zip((made.value, made.low, made.high), (old.value, old.low, old.high), strict=True)
                made = Interval(*(extreme(one, other) for one, other in parts))
        self.put(reduction.target, made)

    def parallel(self, statement: Parallel) -> None:
        for axis, (variable, extent) in enumerate(zip(statement.variables, statement.extents, strict=True)):
            shape = [1] * len(statement.extents)
            shape[axis] = extent
            self.names[variable] = np.arange(extent).reshape(shape)
        for one in statement.body:
            if isinstance(one, Bind):
                self.values[one.name], self.value_dtypes[one.name] = self.value(one.value), self.dtype(one.value)
                self.is_number[one.name] = self.is_float(one.value)
            else:
                self.store(one, statement.extents)

    def store(self, one: Store, extents: tuple[int, ...]) -> None:
        value, p = self.value(one.value), self.precision
        if one.test is not None:
            value = _select(p, self.value(one.test), value, self.unless_stored(one, extents))
        made = Interval(*(np.array(np.broadcast_to(x, extents)) for x in (value.value, value.low, value.high)))
        if not one.indices:
            self.put(one.buffer, made)
            return
        # Outside of a tensor nothing is stored.
        made, whole = rounded(made, self.dtypes[one.buffer], p), self.storage[one.buffer]
        at, inside = self.places(one.indices, whole.value.shape, extents)
        parts = [np.array(part) for part in (whole.value, whole.low, whole.high)]
        for array, values in zip(parts, (made.value, made.low, made.high), strict=True):
            array[tuple(place[inside] for place in at)] = values[inside]
        self.storage[one.buffer] = Interval(*parts)

    def unless_stored(self, one: Store, extents: tuple[int, ...]) -> Interval:
        """What the elements of a store get where its test is false."""
        if one.other is not None:
            return self.value(one.other)
        old = self.storage[one.buffer]
        if not one.indices:
            return _operand(old, self.precision)
        at, _ = self.places(one.indices, old.value.shape, extents)
        return Interval(*(part[tuple(at)] for part in (old.value, old.low, old.high)))

    def places(
        self, indices: tuple[str, ...], shape: tuple[int, ...], extents: tuple[int, ...] = ()
    ) -> tuple[list[NDArray[np.int64]], NDArray[np.bool_]]:
        """The places of elements along each axis, brought into the shape, and which were inside of it."""
        found = np.broadcast_arrays(*(np.asarray(self.index(text)) for text in indices), np.zeros(extents, np.int64))
        at = found[: len(indices)]
        inside = np.logical_and.reduce([(one >= 0) & (one < length) for one, length in zip(at, shape, strict=True)])
        return [np.clip(one, 0, length - 1) for one, length in zip(at, shape, strict=True)], inside

    def value(self, expression: Expression) -> Interval:
        match expression:
            case Load(buffer, indices):
                whole = self.storage[buffer]
                # Outside of a tensor are zeros.
                places, inside = self.places(indices, whole.value.shape)
                parts = (np.where(inside, part[tuple(places)], 0) for part in (whole.value, whole.low, whole.high))
                value = Interval(*parts)
                return value if self.dtypes[buffer] in INTEGERS else _operand(value, self.precision)
            case Constant(value):
                return Interval.exact(value)
            case Position(text):
                return Interval.exact(self.index(text))
            case Named(name):
                return self.values[name]
            case Call(name, arguments):
                dtype = self.common_dtype(name, arguments)
                precision = _WHOLE if dtype in INTEGERS else self.precision
                made = OPERATIONS[name].meaning(precision, *self.operands(name, arguments))
                return (
                    _wrapped(made) if self.dtype(expression) == "uint8" and OPERATIONS[name].kind == "number" else made
                )

    def operands(self, name: str, arguments: tuple[Expression, ...]) -> list[Interval]:
        """The values of the arguments, in the dtype that they have in common."""
        wanted = self.common_dtype(name, arguments)
        found: list[Interval] = []
        for argument in arguments:
            value = self.value(argument)
            is_cast = wanted == "float16" and self.dtype(argument) == "bfloat16"
            is_cast = is_cast or (wanted in ("float16", "bfloat16") and self.is_float(argument))
            found.append(rounded(value, "float16", self.precision) if is_cast else value)
        return found

    def is_float(self, expression: Expression) -> bool:
        """Whether it is a float of Python's: a function of T gives one of such, and operators do."""
        match expression:
            case Constant(value):
                return isinstance(value, float)
            case Named(name):
                return self.is_number[name]
            case Call(name, arguments):
                return name not in _CASTS and OPERATIONS[name].kind == "number" and all(map(self.is_float, arguments))
            case _:
                return False

    def dtype(self, expression: Expression) -> str | None:
        """The dtype that the language gives an expression; none for constants, which take that of the other side."""
        match expression:
            case Load(buffer, _):
                return self.dtypes[buffer]
            case Constant() | Position():
                return None
            case Named(name):
                return self.value_dtypes[name]
            case Call(name) if name in _CASTS:
                return name
            case Call() if self.is_float(expression):
                return None
            case Call(name, arguments):
                dtype = self.common_dtype(name, arguments)
                turned = dtype is None or (dtype in INTEGERS and name not in ("abs", "negative"))
                return "float32" if turned and len(arguments) == 1 else dtype

    def common_dtype(self, name: str, arguments: tuple[Expression, ...]) -> str | None:
        """The dtype of a result: numbers before integers, then the widest one; of those with 16 bits, float16. Python's
        floats are float32 to an operator, and have the dtype of the other side to a function of T."""
        dtypes = {self.dtype(one) for one in (arguments[1:] if name == "select" else arguments)}
        floats = [one for one in arguments if self.is_float(one)]
        if name == "reciprocal" or (name in _OPERATORS and floats):
            dtypes.add("float32")
        return next((dtype for dtype in ("float32", "float16", "bfloat16", *INTEGERS) if dtype in dtypes), None)


def _wrapped(interval: Interval) -> Interval:
    """Bytes, of which NumPy's have their lowest bits in every intermediate."""
    assert np.array_equal(interval.low, interval.high), "bytes are exact"
    return Interval.exact(interval.value.astype(np.int64).astype(np.uint8))


def _transposed(interval: Interval) -> Interval:
    return Interval(interval.value.T, interval.low.T, interval.high.T)
