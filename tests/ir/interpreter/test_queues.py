"""What a circular buffer holds of the tiles that are put into it."""

from __future__ import annotations

import numpy as np
import pytest

from ttexplore.control import FREE
from ttexplore.ir.interpreter.arrays import unwritten
from ttexplore.ir.interpreter.queues import Channel, Queue
from ttexplore.ir.interpreter.where import Limits, Where
from ttexplore.plan import CircularBuffer


@pytest.mark.parametrize("kind", [Queue, Channel])
@pytest.mark.parametrize(
    ("dtype", "data_format", "wanted"),
    [
        ("float32", "Float32", [256.0, 1.0 + 2.0**-9]),
        ("bfloat16", "Float16_b", [256.0, 1.0]),
        # Beside 256 a number of 7 bits has steps of 4.
        ("bfloat16", "Bfp8_b", [256.0, 0.0]),
    ],
)
def test_tiles_are_held_in_the_buffers_format(
    kind: type[Queue | Channel], dtype: str, data_format: str, wanted: list[float]
) -> None:
    where = Where(None, True, Limits(FREE, 0.0, 1))
    plan = CircularBuffer("a", 1, 1, data_format, "compute", "writer")
    buffer = kind(plan, dtype, where, unwritten((1, 32, 32), dtype))
    tile = np.zeros((32, 32), np.float32)
    tile[0, :2] = 256.0, 1.0 + 2.0**-9
    if isinstance(buffer, Queue):
        assert buffer.reserve(1) is None
    buffer.put(0, tile)
    assert buffer.tiles[0, 0, :2].tolist() == wanted
