"""Which blocks are never in L1 together, or follow each other, and so can share one circular buffer. Part of D5.

A buffer that the compute kernel both fills and empties is occupied from the reserve of a block to the pop of its last
tile. Buffers with the same pages whose blocks are never there at the same time can be one circular buffer of the chip.
A block that one iteration of a loop leaves for the next one is there in the whole loop.

A buffer between two kernels can be shared with others whose blocks both kernels handle in the same order, unless one
would then wait for room that the other makes only later.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from tvm import tirx

from ttexplore.analysis.core_resources import can_share, check_l1, missing_l1, number_buffers
from ttexplore.ir.arithmetic.index import Expression, Key, Range, Variable, decided, narrowed, placed, value_range
from ttexplore.ir.kernel import Allocation, Bind, Body, Branch, Call, FunctionReader, Kernel, Loop, Store, Walk
from ttexplore.notes import Note, note
from ttexplore.ops.protocol import CB_POP_FRONT, CB_PUSH_BACK, CB_RESERVE_BACK, CB_WAIT_FRONT
from ttexplore.plan import CircularBuffer, TensorLayout, chip_buffers
from ttexplore.target import Target

_RESERVE, _PUSH, _WAIT, _POP = (op.ir_name for op in (CB_RESERVE_BACK, CB_PUSH_BACK, CB_WAIT_FRONT, CB_POP_FRONT))
_PROTOCOL = frozenset({_RESERVE, _PUSH, _WAIT, _POP})
# What changes how many tiles there are, or room for how many is reserved.
_CHANGES = frozenset({_RESERVE, _PUSH, _POP})


@dataclass
class Lifetimes:
    """The buffers in the order of their first use, the pairs that are occupied at the same time, and those whose blocks
    could not be followed: they are taken to be always there."""

    order: dict[str, None] = field(default_factory=dict[str, None])
    meeting: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    unknown: set[str] = field(default_factory=set[str])

    def meet(self, first: str, second: str) -> bool:
        return not {first, second}.isdisjoint(self.unknown) or (min(first, second), max(first, second)) in self.meeting


def lifetimes(kernel: Kernel, buffers: Sequence[CircularBuffer]) -> Lifetimes:
    """Follow buffers that a kernel fills. Those that another one empties are there, for this, until the push: from then
    on, the order of the blocks is what counts."""
    walk = _Occupied(
        {buffer.name: buffer.consumer == kernel.role for buffer in buffers if buffer.producer == kernel.role}
    )
    walk.body(kernel.body)
    # What is left would be there when the work goes on with the next item.
    walk.found.unknown.update(walk.tiles)
    return walk.found


class _Occupied(Walk):
    """`names` are the buffers, and whether the kernel empties them as well; `tiles` are the tiles that each occupied
    buffer holds or has room reserved for, on the path so far."""

    def __init__(self, names: Mapping[str, bool]) -> None:
        self.names = names
        self.tiles: dict[str, int] = {}
        self.reserved: dict[str, int] = {}
        self.found = Lifetimes()
        self.known: dict[Key, Range] = {}

    def call(self, call: Call) -> None:
        if call.name not in _CHANGES or call.buffer("cb") not in self.names:
            return
        name, count = call.buffer("cb"), call.number("count")
        if call.name == _RESERVE:
            # A push takes what was reserved, and a second reserve asks for the same room again.
            filled = self.tiles.get(name, 0) - self.reserved.get(name, 0)
            self.tiles[name], self.reserved[name] = filled + count, count
            self.found.order.setdefault(name)
            self.found.meeting.update(
                (min(name, occupied), max(name, occupied)) for occupied in self.tiles if occupied != name
            )
        elif call.name == _PUSH:
            self.reserved[name] = self.reserved.get(name, 0) - count
            if not self.names[name]:
                self.hold(name, self.tiles.get(name, 0) - count)
        else:
            self.hold(name, self.tiles.get(name, 0) - count)

    def bind(self, bind: Bind) -> None:
        bounds = value_range(bind.value, self.known)
        if bounds is not None:
            self.known[bind.variable] = bounds

    def branch(self, branch: Branch) -> None:
        answer = decided(branch.condition, self.known)
        if answer is not None:
            self.body(branch.then if answer else branch.otherwise)
            return
        before, ranges = self._state(), self.known
        self.known = narrowed(branch.condition, ranges, holds=True)
        self.body(branch.then)
        after_then, self.known = self._state(), narrowed(branch.condition, ranges, holds=False)
        self.tiles, self.reserved = before
        self.body(branch.otherwise)
        self.known = ranges
        self._join(after_then)

    def loop(self, loop: Loop) -> None:
        if loop.turns == 0 or not loop.names & _CHANGES:
            return
        if loop.turns is None or not isinstance(loop.low, int):
            before = self._state()
            self.known.pop(loop.variable, None)
            self._turns(loop)
            self._join(before)
            return
        first, last = loop.low, loop.low + loop.turns - 1
        intervals = [(first, last)]
        if loop.variable in loop.tested:
            intervals = [(first, first), (first + 1, last - 1), (last, last)]
        for low, high in intervals:
            if low <= high:
                self.known[loop.variable] = (low, high)
                self._turns(loop, high - low + 1)
        self.known[loop.variable] = (first, last)

    def _turns(self, loop: Loop, count: int | None = None) -> None:
        """Several similar iterations, of a number that may be unknown: what one leaves is there in the next one."""
        before = self._state()
        self.body(loop.body)
        after = self._state()
        if count == 1 or after == before:
            return
        self.body(loop.body)
        last = self._state()
        for name in before[0].keys() | after[0].keys() | last[0].keys():
            tiles = [state[0].get(name, 0) for state in (before, after, last)]
            if len({state[1].get(name, 0) for state in (before, after, last)}) > 1:
                self.found.unknown.add(name)
            elif tiles[1] == tiles[2]:
                continue
            elif count is not None and tiles[2] - tiles[1] == tiles[1] - tiles[0]:
                # Each iteration fills, or empties, a part of a block.
                self.hold(name, tiles[0] + count * (tiles[1] - tiles[0]))
            else:
                self.found.unknown.add(name)

    def hold(self, name: str, tiles: int) -> None:
        self.tiles[name] = tiles
        if not tiles:
            del self.tiles[name]

    def _state(self) -> tuple[dict[str, int], dict[str, int]]:
        return dict(self.tiles), dict(self.reserved)

    def _join(self, state: tuple[dict[str, int], dict[str, int]]) -> None:
        """Go on from where two paths join. Buffers that hold more on one of them are not followed any further."""
        tiles, reserved = state
        for name in tiles.keys() | self.tiles.keys():
            amounts = (tiles.get(name, 0), reserved.get(name, 0))
            if amounts != (self.tiles.get(name, 0), self.reserved.get(name, 0)):
                self.found.unknown.add(name)


def with_numbers(
    buffers: tuple[CircularBuffer, ...], functions: Mapping[str, tirx.PrimFunc], target: Target,
    layouts: tuple[TensorLayout, ...],
) -> tuple[CircularBuffer, ...]:  # fmt: skip
    """The circular buffers of a program, each with its number; `functions` are its kernels.

    Where there are not enough numbers, or L1 has no room, buffers share one: as few as it takes, the largest first.
    Raises ResourceError if they do not fit even so.
    """
    numbers = len(buffers) - target.circular_buffers
    room = missing_l1(buffers, target, layouts)
    homes: dict[str, str] = {}
    if numbers > 0 or room > 0:
        reader = FunctionReader()
        kernels = {role: reader.read(role, function) for role, function in functions.items()}
        loads = [
            buffer
            for buffer in buffers
            if (buffer.producer, buffer.consumer) == ("reader", "compute") and not buffer.shard_of
        ]
        sharable = {buffer.name: buffer for buffer in (*(buffer for buffer in buffers if can_share(buffer)), *loads)}
        occupancy = lifetimes(kernels["compute"], [*sharable.values()])
        ordered = _stored_in_order(kernels, buffers)
        occupancy.unknown.update(
            buffer.name for buffer in sharable.values() if buffer.consumer == "writer" and buffer.name not in ordered
        )
        _add_loads(occupancy, kernels, buffers, [load.name for load in loads])
        joining = [(name, group[0]) for group in _groups(sharable, occupancy) for name in group[1:]]
        # What several kernels use comes last: they can then run less far ahead of each other.
        for name, home in sorted(
            joining,
            key=lambda pair: (sharable[pair[0]].producer != sharable[pair[0]].consumer, -sharable[pair[0]].total_bytes),
        ):
            if numbers <= 0 and room <= 0:
                break
            homes[name] = home
            numbers, room = numbers - 1, room - sharable[name].total_bytes
    numbered = number_buffers(buffers, target, homes)
    check_l1(numbered, target, layouts, decided=True)
    groups = {buffer.index: group for group in chip_buffers(numbered) for buffer in group}
    return tuple(_with_reason(buffer, groups[buffer.index]) for buffer in numbered)


def _groups(buffers: dict[str, CircularBuffer], occupancy: Lifetimes) -> list[list[str]]:
    """Buffers that may be one: in the order of their first use, each joins a group whose blocks are gone by then."""
    groups: list[list[str]] = []
    for name in occupancy.order:
        free = [
            group for group in groups
            if _pages(buffers[group[0]]) == _pages(buffers[name])
            and not any(occupancy.meet(member, name) for member in group)
        ]  # fmt: skip
        if free and name not in occupancy.unknown:
            free[-1].append(name)
        else:
            groups.append([name])
    return groups


def _pages(buffer: CircularBuffer) -> tuple[object, ...]:
    """What is the same for all that share a circular buffer of the chip. Blocks of other sizes would straddle its
    end."""
    return (
        buffer.producer, buffer.consumer, buffer.data_format, buffer.unpack_to_dest,
        buffer.block_pages, buffer.stages, buffer.row_tiles
    )  # fmt: skip


def _stored_in_order(kernels: Mapping[str, Kernel], buffers: Sequence[CircularBuffer]) -> set[str]:
    """The buffers whose blocks the writer takes in the order in which the compute kernel hands them over.

    When the writer waits for one of these, it has taken all that were handed over before it, and whatever else it
    waited for was handed over early: so the compute kernel may wait for the room of any of them. That holds where the
    writer waits for nothing but the compute kernel.
    """
    if any("writer" in (buffer.producer, buffer.consumer) and buffer.producer != "compute" for buffer in buffers):
        return set()
    for_writer = {buffer.name for buffer in buffers if buffer.consumer == "writer"}
    pushed, waited, popped = (
        [(name, site) for operation, name, site in _places(kernels[role].body, for_writer) if operation == expected]
        for role, expected in (("compute", _PUSH), ("writer", _WAIT), ("writer", _POP))
    )
    names = [name for name, _ in waited]
    if waited != popped or sorted(pushed) != sorted(waited) or len(set(names)) < len(names):
        return set()
    in_order: list[str] = []
    for name, _ in reversed(pushed):
        # What is handed over before this and taken after it was early.
        if not in_order or names.index(name) < names.index(in_order[-1]):
            in_order.append(name)
    return set(in_order)


def _add_loads(
    occupancy: Lifetimes, kernels: Mapping[str, Kernel], buffers: Sequence[CircularBuffer], loads: Sequence[str]
) -> None:
    """Find which blocks that the reader loads may follow each other in one circular buffer.

    The compute kernel gives the first away before it waits for the second. And before the reader waits for that, it has
    pushed all that the compute kernel waits for until then.
    """
    if any((buffer.producer, buffer.consumer) == ("reader", "writer") for buffer in buffers):
        return
    names = {buffer.name for buffer in buffers if buffer.producer == "reader"}
    moved = _places(kernels["reader"].body, names), _places(kernels["compute"].body, names)
    # The first wait and the last push of each, where a buffer is filled or emptied in several places.
    at: dict[tuple[str, str], int] = {}
    for calls in moved:
        for number, (operation, name, _) in enumerate(calls):
            if operation != _WAIT or (operation, name) not in at:
                at[(operation, name)] = number
    waits = {name: number for (operation, name), number in at.items() if operation == _WAIT}
    for name in sorted(loads, key=lambda load: at.get((_PUSH, load), 0)):
        stands = [site for calls in moved for _, other_name, site in calls if other_name == name]
        if len(stands) == len(_PROTOCOL) and len(set(stands)) == 1:
            for other_name in occupancy.order:
                if other_name in loads and not _follows(other_name, name, at, waits):
                    occupancy.meeting.add((min(name, other_name), max(name, other_name)))
            occupancy.order[name] = None


def _follows(earlier: str, later: str, at: Mapping[tuple[str, str], int], waits: Mapping[str, int]) -> bool:
    """Whether blocks of `later`, which the reader loads later, may follow those of `earlier`."""
    free, room = at[(_POP, earlier)], at[(_RESERVE, later)]
    return (
        free < waits[later]
        and at[(_PUSH, earlier)] < room
        and all(at[(_PUSH, name)] < room for name, wait in waits.items() if wait < free)
    )


# Where a call stands: its count, the lengths of the loops and the conditions around it.
_Place = tuple[str, ...]


def _places(
    body: Body, names: Collection[str], around: _Place = (), bound: dict[Variable, Expression] | None = None
) -> list[tuple[str, str, _Place]]:
    """The protocol calls on some buffers in order: operation, buffer, and where it stands."""
    bound = {} if bound is None else bound
    calls: list[tuple[str, str, _Place]] = []
    for statement in body:
        match statement:
            case Call():
                if statement.name in _PROTOCOL and statement.buffer("cb") in names:
                    site = (*around, str(statement.number("count")))
                    calls.append((statement.name, statement.buffer("cb"), site))
            case Bind():
                bound[statement.variable] = statement.value
            case Loop():
                inside = (*around, f"for {placed(statement.extent, bound)}")
                calls += _places(statement.body, names, inside, bound)
            case Branch():
                test = str(placed(statement.condition, bound))
                calls += _places(statement.then, names, (*around, f"if {test}"), bound)
                calls += _places(statement.otherwise, names, (*around, f"else {test}"), bound)
            case Allocation() | Store():
                pass
            case _:
                assert_never(statement)
    return calls


def _with_reason(buffer: CircularBuffer, sharing: tuple[CircularBuffer, ...]) -> CircularBuffer:
    if len(sharing) == 1:
        return buffer
    names = ", ".join(sharer.name for sharer in sharing if sharer.name != buffer.name)
    why = "are never there at the same time" if buffer.producer == buffer.consumer else "follow each other"
    reason = f"shares CB {buffer.index} with {names}: their blocks {why}"
    return dataclasses.replace(buffer, reason=f"{buffer.reason}; {reason}" if buffer.reason else reason)


def sharing_notes(buffers: tuple[CircularBuffer, ...]) -> Iterator[Note]:
    """What the plan notes of circular buffers that several share."""
    shared = [group for group in chip_buffers(buffers) if len(group) > 1]
    if shared:
        names = "; ".join(f"CB {group[0].index}: {', '.join(buffer.name for buffer in group)}" for group in shared)
        count = len(chip_buffers(buffers))
        yield note("buffers share", buffers=len(buffers), circular_buffers=count, names=names)
