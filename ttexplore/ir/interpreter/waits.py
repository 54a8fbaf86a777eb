"""What kernels wait for: a kernel that cannot go on yields one of these, and is resumed when it is over."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from ttexplore.ir.kernel import SourceLocation


@dataclass(frozen=True, slots=True)
class Remedy:
    """What to do about a wait that never ends; `is_cause` where nothing else can be the cause."""

    text: str
    is_cause: bool


class KernelWait(Protocol):
    """What a kernel waits for. Its text comes after "the reader waits"."""

    @property
    def place(self) -> SourceLocation | None:
        """The statement that waits."""
        ...

    @property
    def crosses_cores(self) -> bool:
        """Whether another core can end it."""
        ...

    def is_over(self) -> bool: ...

    def remedy(self, running: Collection[str]) -> Remedy | None:
        """What to do where it never ends, while these kernels of the core still run."""
        ...


class Supply(Protocol):
    """A circular buffer between two kernels of a core: `filled` of its `pages` tiles are there."""

    @property
    def name(self) -> str: ...
    @property
    def producer(self) -> str: ...
    @property
    def pages(self) -> int: ...
    @property
    def filled(self) -> int: ...

    def holds(self, count: int) -> bool:
        """Whether so many tiles are there."""
        ...

    def has_room(self, count: int) -> bool:
        """Whether so many tiles could be added."""
        ...


@dataclass(frozen=True, slots=True)
class TilesWait:
    """Until a circular buffer holds so many tiles."""

    supply: Supply
    count: int
    place: SourceLocation | None
    crosses_cores: bool = False

    def is_over(self) -> bool:
        return self.supply.holds(self.count)

    def __str__(self) -> str:
        supply = self.supply
        return f"to receive {self.count} tiles of {supply.name}, has {supply.filled} of {supply.pages}"

    def remedy(self, running: Collection[str]) -> Remedy | None:
        producer = self.supply.producer
        if producer in running:
            return None
        missing = f"{self.count} more tiles of {self.supply.name}: a push is missing"
        return Remedy(f"the {producer} has ended without pushing {missing}", True)


@dataclass(frozen=True, slots=True)
class RoomWait:
    """Until a circular buffer has room for so many tiles."""

    supply: Supply
    count: int
    place: SourceLocation | None
    crosses_cores: bool = False

    def is_over(self) -> bool:
        return self.supply.has_room(self.count)

    def __str__(self) -> str:
        supply = self.supply
        room = supply.pages - supply.filled
        return f"to reserve {self.count} tiles of {supply.name}, has {room} of {supply.pages}"

    def remedy(self, running: Collection[str]) -> Remedy | None:
        return Remedy(f"give {self.supply.name} more pages (stages), or let its consumer pop earlier", False)
