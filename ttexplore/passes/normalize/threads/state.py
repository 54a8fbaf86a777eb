"""What a run of groups of threads has of its groups, barriers and accesses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ttexplore.ir.dataflow import AccessKind
from ttexplore.passes.normalize.threads.steps import Step, Turns
from ttexplore.passes.normalize.threads.tree import Axis, Leaf, Values


@dataclass(eq=False)
class GroupAccess:
    """One access, by a group at a step. It is over for those who know one of its `ends`: so far of a group or a
    barrier; and all of `also`, of the other groups that make it together."""

    leaf: Leaf
    turns: Turns
    group: int
    kind: AccessKind
    region: tuple[Axis, ...]
    ends: list[tuple[int, int]]
    also: list[tuple[int, int]]
    is_product: bool
    # Whether it may be over later than the step that begins it.
    is_later: bool
    barrier: GroupBarrier | None = None
    # Whether a later access stands for this one in all comparisons.
    is_past: bool = False

    def is_known(self, clock: Sequence[int]) -> bool:
        """Whether a group with this clock knows that it is over."""
        return any(clock[entry] >= value for entry, value in self.ends) and all(
            clock[entry] >= value for entry, value in self.also
        )


@dataclass(eq=False)
class GroupWait:
    leaf: Leaf
    group: int
    step: int
    phase: int


@dataclass(eq=False)
class GroupBarrier:
    """One barrier. `clocks` are those of its phases that are over; `entry` is its place in clocks."""

    name: str
    entry: int
    count: int
    clocks: list[list[int]] = field(default_factory=list[list[int]])
    arrived: int = 0
    arrivals: list[tuple[int, Leaf, list[int]]] = field(default_factory=list[tuple[int, Leaf, list[int]]])
    copies: list[GroupAccess] = field(default_factory=list[GroupAccess])
    products: list[GroupAccess] = field(default_factory=list[GroupAccess])
    waits: list[GroupWait] = field(default_factory=list[GroupWait])
    # The groups that have waited at any time, and the buffers that waits told to be full, or to be empty.
    waiting: set[int] = field(default_factory=set[int])
    full: dict[str, None] = field(default_factory=dict[str, None])
    empty: dict[str, None] = field(default_factory=dict[str, None])

    @property
    def over(self) -> int:
        return len(self.clocks)


@dataclass(eq=False)
class Running:
    """A group on its way."""

    number: int
    steps: Iterator[tuple[Leaf, Turns]]
    values: Values
    clock: list[int]
    at: tuple[Leaf, Turns] | None = None
    products: list[list[GroupAccess]] = field(default_factory=list[list[GroupAccess]])
    done: list[Step] = field(default_factory=list[tuple[int, tuple[int, ...]]])
    # The waits so far: the clock before each, and the barrier.
    waits: list[tuple[list[int], GroupBarrier]] = field(default_factory=list[tuple[list[int], "GroupBarrier"]])

    def advance(self) -> None:
        if self.at is not None:
            self.done.append((min(self.at[0].leaves), self.at[1]))
        self.at = next(self.steps, None)

    @property
    def leaf(self) -> Leaf:
        assert self.at is not None
        return self.at[0]
