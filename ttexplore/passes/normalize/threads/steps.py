"""The steps of groups of threads: statements, in the turns of the loops around them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ttexplore.passes.normalize.threads.tree import BranchItem, Item, Leaf, LoopItem, Tree, Values

# The turns of the loops around a statement, outermost first.
Turns = tuple[int, ...]
# A statement, by number, in some turns.
Step = tuple[int, Turns]


def runs(items: Sequence[Item], tree: Tree, values: Values, group: int | None = None) -> Iterator[tuple[Leaf, Turns]]:
    """The steps that a group, or the whole tree, makes, each with the turns of the loops around it."""
    yield from _runs(items, tree, values, group, ())


def _runs(
    items: Sequence[Item], tree: Tree, values: Values, group: int | None, turns: Turns
) -> Iterator[tuple[Leaf, Turns]]:  # fmt: skip
    numbers = tree.numbers
    for item in items:
        if group is not None and group not in item.groups:
            continue
        if any(
            bool(numbers.decided(condition, "the condition", tree.leaves[0].statement)(values)) != holds
            for condition, holds in item.guards
        ):
            continue
        match item:
            case Leaf():
                yield item, turns
            case LoopItem():
                first = item.loops[0]
                low, extent = (
                    numbers.decided(bound, "the length", first)(values) for bound in (first.min, first.extent)
                )
                slots = [numbers.slot(loop.loop_var) for loop in item.loops]
                for iteration in range(low, low + extent):
                    for slot in slots:
                        values[slot] = iteration
                    yield from _runs(item.body, tree, values, group, (*turns, iteration))
            case BranchItem():
                holds = numbers.decided(item.statement.condition, "the condition", item.statement)(values)
                side = item.then if holds else item.otherwise or []
                yield from _runs(side, tree, values, group, turns)
            case _:
                raise AssertionError(item)
