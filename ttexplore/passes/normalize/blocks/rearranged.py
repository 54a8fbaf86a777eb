"""Blocks that hold the elements of other blocks at computed places: the writer copies them one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm import ir, sym, tirx

from ttexplore.errors import KernelError
from ttexplore.ir.adapter import call
from ttexplore.ir.arithmetic.bounds import Bounds
from ttexplore.ir.build import loop, shape_of, variable, whole_region
from ttexplore.ops import language as tl
from ttexplore.record import Span

# The indices of an element of the source, for the indices of an element of the block that is made.
Places = Callable[[Sequence[ir.Expr]], Sequence[ir.Expr]]


def rearranged(
    source: tirx.Buffer, target: tirx.Buffer, source_indices: Places, bounds: Bounds, span: Span | None
) -> tirx.Stmt:  # fmt: skip
    """The statement that fills a block of one or two dimensions with elements of another one.

    Raises KernelError, at `span`, for places that are not known to be inside of the source.
    """
    shape = shape_of(target)
    loop_vars = [variable(name) for name in ("row", "column")]
    for loop_var, extent in zip(loop_vars, (1, *shape)[-2:], strict=True):
        bounds.counts(loop(loop_var, extent, []))
    indices = [bounds.ranges.simplify(index) for index in source_indices(loop_vars[2 - len(shape) :])]
    for axis, (index, length) in enumerate(zip(indices, shape_of(source), strict=True)):
        if not (bounds.proves(index >= 0) and bounds.proves(index < length)):
            raise KernelError(
                "K001",
                f"{source.name} has {length} elements along axis {axis}, and {index} may be outside",
                hint="limit the index: T.max(index, 0), T.min(index, length - 1)",
                span=span,
            )
    return tirx.Evaluate(call(tl.GATHER.name, [whole_region(source), whole_region(target), *loop_vars, *indices]))


def nearest(index: ir.Expr, start: ir.Expr, length: int, factor: int = 1) -> ir.Expr:
    """How many steps of `factor` an index is from a start, or the nearest number of steps that a block of a length has.
    What is subtracted is never more than there is."""
    away = tirx.Max(index, start) - start if factor > 0 else start - tirx.Min(index, start)
    steps = tirx.floordiv(away, tirx.const(abs(factor), "int32"))
    return sym.Analyzer().simplify(tirx.Min(steps, tirx.const(length - 1, "int32")))
