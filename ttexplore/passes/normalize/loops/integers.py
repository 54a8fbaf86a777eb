"""Check integer arithmetic on loop variables, block indices and sizes: every value and every intermediate result fits
into int32, no divisor is 0, and no shift exceeds the width.

Overflow of int32 has no meaning in TIR, and TVM fails in the middle of a pass if constants overflow. Narrow integers
such as int8 wrap around in elements; an index would continue in 32 bits in C++, so indices that wrap are rejected.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tvm import ir, tirx

from ttexplore.errors import Unsupported
from ttexplore.ir.adapter import elements, span_of
from ttexplore.ir.arithmetic.expression import format_expression
from ttexplore.ir.arithmetic.index import (
    DIVISIONS,
    RANGES,
    SHIFTS,
    SYMBOLS,
    Binary,
    Expression,
    Key,
    Range,
    VariableNumbers,
    convert,
    is_nonzero,
    learn_loop,
    operation_range,
    range_of,
    reached,
    taken_where,
)
from ttexplore.ir.arithmetic.sizes import size_variables
from ttexplore.ir.arithmetic.words import no_divisor, no_shift, not_held
from ttexplore.ir.build import arguments, constant, statements
from ttexplore.ir.dag import nodes_of, parts_of


def check_integers(function: tirx.PrimFunc, sizes: Mapping[str, int]) -> None:
    """Check a traced kernel whose T.dynamic sizes have these values. Raises Unsupported with the kernel's line."""
    _Check(function, sizes).body(function.body)


class _Check:
    """Walks a kernel with the known ranges of its variables."""

    def __init__(self, function: tirx.PrimFunc, sizes: Mapping[str, int]) -> None:
        self.number = VariableNumbers()
        self.known: dict[Key, Range] = {}
        for size in size_variables(function):
            value = sizes[str(size.name)]
            self.learn(size, (value, value))

    def body(self, body: tirx.Stmt) -> None:
        for statement in statements(body):
            match statement:
                case tirx.For():
                    self.loop(statement)
                case tirx.IfThenElse():
                    self.expression(statement.condition, statement)
                    self.body(statement.then_case)
                    if statement.else_case is not None:
                        self.body(statement.else_case)
                case tirx.Bind():
                    self.learn(statement.var, self.expression(statement.value, statement, wraps=True))
                case tirx.BufferStore():
                    for expr in statement.indices:
                        self.expression(expr, statement)
                    self.expression(statement.value, statement, wraps=True)
                case tirx.Evaluate(value=ir.Call()):
                    for expr in arguments(statement):
                        intervals = elements(expr.region) if isinstance(expr, ir.TensorRegion) else ()
                        for interval in intervals:
                            self.expression(interval.min, statement)
                        if not intervals:
                            self.expression(expr, statement, wraps=True)
                case _:
                    pass

    def loop(self, statement: tirx.For) -> None:
        low = self.expression(statement.min, statement)
        extent = self.expression(statement.extent, statement)
        if low is not None and extent is not None:
            last = max(low[0], low[1] + extent[1] - 1)
            _in_dtype(statement.loop_var, "int32", (low[0], last), statement)
            self.learn(statement.loop_var, (low[0], last))
            bounds = (convert(bound, self.number) for bound in (statement.min, statement.extent))
            learn_loop(self.known, self.number(statement.loop_var), *bounds)
        self.body(statement.body)

    def learn(self, variable: ir.Var, value_range: Range | None) -> None:
        if value_range is not None:
            self.known[self.number(variable)] = value_range

    def expression(self, e: ir.Expr, statement: tirx.Stmt, wraps: bool = False) -> Range | None:
        """The range of an integer expression; None if it depends on elements or is not an integer. With `wraps`, for
        values of elements, narrow integers wrap around."""
        if type(e) is tirx.IntImm and str(e.ty.dtype) == "int32":
            return e.value, e.value
        values = _ValueRanges(self, statement, wraps)
        try:
            return values.all(e)
        except Unsupported as error:
            # Conditions exclude values. Following each path to a part separately takes longer.
            return values.reached(e, self.known, _Patience(error)).range


class _Patience:
    """A limit on the paths to the parts of an expression; raises the error when it is exhausted."""

    def __init__(self, error: Unsupported) -> None:
        self.error, self.left = error, 500

    def spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise self.error


@dataclass(frozen=True, slots=True)
class _NumberRange:
    """The range of a number. `near` is computed with ranges of variables that are extended to 0: when TVM distributes
    a product over a sum, it computes with these values."""

    range: Range | None
    near: Range | None


class _ValueRanges:
    """The ranges of the parts of an expression. Raises Unsupported for a part that int32 does not hold."""

    def __init__(self, check: _Check, statement: tirx.Stmt, wraps: bool) -> None:
        self.check, self.statement, self.wraps = check, statement, wraps

    def all(self, e: ir.Expr) -> Range | None:
        """The range of an expression, ignoring its conditions; each part is visited once."""
        findings: dict[ir.Expr, _NumberRange] = {}
        for node in nodes_of(e):
            findings[node] = self.node(node, [findings[operand] for operand in _operands(node)], self.check.known)
        return findings[e].range

    def reached(self, e: ir.Expr, known_ranges: Mapping[Key, Range], patience: _Patience) -> _NumberRange:
        """The range of an expression, each part under the conditions that guard it."""
        patience.spend()
        operands = _operands(e)
        symbol, text = _symbol(e), convert(e, self.check.number)
        ways = (None, *taken_where(text)) if symbol in ("select", "and", "or") else [None] * len(operands)
        operand_findings: list[_NumberRange] = []
        for operand, holds in zip(operands, ways, strict=True):
            there = (
                known_ranges
                if holds is None
                else reached(convert(operands[0], self.check.number), known_ranges, holds=holds)
            )
            # A part that no value reaches is never computed.
            operand_findings.append(
                _NumberRange((0, 0), (0, 0)) if there is None else self.reached(operand, there, patience)
            )
        return self.node(e, operand_findings, known_ranges, text)

    def node(
        self,
        e: ir.Expr,
        operand_findings: list[_NumberRange],
        known_ranges: Mapping[Key, Range],
        text: Expression | None = None,
    ) -> _NumberRange:
        """The ranges of one part. `text` is the expression, if known ranges of sums and divisors are to be used."""
        symbol, dtype = _symbol(e), str(e.ty.dtype)
        divisor = operand_findings[1].range if symbol in DIVISIONS | SHIFTS else None
        if divisor is not None and "int" in dtype:
            nonzero = isinstance(text, Binary) and is_nonzero(text.right, known_ranges)
            if symbol in DIVISIONS and divisor[0] <= 0 <= divisor[1] and not nonzero:
                raise no_divisor(format_expression(e), format_expression(parts_of(e)[1]), span_of(self.statement))
            if symbol in SHIFTS and not (divisor[0] >= 0 and divisor[1] <= 31):
                raise no_shift(format_expression(e), int(divisor[0]), int(divisor[1]), span_of(self.statement))
        full_range = self.range(e, symbol, [finding.range for finding in operand_findings], known_ranges, text)
        near = self.range(e, symbol, [finding.near for finding in operand_findings], known_ranges, text)
        if isinstance(e, ir.Var) and near is not None:
            near = min(near[0], 0), max(near[1], 0)
        for candidate in (full_range, near if symbol in ("+", "-", "*") else None):
            _in_dtype(e, "int32", candidate, self.statement)
        if dtype in _UNSIGNED and not self.wraps:
            _in_dtype(e, dtype, full_range, self.statement)
        if dtype in _NARROW and not _is_held(full_range, dtype):
            if not self.wraps:
                _in_dtype(e, dtype, full_range, self.statement)
            full_range = near = RANGES[dtype]
        return _NumberRange(full_range, near)

    def range(
        self,
        e: ir.Expr,
        symbol: str,
        operand_ranges: list[Range | None],
        known_ranges: Mapping[Key, Range],
        text: Expression | None,
    ) -> Range | None:
        value = constant(e)
        if value is not None:
            return value, value
        if isinstance(e, ir.Var):
            return known_ranges.get(self.check.number(e))
        ranges = [operand_range for operand_range in operand_ranges if operand_range is not None]
        if isinstance(e, ir.StringImm) or len(ranges) < len(operand_ranges) or "float" in str(e.ty.dtype):
            return None
        if isinstance(e, tirx.Cast):
            dtype = str(e.ty.dtype)
            if dtype in _UNSIGNED:
                return None if self.wraps else ranges[0]
            return ranges[0] if dtype in RANGES and _is_held(ranges[0], dtype) else RANGES.get(dtype)
        if not symbol:
            return None
        return range_of(symbol, ranges) if text is None else operation_range(text, ranges, known_ranges)


def _operands(e: ir.Expr) -> list[ir.Expr]:
    return [] if constant(e) is not None else parts_of(e)


def _symbol(e: ir.Expr) -> str:
    return "select" if _is_choice(e) else _UNARY.get(type(e)) or SYMBOLS.get(type(e), "")


_UNARY: dict[type[ir.Expr], str] = {tirx.Not: "not", tirx.BitwiseNot: "~"}
_NARROW = frozenset({"uint8", "int8", "uint16", "int16"})
# Indices of these dtypes are limited to values that int32 also holds.
_UNSIGNED = frozenset({"uint32", "uint64"})


def _is_held(value_range: Range | None, dtype: str) -> bool:
    least, most = RANGES[dtype]
    return value_range is None or bool(value_range[0] >= least and value_range[1] <= most)


def _is_choice(e: ir.Expr) -> bool:
    return isinstance(e, tirx.Select) or (isinstance(e, ir.Call) and str(e.op.name).endswith(".if_then_else"))


def _in_dtype(e: ir.Expr, dtype: str, value_range: Range | None, statement: tirx.Stmt) -> None:
    if value_range is None or _is_held(value_range, dtype):
        return
    if constant(e) is not None:
        raise not_held(dtype, int(value_range[0]), span_of(statement))
    hint = "keep indices and their operands within 31 bits: reduce values before multiplying them"
    if dtype in _NARROW:
        hint = f'cast the {dtype} operands first: T.cast(x, "int32")'
    if dtype in _UNSIGNED and value_range[0] < 0:
        hint = 'cast the unsigned operands first: T.cast(x, "int32"); or use T.max(x, 0) before the cast'
    elif dtype in _UNSIGNED:
        dtype = "int32"
    raise Unsupported(
        "L015",
        f"{format_expression(e)} is between {value_range[0]} and {value_range[1]}, which {dtype} does not hold",
        hint=hint,
        span=span_of(statement),
    )
