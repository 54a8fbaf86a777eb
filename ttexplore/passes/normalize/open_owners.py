"""Owners of elements that work items share, where sizes of tensors are known only when the kernel runs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from tvm import ir, sym, tirx

from ttexplore.errors import Unsupported
from ttexplore.ir.adapter import span_of
from ttexplore.ir.arithmetic.limited import full_extents
from ttexplore.ir.build import attribute, constant, regions, runs, shape_of
from ttexplore.ir.dag import replaced, written_out
from ttexplore.ir.dataflow import is_on_chip
from ttexplore.ir.operations.atomics import ATOMIC
from ttexplore.ir.rewrite import Firings, walk
from ttexplore.notes import Note
from ttexplore.ops import language as tl
from ttexplore.passes.launches.tensor_roles import touched
from ttexplore.passes.normalize.shared_items import decides, note_on_owner, with_grouped_items


@dataclass(frozen=True)
class _TensorUse:
    """A statement that uses a region of a tensor: where it starts along each axis, and how many elements it has. An
    update has a bit for its kind."""

    statement: tirx.Stmt
    lows: list[ir.Expr]
    extents: tuple[int, ...]
    updates: int


def with_owners_of_open_sizes(
    function: tirx.PrimFunc, shared: Collection[str], loops: list[tirx.For], firings: Firings
) -> tuple[tirx.PrimFunc, tuple[Note, ...]]:
    """The kernel with a loop in place of each axis of its launch grid along which work items may share elements of a
    tensor that they update, and a note for each such axis.

    They share none where an axis of the tensor has elements of its own for each of them, whatever the sizes are. Raises
    Unsupported where they may share elements that are not only updated, all in one way.
    """
    uses_of = {name: _uses(function, name) for name in shared}
    together, notes = set[int](), list[Note]()
    for name, tensor_uses in uses_of.items():
        for axis, grid_loop in enumerate(loops):
            if _has_own(grid_loop.loop_var, tensor_uses):
                continue
            first, kinds = tensor_uses[0], {use.updates for use in tensor_uses}
            if len(kinds) > 1 or first.updates & (first.updates - 1) or not first.updates:
                raise Unsupported(
                    "L010",
                    f"the kernel reads and writes {name}, its sizes are known only at run time, and blocks that differ "
                    f"in {grid_loop.loop_var.name} may use the same elements",
                    hint="give the kernel constant sizes: which work items share elements must be known before; or "
                    f"only update {name}, with T.atomic_add",
                    span=span_of(first.statement),
                )
            if axis not in together:
                together.add(axis)
                notes.append(note_on_owner(name, grid_loop, None, is_certain=False))
    if not together:
        return function, ()
    groups = [None if axis in together else 1 for axis in range(len(loops))]
    return with_grouped_items(function, loops, groups, firings), tuple(notes)


def _uses(function: tirx.PrimFunc, name: str) -> list[_TensorUse]:
    tensor_uses: list[_TensorUse] = []
    names: dict[ir.Var, ir.Expr] = {}
    for statement in walk(function.body):
        if isinstance(statement, tirx.Bind):
            names[statement.var] = statement.value
        if isinstance(statement, tirx.For | tirx.IfThenElse) or name not in {
            str(buffer.name) for buffer, _ in touched(statement)
        }:
            continue
        if not runs(statement, tl.COPY):
            raise decides(name, statement)
        source, target = regions(statement)
        for region in (source, target):
            if str(region.source.name) == name and not is_on_chip(region.source):
                block = target if region is source else source
                extents = full_extents(region, shape_of(block.source))
                lows = [written_out(axis_range.min, names) for axis_range in region.region]
                tensor_uses.append(_TensorUse(statement, lows, tuple(extents or ()), attribute(statement, ATOMIC) or 0))
    return tensor_uses


def _has_own(block: ir.Var, tensor_uses: list[_TensorUse]) -> bool:
    """Whether an axis of a tensor has elements that no block uses with another number of its own."""
    analyzer = sym.Analyzer()
    for axis in range(len(tensor_uses[0].lows)):
        strides = {constant(analyzer.simplify(_next(use.lows[axis], block) - use.lows[axis])) for use in tensor_uses}
        stride = strides.pop()
        if strides or stride is None or stride <= 0:
            continue
        rests = [constant(analyzer.simplify(use.lows[axis] - block * stride)) for use in tensor_uses]
        if all(
            use.extents and rest is not None and 0 <= rest <= stride - use.extents[axis]
            for use, rest in zip(tensor_uses, rests, strict=True)
        ):
            return True
    return False


def _next(expression: ir.Expr, block: ir.Var) -> ir.Expr:
    return replaced(expression, lambda node: node + 1 if node.same_as(block) else node)
