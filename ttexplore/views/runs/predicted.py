"""The predicted time of a program as the explorer shows it: in a line, on a card, and as measures of the cores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ttexplore.noc_links import Step
from ttexplore.plan import Plan
from ttexplore.views.figures.core_map import Measure, core_steps, links_svg, measure_legend
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


def estimate_data(found: Estimate, plan: Plan) -> dict[str, Any]:
    """What is predicted, as plain JSON. `badge` is one line, `facts` and `gains` are the card: what each resource would
    save if it were free, the largest first, with its share of the time. `figures` compare with other lowerings, and
    `measures` colour the map of the cores of a plan. Every text says that it is an estimate, or stands below one that
    does."""
    bound = f"{found.bound} bound"
    share = f"{found.compute_share:.0%} of peak".replace("%", " %")
    gains = sorted(found.gains_us.items(), key=lambda one: -one[1])
    moved = f"{megabytes(found.read_bytes)} read, {megabytes(found.written_bytes)} written"
    longer = f": {found.us / found.roofline_us:.1f} times as long" if found.roofline_us else ""
    for_these = " for these inputs" if found.of_inputs else ""
    ran = "the interpreter ran it to see what elements of the inputs decide" if found.of_inputs else "nothing was run"
    return {
        "badge": f"{short_time(found.us)} estimate{for_these} · {bound} · {share}",
        "title": f"{short_time(found.us)}{for_these} for {visible(found.kernel)} on {visible(found.target)}, predicted "
        f"by a replay of the program: an estimate, {ran}",
        "of_inputs": found.of_inputs,
        "share": round(100 * found.compute_share),
        "facts": [
            ["error", found.accuracy.replace("%", " %")],
            ["bound", f"{found.bound}: {short_time(found.us - gains[0][1])} if it were free"],
            ["roofline", f"{short_time(found.roofline_us)} (compute {short_time(found.compute_peak_us)}, DRAM "
             f"{short_time(found.dram_peak_us)}){longer}"],
            ["peak", f"{share.partition(' of')[0]} of the rate of its math fidelity on all cores"],
            ["DRAM", f"{moved}; the tensors have {megabytes(found.tensor_bytes)}"],
            *([["NoC", f"{megabytes(found.links.most_bytes)} over the busiest link, {link}: "
                f"{short_time(found.links.us)} at least"]] if (link := found.links.busiest) else []),
        ],
        "gains": [
            [name, short_time(found.us - saved), round(100 * saved / found.us)] for name, saved in gains
        ],
        "figures": [
            ["time (estimate)", f"{short_time(found.us)}, {bound}"],
            ["share of peak (estimate)", share.partition(" of")[0]],
            ["DRAM transfers (estimate)", moved],
        ],
        "measures": [asdict(one) for one in estimate_measures(found, plan)],
    }  # fmt: skip


def estimate_measures(found: Estimate, plan: Plan) -> tuple[Measure, ...]:
    """What the cores of a plan do in the predicted time, in the order of its partition; what none of them does is left
    out. Shares are of the time of the whole program, and have one scale of colours, from 0 to 100 %."""
    assert plan.partition is not None, "what has a time has been lowered"
    by_core = {core: one for one in found.cores for core in one.cores}
    cores = [(by_core[core.x, core.y], core.items > 0) for core in plan.partition.cores]
    end = max(one.end_us for one in found.cores)

    def measure(name: str, value: Callable[[CoreEstimate], float], *, size: bool = False) -> Measure:
        # Cores without work have no colour.
        values = [round(value(one)) if works else 0 for one, works in cores]
        shown = [megabytes(one) if size else f"{one} %" for one in values]
        most = [one for one, (_, works) in zip(values, cores, strict=True) if works]
        steps = core_steps(values, most) if size else [heat_step(one, 100) for one in values]
        labels = (compact_count(one) if works else "" for one, (_, works) in zip(values, cores, strict=True))
        return Measure(name, tuple(shown), tuple(labels), tuple(steps), measure_legend(name, shown, values, steps))

    made = [
        measure("math busy (estimate)", lambda one: 100 * _math_us(one) / found.us),
        measure("waits for reads (estimate)", lambda one: 100 * _waits_us(one, "read") / found.us),
        measure("waits for other cores (estimate)", lambda one: 100 * _waits_us(one, "semaphore") / found.us),
        measure("end of work (estimate)", lambda one: 100 * one.end_us / end),
        measure("DRAM bytes (estimate)", lambda one: one.read_bytes + one.written_bytes, size=True),
    ]
    made.append(link_measure(found, plan))
    return tuple(one for one in made if {*one.labels} - {"", "0"})


def link_measure(found: Estimate, plan: Plan) -> Measure:
    """The bytes over the links that leave each core's router. A core has the colour of the busiest of them; of each
    node, the edges are its links: to the right and down on NoC 0, to the left and up on NoC 1."""
    assert plan.partition is not None, "what has a time has been lowered"
    leaving = [found.links.leaving((core.x, core.y)) if core.items else {} for core in plan.partition.cores]
    most = [max(links.values(), default=0) for links in leaving]
    steps = [heat_step(count, found.links.most_bytes) for count in most]
    shown = (", ".join(f"{megabytes(count)} {link.step}" for link, count in links.items()) for links in leaving)
    labels = (
        compact_count(count) if core.items else "" for count, core in zip(most, plan.partition.cores, strict=True)
    )
    legend = measure_legend(f"{_LINKS}: →↓ 0, ←↑ 1", [*map(megabytes, most)], most, steps, _LEGEND)
    edges: list[tuple[int, int, Step, int]] = [
        (link.x, link.y, link.step, count) for link, count in found.links.carried.items()
    ]
    drawn = links_svg(edges, found.links.target.noc_grid[1])
    return Measure(_LINKS, tuple(shown), tuple(labels), tuple(steps), legend + drawn)


def trace_data(found: Estimate, core: tuple[int, int]) -> dict[str, Any]:
    """When each processor of a core works and what it waits for, as plain JSON. Times are nanoseconds from the start of
    the kernels. `parts` are flat: start, end, the nanoseconds of work, and a position in `WAIT_KINDS`, -1 for none."""
    trace = found.trace(core)
    one = next(one for one in found.cores if core in one.cores)
    to_ns = 1000 * found.us / found.cycles
    end = max(one.end_us for one in found.cores)

    def ns(cycles: int) -> int:
        return round(cycles * to_ns)

    # What repeats, and what is beyond the parts that are kept.
    gaps = [[ns(start), ns(stop)] for start, stop in trace.gaps]
    if ns(trace.until) < round(1000 * one.end_us) - 1:
        gaps.append([ns(trace.until), round(1000 * one.end_us)])
    alike = len(one.cores)
    return {
        "end": round(1000 * end),
        "note": f"core {core}" + (f", one of {alike:,} that do the same" if alike > 1 else ""),
        "unit": "An estimate: microseconds of the device from the start of the kernels, which is "
        f"{short_time(found.us - max(end, found.links.us))} after the launch.",
        "kinds": list(WAIT_KINDS),
        "processors": [
            {"name": name, "told": _told(processor), "parts": [
                number for part in trace.processors.get(name, ())
                for number in (
                    ns(part.start), ns(part.end), ns(part.busy), _KIND_OF[part.reason] if part.reason else -1,
                )
            ]}
            for name, processor in one.processors.items()
        ],
        "gaps": gaps,
    }  # fmt: skip


def _told(one: ProcessorEstimate) -> str:
    """``works 71.2 µs, waits for registers 114 µs``."""
    waits = sorted(one.waits_us.items(), key=lambda wait: -wait[1])
    told = ", ".join(f"for {_WORDS[why]} {short_time(us)}" for why, us in waits if us >= _SHORTEST_US)
    return f"works {short_time(one.busy_us)}" + (f", waits {told}" if told else "")


def _math_us(one: CoreEstimate) -> float:
    return one.processors["math"].busy_us if "math" in one.processors else 0


def _waits_us(one: CoreEstimate, reason: str) -> float:
    """The longer wait of the two processors that move data."""
    found = [processor.waits_us for name, processor in one.processors.items() if name in _MOVERS]
    return max((us for waits in found for why, us in waits.items() if why == reason), default=0)


def megabytes(count: int) -> str:
    """``33.6 MB``, ``65.5 kB``, ``640 B``."""
    if count >= 1_000_000:
        return f"{count / 1e6:,.1f} MB"
    return f"{count / 1e3:,.1f} kB" if count >= 10_000 else f"{count:,} B"
