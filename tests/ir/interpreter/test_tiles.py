"""Tensors as tiles, and back."""

from __future__ import annotations

import numpy as np
import pytest

from ttexplore.ir.interpreter import tilize, untilize


@pytest.mark.parametrize("shape", [(64, 96), (3, 64, 32), (2, 2, 32, 32), (128,), (33, 50), (2, 1, 31), (1,), (70,)])
def test_tilize_and_back(shape: tuple[int, ...]) -> None:
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    tiles = tilize(values, np.nan)
    assert np.isnan(tiles).sum() == tiles.size - values.size
    np.testing.assert_array_equal(untilize(tiles, shape), values)
