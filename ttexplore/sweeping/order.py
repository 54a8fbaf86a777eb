"""In which order points are evaluated, and which of them by one worker: those together that share most."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from ttexplore.options import OPTIONS
from ttexplore.sweeping.space import Point

# Options are in the order of the passes: what the last ones look at varies fastest, and fastest of all the math
# fidelity, which most passes hand on unseen.
_SLOWEST_FIRST = sorted(OPTIONS, key=lambda name: name == "math_fidelity")


def trace_of(point: Point) -> str:
    """A text for the trace of a point: points with the same one differ in options only."""
    return repr((sorted(point.arguments.items()), point.target))


def parts_of(points: Sequence[Point], numbers: Iterable[int], size: int) -> list[list[int]]:
    """The `numbers` of points in parts of at most `size`. Points of one trace come one after another: in one part if
    that holds them, otherwise in even ones. Small traces share a part."""
    traces: dict[str, list[int]] = {}
    for number in numbers:
        traces.setdefault(trace_of(points[number]), []).append(number)
    batches: list[list[int]] = []
    room = 0
    for trace in traces.values():
        trace.sort(key=lambda number: [repr(points[number].options.get(name)) for name in _SLOWEST_FIRST])
        count = -(-len(trace) // size)
        if len(trace) <= room:
            batches[-1] += trace
            room -= len(trace)
        else:
            edges = [len(trace) * index // count for index in range(count + 1)]
            batches += [trace[first:last] for first, last in itertools.pairwise(edges)]
            room = size - len(trace) if count == 1 else 0
    return batches
