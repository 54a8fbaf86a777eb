"""The headline facts of an exploration, shared by its page and its text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from ttexplore.plan import Partition, Plan
from ttexplore.record import StepRecord, Trace
from ttexplore.target import Target
from ttexplore.views.figures.core_map import core_count, summary
from ttexplore.views.figures.l1_map import l1_used_bytes
from ttexplore.views.markup import byte_size, plural, visible

_SHOWN_RANGES = 6
# The glyph of a step that changes nothing.
_NOTHING = "○"


def source_location(trace: Trace) -> str:
    """``gemm.py:12``: where the kernel's first known line is; empty if no line knows its origin."""
    spans = [origin.span for line in trace.source.lines for origin in line.origins]
    return visible(str(min(spans))) if spans else ""


def status(step: StepRecord) -> tuple[str, str]:
    """The glyph of a step and its meaning."""
    match (step.error is not None, step.changed_ir, step.changed_plan):
        case (True, _, _):
            return "✖", "failed"
        case (_, True, True):
            return "●", "changes IR and plan"
        case (_, True, _):
            return "●", "changes the IR"
        case (_, _, True):
            return "◐", "changes the plan"
        case _:
            return _NOTHING, "changes nothing"


def prose(step: StepRecord) -> str:
    """What the docstring says after its first sentence. An example keeps its indentation."""
    return textwrap.dedent(step.docstring).strip().removeprefix(step.summary).strip("\n")


def with_parts(steps: Iterable[StepRecord]) -> list[tuple[StepRecord, bool]]:
    """The steps, each followed by those of its parts that changed something or failed; with whether each is a part."""
    return [
        row
        for step in steps
        for row in ((step, False), *((part, True) for part in step.parts if status(part)[0] != _NOTHING))
    ]


_KINDS = (
    (True, False, "rewrites the program", "rewrite the program"),
    (False, True, "decides facts", "decide facts"),
    (True, True, "does both", "do both"),
    (False, False, "changes nothing", "change nothing"),
)


def tally(steps: Sequence[StepRecord]) -> str:
    """``15 steps: 6 rewrite the program, 8 decide facts, 1 does both``: each step counts once."""
    counts: list[str] = []
    for ir, plan, singular, many in _KINDS:
        count = sum((step.changed_ir, step.changed_plan) == (ir, plan) for step in steps)
        if count:
            counts.append(f"{count} {singular if count == 1 else many}")
    return f"{plural(len(steps), 'step')}: {', '.join(counts)}"


def _cores(partition: Partition) -> str:
    """``8×8 cores``, or the ranges where there are several or one that does not begin at the first core."""
    ranges = partition.core_ranges
    if not ranges or (len(ranges) == 1 and ranges[0].first == (0, 0)):
        columns, rows = partition.core_grid
        return f"{columns}×{rows} cores"
    if len(ranges) > _SHOWN_RANGES:
        return f"{plural(core_count(partition), 'core')} in {len(ranges)} ranges"
    return "cores " + ", ".join(
        f"({core_range.first[0]},{core_range.first[1]})"
        + ("" if core_range.first == core_range.last else f"–({core_range.last[0]},{core_range.last[1]})")
        for core_range in ranges
    )


def plan_facts(plan: Plan, target: Target | None) -> list[tuple[str, str]]:
    """The headline facts of a plan: cores, circular buffers, L1, compute configuration. Only what is decided."""
    facts: list[tuple[str, str]] = []
    if plan.partition:
        grid = "×".join(str(extent) for extent in plan.partition.grid)
        facts.append(("cores", f"grid {grid} on {_cores(plan.partition)}: {summary(plan.partition)}"))
    if plan.buffers:
        chip = plan.on_chip.buffers
        buffers = ", ".join(f"{visible(buffer.name)} {buffer.pages}" for buffer in chip)
        facts.append(("buffers", f"{plural(len(chip), 'circular buffer')}, tiles: {buffers}"))
        used = l1_used_bytes(plan)
        of_all = (
            f" of {byte_size(target.l1_usable_bytes)} ({100 * used / target.l1_usable_bytes:.1f} %)" if target else ""
        )
        facts.append(("L1", f"{byte_size(used)}{of_all} per core"))
    if plan.compute:
        config = plan.compute
        width = "fp32" if config.fp32_dest_acc_en else "16-bit"
        facts += [
            ("math fidelity", config.math_fidelity),
            ("DST", f"{plural(config.dst_tiles, 'tile')}, {width}"),
            ("accumulation", config.accumulate),
        ]
    return facts
