"""D3 reserves, moves and pushes in the producer; waits, uses and pops in the consumer."""

from __future__ import annotations

from tests.passes.conftest import PassGolden, Shown
from tests.passes.kernels import double, product


def test_golden(pass_golden: PassGolden) -> None:
    pass_golden(
        "D3",
        Shown("one block", double),
        Shown("two blocks that are read together share a barrier", product),
    )
