"""What a core does for a work item, known before there are transfers: its loads, its computations, what it stores."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from math import prod


@dataclass(frozen=True, slots=True)
class Load:
    """A copy into a circular buffer, which a work item makes once in each turn of the loops around it. `comes_first`
    says that nothing is stored before it."""

    tensor: str
    block_bytes: int
    pages: int
    loops: tuple[int, ...]
    in_dram: bool
    stages: int
    comes_first: bool

    @property
    def turns(self) -> int:
        return prod(self.loops)


@dataclass(frozen=True, slots=True)
class Stored:
    """What a work item stores to a tensor in all."""

    tensor: str
    bytes: int
    in_dram: bool


@dataclass(frozen=True, slots=True)
class ItemWork:
    """What a core does for one work item: its loads, the cycles of its computations, and what it stores."""

    loads: tuple[Load, ...]
    compute_cycles: float
    stores: tuple[Stored, ...]

    @property
    def written_bytes(self) -> int:
        """What it writes to DRAM."""
        return sum(store.bytes for store in self.stores if store.in_dram)

    @property
    def without_reading(self) -> ItemWork:
        return dataclasses.replace(self, loads=())
