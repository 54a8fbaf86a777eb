"""D1 splits the program into reader, compute kernel and writer."""

from __future__ import annotations

from tests.passes.conftest import PassGolden, Shown
from tests.passes.kernels import double


def test_golden(pass_golden: PassGolden) -> None:
    pass_golden("D1", Shown("load, compute, store", double))
