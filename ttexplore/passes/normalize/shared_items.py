"""What a kernel becomes whose work items share elements of a tensor: loops in place of axes of its launch grid, notes
on them, and refusals."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import ir, tirx

from ttexplore.errors import Unsupported
from ttexplore.ir.adapter import for_of, span_of
from ttexplore.ir.build import bind, constant, loop, sequence, statements, variable, with_function_body
from ttexplore.ir.rewrite import Firings, Rule
from ttexplore.notes import Note, note

OWNER = Rule(
    "one owner", "Work items that update the same elements of a tensor run on one core, one after another, in order."
)


def with_grouped_items(
    function: tirx.PrimFunc, loops: list[tirx.For], groups: Sequence[int | None], firings: Firings
) -> tirx.PrimFunc:
    """The kernel with `groups` neighbouring blocks along each axis of its launch grid in a loop of its own; None is the
    whole axis."""
    return with_function_body(function, firings.made(OWNER, loops[0], [_regrouped(loops, groups)]))


def note_on_owner(tensor: str, axis: tirx.For, group: int | None, *, is_certain: bool) -> Note:
    name, count = str(axis.loop_var.name), constant(axis.extent)
    blocks = f"all {axis.extent} blocks" if group in (None, count) else f"groups of {group} blocks"
    return note("owner", tensor=tensor, blocks=blocks, loop=name, access="update" if is_certain else "may update")


def decides(tensor: str, statement: tirx.Stmt) -> Unsupported:
    return Unsupported(
        "L010",
        f"an element of {tensor} is read here on its own, and the kernel writes {tensor}, too",
        hint=f"write to a separate output tensor: other cores may have changed the element of {tensor} or not",
        span=span_of(statement),
    )


def unknown_place(tensor: str, statement: tirx.Stmt) -> Unsupported:
    return Unsupported(
        "L010",
        f"the kernel reads and writes {tensor}, and which elements it uses here is not known before it runs",
        hint="write to a separate output tensor, use places that follow from block and loop indices, or only update "
        f"{tensor}, with T.atomic_add",
        span=span_of(statement),
    )


def _regrouped(loops: list[tirx.For], groups: Sequence[int | None]) -> tirx.Stmt:
    """The launch grid with `groups` neighbouring blocks along each axis in a loop of its own."""
    body = statements(loops[-1].body)
    nested = [statement for statement in body if not isinstance(statement, tirx.AllocBuffer)]
    grid: list[tirx.For] = []
    for grid_loop, group in zip(loops, groups, strict=True):
        count = constant(grid_loop.extent)
        if group is None or group == count:
            nested = [loop(grid_loop.loop_var, grid_loop.extent, nested)]
        elif group > 1:
            assert count is not None
            outer, inner = variable(f"{grid_loop.loop_var.name}_group"), variable(f"{grid_loop.loop_var.name}_turn")
            nested = [loop(inner, group, [bind(grid_loop.loop_var, outer * group + inner), *nested])]
            grid.append(_axis(grid_loop, outer, count // group))
        else:
            grid.append(grid_loop)
    grid = grid or [_axis(loops[0], variable(f"{loops[0].loop_var.name}_group"), 1)]
    grid_nest = sequence([*(statement for statement in body if isinstance(statement, tirx.AllocBuffer)), *nested])
    for grid_loop in reversed(grid):
        grid_nest = for_of(grid_loop.loop_var, grid_loop.min, grid_loop.extent, grid_loop, grid_nest)
    return grid_nest


def _axis(like: tirx.For, named: ir.Var, count: int) -> tirx.For:
    return for_of(named, like.min, tirx.const(count, "int32"), like, like.body)
