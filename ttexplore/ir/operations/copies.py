"""Which blocks a region of a tensor is."""

from __future__ import annotations

import math
from collections.abc import Sequence


def is_block_of(region: Sequence[int], block: Sequence[int]) -> bool:
    """Whether the elements of a region of a tensor, by its extents, have the rows and columns of a block on the chip.

    Axes of one element do not count. The rows of a block may lie along several axes of the tensor, as those of a block
    of more than two dimensions do.
    """
    if _long(region) == _long(matrix := _matrix(block)):
        return True
    return len(matrix) == 2 and _matrix(region) == matrix


def _matrix(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(shape) if len(shape) < 3 else (math.prod(shape[:-1]), shape[-1])


def _long(shape: Sequence[int]) -> list[int]:
    return [extent for extent in shape if extent != 1]
