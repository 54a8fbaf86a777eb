"""Check for deadlocks: the kernels of a core never wait for each other in a cycle.

Kernels that block only on circular buffers behave the same in every schedule, so one schedule shows whether they ever
deadlock: each kernel in turn runs as far as it can, through two work items of a core.

One core stands for all: the one with the most work items, with two iterations of its loops over work items. Waits for
other cores are left out, as if a block that another core sends were there as soon as there is room for it: `sharing`
shows that these waits end.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Mapping
from typing import assert_never

import numpy as np

from ttexplore.errors import ResourceError, VerifyError, out_of_memory
from ttexplore.ir.arithmetic.index import CoreItem, CoreValue, Key, Range, Variable, decided, value_range
from ttexplore.ir.kernel import Allocation, Bind, Body, Branch, Call, Kernel, Loop, Store, calls, kernel_name
from ttexplore.ops.protocol import CB_POP_FRONT, CB_PUSH_BACK, CB_RESERVE_BACK, CB_WAIT_FRONT
from ttexplore.passes.verify.ends import PROTOCOL
from ttexplore.plan import CoreWork, Plan, chip_buffers

# How many work items of a core are run, and the number of events beyond which long loops are shortened.
_ITEMS = 2
_MOST_EVENTS = 20_000
# More events are not listed: a single loop would take megabytes.
_MOST_LISTED = 1 << 22


def check_handshake(kernels: Mapping[str, Kernel], plan: Plan) -> None:
    """Run the reserves, pushes, waits and pops of the three kernels.

    Raises VerifyError for a deadlock, ResourceError at a loop that has more of them than memory should hold.
    """
    core = max(plan.partition.cores, key=lambda work: work.items) if plan.partition is not None else None
    # A kernel that both fills and empties a buffer waits for itself: check_protocol covers that.
    shared = {buffer.name for buffer in plan.buffers if buffer.producer != buffer.consumer}
    too_many: ResourceError | None = None
    events: dict[str, list[Call]] = {}
    try:
        events = {role: _Events(shared, core).of(kernel) for role, kernel in kernels.items()}
    except ResourceError as error:
        too_many = error
    if too_many is not None or sum(map(len, events.values())) > _MOST_EVENTS:
        limit = 2 * max(buffer.stages for buffer in plan.buffers) + 2
        common = _common_loops(kernels)
        shorter = {role: _Events(shared, core, common, limit).of(kernel) for role, kernel in kernels.items()}
        if _balanced(shorter):
            events = shorter
        elif too_many is not None:
            raise too_many
    _run(events, plan)


def _common_loops(kernels: Mapping[str, Kernel]) -> frozenset[Variable]:
    """The loops that several kernels share: those of the kernel that was split."""
    counts: dict[Variable, int] = {}

    def visit(body: Body) -> None:
        for statement in body:
            if isinstance(statement, Loop):
                counts[statement.variable] = counts.get(statement.variable, 0) + 1
                visit(statement.body)
            elif isinstance(statement, Branch):
                visit([*statement.then, *statement.otherwise])

    for kernel in kernels.values():
        visit(kernel.body)
    return frozenset(variable for variable, count in counts.items() if count > 1)


def _balanced(events: Mapping[str, list[Call]]) -> bool:
    balance: dict[str, int] = {}
    for followed in events.values():
        for call in followed:
            sign = {CB_PUSH_BACK.ir_name: 1, CB_POP_FRONT.ir_name: -1}.get(call.name, 0)
            name = call.buffer("cb")
            balance[name] = balance.get(name, 0) + sign * call.number("count")
    return not any(balance.values())


class _Events:
    """The protocol operations of one kernel on one core, one after another."""

    def __init__(
        self, shared: set[str], core: CoreWork | None, shortened: frozenset[Variable] = frozenset(), limit: int = 0
    ) -> None:
        self.shared, self.core, self.shortened, self.limit = shared, core, shortened, limit
        self.known: dict[Key, Range] = {}
        for name, value in (core.values if core is not None else {}).items():
            self.known[CoreValue(name)] = (value, value)

    def of(self, kernel: Kernel) -> list[Call]:
        return self.body(kernel.body)

    def body(self, body: Body) -> list[Call]:
        events: list[Call] = []
        for statement in body:
            match statement:
                case Call():
                    if statement.name in PROTOCOL and statement.buffer("cb") in self.shared:
                        events.append(statement)
                case Bind():
                    self.bind(statement)
                case Loop():
                    if statement.names & PROTOCOL:
                        events += self.loop(statement)
                case Branch():
                    # The arms of an undecided condition are balanced.
                    holds = decided(statement.condition, self.known)
                    events += self.body(statement.otherwise if holds is False else statement.then)
                case Allocation() | Store():
                    pass
                case _:
                    assert_never(statement)
        return events

    def bind(self, bind: Bind) -> None:
        value = bind.value
        if isinstance(value, CoreItem) and self.core is not None:
            at = value_range(value.position, self.known)
            if at is not None and int(at[0]) < len(self.core.listed):
                listed = self.core.listed[int(at[0])]
                self.known[bind.variable] = (listed, listed)
            return
        bounds = value_range(value, self.known)
        if bounds is not None:
            self.known[bind.variable] = bounds

    def loop(self, loop: Loop) -> list[Call]:
        low, extent = value_range(loop.low, self.known), value_range(loop.extent, self.known)
        turns = int(np.max(extent[1])) if extent is not None else _ITEMS
        if loop.turns is None:
            turns = min(turns, _ITEMS)
        elif loop.variable in self.shortened:
            turns = min(turns, self.limit)
        first = int(low[0]) if low is not None else 0
        if loop.turns is not None and not self.varies(loop):
            self.known[loop.variable] = (first, first + turns - 1)
            once = self.body(loop.body)
            if len(once) * turns > _MOST_LISTED:
                raise out_of_memory(f"following the {turns:,} iterations of a loop", once[0].span)
            return once * turns
        events: list[Call] = []
        for iteration in range(first, first + turns):
            self.known[loop.variable] = (iteration, iteration)
            events += self.body(loop.body)
            if len(events) > _MOST_LISTED:
                raise out_of_memory(f"following the {turns:,} iterations of a loop", events[0].span)
        return events

    def varies(self, loop: Loop) -> bool:
        """Whether a turn of a loop may do otherwise than the next one: all kernels have to see the same."""
        return (loop.variable in loop.tested and self.forks(loop.body)) or _has_run_time_length(loop.body)

    def forks(self, body: Body) -> bool:
        """Whether a branch in a body contains operations that are run here."""
        for statement in body:
            match statement:
                case Branch():
                    arms = calls([*statement.then, *statement.otherwise])
                    if any(call.name in PROTOCOL and call.buffer("cb") in self.shared for call in arms):
                        return True
                case Loop():
                    if statement.names & PROTOCOL and self.forks(statement.body):
                        return True
                case Bind() | Call() | Allocation() | Store():
                    pass
                case _:
                    assert_never(statement)
        return False


def _has_run_time_length(body: Body) -> bool:
    """Whether how often a loop in a body runs operations of the protocol is known only when the kernel runs."""
    for statement in body:
        match statement:
            case Loop():
                if statement.names & PROTOCOL and (statement.turns is None or _has_run_time_length(statement.body)):
                    return True
            case Branch():
                if _has_run_time_length([*statement.then, *statement.otherwise]):
                    return True
            case Bind() | Call() | Allocation() | Store():
                pass
            case _:
                assert_never(statement)
    return False


def _run(events: Mapping[str, list[Call]], plan: Plan) -> None:
    pages = {buffer.name: buffer.pages for buffer in plan.buffers}
    filled = dict.fromkeys(pages, 0)
    # The blocks in a circular buffer that several share, first in first out.
    sharing = {member.name: group[0].name for group in chip_buffers(plan.buffers) if len(group) > 1 for member in group}
    blocks: dict[str, deque[str]] = {home: deque() for home in sharing.values()}
    positions = dict.fromkeys(events, 0)
    # Each call is read once: loops bring it many times.
    distinct = {call for followed in events.values() for call in followed}
    read = {call: (call.name, call.buffer("cb"), call.number("count")) for call in distinct}
    moved = True
    while moved:
        moved = False
        for role, followed in events.items():
            at, end = positions[role], len(followed)
            while at < end:
                operation, buffer_name, count = read[followed[at]]
                name = sharing.get(buffer_name, buffer_name)
                if name in blocks:
                    _follow(blocks[name], operation, buffer_name, count, followed[at])
                match operation:
                    case CB_RESERVE_BACK.ir_name:
                        if filled[name] + count > pages[name]:
                            break
                    case CB_WAIT_FRONT.ir_name:
                        if filled[name] < count:
                            break
                    case CB_PUSH_BACK.ir_name:
                        filled[name] += count
                    case _:
                        filled[name] -= count
                at += 1
            moved = moved or at != positions[role]
            positions[role] = at
    stuck = {role: followed[positions[role]] for role, followed in events.items() if positions[role] < len(followed)}
    if stuck:
        raise _deadlock(stuck, {name: filled[sharing.get(name, name)] for name in pages}, pages)


def _follow(blocks: deque[str], operation: str, name: str, count: int, call: Call) -> None:
    """Follow what is in a circular buffer that several share. Raises VerifyError for a wait that finds the tiles of
    another one."""
    match operation:
        case CB_PUSH_BACK.ir_name:
            blocks.extend([name] * count)
        case CB_WAIT_FRONT.ir_name:
            other_name = next((block for block in itertools.islice(blocks, count) if block != name), None)
            if other_name is not None:
                raise VerifyError(
                    "V009",
                    f"{name} is waited for in a circular buffer whose next tiles are those of {other_name}",
                    hint="take blocks in the order in which they are pushed, or give each buffer a number of its own",
                    span=call.span,
                )
        case CB_POP_FRONT.ir_name:
            for _ in range(count):
                blocks.popleft()
        case _:
            pass


def _deadlock(stuck: Mapping[str, Call], filled: Mapping[str, int], pages: Mapping[str, int]) -> VerifyError:
    lines: list[str] = []
    for role, call in stuck.items():
        name, count = call.buffer("cb"), call.number("count")
        where = f" (line {call.span.line})" if call.span is not None else ""
        if call.name == CB_RESERVE_BACK.ir_name:
            room = f"which has {filled[name]} of {pages[name]}"
            lines.append(f"  {kernel_name(role)} waits for room for {count} tiles in {name}, {room}{where}")
        else:
            lines.append(f"  {kernel_name(role)} waits for {count} tiles of {name}, which has {filled[name]}{where}")
    full = next((call for call in stuck.values() if call.name == CB_RESERVE_BACK.ir_name), None)
    first = full or next(iter(stuck.values()))
    name = first.buffer("cb")
    hint = f"give {name} more pages (stages), or let its consumer pop it earlier" if full else f"push {name} earlier"
    return VerifyError(
        "V009", "the kernels of a core wait for each other:\n" + "\n".join(lines), hint=hint, span=first.span
    )
