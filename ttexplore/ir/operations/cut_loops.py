"""Loops of T.Parallel that go on behind the end of the block that they store, up to which a condition lets them."""

from __future__ import annotations

import functools

from tvm import ir, tirx

from ttexplore.ir.adapter import for_of
from ttexplore.ir.build import constant, shape_of, statements, when, with_nest
from ttexplore.ir.dag import conjuncts
from ttexplore.ir.dataflow import is_on_chip, parallel_body
from ttexplore.ir.rewrite import walk


def cut_to_blocks(statement: tirx.For) -> tirx.For | None:
    """A T.Parallel nest whose loops end where the blocks do that they store; None if they do already.

    b = T.alloc_shared((16, 64), "float32")        b = T.alloc_shared((16, 64), "float32")
    for i, j in T.Parallel(32, 64):           ==>  for i, j in T.Parallel(16, 64):
        if i < 16:                                     b[i, j] = a[i + 16, j]
            b[i, j] = a[i + 16, j]
    """
    loops, body = parallel_body(statement)
    if len(body) != 1 or not isinstance(body[0], tirx.IfThenElse) or body[0].else_case is not None:
        return None
    branch = body[0]
    conditions = [(condition, _ended(condition, branch, loops)) for condition in conjuncts(branch.condition)]
    ends = dict(end for _, end in conditions if end is not None)
    rest = [condition for condition, end in conditions if end is None]
    if not ends:
        return None
    cut = [
        for_of(at.loop_var, at.min, tirx.const(ends[at.loop_var], "int32"), at, at.body) if at.loop_var in ends else at
        for at in loops
    ]
    inside = statements(branch.then_case)
    return with_nest(cut, [when(functools.reduce(tirx.And, rest), inside, branch.span)] if rest else inside)


def _ended(condition: ir.Expr, branch: tirx.IfThenElse, loops: list[tirx.For]) -> tuple[ir.Var, int] | None:
    """The variable of a loop that a condition ends where the blocks do that a branch stores, and that end."""
    if not isinstance(condition, tirx.LT) or (end := constant(condition.b)) is None:
        return None
    for at in loops:
        if condition.a.same_as(at.loop_var) and constant(at.min) == 0 and _end(branch, at) == end:
            return at.loop_var, end
    return None


def _end(branch: tirx.IfThenElse, at: tirx.For) -> int | None:
    """The end of the blocks that a branch stores along a loop, if it is before that of the loop."""
    extent = constant(at.extent)
    lengths = {
        length
        for store in walk(branch.then_case)
        if isinstance(store, tirx.BufferStore) and is_on_chip(store.buffer)
        for index, length in zip(store.indices, shape_of(store.buffer), strict=True)
        if index.same_as(at.loop_var)
    }
    return min(lengths) if len(lengths) == 1 and extent is not None and min(lengths) < extent else None
