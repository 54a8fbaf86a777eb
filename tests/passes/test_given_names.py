"""What things are called has no meaning: kernels with the names of passes, C++ and the SDK, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
from tests.corpus.names import allocation_in_macro, named_bounds, names_of_cpp, names_of_masks, names_of_passes

Numbers = np.ndarray[Any, Any]


def _sums(a: Numbers, b: Numbers) -> list[Numbers]:
    blocks: list[Numbers] = []
    for block in range(2):
        c = np.zeros((32, 64))
        for k in range(block + 1):
            part = a[k * 32 : k * 32 + 32]
            c = (c + part @ b) * 0.5 + part
        blocks.append(c)
    return [np.concatenate(blocks)]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (names_of_passes, _sums),
        (names_of_cpp, _sums),
        (names_of_masks, lambda a, b: [np.exp(a) @ b]),
        (allocation_in_macro, lambda a: [a * 2, a * 4]),
        (named_bounds, lambda a: [a]),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_names(make: Callable[[], Any], expected: Callable[..., list[Numbers]]) -> None:
    exploration = ttx.explore(make())
    assert exploration.error is None, str(exploration.error)
    inputs = exploration.inputs()
    assert exploration.check()
    run = exploration.run(inputs)
    assert run.passed, run.message
    wanted = expected(*(one.astype(np.float64) for one in inputs))
    for output, want in zip(run.outputs, wanted, strict=True):
        np.testing.assert_allclose(output, want, rtol=2e-3, atol=2e-3 * np.abs(want).max())


def test_a_macro_s_allocation_has_its_line_and_the_call_s() -> None:
    origins = [line.origins for line in ttx.explore(allocation_in_macro()).steps["A0"].listing.lines
               if "alloc_buffer" in line.text]  # fmt: skip
    assert origins
    assert all(len(one) == 3 for one in origins), origins
