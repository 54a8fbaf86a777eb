"""An exploration of either kind: what can be read, drawn, run, exported and shown of it.

What a lowering made here can do beyond that is in :mod:`ttexplore.exploration`. Nothing here needs TVM.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from numpy.typing import NDArray

from ttexplore.backends.moves import Moves
from ttexplore.backends.registry import BACKENDS, BackendEntry, recorder
from ttexplore.characters import Printed
from ttexplore.errors import TTExploreError, UsageError
from ttexplore.given import Parts
from ttexplore.plan import Plan
from ttexplore.record import JsonObject, Listing, OptionForm, Trace
from ttexplore.session import lowering, pages, reading, recordings, runs
from ttexplore.session.lowering import WRITTEN, Lowering
from ttexplore.session.results import Code, Drawing
from ttexplore.session.steps import Steps
from ttexplore.target import Target
from ttexplore.views.explorer import explorer_data
from ttexplore.views.figures.cb_graph import cb_graph_svg
from ttexplore.views.figures.core_map import core_map_svg
from ttexplore.views.figures.l1_map import l1_map_svg
from ttexplore.views.figures.work_map import work_map_svg
from ttexplore.views.markup import plural, visible
from ttexplore.views.runs.settings import Settings, settings

if TYPE_CHECKING:
    from ttexplore.exploration import Exploration

Array = NDArray[Any]

NEEDS_KERNEL = "needs the kernel itself, which a saved exploration does not contain"
# What stands for the time of a lowering that failed, or whose kernels are not there.
NO_TIME = "-"
_FILE_OF = {"reader": "reader.cpp", "compute": "compute.cpp", "writer": "writer.cpp", "host": "main.cpp"}


def needs_kernel(action: str) -> UsageError:
    return UsageError("U017", f"{action} {NEEDS_KERNEL}", hint="explore the kernel again: ttx.explore(kernel)")


@dataclass(frozen=True, eq=False, repr=False)
class Explored(Printed):
    """A kernel with the lowerings of its launches. Steps, plan and code are those of its only launch."""

    kernel: Any
    target: Target
    _lowerings: tuple[Lowering, ...]
    # Whether these are of launches of their own, which stand for the kernel; otherwise there is one, of the kernel.
    _is_several: bool = field(default=False, kw_only=True)

    # Whether its kernel is there, and its C++ of this process's making, so that reporting may run it unasked.
    _has_kernel: ClassVar[bool]

    @property
    def launches(self) -> tuple[Self, ...]:
        """The explorations of the kernel's launches, in order: this one itself, unless it has several T.Kernel."""
        return (self,)

    @property
    def option_forms(self) -> Mapping[str, OptionForm]:
        """The form in which each option of the passes is given; none where they cannot be chosen."""
        return {}

    # One launch or several

    def _of_each(self, subject: str) -> UsageError:
        return UsageError(
            "U019", f"{self.kernel.name} has {plural(len(self._lowerings), 'launch')}, each with {subject} of its own",
            hint="use those of one launch: ex.launches[0], and so on",
        )  # fmt: skip

    def _only(self, subject: str) -> Lowering:
        """The lowering of the only launch. Raises UsageError where several have a `subject` each."""
        if self._is_several:
            raise self._of_each(subject)
        return self._lowerings[0]

    def _with_kernel(self, action: str) -> Exploration:
        """The same with its kernel, which `action` needs. Raises UsageError where it is not there."""
        if not self._has_kernel:
            raise needs_kernel(action)
        return cast("Exploration", self)

    # Reading and drawing

    @property
    def steps(self) -> Steps[Any]:
        only = self._only("steps")
        return Steps(only.steps, only.pipeline)

    @property
    def plan(self) -> Plan:
        """The plan after the last step that ran."""
        return self._only("a plan").plan

    @property
    def error(self) -> TTExploreError | None:
        """The error that ended the lowering, None if it succeeded."""
        return next((launch.error for launch in self._lowerings if launch.error is not None), None)

    @property
    def files(self) -> dict[str, Listing]:
        """All files that export writes, by name. Raises the lowering's error, if it failed."""
        return self._only("files").files

    @property
    def trace(self) -> Trace:
        """The exploration as plain data."""
        return self._only("a trace").trace

    @property
    def code(self) -> dict[str, Code]:
        """The emitted C++: reader, compute, writer and host. Raises the lowering's error, if it failed."""
        return Parts("kernel", {role: Code(self.files[name]) for role, name in _FILE_OF.items()})

    @functools.cached_property
    def settings(self) -> Settings:
        """The options of all steps: what each is set to, by whom, its default, and where it cannot have an effect."""
        return settings(self.trace, self.plan, self._given)

    @property
    def _given(self) -> Collection[str]:
        """The names of the options that the user gave, as far as they are known."""
        return ()

    @property
    def core_map(self) -> Drawing:
        """The number of work items of each core, on the chip's floorplan. Raises UsageError before B1."""
        plan = self.plan
        return Drawing(core_map_svg(self.target, reading.partition(self), plan.shared, partials=plan.partials))

    @property
    def work_map(self) -> Drawing:
        """The core that runs each block of the launch grid, and in which turn. Raises UsageError before B1."""
        return Drawing(work_map_svg(reading.partition(self)))

    @property
    def dataflow(self) -> Drawing:
        """The tile dataflow graph: tensors, kernels and the circular buffers between them."""
        return Drawing(cb_graph_svg(self.plan))

    @property
    def l1_map(self) -> Drawing:
        """The share of a core's L1 that each circular buffer takes."""
        return Drawing(l1_map_svg(self.plan, self.target))

    history = reading.history
    find = reading.find
    dot = reading.dot
    export = reading.export
    save = reading.save

    # Running

    inputs = lowering.inputs
    run = runs.run
    timeline = recordings.timeline
    tile = recordings.tile
    _inputs = lowering.stored_inputs
    _tensors = lowering.tensors

    @property
    def _output_names(self) -> list[str]:
        """What messages call the outputs."""
        return [visible(tensor.name) for tensor in self._tensors(WRITTEN)]

    @functools.cached_property
    def _recorded_moves(self) -> list[tuple[dict[str, str], tuple[Array, ...], Moves]]:
        """The latest recorded moves, with the texts and the inputs that they are of; nothing before the first."""
        return []

    # Showing

    report = pages.report
    static = pages.static
    view = pages.view
    widget = pages.widget
    _repr_html_ = pages.html
    _display = pages.display

    def __repr__(self) -> str:
        return pages.headline(self)

    def __str__(self) -> str:
        return pages.text(self)

    def _ipython_display_(self) -> None:
        self._display({})

    @functools.cached_property
    def data(self) -> JsonObject:
        """The data that the explorer shows, in JSON form."""
        return explorer_data(self.trace, self.plan, self.target, self.option_forms, self.settings)

    @property
    def backends(self) -> list[JsonObject]:
        """For each backend its name, what it lacks to run (empty if nothing), whether it offers a choice of arithmetic,
        and its default time limit in seconds (None for none)."""
        # Backends of every installation come first, the fastest before the others.
        shown = sorted(reversed(BACKENDS.values()), key=lambda entry: not entry.required)
        return [
            {
                "name": entry.name, "missing": self._backend_missing(entry), "arithmetic": "arithmetic" in entry.takes,
                "limit": entry.time_limit_seconds if math.isfinite(entry.time_limit_seconds) else None,
            }
            for entry in shown
        ]  # fmt: skip

    def _backend_missing(self, backend: BackendEntry) -> str:
        """Why this exploration cannot run on a backend; empty if it can."""
        return NEEDS_KERNEL if backend.needs_kernel and not self._has_kernel else backend.missing() or ""

    @property
    def missing(self) -> dict[str, str]:
        """For each of ``record``, ``check``, ``fork``, ``edit``, ``estimate`` and ``gpu`` that the explorer cannot do,
        the reason."""
        missing = recorder().missing()
        absent = () if self._has_kernel else ("check", "fork", "edit", "estimate", "gpu")
        return ({"record": missing} if missing else {}) | dict.fromkeys(absent, NEEDS_KERNEL)

    @property
    def estimated(self) -> str:
        """The predicted time in one line, where it can be predicted."""
        return NO_TIME
