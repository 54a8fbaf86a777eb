"""What the processors of a core do over time: the parts that a replay has kept, with those of its periods filled in."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ttexplore.clock.events import ProcessorName
from ttexplore.clock.replay import Period, TimeSlice

# The most parts of all processors of a core.
MOST_PARTS = 6000


@dataclass(frozen=True, slots=True)
class CoreTrace:
    """When each processor of a core works and waits, in cycles from the start of the kernels, which is after the
    launch.

    In `gaps`, from a cycle to another, the parts before repeat, and are left out: there are too many. Of a program that
    does not repeat itself, what is after the cycle `until` is left out.
    """

    processors: Mapping[ProcessorName, tuple[TimeSlice, ...]]
    gaps: tuple[tuple[int, int], ...]
    until: int


def core_trace(
    parts: Mapping[ProcessorName, Sequence[TimeSlice]], periods: Iterable[Period], most: int = MOST_PARTS
) -> CoreTrace:
    """The trace of a core from what a replay kept. A period whose repetitions have more than `most` parts, with those
    before, becomes a gap."""
    left: dict[ProcessorName, deque[TimeSlice]] = {name: deque(kept) for name, kept in parts.items()}
    made: dict[ProcessorName, list[TimeSlice]] = {name: [] for name in parts}
    gaps: list[tuple[int, int]] = []
    added = 0
    for period in periods:
        for name, kept in left.items():
            made[name] += (_moved(one, added) for one in _taken(kept, period.at))
        now = period.at + added
        first = now - period.cycles
        again: dict[ProcessorName, list[TimeSlice]] = {
            name: [_cut(one, first, now) for one in _since(kept, first)] for name, kept in made.items()
        }
        missing = [(max(start, first), end) for start, end in gaps if end > first]
        count = sum(map(len, again.values())) * period.times + sum(map(len, made.values()))
        if count <= most:
            for by in (period.cycles * time for time in range(1, period.times + 1)):
                gaps += ((start + by, end + by) for start, end in missing)
                for name, kept in again.items():
                    made[name] += (_moved(one, by) for one in kept)
        else:
            gaps.append((now, now + period.cycles * period.times))
        added += period.cycles * period.times
    for name, kept in left.items():
        made[name] += (_moved(one, added) for one in kept)
    joined: dict[ProcessorName, list[TimeSlice]] = {name: _joined(kept) for name, kept in made.items()}
    each = most // max(1, len(joined))
    until = max((kept[-1].end for kept in joined.values() if kept), default=0)
    until = min([until, *(kept[each].start for kept in joined.values() if len(kept) > each)])
    shown: dict[ProcessorName, tuple[TimeSlice, ...]] = {
        name: tuple(one for one in kept if one.start < until) for name, kept in joined.items()
    }
    return CoreTrace(shown, tuple((start, end) for start, end in gaps if start < until), until)


def _taken(kept: deque[TimeSlice], until: int) -> Iterable[TimeSlice]:
    """The parts before a cycle, which are taken from those that are left; one that goes on is cut there."""
    while kept and kept[0].start < until:
        part = kept.popleft()
        if part.end > until:
            kept.appendleft(_cut(part, until, part.end))
            part = _cut(part, part.start, until)
        yield part


def _since(kept: Sequence[TimeSlice], first: int) -> list[TimeSlice]:
    """Those at the end of a list of parts that end after a cycle."""
    begin = len(kept)
    while begin and kept[begin - 1].end > first:
        begin -= 1
    return list(kept[begin:])


def _cut(part: TimeSlice, start: int, end: int) -> TimeSlice:
    """What lies between two cycles; of a part that both works and waits, as large a share works."""
    start, end = max(start, part.start), min(end, part.end)
    return TimeSlice(start, end, part.busy * (end - start) // (part.end - part.start), part.reason)


def _joined(parts: Iterable[TimeSlice]) -> list[TimeSlice]:
    """The same with neighbours joined that are alike, and all work or all wait."""
    made: list[TimeSlice] = []
    for part in parts:
        last = made[-1] if made else None
        if (
            last is not None
            and (last.end, last.reason) == (part.start, part.reason)
            and (last.busy > 0) == (part.busy > 0)
            and all(one.busy in (0, one.end - one.start) for one in (last, part))
        ):
            made[-1] = TimeSlice(last.start, part.end, last.busy + part.busy, part.reason)
        else:
            made.append(part)
    return made


def _moved(part: TimeSlice, by: int) -> TimeSlice:
    return TimeSlice(part.start + by, part.end + by, part.busy, part.reason) if by else part
