"""One point of a space: lowered, verified and estimated, as plain data that travels between processes."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ttexplore.errors import BackendError, TTExploreError, from_record
from ttexplore.record import ErrorRecord
from ttexplore.sweeping.cost import LoweringFigures, figures
from ttexplore.sweeping.order import trace_of
from ttexplore.sweeping.shipping import Shipped, received, ttexplore_digest
from ttexplore.sweeping.space import Point

if TYPE_CHECKING:
    from ttexplore.exploration import Exploration

# So many traces are held at a time, each with its latest lowerings.
_TRACES, _LOWERINGS = 8, 4


@dataclass(frozen=True, slots=True)
class Proof:
    """What a run on the emulator has shown: whether its result is that of the kernel, how close it is, and the words of
    the run. `passed` is None if it could not run for want of a compiler, time or memory; `message` says why."""

    passed: bool | None
    pcc: float | None
    message: str


@dataclass(frozen=True, slots=True)
class PointResult:
    """What became of a point: its figures, or the error that refused it. Of the best points also the proof, and what
    bounds the time (of several launches, that of the longest)."""

    figures: LoweringFigures | None = None
    error: ErrorRecord | None = None
    proof: Proof | None = None
    bound: str | None = None


@dataclass(frozen=True, eq=False)
class Task:
    """Points of one kernel that a worker evaluates, one after another. `kernel` is what was shipped, or the loaded
    kernel itself where the worker is this process. `lowerings` are those that it has made, by trace: points that
    differ in their options only share the trace, and passes that look at none of these."""

    kernel: Any
    points: tuple[Point, ...]
    digest: str
    lowerings: dict[str, list[Exploration]] = field(default_factory=dict[str, "list[Exploration]"])


@dataclass(frozen=True, eq=False)
class Answered:
    """The outcomes of a task, in its order; or the error that stopped all of it."""

    outcomes: tuple[PointResult, ...] = ()
    error: ErrorRecord | None = None

    def checked(self) -> tuple[PointResult, ...]:
        """The outcomes. Raises the error, if there is one."""
        if self.error is not None:
            raise from_record(self.error)
        return self.outcomes


def evaluate(task: Task) -> Answered:
    """Lower, verify and estimate each point of a task. Nothing is raised: an error is part of the answer."""
    try:
        if task.digest != ttexplore_digest():
            raise BackendError(
                "B033",
                "a worker runs another version of ttexplore, Python, TVM, NumPy or ml_dtypes",
                hint="install the versions of this process where the workers run, and start them again",
            )
        kernel = received(task.kernel) if isinstance(task.kernel, Shipped) else task.kernel
        spelled = task.kernel.spelled if isinstance(task.kernel, Shipped) else ()
        return Answered(tuple(_spelled(_outcome(kernel, point, task.lowerings), spelled) for point in task.points))
    except TTExploreError as error:
        return Answered(error=error.record())


def _outcome(kernel: Any, point: Point, lowerings: dict[str, list[Exploration]]) -> PointResult:
    try:
        return PointResult(figures=_lowered(kernel, point, lowerings))
    except TTExploreError as error:
        return PointResult(error=error.record())


def _lowered(kernel: Any, point: Point, lowerings: dict[str, list[Exploration]]) -> LoweringFigures:
    from ttexplore.exploration import explore
    from ttexplore.ir.boundary import errors_of_ours
    from ttexplore.language.machine import machine

    key = trace_of(point)
    if key in lowerings:
        lowered = lowerings[key][-1].with_options(point.options, lowerings[key][:-1])
    else:
        if len(lowerings) == _TRACES:
            del lowerings[next(iter(lowerings))]
        with machine(point.target), errors_of_ours("reading the kernel"):
            traced = kernel.trace(dict(point.arguments))
        lowered = explore(traced, target=point.target, options=point.options)
    lowerings[key] = [*lowerings.get(key, ())[1 - _LOWERINGS :], lowered]
    if lowered.error is not None:
        raise lowered.error
    return figures(lowered)


def _spelled(outcome: PointResult, spelled: tuple[tuple[str, str], ...]) -> PointResult:
    """The outcome with the names of files that the user knows."""
    error = outcome.error
    if error is None or not spelled:
        return outcome
    message, hint, span = error.message, error.hint, error.span
    for file, shown in spelled:
        message, hint = message.replace(file, shown), hint.replace(file, shown)
        if span is not None and span.file == file:
            span = dataclasses.replace(span, file=shown)
    return dataclasses.replace(outcome, error=dataclasses.replace(error, message=message, hint=hint, span=span))
