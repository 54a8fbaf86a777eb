"""Some random sums over work items, always the same ones; ``python -m tests.fuzz.sums`` checks other ones."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fuzz.sums import campaign
from ttexplore.passes.normalize import owners


@pytest.mark.slow
@pytest.mark.thorough
def test_sums_are_those_of_numpy() -> None:
    told = campaign(0, 60)
    for what in (
        "add, shared",
        "add, shared, handed on",
        "min, shared, handed on",
        "partial sums, refused",
        "add, apart",
        "race, refused",
        "in place, apart",
        "max, shared",
        "add, shared, places of a tensor",
    ):
        assert told[what] >= 1, told


@pytest.mark.slow
def test_cores_hand_on_sums_wherever_they_can() -> None:
    told = campaign(0, 40, over_noc=True)
    for what in ("add, shared, handed on", "max, shared, handed on", "min, shared, handed on", "partial sums, refused"):
        assert told[what] >= 3, told
    assert sum(count for what, count in told.items() if what.endswith("handed on")) >= 15, told


def test_owners_that_are_not_found_are_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    def apart(*given: Any) -> list[int]:
        return [1] * len(given[-1])

    monkeypatch.setattr(owners, "_groups", apart)
    with pytest.raises(AssertionError, match=r"is written by core|a race is lowered|differs|Not equal|which core"):
        campaign(0, 30)
