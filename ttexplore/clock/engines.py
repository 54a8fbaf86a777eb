"""The events of a compute kernel, which three processors run: unpack, math and pack, each its part of every call."""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Mapping
from dataclasses import dataclass, field

from ttexplore.clock.events import (
    Attribution,
    Counter,
    Event,
    Give,
    ProcessorName,
    Repeat,
    Source,
    Together,
    Wait,
    Work,
    counted,
    joined,
)
from ttexplore.noc_links import Way
from ttexplore.ops.costs import INIT_CYCLES, SECTION_CYCLES, unpack_cycles
from ttexplore.target import Costs

# The halves of DST that the math engine may fill, and those that wait for the packer.
DST_FREE, DST_FULL = Counter("free halves of DST", "registers"), Counter("full halves of DST", "registers")
# The banks of the source registers that the unpackers may fill, and those that wait for the math engine.
SOURCES_FREE, SOURCES_FULL = Counter("free source banks", "registers"), Counter("full source banks", "registers")
_SOURCE_BANKS = 2
# Acquire and commit, wait and release: each a part of a section's cost.
_HANDOVER_CYCLES = SECTION_CYCLES // 4


def starting(full_sync: bool = False) -> dict[Counter, int]:
    """The counters of an engine before it starts: with `full_sync`, DST is not halved."""
    return {DST_FREE: 1 if full_sync else 2, SOURCES_FREE: _SOURCE_BANKS}


def filled(buffer: str) -> Counter:
    """The pages of a circular buffer that are pushed and not popped."""
    return Counter(f"pages of {buffer}", "buffer")


def free(buffer: str) -> Counter:
    """The pages of a circular buffer that are neither pushed nor reserved."""
    return Counter(f"room in {buffer}", "buffer")


def reserve(buffer: str, pages: int) -> tuple[Event, ...]:
    return (Wait(free(buffer), pages),)


def push(buffer: str, pages: int) -> tuple[Event, ...]:
    return Give(free(buffer), -pages), Give(filled(buffer), pages)


def wait(buffer: str, pages: int) -> tuple[Event, ...]:
    return (Wait(filled(buffer), pages),)


def pop(buffer: str, pages: int) -> tuple[Event, ...]:
    return Give(filled(buffer), -pages), Give(free(buffer), pages)


_REGISTERS = frozenset({DST_FREE, DST_FULL, SOURCES_FREE, SOURCES_FULL})


def _together(turns: int, events_of: Mapping[ProcessorName, tuple[Event, ...]]) -> dict[ProcessorName, Together]:
    inner = next(iter(events_of.values()))[0]
    if isinstance(inner, Together) and all(len(events) == 1 for events in events_of.values()):
        turns, events_of = turns * inner.turns, dict(inner.parts)
    same = tuple(events_of.items())
    return {name: Together(turns, same, name) for name in events_of}


@dataclass(slots=True)
class Streams:
    """The events of the processors that run one kernel, to which calls are added in the order of the kernel.

    `private` are counters beside those of the registers that no other kernel changes, `moved` the bytes of each tensor
    that the calls move, by the way that they go.
    """

    costs: Costs
    private: frozenset[Counter] = frozenset()
    events: dict[ProcessorName, list[Event]] = field(default_factory=dict[ProcessorName, list[Event]])
    moved: Count[tuple[Way, str]] = field(default_factory=Count[tuple[Way, str]])

    # The operation that adds events, where that is to be known, and the one that each processor was told of last.
    operation: Source | None = None
    marked: dict[ProcessorName, Source] = field(default_factory=dict[ProcessorName, Source])

    def add(self, processor: ProcessorName, *events: Event) -> None:
        stream = self.events.setdefault(processor, [])
        if self.operation is not None and self.marked.get(processor) != self.operation:
            self.marked[processor] = self.operation
            stream.append(Attribution(self.operation))
        stream.extend(events)

    def loop(self, turns: int, body: Streams) -> None:
        for move, count in body.moved.items():
            self.moved[move] += turns * count
        events_of = body.processors
        together = _together(turns, events_of) if turns > 1 and self._is_closed(events_of) else None
        for processor, events in events_of.items():
            if together is not None:
                self.add(processor, together[processor])
            elif events:
                self.add(processor, Repeat(turns, events))
        self.marked.clear()

    def _is_closed(self, events_of: Mapping[ProcessorName, tuple[Event, ...]]) -> bool:
        """Whether the three processors of a compute kernel wait only for one another, and leave the counters that they
        found."""
        if {*events_of} != {"unpack", "math", "pack"}:
            return False
        balance: Count[Counter] = Count()
        for events in events_of.values():
            for event, times in counted(events):
                match event:
                    case Work():
                        pass
                    case Wait(counter, amount, takes):
                        balance[counter] -= amount * times if takes else 0
                    case Give(counter, amount):
                        balance[counter] += amount * times
                    case _:
                        return False
        return not any(balance.values()) and {*balance} <= self.private | _REGISTERS

    @property
    def processors(self) -> dict[ProcessorName, tuple[Event, ...]]:
        return {processor: joined(events) for processor, events in self.events.items()}

    # The compute kernel

    def acquire(self) -> None:
        self.add("math", Wait(DST_FREE, 1, takes=True), Work("math", _HANDOVER_CYCLES))

    def commit(self) -> None:
        self.add("math", Work("math", _HANDOVER_CYCLES), Give(DST_FULL, 1))

    def wait_for_math(self) -> None:
        self.add("pack", Wait(DST_FULL, 1, takes=True), Work("pack", _HANDOVER_CYCLES))

    def release(self) -> None:
        self.add("pack", Work("pack", _HANDOVER_CYCLES), Give(DST_FREE, 1))

    def init(self) -> None:
        self.add("unpack", Work("unpack", INIT_CYCLES))
        self.add("math", Work("math", INIT_CYCLES))

    def source(self, count_bytes: int, cycles: int, useful: int = 0, flops: int = 0) -> None:
        """An operation of the FPU on what the unpackers bring."""
        unpacked = Work("unpack", unpack_cycles(self.costs, count_bytes))
        self.add("unpack", Wait(SOURCES_FREE, 1, takes=True), unpacked, Give(SOURCES_FULL, 1))
        self.add("math", Wait(SOURCES_FULL, 1, takes=True), Work("math", cycles, useful, flops), Give(SOURCES_FREE, 1))
