"""Put what groups of threads do into one order: loops that depend on each other go turn by turn."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tvm import tirx

from ttexplore.errors import Unsupported
from ttexplore.ir.adapter import span_of
from ttexplore.ir.dag import same_expression
from ttexplore.passes.normalize.threads.races import Edge
from ttexplore.passes.normalize.threads.steps import Turns, runs
from ttexplore.passes.normalize.threads.trace import GroupTrace
from ttexplore.passes.normalize.threads.tree import BranchItem, Guard, Item, Leaf, LoopItem
from ttexplore.record import Span

_HINT = (
    "write the loop once, for all threads: T.Pipelined and T.copy, which the reader runs ahead of the compute kernel"
)


def ordered(traces: Sequence[GroupTrace]) -> list[Item]:
    """The items of a tree, whose groups ran in several ways, in an order in which one thread can do them. Raises
    Unsupported where there is none that goes through the loops turn by turn."""
    return _Order(traces).sorted(traces[0].tree.items, 0)


@dataclass
class _Order:
    traces: Sequence[GroupTrace]

    def __post_init__(self) -> None:
        self.tree = self.traces[0].tree
        self.pairs: dict[tuple[int, int], list[tuple[Turns, Turns]]] = {}
        for first, turns, second, later in {edge: None for trace in self.traces for edge in trace.races.edges}:
            self.pairs.setdefault((first, second), []).append((turns, later))

    def sorted(self, items: list[Item], depth: int) -> list[Item]:
        """The items of one body, `depth` loops around it, in order; those in them as well."""
        while True:
            after = self.after(items, depth)
            merged = self.merged(items, after, depth)
            if merged is None:
                sorted_items = _topological(items, after)
                if sorted_items is not None:
                    break
                merged = self.dissolved(items, after)
            items = merged
        for item in sorted_items:
            match item:
                case LoopItem():
                    item.body = self.sorted(item.body, depth + 1)
                case BranchItem():
                    item.then = self.sorted(item.then, depth)
                    item.otherwise = None if item.otherwise is None else self.sorted(item.otherwise, depth)
                case _:
                    pass
        return sorted_items

    def after(self, items: Sequence[Item], depth: int) -> list[set[int]]:
        """For each item the places of those that must come after it."""
        number_of = {leaf: number for number, item in enumerate(items) for leaf in item.leaves}
        successors: list[set[int]] = [set() for _ in items]
        # What a group does, it does in the kernel's order.
        leaves = self.tree.leaves
        for group in range(len(self.tree.grouping.groups)):
            ranked = [
                (min(leaf for leaf in item.leaves if group in leaves[leaf].groups), number)
                for number, item in enumerate(items)
                if group in item.groups and any(group in leaves[leaf].groups for leaf in item.leaves)
            ]
            ranked.sort()
            for (_, source), (_, target) in itertools.pairwise(ranked):
                successors[source].add(target)
        for (first, second), turns in self.pairs.items():
            source, target = number_of.get(first), number_of.get(second)
            if source is None or target is None or source == target or target in successors[source]:
                continue
            if any(a[:depth] == b[:depth] for a, b in turns):
                successors[source].add(target)
        return successors

    def merged(self, items: list[Item], after: list[set[int]], depth: int) -> list[Item] | None:
        """The items with two loops as one that goes turn by turn, if any two can be."""
        for number, first in enumerate(items):
            for follower in sorted(after[number]):
                second = items[follower]
                if self.can_go_together(first, second, depth) and not _is_between(after, number, follower):
                    assert isinstance(first, LoopItem)
                    assert isinstance(second, LoopItem)
                    body = sorted([*first.body, *second.body], key=lambda item: item.number)
                    merged_loop = LoopItem(
                        min(first.number, second.number), first.groups | second.groups, first.leaves | second.leaves,
                        first.guards, loops=[*first.loops, *second.loops], body=body,
                    )  # fmt: skip
                    rest = [item for item in items if item is not first and item is not second]
                    return sorted([*rest, merged_loop], key=lambda item: item.number)
        return None

    def can_go_together(self, first: Item, second: Item, depth: int) -> bool:
        if not isinstance(first, LoopItem) or not isinstance(second, LoopItem) or first.groups & second.groups:
            return False
        a, b = first.loops[0], second.loops[0]
        if not (same_expression(a.min, b.min) and same_expression(a.extent, b.extent)) or first.guards != second.guards:
            return False
        for side, counterpart in ((first, second), (second, first)):
            for leaf in side.leaves:
                for later in counterpart.leaves:
                    for turns, following in self.pairs.get((leaf, later), ()):
                        if turns[:depth] == following[:depth] and turns[depth] > following[depth]:
                            return False
        return True

    def dissolved(self, items: list[Item], after: list[set[int]]) -> list[Item]:
        """The items with what is in branches that are in a circle on its own."""
        circle = _circle(after)
        if not any(isinstance(items[number], BranchItem) for number in circle):
            raise self.no_order([items[number] for number in circle])
        flat_items: list[Item] = []
        for number, item in enumerate(items):
            if number not in circle or not isinstance(item, BranchItem):
                flat_items.append(item)
                continue
            for holds, side in ((True, item.then), (False, item.otherwise or [])):
                guard: Guard = (item.statement.condition, holds)
                for inner in side:
                    # A name holds in the rest of its branch, which may be in pieces now.
                    if isinstance(inner, Leaf) and isinstance(inner.statement, tirx.Bind):
                        if inner.accesses:
                            raise self.no_order([item])
                    else:
                        inner.guards = (*item.guards, guard, *inner.guards)
                    flat_items.append(inner)
        return flat_items

    def no_order(self, items: Sequence[Item]) -> Unsupported:
        lines = sorted({line.line for item in items if (line := _line(item)) is not None})
        first = next((span for item in items if (span := _line(item)) is not None), None)
        return Unsupported(
            "L017",
            "these groups of threads are no loop that goes turn by turn: each of these lines has to come before "
            f"another one\n  lines {', '.join(map(str, lines))}",
            hint=_HINT,
            span=first,
        )


def _line(item: Item) -> Span | None:
    match item:
        case Leaf():
            return span_of(item.statement)
        case LoopItem():
            return span_of(item.loops[0])
        case BranchItem():
            return span_of(item.statement)
        case _:
            raise AssertionError(item)


def _is_between(after: Sequence[set[int]], first: int, last: int) -> bool:
    """Whether anything must come between two items."""
    for start, end in ((first, last), (last, first)):
        visited = {start}
        waiting = [number for number in after[start] if number != end]
        while waiting:
            number = waiting.pop()
            if number == end:
                return True
            if number not in visited:
                visited.add(number)
                waiting += after[number]
    return False


def _topological(items: Sequence[Item], after: Sequence[set[int]]) -> list[Item] | None:
    """The items in an order, the kernel's own where there are several; None where they go in a circle."""
    before = [0] * len(items)
    for following in after:
        for follower in following:
            before[follower] += 1
    ready = [(items[number].number, number) for number, count in enumerate(before) if count == 0]
    heapq.heapify(ready)
    sorted_items: list[Item] = []
    while ready:
        _, number = heapq.heappop(ready)
        sorted_items.append(items[number])
        for follower in after[number]:
            before[follower] -= 1
            if before[follower] == 0:
                heapq.heappush(ready, (items[follower].number, follower))
    return sorted_items if len(sorted_items) == len(items) else None


def _circle(after: Sequence[set[int]]) -> set[int]:
    """The places of items that must come before themselves."""

    def reached(start: int) -> set[int]:
        visited: set[int] = set()
        waiting = [*after[start]]
        while waiting:
            number = waiting.pop()
            if number not in visited:
                visited.add(number)
                waiting += after[number]
        return visited

    return {number for number in range(len(after)) if number in reached(number)}


def check_order(items: Sequence[Item], trace: GroupTrace) -> None:
    """Run the items in their order and compare with what the groups do: each step once, a group's in its order, and
    all that depends on each other. Raises Unsupported where the order is another one."""
    position_of: dict[tuple[int, Turns], int] = {}
    for number, (leaf, turns) in enumerate(runs(items, trace.tree, [*trace.values])):
        key = (min(leaf.leaves), turns)
        if key in position_of:
            raise _wrong(leaf)
        position_of[key] = number
    for steps in trace.done:
        last = -1
        for step in steps:
            now = position_of.get(step, -1)
            if now <= last:
                raise _wrong(trace.tree.leaves[step[0]])
            last = now
    assert len({step for steps in trace.done for step in steps}) == len(position_of), "a step of no group"
    _check_edges(trace.races.edges, position_of, trace)


def _check_edges(edges: Iterable[Edge], position_of: dict[tuple[int, Turns], int], trace: GroupTrace) -> None:
    for first, turns, second, later in edges:
        if position_of[first, turns] >= position_of[second, later]:
            raise _wrong(trace.tree.leaves[second])


def _wrong(leaf: Leaf) -> Unsupported:
    return Unsupported(
        "L017",
        "these groups of threads are no loop that goes turn by turn: this line comes before what it waits for",
        hint=_HINT,
        span=span_of(leaf.statement),
    )
