"""The pages of a tensor: its grid of tiles or rows, and the page stride of each axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from tvm import ir

from ttexplore.errors import ResourceError
from ttexplore.plan import DATA_FORMATS, TILE_COLUMNS, TILE_ROWS, Accessor, TensorLayout
from ttexplore.target import Target

# Kernels compute offsets in a page in 32 bits.
_MOST_PAGE_BYTES = 1 << 31


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


def check_dram(layouts: Sequence[TensorLayout], target: Target) -> None:
    """Raise ResourceError if the tensors in DRAM do not fit into its banks, over which their pages are dealt out, or if
    a page is too long. So page numbers, and addresses in a bank, fit into 32 bits."""
    used = dict[str, int]()
    for layout in layouts:
        accessor = accessor_of(layout)
        if accessor.page_bytes >= _MOST_PAGE_BYTES:
            raise ResourceError(
                "R013",
                f"a row of {layout.name} is a page of {accessor.page_bytes:,} B; kernels compute with less than "
                f"{_MOST_PAGE_BYTES:,} B",
                hint='keep it in tiles: page="tile"',
            )
        if layout.memory == "dram":
            aligned = -(-accessor.page_bytes // target.dram_alignment_bytes) * target.dram_alignment_bytes
            used[layout.name] = -(-accessor.pages // target.dram_banks) * aligned
    if sum(used.values()) > target.dram_bank_bytes:
        largest = max(used, key=lambda name: used[name])
        raise ResourceError(
            "R013",
            f"the tensors need {sum(used.values()):,} B of each DRAM bank; each of the {target.dram_banks} banks of "
            f"{target.name} has {target.dram_bank_bytes:,} B",
            hint=f"make {largest} smaller, which needs {used[largest]:,} B: give each launch a part of it",
        )
