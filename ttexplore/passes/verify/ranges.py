"""The ranges of the values that cores are given, and what follows from them for loops."""

from __future__ import annotations

from collections.abc import Mapping

from ttexplore.ir.arithmetic.index import (
    ANY_ITEM,
    Binary,
    CoreValue,
    Expression,
    Key,
    Range,
    Variable,
    follows,
    placed,
    value_range,
)
from ttexplore.ir.kernel import Bind, Loop, Walk
from ttexplore.plan import Partition


def core_ranges(partition: Partition | None) -> dict[Key, Range]:
    """The range of each value that cores are given, over all cores."""
    cores = partition.cores if partition is not None else ()
    names = dict.fromkeys(name for core in cores for name in core.values)
    values = {name: [core.values.get(name, 0) for core in cores] for name in names}
    ranges: dict[Key, Range] = {CoreValue(name): (min(all_), max(all_)) for name, all_ in values.items()}
    if listed := [item for core in cores for item in core.listed]:
        ranges[ANY_ITEM] = (min(listed), max(listed))
    return ranges


class RangeWalk(Walk):
    """Goes through a kernel and keeps the range of each variable that it meets."""

    def __init__(self, partition: Partition | None, ranges: Mapping[Key, Range]) -> None:
        """`ranges` are the ranges of the values that cores are given."""
        self.partition = partition
        self.known: dict[Key, Range] = {**ranges}
        # What the names stand for.
        self.bound: dict[Variable, Expression] = {}
        # The number of iterations of each loop around that counts from 0.
        self.counts: dict[Variable, Expression] = {}
        # The conditions of the branches around.
        self.given: list[Expression] = []

    def bind(self, bind: Bind) -> None:
        self.bound[bind.variable] = bind.value
        counted = _counted_range(placed(bind.value, self.bound), self.counts, self.partition)
        bounds = counted or value_range(bind.value, self.known)
        if bounds is not None:
            self.known[bind.variable] = bounds

    def learn_count(self, loop: Loop) -> None:
        """Keep how far a loop counts, for the names that its body binds."""
        if loop.low == 0:
            self.counts[loop.variable] = placed(loop.extent, self.bound)

    def may_be_empty(self, loop: Loop) -> bool:
        """Whether a loop may run zero iterations, as far as ranges, the values of names and the conditions of the
        branches around it show."""
        turns = Binary(">=", loop.extent, 1)
        if follows(turns, self.given, self.known):
            return False
        conditions = [placed(condition, self.bound) for condition in self.given]
        return not follows(placed(turns, self.bound), conditions, self.known)


def _counted_range(
    value: Expression, counts: Mapping[Variable, Expression], partition: Partition | None
) -> Range | None:
    """The range of a number that counts up, or None for another one: a core is given where it starts and how many
    turns a loop makes, and both together say more than the range of each over all cores.

    `counts` are the numbers of turns of the loops around, by variable.
    """
    match value:
        case Binary("+", CoreValue(start), Variable() as item):
            step = 1
        case Binary("+", CoreValue(start), Binary("*", Variable() as item, int(step))):
            pass
        case _:
            return None
    count = counts.get(item)
    if partition is None or not isinstance(count, CoreValue) or step < 1:
        return None
    spans = ((core.values.get(start, 0), core.values.get(count.name, 0)) for core in partition.cores)
    ends = [(first, first + (turns - 1) * step) for first, turns in spans if turns > 0]
    return (min(first for first, _ in ends), max(last for _, last in ends)) if ends else None
