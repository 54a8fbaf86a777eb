"""Regions of tensors as pages: whole tiles, or strips of tile faces, or an error at the kernel's line.

A block is moved tile by tile if it starts on a tile boundary and its last tiles hold no other elements of the tensor.
Otherwise it is moved in *strips*: 1 to 16 rows of 16 columns that are contiguous in one face of a tile. The part of a
tile that a block does not cover is zero after a load, and is never stored. In a row-major tensor, whose pages are rows,
a strip is one row of at most 16 columns, which reader and writer copy to or from a face. Where the compute kernel
converts rows to tiles, a strip is a row of the block, or a part of a row that is some tiles wide. What neither of them
expresses is moved element by element: columns, single elements, blocks that start anywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import tvm
from tvm import ir, tirx

from ttexplore.analysis.accessors import row_major_strides
from ttexplore.errors import Unsupported
from ttexplore.ir.adapter import elements, to_expr
from ttexplore.ir.arithmetic.bounds import MAX_SIZE, Bounds
from ttexplore.ir.arithmetic.limited import full_extents, is_limited
from ttexplore.ir.arithmetic.sizes import extents_of, variable_size
from ttexplore.ir.build import constant, loop, op, regions, shape_of
from ttexplore.ir.dag import parts_of, same_expression, uses, with_parts
from ttexplore.ir.operations.gathers import gathered_block, places_of
from ttexplore.ir.operations.storage import tile_grid
from ttexplore.plan import BLOCK_FLOAT, FACE, TILE_COLUMNS, TILE_ROWS, Accessor, TensorLayout

# The first of some tiles or elements, and where they end.
Guard = tuple[ir.Expr | int, ir.Expr | int]


@dataclass(frozen=True)
class Axis:
    """A block along one axis of a tensor: its first element, its extent, and the tensor's length along the axis, which
    is an expression for a T.dynamic size. `stored` is how many of the first elements are stored, if not all are."""

    number: int
    low: ir.Expr
    extent: int
    length: ir.Expr | int
    stored: ir.Expr | None = None

    def guard(self, *, inside: bool) -> Guard:
        """The guard of what moves; `inside` says that the whole block lies in the tensor."""
        if self.stored is None:
            return (0, self.extent) if inside else (self.low, self.length)
        end = self.low + self.stored
        return self.low, end if inside else tirx.Min(end, to_expr(self.length))


@dataclass(frozen=True)
class BlockRegion:
    """A block of a tensor and how it is moved.

    If `unit` is 0, it is moved in tiles: `rows` x `columns` tiles, starting at `first_page`, with `row_stride_pages`
    between rows of tiles. Otherwise it is moved in strips of `unit` rows: `rows` x `columns` elements, starting at
    (`row`, `column`) of the matrix whose tiles start at `first_page`. If the rows of the block lie in several matrices,
    `matrix_rows` in each, `matrix_stride_pages` separates these matrices, otherwise it is 0.

    `guards` are a start and an end, for rows and for columns, in tiles, or in elements for strips: a tile or strip
    exists if 0 <= start + its offset < end. `condition` is false if no part of the block exists. `zero_rows` and
    `zero_columns` say that a load leaves zeros below and to the right of the block in its own tiles. If there are
    `steps`, the block is moved element by element: they say what a step along its rows, and along its columns, adds to
    the page and to the row and column in the matrix. If there are `places`, it is moved in runs of `unit` elements:
    page, row and column are computed from these two variables, the row and the column in the block.
    """

    first_page: ir.Expr
    rows: int
    columns: int
    row_stride_pages: ir.Expr | int
    guards: tuple[Guard, Guard] | None
    condition: ir.Expr | None
    unit: int = 0
    row: ir.Expr | int = 0
    column: ir.Expr | int = 0
    matrix_stride_pages: ir.Expr | int = 0
    matrix_rows: int = 1
    zero_rows: bool = True
    zero_columns: bool = True
    steps: tuple[ir.Expr | int, ...] = ()
    places: tuple[ir.Var, ir.Var] | None = None

    @property
    def tile_grid(self) -> tuple[int, int]:
        """The rows and columns of tiles that the block occupies on chip."""
        if not self.unit and not self.steps:
            return self.rows, self.columns
        return -(-self.rows // TILE_ROWS), -(-self.columns // TILE_COLUMNS)

    @property
    def guard_arguments(self) -> list[ir.Expr | int]:
        """The guards as trailing arguments of the operation that moves the block; empty if the whole block exists."""
        if self.guards is None and self.condition is None:
            return []
        rows, columns = self.guards or ((0, self.rows), (0, self.columns))
        return [*rows, *columns, *([] if self.condition is None else [self.condition])]


def block_region(
    region: ir.TensorRegion, block: tuple[int, ...], layout: TensorLayout, accessor: Accessor, bounds: Bounds,
    alignment_bytes: int, *, write: bool = False,
) -> BlockRegion:  # fmt: skip
    """How a region of a tensor is moved into an on-chip buffer of shape `block`, or out of it if `write`.

    `alignment_bytes` is the alignment of reads from the tensor's memory. Raises Unsupported for a region that neither
    tiles nor strips nor single elements express.
    """
    tensor = region.source
    by_rows = layout.page == "row"
    strides = page_strides(tensor, accessor, by_rows)
    # Exponents of block floats are shared, so that they have no single elements.
    longs = sum(constant(interval.extent) != 1 for interval in region.region)
    outer_strides = [
        stride for stride, interval in zip(strides[:-2], region.region, strict=False) if constant(interval.extent) != 1
    ]
    by_elements = (
        layout.data_format != BLOCK_FLOAT
        and longs <= max(1, sum(extent != 1 for extent in block))
        and all(isinstance(stride, int) for stride in outer_strides)
    )
    axes: list[Axis] = []
    extents = full_extents(region, block)
    if extents is None or (not write and is_limited(region)):
        raise variable_size(tensor)
    for number, (interval, length, extent) in enumerate(zip(region.region, extents_of(tensor), extents, strict=True)):
        axes.append(
            Axis(
                number, interval.min, extent, length, None if constant(interval.extent) is not None else interval.extent
            )
        )
    try:
        rows, columns, outer, matrix = _matrix_axes(axes, block, f"{tensor.name}")
    except Unsupported:
        if by_elements:
            return _elements(axes, block, strides, bounds, by_rows)
        raise
    page: ir.Expr = tirx.const(0, "int32")
    condition: ir.Expr | None = None
    for axis in outer:
        page = page + axis.low * strides[axis.number]
        if axis is not matrix:
            condition = _where_inside(axis, condition, bounds)
    # Rows of several matrices, which all of their rows are: the block has them one below the other.
    folded = 1 if matrix is None else math.prod(axis.extent for axis in axes[axes.index(matrix) + 1 : -1])
    limited = is_limited(region)
    if matrix is not None and folded > 1 and limited:
        raise Unsupported(
            "L006",
            f"{tensor.name}: the first of several matrices, as many as are known when the kernel runs",
            hint="store whole blocks",
        )
    stride = strides[-2]
    on_tiles = (
        not by_rows
        and not limited
        and matrix is None
        and _on_tile(rows, TILE_ROWS, bounds)
        and _on_tile(columns, TILE_COLUMNS, bounds)
    )
    filled = (_fills(rows, TILE_ROWS, bounds), _fills(columns, TILE_COLUMNS, bounds))
    if not write and layout.role == "inout":
        # What the kernel has stored into the padding is not read as zeros.
        on_tiles = on_tiles and _holds_tiles(rows, TILE_ROWS, bounds) and _holds_tiles(columns, TILE_COLUMNS, bounds)
    if on_tiles and all(filled):
        return _tiles(rows, columns, page, stride, condition, bounds, filled)
    # Writes need agreement in 16 bytes, in any memory.
    alignment = 16 if write else alignment_bytes
    unit = 1 if by_rows else _folded_unit(rows.extent) if folded > 1 else _unit(rows, matrix, bounds)
    problem = _no_strips(rows, columns, matrix, layout, unit, alignment, bounds)
    if problem and by_elements and (write or not on_tiles):
        return _elements(axes, block, strides, bounds, by_rows)
    if problem and (write or not on_tiles):
        where = ", ".join(f"{axis.low}:{_plus(axis.low, axis.extent)}" for axis in axes)
        raise Unsupported(
            "L006",
            f"{tensor.name}[{where}] {'cannot be stored' if write else 'cannot be loaded'}: {problem[0]}",
            hint=problem[1],
        )
    if problem:
        return _tiles(rows, columns, page, stride, condition, bounds, filled)
    return _strips(rows, columns, matrix, folded, page, strides, condition, unit, bounds, by_rows)


def _elements(
    axes: list[Axis], block: tuple[int, ...], strides: tuple[ir.Expr | int, ...], bounds: Bounds, by_rows: bool
) -> BlockRegion:
    """A block whose elements lie anywhere: each axis of the block runs along some axis of the tensor."""
    extents = block if len(block) == 2 else (1, *block)
    long = [axis for axis in axes if axis.extent != 1]
    along = (
        long[0] if extents[0] != 1 and long else None,
        long[-1] if extents[1] != 1 and long else None,
    )
    # A tensor of one axis is one row. Where pages are rows, the axis of rows is one that leads to another page.
    row = axes[-2] if len(axes) > 1 and not by_rows else Axis(-1, tirx.const(0, "int32"), 1, 1)
    page: ir.Expr = tirx.const(0, "int32")
    condition: ir.Expr | None = None
    steps: list[ir.Expr | int] = []
    for axis in axes:
        if axis is not row and axis is not axes[-1]:
            page = page + axis.low * strides[axis.number]
        if axis not in along:
            condition = _where_inside(axis, condition, bounds)
    guards: list[Guard] = []
    for axis, extent in zip(along, extents, strict=True):
        if axis is None:
            steps += [0, 0, 0]
            guards.append((0, extent))
            continue
        outer = axis is not row and axis is not axes[-1]
        steps += [strides[axis.number] if outer else 0, int(axis is row), int(axis is axes[-1])]
        inside = bounds.proves(axis.low + axis.extent <= axis.length) and _has_start(axis, bounds)
        guards.append(axis.guard(inside=inside))
    return BlockRegion(
        bounds.ranges.simplify(page), extents[0], extents[1], strides[-2] if len(strides) > 1 else 1, _guards(guards),
        condition, row=row.low, column=axes[-1].low, steps=tuple(steps),
    )  # fmt: skip


def gathered_region(
    statement: tirx.Stmt, layout: TensorLayout, accessor: Accessor, bounds: Bounds, alignment_bytes: int
) -> BlockRegion:
    """How a block moves whose elements lie at computed places: in runs of 16 that are one below the other in faces, or
    one by one. Raises Unsupported for tensors in which the reader finds no single elements."""
    tensor, block = regions(statement)[0].source, gathered_block(statement)
    if layout.data_format == BLOCK_FLOAT or layout.page == "row":
        raise Unsupported(
            "L006",
            f"{tensor.name} is read at computed places, and it is not kept in tiles of whole elements",
            hint='keep it in tiles: page="tile", without Bfp8_b',
        )
    if layout.role == "inout":
        raise Unsupported(
            "L006",
            f"{tensor.name} is read at computed places, and the kernel stores to it",
            hint="T.copy blocks of it, or store to another tensor",
        )
    strides = page_strides(tensor, accessor, False)
    indices = places_of(statement)
    for variable, extent in zip(block.variables, block.shape, strict=True):
        bounds.counts(loop(variable, extent, []))
    condition: ir.Expr | None = None
    for index, length in zip(indices, extents_of(tensor), strict=True):
        for inside in (index >= 0, index < length):
            if not bounds.proves(inside):
                condition = inside if condition is None else tirx.And(condition, inside)
    page: ir.Expr = tirx.const(0, "int32")
    for index, stride in zip(indices[:-2], strides, strict=False):
        page = page + index * stride
    in_runs = (
        FACE * layout.element_bytes % alignment_bytes == 0
        and block.shape[1] % FACE == 0
        and _are_runs(indices, block.variables[1], bounds)
    )
    row = indices[-2] if len(indices) > 1 else tirx.const(0, "int32")
    return BlockRegion(
        page, *block.shape, strides[-2] if len(strides) > 1 else 1, None, condition, unit=FACE if in_runs else 1,
        row=row, column=indices[-1], places=block.variables,
    )  # fmt: skip


def _are_runs(indices: list[ir.Expr], column: ir.Var, bounds: Bounds) -> bool:
    """Whether 16 columns from a multiple of 16 on are neighbours in one face of a tile."""
    analyzer, inside = tvm.sym.Analyzer(), tirx.Var("inside", "int32")
    analyzer.bind(inside, ir.Range.from_min_extent(tirx.const(0, "int32"), tirx.const(FACE, "int32")))
    faces: list[tuple[ir.Expr, ir.Var]] = []

    def face(rest: ir.Expr) -> ir.Var:
        """A variable for the number of faces before a column."""
        for start, variable in faces:
            if same_expression(start, rest):
                return variable
        variable = tirx.Var("faces", "int32")
        analyzer.bind(variable, ir.Range.from_min_extent(tirx.const(0, "int32"), tirx.const(MAX_SIZE, "int32")))
        faces.append((rest, variable))
        return variable

    def placed(e: ir.Expr, within: ir.Expr) -> ir.Expr:
        if not uses(e, column):
            return e
        if isinstance(e, ir.Var | tirx.Add):
            rest = analyzer.simplify(e - column)
            if not uses(rest, column) and (bounds.is_multiple(rest, FACE) and bounds.proves(rest >= 0)):
                return face(rest) * FACE + within
        return e if isinstance(e, ir.Var) else with_parts(e, [placed(child, within) for child in parts_of(e)])

    zero = tirx.const(0, "int32")
    for axis, index in enumerate(indices):
        is_last = axis == len(indices) - 1
        here, first = placed(index, inside), placed(index, zero)
        if not analyzer.can_prove(tirx.EQ(here, first + inside if is_last else first)):
            return False
    return bool(analyzer.can_prove(tirx.EQ(tirx.floormod(placed(indices[-1], zero), FACE), zero)))


def page_strides(tensor: tirx.Buffer, accessor: Accessor, by_rows: bool) -> tuple[ir.Expr | int, ...]:
    """The page stride along each axis of a tensor's grid of tiles or rows: numbers, or expressions of its T.dynamic
    sizes."""
    shape = extents_of(tensor)
    if all(isinstance(extent, int) for extent in shape):
        return accessor.page_strides
    *leading, rows, columns = shape if len(shape) > 1 else [1, *shape]
    matrix = (rows, 1) if by_rows else (_tiles_along(rows, TILE_ROWS), _tiles_along(columns, TILE_COLUMNS))
    return row_major_strides((*leading, *matrix))[0]


def place_of(load: ir.TensorLoad, layout: TensorLayout, accessor: Accessor, bounds: Bounds) -> tuple[ir.Expr, ir.Expr]:
    """The page of an element of a tensor, and its offset in that, in bytes. Raises Unsupported for a layout in which
    no element has bytes of its own."""
    tensor = load.source
    if layout.data_format == BLOCK_FLOAT:
        raise Unsupported(
            "L013",
            f"an element of {tensor.name} is read by itself, but {BLOCK_FLOAT} stores exponents apart",
            hint="omit the tensor's dtype in its layout",
        )
    indices = list(load.indices)
    zero = tirx.const(0, "int32")
    *outer, row, column = [zero, *indices] if len(indices) == 1 else indices
    strides = page_strides(tensor, accessor, layout.page == "row")
    page: ir.Expr = zero
    for index, stride in zip(outer, strides, strict=False):
        page = page + index * stride
    if layout.page == "row":
        page, offset = page + row * (strides[-2] if len(strides) > 1 else 1), column * layout.element_bytes
    else:
        row_tile, column_tile = tirx.floordiv(row, TILE_ROWS), tirx.floordiv(column, TILE_COLUMNS)
        page = page + row_tile * (strides[-2] if len(strides) > 1 else 1) + column_tile
        offset = byte_in_tile(row, column, layout.element_bytes)
    return bounds.ranges.simplify(page), bounds.ranges.simplify(offset)


def byte_in_tile(row: ir.Expr, column: ir.Expr, element_bytes: int) -> ir.Expr:
    """The byte offset of an element in a tile of four faces."""
    row, column = tirx.floormod(row, TILE_ROWS), tirx.floormod(column, TILE_COLUMNS)
    face = tirx.floordiv(row, FACE) * 2 + tirx.floordiv(column, FACE)
    return ((face * FACE + tirx.floormod(row, FACE)) * FACE + tirx.floormod(column, FACE)) * element_bytes


def _tiles_along(length: ir.Expr | int, tile: int) -> ir.Expr | int:
    return -(-length // tile) if isinstance(length, int) else tirx.floordiv(length + (tile - 1), tile)


def _plus(low: ir.Expr, extent: int) -> ir.Expr:
    return tvm.sym.Analyzer().simplify(low + extent)


def _matrix_axes(axes: list[Axis], block: tuple[int, ...], name: str) -> tuple[Axis, Axis, list[Axis], Axis | None]:
    """The row axis and the column axis of the tensor's matrices, the axes before them, and the one among these along
    which the rows of the block lie, if any.

    Axes of extent 1 do not count: the longer axes of the block match the longer axes of the region in order.
    """
    unit_axis = Axis(-1, tirx.const(0, "int32"), 1, 1)
    *outer, row, column = [unit_axis, *axes] if len(axes) == 1 else axes
    outer = [axis for axis in outer if axis.number >= 0]
    long = [axis for axis in axes if axis.extent != 1]
    block_rows, block_columns = block if len(block) == 2 else (1, *block)
    ways = [extent != 1 for extent in (block_rows, block_columns)]
    of_rows = long[0] if ways[0] else None
    of_columns = long[-1] if ways[1] else None
    if of_columns not in (None, column) or of_rows is column:
        turned = of_rows is column
        raise Unsupported(
            "L006",
            f"{name}: axis {(column if turned else of_columns or column).number} would become the "
            f"{'rows' if turned else 'columns'} of a block {block}",
            hint="give the block the axis order of the tensor: the last axis of both is the same",
        )
    if of_rows in (None, row):
        return row, column, outer, None
    if len(long) > 1 + ways[1]:
        # All rows of several matrices, one after another.
        between = axes[axes.index(of_rows) + 1 : len(axes) - 1]
        is_complete = all(axis.extent == axis.length and constant(axis.low) == 0 for axis in between)
        if not is_complete or (column.extent == 1) == ways[1]:
            raise Unsupported(
                "L006",
                f"{name}: the rows of a block {block} lie along several axes",
                hint="take all of each axis between the first of them and the columns",
            )
    # Each row of the block lies in a different matrix.
    return row, column, outer, of_rows


def _has_start(axis: Axis, bounds: Bounds) -> bool:
    """Whether a block never begins before the tensor."""
    return bounds.proves(axis.low >= 0)


def _where_inside(axis: Axis, condition: ir.Expr | None, bounds: Bounds) -> ir.Expr | None:
    """The condition and, where that is not certain, that an axis of one element lies within the tensor."""
    for inside in (axis.low < axis.length, axis.low >= 0):
        if not bounds.proves(inside):
            condition = inside if condition is None else tirx.And(condition, inside)
    return condition


def _on_tile(axis: Axis, tile: int, bounds: Bounds) -> bool:
    return bounds.is_multiple(axis.low, tile)


def _reaches_end(axis: Axis, bounds: Bounds) -> bool:
    return bounds.proves(axis.low + axis.extent >= axis.length)


def _holds_tiles(axis: Axis, tile: int, bounds: Bounds) -> bool:
    """Whether all elements of a block's tiles are the tensor's own."""
    return bounds.proves(axis.low + -(-axis.extent // tile) * tile <= axis.length)


def _fills(axis: Axis, tile: int, bounds: Bounds) -> bool:
    """Whether the last tiles (or strips) of a block hold no other elements of the tensor."""
    return axis.extent % tile == 0 or _reaches_end(axis, bounds)


def _tiles(
    rows: Axis, columns: Axis, page: ir.Expr, stride: ir.Expr | int, condition: ir.Expr | None, bounds: Bounds,
    zero: tuple[bool, bool],
) -> BlockRegion:  # fmt: skip
    row, column = tirx.floordiv(rows.low, TILE_ROWS), tirx.floordiv(columns.low, TILE_COLUMNS)
    first = bounds.ranges.simplify(page + row * stride + column)
    guards: list[Guard] = []
    row_count, column_count = -(-rows.extent // TILE_ROWS), -(-columns.extent // TILE_COLUMNS)
    for axis, count, tile in ((rows, row_count, TILE_ROWS), (columns, column_count, TILE_COLUMNS)):
        end = _tiles_along(axis.length, tile)
        inside = bounds.proves(axis.low + count * tile <= end * tile) and _has_start(axis, bounds)
        guards.append((0, count) if inside else (bounds.ranges.simplify(tirx.floordiv(axis.low, tile)), end))
    return BlockRegion(
        first, row_count, column_count, stride, _guards(guards), condition, zero_rows=zero[0], zero_columns=zero[1]
    )  # fmt: skip


def _guards(guards: list[Guard]) -> tuple[Guard, Guard] | None:
    rows, columns = guards
    return None if isinstance(rows[0], int) and isinstance(columns[0], int) else (rows, columns)


def _unit(rows: Axis, matrix: Axis | None, bounds: Bounds) -> int:
    """The largest number of rows per strip of a block."""
    if matrix is not None or rows.stored is not None:
        return 1
    for unit in (16, 8, 4, 2):
        if bounds.is_multiple(rows.low, unit) and _fills(rows, unit, bounds):
            return unit
    return 1


def _folded_unit(rows: int) -> int:
    """The largest number of rows per strip of a block that has all rows of several matrices."""
    return next(unit for unit in (16, 8, 4, 2, 1) if rows % unit == 0)


def _no_strips(
    rows: Axis, columns: Axis, matrix: Axis | None, layout: TensorLayout, unit: int, alignment: int, bounds: Bounds
) -> tuple[str, str] | None:
    """Why a block cannot be moved in strips, with a hint; None if it can."""
    if layout.data_format == BLOCK_FLOAT:
        return (
            f"it is not a block of whole tiles, and {BLOCK_FLOAT} stores exponents apart from the elements of a tile",
            f"use starts and extents that are multiples of {TILE_ROWS}, or omit the tensor's dtype in its layout",
        )
    if not bounds.is_multiple(columns.low, FACE):
        instead = f"start at multiples of {FACE}"
        if columns.extent == 1:
            instead += ", or store each number in its own row: a tensor of shape (..., 1)"
        return f"it starts at {columns.low} along its last axis", instead
    if columns.stored is not None:
        return (
            f"how many of its {columns.extent} columns are stored is only known when the kernel runs",
            f"decide by rows, or keep the tensor in tiles of whole elements: without {BLOCK_FLOAT}",
        )
    if not _fills(columns, FACE, bounds):
        return (
            f"its {columns.extent} columns end inside a group of {FACE}, and other elements follow",
            f"use a multiple of {FACE} columns, or all of them",
        )
    row_bytes = FACE * layout.element_bytes
    if layout.through == "tilize":
        if not _has_start(columns, bounds):
            return (
                f"its start {columns.low} along its last axis may be negative",
                "use a start of at least 0, for example T.max(start, 0)",
            )
        start = alignment // layout.element_bytes
        if bounds.is_multiple(columns.low, start):
            return None
        return (
            f"it starts at {columns.low} along its last axis, and the memory of this chip is read in units of "
            f"{alignment} bytes, which are {start} elements",
            f"start at multiples of {start}",
        )
    if layout.page == "row":
        # Every second row of a face lies at an odd multiple of these bytes.
        if row_bytes % alignment == 0:
            return None
        return (
            f"it is row-major, its runs of {FACE} elements are {row_bytes} bytes, and the memory of this chip is read "
            f"in units of {alignment} bytes",
            'omit through, so that the compute kernel converts rows to tiles, or keep the tensor in tiles: page="tile"',
        )
    if unit * row_bytes % alignment and not (matrix is None and _on_tile(rows, TILE_ROWS, bounds)):
        fit = alignment // row_bytes
        return (
            f"its rows start at {rows.low}, and the memory of this chip is read in units of {fit} rows",
            f"use starts and extents that are multiples of {fit} rows, or use float32",
        )
    return None


def _strips(
    rows: Axis, columns: Axis, matrix: Axis | None, folded: int, page: ir.Expr, strides: tuple[ir.Expr | int, ...],
    condition: ir.Expr | None, unit: int, bounds: Bounds, by_rows: bool,
) -> BlockRegion:  # fmt: skip
    # Matrices of which all rows are taken lie one after the other.
    matrix_stride = 0 if matrix is None else strides[matrix.number if folded == 1 else rows.number - 1]
    guards: list[Guard] = []
    counted = matrix or rows
    if matrix is not None:
        condition = _where_inside(rows, condition, bounds)
    # The operation that moves rows of any length needs the guard for the end of the row.
    asked = columns if by_rows and not isinstance(columns.length, int) else None
    for axis, step in ((counted, unit if folded == 1 else 1), (columns, FACE)):
        last = (axis.extent - 1) // step * step
        inside = axis is not asked and bounds.proves(axis.low + last < axis.length) and _has_start(axis, bounds)
        guards.append(axis.guard(inside=inside))
    if folded > 1:
        # Guards count rows, and a matrix has so many.
        low, end = guards[0]
        guards[0] = (low * folded, end * folded)
    return BlockRegion(
        bounds.ranges.simplify(page), counted.extent * folded, columns.extent, strides[-2], _guards(guards),
        condition, unit=unit, row=rows.low, column=columns.low,
        matrix_stride_pages=matrix_stride, matrix_rows=1 if folded == 1 else rows.extent,
    )  # fmt: skip


def read_operation(tensor: tirx.Buffer, cb: tirx.Buffer, block: BlockRegion, column_major: bool) -> tirx.Stmt:
    """The statement that loads a block into a circular buffer with tiles in row-major or column-major order."""
    row_slots, column_slots = _slots(block, column_major)
    if block.places is not None:
        return op(
            "read_gathered", tensor, cb, block.first_page, block.row_stride_pages, block.row, block.column, block.rows,
            block.columns, block.unit, row_slots, column_slots, *block.places,
            *([] if block.condition is None else [block.condition]),
        )  # fmt: skip
    if block.steps:
        arguments = (*_element_arguments(block), row_slots, column_slots, *block.guard_arguments)
        return op("read_elements", tensor, cb, *arguments)
    if not block.unit:
        return op(
            "read_block", tensor, cb, block.first_page, block.rows, block.columns, block.row_stride_pages, column_slots,
            row_slots, *block.guard_arguments,
        )  # fmt: skip
    return op("read_strips", tensor, cb, *_strip_arguments(block), row_slots, column_slots, *block.guard_arguments)


def rearrange_operation(
    statement: tirx.Stmt, source: tirx.Buffer, cb: tirx.Buffer, column_major: bool
) -> tirx.Stmt:  # fmt: skip
    """The statement that makes a block of elements at computed places of another one, whose tiles are in row-major
    order."""
    block, (origin, target_buffer) = gathered_block(statement), (region.source for region in regions(statement))
    rows, columns = tile_grid(shape_of(target_buffer))
    row_slots, column_slots = (1, rows) if column_major else (columns, 1)
    row, column = [tirx.const(0, "int32"), *places_of(statement)][-2:]
    return op(
        "rearrange", source, cb, row, column, tile_grid(shape_of(origin))[1], *block.shape, row_slots, column_slots,
        *block.variables,
    )  # fmt: skip


def write_operation(tensor: tirx.Buffer, cb: tirx.Buffer, block: BlockRegion) -> tirx.Stmt:
    """The statement that stores a block from a circular buffer with tiles in row-major order."""
    if block.steps:
        arguments = (*_element_arguments(block), *_slots(block, False), *block.guard_arguments)
        return op("write_elements", cb, tensor, *arguments)
    if not block.unit:
        return op(
            "write_block", cb, tensor, block.first_page, block.rows, block.columns, block.row_stride_pages,
            *block.guard_arguments,
        )  # fmt: skip
    return op("write_strips", cb, tensor, *_strip_arguments(block), *_slots(block, False), *block.guard_arguments)


def _element_arguments(block: BlockRegion) -> list[ir.Expr | int]:
    return [
        block.first_page, block.row_stride_pages, block.row, block.column, block.rows, block.columns, *block.steps,
    ]  # fmt: skip


def _strip_arguments(block: BlockRegion) -> list[ir.Expr | int]:
    return [
        block.first_page, block.row_stride_pages, block.matrix_stride_pages, block.matrix_rows, block.row, block.column,
        block.rows, block.columns, block.unit,
    ]  # fmt: skip


def _slots(block: BlockRegion, column_major: bool) -> tuple[int, int]:
    """The distance, in tiles of a circular buffer, from a tile to the one below it and to the one on its right."""
    rows, columns = block.tile_grid
    return (1, rows) if column_major else (columns, 1)


def check_on_chip(region: ir.TensorRegion) -> None:
    """Raise Unsupported for a partial region of an on-chip buffer."""
    extents = tuple(constant(interval.extent) for interval in elements(region.region))
    if extents != shape_of(region.source):
        raise Unsupported(
            "L007",
            f"{region.source.name} is {shape_of(region.source)}; the operation takes {extents} of it",
            hint="use whole on-chip buffers: allocate one per block",
        )
