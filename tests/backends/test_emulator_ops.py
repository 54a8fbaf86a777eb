"""The table of device operations runs in the emulator as it is: C++ text, init and header of each give its meaning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.backends.op_programs import FORMATS, INPUT_TILES, MATH, meaning, operations_program
from ttexplore.backends.emulator import Emulator
from ttexplore.ops import OPS

TF32, FLOAT32 = (
    next(form for form in FORMATS if form.name == name) for name in ("fp32 as TF32", "fp32, unpacked to DST")
)
# Functions that the chip computes with polynomials, and how far they may be off.
APPROXIMATED = dict.fromkeys(
    (
        "exp", "exp2", "log", "log2", "log_with_base", "sqrt", "rsqrt", "recip", "sigmoid", "tanh", "gelu", "silu",
        "sin", "cos", "power", "div_binary", "power_binary",
    ),
    1e-6,
) | {"erf": 5e-3}  # fmt: skip


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    """By operation: its input tiles and the emulator's output tiles."""
    generator = np.random.default_rng(7)
    found: dict[str, Any] = {}
    for form in (TF32, FLOAT32):
        # Multiples of 1/8 are exact in TF32, so the sources do not cut them.
        a, b = (generator.integers(-24, 25, (32 * INPUT_TILES, 32)).astype(np.float32) / 8 for _ in range(2))
        b[b == 0] = 1
        (out,) = Emulator().run(operations_program(form), [a, b]).outputs
        tiles = out.reshape(len(form.ops), INPUT_TILES, 32, 32)
        found |= {op.name: (a, b, tile) for op, tile in zip(form.ops, tiles, strict=True)}
    return found


@pytest.mark.parametrize("name", [op.name for op in MATH])
def test_an_operation_of_the_table_has_its_meaning(name: str, results: dict[str, Any]) -> None:
    op = OPS[f"tt.{name}"]
    a, b, out = results[name]
    tolerance = APPROXIMATED.get(name.removesuffix("_tile"), 0)
    left, right = a.reshape(-1, 32, 32), b.reshape(-1, 32, 32)
    for index in range(INPUT_TILES):
        expected = meaning(op, left[index], right[index])
        if name == "matmul_block":
            other = INPUT_TILES - 1 - index
            expected = expected + meaning(op, left[other], right[other])
        np.testing.assert_allclose(out[index], expected, rtol=tolerance, atol=tolerance)
