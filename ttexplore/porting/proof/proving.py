"""Trying a skeleton against its source: both are run with the same inputs, and every element of outputs compared."""

from __future__ import annotations

import functools
import itertools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from numpy.typing import NDArray

from ttexplore.control import Control
from ttexplore.errors import BackendError, Cancelled, TTExploreError
from ttexplore.porting.foreign.families import Attention, Family, Gemm
from ttexplore.porting.foreign.marks import ForeignKernel, Language
from ttexplore.porting.foreign.skeletons import Skeleton
from ttexplore.porting.foreign.values import Formula, walk
from ttexplore.porting.proof.axes import limited_axis, ways
from ttexplore.porting.proof.comparing import BothOutputs, compared, overflown, unexplained
from ttexplore.porting.proof.cuda import cuda_runner
from ttexplore.porting.proof.inputs import INFINITE, MAGNITUDES, OF_LAUNCH, Magnitudes, hostile_inputs
from ttexplore.porting.proof.launches import (
    KINDS,
    MULTIPLES,
    TrialLaunch,
    Unaccounted,
    launch_of,
    sizes_of,
    vectors,
    whole_blocks,
)
from ttexplore.porting.proof.numbers import constants_of, numbers_of
from ttexplore.porting.proof.paired import PairedTrial
from ttexplore.porting.proof.parameters import parameters_to_try
from ttexplore.porting.proof.results import NOT_RUN, Difference, Draft, PortProof, Trial, listed
from ttexplore.porting.proof.running import CannotRun, OutsideAccess, SourceRunner
from ttexplore.porting.proof.skeletons import TracedSkeleton
from ttexplore.porting.proof.triton import triton_runner

Array = NDArray[Any]
# What the order of sums may make of equal results.
_NOISE = 1e-9
_BLOCK, _BLOCK_DEPTH = 4, 2
_TAKES_ONE = ("max", "min", "where")
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
    numbers, constants = numbers_of(language, text, kernel), constants_of(language, text, kernel)
    axes_ways = ways(kernel, skeleton)
    if isinstance(axes_ways, str):
        return Draft(f"it is not known how the source is launched: {axes_ways}")
    first: Draft | None = None
    for axes in axes_ways:
        if limit := limited_axis(kernel, axes):
            first = first or Draft(f"the source takes no more than {limit[1]:,} {limit[0]}, the skeleton any number")
            continue
        try:
            launch_with = functools.partial(launch_of, kernel, family, skeleton, axes)
            blocks = whole_blocks(axes)
            proving = _Proving(kernel, skeleton, runner, control, rounding, blocks, numbers, constants)
            proving.vectors = vectors(axes)
            proving.weighted = family.v.tensor if isinstance(family, Attention) else ""
            values = [term for store in kernel.stores for term in walk(store.value)]
            proving.keeps_nan = any(isinstance(term, Formula) and term.name in _TAKES_ONE for term in values)
            proving.hostile = hostile_inputs(kernel, family)
            # Scores are finite, and sums of products, of which any order may overflow.
            proving.highest = 1.0 if proving.weighted else 15.0 if isinstance(family, Gemm) else 30.0
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
    """The trials of one skeleton with one way to launch the source, some beyond the `numbers` of it, and one with
    elements at its `constants`. Its runner takes float64 where another one is `rounding`, which shows what overflows
    and what is rounded on the way."""

    kernel: ForeignKernel
    skeleton: Skeleton
    runner: SourceRunner
    control: Control
    rounding: SourceRunner | None
    whole_blocks: tuple[str, ...] = ()
    numbers: Sequence[int] = ()
    constants: Sequence[float] = ()
    vectors: Mapping[str, int] = field(default_factory=dict[str, int])
    # The values of attention: a source of 16 bits rounds the weights of their mean to 16 bits.
    weighted: str = ""
    # Inputs that show where a finite number stands for an infinite one.
    hostile: str = ""
    # Whether the source takes the larger or smaller of two: that of the skeleton keeps NaN.
    keeps_nan: bool = False
    # The highest power of ten of elements.
    highest: float = 30.0
    magnitudes: Magnitudes = field(default_factory=Magnitudes)
    is_rounding_tried: bool = False
    trials: list[Trial] = field(default_factory=list[Trial])
    worst: tuple[float, Mapping[str, Array], Mapping[str, Array]] = (-1.0, {}, {})

    @property
    def rounds(self) -> bool:
        """Whether the source is run as it rounds."""
        return self.rounding is None

    @property
    def dtypes(self) -> Mapping[str, str]:
        return {parameter.name: parameter.dtype or "float32" for parameter in self.kernel.parameters}

    def tried(self, launch_with: Callable[..., TrialLaunch]) -> PortProof | Draft:
        """Try all kinds of sizes. Where the source has no result for one, try others, of which one at most is no
        multiple of blocks. Raises CannotRun, and Unaccounted."""
        *kinds, fallback = KINDS
        launches: list[TrialLaunch] = []
        for kind, inputs in zip(kinds, OF_LAUNCH, strict=False):
            launches.append(launch_with(kind))
            if draft := self.with_launch(launches[-1], inputs):
                return draft
        possible = [launch for launch in launches if self.is_tried(launch)]
        if possible and (draft := self.of_magnitudes(max(possible, key=_elements))):
            return draft
        for launch in possible if self.hostile else ():
            # Of weights, those of hidden elements beyond the last one count too.
            is_tried = not self.weighted or launch.kind in MULTIPLES
            if is_tried and (draft := self.with_launch(launch, [self.hostile])):
                return draft
        if any(trial.skipped for trial in self.trials):
            for odd in ("", *sizes_of(self.skeleton)):
                launch = launch_with(fallback, odd)
                is_new = all(launch.sizes != trial.sizes for trial in self.trials)
                launches.append(launch)
                if is_new and (draft := self.with_launch(launch, OF_LAUNCH[1 if odd else -1])):
                    return draft
        if all(trial.skipped for trial in self.trials):
            return _could_not_run(self.trials[0].skipped)
        tried = [launch for launch in launches if self.is_tried(launch)]
        if not any(launch.kind in MULTIPLES for launch in tried):
            return Draft(f"the source has no result with several blocks: {self.trials[0].skipped}")
        if draft := self.of_parameters(tried[0]):
            return draft
        if draft := self.beyond_numbers(launch_with):
            return draft
        first, (_, of_source, of_skeleton) = launches[0], self.worst
        self.trials += _left_out(self.whole_blocks, self.vectors, first)
        return PortProof(tuple(self.trials), {"grid": first.launch.grid, **first.numbers}, of_source, of_skeleton)

    def is_tried(self, launch: TrialLaunch) -> bool:
        return any(not trial.skipped and trial.sizes == launch.sizes for trial in self.trials)

    def of_parameters(self, launch: TrialLaunch) -> Draft | None:
        """Try parameters of which types make others."""
        rounded = self if self.rounding is None else replace(self, runner=self.rounding, rounding=None)
        for numbers in parameters_to_try(self.kernel, launch.values):
            # Of a whole number, a float64 holds the one as which it is passed.
            passed = {name: float(number) if self.kernel.has_types else number for name, number in numbers.items()}
            changed = replace(launch, numbers={**launch.numbers, **numbers}, values={**launch.values, **passed})
            try:
                if draft := rounded.with_launch(changed, ("positive",)):
                    return replace(draft, reason=f"{draft.reason}, with {listed(numbers)}")
            except CannotRun:
                # What has no type may have one in the source.
                if self.kernel.has_types or not any(isinstance(number, int) for number in numbers.values()):
                    raise
        return None

    def of_magnitudes(self, launch: TrialLaunch) -> Draft | None:
        """Try elements of all sizes."""
        for magnitudes in Magnitudes(self.constants, self.highest).parts(_elements(launch)):
            self.magnitudes = magnitudes
            if draft := self.with_launch(launch, (MAGNITUDES,)):
                return draft
        return None

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
            traced = TracedSkeleton.of(self.skeleton, _factory_arguments(self.skeleton, launch))
        except (Cancelled, BackendError):
            raise
        except TTExploreError as error:
            return Draft(f"the skeleton is refused: {error.message}")
        for inputs in inputs_of_launch:
            names = self.skeleton.names
            trial = PairedTrial(traced, names, launch, self.dtypes, inputs, self.magnitudes)
            both = trial.run(self.runner, self.control, rounds=self.rounds)
            difference, error = None, 0.0
            if inputs in (MAGNITUDES, INFINITE):
                # There is no largest result that the others could be compared with.
                difference = overflown(launch, inputs, both, keeps_nan=self.keeps_nan)
            else:
                difference, error = compared(launch, inputs, both, rounds=self.rounds)
            if difference is None and not both.problem:
                difference = self.with_rounding(trial, both)
            if (both.problem or difference) and both.run.outside:
                self.trials.append(Trial(launch.sizes, inputs, skipped=_outside(launch, both.run.outside[0])))
                return None
            if both.problem:
                raise CannotRun(both.problem)
            if difference is not None:
                return Draft(f"it differs from its source: {difference}", difference)
            self.trials.append(Trial(launch.sizes, inputs, error))
            if error > self.worst[0] + (_NOISE if self.worst[1] else 0.0):
                stored = dict.fromkeys(store.tensor for store in self.kernel.stores if store.tensor in both.source)
                self.worst = (
                    error,
                    {name: both.source[name] for name in stored},
                    {name: both.skeleton[name] for name in stored},
                )
        return None

    def with_rounding(self, trial: PairedTrial, both: BothOutputs) -> Difference | None:
        """Compare what rounding makes of a trial, where that shows."""
        launch, inputs = trial.launch, trial.inputs
        if inputs != MAGNITUDES and (inputs != "distinct" or self.is_rounding_tried):
            if self.rounding is not None and inputs == "large":
                # What overflows in float32 shows only where it is rounded.
                return overflown(launch, inputs, trial.run(self.rounding, self.control, rounds=True))
            return None
        self.is_rounding_tried = self.is_rounding_tried or not both.run.outside
        evaluated = trial.evaluated(self.control)
        keeps = self.keeps_nan and inputs == MAGNITUDES
        allowance = trial.rounded_mean(self.weighted) if self.weighted else 0.0
        difference = unexplained(launch, inputs, both, evaluated, allowance, keeps_nan=keeps)
        if difference is None and self.rounding is not None:
            rounded = trial.run(self.rounding, self.control, rounds=True)
            difference = overflown(launch, inputs, rounded, keeps_nan=keeps) or unexplained(
                launch, inputs, rounded, evaluated, allowance, keeps_nan=keeps
            )
        return difference


def _factory_arguments(skeleton: Skeleton, launch: TrialLaunch) -> dict[str, object]:
    values = {skeleton.names[name]: value for name, value in launch.values.items() if name in skeleton.names}
    blocks = {"block": _BLOCK} | ({"block_depth": _BLOCK_DEPTH} if "depth" in launch.sizes else {})
    return {**launch.sizes, **blocks, **values, "dtype": "float32"}


def _left_out(blocks: Sequence[str], widths: Mapping[str, int], launch: TrialLaunch) -> list[Trial]:
    """What is not tried where a source takes whole blocks or vectors, or elements that others choose."""
    skipped = [
        f"{name} is a multiple of the source's blocks: it leaves out what is beyond whole ones" for name in blocks
    ]
    skipped += [f"{name} is a multiple of {width}: the source has whole vectors" for name, width in widths.items()]
    skipped += [f"{tensor} holds indices that there are: no others are tried" for tensor in launch.choices]
    return [Trial(launch.sizes, "", skipped=reason) for reason in skipped]


def _elements(launch: TrialLaunch) -> int:
    """How many elements the largest tensor has."""
    return max((math.prod(layout.shape) for layout in launch.layouts.values()), default=0)


def _outside(launch: TrialLaunch, access: OutsideAccess) -> str:
    line = f" in line {access.line}" if access.line else ""
    return f"with {listed(launch.sizes)}, the source {access.kind}s outside of {access.tensor}{line}"
