"""Expressions as graphs: parts that several expressions share are visited and rebuilt once.

A name that is used twice makes an expression that holds one part twice. TVM's own walks see it as a tree, which grows
with two to the power of its depth.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tvm import ir, tirx

from ttexplore.ir.adapter import elements, identity

T = TypeVar("T")

# What has no parts, by exact types.
LEAVES = frozenset[Any]([ir.Var, tirx.IntImm, tirx.FloatImm, ir.StringImm])


def parts_of(expression: Any) -> list[Any]:
    """The operands of an expression; the indices of a load."""
    # By exact types, because TVM's own isinstance is slow where every pass comes by.
    kind = type(expression)
    if kind in LEAVES:
        return []
    if kind is ir.TensorLoad:
        return elements(expression.indices)
    if kind is tirx.Cast:
        return [expression.value]
    if kind is ir.Call:
        return elements(expression.args)
    if kind is tirx.Select:
        return [expression.condition, expression.true_value, expression.false_value]
    if kind is tirx.Not or kind is tirx.BitwiseNot:
        return [expression.a]
    if hasattr(expression, "a") and hasattr(expression, "b"):
        return [expression.a, expression.b]
    return []


def nodes_of(expression: Any) -> list[Any]:
    """An expression and all its parts, each once, operands first."""
    if type(expression) in LEAVES:
        return [expression]
    found: dict[int, Any] = {}
    # With a stack of its own: expressions may be deeper than Python's. True: the parts have been visited.
    waiting: list[tuple[Any, bool]] = [(expression, False)]
    while waiting:
        one, visited = waiting.pop()
        if identity(one) in found:
            continue
        parts = () if visited else parts_of(one)
        if parts:
            waiting.append((one, True))
            waiting += [(part, False) for part in reversed(parts)]
        else:
            found[identity(one)] = one
    return list(found.values())


def folded(expression: Any, meaning: Callable[[Any, list[T]], T]) -> T:
    """What `meaning` makes of the expression, given each part and what it made of the parts of that: each once."""
    made: dict[int, T] = {}
    for one in nodes_of(expression):
        made[identity(one)] = meaning(one, [made[identity(part)] for part in parts_of(one)])
    return made[identity(expression)]


def replaced(expression: Any, rule: Callable[[Any], Any]) -> Any:
    """The expression with each part replaced by what `rule` gives for it, its own parts being replaced already."""

    def rebuilt(one: Any, parts: list[Any]) -> Any:
        same = all(a.same_as(b) for a, b in zip(parts_of(one), parts, strict=True))
        return rule(one if same else with_parts(one, parts))

    return folded(expression, rebuilt)


def with_parts(expression: Any, parts: list[Any]) -> Any:
    """The same operation on other operands."""
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
