"""Printing TIR expressions, as Python or as C++, with the parentheses that are needed and no others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from tvm import ir, tirx

from ttexplore.errors import Unsupported
from ttexplore.ir.adapter import span_of

Style = Literal["python", "cpp"]

# Precedence as in both languages, loosest first. C++ integer division truncates, which is floor division here because
# indices are never negative.
_BINARY: dict[type, tuple[str, str, int]] = {
    tirx.Or: ("or", "||", 1),
    tirx.And: ("and", "&&", 2),
    tirx.EQ: ("==", "==", 4),
    tirx.NE: ("!=", "!=", 4),
    tirx.LT: ("<", "<", 4),
    tirx.LE: ("<=", "<=", 4),
    tirx.GT: (">", ">", 4),
    tirx.GE: (">=", ">=", 4),
    tirx.Add: ("+", "+", 5),
    tirx.Sub: ("-", "-", 5),
    tirx.Mul: ("*", "*", 6),
    tirx.Div: ("/", "/", 6),
    tirx.FloorDiv: ("//", "/", 6),
    tirx.FloorMod: ("%", "%", 6),
}

_BITWISE: dict[type, str] = {
    tirx.BitwiseAnd: "&", tirx.BitwiseOr: "|", tirx.BitwiseXor: "^", tirx.LShift: "<<", tirx.RShift: ">>",
}  # fmt: skip


def format_expression(
    expression: Any, style: Style = "python", name: Callable[[Any], str] | None = None, outer: int = 0
) -> str:
    """The text of an expression. `name` gives the text of a variable; `outer` is the precedence around it.

    Raises Unsupported for an expression that has no text in this style.
    """
    naming = name or (lambda variable: str(variable.name))

    def show(part: Any, around: int) -> str:
        return format_expression(part, style, naming, around)

    kind = type(expression)
    if kind in _BINARY:
        python, cpp, precedence = _BINARY[kind]
        symbol = python if style == "python" else cpp
        text = f"{show(expression.a, precedence)} {symbol} {show(expression.b, precedence + 1)}"
        return f"({text})" if precedence < outer else text
    if isinstance(expression, ir.Var):
        return naming(expression)
    if isinstance(expression, tirx.IntImm):
        return str(int(expression.value))
    if isinstance(expression, ir.StringImm):
        return f'"{expression.value}"'
    if style == "python":
        return _python_only(expression, show)
    if isinstance(expression, tirx.Max | tirx.Min):
        left, right = show(expression.a, 5), show(expression.b, 5)
        text = f"{left} {'>' if isinstance(expression, tirx.Max) else '<'} {right} ? {left} : {right}"
        return f"({text})" if outer else text
    raise Unsupported(
        f"the expression {expression} has no C++ form",
        hint="index with + - * // and % of integers",
        span=span_of(expression),
    )


def _python_only(expression: Any, show: Callable[[Any, int], str]) -> str:
    if isinstance(expression, tirx.FloatImm):
        return repr(float(expression.value))
    if isinstance(expression, tirx.Max | tirx.Min):
        word = "T.max" if isinstance(expression, tirx.Max) else "T.min"
        return f"{word}({show(expression.a, 0)}, {show(expression.b, 0)})"
    if isinstance(expression, tirx.Not):
        return f"not {show(expression.a, 3)}"
    if isinstance(expression, tirx.BitwiseNot):
        return f"~{show(expression.a, 9)}"
    if type(expression) in _BITWISE:
        # Python binds these tighter than comparisons, C++ looser: the parentheses say it.
        return f"({show(expression.a, 9)} {_BITWISE[type(expression)]} {show(expression.b, 9)})"
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
