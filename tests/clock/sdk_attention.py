"""The SDK's attention described as events: prefill (``scaled_dot_product_attention``) and decode.

The division of work is that of ``sdpa_program_factory.cpp``, the order of the calls that of the two compute kernels:
``compute_streaming.hpp``, where the packer's processor issues the exponentials, and ``compute_common.hpp``, which the
factory takes with a DST of 32 bits, where math issues all. Each core reads the blocks of K and V that it needs, some
tiles at a time (``get_barrier_read_threshold``), or, where no mask makes the blocks differ, one core of a head reads
them and each passes them to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Literal

from tests.clock.sections import (
    APPROXIMATE,
    INTERMEDIATE,
    first_cores,
    handed_on,
    in_parts,
    packed,
    section,
    set_up,
    unpacked,
)
from ttexplore.clock.engines import Streams, pop, push, reserve, starting, wait
from ttexplore.clock.engines import free as room
from ttexplore.clock.events import Complete, CoreClass, Counter, Event, ProcessorName, Repeat, Signal, Transfer, Wait
from ttexplore.ops.costs import matmul_cycles, matmul_unpacked
from ttexplore.ops.reduce import FPU_REDUCTIONS
from ttexplore.ops.sfpu_cycles import sfpu_cycles
from ttexplore.target import Target

# A maximum of rows: what is beside the pooling, in which both faces of a row are turned.
_TURNED = next(op.cycles for op in FPU_REDUCTIONS if op.name == "reduce_max_row") - 8


@dataclass(frozen=True)
class Attention:
    """Sizes in tiles: a core takes `rows` of Q and `columns` of K at a time; `depth` is the size of a head, `values`
    that of a row of V. `queries` and `keys` are the whole sequences of a head.
    Where cores are `chained`, they pass blocks on; a `wide` DST has 32 bits."""

    heads: int
    kv_heads: int
    queries: int
    keys: int
    rows: int
    columns: int
    depth: int = 4
    values: int = 4
    tile_bytes: int = 1088
    fidelity: str = "HiFi2"
    causal: bool = True
    chained: bool = False
    wide: bool = False

    @property
    def chunks(self) -> int:
        return ceil(self.queries / self.rows)

    def steps(self, chunk: int) -> int:
        """The blocks of K that a chunk of Q needs."""
        blocks = ceil(self.keys / self.columns)
        return min(blocks, ceil((chunk + 1) * self.rows / self.columns)) if self.causal else blocks


class _Compute:
    """The compute kernel of a block of K, in the SDK's sub-blocks."""

    def __init__(self, target: Target, attention: Attention) -> None:
        self.attention, self.costs = attention, target.costs
        self.slots = 4 if attention.wide else 8
        bits = 32 if attention.wide else 16
        self.exponential = APPROXIMATE["exp_tile"]
        # Of the first column of each face alone, half the rows of vectors.
        self.factor = sfpu_cycles("exp_tile", target.arch, bits) // 4
        self.reciprocal = sfpu_cycles("recip_tile", target.arch, bits) // 2

    def product(self, into: Streams, h: int, w: int, depth: int, left: int, right: int) -> None:
        cycles = matmul_cycles(self.costs, self.attention.fidelity, h * w)
        section(into, [(matmul_unpacked(h, w, left, right), cycles, depth)], h * w)

    def blocks(self, rows: int, columns: int) -> tuple[int, int]:
        """The sub-block of a product (``determine_largest_subblock_size``)."""
        w = next(w for w in range(min(columns, self.slots), 0, -1) if columns % w == 0)
        h = next(h for h in range(min(rows, self.slots // w) or 1, 0, -1) if rows % h == 0)
        return h, w

    def binary(self, fidelity_cycles: int) -> tuple[int, int]:
        return 2 * INTERMEDIATE, fidelity_cycles

    def step(self) -> Streams:
        return self.step_by_math() if self.attention.wide else self.step_by_packer()

    def maximum(self, into: Streams, h: int) -> None:
        """The largest of each row, with that of the blocks before."""
        old = (INTERMEDIATE, self.costs.add_tile_cycles, h)
        set_up(into)
        # The pooling of the tiles of a row (``reduce_block_max_row``), and the turning of the result.
        row = (self.attention.columns * INTERMEDIATE, self.attention.columns * self.costs.add_tile_cycles + _TURNED, h)
        section(into, [old, row], h)

    def factors(self, into: Streams, h: int) -> None:
        """exp(old maximum - new maximum) of each row, by which what was summed up so far is multiplied."""
        difference = (2 * INTERMEDIATE, self.costs.add_tile_cycles, 1)
        set_up(into)
        if self.attention.wide:
            for _ in range(h):
                section(into, [difference], 1, vector=self.factor)
        else:
            section(into, [difference] * h, h, packs_vector=h * self.factor)
        packed(into, "factors")

    def rescale(self, into: Streams, h: int) -> None:
        both, attention = 2 * INTERMEDIATE, self.attention
        multiply = self.costs.multiply_tile_cycles[attention.fidelity]
        unpacked(into, "factors")
        set_up(into)
        count = h * attention.values
        if attention.wide:
            for cycles in (multiply, self.costs.add_tile_cycles):
                for _ in range(h):
                    section(into, [(both, cycles, 1)], 1)
            set_up(into)
        else:
            count += h
        for tiles in in_parts(count, self.slots):
            section(into, [(both, multiply, tiles)], tiles)

    def step_by_packer(self) -> Streams:
        attention, add = self.attention, self.costs.add_tile_cycles
        out = Streams(self.costs)
        h, w = self.blocks(attention.rows, attention.columns)
        ph, pw = self.blocks(attention.rows, attention.values)
        groups, parts = attention.rows // h, attention.columns // w
        out.add("unpack", *wait("K", attention.depth * attention.columns))

        def weights(group: int) -> None:
            set_up(out)
            section(
                out, [(h * (w + 1) * INTERMEDIATE, h * w * add, 1)], 2 * h * w,
                packs_vector=h * w * self.exponential,
            )  # fmt: skip

        for group in range(groups):
            for _ in range(parts):
                set_up(out)
                self.product(out, h, w, attention.depth, attention.tile_bytes, attention.tile_bytes)
                if group:
                    weights(group - 1)
            handed_on(out, "scores")
            self.maximum(out, h)
            handed_on(out, "maximum")
        out.add(
            "unpack", *pop("K", attention.depth * attention.columns), *wait("V", attention.columns * attention.values)
        )
        for _ in range(parts):
            weights(groups - 1)
        rows = attention.rows // ph
        for group in range(rows):
            if group:
                self.factors(out, ph)
            else:
                packed(out, "weights")
            if group == rows - 1:
                unpacked(out, "weights")
            set_up(out)
            for _ in range(attention.values // pw):
                self.product(out, ph, pw, attention.columns, INTERMEDIATE, attention.tile_bytes)
            if group == rows - 1:
                self.factors(out, ph)
            if group:
                self.rescale(out, ph)
        self.rescale(out, ph)
        out.add("unpack", *pop("V", attention.columns * attention.values))
        return out

    def step_by_math(self) -> Streams:
        attention, add = self.attention, self.costs.add_tile_cycles
        out = Streams(self.costs)
        h, w = self.blocks(attention.rows, attention.columns)
        out.add("unpack", *wait("K", attention.depth * attention.columns))
        set_up(out)
        for _ in range(attention.rows // h * (attention.columns // w)):
            self.product(out, h, w, attention.depth, attention.tile_bytes, attention.tile_bytes)
        handed_on(out, "scores")
        out.add("unpack", *pop("K", attention.depth * attention.columns))
        together = min(attention.rows, self.slots)
        for _ in range(attention.rows // together):
            self.maximum(out, together)
        handed_on(out, "maximum")
        set_up(out)
        wide = min(attention.columns, self.slots)
        for _ in range(attention.rows * ceil(attention.columns / wide)):
            section(out, [(2 * INTERMEDIATE, add, wide)], 2 * wide, vector=wide * self.exponential)
        handed_on(out, "weights")
        out.add("unpack", *wait("V", attention.columns * attention.values))
        h, w = self.blocks(attention.rows, attention.values)
        set_up(out)
        for _ in range(attention.rows // h * (attention.values // w)):
            self.product(out, h, w, attention.columns, INTERMEDIATE, attention.tile_bytes)
        out.add("unpack", *pop("V", attention.columns * attention.values))
        self.factors(out, attention.rows)
        self.rescale(out, attention.rows)
        return out

    def end(self) -> Streams:
        """Sums of rows, their reciprocals, and the output divided by them."""
        attention = self.attention
        out = Streams(self.costs)
        handed_on(out, "sums")
        multiply = self.costs.multiply_tile_cycles[attention.fidelity]
        for _ in range(attention.rows):
            set_up(out)
            self.product(out, 1, 1, 1, INTERMEDIATE, INTERMEDIATE)
            section(out, [], 1, vector=self.reciprocal)
            handed_on(out, "sums")
            out.add("pack", *reserve("O", attention.values))
            for tiles in in_parts(attention.values, self.slots):
                section(out, [(2 * INTERMEDIATE, multiply, tiles)], tiles)
            out.add("pack", *push("O", attention.values))
        return out

    def chunk(self, steps: int) -> Streams:
        out = Streams(self.costs)
        tiles = self.attention.rows * self.attention.depth
        out.add("unpack", *wait("Q", tiles))
        out.loop(steps, self.step())
        out.loop(1, self.end())
        out.add("unpack", *pop("Q", tiles))
        return out


def _read(name: str, tiles: int, tile_bytes: int, together: int) -> tuple[Event, ...]:
    """A block, with a barrier after some tiles."""
    whole, rest = divmod(tiles, together)
    some: tuple[Event, ...] = (Transfer("read", "dram", together * tile_bytes, together), Complete("read"))
    last: tuple[Event, ...] = (Transfer("read", "dram", rest * tile_bytes, rest), Complete("read")) if rest else ()
    return (*reserve(name, tiles), Repeat(whole, some), *last, *push(name, tiles))


Place = Literal["alone", "first", "inner", "last"]


def _passed(name: str, tiles: int, attention: Attention, together: int, position: Place) -> tuple[Event, ...]:
    """A block that the first core of a head reads and each core passes to the next one."""
    count = tiles * attention.tile_bytes
    ready, valid = Counter(f"{name} is wanted", "semaphore"), Counter(f"{name} has come", "semaphore")
    follower = {"first": "inner", "inner": "last", "last": "last"}[position] if position != "alone" else ""
    before = {"inner": "first", "last": "inner"}.get(position, "")
    events: tuple[Event, ...] = ()
    if position in ("alone", "first"):
        events = _read(name, tiles, attention.tile_bytes, together)[:-2]
    else:
        events = (*reserve(name, tiles), Signal(ready, 1, before), Wait(valid, 1, takes=True))
    if position in ("first", "inner"):
        sent: tuple[Event, ...] = (
            Wait(ready, 1, takes=True), Transfer("write", "l1", count, ceil(count / 16384)),
            Complete("write", landed=False), Signal(valid, 1, follower),
        )  # fmt: skip
        events = (*events, *sent)
    return (*events, *push(name, tiles))


def threshold(target_cores: int, tile_bytes: int) -> int:
    return max(1, 512 // target_cores * (1024 + 128) // tile_bytes)


def _core(
    target: Target, attention: Attention, name: str, cores: Sequence[tuple[int, int]],
    chunks: Sequence[tuple[int, int, Place]], together: int,
) -> CoreClass:  # fmt: skip
    """Cores that take chunks of Q: how many, how many steps each has, and where in a chain its blocks come from."""
    k_tiles, v_tiles, q_tiles = (
        attention.columns * attention.depth,
        attention.columns * attention.values,
        attention.rows * attention.depth,
    )
    out_tiles = attention.rows * attention.values
    readers: list[Event] = []
    writers: list[Event] = []
    compute = Streams(target.costs)
    kernel = _Compute(target, attention)
    for times, steps, position in chunks:
        block = (
            *_passed("K", k_tiles, attention, together, position),
            *_passed("V", v_tiles, attention, together, position),
        )
        query = _read("Q", q_tiles, attention.tile_bytes, together)
        readers.append(Repeat(times, (*query, Repeat(steps, block))))
        store = (
            *wait("O", out_tiles), Transfer("write", "dram", out_tiles * attention.tile_bytes, out_tiles),
            Complete("write"), *pop("O", out_tiles),
        )  # fmt: skip
        writers.append(Repeat(times, store))
        compute.loop(times, kernel.chunk(steps))
    start = {room("Q"): 2 * q_tiles, room("K"): 2 * k_tiles, room("V"): 2 * v_tiles, room("O"): out_tiles, **starting()}
    processors: dict[ProcessorName, tuple[Event, ...]] = {
        "reader": tuple(readers), "writer": tuple(writers), **compute.processors,
    }  # fmt: skip
    return CoreClass(name, tuple(cores), processors, start)


def prefill(
    target: Target, attention: Attention, cores: int | None = None, together: int | None = None
) -> list[CoreClass]:
    """All heads over so many cores. With a mask, each core takes pairs of chunks, a short one and a long one."""
    count = target.cores if cores is None else cores
    all_cores = first_cores(target, count)
    some = together or threshold(count, attention.tile_bytes)
    in_pairs = attention.causal and attention.chunks % 2 == 0
    if in_pairs:
        total, steps = (
            attention.heads * attention.chunks // 2,
            sum(attention.steps(chunk) for chunk in range(attention.chunks)),
        )
        each = 2 * steps / attention.chunks
        short = max(1, round(each / 4))
        work = [short, max(1, round(each) - short)]
    else:
        total = attention.heads * attention.chunks
        work = [max(1, round(sum(attention.steps(chunk) for chunk in range(attention.chunks)) / attention.chunks))]
    few, more = divmod(total, count)
    if attention.chained:
        # One core of each head reads what the others need as well; of a pair, for the long chunk.
        heads, most = min(attention.heads, count // 3), few + bool(more)
        links: list[tuple[Place, Sequence[tuple[int, int]]]] = [
            ("first", all_cores[:heads]), ("inner", all_cores[heads : 2 * heads]), ("last", all_cores[2 * heads :]),
        ]  # fmt: skip
        classes: list[CoreClass] = []
        for position, cores_there in links:
            shorter: list[tuple[int, int, Place]] = [(most, steps, "alone") for steps in work[:-1]]
            classes.append(
                _core(target, attention, position, cores_there, [*shorter, (most, work[-1], position)], some)
            )
        return classes
    groups = (("more", all_cores[:more], few + 1), ("few", all_cores[more:], few))
    return [
        _core(target, attention, name, cores_there, [(times, steps, "alone") for steps in work], some)
        for name, cores_there, times in groups
        if cores_there and times
    ]


def decode(target: Target, attention: Attention, users: int, cores: int | None = None) -> list[CoreClass]:
    """One row of tiles of Q for each user and head of K and V, whose cache is divided over cores."""
    count = target.cores if cores is None else cores
    groups = users * attention.kv_heads
    each = max(1, count // users // attention.kv_heads)
    active = min(count, groups * each)
    times = ceil(groups * each / count)
    all_cores = first_cores(target, active)
    steps = ceil(attention.keys / each / attention.columns)
    attention = replace(attention, rows=1, causal=False)
    return [_core(target, attention, "all", all_cores, [(times, steps, "alone")], threshold(active, INTERMEDIATE))]
