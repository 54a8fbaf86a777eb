"""D2 binds each accessor to arguments of the kernels that use it."""

from __future__ import annotations

from tests.passes.conftest import PassGolden, Shown
from tests.passes.kernels import double


def test_golden(pass_golden: PassGolden) -> None:
    pass_golden("D2", Shown("an input and an output", double))
