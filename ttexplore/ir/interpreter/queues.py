"""Circular buffers: as the queues of tiles that they are, as queues of whole blocks before the protocol is there, and
as one block before there is anything to wait for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from ttexplore.ir.interpreter.arrays import Array, held, in_format, unwritten
from ttexplore.ir.interpreter.waits import KernelWait, RoomWait, TilesWait
from ttexplore.ir.interpreter.where import Where
from ttexplore.ops.op import UNWRITTEN
from ttexplore.ops.storage import rounded
from ttexplore.plan import CircularBuffer


class TileSource(Protocol):
    """What operations read tiles from, and write tiles to."""

    @property
    def dtype(self) -> str: ...

    def get(self, index: int) -> Array:
        """The tile `index` places from the front."""
        ...

    def put(self, index: int, tile: Array) -> None:
        """Write the tile `index` places from where the next ones are filled."""
        ...


class Blocks(TileSource, Protocol):
    """A circular buffer before its protocol is there: whole blocks go through it."""

    tiles: Array

    def fill(self, write: Callable[[Array], None]) -> KernelWait | None:
        """Let `write` make the next block, as soon as there is room."""
        ...

    def full(self) -> KernelWait | None:
        """What there is to wait for before the next block is made."""
        ...

    def awaited(self) -> KernelWait | None:
        """What there is to wait for before a block is taken."""
        ...

    def take(self) -> Array | KernelWait:
        """The block that was made first."""
        ...


@dataclass(slots=True)
class _Planned:
    """A circular buffer of a core, as the plan has it, with tiles in it; `where` is the core."""

    plan: CircularBuffer
    dtype: str
    where: Where
    tiles: Array

    @property
    def name(self) -> str:
        return self.plan.name

    @property
    def producer(self) -> str:
        return self.plan.producer

    @property
    def consumer(self) -> str:
        return self.plan.consumer

    def rounded(self, tile: Array) -> Array:
        """A tile as the buffer holds it."""
        return in_format(rounded(tile, self.dtype), self.plan.data_format)


@dataclass(slots=True)
class Queue(_Planned):
    """A circular buffer of a core, as a queue: its tiles, the positions where tiles are read and written next, and how
    many are there, reserved and waited for. `unread` reads into it, and `unsent` writes from it, are under way."""

    front: int = 0
    back: int = 0
    filled: int = 0
    reserved: int = 0
    waited: int = 0
    unread: bool = False
    unsent: bool = False

    @property
    def pages(self) -> int:
        return len(self.tiles)

    def holds(self, count: int) -> bool:
        return self.filled >= count

    def has_room(self, count: int) -> bool:
        return self.filled + count <= self.pages

    # The protocol. All raise VerifyError where it is broken.

    def reserve(self, count: int) -> KernelWait | None:
        if count > self.pages:
            raise self.where.fault(
                "V007",
                f"{count} tiles of {self.name} are reserved, but it holds only {self.pages}",
                f"give {self.name} more pages",
            )
        if self.back + count > self.pages:
            raise self.where.fault(
                "V008",
                f"reserving {count} tiles at {self.back} of {self.name} would straddle its end at {self.pages}",
                "make the size a multiple of every push",
            )
        if not self.has_room(count):
            return RoomWait(self, count, self.where.place)
        self.reserved = count
        return None

    def push(self, count: int) -> None:
        if count > self.reserved:
            raise self.where.fault(
                "V003",
                f"{count} tiles of {self.name} are pushed, but only {self.reserved} are reserved",
                "reserve them first",
            )
        if self.unread:
            raise self.where.fault(
                "V011",
                f"{self.name} is pushed before the reads into it have arrived",
                "call noc_read_barrier before it",
            )
        self.back = (self.back + count) % self.pages
        self.filled += count
        self.reserved = 0

    def wait(self, count: int) -> KernelWait | None:
        if count > self.pages:
            raise self.where.fault(
                "V007",
                f"{count} tiles of {self.name} are waited for, but it holds only {self.pages}",
                f"give {self.name} more pages",
            )
        if not self.holds(count):
            return TilesWait(self, count, self.where.place)
        self.waited = max(self.waited, count)
        return None

    def pop(self, count: int) -> None:
        if count > self.waited:
            raise self.where.fault(
                "V004",
                f"{count} tiles of {self.name} are popped, but only {self.waited} were waited for",
                "wait for them first",
            )
        if self.unsent:
            raise self.where.fault(
                "V012",
                f"{self.name} is popped while it is still being written from",
                "call noc_writes_flushed before it",
            )
        # A shard stays in place: its tiles are the tensor's.
        for index in range(0 if self.plan.shard_of else count):
            self.tiles[(self.front + index) % self.pages] = UNWRITTEN[held(self.dtype)]
        self.front = (self.front + count) % self.pages
        self.filled -= count
        self.waited -= count

    # Tiles. All raise VerifyError for tiles that are not reserved, or were not waited for.

    def get(self, index: int) -> Array:
        if not 0 <= index < self.waited:
            raise self._not_there(index)
        return self.tiles[(self.front + index) % self.pages]

    def put(self, index: int, tile: Array) -> None:
        tile = self.rounded(tile)
        self.to_fill(index)[...] = tile

    def add(self, index: int, tile: Array) -> None:
        """Add to the tile that is there, as the packer can."""
        into = self.to_fill(index)
        into[...] = self.rounded(into + self.rounded(tile))

    def to_fill(self, index: int) -> Array:
        if not 0 <= index < self.reserved:
            raise self._not_reserved(index)
        return self.tiles[(self.back + index) % self.pages]

    def elements_to_fill(self, first: int, size: int) -> Array:
        """Elements of memory from the place on that is filled next."""
        if first < 0 or first + size > self.reserved * 1024:
            raise self._not_reserved((first + size - 1) // 1024)
        return self.tiles.reshape(-1)[self.back * 1024 + first : self.back * 1024 + first + size]

    def elements_to_send(self, first: int, size: int) -> Array:
        """Elements of memory from the front on."""
        if first < 0 or first + size > self.waited * 1024:
            raise self._not_there((first + size - 1) // 1024)
        return self.tiles.reshape(-1)[self.front * 1024 + first : self.front * 1024 + first + size]

    def _not_there(self, index: int) -> Exception:
        return self.where.fault(
            "V005",
            f"tile {index} of {self.name} is read, but only {self.waited} were waited for",
            "wait for more tiles",
        )

    def _not_reserved(self, index: int) -> Exception:
        return self.where.fault(
            "V005",
            f"tile {index} of {self.name} is written, but only {self.reserved} are reserved",
            "reserve more tiles",
        )


@dataclass(slots=True)
class Channel(_Planned):
    """A circular buffer of a core, as a queue of whole blocks. `tiles` is the block that the compute kernel works on:
    the one that it received last, or will send next."""

    blocks: deque[Array] = field(default_factory=deque[Array])

    @property
    def pages(self) -> int:
        return self.plan.pages

    @property
    def filled(self) -> int:
        return len(self.blocks) * self.plan.block_pages

    def holds(self, count: int) -> bool:
        """Whether a block is there: all have as many tiles."""
        return bool(self.blocks)

    def has_room(self, count: int) -> bool:
        return len(self.blocks) < self.plan.stages

    def full(self) -> KernelWait | None:
        has_room = self.has_room(self.plan.block_pages)
        return None if has_room else RoomWait(self, self.plan.block_pages, self.where.place)

    def awaited(self) -> KernelWait | None:
        return None if self.blocks else TilesWait(self, self.plan.block_pages, self.where.place)

    def fill(self, write: Callable[[Array], None]) -> KernelWait | None:
        if (wait := self.full()) is not None:
            return wait
        block = unwritten((self.plan.block_pages, 32, 32), self.dtype)
        write(block)
        self.blocks.append(block)
        return None

    def take(self) -> Array | KernelWait:
        return self.awaited() or self.blocks.popleft()

    def receive(self, count: int) -> KernelWait | None:
        if not self.blocks:
            return TilesWait(self, count, self.where.place)
        self.tiles = self.blocks.popleft()
        return None

    def send(self, count: int) -> KernelWait | None:
        if not self.has_room(count):
            return RoomWait(self, count, self.where.place)
        self.blocks.append(self.tiles.copy())
        self.tiles[...] = UNWRITTEN[held(self.dtype)]
        return None

    def get(self, index: int) -> Array:
        return self.tiles[index]

    def put(self, index: int, tile: Array) -> None:
        self.tiles[index] = self.rounded(tile)


@dataclass(slots=True)
class Block:
    """A circular buffer while one kernel does everything: the block that it holds."""

    dtype: str
    data_format: str | None
    tiles: Array

    def fill(self, write: Callable[[Array], None]) -> KernelWait | None:
        write(self.tiles)
        return None

    def take(self) -> Array | KernelWait:
        return self.tiles

    def full(self) -> KernelWait | None:
        return None

    def awaited(self) -> KernelWait | None:
        return None

    def get(self, index: int) -> Array:
        return self.tiles[index]

    def put(self, index: int, tile: Array) -> None:
        self.tiles[index] = in_format(rounded(tile, self.dtype), self.data_format)
