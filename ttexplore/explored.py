"""Operations on an exploration as plain data: reading, drawing, running its C++, exporting and saving.

Explorations in :mod:`ttexplore.exploration` have the kernel itself and can do more; loaded ones can do only this.
Nothing here needs TVM.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import functools
import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ttexplore.archive import Archive, Kept, write_archive
from ttexplore.backends.base import Deadlock, Events, Execution, KernelFault, Wait, ordered_layouts
from ttexplore.backends.base import Program as EmittedProgram
from ttexplore.backends.compare import Comparison, RoundingErrors, Side
from ttexplore.backends.moves import Moves, Place
from ttexplore.backends.registry import BACKENDS, DEFAULT_BACKEND, Arithmetic, BackendEntry, recorder
from ttexplore.backends.remedy import remedy
from ttexplore.characters import Printed
from ttexplore.control import FREE, Control, Progress
from ttexplore.errors import TTExploreError, UsageError, memory_for, shown, unknown
from ttexplore.files import write_file, write_files
from ttexplore.given import Parts, dictionary, flag, named, plain, whole, wholes, wrong
from ttexplore.given import text as text_of
from ttexplore.inputs import Inputs, Tensor, arrays_for, make_inputs
from ttexplore.ops.small import numpy_dtype
from ttexplore.ops.storage import rounded
from ttexplore.pass_names import pass_name
from ttexplore.plan import KERNEL_ROLES, Plan
from ttexplore.record import JsonObject, Line, Listing, OptionForm, Span, StepRecord, Trace, lines_of
from ttexplore.request import RunRequest
from ttexplore.results import Check, Code, Drawing, Graph, LoweringComparison, Run, Static, StepDiff
from ttexplore.target import Target
from ttexplore.views.explorer import TABS, explorer_data
from ttexplore.views.figures.cb_graph import cb_graph_svg
from ttexplore.views.figures.core_map import core_map_svg, each, working_cores
from ttexplore.views.figures.deadlock import deadlock_svg
from ttexplore.views.figures.dot import dataflow_dot, passes_dot
from ttexplore.views.figures.l1_map import l1_map_svg, l1_used_bytes
from ttexplore.views.figures.timeline import Timeline
from ttexplore.views.figures.work_map import work_map_svg
from ttexplore.views.markup import visible
from ttexplore.views.report import Reported, report_html
from ttexplore.views.runs.recording import Recording, place_of
from ttexplore.views.runs.settings import Settings, settings
from ttexplore.views.runs.tile_history import TileHistory, tile_history, tile_parts
from ttexplore.views.steps.diff import diff_html
from ttexplore.views.steps.exploration import exploration_html, exploration_text
from ttexplore.views.steps.history import Found, LineHistory, find_text, line_history, ranges
from ttexplore.views.steps.step_changes import between
from ttexplore.views.steps.why import Why, why
from ttexplore.views.still import PLACE, still_html

if TYPE_CHECKING:
    from ttexplore.widget import ExplorerWidget

Array = NDArray[Any]

_FILE_OF = {"reader": "reader.cpp", "compute": "compute.cpp", "writer": "writer.cpp", "host": "main.cpp"}
# The kind of inputs that a run has where nothing is said.
_RANDOM = "random"
_MOST_MOVES = 4_000_000
# What stands for the time of a lowering that failed, or whose kernels are not there.
_NO_TIME = "-"
_DIALECTS = ("tessera",)
# The parts of a place at which an explorer opens.
_PLACE = ("tab", "step", "pin", "file")
_NO_REFERENCE = "there is no reference for these inputs, so the outputs were not compared"


class BaseStep(Printed, ABC):
    """The run of one pass."""

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
        """The IR after the step, with the origins of each line."""

    @property
    @abstractmethod
    def error(self) -> TTExploreError | None: ...

    @functools.cached_property
    def parts(self) -> tuple[Self, ...]:
        """The steps that this one consists of, in order; none for most."""
        return ()

    @property
    def leaves(self) -> tuple[Self, ...]:
        """The parts of the step, or the step itself."""
        return self.parts or (self,)

    def diff(self, other: BaseStep | None = None) -> StepDiff:
        """The changes of the step, in the IR and in the plan; with another step, of this lowering or of another one,
        what differs from what that step left to what this step left.

        Raises UsageError if `other` is not a step.
        """
        if other is None:
            return StepDiff(self.record)
        if not isinstance(cast(object, other), BaseStep):
            raise wrong("the other step", other, 'a step, for example ex.steps["B2"]')
        return StepDiff(between(other.record, self.record))

    def why(self, line: int) -> Why:
        """The rules of the step that made a line of the program after it (counted from 1), and the lines before the
        step that they made it from.

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


class Steps(Printed, Sequence[StepT], Generic[StepT]):
    """The steps of an exploration, by index, name or letter; ``steps.B1`` is ``steps["B1"]``. Parts of a step have
    names and letters, too: ``steps["A0.4"]``. Names from TileLang's documents are accepted
    (:mod:`ttexplore.pass_names`)."""

    def __init__(self, steps: Sequence[StepT], pipeline: Sequence[str] = ()) -> None:
        self._steps = tuple(steps)
        self._pipeline = tuple(pipeline)

    def __len__(self) -> int:
        return len(self._steps)

    def __iter__(self) -> Iterator[StepT]:
        return iter(self._steps)

    def __getitem__(self, key: Any) -> Any:
        """The step. Raises UsageError if there is no step with this index, name or letter."""
        key = plain(key)
        if isinstance(key, slice):
            return self._steps[key]
        if isinstance(key, int) and not isinstance(key, bool):
            if not -len(self) <= key < len(self):
                raise UsageError("U001", f"there is no step {shown(key)}", hint=f"steps are 0 to {len(self) - 1}")
            return self._steps[key]
        if not isinstance(key, str):
            raise UsageError(
                "U001", f"there is no step {shown(key)}", hint="give a number, a name, or a letter such as B1"
            )
        for step in self._all():
            if key in (step.name, step.letter) or pass_name(key) == step.name:
                return step
        if key in self._pipeline or pass_name(key) in self._pipeline:
            failed = self._steps[-1].leaves[-1]
            raise UsageError("U006", f"step {key} was not reached: {failed.name} failed", hint=str(failed.error))
        letters = ", ".join(step.letter for step in self._steps)
        meant = unknown("step", key, self._names()).hint.partition("? ")
        hint = f"{meant[0]}? steps are {letters}" if meant[1] else f"steps are {letters}"
        raise UsageError("U001", f"there is no step {shown(key)}", hint=hint)

    def single(self, what: str, key: object) -> StepT:
        """The step that an argument called `what` names. Raises UsageError for any other value, and for a slice."""
        if isinstance(key, slice):
            raise wrong(what, cast(object, key), "the number, name or letter of one step, for example B1")
        return self[key]

    def __getattr__(self, name: str) -> StepT:
        # Private names are protocol queries: whether this is a NumPy array, a widget.
        if not name.startswith("_"):
            for step in self._all():
                if name in (step.name, step.letter) or pass_name(name) == step.name:
                    return step
        raise AttributeError(f"there is no step {name!r}")

    def _all(self) -> Iterator[StepT]:
        """The steps, each followed by its parts."""
        for step in self._steps:
            yield step
            yield from step.parts

    def _names(self) -> list[str]:
        return [name for step in self._all() for name in (step.letter, step.name)]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._names()]

    def _ipython_key_completions_(self) -> list[str]:
        return self._names()

    def __repr__(self) -> str:
        return "\n".join(f"{step.letter}  {step.name}" for step in self._steps)


class Explored(Printed, ABC):
    """The steps, plan and code of a lowering, and the operations that need nothing else."""

    target: Target
    # Whether its C++ is of this process's making, so that reporting may run it without being asked to.
    _runs_unasked: ClassVar[bool] = True
    # The explored kernel: its name, its source as a listing, its file and its first line there.
    kernel: Any

    # Implemented by each kind of exploration

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
        """The error that ended the lowering, None if it succeeded."""

    @functools.cached_property
    @abstractmethod
    def files(self) -> dict[str, Listing]:
        """All files that export writes, by name. Raises the lowering's error, if it failed."""

    @functools.cached_property
    @abstractmethod
    def trace(self) -> Trace:
        """The exploration as plain data."""

    @property
    @abstractmethod
    def option_forms(self) -> Mapping[str, OptionForm]:
        """The form in which each option of the passes is given, where that is known."""

    @abstractmethod
    def _reference(self, arrays: tuple[Array, ...], control: Control) -> tuple[Array, ...] | None:
        """The outputs of the traced kernel for these inputs; None if they cannot be computed."""

    @abstractmethod
    def _rounding(self, arrays: tuple[Array, ...], control: Control) -> RoundingErrors | None:
        """The errors that rounding explains in the outputs for these inputs; None if they cannot be computed."""

    @abstractmethod
    def _interpreted(self, backend: BackendEntry, arrays: tuple[Array, ...], control: Control) -> Execution:
        """A run on a backend that executes the kernel or its IR."""

    @abstractmethod
    def fork(self, at: str | int | None = None, *, target: str | Target | None = None, **options: Any) -> Explored:
        """Lower again with other options, those of step `at`, or with another target."""

    @abstractmethod
    def lower_again(self, options: Mapping[str, Any], target: str | Target | None, control: Control) -> Explored:
        """As :meth:`fork`; `control` ends it after the step that runs, and hears of each step."""

    @abstractmethod
    def lower_text(self, text: str, control: Control) -> Explored:
        """Lower the kernel with another text of its function."""

    @abstractmethod
    def check(
        self, inputs: Inputs = None, seed: int = 0, *, time_limit_seconds: float | None = None,
        progress: Progress | None = None, cancel: threading.Event | None = None,
    ) -> Check:  # fmt: skip
        """Execute the program after every step and compare it with the reference."""

    @abstractmethod
    def _sized(self, inputs: Inputs, sizes: Mapping[str, int] | None) -> Explored:
        """The exploration for the given sizes, or for those of the inputs."""

    @property
    def launches(self) -> tuple[Explored, ...]:
        """The explorations of the kernel's launches, in order: this one itself, unless it has several."""
        return (self,)

    # Reading and drawing

    @functools.cached_property
    def settings(self) -> Settings:
        """The options of all steps: what each is set to, by whom, its default, and where it cannot have an effect."""
        return settings(self.trace, self.plan, self._given)

    @property
    def _given(self) -> Collection[str]:
        """The names of the options that the user gave, as far as they are known."""
        return ()

    @property
    def code(self) -> dict[str, Code]:
        """The emitted C++: reader, compute, writer and host. Raises the lowering's error, if it failed."""
        return Parts("kernel", {role: Code(self.files[name]) for role, name in _FILE_OF.items()})

    def history(self, line: int) -> LineHistory:
        """What became of a kernel line: the number of lines that come from it after each step, and the lines that do in
        each emitted kernel.

        Raises UsageError for a line outside the kernel.
        """
        line = whole("a line of the kernel", line)
        try:
            return line_history(self.trace, line)
        except ValueError as error:
            raise UsageError("U003", str(error), hint="lines are counted as in the kernel's file or cell") from None

    def find(self, text: str) -> Found:
        """Find a text in the program and the plan: the first step that contains it, and the first that no longer does.

        Raises UsageError if `text` is not a string.
        """
        return find_text(self.trace, text_of("the text to find", text))

    @property
    def core_map(self) -> Drawing:
        """The number of work items of each core, on the chip's floorplan. Raises UsageError before B1."""
        if self.plan.partition is None:
            raise UsageError("U006", "the work is not partitioned yet", hint=str(self.error or ""))
        return Drawing(core_map_svg(self.target, self.plan.partition, self.plan.shared, partials=self.plan.partials))

    @property
    def work_map(self) -> Drawing:
        """The core that runs each block of the launch grid, and in which turn. Raises UsageError before B1."""
        if self.plan.partition is None:
            raise UsageError("U006", "the work is not partitioned yet", hint=str(self.error or ""))
        return Drawing(work_map_svg(self.plan.partition))

    @property
    def dataflow(self) -> Drawing:
        """The tile dataflow graph: tensors, kernels and the circular buffers between them."""
        return Drawing(cb_graph_svg(self.plan))

    @property
    def l1_map(self) -> Drawing:
        """The share of a core's L1 that each circular buffer takes."""
        return Drawing(l1_map_svg(self.plan, self.target))

    def dot(self, what: Literal["dataflow", "passes"] = "dataflow") -> Graph:
        """A graph for papers and slides: the tile dataflow, or the passes with what each decides and rewrites.

        Its text needs no program; ``dot("passes").save("passes.svg")`` needs Graphviz. Raises UsageError for any other
        name, and for the dataflow before C3.
        """
        match named("graph", what, ("dataflow", "passes")):
            case "dataflow":
                if self.plan.graph is None:
                    raise UsageError("U006", "the tile dataflow is not decided yet", hint=str(self.error or ""))
                return Graph(dataflow_dot(self.plan))
            case _:
                return Graph(passes_dot(self.trace))

    def export(self, folder: str | Path, *, dot: bool = False, dialect: str | None = None) -> list[Path]:
        """Write the kernels, the host program, the plan and the runner, all or none; :mod:`ttexplore.files` covers the
        case that the process is killed. With `dot`, also write the graphs of :meth:`dot`.

        With ``dialect="tessera"``, write only the kernel as it was before the first step, in the style of the Tessera
        skeleton of TileLang's porting document: an illustration, which nothing compiles.

        Raises UsageError if the folder, or a file in it, cannot be written, and for what the dialect has no word for.
        """
        dot = flag("dot", dot)
        if dialect is not None:
            name = f"{self.kernel.name}.{named('dialect', dialect, _DIALECTS)}.cpp"
            return write_files({name: self._in_tessera()}, folder)
        graphs = {"dataflow.dot": self.dot("dataflow").text, "passes.dot": self.dot("passes").text} if dot else {}
        return write_files({name: listing.text for name, listing in self.files.items()} | graphs, folder)

    def save(self, path: str | Path) -> Path:
        """Write the exploration and the emitted code to one file; ``ttexplore.load`` opens it without TVM.

        It includes inputs and reference of seed 0, unless they exceed 16 MiB. Raises UsageError if the file cannot be
        written.
        """
        return write_archive(path, Archive(self.trace, self.plan, self.target, self._kept()))

    @abstractmethod
    def _in_tessera(self) -> str:
        """The kernel in the style of Tessera."""

    @abstractmethod
    def _kept(self) -> Kept | None:
        """Inputs and reference with which a saved exploration is compared."""

    def report(self, path: str | Path, *, run: bool | None = None) -> Path:
        """Write the explorer as one page that works offline, without Jupyter and without Python.

        Unless `run` is False, the page includes the result of a run on the emulator and the timeline of one core, if
        there is a C++ compiler and the lowering succeeded. A loaded exploration runs only with ``run=True``: its C++
        comes from the file. Raises UsageError if the file cannot be written, and what a run raises.
        """
        return report(path, self, run=run)

    def _reported(self, run: bool | None) -> list[Reported]:
        """The lowerings of the page, with the result of a run on the emulator: see :meth:`report`."""
        run = self._runs_unasked if run is None else run
        state: JsonObject = {}
        if "estimate" not in self.missing and self.error is None:
            # Of a program that has none, the page says nothing.
            with contextlib.suppress(TTExploreError):
                state["estimate"] = self.estimate_data()
        if self.error is None and (lanes := self.lanes_data()):
            state["gpu"] = lanes
        recorded = None
        if run and self.error is None and recorder().missing() is None:
            done = self.run(backend=recorder().name)
            state["recorded_run"] = done._repr_html_()
            assert done.execution is not None, "the recording backend returns one"
            assert done.execution.events is not None, "the emulator records events by default"
            events = done.execution.events
            recorded = self._recording(events, self._busiest_core(events), self._kernel_listings({})).within().data
        state_of = f"failed at {self.steps[-1].letter}" if self.error else f"{len(self.steps)} steps"
        if not self._runs_unasked and not run:
            state_of += ", not run"
        return [Reported(self.data, self._repr_html_(), f"{self.target.name}, {state_of}", state, recorded)]

    # Running

    @memory_for("making the inputs")
    def inputs(self, seed: int = 0, kind: str = "random") -> tuple[Array, ...]:
        """Generate inputs in the tensors' own dtypes and the sizes of the plan.

        `kind` is ``random`` (normally distributed, int32 from -1000 to 1000, half of uint8 zero), ``uniform`` (from 0
        to 1), ``ones``, ``counting`` (0, 1, 2 ... 250, repeated), ``identity`` (1 on the diagonal of the last two
        dimensions) or ``extreme`` (zeros, small and large magnitudes). Raises UsageError for any other kind.

        ``random`` integers that decide places or loops are such that these stay inside of their tensors.
        """
        made = make_inputs(kind, self._tensors(("input", "inout")), seed)
        return self._valid(made, seed) if kind == _RANDOM else made

    def _valid(self, arrays: tuple[Array, ...], seed: int) -> tuple[Array, ...]:
        """Drawn inputs, with such elements of index tensors as lie inside of the tensors that they index. Without the
        kernel nothing is known of them."""
        del seed
        return arrays

    def _check_races(self, arrays: tuple[Array, ...]) -> None:
        """Raise KernelError for inputs with which two blocks store to one place. Without the kernel nothing is known of
        that."""
        del arrays

    def _tensors(self, roles: tuple[str, ...]) -> list[Tensor]:
        """The tensors with these roles, in parameter order."""
        layouts = sorted(self.plan.layouts, key=lambda layout: layout.position)
        return [Tensor(layout.name, layout.shape, layout.dtype) for layout in layouts if layout.role in roles]

    @property
    def _reasons(self) -> tuple[str, ...]:
        """Why outputs are inputs, too."""
        return tuple(self.plan.notes_on_inputs.values())

    @property
    def _output_names(self) -> list[str]:
        """What messages call the outputs."""
        return [visible(one.name) for one in self._tensors(("output", "inout"))]

    @memory_for("making the inputs")
    def _inputs(self, inputs: Inputs, seed: int) -> tuple[Array, ...]:
        """The inputs in storage precision, as float32 or int32. Raises UsageError for invalid inputs, and KernelError
        for those with which the result depends on the order of the blocks."""
        tensors = self._tensors(("input", "inout"))
        arrays = arrays_for(inputs, tensors, seed, self._reasons)
        if inputs is None or (isinstance(inputs, str) and inputs == _RANDOM):
            arrays = self._valid(arrays, seed)
        self._check_races(arrays)
        return tuple(rounded(array, tensor.dtype) for array, tensor in zip(arrays, tensors, strict=True))

    @memory_for("running the program")
    def run(
        self, inputs: Inputs = None, backend: str = DEFAULT_BACKEND, seed: int = 0, *,
        arithmetic: Arithmetic = "exact", device: str | None = None,
        environment: str | Path | None = None, time_limit_seconds: float | None = None,
        progress: Progress | None = None, cancel: threading.Event | None = None,
        sizes: Mapping[str, int] | None = None, code: Mapping[str, str] | None = None, compared: bool = True,
    ) -> Run:  # fmt: skip
        """Run the program and compare it with the reference.

        `inputs` are numeric arrays for the input tensors, in parameter order or by name, or a kind of :meth:`inputs`,
        such as ``"ones"``; by default they are random.
        T.dynamic sizes of the kernel are taken from the inputs, or given in `sizes`.
        `backend` is ``reference`` (the traced kernel), ``interpreter`` (the final IR), ``emulator`` (the emitted C++)
        or ``ttnn`` (the emitted C++ through the real SDK). The emulator's `arithmetic` is ``exact``, which reproduces
        the chip's sums and products bit for bit, or ``fast``, which uses this machine's arithmetic, for large sizes.

        Setting `cancel` from another thread ends the run and its processes. So does `time_limit_seconds`, which the
        program has on its backend, and the reference again; compiling does not count. By default, a program has 60 s on
        the emulator and 300 s on a device; other backends and the reference have no limit. `progress` is a function
        that is called with a line for each part of the run.

        Only ``ttnn`` takes a `device` (the simulated chips ``wolfpine``, the default, and ``ttsim``, or ``card``) and
        an `environment` (the folder of ``ttexplore setup device``). Its result is compared with the emulator's as well.

        `code` holds C++ texts that replace emitted ones, by ``reader``, ``compute`` and ``writer``: to break a kernel
        and see what happens, or to try a variant. Only ``emulator`` and ``ttnn`` run texts.

        A run that is not to be `compared` has outputs only: no reference is computed, and its `passed` is None. So is
        that of a saved exploration for other inputs than those that it was saved with. It runs only on ``emulator`` and
        ``ttnn``.

        Raises UsageError for wrong inputs and backends, BackendError for a missing backend or a fault of the running
        program (Deadlock if its kernels wait for each other), Cancelled, and VerifyError for a protocol fault in the
        interpreter.
        """
        request = RunRequest.checked(
            backend, inputs, seed, arithmetic=arithmetic, device=device, environment=environment,
            time_limit_seconds=time_limit_seconds, progress=progress, cancel=cancel, sizes=sizes, code=code,
            compared=compared,
        )  # fmt: skip
        return self._sized(request.inputs, request.sizes)._ran(request)

    def _ran(self, request: RunRequest) -> Run:
        """Run the request with the sizes of this exploration."""
        control, backend = request.control, request.backend
        control.tell(f"running on {backend.name}")
        arrays = self._inputs(request.inputs, request.seed)
        listings = self._kernel_listings(request.code)
        execution = self._execution(request, listings, arrays)
        if not request.compared:
            return Run.alone(backend.name, self._in_own_dtypes(execution.outputs), execution)
        control.tell("computing the reference")
        of_reference = control.of("the reference")
        reference, rounding = self._reference(arrays, of_reference), self._rounding(arrays, of_reference)
        precisions, called = self.plan.precisions, self._output_names
        sides: list[Side] = []
        if reference is not None:
            control.tell("comparing with the reference")
            name = f"{backend.name} against reference"
            sides.append(Side.of(name, execution.outputs, reference, precisions, rounding, called))
        other = BACKENDS[backend.compared_with] if backend.compared_with else None
        if other is not None and other.make is not None and other.missing() is None:
            control.tell(f"running on {other.name}, to compare")
            second = other.make(request.settings).run(
                self._emitted(listings), arrays, time_limit_seconds=other.time_limit_seconds, cancel=control.cancel
            )
            name = f"{backend.name} against {other.name}"
            sides.append(Side.of(name, execution.outputs, second.outputs, (), rounding, called))
            if reference is not None:
                name = f"{other.name} against reference"
                sides.append(Side.of(name, second.outputs, reference, precisions, rounding, called))
        comparison = sides[0].comparison if reference is not None else Comparison.of_nothing(_NO_REFERENCE)
        return Run(
            backend.name, self._in_own_dtypes(execution.outputs),
            None if reference is None else comparison.passed, comparison.pcc, comparison.max_rel_error,
            execution.seconds,
            "\n".join(part for part in (execution.message, comparison.message) if part), comparison, execution,
            tuple(sides),
        )  # fmt: skip

    def _in_own_dtypes(self, outputs: Sequence[Array]) -> tuple[Array, ...]:
        own = self._tensors(("output", "inout"))
        return tuple(o.astype(numpy_dtype(one.dtype)) for o, one in zip(outputs, own, strict=True))

    def _execution(
        self, request: RunRequest, listings: Mapping[str, Listing], arrays: tuple[Array, ...]
    ) -> Execution:  # fmt: skip
        """Run the program on the backend. Faults and deadlocks are raised with their kernel lines."""
        if self.error is not None:
            raise self.error
        if request.runner is None:
            return self._interpreted(request.backend, arrays, request.on_backend)
        try:
            return request.runner.run(
                self._emitted(listings), arrays, time_limit_seconds=request.time_limit_seconds,
                cancel=request.control.cancel,
            )  # fmt: skip
        except Deadlock as deadlock:
            raise self._explained(deadlock, listings, arrays, request.control) from None
        except KernelFault as fault:
            raise fault.at(kernel_line(fault, listings)) from None

    def _explained(
        self, deadlock: Deadlock, listings: Mapping[str, Listing], arrays: tuple[Array, ...], control: Control
    ) -> Deadlock:  # fmt: skip
        """The deadlock with its kernel line, its drawing, and a change that resolves it, if one was found."""
        plan = self.plan
        lines = {wait.kernel: kernel_line(wait, listings) for wait in deadlock.waits}
        control.tell("a deadlock: looking for the smallest change that resolves it")
        found = remedy(deadlock, self._emitted(listings), arrays, control.cancel)
        drawn = deadlock_svg(deadlock.waits, plan, listings, lines)
        explained = Deadlock(
            deadlock.message, hint=f"the program ends when {found}" if found else deadlock.hint, core=deadlock.core,
            waits=deadlock.waits, stuck=deadlock.stuck, event_counts=deadlock.event_counts, events=deadlock.events,
            svg=drawn, fix=found,
        )  # fmt: skip
        explained.span = kernel_line(deadlock, listings)
        return explained

    def _kernel_listings(self, code: Mapping[str, str]) -> dict[str, Listing]:
        """The C++ of the three kernels, with texts in `code` replacing emitted ones; unchanged lines keep their origin.
        Empty if the lowering failed. Raises UsageError for other names."""
        for role in code:
            if role not in KERNEL_ROLES:
                raise unknown("kernel", role, KERNEL_ROLES)
            text_of(f"the {role} kernel", code[role], "a string of C++")
        if self.error is not None:
            return {}
        return {role: edited_listing(self.code[role].listing, code.get(role)) for role in KERNEL_ROLES}

    def _emitted(self, listings: Mapping[str, Listing]) -> EmittedProgram:
        return EmittedProgram({role: listing.text for role, listing in listings.items()}, self.plan)

    @memory_for("running the program")
    def timeline(
        self, core: tuple[int, int] | None = None, *, inputs: Inputs = None, seed: int = 0,
        sizes: Mapping[str, int] | None = None, code: Mapping[str, str] | None = None,
        time_limit_seconds: float | None = None, progress: Progress | None = None,
        cancel: threading.Event | None = None,
    ) -> Timeline:  # fmt: skip
        """Run on the emulator and record what happens on the cores: how circular buffers fill and empty, and which
        kernel waits for which.

        The result is the timeline of one core; its `recording` has those of all cores. `core` holds logical
        coordinates, by default those of the core with the most work items. A deadlock ends the record and is part of
        it; the core is then the first blocked one. The other arguments are those of :meth:`run`.

        Of a run with more than a million events, only every second core is recorded, or every fourth ..., and `core`
        in any case. Times are logical steps: each operation of a kernel takes one.

        Raises UsageError for a core without work, and what :meth:`run` raises, except for deadlocks.
        """
        core = None if core is None else cast("tuple[int, int]", wholes("core", core, 2, least=0))
        request = RunRequest.checked(
            recorder().name, inputs, seed, time_limit_seconds=time_limit_seconds, progress=progress, cancel=cancel,
            sizes=sizes, code=code,
        )  # fmt: skip
        return self._sized(request.inputs, request.sizes)._timeline(request, core)

    def _timeline(self, request: RunRequest, core: tuple[int, int] | None) -> Timeline:
        """Record the run with the sizes of this exploration."""
        if self.error is not None:
            raise self.error
        listings, cores = self._kernel_listings(request.code), self._core_places()
        chosen = core or self._busiest_core()
        execution, deadlock = self._record(request, listings, place_of(chosen, cores))
        if deadlock is not None:
            chosen = cores[deadlock.core]
            if deadlock.events is not None and not deadlock.events.has(deadlock.core):
                execution, deadlock = self._record(request, listings, deadlock.core)
        request.control.tell("sorting the events")
        events = deadlock.events if deadlock is not None else execution.events if execution is not None else None
        assert events is not None, "the emulator records events by default"
        return self._recording(events, chosen, listings, deadlock)[chosen]

    def _record(
        self, request: RunRequest, listings: Mapping[str, Listing], core: int
    ) -> tuple[Execution | None, Deadlock | None]:  # fmt: skip
        """A run on the recording backend that keeps the events of `core` in any case, or the deadlock that ended it."""
        assert request.backend.make is not None, "the recording backend runs texts"
        runner = request.backend.make(dataclasses.replace(request.settings, event_core=core))
        request.control.tell(f"recording on {request.backend.name}")
        try:
            return runner.run(
                self._emitted(listings), self._inputs(request.inputs, request.seed),
                time_limit_seconds=request.time_limit_seconds, cancel=request.control.cancel,
            ), None  # fmt: skip
        except Deadlock as deadlock:
            return None, deadlock
        except KernelFault as fault:
            raise fault.at(kernel_line(fault, listings)) from None

    def _core_places(self) -> list[tuple[int, int]]:
        """The logical coordinates of the cores that have kernels."""
        return [(one.x, one.y) for one in self.plan.partition.cores] if self.plan.partition else []

    def _busiest_core(self, events: Events | None = None) -> tuple[int, int]:
        """The core with the most work items, of those whose events are kept."""
        assert self.plan.partition is not None, "a program that runs has a partition"
        cores = self.plan.partition.cores
        busiest = max(
            (one for i, one in enumerate(cores) if events is None or events.has(i)), key=lambda one: one.items
        )
        return busiest.x, busiest.y

    def _recording(
        self, events: Events, core: tuple[int, int], listings: Mapping[str, Listing], deadlock: Deadlock | None = None
    ) -> Recording:  # fmt: skip
        """The events of a run as a recording that has `core`."""
        reason = (
            f"the run has {events.total:,} events, and {len(events.records):,} are kept" if events.stride > 1 else ""
        )
        stuck, message = (deadlock.stuck, deadlock.message) if deadlock is not None else ({}, "")
        return Recording(events, self.plan, listings, core, stuck, message, events.stride, reason)

    @memory_for("running the program")
    def tile(
        self, tensor: str, *tile: int, inputs: Inputs = None, seed: int = 0,
        sizes: Mapping[str, int] | None = None, code: Mapping[str, str] | None = None,
        time_limit_seconds: float | None = None, progress: Progress | None = None,
        cancel: threading.Event | None = None,
    ) -> TileHistory:  # fmt: skip
        """Follow one tile of an output back: its core and work item, the pages of each input that made it, and each
        C++ line that read, computed, packed and wrote for it.

        ``ex.tile("C", 3, 5)`` is tile row 3, tile column 5; leading dimensions come first, and a vector has only a
        column. All comes from a run on the emulator that records each move of a value; it is kept for further tiles.
        The other arguments are those of :meth:`run`.

        Raises UsageError for a tensor that is no output, a tile that it does not have or that nothing writes, and a run
        of more than 4,000,000 moves, and what :meth:`run` raises.
        """
        request = RunRequest.checked(
            recorder().name, inputs, seed, time_limit_seconds=time_limit_seconds, progress=progress, cancel=cancel,
            sizes=sizes, code=code,
        )  # fmt: skip
        numbers = wholes("tile", tile, len(tile), least=0) if tile else ()
        return self._sized(request.inputs, request.sizes)._tile(request, tensor, numbers)

    def _tile(self, request: RunRequest, tensor: str, tile: tuple[int, ...]) -> TileHistory:
        if self.error is not None:
            raise self.error
        layouts = ordered_layouts(self.plan)
        outputs = {layout.name: layout for layout in layouts if layout.role != "input"}
        layout = outputs[named("output", tensor, outputs)]
        parts = tile_parts(layout, tile)
        listings = self._kernel_listings(request.code)
        moves = self._moves(request, listings)
        request.control.tell("following the tile")
        number = layouts.index(layout)
        followed = moves.follow(Place("tensor", number, *part) for part in parts)
        return tile_history(followed, moves, self.plan, layouts, layout, tile, listings)

    @functools.cached_property
    def _recorded_moves(self) -> list[tuple[dict[str, str], tuple[Array, ...], Moves]]:
        """The latest recorded moves, with the texts and the inputs that they are of; nothing before the first."""
        return []

    def _moves(self, request: RunRequest, listings: Mapping[str, Listing]) -> Moves:
        """The moves of a run, recorded again only for other inputs or texts than those of the last time."""
        emitted, arrays = self._emitted(listings), self._inputs(request.inputs, request.seed)
        for texts, given, moves in self._recorded_moves:
            if texts == emitted.texts and all(map(np.array_equal, given, arrays)):
                return moves
        request.control.tell(f"recording on {request.backend.name}")
        make = request.backend.make
        assert make is not None, "the recording backend runs texts"
        runner = make(dataclasses.replace(request.settings, move_limit=_MOST_MOVES))
        try:
            execution = runner.run(
                emitted, arrays, time_limit_seconds=request.time_limit_seconds, cancel=request.control.cancel
            )
        except KernelFault as fault:
            raise fault.at(kernel_line(fault, listings)) from None
        assert execution.moves is not None, "the emulator was asked to record them"
        if len(execution.moves) >= _MOST_MOVES:
            raise UsageError(
                "U010", f"the run moves values more than {_MOST_MOVES:,} times, which is too much to keep",
                hint="follow a tile of the same kernel with smaller tensors",
            )  # fmt: skip
        moves = Moves(execution.moves, self.plan, emitted.texts)
        self._recorded_moves[:] = [(emitted.texts, arrays, moves)]
        return moves

    # Showing

    def __repr__(self) -> str:
        state = f"failed at {self.steps[-1].letter}" if self.error else f"{len(self.steps)} steps"
        return f"<exploration of {self.kernel.name} for {self.target.name}: {state}>"

    def __str__(self) -> str:
        return exploration_text(self.trace, self.plan, self.target)

    def _repr_html_(self) -> str:
        return exploration_html(self.trace, self.target, self.plan)

    def static(self) -> Static:
        """The exploration as a static page without a widget, as GitHub shows a notebook."""
        return Static(self._repr_html_(), repr(self))

    @functools.cached_property
    def data(self) -> JsonObject:
        """The data that the explorer shows, in JSON form."""
        return explorer_data(self.trace, self.plan, self.target, self.option_forms, self.settings)

    @property
    def backends(self) -> list[JsonObject]:
        """For each backend its name, what it lacks to run (empty if nothing), whether it offers a choice of arithmetic,
        and its default time limit in seconds (None for none)."""
        # Backends of every installation come first, the fastest before the others.
        shown = sorted(reversed(BACKENDS.values()), key=lambda one: not one.required)
        return [
            {
                "name": one.name, "missing": self._backend_missing(one), "arithmetic": "arithmetic" in one.takes,
                "limit": one.time_limit_seconds if math.isfinite(one.time_limit_seconds) else None,
            }
            for one in shown
        ]  # fmt: skip

    def _backend_missing(self, backend: BackendEntry) -> str:
        """Why this exploration cannot run on a backend; empty if it can."""
        return backend.missing() or ""

    @property
    def estimated(self) -> str:
        """The predicted time in one line, where it can be predicted."""
        return _NO_TIME

    @abstractmethod
    def estimate_data(self, inputs: Inputs = None, seed: int = 0, control: Control = FREE) -> JsonObject:
        """The predicted time as the explorer shows it, in JSON form; with `inputs`, for these. Raises what a prediction
        raises."""

    @abstractmethod
    def trace_data(
        self, core: tuple[int, int], inputs: Inputs = None, seed: int = 0, control: Control = FREE
    ) -> JsonObject:
        """When the processors of a core are predicted to work, as the explorer shows it, in JSON form. Raises
        UsageError for a core without kernels, and what a prediction raises."""

    @abstractmethod
    def gpu_data(self, arch: str, control: Control) -> JsonObject:
        """The GPU lane for an architecture beside this lowering, as the explorer shows it, in JSON form; for the first
        one that there is, if `arch` is empty. Raises what the lane and the lowering raise."""

    def lanes_data(self) -> list[JsonObject]:
        """The GPU lanes that were loaded until now, in the same form."""
        return []

    @property
    def missing(self) -> dict[str, str]:
        """For each of ``record``, ``check``, ``fork``, ``edit``, ``estimate`` and ``gpu`` that the explorer cannot do,
        the reason."""
        missing = recorder().missing()
        return {"record": missing} if missing else {}

    def widget(self, place: Mapping[str, str] | None = None) -> ExplorerWidget:
        """The interactive explorer, opened at the place of a view. A notebook shows it for an exploration by itself."""
        from ttexplore.watching import watched_explorer

        places = dictionary("place", {} if place is None else place, "parts of a place", '{"tab": "Code"}')
        for part, where in places.items():
            text_of(f"the {named('part of a place', part, _PLACE)} of the place", where)
        return watched_explorer(self, places)

    def view(
        self, *, tab: str | None = None, step: int | str | None = None, pin: int | None = None, file: str | None = None
    ) -> View:
        """The explorer, opened at a place: a tab, a step by number, name or letter, a pinned line of the kernel by the
        number that the explorer shows beside it, and an emitted file.

        A step opens Steps and a file Code, unless a tab is given. Raises UsageError if there is no such tab, step, line
        or file.
        """
        place: dict[str, str] = {}
        if file is not None:
            place |= {"tab": "Code", "file": named("file", file, self.files)}
        if step is not None:
            place |= {"tab": "Steps", "step": self.steps.single("step", step).letter}
        if pin is not None:
            lines = sorted({line for _, line in self.data["places"]})
            pin = plain(pin)
            if not isinstance(pin, int) or isinstance(pin, bool) or pin not in lines:
                raise wrong("the line to pin", pin, f"a line of the kernel that the lowering uses: {ranges(lines)}")
            place["pin"] = str(pin)
        if tab is not None:
            tabs = {name.lower(): name for name in TABS}
            place["tab"] = tabs[named("tab", text_of("tab", tab).lower(), tabs)]
        return View(self, place)

    def _ipython_display_(self) -> None:
        """Show the widget, and below it the static page for readers without a running kernel."""
        self._display({})

    def _display(self, place: Mapping[str, str]) -> None:
        from IPython.display import publish_display_data  # pyright: ignore[reportUnknownVariableType]

        still = still_html(self._repr_html_())
        publish_display_data({**self.widget(place).view(), "text/html": PLACE, "text/plain": repr(self)})
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


def kernel_line(place: KernelFault | Wait, listings: Mapping[str, Listing]) -> Span | None:
    """The kernel line from which the C++ line of a fault or of a waiting kernel comes."""
    if place.kernel is None or place.cpp_line is None or place.kernel not in listings:
        return None
    # A compiler may name the line after the last one, and takes what a text says of its lines for granted.
    lines = listings[place.kernel].lines[place.cpp_line - 1 : place.cpp_line]
    return lines[0].origins[0].span if lines and lines[0].origins else None


def edited_listing(listing: Listing, text: str | None) -> Listing:
    """`listing` with another text. Unchanged lines in the same order keep their origins; lines changed in place have
    inferred origins."""
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


def report(
    path: str | Path, *explorations: Explored, run: bool | None = None, names: Sequence[str] | None = None
) -> Path:  # fmt: skip
    """Write the explorers of one or more lowerings as one page that works offline, with an index if there are several.

    Of each it shows what :meth:`Explored.report` does. `names` are what the index and links call them, one for each,
    instead of the names of their kernels; the launches of one keep theirs. Raises UsageError if an argument is not an
    exploration or the file cannot be written, and what a run raises.
    """
    for one in cast(tuple[object, ...], explorations):
        if not isinstance(one, Explored):
            raise wrong("what to report", one, "explorations, as ttx.explore returns them")
    if not explorations:
        raise wrong("what to report", explorations, "explorations, as ttx.explore returns them")
    run, called = None if run is None else flag("run", run), plain(names)
    if called is not None and (
        not isinstance(called, list | tuple)
        or len(cast(Sequence[object], called)) != len(explorations)
        or not all(isinstance(name, str) for name in cast(Sequence[object], called))
    ):
        raise wrong("names", cast(object, called), f"a list of strings, one for each exploration: {len(explorations)}")
    title = ", ".join(dict.fromkeys(f"{one.kernel.name} on {one.target.name}" for one in explorations))
    pages = [one._reported(run) for one in explorations]
    if called is not None:
        pages = [
            # As the page and its links can have it.
            [dataclasses.replace(own[0], name=name.encode("utf-8", "backslashreplace").decode())]
            if len(own) == 1
            else own
            for own, name in zip(pages, cast(Sequence[str], called), strict=True)
        ]
    return write_file(path, report_html(title, [page for own in pages for page in own]))


def compare_explorations(first: Explored, second: Explored) -> LoweringComparison:
    """Compare two lowerings side by side: options, cores, circular buffers, code size and predicted time.

    Raises UsageError if an argument is not an exploration.
    """
    for one in cast(tuple[object, ...], (first, second)):
        if not isinstance(one, Explored):
            raise wrong("one side of the comparison", one, "an exploration, as ttx.explore returns it")
    rows: list[tuple[str, str, str]] = [("target", first.target.name, second.target.name)]
    names = sorted({*first.plan.options, *second.plan.options})
    for name in names:
        one, other = (_option_told(name, side.plan.options.get(name)) for side in (first, second))
        rows.append((name, one, other))
    for what, measure in _MEASURES.items():
        rows.append((what, measure(first), measure(second)))
    times = first.estimated, second.estimated
    if _NO_TIME not in times:
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
