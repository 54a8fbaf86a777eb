"""What the lines of a kernel and of its C++ cost, as the explorer shows it beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ttexplore.plan import KernelRole
from ttexplore.record import Trace
from ttexplore.views.markup import visible
from ttexplore.views.runs.predicted import megabytes
from ttexplore.views.runs.times import short_time

if TYPE_CHECKING:
    # Nothing of the clock is needed to show what it found.
    from ttexplore.clock.costs import OperationCost
    from ttexplore.clock.estimate import Estimate

# Lines that take less of the time are not marked.
_LEAST_SHARE = 0.001
# Shorter waits are not told.
_SHORTEST_US = 0.05


def cost_data(
    estimate: Estimate, lines: Mapping[KernelRole, Sequence[tuple[int, ...]]], trace: Trace
) -> dict[str, Any]:
    """The costs by line: of the kernel by its numbers, and of each file by its numbers from 1. Of a line are told the
    shares of the time in which the processor that spends most on it works, and waits, and all processors in words.

    `lines` are those of the operations of each kernel by their positions.
    """
    files: dict[str, dict[int, list[OperationCost]]] = {}
    kernel: dict[int, list[OperationCost]] = {}
    for cost in estimate.costs:
        numbers = lines[cost.kernel][cost.operation]
        if not numbers:
            continue
        name = f"{cost.kernel}.cpp"
        files.setdefault(name, {}).setdefault(numbers[0], []).append(cost)
        origins = trace.files[name].lines[numbers[0] - 1].origins
        if origins:
            kernel.setdefault(origins[0].span.line, []).append(cost)
    end = max(core.end_us for core in estimate.cores)
    return {
        "kernel": _told_by_line(kernel, end),
        "files": {name: _told_by_line(by_line, end) for name, by_line in files.items()},
    }


def _told_by_line(by_line: Mapping[int, list[OperationCost]], end: float) -> dict[str, Any]:
    told = {f"{number}": _told(costs, end) for number, costs in sorted(by_line.items())}
    return {number: cost for number, cost in told.items() if cost is not None}


def _told(costs: Iterable[OperationCost], end: float) -> list[Any] | None:
    busy: dict[str, float] = {}
    waits: dict[str, dict[str, float]] = {}
    moved = 0
    for cost in costs:
        busy[cost.processor] = busy.get(cost.processor, 0) + cost.busy_us
        moved += cost.moved_bytes
        for label, us in cost.waits_us.items():
            of_processor = waits.setdefault(cost.processor, {})
            of_processor[label] = of_processor.get(label, 0) + us
    total = {name: us + sum(waits.get(name, {}).values()) for name, us in busy.items()}
    # The one that works most, or else waits longest.
    most = max(total, key=lambda name: (round(busy[name] / end, 3), total[name]))
    if total[most] < _LEAST_SHARE * end:
        return None
    words: list[str] = []
    for name in sorted(total, key=lambda name: -total[name]):
        waited = ", ".join(
            f"for {label} {short_time(us)}"
            for label, us in sorted(waits.get(name, {}).items(), key=lambda wait: -wait[1])
            if us >= _SHORTEST_US
        )
        share = f"{busy[name] / end:.1%}".replace("%", " %")
        words.append(f"{name} works {short_time(busy[name])} ({share})" + (f", waits {waited}" if waited else ""))
    if moved:
        words.append(f"{megabytes(moved)} moved")
    shares = [round(100 * us / end, 1) for us in (busy[most], total[most] - busy[most])]
    return [*shares, visible("; ".join(words) + f"; of {short_time(end)}, an estimate")]
