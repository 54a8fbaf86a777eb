"""Some random parts of blocks, always the same ones; ``python -m tests.fuzz.parts`` checks other ones."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fuzz.parts import campaign
from ttexplore.passes import lower_tt_tile_intrinsics
from ttexplore.passes.normalize.blocks import nest_parts


@pytest.mark.slow
def test_parts_are_those_of_numpy() -> None:
    told = campaign(0, 16)
    for what in ("region", "turned", "copy", "element", "rows", "columns", "fill", "computed", "steps"):
        assert told[what] >= 1, told


def test_tiles_from_another_start_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    nearest = lower_tt_tile_intrinsics._nearest

    def first(index: Any, start: Any, count: int, known: Any) -> Any:
        return nearest(index, start * 0, count, known)

    monkeypatch.setattr(lower_tt_tile_intrinsics, "_nearest", first)
    with pytest.raises(AssertionError, match=r"differs|Not equal"):
        campaign(0, 16)


def test_parts_without_a_mask_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: Any) -> list[Any]:
        return []

    monkeypatch.setattr(nest_parts.Nest, "tests", none)
    with pytest.raises(AssertionError, match=r"differs|Not equal"):
        campaign(0, 16)
