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
    segments_of: Mapping[ProcessorName, Sequence[TimeSlice]], periods: Iterable[Period], most: int = MOST_PARTS
) -> CoreTrace:
    """The trace of a core from what a replay kept. A period whose repetitions have more than `most` parts, with those
    before, becomes a gap."""
    remaining: dict[ProcessorName, deque[TimeSlice]] = {name: deque(segments) for name, segments in segments_of.items()}
    traced: dict[ProcessorName, list[TimeSlice]] = {name: [] for name in segments_of}
    gaps: list[tuple[int, int]] = []
    added = 0
    for period in periods:
        for name, segments in remaining.items():
            traced[name] += (_moved(segment, added) for segment in _taken(segments, period.at))
        now = period.at + added
        first = now - period.cycles
        again: dict[ProcessorName, list[TimeSlice]] = {
            name: [_cut(segment, first, now) for segment in _since(segments, first)]
            for name, segments in traced.items()
        }
        missing = [(max(start, first), end) for start, end in gaps if end > first]
        count = sum(map(len, again.values())) * period.times + sum(map(len, traced.values()))
        if count <= most:
            for by in (period.cycles * time for time in range(1, period.times + 1)):
                gaps += ((start + by, end + by) for start, end in missing)
                for name, segments in again.items():
                    traced[name] += (_moved(segment, by) for segment in segments)
        else:
            gaps.append((now, now + period.cycles * period.times))
        added += period.cycles * period.times
    for name, segments in remaining.items():
        traced[name] += (_moved(segment, added) for segment in segments)
    joined: dict[ProcessorName, list[TimeSlice]] = {name: _joined(segments) for name, segments in traced.items()}
    each = most // max(1, len(joined))
    until = max((segments[-1].end for segments in joined.values() if segments), default=0)
    until = min([until, *(segments[each].start for segments in joined.values() if len(segments) > each)])
    shown: dict[ProcessorName, tuple[TimeSlice, ...]] = {
        name: tuple(segment for segment in segments if segment.start < until) for name, segments in joined.items()
    }
    return CoreTrace(shown, tuple((start, end) for start, end in gaps if start < until), until)


def _taken(segments: deque[TimeSlice], until: int) -> Iterable[TimeSlice]:
    """The parts before a cycle, which are taken from those that are left; one that goes on is cut there."""
    while segments and segments[0].start < until:
        segment = segments.popleft()
        if segment.end > until:
            segments.appendleft(_cut(segment, until, segment.end))
            segment = _cut(segment, segment.start, until)
        yield segment


def _since(segments: Sequence[TimeSlice], first: int) -> list[TimeSlice]:
    """Those at the end of a list of parts that end after a cycle."""
    begin = len(segments)
    while begin and segments[begin - 1].end > first:
        begin -= 1
    return list(segments[begin:])


def _cut(segment: TimeSlice, start: int, end: int) -> TimeSlice:
    """What lies between two cycles; of a part that both works and waits, as large a share works."""
    start, end = max(start, segment.start), min(end, segment.end)
    return TimeSlice(start, end, segment.busy * (end - start) // (segment.end - segment.start), segment.reason)


def _joined(segments: Iterable[TimeSlice]) -> list[TimeSlice]:
    """The same with neighbours joined that are alike, and all work or all wait."""
    merged: list[TimeSlice] = []
    for segment in segments:
        last = merged[-1] if merged else None
        if (
            last is not None
            and (last.end, last.reason) == (segment.start, segment.reason)
            and (last.busy > 0) == (segment.busy > 0)
            and all(neighbour.busy in (0, neighbour.end - neighbour.start) for neighbour in (last, segment))
        ):
            merged[-1] = TimeSlice(last.start, segment.end, last.busy + segment.busy, segment.reason)
        else:
            merged.append(segment)
    return merged


def _moved(segment: TimeSlice, by: int) -> TimeSlice:
    return TimeSlice(segment.start + by, segment.end + by, segment.busy, segment.reason) if by else segment
