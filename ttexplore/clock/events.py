"""What the processors of a core do that takes time, in order: data, without a unit of time.

Nothing here knows of kernels, so a program of others can be described as well. A core has five processors: two that
move data and three that compute. They wait for each other, and for other cores, only through counters: a circular
buffer is one counter of pages that are filled and one of pages that are free, a semaphore is a counter, and so are the
halves of DST and the banks of the source registers.
"""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, assert_never

from ttexplore.noc_links import Moved, Way
from ttexplore.plan import KernelRole, Loader

ProcessorName = Literal["reader", "writer", "unpack", "math", "pack"]
PROCESSORS: tuple[ProcessorName, ...] = ("reader", "writer", "unpack", "math", "pack")
# What computes: `riscv` are the processors' own instructions.
Engine = Literal["unpack", "math", "pack", "riscv"]
Direction = Literal["read", "write"]
# Where a transfer goes: L1 of another core, DRAM over all banks, or one bank.
Memory = Literal["l1", "dram", "bank"]
Reason = Literal["buffer", "semaphore", "registers"]


@dataclass(frozen=True, slots=True)
class Counter:
    """A number that one processor raises and another one waits for. `reason` is what a wait for it is called."""

    name: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class Work:
    """An engine is busy. Of its `cycles`, `useful` ones are needed at the peak rate of the matrix or vector unit, which
    come to so many operations on numbers: `flops`, of products of tiles only."""

    engine: Engine
    cycles: int
    useful: int = 0
    flops: int = 0


# An operation of a kernel: its role, and its position among the operations of that kernel.
Source = tuple[KernelRole, int]


@dataclass(frozen=True, slots=True)
class Attribution:
    """What follows on the processor is done by an operation. It takes no time."""

    source: Source


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait until a counter of the own core is at least `amount`; a Wait that `takes` lowers it by that."""

    counter: Counter
    amount: int
    takes: bool = False


@dataclass(frozen=True, slots=True)
class Give:
    """Raise a counter of the own core, or lower it by a negative amount."""

    counter: Counter
    amount: int


@dataclass(frozen=True, slots=True)
class Put:
    """Set a counter of the own core."""

    counter: Counter
    value: int


@dataclass(frozen=True, slots=True)
class Signal:
    """Raise a counter of the cores of another class, over the NoC."""

    counter: Counter
    amount: int
    to: str


@dataclass(frozen=True, slots=True)
class Transfer:
    """Start NoC transfers of `bytes` bytes in all, with several transactions. They go on while the processor does."""

    direction: Direction
    memory: Memory
    bytes: int
    transactions: int


@dataclass(frozen=True, slots=True)
class MulticastSend:
    """Send bytes to a rectangle of `receivers` cores, and then a flag, which raises `counter` by 1 on the cores of the
    classes `to`."""

    bytes: int
    transactions: int
    receivers: int
    counter: Counter | None = None
    to: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Complete:
    """Wait for the own transfers in one direction: until they have left or, if `landed`, until they have arrived."""

    direction: Direction
    landed: bool = True


@dataclass(frozen=True, slots=True)
class Repeat:
    """The same events, `turns` times."""

    turns: int
    body: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Together:
    """Turns of a loop that several processors of a core run together, waiting only for one another; this one is `own`.

    How long the turns take is known without the other cores, and found once.
    """

    turns: int
    parts: tuple[tuple[ProcessorName, tuple[Event, ...]], ...]
    own: ProcessorName


Event = Attribution | Together | Work | Wait | Give | Put | Signal | Transfer | MulticastSend | Complete | Repeat


@dataclass(frozen=True, slots=True)
class CoreClass:
    """`cores` that do the same at the same time, by their logical coordinates. `start` are the values of counters that
    do not start at 0, `moved` the bytes of each tensor that a processor moves in all, by the way that they go. What
    cores do `of_inputs`, they do for certain inputs: elements of tensors decide it."""

    name: str
    cores: tuple[tuple[int, int], ...]
    processors: Mapping[ProcessorName, tuple[Event, ...]]
    start: Mapping[Counter, int] = field(default_factory=dict[Counter, int])
    moved: Moved = field(default_factory=dict[tuple[Loader, Way, str], int])
    of_inputs: bool = False


def joined(events: Iterable[Event]) -> tuple[Event, ...]:
    """The same events in fewer parts: neighbours that are work of one engine, or transfers of one kind, are added up;
    loops of nothing else are one of them, and equal neighbours a loop."""
    merged: list[Event] = []
    for event in events:
        unrolled = _unrolled(event) if isinstance(event, Repeat) else event
        if unrolled is None:
            continue
        if isinstance(unrolled, Attribution) and merged and isinstance(merged[-1], Attribution):
            merged[-1] = unrolled
            continue
        last = merged[-1] if merged else None
        both = None if last is None else _both(last, unrolled)
        if both is None:
            merged.append(unrolled)
        else:
            merged[-1] = both
    return tuple(merged)


def _unrolled(loop: Repeat) -> Event | None:
    body = joined(loop.body)
    if not any(not isinstance(event, Attribution) for event in body) or loop.turns < 1:
        return None
    if len(body) == 1:
        match body[0]:
            case Work(engine, cycles, useful, flops):
                return Work(engine, cycles * loop.turns, useful * loop.turns, flops * loop.turns)
            case Transfer(direction, memory, count, transactions):
                return Transfer(direction, memory, count * loop.turns, transactions * loop.turns)
            case Repeat(turns, inner):
                return Repeat(turns * loop.turns, inner)
            case event if loop.turns == 1:
                return event
            case _:
                pass
    return Repeat(loop.turns, body)


def _both(first: Event, second: Event) -> Event | None:
    match first, second:
        case Work(engine, cycles, useful, flops), Work(same, more, also, again) if engine == same:
            return Work(engine, cycles + more, useful + also, flops + again)
        case Transfer(direction, memory, count, transactions), Transfer(same, where, more, again) if (
            direction,
            memory,
            count * again,
        ) == (same, where, more * transactions):
            return Transfer(direction, memory, count + more, transactions + again)
        case Repeat(turns, body), Repeat(more, same) if body == same:
            return Repeat(turns + more, body)
        case _:
            return None


def counted(events: Iterable[Event], times: int = 1) -> Iterator[tuple[Event, int]]:
    """Each event that is no loop, with how often it occurs."""
    for event in events:
        match event:
            case Repeat(turns, body):
                yield from counted(body, times * turns)
            case Together(turns, events_of, processor):
                yield from counted(dict(events_of)[processor], times * turns)
            case (
                Attribution() | Work() | Wait() | Give() | Put() | Signal() | Transfer() | MulticastSend() | Complete()
            ):
                yield event, times
            case _:
                assert_never(event)


def useful_cycles(events: Iterable[Event]) -> int:
    """The cycles that the work among events would take at the peak rate of its engine."""
    return sum(times * event.useful for event, times in counted(events) if isinstance(event, Work))


def operations(events: Iterable[Event]) -> int:
    """The operations on numbers of the products among events."""
    return sum(times * event.flops for event, times in counted(events) if isinstance(event, Work))


def worked_cycles(events: Iterable[Event]) -> Count[Engine]:
    """The cycles of the work among events, by engine."""
    worked: Count[Engine] = Count()
    for event, times in counted(events):
        if isinstance(event, Work):
            worked[event.engine] += times * event.cycles
    return worked


def moved_bytes(events: Iterable[Event], direction: Direction) -> int:
    """The bytes that events read from DRAM, or write to it."""
    return sum(
        times * event.bytes
        for event, times in counted(events)
        if isinstance(event, Transfer) and event.direction == direction and event.memory != "l1"
    )
