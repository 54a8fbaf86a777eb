"""What processors do over time: parts and periods against a replay of every event."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import ttexplore as ttx
from tests.corpus import gemm
from tests.corpus.spine import SPINE
from ttexplore.clock.estimate import Estimate
from ttexplore.clock.events import ProcessorName
from ttexplore.clock.program import core_classes
from ttexplore.clock.rates import rates_of
from ttexplore.clock.replay import Period, TimeSlice, replay
from ttexplore.clock.trace import CoreTrace, core_trace
from ttexplore.errors import UsageError

CASES = [one for one in SPINE if one.on_chip][:6]
# No core waits for another: all do the same.
ALONE = {"multicast": "off"}


def estimated(exploration: ttx.Exploration) -> Estimate:
    found = exploration.estimate()
    assert isinstance(found, Estimate)
    return found


def traces(exploration: ttx.Exploration, *, by_periods: bool, most: int = 10**9) -> list[CoreTrace]:
    final = exploration.steps[-1].after
    classes = core_classes(final.functions, final.plan, exploration.target)
    found = replay(classes, rates_of(exploration.target), by_periods=by_periods, with_parts=True)
    assert bool(found.periods) == (found.skipped > 0)
    return [core_trace(parts, found.periods, most) for parts in found.parts]


@pytest.mark.parametrize("case", CASES, ids=lambda one: one.name)
def test_parts_add_up_to_what_the_replay_counts(case: Any) -> None:
    exploration = ttx.explore(case.make(), options=case.options)
    found = estimated(exploration)
    to_us = 1e6 / exploration.target.clock_hz
    for one, trace in zip(found.cores, traces(exploration, by_periods=True), strict=True):
        assert trace.gaps == ()
        for name, processor in one.processors.items():
            parts = trace.processors[name]
            assert all(before.end <= after.start for before, after in itertools.pairwise(parts))
            busy = sum(part.busy for part in parts) * to_us
            waits = sum(part.end - part.start - part.busy for part in parts) * to_us
            assert busy == pytest.approx(processor.busy_us, rel=0.02, abs=0.05)
            assert waits == pytest.approx(sum(processor.waits_us.values()), rel=0.02, abs=0.05)
            assert all(part.end * to_us <= processor.end_us + 1e-6 for part in parts)


@pytest.mark.parametrize("size", [256, 1024])
def test_periods_give_what_a_replay_of_every_event_gives(size: int) -> None:
    """To a cycle or two of a period: its transfers end at fractions of cycles."""
    exploration = ttx.explore(gemm(size, size, size, 64, 64, 32), options=ALONE)
    (short,), (whole,) = (traces(exploration, by_periods=one) for one in (True, False))
    assert short.gaps == whole.gaps == ()
    for name, parts in whole.processors.items():
        assert len(parts) == len(short.processors[name])
        for one, other in zip(parts, short.processors[name], strict=True):
            assert one.reason == other.reason
            assert one.start == pytest.approx(other.start, rel=2e-3, abs=20)


def part(start: int, end: int, busy: int | None = None) -> TimeSlice:
    return TimeSlice(start, end, end - start, None) if busy is None else TimeSlice(start, end, busy, "buffer")


def test_a_period_is_filled_in_and_what_goes_on_is_cut() -> None:
    kept: dict[ProcessorName, list[TimeSlice]] = {"math": [part(0, 4), part(6, 12), part(12, 14)]}
    found = core_trace(kept, [Period(10, 5, 2)])
    assert [(one.start, one.end) for one in found.processors["math"]] == [
        (0, 4), (6, 10), (11, 15), (16, 24),
    ]  # fmt: skip
    assert (found.gaps, found.until) == ((), 24)


def test_a_period_within_a_period() -> None:
    kept: dict[ProcessorName, list[TimeSlice]] = {"math": [part(0, 1), part(2, 3), part(5, 6)]}
    # From 2 to 3 a cycle later again; then all from 2 on, that is the turn, its repetition and what follows.
    found = core_trace(kept, [Period(4, 2, 1), Period(7, 7, 1)])
    assert [one.start for one in found.processors["math"]] == [0, 2, 4, 7, 9, 11, 14]


def test_what_would_be_too_much_becomes_a_gap() -> None:
    kept: dict[ProcessorName, list[TimeSlice]] = {"math": [part(0, 2), part(3, 4), part(5, 6, 0)]}
    found = core_trace(kept, [Period(4, 2, 100)], most=50)
    assert [(one.start, one.end) for one in found.processors["math"]] == [(0, 2), (3, 4), (205, 206)]
    assert (found.gaps, found.until) == (((4, 204),), 206)


def test_a_program_without_periods_is_cut_for_all_processors_at_one_cycle() -> None:
    kept: dict[ProcessorName, list[TimeSlice]] = {
        "math": [part(2 * k, 2 * k + 1) for k in range(100)], "pack": [part(0, 50), part(150, 160)]
    }  # fmt: skip
    found = core_trace(kept, [], most=40)
    assert (len(found.processors["math"]), len(found.processors["pack"]), found.until) == (20, 1, 40)


def test_the_trace_of_a_core() -> None:
    found = estimated(ttx.explore(gemm(256, 256, 256, 64, 64, 64), options=ALONE))
    assert found.trace((0, 0)) is found.trace((1, 0))
    assert {*found.trace((0, 0)).processors} == {"reader", "writer", "unpack", "math", "pack"}
    with pytest.raises(UsageError, match=r"core \(9, 9\) does not run the program") as caught:
        found.trace((9, 9))
    assert caught.value.hint.startswith("cores that do are (0, 0), (0, 1), ")
