"""Reductions that keep what their target holds, as a reduction and a T.Parallel that joins the two."""

from __future__ import annotations

from tvm import tirx

from ttexplore.analysis.added_buffers import AddedBuffers
from ttexplore.ir.adapter import call
from ttexplore.ir.build import parallel_nest, regions
from ttexplore.ir.operations.reductions import Reduction, reduction_of
from ttexplore.ir.rewrite import Firings, StatementRule, rewrite, walk
from ttexplore.ops import language as tl


def with_joined_results(function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
    """The kernel without reductions that keep what their target holds.

    A tile operation that reduces leaves its result where nothing else is.
    """
    accumulating = [
        statement
        for statement in walk(function.body)
        if (reduction := reduction_of(statement)) is not None and not reduction.clear
    ]
    if not accumulating:
        return function
    return rewrite(_RULES, _Joins(function, firings, accumulating))


class _Joins(AddedBuffers):
    """`parts` are the buffers for the results of the reductions, by statement."""

    def __init__(self, function: tirx.PrimFunc, firings: Firings, accumulating: list[tirx.Stmt]) -> None:
        super().__init__(function, firings)
        targets = {statement: regions(statement)[1].source for statement in accumulating}
        self.parts = {statement: self.like(target, f"{target.name}_part") for statement, target in targets.items()}

    def reduction(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        if statement not in self.parts:
            return None
        reduction = reduction_of(statement)
        assert reduction is not None
        partial, (source, target) = self.parts[statement], regions(statement)
        region = tirx.BufferRegion(partial, list(target.region))
        attrs = {"kind": reduction.kind, "dim": reduction.dim, "clear": 1}
        value = tirx.Evaluate(call(tl.REDUCE.name, [source, region], attrs), statement.span)
        return [value, _joined(target.source, partial, reduction)]


def _joined(target: tirx.Buffer, partial: tirx.Buffer, reduction: Reduction) -> tirx.Stmt:
    """The nest that joins what a block holds with the result of a reduction."""
    joined = reduction.joining.expression
    return parallel_nest(target, lambda at: joined(tirx.BufferLoad(target, at), tirx.BufferLoad(partial, at)))


_RULES = (
    StatementRule("buffer for a result", "The result of a reduction needs a buffer of its own.", _Joins.allocation),
    StatementRule(
        "result joined", "A reduction that keeps what its target holds is joined with it element by element.",
        _Joins.reduction,
    ),
)  # fmt: skip
