"""Replays the events of all classes of cores against each other, in cycles.

Each processor runs its events in order; what it waits for, another one gives. One core stands for all cores of its
class, and its transfers for those of all of them: transfers of the same time share the bandwidth of DRAM evenly.

Programs repeat themselves. Whenever one processor, the anchor, comes to the end of a turn, the state of all is compared
with that at the ends of its earlier turns: where everything waits, and how long, the numbers of turns left aside. If it
was the same before, what happened since will happen again, until a loop ends: the replay adds all these periods at
once.
"""

from __future__ import annotations

import heapq
import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, assert_never

from ttexplore.clock.events import (
    PROCESSORS,
    Attribution,
    Complete,
    CoreClass,
    Counter,
    Direction,
    Event,
    Give,
    Memory,
    MulticastSend,
    ProcessorName,
    Put,
    Repeat,
    Signal,
    Source,
    Together,
    Transfer,
    Wait,
    Work,
    counted,
)
from ttexplore.clock.rates import UNLIMITED, Rates
from ttexplore.control import look_around

# Why a processor waits; a transfer is named by its direction.
Waits = Literal["buffer", "semaphore", "registers", "read", "write"]
WAITS: tuple[Waits, ...] = ("buffer", "semaphore", "registers", "read", "write")
# States that are kept to compare with.
_MOST_STATES = 5000
# Parts of one processor that are kept.
_MOST_PARTS = 20_000


@dataclass(frozen=True, slots=True)
class ProcessorTime:
    """The cycles in which one processor of a class worked, waited for each reason, and came to its end."""

    busy: int
    waits: dict[Waits, int]
    end: int


@dataclass(frozen=True, slots=True)
class TimeSlice:
    """Some time of one processor, in cycles: it works for `busy` of them, and waits for the rest, for a reason."""

    start: int
    end: int
    busy: int
    reason: Waits | None = None


@dataclass(frozen=True, slots=True)
class Period:
    """At a cycle, the `cycles` before it were added so many `times` more."""

    at: int
    cycles: int
    times: int


# Of each operation, by what: the cycles of `WORKS`, the bytes of `MOVES`, or the cycles in which it waits for a counter
# or a direction of transfers, by its name.
Costs = dict[tuple[Source | None, str], float]
WORKS, MOVES = "works", "moves"


@dataclass(frozen=True, slots=True)
class Replay:
    """The cycles until all kernels have ended, by class and processor; `stuck` names those that wait for ever.

    `events` counts those that were replayed one by one, `skipped` the cycles that were added as periods. Where it was
    asked for, `costs` has what the operations take, by class and processor, `parts` have what each processor did, in
    order, and `periods` what was added: both in cycles that leave out what was added before.
    """

    cycles: int
    processors: tuple[dict[ProcessorName, ProcessorTime], ...]
    stuck: tuple[str, ...]
    events: int
    skipped: int
    parts: tuple[dict[ProcessorName, tuple[TimeSlice, ...]], ...] = ()
    periods: tuple[Period, ...] = ()
    costs: tuple[dict[ProcessorName, Costs], ...] = ()


# What events become: a kind and three numbers each, because there are many.
_Instruction = tuple[int, int, int, int]
# The processor works for some cycles; or for a part of some, the second number, and waits for the rest, for a reason.
_BUSY, _RUN = 0, 9
# It waits until a counter is at least an amount, for a reason; to take it is to lower the counter by it.
_AWAIT, _TAKE = 1, 2
# A counter of the own core changes by an amount, or is set to it.
_RAISE, _SET = 3, 4
# Counters of other cores are raised after a delay: an entry of `sends`.
_SEND = 5
# A transfer is started, an entry of `starts`; the own transfers of a direction have left (0) or landed (1).
_START, _FINISH = 6, 7
# The end of a turn of a loop: its number, its turns, and where its first instruction is.
_NEXT = 8
# What follows is of an operation: an entry of `sources`.
_MARK = 10

_SEMAPHORE, _REGISTERS = WAITS.index("semaphore"), WAITS.index("registers")
# Where processors meet that run turns together: math has come as far as unpack is ahead; unpack, or math, has come as
# far as it is ahead of the next one.
_MEETING = (Counter("ahead", "registers"), Counter("unpacking", "registers"), Counter("computing", "registers"))
_MANY = 1 << 40

_DIRECTIONS: tuple[Direction, ...] = ("read", "write")
_RATE = operator.attrgetter("rate")


@dataclass(frozen=True, slots=True)
class _Start:
    """Transfers of a direction. When they have left, `counters` are raised after `arrival` cycles."""

    direction: Direction
    memory: Memory
    bytes: int
    cap: float
    latency: int
    pages: int
    counters: tuple[int, ...] = ()
    arrival: int = 0


_Sent = tuple[int, tuple[tuple[int, int], ...]]


@dataclass(slots=True, eq=False)
class _Flow:
    """Transfers of one processor that are going on, in one direction, with one memory. `cap` is the rate that they
    would have alone, `left` and `landed` are when the last ones ended."""

    processor: _Processor
    direction: Direction
    memory: Memory
    remaining: float = 0.0
    cap: float = 0.0
    rate: float = 0.0
    latency: int = 0
    # Of what remains.
    pages_per_byte: float = 0.0
    active: bool = False
    left: int = 0
    landed: int = 0
    # The cycles that it lost to the transfers of others, which share the bandwidth of DRAM.
    delay: float = 0.0
    # What arrives with the end: counters that are raised, and how long after it.
    arriving: tuple[int, ...] = ()
    arrival: int = 0


@dataclass(slots=True, eq=False)
class _Processor:
    name: ProcessorName
    group: int
    cores: int
    code: list[_Instruction]
    at: int = 0
    turns: list[int] = field(default_factory=list[int])
    flows: dict[tuple[Direction, Memory], _Flow] = field(default_factory=dict[tuple[Direction, Memory], _Flow])
    # How many of its flows are going on, by direction.
    active: dict[Direction, int] = field(default_factory=lambda: dict.fromkeys(_DIRECTIONS, 0))
    # Since when it waits and why; not while it works.
    since: int | None = None
    reason: int = 0
    waiting_for: Direction | None = None
    # Whether its cores are in step: until their transfers have waited for one another, after a signal of other cores.
    in_step: bool = True
    wakes: int = 0
    ended: int | None = None
    busy: int = 0
    waited: list[int] = field(default_factory=lambda: [0] * len(WAITS))
    parts: list[TimeSlice] = field(default_factory=list[TimeSlice])
    # Where costs are asked for: the operation that it runs, and what it waits for.
    source: Source | None = None
    awaited: str = ""
    costs: Costs = field(default_factory=dict[tuple[Source | None, str], float])


def replay(
    classes: Sequence[CoreClass], rates: Rates, *, by_periods: bool = True, with_parts: bool = False,
    with_costs: bool = False,
) -> Replay:  # fmt: skip
    """Run all classes of cores, from time 0 until their kernels have ended, or none can go on: `by_periods`, or else
    event by event. `with_parts`, what each processor does is kept, up to 20,000 parts of each; `with_costs`, what each
    operation takes that the events are marked with."""
    return _Machine(classes, rates, by_periods, with_parts, with_costs=with_costs).run()


def cycles_within(classes: Sequence[CoreClass], rates: Rates, limit: float) -> int | None:
    """The cycles of a replay; None if they are more than a limit, which takes no longer than to come there."""
    replayed = _Machine(classes, rates, True, False, limit).run()
    return replayed.cycles if replayed.cycles <= limit else None


class _Machine:
    def __init__(
        self, classes: Sequence[CoreClass], rates: Rates, by_periods: bool, with_parts: bool, limit: float = math.inf,
        with_costs: bool = False,
    ) -> None:  # fmt: skip
        self.limit = limit
        self.rates = rates
        self.with_parts = with_parts or with_costs
        self.with_costs = with_costs
        self.sources: list[Source] = []
        self.awaited: list[str] = []
        self.added: list[Period] = []
        self.classes = classes
        self.numbers: dict[tuple[str, Counter], int] = {}
        self.values: list[int] = []
        self.blocked: list[list[_Processor]] = []
        # Of turns that processors run together, how long each takes.
        self.together: dict[object, _Steady] = {}
        self.starts: list[_Start] = []
        self.sends: list[_Sent] = []
        self.processors: list[_Processor] = []
        for group, core_class in enumerate(classes):
            self.start = core_class.start
            for counter, value in core_class.start.items():
                self.values[self.number(core_class.name, counter)] = value
            for name in PROCESSORS:
                code: list[_Instruction] = []
                loops = self.translate(core_class.processors.get(name, ()), core_class.name, code, 0)
                self.processors.append(_Processor(name, group, len(core_class.cores), code, turns=[0] * loops))
        # A reader, if there is one with loops: it decides what the others wait for.
        first = max(
            self.processors,
            key=lambda processor: (bool(processor.turns), -PROCESSORS.index(processor.name), -processor.group),
        )
        self.anchor = first if by_periods else None
        self.flows: list[_Flow] = []
        self.flow_version = 0
        self.flows_at = 0
        self.time = 0
        self.base = 0
        self.heap: list[tuple[int, int, _Processor | int | tuple[tuple[int, int], ...]]] = []
        self.order = 0
        self.events = 0
        self.seen: dict[object, tuple[int, list[list[int]], list[int], list[Costs]]] = {}

    # Translation

    def number(self, group: str, counter: Counter) -> int:
        index = self.numbers.get((group, counter))
        if index is None:
            index = self.numbers[group, counter] = len(self.values)
            self.awaited.append(counter.name)
            self.values.append(0)
            self.blocked.append([])
        return index

    def translate(self, events: Sequence[Event], group: str, code: list[_Instruction], loops: int) -> int:
        """Append the instructions of events; returns the number of loops so far."""
        rates = self.rates
        for event in events:
            match event:
                case Attribution(source):
                    code.append((_MARK, len(self.sources), 0, 0))
                    self.sources.append(source)
                case Work(engine, cycles, _):
                    _busy(code, round(cycles * rates.busy[engine]))
                case Wait(counter, amount, takes):
                    reason = WAITS.index(counter.reason)
                    code.append((_TAKE if takes else _AWAIT, self.number(group, counter), amount, reason))
                case Give(counter, amount):
                    code.append((_RAISE, self.number(group, counter), amount, 0))
                case Put(counter, value):
                    code.append((_SET, self.number(group, counter), value, 0))
                case Signal(counter, amount, to):
                    code.append((_SEND, len(self.sends), 0, 0))
                    self.sends.append((rates.signal, ((self.number(to, counter), amount),)))
                    _busy(code, rates.issue["write", "l1"])
                case Transfer(_, _, 0, _) | MulticastSend(0, _, _, None, _):
                    pass
                case Transfer(direction, memory, count, transactions):
                    issue = rates.issue[direction, memory]
                    cap = min(rates.link, {"bank": rates.bank, "dram": rates.core, "l1": rates.link}[memory])
                    if issue:
                        cap = min(cap, count / transactions / issue)
                    latency = rates.latency[direction, memory]
                    self.begin(code, _Start(direction, memory, count, cap, latency, transactions))
                    _busy(code, issue * transactions)
                case MulticastSend(count, transactions, receivers, counter, to):
                    # Without bytes, the flag alone.
                    count, transactions = max(count, 1), max(transactions, 1)
                    issue = rates.issue["write", "l1"]
                    cap = rates.multicast_rate(receivers, count / transactions)
                    latency = rates.multicast_latency(receivers)
                    counters = () if counter is None else tuple(self.number(core, counter) for core in to)
                    self.begin(code, _Start("write", "l1", count, cap, latency, transactions, counters, latency // 2))
                    _busy(code, issue * (transactions + (counter is not None)))
                case Complete(direction, landed):
                    code.append((_FINISH, _DIRECTIONS.index(direction), int(landed), 0))
                case Together():
                    self.run_together(event, group, code)
                case Repeat(turns, body):
                    if turns < 1 or not body:
                        continue
                    loop, first = loops, len(code)
                    loops = self.translate(body, group, code, loops + 1)
                    code.append((_NEXT, loop, turns, first))
                case _:
                    assert_never(event)
        return loops

    def run_together(self, event: Together, group: str, code: list[_Instruction]) -> None:
        """Each processor takes as long as turns do that follow many others. Math begins behind unpack, and pack behind
        math, as far as they end behind each other without other cores; unpack gets no further ahead than there."""
        # Processors that run turns together have the same parts: to hash all that is in them takes long.
        same = event.turns, id(event.parts)
        steady = self.together.get(same) or self.together.get((event.turns, event.parts))
        if steady is None:
            steady = self.together[event.turns, event.parts] = _steady(event, self.start, self.rates)
        self.together[same] = steady
        ahead, unpacking, computing = (self.number(group, counter) for counter in _MEETING)
        behind, busy = steady.math - steady.period, steady.busy[event.own]
        packs_behind = steady.pack - steady.math
        match event.own:
            case "unpack":
                _run(code, steady.unpack, busy, ((behind, unpacking),))
                code.append((_TAKE, ahead, 1, _REGISTERS))
            case "math":
                code.append((_TAKE, unpacking, 1, _REGISTERS))
                _run(code, steady.period, busy, ((steady.unpack - behind, ahead), (packs_behind, computing)))
            case _:
                code.append((_TAKE, computing, 1, _REGISTERS))
                _run(code, steady.period, busy, ())

    def begin(self, code: list[_Instruction], start: _Start) -> None:
        code.append((_START, len(self.starts), 0, 0))
        self.starts.append(start)

    # Running

    def run(self) -> Replay:
        for processor in self.processors:
            self.wake(processor, 0)
        while self.heap:
            look_around()
            self.time, _, event = heapq.heappop(self.heap)
            if self.base + self.time > self.limit and any(processor.ended is None for processor in self.processors):
                return Replay(self.base + self.time, (), (), self.events, self.base)
            if isinstance(event, _Processor):
                if event.wakes == self.time and event.ended is None:
                    event.wakes = -1
                    self.advance(event)
            elif isinstance(event, int):
                if event == self.flow_version:
                    self.share()
            else:
                for counter, amount in event:
                    self.raised(counter, amount)
        stuck = tuple(
            f"{each.name} of {self.classes[each.group].name}" for each in self.processors if each.ended is None
        )  # fmt: skip
        times: list[dict[ProcessorName, ProcessorTime]] = [{} for _ in self.classes]
        for processor in self.processors:
            waits: dict[Waits, int] = {
                reason: cycles for reason, cycles in zip(WAITS, processor.waited, strict=True) if cycles
            }
            end = self.base + self.time if processor.ended is None else processor.ended
            times[processor.group][processor.name] = ProcessorTime(processor.busy, waits, end)
        cycles = max((processor.ended for processor in self.processors if processor.ended is not None), default=0)
        segments: list[dict[ProcessorName, tuple[TimeSlice, ...]]] = (
            [{} for _ in self.classes] if self.with_parts else []
        )
        for processor in self.processors if self.with_parts else ():
            segments[processor.group][processor.name] = tuple(processor.parts)
        costs: list[dict[ProcessorName, Costs]] = [{} for _ in self.classes] if self.with_costs else []
        for processor in self.processors if self.with_costs else ():
            costs[processor.group][processor.name] = processor.costs
        return Replay(
            cycles, tuple(times), stuck, self.events, self.base, tuple(segments), tuple(self.added), tuple(costs)
        )

    def push(self, time: int, event: _Processor | int | tuple[tuple[int, int], ...]) -> None:
        self.order += 1
        heapq.heappush(self.heap, (time, self.order, event))

    def wake(self, processor: _Processor, time: int) -> None:
        processor.wakes = time
        self.push(time, processor)

    def raised(self, counter: int, amount: int) -> None:
        self.values[counter] += amount
        if amount > 0 and self.blocked[counter]:
            self.released(counter)

    def released(self, counter: int) -> None:
        """Those that wait for no more than a counter now has look at it again."""
        blocked, value, waiting = self.blocked[counter], self.values[counter], list[_Processor]()
        for processor in blocked:
            if processor.code[processor.at][2] <= value:
                self.wake(processor, self.time)
            else:
                waiting.append(processor)
        blocked[:] = waiting

    def waited(self, processor: _Processor) -> None:
        if processor.since is not None:
            processor.waited[processor.reason] += self.time - processor.since
            if self.with_parts and self.time > processor.since:
                self.keep(processor, TimeSlice(processor.since, self.time, 0, WAITS[processor.reason]))
            processor.since, processor.awaited = None, ""

    def keep(self, processor: _Processor, segment: TimeSlice) -> None:
        if self.with_costs:
            waits = segment.end - segment.start - segment.busy
            for what, cycles in ((WORKS, segment.busy), (processor.awaited or f"{segment.reason}", waits)):
                if cycles:
                    charged = processor.source, what
                    processor.costs[charged] = processor.costs.get(charged, 0) + cycles
        elif len(processor.parts) < _MOST_PARTS:
            processor.parts.append(segment)

    def waits(self, processor: _Processor, reason: int, awaited: str = "") -> None:
        if processor.since is None:
            processor.since, processor.reason, processor.awaited = self.time, reason, awaited

    def advance(self, processor: _Processor) -> None:
        """Run a processor until it works, waits or ends."""
        code, values, blocked, heap, at = processor.code, self.values, self.blocked, self.heap, processor.at
        size = len(code)
        while at < size:
            kind, number, amount, operand = code[at]
            self.events += 1
            if kind in (_BUSY, _RUN):
                at += 1
                if kind == _BUSY:
                    processor.busy += number
                    if self.with_parts:
                        self.keep(processor, TimeSlice(self.time, self.time + number, number))
                else:
                    processor.busy += amount
                    processor.waited[operand] += number - amount
                    if self.with_parts:
                        self.keep(processor, TimeSlice(self.time, self.time + number, amount, WAITS[operand]))
                if heap and heap[0][0] <= self.time + number:
                    processor.at = at
                    self.wake(processor, self.time + number)
                    return
                # Nothing else happens before.
                self.time += number
                continue
            if kind in (_AWAIT, _TAKE):
                if values[number] < amount:
                    processor.at = at
                    self.waits(processor, operand, self.awaited[number])
                    blocked[number].append(processor)
                    return
                if processor.since is not None:
                    self.waited(processor)
                if operand == _SEMAPHORE:
                    processor.in_step = True
                if kind == _TAKE:
                    values[number] -= amount
            elif kind == _RAISE:
                values[number] += amount
                if amount > 0 and blocked[number]:
                    self.released(number)
            elif kind == _NEXT:
                processor.turns[number] += 1
                if processor.turns[number] < amount:
                    at = processor.at = operand
                    if processor is self.anchor:
                        self.repeat()
                    continue
                processor.turns[number] = 0
            elif kind == _START:
                self.begin_transfer(processor, self.starts[number])
            elif kind == _FINISH:
                processor.at = at
                if not self.finished(processor, _DIRECTIONS[number], bool(amount)):
                    return
            elif kind == _MARK:
                processor.source = self.sources[number]
            elif kind == _SEND:
                delay, counters = self.sends[number]
                self.push(self.time + delay, counters)
            else:
                assert kind == _SET
                self.raised(number, amount - values[number])
            at += 1
        processor.at = at
        # A kernel has ended when what it started has arrived.
        processor.ended = self.base + self.time

    def finished(self, processor: _Processor, direction: Direction, landed: bool) -> bool:
        if processor.active[direction]:
            self.waits(processor, WAITS.index(direction))
            processor.waiting_for = direction
            return False
        ready = 0
        for flow in processor.flows.values():
            if flow.direction == direction:
                ready = max(ready, flow.landed if landed else flow.left)
        if ready > self.time:
            self.waits(processor, WAITS.index(direction))
            self.wake(processor, ready)
            return False
        self.waited(processor)
        return True

    # Transfers

    def begin_transfer(self, processor: _Processor, start: _Start) -> None:
        if self.with_costs:
            charged = processor.source, MOVES
            processor.costs[charged] = processor.costs.get(charged, 0) + start.bytes
        flow = processor.flows.get((start.direction, start.memory))
        if flow is None:
            flow = processor.flows[start.direction, start.memory] = _Flow(processor, start.direction, start.memory)
        self.settle()
        if not flow.active:
            flow.active, flow.remaining, flow.latency, flow.delay = True, 0.0, 0, 0.0
            processor.active[flow.direction] += 1
            self.flows.append(flow)
        # One after another, each transfer takes the time that it takes alone.
        alone = start.bytes / start.cap + (flow.remaining / flow.cap if flow.remaining > 0 else 0.0)
        before = max(flow.remaining, 0.0)
        flow.remaining = before + start.bytes
        flow.pages_per_byte = (before * flow.pages_per_byte + start.pages) / flow.remaining
        flow.cap, flow.latency = flow.remaining / alone, max(flow.latency, start.latency)
        flow.arriving, flow.arrival = (*flow.arriving, *start.counters), max(flow.arrival, start.arrival)
        self.share()

    def settle(self) -> None:
        """Move what was transferred since the last time."""
        passed, self.flows_at = self.time - self.flows_at, self.time
        if passed:
            for flow in self.flows:
                flow.remaining -= flow.rate * passed
                flow.delay += passed * (1 - flow.rate * flow.processor.active[flow.direction] / flow.cap)

    def share(self) -> None:
        """End the transfers that are done, and share the bandwidth among the others."""
        self.settle()
        done = [flow for flow in self.flows if flow.remaining <= 0.01]
        if done:
            self.flows = [flow for flow in self.flows if flow.remaining > 0.01]
        for flow in done:
            processor = flow.processor
            flow.active, flow.remaining, flow.rate = False, 0.0, 0.0
            # Where cores are not in step, the ways of some are behind the waits of others at the banks: only what a
            # way takes longer than the wait is left.
            behind = 0 if processor.in_step else round(flow.delay)
            flow.left, flow.landed = self.time, self.time + max(0, flow.latency - behind)
            processor.in_step = processor.in_step and flow.delay < 1
            processor.active[flow.direction] -= 1
            if flow.arriving:
                self.push(self.time + flow.arrival, tuple((counter, 1) for counter in flow.arriving))
                flow.arriving, flow.arrival = (), 0
            if processor.waiting_for == flow.direction:
                processor.waiting_for = None
                self.wake(processor, self.time)
        self.flow_version += 1
        if not self.flows:
            return
        dram = self.rates.dram
        reads, writes = list[_Flow](), list[_Flow]()
        for flow in self.flows:
            # Those of one processor share its link.
            flow.rate = flow.cap / flow.processor.active[flow.direction]
            if flow.memory != "l1":
                (reads if flow.direction == "read" else writes).append(flow)
        total = _fill(reads, self.reading(reads)) + _fill(writes, dram["write"])
        if reads and writes and total > dram["both"]:
            for flow in (*reads, *writes):
                flow.rate *= dram["both"] / total
        soonest = min([flow.remaining / flow.rate for flow in self.flows])
        self.push(self.time + max(1, math.ceil(soonest - 1e-6)), self.flow_version)

    def reading(self, flows: list[_Flow]) -> float:
        """The rate at which all banks together deliver what these transfers read, of pages of several sizes."""
        cores = sum([flow.processor.cores for flow in flows])
        if not cores:
            return 0.0
        return self.rates.reading(sum([flow.processor.cores * flow.pages_per_byte for flow in flows]) / cores)

    # Periods

    def repeat(self) -> None:
        """Add the periods that follow, if the state is one that was seen before."""
        self.settle()
        now = self.time
        state = (
            tuple(
                (
                    processor.at, processor.since is None, processor.in_step,
                    processor.wakes - now if processor.wakes >= now else -1,
                    *(
                        (
                            round(flow.remaining), round(flow.remaining / flow.cap) if flow.active else 0,
                            round(flow.remaining * flow.pages_per_byte), max(0, flow.landed - now),
                            round(flow.delay) if flow.active else 0,
                        )
                        for flow in processor.flows.values()
                    ),
                )
                for processor in self.processors
            ),
            tuple(self.values),
            tuple(sorted((time - now, event) for time, _, event in self.heap if isinstance(event, tuple))),
        )  # fmt: skip
        turns = [list(processor.turns) for processor in self.processors]
        sums = [sum_ for processor in self.processors for sum_ in (processor.busy, *self.waited_so_far(processor))]
        costs = [self.costs_so_far(processor) for processor in self.processors] if self.with_costs else []
        before = self.seen.get(state)
        if len(self.seen) > _MOST_STATES:
            self.seen.clear()
        self.seen[state] = (now + self.base, turns, sums, costs)
        if before is None:
            return
        started, old_turns, old_sums, old_costs = before
        times = self.periods(old_turns, turns)
        if not times:
            return
        period = now + self.base - started
        self.added.append(Period(now, period, times))
        self.base += times * period
        for processor, old in zip(self.processors, old_turns, strict=True):
            processor.turns = [new + times * (new - was) for new, was in zip(processor.turns, old, strict=True)]
        added = iter(times * (new - was) for new, was in zip(sums, old_sums, strict=True))
        for processor in self.processors:
            processor.busy += next(added)
            processor.waited = [cycles + next(added) for cycles in processor.waited]
        for processor, new_costs, earlier in zip(self.processors if costs else (), costs, old_costs, strict=True):
            for charged, cycles in new_costs.items():
                more = times * (cycles - earlier.get(charged, 0))
                processor.costs[charged] = processor.costs.get(charged, 0) + more

    def costs_so_far(self, processor: _Processor) -> Costs:
        """With the wait that goes on."""
        costs = dict(processor.costs)
        if processor.since is not None:
            charged = processor.source, processor.awaited or WAITS[processor.reason]
            costs[charged] = costs.get(charged, 0) + self.time - processor.since
        return costs

    def waited_so_far(self, processor: _Processor) -> list[int]:
        cycles = list(processor.waited)
        if processor.since is not None:
            cycles[processor.reason] += self.time - processor.since
        return cycles

    def periods(self, old: list[list[int]], new: list[list[int]]) -> int:
        """How often what happened between two equal states will happen again: until some loop ends. 0 if a processor
        has come to the end of a loop in between, because then its loops are not where they were."""
        times: int | None = None
        for processor, before, after in zip(self.processors, old, new, strict=True):
            moved = [loop for loop, (was, now) in enumerate(zip(before, after, strict=True)) if was != now]
            if not moved:
                continue
            if len(moved) > 1 or after[moved[0]] < before[moved[0]]:
                return 0
            loop = moved[0]
            turns = next(turns for kind, number, turns, _ in processor.code if kind == _NEXT and number == loop)
            remaining = (turns - 1 - after[loop]) // (after[loop] - before[loop])
            times = remaining if times is None else min(times, remaining)
        return times or 0


@dataclass(frozen=True, slots=True)
class _Steady:
    """Turns that processors run together: when each of them ends without other cores, how long the same turns take
    behind many others, and the part of it in which each processor works."""

    unpack: int
    math: int
    pack: int
    period: int
    busy: dict[ProcessorName, int]


def _steady(event: Together, start: Mapping[Counter, int], rates: Rates) -> _Steady:
    def alone(turns: int) -> dict[ProcessorName, ProcessorTime]:
        loops: dict[ProcessorName, tuple[Event, ...]] = {name: (Repeat(turns, events),) for name, events in event.parts}
        return replay([CoreClass("one", ((0, 0),), loops, counters)], rates).processors[0]

    counters = dict(start)
    for _, events in event.parts:
        for step, _ in counted(events):
            if isinstance(step, Wait) and step.counter.reason == "buffer":
                # The turns before have left what these need.
                counters[step.counter] = _MANY
    once, twice = alone(event.turns), alone(2 * event.turns)
    busy: dict[ProcessorName, int] = {name: time.busy for name, time in once.items()}
    period = max(twice["math"].end - once["math"].end, *busy.values())
    return _Steady(once["unpack"].end, max(once["math"].end, period), once["pack"].end, period, busy)


def _run(code: list[_Instruction], cycles: int, busy: int, marks: tuple[tuple[int, int], ...]) -> None:
    """Run for some cycles, of which a part is work, and raise counters on the way."""
    gone = worked = 0
    for time, counter in (*sorted((min(max(time, 0), cycles), counter) for time, counter in marks), (cycles, -1)):
        work_cycles = busy * time // cycles - worked if cycles else 0
        if time > gone:
            code.append((_RUN, time - gone, work_cycles, _REGISTERS))
            gone, worked = time, worked + work_cycles
        if counter >= 0:
            code.append((_RAISE, counter, 1, 0))


def _busy(code: list[_Instruction], cycles: int) -> None:
    if cycles:
        code.append((_BUSY, cycles, 0, 0))


def _fill(flows: list[_Flow], limit: float) -> float:
    """Share a limit among flows of several cores each, none above its rate. Returns the rate of all together."""
    if not flows:
        return 0.0
    remaining, cores = limit, sum([flow.processor.cores for flow in flows])
    total = 0.0
    for flow in sorted(flows, key=_RATE):
        count = flow.processor.cores
        flow.rate = min(flow.rate, remaining / cores, UNLIMITED)
        remaining -= flow.rate * count
        cores -= count
        total += flow.rate * count
    return total
