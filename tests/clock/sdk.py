"""Programs of the SDK described as events: its matmul with multicast, and the patterns of its NoC benchmark.

The blocking is what ``create_simple_matmul_program_config`` of ttnn chooses for interleaved tensors in DRAM (file
matmul_program_config.cpp), and the kernels are those of its programs (bmm_large_block_zm_fused_bias_activation,
reader_bmm_tile_layout_in0_sender_padding, reader_bmm_tile_layout_in1_sender_writer_padding), with the default packer:
partial sums are added in L1.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from ttexplore.clock.engines import Streams, pop, push, reserve, starting, wait
from ttexplore.clock.engines import free as room
from ttexplore.clock.events import (
    Complete,
    CoreClass,
    Counter,
    Event,
    Memory,
    MulticastSend,
    ProcessorName,
    Repeat,
    Signal,
    Transfer,
    Wait,
    Work,
)
from ttexplore.ops.costs import PACK_CYCLES, matmul_cycles, matmul_unpacked, pack_cycles
from ttexplore.target import Target

_SUBBLOCKS = (
    (4, 2), (2, 4), (8, 1), (1, 8), (7, 1), (1, 7), (3, 2), (2, 3), (6, 1), (1, 6), (5, 1), (1, 5), (2, 2), (4, 1),
    (1, 4), (3, 1), (1, 3), (2, 1), (1, 2), (1, 1),
)  # fmt: skip


@dataclass(frozen=True)
class Blocking:
    """Tiles of a block: `rows` x `depth` of A, `depth` x `columns` of B; `grid` is (columns, rows) of cores. A core
    makes `row_blocks` x `column_blocks` output blocks, one after another."""

    grid: tuple[int, int]
    rows: int
    depth: int
    columns: int
    row_blocks: int = 1
    column_blocks: int = 1

    @property
    def subblock(self) -> tuple[int, int]:
        return next((h, w) for h, w in _SUBBLOCKS if self.rows % h == 0 and self.columns % w == 0)


def blocking(grid: tuple[int, int], m: int, k: int, n: int, tile_bytes: int, l1_bytes: int) -> Blocking:
    """The two-dimensional blocking of ttnn for interleaved tensors in DRAM; sizes in elements."""
    columns, rows = grid
    tiles_m, tiles_k, tiles_n = m // 32, k // 32, n // 32
    depth = tiles_k // columns if tiles_k % columns == 0 else 1
    per_m, per_n = ceil(tiles_m / rows), ceil(tiles_n / columns)

    def size(h: int, w: int, d: int) -> int:
        # Two blocks of each input, one of the output and one of partial sums (get_estimated_size_of_cbs).
        return 2 * (h * d + d * w) * tile_bytes + 2 * h * w * tile_bytes

    def divisors(of: int) -> list[int]:
        return [one for one in range(1, of + 1) if of % one == 0]

    if size(per_m, per_n, depth) < l1_bytes:
        return Blocking(grid, per_m, depth, per_n)
    areas: dict[int, tuple[int, int]] = {}
    for h in divisors(per_m):
        for w in divisors(per_n):
            old = areas.get(h * w)
            if old is None or max(old) / min(old) >= max(h, w) / min(h, w):
                areas[h * w] = (h, w)
    for d in reversed(divisors(depth)):
        for _, (h, w) in sorted(areas.items(), reverse=True):
            if size(h, w, d) < l1_bytes:
                return Blocking(grid, h, d, w, per_m // h, per_n // w)
    raise ValueError("nothing fits")


def _ready(name: str) -> Counter:
    return Counter(f"receivers of {name} that are ready", "semaphore")


def _valid(name: str) -> Counter:
    return Counter(f"{name} has arrived", "semaphore")


def _sent(name: str, tiles: int, tile_bytes: int, receivers: int, to: tuple[str, ...]) -> tuple[Event, ...]:
    """Read a block, wait until all receivers have room, and send it to them."""
    read = (*reserve(name, tiles), Transfer("read", "dram", tiles * tile_bytes, tiles), Complete("read"))
    if not receivers:
        return (*read, *push(name, tiles))
    return (
        *read, Wait(_ready(name), receivers, takes=True),
        MulticastSend(tiles * tile_bytes, max(1, tiles * tile_bytes // 8192), receivers, _valid(name), to),
        Complete("write", landed=False), *push(name, tiles),
    )  # fmt: skip


def _received(name: str, tiles: int, sender: str, receivers: int) -> tuple[Event, ...]:
    return (
        *reserve(name, tiles), Signal(_ready(name), receivers, sender), Wait(_valid(name), 1, takes=True),
        *push(name, tiles),
    )  # fmt: skip


def matmul(target: Target, sizes: tuple[int, int, int], tile_bytes: int, fidelity: str) -> list[CoreClass]:
    """C = A B of ttnn, out of the box."""
    m, k, n = sizes
    grid = target.compute_grid
    if ceil(m / 32 / 16) == 1 and n // 32 > 16:
        return _matmul_1d(target, sizes, tile_bytes, fidelity)
    made = blocking(grid, m, k, n, tile_bytes, target.l1_usable_bytes)
    columns, rows = grid
    classes = {
        "corner": ((0, 0),),
        "left": tuple((0, y) for y in range(1, rows)),
        "top": tuple((x, 0) for x in range(1, columns)),
        "inner": tuple((x, y) for y in range(1, rows) for x in range(1, columns)),
    }
    a_tiles, b_tiles = made.rows * made.depth, made.depth * made.columns
    sends_a = {"corner": ("top",), "left": ("inner",)}
    sends_b = {"corner": ("left",), "top": ("inner",)}
    a_from, b_from = {"top": "corner", "inner": "left"}, {"left": "corner", "inner": "top"}
    found: list[CoreClass] = []
    for name, cores in classes.items():
        # Each core of a class stands for all receivers of its sender.
        a = (
            _sent("A", a_tiles, tile_bytes, columns - 1, sends_a[name]) if name in sends_a
            else _received("A", a_tiles, a_from[name], columns - 1)
        )  # fmt: skip
        b = (
            _sent("B", b_tiles, tile_bytes, rows - 1, sends_b[name]) if name in sends_b
            else _received("B", b_tiles, b_from[name], rows - 1)
        )  # fmt: skip
        found.append(_core(target, name, cores, made, k // 32, (a, b), tile_bytes, fidelity))
    return found


def _matmul_1d(target: Target, sizes: tuple[int, int, int], tile_bytes: int, fidelity: str) -> list[CoreClass]:
    """A is sent by one core to all; each has columns of B of its own (get_mcast_1d_config)."""
    m, k, n = sizes
    cores = [(x, y) for y in range(target.compute_grid[1]) for x in range(target.compute_grid[0])]
    per_n = ceil(n / 32 / len(cores))
    cores = cores[: n // 32 // per_n]
    made = Blocking((len(cores), 1), m // 32, 2, per_n)
    a_tiles, b_tiles = made.rows * made.depth, made.depth * made.columns
    b = (*reserve("B", b_tiles), Transfer("read", "dram", b_tiles * tile_bytes, b_tiles), Complete("read"))
    b = (*b, *push("B", b_tiles))
    sender = _sent("A", a_tiles, tile_bytes, len(cores) - 1, ("others",))
    others = _received("A", a_tiles, "first", len(cores) - 1)
    return [
        _core(target, name, tuple(where), made, k // 32, (a, b), tile_bytes, fidelity)
        for name, where, a in (("first", cores[:1], sender), ("others", cores[1:], others))
    ]


def _core(
    target: Target, name: str, cores: tuple[tuple[int, int], ...], made: Blocking, depth: int,
    readers: tuple[tuple[Event, ...], tuple[Event, ...]], tile_bytes: int, fidelity: str,
) -> CoreClass:  # fmt: skip
    blocks, outputs = depth // made.depth, made.row_blocks * made.column_blocks
    h, w = made.subblock
    subblocks, out_tiles = made.rows * made.columns // (h * w), made.rows * made.columns
    a, b = readers
    written = (
        *wait("C", h * w),
        Transfer("write", "dram", h * w * tile_bytes, h * w),
        Complete("write"),
        *pop("C", h * w),
    )
    processors: dict[ProcessorName, tuple[Event, ...]] = {
        "reader": (Repeat(outputs * blocks, a),),
        "writer": (Repeat(outputs, (Repeat(blocks, b), Repeat(subblocks, written))), Complete("write")),
        **_compute(target, made, blocks, outputs, tile_bytes, fidelity).processors,
    }
    start = {
        room("A"): 2 * made.rows * made.depth, room("B"): 2 * made.depth * made.columns, room("C"): out_tiles,
        **starting(),
    }  # fmt: skip
    return CoreClass(name, cores, processors, start)


def _compute(target: Target, made: Blocking, blocks: int, outputs: int, tile_bytes: int, fidelity: str) -> Streams:
    costs = target.costs
    h, w = made.subblock
    subblocks = made.rows * made.columns // (h * w)
    pack = pack_cycles(costs, tile_bytes, PACK_CYCLES)

    def block(last: bool) -> Streams:
        body, section, product = Streams(costs), Streams(costs), Streams(costs)
        body.add("unpack", *wait("A", made.rows * made.depth), *wait("B", made.depth * made.columns))
        section.acquire()
        product.source(matmul_unpacked(h, w, tile_bytes, tile_bytes), matmul_cycles(costs, fidelity, h * w))
        section.loop(made.depth, product)
        section.commit()
        if last:
            section.add("pack", *reserve("C", h * w))
        section.wait_for_math()
        section.add("pack", Work("pack", pack * h * w))
        section.release()
        if last:
            section.add("pack", *push("C", h * w))
        body.loop(subblocks, section)
        body.add("unpack", *pop("A", made.rows * made.depth), *pop("B", made.depth * made.columns))
        return body

    output, all_ = Streams(costs), Streams(costs)
    output.loop(blocks - 1, block(False))
    output.loop(1, block(True))
    all_.loop(outputs, output)
    return all_


def transfers(direction: str, memory: Memory, count: int, size: int) -> list[CoreClass]:
    """One core, with `count` transfers of `size` bytes and a barrier."""
    way = "read" if direction == "read" else "write"
    events: tuple[Event, ...] = (Transfer(way, memory, count * size, count), Complete(way))
    return [CoreClass("one", ((0, 0),), {"reader": events})]


def multicasts(receivers: int, count: int, size: int) -> list[CoreClass]:
    """One core that sends to a rectangle, linked, with one barrier."""
    return [CoreClass("one", ((0, 0),), {"reader": (MulticastSend(count * size, count, receivers), Complete("write"))})]


def streams(
    direction: str, memory: Memory, cores: list[tuple[int, int]], count: int, size: int, pages: int = 0
) -> list[CoreClass]:  # fmt: skip
    """The same transfers by several cores at once; with `pages`, a barrier after so many."""
    way = "read" if direction == "read" else "write"
    together = pages or count
    block: tuple[Event, ...] = (Transfer(way, memory, together * size, together), Complete(way))
    return [CoreClass("all", tuple(cores), {"reader": (Repeat(count // together, block),)})]


def spread(direction: str, target: Target, pages: int, size: int) -> list[CoreClass]:
    """Pages in DRAM that all cores read or write, so many each."""
    columns, rows = target.compute_grid
    return streams(direction, "dram", [(x, y) for y in range(rows) for x in range(columns)], pages, size)


def elementwise(
    target: Target, tiles: int, tile_bytes: int, inputs: int, outputs: int, cycles: int, together: int = 1,
    memory: Memory = "dram",
) -> list[CoreClass]:  # fmt: skip
    """An element-wise operation over all cores (ttnn's unary and binary programs): a core reads `together` tiles of
    each input with one barrier, computes `cycles` for each, and writes each output, with buffers of two blocks."""
    columns, rows = target.compute_grid
    costs, names = target.costs, [f"input {number}" for number in range(inputs)]
    written = [f"output {number}" for number in range(outputs)]
    read: tuple[Event, ...] = (
        *(one for name in names for one in reserve(name, together)),
        Transfer("read", memory, inputs * together * tile_bytes, inputs * together), Complete("read"),
        *(one for name in names for one in push(name, together)),
    )  # fmt: skip
    stored: tuple[Event, ...] = tuple(
        one for name in written for one in (
            *wait(name, together), Transfer("write", memory, together * tile_bytes, together),
            Complete("write", landed=False), *pop(name, together),
        )
    )  # fmt: skip
    compute, block, section = Streams(costs), Streams(costs), Streams(costs)
    for name in names:
        block.add("unpack", *wait(name, together))
    for name in written:
        block.add("pack", *reserve(name, together))
    section.acquire()
    for _ in names:
        section.source(tile_bytes, 32)
    section.add("math", Work("math", cycles, cycles))
    section.commit()
    section.wait_for_math()
    section.add("pack", Work("pack", outputs * pack_cycles(costs, tile_bytes, PACK_CYCLES)))
    section.release()
    block.loop(together, section)
    for name in names:
        block.add("unpack", *pop(name, together))
    for name in written:
        block.add("pack", *push(name, together))
    compute.loop(tiles // together, block)
    processors: dict[ProcessorName, tuple[Event, ...]] = {
        "reader": (Repeat(tiles // together, read),),
        "writer": (Repeat(tiles // together, stored), Complete("write")),
        **compute.processors,
    }
    start = {room(name): 2 * together for name in (*names, *written)} | starting()
    return [CoreClass("all", tuple((x, y) for y in range(rows) for x in range(columns)), processors, start)]
