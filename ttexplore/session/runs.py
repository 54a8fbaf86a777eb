"""Running a program on a backend, and comparing it with the reference."""

from __future__ import annotations

import dataclasses
import difflib
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from ttexplore.backends.base import (
    BlockedKernel,
    Deadlock,
    Execution,
    KernelFault,
    Program,
    card_time,
    simulation_time,
)
from ttexplore.backends.compare import Comparison, NamedComparison
from ttexplore.backends.registry import BACKENDS, DEFAULT_BACKEND, Arithmetic
from ttexplore.backends.remedy import remedy
from ttexplore.control import FREE, Control, Progress
from ttexplore.errors import memory_for, unknown
from ttexplore.given import text as text_of
from ttexplore.plan import KERNEL_ROLES, Precision
from ttexplore.record import Line, Listing, Span, lines_of
from ttexplore.session.formula import FORMULA, Formula, by_formula, compared_with_formula
from ttexplore.session.inputs import Inputs
from ttexplore.session.lowering import chained, in_own_dtypes, precisions, reference_of, rounding_of, sized
from ttexplore.session.request import RunRequest
from ttexplore.session.results import Run
from ttexplore.views.figures.deadlock import deadlock_svg

if TYPE_CHECKING:
    from ttexplore.session.explored import Explored


def kernel_listings(explored: Explored, code: Mapping[str, str]) -> dict[str, Listing]:
    """The C++ of the three kernels, with texts in `code` replacing emitted ones; unchanged lines keep their origin.
    Empty if the lowering failed. Raises UsageError for other names."""
    for role in code:
        if role not in KERNEL_ROLES:
            raise unknown("kernel", role, KERNEL_ROLES)
        text_of(f"the {role} kernel", code[role], "a string of C++")
    if explored.error is not None:
        return {}
    return {role: edited_listing(explored.files[f"{role}.cpp"], code.get(role)) for role in KERNEL_ROLES}


def emitted(explored: Explored, listings: Mapping[str, Listing]) -> Program:
    return Program({role: listing.text for role, listing in listings.items()}, explored.plan)


def kernel_line(fault: KernelFault | BlockedKernel, listings: Mapping[str, Listing]) -> Span | None:
    """The kernel line from which the C++ line of a fault or of a waiting kernel comes."""
    if fault.kernel is None or fault.cpp_line is None or fault.kernel not in listings:
        return None
    # A compiler may name the line after the last one, and takes what a text says of its lines for granted.
    lines = listings[fault.kernel].lines[fault.cpp_line - 1 : fault.cpp_line]
    return lines[0].origins[0].span if lines and lines[0].origins else None


def edited_listing(listing: Listing, text: str | None) -> Listing:
    """`listing` with another text. Unchanged lines in the same order keep their origins; lines changed in place have
    inferred origins."""
    if text is None or text == listing.text:
        return listing
    new = lines_of(text)
    matcher = difflib.SequenceMatcher(None, [line.text for line in listing.lines], new, autojunk=False)
    lines = [Line(line) for line in new]
    for tag, first, last, at, end in matcher.get_opcodes():
        if tag == "equal":
            lines[at:end] = listing.lines[first:last]
        elif tag == "replace" and last - first == end - at:
            for position, line in enumerate(listing.lines[first:last], at):
                origins = tuple(dataclasses.replace(origin, kind="inferred") for origin in line.origins)
                lines[position] = Line(new[position], origins)
    return dataclasses.replace(listing, lines=tuple(lines))


Array = NDArray[Any]
_NO_REFERENCE = "there is no reference for these inputs, so the outputs were not compared"


@memory_for("running the program")
def run(
    explored: Explored, inputs: Inputs = None, backend: str = DEFAULT_BACKEND, seed: int = 0, *,
    arithmetic: Arithmetic = "exact", device: str | None = None,
    environment: str | Path | None = None, time_limit_seconds: float | None = None,
    progress: Progress | None = None, cancel: threading.Event | None = None,
    sizes: Mapping[str, int] | None = None, code: Mapping[str, str] | None = None, compared: bool = True,
    reference: Formula | None = None,
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

    `reference` is a formula of your own, such as ``lambda a, b: a @ b``: a function of the inputs, in float64, that
    returns the outputs (one array, or a tuple). The run passes if it is near the kernel's reference and near that of
    the formula: the kernel's alone has the mistakes that the kernel has.

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
        compared=compared, reference=reference,
    )  # fmt: skip
    return ran(sized(explored, request.inputs, request.sizes), request)


def ran(explored: Explored, request: RunRequest) -> Run:
    """Run the request with the sizes of this exploration. Of several launches, raises the lowering's error, and
    UsageError for texts of kernels, which each has."""
    if explored._is_several:
        if explored.error is not None:
            raise explored.error
        if request.code:
            raise explored._of_each("code")
    arrays = explored._inputs(request.inputs, request.seed)
    result = (_ran_in_order if explored._is_several else _ran_alone)(explored, request, arrays)
    return result if request.formula is None else _beside_formula(explored, result, request, request.formula, arrays)


def beside_formula(
    explored: Explored,
    outputs: tuple[Array, ...],
    formula: Formula,
    arrays: tuple[Array, ...],
    name: str,
    control: Control = FREE,
) -> NamedComparison:
    """How the outputs of a run compare with those of the user's formula for the same inputs."""
    expected = by_formula(formula, arrays, [output.shape for output in outputs])
    rounding = rounding_of(explored, arrays, control.of("the reference"))
    return compared_with_formula(name, outputs, expected, precisions(explored), rounding, explored._output_names)


def _beside_formula(
    explored: Explored, run: Run, request: RunRequest, formula: Formula, arrays: tuple[Array, ...]
) -> Run:
    """The run, compared with the user's formula as well."""
    assert run.execution is not None, "a run gives one"
    name = f"{run.backend} against {FORMULA}"
    side = beside_formula(explored, run.execution.outputs, formula, arrays, name, request.control)
    message = f"{run.message}\n{FORMULA}: {side.comparison.message}"
    passed = run.passed is not False and side.comparison.passed
    decisive = run.comparison if run.passed is passed else side.comparison
    return Run.of(run.backend, run.outputs, run.execution, [*run.sides, side], decisive, message, passed=passed)


def _ran_alone(explored: Explored, request: RunRequest, arrays: tuple[Array, ...]) -> Run:
    """Run one launch, and compare it with its reference for the inputs that it gets."""
    control, backend = request.control, request.backend
    control.tell(f"running on {backend.name}")
    listings = kernel_listings(explored, request.code)
    execution = _execution(explored, request, listings, arrays)
    if not request.compared:
        return Run.alone(backend.name, in_own_dtypes(explored, execution.outputs), execution)
    control.tell("computing the reference")
    of_reference = control.of("the reference")
    reference, rounding = reference_of(explored, arrays, of_reference), rounding_of(explored, arrays, of_reference)
    sides: list[NamedComparison] = []

    def compare(
        name: str, outputs: tuple[Array, ...], expected: tuple[Array, ...], exactness: Sequence[Precision]
    ) -> None:
        sides.append(NamedComparison.of(name, outputs, expected, exactness, rounding, explored._output_names))

    if reference is not None:
        control.tell("comparing with the reference")
        compare(f"{backend.name} against reference", execution.outputs, reference, explored.plan.precisions)
    checker = BACKENDS[backend.compared_with] if backend.compared_with else None
    if checker is not None and checker.make is not None and checker.missing() is None:
        control.tell(f"running on {checker.name}, to compare")
        second = checker.make(request.settings).run(
            emitted(explored, listings), arrays, time_limit_seconds=checker.time_limit_seconds, cancel=control.cancel
        )
        compare(f"{backend.name} against {checker.name}", execution.outputs, second.outputs, ())
        if reference is not None:
            compare(f"{checker.name} against reference", second.outputs, reference, explored.plan.precisions)
    comparison = sides[0].comparison if reference is not None else Comparison.of_nothing(_NO_REFERENCE)
    message = "\n".join(text for text in (execution.message, comparison.message) if text)
    return Run.of(
        backend.name, in_own_dtypes(explored, execution.outputs), execution, sides, comparison, message,
        passed=None if reference is None else comparison.passed,
    )  # fmt: skip


def _ran_in_order(explored: Explored, request: RunRequest, arrays: tuple[Array, ...]) -> Run:
    """Run the launches. Each is compared with its reference for the inputs that it gets; the outputs, with the
    reference of the whole."""
    runs: list[Run] = []

    def run(launch: Explored, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        request.control.tell(f"launch {len(runs) + 1} of {len(explored.launches)}: {launch.kernel.name}")
        runs.append(_ran_alone(launch, request, inputs))
        execution = runs[-1].execution
        assert execution is not None, "a run gives one"
        return execution.outputs

    outputs = chained(explored, run, arrays)
    on_card = all(run.execution is not None and run.execution.on_card for run in runs)
    seconds = sum(run.seconds for run in runs)
    name, typed_outputs = request.backend.name, in_own_dtypes(explored, outputs)
    execution = Execution(outputs, seconds, None, "", on_card=on_card)
    if not request.compared:
        return Run.alone(name, typed_outputs, execution)
    request.control.tell("computing the reference of the whole")
    of_reference = request.control.of("the reference")
    reference, rounding = reference_of(explored, arrays, of_reference), rounding_of(explored, arrays, of_reference)
    assert reference is not None, "the kernel is there"
    called = explored._output_names
    overall = NamedComparison.of(
        f"{name} against reference", outputs, reference, precisions(explored), rounding, called
    )
    named = [(launch.kernel.name, run) for launch, run in zip(explored.launches, runs, strict=True)]
    sides = [dataclasses.replace(side, name=f"{launch}: {side.name}") for launch, run in named for side in run.sides]
    failed = [f"{launch}: {run.message}" for launch, run in named if not run.passed]
    took = f"{len(runs)} launches, {card_time(seconds) if on_card else simulation_time(seconds)}"
    message = "\n".join([took, overall.comparison.message, *failed])
    return Run.of(
        name, typed_outputs, execution, [overall, *sides], overall.comparison, message,
        passed=overall.comparison.passed and not failed,
    )  # fmt: skip


def _execution(
    explored: Explored, request: RunRequest, listings: Mapping[str, Listing], arrays: tuple[Array, ...]
) -> Execution:  # fmt: skip
    """Run the program on the backend. Faults and deadlocks are raised with their kernel lines."""
    if explored.error is not None:
        raise explored.error
    if request.runner is None:
        lowered = explored._with_kernel(f"the backend {request.backend.name}")._lowered
        return lowered.interpreted(request.backend, arrays, request.on_backend)
    try:
        return request.runner.run(
            emitted(explored, listings), arrays, time_limit_seconds=request.time_limit_seconds,
            cancel=request.control.cancel,
        )  # fmt: skip
    except Deadlock as deadlock:
        raise _explained(explored, deadlock, listings, arrays, request.control) from None
    except KernelFault as fault:
        raise fault.at(kernel_line(fault, listings)) from None


def _explained(
    explored: Explored, deadlock: Deadlock, listings: Mapping[str, Listing], arrays: tuple[Array, ...], control: Control
) -> Deadlock:  # fmt: skip
    """The deadlock with its kernel line, its drawing, and a change that resolves it, if one was found."""
    plan = explored.plan
    lines = {wait.kernel: kernel_line(wait, listings) for wait in deadlock.waits}
    control.tell("a deadlock: looking for the smallest change that resolves it")
    fix = remedy(deadlock, emitted(explored, listings), arrays, control.cancel)
    drawn = deadlock_svg(deadlock.waits, plan, listings, lines)
    explained = Deadlock(
        deadlock.message, hint=f"the program ends when {fix}" if fix else deadlock.hint, core=deadlock.core,
        waits=deadlock.waits, stuck=deadlock.stuck, event_counts=deadlock.event_counts, events=deadlock.events,
        svg=drawn, fix=fix,
    )  # fmt: skip
    explained.span = kernel_line(deadlock, listings)
    return explained
