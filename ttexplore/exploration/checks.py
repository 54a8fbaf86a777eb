"""Executing every step, and comparing it with the reference."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from ttexplore.backends.compare import RoundingErrors, compare
from ttexplore.control import Control, Progress
from ttexplore.errors import BackendError, KernelError, TTExploreError
from ttexplore.exploration.lowered import Step
from ttexplore.exploration.references import reference_of, rounding_of
from ttexplore.given import flag
from ttexplore.ir.interpreter import runs_alike
from ttexplore.porting.checks import PortingChecks
from ttexplore.porting.checks import porting_checks as checked_facts
from ttexplore.session.formula import FORMULA, Formula, by_formula, checked_formula, compared_with_formula
from ttexplore.session.inputs import Inputs
from ttexplore.session.lowering import chained, precisions
from ttexplore.session.results import KERNEL_ITSELF, Check, StepCheck

if TYPE_CHECKING:
    from ttexplore.exploration import Exploration

Array = NDArray[Any]


def check(
    exploration: Exploration, inputs: Inputs = None, seed: int = 0, *, sizes: Mapping[str, int] | None = None,
    time_limit_seconds: float | None = None, progress: Progress | None = None,
    cancel: threading.Event | None = None, reference: Formula | None = None,
) -> Check:  # fmt: skip
    """Execute the program after every step and compare it with the reference. `inputs`, `progress` and `cancel` are
    those of :meth:`run`; `time_limit_seconds`, by default none, limits the check as a whole. Raises the lowering's
    error, KernelError for inputs with which the kernel leaves a tensor, BackendError at the time limit, and
    Cancelled.

    `reference` is a formula of your own, as for :meth:`run`: the kernel itself is compared with it, before all steps.

    A step that changes nothing that the interpreter depends on is not executed: it has the result of the step
    before it.
    """
    if exploration.error is not None:
        raise exploration.error
    control = Control.checked(cancel, time_limit_seconds, progress).of("the check", start=time.perf_counter())
    formula = checked_formula(reference)
    sized, results = exploration._sized(inputs, sizes), list[StepCheck]()
    arrays = sized._inputs(inputs, seed)
    if formula is not None:
        results.append(_checked_kernel(sized, formula, arrays, control))

    def run(launch: Exploration, arrays: tuple[Array, ...]) -> tuple[Array, ...]:
        if sized._is_several:
            control.tell(f"checking {launch.kernel.name}")
        reference, checked = _checked(launch, arrays, control)
        name = f"{launch.kernel.name} " if sized._is_several else ""
        results.extend(dataclasses.replace(result, step=f"{name}{result.step}") for result in checked)
        return reference

    chained(sized, run, arrays)
    return Check(tuple(results))


def _checked_kernel(
    exploration: Exploration, formula: Formula, arrays: tuple[Array, ...], control: Control
) -> StepCheck:
    """How the kernel as it is written compares with the user's formula."""
    control.tell(f"comparing the kernel with {FORMULA}")
    outputs = reference_of(exploration, arrays, control)
    expected = by_formula(formula, arrays, [output.shape for output in outputs])
    rounding, names = rounding_of(exploration, arrays, control), exploration._output_names
    beside = compared_with_formula(KERNEL_ITSELF, outputs, expected, precisions(exploration), rounding, names)
    comparison = beside.comparison
    return StepCheck(KERNEL_ITSELF, "", comparison.passed, comparison.pcc, comparison.max_rel_error, comparison.message)


def _checked(
    exploration: Exploration, arrays: tuple[Array, ...], control: Control
) -> tuple[tuple[Array, ...], list[StepCheck]]:
    """The reference of a launch, and how its steps compare with it."""
    control.tell("computing the reference")
    of_reference = control.of(f"{control.what}, still at the reference,")
    reference = reference_of(exploration, arrays, of_reference)
    rounding = rounding_of(exploration, arrays, of_reference)
    last: StepCheck | None = None
    results: list[StepCheck] = []
    for number, step in enumerate(exploration._lowered.steps, 1):
        parts: list[StepCheck] = []
        for leaf in step.leaves:
            if last is not None and runs_alike(leaf.before, leaf.after):
                last = dataclasses.replace(last, step=leaf.name, letter=leaf.letter, executed=False)
            else:
                last = _checked_step(exploration, leaf, arrays, control, (reference, rounding), first=not results)
            parts.append(last)
        results.append(StepCheck.of_parts(step.name, step.letter, parts) if step.parts else parts[0])
        control.tell(f"{number} of {len(exploration._lowered.steps)}: {results[-1].headline}")
    return reference, results


def _checked_step(
    exploration: Exploration, step: Step, arrays: tuple[Array, ...], control: Control,
    expected: tuple[tuple[Array, ...], RoundingErrors], *, first: bool,
) -> StepCheck:  # fmt: skip
    name = f"{step.letter} {step.name}"
    control.tell(f"executing {name}")
    try:
        outputs = exploration._lowered.run(step.after, arrays, control.of(f"{control.what}, at {name},")).outputs
        comparison = compare(outputs, expected[0], exploration.plan.precisions, expected[1], exploration._output_names)
    except BackendError:  # the time limit, or Cancelled
        raise
    except TTExploreError as error:
        # The kernel does not run with these inputs, at no step.
        if first and isinstance(error, KernelError):
            raise
        return StepCheck(step.name, step.letter, False, float("nan"), float("nan"), str(error))
    return StepCheck(
        step.name, step.letter, comparison.passed, comparison.pcc, comparison.max_rel_error, comparison.message
    )


def porting_checks(
    exploration: Exploration, *, run: bool = True, time_limit_seconds: float | None = None,
    progress: Progress | None = None, cancel: threading.Event | None = None,
) -> PortingChecks:  # fmt: skip
    """Go through the porting checklist: tile shapes and dtypes, layout, copies, accumulators, epilogues, numerics,
    launch, and performance. Each check passes, fails or does not apply, with a number, the kernel's line, and what
    to do. It fails for what is slow or inexact, not only for what is wrong.

    Unless `run` is False, every step is executed, as by :meth:`check`, whose arguments and errors the others are.
    Raises the lowering's error.
    """
    run = flag("run", run)
    if exploration.error is not None:
        raise exploration.error
    checked: str | None = None
    if run:
        every = check(exploration, time_limit_seconds=time_limit_seconds, progress=progress, cancel=cancel)
        checked = next((f"{result.headline}: {result.message}" for result in every.results if not result.passed), "")
    return checked_facts([lowering.porting_facts(checked) for lowering in exploration._lowerings])
