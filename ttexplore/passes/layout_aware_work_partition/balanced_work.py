"""Division of work items that take different times, as under a causal mask, so that all cores end together."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence

from ttexplore.analysis.core_sets import Core
from ttexplore.analysis.work_orders import in_order
from ttexplore.plan import item_block


def balanced_items(
    grid: tuple[int, ...], cores: Sequence[Core], order: str, edge: int | None, cycles: Callable[[int], float]
) -> dict[Core, list[int]]:
    """The items of each core: the longest item first, each goes to the core with the least work so far. A core runs
    its items in the given order."""
    items = in_order(grid, order, edge)
    loads = [(0.0, position) for position in range(len(cores))]
    lists: list[list[int]] = [[] for _ in cores]
    # Sorting is stable: of items that take as long, the first in the order comes first.
    for item in sorted(items, key=lambda item: -cycles(item)):
        load, position = loads[0]
        heapq.heapreplace(loads, (load + cycles(item), position))
        lists[position].append(item)
    positions = {item: position for position, item in enumerate(items)}
    return {core: sorted(mine, key=positions.__getitem__) for core, mine in zip(cores, lists, strict=True) if mine}


def longest_cycles(lists: Mapping[Core, Sequence[int]], cycles: Callable[[int], float]) -> float:
    """The cycles of the core with the most work."""
    return max(sum(map(cycles, items)) for items in lists.values())


def cycles_by_number(grid: tuple[int, ...], cycles: Callable[[tuple[int, ...]], float]) -> Callable[[int], float]:
    """What each work item takes, by its number."""
    return [cycles(item_block(grid, item)) for item in in_order(grid, "row_major", None)].__getitem__
