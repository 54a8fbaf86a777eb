"""Whole blocks, before the protocol of circular buffers: reading, writing, receiving, sending, and rows to tiles."""

from __future__ import annotations

import numpy as np

from ttexplore.ir.interpreter.arrays import Array
from ttexplore.ir.interpreter.machine import Core
from ttexplore.ir.interpreter.tiles import existence, place_in_rows, strip
from ttexplore.ir.interpreter.waits import KernelWait
from ttexplore.ops.move import PACK_UNTILIZE_BLOCK, TILIZE_BLOCK
from ttexplore.ops.op import Op
from ttexplore.ops.protocol import WRITE_INDEX_TILE
from ttexplore.ops.storage import rounded
from ttexplore.plan import FACE, TILE_COLUMNS, TILE_ROWS


def read_block(
    core: Core, tensor: str, cb: str, page: int, rows: int, columns: int, stride: int, column_slots: int,
    row_slots: int, *guards: int,
) -> KernelWait | None:  # fmt: skip
    exists = existence(guards)

    def write(block: Array) -> None:
        for r in range(rows):
            for c in range(columns):
                tile = core.page(tensor, page + r * stride + c) if exists(r, c) else 0
                block[r * row_slots + c * column_slots] = tile

    return core.blocks[cb].fill(write)


def write_block(
    core: Core, cb: str, tensor: str, page: int, rows: int, columns: int, stride: int, *guards: int
) -> KernelWait | None:  # fmt: skip
    block = core.blocks[cb].take()
    if not isinstance(block, np.ndarray):
        return block
    exists = existence(guards)
    for r in range(rows):
        for c in range(columns):
            if exists(r, c):
                core.set_page(tensor, page + r * stride + c, block[r * columns + c])
    return None


def read_strips(
    core: Core, tensor: str, cb: str, page: int, stride: int, matrix_stride: int, matrix_rows: int, row: int,
    column: int, rows: int, columns: int, unit: int, row_slots: int, column_slots: int, *guards: int,
) -> KernelWait | None:  # fmt: skip
    exists, row_tiles = existence(guards), core.plan.buffer(cb).row_tiles

    def write(block: Array) -> None:
        block[...] = 0.0
        for r in range(0, rows, unit):
            for c in range(0, columns, FACE):
                if exists(r, c):
                    values = _tensor_strip(
                        core, tensor, page, stride, matrix_stride, matrix_rows, row, column, r, c, unit
                    )
                    if row_tiles:
                        first = place_in_rows(r, c, row_tiles, row_slots, column_slots)
                        row_values = values[0, : columns - c]
                        block.reshape(-1)[first : first + row_values.size] = row_values
                        continue
                    into, region = strip(0, row_slots, 0, 0, r, c, unit, column_slots)
                    block[into][region][:, : values.shape[1]] = values

    return core.blocks[cb].fill(write)


def read_elements(
    core: Core, tensor: str, cb: str, page: int, stride: int, row: int, column: int, rows: int, columns: int,
    row_page_step: int, row_row_step: int, row_column_step: int, column_page_step: int, column_row_step: int,
    column_column_step: int, row_slots: int, column_slots: int, *guards: int,
) -> KernelWait | None:  # fmt: skip
    exists, by_rows = existence(guards), core.plan.layout(tensor).page == "row"

    def write(block: Array) -> None:
        block[...] = 0.0
        for r in range(rows):
            for c in range(columns):
                if exists(r, c):
                    number = page + r * row_page_step + c * column_page_step
                    y = row + r * row_row_step + c * column_row_step
                    x = column + r * row_column_step + c * column_column_step
                    slot = r // TILE_ROWS * row_slots + c // TILE_COLUMNS * column_slots
                    array, at = _tensor_element(core, tensor, number, stride, y, x, by_rows)
                    block[slot, r % TILE_ROWS, c % TILE_COLUMNS] = array[at]

    return core.blocks[cb].fill(write)


def write_elements(
    core: Core, cb: str, tensor: str, page: int, stride: int, row: int, column: int, rows: int, columns: int,
    row_page_step: int, row_row_step: int, row_column_step: int, column_page_step: int, column_row_step: int,
    column_column_step: int, row_slots: int, column_slots: int, *guards: int,
) -> KernelWait | None:  # fmt: skip
    block = core.blocks[cb].take()
    if not isinstance(block, np.ndarray):
        return block
    exists, by_rows, dtype = existence(guards), core.plan.layout(tensor).page == "row", core.dtypes[tensor]
    for r in range(rows):
        for c in range(columns):
            if exists(r, c):
                number = page + r * row_page_step + c * column_page_step
                y = row + r * row_row_step + c * column_row_step
                x = column + r * row_column_step + c * column_column_step
                slot = r // TILE_ROWS * row_slots + c // TILE_COLUMNS * column_slots
                array, at = _tensor_element(core, tensor, number, stride, y, x, by_rows)
                array[at] = rounded(block[slot, r % TILE_ROWS, c % TILE_COLUMNS], dtype)
    return None


def _tensor_element(
    core: Core, tensor: str, page: int, stride: int, row: int, column: int, by_rows: bool
) -> tuple[Array, tuple[int, ...]]:  # fmt: skip
    """The page that holds an element of a tensor, and where in it."""
    if by_rows:
        return core.page(tensor, page), (column,)
    tile = core.page(tensor, page + row // TILE_ROWS * stride + column // TILE_COLUMNS)
    return tile, (row % TILE_ROWS, column % TILE_COLUMNS)


def read_gathered(
    core: Core, tensor: str, cb: str, page: Array, stride: int, row: Array, column: Array, rows: int, columns: int,
    unit: int, row_slots: int, column_slots: int, row_index: Array, column_index: Array, condition: Array | bool = True,
) -> KernelWait | None:  # fmt: skip
    shape = (rows, columns)
    indices = [np.broadcast_to(index, shape) for index in (page, row, column, condition)]

    def write(block: Array) -> None:
        block[...] = 0.0
        for r in range(rows):
            for c in range(0, columns, unit):
                number, y, x, exists = (index[r, c] for index in indices)
                if exists:
                    tile = core.page(tensor, int(number + y // TILE_ROWS * stride + x // TILE_COLUMNS))
                    slot = r // TILE_ROWS * row_slots + c // TILE_COLUMNS * column_slots
                    first, offset = x % TILE_COLUMNS, c % TILE_COLUMNS
                    block[slot, r % TILE_ROWS, offset : offset + unit] = tile[y % TILE_ROWS, first : first + unit]

    return core.blocks[cb].fill(write)


def rearrange(
    core: Core, source: str, cb: str, row: Array, column: Array, source_row_slots: int, rows: int, columns: int,
    row_slots: int, column_slots: int, row_index: Array, column_index: Array,
) -> KernelWait | None:  # fmt: skip
    source_block, target_block = core.blocks[source], core.blocks[cb]
    if (wait := source_block.awaited() or target_block.full()) is not None:
        return wait
    tiles = source_block.take()
    assert isinstance(tiles, np.ndarray)
    y, x = (np.broadcast_to(index, (rows, columns)) for index in (row, column))
    r, c = np.broadcast_arrays(np.arange(rows)[:, None], np.arange(columns)[None, :])
    slot = r // TILE_ROWS * row_slots + c // TILE_COLUMNS * column_slots
    values = tiles[y // TILE_ROWS * source_row_slots + x // TILE_COLUMNS, y % TILE_ROWS, x % TILE_COLUMNS]

    def write(block: Array) -> None:
        block[...] = 0.0
        block[slot, r % TILE_ROWS, c % TILE_COLUMNS] = values

    return target_block.fill(write)


def write_strips(
    core: Core, cb: str, tensor: str, page: int, stride: int, matrix_stride: int, matrix_rows: int, row: int,
    column: int, rows: int, columns: int, unit: int, row_slots: int, column_slots: int, *guards: int,
) -> KernelWait | None:  # fmt: skip
    block = core.blocks[cb].take()
    if not isinstance(block, np.ndarray):
        return block
    exists, row_tiles, dtype = existence(guards), core.plan.buffer(cb).row_tiles, core.dtypes[tensor]
    for r in range(0, rows, unit):
        for c in range(0, columns, FACE):
            if exists(r, c):
                into = _tensor_strip(core, tensor, page, stride, matrix_stride, matrix_rows, row, column, r, c, unit)
                if row_tiles:
                    first = place_in_rows(r, c, row_tiles, row_slots, column_slots)
                    into[0] = rounded(block.reshape(-1)[first : first + into.shape[1]], dtype)
                    continue
                source, region = strip(0, row_slots, 0, 0, r, c, unit, column_slots)
                into[...] = rounded(block[source][region][:, : into.shape[1]], dtype)
    return None


def _tensor_strip(
    core: Core, tensor: str, page: int, stride: int, matrix_stride: int, matrix_rows: int, row: int, column: int,
    r: int, c: int, unit: int,
) -> Array:  # fmt: skip
    """The strip of a tensor, as a view, for row r and column c of a block; a row-major one's can end early."""
    if matrix_stride:
        matrix, r = divmod(r, matrix_rows)
        page += matrix * matrix_stride
    if core.plan.layout(tensor).page == "row":
        return core.page(tensor, page + (row + r) * stride)[None, column + c : column + c + FACE]
    number, inside = strip(page, stride, row, column, r, c, unit)
    return core.page(tensor, number)[inside]


def index_block(core: Core, cb: str, axis: int) -> KernelWait | None:
    meaning = WRITE_INDEX_TILE.meaning
    assert meaning is not None

    def write(block: Array) -> None:
        block[0] = meaning(axis)

    return core.blocks[cb].fill(write)


def receive_block(core: Core, cb: str, count: int) -> KernelWait | None:
    return core.channels[cb].receive(count)


def send_block(core: Core, cb: str, count: int) -> KernelWait | None:
    return core.channels[cb].send(count)


def tilize(core: Core, source: str, target: str) -> None:
    """A block of rows as tiles."""
    _convert(core, TILIZE_BLOCK, source, target, core.plan.buffer(source).row_tiles)


def untilize(core: Core, source: str, target: str) -> None:
    """A block of tiles as rows."""
    _convert(core, PACK_UNTILIZE_BLOCK, source, target, core.plan.buffer(target).row_tiles)


def _convert(core: Core, op: Op, source: str, target: str, tiles: int) -> None:
    rows, converted = core.blocks[source].tiles, core.blocks[target].tiles
    assert op.meaning is not None
    for first in range(0, len(rows), tiles):
        converted[first : first + tiles] = rounded(op.meaning(rows[first : first + tiles]), core.dtypes[target])
