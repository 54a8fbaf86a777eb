"""The ranges of the values that cores are given, and what follows from them for loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ttexplore.ir.index import ANY_ITEM, Binary, CoreValue, Expression, Key, Range, Variable, follows, placed
from ttexplore.ir.kernel import Loop
from ttexplore.plan import Partition


def core_ranges(partition: Partition | None) -> dict[Key, Range]:
    """The range of each value that cores are given, over all cores."""
    cores = partition.cores if partition is not None else ()
    names = dict.fromkeys(name for core in cores for name in core.values)
    values = {name: [core.values.get(name, 0) for core in cores] for name in names}
    found: dict[Key, Range] = {CoreValue(name): (min(all_), max(all_)) for name, all_ in values.items()}
    if listed := [item for core in cores for item in core.listed]:
        found[ANY_ITEM] = (min(listed), max(listed))
    return found


def counted_range(
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
    given = ((core.values.get(start, 0), core.values.get(count.name, 0)) for core in partition.cores)
    ends = [(first, first + (turns - 1) * step) for first, turns in given if turns > 0]
    return (min(first for first, _ in ends), max(last for _, last in ends)) if ends else None


def may_be_empty(
    loop: Loop, known: Mapping[Key, Range], bound: Mapping[Variable, Expression], given: Sequence[Expression]
) -> bool:
    """Whether a loop may run zero iterations, as far as ranges, the values of names and the `given` conditions of the
    branches around it show."""
    turns = Binary(">=", loop.extent, 1)
    if follows(turns, given, known):
        return False
    return not follows(placed(turns, bound), [placed(one, bound) for one in given], known)
