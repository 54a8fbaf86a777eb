"""Drop each T.Parallel in which nothing is done."""

from __future__ import annotations

from tvm import tirx

from ttexplore.ir.rewrite import Context, Firings, StatementRule, rewrite, walk


def without_empty_nests(function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
    """The kernel without the T.Parallel nests that hold loops and branches alone: what they held has a condition of
    Python that does not hold, so that it was never part of the kernel.

        for i, j in T.Parallel(32, 32):
            if scaled:  # False         ==>
                a[i, j] = a[i, j] * 2
    """
    return rewrite([_EMPTY], Context(function, firings))


def _dropped(context: Context, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
    if not context.is_nest(statement):
        return None
    return [] if all(isinstance(inner, tirx.For | tirx.IfThenElse) for inner in walk(statement.body)) else None


_EMPTY = StatementRule("empty T.Parallel", "A T.Parallel in which nothing is done is left out.", _dropped)
