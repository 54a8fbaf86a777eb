"""Work items in the orders in which cores may do them, and runs of them as numbers.

A work item is a block of the launch grid (x, y, z), numbered row-major. An order is applied to each slice of the grid
along z; the slices follow one another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import prod

from ttexplore.plan import launch_extents


def in_order(grid: Sequence[int], order: str, edge: int | None, items: Iterable[int] | None = None) -> list[int]:
    """All work items, or those given, as a core does them in this order."""
    columns, rows, _ = launch_extents(grid)

    def place(item: int) -> tuple[int, ...]:
        x, y, z = item % columns, item // columns % rows, item // (columns * rows)
        match order:
            case "row_major":
                return z, y, x
            case "column_major":
                return z, x, y
            case "block_linear":
                assert edge is not None, "parse_order gives it"
                return z, y // edge, x // edge, y, x
            case "z_order":
                return z, _interleaved(x, y)
            case _:
                raise ValueError(f"{order} is no order")

    return sorted(range(prod(grid)) if items is None else items, key=place)


def _interleaved(x: int, y: int) -> int:
    """The bits of x and y in turn, x first: a place on the Z-shaped curve of Morton."""
    made = 0
    for bit in range(max(x.bit_length(), y.bit_length())):
        made |= (x >> bit & 1) << 2 * bit | (y >> bit & 1) << 2 * bit + 1
    return made


def common_step(lists: Iterable[Sequence[int]]) -> int | None:
    """The step by which every list counts up, 1 where none has two items; None where there is no such step."""
    steps = {after - before for items in lists for before, after in pairwise(items)}
    if not steps:
        return 1
    step = steps.pop()
    return step if not steps and step > 0 else None
