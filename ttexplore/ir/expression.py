"""Printing TIR expressions as Python, with the parentheses that are needed and no others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import ir, tirx

# How tightly each operator of Python binds, loosest first.
_NOT, _COMPARISON, _SUM, _PRODUCT, _UNARY = 3, 4, 5, 6, 9
_BINARY: dict[type, tuple[str, int]] = {
    tirx.Or: ("or", 1),
    tirx.And: ("and", 2),
    tirx.EQ: ("==", _COMPARISON),
    tirx.NE: ("!=", _COMPARISON),
    tirx.LT: ("<", _COMPARISON),
    tirx.LE: ("<=", _COMPARISON),
    tirx.GT: (">", _COMPARISON),
    tirx.GE: (">=", _COMPARISON),
    tirx.Add: ("+", _SUM),
    tirx.Sub: ("-", _SUM),
    tirx.Mul: ("*", _PRODUCT),
    tirx.Div: ("/", _PRODUCT),
    tirx.FloorDiv: ("//", _PRODUCT),
    tirx.FloorMod: ("%", _PRODUCT),
}

_BITWISE: dict[type, str] = {
    tirx.BitwiseAnd: "&", tirx.BitwiseOr: "|", tirx.BitwiseXor: "^", tirx.LShift: "<<", tirx.RShift: ">>",
}  # fmt: skip


def format_expression(expression: Any, name: Callable[[Any], str] | None = None, outer: int = 0) -> str:
    """The text of an expression. `name` gives the text of a variable; `outer` is how tightly what is around it
    binds."""
    naming = name or (lambda variable: str(variable.name))

    def show(part: Any, around: int) -> str:
        return format_expression(part, naming, around)

    kind = type(expression)
    if kind in _BINARY:
        symbol, strength = _BINARY[kind]
        # Python chains comparisons: `a < b == c` is no comparison of `a < b`.
        left = show(expression.a, strength + (strength == _COMPARISON))
        return _enclosed(f"{left} {symbol} {show(expression.b, strength + 1)}", strength, outer)
    if isinstance(expression, tirx.Not):
        return _enclosed(f"not {show(expression.a, _NOT)}", _NOT, outer)
    if isinstance(expression, ir.Var):
        return naming(expression)
    if isinstance(expression, tirx.IntImm):
        return str(int(expression.value))
    if isinstance(expression, ir.StringImm):
        return f'"{expression.value}"'
    if isinstance(expression, tirx.FloatImm):
        return repr(float(expression.value))
    if isinstance(expression, tirx.Max | tirx.Min):
        word = "T.max" if isinstance(expression, tirx.Max) else "T.min"
        return f"{word}({show(expression.a, 0)}, {show(expression.b, 0)})"
    if isinstance(expression, tirx.BitwiseNot):
        return f"~{show(expression.a, _UNARY)}"
    if type(expression) in _BITWISE:
        # Python binds these tighter than comparisons, C++ looser: the parentheses say it to readers of both.
        return f"({show(expression.a, _UNARY)} {_BITWISE[type(expression)]} {show(expression.b, _UNARY)})"
    if isinstance(expression, tirx.Cast):
        return f"T.{expression.ty.dtype}({show(expression.value, 0)})"
    if isinstance(expression, ir.TensorLoad):
        return f"{expression.source.name}[{', '.join(show(index, 0) for index in expression.indices)}]"
    if isinstance(expression, ir.TensorRegion):
        return _region(expression, show)
    if isinstance(expression, ir.Call):
        word = str(expression.op.name)
        word = f"T.{word.partition('.')[2]}" if word.startswith(("tirx.", "tl.", "prim.")) else word
        return f"{word}({', '.join(show(argument, 0) for argument in expression.args)})"
    return str(expression)


def _enclosed(text: str, strength: int, outer: int) -> str:
    return f"({text})" if strength < outer else text


def _region(region: Any, show: Callable[[Any, int], str]) -> str:
    parts: list[str] = []
    whole = True
    for extent, part in zip(region.source.ty.shape, region.region, strict=True):
        low, length = show(part.min, 0), show(part.extent, 0)
        whole = whole and low == "0" and length == str(extent)
        if length == "1":
            parts.append(low)
        else:
            parts.append(f"{low}:{length}" if low == "0" else f"{low} : +{length}")
    return str(region.source.name) if whole else f"{region.source.name}[{', '.join(parts)}]"
