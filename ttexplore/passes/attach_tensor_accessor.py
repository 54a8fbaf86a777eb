"""A3: how the pages of each tensor are addressed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ttexplore.ir.program import Program
from ttexplore.plan import DATA_FORMATS, TILE_COLUMNS, TILE_ROWS, Accessor, TensorLayout
from ttexplore.target import Target


def attach_tensor_accessor(program: Program, target: Target) -> Program:
    """Decide the tile grid and the page strides of each tensor.

        C: (2, 1024, 512)
    ==> tile grid (2, 32, 16), page of tile (b, r, c) = b * 512 + r * 16 + c

    Of a row-major tensor each row is a page.
    """
    return program.with_plan(accessors=tuple(accessor_of(layout) for layout in program.plan.layouts))


def accessor_of(layout: TensorLayout) -> Accessor:
    """The accessor of a tensor, not yet bound to arguments."""
    *leading, rows, columns = layout.padded_shape
    if layout.page == "row":
        grid, page_bytes = (*leading, rows, 1), columns * layout.element_bytes
    else:
        grid = (*leading, rows // TILE_ROWS, columns // TILE_COLUMNS)
        page_bytes = DATA_FORMATS[layout.data_format].tile_bytes
    strides, pages = row_major_strides(grid)
    return Accessor(layout.name, grid, strides, page_bytes, pages)


def row_major_strides(grid: Sequence[Any]) -> tuple[tuple[Any, ...], Any]:
    """The pages to step along each axis of a tile grid, and all its pages: expressions where the grid has some."""
    strides: list[Any] = []
    pages: Any = 1
    for extent in reversed(grid):
        strides.insert(0, pages)
        pages = extent * pages
    return tuple(strides), pages
