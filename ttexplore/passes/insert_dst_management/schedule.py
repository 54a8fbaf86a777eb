"""Schedule a straight line of tile operations on the slots of DST, in the cheapest sections that are found.

Pure data: nothing here depends on the IR. One *value* is one tile that an operation makes; an operation that changes a
tile in place makes a new value in the same slot. Within a section, values stay in their slots; a value that a later
section needs is packed at the end of the section and copied back right before its next use. A value that is in a
circular buffer anyway, or that one operation computes from circular buffers alone, is fetched on demand and may be
dropped at any time.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ttexplore.ops.costs import COPY_CYCLES, INIT_CYCLES, PACK_CYCLES, SECTION_CYCLES


@dataclass(frozen=True, slots=True)
class TileOperation:
    """One operation on one tile of each value; values are numbers, each written once.

    `in_place` says that it changes the slot of `reads[0]`; `fresh` that it adds to its slot, which must be unused in
    the section; `overlay` that the result may take the slot of a value that it reads for the last time. An operation
    that `packs` writes its value to a circular buffer at the end of its section.
    """

    reads: tuple[int, ...] = ()
    writes: int | None = None
    in_place: bool = False
    fresh: bool = False
    overlay: bool = True
    packs: bool = False
    cycles: int = 0


@dataclass(frozen=True, slots=True)
class ValueSource:
    """A value that can be fetched at any time, for `cycles`.

    `fresh` says that fetching may leave the slot untouched and rely on its zeros: the slot must be unused, and the
    value stays in it until its last use.
    """

    cycles: int = COPY_CYCLES
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class Fetch:
    """Bring a value into a slot."""

    value: int
    slot: int


@dataclass(frozen=True, slots=True)
class SlotOperation:
    """Run an operation on slots: one for each value that it reads, in order, and the one that it writes."""

    operation: int
    reads: tuple[int, ...]
    writes: int | None


@dataclass(frozen=True, slots=True)
class Section:
    """The `actions` between acquiring DST and committing it, then the `packs` of operations (number, slot) and the
    `stores` of values that are spilled or leave (value, slot)."""

    actions: tuple[Fetch | SlotOperation, ...]
    packs: tuple[tuple[int, int], ...]
    stores: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Schedule:
    """The sections of a straight line; `cycles` estimates the cost per tile, `section_cycles` the cost per sub-block,
    independent of its number of tiles."""

    sections: tuple[Section, ...]
    cycles: int
    section_cycles: int

    @property
    def spilled(self) -> tuple[int, ...]:
        """The values that one section leaves for a later one."""
        fetched = {a.value for section in self.sections for a in section.actions if isinstance(a, Fetch)}
        return tuple(value for section in self.sections for value, _ in section.stores if value in fetched)


@dataclass
class _SectionState:
    """A section being filled: which value is in which slot. `dirty` values exist nowhere else, `packed` values must
    stay until the end of the section, `held` values cannot be fetched a second time."""

    slots: dict[int, int] = field(default_factory=dict[int, int])
    dirty: set[int] = field(default_factory=set[int])
    packed: set[int] = field(default_factory=set[int])
    held: set[int] = field(default_factory=set[int])
    free: list[int] = field(default_factory=list[int])
    used: int = 0
    cycles: int = 0
    once: int = SECTION_CYCLES
    actions: list[Fetch | SlotOperation] = field(default_factory=list[Fetch | SlotOperation])
    packs: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])


class _Line:
    """A straight line of operations with the places where each value is read."""

    def __init__(
        self,
        operations: Sequence[TileOperation],
        sources: Mapping[int, ValueSource],
        outputs: frozenset[int],
        slots: int,
    ) -> None:
        self.operations, self.sources, self.outputs, self.capacity = operations, sources, outputs, slots
        self.uses: dict[int, list[int]] = {}
        for position, operation in enumerate(operations):
            for value in operation.reads:
                self.uses.setdefault(value, []).append(position)

    def next_use(self, value: int, after: int) -> int | None:
        uses = self.uses.get(value, ())
        later = bisect.bisect_right(uses, after)
        return uses[later] if later < len(uses) else None

    def wanted(self, value: int, after: int) -> bool:
        """Whether a value is read after an operation, or leaves the line."""
        return value in self.outputs or self.next_use(value, after) is not None

    def sections_from(self, start: int) -> Iterator[tuple[int, int, int, _SectionState]]:
        """The possible ends of a section from `start`, with the cost per tile and per sub-block of each."""
        state = _SectionState()
        for position in range(start, len(self.operations)):
            if not self.step(state, position):
                return
            stores = sum(1 for value in state.dirty if self.wanted(value, position))
            again = sum(1 for v in state.dirty if v in self.outputs and self.next_use(v, position) is not None)
            yield position + 1, state.cycles + (stores + again) * PACK_CYCLES, state.once + stores * INIT_CYCLES, state

    def step(self, state: _SectionState, position: int) -> bool:
        """Add one more operation to the section; False if its values do not fit."""
        operation = self.operations[position]
        for value in operation.reads:
            if value not in state.slots and not self.fetch(state, value, operation, position):
                return False
        reads = tuple(state.slots[value] for value in operation.reads)
        if operation.packs:
            state.packed.add(operation.reads[0])
            state.packs.append((position, reads[0]))
            state.cycles += PACK_CYCLES
            return True
        written = self.write(state, operation, position)
        if operation.writes is not None and written is None:
            return False
        state.actions.append(SlotOperation(position, reads, written))
        state.cycles += operation.cycles
        state.once += INIT_CYCLES
        self.drop_dead(state, (*operation.reads, *(() if operation.writes is None else (operation.writes,))), position)
        return True

    def fetch(self, state: _SectionState, value: int, operation: TileOperation, position: int) -> bool:
        source = self.sources.get(value, ValueSource())
        slot = self.allocate(state, source.fresh, operation.reads, position)
        if slot is None:
            return False
        state.slots[value] = slot
        if source.fresh:
            state.held.add(value)
        state.actions.append(Fetch(value, slot))
        state.cycles += source.cycles
        state.once += INIT_CYCLES
        return True

    def write(self, state: _SectionState, operation: TileOperation, position: int) -> int | None:
        if operation.writes is None:
            return None
        if operation.in_place:
            old = operation.reads[0]
            if old in state.packed:
                return None
            slot = state.slots.pop(old)
            state.dirty.discard(old)
        else:
            overlay = operation.overlay and not operation.fresh
            if overlay:
                self.drop_dead(state, operation.reads, position)
            # A value that can be fetched again may be overwritten while it is read.
            allocated = self.allocate(state, operation.fresh, () if overlay else operation.reads, position)
            if allocated is None:
                return None
            slot = allocated
        state.slots[operation.writes] = slot
        state.dirty.add(operation.writes)
        return slot

    def allocate(self, state: _SectionState, fresh: bool, pinned: tuple[int, ...], position: int) -> int | None:
        """A slot: a free one, otherwise an unused one, otherwise that of the fetched value with the latest next use."""
        if state.free and not fresh:
            slot = min(state.free)
            state.free.remove(slot)
            return slot
        if state.used < self.capacity:
            state.used += 1
            return state.used - 1
        if fresh:
            return None
        needed = {*state.dirty, *state.packed, *state.held, *pinned}
        droppable = [value for value in state.slots if value not in needed]
        if not droppable:
            return None
        last = len(self.operations)
        value = max(droppable, key=lambda v: (self.next_use(v, position) or last, -v))
        return state.slots.pop(value)

    def drop_dead(self, state: _SectionState, values: tuple[int, ...], position: int) -> None:
        for value in values:
            if value not in state.slots or value in state.packed:
                continue
            leaves = value in state.dirty and value in self.outputs
            if not leaves and self.next_use(value, position) is None:
                state.free.append(state.slots.pop(value))
                state.dirty.discard(value)

    def close(self, state: _SectionState, end: int) -> Section:
        stores = tuple((v, state.slots[v]) for v in sorted(state.dirty) if self.wanted(v, end - 1))
        return Section(tuple(state.actions), tuple(state.packs), stores)


def schedule(
    operations: Sequence[TileOperation],
    sources: Mapping[int, ValueSource],
    outputs: frozenset[int],
    slots: int,
    tiles: int,
) -> Schedule | None:
    """The cheapest sections found for `operations` on sub-blocks of `tiles` tiles, with `slots` slots for each tile;
    None if a single operation needs more slots.

    `sources` are the values that need not be spilled, because they can be fetched at any time; `outputs` are those that
    leave, in the section that makes them. Dynamic programming over all positions chooses where sections end. A section
    keeps a fetched value until its slot is needed for a value with an earlier use.
    """
    line = _Line(operations, sources, outputs, slots)
    last = len(operations)
    best: dict[int, tuple[int, int, int]] = {0: (0, 0, 0)}
    for start in range(last):
        if start not in best:
            continue
        cycles, once, _ = best[start]
        for end, own_cycles, own_once, _ in line.sections_from(start):
            total, total_once = cycles + own_cycles, once + own_once
            previous = best.get(end)
            if previous is None or total * tiles + total_once < previous[0] * tiles + previous[1]:
                best[end] = (total, total_once, start)
        if start == 0 and last in best:
            break
    if last not in best:
        return None
    ends = [last]
    while ends[-1]:
        ends.append(best[ends[-1]][2])
    ends.reverse()
    sections: list[Section] = []
    for start, end in itertools.pairwise(ends):
        state = next(reached_state for reached, _, _, reached_state in line.sections_from(start) if reached == end)
        sections.append(line.close(state, end))
    return Schedule(tuple(sections), best[last][0], best[last][1])
