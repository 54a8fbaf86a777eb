"""Converting tensors to pages of tiles or rows, as in device memory, and back.

A page is one 32x32 tile of four 16x16 faces (source: tt-metal tile layout, metalium.md 4.4). A tensor of shape
(..., H, W) is padded with zeros per matrix; its pages are the tiles row by row, leading dimensions first. A vector of n
elements is one row of tiles with its data in row 0.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ttexplore.backends.base import storage_dtype
from ttexplore.ops.block_float import packed, unpacked
from ttexplore.plan import BLOCK_FLOAT, FACE, TILE_COLUMNS, TILE_ROWS, TensorLayout


def to_pages(array: NDArray[Any], layout: TensorLayout) -> NDArray[Any]:
    """The pages of a tensor, one per row: tiles, or the tensor's own rows."""
    if layout.page == "row":
        return np.ascontiguousarray(array).reshape(-1, layout.shape[-1])
    pages = tilize(array)
    return packed(pages) if layout.data_format == BLOCK_FLOAT else pages


def from_pages(stored: NDArray[np.uint8], layout: TensorLayout) -> NDArray[Any]:
    """The tensor, in storage dtype, from the bytes of its pages."""
    dtype = storage_dtype(layout)
    pages = unpacked(stored).astype(dtype) if layout.data_format == BLOCK_FLOAT else stored.view(dtype)
    return pages.reshape(layout.shape) if layout.page == "row" else untilize(pages, layout.shape)


def padded_matrix_shape(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """(number of matrices, rows, columns) of the padded tensor, in elements."""
    matrix = (1, *shape)[-2:] if shape else (1, 1)
    rows = -(-matrix[0] // TILE_ROWS) * TILE_ROWS
    columns = -(-matrix[1] // TILE_COLUMNS) * TILE_COLUMNS
    return math.prod(shape[:-2]), rows, columns


def tilize(array: NDArray[Any]) -> NDArray[Any]:
    """The pages of `array`: shape (pages, 1024), same dtype."""
    matrices, rows, columns = padded_matrix_shape(array.shape)
    height, width = (1, *array.shape)[-2:] if array.shape else (1, 1)
    padded = array.reshape(matrices, height, width)
    if (height, width) != (rows, columns):
        extended = np.zeros((matrices, rows, columns), array.dtype)
        extended[:, :height, :width] = padded
        padded = extended
    faces = padded.reshape(matrices, rows // TILE_ROWS, 2, FACE, columns // TILE_COLUMNS, 2, FACE)
    return np.ascontiguousarray(faces.transpose(0, 1, 4, 2, 5, 3, 6)).reshape(-1, TILE_ROWS * TILE_COLUMNS)


def untilize(pages: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """The tensor of logical shape `shape` from its pages (pages, 1024)."""
    matrices, rows, columns = padded_matrix_shape(shape)
    height, width = (1, *shape)[-2:] if shape else (1, 1)
    tiles = pages.reshape(matrices, rows // TILE_ROWS, columns // TILE_COLUMNS, 2, 2, FACE, FACE)
    padded = tiles.transpose(0, 1, 3, 5, 2, 4, 6).reshape(matrices, rows, columns)
    return np.ascontiguousarray(padded[:, :height, :width]).reshape(shape)
