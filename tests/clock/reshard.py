"""The SDK's resharding described by its flows: tiles from the shards of some cores, or from DRAM, to the shards of
others, and the bytes that meet on the links of the NoC.

A grid of 2x4 has two rows of four cores; shards by height count along the rows. From DRAM, the reader alone reads, over
NoC 0. From shards, the reader takes the first half of a core's tiles, row by row, and the writer, over NoC 1, the
others; two tiles are not divided. That is what the traces show.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ttexplore.target import Coordinates, Target

Noc = Literal[0, 1]
# A part of the rows, or of the columns, of a tensor: from 0 to 1.
_Range = tuple[float, float]
# A core and its parts.
_Shard = tuple[Coordinates, _Range, _Range]
_TILE_ROWS = 16


@dataclass(frozen=True)
class Reshard:
    """`source` is None for DRAM; grids are rows x columns and HEIGHT or BLOCK."""

    source: tuple[int, int, str] | None
    destination: tuple[int, int, str]

    @staticmethod
    def named(name: str) -> Reshard:
        grids = [
            (int(rows), int(columns), kind) for rows, columns, kind in re.findall(r"(\d)x(\d)_(\w+?)(?:_|$)", name)
        ]
        return Reshard(grids[0] if len(grids) > 1 else None, grids[-1])

    def flows(self, target: Target, tiles: int) -> Iterator[tuple[Noc, Coordinates, Coordinates, float]]:
        """Over which NoC, from where to where, and which part of all the tiles."""
        for core, rows, columns in _shards(self.destination):
            end = target.physical(*core)
            if self.source is None:
                area = (rows[1] - rows[0]) * (columns[1] - columns[0])
                for bank in target.bank_nodes(0):
                    yield 0, bank, end, area / target.dram_banks
                continue
            for noc, its_rows, its_columns in _halves(rows, columns, tiles):
                for owner, their_rows, their_columns in _shards(self.source):
                    common = _common(its_rows, their_rows) * _common(its_columns, their_columns)
                    if owner != core and common > 1e-9:
                        yield noc, target.physical(*owner), end, common

    def link_cycles(self, target: Target, count_bytes: int, tiles: int) -> float:
        """Of the busiest link."""
        loads: Counter[tuple[Noc, Coordinates, Coordinates]] = Counter()
        for noc, start, end, share in self.flows(target, tiles):
            for step in _way(noc, start, end, target.noc_grid):
                loads[noc, *step] += round(share * count_bytes)
        return max(loads.values(), default=0) / target.costs.noc_payload_bytes_per_cycle


def _halves(rows: _Range, columns: _Range, tiles: int) -> list[tuple[Noc, _Range, _Range]]:
    """What the reader and the writer of a core read, of a tensor of 16 rows of tiles."""
    if round(tiles * (rows[1] - rows[0]) * (columns[1] - columns[0])) <= 2:
        return [(0, rows, columns)]
    if round(_TILE_ROWS * (rows[1] - rows[0])) > 1:
        middle = (rows[0] + rows[1]) / 2
        return [(0, (rows[0], middle), columns), (1, (middle, rows[1]), columns)]
    middle = (columns[0] + columns[1]) / 2
    return [(0, rows, (columns[0], middle)), (1, rows, (middle, columns[1]))]


def _shards(grid: tuple[int, int, str]) -> list[_Shard]:
    rows, columns, kind = grid
    if kind == "HEIGHT":
        cores = [(x, y) for y in range(rows) for x in range(columns)]
        return [(core, (at / len(cores), (at + 1) / len(cores)), (0.0, 1.0)) for at, core in enumerate(cores)]
    return [
        ((x, y), (y / rows, (y + 1) / rows), (x / columns, (x + 1) / columns))
        for y in range(rows)
        for x in range(columns)
    ]


def _common(a: _Range, b: _Range) -> float:
    return max(0.0, min(a[1], b[1]) - max(a[0], b[0]))


def _way(
    noc: Noc, start: Coordinates, end: Coordinates, size: tuple[int, int]
) -> Iterator[tuple[Coordinates, Coordinates]]:
    """The links from a node to another one: NoC 0 goes right, then down, NoC 1 up, then left."""
    at = list(start)
    for axis in (0, 1) if noc == 0 else (1, 0):
        while at[axis] != end[axis]:
            before = (at[0], at[1])
            at[axis] = (at[axis] + (1 if noc == 0 else -1)) % size[axis]
            yield before, (at[0], at[1])
