"""Showing an exploration: as text, as an explorer at a place, and as a page that works offline."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ttexplore.backends.registry import recorder
from ttexplore.characters import Printed
from ttexplore.errors import TTExploreError
from ttexplore.files import write_file
from ttexplore.given import dictionary, flag, named, plain, wrong
from ttexplore.given import text as text_of
from ttexplore.record import JsonObject
from ttexplore.session.lowering import READ, WRITTEN
from ttexplore.session.recordings import busiest_core, recording
from ttexplore.session.results import Static
from ttexplore.session.runs import kernel_listings
from ttexplore.views.explorer import TABS
from ttexplore.views.launches import LaunchRow, launches_html, launches_text
from ttexplore.views.markup import plural
from ttexplore.views.report import Reported, report_html
from ttexplore.views.steps.exploration import exploration_html, exploration_text
from ttexplore.views.steps.history import ranges
from ttexplore.views.still import PLACE, still_html

if TYPE_CHECKING:
    from ttexplore.session.explored import Explored
    from ttexplore.session.widget import ExplorerWidget

# The parts of a place at which an explorer opens.
_PLACE = ("tab", "step", "pin", "file")


def launch_rows(explored: Explored) -> list[LaunchRow]:
    """What goes from launch to launch."""
    return [
        LaunchRow(
            launch.kernel.name, tuple(tensor.name for tensor in launch._tensors(READ)),
            tuple(out.name for out in launch._tensors(WRITTEN)), launch._lowerings[0].state, launch.error is not None,
        )
        for launch in explored.launches
    ]  # fmt: skip


def headline(explored: Explored) -> str:
    state = explored._lowerings[0].state
    if explored._is_several:
        failed = [f"{row.name} {row.state}" for row in launch_rows(explored) if row.failed]
        state = failed[0] if failed else plural(len(explored.launches), "launch")
    return f"<exploration of {explored.kernel.name} for {explored.target.name}: {state}>"


def text(explored: Explored) -> str:
    if not explored._is_several:
        return exploration_text(explored.trace, explored.plan, explored.target)
    table = launches_text(explored.kernel.name, explored.target.name, launch_rows(explored))
    return "\n\n".join([table, *map(str, explored.launches)])


def html(explored: Explored) -> str:
    if not explored._is_several:
        return exploration_html(explored.trace, explored.target, explored.plan)
    summary = launches_html(explored.kernel.name, explored.target.name, launch_rows(explored))
    return summary + "".join(launch._repr_html_() for launch in explored.launches)


def static(explored: Explored) -> Static:
    """The exploration as a static page without a widget, as GitHub shows a notebook."""
    return Static(explored._repr_html_(), repr(explored))


def widget(explored: Explored, place: Mapping[str, str] | None = None) -> ExplorerWidget:
    """The interactive explorer, opened at the place of a view. A notebook shows it for an exploration by itself."""
    from ttexplore.session.watching import watched_explorer

    location = dictionary("place", {} if place is None else place, "parts of a place", '{"tab": "Code"}')
    for key, where in location.items():
        text_of(f"the {named('part of a place', key, _PLACE)} of the place", where)
    return watched_explorer(explored, location)


def view(
    explored: Explored,
    *,
    tab: str | None = None,
    step: int | str | None = None,
    pin: int | None = None,
    file: str | None = None,
) -> View:
    """The explorer, opened at a place: a tab, a step by number, name or letter, a pinned line of the kernel by the
    number that the explorer shows beside it, and an emitted file.

    A step opens Steps and a file Code, unless a tab is given. Raises UsageError if there is no such tab, step, line
    or file.
    """
    location: dict[str, str] = {}
    if file is not None:
        location |= {"tab": "Code", "file": named("file", file, explored.files)}
    if step is not None:
        location |= {"tab": "Steps", "step": explored.steps.single("step", step).letter}
    if pin is not None:
        lines = sorted({line for _, line in explored.data["places"]})
        pin = plain(pin)
        if not isinstance(pin, int) or isinstance(pin, bool) or pin not in lines:
            raise wrong("the line to pin", pin, f"a line of the kernel that the lowering uses: {ranges(lines)}")
        location["pin"] = str(pin)
    if tab is not None:
        tabs = {name.lower(): name for name in TABS}
        location["tab"] = tabs[named("tab", text_of("tab", tab).lower(), tabs)]
    return View(explored, location)


def display(explored: Explored, location: Mapping[str, str]) -> None:
    """Show the widget, and below it the static page for readers without a running kernel."""
    from IPython.display import publish_display_data  # pyright: ignore[reportUnknownVariableType]

    still = still_html(explored._repr_html_())
    publish_display_data({**explored.widget(location).view(), "text/html": PLACE, "text/plain": repr(explored)})
    publish_display_data({"text/html": still})


@dataclass(frozen=True, slots=True, repr=False)
class View(Printed):
    """The explorer of an exploration, opened at a place. A notebook shows it."""

    exploration: Explored
    place: Mapping[str, str]

    def __repr__(self) -> str:
        return repr(self.exploration)

    def _repr_html_(self) -> str:
        return self.exploration._repr_html_()

    def _ipython_display_(self) -> None:
        self.exploration._display(self.place)


def reported(explored: Explored, run: bool | None) -> list[Reported]:
    """The lowerings of the page, with the result of a run on the emulator: see :meth:`report`."""
    if explored._is_several:
        return [page for launch in explored.launches for page in reported(launch, run)]
    run = explored._has_kernel if run is None else run
    state: JsonObject = {}
    if explored._has_kernel and explored.error is None:
        lowering = explored._with_kernel("an estimate")
        # Of a program that has none, the page says nothing.
        with contextlib.suppress(TTExploreError):
            state["estimate"] = lowering.estimate_data()
        if lanes := lowering.lanes_data():
            state["gpu"] = lanes
    recorded = None
    if run and explored.error is None and recorder().missing() is None:
        done = explored.run(backend=recorder().name)
        state["recorded_run"] = done._repr_html_()
        assert done.execution is not None, "the recording backend returns one"
        assert done.execution.events is not None, "the emulator records events by default"
        events = done.execution.events
        recorded = (
            recording(explored, events, busiest_core(explored, events), kernel_listings(explored, {})).within().data
        )
    state_of = explored._lowerings[0].state + ("" if explored._has_kernel or run else ", not run")
    return [Reported(explored.data, explored._repr_html_(), f"{explored.target.name}, {state_of}", state, recorded)]


def write_report(path: str | Path, explorations: Sequence[Explored], pages: Sequence[Reported]) -> Path:
    """Write the pages of some explorations as one."""
    title = ", ".join(
        dict.fromkeys(f"{exploration.kernel.name} on {exploration.target.name}" for exploration in explorations)
    )
    return write_file(path, report_html(title, pages))


def report(explored: Explored, path: str | Path, *, run: bool | None = None) -> Path:
    """Write the explorer as one page that works offline, without Jupyter and without Python.

    Unless `run` is False, the page includes the result of a run on the emulator and the timeline of one core, if
    there is a C++ compiler and the lowering succeeded. A loaded exploration runs only with ``run=True``: its C++
    comes from the file. Raises UsageError if the file cannot be written, and what a run raises.
    """
    return write_report(path, [explored], reported(explored, None if run is None else flag("run", run)))
