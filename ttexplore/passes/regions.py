"""Regions of tensors as pages: whole tiles inside the tensor, or an error at the kernel's line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tvm
from tvm import ir, tirx

from ttexplore.errors import KernelError, Unsupported
from ttexplore.ir.build import constant, shape_of
from ttexplore.ir.dataflow import is_on_chip
from ttexplore.plan import TILE_COLUMNS, TILE_ROWS, Accessor


class Bounds:
    """What is known about the variables around a statement.

    `ranges` knows the loops, `proofs` also what the kernel's own variables stand for; page expressions are simplified
    with the first alone, so that they speak of the kernel's variables.
    """

    def __init__(self) -> None:
        self.ranges = tvm.sym.Analyzer()
        self.proofs = tvm.sym.Analyzer()

    def enter(self, statement: Any) -> None:
        """Learn from a loop or a binding that the following statements are under."""
        if isinstance(statement, tirx.For):
            if constant(statement.extent) is not None:
                span = ir.Range.from_min_extent(statement.min, statement.extent)
                self.ranges.bind(statement.loop_var, span, True)
                self.proofs.bind(statement.loop_var, span, True)
        elif isinstance(statement, tirx.Bind):
            self.proofs.bind(statement.var, statement.value, True)


@dataclass(frozen=True)
class PageRegion:
    """A block of tiles of a tensor: the first page, rows and columns of tiles, pages from one tile row to the next."""

    first_page: Any
    rows: int
    columns: int
    row_stride_pages: int


def page_region(region: Any, accessor: Accessor, bounds: Bounds, *, inside: bool = False) -> PageRegion:
    """The pages of a region of a tensor; `inside` says that it is known to lie inside.

    Raises KernelError where it can leave the tensor, Unsupported where it is no whole tiles.
    """
    tensor, shape = region.source, shape_of(region.source)
    parts = list(region.region)
    tiles = (TILE_ROWS, TILE_COLUMNS)[-min(len(shape), 2) :]
    leading = len(parts) - len(tiles)
    lows, extents = [part.min for part in parts], [constant(part.extent) for part in parts]
    page: Any = tirx.const(0, "int32")
    for axis, (low, extent, length) in enumerate(zip(lows, extents, shape, strict=True)):
        if extent is None:
            raise Unsupported(f"{tensor.name}: a region of variable size", hint="use constant block sizes")
        if not inside:
            _check_inside(tensor, axis, low, extent, length, bounds)
        if axis < leading:
            if extent != 1:
                raise Unsupported(
                    f"{tensor.name}: a block of {extent} along axis {axis}",
                    hint="take one index along leading axes; blocks are the last two",
                )
            page = page + low * accessor.page_strides[axis]
            continue
        tile = tiles[axis - leading]
        if extent % tile or not bounds.proofs.can_prove(tirx.floormod(low, tile) == 0):
            raise Unsupported(
                f"{tensor.name}: the region from {low} of length {extent} along axis {axis} "
                f"is no whole tiles of {tile}",
                hint=f"start at multiples of {tile} and take multiples of {tile}",
            )
        stride = accessor.page_strides[axis if len(shape) > 1 else 1]
        page = page + tirx.floordiv(low, tile) * stride
    sizes = [int(extent or 0) // tile for extent, tile in zip(extents[leading:], tiles, strict=True)]
    rows, columns = sizes if len(sizes) == 2 else (1, sizes[0])
    return PageRegion(bounds.ranges.simplify(page), rows, columns, accessor.page_strides[-2])


def _check_inside(tensor: Any, axis: int, low: Any, extent: int, length: int, bounds: Bounds) -> None:
    known = bounds.proofs.const_int_bound(low)
    if known.min_value < 0 or known.max_value + extent > length:
        raise KernelError(
            f"{tensor.name} has {length} elements along axis {axis}; the region reaches from {known.min_value} "
            f"to {known.max_value + extent}",
            hint=f"make {length} a multiple of the block size, or check the block indices",
        )


def check_on_chip(region: Any) -> None:
    """Raise Unsupported for a part of an on-chip buffer."""
    if is_on_chip(region.source):
        extents = tuple(constant(part.extent) for part in region.region)
        if extents != shape_of(region.source):
            raise Unsupported(
                f"{region.source.name} is {shape_of(region.source)}; the operation takes {extents} of it",
                hint="use whole on-chip buffers: allocate one for each block",
            )
