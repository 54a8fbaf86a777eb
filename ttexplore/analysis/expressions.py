"""Translate the expressions of a T.Parallel nest into values.

Values of floating-point dtypes are float32 numbers, as in the reference; int32 values are integers. Expressions of loop
variables and block indices alone are index values: the part in the loop variables comes from tiles of row and column
numbers, the kernel computes the rest. Float32 holds integers exactly up to 2^24; `check_indices` proves that index
values stay below.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from tvm import ir, sym, tirx

from ttexplore.analysis.tile_values import INT32_FORMS, ValueGraph
from ttexplore.errors import TTExploreError, Unsupported
from ttexplore.ir.adapter import span_of, without_casts
from ttexplore.ir.arithmetic.bounds import Bounds
from ttexplore.ir.arithmetic.index import is_binary
from ttexplore.ir.arithmetic.shallow import is_large, refuse_deep
from ttexplore.ir.build import constant, dtype_of, variable
from ttexplore.ir.dag import nodes_of, parts_of, replaced
from ttexplore.ir.dataflow import load_role, parallel_body
from ttexplore.ops import OPS
from ttexplore.ops.integers import SMALL_INTEGERS
from ttexplore.plan import SMALL_FLOATS, TILE_COLUMNS, TILE_ROWS

# The integers up to here, and no more, are all numbers of float32.
LARGEST_INDEX = 2**24
LARGEST_DIVIDEND = 2**21
# The integers that bfloat16, and so 16-bit DST, holds exactly.
LARGEST_IN_16_BITS = 2**8

_ARITHMETIC: dict[type, str] = {
    tirx.Add: "add", tirx.Sub: "sub", tirx.Mul: "mul", tirx.Div: "div", tirx.Max: "max", tirx.Min: "min",
}  # fmt: skip
_COMPARISONS: dict[type, str] = {
    tirx.GT: "gt", tirx.GE: "ge", tirx.LT: "lt", tirx.LE: "le", tirx.EQ: "eq", tirx.NE: "ne",
}  # fmt: skip
_BITWISE: dict[type, str] = {
    tirx.BitwiseAnd: "bit_and", tirx.BitwiseOr: "bit_or", tirx.BitwiseXor: "bit_xor", tirx.LShift: "shift_left",
    tirx.RShift: "shift_right",
}  # fmt: skip
# Operations on integers whose low result bits depend only on the low bits of the operands.
_OF_LOWEST_BITS = frozenset(["add", "sub", "mul", "bit_and", "bit_or", "bit_xor", "shift_left"])
# Operations on conditions; bitwise operations on conditions are the same.
_LOGIC: dict[type, str] = {
    tirx.And: "and", tirx.Or: "or", tirx.Not: "not", tirx.BitwiseAnd: "and", tirx.BitwiseOr: "or",
    tirx.BitwiseXor: "ne", tirx.BitwiseNot: "not",
}  # fmt: skip

# Functions of the kernel language by TIR name, without "tirx." or "prim.": those that are one operation, and those that
# become several. T.round rounds ties away from zero, as on a GPU; T.nearbyint rounds ties to even.
_FUNCTIONS: dict[str, str] = {
    **{op.function: op.name.removesuffix("_tile") for op in OPS.values() if op.function},
    "exp10": "exp10", "log10": "log10", "log1p": "log1p", "tan": "tan", "sinh": "sinh", "cosh": "cosh",
    "hypot": "hypot", "pow": "pow", "fabs": "abs", "round": "round_half_away",
}  # fmt: skip

_NAMED = ", ".join(f"T.{name}" for name in sorted({*_FUNCTIONS} - {"fabs"}))
_HINT_FUNCTIONS = f"use + - * /, comparisons, T.if_then_else, T.min, T.max, T.clamp, casts and {_NAMED}"


def is_float(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat"))


def is_index(expression: ir.Expr) -> bool:
    """Whether an expression is an integer of variables alone, with casts that keep its value."""
    if not str(expression.ty.dtype).startswith(("int", "uint")):
        return False
    return not any(
        isinstance(node, ir.TensorLoad)
        or is_float(str(node.ty.dtype))
        or (isinstance(node, tirx.Cast) and str(node.ty.dtype) not in ("int32", "int64"))
        for node in nodes_of(expression)
    )


@dataclass(frozen=True)
class Affine:
    """``row * i + column * j + rest``, where i and j are the loop variables of the block's rows and columns."""

    row: int
    column: int
    rest: ir.Expr

    @property
    def spread(self) -> int:
        """The largest absolute value of the part in the loop variables within a tile."""
        return abs(self.row) * (TILE_ROWS - 1) + abs(self.column) * (TILE_COLUMNS - 1)


@dataclass
class ExpressionReader:
    """Translates the expressions of one nest into values.

    `row` and `column` are the loop variables of the nest; a one-dimensional block has only a column. `tile_row` and
    `tile_column` are variables for the position of the current tile.
    """

    graph: ValueGraph
    row: ir.Var | None
    column: ir.Var
    tile_row: ir.Var
    tile_column: ir.Var
    analyzer: sym.Analyzer
    stored: dict[tirx.Buffer, int] = field(default_factory=dict[tirx.Buffer, int])
    versions: dict[tirx.Buffer, int] = field(default_factory=dict[tirx.Buffer, int])
    # Names in the nest: names of index values stand for expressions, others for values.
    indices: dict[ir.Expr, ir.Expr] = field(default_factory=dict[ir.Expr, ir.Expr])
    names: dict[ir.Expr, int] = field(default_factory=dict[ir.Expr, int])
    # The values of parts of expressions since the last store.
    known: dict[ir.Expr, int] = field(default_factory=dict[ir.Expr, int])
    # The functions that may be less accurate.
    fast: frozenset[str] = frozenset()
    # Whether a quotient is a product with a reciprocal.
    multiplies_reciprocals: bool = False

    def bind(self, statement: tirx.Bind) -> None:
        """Define a name."""
        if self.is_index(statement.value):
            self.indices[statement.var] = self.written_out(statement.value)
        else:
            self.names[statement.var] = self.value(statement.value)

    def store(self, buffer: tirx.Buffer, value: int) -> None:
        """Make later loads of a buffer's elements see a value."""
        self.stored[buffer] = value
        self.versions[buffer] = self.versions.get(buffer, 0) + 1
        self.known.clear()

    def is_index(self, e: ir.Expr) -> bool:
        """Whether an expression is an integer of variables alone, none of which names a value of elements."""
        return is_index(e) and not any(node in self.names for node in nodes_of(e))

    def written_out(self, e: ir.Expr) -> ir.Expr:
        if not self.indices:
            return e
        expanded = replaced(e, lambda node: self.indices.get(node, node))
        if not is_large(expanded):
            return expanded
        if not any(isinstance(node, tirx.FloorDiv | tirx.FloorMod) for node in nodes_of(expanded)):
            # A chain of increments simplifies to few terms.
            expanded = self.analyzer.simplify(expanded)
        refuse_deep([expanded])
        return expanded

    # Values

    def value(self, e: ir.Expr) -> int:
        """The value of an expression. Raises Unsupported for an operation that no rule lowers to tiles."""
        if e not in self.known:
            self.known[e] = self._value(e)
        return self.known[e]

    def _value(self, e: ir.Expr) -> int:
        make = self.graph.make
        if isinstance(e, tirx.IntImm) and abs(int(e.value)) > LARGEST_INDEX:
            # Unsigned integers have the same bits.
            return self.graph.integer((int(e.value) + 2**31) % 2**32 - 2**31)
        if isinstance(e, tirx.FloatImm | tirx.IntImm):
            return self.graph.number(float(e.value))
        if e in self.names:
            return self.names[e]
        if self.is_index(e):
            return self.whole(self.written_out(e))
        if isinstance(e, ir.Var) and str(e.ty.dtype) == "bool":
            return self.whole(tirx.Cast(ir.PrimType("int32"), e))
        kind = type(e)
        if isinstance(e, ir.TensorLoad):
            return self.load(e)
        if isinstance(e, tirx.Cast):
            return self.cast(e)
        if is_binary(e) and kind in _ARITHMETIC:
            return self.arithmetic(_ARITHMETIC[kind], e)
        if kind in _LOGIC and str(e.ty.dtype) == "bool":
            return make(_LOGIC[kind], *map(self.value, parts_of(e)))
        if is_binary(e) and kind in _BITWISE:
            return self.of_integers(_BITWISE[kind], e)
        if isinstance(e, tirx.BitwiseNot):
            return self.flipped(e)
        if isinstance(e, tirx.FloorDiv | tirx.FloorMod):
            return self.divided(e)
        if is_binary(e) and kind in _COMPARISONS:
            return self.compare(_COMPARISONS[kind], e.a, e.b)
        if isinstance(e, tirx.Select):
            return self.choice(e.condition, e.true_value, e.false_value)
        if isinstance(e, ir.Call):
            name = str(e.op.name).rpartition(".")[2]
            if name == "if_then_else":
                return self.choice(*e.args)
            if name == "reinterpret":
                return self.reinterpreted(e)
            if name in _FUNCTIONS:
                if name not in ("abs", "fabs"):
                    _check_own(str(e.ty.dtype))
                values = [self.value(argument) for argument in e.args]
                if _FUNCTIONS[name] not in INT32_FORMS and any(map(self.graph.is_int32, values)):
                    raise Unsupported(
                        "L002", f"{name} of integers", hint='cast them to float32 first: T.cast(x, "float32")'
                    )
                if name in self.fast and self.graph.reads_elements(*values):
                    return self.graph.exp_fast(*values, base=math.e if name == "exp" else 2.0)
                return make(_FUNCTIONS[name], *values)
            raise Unsupported("L002", f"no rule lowers {name} inside T.Parallel", hint=_HINT_FUNCTIONS)
        if kind is tirx.Mod:
            raise _truncated("T.truncmod")
        raise Unsupported("L002", f"no rule lowers {kind.__name__} inside T.Parallel", hint=_HINT_FUNCTIONS)

    def reinterpreted(self, e: ir.Call) -> int:
        """The bits of an element as those of another dtype: of float32 or integers of as many bits, and those of uint16
        as a float."""
        (argument,) = e.args
        source, target = str(argument.ty.dtype), str(e.ty.dtype)
        dtypes = {source, target}
        if target in SMALL_INTEGERS and source.removeprefix("u") == target.removeprefix("u"):
            return self.graph.wrapped(self.graph.make("to_int32", self.value(argument)), target)
        if self.graph.is_wide and source == "uint16" and target in ("float16", "bfloat16"):
            return self.value((_of_float16_bits if target == "float16" else _of_bfloat16_bits)(argument))
        if not dtypes <= {"float32", "int32", "uint32"}:
            raise Unsupported(
                "L002",
                f"T.reinterpret of {argument.ty.dtype} as {e.ty.dtype} on elements",
                hint="read the bits of float32 as uint32 or int32, or the reverse; those of uint16 as float16 or "
                "bfloat16",
            )
        if not self.graph.is_wide:
            raise Unsupported("L002", "the bits of float32 in 16-bit DST", hint="omit accumulate_dtype")
        value = self.value(argument)
        if "float32" not in dtypes:
            return value
        if str(e.ty.dtype) != "float32":
            return self.graph.make("bits_of", self.graph.make("to_float32", value))
        return self.graph.make("of_bits", self.graph.make("to_int32", value))

    def choice(self, test: ir.Expr, then: ir.Expr, otherwise: ir.Expr) -> int:
        values = [self.value(operand) for operand in (test, then, otherwise)]
        return self.graph.make("where", self.graph.make("truth", values[0]), *values[1:])

    def load(self, e: ir.TensorLoad) -> int:
        buffer = e.source
        variables = [loop_var for loop_var in (self.row, self.column) if loop_var is not None]
        role = load_role(e, variables)
        if role == "element" and buffer in self.stored:
            return self.stored[buffer]
        return self.graph.load(buffer, role, self.versions.get(buffer, 0), dtype_of(buffer))

    def cast(self, e: tirx.Cast) -> int:
        inner, target, source = self.value(e.value), str(e.ty.dtype), str(e.value.ty.dtype)
        if target in ("bfloat16", "float16"):
            # float16 is stored as bfloat16.
            return self.graph.make("to_bfloat16", self.graph.make("to_float32", inner))
        if source == "uint32" and target != "int32":
            self._check_signed(inner, f"a cast of uint32 to {target}")
        if target == "uint32" and source == "int32":
            self._check_signed(inner, "a cast of int32 to uint32", 'read its bits: T.reinterpret(x, "uint32")')
            return inner
        if target == "float32":
            return self.graph.make("to_float32", inner)
        if target in SMALL_FLOATS:
            if not self.graph.is_wide:
                raise Unsupported("L002", f"a cast to {target} in 16-bit DST", hint="omit accumulate_dtype")
            return self.graph.make(f"to_{target}", self.graph.make("to_float32", inner))
        if target == "bool":
            return self.graph.make("truth", inner)
        if target in ("int32", "int64"):
            # Out-of-range numbers saturate, as the typecast does; 16-bit DST has no integers.
            return self.graph.make("to_int32" if self.graph.is_wide else "trunc", inner) if is_float(source) else inner
        if target in SMALL_INTEGERS:
            return inner if source == "bool" else self.graph.wrapped(self.graph.make("to_int32", inner), target)
        if target in ("uint32", "uint64") and source == "bool":
            return inner
        raise Unsupported(
            "L002",
            f"a cast from {source} to {target} inside T.Parallel",
            hint="cast to float32, bfloat16, float8_e4m3fn, float8_e5m2, int32, int8, uint8 or bool",
        )

    def arithmetic(self, name: str, e: tirx.BinaryOpExpr) -> int:
        dtype = str(e.ty.dtype)
        if name not in ("max", "min"):
            _check_own(dtype)
        elif dtype == "uint32":
            for operand in (e.a, e.b):
                self._check_signed(self.value(operand), f"T.{name} of uint32")
        if is_float(dtype) or name in ("max", "min"):
            values = self.value(e.a), self.value(e.b)
            if name in self.fast and any(map(self.graph.reads_elements, values)):
                self.multiplies_reciprocals = True
                return self.graph.make("mul", values[0], self.graph.make("recip", values[1]))
            return self.graph.make(name, *values)
        return self.of_integers(name, e)

    def of_integers(self, name: str, e: tirx.BinaryOpExpr) -> int:
        """An operation on two integers: computed in int32, and wrapped around to its own dtype."""
        _check_own(str(e.ty.dtype))
        if name == "div":
            raise _truncated("T.truncdiv")
        # If only low bits matter, operands may keep extra high bits: the result is wrapped around.
        lowest = name in _OF_LOWEST_BITS
        first = self._bits(e.a, lowest=lowest)
        second = self._bits(e.b, lowest=lowest and name != "shift_left")
        if name == "shift_right" and str(e.ty.dtype) == "uint32":
            return self._shifted_unsigned(first, second)
        if name == "shift_right" and self.graph.range(first)[0] < 0:
            second = self._places(second)
        return self._wrapped(self.graph.make(name, first, second), e)

    def _places(self, shift: int) -> int:
        """The places of a shift to the right that leave the sign where they are more than 31, or below 0: the chip
        leaves 0."""
        make, integer = self.graph.make, self.graph.integer
        low, high = self.graph.range(shift)
        if low >= 0:
            return shift if high < 32 else make("min", shift, integer(31))
        is_outside = make("ne", make("bit_and", shift, integer(-32)), integer(0))
        return make("where", is_outside, integer(31), shift)

    def _shifted_unsigned(self, value: int, shift: int) -> int:
        """``value >> places`` of uint32: the chip shifts int32, which fills with the sign."""
        amount = self.graph[shift]
        if amount.op != "integer" or not 0 <= amount.constant < 32:
            raise Unsupported("L002", "a shift of uint32 by elements", hint="shift by a constant from 0 to 31")
        if not amount.constant:
            return value
        shifted = self.graph.make("shift_right", value, shift)
        return self.graph.make("bit_and", shifted, self.graph.integer(2 ** (32 - int(amount.constant)) - 1))

    def _check_signed(self, value: int, operation: str, hint: str = 'cast to int32: T.cast(x, "int32")') -> None:
        """Refuse an operation that takes numbers from 2^31 on for negative ones, unless there are none."""
        if self.graph.range(value)[0] < 0:
            raise Unsupported("L002", f"{operation} on elements", hint=hint)

    def flipped(self, e: tirx.BitwiseNot) -> int:
        """``~a`` of an integer."""
        return self._wrapped(self.graph.make("bit_not", self._bits(e.a, lowest=True)), e)

    def _bits(self, e: ir.Expr, *, lowest: bool) -> int:
        """An integer as int32; if only the `lowest` bits of its dtype matter, its high bits may differ."""
        value = self.graph.make("to_int32", self.value(e))
        dtype = str(e.ty.dtype)
        return self.graph.unwrapped(value, dtype) if lowest and dtype in SMALL_INTEGERS else value

    def _wrapped(self, value: int, e: ir.Expr) -> int:
        dtype = str(e.ty.dtype)
        if dtype not in ("int32", "uint32") and dtype not in SMALL_INTEGERS:
            raise _not_int32(dtype)
        return value if dtype not in SMALL_INTEGERS else self.graph.wrapped(value, dtype)

    def divided(self, e: tirx.FloorDiv | tirx.FloorMod) -> int:
        """``a // b`` and ``a % b``, which round down, for integers a and constants b. b is a power of two, or any
        positive integer if a is known to be small."""
        divisor, make, dtype = constant(e.b), self.graph.make, str(e.ty.dtype)
        dividend = self.value(e.a)
        if not self.graph.is_wide:
            raise Unsupported("L002", "integers in 16-bit DST", hint="omit accumulate_dtype")
        is_small = dtype in SMALL_INTEGERS or max(map(abs, self.graph.range(dividend))) < LARGEST_DIVIDEND
        if divisor is None or divisor < 1 or (divisor & (divisor - 1) and not is_small):
            raise Unsupported(
                "L002",
                f"a division of elements by {e.b}",
                hint="divide int32 by a power of two, or compute T.floor of a float32 quotient",
            )
        if dtype != "int32" and dtype not in SMALL_INTEGERS:
            raise _not_int32(dtype)
        if divisor & (divisor - 1) == 0:
            dividend = make("to_int32", dividend)
            if isinstance(e, tirx.FloorMod):
                return make("bit_and", dividend, self.graph.integer(divisor - 1))
            return make("shift_right", dividend, self.graph.integer(divisor.bit_length() - 1))
        dividend = make("to_float32", dividend)
        quotient = self._quotient(dividend, divisor)
        if isinstance(e, tirx.FloorDiv):
            return make("to_int32", quotient)
        return make("to_int32", make("sub", dividend, make("mul", quotient, self.graph.number(divisor))))

    def compare(self, name: str, a: ir.Expr, b: ir.Expr) -> int:
        if self.is_index(a) and self.is_index(b):
            difference = self.affine(self.written_out(a) - self.written_out(b))
            if not self.graph.is_wide and (difference is None or difference.spread > LARGEST_IN_16_BITS):
                raise _in_16_bits("a comparison")
            if difference is not None:
                # The side without loop variables becomes the scalar that the tile is compared with.
                offset = self._offset(difference)
                return self.graph.make(name, self._linear(difference), self._scalar(0 - offset))
        if str(a.ty.dtype) == "uint32" and name not in ("eq", "ne"):
            for operand in (a, b):
                self._check_signed(self.value(operand), "a comparison of uint32")
        return self.graph.make(name, self.value(a), self.value(b))

    # Whole numbers

    def whole(self, e: ir.Expr) -> int:
        """The value of an expression of variables alone: an integer, so never -0.0."""
        affine = self.affine(e)
        if affine is not None:
            return self.graph.make("add", self._linear(affine), self._scalar(self._offset(affine)))
        make = self.graph.make
        kind = type(e)
        if is_binary(e) and kind in (tirx.Add, tirx.Sub, tirx.Mul, tirx.Max, tirx.Min):
            result = make(_ARITHMETIC[kind], self.whole(e.a), self.whole(e.b))
            if kind is not tirx.Mul or any((constant(factor) or 0) > 0 for factor in (e.a, e.b)):
                return result
            # 0 times a negative number is -0.0.
            return result if self.graph.is_int32(result) else make("add", result, self.graph.number(0.0))
        if isinstance(e, tirx.FloorDiv | tirx.FloorMod):
            divisor = constant(e.b)
            if divisor is None or divisor < 1:
                raise Unsupported(
                    "L002", f"a division of loop variables by {e.b}", hint="divide by a positive constant"
                )
            dividend = self.whole(e.a)
            if self.graph.is_int32(dividend):
                return self.divided(e)
            if not self.graph.is_wide:
                raise _in_16_bits("a division")
            quotient = self._quotient(dividend, divisor)
            if isinstance(e, tirx.FloorDiv):
                return quotient
            return make("sub", dividend, make("mul", quotient, self.graph.number(divisor)))
        if is_binary(e) and kind in _BITWISE:
            return self.of_integers(_BITWISE[kind], e)
        if isinstance(e, tirx.BitwiseNot):
            return self.flipped(e)
        if isinstance(e, tirx.Select):
            return self.choice(e.condition, e.true_value, e.false_value)
        if isinstance(e, tirx.Cast):
            return self.value(e.value)
        if isinstance(e, ir.Call) and str(e.op.name).rpartition(".")[2] == "if_then_else":
            return self.choice(*e.args)
        operation = str(e.op.name).rpartition(".")[2] if isinstance(e, ir.Call) else kind.__name__
        raise Unsupported(
            "L002",
            f"no rule lowers {operation} of loop variables inside T.Parallel",
            hint="use + - *, // and % by positive constants, T.min, T.max and T.if_then_else",
        )

    def _quotient(self, dividend: int, divisor: int) -> int:
        """floor((a + 1/2) / c), which is exact for |a| below 2^21: rounding cannot reach the next integer."""
        half = self.graph.make("add", dividend, self.graph.number(0.5))
        return self.graph.make("floor", self.graph.make("mul", half, self.graph.number(1.0 / divisor)))

    def affine(self, e: ir.Expr) -> Affine | None:
        """An expression of variables alone as an affine function of the loop variables; None if it is not affine."""
        zero = tirx.const(0, "int32")
        if self.row is not None and isinstance(e, ir.Var) and e.same_as(self.row):
            return Affine(1, 0, zero)
        if isinstance(e, ir.Var) and e.same_as(self.column):
            return Affine(0, 1, zero)
        if not self._uses_loops(e):
            return Affine(0, 0, without_casts(e)) if _has_text(e) else None
        if isinstance(e, tirx.Cast):
            return self.affine(e.value)
        if isinstance(e, tirx.Add | tirx.Sub):
            left, right = self.affine(e.a), self.affine(e.b)
            if left is None or right is None:
                return None
            sign = 1 if isinstance(e, tirx.Add) else -1
            rest = left.rest + right.rest if sign > 0 else left.rest - right.rest
            return Affine(left.row + sign * right.row, left.column + sign * right.column, rest)
        if isinstance(e, tirx.Mul):
            left, right = self.affine(e.a), self.affine(e.b)
            for multiplier, multiplicand in ((left, right), (right, left)):
                if multiplier is None or multiplicand is None or multiplier.row or multiplier.column:
                    continue
                factor = constant(self.analyzer.simplify(multiplier.rest))
                if factor is not None:
                    return Affine(multiplicand.row * factor, multiplicand.column * factor, multiplicand.rest * factor)
        return None

    def _uses_loops(self, e: ir.Expr) -> bool:
        if isinstance(e, ir.Var):
            return bool(e.same_as(self.column)) or (self.row is not None and bool(e.same_as(self.row)))
        return any(self._uses_loops(child) for child in parts_of(e))

    def _linear(self, affine: Affine) -> int:
        terms = [
            self.graph.make("mul", self.graph.axis(axis), self.graph.number(factor))
            for axis, factor in ((0, affine.row), (1, affine.column))
            if factor
        ]
        if len(terms) == 2:
            return self.graph.make("add", *terms)
        return terms[0] if terms else self.graph.number(0.0)

    def _offset(self, affine: Affine) -> ir.Expr:
        """The part that is the same for all elements of a tile."""
        offset = affine.rest
        for factor, tile, size in (
            (affine.row, self.tile_row, TILE_ROWS), (affine.column, self.tile_column, TILE_COLUMNS),
        ):  # fmt: skip
            if factor:
                offset = offset + tile * (factor * size)
        return offset

    def _scalar(self, expression: ir.Expr) -> int:
        simple = self.analyzer.simplify(expression)
        number = constant(simple)
        return self.graph.scalar(simple) if number is None else self.graph.number(number)


def _of_bfloat16_bits(bits: ir.Expr) -> ir.Expr:
    """The float32 of a bfloat16 with these bits: its upper half."""
    return tirx.reinterpret("float32", tirx.Cast(ir.PrimType("int32"), bits) << 16)


def _of_float16_bits(bits: ir.Expr) -> ir.Expr:
    """The float32 of a float16 with these bits, which holds it exactly: 8 bits of exponent instead of 5."""
    bits = tirx.Cast(ir.PrimType("int32"), bits)
    sign, exponent, fraction = (bits & 0x8000) << 16, (bits >> 10) & 31, bits & 1023
    normal = tirx.reinterpret("float32", sign | (((bits & 0x7FFF) << 13) + ((127 - 15) << 23)))
    endless = tirx.reinterpret("float32", sign | 0x7F800000 | (fraction << 13))
    # The SFPU has no denormal numbers: those of float16 are computed.
    denormal = tirx.Cast(ir.PrimType("float32"), fraction) * tirx.const(2.0**-24, "float32")
    denormal = tirx.Select(tirx.EQ(sign, tirx.const(0, "int32")), denormal, 0 - denormal)
    finite = tirx.Select(tirx.EQ(exponent, tirx.const(0, "int32")), denormal, normal)
    return tirx.Select(tirx.EQ(exponent, tirx.const(31, "int32")), endless, finite)


def _truncated(function: str) -> Unsupported:
    return Unsupported(
        "L001",
        f"no rule lowers {function} of elements",
        hint="use a // b and a % b, which round down, or T.trunc(a / b) of float32",
    )


def _not_int32(dtype: str) -> Unsupported:
    return Unsupported("L002", f"arithmetic in {dtype} on elements", hint='compute in int32: T.cast(x, "int32")')


def _check_own(dtype: str) -> None:
    """Refuse arithmetic in a dtype whose intermediate results nothing here rounds as a GPU does."""
    if dtype in SMALL_FLOATS:
        hint = 'compute in float32: T.cast(x, "float32")'
        raise Unsupported("L002", f"arithmetic in {dtype} on elements", hint=hint)
    if dtype in ("int4", "uint4"):
        raise _not_int32(dtype)


def _in_16_bits(operation: str) -> Unsupported:
    return Unsupported("L002", f"{operation} of index values in 16-bit DST", hint="omit accumulate_dtype")


def _has_text(e: ir.Expr) -> bool:
    """Whether the kernel can compute an expression in unsigned arithmetic with wrap-around."""
    if isinstance(e, ir.Var | tirx.IntImm):
        return True
    kinds = tirx.Add | tirx.Sub | tirx.Mul | tirx.FloorDiv | tirx.FloorMod | tirx.Cast
    return isinstance(e, kinds) and all(_has_text(child) for child in parts_of(e))


# Checks before the grid becomes a loop, while the ranges of the block indices are known


def check_indices(statement: tirx.Stmt, bounds: Bounds) -> None:
    """Check the index values in a T.Parallel nest: float32 must hold them, and divide them exactly. Raises Unsupported
    at the line of the store."""
    loops, body = parallel_body(statement)
    variables = [loop.loop_var for loop in loops]
    for loop in loops:
        bounds.counts(loop)
    reader = ExpressionReader(
        ValueGraph(), variables[0] if len(variables) > 1 else None, variables[-1], variable("tile_row"),
        variable("tile_column"), bounds.proofs,
    )  # fmt: skip
    checks = _Indices(bounds, reader)
    for store in body:
        if not isinstance(store, tirx.BufferStore | tirx.Bind):
            continue
        try:
            names_index = isinstance(store, tirx.Bind) and checks.is_checked(store.value)
            # The value of a name of an index is checked where the name is used.
            checks.check(store.value, inside=names_index, seen=set())
            if isinstance(store, tirx.Bind):
                if names_index:
                    bounds.enter(store)
                    reader.indices[store.var] = reader.written_out(store.value)
                else:
                    checks.elements.add(store.var)
        except TTExploreError as error:
            raise error.at(span_of(store)) from None


@dataclass
class _Indices:
    """Checks the index values of one nest. `elements` are the names of values that depend on elements."""

    bounds: Bounds
    reader: ExpressionReader
    elements: set[ir.Expr] = field(default_factory=set[ir.Expr])

    def is_checked(self, e: ir.Expr) -> bool:
        """Whether an expression is computed as an index value; with bitwise operations it is computed as an integer."""
        exact = (*_BITWISE, tirx.BitwiseNot)
        return is_index(e) and not any(node in self.elements or isinstance(node, exact) for node in nodes_of(e))

    def check(self, e: ir.Expr, *, inside: bool, seen: set[tuple[ir.Expr, bool]]) -> None:
        """Check an expression; `inside` says that it is part of an index value that is checked as a whole."""
        if (e, inside) in seen:
            return
        seen.add((e, inside))
        index = not isinstance(e, tirx.IntImm) and self.is_checked(e)
        if index and not inside:
            self._check_size(e)
        exact = False
        if is_binary(e) and type(e) in _COMPARISONS and self.is_checked(e.a) and self.is_checked(e.b):
            exact = self._is_exact(e.a - e.b)
            if not exact:
                self._check_size(e.a - e.b)
        if index and isinstance(e, tirx.FloorDiv | tirx.FloorMod):
            self._check_division(e)
        for child in parts_of(e):
            if not isinstance(e, ir.TensorLoad):
                self.check(child, inside=index or exact, seen=seen)

    def _is_exact(self, difference: ir.Expr) -> bool:
        """Whether a comparison of two index values is exact for any size: float32 holds one side exactly, the kernel
        computes the other in int32, and rounding it to float32 keeps the order."""
        affine = self.reader.affine(self.reader.written_out(difference))
        if affine is None:
            return False
        least, most = self.bounds.range(difference)
        if max(-least, most) > 2**30:
            return False
        return affine.spread <= LARGEST_INDEX

    def _check_division(self, e: tirx.FloorDiv | tirx.FloorMod) -> None:
        if self.bounds.range(e.b)[0] < 1:
            raise Unsupported(
                "L002", f"{e} divides by {e.b}, which may be 0 or negative", hint="divide by a positive number"
            )
        # The kernel itself divides what is the same for all elements, in int32.
        if self._is_affine(e):
            return
        least, most = self._range(e.a)
        if max(-least, most) >= LARGEST_DIVIDEND:
            raise Unsupported(
                "L002",
                f"{e} divides a number between {least} and {most}",
                hint=f"divide numbers between -{LARGEST_DIVIDEND} and {LARGEST_DIVIDEND}",
            )

    def _check_size(self, e: ir.Expr) -> None:
        low, high = self._range(e)
        if low < -LARGEST_INDEX or high > LARGEST_INDEX:
            raise Unsupported(
                "L002",
                f"{e} is between {low} and {high}",
                hint=f"keep index values within {LARGEST_INDEX}, which float32 holds exactly",
            )

    def _is_affine(self, e: ir.Expr) -> bool:
        return self.reader.affine(self.reader.written_out(e)) is not None

    def _range(self, e: ir.Expr) -> tuple[int, int]:
        """The minimum and maximum of an index value, and of the numbers that tiles hold on the way to it."""
        if self._is_affine(e):
            # Tiles hold nothing of what it adds and takes away again.
            return self.bounds.simple_range(e)
        if isinstance(e, tirx.Select):
            return _hull(self._range(e.true_value), self._range(e.false_value))
        if isinstance(e, ir.Call) and str(e.op.name).endswith(".if_then_else"):
            return _hull(self._range(e.args[1]), self._range(e.args[2]))
        if isinstance(e, tirx.Cast):
            return self._range(e.value)
        if not is_binary(e) or type(e) not in _ARITHMETIC:
            return self.bounds.range(e)
        (a, b), (c, d) = self._range(e.a), self._range(e.b)
        match e:
            case tirx.Add():
                return a + c, b + d
            case tirx.Sub():
                return a - d, b - c
            case tirx.Max():
                return max(a, c), max(b, d)
            case tirx.Min():
                return min(a, c), min(b, d)
            case _:
                return min(a * c, a * d, b * c, b * d), max(a * c, a * d, b * c, b * d)


def _hull(first: tuple[int, int], second: tuple[int, int]) -> tuple[int, int]:
    return min(first[0], second[0]), max(first[1], second[1])
