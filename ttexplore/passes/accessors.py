"""The pages of a tensor: its grid of tiles or rows, and the page stride of each axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from tvm import ir

from ttexplore.plan import DATA_FORMATS, TILE_COLUMNS, TILE_ROWS, Accessor, TensorLayout


def accessor_of(layout: TensorLayout) -> Accessor:
    """The accessor of a tensor, before it is bound to arguments."""
    *leading, rows, columns = layout.padded_shape
    if layout.page == "row":
        grid, page_bytes = (*leading, rows, 1), columns * layout.element_bytes
    else:
        grid = (*leading, rows // TILE_ROWS, columns // TILE_COLUMNS)
        page_bytes = DATA_FORMATS[layout.data_format].tile_bytes
    strides, pages = row_major_strides(grid)
    return Accessor(layout.name, grid, strides, page_bytes, pages)


@overload
def row_major_strides(grid: Sequence[int]) -> tuple[tuple[int, ...], int]: ...
@overload
def row_major_strides(grid: Sequence[ir.Expr | int]) -> tuple[tuple[ir.Expr | int, ...], ir.Expr | int]: ...
def row_major_strides(grid: Sequence[ir.Expr | int]) -> tuple[tuple[ir.Expr | int, ...], ir.Expr | int]:
    """The page stride of each axis of a tile grid, and the number of pages; expressions if the grid has any."""
    strides: list[ir.Expr | int] = []
    pages: ir.Expr | int = 1
    for extent in reversed(grid):
        strides.insert(0, pages)
        pages = extent * pages
    return tuple(strides), pages
