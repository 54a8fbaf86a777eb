"""Bfp8_b, a tile format in which 16 numbers share an exponent, as the SDK's host code packs and unpacks it.

The 16 elements of a row of a face are a group. A tile is 1088 bytes: the exponents of its 64 groups, biased as those of
float32, then for each element a sign and 7 bits of magnitude, the first of which stands for the power of two that the
exponent says. Packing rounds to the nearest, ties to even, and keeps to the largest magnitude instead of raising the
exponent.
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
    """Tiles (pages, 1024), elements in the order of memory, of any float dtype, as bytes (pages, 1088).

    Denormals and what is too small for the exponent of its group become 0; NaN and infinity leave of their group only
    what is nearly as large.
    """
    exponents, elements = _encoded(np.asarray(tiles, np.float32).reshape(-1, _GROUPS, GROUP))
    return np.concatenate([exponents.reshape(-1, _GROUPS), elements.reshape(-1, _GROUPS * GROUP)], axis=1)


def unpacked(pages: Bytes) -> NDArray[np.float32]:
    """The elements (pages, 1024) of tiles in bytes (pages, 1088); bfloat16 holds each of them exactly."""
    pages = pages.reshape(-1, TILE_BYTES)
    exponents, elements = pages[:, :_GROUPS, None], pages[:, _GROUPS:].reshape(-1, _GROUPS, GROUP)
    return _decoded(exponents, elements).reshape(-1, _GROUPS * GROUP)


def rounded_in_groups(values: Any) -> NDArray[np.float32]:
    """What packing leaves of a tensor (..., n), whose groups of 16 along the last axis share exponents."""
    numbers = np.asarray(values, np.float32)
    columns = numbers.shape[-1]
    whole = np.zeros((*numbers.shape[:-1], -(-columns // GROUP) * GROUP), np.float32)
    whole[..., :columns] = numbers
    left = _decoded(*_encoded(whole.reshape(-1, GROUP)))
    return left.reshape(whole.shape)[..., :columns]


def _encoded(groups: NDArray[np.float32]) -> tuple[Bytes, Bytes]:
    """The exponents (..., 1) and elements (..., 16) of groups (..., 16)."""
    bits = np.ascontiguousarray(groups).view(np.uint32)
    exponents = bits >> 23 & 255
    shared = exponents.max(axis=-1, keepdims=True)
    significands = np.where(exponents == 0, 0, bits & 0x7FFFFF | 0x800000)
    significands >>= np.minimum(shared - exponents, 31)
    # 7 of 24 bits stay. What the shift pushed out does not count, not even to break a tie.
    magnitudes = significands >> 17
    rest = significands & 0x1FFFF
    magnitudes += (rest > 0x10000) | ((rest == 0x10000) & (magnitudes & 1 == 1))
    magnitudes = np.minimum(magnitudes, _LARGEST)
    signs = np.where(magnitudes > 0, bits >> 31 << 7, 0)
    return shared.astype(np.uint8), (signs | magnitudes).astype(np.uint8)


def _decoded(exponents: Bytes, elements: Bytes) -> NDArray[np.float32]:
    magnitudes = (elements & _LARGEST).astype(np.uint32)
    # The place of the leading one, counted from the place that the exponent stands for.
    _, length = np.frexp(magnitudes.astype(np.float32))
    shift = (7 - length).astype(np.uint32)
    fractions = (magnitudes << (shift + 1) & 0x7F) << 16
    signs = (elements.astype(np.uint32) >> 7) << 31
    numbers = signs | (exponents.astype(np.uint32) - shift & 255) << 23 | fractions
    return np.where(magnitudes == 0, 0, numbers).astype(np.uint32).view(np.float32)
