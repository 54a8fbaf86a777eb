"""How long a program takes on its target, predicted: the time, what bounds it, and what would help most."""

from __future__ import annotations

import functools
import math
import os
from collections import Counter as Count
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from ttexplore.characters import Printed
from ttexplore.clock.costs import OperationCost, operation_costs
from ttexplore.clock.events import (
    PROCESSORS,
    CoreClass,
    Engine,
    ProcessorName,
    moved_bytes,
    operations,
    useful_cycles,
    worked_cycles,
)
from ttexplore.clock.measured import Measured, beside
from ttexplore.clock.rates import RESOURCES, Resource, rates_of
from ttexplore.clock.replay import ProcessorTime, Replay, Waits, cycles_within, replay
from ttexplore.clock.trace import CoreTrace, core_trace
from ttexplore.errors import UsageError, VerifyError
from ttexplore.given import LARGEST, Parts, named, plain, wholes, wrong
from ttexplore.noc_links import LinkLoads, link_loads
from ttexplore.plan import Plan
from ttexplore.record import to_json
from ttexplore.target import Target
from ttexplore.views.runs.estimate import Prediction, ProcessorBar, prediction_html, predictions_html
from ttexplore.views.runs.times import duration, plain_time

# The median and the largest error against the published times of the SDK's own matmul (docs/clock.md).
MEDIAN_ERROR, LARGEST_ERROR = 0.04, 0.28
ACCURACY = f"{MEDIAN_ERROR:.0%} in the median, at most {LARGEST_ERROR:.0%}, against published times of the SDK's matmul"

_HELD = "comes from what is held to measurements; the rest are instructions of the processors, which are guessed"

# More events to replay take seconds where each of them tells its operation.
_QUICK_EVENTS = 100_000

# What is said of an estimate for certain inputs.
_FOR_THESE = " for these inputs"
_OF_INPUTS = "holds for these inputs only: their elements decide what the program does"
# How many cores a message names.
_LISTED = 8

Bound = Resource | Literal["imbalance", "launch"]


@dataclass(frozen=True, slots=True)
class ProcessorEstimate:
    """The microseconds in which a processor worked, and waited, by reason: for pages or room in circular buffers
    (`buffer`), for other cores (`semaphore`), for registers (`registers`) and for its own transfers (`read`, `write`).
    It came to its end at `end_us`."""

    busy_us: float
    waits_us: Mapping[Waits, float]
    end_us: float


@dataclass(frozen=True, slots=True)
class CoreEstimate:
    """The processors of the cores with these logical coordinates, which all do the same, and the bytes that each of
    these cores reads from DRAM and writes to it."""

    cores: tuple[tuple[int, int], ...]
    processors: Mapping[ProcessorName, ProcessorEstimate]
    read_bytes: int
    written_bytes: int

    @property
    def end_us(self) -> float:
        return max(processor.end_us for processor in self.processors.values())


@dataclass(frozen=True)
class Estimate(Printed):
    """The predicted time of a program on its target, in microseconds and in cycles of the target's clock.

    `gains_us`, found with a replay for each resource when it is first asked for, is the time that the program would
    save if one resource were free, each by itself: ``DRAM`` and ``NoC`` (their bandwidth), ``math``, ``pack`` and
    ``unpack`` (the engines), ``RISC-V`` (the instructions of the five processors themselves, such as copies of
    single elements), ``latency`` (of transfers and signals), ``imbalance`` (if all cores ended at the mean time)
    and ``launch``. `compute_peak_us` is the time that its computations take on all cores at the peak rate of its
    math fidelity, `dram_peak_us` the time in which DRAM at its peak transfers each tensor once, or all that the
    program transfers, if that is less. `read_bytes` and `written_bytes` are what all cores together read from DRAM
    and write to it, `flops` the operations of its products of tiles, `tensor_bytes` the size of all tensors in DRAM. An
    estimate `of_inputs` holds for the given inputs only: their elements decide what the program does. `links` are the
    bytes over each link of the two NoCs, of which the replay does not know: where the busiest one takes longer than the
    replay, its time counts. The tensors `from_cores` are read from L1 of other cores: how such reads hold one another
    up beyond the busiest link is not modelled.
    """

    kernel: str
    target: str
    us: float
    cycles: int
    cores: tuple[CoreEstimate, ...]
    compute_peak_us: float
    dram_peak_us: float
    read_bytes: int
    written_bytes: int
    tensor_bytes: int
    of_inputs: bool
    flops: int
    links: LinkLoads = field(repr=False)
    from_cores: tuple[str, ...]
    _gains: _Gains = field(repr=False, compare=False)
    _find_traces: Callable[[], tuple[CoreTrace, ...]] = field(repr=False, compare=False)
    _find_costs: Callable[[], tuple[OperationCost, ...]] = field(repr=False, compare=False)
    _replayed_events: int = field(repr=False, compare=False)

    @functools.cached_property
    def gains_us(self) -> Mapping[Bound, float]:
        return cast("Mapping[Bound, float]", Parts("resource", cast("Mapping[str, float]", self._gains.all())))

    @functools.cached_property
    def _traces(self) -> tuple[CoreTrace, ...]:
        return self._find_traces()

    @functools.cached_property
    def costs(self) -> tuple[OperationCost, ...]:
        """What each operation of the kernels costs on a core that ends last. It takes one more replay, several times
        as long as the estimate, when it is first asked for."""
        return self._find_costs()

    @property
    def has_quick_costs(self) -> bool:
        """Whether :attr:`costs` takes no longer than a moment."""
        return self._replayed_events <= _QUICK_EVENTS

    def trace(self, core: tuple[int, int]) -> CoreTrace:
        """When each processor of a core works, and what it waits for, in cycles from the start of the kernels. It takes
        one more replay when it is first asked for. Raises UsageError for a core that does not run the program."""
        core = cast("tuple[int, int]", wholes("core", core, 2, least=0))
        for group, trace in zip(self.cores, self._traces, strict=True):
            if core in group.cores:
                return trace
        shown = ", ".join(map(str, sorted(core for group in self.cores for core in group.cores)[:_LISTED]))
        raise UsageError("U003", f"core {core} does not run the program", hint=f"cores that do are {shown}")

    def beside(self, path: str | os.PathLike[str]) -> Measured:
        """Compare with what was measured: the report `ops_perf_results*.csv` of the SDK's profiler. All its generic ops
        must be runs of this program. Raises UsageError for a file that is no such report, or one of another program."""
        return beside(self.kernel, (self,), path)

    @property
    def kernels_us(self) -> float:
        """The time without the launch: until the last kernel has ended."""
        return self.us - self._gains.known["launch"]

    @functools.cached_property
    def bound(self) -> Bound:
        """What the program waits for most: the resource that would save most if it were free."""
        return self._gains.largest()

    @property
    def runner_up(self) -> tuple[Bound, float]:
        """The resource that would save most beside the bound, and its saving as a part of the bound's: near 1, the two
        are as good as equal, and small changes of the program exchange them."""
        saved: list[tuple[float, Bound]] = [(us, name) for name, us in self.gains_us.items() if name != self.bound]
        us, name = max(saved, key=lambda us_and_name: us_and_name[0])
        most = self.gains_us[self.bound]
        return name, us / most if most else 0.0

    def gain_us(self, resource: Resource, faster: float) -> float:
        """The microseconds that would be saved if a resource were so many times as fast: 1.1 is 10 % faster. Raises
        UsageError for another resource, and for a number below 1."""
        times = plain(faster)
        if isinstance(times, bool) or not isinstance(times, int | float) or not 1 <= times <= LARGEST:
            raise wrong("faster", faster, "how many times as fast, a number of at least 1")
        return self._gains.faster(named("resource", resource, RESOURCES), times)

    @property
    def confidence(self) -> float:
        """The part of the time that comes from what is held to measurements: transfers, products, the vector unit. The
        rest is what would be saved if the processors' own instructions, which are guessed, took no time."""
        return 1 - self.gains_us["RISC-V"] / self.us

    @property
    def _confidence_told(self) -> str:
        told = f"{self.confidence:.0%} of the time {_HELD}"
        if not self.from_cores:
            return told
        return f"{told}; how reads of {', '.join(self.from_cores)} from other cores hold one another up is not modelled"

    @property
    def tflops(self) -> float:
        """The operations of the products of tiles, in 10^12 per second."""
        return self.flops / self.us / 1e6

    @property
    def gigabytes_per_s(self) -> float:
        """What the program reads from DRAM and writes to it, in 10^9 bytes per second."""
        return (self.read_bytes + self.written_bytes) / self.us / 1e3

    @property
    def roofline_us(self) -> float:
        """The longer of the two peaks: faster is only a program of another math fidelity, or one that transfers
        less."""
        return max(self.compute_peak_us, self.dram_peak_us)

    @property
    def traffic_us(self) -> float:
        """The time in which DRAM at its peak transfers all that the program reads and writes."""
        moved = self.read_bytes + self.written_bytes
        least = min(self.tensor_bytes, moved)
        return self.dram_peak_us * moved / least if least else 0.0

    @property
    def compute_share(self) -> float:
        """The part of the compute peak, at its math fidelity, that the program reaches."""
        return self.compute_peak_us / self.us

    @property
    def accuracy(self) -> str:
        """How far such estimates are from published times."""
        return ACCURACY

    def to_json(self) -> dict[str, Any]:
        """All fields and figures as plain JSON values."""
        links = {"us": self.links.us, "bytes": self.links.most_bytes, "busiest": to_json(self.links.busiest)}
        details = {"of_inputs": self.of_inputs, "links": links, "cores": to_json(self.cores)}
        return {"kernel": self.kernel, "target": self.target, **_figures(self), **details}

    @property
    def summary(self) -> str:
        """One line: the time, what bounds it, and the part of the peak."""
        told = f"bound by {self.bound}, {self.compute_share:.0%} of the compute peak"
        return f"{plain_time(self.us)} (estimate{_FOR_THESE if self.of_inputs else ''}), {told}"

    def __str__(self) -> str:
        gain = self.gains_us[self.bound]
        # With everything in L1 and nothing computed, there is no limit to compare with.
        longer = f", {self.us / self.roofline_us:.1f} times as long" if self.roofline_us else ""
        rows = [
            f"estimate: {plain_time(self.us)} for {self.kernel} on {self.target} ({self.cycles:,} cycles)",
            *([f"  inputs: {_OF_INPUTS}"] if self.of_inputs else []),
            f"  error: {ACCURACY}",
            f"  confidence: {self._confidence_told}",
            f"  bound by {self.bound}: {plain_time(self.us - gain)} if it were free; {_next_told(*self.runner_up)}",
            f"  roofline: {plain_time(self.roofline_us)} (compute {plain_time(self.compute_peak_us)}, DRAM "
            f"{plain_time(self.dram_peak_us)}){longer}",
            f"  compute: {self.compute_share:.0%} of the peak of its math fidelity, {self.tflops:,.1f} TFLOP/s",
            f"  DRAM: {_size(self.read_bytes)} read, {_size(self.written_bytes)} written; the tensors have "
            f"{_size(self.tensor_bytes)}; {self.gigabytes_per_s:,.1f} GB/s",
            *(f"  {name}: {told}" for name, told in self._links_told(plain_time)),
            "",
            "if free          time      saves",
        ]
        for name, saved in sorted(self.gains_us.items(), key=lambda gain: -gain[1]):
            rows.append(f"  {name:<10} {plain_time(self.us - saved):>10}  {saved / self.us:>8.0%}")
        rows += ["", "processor         works      waits  for"]
        slowest = self._slowest
        for name in PROCESSORS:
            if name in slowest.processors:
                rows.append(_processor(name, slowest.processors[name]))
        (x, y), count = slowest.cores[0], sum(len(group.cores) for group in self.cores)
        rows.append(f"  of core ({x}, {y}), one of {len(slowest.cores)} of {count} cores that end last")
        return "\n".join(rows)

    def __repr__(self) -> str:
        return f"<{self.summary}>"

    def _repr_html_(self) -> str:
        return prediction_html(self.drawn)

    @property
    def drawn(self) -> Prediction:
        """What the pictures show."""
        slowest = self._slowest
        bars = tuple(
            ProcessorBar(name, processor.busy_us, {**processor.waits_us}, processor.end_us)
            for name in PROCESSORS
            if (processor := slowest.processors.get(name)) is not None
        )
        longer = f", {self.us / self.roofline_us:.1f} times as long" if self.roofline_us else ""
        facts = (
            *([("inputs", _OF_INPUTS)] if self.of_inputs else []),
            ("roofline", f"{duration(self.roofline_us)}{longer}"),
            ("DRAM", f"{_size(self.read_bytes)} read, {_size(self.written_bytes)} written; the tensors have "
                     f"{_size(self.tensor_bytes)}; {self.gigabytes_per_s:,.1f} GB/s"),
            *self._links_told(duration),
            ("error", ACCURACY),
            ("confidence", self._confidence_told),
        )  # fmt: skip
        title = f"{self.kernel} on {self.target}{_FOR_THESE if self.of_inputs else ''}"
        return Prediction(
            title, self.us, self.bound, {**self.gains_us}, self.compute_peak_us, self.dram_peak_us, bars,
            slowest.cores[0], len(slowest.cores), sum(len(group.cores) for group in self.cores), facts,
        )  # fmt: skip

    def _links_told(self, time: Callable[[float], str]) -> list[tuple[str, str]]:
        link = self.links.busiest
        if link is None:
            return []
        most = f"{_size(self.links.most_bytes)} over the busiest link, {link}"
        return [("NoC", f"{most}: {time(self.links.us)} at least")]

    @property
    def _slowest(self) -> CoreEstimate:
        return max(self.cores, key=lambda group: group.end_us)


@dataclass(frozen=True, slots=True)
class LaunchEstimates(Printed):
    """The predicted times of the launches of a kernel, which run one after another, and the sums of what they take,
    would save, transfer and would take at the peaks (:class:`Estimate`)."""

    kernel: str
    launches: tuple[Estimate, ...]

    def beside(self, path: str | os.PathLike[str]) -> Measured:
        """Compare with what was measured, as :meth:`Estimate.beside` does: the generic ops of the report are all
        launches in their order, once for each run. Raises UsageError for a file that does not fit."""
        return beside(self.kernel, self.launches, path)

    @property
    def us(self) -> float:
        return sum(launch.us for launch in self.launches)

    @property
    def cycles(self) -> int:
        return sum(launch.cycles for launch in self.launches)

    @property
    def bound(self) -> Bound:
        """What bounds the launch that takes longest."""
        return max(self.launches, key=lambda launch: launch.us).bound

    @property
    def gains_us(self) -> Mapping[Bound, float]:
        return {name: sum(launch.gains_us[name] for launch in self.launches) for name in self.launches[0].gains_us}

    @property
    def compute_peak_us(self) -> float:
        return sum(launch.compute_peak_us for launch in self.launches)

    @property
    def dram_peak_us(self) -> float:
        return sum(launch.dram_peak_us for launch in self.launches)

    @property
    def roofline_us(self) -> float:
        """Each launch at its own peak, of compute or of DRAM."""
        return sum(launch.roofline_us for launch in self.launches)

    @property
    def traffic_us(self) -> float:
        """Each launch with all that it transfers, at the peak of DRAM."""
        return sum(launch.traffic_us for launch in self.launches)

    @property
    def compute_share(self) -> float:
        """The part of the compute peak that the launches reach together."""
        return self.compute_peak_us / self.us

    @property
    def read_bytes(self) -> int:
        return sum(launch.read_bytes for launch in self.launches)

    @property
    def written_bytes(self) -> int:
        return sum(launch.written_bytes for launch in self.launches)

    @property
    def tensor_bytes(self) -> int:
        """The tensors of each launch: one that two of them use counts twice."""
        return sum(launch.tensor_bytes for launch in self.launches)

    @property
    def of_inputs(self) -> bool:
        """Whether it holds for certain inputs only: elements of tensors decide what a launch does."""
        return any(launch.of_inputs for launch in self.launches)

    def to_json(self) -> dict[str, Any]:
        """All figures as plain JSON values, together and by launch."""
        details = {"of_inputs": self.of_inputs, "launches": [launch.to_json() for launch in self.launches]}
        return {"kernel": self.kernel, **_figures(self), **details}

    @property
    def summary(self) -> str:
        told = f"{len(self.launches)} launches, the longest bound by {self.bound}"
        return f"{plain_time(self.us)} (estimate{_FOR_THESE if self.of_inputs else ''}) for {told}"

    def __str__(self) -> str:
        texts = [f"launch {number}\n{launch}" for number, launch in enumerate(self.launches)]
        return "\n\n".join([f"estimate: {plain_time(self.us)} for {self.kernel}, all launches together", *texts])

    def __repr__(self) -> str:
        return f"<{self.summary}>"

    def _repr_html_(self) -> str:
        return predictions_html(self.kernel, [launch.drawn for launch in self.launches])


# What is known of one launch, and of several together.
_FIGURES = (
    "us", "cycles", "bound", "gains_us", "roofline_us", "compute_peak_us", "dram_peak_us", "compute_share",
    "read_bytes", "written_bytes", "tensor_bytes",
)  # fmt: skip


def _figures(prediction: Estimate | LaunchEstimates) -> dict[str, Any]:
    return {name: to_json(getattr(prediction, name)) for name in _FIGURES}


def estimate(
    classes: Sequence[CoreClass], plan: Plan, target: Target, marked: Callable[[], Sequence[CoreClass]]
) -> Estimate:
    """Replay a program; `marked` gives the same classes with events that tell their operations. Raises
    VerifyError for one that never ends."""
    replayed = replay(classes, rates_of(target))
    if replayed.stuck:
        raise VerifyError("V009", f"deadlock: {', '.join(replayed.stuck)} wait for ever")
    launch = target.costs.launch_cycles
    to_us = 1e6 / target.clock_hz
    cores = tuple(_core(group, times, to_us) for group, times in zip(classes, replayed.processors, strict=True))
    total = sum(len(group.cores) for group in cores)
    mean = sum(group.end_us * len(group.cores) for group in cores) / total
    links = link_loads(((group.cores, group.moved) for group in classes), plan, target)
    kernels = max(replayed.cycles, links.cycles)
    balanced = max(mean, links.us)
    of_schedule: dict[Bound, float] = {"imbalance": max(0.0, kernels * to_us - balanced), "launch": launch * to_us}
    useful = sum(
        useful_cycles(events) * len(cores_alike.cores)
        for cores_alike in classes
        for events in cores_alike.processors.values()
    )
    flops = sum(
        operations(events) * len(cores_alike.cores)
        for cores_alike in classes
        for events in cores_alike.processors.values()
    )
    read = sum(core.read_bytes * len(core.cores) for core in cores)
    written = sum(core.written_bytes * len(core.cores) for core in cores)
    in_dram = {layout.name for layout in plan.layouts if layout.memory == "dram"}
    tensors = sum(accessor.pages * accessor.page_bytes for accessor in plan.accessors if accessor.tensor in in_dram)
    in_l1 = {layout.name for layout in plan.layouts if layout.memory == "l1"}
    # With match_shard, a core finds its part in its own shard.
    matched = plan.partition is not None and plan.partition.policy == "match_shard"
    reads = {tensor for cores_alike in classes for _, way, tensor in cores_alike.moved if way == "read"}
    from_cores = () if matched else tuple(sorted(reads & in_l1))
    dram_peak = target.costs.dram_bank_bytes_per_cycle * target.dram_banks
    cycles = kernels + launch
    return Estimate(
        plan.kernel, target.name, cycles * to_us, cycles, cores, useful / target.cores * to_us,
        min(tensors, read + written) / dram_peak * to_us, read, written, tensors,
        any(cores_alike.of_inputs for cores_alike in classes), flops, links, from_cores,
        _Gains(classes, target, replayed, of_schedule, (read, written), links.cycles),
        functools.partial(_traces, classes, target), lambda: operation_costs(marked(), target), replayed.events,
    )  # fmt: skip


# Transfers of a replay that are added as periods are exact to a byte of each period.
_EXACT_TRANSFERS = 0.99


@dataclass(frozen=True, eq=False)
class _Gains:
    """What each resource would save, of the cycles of a program: one replay each, made when it is asked for; and what
    is `known` without one. `moved` are the bytes that are read from DRAM and written to it, `link_cycles` those of the
    busiest link."""

    classes: Sequence[CoreClass]
    target: Target
    found: Replay
    known: Mapping[Bound, float]
    moved: tuple[int, int]
    link_cycles: int
    replayed: dict[Resource, float] = field(default_factory=dict[Resource, float])

    def of(self, resource: Resource) -> float:
        if resource not in self.replayed:
            cycles = replay(self.classes, rates_of(self.target, resource)).cycles
            self.replayed[resource] = self.saved(resource, cycles)
        return self.replayed[resource]

    def faster(self, resource: Resource, times: float) -> float:
        return self.saved(resource, replay(self.classes, rates_of(self.target, resource, times)).cycles, times)

    def at_least(self, resource: Resource, least: float) -> float | None:
        """What a resource would save; None if that is less than so many microseconds, which is known sooner."""
        if resource in self.replayed:
            return self.replayed[resource]
        # A cycle more, because microseconds are rounded.
        limit = self.kernel_cycles - least * (self.target.clock_hz / 1e6) + 1
        cycles = cycles_within(self.classes, rates_of(self.target, resource), limit)
        if cycles is None:
            return None
        self.replayed[resource] = self.saved(resource, cycles)
        return self.replayed[resource]

    def saved(self, resource: Resource, cycles: int, times: float = math.inf) -> float:
        """The microseconds that are saved if the kernels take so many cycles by the replay."""
        links = self.link_cycles / times if resource == "NoC" else self.link_cycles
        return max(0, self.kernel_cycles - max(cycles, links)) * (1e6 / self.target.clock_hz)

    @property
    def kernel_cycles(self) -> int:
        return max(self.found.cycles, self.link_cycles)

    def all(self) -> Mapping[Bound, float]:
        return {**{resource: self.of(resource) for resource in RESOURCES}, **self.known}

    def largest(self) -> Bound:
        """The first of those that save most. A resource is replayed only if it could be one of them. Where the busiest
        link takes longer than the replay, it is the bound, even if DRAM alone would take nearly as long."""
        if self.link_cycles > self.found.cycles:
            return "NoC"
        most = {resource: self.saved(resource, self.least_cycles(resource)) for resource in RESOURCES}
        saved: dict[Bound, float] = dict(self.known)
        for resource in sorted(RESOURCES, key=lambda resource: -most[resource]):
            if most[resource] >= (least := max(saved.values())):
                saving = self.at_least(resource, least)
                if saving is not None:
                    saved[resource] = saving
        return max((bound for bound in (*RESOURCES, *self.known) if bound in saved), key=lambda bound: saved[bound])

    def least_cycles(self, free: Resource) -> int:
        """What the program takes at least if a resource is free: the work of one processor, or all transfers."""
        rates = rates_of(self.target, free)
        least = 0.0
        for group, times in zip(self.classes, self.found.processors, strict=True):
            for name, events in group.processors.items():
                worked = self.worked[id(events)]
                # What is no work of an engine is the start of transfers.
                starts = 0 if free == "NoC" else times[name].busy - sum(worked.values())
                least = max(least, starts + sum(worked[engine] * share for engine, share in rates.busy.items()))
        for count, rate in zip((*self.moved, sum(self.moved)), rates.dram.values(), strict=True):
            least = max(least, _EXACT_TRANSFERS * count / rate)
        return int(least)

    @functools.cached_property
    def worked(self) -> Mapping[int, Count[Engine]]:
        """The cycles of each engine, by the identity of the events of a processor."""
        return {id(events): worked_cycles(events) for group in self.classes for events in group.processors.values()}


def _traces(classes: Sequence[CoreClass], target: Target) -> tuple[CoreTrace, ...]:
    replayed = replay(classes, rates_of(target), with_parts=True)
    return tuple(core_trace(segments_of, replayed.periods) for segments_of in replayed.parts)


def _core(group: CoreClass, times: Mapping[ProcessorName, ProcessorTime], to_us: float) -> CoreEstimate:
    processors: dict[ProcessorName, ProcessorEstimate] = {
        name: ProcessorEstimate(
            time.busy * to_us, {why: cycles * to_us for why, cycles in time.waits.items()}, time.end * to_us
        )
        for name, time in times.items()
        if group.processors.get(name)
    }
    read, written = (sum(moved_bytes(events, way) for events in group.processors.values()) for way in ("read", "write"))
    return CoreEstimate(group.cores, processors, read, written)


def _next_told(runner_up: Bound, share: float) -> str:
    return f"{runner_up} would save {share:.0%} of that" if share else "nothing else would save any"


def _processor(name: str, processor: ProcessorEstimate) -> str:
    waited = sum(processor.waits_us.values())
    reasons = ", ".join(
        f"{why} {plain_time(us)}" for why, us in sorted(processor.waits_us.items(), key=lambda item: -item[1])
    )
    return f"  {name:<10} {plain_time(processor.busy_us):>10} {plain_time(waited):>10}  {reasons}".rstrip()


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 100_000 else f"{count:,} B"
