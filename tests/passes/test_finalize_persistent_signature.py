"""E1 decides the order and kind of the arguments of each kernel."""

from __future__ import annotations

from tests.passes.conftest import PassGolden, Shown
from tests.passes.kernels import double


def test_golden(pass_golden: PassGolden) -> None:
    pass_golden("E1", Shown("addresses and the items of a core", double))
