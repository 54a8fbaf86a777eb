"""D4 starts the engine once, and initializes an operation where another one ran last."""

from __future__ import annotations

from tests.passes.conftest import PassGolden, Shown
from tests.passes.kernels import double, product


def test_golden(pass_golden: PassGolden) -> None:
    pass_golden(
        "D4",
        Shown("operations that take turns", double),
        Shown("inits before all loops", product),
    )
