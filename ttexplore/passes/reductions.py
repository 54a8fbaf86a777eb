"""Reductions that keep what their target holds, as a reduction and a T.Parallel that joins the two."""

from __future__ import annotations

from typing import Any

from tvm import tirx

from ttexplore.ir.adapter import call
from ttexplore.ir.build import allocation, dtype_of, regions, scope_of, shape_of, variable
from ttexplore.ir.names import unused_name
from ttexplore.ir.reductions import Reduction, reduction_of
from ttexplore.ir.rewrite import Context, Firings, StatementRule, rewrite, walk

_JOINED: dict[str, type[tirx.BinaryOpExpr]] = {"sum": tirx.Add, "max": tirx.Max, "min": tirx.Min}


def with_joined_results(function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
    """The kernel without reductions that keep what their target holds.

        T.reduce_sum(a, s, dim=1, clear=False)  ==>  T.reduce_sum(a, s_part, dim=1)
                                                     for i in T.Parallel(32):
                                                         s[i] = s[i] + s_part[i]

    A tile operation that reduces leaves its result where nothing else is.
    """
    kept = [one for one in walk(function.body) if (found := reduction_of(one)) is not None and not found.clear]
    if not kept:
        return function
    names = {str(one.buffer.name) for one in walk(function.body) if isinstance(one, tirx.AllocBuffer)}
    names |= {str(parameter.name) for parameter in function.params}
    return rewrite(_RULES, _Joins(function, firings, kept, names))


class _Joins(Context):
    """`parts` are the buffers for the results of the reductions, by statement; `allocations` by the target of those."""

    def __init__(self, function: tirx.PrimFunc, firings: Firings, kept: list[tirx.Stmt], names: set[str]) -> None:
        super().__init__(function, firings)
        self.parts: dict[tirx.Stmt, tirx.Buffer] = {}
        self.allocations: dict[tirx.Buffer, list[tirx.Stmt]] = {}
        for statement in kept:
            target = regions(statement)[1].source
            name = unused_name(f"{target.name}_part", names)
            names.add(name)
            made = allocation(name, shape_of(target), dtype_of(target), scope_of(target), target.span)
            self.parts[statement] = made.buffer
            self.allocations.setdefault(target, []).append(made)

    def allocation(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        if not isinstance(statement, tirx.AllocBuffer) or statement.buffer not in self.allocations:
            return None
        return [statement, *self.allocations[statement.buffer]]

    def reduction(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        if statement not in self.parts:
            return None
        reduction = reduction_of(statement)
        assert reduction is not None
        part, (source, target) = self.parts[statement], regions(statement)
        region = tirx.BufferRegion(part, list(target.region))
        attrs = {"kind": reduction.kind, "dim": reduction.dim, "clear": 1}
        value = tirx.Evaluate(call("tl.reduce", [source, region], attrs), statement.span)
        return [value, _joined(target.source, part, reduction)]


def _joined(target: tirx.Buffer, part: tirx.Buffer, reduction: Reduction) -> tirx.Stmt:
    """The nest that joins what a block holds with the result of a reduction."""
    indices = [variable(name) for name, _ in zip("ij", shape_of(target), strict=False)]
    old, new = (tirx.BufferLoad(one, indices) for one in (target, part))
    made: Any = tirx.BufferStore(target, _JOINED[reduction.joining.pool](old, new), indices)
    for index, extent in reversed([*zip(indices, shape_of(target), strict=True)]):
        made = tirx.For(index, tirx.const(0, "int32"), tirx.const(extent, "int32"), tirx.ForKind.PARALLEL, made)
    return made


_RULES = (
    StatementRule("buffer for a result", "The result of a reduction needs a buffer of its own.", _Joins.allocation),
    StatementRule(
        "result joined", "A reduction that keeps what its target holds is joined with it element by element.",
        _Joins.reduction,
    ),
)  # fmt: skip
