"""Exploring a kernel: lower it step by step, inspect and execute each step, try other options, export the result."""

from __future__ import annotations

import functools
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from ttexplore.clock.estimate import Estimate
from ttexplore.control import Control, Progress
from ttexplore.emit import emit_launches, launch_folder
from ttexplore.exploration import advising, checks, estimates, gpu_lanes, lower, references
from ttexplore.exploration.lowered import Lowered, Step
from ttexplore.given import Parts
from ttexplore.gpu.lane import GpuLane
from ttexplore.ir.boundary import errors_of_ours
from ttexplore.language.editing import OF_ALL_LAUNCHES
from ttexplore.language.load import load_kernel, load_text
from ttexplore.language.machine import machine
from ttexplore.language.tracer.kernel import TracedKernel, trace
from ttexplore.options import option_forms, parse_options
from ttexplore.passes.bind_sizes import sizes_of
from ttexplore.porting.port import Port
from ttexplore.record import OptionForm
from ttexplore.session.explored import Explored
from ttexplore.session.lowering import READ, WRITTEN
from ttexplore.session.results import Check, Drawing, Run, StepCheck
from ttexplore.session.steps import Steps
from ttexplore.target import DEFAULT_TARGET, Target, get_target

Array = NDArray[Any]


@dataclass(frozen=True, eq=False, repr=False)
class Exploration(Explored):
    """A kernel with all the steps of its lowering. Steps, plan and code can be read, executed and forked.

    A kernel with several launches has those of each in ``ex.launches[0]``, and so on. They run one after another: what
    one writes, a later one reads. Runs, checks and exports are those of the whole.
    """

    kernel: TracedKernel
    _lowerings: tuple[Lowered, ...]
    options: dict[str, Any]
    # What the kernel was written from, if it is a port.
    ported: Port | None = field(default=None, kw_only=True)

    _has_kernel = True

    @functools.cached_property
    def _launches(self) -> tuple[Exploration, ...]:
        return tuple(
            Exploration(lowering.kernel, lowering.target, (lowering,), lowering.options) for lowering in self._lowerings
        )

    @property
    def launches(self) -> tuple[Exploration, ...]:
        """The explorations of the kernel's launches, in order: this one itself, unless it has several T.Kernel."""
        return self._launches if self._is_several else (self,)

    @property
    def steps(self) -> Steps[Step]:
        return Steps(self._lowered.steps, self._lowered.pipeline)

    @property
    def _lowered(self) -> Lowered:
        """The lowering of the only launch."""
        self._only("steps")
        return self._lowerings[0]

    # Lowering again

    fork = lower.fork
    lower_again = lower.lower_again
    with_options = lower.with_options
    edited = lower.edited
    lower_text = lower.lower_text
    with_sizes = lower.with_sizes
    _sized = lower.sized

    @property
    def option_forms(self) -> Mapping[str, OptionForm]:
        return Parts("option", option_forms(self.plan.partition.work_items if self.plan.partition else 0))

    @property
    def _given(self) -> Collection[str]:
        return [name for name, value in self.options.items() if value not in (None, {})]

    @property
    def missing(self) -> dict[str, str]:
        return super().missing | ({"edit": OF_ALL_LAUNCHES} if self.kernel.surroundings is None else {})

    # Executing

    check = checks.check
    porting_checks = checks.porting_checks
    reference = references.reference
    _reference = references.reference_of
    _rounding = references.rounding_of
    _valid = references.valid
    _check_races = references.check_races
    _kept = references.kept

    @functools.cached_property
    def _roles(self) -> Mapping[str, str]:
        return references.roles(self)

    # Predicting

    estimate = estimates.estimate
    estimate_data = estimates.estimate_data
    trace_data = estimates.trace_data
    costs_data = estimates.costs_data
    advice_data = advising.advice_data

    @functools.cached_property
    def _advised(self) -> list[list[advising.Advice]]:
        """What makes the program faster, once that was tried."""
        return []

    @property
    def link_map(self) -> Drawing:
        """The bytes over the links of both NoCs, on the chip's floorplan: :meth:`estimate` has them as numbers, and
        raises the same errors."""
        return estimates.link_map(self)

    @property
    def estimated(self) -> str:
        return estimates.summary(self)

    @functools.cached_property
    def _estimated_inputs(self) -> list[tuple[tuple[Array, ...], Estimate]]:
        """The latest estimate for inputs, with these; nothing before the first."""
        return []

    # Beside a GPU

    gpu = gpu_lanes.gpu
    beside = gpu_lanes.beside
    gpu_data = gpu_lanes.gpu_data
    lanes_data = gpu_lanes.lanes_data

    @functools.cached_property
    def _lanes(self) -> dict[str, GpuLane]:
        """The latest lane for each architecture, which the explorer and its page show."""
        return {}

    # Exporting

    @property
    def _in_folders(self) -> tuple[list[str], dict[str, str]]:
        """The folders of several launches in an export, and the texts beside them: a runner of all."""
        count = len(self._lowerings)
        inputs, outputs = ([tensor._asdict() for tensor in self._tensors(roles)] for roles in (READ, WRITTEN))
        return list(map(launch_folder, range(count))), emit_launches(self.kernel.name, count, inputs, outputs)


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
                    written = kernel.written
                    chosen = written.checked(kernel_arguments)
                    traced = load_text(written.skeleton, f"{written.factory} (ported)", written.factory, chosen)
                case _:
                    traced = trace(kernel, **kernel_arguments)
        fields = lower.lowered(traced, chip, asked, sizes_of(traced.function, sizes), control)
    return Exploration(target=chip, options=asked, ported=kernel if isinstance(kernel, Port) else None, **fields)


__all__ = ["Check", "Exploration", "Run", "Step", "StepCheck", "Steps", "explore"]
