"""Exploring a kernel: lower it step by step, inspect and execute each step, try other options, export the result."""

from __future__ import annotations

import dataclasses
import functools
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ttexplore.archive import LARGEST_ARRAYS_BYTES, Kept
from ttexplore.backends.base import Execution, card_time, simulation_time
from ttexplore.backends.compare import RoundingErrors, Side, compare
from ttexplore.backends.registry import BACKENDS, BackendEntry
from ttexplore.clock.estimate import Estimate, LaunchEstimates, estimate
from ttexplore.clock.program import core_classes
from ttexplore.control import FREE, Control, Progress
from ttexplore.emit import emit, emit_launches, launch_folder
from ttexplore.emit.kernels import emitted_parts
from ttexplore.errors import BackendError, KernelError, TTExploreError, UsageError
from ttexplore.explored import BaseStep, Explored, Steps, compare_explorations
from ttexplore.files import write_files
from ttexplore.given import Parts, dictionary, flag, wrong
from ttexplore.given import path as path_of
from ttexplore.given import text as text_of
from ttexplore.gpu.beside import Beside
from ttexplore.gpu.lane import ARCHITECTURES, GpuLane, architectures, check_architecture, kernel_digest, request_for
from ttexplore.gpu.lane import TIME_LIMIT_SECONDS as GPU_SECONDS
from ttexplore.gpu.lane import lower as lower_for_gpu
from ttexplore.gpu.programs import TileProgram
from ttexplore.gpu.shown import beside_data
from ttexplore.inputs import Inputs, Tensor, given_inputs
from ttexplore.ir.adapter import is_buffer, span_of
from ttexplore.ir.arithmetic.sizes import bound_shape, extents_of, size_variables
from ttexplore.ir.boundary import errors_of_ours
from ttexplore.ir.build import dtype_of
from ttexplore.ir.interpreter import Interpretation, check_places, interpret, runs_alike, valid_inputs
from ttexplore.ir.listing import program_listing
from ttexplore.ir.made import firing_records
from ttexplore.ir.program import KERNEL, Program
from ttexplore.ir.tessera import tessera
from ttexplore.language.editing import OF_ALL_LAUNCHES
from ttexplore.language.editing import edited as edited_kernel
from ttexplore.language.load import load_kernel, load_text
from ttexplore.language.machine import machine
from ttexplore.language.portable import portable
from ttexplore.language.tracer.kernel import TracedKernel, trace
from ttexplore.options import OPTIONS, option_forms, parse_options
from ttexplore.passes.bind_sizes import bind_sizes, sizes_of
from ttexplore.passes.launches.requested import with_annotations
from ttexplore.passes.launches.splitting import launches_of, old_contents, used_names
from ttexplore.passes.launches.tensor_roles import tensor_roles
from ttexplore.passes.pipeline import PIPELINE, lower
from ttexplore.passes.step import Applied
from ttexplore.plan import KERNEL_ROLES, KernelRole, Plan, Precision, Size
from ttexplore.porting.checks import Facts, PortingChecks, porting_checks
from ttexplore.porting.linked import NAME as PORT
from ttexplore.porting.linked import port_data
from ttexplore.porting.port import Port
from ttexplore.record import JsonObject, Listing, OptionForm, StepRecord, Trace, to_json
from ttexplore.request import RunRequest
from ttexplore.results import Check, Drawing, Run, StepCheck
from ttexplore.target import DEFAULT_TARGET, Target, get_target
from ttexplore.views.figures.core_map import core_map_svg
from ttexplore.views.launches import LaunchRow, launches_html, launches_text
from ttexplore.views.markup import plural
from ttexplore.views.report import Reported
from ttexplore.views.runs.predicted import estimate_data, link_measure, trace_data

Array = NDArray[Any]


def explore(
    kernel: Any, /, *, target: str | Target = DEFAULT_TARGET, options: Mapping[str, Any] | None = None,
    sizes: Mapping[str, int] | None = None, time_limit_seconds: float | None = None, progress: Progress | None = None,
    cancel: threading.Event | None = None, **kernel_arguments: Any,
) -> Exploration:  # fmt: skip
    """Lower a kernel and keep every step.

    `kernel` is a T.prim_func, an eager kernel or a factory with its arguments, ``"file.py::name"``, or a port of a GPU
    kernel (:func:`ttexplore.port`): then the kernel that was written from it is explored, beside it. `options` are
    those of the passes, by name (``{"policy": "strided"}``). If a pass rejects the kernel, the lowering ends: the step
    holds the error, and running or exporting raises it. `sizes` gives initial values for T.dynamic sizes: the lowering
    is the same for all values; plan, checks and runs are for one value each.

    Setting `cancel` from another thread ends the lowering, as does `time_limit_seconds`; by default, it has no limit.
    `progress` is called with a line for each step.

    Raises UsageError for wrong arguments, options and targets, KernelError for errors in the kernel's own Python,
    BackendError at the time limit, and Cancelled.
    """
    control = Control.checked(cancel, time_limit_seconds, progress)
    chip, asked = get_target(target), parse_options(options)
    with control.watched("the lowering"):
        with machine(chip), errors_of_ours("reading the kernel"):
            match kernel:
                case str():
                    traced = load_kernel(kernel, **kernel_arguments)
                case Port():
                    one = kernel.written
                    traced = load_text(one.skeleton, f"{one.factory} (ported)", one.factory, kernel_arguments)
                case _:
                    traced = trace(kernel, **kernel_arguments)
        made = _explored(traced, chip, asked, sizes_of(traced.function, sizes), control)
    return made.from_port(kernel) if isinstance(kernel, Port) else made


def _explored(
    traced: TracedKernel, target: Target, options: dict[str, Any], sizes: tuple[Size, ...], control: Control,
    like: Iterable[Exploration] = (),
) -> Exploration:  # fmt: skip
    """Lower each launch of the kernel; of a kernel with one launch, with the steps that are those of other lowerings
    (`like`)."""
    with errors_of_ours("splitting the kernel into its launches"):
        parts = launches_of(traced)
    if len(parts) == 1 and not traced.allocated:
        return _lowered(parts[0], target, options, sizes, control, like)
    used = [used_names(part) for part in parts]
    inputs = [{name for name, role in tensor_roles(part.function).items() if role == "input"} for part in parts]
    by_name = (("layouts", used), ("cb_depth", used), ("multicast", inputs), ("loaded_by", inputs))
    made: list[Exploration] = []
    for number, part in enumerate(parts):
        chosen = dict(options)
        for option, named in by_name:
            # All launches have what names nothing.
            given: object = options.get(option)
            if given and not isinstance(given, str):
                asked = dictionary(option, given, "names", OPTIONS[option].example).items()
                chosen[option] = {n: one for n, one in asked if number in _concerned(n, named, used)}
        known = {str(variable.name) for variable in size_variables(part.function)}
        made.append(_lowered(part, target, chosen, tuple(size for size in sizes if size.name in known), control))
    return Launches(traced, target, options, (), tuple(made))


def _concerned(name: str, *named: Sequence[Collection[str]]) -> list[int]:
    """The launches that have a name in the first sense in which any has it; where none has it, the first refuses it."""
    for names in named:
        if found := [number for number, own in enumerate(names) if name in own]:
            return found
    return [0]


def _lowered(
    traced: TracedKernel, target: Target, options: dict[str, Any], sizes: tuple[Size, ...], control: Control,
    like: Iterable[Exploration] = (),
) -> Exploration:  # fmt: skip
    chosen, annotations = with_annotations(traced.annotations, options)
    plan = Plan(traced.name, target.name, notes=traced.notes, annotations=annotations, sizes=sizes)
    applied: list[Applied] = []
    others = [[step.applied for step in one._steps] for one in like if one.target == target]
    for one in lower(Program({KERNEL: traced.function}, plan, traced.source), target, chosen, like=others):
        control.tell(f"{one.step.letter} {one.step.name}")
        applied.append(one)
    return Exploration(traced, target, options, _steps(applied))


def _steps(applied: Iterable[Applied], before: Step | None = None) -> tuple[Step, ...]:
    steps: list[Step] = []
    for index, one in enumerate(applied):
        steps.append(Step(index, one, steps[-1] if steps else before))
    return tuple(steps)


@dataclass(frozen=True, eq=False, repr=False)
class Step(BaseStep):
    """The run of one pass: the program and plan before and after, its options, and the time that it took."""

    index: int
    applied: Applied
    previous: Step | None = None

    @property
    def name(self) -> str:
        return self.applied.step.name

    @property
    def letter(self) -> str:
        return self.applied.step.letter

    @property
    def stage(self) -> str:
        return self.applied.step.stage

    @property
    def summary(self) -> str:
        return self.applied.step.summary

    @property
    def options(self) -> dict[str, Any]:
        """The options of this pass with the values that it used."""
        return Parts(f"option of {self.name}", self.applied.options)

    @property
    def seconds(self) -> float:
        return self.applied.seconds

    @property
    def error(self) -> TTExploreError | None:
        return self.applied.error

    @property
    def before(self) -> Program:
        return self.applied.before

    @property
    def after(self) -> Program:
        return self.applied.after

    @functools.cached_property
    def parts(self) -> tuple[Step, ...]:
        """The steps that this one consists of, in order; none for most."""
        return _steps(self.applied.parts, self.previous)

    @property
    def plan(self) -> Plan:
        return self.after.plan

    @functools.cached_property
    def listing(self) -> Listing:
        """The IR after the step, with the origins of each line."""
        if self.after.shares_functions(self.before):
            return self._listing_before
        return program_listing(self.after, self.name)

    @functools.cached_property
    def _listing_before(self) -> Listing:
        if self.previous is not None and self.previous.after.shares_functions(self.before):
            return dataclasses.replace(self.previous.listing, name=self.name)
        return program_listing(self.before, self.name)

    @functools.cached_property
    def record(self) -> StepRecord:
        """The step as plain data."""
        before, after = self._listing_before, self.listing
        firings = firing_records(self.before, self.after, (before, after))
        sentences = {one.rule.name: one.rule.sentence for one in self.after.firings}
        plans = [to_json(program.plan) for program in (self.before, self.after)]
        return StepRecord(
            self.index, self.name, self.letter, self.stage, self.summary, self.applied.step.docstring,
            before.text != after.text, plans[0] != plans[1], self.seconds, before, after, plans[0], plans[1],
            to_json(self.options), self.error.record() if self.error else None,
            {one.rule: sentences[one.rule] for one in firings}, firings, tuple(one.record for one in self.parts),
        )  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Exploration(Explored):
    """A kernel with all the steps of its lowering. Steps, plan and code can be read, executed and forked."""

    kernel: TracedKernel
    target: Target
    options: dict[str, Any]
    _steps: tuple[Step, ...]
    # What the kernel was written from, if it is a port.
    ported: Port | None = field(default=None, kw_only=True)

    def from_port(self, ported: Port | None) -> Exploration:
        """The same lowering of a kernel that was written from a port."""
        return dataclasses.replace(self, ported=ported)

    @property
    def launches(self) -> tuple[Exploration, ...]:
        """The explorations of the kernel's launches, in order: this one itself, unless it has several T.Kernel."""
        return (self,)

    @property
    def steps(self) -> Steps[Step]:
        every = [one for step in PIPELINE for one in (step, *step.parts)]
        return Steps(self._steps, [name for one in every for name in (one.name, one.letter)])

    @property
    def plan(self) -> Plan:
        """The plan after the last step that ran."""
        return self._steps[-1].after.plan

    @property
    def error(self) -> TTExploreError | None:
        """The error that ended the lowering, None if it succeeded."""
        return self._steps[-1].error

    def _final(self) -> Program:
        if self.error is not None:
            raise self.error
        return self._steps[-1].after

    @functools.cached_property
    def files(self) -> dict[str, Listing]:
        """All files that export writes, by name. Raises the lowering's error, if it failed."""
        final = self._final()
        with errors_of_ours("writing the C++"):
            return Parts("file", emit(final.functions, final.plan))

    def fork(self, at: str | int | None = None, *, target: str | Target | None = None, **options: Any) -> Exploration:
        """Lower again with other options, those of step `at`, or with another target. The passes before the first that
        looks at one of these options do not run again.

        Raises UsageError for an option that the step does not have.
        """
        if at is not None:
            step = self.steps.single("at", at)
            for name in options:
                if name not in step.options:
                    hint = f"use one of {', '.join(step.options)}" if step.options else "this pass has no options"
                    raise UsageError("U001", f"{step.name} has no option {name!r}", hint=hint)
        return self.lower_again(options, target, FREE)

    def lower_again(
        self, options: Mapping[str, Any], target: str | Target | None, control: Control
    ) -> Exploration:  # fmt: skip
        asked = parse_options(options)
        kept = {name: value for name, value in self.options.items() if name not in options}
        chip = self.target if target is None else get_target(target)
        with control.watched("the lowering"):
            made = _explored(self.kernel, chip, kept | asked, self._sizes, control, [self])
        return made.from_port(self.ported)

    def with_options(self, options: Mapping[str, Any], like: Iterable[Exploration] = ()) -> Exploration:
        """Lower the same kernel for the same target and sizes with these options alone. A pass that gave the same here,
        or in one of the explorations `like` this one, does not run again."""
        made = _explored(self.kernel, self.target, parse_options(options), self._sizes, FREE, [*like, self])
        return made.from_port(self.ported)

    def edited(self, text: str) -> Exploration:
        """Lower the kernel with another text of its function, which ``ex.kernel.source`` shows, with the same
        arguments, options, target and sizes. Nothing of the notebook and of the kernel's file changes.

        The text, with its decorators, is executed where the kernel was defined: it sees the same names of the module or
        notebook, and those of the functions around it. The first text gives the first kernel again.

        Raises KernelError, at its line, for a text that is not valid Python, defines no kernel or raises, and
        UsageError for a launch, for a kernel whose text alone does not define it, and for options that do not fit.
        """
        return self.lower_text(text_of("the text of the kernel", text), FREE)

    def lower_text(self, text: str, control: Control) -> Exploration:
        with control.watched("the lowering"):
            with machine(self.target), errors_of_ours("reading the kernel"):
                traced = edited_kernel(self.kernel, text)
            names = {str(variable.name) for variable in size_variables(traced.function)}
            kept = {size.name: size.value for size in self._sizes if size.name in names}
            made = _explored(traced, self.target, self.options, sizes_of(traced.function, kept), control)
        return made.from_port(self.ported)

    @property
    def missing(self) -> dict[str, str]:
        return super().missing | ({"edit": OF_ALL_LAUNCHES} if self.kernel.surroundings is None else {})

    def estimate(
        self, inputs: Inputs = None, seed: int = 0, *, sizes: Mapping[str, int] | None = None,
        time_limit_seconds: float | None = None, progress: Progress | None = None,
        cancel: threading.Event | None = None,
    ) -> Estimate | LaunchEstimates:  # fmt: skip
        """Predict the time of the program on its target, by a replay of what its processors do: how long it takes, what
        bounds it, and what would help most. docs/clock.md says what the replay knows of the chip, and how wrong it is.

        Several launches are predicted one by one. With T.dynamic sizes, the prediction is for their values:
        ``ex.with_sizes(n=64).estimate()``.

        Where elements of tensors decide how often a loop runs or whether a branch is taken, it predicts the time with
        these `inputs`, which are those of :meth:`run`, as are `seed` and `sizes`, and says so (`of_inputs`): the
        interpreter runs the program with them and tells what is decided. Elsewhere inputs change nothing, and nothing
        is run. `time_limit_seconds`, without limit by default, `progress` and `cancel` are those of :meth:`run`.

        Raises the lowering's error, UsageError if elements decide and there are no inputs, BackendError at the time
        limit, Cancelled, and what :meth:`run` raises for wrong inputs.
        """
        control = Control.checked(cancel, time_limit_seconds, progress).of("the estimate", start=time.perf_counter())
        with control.watched(control.what, start=control.start):
            if inputs is None:
                return self._sized(None, sizes)._estimate
            sized = self._sized(inputs, sizes)
            return sized._estimate_of(sized._inputs(inputs, seed), control)

    def _estimate_of(self, arrays: tuple[Array, ...], control: Control) -> Estimate | LaunchEstimates:
        return self._estimate_by(lambda: self._run(self._final(), arrays, control, numbers=True))

    def _estimate_by(self, run: Callable[[], Interpretation]) -> Estimate:
        """The estimate for the inputs of a `run` of the final program, which happens if elements decide something."""
        final = self._final()
        with errors_of_ours("predicting the time"):
            return estimate(
                core_classes(final.functions, final.plan, self.target, lambda: run().numbers), final.plan, self.target
            )

    @functools.cached_property
    def _estimate(self) -> Estimate | LaunchEstimates:
        final = self._final()
        with errors_of_ours("predicting the time"):
            return estimate(core_classes(final.functions, final.plan, self.target), final.plan, self.target)

    @property
    def link_map(self) -> Drawing:
        """The bytes over the links of both NoCs, on the chip's floorplan: :meth:`estimate` has them as numbers, and
        raises the same errors."""
        found, plan = self.estimate(), self.plan
        assert isinstance(found, Estimate), "each launch is drawn by itself"
        assert plan.partition is not None, "what has a time has been lowered"
        return Drawing(core_map_svg(self.target, plan.partition, measure=link_measure(found, plan)))

    @property
    def estimated(self) -> str:
        if self.error is not None:
            return "-"
        try:
            return self.estimate().summary
        except TTExploreError as error:
            return f"not known: {error.message}"

    def estimate_data(self, inputs: Inputs = None, seed: int = 0, control: Control = FREE) -> JsonObject:
        return estimate_data(*self._predicted(inputs, seed, control))

    def trace_data(
        self, core: tuple[int, int], inputs: Inputs = None, seed: int = 0, control: Control = FREE
    ) -> JsonObject:
        return trace_data(self._predicted(inputs, seed, control)[0], core)

    def _predicted(self, inputs: Inputs, seed: int, control: Control) -> tuple[Estimate, Plan]:
        """The estimate that the explorer shows, and its plan: with `inputs`, that for these."""
        with control.watched("the estimate"):
            if inputs is None:
                found, sized = self._estimate, self
            else:
                sized = self._sized(inputs, None)
                found = sized._estimate_kept(sized._inputs(inputs, seed), control)
        plan = sized.plan
        assert isinstance(found, Estimate), "each launch is shown by itself"
        return found, plan

    @functools.cached_property
    def _estimated_inputs(self) -> list[tuple[tuple[Array, ...], Estimate]]:
        """The latest estimate for inputs, with these; nothing before the first."""
        return []

    def _estimate_kept(self, arrays: tuple[Array, ...], control: Control) -> Estimate:
        for given, found in self._estimated_inputs:
            if all(map(np.array_equal, given, arrays)):
                return found
        found = self._estimate_by(lambda: self._run(self._final(), arrays, control, numbers=True))
        self._estimated_inputs[:] = [(tuple(one.copy() for one in arrays), found)]
        return found

    def gpu(
        self, arch: str = "sm_90a", *, environment: Path | None = None, time_limit_seconds: float | None = None,
        progress: Progress | None = None, cancel: threading.Event | None = None,
    ) -> GpuLane:  # fmt: skip
        """Lower the same kernel for a GPU with TileLang's own pipeline, in the environment of ``ttexplore setup gpu``;
        no GPU is needed. `arch` is such as ``"sm_90a"`` (CUDA) or ``"gfx942"`` (HIP).

        `environment` is the folder of the environment, by default the one that set-up uses; without one, the kernels of
        the gallery have recorded lanes. `time_limit_seconds` is 120 by default. `progress` and `cancel` are those of
        :meth:`run`. If a pass fails, the lane ends with it and holds the error; its code raises it.

        Raises UsageError for wrong arguments, and BackendError if there is no environment, if TileLang rejects the
        kernel, with its line, and if the process crashes or exceeds the time limit; Cancelled if cancelled.
        """
        target = check_architecture(arch)
        control = Control.checked(cancel, time_limit_seconds, progress).of("the GPU lane")
        if time_limit_seconds is None:
            control = control.of(control.what, seconds=GPU_SECONDS)
        sent = portable(self.kernel)
        request = request_for(sent.texts, sent.arguments, target)
        folder = None if environment is None else path_of("the environment", environment)
        lane = lower_for_gpu(self.kernel.name, self.kernel.source, request, sent.places, target, folder, control)
        self._lanes[target] = lane
        return lane

    @functools.cached_property
    def _lanes(self) -> dict[str, GpuLane]:
        """The latest lane for each architecture, which the explorer and its page show."""
        return {}

    def gpu_data(self, arch: str, control: Control) -> JsonObject:
        sent = portable(self.kernel)
        known = architectures(sent.texts, sent.arguments)
        offered = self._offered(known)
        if arch == PORT or (self.ported is not None and not arch):
            return self._port_data(offered)
        self._final()
        chosen = arch or known[0]
        lane = self._lanes.get(chosen) or self.gpu(chosen, progress=control.progress, cancel=control.cancel)
        return beside_data(self.beside(lane), offered)

    def lanes_data(self) -> list[JsonObject]:
        offered = self._offered(self._lanes)
        ported = [] if self.ported is None else [self._port_data(offered)]
        return ported + [beside_data(self.beside(lane), offered) for lane in self._lanes.values()]

    def _offered(self, architectures: Iterable[str]) -> dict[str, str]:
        """What can stand beside this lowering, by name, as it is shown."""
        ported = {} if self.ported is None else {PORT: f"{self.ported.written.name} ({self.ported.language})"}
        return ported | {arch: f"{arch} ({ARCHITECTURES[arch]})" for arch in architectures}

    def _port_data(self, offered: dict[str, str]) -> JsonObject:
        if self.ported is None:
            raise UsageError("U001", "the kernel is not a port", hint="ttx.explore(ttx.port(source)) explores one")
        return port_data(self.ported, self.ported.written, self.kernel.source, offered)

    def beside(self, lane: GpuLane | str = "sm_90a") -> Beside:
        """This lowering beside a GPU lane of the same kernel: the passes of both by what they do, the lines of both
        programs by their kernel line, and a map of concepts with counts, bytes and lines of both.

        `lane` is one of :meth:`gpu`, or its architecture. Raises UsageError for another kernel's lane and for a kernel
        with several launches, the lowering's error, if it failed, and what :meth:`gpu` raises.
        """
        files: dict[KernelRole, Listing] = {role: self.files[f"{role}.cpp"] for role in KERNEL_ROLES}
        found = self.gpu(lane) if isinstance(lane, str) else lane
        if not _is_lane(found):
            raise wrong("the lane", lane, 'one of ex.gpu(), or an architecture such as "sm_90a"')
        sent = portable(self.kernel)
        if found.digest != kernel_digest({"texts": sent.texts, "arguments": sent.arguments}):
            raise UsageError(
                "U010", f"the lane is of another kernel than {self.kernel.name}, or of one with other arguments",
                hint="use ex.beside(ex.gpu())",
            )  # fmt: skip
        with errors_of_ours("counting the operations"):
            ours = TileProgram(files, emitted_parts(self._final().functions, self.plan), self.plan)
        return Beside(found, tuple(step.record for step in self.steps), ours, self.target)

    # Sizes

    @property
    def _sizes(self) -> tuple[Size, ...]:
        """The T.dynamic sizes of the kernel, with their values."""
        return self.plan.sizes

    def with_sizes(self, /, **sizes: int) -> Exploration:
        """The same lowering for other values of the kernel's T.dynamic sizes: only the plan changes, not steps or code.

        Raises UsageError for unknown names and for values below 1, and what the passes raise for unsuitable sizes.
        """
        known = self.plan.size_values
        wanted = sizes_of(self.kernel.function, {**known, **sizes} if sizes else known)
        if wanted == self.plan.sizes:
            return self
        with errors_of_ours("binding the sizes"):
            steps = bind_sizes((step.applied for step in self._steps), self.target, wanted)
        return dataclasses.replace(self, _steps=_steps(steps))

    def _sized(self, inputs: Inputs, sizes: Mapping[str, int] | None) -> Exploration:
        """The exploration for the given sizes, or for those of the inputs."""
        wanted = dictionary("sizes", {} if sizes is None else sizes, "names", '{"n": 64}')
        parameters = [p for p in self.kernel.function.params if is_buffer(p)]
        tensors = [p for p in parameters if self._roles.get(str(p.name)) in ("input", "inout")]
        given = given_inputs(inputs, self._tensors(("input", "inout")), self._reasons) or ()
        for position, (array, tensor) in enumerate(zip(given, tensors, strict=False)):
            for extent, symbolic in zip(np.shape(array), extents_of(tensor), strict=False):
                name = "" if isinstance(symbolic, int) else str(symbolic.name)
                if name and wanted.setdefault(name, extent) != extent:
                    raise UsageError(
                        "U010",
                        f"input {position} has {name} = {extent}, but {name} is already {wanted[name]}",
                        hint=f"pass sizes that agree: {tensor.name} has the shape "
                        f"({', '.join(map(str, extents_of(tensor)))})",
                    )
        return self.with_sizes(**wanted)

    # Running

    @functools.cached_property
    def _roles(self) -> dict[str, str]:
        return dict(tensor_roles(self.kernel.function))

    def _tensors(self, roles: tuple[str, ...]) -> list[Tensor]:
        return [
            Tensor(str(p.name), bound_shape(p, self.plan.size_values), dtype_of(p))
            for p in self.kernel.function.params
            if is_buffer(p) and self._roles.get(str(p.name)) in roles
        ]

    def _valid(self, arrays: tuple[Array, ...], seed: int) -> tuple[Array, ...]:
        # After the first step what decides has names.
        tensors = self._tensors(("input", "inout"))
        shapes = {one.name: one.shape for launch in self.launches for one in launch._tensors(_ROLES)}
        given = dict(zip((one.name for one in tensors), arrays, strict=True))
        with errors_of_ours("making the inputs"):
            first = [launch._steps[0] for launch in self.launches]
            launches = [(step.before.kernel, step.after.kernel) for step in first]
            sizes = {size.name: size.value for size in self._sizes}
            found = valid_inputs(launches, sizes, shapes, given, seed)
        return tuple(found[one.name] for one in tensors)

    def _check_races(self, arrays: tuple[Array, ...]) -> None:
        given = dict(zip((one.name for one in self._tensors(("input", "inout"))), arrays, strict=True))
        with errors_of_ours("checking where blocks store"):
            for launch in self.launches:
                shapes = {one.name: one.shape for one in launch._tensors(_ROLES)}
                check_places(launch._steps[0].after.kernel, launch.plan.size_values, shapes, given)

    def reference(
        self, inputs: Inputs = None, seed: int = 0, *, sizes: Mapping[str, int] | None = None, in_float64: bool = False
    ) -> tuple[Array, ...]:
        """The outputs of the traced kernel, before any pass, in storage dtype. With `in_float64`, all floating-point
        numbers of the kernel are float64: inputs are rounded to the dtypes of their tensors, nothing else is."""
        sized = self._sized(inputs, sizes)
        arrays = sized._inputs(inputs, seed)
        return sized._in_float64(arrays, FREE) if flag("in_float64", in_float64) else sized._reference(arrays, FREE)

    def _reference(self, arrays: tuple[Array, ...], control: Control) -> tuple[Array, ...]:
        return self._run(self._steps[0].before, arrays, control).outputs

    def _in_float64(self, arrays: tuple[Array, ...], control: Control) -> tuple[Array, ...]:
        return self._run(self._steps[0].before, arrays, control, rounds=False).outputs

    def _rounding(self, arrays: tuple[Array, ...], control: Control = FREE) -> RoundingErrors:
        @functools.cache
        def errors(unit: float) -> tuple[Array, ...]:
            return self._run(self._steps[0].before, arrays, control, unit=unit).errors

        return errors

    def _run(
        self, program: Program, arrays: tuple[Array, ...], control: Control = FREE, *, unit: float | None = None,
        errors: Mapping[str, Array] | None = None, rounds: bool = True, numbers: bool = False,
    ) -> Interpretation:  # fmt: skip
        """Interpret a step's program with tensors in the formats of the final plan: early plans lack layouts."""
        plan = program.plan if program.plan.layouts else program.plan.replace(layouts=self.plan.layouts)
        with errors_of_ours("interpreting the kernel"):
            return interpret(
                program.functions, plan, arrays, self._roles,
                control=control, unit=unit, errors=errors, rounds=rounds, numbers=numbers,
            )  # fmt: skip

    def _in_tessera(self) -> str:
        roles = self._roles
        with errors_of_ours("writing the kernel in Tessera"):
            return tessera(
                self.kernel.function, self.kernel.name, [name for name, role in roles.items() if role != "input"]
            )

    def _kept(self) -> Kept | None:
        elements = sum(
            prod(one.shape) for one in (*self._tensors(("input", "inout")), *self._tensors(("output", "inout")))
        )
        if self.error is not None or 4 * elements > LARGEST_ARRAYS_BYTES:
            return None
        arrays = self._inputs(None, 0)
        return Kept(arrays, self._reference(arrays, FREE))

    def _interpreted(self, backend: BackendEntry, arrays: tuple[Array, ...], control: Control) -> Execution:
        program = self._steps[0].before if backend is BACKENDS["reference"] else self._final()
        result = self._run(program, arrays, control)
        return Execution(result.outputs, result.seconds, None, simulation_time(result.seconds))

    def check(
        self, inputs: Inputs = None, seed: int = 0, *, sizes: Mapping[str, int] | None = None,
        time_limit_seconds: float | None = None, progress: Progress | None = None,
        cancel: threading.Event | None = None,
    ) -> Check:  # fmt: skip
        """Execute the program after every step and compare it with the reference. `inputs`, `progress` and `cancel` are
        those of :meth:`run`; `time_limit_seconds`, by default none, limits the check as a whole. Raises the lowering's
        error, KernelError for inputs with which the kernel leaves a tensor, BackendError at the time limit, and
        Cancelled.

        A step that changes nothing that the interpreter depends on is not executed: it has the result of the step
        before it.
        """
        if self.error is not None:
            raise self.error
        control = Control.checked(cancel, time_limit_seconds, progress).of("the check", start=time.perf_counter())
        return self._sized(inputs, sizes)._checked(inputs, seed, control)

    def _checked(self, inputs: Inputs, seed: int, control: Control) -> Check:
        """Check the steps with the sizes of this exploration."""
        arrays = self._inputs(inputs, seed)
        control.tell("computing the reference")
        of_reference = control.of(f"{control.what}, still at the reference,")
        reference, rounding = self._reference(arrays, of_reference), self._rounding(arrays, of_reference)
        last: StepCheck | None = None
        results: list[StepCheck] = []
        for number, step in enumerate(self._steps, 1):
            parts: list[StepCheck] = []
            for leaf in step.leaves:
                if last is not None and runs_alike(leaf.before, leaf.after):
                    last = dataclasses.replace(last, step=leaf.name, letter=leaf.letter, executed=False)
                else:
                    last = self._checked_step(leaf, arrays, control, (reference, rounding), first=not results)
                parts.append(last)
            results.append(StepCheck.of_parts(step.name, step.letter, parts) if step.parts else parts[0])
            control.tell(f"{number} of {len(self._steps)}: {results[-1].headline}")
        return Check(tuple(results))

    def _checked_step(
        self, step: Step, arrays: tuple[Array, ...], control: Control,
        wanted: tuple[tuple[Array, ...], RoundingErrors], *, first: bool,
    ) -> StepCheck:  # fmt: skip
        name = f"{step.letter} {step.name}"
        control.tell(f"executing {name}")
        try:
            outputs = self._run(step.after, arrays, control.of(f"{control.what}, at {name},")).outputs
            one = compare(outputs, wanted[0], self.plan.precisions, wanted[1], self._output_names)
        except BackendError:  # the time limit, or Cancelled
            raise
        except TTExploreError as error:
            # The kernel does not run with these inputs, at no step.
            if first and isinstance(error, KernelError):
                raise
            return StepCheck(step.name, step.letter, False, float("nan"), float("nan"), str(error))
        return StepCheck(step.name, step.letter, one.passed, one.pcc, one.max_rel_error, one.message)

    def porting_checks(
        self, *, run: bool = True, time_limit_seconds: float | None = None, progress: Progress | None = None,
        cancel: threading.Event | None = None,
    ) -> PortingChecks:  # fmt: skip
        """Go through the porting checklist: tile shapes and dtypes, layout, copies, accumulators, epilogues, numerics,
        launch, and performance. Each check passes, fails or does not apply, with a number, the kernel's line, and what
        to do. It fails for what is slow or inexact, not only for what is wrong.

        Unless `run` is False, every step is executed, as by :meth:`check`, whose arguments and errors the others are.
        Raises the lowering's error.
        """
        run = flag("run", run)
        final = [launch._final() for launch in self.launches]
        checked: str | None = None
        if run:
            found = self.check(time_limit_seconds=time_limit_seconds, progress=progress, cancel=cancel)
            checked = next((f"{one.headline}: {one.message}" for one in found.results if not one.passed), "")
        return porting_checks([
            launch._porting_facts(program, checked) for launch, program in zip(self.launches, final, strict=True)
        ])  # fmt: skip

    def _porting_facts(self, final: Program, checked: str | None) -> Facts:
        estimate, why = None, None
        try:
            estimate = self._estimate
        except UsageError as error:
            why = error.record()
        assert not isinstance(estimate, LaunchEstimates), "one launch has one estimate"
        spans = {str(p.name): span_of(p) for p in self.kernel.function.params if is_buffer(p)}
        roles = self._roles
        return Facts(
            final.plan, self.target, self.steps[0].record.before, self.files["compute.cpp"],
            {name: span for name, span in spans.items() if span is not None},
            tuple(name for name, role in roles.items() if role != "output"),
            tuple(name for name, role in roles.items() if role != "input"), estimate, why, checked,
        )  # fmt: skip

    # Showing

    @functools.cached_property
    def trace(self) -> Trace:
        """The exploration as plain data."""
        files = {} if self.error is not None else self.files
        versions = {name: metadata.version(name) for name in ("apache-tvm", "numpy")}
        return Trace(
            self.kernel.name, self.target.name, self.kernel.source, tuple(step.record for step in self._steps), files,
            to_json(self.plan), versions,
        )  # fmt: skip

    @property
    def _given(self) -> Collection[str]:
        return [name for name, value in self.options.items() if value not in (None, {})]

    @property
    def option_forms(self) -> Mapping[str, OptionForm]:
        return Parts("option", option_forms(self.plan.partition.work_items if self.plan.partition else 0))


def _is_lane(given: object) -> bool:
    return isinstance(given, GpuLane)


@dataclass(frozen=True, eq=False, repr=False)
class Launches(Exploration):
    """A kernel with several launches, each an exploration of its own. They run one after another: what one writes, a
    later one reads.

    Runs and checks are those of the whole. Steps, plan and code are those of a launch: ``ex.launches[0].steps``.
    """

    _launches: tuple[Exploration, ...]

    @property
    def launches(self) -> tuple[Exploration, ...]:
        return self._launches

    def _of_each(self, what: str) -> UsageError:
        return UsageError(
            "U019",
            f"{self.kernel.name} has {plural(len(self.launches), 'launch')}, each with {what} of its own",
            hint="use those of one launch: ex.launches[0], and so on",
        )

    @property
    def steps(self) -> Steps[Step]:
        raise self._of_each("steps")

    @property
    def plan(self) -> Plan:
        raise self._of_each("a plan")

    @functools.cached_property
    def files(self) -> dict[str, Listing]:
        raise self._of_each("files")

    @functools.cached_property
    def trace(self) -> Trace:
        raise self._of_each("a trace")

    @property
    def error(self) -> TTExploreError | None:
        return next((one.error for one in self.launches if one.error is not None), None)

    @functools.cached_property
    def _estimate(self) -> Estimate | LaunchEstimates:
        parts = [launch.estimate() for launch in self.launches]
        return LaunchEstimates(self.kernel.name, tuple(one for one in parts if isinstance(one, Estimate)))

    def _estimate_of(self, arrays: tuple[Array, ...], control: Control) -> Estimate | LaunchEstimates:
        """Each launch with the inputs that those before it leave."""
        parts: list[Estimate] = []

        def run(launch: Exploration, given: tuple[Array, ...]) -> tuple[Array, ...]:
            final, inputs = launch._final(), launch._inputs(given, 0)
            once = functools.cache(lambda: launch._run(final, inputs, control, numbers=True))
            parts.append(launch._estimate_by(once))
            return once().outputs

        self._chained(run, arrays)
        return LaunchEstimates(self.kernel.name, tuple(parts))

    def fork(self, at: str | int | None = None, *, target: str | Target | None = None, **options: Any) -> Exploration:
        """Lower all launches again with other options, or with another target. Raises UsageError for a step `at`."""
        if at is not None:
            raise self._of_each("steps")
        return super().fork(target=target, **options)

    # Sizes

    @property
    def _reasons(self) -> tuple[str, ...]:
        found = {name: note for launch in self.launches for name, note in launch.plan.notes_on_inputs.items()}
        return tuple(found[tensor.name] for tensor in self._tensors(_INPUTS) if tensor.name in found)

    @property
    def _sizes(self) -> tuple[Size, ...]:
        values = {size.name: size.value for launch in self.launches for size in launch.plan.sizes}
        return sizes_of(self.kernel.function, values)

    def with_sizes(self, /, **sizes: int) -> Exploration:
        known = {size.name: size.value for size in self._sizes}
        wanted = {size.name: size.value for size in sizes_of(self.kernel.function, {**known, **sizes})}
        if wanted == known:
            return self
        made = (
            launch.with_sizes(**{size.name: wanted[size.name] for size in launch.plan.sizes})
            for launch in self.launches
        )
        return dataclasses.replace(self, _launches=tuple(made))

    # Running

    @functools.cached_property
    def _roles(self) -> dict[str, str]:
        """The roles of the parameters for all launches together."""
        old = old_contents([launch.kernel.function for launch in self.launches])
        written = {name for launch in self.launches for name, role in launch._roles.items() if role != "input"}
        own = [str(p.name) for p in self.kernel.function.params if is_buffer(p)]
        return {name: "input" if name not in written else "inout" if name in old else "output" for name in own}

    def _tensors(self, roles: tuple[str, ...]) -> list[Tensor]:
        all_of = {tensor.name: tensor for launch in self.launches for tensor in launch._tensors(_ROLES)}
        return [all_of[name] for name, role in self._roles.items() if role in roles]

    def _chained(
        self, run: Callable[[Exploration, tuple[Array, ...]], tuple[Array, ...]], arrays: tuple[Array, ...]
    ) -> tuple[Array, ...]:
        """The outputs of the kernel, where `run` gives those of a launch for its inputs."""
        held = dict(zip((one.name for one in self._tensors(_INPUTS)), arrays, strict=True))
        for launch in self.launches:
            # What nothing has been stored to holds zeros.
            inputs = launch._tensors(_INPUTS)
            outputs = run(launch, tuple(held[t.name] if t.name in held else np.zeros(t.shape) for t in inputs))
            held |= zip((one.name for one in launch._tensors(_OUTPUTS)), outputs, strict=True)
        return tuple(held[one.name] for one in self._tensors(_OUTPUTS))

    def _reference(self, arrays: tuple[Array, ...], control: Control) -> tuple[Array, ...]:
        return self._chained(lambda launch, given: launch._reference(launch._inputs(given, 0), control), arrays)

    def _in_float64(self, arrays: tuple[Array, ...], control: Control) -> tuple[Array, ...]:
        return self._chained(lambda launch, given: launch._in_float64(given, control), arrays)

    def _rounding(self, arrays: tuple[Array, ...], control: Control = FREE) -> RoundingErrors:
        @functools.cache
        def errors(unit: float) -> tuple[Array, ...]:
            known: dict[str, Array] = {}

            def run(launch: Exploration, given: tuple[Array, ...]) -> tuple[Array, ...]:
                inputs, first = launch._inputs(given, 0), launch._steps[0].before
                result = launch._run(first, inputs, control, unit=unit, errors=known)
                known.update(zip((one.name for one in launch._tensors(_OUTPUTS)), result.errors, strict=True))
                return result.outputs

            self._chained(run, arrays)
            return tuple(known[one.name] for one in self._tensors(_OUTPUTS))

        return errors

    def _precisions(self) -> tuple[Precision, ...]:
        """The precision that each output is held to: the lowest of all launches, because errors are passed on."""
        used: set[Precision] = {one for launch in self.launches for one in launch.plan.precisions}
        lowest = max(used, key=_PRECISIONS.index)
        return (lowest,) * len(self._tensors(_OUTPUTS))

    def _ran(self, request: RunRequest) -> Run:
        """Run the launches on a backend. Each is compared with its reference for the inputs that it got; the outputs,
        with the reference of the whole."""
        if self.error is not None:
            raise self.error
        if request.code:
            raise self._of_each("code")
        runs: list[Run] = []

        def run(launch: Exploration, given: tuple[Array, ...]) -> tuple[Array, ...]:
            request.control.tell(f"launch {len(runs) + 1} of {len(self.launches)}: {launch.kernel.name}")
            runs.append(launch._ran(dataclasses.replace(request, inputs=given, sizes=None)))
            execution = runs[-1].execution
            assert execution is not None, "a run gives one"
            return execution.outputs

        arrays = self._inputs(request.inputs, request.seed)
        outputs = self._chained(run, arrays)
        on_card = all(one.execution is not None and one.execution.on_card for one in runs)
        seconds = sum(one.seconds for one in runs)
        if not request.compared:
            alone = Execution(outputs, seconds, None, "", on_card=on_card)
            return Run.alone(request.backend.name, self._in_own_dtypes(outputs), alone)
        request.control.tell("computing the reference of the whole")
        of_reference = request.control.of("the reference")
        reference = self._reference(arrays, of_reference)
        name = f"{request.backend.name} against reference"
        rounding = self._rounding(arrays, of_reference)
        whole = Side.of(name, outputs, reference, self._precisions(), rounding, self._output_names)
        names = [launch.kernel.name for launch in self.launches]
        own = zip(names, runs, strict=True)
        sides = [
            whole, *(dataclasses.replace(side, name=f"{name}: {side.name}") for name, one in own for side in one.sides)
        ]  # fmt: skip
        failed = [f"{name}: {one.message}" for name, one in zip(names, runs, strict=True) if not one.passed]
        found = whole.comparison
        took = f"{len(runs)} launches, {card_time(seconds) if on_card else simulation_time(seconds)}"
        message = "\n".join([took, found.message, *failed])
        return Run(
            request.backend.name,
            self._in_own_dtypes(outputs),
            found.passed and not failed, found.pcc, found.max_rel_error, seconds, message,
            found, Execution(outputs, seconds, None, "", on_card=on_card), tuple(sides),
        )  # fmt: skip

    def _checked(self, inputs: Inputs, seed: int, control: Control) -> Check:
        """Check the steps of each launch, for the inputs that the reference of the launches before it gives."""
        results: list[StepCheck] = []

        def run(launch: Exploration, given: tuple[Array, ...]) -> tuple[Array, ...]:
            control.tell(f"checking {launch.kernel.name}")
            for one in launch._checked(given, 0, control).results:
                results.append(dataclasses.replace(one, step=f"{launch.kernel.name} {one.step}"))
            return launch._reference(launch._inputs(given, 0), control)

        self._chained(run, self._inputs(inputs, seed))
        return Check(tuple(results))

    # Exporting

    def export(self, folder: str | Path, *, dot: bool = False, dialect: str | None = None) -> list[Path]:
        """Write each launch to a folder of its own, ``launch_1`` and so on, as it exports itself, and a runner of all.

        Raises the error of a launch before anything is written, and UsageError if a folder or file cannot be written.
        """
        for launch in self.launches:
            _ = launch.files if dialect is None else launch._in_tessera()
        target, dot = path_of("the folder", folder), flag("dot", dot)
        made = [
            path
            for number, launch in enumerate(self.launches)
            for path in launch.export(target / launch_folder(number), dot=dot, dialect=dialect)
        ]
        if dialect is not None:
            return made
        inputs, outputs = ([one._asdict() for one in self._tensors(roles)] for roles in (_INPUTS, _OUTPUTS))
        return [*made, *write_files(emit_launches(self.kernel.name, len(self.launches), inputs, outputs), folder)]

    def save(self, path: str | Path) -> Path:
        raise self._of_each("a file")

    # Showing

    def _rows(self) -> list[LaunchRow]:
        def names(launch: Exploration, roles: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(name for name, role in launch._roles.items() if role in roles)

        return [
            LaunchRow(
                one.kernel.name, names(one, _INPUTS), names(one, _OUTPUTS),
                f"failed at {one.steps[-1].letter}" if one.error else f"{len(one.steps)} steps", one.error is not None,
            )
            for one in self.launches
        ]  # fmt: skip

    def __repr__(self) -> str:
        failed = [row for row in self._rows() if row.failed]
        state = f"{failed[0].name} {failed[0].state}" if failed else plural(len(self.launches), "launch")
        return f"<exploration of {self.kernel.name} for {self.target.name}: {state}>"

    def __str__(self) -> str:
        table = launches_text(self.kernel.name, self.target.name, self._rows())
        return "\n\n".join([table, *map(str, self.launches)])

    def _repr_html_(self) -> str:
        return self._summary() + "".join(one._repr_html_() for one in self.launches)

    def _summary(self) -> str:
        return launches_html(self.kernel.name, self.target.name, self._rows())

    def _reported(self, run: bool | None) -> list[Reported]:
        return [page for one in self.launches for page in one._reported(run)]

    def _ipython_display_(self) -> None:
        """Show which tensors go from launch to launch, and below that the explorers of all launches."""
        from IPython.display import publish_display_data  # pyright: ignore[reportUnknownVariableType]

        publish_display_data({"text/html": self._summary(), "text/plain": repr(self)})
        for one in self.launches:
            one._ipython_display_()


_INPUTS, _OUTPUTS, _ROLES = ("input", "inout"), ("output", "inout"), ("input", "output", "inout")
# From the highest to the lowest.
_PRECISIONS: tuple[Precision, ...] = ("exact", "full", "tf32", "bfloat16", "block_float", "low_fidelity")

__all__ = ["Check", "Exploration", "Launches", "Run", "Step", "StepCheck", "Steps", "compare_explorations", "explore"]
