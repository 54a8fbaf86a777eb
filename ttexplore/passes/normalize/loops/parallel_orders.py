"""Order the loops of T.Parallel nests like the axes of their stores."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import ir, tirx

from ttexplore.ir.build import with_nest
from ttexplore.ir.dag import nodes_of
from ttexplore.ir.dataflow import parallel_body
from ttexplore.ir.rewrite import Context, Firings, StatementRule, rewrite


def with_ordered_axes(function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
    """The kernel with each T.Parallel nest of three and more loops in the axis order of its stores, so that loops can
    be joined where axes are; the iterations of a nest are unordered.

    for j, n, i in T.Parallel(64, 2, 32):       for n, i, j in T.Parallel(2, 32, 64):
        c[n, i, j] = a[n, i, j] * 2        ==>      c[n, i, j] = a[n, i, j] * 2
    """
    return rewrite([_ORDERED_AXES], Context(function, firings))


def with_ordered_parallel(function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
    """The kernel with each T.Parallel nest in the axis order of its stores.

    for j, i in T.Parallel(64, 32):       for i, j in T.Parallel(32, 64):
        c[i, j] = a[i, j] * 2        ==>      c[i, j] = a[i, j] * 2
    """
    return rewrite([_ORDERED], Context(function, firings))


def _axes_in_order(context: Context, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
    if not context.is_nest(statement) or len(parallel_body(statement)[0]) < 3:
        return None
    return _in_order(context, statement)


def _in_order(context: Context, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
    if not context.is_nest(statement):
        return None
    loops, body = parallel_body(statement)
    source_order = [*range(len(loops))]
    orders = [
        _order(statement, [loop.loop_var for loop in loops])
        for statement in body
        if isinstance(statement, tirx.BufferStore)
    ]
    if not orders or orders[0] is None or orders[0] == source_order or any(order != orders[0] for order in orders):
        return None
    return [with_nest([loops[axis] for axis in orders[0]], body)]


def _order(store: tirx.BufferStore, variables: Sequence[ir.Var]) -> list[int] | None:
    """The variables by the axes along which they move a store; None where one moves along several axes or none, or
    several along one."""
    axes: dict[int, int] = {}
    for position, variable in enumerate(variables):
        moved = [axis for axis, index in enumerate(store.indices) if any(map(variable.same_as, nodes_of(index)))]
        if len(moved) != 1 or moved[0] in axes:
            return None
        axes[moved[0]] = position
    return [axes[axis] for axis in sorted(axes)]


_TEXT = "The loops of a T.Parallel nest follow the axis order of its stores."
_ORDERED_AXES = StatementRule("loops in order of axes", _TEXT, _axes_in_order)
_ORDERED = StatementRule("loops in order", _TEXT, _in_order)
