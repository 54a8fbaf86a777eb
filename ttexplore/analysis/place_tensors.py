"""Place tensors: memory, arrangement and shards, from the requested layouts. Part of A1."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from math import prod
from typing import Literal

from ttexplore.analysis.core_sets import ranges_of_options
from ttexplore.errors import KernelError, ResourceError, TTExploreError, Unsupported, UsageError, unknown
from ttexplore.ir.operations.storage import TileOrder
from ttexplore.ir.program import TirProgram
from ttexplore.language.tracer.dtypes import dtype_name
from ttexplore.layout_request import LayoutRequest, layout_request
from ttexplore.plan import (
    BLOCK_FLOAT,
    BLOCK_FLOAT_NAMES,
    DATA_FORMATS,
    FACE,
    FORMAT_OF_DTYPE,
    TILE_COLUMNS,
    TILE_ROWS,
    CoreRange,
    Sharding,
    TensorLayout,
)
from ttexplore.target import Target

Kind = Literal["height", "width", "block"]


def place_tensors(
    layouts: tuple[TensorLayout, ...], asked: Mapping[str, object], program: TirProgram, target: Target
) -> tuple[TensorLayout, ...]:
    """The layouts, changed by the requests in `asked`, by tensor name. Shards in L1 go to the cores that the options
    allow.

    Raises UsageError for an unknown tensor, and the errors of :func:`placed`.
    """
    names = [layout.name for layout in layouts]
    for name in asked:
        if name not in names:
            raise unknown("tensor", name, names)
    if not asked:
        return layouts
    ranges = ranges_of_options(target, program.options)
    tensor_layouts: list[TensorLayout] = []
    for layout in layouts:
        if layout.name in asked:
            layout = placed(layout, layout_request(layout.name, asked[layout.name]), target, ranges)
            reasons = (layout.reason, program.plan.reason("layouts", tensor=layout.name, given=True))
            layout = dataclasses.replace(
                layout, reason="; ".join(reason for reason in reasons if reason not in ("", "default"))
            )
        tensor_layouts.append(layout)
    return tuple(tensor_layouts)


def placed(layout: TensorLayout, request: LayoutRequest, target: Target, ranges: Sequence[CoreRange]) -> TensorLayout:
    """The layout, changed by `request`; shards in L1 go to the cores of `ranges`.

    Raises UsageError for a contradictory request, Unsupported for a layout that the chip lacks, ResourceError if there
    are too few cores or banks; each at the line of the request, if it has one.
    """
    try:
        return _placed(layout, request, target, ranges)
    except TTExploreError as error:
        raise error.at(request.span) from None


def _placed(layout: TensorLayout, request: LayoutRequest, target: Target, ranges: Sequence[CoreRange]) -> TensorLayout:
    if request.dtype is not None:
        layout = _in_format(layout, request.dtype)
    memory = request.memory or "dram"
    if request.page == "row":
        return _by_rows(layout, request)
    if request.through is not None:
        raise UsageError(
            "U015",
            f"{layout.name} is requested through {request.through!r}, but its pages are tiles",
            hint='add page="row"',
        )
    if not request.sharded:
        if request.grid is not None or request.shard_shape is not None:
            raise UsageError(
                "U010", f"{layout.name} has a grid of shards but is interleaved", hint='add layout="sharded"'
            )
        return dataclasses.replace(layout, memory=memory)
    kind, grid, shard_tiles = _shards(layout, request, _shard_holders(memory, request, target, ranges))
    _check_projection(layout.name, request, grid, shard_tiles)
    order: TileOrder = "column_major" if request.order == "column_major" else "row_major"
    cores = _cores(layout.name, kind, grid, order, memory, target, ranges)
    shape = (shard_tiles[0] * TILE_ROWS, shard_tiles[1] * TILE_COLUMNS)
    return dataclasses.replace(
        layout, memory=memory, arrangement="sharded", sharding=Sharding(kind, grid, shape, cores, order)
    )


def _by_rows(layout: TensorLayout, request: LayoutRequest) -> TensorLayout:
    if request.sharded or request.memory == "l1":
        raise Unsupported(
            "L014",
            f"{layout.name}: a row-major tensor {'in shards' if request.sharded else 'in L1'}",
            hint='keep it interleaved in DRAM, or in tiles: page="tile"',
        )
    if layout.data_format == BLOCK_FLOAT:
        raise Unsupported(
            "L014",
            f"{layout.name}: a row-major tensor in {BLOCK_FLOAT}, which is a format of whole tiles",
            hint='leave out page="row" or the dtype',
        )
    shape = layout.shape if len(layout.shape) > 1 else (1, *layout.shape)
    narrow = layout.element_bytes == 2
    if request.through == "tilize" and not narrow:
        raise Unsupported(
            "L014",
            f"{layout.name} through tilize: it holds {layout.data_format}, "
            f"which {'tilize converts to TF32' if layout.data_format == 'Float32' else 'is unpacked directly to DST'}",
            hint='omit through, or use through="runs", which keeps every element exact',
        )
    through = request.through or ("tilize" if narrow else "runs")
    return dataclasses.replace(layout, page="row", padded_shape=shape, padding="none", through=through)


def _in_format(layout: TensorLayout, dtype: str) -> TensorLayout:
    """The layout in the tile format of a requested dtype. Raises Unsupported if the tensor has another format."""
    if dtype.lower() in BLOCK_FLOAT_NAMES:
        return _in_block_float(layout)
    try:
        name = dtype_name(dtype)
    except KernelError:
        name = ""
    if name not in FORMAT_OF_DTYPE:
        raise unknown("tile format for", dtype, (*FORMAT_OF_DTYPE, *BLOCK_FLOAT_NAMES))
    if FORMAT_OF_DTYPE[name] != layout.data_format:
        raise Unsupported(
            "L010",
            f"{layout.name} is stored as {layout.data_format}, but {dtype} is requested",
            hint="declare the tensor with that dtype in the kernel",
        )
    return layout


def _in_block_float(layout: TensorLayout) -> TensorLayout:
    if layout.dtype not in ("bfloat16", "float16", "float32"):
        raise Unsupported(
            "L010",
            f"{layout.name} is {layout.dtype}, but in {BLOCK_FLOAT} 16 numbers share an exponent",
            hint="omit its dtype: integers and masks would lose precision",
        )
    if layout.role != "input" and layout.shape[-1] % FACE:
        raise Unsupported(
            "L010",
            f"{layout.name} has {layout.shape[-1]} columns, but {BLOCK_FLOAT} packs {FACE} at once: the padding behind "
            "the last columns would change them",
            hint=f"use a multiple of {FACE} columns, or omit the dtype of this output",
        )
    reason = "; ".join(clause for clause in (layout.reason, f"{FACE} numbers share an exponent") if clause != "default")
    return dataclasses.replace(layout, data_format=BLOCK_FLOAT, reason=reason)


def tile_rows_and_columns(layout: TensorLayout) -> tuple[int, int]:
    """The (rows, columns) of tiles of the tensor as a matrix: leading dimensions are folded into the rows."""
    return prod(layout.padded_shape[:-1]) // TILE_ROWS, layout.padded_shape[-1] // TILE_COLUMNS


def l1_bytes_per_core(layout: TensorLayout, target: Target) -> int:
    """The bytes of L1 that the tensor occupies on each core that stores part of it; 0 for a tensor in DRAM."""
    if layout.memory != "l1":
        return 0
    rows, columns = tile_rows_and_columns(layout)
    tiles = -(-rows * columns // target.cores)
    if layout.sharding is not None:
        tiles = layout.sharding.shard_shape[0] * layout.sharding.shard_shape[1] // (TILE_ROWS * TILE_COLUMNS)
    return tiles * DATA_FORMATS[layout.data_format].tile_bytes


def _shard_holders(
    memory: str, request: LayoutRequest, target: Target, ranges: Sequence[CoreRange]
) -> tuple[int, int, int]:
    """The number of cores or banks that may hold shards, and their rows and columns for block sharding."""
    if memory == "dram":
        return target.dram_banks, 1, target.dram_banks
    (left, top), (right, bottom) = ranges[0].first, ranges[0].last
    rows, columns = bottom - top + 1, right - left + 1
    if request.order == "column_major":
        rows, columns = columns, rows
    return sum(len(core_range.cores) for core_range in ranges), rows, columns


def _shards(
    layout: TensorLayout, request: LayoutRequest, holders: tuple[int, int, int]
) -> tuple[Kind, tuple[int, int], tuple[int, int]]:
    """The kind of sharding, the shards along rows and columns, and the rows and columns of tiles in a shard."""
    name = layout.name
    rows, columns = tile_rows_and_columns(layout)
    units = _row_units(layout, request)
    kind = _kind(layout, request)
    count, holder_rows, holder_columns = holders
    divisions = _parts(layout, request, kind)
    row_parts = column_parts = 1
    if kind in ("height", "block"):
        limit = count if kind == "height" else holder_rows
        row_parts = divisions[0] if divisions else -(-(rows // units) // -(-(rows // units) // limit))
    if kind in ("width", "block"):
        limit = count if kind == "width" else holder_columns
        column_parts = divisions[-1] if divisions else -(-columns // -(-columns // limit))
    shards: list[tuple[int, int]] = []
    for axis_name, tiles, requested, unit in (("rows", rows, row_parts, units), ("columns", columns, column_parts, 1)):
        if not 1 <= requested <= tiles // unit:
            raise UsageError(
                "U016",
                f"{name} cannot be divided into {requested} parts: it has {tiles // unit} "
                + (f"{axis_name} of tiles" if unit == 1 else f"times {unit} {axis_name} of tiles"),
                hint=f"divide it into 1 to {tiles // unit} parts",
            )
        size = -(-(tiles // unit) // requested) * unit
        shards.append((-(-tiles // size), size))
    (grid_rows, shard_rows), (grid_columns, shard_columns) = shards
    if divisions and (grid_rows, grid_columns) != (row_parts, column_parts):
        raise UsageError(
            "U016",
            f"{name} has {rows} x {columns} tiles: of {row_parts} x {column_parts} shards with {shard_rows} x "
            f"{shard_columns} tiles each, some would be empty",
            hint=f"use {grid_rows} x {grid_columns} shards",
        )
    return kind, (grid_rows, grid_columns), (shard_rows, shard_columns)


def _axes(layout: TensorLayout, request: LayoutRequest) -> tuple[int, ...] | None:
    """The requested dimensions, as non-negative dimensions of the padded shape."""
    if request.axes is None:
        return None
    rank, shift = len(layout.shape), len(layout.padded_shape) - len(layout.shape)
    for axis in request.axes:
        if not -rank <= axis < rank:
            raise UsageError(
                "U016", f"{layout.name} has no dimension {axis}", hint=f"use a dimension from 0 to {rank - 1}"
            )
    axes = tuple(axis % rank + shift for axis in request.axes)
    if len(set(axes)) != len(axes):
        raise UsageError("U016", f"{layout.name} is divided twice along one dimension", hint="list each dimension once")
    return axes


def _kind(layout: TensorLayout, request: LayoutRequest) -> Kind:
    axes = _axes(layout, request)
    if axes is None:
        return request.shard or "height"
    last = len(layout.padded_shape) - 1
    if last not in axes:
        return "height"
    return "width" if len(axes) == 1 else "block"


def _row_units(layout: TensorLayout, request: LayoutRequest) -> int:
    """The rows of tiles that stay in one shard: those below the innermost divided dimension of the folded ones."""
    axes = _axes(layout, request)
    row_axes = [axis for axis in axes or () if axis < len(layout.padded_shape) - 1]
    if not row_axes:
        return 1
    innermost = max(row_axes)
    return max(1, prod(layout.padded_shape[innermost + 1 : -1]) // TILE_ROWS) if innermost < layout_rows(layout) else 1


def layout_rows(layout: TensorLayout) -> int:
    """The index of the dimension that holds the matrix rows."""
    return len(layout.padded_shape) - 2


def _parts(layout: TensorLayout, request: LayoutRequest, kind: Kind) -> tuple[int, ...]:
    """The requested parts along folded rows and columns, one per dimension that the kind divides; () if none are."""
    axes, grid = _axes(layout, request), request.grid
    if axes is None:
        dimensions = 2 if kind == "block" else 1
        if grid is not None and len(grid) != dimensions:
            raise UsageError(
                "U016",
                f"the grid {grid} of {layout.name} has {len(grid)} entries",
                hint=f"shard={kind!r} takes {dimensions}",
            )
        return grid or ()
    sizes = layout.padded_shape
    if grid is None and request.shard_shape is None:
        return ()
    shapes = request.shard_shape
    if shapes is not None and len(shapes) not in (len(axes), len(layout.shape)):
        raise UsageError(
            "U016",
            f"the shards of {layout.name} are {shapes}",
            hint=f"give one size for each of the axes {request.axes}",
        )
    if shapes is not None and len(shapes) != len(axes):
        shapes = tuple(shapes[axis - (len(sizes) - len(layout.shape))] for axis in axes)
    by_axis: dict[int, int] = {}
    for position, axis in enumerate(axes):
        shard_count = grid[position] if grid is not None else -(-sizes[axis] // (shapes or ())[position])
        if shapes is not None:
            _check_shard_size(layout, axis, shard_count, shapes[position], request)
        by_axis[axis] = shard_count
    rows = _folded(layout, {axis: count for axis, count in by_axis.items() if axis < len(sizes) - 1})
    columns = by_axis.get(len(sizes) - 1)
    return tuple(count for count in (rows, columns) if count is not None)


def _check_shard_size(layout: TensorLayout, axis: int, count: int, size: int, request: LayoutRequest) -> None:
    length = layout.padded_shape[axis]
    tile = (TILE_ROWS, TILE_COLUMNS)[axis - len(layout.padded_shape)] if axis >= layout_rows(layout) else 1
    if size % tile and not request.aligned:
        raise UsageError(
            "U016",
            f"shards of {size} along axis {axis} of {layout.name} are not whole tiles of {tile}",
            hint=f"use a multiple of {tile}, or align_tiles=True, which rounds up",
        )
    rounded = -(-size // tile) * tile
    if -(-length // rounded) != count:
        suggested = -(-length // (count * tile)) * tile
        raise UsageError(
            "U016",
            f"{count} shards of {size} do not divide the {length} elements of axis {axis} of {layout.name}",
            hint=f"use {count} shards of {suggested}",
        )


def _folded(layout: TensorLayout, counts: dict[int, int]) -> int | None:
    """The parts of the folded rows. Raises Unsupported if a part would not be contiguous rows."""
    if not counts:
        return None
    sizes = layout.padded_shape
    innermost = max(counts)
    outer = 1
    for axis in range(innermost):
        if sizes[axis] != 1 and counts.get(axis, 1) != sizes[axis]:
            raise Unsupported(
                "L014",
                f"shards of {layout.name} along axis {innermost} would not be contiguous rows: axis {axis} has "
                f"{sizes[axis]} elements and is divided into {counts.get(axis, 1)}",
                hint=f"divide axis {axis} into {sizes[axis]} as well",
            )
        outer *= sizes[axis]
    length = sizes[innermost] // (TILE_ROWS if innermost == layout_rows(layout) else 1)
    if outer > 1 and length % counts[innermost]:
        raise Unsupported(
            "L014",
            f"{counts[innermost]} shards do not divide axis {innermost} of {layout.name} evenly: it has {length} "
            f"{'rows of tiles' if innermost == layout_rows(layout) else 'elements'}",
            hint="use a divisor, or divide only the first dimension",
        )
    return outer * counts[innermost]


def _check_projection(name: str, request: LayoutRequest, grid: tuple[int, int], shard_tiles: tuple[int, int]) -> None:
    """Raise UsageError if the projected grid or shard of the request differs from the actual one."""
    for property_name, asked, actual in (
        ("projected_grid", request.projected_grid, grid),
        ("projected_shard_tiles", request.projected_shard_tiles, shard_tiles),
    ):
        if asked is not None and asked != actual:
            raise UsageError(
                "U010", f"{property_name} of {name} is {asked}; the shards have {actual}", hint="omit it, or correct it"
            )


def _cores(
    name: str, kind: Kind, grid: tuple[int, int], order: str, memory: str, target: Target, ranges: Sequence[CoreRange]
) -> tuple[tuple[int, int], ...]:
    """The core of each shard, or (bank, 0) in DRAM, in row-major order of the grid of shards."""
    rows, columns = grid
    if memory == "dram":
        if kind == "block":
            raise Unsupported(
                "L014",
                f"{name}: block shards in DRAM banks",
                hint="divide rows or columns only: the banks form one row",
            )
        if rows * columns > target.dram_banks:
            raise ResourceError(
                "R006",
                f"{name} has {rows * columns} shards; {target.name} has {target.dram_banks} banks of DRAM",
                hint="use fewer shards",
            )
        return tuple((bank, 0) for bank in range(rows * columns))
    if kind != "block":
        cores = [core for core_range in ranges for core in _in_order(core_range, order)]
        if rows * columns > len(cores):
            raise ResourceError(
                "R006",
                f"{name} has {rows * columns} shards for {len(cores)} cores",
                hint="use fewer shards, or more cores",
            )
        return tuple(cores[: rows * columns])
    if len(ranges) != 1:
        raise UsageError(
            "U016",
            f"{name}: block shards need one rectangle of cores, {len(ranges)} are given",
            hint="give one core range",
        )
    (left, top), last = ranges[0].first, ranges[0].last
    across = order == "column_major"
    grid_cores = tuple(
        (left + (r if across else c), top + (c if across else r)) for r in range(rows) for c in range(columns)
    )
    if outside := [core for core in grid_cores if core[0] > last[0] or core[1] > last[1]]:
        raise ResourceError(
            "R006",
            f"{name} has {rows} x {columns} shards, which do not fit on the cores {ranges[0].first} to {last}: "
            f"{outside[0]} is outside",
            hint="use fewer shards, or more cores",
        )
    return grid_cores


def _in_order(core_range: CoreRange, order: str) -> list[tuple[int, int]]:
    return sorted(core_range.cores) if order == "column_major" else list(core_range.cores)
