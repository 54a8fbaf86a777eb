"""Updates of a tensor where elements of another one say, in each turn of a T.Parallel: one turn after another."""

from __future__ import annotations

from tvm import tirx

from ttexplore.ir.operations.scattered import turn_by_turn
from ttexplore.ir.rewrite import Context, Firings, StatementRule, rewrite


def with_scattered_updates(function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
    """The kernel with a loop in place of the axes of a T.Parallel along which elements say what is updated.

    Elements may say the same in several turns: updates of one kind may run in any order, also one after another.
    """
    return rewrite([_SCATTERED], Context(function, firings))


def _scattered(context: Context, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
    return turn_by_turn(statement) if context.is_nest(statement) else None


_SCATTERED = StatementRule(
    "scattered updates", "Updates at elements that an index tensor chooses run one after another.", _scattered
)
