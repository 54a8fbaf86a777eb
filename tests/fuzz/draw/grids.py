"""Grids of blocks: how many, how large, and how they cover the axes of tensors."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Literal, get_args

from tests.fuzz.description import Blocks, Size

# `whole`: blocks of whole tiles cover their tensors. `tails`: tensors end inside of their last blocks. `dynamic`: some
# lengths are T.dynamic. `odd`: blocks are no whole tiles. `shards`: a row of blocks, for tensors in shards.
Style = Literal["whole", "tails", "dynamic", "odd", "shards"]
LARGEST_BLOCK_TILES = 4
_ODD_ROWS = (1, 2, 8, 16, 20, 33, 40, 48)
_ODD_COLUMNS = (16, 48, 64, 16, 48, 1, 20, 33)
# Blocks along an axis of a T.dynamic size.
_MOST_BLOCKS = 3


@dataclass(frozen=True)
class Axis:
    """One axis along which blocks lie: the text of a block's number, how many blocks there are, the extent of a block,
    and the length of the tensors, which may end inside of the last block."""

    text: str
    count: int | Blocks
    extent: int
    length: int | str

    @property
    def blocks(self) -> int:
        """The count, where it is a number."""
        assert isinstance(self.count, int)
        return self.count


class Drawing:
    """Drawing values one at a time."""

    def __init__(self, numbers: random.Random) -> None:
        self.numbers = numbers

    def one(self, values: Any) -> Any:
        return self.numbers.choice(list(values))

    def chance(self, of: int) -> bool:
        """True once in `of` times."""
        return self.numbers.randrange(of) == 0

    def some(self, values: Any, count: int) -> list[Any]:
        """So many of the values, in any order."""
        return self.numbers.sample(list(values), count)

    def number(self, low: int, high: int) -> int:
        return self.numbers.randint(low, high)


class Grid(Drawing):
    """The launch grid, the block that each of its items works on, and the axes of the tensors.

    `block` has one or two extents; `row` and `column` are the axes that blocks lie along, `leading` those before them.
    """

    def __init__(self, numbers: random.Random) -> None:
        super().__init__(numbers)
        self.style: Style = self.one(get_args(Style))
        self.sizes: list[Size] = []
        self.is_vector = self.style != "shards" and self.chance(8)
        rank = 1 if self.is_vector or self.style == "shards" else self.one([1, 2, 3])
        self.block = self._draw_block()
        rows, columns = (1, *self.block)[-2:]
        self.leading: list[Axis] = []
        if rank == 1 and all(extent % 16 == 0 for extent in self.block) and not self.is_vector and self.chance(6):
            # Both numbers from one.
            self.row = self._fixed("bx // 2", rows, self.number(1, 2))
            self.column = self._fixed("bx % 2", columns, 2)
            self.grid: tuple[int | Blocks, ...] = (2 * self.row.blocks,)
            return
        if self.is_vector or not (self.style == "shards" or self.chance(3)):
            self.column = self.along("bx", columns)
            self.row = self.along("by", rows, rows=True) if rank > 1 else self._single(rows)
            self.grid = (self.column.count, self.row.count)[:rank]
        else:
            self.row = self.along("bx", rows, rows=True)
            self.column = self.along("by", columns) if rank > 1 else self._single(columns)
            self.grid = (self.row.count, self.column.count)[:rank]
        if rank == 3:
            self.leading = [self.along("bz", 1) if self.style == "dynamic" else self.steps("bz", 1)]
            self.grid = (*self.grid, self.leading[0].count)

    @property
    def places(self) -> list[Axis]:
        """The axes of a block."""
        return [self.row, self.column][-len(self.block) :]

    def _draw_block(self) -> tuple[int, ...]:
        if self.style == "odd":
            shape = (self.one(_ODD_ROWS), self.one(_ODD_COLUMNS))
            return shape[1:] if self.is_vector else shape
        columns = self.number(1, 3)
        if self.is_vector:
            return (32 * columns,)
        return (32 * self.number(1, max(1, min(3, LARGEST_BLOCK_TILES // columns))), 32 * columns)

    # Axes

    def along(self, text: str, extent: int, *, rows: bool = False) -> Axis:
        """An axis of blocks; some dynamic ones have a size of their own."""
        if self.style == "dynamic" and self.chance(2):
            name = f"n{len(self.sizes)}"
            value, later = (self.number(1, _MOST_BLOCKS * extent) for _ in range(2))
            self.sizes.append(Size(name, value, later))
            return Axis(text, Blocks(name, extent), extent, name)
        # A block that ends inside of a run of 16 columns has no neighbour.
        return self._fixed(text, extent, self.number(1, 3) if rows or extent % 16 == 0 else 1)

    def steps(self, text: str, fewest: int) -> Axis:
        """An axis whose blocks are single indices."""
        count = self.number(fewest, 3)
        return Axis(text, count, 1, count)

    def elsewhere(self, axis: Axis) -> Axis:
        """Another place for blocks of the same extent, for inputs; one that a T.dynamic size counts stays."""
        if isinstance(axis.count, Blocks):
            return axis
        match self.number(0, 2 if self.style == "shards" else 4):
            case 0:
                return self._single(axis.extent)
            case 1 if axis.extent % 16 == 0:
                return self._fixed(str(self.number(0, 1)), axis.extent, 2)
            case 2 if axis.count != 1:
                return Axis(f"({axis.text} + 1) % {axis.count}", axis.count, axis.extent, axis.length)
            case 3 if axis.count != 1:
                return Axis(self.signed(axis.text, axis.blocks), axis.count, axis.extent, axis.length)
            case 4 if self.chance(2):
                # The last blocks are behind the end, where zeros are read.
                return Axis(f"({axis.text} + {self.number(1, 2)})", axis.count, axis.extent, axis.length)
            case _:
                return axis

    def signed(self, text: str, count: int) -> str:
        """A number of one of so many blocks that is computed from what can be negative."""
        less, last = self.number(1, 3), count - 1
        return self.one(
            [
                f"T.max({text} - {less}, 0)",
                f"T.clamp({text} - {less}, 0, {last})",
                f"(({text} - {less}) % {count})",
                f"(({text} - {less}) // 2 % {count})",
                f"T.min(T.max({less} - {text}, 0), {last})",
                f"T.if_then_else({text} - {less} < 0, {last}, T.min({text} - {less}, {last}))",
                f"T.min(({text} & {less}), {last})",
                f"T.min(T.ceildiv({text} + 1 - {less}, 2) + {less}, {last})",
                f"T.max(T.truncdiv({text} - {less}, 2), 0)",
                f"T.max(({text} - {less}) >> 1, 0)",
                f'T.max(T.cast({text} - {less}, "int16"), 0)',
                f'(T.cast({text} - {less}, "uint8") % {count})',
            ]
        )

    def _single(self, extent: int) -> Axis:
        return self._fixed("0", extent, 1)

    def _fixed(self, text: str, extent: int, count: int) -> Axis:
        length = count * extent
        if self.style != "whole" and self.style != "shards" and self.chance(2):
            # Blocks may be behind the end: they read zeros and store nothing.
            length = self.number(1, length - extent) if count > 1 and self.chance(4) else length
            length -= self.number(0, min(extent, length) - 1)
        return Axis(text, count, extent, length)
