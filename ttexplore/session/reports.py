"""Pages of explorers, and two lowerings side by side."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

from ttexplore.given import flag, plain, wrong
from ttexplore.session.explored import NO_TIME, Explored
from ttexplore.session.pages import reported, write_report
from ttexplore.session.results import LoweringComparison
from ttexplore.views.figures.core_map import each, working_cores
from ttexplore.views.figures.l1_map import l1_used_bytes


def report(
    path: str | Path, *explorations: Explored, run: bool | None = None, names: Sequence[str] | None = None
) -> Path:  # fmt: skip
    """Write the explorers of one or more lowerings as one page that works offline, with an index if there are several.

    Of each it shows what :meth:`Explored.report` does. `names` are what the index and links call them, one for each,
    instead of the names of their kernels; the launches of one keep theirs. Raises UsageError if an argument is not an
    exploration or the file cannot be written, and what a run raises.
    """
    for exploration in cast(tuple[object, ...], explorations):
        if not isinstance(exploration, Explored):
            raise wrong("what to report", exploration, "explorations, as ttx.explore returns them")
    if not explorations:
        raise wrong("what to report", explorations, "explorations, as ttx.explore returns them")
    run, called = None if run is None else flag("run", run), plain(names)
    if called is not None and (
        not isinstance(called, list | tuple)
        or len(cast(Sequence[object], called)) != len(explorations)
        or not all(isinstance(name, str) for name in cast(Sequence[object], called))
    ):
        raise wrong("names", cast(object, called), f"a list of strings, one for each exploration: {len(explorations)}")
    pages = [reported(exploration, run) for exploration in explorations]
    if called is not None:
        pages = [
            # As the page and its links can have it.
            [dataclasses.replace(group[0], name=name.encode("utf-8", "backslashreplace").decode())]
            if len(group) == 1
            else group
            for group, name in zip(pages, cast(Sequence[str], called), strict=True)
        ]
    return write_report(path, explorations, [page for group in pages for page in group])


def compare_explorations(first: Explored, second: Explored) -> LoweringComparison:
    """Compare two lowerings side by side: options, cores, circular buffers, code size and predicted time.

    Raises UsageError if an argument is not an exploration.
    """
    for this_side in cast(tuple[object, ...], (first, second)):
        if not isinstance(this_side, Explored):
            raise wrong("one side of the comparison", this_side, "an exploration, as ttx.explore returns it")
    rows: list[tuple[str, str, str]] = [("target", first.target.name, second.target.name)]
    names = sorted({*first.plan.options, *second.plan.options})
    for name in names:
        this_side, that_side = (_option_told(name, side.plan.options.get(name)) for side in (first, second))
        rows.append((name, this_side, that_side))
    for title, measure in _MEASURES.items():
        rows.append((title, measure(first), measure(second)))
    times = first.estimated, second.estimated
    if NO_TIME not in times:
        rows.append(("time", *times))
    return LoweringComparison(rows, (first.trace, second.trace))


def _option_told(name: str, value: object) -> str:
    # Without one, the shortest predicted time decides.
    return "by predicted time" if name == "policy" and value is None else str(value)


def _cores(exploration: Explored) -> str:
    partition = exploration.plan.partition
    if partition is None:
        return "-"
    items = [core.items for core in partition.cores if core.items]
    return f"{working_cores(partition)}, {each(items)}" if items else working_cores(partition)


def _buffers(exploration: Explored) -> str:
    plan = exploration.plan
    return f"{len(plan.on_chip.buffers)} buffers, {l1_used_bytes(plan):,} B"


def _lines(exploration: Explored) -> str:
    if exploration.error:
        return "-"
    return ", ".join(f"{role} {len(exploration.code[role].lines)}" for role in ("reader", "compute", "writer"))


_MEASURES: dict[str, Callable[[Explored], str]] = {"cores": _cores, "L1": _buffers, "lines": _lines}
