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


@dataclass(frozen=True, slots=True)
class Replay:
    """The cycles until all kernels have ended, by class and processor; `stuck` names those that wait for ever.

    `events` counts those that were replayed one by one, `skipped` the cycles that were added as periods. Where it was
    asked for, `parts` have what each processor did, in order, and `periods` what was added: both in cycles that leave
    out what was added before.
    """

    cycles: int
    processors: tuple[dict[ProcessorName, ProcessorTime], ...]
    stuck: tuple[str, ...]
    events: int
    skipped: int
    parts: tuple[dict[ProcessorName, tuple[TimeSlice, ...]], ...] = ()
    periods: tuple[Period, ...] = ()


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

_REGISTERS = WAITS.index("registers")
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
    active: bool = False
    left: int = 0
    landed: int = 0
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
    wakes: int = 0
    ended: int | None = None
    busy: int = 0
    waited: list[int] = field(default_factory=lambda: [0] * len(WAITS))
    parts: list[TimeSlice] = field(default_factory=list[TimeSlice])


def replay(
    classes: Sequence[CoreClass], rates: Rates, *, by_periods: bool = True, with_parts: bool = False
) -> Replay:  # fmt: skip
    """Run all classes of cores, from time 0 until their kernels have ended, or none can go on: `by_periods`, or else
    event by event. `with_parts`, what each processor does is kept, up to 20,000 parts of each."""
    return _Machine(classes, rates, by_periods, with_parts).run()


def cycles_within(classes: Sequence[CoreClass], rates: Rates, limit: float) -> int | None:
    """The cycles of a replay; None if they are more than a limit, which takes no longer than to come there."""
    found = _Machine(classes, rates, True, False, limit).run()
    return found.cycles if found.cycles <= limit else None


class _Machine:
    def __init__(
        self, classes: Sequence[CoreClass], rates: Rates, by_periods: bool, with_parts: bool, limit: float = math.inf
    ) -> None:  # fmt: skip
        self.limit = limit
        self.rates = rates
        self.with_parts = with_parts
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
        for group, one in enumerate(classes):
            self.start = one.start
            for counter, value in one.start.items():
                self.values[self.number(one.name, counter)] = value
            for name in PROCESSORS:
                code: list[_Instruction] = []
                loops = self.translate(one.processors.get(name, ()), one.name, code, 0)
                self.processors.append(_Processor(name, group, len(one.cores), code, turns=[0] * loops))
        # A reader, if there is one with loops: it decides what the others wait for.
        first = max(self.processors, key=lambda one: (bool(one.turns), -PROCESSORS.index(one.name), -one.group))
        self.anchor = first if by_periods else None
        self.flows: list[_Flow] = []
        self.flow_version = 0
        self.flows_at = 0
        self.time = 0
        self.base = 0
        self.heap: list[tuple[int, int, _Processor | int | tuple[tuple[int, int], ...]]] = []
        self.order = 0
        self.events = 0
        self.seen: dict[object, tuple[int, list[list[int]], list[int]]] = {}

    # Translation

    def number(self, group: str, counter: Counter) -> int:
        found = self.numbers.get((group, counter))
        if found is None:
            found = self.numbers[group, counter] = len(self.values)
            self.values.append(0)
            self.blocked.append([])
        return found

    def translate(self, events: Sequence[Event], group: str, code: list[_Instruction], loops: int) -> int:
        """Append the instructions of events; returns the number of loops so far."""
        rates = self.rates
        for event in events:
            match event:
                case Work(engine, cycles, _):
                    if engine in rates.busy and cycles:
                        code.append((_BUSY, cycles, 0, 0))
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
                    cap = min(rates.link, rates.bank) if memory == "bank" else rates.link
                    if issue:
                        cap = min(cap, count / transactions / issue)
                    latency = rates.latency[direction, memory]
                    self.begin(code, _Start(direction, memory, count, cap, latency))
                    _busy(code, issue * transactions)
                case MulticastSend(count, transactions, receivers, counter, to):
                    # Without bytes, the flag alone.
                    count, transactions = max(count, 1), max(transactions, 1)
                    issue = rates.issue["write", "l1"]
                    cap = min(rates.link, count / transactions / issue) if issue else rates.link
                    latency = rates.multicast_latency(receivers)
                    given = () if counter is None else tuple(self.number(one, counter) for one in to)
                    self.begin(code, _Start("write", "l1", count, cap, latency, given, latency // 2))
                    _busy(code, issue * (transactions + (counter is not None)))
                case Complete(direction, landed):
                    code.append((_FINISH, _DIRECTIONS.index(direction), int(landed), 0))
                case Together():
                    self.run_together(event, group, code)
                case Repeat(turns, body):
                    if turns < 1 or not body:
                        continue
                    own, first = loops, len(code)
                    loops = self.translate(body, group, code, loops + 1)
                    code.append((_NEXT, own, turns, first))
                case _:
                    assert_never(event)
        return loops

    def run_together(self, event: Together, group: str, code: list[_Instruction]) -> None:
        """Each processor takes as long as turns do that follow many others. Math begins behind unpack, and pack behind
        math, as far as they end behind each other without other cores; unpack gets no further ahead than there."""
        # Processors that run turns together have the same parts: to hash all that is in them takes long.
        same = event.turns, id(event.parts)
        found = self.together.get(same) or self.together.get((event.turns, event.parts))
        if found is None:
            found = self.together[event.turns, event.parts] = _steady(event, self.start, self.rates)
        self.together[same] = found
        ahead, unpacking, computing = (self.number(group, one) for one in _MEETING)
        behind, own = found.math - found.period, found.busy[event.own]
        packs_behind = found.pack - found.math
        match event.own:
            case "unpack":
                _run(code, found.unpack, own, ((behind, unpacking),))
                code.append((_TAKE, ahead, 1, _REGISTERS))
            case "math":
                code.append((_TAKE, unpacking, 1, _REGISTERS))
                _run(code, found.period, own, ((found.unpack - behind, ahead), (packs_behind, computing)))
            case _:
                code.append((_TAKE, computing, 1, _REGISTERS))
                _run(code, found.period, own, ())

    def begin(self, code: list[_Instruction], start: _Start) -> None:
        code.append((_START, len(self.starts), 0, 0))
        self.starts.append(start)

    # Running

    def run(self) -> Replay:
        for one in self.processors:
            self.wake(one, 0)
        while self.heap:
            look_around()
            self.time, _, what = heapq.heappop(self.heap)
            if self.base + self.time > self.limit and any(one.ended is None for one in self.processors):
                return Replay(self.base + self.time, (), (), self.events, self.base)
            if isinstance(what, _Processor):
                if what.wakes == self.time and what.ended is None:
                    what.wakes = -1
                    self.advance(what)
            elif isinstance(what, int):
                if what == self.flow_version:
                    self.share()
            else:
                for counter, amount in what:
                    self.raised(counter, amount)
        stuck = tuple(
            f"{one.name} of {self.classes[one.group].name}" for one in self.processors if one.ended is None
        )  # fmt: skip
        times: list[dict[ProcessorName, ProcessorTime]] = [{} for _ in self.classes]
        for one in self.processors:
            waits: dict[Waits, int] = {
                reason: cycles for reason, cycles in zip(WAITS, one.waited, strict=True) if cycles
            }
            end = self.base + self.time if one.ended is None else one.ended
            times[one.group][one.name] = ProcessorTime(one.busy, waits, end)
        cycles = max((one.ended for one in self.processors if one.ended is not None), default=0)
        parts: list[dict[ProcessorName, tuple[TimeSlice, ...]]] = [{} for _ in self.classes] if self.with_parts else []
        for one in self.processors if self.with_parts else ():
            parts[one.group][one.name] = tuple(one.parts)
        return Replay(cycles, tuple(times), stuck, self.events, self.base, tuple(parts), tuple(self.added))

    def push(self, time: int, what: _Processor | int | tuple[tuple[int, int], ...]) -> None:
        self.order += 1
        heapq.heappush(self.heap, (time, self.order, what))

    def wake(self, one: _Processor, time: int) -> None:
        one.wakes = time
        self.push(time, one)

    def raised(self, counter: int, amount: int) -> None:
        self.values[counter] += amount
        if amount > 0 and self.blocked[counter]:
            self.released(counter)

    def released(self, counter: int) -> None:
        """Those that wait for no more than a counter now has look at it again."""
        blocked, value, left = self.blocked[counter], self.values[counter], list[_Processor]()
        for one in blocked:
            if one.code[one.at][2] <= value:
                self.wake(one, self.time)
            else:
                left.append(one)
        blocked[:] = left

    def waited(self, one: _Processor) -> None:
        if one.since is not None:
            one.waited[one.reason] += self.time - one.since
            if self.with_parts and self.time > one.since:
                self.keep(one, TimeSlice(one.since, self.time, 0, WAITS[one.reason]))
            one.since = None

    def keep(self, one: _Processor, part: TimeSlice) -> None:
        if len(one.parts) < _MOST_PARTS:
            one.parts.append(part)

    def waits(self, one: _Processor, reason: int) -> None:
        if one.since is None:
            one.since, one.reason = self.time, reason

    def advance(self, one: _Processor) -> None:
        """Run a processor until it works, waits or ends."""
        code, values, blocked, heap, at = one.code, self.values, self.blocked, self.heap, one.at
        size = len(code)
        while at < size:
            kind, number, amount, other = code[at]
            self.events += 1
            if kind in (_BUSY, _RUN):
                at += 1
                if kind == _BUSY:
                    one.busy += number
                    if self.with_parts:
                        self.keep(one, TimeSlice(self.time, self.time + number, number))
                else:
                    one.busy += amount
                    one.waited[other] += number - amount
                    if self.with_parts:
                        self.keep(one, TimeSlice(self.time, self.time + number, amount, WAITS[other]))
                if heap and heap[0][0] <= self.time + number:
                    one.at = at
                    self.wake(one, self.time + number)
                    return
                # Nothing else happens before.
                self.time += number
                continue
            if kind in (_AWAIT, _TAKE):
                if values[number] < amount:
                    one.at = at
                    self.waits(one, other)
                    blocked[number].append(one)
                    return
                if one.since is not None:
                    self.waited(one)
                if kind == _TAKE:
                    values[number] -= amount
            elif kind == _RAISE:
                values[number] += amount
                if amount > 0 and blocked[number]:
                    self.released(number)
            elif kind == _NEXT:
                one.turns[number] += 1
                if one.turns[number] < amount:
                    at = one.at = other
                    if one is self.anchor:
                        self.repeat()
                    continue
                one.turns[number] = 0
            elif kind == _START:
                self.begin_transfer(one, self.starts[number])
            elif kind == _FINISH:
                one.at = at
                if not self.finished(one, _DIRECTIONS[number], bool(amount)):
                    return
            elif kind == _SEND:
                delay, counters = self.sends[number]
                self.push(self.time + delay, counters)
            else:
                assert kind == _SET
                self.raised(number, amount - values[number])
            at += 1
        one.at = at
        # A kernel has ended when what it started has arrived.
        one.ended = self.base + self.time

    def finished(self, one: _Processor, direction: Direction, landed: bool) -> bool:
        if one.active[direction]:
            self.waits(one, WAITS.index(direction))
            one.waiting_for = direction
            return False
        ready = 0
        for flow in one.flows.values():
            if flow.direction == direction:
                ready = max(ready, flow.landed if landed else flow.left)
        if ready > self.time:
            self.waits(one, WAITS.index(direction))
            self.wake(one, ready)
            return False
        self.waited(one)
        return True

    # Transfers

    def begin_transfer(self, one: _Processor, start: _Start) -> None:
        flow = one.flows.get((start.direction, start.memory))
        if flow is None:
            flow = one.flows[start.direction, start.memory] = _Flow(one, start.direction, start.memory)
        self.settle()
        if not flow.active:
            flow.active, flow.remaining, flow.latency = True, 0.0, 0
            one.active[flow.direction] += 1
            self.flows.append(flow)
        # One after another, each transfer takes the time that it takes alone.
        alone = start.bytes / start.cap + (flow.remaining / flow.cap if flow.remaining > 0 else 0.0)
        flow.remaining = max(flow.remaining, 0.0) + start.bytes
        flow.cap, flow.latency = flow.remaining / alone, max(flow.latency, start.latency)
        flow.arriving, flow.arrival = (*flow.arriving, *start.counters), max(flow.arrival, start.arrival)
        self.share()

    def settle(self) -> None:
        """Move what was transferred since the last time."""
        passed, self.flows_at = self.time - self.flows_at, self.time
        if passed:
            for flow in self.flows:
                flow.remaining -= flow.rate * passed

    def share(self) -> None:
        """End the transfers that are done, and share the bandwidth among the others."""
        self.settle()
        done = [flow for flow in self.flows if flow.remaining <= 0.01]
        if done:
            self.flows = [flow for flow in self.flows if flow.remaining > 0.01]
        for flow in done:
            processor = flow.processor
            flow.active, flow.remaining, flow.rate = False, 0.0, 0.0
            flow.left, flow.landed = self.time, self.time + flow.latency
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
        total = _fill(reads, dram["read"]) + _fill(writes, dram["write"])
        if total > dram["both"]:
            for flow in (*reads, *writes):
                flow.rate *= dram["both"] / total
        soonest = min([flow.remaining / flow.rate for flow in self.flows])
        self.push(self.time + max(1, math.ceil(soonest - 1e-6)), self.flow_version)

    # Periods

    def repeat(self) -> None:
        """Add the periods that follow, if the state is one that was seen before."""
        self.settle()
        now = self.time
        state = (
            tuple(
                (
                    one.at, one.since is None, one.wakes - now if one.wakes >= now else -1,
                    *(
                        (
                            round(flow.remaining), round(flow.remaining / flow.cap) if flow.active else 0,
                            max(0, flow.landed - now),
                        )
                        for flow in one.flows.values()
                    ),
                )
                for one in self.processors
            ),
            tuple(self.values),
            tuple(sorted((time - now, what) for time, _, what in self.heap if isinstance(what, tuple))),
        )  # fmt: skip
        turns = [list(one.turns) for one in self.processors]
        sums = [sum_ for one in self.processors for sum_ in (one.busy, *self.waited_so_far(one))]
        before = self.seen.get(state)
        if len(self.seen) > _MOST_STATES:
            self.seen.clear()
        self.seen[state] = (now + self.base, turns, sums)
        if before is None:
            return
        started, old_turns, old_sums = before
        times = self.periods(old_turns, turns)
        if not times:
            return
        period = now + self.base - started
        self.added.append(Period(now, period, times))
        self.base += times * period
        for one, old in zip(self.processors, old_turns, strict=True):
            one.turns = [new + times * (new - was) for new, was in zip(one.turns, old, strict=True)]
        added = iter(times * (new - was) for new, was in zip(sums, old_sums, strict=True))
        for one in self.processors:
            one.busy += next(added)
            one.waited = [cycles + next(added) for cycles in one.waited]

    def waited_so_far(self, one: _Processor) -> list[int]:
        cycles = list(one.waited)
        if one.since is not None:
            cycles[one.reason] += self.time - one.since
        return cycles

    def periods(self, old: list[list[int]], new: list[list[int]]) -> int:
        """How often what happened between two equal states will happen again: until some loop ends. 0 if a processor
        has come to the end of a loop in between, because then its loops are not where they were."""
        times: int | None = None
        for one, before, after in zip(self.processors, old, new, strict=True):
            moved = [loop for loop, (was, now) in enumerate(zip(before, after, strict=True)) if was != now]
            if not moved:
                continue
            if len(moved) > 1 or after[moved[0]] < before[moved[0]]:
                return 0
            loop = moved[0]
            turns = next(turns for kind, number, turns, _ in one.code if kind == _NEXT and number == loop)
            left = (turns - 1 - after[loop]) // (after[loop] - before[loop])
            times = left if times is None else min(times, left)
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
        for one, _ in counted(events):
            if isinstance(one, Wait) and one.counter.reason == "buffer":
                # The turns before have left what these need.
                counters[one.counter] = _MANY
    once, twice = alone(event.turns), alone(2 * event.turns)
    busy: dict[ProcessorName, int] = {name: time.busy for name, time in once.items()}
    period = max(twice["math"].end - once["math"].end, *busy.values())
    return _Steady(once["unpack"].end, max(once["math"].end, period), once["pack"].end, period, busy)


def _run(code: list[_Instruction], cycles: int, busy: int, marks: tuple[tuple[int, int], ...]) -> None:
    """Run for some cycles, of which a part is work, and raise counters on the way."""
    gone = worked = 0
    for time, counter in (*sorted((min(max(time, 0), cycles), counter) for time, counter in marks), (cycles, -1)):
        part = busy * time // cycles - worked if cycles else 0
        if time > gone:
            code.append((_RUN, time - gone, part, _REGISTERS))
            gone, worked = time, worked + part
        if counter >= 0:
            code.append((_RAISE, counter, 1, 0))


def _busy(code: list[_Instruction], cycles: int) -> None:
    if cycles:
        code.append((_BUSY, cycles, 0, 0))


def _fill(flows: list[_Flow], limit: float) -> float:
    """Share a limit among flows of several cores each, none above its rate. Returns the rate of all together."""
    if not flows:
        return 0.0
    left, cores = limit, sum([flow.processor.cores for flow in flows])
    total = 0.0
    for flow in sorted(flows, key=_RATE):
        count = flow.processor.cores
        flow.rate = min(flow.rate, left / cores, UNLIMITED)
        left -= flow.rate * count
        cores -= count
        total += flow.rate * count
    return total
