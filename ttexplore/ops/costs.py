"""What copies, set-up and hand-overs cost, in cycles, beside the `cycles` of each operation; and closed forms of the
engines."""

from __future__ import annotations

import math

from ttexplore.target import Costs

# Per tile: a spilled value is packed, and copied back for each section that reads it again.
PACK_CYCLES = 36
COPY_CYCLES = 32
# Per element that a processor copies by itself: a load from L1 takes 8 cycles, a store 5 (tt-isa-documentation,
# BabyRISCV), and the addresses are computed. An estimate, as those of the other operations without an engine.
ELEMENT_CYCLES = 30
# Per section: semaphores, and the FPU drains before the packer starts.
SECTION_CYCLES = 100
# Per operation: its init, after another operation.
INIT_CYCLES = 24

# Maxima of the rows of a tile: its four faces are pooled, and then the maxima of all tiles are turned to a column.
POOL_CYCLES = 8
TURN_CYCLES = 40


def unpack_cycles(costs: Costs, count_bytes: int) -> int:
    return math.ceil(count_bytes / costs.unpack_bytes_per_cycle)


def pack_cycles(costs: Costs, tile_bytes: int, least: int) -> int:
    """One tile of a format, at least the cycles of the operation."""
    return max(least, math.ceil(tile_bytes / costs.pack_bytes_per_cycle))


def matmul_cycles(costs: Costs, fidelity: str, tiles: int) -> int:
    """One call of matmul_block with so many products of tiles, on the math engine."""
    return costs.matmul_call_cycles + round(costs.matmul_tile_factor * costs.matmul_tile_cycles[fidelity] * tiles)


def matmul_unpacked(rows: int, columns: int, left_bytes: int, right_bytes: int) -> int:
    """The bytes that one call unpacks: a tile of the longer side stays in its register while all of the other side
    pass by (``llk_unpack_AB_matmul``)."""
    if columns >= rows:
        return rows * (left_bytes + columns * right_bytes)
    return columns * (right_bytes + rows * left_bytes)
