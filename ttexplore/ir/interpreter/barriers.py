"""Barriers of groups of threads: how many have arrived, and what a group waits for."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from ttexplore.ir.interpreter.waits import Remedy
from ttexplore.ir.kernel import SourceLocation


@dataclass
class Barrier:
    """A barrier: a phase is over when `count` threads have arrived; `phases` are over so far."""

    name: str
    count: int
    arrived: int = 0
    phases: int = 0

    def arrive(self, threads: int) -> None:
        self.arrived += threads
        while self.arrived >= self.count:
            self.arrived -= self.count
            self.phases += 1


@dataclass
class Meetings:
    """The barriers of a core's block, by name and number, and how often each number of groups has met."""

    barriers: dict[tuple[str, int], Barrier] = field(default_factory=dict[tuple[str, int], Barrier])
    met: dict[tuple[str, int], Barrier] = field(default_factory=dict[tuple[str, int], Barrier])

    def allocate(self, name: str, counts: list[int]) -> None:
        for number, count in enumerate(counts):
            self.barriers[name, number] = Barrier(f"{name}[{number}]" if len(counts) > 1 else name, count)


@dataclass(frozen=True, slots=True)
class BarrierWait:
    """Until a phase of a barrier is over: one of this parity, or the one after so many."""

    barrier: Barrier
    parity: int | None
    after: int
    place: SourceLocation | None
    crosses_cores: bool = False

    def is_over(self) -> bool:
        if self.parity is None:
            return self.barrier.phases > self.after
        return self.barrier.phases % 2 != self.parity

    def __str__(self) -> str:
        barrier = self.barrier
        which = "its next phase" if self.parity is None else f"its phase of parity {self.parity}"
        return f"at {barrier.name} for {which}: {barrier.arrived} of {barrier.count} threads have arrived"

    def remedy(self, running: Collection[str]) -> Remedy | None:
        return Remedy(f"let {self.barrier.count} threads arrive at {self.barrier.name}", False)
