"""What makes a program faster, tried: other options and block sizes, each lowered and predicted."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ttexplore.clock.estimate import Estimate
from ttexplore.control import FREE, Control
from ttexplore.errors import Cancelled, TTExploreError
from ttexplore.exploration.lower import lower_again
from ttexplore.exploration.references import reference_of
from ttexplore.ir.arithmetic.sizes import extents_of
from ttexplore.language.machine import machine
from ttexplore.language.tracer.kernel import TracedKernel
from ttexplore.options import option_text
from ttexplore.record import JsonObject
from ttexplore.session.lowering import READ, WRITTEN
from ttexplore.views.figures.core_map import core_count
from ttexplore.views.markup import visible
from ttexplore.views.runs.times import short_time

if TYPE_CHECKING:
    from ttexplore.exploration import Exploration

Array = NDArray[Any]

# Of the predicted time: what gains less is not worth a try.
LEAST_GAIN = 0.02
# Blocks that the reader may have loaded ahead.
_STAGES = ("1", "2", "3", "4")
# What is named beside a gain that costs bits.
_ROUNDS = {"math_fidelity": "multiplies fewer bits", "accumulate_dtype": "rounds sums", "sfpu": "rounds functions"}
# With more elements in its tensors, the reference of a kernel takes long.
_MOST_ELEMENTS = 2**23
# How close float64 results of the same function are, as a share of the largest.
_SAME = 1e-6
# So many arguments are changed together, and smaller ones are no sizes of blocks.
_MOST_SIDES = 3
_LEAST_SIZE = 16


@dataclass(frozen=True)
class Advice:
    """A lowering that takes less time: the options or arguments of the kernel with which it differs, as texts, its
    predicted time, the `gain` as a share of the time now, and the `cause`: what keeps the program from it."""

    changed: Mapping[str, str]
    us: float
    gain: float
    cause: str


def advice(exploration: Exploration, control: Control = FREE) -> list[Advice]:
    """Of each option the value with the least predicted time, and of the block sizes those with the least, where they
    gain at least `LEAST_GAIN`; what gains most comes first.

    Each is lowered and predicted; options that cannot change the program are left out. Arguments of the kernel count as
    block sizes where the tensors stay as they are and random inputs give the same results in float64.
    """
    if exploration._advised:
        return exploration._advised[0]
    now = exploration._lowered.estimate
    silent = Control(control.cancel)
    expected = functools.cache(lambda: _results(exploration, silent))
    best: dict[str, Advice] = {}
    for subject, options, arguments in _candidates(exploration):
        control.tell(f"trying {_words(options or arguments)}")
        least = best[subject].us if subject in best else now.us * (1 - LEAST_GAIN)
        try:
            faster = lower_again(exploration, options, None, silent, arguments)
            if faster.error is not None or (estimate := faster._lowered.estimate).us >= least:
                continue
            if arguments and not (
                _tensors_of(faster.kernel) == _tensors_of(exploration.kernel)
                and _is_close(expected(), _results(faster, silent))
            ):
                continue
        except Cancelled:
            raise
        except TTExploreError:
            continue
        changed = options | {name: str(size) for name, size in arguments.items()}
        gain = 1 - estimate.us / now.us
        best[subject] = Advice(changed, estimate.us, gain, _cause(now, exploration, faster))
    exploration._advised.append(sorted(best.values(), key=lambda each: each.us))
    return exploration._advised[0]


def advice_data(exploration: Exploration, control: Control = FREE) -> list[JsonObject]:
    """The advice as the explorer shows it, in JSON form. Raises what a prediction raises."""
    now = short_time(exploration._lowered.estimate.us)
    return [
        {
            "cause": each.cause,
            "percent": round(100 * each.gain),
            "wish": dict(each.changed),
            "words": visible(_words(each.changed)),
            "told": f"takes {short_time(each.us)} instead of {now}"
            + "".join(f", but {_ROUNDS[name]}" for name in each.changed if name in _ROUNDS),
        }
        for each in advice(exploration, control)
    ]


def _words(changed: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in changed.items())


def _candidates(exploration: Exploration) -> Iterator[tuple[str, dict[str, str], dict[str, int]]]:
    """What is tried: the subject, of which the best is kept, options, and arguments."""
    settings = {setting.name: setting for setting in exploration.settings}
    for name, form in exploration.option_forms.items():
        setting = settings.get(name)
        if setting is None or setting.idle or form.policy:
            continue
        choices = _STAGES if name == "stages" else map(option_text, form.choices)
        yield from ((name, {name: choice}, {}) for choice in choices if choice != setting.value)
    sizes = _block_sizes(exploration)
    for count in range(1, _MOST_SIDES + 1):
        for names in itertools.combinations(sizes, count):
            # Sides of one block are often equal.
            if len({sizes[name] for name in names}) == 1:
                value = sizes[names[0]]
                yield from (("blocks", {}, dict.fromkeys(names, size)) for size in (value // 4, value // 2, 2 * value))


def _block_sizes(exploration: Exploration) -> dict[str, int]:
    """The arguments of the kernel that may be sizes of its blocks: whole numbers on which no tensor depends."""
    kernel = exploration.kernel
    if exploration._is_several or kernel.traced_with is None:
        return {}
    if sum(prod(tensor.shape) for tensor in exploration._tensors((*READ, *WRITTEN))) > _MOST_ELEMENTS:
        return {}
    sizes = {name: value for name, value in kernel.arguments.items() if type(value) is int and value >= _LEAST_SIZE}
    with machine(exploration.target):
        if not _is_all_of(exploration, kernel.traced_with({})):
            return {}
        return {name: value for name, value in sizes.items() if _is_free(exploration, name, value)}


def _is_free(exploration: Exploration, name: str, value: int) -> bool:
    assert exploration.kernel.traced_with is not None
    try:
        return _tensors_of(exploration.kernel.traced_with({name: value // 2})) == _tensors_of(exploration.kernel)
    except TTExploreError:
        # It may be one of several that change together.
        return True


def _is_all_of(exploration: Exploration, again: TracedKernel) -> bool:
    """Whether a kernel that is traced again has what was set from outside after the first time."""
    kernel = exploration.kernel
    return (again.outputs, again.annotations) == (kernel.outputs, kernel.annotations)


def _tensors_of(kernel: TracedKernel) -> list[tuple[str, str, list[str]]]:
    return [(str(tensor.name), str(tensor.ty.dtype), [*map(str, extents_of(tensor))]) for tensor in kernel.tensors]


def _results(exploration: Exploration, control: Control) -> tuple[Array, ...]:
    """What random inputs give in float64, the same inputs for the same tensors."""
    return reference_of(exploration, exploration._inputs(None, 0), control, rounds=False)


def _is_close(expected: tuple[Array, ...], results: tuple[Array, ...]) -> bool:
    """Whether they are the same, whatever the order of the sums."""
    return all(
        np.allclose(array, result, rtol=_SAME, atol=_SAME * float(np.max(np.abs(array), initial=0)), equal_nan=True)
        for array, result in zip(expected, results, strict=True)
    )


def _cause(now: Estimate, exploration: Exploration, faster: Exploration) -> str:
    """What the faster lowering does better: it has work for more cores, or what bounds this one takes less."""
    working, more = map(_working_cores, (exploration, faster))
    cores = core_count(exploration.plan.partition) if exploration.plan.partition else 0
    return f"{cores - working} of {cores} cores idle" if more > working else f"{now.bound} bound"


def _working_cores(exploration: Exploration) -> int:
    partition = exploration.plan.partition
    return sum(core.items > 0 for core in partition.cores) if partition else 0
