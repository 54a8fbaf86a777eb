"""Trying a kernel with each case: lowering, running, and comparing with float64."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from ttexplore.backends.base import KernelFault
from ttexplore.backends.compare import compare
from ttexplore.control import Control, Progress
from ttexplore.errors import BackendError, Cancelled, TTExploreError, Unsupported, UsageError, name_of
from ttexplore.exploration import Exploration, explore
from ttexplore.given import flag, named, plain, whole, wrong
from ttexplore.ir.arithmetic.sizes import bound_shape
from ttexplore.ir.boundary import errors_of_ours
from ttexplore.ir.build import dtype_of
from ttexplore.language.load import FoundKernel, find_kernel
from ttexplore.language.machine import machine
from ttexplore.language.tracer.kernel import parameters_of
from ttexplore.options import parse_options
from ttexplore.passes.bind_sizes import sizes_of
from ttexplore.passes.launches.tensor_roles import tensor_roles
from ttexplore.session.formula import FORMULA, Formula, checked_formula
from ttexplore.session.inputs import INPUT_KINDS, checked_seed
from ttexplore.session.results import Run
from ttexplore.session.runs import beside_formula
from ttexplore.sweeping.progress import one_line
from ttexplore.sweeping.space import TARGET, space_of
from ttexplore.target import Target, get_target
from ttexplore.validating.cases import Case, Inputs, cases_of, roles_of
from ttexplore.validating.result import CaseFigures, CaseResult, Validation

Array = NDArray[Any]


TARGETS = ("wormhole_n150", "blackhole_p150")
_MOST_RUNS = 100
_WRONG_REFERENCE = "TTX-U026"


def validate(
    kernel: Any, space: Any = None, /, *, target: str | Target | Sequence[str | Target] | None = None,
    options: Mapping[str, Any] | None = None, sizes: Mapping[str, int] | None = None,
    reference: Formula | None = None, inputs: str = "random", seed: int = 0, runs: int = 2, cores: bool = True,
    time_limit_seconds: float | None = None, progress: Progress | Literal["auto"] | None = "auto",
    cancel: threading.Event | None = None, **kernel_arguments: Any,
) -> Validation:  # fmt: skip
    """Run a kernel on the emulator with tiny, odd and large shapes, in each dtype, for each target, and say how right
    its numbers are.

    `kernel`, `options`, `sizes` and `kernel_arguments` are those of :func:`ttexplore.explore`. Which of the arguments
    are sizes and which are dtypes is found by tracing the kernel with others: a size changes the shape of an input, a
    dtype its dtype. `space` gives other cases instead, as for :func:`ttexplore.sweep`. `target` is one or a list, by
    default wormhole_n150 and blackhole_p150.

    Each case is compared element by element with `reference`, a function of the inputs in float64 that returns the
    outputs (one array, or a tuple), or, by default, with the kernel itself in float64, where nothing is rounded but the
    inputs. It passes if the result is that of the kernel within what rounding explains, as for :meth:`Exploration.run`,
    near that of a given `reference`, the same in each of so many `runs`, and the same on one core and on a part of the
    cores, unless `cores` is False. Its time is estimated, and stands beside the roofline of its target. A case that is
    refused stays in the table with its reason.

    `inputs` is a kind of :meth:`Exploration.inputs`, drawn with `seed`. `time_limit_seconds` is that of each run.
    `progress` is a function that takes a line of text; by default, one line in a notebook or at a terminal. Ctrl-C and
    `cancel` end it early: what is done is returned.

    Raises UsageError for wrong arguments, and what the kernel raises with the arguments as they are given.
    """
    auto = isinstance(progress, str) and plain(progress) == "auto"
    control = Control.checked(cancel, time_limit_seconds, None if auto else cast("Progress | None", progress))
    asked = _Request(
        kernel, parse_options(options), checked_formula(reference),
        named("kind of inputs", inputs, INPUT_KINDS), checked_seed(seed), whole("runs", runs, 1, _MOST_RUNS),
        flag("cores", cores), time_limit_seconds,
    )  # fmt: skip
    found_kernel = find_kernel(kernel) if isinstance(kernel, str) else FoundKernel(kernel, "", Path.cwd())
    chips = _targets(TARGETS if target is None else target)
    if space is None:
        dynamic, cases = _automatic(found_kernel, chips, sizes, kernel_arguments)
    else:
        if sizes is not None:
            raise UsageError("U010", "sizes are given beside a space", hint="give one of the two")
        dynamic, cases = frozenset[str](), _listed(space, chips, target, options, kernel_arguments)
    findings: list[CaseResult | None] = [None] * len(cases)
    complete = True
    with one_line() if auto else contextlib.nullcontext(control.progress) as told:
        heard = Control(control.cancel, progress=told)
        try:
            for number, case in enumerate(cases):
                refused = sum(1 for finding in findings if finding is not None and finding.error is not None)
                heard.tell(f"{number} of {len(cases)} cases, {refused} refused: {case.called} on {case.target.name}")
                findings[number] = _found(case, asked, dynamic, cancel)
        except (KeyboardInterrupt, Cancelled):
            complete = False
    name = found_kernel.reference or name_of(kernel)
    names = dict.fromkeys(name for case in cases for name in case.arguments)
    varied = tuple(name for name in names if len({repr(case.arguments.get(name)) for case in cases}) > 1)
    return Validation(name, varied, tuple(cases), tuple(findings), complete, reference is not None)


@dataclass(frozen=True, slots=True)
class _Request:
    """What is the same for all cases."""

    kernel: Any
    options: Mapping[str, Any]
    reference: Formula | None
    inputs: str
    seed: int
    runs: int
    cores: bool
    time_limit_seconds: float | None


def _targets(requested: str | Target | Sequence[str | Target]) -> list[Target]:
    requested = plain(requested)
    several = [requested] if isinstance(requested, str | Target) else requested
    if not isinstance(several, list | tuple) or not several:
        raise wrong("target", requested, f"the name of a target, or a list of them, such as {list(TARGETS)}")
    return [get_target(target) for target in several]


# Cases


def _automatic(
    found_kernel: FoundKernel, chips: Sequence[Target], sizes: Mapping[str, int] | None,
    kernel_arguments: Mapping[str, Any]
) -> tuple[frozenset[str], list[Case]]:  # fmt: skip
    """The names of the T.dynamic sizes, and the cases that suit the kernel."""
    defaults = {
        name: parameter.default
        for name, parameter in parameters_of(found_kernel.kernel).items()
        if parameter.default is not parameter.empty
    }
    with machine(chips[0]), errors_of_ours("reading the kernel"):
        traced = found_kernel.trace(dict(kernel_arguments))
        dynamic = {size.name: size.value for size in sizes_of(traced.function, sizes)}

        def inspect(arguments: Mapping[str, object]) -> Inputs:
            traced_arguments = {name: value for name, value in arguments.items() if name not in dynamic}
            kernel = found_kernel.trace(traced_arguments)
            values = {name: cast(int, arguments[name]) for name in dynamic}
            roles = tensor_roles(kernel.function)
            read = [tensor for tensor in kernel.tensors if roles.get(str(tensor.name)) in ("input", "inout")]
            return tuple((bound_shape(tensor, values), dtype_of(tensor)) for tensor in read)

        arguments = {**defaults, **kernel_arguments, **dynamic}
        cases = cases_of(arguments, roles_of(arguments, inspect), inspect, chips)
    return frozenset(dynamic), cases


def _listed(
    space: Any, chips: Sequence[Target], target: object, options: Mapping[str, Any] | None,
    kernel_arguments: Mapping[str, Any]
) -> list[Case]:  # fmt: skip
    cases: list[Case] = []
    for point in space_of(space, None if target is None else chips[0], options, kernel_arguments).points:
        told = " ".join(f"{name}={value}" for name, value in point.given.items() if name != TARGET)
        cases += [Case(told, point.arguments, chip) for chip in ([point.target] if TARGET in point.given else chips)]
    return cases


# One case


def _found(case: Case, asked: _Request, dynamic: frozenset[str], cancel: threading.Event | None) -> CaseResult:
    """What became of a case. Raises Cancelled, and BackendError if nothing runs on the emulator."""
    kernel_arguments: dict[str, Any] = {name: value for name, value in case.arguments.items() if name not in dynamic}
    sizes = {name: cast(int, value) for name, value in case.arguments.items() if name in dynamic}
    try:
        lowered = explore(
            asked.kernel, target=case.target, options=asked.options, sizes=sizes or None, **kernel_arguments
        )
    except TTExploreError as error:
        return CaseResult(error=error.record())
    if lowered.error is not None:
        return CaseResult(error=lowered.error.record())
    try:
        return CaseResult(_figures(lowered, asked, cancel))
    except TTExploreError as error:
        # The backend itself is missing or broken, or cancelled; the reference would be wrong for other cases as well.
        if error.code == _WRONG_REFERENCE or (isinstance(error, BackendError) and not isinstance(error, KernelFault)):
            raise
        return CaseResult(error=error.record(), lowered=True)


def _figures(lowered: Exploration, asked: _Request, cancel: threading.Event | None) -> CaseFigures:
    arrays = lowered.inputs(asked.seed, asked.inputs)
    run = functools.partial(_ran, arrays=arrays, asked=asked, cancel=cancel)
    first = run(lowered, compared=True)
    assert first.execution is not None, "a run gives one"
    if asked.reference is None:
        near = compare(first.outputs, lowered.reference(list(arrays), in_float64=True))
    else:
        control = Control.checked(cancel, asked.time_limit_seconds, None)
        side = beside_formula(lowered, first.execution.outputs, asked.reference, arrays, FORMULA, control)
        near = side.comparison
    again = [run(lowered).outputs for _ in range(1, asked.runs)]
    on_fewer = [(count, run(variant).outputs) for count, variant in _on_fewer_cores(lowered)] if asked.cores else []
    wrong_runs = sum(not _alike(first.outputs, outputs) for outputs in again)
    wrong_cores = tuple(count for count, outputs in on_fewer if not _alike(first.outputs, outputs))
    right = near.passed or asked.reference is None
    passes = [first.comparison.explained]
    passes += (
        [f"beside the given reference, {near.explained}"] if asked.reference is not None and near.explained else []
    )
    messages = [first.message] if not first.passed else []
    messages += [f"far from the given reference: {near.message}"] if not right else []
    messages += [f"{wrong_runs} of {asked.runs} runs gave other numbers"] if wrong_runs else []
    messages += [f"on {count} cores the numbers are others" for count in wrong_cores]
    shapes = tuple(array.shape for array in arrays)
    return CaseFigures(
        not messages, near.max_ulp, near.max_rel_error, near.pcc, asked.runs,
        (_used(lowered), *(count for count, _ in on_fewer)), shapes, *_times(lowered), "; ".join(messages),
        "" if messages else "; ".join(filter(None, passes)),
    )  # fmt: skip


def _times(lowered: Exploration) -> tuple[float | None, float | None]:
    """The predicted time and that of the roofline, in microseconds; None where elements of tensors decide them."""
    try:
        estimate = lowered.estimate()
    except (UsageError, Unsupported):
        return None, None
    return estimate.us, estimate.roofline_us


def _ran(
    lowered: Exploration, arrays: Sequence[Array], asked: _Request, cancel: threading.Event | None, *,
    compared: bool = False,
) -> Run:  # fmt: skip
    limit = asked.time_limit_seconds
    return lowered.run(list(arrays), time_limit_seconds=limit, cancel=cancel, compared=compared)


def _on_fewer_cores(lowered: Exploration) -> Iterator[tuple[int, Exploration]]:
    """The kernel on one core, and on a part of the cores that it uses, with the numbers of cores with work. Schedules
    that name their cores, or need all of them, have no such."""
    counts = {_used(lowered)}
    for cores in ((1, 1), (2, 1), (3, 2)):
        variant = lowered.fork(cores=cores)
        if variant.error is None and (used := _used(variant)) not in counts:
            counts.add(used)
            yield used, variant


def _used(lowered: Exploration) -> int:
    partitions = [launch.plan.partition for launch in lowered.launches]
    return max(sum(1 for core in partition.cores if core.items) for partition in partitions if partition is not None)


def _alike(first: Sequence[Array], second: Sequence[Array]) -> bool:
    """Whether all bits are the same. NaN have a payload that no chip keeps."""
    return all(
        np.array_equal(np.signbit(array), np.signbit(counterpart))
        and np.array_equal(array, counterpart, equal_nan=True)
        if array.dtype.kind not in "iub"
        else np.array_equal(array, counterpart)
        for array, counterpart in zip(first, second, strict=True)
    )
