"""Loops of T.Parallel that go on behind the end of the block that they store, up to which a condition lets them."""

from __future__ import annotations

from tvm import tirx

from ttexplore.ir.operations.cut_loops import cut_to_blocks
from ttexplore.ir.rewrite import Context, Firings, StatementRule, rewrite


def with_cut_loops(function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
    """The kernel with loops that end where the blocks do that they store."""
    return rewrite([_CUT], Context(function, firings))


def _cut(context: Context, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
    cut = cut_to_blocks(statement) if context.is_nest(statement) else None
    return None if cut is None else [cut]


_CUT = StatementRule(
    "loops cut", "A T.Parallel that a condition keeps inside of the block that it stores ends with the block.", _cut
)
