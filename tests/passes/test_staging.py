"""The storage of values is decided once, for the kernel without unused values; and no store goes with these."""

from __future__ import annotations

from typing import Any

import pytest

import ttexplore as ttx
from tests.corpus import two_outputs
from tests.rewriting import rewrite
from ttexplore.errors import VerifyError
from ttexplore.ir.build import op_name, regions
from ttexplore.ir.rewrite import Firings
from ttexplore.passes.unused import without_unused


def test_it_is_kept_until_it_is_carried_out() -> None:
    ex = ttx.explore(two_outputs())
    decided = ex.steps["A2"].after.staging
    assert decided is not None
    assert all(ex.steps[letter].after.staging is decided for letter in ("A3", "B1", "B2"))
    assert ex.steps["C1"].after.staging is None
    held = [name for name, one in decided.buffers.items() if one.kind == "cb"]
    assert held == [buffer.name for buffer in ex.steps["C1"].plan.buffers]


def test_a_store_that_goes_with_unused_values_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the kernel stores is told by the kernel before any pass has changed it."""

    def store_of_c(statement: Any) -> list[Any] | None:
        stores = op_name(statement) == "tl.copy" and str(regions(statement)[1].source.name) == "C"
        return [] if stores else None

    def forgetful(function: Any, firings: Firings) -> tuple[Any, tuple[str, ...]]:
        return without_unused(rewrite(function, store_of_c), firings)

    monkeypatch.setattr("ttexplore.passes.propagate_tt_layout.without_unused", forgetful)
    ex = ttx.explore(two_outputs())
    assert isinstance(ex.error, VerifyError)
    assert "of C is never written" in ex.error.message
