"""The SDK's operations on rows described as events: softmax, and the search for the largest elements of a row.

Softmax is that of ``softmax/device/kernels/attention``: each core takes rows of tiles; where a row does not fit in L1,
the kernel for large tensors reads it three times. The search is ``topk_large_indices``: each core takes whole rows,
which it sorts and merges chunk by chunk in the vector unit.
"""

from __future__ import annotations

from itertools import groupby
from math import ceil

from tests.clock.sections import APPROXIMATE, divided, handed_on, in_parts, section, set_up
from ttexplore.clock.engines import Streams, pop, push, reserve, starting, wait
from ttexplore.clock.engines import free as room
from ttexplore.clock.events import Complete, CoreClass, Event, ProcessorName, Repeat, Transfer, Work
from ttexplore.ops.reduce import FPU_REDUCTIONS
from ttexplore.ops.sfpu_cycles import sfpu_cycles
from ttexplore.target import Target

_POOLED = {op.name: op.cycles for op in FPU_REDUCTIONS}
# The writer makes the scalers of the reductions; compute waits some 2 us for them
# (https://github.com/tenstorrent/tt-metal/issues/18477).
_SCALER_CYCLES = 2000
# Tiles in a section of DST, and between two barriers.
_TOGETHER = 8


class _Softmax:
    def __init__(self, target: Target, width: int, tile_bytes: int) -> None:
        self.target, self.costs, self.tile_bytes = target, target.costs, tile_bytes
        self.blocks = [(tiles, len(list(same))) for tiles, same in groupby(in_parts(width, _TOGETHER))]
        # The row, its exponentials and the output.
        self.fits = 3 * width * tile_bytes <= target.l1_usable_bytes

    def largest(self, tiles: int) -> Streams:
        out = Streams(self.costs)
        out.add("unpack", *wait("x", tiles))
        section(out, [(self.tile_bytes, _POOLED["reduce_max_row"], tiles)], 0)
        if self.fits:
            out.add("unpack", *pop("x", tiles), *push("x", tiles))
        else:
            out.add("unpack", *pop("x", tiles))
        return out

    def exponentials(self, tiles: int) -> Streams:
        out = Streams(self.costs)
        set_up(out)
        out.add("unpack", *wait("x", tiles))
        differences = (2 * self.tile_bytes, self.costs.add_tile_cycles, tiles)
        section(out, [differences], tiles, vector=tiles * APPROXIMATE["exp_tile"])
        handed_on(out, "exponentials")
        out.add("unpack", *pop("x", tiles))
        return out

    def summed(self, tiles: int) -> Streams:
        out = self.exponentials(tiles)
        set_up(out)
        section(out, [(self.tile_bytes, _POOLED["reduce_sum_row"], tiles)], 0)
        return out

    def quotients(self, tiles: int) -> Streams:
        out = Streams(self.costs) if self.fits else self.exponentials(tiles)
        set_up(out)
        out.add("pack", *reserve("y", tiles))
        section(out, [(2 * self.tile_bytes, self.costs.multiply_tile_cycles["HiFi4"], tiles)], tiles)
        out.add("pack", *push("y", tiles))
        return out

    def row(self) -> Streams:
        out = Streams(self.costs)
        for one_pass, vector in (
            (self.largest, 0), (self.summed, sfpu_cycles("recip_tile", self.target.arch)), (self.quotients, 0),
        ):  # fmt: skip
            for tiles, times in self.blocks:
                out.loop(times, one_pass(tiles))
            if one_pass != self.quotients:
                section(out, [], 1, vector=vector)
                handed_on(out, "statistics")
        return out


def softmax(target: Target, rows: int, width: int, tile_bytes: int = 2048) -> list[CoreClass]:
    """Rows of tiles, each so many tiles wide."""
    program = _Softmax(target, width, tile_bytes)
    read: list[Event] = []
    stored: list[Event] = []
    for tiles, times in program.blocks:
        count = tiles * tile_bytes
        arrived = (*reserve("x", tiles), Transfer("read", "dram", count, tiles), Complete("read"), *push("x", tiles))
        departed = (*wait("y", tiles), Transfer("write", "dram", count, tiles), Complete("write"), *pop("y", tiles))
        read.append(Repeat(times, arrived))
        stored.append(Repeat(times, departed))
    start = {room("x"): width if program.fits else 2 * _TOGETHER, room("y"): 2 * _TOGETHER, **starting()}
    classes: list[CoreClass] = []
    for name, cores, count in divided(target, rows):
        kernel = Streams(target.costs)
        kernel.add("unpack", Work("riscv", _SCALER_CYCLES))
        kernel.loop(count, program.row())
        processors: dict[ProcessorName, tuple[Event, ...]] = {
            "reader": (Repeat(count, tuple(read) * (1 if program.fits else 3)),),
            "writer": (Repeat(count, tuple(stored)),),
            **kernel.processors,
        }
        classes.append(CoreClass(name, cores, processors, start))
    return classes


# The cycles of topk_large_indices by the elements that are sorted at a time, on a p100a, as tenstorrent/polaris derives
# them from its runs (ttsim/perf/roofline_topk.py): of a chunk, of the merge of 32 chunks with those before, of a row
# and of the whole. With 512, up to 32 chunks are fused, and longer rows are not.
_CHUNK = {512: 2122.7, 1024: 4901.0, 2048: 11436.0}
_LONG_CHUNK = 2921.0
_SEGMENT = {512: 0.0, 1024: 2393.3, 2048: 5677.0}
_ROW = {512: 0.0, 1024: 644.2, 2048: 1157.8}
_WHOLE = {512: 1968.5, 1024: 3368.3, 2048: 5142.4}


def search(target: Target, rows: int, elements: int, largest: int) -> list[CoreClass]:
    """The `largest` so many elements of each row, and where they are."""
    size = next(size for size in _CHUNK if largest <= size)
    chunks = ceil(elements / size)
    chunk = _LONG_CHUNK if size == 512 and chunks > 32 else _CHUNK[size]
    merges = (ceil(chunks / 32) - 1) if size > 512 else 0
    classes: list[CoreClass] = []
    for name, cores, count in divided(target, rows):
        read = (*reserve("x", 1), Transfer("read", "dram", 2 * size, 1), Complete("read"), *push("x", 1))
        kernel, row, sort = Streams(target.costs), Streams(target.costs), Streams(target.costs)
        sort.add("math", *wait("x", 1), Work("math", round(chunk)), *pop("x", 1))
        row.loop(chunks, sort)
        row.add("math", Work("math", round(merges * _SEGMENT[size] + _ROW[size])), *push("y", 1))
        kernel.add("math", Work("riscv", round(_WHOLE[size])))
        kernel.loop(count, row)
        stored = (*wait("y", 1), Transfer("write", "dram", 6 * largest, 2), Complete("write"), *pop("y", 1))
        processors: dict[ProcessorName, tuple[Event, ...]] = {
            "reader": (Repeat(count * chunks, read),), "writer": (Repeat(count, stored),), **kernel.processors,
        }  # fmt: skip
        classes.append(CoreClass(name, cores, processors, {room("x"): 2, room("y"): 2, **starting()}))
    return classes
