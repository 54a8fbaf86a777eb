"""Tensors to pages of tiles and back."""

from __future__ import annotations

import numpy as np
import pytest

from ttexplore.backends.emulator.tiles import tilize, untilize


def test_a_tile_is_four_faces() -> None:
    array = np.arange(1024, dtype=np.float32).reshape(32, 32)
    page = tilize(array)[0]
    for row, column in ((0, 0), (3, 5), (2, 20), (17, 1), (31, 31)):
        face = (row // 16) * 2 + column // 16
        assert page[face * 256 + row % 16 * 16 + column % 16] == array[row, column]


def test_pages_are_the_tiles_row_by_row() -> None:
    array = np.repeat(np.repeat(np.arange(6).reshape(2, 3), 32, axis=0), 32, axis=1)
    assert tilize(array)[:, 0].tolist() == [0, 1, 2, 3, 4, 5]


def test_padding_is_zero_and_per_matrix() -> None:
    array = np.ones((3, 50, 70), np.float32)
    pages = tilize(array)
    assert pages.shape == (3 * 2 * 3, 1024)
    assert pages.sum() == 3 * 50 * 70


@pytest.mark.parametrize("shape", [(), (70,), (32, 32), (33, 37), (3, 50, 70), (2, 3, 10, 32)])
def test_untilize_is_the_inverse(shape: tuple[int, ...]) -> None:
    array = np.random.default_rng(0).standard_normal(shape)
    np.testing.assert_array_equal(untilize(tilize(array), shape), array)
