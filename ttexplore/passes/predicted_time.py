"""How long a kernel takes, predicted from its blocks: closed forms for choices that come before there are transfers.

The constants are those of the target, with which the clock replays the emitted program; what only a replay finds out,
such as who waits for whom, is not known here.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod

from tvm import ir, tirx

from ttexplore.ir.build import constant, dtype_of, op_name, regions, shape_of, statements
from ttexplore.ir.dag import nodes_of
from ttexplore.ir.dataflow import is_on_chip, is_parallel, parallel_body
from ttexplore.ir.program import Program
from ttexplore.ir.rewrite import walk
from ttexplore.ir.storage import tile_grid
from ttexplore.ops.costs import (
    COPY_CYCLES,
    INIT_CYCLES,
    PACK_CYCLES,
    SECTION_CYCLES,
    matmul_cycles,
    matmul_unpacked,
    pack_cycles,
    unpack_cycles,
)
from ttexplore.passes.dst.blocks import SubBlock, sub_blocks
from ttexplore.passes.launch_grid import grid_loops
from ttexplore.passes.shard_work import TensorCopy, tensor_copies, tensors_moved
from ttexplore.passes.staging import storage_dtype
from ttexplore.plan import DATA_FORMATS, FORMAT_OF_DTYPE, ComputeConfig
from ttexplore.target import Target

Core = tuple[int, int]
# An operation on the elements of a tile, for lack of a better number: most functions of the SFPU take more, and sums
# and products less.
_ELEMENTWISE_CYCLES = 128
_PARTIAL_BYTES = DATA_FORMATS["Float32"].tile_bytes


@dataclass(frozen=True, slots=True)
class Load:
    """A copy into a circular buffer, which a work item makes once in each turn of the loops around it."""

    tensor: str
    block_bytes: int
    pages: int
    loops: tuple[int, ...]
    in_dram: bool
    stages: int

    @property
    def turns(self) -> int:
        return prod(self.loops)


@dataclass(frozen=True, slots=True)
class ItemWork:
    """What a core does for one work item: its loads, the cycles of its computations, and the bytes that it writes."""

    loads: tuple[Load, ...]
    compute_cycles: float
    written_bytes: int

    @property
    def without_reading(self) -> ItemWork:
        return dataclasses.replace(self, loads=())


@dataclass(frozen=True, slots=True)
class Sent:
    """How the cores get one input: the receivers of each core that sends it, and all cores that only receive it."""

    receivers: Mapping[Core, int]
    receiving: frozenset[Core]


def item_work(program: Program, target: Target) -> ItemWork | None:
    """What a core does for a work item after A2; None if that is known only when the kernel runs."""
    plan, staging = program.plan, program.staging
    assert staging is not None, "A2 decides it"
    assert plan.compute is not None, "A2 decides it"
    loops = grid_loops(program.kernel)
    copies = tensor_copies(loops)
    if plan.sizes or _is_open(loops[-1].body, copies):
        return None
    homes = {key[0]: plan_name for key, plan_name in staging.writes.items()}
    buffers = {one.name: one for one in plan.buffers}
    loads: list[Load] = []
    written = 0
    for copy in copies:
        layout, accessor = plan.layout(copy.tensor), plan.accessor(copy.tensor)
        if not copy.loads:
            tiles = prod(tile_grid(copy.extents[-2:])) * prod(copy.extents[:-2])
            tile_bytes = DATA_FORMATS[layout.data_format].tile_bytes
            written += prod(copy.loops) * tiles * tile_bytes if layout.memory == "dram" else 0
            continue
        buffer = buffers.get(homes.get(copy.statement, ""))
        if buffer is None:
            return None
        page_bytes = accessor.page_bytes if layout.page == "tile" else buffer.page_bytes
        loads.append(
            Load(copy.tensor, buffer.block_pages * page_bytes, buffer.block_pages, copy.loops,
                 layout.memory == "dram", buffer.stages)
        )  # fmt: skip
    cycles = _cycles(statements(loops[-1].body), plan.compute, target, in_loop=False)
    return ItemWork(tuple(loads), cycles, written)


def predicted_cycles(work: ItemWork, items: Mapping[Core, int], target: Target, shared: Mapping[str, Sent]) -> float:
    """The cycles from the launch to the end, with the work items of each core, and inputs that are `shared`."""
    costs = target.costs
    kinds = {
        (count, *(
            one.receivers.get(core, 0) if core not in one.receiving else -1 for one in shared.values()
        ))
        for core, count in items.items()
    }  # fmt: skip
    total = sum(items.values())
    # How many blocks all cores read in a turn, of the turns of the busiest core.
    most = max(items.values())
    readers = dict.fromkeys((one.tensor for one in work.loads), total / most)
    for name, one in shared.items():
        readers[name] = sum(count for core, count in items.items() if core not in one.receiving) / most
    slowest = 0.0
    for count, *roles in kinds:
        slowest = max(slowest, _core_cycles(work, count, dict(zip(shared, roles, strict=True)), readers, target))
    writing = work.written_bytes * total / costs.dram_write_bytes_per_cycle
    # What comes before the last work item is written while others are computed.
    last = work.written_bytes * len(items) / costs.dram_write_bytes_per_cycle
    return costs.launch_cycles + max(slowest, writing - last) + last


def _core_cycles(
    work: ItemWork, items: int, roles: Mapping[str, int], readers: Mapping[str, float], target: Target
) -> float:
    """The cycles until a core has computed all. `roles` are the receivers of what it sends, -1 where it receives."""
    reading = arriving = 0.0
    turns = serial = 0
    groups = itertools.groupby(sorted(work.loads, key=lambda one: one.loops), key=lambda one: one.loops)
    for loops, together in groups:
        step = [*together]
        own, late = _step_cycles(step, roles, readers, target)
        reading += own * prod(loops)
        arriving += late
        turns += prod(loops)
        serial += any(one.stages < 2 for one in step) * prod(loops)
    reading, computing = reading * items, work.compute_cycles * items
    if not turns:
        return computing
    # Blocks are read while others are computed, but for the first one, and where a buffer holds only one.
    overlapped = max(reading, computing) + min(reading, computing) / (turns * items)
    share = serial / turns
    return arriving + share * (reading + computing) + (1 - share) * overlapped


def _step_cycles(
    step: Iterable[Load], roles: Mapping[str, int], readers: Mapping[str, float], target: Target
) -> tuple[float, float]:
    """The cycles in which the reader gets one block of each load, and how much later the first ones are there that come
    from other cores."""
    costs, ring = target.costs, target.noc_round_trip_cycles
    own_bytes = from_dram = 0.0
    pages = calls = 0
    sending = late = handshake = 0.0
    for one in step:
        role = roles.get(one.tensor, 0)
        calls += 2 * costs.buffer_call_cycles
        if one.in_dram:
            from_dram += one.block_bytes * readers[one.tensor]
        transfer = one.block_bytes / costs.noc_payload_bytes_per_cycle
        # A flag follows the block.
        sent = transfer + 2 * costs.noc_issue_cycles
        if role >= 0:
            own_bytes += one.block_bytes
            pages += one.pages
        if role > 0:
            sending += sent
        if one.tensor in roles and role:
            arrival = (costs.multicast_cycles + costs.multicast_receiver_cycles * max(role, 0)) / 2
            late += arrival if role > 0 else sent + arrival
            # The receivers have room again, and the sender knows it, before it sends the next one.
            handshake = max(handshake, sent + arrival + ring / 2 + 4 * costs.buffer_call_cycles)
    if not own_bytes:
        return max(calls, handshake), late
    issued = pages * (costs.noc_issue_cycles + costs.accessor_cycles)
    moved = max(own_bytes / costs.noc_payload_bytes_per_cycle, issued, from_dram / costs.dram_read_bytes_per_cycle)
    latency = ring + costs.dram_read_cycles
    return max(calls + latency + moved + sending, handshake), late


# What a work item computes


def _is_open(body: tirx.Stmt, copies: Sequence[TensorCopy]) -> bool:
    """Whether something decides only when the kernel runs what is read, or how often."""
    known = {one.statement for one in copies}
    for one in walk(body):
        if isinstance(one, tirx.While) or (isinstance(one, tirx.For) and constant(one.extent) is None):
            return True
        if tensors_moved(one) and one not in known:
            return True
    return False


def _cycles(body: Iterable[tirx.Stmt], compute: ComputeConfig, target: Target, *, in_loop: bool) -> float:
    """The cycles of the slowest of unpack, math and pack."""
    total = 0.0
    for one in body:
        name = op_name(one)
        if is_parallel(one):
            total += _elementwise(one)
        elif isinstance(one, tirx.For):
            turns = constant(one.extent) or 0
            total += turns * _cycles(statements(one.body), compute, target, in_loop=turns > 1)
        elif isinstance(one, tirx.IfThenElse):
            arms = [one.then_case, *([one.else_case] if one.else_case is not None else [])]
            total += max(_cycles(statements(arm), compute, target, in_loop=in_loop) for arm in arms)
        elif name == "tl.gemm":
            total += _product(one, compute, target, in_loop=in_loop)
        elif name in ("tl.copy", "tl.reduce"):
            source, to = (region.source for region in regions(one)[:2])
            if is_on_chip(source) and is_on_chip(to):
                total += prod(tile_grid(shape_of(source)[-2:])) * (COPY_CYCLES + PACK_CYCLES)
    return total


def _product(statement: tirx.Stmt, compute: ComputeConfig, target: Target, *, in_loop: bool) -> float:
    costs = target.costs
    a, b, c = (region.source for region in regions(statement)[:3])
    rows, columns = tile_grid(shape_of(c))
    depth = prod(tile_grid(shape_of(a))) // rows
    a_bytes, b_bytes = (DATA_FORMATS[FORMAT_OF_DTYPE[storage_dtype(dtype_of(one))]].tile_bytes for one in (a, b))
    part = max(sub_blocks((rows, columns), compute.dst_tiles), key=lambda one: (one.tiles, one.columns))
    unpack = depth * unpack_cycles(costs, matmul_unpacked(part.rows, part.columns, a_bytes, b_bytes))
    math = depth * matmul_cycles(costs, compute.math_fidelity, part.tiles)
    pack = 0
    if in_loop and part.turns > 1:
        # Partial sums leave DST after each step, and come back unless the packer adds them up.
        pack = part.tiles * pack_cycles(costs, _PARTIAL_BYTES, PACK_CYCLES)
        if compute.accumulate == "reload":
            unpack += part.tiles * unpack_cycles(costs, _PARTIAL_BYTES) + 3 * INIT_CYCLES
            math += part.tiles * COPY_CYCLES + 3 * INIT_CYCLES
    return part.turns * (max(unpack, math, pack) + _hand_over(part))


def _hand_over(part: SubBlock) -> float:
    return SECTION_CYCLES / 2 if part.turns > 1 else SECTION_CYCLES


def _elementwise(nest: tirx.Stmt) -> float:
    loops, body = parallel_body(nest)
    extents = [constant(one.extent) or 1 for one in loops]
    tiles = prod(tile_grid(tuple(extents[-2:]))) * prod(extents[:-2])
    operations = sum(
        not isinstance(node, ir.TensorLoad | ir.Var | tirx.IntImm | tirx.FloatImm | tirx.Cast)
        for one in body
        if isinstance(one, tirx.BufferStore | tirx.Bind)
        for node in nodes_of(one.value)
    )
    return tiles * (operations * _ELEMENTWISE_CYCLES + COPY_CYCLES + PACK_CYCLES)


def microseconds(cycles: float, target: Target) -> str:
    return f"{ceil(cycles / target.clock_hz * 1e7) / 10:.1f} us"
