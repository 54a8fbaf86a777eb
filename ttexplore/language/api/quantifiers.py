"""Whether any element of a block is true, or all are: ``T.any_of`` and ``T.all_of``."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence

from tvm import ir, tirx

from ttexplore.ir.dataflow import is_on_chip
from ttexplore.ir.operations.quantified import Quantified
from ttexplore.language.api.tile import as_region, extents
from ttexplore.language.tracer.builder import AllocationRequest, Builder, condition, current, unsupported
from ttexplore.language.tracer.spans import caller_span

# What larger blocks hold is one number, which the reader makes.
_FEW = 8
# In a T.Parallel each element is a block of its own.
_MOST_IN_PARALLEL = 64


def any_of(block: object) -> ir.Expr:
    """Whether at least one element of a block is true: not 0. The block is a tensor, a buffer or a region of one."""
    return _joined("T.any_of", block, is_any=True)


def all_of(block: object) -> ir.Expr:
    """Whether all elements of a block are true: not 0. The block is a tensor, a buffer or a region of one."""
    return _joined("T.all_of", block, is_any=False)


def _joined(callee: str, block: object, *, is_any: bool) -> ir.Expr:
    builder, region = current(callee), as_region(block, callee)
    lengths, starts = extents(region), [axis_range.min for axis_range in region.region]
    builder.span = caller_span(builder.files)
    if builder.is_in_parallel and math.prod(lengths) > _FEW:
        return _tested(builder, callee, region, lengths, is_any=is_any)
    if math.prod(lengths) > _FEW:
        return condition(_number(builder, callee, region, is_any=is_any))
    join = tirx.Or if is_any else tirx.And
    positions = itertools.product(*map(range, lengths))
    elements = [builder.read(region.source, _places(starts, position)) for position in positions]
    return functools.reduce(join, map(condition, elements))


def _number(builder: Builder, callee: str, region: ir.TensorRegion, *, is_any: bool) -> ir.Expr:
    """A name for the number that says it. Raises Unsupported for elements of a view that are no block of its base."""
    base = builder.views.of_base(region)
    if base is None:
        raise unsupported(
            f"{callee} of {math.prod(extents(region)):,} elements of {region.source.name}, a view, that are no block "
            f"of "
            f"its {'memory' if is_on_chip(region.source) else 'tensor'},",
            f"ask in its own shape, or for at most {_FEW} elements at a time",
        )
    first = builder.read(base.source, tuple(axis_range.min for axis_range in base.region))
    number = Quantified(first, tuple(extents(base)), of_all=not is_any).expression()
    name = builder.bind(builder.unused(f"{region.source.name}_{'any' if is_any else 'all'}"), number)
    assert isinstance(name, ir.Expr)
    return name


def _tested(
    builder: Builder, callee: str, region: ir.TensorRegion, lengths: list[int], *, is_any: bool
) -> ir.Expr:  # fmt: skip
    """A variable that a loop over the elements sets where one decides the answer, in a turn of a T.Parallel. Raises
    Unsupported for too many elements."""
    if math.prod(lengths) > _MOST_IN_PARALLEL:
        raise unsupported(
            f"{callee} of {math.prod(lengths):,} elements in a T.Parallel, more than {_MOST_IN_PARALLEL},",
            "ask before the T.Parallel if all iterations ask the same; or reduce rows: T.reduce_max(m, r, dim=1)",
        )
    name = f"{region.source.name}_{'any' if is_any else 'all'}"
    answer = AllocationRequest((1,), "int32", "local.var", 0 if is_any else 1).make(builder, name)
    span = builder.tvm_span()
    variables = [tirx.Var(f"{name}_{axis}", "int32", span) for axis in range(len(lengths))]

    def nest(body: tirx.Stmt) -> tirx.Stmt:
        for variable, length in reversed([*zip(variables, lengths, strict=True)]):
            low, extent = (tirx.const(number, "int32") for number in (0, length))
            body = tirx.For(variable, low, extent, tirx.ForKind.SERIAL, body, None, {}, None, span)
        return body

    with builder.frame(nest):
        builder.reads.enter_loop()
        test = condition(
            builder.read(region.source, _places([axis_range.min for axis_range in region.region], variables))
        )
        decides = test if is_any else tirx.Not(test)
        with builder.frame(lambda body: tirx.IfThenElse(decides, body, None, span)):
            builder.store(answer, (0,), 1 if is_any else 0)
        builder.reads.leave_loop()
    return condition(builder.read(answer, (0,)))


def _places(starts: list[ir.Expr], steps: Sequence[int | ir.Expr]) -> tuple[ir.Expr, ...]:
    return tuple(low + step for low, step in zip(starts, steps, strict=True))
