"""Bfp8_b, a tile format in which 16 numbers share an exponent, as packed and unpacked by the SDK's host code.

The 16 elements of a face's row are a group. A tile is 1088 bytes: the exponents of its 64 groups, with float32's bias,
then for each element a sign and 7 bits of magnitude, of which the first is the power of two given by the exponent.
Packing rounds to nearest, ties to even, and saturates at the largest magnitude instead of increasing the exponent.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ttexplore.plan import BLOCK_FLOAT, DATA_FORMATS, FACE, TILE_COLUMNS, TILE_ROWS

GROUP = FACE
TILE_BYTES = DATA_FORMATS[BLOCK_FLOAT].tile_bytes
_GROUPS = TILE_ROWS * TILE_COLUMNS // GROUP
_LARGEST = 127

Bytes = NDArray[np.uint8]


def packed(tiles: Any) -> Bytes:
    """Pack tiles (pages, 1024), elements in memory order, of any float dtype, to bytes (pages, 1088).

    Denormals and numbers too small for the exponent of their group become 0; NaN and infinity set almost all numbers
    of their group to 0.
    """
    exponents, elements = _encoded(np.asarray(tiles, np.float32).reshape(-1, _GROUPS, GROUP))
    return np.concatenate([exponents.reshape(-1, _GROUPS), elements.reshape(-1, _GROUPS * GROUP)], axis=1)


def unpacked(pages: Bytes) -> NDArray[np.float32]:
    """Unpack bytes (pages, 1088) to the elements of tiles (pages, 1024); each is exact in bfloat16."""
    pages = pages.reshape(-1, TILE_BYTES)
    exponents, elements = pages[:, :_GROUPS, None], pages[:, _GROUPS:].reshape(-1, _GROUPS, GROUP)
    return _decoded(exponents, elements).reshape(-1, _GROUPS * GROUP)


def rounded_in_groups(values: Any) -> NDArray[np.float32]:
    """Round a tensor (..., n) as packing does, with shared exponents for groups of 16 along the last axis."""
    numbers = np.asarray(values, np.float32)
    columns = numbers.shape[-1]
    extended = np.zeros((*numbers.shape[:-1], -(-columns // GROUP) * GROUP), np.float32)
    extended[..., :columns] = numbers
    rounded = _decoded(*_encoded(extended.reshape(-1, GROUP)))
    return rounded.reshape(extended.shape)[..., :columns]


def _encoded(groups: NDArray[np.float32]) -> tuple[Bytes, Bytes]:
    """The exponents (..., 1) and elements (..., 16) of groups (..., 16)."""
    bits = np.ascontiguousarray(groups).view(np.uint32)
    exponents = bits >> 23 & 255
    shared = exponents.max(axis=-1, keepdims=True)
    significands = np.where(exponents == 0, 0, bits & 0x7FFFFF | 0x800000)
    significands >>= np.minimum(shared - exponents, 31)
    # 7 of 24 bits remain. Bits that the shift pushed out do not count, not even to break a tie.
    magnitudes = significands >> 17
    rest = significands & 0x1FFFF
    magnitudes += (rest > 0x10000) | ((rest == 0x10000) & (magnitudes & 1 == 1))
    magnitudes = np.minimum(magnitudes, _LARGEST)
    signs = np.where(magnitudes > 0, bits >> 31 << 7, 0)
    return shared.astype(np.uint8), (signs | magnitudes).astype(np.uint8)


def _decoded(exponents: Bytes, elements: Bytes) -> NDArray[np.float32]:
    magnitudes = (elements & _LARGEST).astype(np.uint32)
    # The position of the leading one, relative to the position that the exponent denotes.
    _, length = np.frexp(magnitudes.astype(np.float32))
    shift = (7 - length).astype(np.uint32)
    fractions = (magnitudes << (shift + 1) & 0x7F) << 16
    signs = (elements.astype(np.uint32) >> 7) << 31
    numbers = signs | (exponents.astype(np.uint32) - shift & 255) << 23 | fractions
    return np.where(magnitudes == 0, 0, numbers).astype(np.uint32).view(np.float32)
