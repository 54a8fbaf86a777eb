"""Where elements lie: in tiles of a tensor, in the faces of a tile, in the strips and rows of a block."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ttexplore.ir.interpreter.arrays import Array
from ttexplore.plan import FACE


def tilize(array: Array, padding: float) -> Array:
    """(..., H, W) as tiles (pages, 32, 32), row-major, each matrix padded to whole tiles; a vector is one row."""
    height, width = (1, *array.shape)[-2:]
    rows, columns = -(-height // 32), -(-width // 32)
    padded = np.full((array.size // (height * width), rows * 32, columns * 32), padding, array.dtype)
    padded[:, :height, :width] = array.reshape(-1, height, width)
    return np.ascontiguousarray(padded.reshape(-1, rows, 32, columns, 32).transpose(0, 1, 3, 2, 4).reshape(-1, 32, 32))


def untilize(tiles: Array, shape: tuple[int, ...]) -> Array:
    """The tensor of `shape` that :func:`tilize` made the tiles from."""
    height, width = (1, *shape)[-2:]
    rows, columns = -(-height // 32), -(-width // 32)
    padded = tiles.reshape(-1, rows, columns, 32, 32).transpose(0, 1, 3, 2, 4).reshape(-1, rows * 32, columns * 32)
    return padded[:, :height, :width].reshape(shape)


def as_faces(tile: Array) -> Array:
    """The 1024 elements of a tile in the order of memory: four faces, each row by row."""
    return tile.reshape(2, FACE, 2, FACE).transpose(0, 2, 1, 3).reshape(-1).copy()


def from_faces(elements: Array) -> Array:
    return elements.reshape(2, 2, FACE, FACE).transpose(0, 2, 1, 3).reshape(32, 32)


def existence(guards: tuple[int, ...]) -> Callable[[int, int], bool]:
    """Whether a tile, strip or element of a block exists in the tensor, by its place in the block; see BlockRegion."""
    if not guards:
        return lambda r, c: True
    row, row_end, column, column_end, *condition = guards
    return lambda r, c: 0 <= row + r < row_end and 0 <= column + c < column_end and all(condition)


def strip(
    page: int, stride: int, row: int, column: int, r: int, c: int, unit: int, column_stride: int = 1
) -> tuple[int, tuple[slice, slice]]:
    """Page and place in it of the strip of a block that starts at its row r and column c."""
    row_tile, first = divmod(row + r, 32)
    column_tile, left = divmod(column + c, 32)
    number = page + row_tile * stride + column_tile * column_stride
    return number, (slice(first, first + unit), slice(left, left + FACE))


def place_in_rows(r: int, c: int, row_tiles: int, row_slots: int, column_slots: int) -> int:
    """Where an element of a block lies in a buffer of rows that are `row_tiles` tiles wide."""
    row_tile, row = divmod(r, 32)
    section, column = divmod(c, row_tiles * 32)
    slot = row_tile * row_slots + section * row_tiles * column_slots
    return slot * 1024 + row * row_tiles * 32 + column
