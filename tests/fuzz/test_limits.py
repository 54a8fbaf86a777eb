"""Some random stores of parts of blocks, always the same ones; ``python -m tests.fuzz.limits`` checks other ones."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.fuzz.limits import campaign
from ttexplore.ir.operations.scans import Scan, scan_of
from ttexplore.passes.normalize.reductions import scans


@pytest.mark.slow
def test_what_numbers_of_tensors_decide_is_that_of_numpy() -> None:
    told = campaign(2, 8)
    for what in (
        "limited",
        "one after the other",
        "rows by index",
        "copied",
        "scanned",
        "variable",
        "any or all",
        "bools",
        "int8",
        "uint8",
    ):
        assert told[what] >= 1, told


def test_scans_that_start_at_the_wrong_end_are_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    def turned(statement: Any) -> Scan | None:
        found = scan_of(statement)
        return None if found is None else dataclasses.replace(found, reverse=not found.reverse)

    monkeypatch.setattr(scans, "scan_of", turned)
    with pytest.raises(AssertionError, match=r"differs|Not equal|not equal"):
        campaign(5, 1)
