"""C2 replaces copies, products and element-wise blocks by tile operations."""

from __future__ import annotations

from tests.passes.conftest import PassGolden, Shown
from tests.passes.kernels import double, product


def test_golden(pass_golden: PassGolden) -> None:
    pass_golden("C2", Shown("an element-wise block", double), Shown("a product", product))
