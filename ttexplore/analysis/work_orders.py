"""The orders in which cores may process work items, and evenly spaced runs of items.

A work item is a block (x, y, z) of the launch grid, numbered in row-major order. An order applies within each z slice
of the grid; slices follow one another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import prod

from ttexplore.notes import Note, note
from ttexplore.options import Options
from ttexplore.plan import launch_extents


def in_order(grid: Sequence[int], order: str, edge: int | None, items: Iterable[int] | None = None) -> list[int]:
    """All work items, or the given ones, sorted in this order."""
    columns, rows, _ = launch_extents(grid)

    def position_of(item: int) -> tuple[int, ...]:
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
                raise ValueError(f"{order} is not an order")

    return sorted(range(prod(grid)) if items is None else items, key=position_of)


def _interleaved(x: int, y: int) -> int:
    """The bits of x and y interleaved, x first: the position on the Morton (Z-order) curve."""
    morton_code = 0
    for bit in range(max(x.bit_length(), y.bit_length())):
        morton_code |= (x >> bit & 1) << 2 * bit | (y >> bit & 1) << 2 * bit + 1
    return morton_code


def common_step(lists: Iterable[Sequence[int]]) -> int | None:
    """The common difference of neighbours in all lists, 1 if no list has two items; None if there is none."""
    steps = {after - before for items in lists for before, after in pairwise(items)}
    if not steps:
        return 1
    step = steps.pop()
    return step if not steps and step > 0 else None


def note_on_work(options: Options) -> Note:
    """What the options ask for, or the default."""
    if options.work_lists is not None:
        return note("work lists")
    policy = options.policy or "contiguous"
    own_order = policy.replace("-", "_").startswith(("block_linear", "z_order"))
    order = options.order or ("" if own_order else "row-major")
    return note("schedule", schedule=", ".join(word for word in (policy, order) if word))
