"""Check that cores that share an input, or hand on partial sums, agree: who sends and who receives, how often, which
blocks, and in what order.

The kernels of all cores that do that, readers and writers, are followed together through some turns of their loops, as
far as they wait for each other. That they also wait for room, and a writer for results, changes nothing:
:func:`check_handshake` shows that a core whose blocks arrive always comes to its next one. As all cores run the same
kernels, and share only between those that make the same steps, they can make these steps together: those that do the
same, and do not reach one another, are one case. The numbers of blocks, and the pages they are made of, are compared
over all turns.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from ttexplore.control import look_around
from ttexplore.errors import ResourceError, VerifyError
from ttexplore.ir.arithmetic.index import CoreItem, Expression, Range, Values, decided
from ttexplore.ir.kernel import Allocation, Bind, Body, Branch, Call, Kernel, Loop, Store, calls, kernel_name
from ttexplore.ops.semaphores import (
    BLOCK_MULTICASTS,
    CORNERS,
    NOC_MULTICAST_TO_ALL,
    NOC_SEND_BLOCK,
    RECEIVE_SENT,
    SEMAPHORE_MULTICAST_TO_ALL,
    SEMAPHORE_MULTICASTS,
    SEMAPHORE_SET,
    SEMAPHORE_UP,
    SEMAPHORE_WAIT,
)
from ttexplore.passes.verify.agreement import Place, check_core_values, disagreement
from ttexplore.passes.verify.alike_cores import Apart, CoreRanges, by_likeness
from ttexplore.passes.verify.ends import PROTOCOL
from ttexplore.passes.verify.needed_pages import Pages, needed_pages
from ttexplore.passes.verify.partial_sums import check_counts, check_next, check_places, check_told, sums_of_send
from ttexplore.plan import FIRST_CORNERS, NOC_OF_ROLE, CoreWork, Multicast, Partition, Plan, SharedInput
from ttexplore.target import Target

# How many turns of a loop are followed: the first, and one that finds what the turn before it left. Loops that are all
# that loops around them repeat make one sequence of turns with these.
_TURNS = 2
# Of cores that wait for each other, so many are told.
_MOST_TOLD = 8
# Room for so many pages of a block, and twice as much when that is full.
_PAGES = 16
_NO_PAGES = np.empty(0, np.int64)


def check_shared(plan: Plan, target: Target) -> None:
    """The plan's rectangles and semaphores fit the cores, each of which knows its part. Raises VerifyError, or
    ResourceError for semaphores."""
    numbers = Counter(number for number, _ in plan.semaphores)
    for number, name in plan.semaphores:
        if not 0 <= number < target.semaphores:
            raise ResourceError(
                "R007",
                f"{name} is semaphore {number}; {target.name} has {target.semaphores} per core",
                hint="share fewer inputs",
            )
        if numbers[number] > 1:
            raise VerifyError(
                "V044", f"{name} and another semaphore have the number {number}", hint="number them one by one"
            )
    assert plan.partition is not None or not plan.shared, "B1 decides both"
    for shared in plan.shared:
        assert plan.partition is not None
        _check_rectangles(shared, plan.partition)


def _check_rectangles(shared: SharedInput, partition: Partition) -> None:
    running = {(core.x, core.y): core for core in partition.cores}
    counts = Counter(core for multicast in shared.multicasts for core in multicast.cores.cores)
    for core, number in counts.items():
        if core not in running:
            raise VerifyError(
                "V041",
                f"{shared.tensor} is sent to core {core}, which has no work",
                hint="keep rectangles within the cores of the partition",
            )
        if number > 1:
            raise disagreement(f"core {core} is in {number} rectangles of {shared.tensor}", "give it one sender")
    if missing := running.keys() - counts.keys():
        raise disagreement(
            f"core {min(missing)} is in no rectangle of {shared.tensor}, so it neither reads nor receives it",
            "put each core into one rectangle, if need be alone",
        )
    for multicast in shared.multicasts:
        _check_rectangle(shared, multicast)
    check_core_values(shared.core_values, shared.tensor, "rectangle", partition)


def _check_rectangle(shared: SharedInput, multicast: Multicast) -> None:
    (left, top), (right, bottom) = multicast.cores.first, multicast.cores.last
    flat = {"row": top == bottom, "column": left == right, "grid": True}[shared.topology]
    at_start = multicast.sender == multicast.cores.first
    if not (flat and at_start and left <= right and top <= bottom):
        raise disagreement(
            f"core {multicast.sender} sends {shared.tensor} to the cores from {multicast.cores.first} to "
            f"{multicast.cores.last}, which "
            f"is no {shared.topology} that begins with it",
            "let the first core of a row, a column or a rectangle send",
        )


# The kernels that load


def check_multicasts(kernels: Mapping[str, Kernel], plan: Plan) -> None:
    """Run what the kernels of all cores do for other cores. Raises VerifyError where a wait never ends, where a sender
    writes to room that a receiver has not reserved, and where they are at different blocks."""
    partition = plan.partition
    calls_of = {role: calls(kernels[role].body) for role in ("reader", "writer")}
    events = {role: [call for call in role_calls if call.op in _EVENTS] for role, role_calls in calls_of.items()}
    loaders = {shared.tensor: plan.buffer(shared.buffer).producer for shared in plan.shared}
    for shared in plan.shared:
        role = loaders[shared.tensor]
        talks = any(event.values.get("semaphore") in (shared.ready, shared.valid) for event in events[role])
        if not talks and any(call.name in PROTOCOL for call in calls_of[role]):
            raise disagreement(
                f"{kernel_name(role)} reads {shared.tensor} on every core; the plan says that cores share it",
                "send its blocks, or remove it from the shared inputs",
            )
    hands_on = any(event.op is NOC_SEND_BLOCK for event in events["writer"])
    if plan.partials and not hands_on and any(call.name in PROTOCOL for call in calls_of["writer"]):
        raise disagreement(
            f"the writer of each core updates {plan.partials[0].tensor} by itself; the plan says that cores hand it on",
            "send its blocks, or remove it from the partial sums",
        )
    sending = [role for role, role_events in events.items() if role_events]
    if partition is None or not sending:
        return
    groups = _followed({role: kernels[role] for role in sending}, plan, partition)
    numbers = {core: group.numbers for group in groups for core in group.places}
    for shared in plan.shared:
        _check_numbers(shared, numbers, events[loaders[shared.tensor]][0])
    for sums in plan.partials:
        check_counts(sums, numbers, events["writer"][0])
    _run(groups, plan, partition)
    for sums in plan.partials:
        check_places(sums, kernels["writer"], partition)
    needed = {
        role: needed_pages(kernels[role], partition.cores, {shared.buffer for shared in plan.shared})
        for role in dict.fromkeys(loaders.values())
    }
    for shared in plan.shared:
        role = loaders[shared.tensor]
        _check_pages(shared, kernels[role], needed[role])


_EVENTS = frozenset(
    {
        SEMAPHORE_SET, SEMAPHORE_WAIT, SEMAPHORE_UP, RECEIVE_SENT, NOC_SEND_BLOCK, *BLOCK_MULTICASTS,
        *SEMAPHORE_MULTICASTS,
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Event:
    """An operation of cores that do the same, with the values of its operands; `needs` is not run, but says what page a
    block is made of."""

    call: Call
    values: Mapping[str, Values]
    needs: tuple[str, Range] | None = None

    def of_each(self, count: int) -> Iterator[_Event]:
        """The same for each of so many cores."""
        columns = [_column(value, count) for value in self.values.values()]
        values = [dict(zip(self.values, row, strict=True)) for row in zip(*columns, strict=True)]
        if self.needs is None:
            return (_Event(self.call, core_values) for core_values in values or [{}] * count)
        pages = zip(*(_column(limit, count) for limit in self.needs[1]), strict=True)
        return (_Event(self.call, {}, (self.needs[0], page)) for page in pages)


def _column(values: Values, count: int) -> list[int]:
    """The value on each of so many cores."""
    if not isinstance(values, np.ndarray):
        return [int(values)] * count
    column: list[int] = values.tolist()
    return column if len(column) == count else column * count


@dataclass(frozen=True, slots=True)
class _Group:
    """Cores that do the same: what their kernels do, by role, and the numbers of all operations."""

    places: Sequence[Place]
    kernels: Mapping[str, Sequence[_Event]]
    numbers: Mapping[tuple[str, int | str], int]

    def split(self) -> Iterator[_Group]:
        """Each core alone."""
        count = len(self.places)
        kernels = {role: [event.of_each(count) for event in events] for role, events in self.kernels.items()}
        for core in self.places:
            look_around()
            yield _Group([core], {role: [*map(next, events)] for role, events in kernels.items()}, self.numbers)


def _followed(kernels: Mapping[str, Kernel], plan: Plan, partition: Partition) -> list[_Group]:
    """All cores, with what their kernels do."""

    def follow(cores: Sequence[CoreWork]) -> dict[str, _Followed]:
        followed: dict[str, _Followed] = {}
        for role, kernel in kernels.items():
            followed[role] = _Followed(plan, cores)
            followed[role].body(kernel.body)
        return followed

    try:
        groups = by_likeness(
            partition.cores, follow, [sharing.named("sends") for sharing in (*plan.shared, *plan.partials)]
        )
    except VerifyError:
        # The first core of which something is wrong is told, not the first group.
        groups = [([core], follow([core])) for core in partition.cores]
    number = {(work.x, work.y): number for number, work in enumerate(partition.cores)}
    groups.sort(key=lambda group: number[group[0][0].x, group[0][0].y])
    return [
        _Group(
            [(work.x, work.y) for work in works], {role: follower.events for role, follower in followed.items()},
            sum((follower.numbers for follower in followed.values()), Counter[tuple[str, int | str]]()),
        )
        for works, followed in groups
    ]  # fmt: skip


class _Followed:
    """The operations of one kernel, on cores that do the same, that other cores have to do with, in order, for some
    turns of its loops. `numbers` counts those of all turns, by operation and semaphore or circular buffer."""

    def __init__(self, plan: Plan, cores: Sequence[CoreWork]) -> None:
        self.buffers = {*(shared.buffer for shared in plan.shared), *(sums.received for sums in plan.partials)}
        self.cores = cores
        self.ranges = CoreRanges(cores)
        self.events: list[_Event] = []
        self.numbers: Counter[tuple[str, int | str]] = Counter()
        self.times = 1
        # Whether only the pages of blocks are wanted, of the arm that another core takes.
        self.is_elsewhere = False

    def body(self, body: Body) -> None:
        for statement in body:
            match statement:
                case Call():
                    self.call(statement)
                case Bind():
                    self.bind(statement)
                case Loop():
                    self.loop(statement)
                case Branch():
                    holds = self.holds(statement.condition)
                    arms = (statement.then, statement.otherwise)
                    if holds is None and any(map(self.concerns, calls([*statement.then, *statement.otherwise]))):
                        raise disagreement(
                            "whether a block is sent depends on more than the core",
                            "decide it by core values",
                            calls([*statement.then, *statement.otherwise])[0],
                        )
                    self.elsewhere(arms[1] if holds else arms[0])
                    self.body(arms[0] if holds else arms[1])
                case Allocation() | Store():
                    pass
                case _:
                    assert_never(statement)

    def elsewhere(self, body: Body) -> None:
        """What another core reads in the arm of a branch that this one does not take."""
        before, self.is_elsewhere = self.is_elsewhere, True
        self.body(body)
        self.is_elsewhere = before

    def concerns(self, call: Call) -> bool:
        return call.op in _EVENTS or (call.name in PROTOCOL and call.buffer("cb") in self.buffers)

    def call(self, call: Call) -> None:
        buffer = call.buffer("cb") if "cb" in call.buffers else ""
        if buffer in self.buffers and "page" in call.values:
            page = self.ranges.of(call.values["page"])
            if page is not None:
                self.events.append(_Event(call, {}, (buffer, page)))
        if self.is_elsewhere or not self.concerns(call):
            return
        values: dict[str, Values] = {
            name: value if type(value) is int else self.number(value, call) for name, value in call.values.items()
        }
        self.events.append(_Event(call, values))
        on: int | str = buffer
        if "semaphore" in values:
            on = values["semaphore"] = self.ranges.same(values["semaphore"])
        self.numbers[call.name, on] += self.times

    def number(self, value: Expression, call: Call) -> Values:
        bounds = self.ranges.of(value)
        if bounds is None or not _is_exact(bounds):
            raise disagreement(
                f"{call.op.name}: an operand has no known value on core ({self.cores[0].x}, {self.cores[0].y})",
                "compute it from core values",
                call,
            )
        return bounds[0]

    def holds(self, condition: Expression) -> bool | None:
        """Whether a condition holds; None where that is not decided."""
        bounds = self.ranges.of(condition)
        if bounds is not None and bounds[0] is bounds[1]:
            return bool(self.ranges.same(np.not_equal(bounds[0], 0)))
        return decided(condition, self.ranges.known)

    def bind(self, bind: Bind) -> None:
        value = bind.value
        bounds = self.ranges.item(value) if isinstance(value, CoreItem) else self.ranges.of(value)
        self.ranges.learn(bind.variable, bounds)

    def loop(self, loop: Loop) -> None:
        if (counted := self.counted(loop)) is None:
            return
        low, turns = counted
        before, followed = self.times, min(turns, _TURNS)
        for index in range(followed):
            now = low + index
            goes_on = index == 0 and turns > 1 and self.goes_on(loop, low)
            self.ranges.learn(loop.variable, (now, now))
            # The last one that is followed stands for those that are not.
            self.times = before * (turns if goes_on else 1 if index < followed - 1 else turns - followed + 1)
            self.body(loop.body)
            if goes_on:
                break
        self.times = before

    def counted(self, loop: Loop) -> tuple[Values, int] | None:
        """Where a loop starts, and how many turns it makes; None where that is not known and concerns nobody else."""
        low, extent = self.ranges.of(loop.low), self.ranges.of(loop.extent)
        if low is None or extent is None or not (_is_exact(low) and _is_exact(extent)):
            if concerned := [call for call in calls(loop.body) if self.concerns(call)]:
                raise disagreement(
                    "a block is sent in a loop whose length is not known", "use loops of constant length", concerned[0]
                )
            return None
        return low[0], self.ranges.same(extent[0])

    def goes_on(self, loop: Loop, low: Values) -> bool:
        """Whether a loop only repeats another one, with as many turns in its second turn as in its first: they make one
        sequence of turns, of which the first turn follows enough."""
        if _only_loop(loop) is None:
            return False
        second, first = (self.nested(loop, low + index) for index in (1, 0))
        same = all(
            earlier[1] == later[1] and np.array_equal(earlier[0], later[0])
            for earlier, later in zip(first, second, strict=False)
        )
        return same and len(first) == len(second) and math.prod(turns for _, turns in first) >= _TURNS

    def nested(self, loop: Loop, value: Values) -> list[tuple[Values, int]]:
        """Where the loops that are all that others repeat start, from the inside of a loop on, in the first of their
        turns, and how many turns they make; none from one on whose number of turns is not known."""
        self.ranges.learn(loop.variable, (value, value))
        nested = _only_loop(loop)
        if nested is None:
            return []
        for statement in loop.body:
            if isinstance(statement, Bind):
                self.bind(statement)
        counted = self.counted(nested)
        return [] if counted is None else [counted, *self.nested(nested, counted[0])]


def _only_loop(loop: Loop) -> Loop | None:
    """The loop that is all that a loop repeats, but for names."""
    *names, last = loop.body or (None,)
    return last if isinstance(last, Loop) and all(isinstance(statement, Bind) for statement in names) else None


def _is_exact(bounds: Range) -> bool:
    return bounds[0] is bounds[1] or np.array_equal(*bounds)


def _run(groups: Sequence[_Group], plan: Plan, partition: Partition) -> None:
    error: VerifyError | None = None
    # The cores of a chain do the same, but each after the one before it.
    if not plan.partials:
        try:
            _Cores(groups, plan).run()
            return
        except Apart:
            pass
        except VerifyError as wrong:
            error = wrong
    # The first core of which something is wrong is told, not the first group.
    alone = {core: core_group for group in groups for core, core_group in zip(group.places, group.split(), strict=True)}
    _Cores([alone[work.x, work.y] for work in partition.cores], plan).run()
    if error is not None:
        raise error


@dataclass(slots=True)
class _Running:
    """A kernel of cores that do the same, which have these numbers, one after another, and what it does next."""

    role: str
    group: int
    cores: NDArray[np.int64]
    # The numbers of the cores, for what is kept of all cores.
    members: slice
    events: Sequence[_Event]
    at: int = 0


def _check_numbers(
    shared: SharedInput, numbers: Mapping[Place, Mapping[tuple[str, int | str], int]], at: Call
) -> None:  # fmt: skip
    """Receivers say as often that they have room, and receive as many blocks, as their sender sends."""
    for multicast in shared.multicasts:
        sender = numbers[multicast.sender]
        sent = sum(sender[each.ir_name, shared.buffer] for each in BLOCK_MULTICASTS)
        for core in multicast.receivers:
            receiver = numbers[core]
            for action, number in (
                ("receives", receiver[RECEIVE_SENT.ir_name, shared.valid]),
                ("has room for", receiver[SEMAPHORE_UP.ir_name, shared.ready]),
            ):
                if number != sent:
                    raise disagreement(
                        f"core {multicast.sender} sends {sent} blocks of {shared.tensor}, core {core} {action} "
                        f"{number}",
                        "share only between cores that make the same steps",
                        at,
                    )


_PagesOfGroups = Sequence[tuple[Sequence[CoreWork], Mapping[Call, Pages]]]


def _check_pages(shared: SharedInput, loader: Kernel, needed: _PagesOfGroups) -> None:
    """The cores of a rectangle need the same pages, in all turns of their loops."""
    groups = [
        (members, {call: pages_of_call for call, pages_of_call in pages.items() if call.buffer("cb") == shared.buffer})
        for members, pages in needed
    ]
    at = {
        (work.x, work.y): (group, number)
        for group, (works, _) in enumerate(groups)
        for number, work in enumerate(works)
    }
    senders = {core: multicast.sender for multicast in shared.multicasts for core in multicast.cores.cores}
    if all(_have_the_pages_of_senders(number, pages, at, senders) for number, (_, pages) in enumerate(groups)):
        return

    def pages_of(core: Place, call: Call) -> Pages:
        group, number = at[core]
        pages = groups[group][1].get(call)
        return _NO_PAGES if pages is None else pages[..., number]

    for multicast in shared.multicasts:
        for call, receiver in itertools.product(calls(loader.body), multicast.receivers):
            mine, theirs = pages_of(multicast.sender, call), pages_of(receiver, call)
            if not np.array_equal(mine, theirs):
                # The last axis is that of the outermost loop.
                told = ([(page, page) for page in pages.T.ravel().tolist()] for pages in (mine, theirs))
                raise _other_page(multicast.sender, receiver, call, *told)


def _have_the_pages_of_senders(
    group: int, pages: Mapping[Call, Pages], at: Mapping[Place, tuple[int, int]], senders: Mapping[Place, Place]
) -> bool:  # fmt: skip
    """Whether each core of a group needs the pages of its sender, which is in the same group."""
    theirs = [at[senders[core]] for core, (core_group, _) in at.items() if core_group == group]
    if any(sender_group != group for sender_group, _ in theirs):
        return False
    numbers = [number for _, number in theirs]
    return all(np.array_equal(call_pages, call_pages[..., numbers]) for call_pages in pages.values())


def _other_page(
    sender: Place, receiver: Place, call: Call, mine: Sequence[Range], theirs: Sequence[Range]
) -> VerifyError:  # fmt: skip
    sent, needed = next(pair for pair in itertools.zip_longest(mine, theirs) if pair[0] != pair[1])
    return disagreement(
        f"core {sender} sends {_page(sent)} of {call.buffer('cb')} to core {receiver}, which needs {_page(needed)}",
        "share only between cores that need the same blocks at the same steps",
        call,
    )


class _Cores:
    """The cores, numbered group by group: their semaphores, the places in their circular buffers, the room reserved
    there, the pages of the block that is next in each and how many, and whether a block came that nobody waited for.

    The cores of a group do each step together. As none of them reaches another one, that is the same as one after
    another. Raises Apart if one does.
    """

    def __init__(self, groups: Sequence[_Group], plan: Plan) -> None:
        self.plan = plan
        self.places = [core for group in groups for core in group.places]
        self.number = {core: number for number, core in enumerate(self.places)}
        count = len(self.places)
        self.group = np.repeat(np.arange(len(groups)), [len(group.places) for group in groups])
        self.semaphores = defaultdict[int, NDArray[np.int64]](lambda: np.zeros(count, np.int64))
        self.back = defaultdict[str, NDArray[np.int64]](lambda: np.zeros(count, np.int64))
        self.reserved = defaultdict[str, NDArray[np.int64]](lambda: np.zeros(count, np.int64))
        self.sent = defaultdict[str, NDArray[np.bool_]](lambda: np.zeros(count, np.bool_))
        self.pages = defaultdict[str, NDArray[np.int64]](lambda: np.zeros((_PAGES, 2, count), np.int64))
        self.page_counts = defaultdict[str, NDArray[np.int64]](lambda: np.zeros(count, np.int64))
        # Who is reached is the same in all turns of a loop.
        self.reaches: dict[Hashable, tuple[NDArray[np.int64], NDArray[np.int64]]] = {}
        self.kernels: list[_Running] = []
        first = 0
        for index, group in enumerate(groups):
            members = slice(first, first := first + len(group.places))
            numbers = np.arange(members.start, members.stop)
            self.kernels += [
                _Running(role, index, numbers, members, events) for role, events in group.kernels.items() if events
            ]

    def run(self) -> None:
        unfinished = self.kernels
        while unfinished:
            look_around()
            went = False
            for kernel in unfinished:
                while kernel.at < len(kernel.events) and self.waits(kernel) is None:
                    self.step(kernel)
                    kernel.at += 1
                    went = True
            unfinished = [kernel for kernel in unfinished if kernel.at < len(kernel.events)]
            if unfinished and not went:
                raise self.stuck(unfinished)

    def waits(self, kernel: _Running) -> tuple[int, int] | None:
        """The semaphore that a kernel waits for, and the value, on the first of its cores; None if it can go on."""
        event = kernel.events[kernel.at]
        if event.needs is not None or event.call.op not in (SEMAPHORE_WAIT, RECEIVE_SENT):
            return None
        semaphore, awaited = event.values["semaphore"], event.values.get("value", 1)
        assert isinstance(semaphore, int), "cores that do the same wait for the same"
        if (self.semaphores[semaphore][kernel.members] == awaited).all():
            return None
        return semaphore, _column(awaited, len(kernel.cores))[0]

    def step(self, kernel: _Running) -> None:
        event, cores = kernel.events[kernel.at], kernel.members
        call, values = event.call, event.values
        if event.needs is not None:
            self.need(cores, *event.needs)
            return
        operation, name = call.op, call.buffer("cb") if "cb" in call.buffers else ""
        semaphore = values.get("semaphore")
        if isinstance(semaphore, int):
            flags = self.semaphores[semaphore]
            if operation is SEMAPHORE_SET:
                flags[cores] = values["value"]
            elif operation is SEMAPHORE_UP:
                targets = _others(event, len(kernel.cores))
                if self.plan.partials:
                    for number, target in zip(kernel.cores, targets, strict=True):
                        check_told(self.plan, self.places[int(number)], target, semaphore, call)
                np.add.at(flags, self.outside(kernel, self.numbered(targets, call)), 1)
            elif operation is RECEIVE_SENT:
                if not self.sent[name][cores].all():
                    core = self.places[int(kernel.cores[self.sent[name][cores].argmin()])]
                    raise disagreement(
                        f"core {core}: {dict(self.plan.semaphores)[semaphore]} says that a block of {name} has "
                        "arrived, but none was sent",
                        "set the semaphore to 0 before the sender is told that there is room",
                        call,
                    )
                self.sent[name][cores] = False
            elif operation in SEMAPHORE_MULTICASTS:
                senders, receivers = self.reached(kernel, SEMAPHORE_MULTICAST_TO_ALL)
                flags[receivers] = flags[senders]
            return
        if operation is NOC_SEND_BLOCK:
            self.send_on(kernel, event)
        elif operation in BLOCK_MULTICASTS:
            self.send(kernel, event)
        elif call.name == "tt.cb_reserve_back":
            self.reserved[name][cores] = values["count"]
            self.page_counts[name][cores] = 0
        elif call.name == "tt.cb_push_back":
            self.back[name][cores] = (self.back[name][cores] + values["count"]) % self.plan.buffer(name).pages
            self.reserved[name][cores] = 0

    def need(self, cores: slice, name: str, page: Range) -> None:
        """What is next in a circular buffer has one more page."""
        counts, pages = self.page_counts[name], self.pages[name]
        at = int(counts[cores.start])
        if at == len(pages):
            pages = self.pages[name] = np.concatenate([pages, np.zeros_like(pages)])
        pages[at, 0, cores], pages[at, 1, cores] = page
        counts[cores] = at + 1

    def send(self, kernel: _Running, event: _Event) -> None:
        call, name = event.call, event.call.buffer("cb")
        senders, receivers = self.reached(kernel, NOC_MULTICAST_TO_ALL)
        tiles = np.broadcast_to(event.values["tiles"], len(kernel.cores))[senders - kernel.cores[0]]
        has_no_room = self.reserved[name][receivers] < tiles
        back, counts = self.back[name], self.page_counts[name]
        is_elsewhere = back[receivers] != back[senders]
        pages = self.pages[name][: counts[kernel.cores[0]]]
        is_other = (pages[..., receivers] != pages[..., senders]).any(axis=(0, 1))
        is_other |= counts[receivers] != counts[senders]
        wrong = has_no_room | is_elsewhere | is_other
        if not wrong.any():
            self.sent[name][receivers] = True
            return
        first = int(wrong.argmax())
        sender, receiver = int(senders[first]), int(receivers[first])
        core, receiving_core = self.places[sender], self.places[receiver]
        if has_no_room[first]:
            raise disagreement(
                f"core {core} sends {tiles[first]} tiles of {name} to core {receiving_core}, which has reserved "
                f"{self.reserved[name][receiver]}",
                "let receivers reserve room before they tell the sender, and the sender wait for all of them",
                call,
            )
        if is_elsewhere[first]:
            raise disagreement(
                f"core {core} sends {name} to position {back[sender]} of core {receiving_core}, which has room at "
                f"{back[receiver]}",
                "let sender and receivers push the same blocks",
                call,
            )
        told = ([*map(tuple, self.pages[name][: counts[number], :, number].tolist())] for number in (sender, receiver))
        raise _other_page(core, receiving_core, call, *told)

    def send_on(self, kernel: _Running, event: _Event) -> None:
        """Send a block to the next core of a chain, from the circular buffer of the own updates."""
        call, into, core = event.call, event.call.buffer("into"), int(kernel.cores[0])
        sums, sender = sums_of_send(self.plan, call), self.places[core]
        (next_place,), (tiles,) = _others(event, 1), _column(event.values["tiles"], 1)
        check_next(sums, sender, next_place, tiles, self.plan, call)
        (receiver,) = self.numbered([next_place], call)
        has_block, reserved = self.sent[into][receiver], self.reserved[into][receiver]
        if has_block or reserved < tiles or self.back[into][receiver] != self.back[into][core]:
            has = "still has the block before" if has_block else f"has reserved {reserved}"
            raise disagreement(
                f"core {sender} sends {tiles} tiles to {into} of core {next_place}, which {has}",
                "let the next core reserve room before it says so, and the sender wait for that",
                call,
            )
        self.sent[into][receiver] = True

    def reached(self, kernel: _Running, to_all: object) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The senders and receivers of the multicasts of a group, but for senders that receive their own."""
        event, count = kernel.events[kernel.at], len(kernel.cores)
        columns = (_column(event.values[name], count) for name in (*CORNERS, "receivers"))
        rows = tuple(zip(*columns, strict=True))
        key = kernel.group, kernel.role, event.call, rows
        if key not in self.reaches:
            rectangles = [self.rectangle(core, row, kernel.role, event.call, to_all)
                     for core, row in zip(kernel.cores.tolist(), rows, strict=True)]  # fmt: skip
            receivers = self.outside(kernel, [*itertools.chain.from_iterable(rectangles)])
            self.reaches[key] = np.repeat(kernel.cores, [*map(len, rectangles)]), receivers
        return self.reaches[key]

    def rectangle(self, core: int, row: Sequence[int], role: str, call: Call, to_all: object) -> list[int]:
        """The cores that a multicast reaches, but for its sender."""
        *corners, count = row
        noc = NOC_OF_ROLE[role]
        (left, top), (right, bottom) = (corners[:2], corners[2:])[:: -1 if noc == 1 else 1]
        columns, rows = range(left, right + 1), range(top, bottom + 1)
        told = "({}, {}) to ({}, {})".format(*corners)
        if not columns or not rows:
            raise disagreement(f"a multicast from {told}", f"name {FIRST_CORNERS[noc]} first, as NoC {noc} goes", call)
        numbers = self.numbered([(x, y) for y in rows for x in columns], call)
        includes = call.op is to_all
        if (core in numbers) != includes:
            action = "leaves out" if includes else "includes"
            raise disagreement(
                f"a multicast to {told} {action} the sender, core {self.places[core]}", "choose the other", call
            )
        if includes:
            numbers.remove(core)
        if len(numbers) != count:
            raise disagreement(
                f"a multicast to {told} names {count} receivers, but there are {len(numbers)}",
                "count the cores of the rectangle without the sender",
                call,
            )
        return numbers

    def numbered(self, cores: Sequence[Place], call: Call) -> list[int]:
        for core in cores:
            if core not in self.number:
                raise disagreement(
                    f"{call.op.name} reaches core {core}, which has no work",
                    "keep to the cores of the partition",
                    call,
                )
        return [self.number[core] for core in cores]

    def outside(self, kernel: _Running, cores: list[int]) -> NDArray[np.int64]:
        """Cores that a group reaches. Raises Apart where they belong to it."""
        if len(kernel.cores) > 1 and (self.group[cores] == kernel.group).any():
            raise Apart(())
        return np.asarray(cores, np.int64)

    def stuck(self, unfinished: Sequence[_Running]) -> VerifyError:
        names = dict(self.plan.semaphores)
        lines: list[str] = []
        for kernel in unfinished[:_MOST_TOLD]:
            waits, core = self.waits(kernel), int(kernel.cores[0])
            assert waits is not None, "it cannot go on"
            span = kernel.events[kernel.at].call.span
            where = f" (line {span.line})" if span is not None else ""
            lines.append(
                f"  {kernel_name(kernel.role)} of core {self.places[core]} waits for {names[waits[0]]} to be "
                f"{waits[1]}, is {self.semaphores[waits[0]][core]}{where}"
            )
        if len(unfinished) > _MOST_TOLD:
            lines.append(f"  and {len(unfinished) - _MOST_TOLD} more")
        return VerifyError(
            "V009",
            "cores wait for each other:\n" + "\n".join(lines),
            hint="let every core that is waited for raise the semaphore, as often as it is waited for",
            span=unfinished[0].events[unfinished[0].at].call.span,
        )


def _others(event: _Event, count: int) -> list[Place]:
    """The core that each of so many cores reaches."""
    return [*zip(_column(event.values["x"], count), _column(event.values["y"], count), strict=True)]


def _page(page: Range | None) -> str:
    return "no page" if page is None else f"page {int(page[0])}"
