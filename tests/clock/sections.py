"""What the SDK's compute kernels consist of: sections of DST, and costs of functions that ours do not call."""

from __future__ import annotations

from collections.abc import Sequence

from ttexplore.clock.engines import Streams
from ttexplore.clock.events import Counter, Give, Wait, Work
from ttexplore.ops.costs import INIT_CYCLES, PACK_CYCLES, pack_cycles
from ttexplore.target import Target

# A tile of bfloat16, which what is between two operations is.
INTERMEDIATE = 2048
# Cycles of approximations in the vector unit, of tt-metal's performance tests on Blackhole:
# https://github.com/tenstorrent/tt-metal/pull/54317 (exp), https://github.com/tenstorrent/tt-metal/pull/49926.
APPROXIMATE = {"exp_tile": 94, "gelu_tile": 221, "sigmoid_tile": 221, "tanh_tile": 160}

# Operations of the FPU: the bytes that each unpacks, its cycles, and how often it is called.
Sources = Sequence[tuple[int, int, int]]


def section(
    into: Streams, sources: Sources, packed: int, *, vector: int = 0, packs_vector: int = 0, tile_bytes: int = 0
) -> None:
    """A section of DST: operations of the FPU; then the vector unit, which math or, for `packs_vector` cycles, the
    packer's processor starts; then tiles are packed."""
    body = Streams(into.costs)
    body.acquire()
    for count_bytes, cycles, times in sources:
        call = Streams(into.costs)
        call.source(count_bytes, cycles)
        body.loop(times, call)
    if vector:
        body.add("math", Work("math", vector, vector))
    body.commit()
    body.wait_for_math()
    pack = pack_cycles(into.costs, tile_bytes or INTERMEDIATE, PACK_CYCLES)
    body.add("pack", Work("pack", packs_vector + packed * pack))
    body.release()
    into.loop(1, body)


def set_up(into: Streams) -> None:
    """Formats and operations of all three processors are set anew."""
    into.init()
    into.add("pack", Work("pack", INIT_CYCLES))


def packed(into: Streams, name: str) -> None:
    """From here on, what was packed under a name may be unpacked."""
    into.add("pack", Give(Counter(name, "buffer"), 1))


def unpacked(into: Streams, name: str) -> None:
    """The next operation unpacks what was packed under a name."""
    into.add("unpack", Wait(Counter(name, "buffer"), 1, takes=True))


def handed_on(into: Streams, name: str) -> None:
    packed(into, name)
    unpacked(into, name)


def in_parts(count: int, most: int) -> list[int]:
    """So many tiles, at most some of them at a time."""
    return [min(most, count - first) for first in range(0, count, most)]


def first_cores(target: Target, count: int | None = None) -> tuple[tuple[int, int], ...]:
    columns, rows = target.compute_grid
    return tuple((index % columns, index // columns) for index in range(columns * rows if count is None else count))


def divided(target: Target, units: int) -> list[tuple[str, tuple[tuple[int, int], ...], int]]:
    """Units of work over all cores: those that have one more, and the others."""
    few, more = divmod(units, target.cores)
    cores = first_cores(target)
    groups = (("more", cores[:more], few + 1), ("few", cores[more:], few))
    return [group for group in groups if group[1] and group[2]]
