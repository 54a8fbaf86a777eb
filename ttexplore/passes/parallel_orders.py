"""Order the loops of T.Parallel nests like the axes of their stores."""

from __future__ import annotations

from tvm import tirx

from ttexplore.ir.build import with_body
from ttexplore.ir.dataflow import parallel_body, same_indices
from ttexplore.ir.rewrite import Context, Firings, StatementRule, rewrite


def with_ordered_parallel(function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
    """The kernel with each T.Parallel nest in the axis order of its stores; the iterations of a nest are unordered.

    for j, i in T.Parallel(64, 32):       for i, j in T.Parallel(32, 64):
        c[i, j] = a[i, j] * 2        ==>      c[i, j] = a[i, j] * 2
    """
    return rewrite([_TURNED], Context(function, firings))


def _in_order(context: Context, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
    if not context.is_nest(statement):
        return None
    loops, body = parallel_body(statement)
    stores = [one for one in body if isinstance(one, tirx.BufferStore)]
    turned = [one.loop_var for one in loops][::-1]
    if len(loops) != 2 or not stores or not all(same_indices(one.indices, turned) for one in stores):
        return None
    outer, inner = loops
    return [with_body(inner, [with_body(outer, body)])]


_TURNED = StatementRule(
    "loops in order", "The loops of a T.Parallel nest follow the axis order of its stores.", _in_order
)
