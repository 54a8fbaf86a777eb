"""Exploring a kernel: lower it step by step, look at each step, execute it, ask what if, export it."""

from __future__ import annotations

import dataclasses
import functools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ttexplore.backends.base import Execution, KernelFault
from ttexplore.backends.base import Program as EmittedProgram
from ttexplore.backends.compare import ULP_CLASSES, Comparison, Side, compare, sides_text
from ttexplore.backends.emulator import Emulator
from ttexplore.backends.ttnn import Ttnn
from ttexplore.emit import emit, write_files
from ttexplore.errors import TTExploreError, UsageError
from ttexplore.ir.interpreter import interpret, rounded, runs_alike
from ttexplore.ir.listing import program_listing
from ttexplore.ir.program import KERNEL, Program
from ttexplore.ir.sizes import bound_shape, extents_of
from ttexplore.language.kernel import TracedKernel, trace
from ttexplore.language.load import load_kernel
from ttexplore.passes.bind_sizes import bind_sizes, sizes_of
from ttexplore.passes.infer_tt_layout import tensor_roles
from ttexplore.passes.pipeline import PIPELINE, Applied, accepted_values, known_options, lower, with_annotations
from ttexplore.plan import Plan, Size
from ttexplore.record import Line, Listing, Span, StepRecord, Trace, to_json
from ttexplore.target import Target, get_target
from ttexplore.views.cb_graph import cb_graph_svg
from ttexplore.views.code import code_html
from ttexplore.views.core_map import core_map_svg
from ttexplore.views.diff import diff_html, diff_text
from ttexplore.views.error_map import TileErrors
from ttexplore.views.exploration import exploration_html, exploration_text
from ttexplore.views.explorer import explorer_data
from ttexplore.views.history import Found, LineHistory, find_text, line_history
from ttexplore.views.l1_map import l1_map_svg
from ttexplore.views.run import SideFigures, run_html
from ttexplore.views.work_map import work_map_svg

if TYPE_CHECKING:
    from ttexplore.widget import ExplorerWidget

Array = NDArray[Any]

BACKENDS = ("reference", "interpreter", "emulator", "ttnn")
# Of the inputs that nobody gives.
LARGEST_RANDOM_INTEGER = 1000
_FILE_OF = {"reader": "reader.cpp", "compute": "compute.cpp", "writer": "writer.cpp", "host": "main.cpp"}


def explore(
    kernel: Any, *, target: str | Target = "wormhole_n150", options: Mapping[str, Any] | None = None,
    sizes: Mapping[str, int] | None = None, **kernel_arguments: Any,
) -> Exploration:  # fmt: skip
    """Lower a kernel and keep every step.

    `kernel` is a T.prim_func, an eager kernel or a factory with its arguments, or ``"file.py::name"``. `options`
    are those of the passes, by name (``{"policy": "strided"}``). A pass that refuses the kernel ends the exploration:
    the step carries the error, and running or exporting raises it. `sizes` gives T.dynamic sizes values to begin with:
    the lowering is the same for all, plan, checks and runs are for one.

    Raises UsageError for wrong arguments, options and targets, KernelError for errors in the kernel's own Python.
    """
    chip = get_target(target)
    traced = load_kernel(kernel, **kernel_arguments) if isinstance(kernel, str) else trace(kernel, **kernel_arguments)
    return _lowered(traced, chip, dict(options or {}), sizes_of(traced.function, sizes))


def _lowered(traced: TracedKernel, target: Target, options: dict[str, Any], sizes: tuple[Size, ...]) -> Exploration:
    chosen, annotations = with_annotations(traced.annotations, options)
    plan = Plan(traced.name, target.name, notes=traced.notes, annotations=annotations, sizes=sizes)
    applied = tuple(lower(Program({KERNEL: traced.function}, plan, traced.source), target, chosen))
    return Exploration(traced, target, options, tuple(Step(index, one) for index, one in enumerate(applied)))


@dataclass(frozen=True, eq=False)
class Step:
    """One pass as it ran: the program and plan before and after, what can be changed here, and how long it took."""

    index: int
    applied: Applied

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
        """The options of this pass with the values that were used."""
        return dict(self.applied.options)

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

    @property
    def plan(self) -> Plan:
        return self.after.plan

    @functools.cached_property
    def listing(self) -> Listing:
        """The IR after the step, each line with its origins."""
        return program_listing(self.after, self.name)

    @functools.cached_property
    def record(self) -> StepRecord:
        """The step as plain data."""
        before, after = program_listing(self.before, self.name), self.listing
        plans = [to_json(program.plan) for program in (self.before, self.after)]
        return StepRecord(
            self.index, self.name, self.letter, self.stage, self.summary, self.applied.step.docstring,
            before.text != after.text, plans[0] != plans[1], self.seconds, before, after, plans[0], plans[1],
            to_json(self.options), self.error.record() if self.error else None,
        )  # fmt: skip

    def diff(self) -> StepDiff:
        """What the step changed, in the IR and in the plan."""
        return StepDiff(self.record)

    def __str__(self) -> str:
        return f"{self.letter} {self.name}: {self.summary}\n\n{self.listing}"

    def __repr__(self) -> str:
        return f"<step {self.letter} {self.name}>"

    def _repr_html_(self) -> str:
        return diff_html(self.record)


@dataclass(frozen=True)
class StepDiff:
    """The difference that a step made; text in a terminal, a table in a notebook."""

    record: StepRecord

    def __str__(self) -> str:
        return diff_text(self.record)

    def __repr__(self) -> str:
        return diff_text(self.record)

    def _repr_html_(self) -> str:
        return diff_html(self.record)


class Steps(Sequence[Step]):
    """The steps of an exploration, by index, name or letter."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = tuple(steps)

    def __len__(self) -> int:
        return len(self._steps)

    def __iter__(self) -> Iterator[Step]:
        return iter(self._steps)

    def __getitem__(self, key: Any) -> Any:
        """The step. Raises UsageError where there is none of that name or letter."""
        if isinstance(key, int | slice):
            return self._steps[key]
        for step in self._steps:
            if key in (step.name, step.letter):
                return step
        if any(key in (one.name, one.letter) for one in PIPELINE):
            failed = self._steps[-1]
            raise UsageError(f"step {key} was not reached: {failed.name} failed", hint=str(failed.error))
        raise UsageError(f"there is no step {key!r}", hint=f"steps are {', '.join(s.letter for s in self._steps)}")

    def __repr__(self) -> str:
        return "\n".join(f"{step.letter}  {step.name}" for step in self._steps)


class Code(str):
    """An emitted text: a string whose `lines` know the kernel lines they came from; coloured in a notebook."""

    listing: Listing

    def __new__(cls, listing: Listing) -> Code:
        made = super().__new__(cls, listing.text)
        made.listing = listing
        return made

    @property
    def text(self) -> str:
        return str(self)

    @property
    def lines(self) -> tuple[Line, ...]:
        return self.listing.lines

    def _repr_html_(self) -> str:
        return code_html(self.listing)


@dataclass(frozen=True)
class Drawing:
    """A picture as SVG text; drawn in a notebook."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<drawing, {len(self.svg)} characters of SVG>"


@dataclass(frozen=True)
class Run:
    """The result of a run, compared with the reference.

    `outputs` are the output tensors in order, in the kernel's own dtypes. `pcc` is the smallest Pearson correlation
    of an output with the reference, `max_rel_error` the largest error relative to the largest reference value.
    `seconds` is the time of the kernels alone. `sides` are the comparisons side by side: with the reference and, of a
    run on a device, with the emulator.
    """

    backend: str
    outputs: tuple[Array, ...]
    passed: bool
    pcc: float
    max_rel_error: float
    seconds: float
    message: str
    comparison: Comparison
    execution: Execution | None = None
    sides: tuple[Side, ...] = ()

    def __str__(self) -> str:
        verdict = "passed" if self.passed else "FAILED"
        return (
            f"{self.backend}: {verdict}, PCC {self.pcc:.7f}, max relative error {self.max_rel_error:.2e}"
            + (f"\n{self.message}" if self.message else "")
            + (f"\n{sides_text(self.sides)}" if len(self.sides) > 1 else "")
        )

    def __repr__(self) -> str:
        verdict = "passed" if self.passed else "FAILED"
        return f"<run on {self.backend}: {verdict}, PCC {self.pcc:.6f}>"

    def _repr_html_(self) -> str:
        # Times differ from run to run: neither they nor the execution's own message, which tells them, are shown.
        return self._card(detailed=False, seconds=None)

    def card(self) -> str:
        """All comparisons as HTML, with the histogram and the map of errors, and the time."""
        return self._card(detailed=True, seconds=self.seconds)

    def _card(self, *, detailed: bool, seconds: float | None) -> str:
        return run_html(
            backend=self.backend, passed=self.passed, pcc=self.pcc, max_rel_error=self.max_rel_error,
            message=self.comparison.message, sides=tuple(map(_figures, self.sides)), detailed=detailed, seconds=seconds,
        )  # fmt: skip


@dataclass(frozen=True)
class StepCheck:
    """How the interpreter's result after a step compares with the reference."""

    step: str
    letter: str
    passed: bool
    pcc: float
    max_rel_error: float
    message: str


@dataclass(frozen=True)
class Check:
    """Every step executed. Truthy when all give the reference's result; `first_bad` is the name of the first that
    does not."""

    results: tuple[StepCheck, ...]

    @property
    def ok(self) -> bool:
        return all(result.passed for result in self.results)

    @property
    def first_bad(self) -> str | None:
        return next((result.step for result in self.results if not result.passed), None)

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        lines = [
            f"{'ok ' if r.passed else 'BAD'} {r.letter:<3} {r.step:<32} PCC {r.pcc:.7f}  max relative error "
            f"{r.max_rel_error:.2e}" + ("" if r.passed else f"\n    {r.message}")
            for r in self.results
        ]
        return "\n".join(lines)

    __repr__ = __str__


@dataclass(frozen=True, eq=False)
class Exploration:
    """A kernel with all the steps of its lowering. Steps, plan and code can be read, executed and forked."""

    kernel: TracedKernel
    target: Target
    options: dict[str, Any]
    _steps: tuple[Step, ...]

    @property
    def steps(self) -> Steps:
        return Steps(self._steps)

    @property
    def plan(self) -> Plan:
        """The plan after the last step that ran."""
        return self._steps[-1].after.plan

    @property
    def error(self) -> TTExploreError | None:
        """The error that ended the lowering, None if it went through."""
        return self._steps[-1].error

    def _final(self) -> Program:
        if self.error is not None:
            raise self.error
        return self._steps[-1].after

    @functools.cached_property
    def files(self) -> dict[str, Listing]:
        """Every file that export writes, by name. Raises the lowering's error, if it has one."""
        final = self._final()
        return emit(final.functions, final.plan)

    @property
    def code(self) -> dict[str, Code]:
        """The emitted C++: reader, compute, writer and host. Raises the lowering's error, if it has one."""
        return {role: Code(self.files[name]) for role, name in _FILE_OF.items()}

    def history(self, line: int) -> LineHistory:
        """Where a kernel line went: how many lines come from it after each step, and which of each emitted kernel.

        Raises UsageError for a line that is not the kernel's.
        """
        try:
            return line_history(self.trace, line)
        except ValueError as error:
            raise UsageError(str(error), hint="lines are counted as in the kernel's file or cell") from None

    def find(self, text: str) -> Found:
        """Where a text stands in the program and the plan: the first step that has it, the first that has lost it."""
        return find_text(self.trace, text)

    @property
    def core_map(self) -> Drawing:
        """Which core does how much, on the chip's floorplan. Raises UsageError before B1."""
        if self.plan.partition is None:
            raise UsageError("the work is not partitioned yet", hint=str(self.error or ""))
        return Drawing(core_map_svg(self.target, self.plan.partition))

    @property
    def work_map(self) -> Drawing:
        """Which core does which block of the launch grid, and in which turn. Raises UsageError before B1."""
        if self.plan.partition is None:
            raise UsageError("the work is not partitioned yet", hint=str(self.error or ""))
        return Drawing(work_map_svg(self.plan.partition))

    @property
    def dataflow(self) -> Drawing:
        """The tile dataflow graph: tensors, kernels and the circular buffers between them."""
        return Drawing(cb_graph_svg(self.plan))

    @property
    def l1_map(self) -> Drawing:
        """What the circular buffers take of a core's L1."""
        return Drawing(l1_map_svg(self.plan, self.target))

    def export(self, folder: str | Path) -> list[Path]:
        """Write the kernels, the host program, the plan and the runner. Raises UsageError for an unwritable folder."""
        return write_files(self.files, folder)

    def fork(self, at: str | int | None = None, *, target: str | Target | None = None, **options: Any) -> Exploration:
        """Lower again with other options, those of step `at`, or with another target.

        Raises UsageError for an option that the step does not have.
        """
        if at is not None:
            step = self.steps[at]
            for name in options:
                if name not in step.options:
                    has = ", ".join(step.options) or "no options"
                    raise UsageError(f"{step.name} has no option {name!r}", hint=f"it has {has}")
        else:
            for name in options:
                if name not in known_options():
                    raise UsageError(
                        f"no pass has an option {name!r}", hint=f"options are {', '.join(known_options())}"
                    )
        chip = self.target if target is None else get_target(target)
        return _lowered(self.kernel, chip, self.options | options, self.plan.sizes)

    # Sizes

    def with_sizes(self, **sizes: int) -> Exploration:
        """The same lowering for other values of the kernel's T.dynamic sizes: steps and texts stay, the plan changes.

        Raises UsageError for names that are no sizes and for values below 1, and what the passes raise for sizes that
        do not work.
        """
        known = self.plan.size_values
        wanted = sizes_of(self.kernel.function, {**known, **sizes} if sizes else known)
        if wanted == self.plan.sizes:
            return self
        steps = bind_sizes((step.applied for step in self._steps), self.target, wanted)
        return dataclasses.replace(self, _steps=tuple(Step(index, one) for index, one in enumerate(steps)))

    def _sized(self, inputs: Sequence[Any] | None, sizes: Mapping[str, int] | None) -> Exploration:
        """The exploration for the sizes that are given, or that the inputs have."""
        wanted = dict(sizes or {})
        tensors = [p for p in self.kernel.function.params if self._roles.get(str(p.name)) in ("input", "inout")]
        for position, (array, tensor) in enumerate(zip(inputs or (), tensors, strict=False)):
            for extent, symbolic in zip(np.shape(array), extents_of(tensor), strict=False):
                name = "" if isinstance(symbolic, int) else str(symbolic.name)
                if name and wanted.setdefault(name, extent) != extent:
                    raise UsageError(
                        f"input {position} has {name} = {extent}, and {name} is {wanted[name]} already",
                        hint=f"{tensor.name} has the shape ({', '.join(map(str, extents_of(tensor)))})",
                    )
        return self.with_sizes(**wanted)

    # Running

    @functools.cached_property
    def _roles(self) -> dict[str, str]:
        return dict(tensor_roles(self.kernel.function))

    def inputs(self, seed: int = 0) -> tuple[Array, ...]:
        """Random inputs in the tensors' own dtypes and the sizes of the plan: normally distributed, int32 from -1000 to
        1000, half of uint8 zero."""
        random = np.random.default_rng(seed)
        return tuple(_random(random, shape, dtype) for shape, dtype in self._tensors(("input", "inout")))

    def _tensors(self, roles: tuple[str, ...]) -> list[tuple[tuple[int, ...], str]]:
        return [
            (bound_shape(p, self.plan.size_values), str(p.ty.dtype.dtype))
            for p in self.kernel.function.params
            if self._roles.get(str(p.name)) in roles
        ]

    def _inputs(self, inputs: Sequence[Any] | None, seed: int) -> tuple[Array, ...]:
        """The inputs in storage precision, as float32. Raises UsageError for a wrong number or shape."""
        wanted = self._tensors(("input", "inout"))
        given = self.inputs(seed) if inputs is None else [np.asarray(one) for one in inputs]
        if len(given) != len(wanted):
            raise UsageError(
                f"{len(given)} inputs are given, the kernel takes {len(wanted)}", hint="one for each input tensor"
            )
        made: list[Array] = []
        for position, (array, (shape, dtype)) in enumerate(zip(given, wanted, strict=True)):
            if array.shape != shape:
                raise UsageError(f"input {position} is {array.shape}, the kernel takes {shape}", hint="reshape it")
            made.append(rounded(array, dtype))
        return tuple(made)

    def reference(
        self, inputs: Sequence[Any] | None = None, seed: int = 0, *, sizes: Mapping[str, int] | None = None
    ) -> tuple[Array, ...]:
        """The outputs of the traced kernel, before any pass, in storage dtype."""
        sized = self._sized(inputs, sizes)
        return sized._reference(sized._inputs(inputs, seed))

    def _reference(self, arrays: tuple[Array, ...]) -> tuple[Array, ...]:
        start = self._steps[0].before
        return interpret(start.functions, start.plan, arrays, self._roles).outputs

    def run(
        self, inputs: Sequence[Any] | None = None, backend: str = "emulator", seed: int = 0, *,
        arithmetic: Literal["exact", "fast"] = "exact", device: str | None = None,
        environment: str | Path | None = None, time_limit_seconds: float | None = None,
        progress: Callable[[str], None] | None = None, cancel: threading.Event | None = None,
        sizes: Mapping[str, int] | None = None,
    ) -> Run:  # fmt: skip
        """Run the program and compare it with the reference.

        `inputs` are arrays for the input tensors in parameter order, of any float dtype; without them they are random.
        Where the kernel has T.dynamic sizes, these are what the inputs have, or are given in `sizes`.
        `backend` is ``reference`` (the traced kernel), ``interpreter`` (the final IR), ``emulator`` (the emitted C++)
        or ``ttnn`` (the emitted C++ through the real SDK). The emulator's `arithmetic` is ``exact``, with the chip's
        sums and products bit for bit, or ``fast``, with this machine's, for large sizes.

        Only ``ttnn`` takes a `device`: ``wolfpine`` (the default) or ``ttsim``, simulated chips, or ``card``; the
        `environment` folder of ``ttexplore setup device``; `progress`, which is told what goes on; and `cancel`, which
        ends the run when it is set. Its run is compared with the emulator's as well. The time limit is 60 s, of a
        device 300 s.

        Raises UsageError for wrong inputs and backends, BackendError for a backend that is missing or a program
        that faults, VerifyError for a protocol fault in the interpreter.
        """
        if backend != "ttnn" and not (device is None and environment is None and progress is None and cancel is None):
            raise UsageError(f"the backend {backend} has no device", hint="choose backend='ttnn'")
        sized = self._sized(inputs, sizes)
        if sized is not self:
            return sized.run(
                inputs, backend, seed, arithmetic=arithmetic, device=device, environment=environment,
                time_limit_seconds=time_limit_seconds, progress=progress, cancel=cancel,
            )  # fmt: skip
        arrays = self._inputs(inputs, seed)
        on_device = Ttnn(device or "wolfpine", Path(environment) if environment else None)
        emulator = Emulator(arithmetic=arithmetic)
        execute = self._backend(backend, emulator, on_device, time_limit_seconds, progress, cancel)
        try:
            execution = execute(arrays)
        except KernelFault as fault:
            raise fault.at(self._kernel_line(fault)) from None
        reference = self._reference(arrays)
        low_fidelity = self.plan.low_precision
        first = Side.of(f"{backend} against reference", execution.outputs, reference, low_fidelity=low_fidelity)
        comparison, sides = first.comparison, [first]
        if backend == "ttnn" and emulator.missing() is None:
            emulated = emulator.run(self._emitted, arrays).outputs
            sides.append(Side.of("ttnn against emulator", execution.outputs, emulated))
            sides.append(Side.of("emulator against reference", emulated, reference, low_fidelity=low_fidelity))
        own = [dtype for _, dtype in self._tensors(("output", "inout"))]
        outputs = tuple(o.astype(_own_dtype(dtype)) for o, dtype in zip(execution.outputs, own, strict=True))
        return Run(
            backend, outputs, comparison.passed, comparison.pcc, comparison.max_rel_error, execution.seconds,
            "\n".join(part for part in (execution.message, comparison.message) if part), comparison, execution,
            tuple(sides),
        )  # fmt: skip

    def _kernel_line(self, fault: KernelFault) -> Span | None:
        """The kernel's line behind the line of C++ where a fault happened."""
        if fault.kernel is None or fault.cpp_line is None:
            return None
        origins = self.code[fault.kernel].lines[fault.cpp_line - 1].origins
        return origins[0].span if origins else None

    @property
    def _emitted(self) -> EmittedProgram:
        texts = {role: self.code[role].text for role in ("reader", "compute", "writer")}
        return EmittedProgram(texts, self._final().plan)

    def _backend(
        self, name: str, emulator: Emulator, on_device: Ttnn, time_limit_seconds: float | None,
        progress: Callable[[str], None] | None, cancel: threading.Event | None,
    ) -> Callable[[tuple[Array, ...]], Execution]:  # fmt: skip
        if name not in BACKENDS:
            raise UsageError(f"there is no backend {name!r}", hint=f"use one of {', '.join(BACKENDS)}")
        final = self._final()
        if name == "emulator":
            limit = 60.0 if time_limit_seconds is None else time_limit_seconds
            return lambda arrays: emulator.run(self._emitted, arrays, time_limit_seconds=limit)
        if name == "ttnn":
            limit = 300.0 if time_limit_seconds is None else time_limit_seconds
            return lambda arrays: on_device.run(
                self._emitted, arrays, time_limit_seconds=limit, progress=progress, cancel=cancel
            )
        start = self._steps[0].before if name == "reference" else final

        def interpreted(arrays: tuple[Array, ...]) -> Execution:
            result = interpret(start.functions, start.plan, arrays, self._roles)
            return Execution(result.outputs, result.seconds, None, "")

        return interpreted

    def check(
        self, inputs: Sequence[Any] | None = None, seed: int = 0, *, sizes: Mapping[str, int] | None = None
    ) -> Check:
        """Execute the program after every step and compare it with the reference. Raises the lowering's error.

        A step that leaves all as it is that the interpreter looks at has the result of the step before it.
        """
        self._final()
        sized = self._sized(inputs, sizes)
        if sized is not self:
            return sized.check(inputs, seed)
        arrays = self._inputs(inputs, seed)
        reference = self._reference(arrays)
        results: list[StepCheck] = []
        for step in self._steps:
            if results and runs_alike(step.before, step.after):
                results.append(dataclasses.replace(results[-1], step=step.name, letter=step.letter))
                continue
            try:
                result = interpret(step.after.functions, step.after.plan, arrays, self._roles)
            except TTExploreError as error:
                results.append(StepCheck(step.name, step.letter, False, float("nan"), float("nan"), str(error)))
                continue
            one = compare(result.outputs, reference, low_fidelity=self.plan.low_precision)
            results.append(StepCheck(step.name, step.letter, one.passed, one.pcc, one.max_rel_error, one.message))
        return Check(tuple(results))

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

    def __str__(self) -> str:
        return exploration_text(self.trace, self.plan, self.target)

    def __repr__(self) -> str:
        state = f"failed at {self._steps[-1].letter}" if self.error else f"{len(self._steps)} steps"
        return f"<exploration of {self.kernel.name} for {self.target.name}: {state}>"

    def _repr_html_(self) -> str:
        return exploration_html(self.trace, self.target, self.plan)

    @functools.cached_property
    def data(self) -> dict[str, Any]:
        """What the explorer shows, in JSON form."""
        return explorer_data(self.trace, self.plan, self.target, accepted_values())

    @property
    def backends(self) -> list[dict[str, str]]:
        """The backends by name and what is missing to run on them, empty for nothing; what runs at once comes first."""
        missing = {"emulator": Emulator().missing(), "ttnn": Ttnn("wolfpine").missing()}
        return [{"name": name, "missing": missing.get(name) or ""} for name in reversed(BACKENDS[:3])] + [
            {"name": "ttnn", "missing": missing["ttnn"] or ""}
        ]

    def widget(self) -> ExplorerWidget:
        """The interactive explorer; in a notebook, showing the exploration is enough."""
        from ttexplore.widget import ExplorerWidget

        return ExplorerWidget(self)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """The widget, and for readers without a running kernel the page and the text."""
        bundle = {"text/plain": repr(self), "text/html": self._repr_html_()}
        return {**self.widget().view(), **bundle}


def compare_explorations(first: Exploration, second: Exploration) -> str:
    """Both lowerings side by side, as text: what differs in options, cores, circular buffers and code size."""
    rows: list[tuple[str, str, str]] = [("target", first.target.name, second.target.name)]
    names = sorted({*first.plan.options, *second.plan.options})
    rows += [(name, str(first.plan.options.get(name)), str(second.plan.options.get(name))) for name in names]
    for what, measure in _MEASURES.items():
        rows.append((what, measure(first), measure(second)))
    width = max(len(a) for _, a, _ in rows)
    return "\n".join(f"{'  ' if a == b else '~ '}{what:<18} {a:<{width}}  {b}" for what, a, b in rows)


def _cores(exploration: Exploration) -> str:
    partition = exploration.plan.partition
    if partition is None:
        return "-"
    items = [core.items for core in partition.cores]
    return f"{len(items)} cores, {min(items)} to {max(items)} items"


def _buffers(exploration: Exploration) -> str:
    buffers = exploration.plan.buffers
    return f"{len(buffers)} buffers, {sum(buffer.total_bytes for buffer in buffers):,} B"


def _lines(exploration: Exploration) -> str:
    if exploration.error:
        return "-"
    return ", ".join(f"{role} {len(exploration.code[role].lines)}" for role in ("reader", "compute", "writer"))


_MEASURES: dict[str, Callable[[Exploration], str]] = {"cores": _cores, "L1": _buffers, "lines": _lines}


def _figures(side: Side) -> SideFigures:
    one = side.comparison
    tile = str(one.worst_tile.index) if one.worst_tile and one.equal_share < 1 else "-"
    histogram = tuple(zip(ULP_CLASSES, one.ulp_histogram, strict=True))
    return SideFigures(
        side.name, one.pcc, one.max_rel_error, one.max_ulp, one.equal_share, tile, histogram, _tile_errors(side)
    )


def _tile_errors(side: Side) -> TileErrors | None:
    worst = side.comparison.worst_tile
    if worst is None or not side.worst_slice:
        return None
    leading = ", ".join(map(str, worst.index[:-2]))
    return TileErrors(f"output {worst.output}" + (f", slice [{leading}]" if leading else ""), side.worst_slice)


def _random(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    if dtype == "int32":
        return random.integers(-LARGEST_RANDOM_INTEGER, LARGEST_RANDOM_INTEGER + 1, shape).astype(np.int32)
    if dtype == "uint8":
        return (random.integers(0, 256, shape) * random.integers(0, 2, shape)).astype(np.uint8)
    return random.standard_normal(shape).astype(_own_dtype(dtype))


def _own_dtype(dtype: str) -> Any:
    return np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)


__all__ = ["Check", "Exploration", "Run", "Step", "StepCheck", "Steps", "compare_explorations", "explore"]
