"""Trying a skeleton against its source: both are run with the same inputs, and every element of outputs compared."""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ttexplore.control import Control
from ttexplore.errors import BackendError, Cancelled, TTExploreError
from ttexplore.porting.foreign.families import Family
from ttexplore.porting.foreign.marks import ForeignKernel, Language
from ttexplore.porting.foreign.skeletons import Skeleton
from ttexplore.porting.proof.axes import ways
from ttexplore.porting.proof.cuda import cuda_runner
from ttexplore.porting.proof.inputs import OF_LAUNCH, drawn
from ttexplore.porting.proof.launches import (
    KINDS,
    PlacedTensor,
    TrialLaunch,
    Unaccounted,
    launch_of,
    sizes_of,
    whole_blocks,
)
from ttexplore.porting.proof.numbers import numbers_of
from ttexplore.porting.proof.results import NOT_RUN, Difference, Draft, PortProof, Trial, listed
from ttexplore.porting.proof.running import Argument, CannotRun, OutsideAccess, SourceRun, SourceRunner, element_dtype
from ttexplore.porting.proof.skeletons import TracedSkeleton
from ttexplore.porting.proof.triton import triton_runner

Array = NDArray[Any]
# How far results may be apart, relative to the largest one: by constants such as log2(e) that have few digits, and in a
# source whose numbers are float32 by its rounding.
_EXACT, _ROUNDED = 2e-5, 2e-3
_LARGE = 20.0
# What the order of sums may make of equal results.
_NOISE = 1e-9
_BLOCK, _BLOCK_DEPTH = 4, 2
# How many sizes are tried because of numbers of the source, of how many elements, and for how long each.
_MOST_BEYOND, _MOST_ELEMENTS, _SECONDS_BEYOND = 6, 20_000, 15.0


def prove_kernel(
    language: Language, text: str, kernel: ForeignKernel, family: Family, skeleton: Skeleton, control: Control
) -> PortProof | Draft:
    """Try a skeleton of a kernel of a source. Raises Cancelled, and BackendError at the time limit."""
    if language not in ("CUDA", "Triton"):
        return NOT_RUN
    try:
        runner, rounding = _runners(language, text, kernel.name, control)
    except CannotRun as error:
        return _could_not_run(error)
    numbers = numbers_of(language, text, kernel)
    axes_ways = ways(kernel, skeleton)
    if isinstance(axes_ways, str):
        return Draft(f"it is not known how the source is launched: {axes_ways}")
    first: Draft | None = None
    for axes in axes_ways:
        try:
            launch_with = functools.partial(launch_of, kernel, family, skeleton, axes)
            proving = _Proving(kernel, skeleton, runner, control, rounding, whole_blocks(axes), numbers)
            result = proving.tried(launch_with)
        except Unaccounted as unaccounted:
            result = Draft(f"it is not known how the source is launched: {unaccounted}")
        except CannotRun as error:
            result = _could_not_run(error)
        if isinstance(result, PortProof):
            return result
        first = first or result
    return first or Draft("it is not known how the source is launched: its indices do not fit to the skeleton's axes")


def _runners(language: Language, text: str, name: str, control: Control) -> tuple[SourceRunner, SourceRunner | None]:
    """What runs a kernel; and where that takes float64, what rounds as the source does. Raises CannotRun."""
    if language == "CUDA":
        return cuda_runner(text, name, control), None
    exact = triton_runner(text, name, rounds=False)
    return exact, replace(exact, rounds=True)


def _could_not_run(reason: object) -> Draft:
    return Draft(f"the source could not be run: {reason}")


@dataclass
class _Proving:
    """The trials of one skeleton with one way to launch the source, some beyond the `numbers` of it. Its runner takes
    float64 where another one is `rounding`, which shows what overflows."""

    kernel: ForeignKernel
    skeleton: Skeleton
    runner: SourceRunner
    control: Control
    rounding: SourceRunner | None
    whole_blocks: tuple[str, ...] = ()
    numbers: Sequence[int] = ()
    trials: list[Trial] = field(default_factory=list[Trial])
    worst: tuple[float, Mapping[str, Array], Mapping[str, Array]] = (-1.0, {}, {})

    @property
    def rounds(self) -> bool:
        """Whether the source is run as it rounds."""
        return self.rounding is None

    def tried(self, launch_with: Callable[..., TrialLaunch]) -> PortProof | Draft:
        """Try all kinds of sizes. Where the source has no result for one, try others, of which one at most is no
        multiple of blocks. Raises CannotRun, and Unaccounted."""
        *kinds, fallback = KINDS
        launches: list[TrialLaunch] = []
        for kind, inputs in zip(kinds, OF_LAUNCH, strict=False):
            launches.append(launch_with(kind))
            if draft := self.with_launch(launches[-1], inputs):
                return draft
        if any(trial.skipped for trial in self.trials):
            for odd in ("", *sizes_of(self.skeleton)):
                launch = launch_with(fallback, odd)
                is_new = all(launch.sizes != trial.sizes for trial in self.trials)
                if is_new and (draft := self.with_launch(launch, OF_LAUNCH[1 if odd else -1])):
                    return draft
        if all(trial.skipped for trial in self.trials):
            return _could_not_run(self.trials[0].skipped)
        if draft := self.beyond_numbers(launch_with):
            return draft
        first = launches[0]
        _, of_source, of_skeleton = self.worst
        for name in self.whole_blocks:
            skipped = f"{name} is a multiple of the source's blocks: it leaves out what is beyond whole ones"
            self.trials.append(Trial(first.sizes, "", skipped=skipped))
        return PortProof(tuple(self.trials), {"grid": first.launch.grid, **first.numbers}, of_source, of_skeleton)

    def beyond_numbers(self, launch_with: Callable[..., TrialLaunch]) -> Draft | None:
        """Try sizes beyond the numbers of the source, the largest first, one axis at a time: what the source does from
        a number on does not show with smaller ones."""
        tried = 0
        names = sizes_of(self.skeleton)
        longest = {name: max(trial.sizes.get(name, 0) for trial in self.trials) for name in names}
        for number, name in itertools.product(self.numbers, names):
            # A multiple of blocks is tried where the source has no result for another size.
            for kind in ("other multiples", "multiples of blocks"):
                launch = launch_with(kind, name, number)
                size = launch.sizes.get(name, 0)
                is_small = all(layout.length <= _MOST_ELEMENTS for layout in launch.layouts.values())
                if size <= max(longest[name], number) or not is_small:
                    break
                if tried >= _MOST_BEYOND:
                    return None
                tried += 1
                before = len(self.trials)
                if draft := self.within_time(launch):
                    return draft
                if not any(trial.skipped for trial in self.trials[before:]):
                    longest[name] = size
                    break
        return None

    def within_time(self, launch: TrialLaunch) -> Draft | None:
        """Try a launch, unless that takes too long."""
        outer = self.control
        start = time.perf_counter()
        if outer.remaining <= _SECONDS_BEYOND:
            return self.with_launch(launch, ("distinct",))
        self.control = outer.of("the trial", seconds=_SECONDS_BEYOND, start=start)
        try:
            return self.with_launch(launch, ("distinct",))
        except BackendError:
            if time.perf_counter() - start < _SECONDS_BEYOND:
                raise
            skipped = f"with {listed(launch.sizes)}, running both takes more than {_SECONDS_BEYOND:g} s"
            self.trials.append(Trial(launch.sizes, "distinct", skipped=skipped))
            return None
        finally:
            self.control = outer

    def with_launch(self, launch: TrialLaunch, inputs_of_launch: Sequence[str]) -> Draft | None:
        """Try a launch; what is found to differ."""
        try:
            traced = TracedSkeleton.of(self.skeleton, self.factory_arguments(launch))
        except (Cancelled, BackendError):
            raise
        except TTExploreError as error:
            return Draft(f"the skeleton is refused: {error.message}")
        for inputs in inputs_of_launch:
            run, skeleton_outputs, source_outputs, problem = self.run(traced, launch, inputs, self.runner, self.rounds)
            difference, error = _compared(launch, inputs, run, skeleton_outputs, source_outputs, rounds=self.rounds)
            if self.rounding is not None and inputs == "large" and difference is None:
                # What overflows in float32 shows only where it is rounded.
                rounded = self.run(traced, launch, inputs, self.rounding, True)
                difference = _overflown(launch, inputs, *rounded[:3])
            if (problem or difference) and run.outside:
                self.trials.append(Trial(launch.sizes, inputs, skipped=_outside(launch, run.outside[0])))
                return None
            if problem:
                raise CannotRun(problem)
            if difference is not None:
                return Draft(f"it differs from its source: {difference}", difference)
            self.trials.append(Trial(launch.sizes, inputs, error))
            if error > self.worst[0] + (_NOISE if self.worst[1] else 0.0):
                stored = dict.fromkeys(store.tensor for store in self.kernel.stores if store.tensor in source_outputs)
                self.worst = (
                    error,
                    {name: source_outputs[name] for name in stored},
                    {name: skeleton_outputs[name] for name in stored},
                )
        return None

    def factory_arguments(self, launch: TrialLaunch) -> dict[str, object]:
        names = self.skeleton.names
        values = {names[name]: value for name, value in launch.values.items() if name in names}
        blocks = {"block": _BLOCK} | ({"block_depth": _BLOCK_DEPTH} if "depth" in launch.sizes else {})
        return {**launch.sizes, **blocks, **values, "dtype": "float32"}

    def run(
        self, traced: TracedSkeleton, launch: TrialLaunch, inputs: str, runner: SourceRunner, rounds: bool
    ) -> tuple[SourceRun, dict[str, Array], dict[str, Array], str]:
        """The run of the source, and the outputs of skeleton and source, by the names of the source's tensors; and what
        the source does that has no result."""
        dtypes = {parameter.name: parameter.dtype or "float32" for parameter in self.kernel.parameters}
        elements_of: dict[str, Array] = {}
        arguments: dict[str, Argument] = {}
        for seed, (tensor, layout) in enumerate(launch.layouts.items()):
            name = self.skeleton.names[tensor]
            array = np.full(layout.length, np.nan, element_dtype(dtypes[tensor]))
            if traced.roles[name] != "output":
                elements = elements_of[name] = drawn(inputs, seed, traced.shapes[name])
                _view(array, layout)[...] = elements.reshape(layout.shape)
            arguments[tensor] = array
        for tensor, length in launch.left_out.items():
            arguments[tensor] = np.full(length, np.nan, element_dtype(dtypes[tensor]))
        arguments.update(launch.numbers)
        results = traced.run(elements_of, self.control, rounds=rounds)
        run = runner.run(launch.launch, arguments, self.control)
        of_skeleton: dict[str, Array] = {}
        of_source: dict[str, Array] = {}
        problem = ""
        for tensor, layout in launch.layouts.items():
            if tensor in run.races:
                problem = problem or f"a race for {tensor}: {run.races[tensor]}"
            name = self.skeleton.names[tensor]
            after = run.arrays[tensor].astype(np.float64)
            of_source[tensor] = _view(after, layout).reshape(traced.shapes[name]).copy()
            elements = results[name] if name in results else elements_of[name]
            if self.rounds:
                with np.errstate(over="ignore"):
                    elements = elements.astype(run.arrays[tensor].dtype)
            of_skeleton[tensor] = elements.astype(np.float64)
            # What lies between the elements belongs to no tensor.
            _view(after, layout)[...] = np.nan
            if not np.all(np.isnan(after)):
                problem = problem or f"it writes between the elements of {tensor}"
        return run, of_skeleton, of_source, problem


def _overflown(
    launch: TrialLaunch,
    inputs: str,
    run: SourceRun,
    of_skeleton: Mapping[str, Array],
    of_source: Mapping[str, Array],
) -> Difference | None:
    """The first element that is finite in the source, and not in the skeleton."""
    for tensor, expected in of_source.items():
        wrong = np.isfinite(expected) & ~np.isfinite(of_skeleton[tensor])
        if np.any(wrong):
            return _difference(tensor, wrong, expected, of_skeleton[tensor], launch, inputs, run)
    return None


def _compared(
    launch: TrialLaunch,
    inputs: str,
    run: SourceRun,
    of_skeleton: Mapping[str, Array],
    of_source: Mapping[str, Array],
    *,
    rounds: bool,
) -> tuple[Difference | None, float]:
    """The first element that differs, and the largest difference that is none."""
    largest = 0.0
    bound = (_ROUNDED if rounds else _EXACT) * (_LARGE if inputs == "large" else 1.0)
    for tensor, expected in of_source.items():
        result = of_skeleton[tensor]
        finite = np.isfinite(expected) & np.isfinite(result)
        scale = max(float(np.max(np.abs(expected[finite]), initial=0.0)), 1e-30)
        with np.errstate(all="ignore"):
            errors = np.abs(result - expected) / scale
        same = (result == expected) | (np.isnan(result) & np.isnan(expected))
        wrong = ~same & ~(finite & (errors <= bound))
        if np.any(wrong):
            return _difference(tensor, wrong, expected, result, launch, inputs, run), 0.0
        largest = max(largest, float(np.max(errors[finite], initial=0.0)))
    return None, largest


def _difference(
    tensor: str, wrong: Array, expected: Array, result: Array, launch: TrialLaunch, inputs: str, run: SourceRun
) -> Difference:
    """The first of the elements that are wrong."""
    index = tuple(int(number[0]) for number in np.nonzero(wrong))
    line = run.lines.get(tensor, 0)
    return Difference(tensor, index, float(expected[index]), float(result[index]), launch.sizes, inputs, line)


def _outside(launch: TrialLaunch, access: OutsideAccess) -> str:
    line = f" in line {access.line}" if access.line else ""
    return f"with {listed(launch.sizes)}, the source {access.kind}s outside of {access.tensor}{line}"


def _view(array: Array, layout: PlacedTensor) -> Array:
    """The elements of a tensor in its array."""
    strides = tuple(stride * array.itemsize for stride in layout.strides)
    return np.lib.stride_tricks.as_strided(array, layout.shape, strides)
