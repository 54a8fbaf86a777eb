"""The ranges of the values that cores are given, and what follows from them for loops."""

from __future__ import annotations

from collections.abc import Mapping

from ttexplore.ir.index import ANY_ITEM, Binary, CoreValue, Expression, Key, Range, Variable, always, placed
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


def may_be_empty(loop: Loop, known: Mapping[Key, Range], bound: Mapping[Variable, Expression]) -> bool:
    """Whether a loop may run zero iterations, as far as ranges and the values of names show."""
    lengths = (loop.extent, placed(loop.extent, bound))
    return not any(always(Binary(">=", one, 1), known) for one in lengths)
