"""Printing TIR expressions as Python, with the parentheses that are needed and no others."""

from __future__ import annotations

from collections.abc import Callable

from tvm import ir, tirx

from ttexplore.ir.arithmetic.index import is_binary
from ttexplore.ops import language as tl

# How tightly each operator of Python binds, loosest first.
_NOT, _COMPARISON, _SUM, _PRODUCT, _UNARY = 3, 4, 5, 6, 9
_BINARY: dict[type[ir.Expr], tuple[str, int]] = {
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

_BITWISE: dict[type[ir.Expr], str] = {
    tirx.BitwiseAnd: "&", tirx.BitwiseOr: "|", tirx.BitwiseXor: "^", tirx.LShift: "<<", tirx.RShift: ">>",
}  # fmt: skip


def format_expression(
    expression: ir.Expr, name: Callable[[ir.Var], str] | None = None, outer: int = 0
) -> str:  # fmt: skip
    """The text of an expression. `name` gives the text of a variable; `outer` is how tightly what is around it
    binds."""
    naming = name or _name

    def show(operand: ir.Expr, around: int) -> str:
        return format_expression(operand, naming, around)

    if is_binary(expression):
        return _binary(expression, show, outer)
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
    if isinstance(expression, tirx.BitwiseNot):
        return f"~{show(expression.a, _UNARY)}"
    if isinstance(expression, tirx.Cast):
        return f"T.{expression.ty.dtype}({show(expression.value, 0)})"
    if isinstance(expression, ir.TensorLoad):
        return f"{expression.source.name}[{', '.join(show(index, 0) for index in expression.indices)}]"
    if isinstance(expression, ir.TensorRegion):
        return _region(expression, show)
    if isinstance(expression, ir.Call):
        word = str(expression.op.name)
        word = f"T.{word.partition('.')[2]}" if word.startswith(("tirx.", "prim.")) or tl.is_language(word) else word
        return f"{word}({', '.join(show(argument, 0) for argument in expression.args)})"
    return str(expression)


def _name(variable: ir.Var) -> str:
    return str(variable.name)


def _binary(expression: tirx.BinaryOpExpr, show: Callable[[ir.Expr, int], str], outer: int) -> str:
    kind = type(expression)
    if kind in _BINARY:
        symbol, strength = _BINARY[kind]
        # Python chains comparisons: `a < b == c` is no comparison of `a < b`.
        left = show(expression.a, strength + (strength == _COMPARISON))
        return _enclosed(f"{left} {symbol} {show(expression.b, strength + 1)}", strength, outer)
    if kind in _BITWISE:
        # Python binds these tighter than comparisons, C++ looser: the parentheses say it to readers of both.
        return f"({show(expression.a, _UNARY)} {_BITWISE[kind]} {show(expression.b, _UNARY)})"
    if isinstance(expression, tirx.Max | tirx.Min):
        word = "T.max" if isinstance(expression, tirx.Max) else "T.min"
        return f"{word}({show(expression.a, 0)}, {show(expression.b, 0)})"
    return str(expression)


def _enclosed(text: str, strength: int, outer: int) -> str:
    return f"({text})" if strength < outer else text


def _region(region: ir.TensorRegion, show: Callable[[ir.Expr, int], str]) -> str:
    axis_texts: list[str] = []
    is_full = True
    for extent, axis in zip(region.source.ty.shape, region.region, strict=True):
        low, length = show(axis.min, 0), show(axis.extent, 0)
        is_full = is_full and low == "0" and length == str(extent)
        if length == "1":
            axis_texts.append(low)
        else:
            axis_texts.append(f"{low}:{length}" if low == "0" else f"{low} : +{length}")
    return str(region.source.name) if is_full else f"{region.source.name}[{', '.join(axis_texts)}]"
