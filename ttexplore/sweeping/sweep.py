"""The search itself: which points are known, where the others are evaluated, and which are proven."""

from __future__ import annotations

import contextlib
import difflib
import functools
import math
import os
import pickle
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from ttexplore.backends.base import TIME_IS_OVER, KernelFault
from ttexplore.control import Control, Progress
from ttexplore.errors import BackendError, Cancelled, TTExploreError, UsageError, name_of, refuse_cancelled
from ttexplore.given import flag, plain, readable, whole, wrong
from ttexplore.given import text as text_of
from ttexplore.options import OPTIONS
from ttexplore.sweeping.evaluate import Answered, PointResult, Proof, Task, evaluate
from ttexplore.sweeping.kept import SweepFile, keys_of
from ttexplore.sweeping.order import parts_of
from ttexplore.sweeping.progress import one_line
from ttexplore.sweeping.result import COLUMNS, SHOWN_ROWS, Sweep
from ttexplore.sweeping.shipping import Shipped, is_loadable, shipped_file, shipped_object, ttexplore_digest
from ttexplore.sweeping.space import TARGET, Space, space_of
from ttexplore.sweeping.workers import Cluster, Here, LostTask, Processes, Workers, connected
from ttexplore.target import Target

if TYPE_CHECKING:
    from ttexplore.exploration import Exploration

# A task takes about half a second; a process starts in one or two.
_TASK_POINTS = 16
_POINTS_WORTH_A_PROCESS = 40
# Each is a process with all of TVM in it.
_MOST_WORKERS = 256
# Errors that say that the sweep, not a point of it, was called in a wrong way.
_OF_THE_CALL = frozenset({"TTX-U002", "TTX-U003", "TTX-U004", "TTX-R011"})
_TELL_SECONDS = 0.5
_BAR = 24


def sweep(
    kernel: Any, space: Any, /, *, target: str | Target | None = None, options: Mapping[str, Any] | None = None,
    prove: int = 3, workers: int | None = None, client: Any = None, scheduler: str | None = None, fresh: bool = False,
    progress: Progress | Literal["auto"] | None = "auto", cancel: threading.Event | None = None,
    **kernel_arguments: Any,
) -> Sweep:  # fmt: skip
    """Lower a kernel with each schedule of a space, and find the best.

    `kernel` is a factory or an eager kernel, or ``"file.py::name"``. `space` gives the values of each name, as in
    ``{"block_M": [32, 64], "policy": ["contiguous", "strided"], "target": ["wormhole_n150", "blackhole_p150"]}``:
    names of arguments of the kernel, of options of the passes, and ``target``. Each combination is a point; a list of
    such dictionaries is one space after another. What does not vary is given by `target`, `options` and
    `kernel_arguments`, as for :func:`ttexplore.explore`, and has the same defaults.

    Each point is lowered and verified, and its time is estimated (:meth:`Exploration.estimate`). A point that is
    refused stays in the table with its reason. The best `prove` points run on the emulator, and one with a wrong
    result is never the best. What bounds the time is found for the best ten.

    `workers` processes of this machine share the work, by default as many as it has processors; `client`, a
    ``distributed.Client`` of Dask, or `scheduler`, the address of one, let a cluster do it. The table is the same for
    all of them. What was found is kept in the cache folder: the same point of the same sources, kernel and ttexplore,
    is not lowered again, unless `fresh`. Files that a kernel reads while it is traced are not among the sources.

    `progress` is a function that takes a line of text. By default, progress is one line that is written over, in a
    notebook or at a terminal, and nothing elsewhere; None shows none. Ctrl-C, the interruption of a cell, and `cancel`
    end the sweep early: what is done is returned. Raises UsageError for a wrong space and for a kernel that does not
    take its arguments, and BackendError if workers cannot be reached or the cache folder cannot be written.
    """
    auto = isinstance(progress, str) and plain(progress) == "auto"
    control = Control.checked(cancel, None, None if auto else cast("Progress | None", progress))
    points = space_of(space, target, options, kernel_arguments)
    _refuse_columns(points.names)
    whole("prove", prove, 0)
    flag("fresh", fresh)
    if sum(executor is not None for executor in (workers, client, scheduler)) > 1:
        raise UsageError("U010", "workers, client and scheduler are several answers", hint="give one of them")
    if client is not None and not readable("client", client, lambda: hasattr(client, "scheduler_info")):
        raise wrong("client", client, "a distributed.Client; use scheduler= for the address of a scheduler")
    count = whole("workers", workers, 1, _MOST_WORKERS) if workers is not None else None
    address = None if scheduler is None else text_of("scheduler", scheduler, "the address of one, as a string")
    shipped = shipped_file(kernel) if isinstance(kernel, str) else shipped_object(kernel)
    store = SweepFile.of(shipped.digest if shipped is not None else "")
    keys = keys_of(points.points)
    stored = [None] * len(points.points) if fresh else store.found(keys)
    with one_line() if auto else contextlib.nullcontext(control.progress) as told:
        control = replace(control, progress=told)
        # What is kept saves time and shows nowhere: a proof counts only where this sweep would have run the point.
        state = _SweepState(
            points,
            keys,
            store,
            control,
            [outcome and replace(outcome, proof=None, bound=None) for outcome in stored],
            stored,
        )
        complete = True
        try:
            pending = state.pending
            if pending:
                found_kernel = _checked(kernel, points)
                with _chosen(count, client, address, shipped, points, len(pending)) as used:
                    state.evaluate(
                        shipped if shipped is not None and not isinstance(used, Here) else found_kernel, used
                    )
            lowered = functools.cache(state.result(kernel, complete=True).explore)
            _prove(state, kernel, prove, lowered)
            _find_bounds(state, kernel, lowered)
        except (KeyboardInterrupt, Cancelled):
            complete = False
    return state.result(kernel, complete)


def _refuse_columns(names: Sequence[str]) -> None:
    for name in names:
        if name in COLUMNS:
            raise UsageError(
                "U023",
                f"{name} is a name of the space and a column of the table",
                hint="rename the argument, or give it outside of the space",
            )


def _checked(kernel: Any, space: Space) -> Any:
    """The kernel, loaded here. Raises UsageError if it is no kernel or does not take the arguments."""
    from ttexplore.ir.boundary import errors_of_ours
    from ttexplore.language.load import FoundKernel, find_kernel
    from ttexplore.language.machine import machine
    from ttexplore.language.tracer.kernel import parameters_of

    with errors_of_ours("reading the kernel"):
        found_kernel = find_kernel(kernel) if isinstance(kernel, str) else FoundKernel(kernel, "", Path.cwd())
    for name in space.names:
        if name in OPTIONS and name in parameters_of(found_kernel.kernel):
            raise UsageError(
                "U023",
                f"{name} is an option of the passes and an argument of the kernel",
                hint="rename the argument, or give it outside of the space",
            )
    # Points with the same names are called in the same way: the first of them shows whether that is right.
    for point in {frozenset(candidate.arguments): candidate for candidate in reversed(space.points)}.values():
        try:
            with machine(point.target), errors_of_ours("reading the kernel"):
                found_kernel.trace(dict(point.arguments))
        except TTExploreError as error:
            if error.code in _OF_THE_CALL:
                raise _meant(error, space) from None
    return found_kernel


def _meant(error: TTExploreError, space: Space) -> TTExploreError:
    """The error, for a name that the kernel does not take: that of an option may have been meant."""
    for name in space.names:
        close = difflib.get_close_matches(name, [*OPTIONS, TARGET], 1)
        if close and error.message.endswith(f"takes no argument {name}"):
            return UsageError("U003", error.message, hint=f"did you mean the option {close[0]}?")
    return error


@contextlib.contextmanager
def _chosen(
    count: int | None, client: Any, address: str | None, shipped: Shipped | None, points: Space, pending: int
) -> Generator[Workers]:  # fmt: skip
    """Where the pending points are evaluated: what was asked for or, if a few are not worth a process, here."""
    if address is not None:
        with connected(address) as cluster:
            _check_shippable(shipped, points)
            yield cluster
    elif client is not None:
        _check_shippable(shipped, points)
        yield Cluster(client)
    elif shipped is None or not _can_travel(points):
        yield Here()
    else:
        worker_count = min(os.cpu_count() or 1, pending // _POINTS_WORTH_A_PROCESS) if count is None else count
        yield Processes(worker_count) if worker_count > 1 else Here()


def _check_shippable(shipped: Shipped | None, points: Space) -> None:
    if shipped is None or not _can_travel(points):
        raise UsageError(
            "U023",
            "the kernel or its arguments cannot be sent to a cluster",
            hint="give a factory whose arguments are numbers and texts, or name the kernel as file.py::name",
        )


def _can_travel(points: Space) -> bool:
    try:
        return is_loadable(pickle.dumps(points.points))
    except Exception:  # The values are the user's, and may raise anything.
        return False


@dataclass(eq=False)
class _SweepState:
    """What is known of each point so far."""

    space: Space
    keys: Sequence[str | None]
    kept: SweepFile
    control: Control
    outcomes: list[PointResult | None]
    # What was kept of each before.
    known: Sequence[PointResult | None]
    start: float = field(default_factory=time.monotonic)
    told: float = -math.inf

    @property
    def pending(self) -> list[int]:
        """The numbers of the points that are not known."""
        return [number for number, outcome in enumerate(self.outcomes) if outcome is None]

    def learn(self, numbers: Sequence[int], outcomes: Sequence[PointResult], *, keep: bool = True) -> None:
        for number, outcome in zip(numbers, outcomes, strict=True):
            self.outcomes[number] = outcome
        if keep:
            merged = [_merged(outcome, self.known[number]) for number, outcome in zip(numbers, outcomes, strict=True)]
            self.kept.keep([self.keys[number] for number in numbers], merged)

    def evaluate(self, kernel: Any, workers: Workers) -> None:
        """Evaluate the pending points. Raises Cancelled, what a worker says is wrong, and KeyboardInterrupt."""
        pending = self.pending
        # Ctrl-C loses what this process is at; other processes are told little by little what to do.
        most = 1 if isinstance(workers, Here) else _TASK_POINTS
        size = max(1, min(most, len(pending) // (4 * workers.count)))
        batches = parts_of(self.space.points, pending, size)
        self._tell(len(pending))
        lost = self._answered(kernel, workers, batches, len(pending))
        # One point may have ended the worker of all points of its task.
        alone = [[number] for number in sorted(number for batch in lost for number in batch)]
        for numbers, why in self._answered(kernel, workers, alone, len(pending)).items():
            error = BackendError(
                "B033",
                f"the worker of this point ended: {why}",
                hint="if it was killed for memory, use fewer workers; if this point alone ends it, report the kernel",
            )
            self.learn(numbers, [PointResult(error=error.record())], keep=False)

    def _answered(
        self, kernel: Any, workers: Workers, batches: Sequence[Sequence[int]], total: int
    ) -> dict[tuple[int, ...], str]:
        """Evaluate the points of these numbers, each part as one task; return the parts that no worker survived."""
        lost: dict[tuple[int, ...], str] = {}
        points, digest = self.space.points, ttexplore_digest()
        tasks = [Task(kernel, tuple(points[number] for number in batch), digest) for batch in batches]
        if isinstance(workers, Here):
            tasks = [replace(task, lowerings=tasks[0].lowerings) for task in tasks]
        with contextlib.closing(workers.answers(evaluate, tasks, self.control)) as answers:
            for number, answer in answers:
                match answer:
                    case LostTask():
                        lost[tuple(batches[number])] = answer.why
                    case Answered():
                        self.learn(batches[number], answer.checked())
                self._tell(total)
        return lost

    def _tell(self, total: int) -> None:
        """Report how far the evaluation is, now and then and at its end."""
        remaining = len(self.pending)
        now = time.monotonic()
        if self.control.progress is None or (remaining and now - self.told < _TELL_SECONDS):
            return
        self.told = now
        done, everything = total - remaining, len(self.outcomes)
        refused = sum(1 for outcome in self.outcomes if outcome is not None and outcome.error is not None)
        full = _BAR * (everything - remaining) // everything
        rest = f", about {math.ceil((now - self.start) / done * remaining)} s left" if done and remaining else ""
        bar = f"[{'#' * full}{'.' * (_BAR - full)}]"
        self.control.tell(f"{bar} {everything - remaining:,} of {everything:,} points, {refused:,} refused{rest}")

    def result(self, kernel: Any, complete: bool) -> Sweep:
        name = kernel if isinstance(kernel, str) else name_of(kernel)
        return Sweep(name, self.space.names, self.space.points, tuple(self.outcomes), complete, kernel)


def _prove(state: _SweepState, kernel: Any, most: int, lowered: Callable[[int], Exploration]) -> None:
    """Run the best points on the emulator until `most` of them are proven; one that is wrong makes room for the next.

    Those whose proof is known do not run again. A point that cannot be run, for its time or for want of a compiler,
    says so in its proof, which is not kept.
    """
    while True:
        result = state.result(kernel, complete=True)
        # A wrong one is not in the ranking.
        number = next(
            (candidate for candidate in result.ranking[:most] if not _is_tried(state.outcomes[candidate])), None
        )
        if number is None:
            return
        outcome, stored = state.outcomes[number], state.known[number]
        assert outcome is not None, "it is in the ranking"
        proof = stored.proof if stored is not None else None
        if proof is None:
            state.control.tell(f"running on the emulator: {result.schedule(number)}")
            proof = _proof(lowered(number), state.control)
            state.learn([number], [replace(outcome, proof=proof)])
        else:
            state.learn([number], [replace(outcome, proof=proof)], keep=False)


def _find_bounds(state: _SweepState, kernel: Any, lowered: Callable[[int], Exploration]) -> None:
    """Find what bounds the points that are shown. It takes as long as lowering them, so the others do without."""
    for number in state.result(kernel, complete=True).ranking[:SHOWN_ROWS]:
        outcome, stored = state.outcomes[number], state.known[number]
        assert outcome is not None, "it is in the ranking"
        assert outcome.figures is not None, "it is in the ranking"
        if outcome.figures.estimate_us is None:
            continue
        bound = stored.bound if stored is not None else None
        if bound is None:
            refuse_cancelled(state.control.cancel)
            bound = lowered(number).estimate().bound
            state.learn([number], [replace(outcome, bound=bound)])
        else:
            state.learn([number], [replace(outcome, bound=bound)], keep=False)


def _proof(lowered: Exploration, control: Control) -> Proof:
    try:
        run = lowered.run(cancel=control.cancel)
        return Proof(bool(run.passed), float(run.pcc), run.message)
    except Cancelled:
        raise
    except KernelFault as error:
        # The program is at fault: it deadlocks, crashes, or does not compile. Only its time is no fault.
        return Proof(None if error.code == TIME_IS_OVER else False, None, str(error))
    except TTExploreError as error:
        return Proof(None, None, str(error))


def _merged(now: PointResult, before: PointResult | None) -> PointResult:
    """What is to be kept of a point: what is found now, and the proof and the bound of another sweep. A run that could
    not be done is tried again another day."""
    proof = now.proof if now.proof is not None and now.proof.passed is not None else None
    if before is None:
        return replace(now, proof=proof)
    return replace(now, proof=proof or before.proof, bound=now.bound or before.bound)


def _is_tried(outcome: PointResult | None) -> bool:
    return outcome is not None and outcome.proof is not None
