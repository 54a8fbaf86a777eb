"""Which blocks of the compute kernel are never in L1 together, and so can share one circular buffer. Part of D5.

A buffer that the compute kernel both fills and empties is occupied from the reserve of a block to the pop of its last
tile. Buffers with the same pages whose blocks are never there at the same time can be one circular buffer of the chip.
A block that one iteration of a loop leaves for the next one is there in the whole loop.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from tvm import tirx

from ttexplore.ir.index import Key, Range, decided, narrowed, value_range
from ttexplore.ir.kernel import Bind, Branch, Call, Kernel, Loop, Reader, Walk
from ttexplore.passes.core_resources import can_share, check_l1, missing_l1, number_buffers
from ttexplore.plan import CircularBuffer, TensorLayout, chip_buffers
from ttexplore.target import Target

_CHANGES = {"tt.cb_reserve_back": 1, "tt.cb_push_back": 0, "tt.cb_pop_front": -1}


@dataclass
class Lifetimes:
    """The buffers in the order of their first use, the pairs that are occupied at the same time, and those whose blocks
    could not be followed: they are taken to be always there."""

    order: dict[str, None] = field(default_factory=dict[str, None])
    meeting: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    unknown: set[str] = field(default_factory=set[str])

    def meet(self, one: str, other: str) -> bool:
        return not {one, other}.isdisjoint(self.unknown) or (min(one, other), max(one, other)) in self.meeting


def lifetimes(kernel: Kernel, buffers: Sequence[CircularBuffer]) -> Lifetimes:
    """Follow the buffers that a kernel both fills and empties."""
    walk = _Occupied({one.name for one in buffers if one.producer == one.consumer == kernel.role})
    walk.body(kernel.body)
    # What is left would be there when the work goes on with the next item.
    walk.found.unknown.update(walk.tiles)
    return walk.found


class _Occupied(Walk):
    """`tiles` are the tiles that each occupied buffer holds or has room reserved for, on the path so far."""

    def __init__(self, names: Collection[str]) -> None:
        self.names = names
        self.tiles: dict[str, int] = {}
        self.reserved: dict[str, int] = {}
        self.found = Lifetimes()
        self.known: dict[Key, Range] = {}

    def call(self, call: Call) -> None:
        if call.name not in _CHANGES or call.buffer("cb") not in self.names:
            return
        name, count = call.buffer("cb"), call.number("count")
        if call.name == "tt.cb_reserve_back":
            # A push takes what was reserved, and a second reserve asks for the same room again.
            held = self.tiles.get(name, 0) - self.reserved.get(name, 0)
            self.tiles[name], self.reserved[name] = held + count, count
            self.found.order.setdefault(name)
            self.found.meeting.update((min(name, one), max(name, one)) for one in self.tiles if one != name)
        elif call.name == "tt.cb_push_back":
            self.reserved[name] = self.reserved.get(name, 0) - count
        else:
            self.hold(name, self.tiles.get(name, 0) - count)

    def bind(self, bind: Bind) -> None:
        found = value_range(bind.value, self.known)
        if found is not None:
            self.known[bind.variable] = found

    def branch(self, branch: Branch) -> None:
        answer = decided(branch.condition, self.known)
        if answer is not None:
            self.body(branch.then if answer else branch.otherwise)
            return
        before, known = self._state(), self.known
        self.known = narrowed(branch.condition, known, holds=True)
        self.body(branch.then)
        one, self.known = self._state(), narrowed(branch.condition, known, holds=False)
        self.tiles, self.reserved = before
        self.body(branch.otherwise)
        self.known = known
        self._join(one)

    def loop(self, loop: Loop) -> None:
        if loop.turns == 0 or not loop.names & _CHANGES.keys():
            return
        if loop.turns is None or not isinstance(loop.low, int):
            before = self._state()
            self.known.pop(loop.variable, None)
            self._turns(loop)
            self._join(before)
            return
        first, last = loop.low, loop.low + loop.turns - 1
        parts = [(first, last)]
        if loop.variable in loop.tested:
            parts = [(first, first), (first + 1, last - 1), (last, last)]
        for low, high in parts:
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
            held = [one[0].get(name, 0) for one in (before, after, last)]
            if len({one[1].get(name, 0) for one in (before, after, last)}) > 1:
                self.found.unknown.add(name)
            elif held[1] == held[2]:
                continue
            elif count is not None and held[2] - held[1] == held[1] - held[0]:
                # Each iteration fills, or empties, a part of a block.
                self.hold(name, held[0] + count * (held[1] - held[0]))
            else:
                self.found.unknown.add(name)

    def hold(self, name: str, tiles: int) -> None:
        self.tiles[name] = tiles
        if not tiles:
            del self.tiles[name]

    def _state(self) -> tuple[dict[str, int], dict[str, int]]:
        return dict(self.tiles), dict(self.reserved)

    def _join(self, other: tuple[dict[str, int], dict[str, int]]) -> None:
        """Go on from where two paths join. Buffers that hold more on one of them are not followed any further."""
        tiles, reserved = other
        for name in tiles.keys() | self.tiles.keys():
            held = (tiles.get(name, 0), reserved.get(name, 0))
            if held != (self.tiles.get(name, 0), self.reserved.get(name, 0)):
                self.found.unknown.add(name)


def with_numbers(
    buffers: tuple[CircularBuffer, ...], function: tirx.PrimFunc, target: Target, layouts: tuple[TensorLayout, ...]
) -> tuple[CircularBuffer, ...]:
    """The circular buffers of a program, each with its number; `function` is the compute kernel.

    Where there are not enough numbers, or L1 has no room, buffers share one: as few as it takes, the largest first.
    Raises ResourceError if they do not fit even so.
    """
    numbers = len(buffers) - target.circular_buffers
    room = missing_l1(buffers, target, layouts)
    homes: dict[str, str] = {}
    if numbers > 0 or room > 0:
        own = {one.name: one for one in buffers if can_share(one)}
        groups = _groups(own, lifetimes(Reader().read("compute", function), [*own.values()]))
        joining = [(name, group[0]) for group in groups for name in group[1:]]
        for name, home in sorted(joining, key=lambda one: -own[one[0]].total_bytes):
            if numbers <= 0 and room <= 0:
                break
            homes[name] = home
            numbers, room = numbers - 1, room - own[name].total_bytes
    made = number_buffers(buffers, target, homes)
    check_l1(made, target, layouts, decided=True)
    groups = {one.index: group for group in chip_buffers(made) for one in group}
    return tuple(_with_reason(one, groups[one.index]) for one in made)


def _groups(buffers: dict[str, CircularBuffer], found: Lifetimes) -> list[list[str]]:
    """Buffers that may be one: in the order of their first use, each joins a group whose blocks are gone by then."""
    groups: list[list[str]] = []
    for name in found.order:
        free = [
            group for group in groups
            if _pages(buffers[group[0]]) == _pages(buffers[name]) and not any(found.meet(one, name) for one in group)
        ]  # fmt: skip
        if free and name not in found.unknown:
            free[-1].append(name)
        else:
            groups.append([name])
    return groups


def _pages(buffer: CircularBuffer) -> tuple[object, ...]:
    """What is the same for all that share a circular buffer of the chip. Blocks of other sizes would straddle its
    end."""
    return buffer.data_format, buffer.unpack_to_dest, buffer.block_pages, buffer.stages, buffer.row_tiles


def _with_reason(buffer: CircularBuffer, sharing: tuple[CircularBuffer, ...]) -> CircularBuffer:
    if len(sharing) == 1:
        return buffer
    others = ", ".join(one.name for one in sharing if one.name != buffer.name)
    reason = f"shares CB {buffer.index} with {others}: their blocks are never there at the same time"
    return dataclasses.replace(buffer, reason=f"{buffer.reason}; {reason}" if buffer.reason else reason)


def sharing_notes(buffers: tuple[CircularBuffer, ...]) -> Iterator[str]:
    """What the plan notes of circular buffers that several share."""
    shared = [group for group in chip_buffers(buffers) if len(group) > 1]
    if shared:
        names = "; ".join(f"CB {group[0].index}: {', '.join(one.name for one in group)}" for group in shared)
        yield (
            f"{len(buffers)} buffers use {len(chip_buffers(buffers))} circular buffers, because a core has no more or "
            f"its L1 no room: their blocks are never there at the same time ({names})"
        )
