"""C3 numbers the circular buffers and draws who moves which tiles."""

from __future__ import annotations

from tests.passes.conftest import PassGolden, Shown
from tests.passes.kernels import product


def test_golden(pass_golden: PassGolden) -> None:
    pass_golden("C3", Shown("inputs count from 0, outputs from 16", product))
