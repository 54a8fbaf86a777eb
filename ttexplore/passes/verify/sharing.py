"""Check that cores that share an input, or hand on partial sums, agree: who sends and who receives, how often, which
blocks, and in what order.

The kernels of all cores that do that, readers and writers, are followed together through some turns of their loops, as
far as they wait for each other. That they also wait for room, and a writer for results, changes nothing:
:func:`check_handshake` shows that a core whose blocks arrive always comes to its next one. As all cores run the same
kernels, and share only between those that make the same steps, they can make these steps together. The numbers of
blocks, and the pages they are made of, are compared over all turns.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

import numpy as np

from ttexplore.control import look_around
from ttexplore.errors import ResourceError, VerifyError
from ttexplore.ir.index import CoreItem, Expression, Range, Values, decided
from ttexplore.ir.kernel import Allocation, Bind, Body, Branch, Call, Kernel, Loop, Store, calls, kernel_name
from ttexplore.ops.semaphores import (
    BLOCK_MULTICASTS,
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
from ttexplore.passes.verify.alike_cores import CoreRanges, by_likeness
from ttexplore.passes.verify.ends import PROTOCOL
from ttexplore.passes.verify.needed_pages import Pages, needed_pages
from ttexplore.passes.verify.partial_sums import check_counts, check_next, check_places, check_told, sums_of_send
from ttexplore.plan import FIRST_CORNERS, NOC_OF_ROLE, CoreWork, Multicast, Partition, Plan, SharedInput
from ttexplore.target import Target

# How many turns of a loop are followed: the first, and one that finds what the turn before it left.
_TURNS = 2
# Of cores that wait for each other, so many are told.
_MOST_TOLD = 8
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
    parts = Counter(core for one in shared.multicasts for core in one.cores.cores)
    for core, number in parts.items():
        if core not in running:
            raise VerifyError(
                "V041",
                f"{shared.tensor} is sent to core {core}, which has no work",
                hint="keep rectangles within the cores of the partition",
            )
        if number > 1:
            raise disagreement(f"core {core} is in {number} rectangles of {shared.tensor}", "give it one sender")
    if missing := running.keys() - parts.keys():
        raise disagreement(
            f"core {min(missing)} is in no rectangle of {shared.tensor}, so it neither reads nor receives it",
            "put each core into one rectangle, if need be alone",
        )
    for one in shared.multicasts:
        _check_rectangle(shared, one)
    check_core_values(shared.core_values, shared.tensor, "rectangle", partition)


def _check_rectangle(shared: SharedInput, one: Multicast) -> None:
    (left, top), (right, bottom) = one.cores.first, one.cores.last
    flat = {"row": top == bottom, "column": left == right, "grid": True}[shared.topology]
    at_start = one.sender == one.cores.first
    if not (flat and at_start and left <= right and top <= bottom):
        raise disagreement(
            f"core {one.sender} sends {shared.tensor} to the cores from {one.cores.first} to {one.cores.last}, which "
            f"is no {shared.topology} that begins with it",
            "let the first core of a row, a column or a rectangle send",
        )


# The kernels that load


def check_multicasts(kernels: Mapping[str, Kernel], plan: Plan) -> None:
    """Run what the kernels of all cores do for other cores. Raises VerifyError where a wait never ends, where a sender
    writes to room that a receiver has not reserved, and where they are at different blocks."""
    partition = plan.partition
    found = {role: calls(kernels[role].body) for role in ("reader", "writer")}
    events = {role: [one for one in own if one.op in _EVENTS] for role, own in found.items()}
    loaders = {shared.tensor: plan.buffer(shared.buffer).producer for shared in plan.shared}
    for shared in plan.shared:
        role = loaders[shared.tensor]
        talks = any(one.values.get("semaphore") in (shared.ready, shared.valid) for one in events[role])
        if not talks and any(call.name in PROTOCOL for call in found[role]):
            raise disagreement(
                f"{kernel_name(role)} reads {shared.tensor} on every core; the plan says that cores share it",
                "send its blocks, or remove it from the shared inputs",
            )
    hands_on = any(one.op is NOC_SEND_BLOCK for one in events["writer"])
    if plan.partials and not hands_on and any(call.name in PROTOCOL for call in found["writer"]):
        raise disagreement(
            f"the writer of each core updates {plan.partials[0].tensor} by itself; the plan says that cores hand it on",
            "send its blocks, or remove it from the partial sums",
        )
    sending = [role for role, own in events.items() if own]
    if partition is None or not sending:
        return
    cores = _followed({role: kernels[role] for role in sending}, plan, partition)
    for shared in plan.shared:
        _check_numbers(shared, cores, events[loaders[shared.tensor]][0])
    for sums in plan.partials:
        check_counts(sums, {place: core.numbers for place, core in cores.items()}, events["writer"][0])
    _run(cores, plan)
    for sums in plan.partials:
        check_places(sums, kernels["writer"], partition)
    for shared in plan.shared:
        _check_pages(shared, kernels[loaders[shared.tensor]], partition)


_EVENTS = frozenset(
    {
        SEMAPHORE_SET, SEMAPHORE_WAIT, SEMAPHORE_UP, RECEIVE_SENT, NOC_SEND_BLOCK, *BLOCK_MULTICASTS,
        *SEMAPHORE_MULTICASTS,
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Event:
    """An operation, with the values of its operands; `needs` is not run, but says what page a block is made of."""

    call: Call
    values: Mapping[str, int]
    needs: tuple[str, Range] | None = None


def _followed(kernels: Mapping[str, Kernel], plan: Plan, partition: Partition) -> dict[Place, _Core]:
    """All cores, with what their kernels do."""

    def follow(cores: Sequence[CoreWork]) -> list[_Followed]:
        made: list[_Followed] = []
        for kernel in kernels.values():
            made.append(_Followed(plan, cores))
            made[-1].body(kernel.body)
        return made

    try:
        groups = by_likeness(partition.cores, follow)
    except VerifyError:
        # The first core of which something is wrong is told, not the first group.
        groups = [([core], follow([core])) for core in partition.cores]
    made: dict[Place, _Core] = {}
    for works, followed in groups:
        numbers = Counter[tuple[str, int | str]]()
        for one in followed:
            numbers += one.numbers
        events = [one.by_core() for one in followed]
        for number, work in enumerate(works):
            running = [_Running(role, own[number]) for role, own in zip(kernels, events, strict=True)]
            made[work.x, work.y] = _Core((work.x, work.y), plan, running, numbers)
    return {(work.x, work.y): made[work.x, work.y] for work in partition.cores}


class _Followed:
    """The operations of one kernel, on cores that do the same, that other cores have to do with, in order, for some
    turns of its loops. `numbers` counts those of all turns, by operation and semaphore or circular buffer."""

    def __init__(self, plan: Plan, cores: Sequence[CoreWork]) -> None:
        self.buffers = {*(shared.buffer for shared in plan.shared), *(sums.received for sums in plan.partials)}
        self.cores = cores
        self.ranges = CoreRanges(cores)
        self.events: list[tuple[Call, dict[str, Values], tuple[str, Range] | None]] = []
        self.numbers: Counter[tuple[str, int | str]] = Counter()
        self.times = 1
        # Whether only the pages of blocks are wanted, of the arm that another core takes.
        self.is_elsewhere = False

    def by_core(self) -> list[list[_Event]]:
        """The events of each core."""
        made: list[list[_Event]] = [[] for _ in self.cores]
        for call, values, needs in self.events:
            pages = None if needs is None else [*zip(*map(self.column, needs[1]), strict=True)]
            columns = {name: self.column(value) for name, value in values.items()}
            look_around()
            for number, own in enumerate(made):
                page = None if needs is None or pages is None else (needs[0], pages[number])
                own.append(_Event(call, {name: column[number] for name, column in columns.items()}, page))
        return made

    def column(self, values: Values) -> list[int]:
        """The value on each core."""
        return np.broadcast_to(values, len(self.cores)).tolist()

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
        if "page" in call.values and "cb" in call.buffers and call.buffer("cb") in self.buffers:
            page = self.ranges.of(call.values["page"])
            if page is not None:
                self.events.append((call, {}, (call.buffer("cb"), page)))
        if self.is_elsewhere or not self.concerns(call):
            return
        values = {name: self.number(value, call) for name, value in call.values.items()}
        self.events.append((call, values, None))
        on = self.ranges.same(values["semaphore"]) if "semaphore" in values else ""
        self.numbers[call.name, call.buffer("cb") if on == "" and "cb" in call.buffers else on] += self.times

    def number(self, value: Expression, call: Call) -> Values:
        found = self.ranges.of(value)
        if found is None or not np.array_equal(*found):
            raise disagreement(
                f"{call.op.name}: an operand has no known value on core ({self.cores[0].x}, {self.cores[0].y})",
                "compute it from core values",
                call,
            )
        return found[0]

    def holds(self, condition: Expression) -> bool | None:
        """Whether a condition holds; None where that is not decided."""
        found = self.ranges.of(condition)
        if found is not None and found[0] is found[1]:
            return bool(self.ranges.same(np.not_equal(found[0], 0)))
        return decided(condition, self.ranges.known)

    def bind(self, bind: Bind) -> None:
        value = bind.value
        found = self.ranges.item(value) if isinstance(value, CoreItem) else self.ranges.of(value)
        self.ranges.learn(bind.variable, found)

    def loop(self, loop: Loop) -> None:
        concerned = [one for one in calls(loop.body) if self.concerns(one)]
        low, extent = self.ranges.of(loop.low), self.ranges.of(loop.extent)
        exact = all(one is not None and np.array_equal(*one) for one in (low, extent))
        if low is None or extent is None or not exact:
            if concerned:
                raise disagreement(
                    "a block is sent in a loop whose length is not known", "use loops of constant length", concerned[0]
                )
            return
        turns = self.ranges.same(extent[0])
        before, followed = self.times, min(turns, _TURNS)
        for turn in range(followed):
            now = low[0] + turn
            self.ranges.learn(loop.variable, (now, now))
            # The last one that is followed stands for those that are not.
            self.times = before * (1 if turn < followed - 1 else turns - followed + 1)
            self.body(loop.body)
        self.times = before


@dataclass(slots=True)
class _Running:
    """A kernel of a core, and what it does next."""

    role: str
    events: list[_Event]
    at: int = 0


@dataclass(slots=True)
class _Core:
    """A core: those of its kernels that load shared inputs, its semaphores, the places in its circular buffers, the
    room reserved there, the pages of the block that is next in each, and the buffers with a block that it has not
    waited for."""

    place: Place
    plan: Plan
    kernels: list[_Running]
    numbers: Mapping[tuple[str, int | str], int]
    semaphores: dict[int, int] = field(default_factory=lambda: defaultdict[int, int](int))
    back: dict[str, int] = field(default_factory=lambda: defaultdict[str, int](int))
    reserved: dict[str, int] = field(default_factory=lambda: defaultdict[str, int](int))
    pages: dict[str, list[Range]] = field(default_factory=lambda: defaultdict[str, list[Range]](list))
    sent: set[str] = field(default_factory=set[str])

    def waits(self, kernel: _Running) -> tuple[int, int] | None:
        """The semaphore that a kernel of it waits for, and the value; None if it can go on."""
        event = kernel.events[kernel.at]
        if event.needs is None and event.call.op in (SEMAPHORE_WAIT, RECEIVE_SENT):
            wanted = event.values["semaphore"], event.values.get("value", 1)
            return None if self.semaphores[wanted[0]] == wanted[1] else wanted
        return None


def _check_numbers(shared: SharedInput, cores: Mapping[Place, _Core], at: Call) -> None:
    """Receivers say as often that they have room, and receive as many blocks, as their sender sends."""
    for one in shared.multicasts:
        sender = cores[one.sender].numbers
        sent = sum(sender[each.ir_name, shared.buffer] for each in BLOCK_MULTICASTS)
        for place in one.receivers:
            receiver = cores[place].numbers
            for what, number in (
                ("receives", receiver[RECEIVE_SENT.ir_name, shared.valid]),
                ("has room for", receiver[SEMAPHORE_UP.ir_name, shared.ready]),
            ):
                if number != sent:
                    raise disagreement(
                        f"core {one.sender} sends {sent} blocks of {shared.tensor}, core {place} {what} {number}",
                        "share only between cores that make the same steps",
                        at,
                    )


def _check_pages(shared: SharedInput, loader: Kernel, partition: Partition) -> None:
    """The cores of a rectangle need the same pages, in all turns of their loops."""
    groups = needed_pages(loader, partition.cores, shared.buffer)
    at = {(work.x, work.y): (group, number) for group, (own, _) in enumerate(groups) for number, work in enumerate(own)}
    senders = {place: one.sender for one in shared.multicasts for place in one.cores.cores}
    if all(_have_the_pages_of_senders(number, pages, at, senders) for number, (_, pages) in enumerate(groups)):
        return

    def pages_of(core: Place, call: Call) -> Pages:
        group, number = at[core]
        found = groups[group][1].get(call)
        return _NO_PAGES if found is None else found[..., number]

    for one in shared.multicasts:
        for call, place in itertools.product(calls(loader.body), one.receivers):
            mine, theirs = pages_of(one.sender, call), pages_of(place, call)
            if not np.array_equal(mine, theirs):
                # The last axis is that of the outermost loop.
                told = ([(page, page) for page in pages.T.ravel().tolist()] for pages in (mine, theirs))
                raise _other_page(one.sender, place, call, *told)


def _have_the_pages_of_senders(
    group: int, pages: Mapping[Call, Pages], at: Mapping[Place, tuple[int, int]], senders: Mapping[Place, Place]
) -> bool:  # fmt: skip
    """Whether each core of a group needs the pages of its sender, which is in the same group."""
    theirs = [at[senders[core]] for core, (own, _) in at.items() if own == group]
    if any(own != group for own, _ in theirs):
        return False
    numbers = [number for _, number in theirs]
    return all(np.array_equal(one, one[..., numbers]) for one in pages.values())


def _other_page(
    sender: Place, receiver: Place, call: Call, mine: Sequence[Range], theirs: Sequence[Range]
) -> VerifyError:  # fmt: skip
    one, other = next(pair for pair in itertools.zip_longest(mine, theirs) if pair[0] != pair[1])
    return disagreement(
        f"core {sender} sends {_page(one)} of {call.buffer('cb')} to core {receiver}, which needs {_page(other)}",
        "share only between cores that need the same blocks at the same steps",
        call,
    )


def _run(cores: Mapping[Place, _Core], plan: Plan) -> None:
    left = [(core, kernel) for core in cores.values() for kernel in core.kernels if kernel.events]
    while left:
        look_around()
        went = False
        for core, kernel in left:
            while kernel.at < len(kernel.events) and core.waits(kernel) is None:
                _step(core, kernel, cores, plan)
                kernel.at += 1
                went = True
        left = [(core, kernel) for core, kernel in left if kernel.at < len(kernel.events)]
        if left and not went:
            raise _stuck(left, plan)


def _step(core: _Core, kernel: _Running, cores: Mapping[Place, _Core], plan: Plan) -> None:
    event = kernel.events[kernel.at]
    call, values = event.call, event.values
    if event.needs is not None:
        name, page = event.needs
        core.pages[name].append(page)
        return
    operation = call.op
    if operation is SEMAPHORE_SET:
        core.semaphores[values["semaphore"]] = values["value"]
    elif operation is SEMAPHORE_UP:
        check_told(plan, core.place, (values["x"], values["y"]), values["semaphore"], call)
        _other(values["x"], values["y"], cores, call).semaphores[values["semaphore"]] += 1
    elif operation is RECEIVE_SENT:
        name = call.buffer("cb")
        if name not in core.sent:
            semaphore = dict(plan.semaphores)[values["semaphore"]]
            raise disagreement(
                f"core {core.place}: {semaphore} says that a block of {name} has arrived, but none was sent",
                "set the semaphore to 0 before the sender is told that there is room",
                call,
            )
        core.sent.remove(name)
    elif operation is NOC_SEND_BLOCK:
        _send_on(core, event, cores, plan)
    elif operation in SEMAPHORE_MULTICASTS:
        for other in _rectangle(core, kernel, cores, SEMAPHORE_MULTICAST_TO_ALL):
            other.semaphores[values["semaphore"]] = core.semaphores[values["semaphore"]]
    elif operation in BLOCK_MULTICASTS:
        for other in _rectangle(core, kernel, cores, NOC_MULTICAST_TO_ALL):
            if other is not core:
                _send(core, other, event)
    elif call.name == "tt.cb_reserve_back":
        core.reserved[call.buffer("cb")] = values["count"]
        core.pages[call.buffer("cb")] = []
    elif call.name == "tt.cb_push_back":
        name = call.buffer("cb")
        core.back[name] = (core.back[name] + values["count"]) % plan.buffer(name).pages
        core.reserved[name] = 0


def _send(core: _Core, other: _Core, event: _Event) -> None:
    call, name, tiles = event.call, event.call.buffer("cb"), event.values["tiles"]
    if other.reserved[name] < tiles:
        raise disagreement(
            f"core {core.place} sends {tiles} tiles of {name} to core {other.place}, which has reserved "
            f"{other.reserved[name]}",
            "let receivers reserve room before they tell the sender, and the sender wait for all of them",
            call,
        )
    if other.back[name] != core.back[name]:
        raise disagreement(
            f"core {core.place} sends {name} to position {core.back[name]} of core {other.place}, which has room at "
            f"{other.back[name]}",
            "let sender and receivers push the same blocks",
            call,
        )
    if other.pages[name] != core.pages[name]:
        raise _other_page(core.place, other.place, call, core.pages[name], other.pages[name])
    other.sent.add(name)


def _send_on(core: _Core, event: _Event, cores: Mapping[Place, _Core], plan: Plan) -> None:
    """Send a block to the next core of a chain, from the circular buffer of the own updates."""
    call, tiles, into = event.call, event.values["tiles"], event.call.buffer("into")
    check_next(sums_of_send(plan, call), core.place, (event.values["x"], event.values["y"]), tiles, plan, call)
    other = _other(event.values["x"], event.values["y"], cores, call)
    if into in other.sent or other.reserved[into] < tiles or other.back[into] != core.back[into]:
        has = "still has the block before" if into in other.sent else f"has reserved {other.reserved[into]}"
        raise disagreement(
            f"core {core.place} sends {tiles} tiles to {into} of core {other.place}, which {has}",
            "let the next core reserve room before it says so, and the sender wait for that",
            call,
        )
    other.sent.add(into)


def _page(page: Range | None) -> str:
    return "no page" if page is None else f"page {int(page[0])}"


def _rectangle(core: _Core, kernel: _Running, cores: Mapping[Place, _Core], to_all: object) -> list[_Core]:
    """The cores that a multicast reaches."""
    event, noc = kernel.events[kernel.at], NOC_OF_ROLE[kernel.role]
    values, call = event.values, event.call
    corners = f"({values['first_x']}, {values['first_y']}) to ({values['last_x']}, {values['last_y']})"
    least, most = ("first", "last") if noc == 0 else ("last", "first")
    columns = range(values[f"{least}_x"], values[f"{most}_x"] + 1)
    rows = range(values[f"{least}_y"], values[f"{most}_y"] + 1)
    if not columns or not rows:
        raise disagreement(f"a multicast from {corners}", f"name {FIRST_CORNERS[noc]} first, as NoC {noc} goes", call)
    found = [_other(x, y, cores, call) for y in rows for x in columns]
    includes = call.op is to_all
    if (core in found) != includes:
        what = "leaves out" if includes else "includes"
        raise disagreement(f"a multicast to {corners} {what} the sender, core {core.place}", "choose the other", call)
    receivers = math.prod(map(len, (columns, rows))) - includes
    if receivers != values["receivers"]:
        raise disagreement(
            f"a multicast to {corners} names {values['receivers']} receivers, but there are {receivers}",
            "count the cores of the rectangle without the sender",
            call,
        )
    return found


def _other(x: int, y: int, cores: Mapping[Place, _Core], call: Call) -> _Core:
    if (x, y) not in cores:
        raise disagreement(
            f"{call.op.name} reaches core ({x}, {y}), which has no work",
            "keep to the cores of the partition",
            call,
        )
    return cores[x, y]


def _stuck(left: list[tuple[_Core, _Running]], plan: Plan) -> VerifyError:
    names = dict(plan.semaphores)
    lines: list[str] = []
    for core, kernel in left[:_MOST_TOLD]:
        waits = core.waits(kernel)
        assert waits is not None, "it cannot go on"
        span = kernel.events[kernel.at].call.span
        where = f" (line {span.line})" if span is not None else ""
        lines.append(
            f"  {kernel_name(kernel.role)} of core {core.place} waits for {names[waits[0]]} to be {waits[1]}, is "
            f"{core.semaphores[waits[0]]}{where}"
        )
    if len(left) > _MOST_TOLD:
        lines.append(f"  and {len(left) - _MOST_TOLD} more")
    return VerifyError(
        "V009",
        "cores wait for each other:\n" + "\n".join(lines),
        hint="let every core that is waited for raise the semaphore, as often as it is waited for",
        span=left[0][1].events[left[0][1].at].call.span,
    )
