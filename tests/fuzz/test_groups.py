"""Some random groups of threads, always the same ones; ``python -m tests.fuzz.groups`` checks other ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.fuzz.groups import Described, Step, behaviours, campaign, verdict
from ttexplore.passes.normalize.threads.races import Races

RIGHT = Described(
    3, (1,),
    (
        (Step("wait", 1, parity=1), Step("load"), Step("arrive", 0)),
        (Step("wait", 0), Step("store"), Step("arrive", 1)),
    ),
    asynchronous=True, own_loops=False,
)  # fmt: skip


def test_what_is_lowered_is_right_under_all_schedules() -> None:
    told = campaign(0, 40)
    assert told["lowered"] >= 5, told
    assert told["lowered, changed"] >= 5, told
    assert told["wrong, rejected"] >= 10, told
    # A barrier can be needed although no schedule that was tried shows it.
    assert told["right in all schedules, rejected"] <= 3, told


def test_schedules() -> None:
    """What kernels are held to, by hand."""
    assert behaviours(RIGHT, 0) == {(1, 2, 3)}
    first, second = RIGHT.groups
    no_wait = Described(3, (1,), (first[1:], second), asynchronous=True, own_loops=False)
    assert len(behaviours(no_wait, 0)) > 1
    no_arrival = Described(3, (1,), (first[:-1], second), asynchronous=True, own_loops=False)
    assert behaviours(no_arrival, 0) == {None}


def test_a_slot_that_nothing_has_written_is_no_number() -> None:
    load, (wait, store, arrive) = RIGHT.groups[0], RIGHT.groups[1]
    other_slot = Described(1, (3,), (load, (wait, replace(store, shift=1), arrive)), asynchronous=True, own_loops=False)
    assert behaviours(other_slot, 0) == {(None,)}
    assert verdict(41305) == "lowered, changed"


def test_a_race_that_is_not_seen_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Races, "check", lambda *_: None)
    with pytest.raises(AssertionError, match="lowered, and it gives"):
        campaign(0, 40)
