"""The values of an element-wise block as a graph: each value once, constants folded, compositions expanded.

A value is the result of one operation for all elements of a block. `COMPOSITIONS` expands functions without an
operation of their own into other operations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import ml_dtypes
import numpy as np
import tvm_ffi
from tvm import ir, tirx

from ttexplore.ir.arithmetic.functions import FUNCTIONS
from ttexplore.ir.dag import same_expression
from ttexplore.ops import wide
from ttexplore.ops.integers import SMALL_INTEGERS, shifted_left, shifted_right_by_sfpu
from ttexplore.ops.sfpu import as_int32
from ttexplore.ops.small import FLOATS, rounded_to
from ttexplore.ops.storage import Array
from ttexplore.plan import FORMAT_OF_DTYPE, SMALL_FLOATS

COMMUTING = frozenset(["add", "mul", "max", "min"])
MIRRORED = {"gt": "lt", "ge": "le", "lt": "gt", "le": "ge", "eq": "eq", "ne": "ne"}
COMPARISONS = frozenset(MIRRORED)

# Discontinuous operations: an error in the last place of an operand can change the whole result.
JUMPING = COMPARISONS | {
    "to_int32", "bits_of", "floor", "ceil", "trunc", "round", "sign", *(f"{name}z" for name in MIRRORED)
}  # fmt: skip

# Operations on 32-bit integers, which wrap around; `to_int32` converts a number, rounding towards zero. The integer
# form of an operation on numbers has the same name with this suffix.
_ON_INT32 = "_int32"
INT32_FORMS = frozenset(["add", "sub", "mul", "max", "min", "abs", *MIRRORED])
_INT32_RESULTS = frozenset(
    [
        "integer", "whole", "to_int32", "bits_of", "bit_and", "bit_or", "bit_xor", "bit_not", "shift_left",
        "shift_right", *(f"{name}{_ON_INT32}" for name in INT32_FORMS),
    ]
)  # fmt: skip

# Operations whose result is exact in bfloat16 if the operands are.
_KEEPS_BFLOAT16 = frozenset(
    ["abs", "negative", "relu", "max", "min", "where", "clamp", "floor", "ceil", "trunc", "round"]
)

# The bits of fraction of float32.
_FRACTION_BITS = 23

_TRUTH = COMPARISONS | {"not", *(f"{name}z" for name in MIRRORED)}

_FOLDED: dict[str, Callable[..., float | np.generic | Array]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "max": np.maximum, "min": np.minimum,
    "pow": FUNCTIONS["pow"], "gt": np.greater, "ge": np.greater_equal, "lt": np.less, "le": np.less_equal,
    "eq": np.equal, "ne": np.not_equal, "exp": wide.exp, "exp2": wide.exp2, "log": wide.log, "log2": wide.log2,
    "sqrt": np.sqrt, "recip": np.reciprocal, "tanh": wide.tanh, "sin": wide.sin, "cos": wide.cos, "floor": np.floor,
    "ceil": np.ceil, "trunc": np.trunc, "round": np.rint, "abs": np.abs, "negative": np.negative, "sign": np.sign,
    "square": np.square, "erf": math.erf,
}  # fmt: skip

_SYMMETRIC_INT32 = frozenset(
    ["bit_and", "bit_or", "bit_xor", *(f"{name}{_ON_INT32}" for name in (*COMMUTING, "eq", "ne"))]
)


class BlockRead(NamedTuple):
    """A read of a block's elements: the block, the role (see :class:`ttexplore.ir.dataflow.Access`), the number of
    stores to the block that come before it in the nest, and the block's dtype."""

    buffer: tirx.Buffer
    role: str
    version: int
    dtype: str


@dataclass(frozen=True)
class Value:
    """One value: the operation, its operands (numbers of other values), and for leaves what they are.

    Leaves: ``number`` (a float32) and ``integer`` (an int), whose `constant` they are; ``scalar`` and ``whole`` (a
    whole number that the kernel computes when it runs, as float32 and as int32; `place` is that in
    `ValueGraph.scalars`), ``axis`` (`place` 0: the row of an element in its tile, 1: its column), ``load``.
    """

    op: str
    operands: tuple[int, ...] = ()
    constant: float = 0.0
    place: int = 0
    load: BlockRead | None = None


@dataclass
class ValueGraph:
    """All values of a block, numbered in order of first use. `is_wide`: DST has 32 bits."""

    is_wide: bool = True
    values: list[Value] = field(default_factory=list[Value])
    # Floats are keyed by their bits, because -0.0 equals 0.0.
    numbers: dict[Value | bytes, int] = field(default_factory=dict["Value | bytes", int])
    ranges: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    scalars: list[ir.Expr] = field(default_factory=list[ir.Expr])
    # The dtypes of 8 bits to which values are rounded.
    small_floats: dict[int, str] = field(default_factory=dict[int, str])
    # The places of scalars by hash, and the properties of each value.
    _places: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    _is_int32: list[bool] = field(default_factory=list[bool])
    _is_boolean: list[bool] = field(default_factory=list[bool])
    _is_bfloat16: list[bool] = field(default_factory=list[bool])
    _may_be_minus_zero: list[bool] = field(default_factory=list[bool])

    def __getitem__(self, number: int) -> Value:
        return self.values[number]

    def _add(self, value: Value) -> int:
        key = _bits(value.constant) if value.op == "number" else value
        if key not in self.numbers:
            self.numbers[key] = len(self.values)
            self.values.append(value)
            self.ranges.append(self._range(value))
            # Operands come first, so each property is computed once and without recursion.
            self._is_int32.append(self._holds_int32(value))
            self._is_boolean.append(self._holds_truth(value))
            self._is_bfloat16.append(self._holds_bfloat16(value, self._is_boolean[-1]))
            self._may_be_minus_zero.append(self._may_hold_minus_zero(value, self._is_boolean[-1]))
        return self.numbers[key]

    # Leaves

    def number(self, value: float | np.generic | Array) -> int:
        return self._add(Value("number", constant=float(np.float32(value))))

    def scalar(self, expression: ir.Expr) -> int:
        """An int32 expression of variables that are constant within a tile."""
        alike = self._places.setdefault(tvm_ffi.structural_hash(expression), [])
        for index in alike:
            if same_expression(self.scalars[index], expression):
                return self._add(Value("scalar", place=index))
        alike.append(len(self.scalars))
        self.scalars.append(expression)
        return self._add(Value("scalar", place=len(self.scalars) - 1))

    def integer(self, value: int) -> int:
        """An int32 constant."""
        return self._add(Value("integer", constant=value))

    def whole(self, index: int) -> int:
        """One of the `scalars` as int32."""
        return self._add(Value("whole", place=index))

    def load(self, buffer: tirx.Buffer, role: str, version: int, dtype: str) -> int:
        return self._add(Value("load", load=BlockRead(buffer, role, version, dtype)))

    def axis(self, axis: int) -> int:
        return self._add(Value("axis", place=axis))

    def loaded(self, value: int) -> BlockRead:
        """What a load reads. Raises ValueError for a value that is not a load."""
        load = self[value].load
        if load is None:
            raise ValueError(f"{self[value].op} is not a load")
        return load

    # Properties of a value

    def is_number(self, value: int, expected: float | None = None) -> bool:
        """Whether it is a constant, and equals `expected` if given; 0.0 and -0.0 differ."""
        node = self[value]
        return node.op == "number" and (expected is None or _bits(node.constant) == _bits(expected))

    def is_zero(self, value: int) -> bool:
        """Whether it is the constant 0.0 or -0.0."""
        return self.is_number(value, 0.0) or self.is_number(value, -0.0)

    def may_be_minus_zero(self, value: int) -> bool:
        """Whether an element can be -0.0, which 0.0 + -0.0 does not preserve."""
        return self._may_be_minus_zero[value]

    def is_scalar(self, value: int) -> bool:
        """Whether it is the same for all elements of a tile, and known without DST."""
        return self[value].op in ("number", "scalar")

    def is_int32(self, value: int) -> bool:
        """Whether DST holds it as an integer. Index values and truth values are float32."""
        return self._is_int32[value]

    def has_int32(self) -> bool:
        """Whether DST holds any of the values as an integer."""
        return any(self._is_int32)

    def is_boolean(self, value: int) -> bool:
        """Whether it is 1.0 or 0.0."""
        return self._is_boolean[value]

    def is_bfloat16(self, value: int) -> bool:
        """Whether the value in DST is exact in bfloat16, as all values in 16-bit DST are."""
        return not self.is_wide or self._is_bfloat16[value] or value in self.small_floats

    def is_held(self, value: int, dtype: str) -> bool:
        """Whether each element is a number of a floating-point dtype of 8 bits, as far as is known at a glance."""
        load = self[value].load
        source_dtype = self.small_floats.get(value, load.dtype if load is not None else "")
        if source_dtype in FLOATS:
            return FLOATS[dtype].holds(FLOATS[source_dtype])
        low, high = SMALL_INTEGERS.get(source_dtype, (-math.inf, math.inf))
        exact_limit = min(2.0 ** (FLOATS[dtype].fraction_bits + 1), FLOATS[dtype].largest)
        return self.is_boolean(value) or max(-low, high) <= exact_limit

    def _holds_int32(self, node: Value) -> bool:
        if node.load is not None:
            return node.load.dtype == "int32"
        return node.op in _INT32_RESULTS or (node.op == "where" and self.is_int32(node.operands[1]))

    def _holds_truth(self, node: Value) -> bool:
        if node.op == "number":
            # where_tile treats -0.0 as true.
            return _bits(node.constant) in (_bits(0.0), _bits(1.0))
        if node.op in ("max", "min", "mul"):
            return all(self.is_boolean(operand) for operand in node.operands)
        if node.op == "to_float32":
            return self[node.operands[0]].op.removesuffix(_ON_INT32) in COMPARISONS
        return node.op in _TRUTH

    def _holds_bfloat16(self, node: Value, is_boolean: bool) -> bool:
        if node.op == "number":
            return float(ml_dtypes.bfloat16(node.constant)) == node.constant or math.isnan(node.constant)
        if node.load is not None:
            return FORMAT_OF_DTYPE[node.load.dtype] == "Float16_b"
        if node.op in _KEEPS_BFLOAT16:
            return all(self._is_bfloat16[operand] for operand in node.operands[node.op == "where" :])
        return node.op in ("axis", "to_bfloat16", "sign") or is_boolean

    def _may_hold_minus_zero(self, node: Value, is_boolean: bool) -> bool:
        may_be = [self._may_be_minus_zero[operand] for operand in node.operands]
        if node.load is not None:
            return node.load.dtype.startswith(("float", "bfloat"))
        match node.op:
            case "number":
                return _bits(node.constant) == _bits(-0.0)
            case "axis" | "scalar" | "to_float32" | "abs" | "exp" | "exp2" | "exp_fast":
                return False
            case "add":
                return all(may_be)
            case "sub" | "floor":
                return may_be[0]
            case "mul":
                # A factor of 1 or more: a smaller one can round a negative number to -0.0.
                above_one = any(self.is_number(operand) and self[operand].constant >= 1 for operand in node.operands)
                return node.operands[0] != node.operands[1] and not (above_one and not any(may_be))
            case "where":
                return any(may_be[1:])
            case name:
                return name not in _INT32_RESULTS and not is_boolean

    def reads_elements(self, value: int) -> bool:
        """Whether it depends on the elements of a block one by one, and not only on a row, a column or an element."""
        waiting, reached = [value], {value}
        while waiting:
            node = self[waiting.pop()]
            if node.load is not None and node.load.role == "element":
                return True
            waiting += [operand for operand in node.operands if operand not in reached]
            reached.update(node.operands)
        return False

    def range(self, value: int) -> tuple[float, float]:
        """The minimum and maximum of an integer value; infinite if unknown, and for floats."""
        return self.ranges[value]

    def _range(self, node: Value) -> tuple[float, float]:
        operand_ranges = [self.ranges[operand] for operand in node.operands]
        bounds = (-math.inf, math.inf)
        match node.op.removesuffix(_ON_INT32):
            case "number" | "integer":
                bounds = (node.constant, node.constant)
            case "axis":
                bounds = (0, 31)
            case "load" if node.load is not None and node.load.dtype in SMALL_INTEGERS:
                bounds = SMALL_INTEGERS[node.load.dtype]
            case "to" | "to_float32" | "trunc":  # "to" of to_int32
                bounds = operand_ranges[0]
            case "where":
                bounds = (
                    min(operand_ranges[1][0], operand_ranges[2][0]),
                    max(operand_ranges[1][1], operand_ranges[2][1]),
                )
            case "max":
                bounds = (
                    max(operand_ranges[0][0], operand_ranges[1][0]),
                    max(operand_ranges[0][1], operand_ranges[1][1]),
                )
            case "min":
                bounds = (
                    min(operand_ranges[0][0], operand_ranges[1][0]),
                    min(operand_ranges[0][1], operand_ranges[1][1]),
                )
            case "add":
                bounds = (operand_ranges[0][0] + operand_ranges[1][0], operand_ranges[0][1] + operand_ranges[1][1])
            case "sub":
                bounds = (operand_ranges[0][0] - operand_ranges[1][1], operand_ranges[0][1] - operand_ranges[1][0])
            case "mul" if np.isfinite(operand_ranges).all():
                corners = [a * b for a in operand_ranges[0] for b in operand_ranges[1]]
                bounds = (min(corners), max(corners))
            case "floor" if np.isfinite(operand_ranges).all():
                bounds = (math.floor(operand_ranges[0][0]), math.floor(operand_ranges[0][1]))
            case "bit_and" if max(low for low, _ in operand_ranges) >= 0:
                bounds = (0, min(high for low, high in operand_ranges if low >= 0))
            case "bit_or" | "bit_xor" if (
                min(low for low, _ in operand_ranges) >= 0 and np.isfinite(operand_ranges).all()
            ):
                bounds = (0, 2 ** max(int(high) for _, high in operand_ranges).bit_length() - 1)
            case "shift_right" if operand_ranges[0][0] >= 0:
                bounds = (0, operand_ranges[0][1])
            case "shift_right" if 0 <= operand_ranges[1][0] == operand_ranges[1][1] < 32:
                shift = int(operand_ranges[1][0])
                bounds = (-(2 ** (31 - shift)), 2 ** (31 - shift) - 1)
            case name if name in COMPARISONS or name == "not" or name.removesuffix("z") in COMPARISONS:
                bounds = (0, 1)
            case _:
                pass
        # Beyond these bounds, integers may wrap around, and float32 does not hold all of them.
        return bounds if bounds[0] >= -(2**24) and bounds[1] <= 2**24 else (-math.inf, math.inf)

    # Integers of fewer bits

    def wrapped(self, value: int, dtype: str) -> int:
        """An int32 reduced to the range of a narrower integer dtype, as int32."""
        low, high = SMALL_INTEGERS[dtype]
        if low <= self.range(value)[0] and self.range(value)[1] <= high:
            return value
        if low == 0:
            return self.make("bit_and", value, self.integer(high))
        shift = self.integer(32 - (high - low).bit_length())
        return self.make("shift_right", self.make("shift_left", value, shift), shift)

    def unwrapped(self, value: int, dtype: str) -> int:
        """The int32 that :func:`wrapped` reduced to this value, if it did; the low bits of both are equal."""
        low, high = SMALL_INTEGERS[dtype]
        node = self[value]
        if low == 0 and node.op == "bit_and":
            first, second = node.operands
            if self.integer(high) in node.operands:
                return first if second == self.integer(high) else second
        if node.op == "shift_right" and self[node.operands[0]].op == "shift_left":
            inner, shift = self[node.operands[0]].operands
            if shift == node.operands[1] == self.integer(32 - (high - low).bit_length()):
                return inner
        return value

    # Operations

    def make(self, op: str, *operands: int) -> int:
        """The number of a value: an existing one, a simpler one that is equal, or a new one."""
        if op in _FOLDED and all(self.is_number(operand) for operand in operands):
            with np.errstate(all="ignore"):
                return self.number(_FOLDED[op](*(np.float32(self[operand].constant) for operand in operands)))
        if op == "where" and any(map(self.is_int32, operands[1:])):
            operands = (operands[0], *(self.make("to_int32", operand) for operand in operands[1:]))
        if op in INT32_FORMS and any(map(self.is_int32, operands)):
            composed = self.make(f"{op}{_ON_INT32}", *(self.make("to_int32", operand) for operand in operands))
            # Truth values are float32.
            return self.make("to_float32", composed) if op in COMPARISONS else composed
        if op in COMPOSITIONS:
            composed = COMPOSITIONS[op](self, *operands)
            if composed is not None:
                return composed
        if op in COMMUTING:
            first, second = operands
            if self.is_scalar(first) or (not self.is_scalar(second) and second < first):
                operands = (second, first)
        if op in _SYMMETRIC_INT32 and operands[1] < operands[0]:
            operands = operands[::-1]
        if op in COMPARISONS and self.is_scalar(operands[0]) and not self.is_scalar(operands[1]):
            op, operands = MIRRORED[op], operands[::-1]
        return self._add(Value(op, operands))

    def exp_fast(self, value: int, *, base: float) -> int:
        """``base ** value`` in the fast form of the SFPU, which multiplies by a positive factor first: that of the
        base, and those of `value`, also of both sides of a difference."""
        unscaled, factor = self._factored(value)
        if self[value].op == "sub":
            (first, factor), (second, other) = map(self._factored, self[value].operands)
            unscaled = self.make("sub", first, second) if factor == other != 1 else value
        if unscaled == value or not 2.0**-60 < factor < 2.0**60:
            unscaled, factor = value, 1.0
        return self.make("exp_fast", unscaled, self.number(math.log(base) * factor))

    def _factored(self, value: int) -> tuple[int, float]:
        """What is multiplied by a constant, and this constant."""
        node = self[value]
        if node.op == "mul" and self.is_number(node.operands[1]):
            return node.operands[0], self[node.operands[1]].constant
        return value, 1.0


def _bits(number: float) -> bytes:
    return np.float32(number).tobytes()


def _add(graph: ValueGraph, a: int, b: int) -> int | None:
    """Adding -0.0 changes nothing; adding 0.0 changes only -0.0."""
    for operand, counterpart in ((a, b), (b, a)):
        if graph.is_number(operand, -0.0) or (
            graph.is_number(operand, 0.0) and not graph.may_be_minus_zero(counterpart)
        ):
            return counterpart
    return None


def _subtract(graph: ValueGraph, a: int, b: int) -> int | None:
    if graph.is_number(b, 0.0) or (graph.is_number(b, -0.0) and not graph.may_be_minus_zero(a)):
        return a
    # 0.0 - 0.0 is 0.0, not the negative of 0.0.
    return graph.make("negative", b) if graph.is_number(a, -0.0) else None


def _multiply(graph: ValueGraph, a: int, b: int) -> int | None:
    for operand, counterpart in ((a, b), (b, a)):
        if graph.is_number(operand, 1.0):
            return counterpart
        if graph.is_number(operand, -1.0):
            return graph.make("negative", counterpart)
        if graph[operand].op == "sigmoid" and graph[operand].operands[0] == counterpart:
            return graph.make("silu", counterpart)
    return _gelu(graph, a, b) or _gelu(graph, b, a)


def _gelu(graph: ValueGraph, half: int, rest: int) -> int | None:
    """``x * 0.5`` times ``1 + erf(x * sqrt(0.5))``."""
    if graph[half].op != "mul" or not graph.is_number(graph[half].operands[1], 0.5):
        return None
    if graph[rest].op != "add" or not graph.is_number(graph[rest].operands[1], 1.0):
        return None
    x, error = graph[half].operands[0], graph[graph[rest].operands[0]]
    if error.op != "erf" or graph[error.operands[0]].op != "mul":
        return None
    inner, factor = graph[error.operands[0]].operands
    if inner != x or not graph.is_number(factor) or abs(graph[factor].constant - math.sqrt(0.5)) > 1e-7:
        return None
    return graph.make("gelu", x)


def _divide(graph: ValueGraph, a: int, b: int) -> int | None:
    """A product with the reciprocal, if the result differs by rounding only."""
    if graph.is_number(b) and not graph.is_zero(b):
        with np.errstate(over="ignore"):
            inverse = np.float32(1) / np.float32(graph[b].constant)
        if np.finfo(np.float32).tiny <= np.abs(inverse) < np.inf:
            return graph.make("mul", a, graph.number(inverse))
    # The reciprocal of a huge number is 0, as the quotient of 1 or less is; that of NaN is 0, times 0 as well.
    if graph.is_number(a) and 0 < abs(graph[a].constant) <= 1:
        return graph.make("mul", graph.make("recip", b), a)
    return None


def _reciprocal(graph: ValueGraph, a: int) -> int | None:
    return graph.make("rsqrt", graph[a].operands[0]) if graph[a].op == "sqrt" else None


def _maximum(graph: ValueGraph, a: int, b: int) -> int | None:
    if a == b:
        return a
    if graph.is_number(a):
        a, b = b, a
    if graph.is_number(b, 0.0):
        return graph.make("relu", a)
    return _clamped(graph, a, b, "min")


def _minimum(graph: ValueGraph, a: int, b: int) -> int | None:
    if a == b:
        return a
    if graph.is_number(a):
        a, b = b, a
    return _clamped(graph, a, b, "max")


def _clamped(graph: ValueGraph, inner: int, bound: int, opposite: str) -> int | None:
    """``min(max(x, low), high)`` or the reverse nesting, for constants low <= high."""
    if not graph.is_number(bound):
        return None
    if opposite == "max" and graph[inner].op == "relu":
        x, second = graph[inner].operands[0], graph.number(0.0)
    elif graph[inner].op == opposite and graph.is_number(graph[inner].operands[1]):
        x, second = graph[inner].operands
    else:
        return None
    low, high = (second, bound) if opposite == "max" else (bound, second)
    return graph.make("clamp", x, low, high) if graph[low].constant <= graph[high].constant else None


def _power(graph: ValueGraph, a: int, b: int) -> int | None:
    if not graph.is_number(b):
        return None
    match graph[b].constant:
        case 0.0:
            return graph.number(1.0)
        case 1.0:
            return a
        case 2.0:
            return graph.make("mul", a, a)
        case 3.0:
            return graph.make("mul", graph.make("mul", a, a), a)
        # Powers of -0.0 are those of 0.0, its roots are not.
        case 0.5:
            return graph.make("sqrt", graph.make("add", a, graph.number(0.0)))
        case -0.5:
            return graph.make("rsqrt", graph.make("add", a, graph.number(0.0)))
        case -1.0:
            return graph.make("recip", a)
        case _:
            return None


def _where(graph: ValueGraph, test: int, a: int, b: int) -> int | None:
    if graph.is_number(test):
        return a if graph[test].constant else b
    if a == b:
        return a
    return test if graph.is_boolean(test) and graph.is_number(a, 1.0) and graph.is_number(b, 0.0) else None


def _truth(graph: ValueGraph, a: int) -> int:
    """1.0 where a value is nonzero, otherwise 0.0."""
    return a if graph.is_boolean(a) else graph.make("ne", a, graph.number(0.0))


def _and(graph: ValueGraph, a: int, b: int) -> int:
    a, b = _truth(graph, a), _truth(graph, b)
    for operand, counterpart in ((a, b), (b, a)):
        if graph.is_number(operand):
            return counterpart if graph[operand].constant else operand
    return graph.make("min", a, b)


def _or(graph: ValueGraph, a: int, b: int) -> int:
    a, b = _truth(graph, a), _truth(graph, b)
    for operand, counterpart in ((a, b), (b, a)):
        if graph.is_number(operand):
            return operand if graph[operand].constant else counterpart
    return graph.make("max", a, b)


def _not(graph: ValueGraph, a: int) -> int:
    return graph.make("eq", a, graph.number(0.0))


def _compared(name: str) -> Callable[[ValueGraph, int, int], int | None]:
    def composed(graph: ValueGraph, a: int, b: int) -> int | None:
        if graph.is_zero(b) and not graph.is_scalar(a):
            return graph.make(f"{name}z", a)
        if graph.is_zero(a) and not graph.is_scalar(b):
            return graph.make(f"{MIRRORED[name]}z", b)
        return None

    return composed


def _to_small_float(dtype: str) -> Callable[[ValueGraph, int], int | None]:
    """To the nearest number of a dtype of 8 bits, ties to even, and not beyond its largest.

    A sum with ``1.5 * 2^(e + 23 - f)``, of which float32 keeps multiples of ``2^(e - f)``, rounds a number from ``2^e``
    to ``2^(e + 1)`` to `f` bits of fraction; below the smallest normal number e stays the same.
    """
    float_format = FLOATS[dtype]

    def composed(graph: ValueGraph, a: int) -> int | None:
        if graph.is_number(a):
            return graph.number(float(rounded_to(graph[a].constant, dtype)))
        if graph.is_held(a, dtype):
            return a
        make, number = graph.make, graph.number
        inside = make("clamp", a, number(-float_format.largest), number(float_format.largest))
        power = make("max", make("power_of_two", inside), number(2.0**float_format.least_exponent))
        coarse = make("mul", power, number(1.5 * 2.0 ** (_FRACTION_BITS - float_format.fraction_bits)))
        rounded = make("sub", make("add", inside, coarse), coarse)
        graph.small_floats[rounded] = dtype
        return rounded

    return composed


def _to_bfloat16(graph: ValueGraph, a: int) -> int | None:
    if graph.is_number(a):
        return graph.number(float(ml_dtypes.bfloat16(graph[a].constant)))
    return a if graph.is_bfloat16(a) else None


def _round_half_away(graph: ValueGraph, a: int) -> int:
    """t + trunc(2 (x - t)) with t = trunc(x). This is exact, unlike trunc(x + 0.5)."""
    truncated = graph.make("trunc", a)
    rest = graph.make("sub", a, truncated)
    return graph.make("add", truncated, graph.make("trunc", graph.make("mul", rest, graph.number(2.0))))


def _scaled(outer: str, factor: float) -> Callable[[ValueGraph, int], int]:
    return lambda graph, a: graph.make("mul", graph.make(outer, a), graph.number(factor))


def _of_scaled(outer: str, factor: float) -> Callable[[ValueGraph, int], int]:
    return lambda graph, a: graph.make(outer, graph.make("mul", a, graph.number(factor)))


def _hyperbolic_cosine(graph: ValueGraph, a: int) -> int:
    """exp(a) / 2 + exp(-a) / 2, computed from exp(a / 2) and exp(-a / 2), which overflow only if the result does."""
    halves: list[int] = []
    for factor in (0.5, -0.5):
        root = graph.make("exp", graph.make("mul", a, graph.number(factor)))
        halves.append(graph.make("mul", graph.make("mul", root, graph.number(0.5)), root))
    return graph.make("add", *halves)


def _hyperbolic_sine(graph: ValueGraph, a: int) -> int:
    """tanh(a) * cosh(a), because the difference of two exponentials cancels near 0."""
    return graph.make("mul", graph.make("tanh", a), graph.make("cosh", a))


def _log_of_one_and(graph: ValueGraph, a: int) -> int:
    """log(u) with u = 1 + a, plus, near 0, the rounding error of u, which is a - (u - 1)."""
    unit = graph.number(1.0)
    u = graph.make("add", a, unit)
    lost = graph.make("sub", a, graph.make("sub", u, unit))
    logarithm = graph.make("log", u)
    near = graph.make("lt", graph.make("abs", a), graph.number(0.5))
    return graph.make("where", near, graph.make("add", logarithm, lost), logarithm)


def _tangent(graph: ValueGraph, a: int) -> int:
    return graph.make("div", graph.make("sin", a), graph.make("cos", a))


def _hypotenuse(graph: ValueGraph, a: int, b: int) -> int:
    return graph.make("sqrt", graph.make("add", graph.make("mul", a, a), graph.make("mul", b, b)))


def _to_int32(graph: ValueGraph, a: int) -> int | None:
    if graph.is_int32(a):
        return a
    node = graph[a]
    match node.op:
        case "number":
            return graph.integer(int(as_int32(np.array(node.constant))))
        case "scalar":
            return graph.whole(node.place)
        case "to_float32" if graph.is_boolean(a):
            return node.operands[0]
        case "trunc":
            return graph.make("to_int32", node.operands[0])
        case _:
            return None


def _bits_of(graph: ValueGraph, a: int) -> int | None:
    if graph.is_int32(a):
        return a
    return graph.integer(int(np.float32(graph[a].constant).view(np.int32))) if graph.is_number(a) else None


def _of_bits(graph: ValueGraph, a: int) -> int | None:
    if not graph.is_int32(a):
        return a
    return graph.number(np.int32(graph[a].constant).view(np.float32)) if graph[a].op == "integer" else None


def _multiply_int32(graph: ValueGraph, a: int, b: int) -> int | None:
    """A cheaper form of the product with a constant."""
    if graph[a].op == "integer":
        a, b = b, a
    if graph[b].op != "integer":
        return None
    factor = int(graph[b].constant)
    if graph[a].op == "integer":
        return _folded_int32(np.multiply)(graph, a, b)
    if factor == -1:
        return graph.make("sub_int32", graph.integer(0), a)
    if factor > 0 and factor & (factor - 1) == 0:
        shift = factor.bit_length() - 1
        return graph.make("shift_left", a, graph.integer(shift)) if shift else a
    return None


def _to_float32(graph: ValueGraph, a: int) -> int | None:
    if not graph.is_int32(a):
        return a
    return graph.number(graph[a].constant) if graph[a].op == "integer" else None


def _folded_int32(meaning: Callable[..., float | np.generic | Array]) -> Callable[..., int | None]:
    """The composition that folds an operation on int32 constants."""

    def composed(graph: ValueGraph, *operands: int) -> int | None:
        if any(graph[operand].op != "integer" for operand in operands):
            return None
        with np.errstate(all="ignore"):
            return graph.integer(int(np.int32(meaning(*(np.int32(graph[operand].constant) for operand in operands)))))

    return composed


# All operations that are expanded or simplified; None keeps the operation.
COMPOSITIONS: dict[str, Callable[..., int | None]] = {
    "add": _add, "sub": _subtract, "mul": _multiply, "div": _divide, "recip": _reciprocal, "max": _maximum,
    "min": _minimum, "pow": _power, "where": _where, "and": _and, "or": _or, "not": _not, "truth": _truth,
    "to_bfloat16": _to_bfloat16, **{f"to_{dtype}": _to_small_float(dtype) for dtype in SMALL_FLOATS},
    "round_half_away": _round_half_away,
    "log1p": _log_of_one_and,
    "log10": _scaled("log2", math.log10(2)), "exp10": _of_scaled("exp2", math.log2(10)),
    "sinh": _hyperbolic_sine, "cosh": _hyperbolic_cosine, "tan": _tangent, "hypot": _hypotenuse,
    **{name: _compared(name) for name in MIRRORED}, "to_int32": _to_int32, "to_float32": _to_float32,
    "bits_of": _bits_of, "of_bits": _of_bits,
    **{f"{name}{_ON_INT32}": _folded_int32(_FOLDED[name]) for name in INT32_FORMS},
    "mul_int32": _multiply_int32,
    "bit_and": _folded_int32(np.bitwise_and), "bit_or": _folded_int32(np.bitwise_or),
    "bit_xor": _folded_int32(np.bitwise_xor), "bit_not": _folded_int32(np.invert),
    "shift_left": _folded_int32(shifted_left), "shift_right": _folded_int32(shifted_right_by_sfpu),
}  # fmt: skip
