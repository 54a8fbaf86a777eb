"""Whole numbers of a kernel that are made of loop variables, block indices and sizes: int32 holds each of them and of
their parts, nothing is divided by 0, and shifts are of fewer bits than there are.

In TIR what leaves int32 has no meaning, and TVM gives up in the middle of a pass where a constant does. What leaves
int8 or its kind wraps around in elements; in C++ an index would go on in 32 bits, so there it is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm import ir, tirx

from ttexplore.errors import Unsupported
from ttexplore.ir.adapter import span_of
from ttexplore.ir.build import arguments, constant, statements
from ttexplore.ir.dag import nodes_of, parts_of
from ttexplore.ir.expression import format_expression
from ttexplore.ir.index import DIVISIONS, SHIFTS, SYMBOLS, Range, range_of
from ttexplore.ir.sizes import size_variables
from ttexplore.ir.words import INT32_LEAST, INT32_MOST, no_divisor, no_shift, not_held


def check_integers(function: Any, sizes: Mapping[str, int]) -> None:
    """Check a traced kernel whose T.dynamic sizes have these values. Raises Unsupported with the kernel's line."""
    known: dict[Any, Range] = {}
    for size in size_variables(function):
        value = sizes[str(size.name)]
        known[size] = (value, value)
    _Check(known).body(function.body)


class _Check:
    """Goes through a kernel with what is known about its variables. `near` has their ranges with 0 in them: taking a
    product of a sum apart, TVM computes with that."""

    def __init__(self, known: dict[Any, Range]) -> None:
        self.known, self.near = known, dict(known)

    def body(self, body: Any) -> None:
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
                    for one in statement.indices:
                        self.expression(one, statement)
                    self.expression(statement.value, statement, wraps=True)
                case tirx.Evaluate(value=ir.Call()):
                    for one in arguments(statement):
                        parts = one.region[:] if isinstance(one, ir.TensorRegion) else ()
                        for part in parts:
                            self.expression(part.min, statement)
                        if not parts:
                            self.expression(one, statement, wraps=True)
                case _:
                    pass

    def loop(self, statement: Any) -> None:
        low = self.expression(statement.min, statement)
        extent = self.expression(statement.extent, statement)
        if low is not None and extent is not None:
            last = max(low[0], low[1] + extent[1] - 1)
            _in_dtype(statement.loop_var, "int32", (low[0], last), statement)
            self.learn(statement.loop_var, (low[0], last))
        self.body(statement.body)

    def learn(self, variable: Any, known: Range | None) -> None:
        if known is not None:
            low, high = known
            self.known[variable], self.near[variable] = known, (min(low, 0), max(high, 0))

    def expression(self, e: Any, statement: Any, wraps: bool = False) -> Range | None:
        """The range of a whole number; None of what elements decide, and of what is none. `wraps` is for values of
        elements, whose narrow integers wrap around."""
        if constant(e) is not None:
            return self._range(e, {}, self.known)
        found: dict[Any, Range | None] = {}
        near: dict[Any, Range | None] = {}
        for one in nodes_of(e):
            symbol = SYMBOLS.get(type(one), "")
            divisor = found.get(one.b) if symbol in DIVISIONS | SHIFTS else None
            if divisor is not None and str(one.ty.dtype).startswith("int"):
                if symbol in DIVISIONS and divisor[0] <= 0 <= divisor[1]:
                    raise no_divisor(format_expression(one), format_expression(one.b), span_of(statement))
                if symbol in SHIFTS and not (divisor[0] >= 0 and divisor[1] <= 31):
                    raise no_shift(format_expression(one), *divisor, span_of(statement))
            found[one] = self._range(one, found, self.known)
            near[one] = self._range(one, near, self.near)
            for known in (found[one], near[one] if symbol in ("+", "-", "*") else None):
                _in_dtype(one, "int32", known, statement)
            dtype = str(one.ty.dtype)
            if isinstance(one, tirx.Cast) and not wraps and dtype.startswith("uint") and dtype not in _HELD:
                raise Unsupported(
                    f"{format_expression(one)} is {dtype}, and indices are int32",
                    hint='compute in int32: T.cast(x, "int32"), or leave the cast out',
                    span=span_of(statement),
                )
            if dtype in _NARROW and not _is_held(found[one], dtype):
                if not wraps:
                    _in_dtype(one, dtype, found[one], statement)
                found[one] = near[one] = _HELD[dtype]
        return found[e]

    def _range(self, e: Any, parts: Mapping[Any, Range | None], known: Mapping[Any, Range]) -> Range | None:
        value = constant(e)
        if value is not None:
            return value, value
        if isinstance(e, ir.Var):
            return known.get(e)
        if isinstance(e, ir.StringImm):
            return None
        kind = "select" if _is_choice(e) else _UNARY.get(type(e)) or SYMBOLS.get(type(e))
        ranges = [self._range(one, {}, known) if constant(one) is not None else parts.get(one) for one in parts_of(e)]
        given = [one for one in ranges if one is not None]
        if len(given) < len(ranges) or "float" in str(e.ty.dtype):
            return None
        if isinstance(e, tirx.Cast):
            held = str(e.ty.dtype)
            return given[0] if held in _HELD and _is_held(given[0], held) else _HELD.get(held)
        return None if kind is None else range_of(kind, given)


_UNARY: dict[type, str] = {tirx.Not: "not", tirx.BitwiseNot: "~"}
# What casts to these dtypes leave; those to int32 and int64 keep their number.
_HELD: dict[str, Range] = {
    "bool": (0, 1), "uint8": (0, 255), "int8": (-128, 127), "uint16": (0, 65535), "int16": (-32768, 32767),
    "int32": (INT32_LEAST, INT32_MOST), "int64": (INT32_LEAST, INT32_MOST),
}  # fmt: skip
_NARROW = frozenset({"uint8", "int8", "uint16", "int16"})


def _is_held(known: Range | None, dtype: str) -> bool:
    least, most = _HELD[dtype]
    return known is None or bool(known[0] >= least and known[1] <= most)


def _is_choice(e: Any) -> bool:
    return isinstance(e, tirx.Select) or (isinstance(e, ir.Call) and str(e.op.name).endswith(".if_then_else"))


def _in_dtype(e: Any, dtype: str, known: Range | None, statement: Any) -> None:
    if known is None or _is_held(known, dtype):
        return
    if constant(e) is not None:
        raise not_held(dtype, known[0], span_of(statement))
    hint = "keep indices, and what they are computed from, within 31 bits: reduce before you multiply"
    if dtype in _NARROW:
        hint = f'T.cast(x, "int32") of what is {dtype}, then compute'
    raise Unsupported(
        f"{format_expression(e)} is between {known[0]} and {known[1]}, which {dtype} does not hold",
        hint=hint,
        span=span_of(statement),
    )
