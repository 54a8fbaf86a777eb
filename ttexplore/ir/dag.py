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
COMPARISON_TYPES = frozenset[type[ir.Expr]]([tirx.LT, tirx.LE, tirx.GT, tirx.GE, tirx.EQ, tirx.NE])


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
    nodes: dict[int, ir.Expr] = {}
    # With a stack of its own: expressions may be deeper than Python's. True: the parts have been visited.
    waiting: list[tuple[ir.Expr, bool]] = [(expression, False)]
    while waiting:
        node, visited = waiting.pop()
        number = identity(node)
        if number in nodes:
            continue
        operands = () if visited else parts_of(node)
        if operands:
            waiting.append((node, True))
            waiting += [(operand, False) for operand in reversed(operands)]
        else:
            nodes[number] = node
    return list(nodes.values())


def same_expression(first: ir.Expr, second: ir.Expr) -> bool:
    """Whether two expressions are the same, of the same variables and buffers. Not for regions: TVM takes the buffers
    of these for equal whose types are."""
    return bool(tvm_ffi.structural_equal(first, second))


def same_expressions(first: Sequence[ir.Expr], second: Sequence[ir.Expr]) -> bool:
    return len(first) == len(second) and all(map(same_expression, first, second))


def folded(expression: ir.Expr, meaning: Callable[[ir.Expr, list[T]], T]) -> T:
    """Fold an expression bottom-up: call `meaning` once for each part, with the results for its operands."""
    meanings: dict[int, T] = {}
    for node in nodes_of(expression):
        meanings[identity(node)] = meaning(node, [meanings[identity(operand)] for operand in parts_of(node)])
    return meanings[identity(expression)]


def replaced(expression: ir.Expr, rule: Callable[[ir.Expr], ir.Expr]) -> ir.Expr:
    """Replace each part of an expression by the result of `rule`, operands first."""

    def rebuilt(node: ir.Expr, operands: list[ir.Expr]) -> ir.Expr:
        same = all(a.same_as(b) for a, b in zip(parts_of(node), operands, strict=True))
        return rule(node if same else with_parts(node, operands))

    return folded(expression, rebuilt)


def uses(expression: ir.Expr, variable: ir.Var) -> bool:
    """Whether a variable is a part of an expression."""
    return any(node.same_as(variable) for node in nodes_of(expression))


def factor_of(expression: ir.Expr, variable: ir.Var) -> int:
    """The constant that a whole number grows by with a variable; 0 where that is not known, or not the same
    everywhere."""
    following = replaced(expression, lambda node: variable + 1 if node.same_as(variable) else node)
    difference = sym.Analyzer().simplify(following - expression)
    return int(difference.value) if isinstance(difference, tirx.IntImm) else 0


def written_out(expression: ir.Expr, names: Mapping[ir.Var, ir.Expr]) -> ir.Expr:
    """An expression with what names stand for in their place; that may have names in it again."""
    expanded: dict[ir.Var, ir.Expr] = {}

    def expand(node: ir.Expr) -> ir.Expr:
        return expanded.get(node, node) if isinstance(node, ir.Var) else node

    # Each name once, after those in it: True where these are made.
    waiting = [(node, False) for node in nodes_of(expression) if isinstance(node, ir.Var)]
    while waiting:
        name, ready = waiting.pop()
        if name in expanded or name not in names:
            continue
        if ready:
            expanded[name] = replaced(names[name], expand)
        else:
            waiting.append((name, True))
            waiting += [(node, False) for node in nodes_of(names[name]) if isinstance(node, ir.Var)]
    return replaced(expression, expand) if expanded else expression


def conjuncts(condition: ir.Expr) -> list[ir.Expr]:
    """The conditions that must all hold for this one to hold."""
    return [*conjuncts(condition.a), *conjuncts(condition.b)] if isinstance(condition, tirx.And) else [condition]


def with_parts(expression: ir.Expr, operands: list[ir.Expr]) -> ir.Expr:
    """Return the operation with other operands. Raises TypeError for expressions without operands."""
    span = expression.span
    if is_binary(expression):
        return type(expression)(operands[0], operands[1], span)
    match expression:
        case tirx.Cast():
            return tirx.Cast(expression.ty, operands[0], span)
        case tirx.Select():
            return tirx.Select(operands[0], operands[1], operands[2], span)
        case tirx.Not():
            return tirx.Not(operands[0], span)
        case tirx.BitwiseNot():
            return tirx.BitwiseNot(operands[0], span)
        case ir.Call():
            return ir.Call(expression.op, operands, attrs=expression.attrs, span=span, ret_ty=expression.ty)
        case ir.TensorLoad():
            return tirx.BufferLoad(expression.source, operands, span)
        case _:
            raise TypeError(f"{expression} has no operands")
