"""Some random stores to parts of tensors, always the same ones; ``python -m tests.fuzz.kept`` checks other ones."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fuzz.kept import campaign
from ttexplore.passes.launches import coverage


def test_what_is_not_stored_stays() -> None:
    told = campaign(0, 12)
    for what in ("output", "inout", "known", "decided by numbers", "both sides"):
        assert told[what] >= 1, told


def test_a_test_that_counts_for_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def unconditional(region: Any, _: Any) -> Any:
        return region

    monkeypatch.setattr(coverage, "_under", unconditional)
    with pytest.raises(AssertionError, match="seed"):
        campaign(0, 30)


@pytest.mark.slow
def test_a_side_of_a_branch_that_counts_for_both_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def first(then: Any, _: Any) -> Any:
        return then

    monkeypatch.setattr(coverage, "_common", first)
    monkeypatch.setattr(coverage.Region, "unless_known", lambda region, _: region)
    with pytest.raises(AssertionError, match="seed"):
        campaign(0, 60)
