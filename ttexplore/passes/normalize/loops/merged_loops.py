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
    if len(loops) < 2 or not all(constant(one.min) == 0 and constant(one.extent) for one in loops):
        return None
    for slow in loops:
        for fast in loops:
            made = _one_loop(loops, body, slow, fast) if slow is not fast else None
            if made is not None:
                return [made]
    return None


def _one_loop(loops: Sequence[tirx.For], body: Sequence[tirx.Stmt], slow: tirx.For, fast: tirx.For) -> tirx.Stmt | None:
    """The nest with one loop in place of two, or None where an expression uses one of them alone."""
    rows, columns = number_of(slow.extent), number_of(fast.extent)
    both = tirx.Var(str(slow.loop_var.name), slow.loop_var.ty)
    gone, seen = {slow.loop_var, fast.loop_var}, set[ir.Expr]()

    def joined(part: ir.Expr) -> ir.Expr:
        return _joined(part, slow.loop_var, fast.loop_var, columns, both) if isinstance(part, tirx.Add) else part

    def value(expression: ir.Expr) -> ir.Expr:
        made = replaced(expression, joined)
        seen.update(one for one in nodes_of(made) if isinstance(one, ir.Var))
        return made

    nest = _with_values(sequence(body), value)
    if nest is None or seen & gone or both not in seen:
        return None
    for one in reversed(loops):
        if one is slow:
            nest = for_of(both, one.min, tirx.const(rows * columns, "int32"), one, nest)
        elif one is not fast:
            nest = for_of(one.loop_var, one.min, one.extent, one, nest)
    return nest


def _joined(added: tirx.Add, slow: ir.Var, fast: ir.Var, columns: int, both: ir.Var) -> ir.Expr:
    """A sum with `both` in place of ``slow * columns + fast``, wherever these two are among its terms."""
    terms = _terms(added)
    product = next((one for one in terms if _is_product(one, slow, columns)), None)
    alone = next((one for one in terms if one.same_as(fast)), None)
    if product is None or alone is None:
        return added
    rest = [one for one in terms if one is not product and one is not alone]
    return functools.reduce(tirx.Add, [*rest, both])


def _terms(expression: ir.Expr) -> list[ir.Expr]:
    return [*_terms(expression.a), *_terms(expression.b)] if isinstance(expression, tirx.Add) else [expression]


def _is_product(term: ir.Expr, variable: ir.Var, factor: int) -> bool:
    if not isinstance(term, tirx.Mul):
        return False
    sides = ((term.a, term.b), (term.b, term.a))
    return any(one.same_as(variable) and constant(other) == factor for one, other in sides)


def _with_values(body: tirx.Stmt, value: Callable[[ir.Expr], ir.Expr]) -> tirx.Stmt | None:
    """Stores, names and branches with other values, or None where there are other statements."""
    made: list[tirx.Stmt] = []
    for one in statements(body):
        match one:
            case tirx.BufferStore():
                made.append(tirx.BufferStore(one.buffer, value(one.value), [*map(value, one.indices)], one.span))
            case tirx.Bind():
                made.append(tirx.Bind(one.var, value(one.value), one.span))
            case tirx.IfThenElse():
                then = _with_values(one.then_case, value)
                other = None if one.else_case is None else _with_values(one.else_case, value)
                if then is None or (other is None and one.else_case is not None):
                    return None
                made.append(tirx.IfThenElse(value(one.condition), then, other, one.span))
            case _:
                return None
    return sequence(made)


_MERGED = StatementRule(
    "loops merged", "Two loops of T.Parallel that count together through one axis become one.", _merged
)
