"""The predicted time of a program as the explorer shows it: in a line, on a card, and as measures of the cores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ttexplore.noc_links import Step
from ttexplore.plan import Plan
from ttexplore.views.figures.core_map import (
    Measure,
    core_count,
    core_steps,
    links_svg,
    measure_legend,
)
from ttexplore.views.figures.ulp_histogram import compact_count
from ttexplore.views.markup import visible
from ttexplore.views.runs.times import short_time
from ttexplore.views.theme import heat_step

if TYPE_CHECKING:
    # Nothing of the clock is needed to show what it found.
    from ttexplore.clock.estimate import CoreEstimate, Estimate, ProcessorEstimate

_MOVERS = ("reader", "writer")
# What processors wait for, as the explorer tells it apart, by the reasons of the replay.
WAIT_KINDS = ("transfers", "other cores", "buffers and registers")
_KIND_OF = {"read": 0, "write": 0, "semaphore": 1, "buffer": 2, "registers": 2}
_WORDS = {
    "read": "reads", "write": "writes", "semaphore": "other cores", "buffer": "circular buffers",
    "registers": "registers",
}  # fmt: skip
_LINKS = "NoC link bytes (estimate)"
# How many bytes its legend names, beside the directions.
_LEGEND = 3
# Shorter waits are not told.
_SHORTEST_US = 0.05


def estimate_data(estimate: Estimate, plan: Plan) -> dict[str, Any]:
    """What is predicted, as plain JSON. `badge` is one line, `facts` and `gains` are the card: what each resource would
    save if it were free, the largest first, with its share of the time. `figures` compare with other lowerings, and
    `measures` colour the map of the cores of a plan. Every text says that it is an estimate, or stands below one that
    does."""
    bound = f"{estimate.bound} bound"
    share = f"{estimate.compute_share:.0%} of peak".replace("%", " %")
    gains = sorted(estimate.gains_us.items(), key=lambda gain: -gain[1])
    moved = f"{megabytes(estimate.read_bytes)} read, {megabytes(estimate.written_bytes)} written"
    longer = f": {estimate.us / estimate.roofline_us:.1f} times as long" if estimate.roofline_us else ""
    for_these = " for these inputs" if estimate.of_inputs else ""
    ran = (
        "the interpreter ran it to see what elements of the inputs decide" if estimate.of_inputs else "nothing was run"
    )
    return {
        "badge": f"{short_time(estimate.us)} estimate{for_these} · {bound} · {share}",
        "title": f"{short_time(estimate.us)}{for_these} for {visible(estimate.kernel)} on {visible(estimate.target)}, "
        f"predicted "
        f"by a replay of the program: an estimate, {ran}",
        "of_inputs": estimate.of_inputs,
        "share": round(100 * estimate.compute_share),
        "facts": [
            ["error", estimate.accuracy.replace("%", " %")],
            ["bound", f"{estimate.bound}: {short_time(estimate.us - gains[0][1])} if it were free"],
            ["roofline", f"{short_time(estimate.roofline_us)} (compute {short_time(estimate.compute_peak_us)}, DRAM "
             f"{short_time(estimate.dram_peak_us)}){longer}"],
            ["peak", f"{share.partition(' of')[0]} of the rate of its math fidelity on all cores"],
            *_idle_told(estimate, plan),
            ["DRAM", f"{moved}; the tensors have {megabytes(estimate.tensor_bytes)}"],
            *([["NoC", f"{megabytes(estimate.links.most_bytes)} over the busiest link, {link}: "
                f"{short_time(estimate.links.us)} at least"]] if (link := estimate.links.busiest) else []),
        ],
        "gains": [
            [name, short_time(estimate.us - saved), round(100 * saved / estimate.us)] for name, saved in gains
        ],
        "figures": [
            ["time (estimate)", f"{short_time(estimate.us)}, {bound}"],
            ["share of peak (estimate)", share.partition(" of")[0]],
            ["DRAM transfers (estimate)", moved],
        ],
        "measures": [asdict(measure) for measure in estimate_measures(estimate, plan)],
    }  # fmt: skip


def _idle_told(estimate: Estimate, plan: Plan) -> list[list[str]]:
    """What the cores without work would bring at most: the same work, evenly on all cores."""
    assert plan.partition is not None, "what has a time has been lowered"
    cores, working = core_count(plan.partition), sum(core.items > 0 for core in plan.partition.cores)
    if working == cores:
        return []
    spent = sum(group.end_us * len(group.cores) for group in estimate.cores)
    least = estimate.us - estimate.kernels_us + spent / cores
    return [
        ["idle cores", f"{cores - working} of {cores}: the same work on all of them takes {short_time(least)} at least"]
    ]


def estimate_measures(estimate: Estimate, plan: Plan) -> tuple[Measure, ...]:
    """What the cores of a plan do in the predicted time, in the order of its partition; what none of them does is left
    out. Shares are of the time of the whole program, and have one scale of colours, from 0 to 100 %."""
    assert plan.partition is not None, "what has a time has been lowered"
    by_core = {core: estimate_of_core for estimate_of_core in estimate.cores for core in estimate_of_core.cores}
    cores = [(by_core[core.x, core.y], core.items > 0) for core in plan.partition.cores]
    end = max(core.end_us for core in estimate.cores)

    def measure(name: str, value: Callable[[CoreEstimate], float], *, size: bool = False) -> Measure:
        # Cores without work have no colour.
        values = [round(value(core)) if works else 0 for core, works in cores]
        shown = [megabytes(value) if size else f"{value} %" for value in values]
        most = [value for value, (_, works) in zip(values, cores, strict=True) if works]
        steps = core_steps(values, most) if size else [heat_step(value, 100) for value in values]
        labels = (compact_count(value) if works else "" for value, (_, works) in zip(values, cores, strict=True))
        return Measure(name, tuple(shown), tuple(labels), tuple(steps), measure_legend(name, shown, values, steps))

    measures = [
        measure("math busy (estimate)", lambda core: 100 * _math_us(core) / estimate.us),
        measure("waits for reads (estimate)", lambda core: 100 * _waits_us(core, "read") / estimate.us),
        measure("waits for other cores (estimate)", lambda core: 100 * _waits_us(core, "semaphore") / estimate.us),
        measure("end of work (estimate)", lambda core: 100 * core.end_us / end),
        measure("DRAM bytes (estimate)", lambda core: core.read_bytes + core.written_bytes, size=True),
    ]
    measures.append(link_measure(estimate, plan))
    return tuple(shown for shown in measures if {*shown.labels} - {"", "0"})


def link_measure(estimate: Estimate, plan: Plan) -> Measure:
    """The bytes over the links that leave each core's router. A core has the colour of the busiest of them; of each
    node, the edges are its links: to the right and down on NoC 0, to the left and up on NoC 1."""
    assert plan.partition is not None, "what has a time has been lowered"
    leaving = [estimate.links.leaving((core.x, core.y)) if core.items else {} for core in plan.partition.cores]
    most = [max(links.values(), default=0) for links in leaving]
    steps = [heat_step(count, estimate.links.most_bytes) for count in most]
    shown = (", ".join(f"{megabytes(count)} {link.step}" for link, count in links.items()) for links in leaving)
    labels = (
        compact_count(count) if core.items else "" for count, core in zip(most, plan.partition.cores, strict=True)
    )
    legend = measure_legend(f"{_LINKS}: →↓ 0, ←↑ 1", [*map(megabytes, most)], most, steps, _LEGEND)
    edges: list[tuple[int, int, Step, int]] = [
        (link.x, link.y, link.step, count) for link, count in estimate.links.carried.items()
    ]
    drawn = links_svg(edges, estimate.links.target.noc_grid[1])
    return Measure(_LINKS, tuple(shown), tuple(labels), tuple(steps), legend + drawn)


def trace_data(estimate: Estimate, core: tuple[int, int]) -> dict[str, Any]:
    """When each processor of a core works and what it waits for, as plain JSON. Times are nanoseconds from the start of
    the kernels. `parts` are flat: start, end, the nanoseconds of work, and a position in `WAIT_KINDS`, -1 for none."""
    trace = estimate.trace(core)
    group = next(group for group in estimate.cores if core in group.cores)
    to_ns = 1000 * estimate.us / estimate.cycles
    end = max(group.end_us for group in estimate.cores)

    def ns(cycles: int) -> int:
        return round(cycles * to_ns)

    # What repeats, and what is beyond the parts that are kept.
    gaps = [[ns(start), ns(stop)] for start, stop in trace.gaps]
    if ns(trace.until) < round(1000 * group.end_us) - 1:
        gaps.append([ns(trace.until), round(1000 * group.end_us)])
    alike = len(group.cores)
    return {
        "end": round(1000 * end),
        "note": f"core {core}" + (f", one of {alike:,} that do the same" if alike > 1 else ""),
        "unit": "An estimate: microseconds of the device from the start of the kernels, which is "
        f"{short_time(estimate.us - max(end, estimate.links.us))} after the launch.",
        "kinds": list(WAIT_KINDS),
        "processors": [
            {"name": name, "told": _told(processor), "parts": [
                number for span in trace.processors.get(name, ())
                for number in (
                    ns(span.start), ns(span.end), ns(span.busy), _KIND_OF[span.reason] if span.reason else -1,
                )
            ]}
            for name, processor in group.processors.items()
        ],
        "gaps": gaps,
    }  # fmt: skip


def _told(processor: ProcessorEstimate) -> str:
    """``works 71.2 µs, waits for registers 114 µs``."""
    waits = sorted(processor.waits_us.items(), key=lambda wait: -wait[1])
    told = ", ".join(f"for {_WORDS[why]} {short_time(us)}" for why, us in waits if us >= _SHORTEST_US)
    return f"works {short_time(processor.busy_us)}" + (f", waits {told}" if told else "")


def _math_us(core: CoreEstimate) -> float:
    return core.processors["math"].busy_us if "math" in core.processors else 0


def _waits_us(core: CoreEstimate, reason: str) -> float:
    """The longer wait of the two processors that move data."""
    waits_of = [processor.waits_us for name, processor in core.processors.items() if name in _MOVERS]
    return max((us for waits in waits_of for why, us in waits.items() if why == reason), default=0)


def megabytes(count: int) -> str:
    """``33.6 MB``, ``65.5 kB``, ``640 B``."""
    if count >= 1_000_000:
        return f"{count / 1e6:,.1f} MB"
    return f"{count / 1e3:,.1f} kB" if count >= 10_000 else f"{count:,} B"
