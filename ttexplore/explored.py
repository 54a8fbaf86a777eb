"""What can be done with an exploration that is plain data: read it, draw it, run its texts, export it, save it.

An exploration of :mod:`ttexplore.exploration` can do this and more, as it has the kernel itself; one that was saved
and loaded again is no more than this. Nothing here needs TVM.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast

from numpy.typing import NDArray

from ttexplore.archive import Archive, Kept, write_archive
from ttexplore.backends.base import Deadlock, Execution, KernelFault, Wait
from ttexplore.backends.base import Program as EmittedProgram
from ttexplore.backends.compare import Comparison, RoundingErrors, Side
from ttexplore.backends.registry import BACKENDS, DEFAULT_BACKEND, Arithmetic, BackendEntry, recorder
from ttexplore.backends.remedy import remedy
from ttexplore.errors import TTExploreError, UsageError, memory_for, shown, unknown
from ttexplore.files import write_file, write_files
from ttexplore.given import named, plain, whole, wholes, wrong
from ttexplore.given import text as text_of
from ttexplore.inputs import Inputs, Tensor, arrays_for, make_inputs, own_dtype
from ttexplore.ops.storage import rounded
from ttexplore.pass_names import pass_name
from ttexplore.plan import KERNEL_ROLES, Plan
from ttexplore.record import Line, Listing, OptionForm, Span, StepRecord, Trace, lines_of
from ttexplore.request import RunRequest
from ttexplore.results import Check, Code, Drawing, Graph, LoweringComparison, Run, Static, StepDiff
from ttexplore.target import Target
from ttexplore.views.cb_graph import cb_graph_svg
from ttexplore.views.core_map import core_map_svg, each
from ttexplore.views.deadlock import deadlock_svg
from ttexplore.views.diff import diff_html
from ttexplore.views.dot import dataflow_dot, passes_dot
from ttexplore.views.exploration import exploration_html, exploration_text
from ttexplore.views.explorer import explorer_data
from ttexplore.views.history import Found, LineHistory, find_text, line_history
from ttexplore.views.l1_map import l1_map_svg
from ttexplore.views.markup import plural
from ttexplore.views.report import report_html
from ttexplore.views.still import PLACE, still_html
from ttexplore.views.timeline import Timeline, timeline
from ttexplore.views.why import Why, why
from ttexplore.views.work_map import work_map_svg

if TYPE_CHECKING:
    from ttexplore.widget import ExplorerWidget

Array = NDArray[Any]

_FILE_OF = {"reader": "reader.cpp", "compute": "compute.cpp", "writer": "writer.cpp", "host": "main.cpp"}
_NO_REFERENCE = "there is no reference for these inputs: the outputs are compared with nothing"


class BaseStep(ABC):
    """One pass as it ran."""

    @functools.cached_property
    @abstractmethod
    def record(self) -> StepRecord:
        """The step as plain data."""

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def letter(self) -> str: ...

    @property
    @abstractmethod
    def summary(self) -> str: ...

    @functools.cached_property
    @abstractmethod
    def listing(self) -> Listing:
        """The IR after the step, each line with its origins."""

    @property
    @abstractmethod
    def error(self) -> TTExploreError | None: ...

    def diff(self) -> StepDiff:
        """What the step changed, in the IR and in the plan."""
        return StepDiff(self.record)

    def why(self, line: int) -> Why:
        """Which rules of the step made a line of the program after it, counted from 1, and of which lines before it.

        Raises UsageError for a line that the program does not have.
        """
        step = self.record
        return why(step, whole("a line of the program after the step", line, 1, len(step.after.lines)))

    def __str__(self) -> str:
        return f"{self.letter} {self.name}: {self.summary}\n\n{self.listing}"

    def __repr__(self) -> str:
        return f"<step {self.letter} {self.name}>"

    def _repr_html_(self) -> str:
        return diff_html(self.record)


StepT = TypeVar("StepT", bound=BaseStep)


class Steps(Sequence[StepT], Generic[StepT]):
    """The steps of an exploration, by index, name or letter; ``steps.B1`` is ``steps["B1"]``. The names of TileLang's
    documents are found, too (:mod:`ttexplore.pass_names`)."""

    def __init__(self, steps: Sequence[StepT], pipeline: Sequence[str] = ()) -> None:
        self._steps = tuple(steps)
        self._pipeline = tuple(pipeline)

    def __len__(self) -> int:
        return len(self._steps)

    def __iter__(self) -> Iterator[StepT]:
        return iter(self._steps)

    def __getitem__(self, key: Any) -> Any:
        """The step. Raises UsageError where there is none of that name or letter."""
        key = plain(key)
        if isinstance(key, slice):
            return self._steps[key]
        if isinstance(key, int) and not isinstance(key, bool):
            if not -len(self) <= key < len(self):
                raise UsageError("U001", f"there is no step {shown(key)}", hint=f"steps are 0 to {len(self) - 1}")
            return self._steps[key]
        if not isinstance(key, str):
            raise UsageError(
                "U001", f"there is no step {shown(key)}", hint="steps have numbers, names and letters, as B1"
            )
        for step in self._steps:
            if key in (step.name, step.letter) or pass_name(key) == step.name:
                return step
        if key in self._pipeline or pass_name(key) in self._pipeline:
            failed = self._steps[-1]
            raise UsageError("U006", f"step {key} was not reached: {failed.name} failed", hint=str(failed.error))
        letters = ", ".join(step.letter for step in self._steps)
        meant = unknown("step", key, self._names()).hint.partition("? ")
        hint = f"{meant[0]}? steps are {letters}" if meant[1] else f"steps are {letters}"
        raise UsageError("U001", f"there is no step {shown(key)}", hint=hint)

    def __getattr__(self, name: str) -> StepT:
        # Whatever asks for a private name asks whether this is something else: a NumPy array, a widget.
        if not name.startswith("_"):
            for step in self._steps:
                if name in (step.name, step.letter) or pass_name(name) == step.name:
                    return step
        raise AttributeError(f"there is no step {name!r}")

    def _names(self) -> list[str]:
        return [name for step in self._steps for name in (step.letter, step.name)]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._names()]

    def _ipython_key_completions_(self) -> list[str]:
        return self._names()

    def __repr__(self) -> str:
        return "\n".join(f"{step.letter}  {step.name}" for step in self._steps)


class Explored(ABC):
    """The steps, plan and code of a lowering, and what can be done with them alone."""

    target: Target
    # What was explored: it has a name, its source as a listing, the file and its first line there.
    kernel: Any

    # What the kinds of exploration have in their own ways

    @property
    @abstractmethod
    def steps(self) -> Steps[Any]: ...

    @property
    @abstractmethod
    def plan(self) -> Plan:
        """The plan after the last step that ran."""

    @property
    @abstractmethod
    def error(self) -> TTExploreError | None:
        """The error that ended the lowering, None if it went through."""

    @functools.cached_property
    @abstractmethod
    def files(self) -> dict[str, Listing]:
        """Every file that export writes, by name. Raises the lowering's error, if it has one."""

    @functools.cached_property
    @abstractmethod
    def trace(self) -> Trace:
        """The exploration as plain data."""

    @property
    @abstractmethod
    def option_forms(self) -> Mapping[str, OptionForm]:
        """How each option of the passes is given, where that is known."""

    @abstractmethod
    def _reference(
        self, arrays: tuple[Array, ...], cancel: threading.Event | None = None
    ) -> tuple[Array, ...] | None:  # fmt: skip
        """The outputs of the traced kernel for these inputs; None where they cannot be known."""

    @abstractmethod
    def _rounding(self, arrays: tuple[Array, ...], cancel: threading.Event | None = None) -> RoundingErrors | None:
        """What rounding explains of an error of the outputs for these inputs; None where it cannot be known."""

    @abstractmethod
    def _interpreted(
        self, backend: BackendEntry, arrays: tuple[Array, ...], time_limit_seconds: float,
        cancel: threading.Event | None,
    ) -> Execution:  # fmt: skip
        """A run on a backend that executes the kernel or its IR."""

    @abstractmethod
    def fork(self, at: str | int | None = None, *, target: str | Target | None = None, **options: Any) -> Explored:
        """Lower again with other options, those of step `at`, or with another target."""

    @abstractmethod
    def check(self, inputs: Inputs = None, seed: int = 0, *, cancel: threading.Event | None = None) -> Check:
        """Execute the program after every step and compare it with the reference."""

    @abstractmethod
    def _sized(self, inputs: Inputs, sizes: Mapping[str, int] | None) -> Explored:
        """The exploration for the sizes that are given, or that the inputs have."""

    # Reading and drawing

    @property
    def code(self) -> dict[str, Code]:
        """The emitted C++: reader, compute, writer and host. Raises the lowering's error, if it has one."""
        return {role: Code(self.files[name]) for role, name in _FILE_OF.items()}

    def history(self, line: int) -> LineHistory:
        """Where a kernel line went: how many lines come from it after each step, and which of each emitted kernel.

        Raises UsageError for a line that is not the kernel's.
        """
        line = whole("a line of the kernel", line)
        try:
            return line_history(self.trace, line)
        except ValueError as error:
            raise UsageError("U003", str(error), hint="lines are counted as in the kernel's file or cell") from None

    def find(self, text: str) -> Found:
        """Where a text stands in the program and the plan: the first step that has it, the first that has lost it.

        Raises UsageError for what is no text.
        """
        return find_text(self.trace, text_of("what is looked for", text))

    @property
    def core_map(self) -> Drawing:
        """Which core does how much, on the chip's floorplan. Raises UsageError before B1."""
        if self.plan.partition is None:
            raise UsageError("U006", "the work is not partitioned yet", hint=str(self.error or ""))
        return Drawing(core_map_svg(self.target, self.plan.partition))

    @property
    def work_map(self) -> Drawing:
        """Which core does which block of the launch grid, and in which turn. Raises UsageError before B1."""
        if self.plan.partition is None:
            raise UsageError("U006", "the work is not partitioned yet", hint=str(self.error or ""))
        return Drawing(work_map_svg(self.plan.partition))

    @property
    def dataflow(self) -> Drawing:
        """The tile dataflow graph: tensors, kernels and the circular buffers between them."""
        return Drawing(cb_graph_svg(self.plan))

    @property
    def l1_map(self) -> Drawing:
        """What the circular buffers take of a core's L1."""
        return Drawing(l1_map_svg(self.plan, self.target))

    def dot(self, what: Literal["dataflow", "passes"] = "dataflow") -> Graph:
        """A graph for papers and slides: the tile dataflow, or the passes with what each decides and rewrites.

        Its text is always there; ``dot("passes").save("passes.svg")`` needs Graphviz. Raises UsageError for another
        name and before C3.
        """
        match named("graph", what, ("dataflow", "passes")):
            case "dataflow":
                if self.plan.graph is None:
                    raise UsageError("U006", "the tile dataflow is not decided yet", hint=str(self.error or ""))
                return Graph(dataflow_dot(self.plan))
            case _:
                return Graph(passes_dot(self.trace))

    def export(self, folder: str | Path, *, dot: bool = False) -> list[Path]:
        """Write the kernels, the host program, the plan and the runner, all or none: :mod:`ttexplore.files` tells what
        holds where the process is killed. With `dot`, the graphs of :meth:`dot` go with them.

        Raises UsageError for a folder, or a file in it, that cannot be written.
        """
        graphs = {"dataflow.dot": self.dot("dataflow").text, "passes.dot": self.dot("passes").text} if dot else {}
        return write_files({name: listing.text for name, listing in self.files.items()} | graphs, folder)

    def save(self, path: str | Path) -> Path:
        """Write everything that is shown, and the emitted code, to one file; ``ttexplore.load`` opens it without TVM.

        Inputs and reference of seed 0 go with it, if they have 16 MiB at most. Raises UsageError where the file cannot
        be written.
        """
        return write_archive(path, Archive(self.trace, self.plan, self.target, self._kept()))

    @abstractmethod
    def _kept(self) -> Kept | None:
        """Inputs and reference for a saved exploration to be compared with."""

    def report(self, path: str | Path, *, run: bool = True) -> Path:
        """Write the explorer as one page that works offline, without Jupyter and without Python.

        With `run`, the result of a run on the emulator and what happened on one core go with it, if a compiler is there
        and the lowering went through. Raises UsageError where the file cannot be written, and what a run raises.
        """
        state: dict[str, Any] = {}
        recorded = None
        if run and self.error is None and recorder().missing() is None:
            done = self.run(backend=recorder().name)
            state["recorded_run"] = done._repr_html_()
            assert done.execution is not None, "what records gives one"
            recorded = self._recorded(done.execution, None, self._kernel_listings({})).data
        return write_file(path, report_html(self.data, self._repr_html_(), state, recorded))

    # Running

    @memory_for("making the inputs")
    def inputs(self, seed: int = 0, kind: str = "random") -> tuple[Array, ...]:
        """Inputs in the tensors' own dtypes and the sizes of the plan.

        `kind` is ``random`` (normally distributed, int32 from -1000 to 1000, half of uint8 zero), ``uniform`` (from 0
        to 1), ``ones``, ``counting`` (0, 1, 2 ... 250 and again), ``identity`` (1 on the diagonal of the last two
        dimensions) or ``extreme`` (zeros, small and large magnitudes). Raises UsageError for another kind.
        """
        return make_inputs(kind, self._tensors(("input", "inout")), seed)

    def _tensors(self, roles: tuple[str, ...]) -> list[Tensor]:
        """The tensors with these roles, in parameter order."""
        layouts = sorted(self.plan.layouts, key=lambda layout: layout.position)
        return [Tensor(layout.name, layout.shape, layout.dtype) for layout in layouts if layout.role in roles]

    @memory_for("making the inputs")
    def _inputs(self, inputs: Inputs, seed: int) -> tuple[Array, ...]:
        """The inputs in storage precision, as float32 or int32. Raises UsageError for what is no such input."""
        tensors = self._tensors(("input", "inout"))
        arrays = arrays_for(inputs, tensors, seed)
        return tuple(rounded(array, tensor.dtype) for array, tensor in zip(arrays, tensors, strict=True))

    @memory_for("running the program")
    def run(
        self, inputs: Inputs = None, backend: str = DEFAULT_BACKEND, seed: int = 0, *,
        arithmetic: Arithmetic = "exact", device: str | None = None,
        environment: str | Path | None = None, time_limit_seconds: float | None = None,
        progress: Callable[[str], None] | None = None, cancel: threading.Event | None = None,
        sizes: Mapping[str, int] | None = None, code: Mapping[str, str] | None = None,
    ) -> Run:  # fmt: skip
        """Run the program and compare it with the reference.

        `inputs` are arrays for the input tensors, in parameter order or by name, of any float dtype; or a kind of
        :meth:`inputs`, as ``"ones"``; without them they are random.
        Where the kernel has T.dynamic sizes, these are what the inputs have, or are given in `sizes`.
        `backend` is ``reference`` (the traced kernel), ``interpreter`` (the final IR), ``emulator`` (the emitted C++)
        or ``ttnn`` (the emitted C++ through the real SDK). The emulator's `arithmetic` is ``exact``, with the chip's
        sums and products bit for bit, or ``fast``, with this machine's, for large sizes.

        Setting `cancel`, in another thread, ends the run and its processes, as `time_limit_seconds` do: without them
        the emulator's limit is 60 s and a device's 300 s, and the other backends have none. The reference that a
        result is compared with has no limit.

        Only ``ttnn`` takes a `device`: ``wolfpine`` (the default) or ``ttsim``, simulated chips, or ``card``; the
        `environment` folder of ``ttexplore setup device``; and `progress`, which is told what goes on. Its run is
        compared with the emulator's as well.

        `code` are texts of C++ to run instead of those that were emitted, by ``reader``, ``compute`` and ``writer``: to
        break a kernel and see what happens, or to try another form. Only ``emulator`` and ``ttnn`` run texts.

        A saved exploration has the reference of the inputs that it was saved with; with others it is not compared, and
        it runs on ``emulator`` and ``ttnn`` only.

        Raises UsageError for wrong inputs and backends, BackendError for a backend that is missing or a program
        that faults (Deadlock where its kernels wait for each other), Cancelled, VerifyError for a protocol fault in the
        interpreter.
        """
        request = RunRequest.checked(
            backend, inputs, seed, arithmetic=arithmetic, device=device, environment=environment,
            time_limit_seconds=time_limit_seconds, progress=progress, cancel=cancel, sizes=sizes, code=code,
        )  # fmt: skip
        return self._sized(request.inputs, request.sizes)._ran(request)

    def _ran(self, request: RunRequest) -> Run:
        """The run, in the sizes of this exploration."""
        cancel, backend = request.cancel, request.backend
        arrays = self._inputs(request.inputs, request.seed)
        listings = self._kernel_listings(request.code)
        execution = self._execution(request, listings, arrays)
        reference, rounding = self._reference(arrays, cancel), self._rounding(arrays, cancel)
        precisions = self.plan.precisions
        sides: list[Side] = []
        if reference is not None:
            name = f"{backend.name} against reference"
            sides.append(Side.of(name, execution.outputs, reference, precisions, rounding))
        other = BACKENDS[backend.compared_with] if backend.compared_with else None
        if other is not None and other.make is not None and other.missing() is None:
            second = other.make(request.settings).run(
                self._emitted(listings), arrays, time_limit_seconds=other.time_limit_seconds, cancel=cancel
            )
            name = f"{backend.name} against {other.name}"
            sides.append(Side.of(name, execution.outputs, second.outputs, (), rounding))
            if reference is not None:
                name = f"{other.name} against reference"
                sides.append(Side.of(name, second.outputs, reference, precisions, rounding))
        comparison = sides[0].comparison if reference is not None else _NOT_COMPARED
        own = self._tensors(("output", "inout"))
        outputs = tuple(o.astype(own_dtype(one.dtype)) for o, one in zip(execution.outputs, own, strict=True))
        return Run(
            backend.name, outputs, comparison.passed, comparison.pcc, comparison.max_rel_error, execution.seconds,
            "\n".join(part for part in (execution.message, comparison.message) if part), comparison, execution,
            tuple(sides), reference is not None,
        )  # fmt: skip

    def _execution(
        self, request: RunRequest, listings: Mapping[str, Listing], arrays: tuple[Array, ...]
    ) -> Execution:  # fmt: skip
        """What the backend makes of the program. Faults and deadlocks have their kernel lines."""
        if self.error is not None:
            raise self.error
        if request.runner is None:
            return self._interpreted(request.backend, arrays, request.time_limit_seconds, request.cancel)
        try:
            return request.runner.run(
                self._emitted(listings), arrays, time_limit_seconds=request.time_limit_seconds, cancel=request.cancel
            )
        except Deadlock as deadlock:
            raise self._explained(deadlock, listings, arrays, request.cancel) from None
        except KernelFault as fault:
            raise fault.at(kernel_line(fault, listings)) from None

    def _explained(
        self, deadlock: Deadlock, listings: Mapping[str, Listing], arrays: tuple[Array, ...],
        cancel: threading.Event | None,
    ) -> Deadlock:  # fmt: skip
        """The deadlock with its kernel line, and with what was found to resolve it."""
        plan = self.plan
        lines = {wait.kernel: kernel_line(wait, listings) for wait in deadlock.waits}
        found = remedy(deadlock, self._emitted(listings), arrays, cancel)
        drawn = deadlock_svg(deadlock.waits, plan, listings, lines)
        explained = Deadlock(
            deadlock.message, hint=found or deadlock.hint, core=deadlock.core, waits=deadlock.waits,
            event_count=deadlock.event_count, events=deadlock.events, svg=drawn,
        )  # fmt: skip
        explained.span = kernel_line(deadlock, listings)
        return explained

    def _kernel_listings(self, code: Mapping[str, str]) -> dict[str, Listing]:
        """The C++ of the three kernels, with the texts in `code` instead of those emitted: lines that are still there
        keep their origins. Empty where the lowering failed. Raises UsageError for other names."""
        for role in code:
            if role not in KERNEL_ROLES:
                raise unknown("kernel", role, KERNEL_ROLES)
            text_of(f"the {role} kernel", code[role], "a text of C++")
        if self.error is not None:
            return {}
        return {role: edited_listing(self.code[role].listing, code.get(role)) for role in KERNEL_ROLES}

    def _emitted(self, listings: Mapping[str, Listing]) -> EmittedProgram:
        return EmittedProgram({role: listing.text for role, listing in listings.items()}, self.plan)

    @memory_for("running the program")
    def timeline(
        self, core: tuple[int, int] | None = None, *, inputs: Inputs = None, seed: int = 0,
        sizes: Mapping[str, int] | None = None, code: Mapping[str, str] | None = None,
        cancel: threading.Event | None = None,
    ) -> Timeline:  # fmt: skip
        """Run on the emulator and record what happens on one core: how its circular buffers fill and empty, and who
        waits for whom.

        `core` are logical coordinates, by default of the core with the most work items. A deadlock ends the record,
        which tells it then; its core is the first that is blocked. Further arguments are those of :meth:`run`.

        Raises UsageError for a core that does no work, and what :meth:`run` raises, but for a deadlock.
        """
        core = None if core is None else cast("tuple[int, int]", wholes("core", core, 2, least=0))
        request = RunRequest.checked(recorder().name, inputs, seed, cancel=cancel, sizes=sizes, code=code)
        return self._sized(request.inputs, request.sizes)._timeline(request, core)

    def _timeline(self, request: RunRequest, core: tuple[int, int] | None) -> Timeline:
        """The record of the run, in the sizes of this exploration."""
        if self.error is not None:
            raise self.error
        assert request.runner is not None, "what records runs texts"
        plan, listings = self.plan, self._kernel_listings(request.code)
        try:
            execution = request.runner.run(
                self._emitted(listings), self._inputs(request.inputs, request.seed),
                time_limit_seconds=request.time_limit_seconds, cancel=request.cancel,
            )  # fmt: skip
        except Deadlock as deadlock:
            if deadlock.events is None:
                raise
            assert plan.partition is not None, "a program that runs has one"
            where = plan.partition.cores[deadlock.core]
            return timeline(
                deadlock.events, plan, (where.x, where.y), listings, stuck=deadlock.waits, deadlock=deadlock.message
            )
        except KernelFault as fault:
            raise fault.at(kernel_line(fault, listings)) from None
        return self._recorded(execution, core, listings)

    def _recorded(
        self, execution: Execution, core: tuple[int, int] | None, listings: Mapping[str, Listing]
    ) -> Timeline:  # fmt: skip
        """What an execution on the emulator recorded of a core, by default of the one with the most work items."""
        assert execution.events is not None, "the emulator records unless it is told not to"
        cores = self.plan.partition.cores if self.plan.partition else ()
        chosen = core or max(((one.x, one.y, one.items) for one in cores), key=lambda one: one[2])[:2]
        return timeline(execution.events, self.plan, chosen, listings)

    # Showing

    def __repr__(self) -> str:
        state = f"failed at {self.steps[-1].letter}" if self.error else f"{len(self.steps)} steps"
        return f"<exploration of {self.kernel.name} for {self.target.name}: {state}>"

    def __str__(self) -> str:
        return exploration_text(self.trace, self.plan, self.target)

    def _repr_html_(self) -> str:
        return exploration_html(self.trace, self.target, self.plan)

    def static(self) -> Static:
        """The exploration as a page without a widget, as a notebook on GitHub shows it."""
        return Static(self._repr_html_(), repr(self))

    @functools.cached_property
    def data(self) -> dict[str, Any]:
        """What the explorer shows, in JSON form."""
        return explorer_data(self.trace, self.plan, self.target, self.option_forms)

    @property
    def backends(self) -> list[dict[str, Any]]:
        """The backends by name, what is missing to run on them, empty for nothing, and whether they have a choice of
        arithmetic; what runs at once comes first."""
        # What every installation has comes first, the fastest before the others.
        shown = sorted(reversed(BACKENDS.values()), key=lambda one: not one.required)
        return [
            {"name": one.name, "missing": self._backend_missing(one), "arithmetic": "arithmetic" in one.takes}
            for one in shown
        ]

    def _backend_missing(self, backend: BackendEntry) -> str:
        """Why this exploration cannot run on a backend, empty where it can."""
        return backend.missing() or ""

    @property
    def missing(self) -> dict[str, str]:
        """Why the explorer cannot ``record``, ``check`` or ``fork``, for those that it cannot."""
        missing = recorder().missing()
        return {"record": missing} if missing else {}

    def widget(self) -> ExplorerWidget:
        """The interactive explorer; in a notebook, showing the exploration is enough."""
        from ttexplore.watching import watch_cells
        from ttexplore.widget import ExplorerWidget

        made = ExplorerWidget(self)
        watch_cells(made)
        return made

    def _ipython_display_(self) -> None:
        """Shows the widget, and below it the page for readers whom no kernel answers."""
        from IPython.display import publish_display_data  # pyright: ignore[reportUnknownVariableType]

        still = still_html(self._repr_html_())
        publish_display_data({**self.widget().view(), "text/html": PLACE, "text/plain": repr(self)})
        publish_display_data({"text/html": still})


_NOT_COMPARED = Comparison(False, float("nan"), float("nan"), float("nan"), None, _NO_REFERENCE)


def kernel_line(place: KernelFault | Wait, listings: Mapping[str, Listing]) -> Span | None:
    """The kernel's line behind the line of C++ where a fault happened or a kernel waits."""
    if place.kernel is None or place.cpp_line is None or place.kernel not in listings:
        return None
    origins = listings[place.kernel].lines[place.cpp_line - 1].origins
    return origins[0].span if origins else None


def edited_listing(listing: Listing, text: str | None) -> Listing:
    """`listing` with another text. Lines that are equal and in the same order keep their origins; those of a line that
    was changed in its place are inferred."""
    if text is None or text == listing.text:
        return listing
    new = lines_of(text)
    matcher = difflib.SequenceMatcher(None, [line.text for line in listing.lines], new, autojunk=False)
    lines = [Line(one) for one in new]
    for tag, first, last, at, end in matcher.get_opcodes():
        if tag == "equal":
            lines[at:end] = listing.lines[first:last]
        elif tag == "replace" and last - first == end - at:
            for position, line in enumerate(listing.lines[first:last], at):
                origins = tuple(dataclasses.replace(origin, kind="inferred") for origin in line.origins)
                lines[position] = Line(new[position], origins)
    return dataclasses.replace(listing, lines=tuple(lines))


def compare_explorations(first: Explored, second: Explored) -> LoweringComparison:
    """Both lowerings side by side: what differs in options, cores, circular buffers and code size.

    Raises UsageError for what is no exploration.
    """
    sides: tuple[Any, ...] = (first, second)
    for one in sides:
        if not isinstance(one, Explored):
            raise wrong("one side of the comparison", one, "an exploration, as ttx.explore returns it")
    rows: list[tuple[str, str, str]] = [("target", first.target.name, second.target.name)]
    names = sorted({*first.plan.options, *second.plan.options})
    rows += [(name, str(first.plan.options.get(name)), str(second.plan.options.get(name))) for name in names]
    for what, measure in _MEASURES.items():
        rows.append((what, measure(first), measure(second)))
    return LoweringComparison(rows)


def _cores(exploration: Explored) -> str:
    partition = exploration.plan.partition
    if partition is None:
        return "-"
    items = [core.items for core in partition.cores]
    return f"{plural(len(items), 'core')}, {each(items)}"


def _buffers(exploration: Explored) -> str:
    buffers = exploration.plan.buffers
    return f"{len(buffers)} buffers, {sum(buffer.total_bytes for buffer in buffers):,} B"


def _lines(exploration: Explored) -> str:
    if exploration.error:
        return "-"
    return ", ".join(f"{role} {len(exploration.code[role].lines)}" for role in ("reader", "compute", "writer"))


_MEASURES: dict[str, Callable[[Explored], str]] = {"cores": _cores, "L1": _buffers, "lines": _lines}
