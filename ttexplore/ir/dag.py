"""Expressions as graphs: parts that several expressions share are visited and rebuilt once.

A name that is used twice makes an expression that holds one part twice. TVM's own walks see it as a tree, which grows
with two to the power of its depth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import tvm_ffi
from tvm import ir, sym, tirx

from ttexplore.ir.adapter import elements, identity
from ttexplore.ir.arithmetic.index import is_binary

T = TypeVar("T")

# What has no parts, by exact types.
LEAVES = frozenset[type[ir.Expr]]([ir.Var, tirx.IntImm, tirx.FloatImm, ir.StringImm])


def parts_of(expression: ir.Expr) -> list[ir.Expr]:
    """The operands of an expression; the indices of a load."""
    # By exact types, because TVM's own isinstance is slow where every pass comes by.
    if type(expression) in LEAVES:
        return []
    if type(expression) is ir.TensorLoad:
        return elements(expression.indices)
    if type(expression) is tirx.Cast:
        return [expression.value]
    if type(expression) is ir.Call:
        return elements(expression.args)
    if type(expression) is tirx.Select:
        return [expression.condition, expression.true_value, expression.false_value]
    if type(expression) is tirx.Not or type(expression) is tirx.BitwiseNot:
        return [expression.a]
    if is_binary(expression):
        return [expression.a, expression.b]
    return []


def nodes_of(expression: ir.Expr) -> list[ir.Expr]:
    """An expression and all its parts, each once, operands first."""
    if type(expression) in LEAVES:
        return [expression]
    found: dict[int, ir.Expr] = {}
    # With a stack of its own: expressions may be deeper than Python's. True: the parts have been visited.
    waiting: list[tuple[ir.Expr, bool]] = [(expression, False)]
    while waiting:
        one, visited = waiting.pop()
        number = identity(one)
        if number in found:
            continue
        parts = () if visited else parts_of(one)
        if parts:
            waiting.append((one, True))
            waiting += [(part, False) for part in reversed(parts)]
        else:
            found[number] = one
    return list(found.values())


def same_expression(one: ir.Expr, other: ir.Expr) -> bool:
    """Whether two expressions are the same, of the same variables and buffers. Not for regions: TVM takes the buffers
    of these for equal whose types are."""
    return bool(tvm_ffi.structural_equal(one, other))


def same_expressions(one: Sequence[ir.Expr], other: Sequence[ir.Expr]) -> bool:
    return len(one) == len(other) and all(map(same_expression, one, other))


def folded(expression: ir.Expr, meaning: Callable[[ir.Expr, list[T]], T]) -> T:
    """Fold an expression bottom-up: call `meaning` once for each part, with the results for its operands."""
    made: dict[int, T] = {}
    for one in nodes_of(expression):
        made[identity(one)] = meaning(one, [made[identity(part)] for part in parts_of(one)])
    return made[identity(expression)]


def replaced(expression: ir.Expr, rule: Callable[[ir.Expr], ir.Expr]) -> ir.Expr:
    """Replace each part of an expression by the result of `rule`, operands first."""

    def rebuilt(one: ir.Expr, parts: list[ir.Expr]) -> ir.Expr:
        same = all(a.same_as(b) for a, b in zip(parts_of(one), parts, strict=True))
        return rule(one if same else with_parts(one, parts))

    return folded(expression, rebuilt)


def uses(expression: ir.Expr, variable: ir.Var) -> bool:
    """Whether a variable is a part of an expression."""
    return any(one.same_as(variable) for one in nodes_of(expression))


def factor_of(expression: ir.Expr, variable: ir.Var) -> int:
    """The constant that a whole number grows by with a variable; 0 where that is not known, or not the same
    everywhere."""
    following = replaced(expression, lambda one: variable + 1 if one.same_as(variable) else one)
    difference = sym.Analyzer().simplify(following - expression)
    return int(difference.value) if isinstance(difference, tirx.IntImm) else 0


def written_out(expression: ir.Expr, names: Mapping[ir.Var, ir.Expr]) -> ir.Expr:
    """An expression with what names stand for in their place; that may have names in it again."""
    made: dict[ir.Var, ir.Expr] = {}

    def known(one: ir.Expr) -> ir.Expr:
        return made.get(one, one) if isinstance(one, ir.Var) else one

    # Each name once, after those in it: True where these are made.
    waiting = [(one, False) for one in nodes_of(expression) if isinstance(one, ir.Var)]
    while waiting:
        name, ready = waiting.pop()
        if name in made or name not in names:
            continue
        if ready:
            made[name] = replaced(names[name], known)
        else:
            waiting.append((name, True))
            waiting += [(one, False) for one in nodes_of(names[name]) if isinstance(one, ir.Var)]
    return replaced(expression, known) if made else expression


def conjuncts(condition: ir.Expr) -> list[ir.Expr]:
    """The conditions that must all hold for this one to hold."""
    return [*conjuncts(condition.a), *conjuncts(condition.b)] if isinstance(condition, tirx.And) else [condition]


def with_parts(expression: ir.Expr, parts: list[ir.Expr]) -> ir.Expr:
    """Return the operation with other operands. Raises TypeError for expressions without operands."""
    span = expression.span
    if is_binary(expression):
        return type(expression)(parts[0], parts[1], span)
    match expression:
        case tirx.Cast():
            return tirx.Cast(expression.ty, parts[0], span)
        case tirx.Select():
            return tirx.Select(parts[0], parts[1], parts[2], span)
        case tirx.Not():
            return tirx.Not(parts[0], span)
        case tirx.BitwiseNot():
            return tirx.BitwiseNot(parts[0], span)
        case ir.Call():
            return ir.Call(expression.op, parts, attrs=expression.attrs, span=span, ret_ty=expression.ty)
        case ir.TensorLoad():
            return tirx.BufferLoad(expression.source, parts, span)
        case _:
            raise TypeError(f"{expression} has no operands")
