"""The predicted time of an exploration."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ttexplore.clock.estimate import Estimate, LaunchEstimates
from ttexplore.control import FREE, Control, Progress
from ttexplore.emit.kernels import operation_lines
from ttexplore.errors import TTExploreError
from ttexplore.plan import Plan
from ttexplore.record import JsonObject
from ttexplore.session.explored import NO_TIME
from ttexplore.session.inputs import Inputs
from ttexplore.session.lowering import chained
from ttexplore.session.results import Drawing
from ttexplore.views.figures.core_map import core_map_svg
from ttexplore.views.runs import predicted
from ttexplore.views.runs.costs import cost_data

if TYPE_CHECKING:
    from ttexplore.exploration import Exploration

Array = NDArray[Any]


def estimate(
    exploration: Exploration, inputs: Inputs = None, seed: int = 0, *, sizes: Mapping[str, int] | None = None,
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
        sized = exploration._sized(inputs, sizes)
        return estimate_of(sized, None if inputs is None else sized._inputs(inputs, seed), control)


def estimate_of(
    exploration: Exploration, arrays: tuple[Array, ...] | None, control: Control = FREE
) -> Estimate | LaunchEstimates:
    """The estimate for the sizes of this exploration: for inputs in storage precision, or for all."""
    lowerings = exploration._lowerings
    if not exploration._is_several:
        return lowerings[0].estimate if arrays is None else lowerings[0].estimate_for(arrays, control)
    if arrays is None:
        return LaunchEstimates(exploration.kernel.name, tuple(lowering.estimate for lowering in lowerings))
    estimates: list[Estimate] = []

    def run(launch: Exploration, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        lowered = launch._lowered
        once = functools.cache(lambda: lowered.run(lowered.final, inputs, control, numbers=True))
        estimates.append(lowered.estimate_by(once))
        return once().outputs

    chained(exploration, run, arrays)
    return LaunchEstimates(exploration.kernel.name, tuple(estimates))


def summary(exploration: Exploration) -> str:
    """The estimate in one line, or why there is none."""
    if exploration.error is not None:
        return NO_TIME
    try:
        return exploration.estimate().summary
    except TTExploreError as error:
        return f"not known: {error.message}"


def link_map(exploration: Exploration) -> Drawing:
    """The bytes over the links of both NoCs."""
    estimate, plan = exploration._lowered.estimate, exploration.plan
    assert plan.partition is not None, "what has a time has been lowered"
    return Drawing(core_map_svg(exploration.target, plan.partition, measure=predicted.link_measure(estimate, plan)))


def estimate_data(
    exploration: Exploration, inputs: Inputs = None, seed: int = 0, control: Control = FREE
) -> JsonObject:  # fmt: skip
    """The predicted time as the explorer shows it, in JSON form; with `inputs`, for these. Raises what a prediction
    raises."""
    estimate, plan = _shown(exploration, inputs, seed, control)
    costs = _costs_of(exploration, estimate) if estimate.has_quick_costs else None
    return {**predicted.estimate_data(estimate, plan), "costs": costs}


def costs_data(exploration: Exploration, inputs: Inputs = None, seed: int = 0, control: Control = FREE) -> JsonObject:
    """What the lines of the kernel and of its C++ cost, as the explorer shows it, in JSON form. Raises what a
    prediction raises."""
    return _costs_of(exploration, _shown(exploration, inputs, seed, control)[0])


def _costs_of(exploration: Exploration, estimate: Estimate) -> JsonObject:
    lowered = exploration._lowered
    lines = operation_lines(lowered.final.functions, lowered.final.plan)
    return cost_data(estimate, lines, exploration.trace)


def trace_data(
    exploration: Exploration, core: tuple[int, int], inputs: Inputs = None, seed: int = 0, control: Control = FREE
) -> JsonObject:
    """When the processors of a core are predicted to work, as the explorer shows it, in JSON form. Raises
    UsageError for a core without kernels, and what a prediction raises."""
    return predicted.trace_data(_shown(exploration, inputs, seed, control)[0], core)


def _shown(exploration: Exploration, inputs: Inputs, seed: int, control: Control) -> tuple[Estimate, Plan]:
    """The estimate that the explorer shows, and its plan. That for inputs is kept until it shows another one."""
    with control.watched("the estimate"):
        if inputs is None:
            return exploration._lowered.estimate, exploration.plan
        sized = exploration._sized(inputs, None)
        arrays = sized._inputs(inputs, seed)
        for before, estimate in sized._estimated_inputs:
            if all(map(np.array_equal, before, arrays)):
                return estimate, sized.plan
        estimate = sized._lowered.estimate_for(arrays, control)
        sized._estimated_inputs[:] = [(tuple(array.copy() for array in arrays), estimate)]
        return estimate, sized.plan
