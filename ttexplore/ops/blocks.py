"""Operations on whole blocks, before the protocol of circular buffers: moving them by reader and writer, and passing
them to and from the compute kernel. D3 replaces them with operations that have C++."""

from __future__ import annotations

from ttexplore.ops.op import Op, Operand, circular_buffer, integer, page, tensor
from ttexplore.plan import KernelRole

# A tile, or strip, of a block exists if 0 <= low + its offset < end along both axes and the condition holds; without
# guards, all of them exist. Offsets count tiles or, for strips and elements, elements.
_GUARDS = tuple(
    Operand(name, "int", optional=True) for name in ("row_low", "row_end", "column_low", "column_end", "condition")
)
# A block of tiles: the number of tiles along rows and columns, and the pages from one row of tiles to the next.
_TILES = (integer("rows"), integer("columns"), integer("row_stride"))
# A block of strips: the pages from one row of tiles, and from one matrix, to the next, the rows in each matrix, the
# first element and the extent in the matrix, the rows of a strip, and the steps in the buffer from a tile to the next
# one below and to the right.
_STRIPS = tuple(
    map(
        integer,
        (
            "row_stride",
            "matrix_stride",
            "matrix_rows",
            "row",
            "column",
            "rows",
            "columns",
            "unit",
            "row_slots",
            "column_slots",
        ),
    )
)
_LOADS = (tensor("source", "read"), circular_buffer("cb", "write"), page("page", "source"))
_STORES = (circular_buffer("cb"), tensor("target", "write"), page("page", "target"))


def _block(name: str, role: KernelRole, operands: tuple[Operand, ...], note: str = "", *, waits: bool = True) -> Op:
    return Op(name, operands, "", "", "whole block", role=role, note=note, waits=waits)


# Of a block that is moved element by element: what a step along its rows, and along its columns, adds to the page and
# to the row and column in the matrix.
_STEPS = tuple(integer(f"{axis}_{unit}_step") for axis in ("row", "column") for unit in ("page", "row", "column"))
_ELEMENTS = (
    *map(integer, ("row_stride", "row", "column", "rows", "columns")), *_STEPS, integer("row_slots"),
    integer("column_slots"),
)  # fmt: skip


READ_BLOCK = _block(
    "read_block", "reader", (*_LOADS, *_TILES, integer("column_slots"), integer("row_slots"), *_GUARDS)
)  # fmt: skip
READ_STRIPS = _block("read_strips", "reader", (*_LOADS, *_STRIPS, *_GUARDS))
READ_ELEMENTS = _block("read_elements", "reader", (*_LOADS, *_ELEMENTS, *_GUARDS), "element by element")
READ_GATHERED = _block(
    "read_gathered", "reader",
    (
        *_LOADS,
        *map(integer, (
            "row_stride", "row", "column", "rows", "columns", "unit", "row_slots", "column_slots", "row_index",
            "column_index",
        )),
        Operand("condition", "int", optional=True),
    ),
    "places computed from two variables, which are the row and the column in the block",
)  # fmt: skip
REARRANGE = _block(
    "rearrange", "writer",
    (
        circular_buffer("source"), circular_buffer("cb", "write"),
        *map(integer, (
            "row", "column", "source_row_slots", "rows", "columns", "row_slots", "column_slots", "row_index",
            "column_index",
        )),
    ),
    "the places in the source are computed from two variables, which are the row and the column in the block",
)  # fmt: skip
WRITE_BLOCK = _block("write_block", "writer", (*_STORES, *_TILES, *_GUARDS))
WRITE_STRIPS = _block("write_strips", "writer", (*_STORES, *_STRIPS, *_GUARDS))
WRITE_ELEMENTS = _block("write_elements", "writer", (*_STORES, *_ELEMENTS, *_GUARDS), "element by element")
INDEX_BLOCK = _block(
    "index_block", "reader", (circular_buffer("cb", "write"), integer("axis")),
    "a tile of the row (axis 0) or column (axis 1) of each of its elements",
)  # fmt: skip
RECEIVE_BLOCK = _block("receive_block", "compute", (circular_buffer("cb"), integer("count")))
SEND_BLOCK = _block("send_block", "compute", (circular_buffer("cb", "write"), integer("count")))
_CONVERSION = (circular_buffer("source"), circular_buffer("out", "write"))
TILIZE = _block("tilize", "compute", _CONVERSION, "rows to tiles", waits=False)
UNTILIZE = _block("untilize", "compute", _CONVERSION, "tiles to rows", waits=False)

BLOCK_OPS = (
    READ_BLOCK,
    READ_STRIPS,
    READ_ELEMENTS,
    READ_GATHERED,
    REARRANGE,
    WRITE_BLOCK,
    WRITE_STRIPS,
    WRITE_ELEMENTS,
    INDEX_BLOCK,
    RECEIVE_BLOCK,
    SEND_BLOCK,
    TILIZE,
    UNTILIZE,
)
