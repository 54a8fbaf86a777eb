"""Blocks with several slots, of which groups of threads fill one while they use another: one block, as deep."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ttexplore.ir.adapter import identity
from ttexplore.ir.build import scope_of, shape_of
from ttexplore.ir.operations.groups import BARRIER_SCOPE
from ttexplore.passes.normalize.threads.steps import runs
from ttexplore.passes.normalize.threads.trace import GroupTrace
from ttexplore.passes.normalize.threads.tree import Axis, Item

# A block has two dimensions, or one.
_MOST_DIMENSIONS = 2


def slots_of(items: Sequence[Item], trace: GroupTrace) -> dict[int, int]:
    """The number of slots of each buffer, by identity, of which one is enough when the items are done in their order:
    what is read was written to the same slot, and no other slot since."""
    slots_by_buffer: dict[int, _Slots] = {}
    for statement in trace.tree.allocations:
        shape = shape_of(statement.buffer)
        if scope_of(statement.buffer) != BARRIER_SCOPE and len(shape) > _MOST_DIMENSIONS:
            slots_by_buffer[identity(statement.buffer)] = _Slots(shape)
    if not slots_by_buffer:
        return {}
    values = [*trace.values]
    for leaf, _ in runs(items, trace.tree, values):
        touched = [
            (slots, touch)
            for touch in leaf.accesses
            if (slots := slots_by_buffer.get(identity(touch.buffer))) is not None
        ]
        for writes in (False, True):
            for slots, touch in touched:
                if touch.kind == "update" or (touch.kind == "write") == writes:
                    slots.access(touch.region(values), writes=writes)
    return {key: slots.count for key, slots in slots_by_buffer.items() if slots.is_one}


class _Slots:
    """The slots of a buffer: the last one written, and which of its elements were."""

    def __init__(self, shape: Sequence[int]) -> None:
        self.count = shape[0]
        self.shape = tuple(shape[1:])
        self.slot: int | None = None
        self.written: NDArray[np.bool_] = np.zeros(self.shape, bool)
        self.is_one = True

    def access(self, region: tuple[Axis, ...], *, writes: bool) -> None:
        first, *rest = region
        positions = [self.places(axis, extent) for axis, extent in zip(rest, self.shape, strict=True)]
        if first is None or first[0] or first[2] - first[1] != 1 or any(position is None for position in positions):
            self.is_one = False
            return
        inside = tuple(position for position in positions if position is not None)
        if not writes:
            self.is_one &= self.slot == first[1] and bool(self.written[inside].all())
            return
        if self.slot != first[1]:
            self.written[...] = False
        self.slot = first[1]
        self.written[inside] = True

    @staticmethod
    def places(axis: Axis, extent: int) -> slice | None:
        if axis is None:
            return slice(0, extent)
        return None if axis[0] else slice(axis[1], axis[2])
