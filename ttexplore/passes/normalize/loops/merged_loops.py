"""Loops of T.Parallel that count together through one axis, as one loop."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from tvm import ir, tirx

from ttexplore.ir.adapter import for_of
from ttexplore.ir.build import constant, number_of, sequence, statements
from ttexplore.ir.dag import nodes_of, replaced
from ttexplore.ir.dataflow import parallel_body
from ttexplore.ir.rewrite import Context, Firings, StatementRule, rewrite


def with_merged_loops(function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
    """The kernel with one loop in place of two that are used only together.

        for i, j in T.Parallel(32, 16):                        for i, j in T.Parallel(32, 64):
            for v in T.vectorized(4):                    ==>       b[i, j] = a[i, j]
                b[i, j * 4 + v] = a[i, j * 4 + v]

    The turns of T.Parallel have no order, so that the loops need not be neighbours.
    `with_joined_loops` joins more, but after rows that an index tensor chooses, which need their two loops before.
    """
    return rewrite([_MERGED], Context(function, firings))


def _merged(context: Context, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
    if not context.is_nest(statement):
        return None
    loops, body = parallel_body(statement)
    if len(loops) < 2 or not all(constant(loop.min) == 0 and constant(loop.extent) for loop in loops):
        return None
    for slow in loops:
        for fast in loops:
            merged = _one_loop(loops, body, slow, fast) if slow is not fast else None
            if merged is not None:
                return [merged]
    return None


def _one_loop(loops: Sequence[tirx.For], body: Sequence[tirx.Stmt], slow: tirx.For, fast: tirx.For) -> tirx.Stmt | None:
    """The nest with one loop in place of two, or None where an expression uses one of them alone."""
    rows, columns = number_of(slow.extent), number_of(fast.extent)
    both = tirx.Var(str(slow.loop_var.name), slow.loop_var.ty)
    gone, used_vars = {slow.loop_var, fast.loop_var}, set[ir.Expr]()

    def joined(expr: ir.Expr) -> ir.Expr:
        return _joined(expr, slow.loop_var, fast.loop_var, columns, both) if isinstance(expr, tirx.Add) else expr

    def value(expression: ir.Expr) -> ir.Expr:
        rewritten = replaced(expression, joined)
        used_vars.update(node for node in nodes_of(rewritten) if isinstance(node, ir.Var))
        return rewritten

    nest = _with_values(sequence(body), value)
    if nest is None or used_vars & gone or both not in used_vars:
        return None
    for loop in reversed(loops):
        if loop is slow:
            nest = for_of(both, loop.min, tirx.const(rows * columns, "int32"), loop, nest)
        elif loop is not fast:
            nest = for_of(loop.loop_var, loop.min, loop.extent, loop, nest)
    return nest


def _joined(added: tirx.Add, slow: ir.Var, fast: ir.Var, columns: int, both: ir.Var) -> ir.Expr:
    """A sum with `both` in place of ``slow * columns + fast``, wherever these two are among its terms."""
    terms = _terms(added)
    product = next((term for term in terms if _is_product(term, slow, columns)), None)
    alone = next((term for term in terms if term.same_as(fast)), None)
    if product is None or alone is None:
        return added
    rest = [term for term in terms if term is not product and term is not alone]
    return functools.reduce(tirx.Add, [*rest, both])


def _terms(expression: ir.Expr) -> list[ir.Expr]:
    return [*_terms(expression.a), *_terms(expression.b)] if isinstance(expression, tirx.Add) else [expression]


def _is_product(term: ir.Expr, variable: ir.Var, factor: int) -> bool:
    if not isinstance(term, tirx.Mul):
        return False
    sides = ((term.a, term.b), (term.b, term.a))
    return any(operand.same_as(variable) and constant(counterpart) == factor for operand, counterpart in sides)


def _with_values(body: tirx.Stmt, value: Callable[[ir.Expr], ir.Expr]) -> tirx.Stmt | None:
    """Stores, names and branches with other values, or None where there are other statements."""
    rewritten: list[tirx.Stmt] = []
    for statement in statements(body):
        match statement:
            case tirx.BufferStore():
                rewritten.append(
                    tirx.BufferStore(
                        statement.buffer, value(statement.value), [*map(value, statement.indices)], statement.span
                    )
                )
            case tirx.Bind():
                rewritten.append(tirx.Bind(statement.var, value(statement.value), statement.span))
            case tirx.IfThenElse():
                then = _with_values(statement.then_case, value)
                otherwise = None if statement.else_case is None else _with_values(statement.else_case, value)
                if then is None or (otherwise is None and statement.else_case is not None):
                    return None
                rewritten.append(tirx.IfThenElse(value(statement.condition), then, otherwise, statement.span))
            case _:
                return None
    return sequence(rewritten)


_MERGED = StatementRule(
    "loops merged", "Two loops of T.Parallel that count together through one axis become one.", _merged
)
