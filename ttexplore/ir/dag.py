"""Expressions as graphs: parts that several expressions share are visited and rebuilt once.

A name that is used twice makes an expression that holds one part twice. TVM's own walks see it as a tree, which grows
with two to the power of its depth.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import ir, tirx


def parts_of(expression: Any) -> list[Any]:
    """The operands of an expression; the indices of a load."""
    if isinstance(expression, tirx.Cast):
        return [expression.value]
    if isinstance(expression, tirx.Select):
        return [expression.condition, expression.true_value, expression.false_value]
    if isinstance(expression, tirx.Not | tirx.BitwiseNot):
        return [expression.a]
    if isinstance(expression, ir.Call):
        return list(expression.args)
    if isinstance(expression, ir.TensorLoad):
        return list(expression.indices)
    if hasattr(expression, "a") and hasattr(expression, "b"):
        return [expression.a, expression.b]
    return []


def nodes_of(expression: Any) -> list[Any]:
    """An expression and all its parts, each once, operands first."""
    found: dict[Any, Any] = {}

    def visit(one: Any) -> None:
        if _key(one) not in found:
            for part in parts_of(one):
                visit(part)
            found[_key(one)] = one

    visit(expression)
    return list(found.values())


def _key(expression: Any) -> Any:
    """What an expression is known by: for TVM a constant equals one of another dtype."""
    if isinstance(expression, tirx.IntImm):
        return int(expression.value), str(expression.ty.dtype)
    return expression


def replaced(expression: Any, rule: Callable[[Any], Any]) -> Any:
    """The expression with each part replaced by what `rule` gives for it, its own parts being replaced already."""
    made: dict[Any, Any] = {}
    for one in nodes_of(expression):
        parts = parts_of(one)
        new = [made[_key(part)] for part in parts]
        same = all(a.same_as(b) for a, b in zip(parts, new, strict=True))
        made[_key(one)] = rule(one if same else _with_parts(one, new))
    return made[_key(expression)]


def _with_parts(expression: Any, parts: list[Any]) -> Any:
    kind: Any = type(expression)
    if kind is tirx.Cast:
        return tirx.Cast(expression.ty, parts[0], expression.span)
    if isinstance(expression, tirx.Select | tirx.Not | tirx.BitwiseNot):
        return kind(*parts, expression.span)
    if isinstance(expression, ir.Call):
        return ir.Call(expression.op, parts, attrs=expression.attrs, span=expression.span, ret_ty=expression.ty)
    if isinstance(expression, ir.TensorLoad):
        buffer: Any = expression.source
        return tirx.BufferLoad(buffer, parts, expression.span)
    return kind(*parts, expression.span)
