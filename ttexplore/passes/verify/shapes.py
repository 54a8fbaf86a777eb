"""Check that what is copied between tensors and blocks has the shape of the block, from the first pass to D2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tvm import tirx

from ttexplore.errors import VerifyError
from ttexplore.ir.adapter import span_of
from ttexplore.ir.arithmetic.limited import full_extents
from ttexplore.ir.arithmetic.sizes import constant_extents
from ttexplore.ir.build import attribute, buffer_of, number_of, op_name, operands, regions, scope_of, shape_of
from ttexplore.ir.dataflow import is_on_chip
from ttexplore.ir.operations.copies import is_block_of
from ttexplore.ir.operations.storage import tile_grid
from ttexplore.ir.rewrite import walk
from ttexplore.ops import language as tl
from ttexplore.ops.blocks import READ_BLOCK, READ_ELEMENTS, READ_STRIPS, WRITE_BLOCK, WRITE_ELEMENTS, WRITE_STRIPS
from ttexplore.ops.op import CB_SCOPE

# The operations that move whole blocks between tensors and circular buffers.
MOVES = frozenset(
    op.ir_name for op in (READ_BLOCK, READ_STRIPS, READ_ELEMENTS, WRITE_BLOCK, WRITE_STRIPS, WRITE_ELEMENTS)
)


def check_shapes(function: tirx.PrimFunc, shapes: Mapping[str, tuple[int, ...]]) -> Mapping[str, tuple[int, ...]]:
    """Check the shapes of all copies. `shapes` are those of circular buffers, in elements; return them with those that
    the function allocates. Raises VerifyError."""
    all_shapes = dict(shapes)
    for statement in walk(function.body):
        name = op_name(statement)
        if type(statement) is tirx.AllocBuffer:
            # From C2 on, a circular buffer is allocated by its pages.
            if scope_of(statement.buffer) == CB_SCOPE and len(shape_of(statement.buffer)) < 3:
                all_shapes[str(statement.buffer.name)] = shape_of(statement.buffer)
        elif name == tl.COPY.name and not attribute(statement, "transpose"):
            _check_copy(statement)
        elif name in MOVES:
            _check_move(statement, all_shapes)
    return all_shapes


def _check_copy(statement: tirx.Stmt) -> None:
    source, target = regions(statement)
    region, block = (source, target) if is_on_chip(target.source) else (target, source)
    extents = constant_extents(block)
    # Of a limited store, as many elements along an axis as the block has, or fewer.
    moved = full_extents(region, tuple(extents))
    # Before blocks are matrices, axes of one element do not count.
    if moved is None or not (is_block_of(moved, extents) or _long(moved) == _long(extents)):
        shown = ", ".join(str(interval.extent) for interval in region.region)
        raise VerifyError(
            "V036",
            f"a copy moves ({shown}) elements of {region.source.name}, but {tuple(extents)} of {block.source.name}",
            hint="copy a region with the rows and columns of the block",
            span=span_of(statement),
        )


def _long(extents: Sequence[int]) -> list[int]:
    return [extent for extent in extents if extent != 1]


def _check_move(statement: tirx.Stmt, shapes: Mapping[str, tuple[int, ...]]) -> None:
    operand_values = operands(statement)
    cb = str(buffer_of(operand_values["cb"]).name)
    if cb not in shapes:
        # A step that is verified by itself.
        return
    moved = tuple(number_of(operand_values[axis]) for axis in ("rows", "columns"))
    shape = (1, *shapes[cb])[-2:]
    name = op_name(statement)[3:]
    unit, expected = ("tiles", tile_grid(shape)) if name.endswith("_block") else ("elements", shape)
    if moved != expected:
        raise VerifyError(
            "V036",
            f"{name} moves {moved} {unit} of {cb}, which holds {expected}",
            hint="move all rows and columns of the block",
            span=span_of(statement),
        )
