"""How long a kernel takes, predicted from its blocks: closed forms for choices that come before there are transfers.

The constants are those of the target, with which the clock replays the emitted program; what only a replay finds out,
such as who waits for whom, is not known here.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod
from typing import get_args

import numpy as np
import numpy.typing as npt
from tvm import ir, tirx

from ttexplore.analysis.dst_blocks import SubBlock, sub_blocks
from ttexplore.analysis.launch_grid import grid_loops
from ttexplore.analysis.shard_work import TensorCopy, tensor_copies, tensors_moved
from ttexplore.analysis.staging import storage_dtype
from ttexplore.ir.build import constant, dtype_of, op_name, regions, shape_of, statements
from ttexplore.ir.dag import nodes_of
from ttexplore.ir.dataflow import is_on_chip, is_parallel, parallel_body
from ttexplore.ir.operations.storage import tile_grid
from ttexplore.ir.operations.work import ItemWork, Load, Stored
from ttexplore.ir.program import Program
from ttexplore.ir.rewrite import walk
from ttexplore.noc_links import Moved, Way
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
from ttexplore.options import Fidelity
from ttexplore.plan import DATA_FORMATS, FORMAT_OF_DTYPE, ComputeConfig, Loader, Multicast, Plan
from ttexplore.target import Target

Core = tuple[int, int]
# An operation on the elements of a tile, for lack of a better number: most functions of the SFPU take more, and sums
# and products less.
_ELEMENTWISE_CYCLES = 128
_PARTIAL_BYTES = DATA_FORMATS["Float32"].tile_bytes


# How cores get one input: the number of those that a core sends it to, -1 if it only receives it.
Roles = Mapping[Core, int]


def roles_of(multicasts: Iterable[Multicast]) -> Roles:
    found: dict[Core, int] = {}
    for one in multicasts:
        receivers = one.receivers
        found |= dict.fromkeys(receivers, -1) | {one.sender: len(receivers)}
    return found


def item_works(program: Program, target: Target) -> dict[str, ItemWork] | None:
    """What a core does for a work item after A2, by math fidelity; None if that is known only when the kernel runs."""
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
    stores: list[Stored] = []
    in_loops = any(not one.loads and one.loops for one in copies)
    for copy in copies:
        layout, accessor = plan.layout(copy.tensor), plan.accessor(copy.tensor)
        if not copy.loads:
            tiles = prod(tile_grid(copy.extents[-2:])) * prod(copy.extents[:-2])
            tile_bytes = DATA_FORMATS[layout.data_format].tile_bytes
            stores.append(Stored(copy.tensor, prod(copy.loops) * tiles * tile_bytes, layout.memory == "dram"))
            continue
        buffer = buffers.get(homes.get(copy.statement, ""))
        if buffer is None:
            return None
        page_bytes = accessor.page_bytes if layout.page == "tile" else buffer.page_bytes
        loads.append(
            Load(copy.tensor, buffer.block_pages * page_bytes, buffer.block_pages, copy.loops,
                 layout.memory == "dram", buffer.stages, not stores and not (copy.loops and in_loops))
        )  # fmt: skip
    fidelities: tuple[Fidelity, ...] = get_args(Fidelity)
    computes = [dataclasses.replace(plan.compute, math_fidelity=one) for one in fidelities]
    cycles = _cycles(statements(loops[-1].body), computes, target, in_loop=False)
    return {
        fidelity: ItemWork(tuple(loads), float(cycles[at]), tuple(stores)) for at, fidelity in enumerate(fidelities)
    }


# What several cores do alike: their number of work items, and their role for each shared input.
_Kind = tuple[int, ...]


def predicted_cycles(
    work: ItemWork, items: Mapping[Core, int], target: Target, shared: Mapping[str, Roles],
    by_writer: Collection[str] = (),
) -> float:  # fmt: skip
    """The cycles from the launch to the end, with the work items of each core, inputs that are `shared`, and inputs
    that the writer loads."""
    costs = target.costs
    roles = [[one.get(core, 0) for core in items] for one in shared.values()]
    kinds = Counter[_Kind](zip(items.values(), *roles, strict=True))
    total = sum(items.values())
    writing = work.written_bytes * total / costs.dram_write_bytes_per_cycle
    # What comes before the last work item is written while others are computed.
    last = work.written_bytes * len(items) / costs.dram_write_bytes_per_cycle
    slowest = 0.0
    for (count, *_), computed in _computed(work, kinds, [*shared], target, by_writer).items():
        # The writer stores a result before it loads what the next item needs.
        slowest = max(slowest, computed + ((count - 1) * last if by_writer else 0))
    return costs.launch_cycles + max(slowest, writing - last) + last


def predicted_moves(work: ItemWork, plan: Plan, by_writer: Collection[str]) -> list[tuple[Sequence[Core], Moved]]:
    """What cores move after B1, with inputs that the writer loads, for the bytes over each link: no program is faster
    than the busiest of them. Partial sums that cores hand on are left out."""
    assert plan.partition is not None, "B1 decides it"
    shared = {one.tensor: roles_of(one.multicasts) for one in plan.shared}
    # Of each kind of core: its number of work items, and which inputs it reads and sends.
    alike: dict[tuple[int, tuple[tuple[bool, bool], ...]], list[Core]] = {}
    for one in plan.partition.cores:
        core = (one.x, one.y)
        roles = tuple([((role := each.get(core, 0)) >= 0, role > 0) for each in shared.values()])
        alike.setdefault((one.items, roles), []).append(core)
    moves: list[tuple[Sequence[Core], Moved]] = []
    for (items, roles), cores in alike.items():
        moved, ways = Counter[tuple[Loader, Way, str]](), dict(zip(shared, roles, strict=True))
        for load in work.loads:
            kernel: Loader = "writer" if load.tensor in by_writer else "reader"
            count, (reads, sends) = items * load.turns * load.block_bytes, ways.get(load.tensor, (True, False))
            if reads:
                moved[kernel, "read", load.tensor] += count
            if sends:
                moved[kernel, "multicast", load.tensor] += count
        for store in work.stores:
            moved["writer", "write", store.tensor] += items * store.bytes
        moves.append((cores, moved))
    return moves


@dataclass(slots=True)
class _Loading:
    """What the two kernels of a core spend on loads: for a work item, and until blocks of other cores are there."""

    reader: float = 0.0
    writer: float = 0.0
    arriving: float = 0.0


def _computed(
    work: ItemWork, kinds: Mapping[_Kind, int], shared: Sequence[str], target: Target, by_writer: Collection[str]
) -> dict[_Kind, float]:
    """The cycles until cores of each kind have computed all. `kinds` counts the cores."""
    loading = {kind: _Loading() for kind in kinds}
    most = max(count for count, *_ in kinds)
    turns = serial = 0
    groups = itertools.groupby(sorted(work.loads, key=lambda one: one.loops), key=lambda one: one.loops)
    for loops, together in groups:
        step = [*together]
        ways: list[tuple[_Loading, bool, _Step, float]] = []
        for kind, cores in kinds.items():
            roles = dict(zip(shared, kind[1:], strict=True))
            for writes in (False, True):
                loads = [one for one in step if (one.tensor in by_writer) == writes]
                if loads:
                    # Of the turns of the busiest core, others take part in some.
                    ways.append((loading[kind], writes, _step(loads, roles, target), cores * kind[0] / most))
        moved = _moved([(weight, one.from_dram, one.starts) for _, _, one, weight in ways], target)
        for (own, writes, one, _), dram in zip(ways, moved, strict=True):
            cycles = one.cycles(dram) * prod(loops)
            if writes:
                own.writer += cycles
            else:
                own.reader += cycles
            own.arriving += one.late
        turns += prod(loops)
        serial += any(one.stages < 2 for one in step) * prod(loops)
    found: dict[_Kind, float] = {}
    for kind, own in loading.items():
        items = kind[0]
        reading, computing = max(own.reader, own.writer) * items, work.compute_cycles * items
        if not turns:
            found[kind] = computing
            continue
        # Blocks are read while others are computed, but for the first one, and where a buffer holds only one. The
        # writer loads the first one of an item when the item before is computed.
        first = items if by_writer else 1
        overlapped = max(reading, computing) + min(reading, computing) * first / (turns * items)
        share = serial / turns
        found[kind] = own.arriving + share * (reading + computing) + (1 - share) * overlapped
    return found


@dataclass(frozen=True, slots=True)
class _Step:
    """A kernel gets one block of each of some loads: the cycles that its calls, its transfers over the NoC with their
    latency, and what it sends take, and those of the handshake with other cores; what it reads from DRAM, when it
    starts, and how much later the first blocks are there that come from other cores."""

    before: float
    transfers: float
    sending: float
    handshake: float
    from_dram: int
    starts: float
    late: float

    def cycles(self, dram: float) -> float:
        """With the cycles of the transfers from DRAM, which all cores share."""
        return max(self.before + max(self.transfers, dram) + self.sending, self.handshake)


def _step(loads: Iterable[Load], roles: Mapping[str, int], target: Target) -> _Step:
    costs, ring = target.costs, target.noc_round_trip_cycles
    own_bytes = from_dram = pages = calls = 0
    sending = late = handshake = starts = 0.0
    for one in loads:
        role = roles.get(one.tensor, 0)
        calls += 2 * costs.buffer_call_cycles
        transfer = one.block_bytes / costs.noc_payload_bytes_per_cycle
        # A flag follows the block.
        sent = transfer + 2 * costs.noc_issue_cycles
        if role >= 0:
            own_bytes += one.block_bytes
            from_dram += one.block_bytes if one.in_dram else 0
            pages += one.pages
        if role > 0:
            sending += sent
        if one.tensor in roles and role:
            arrival = (costs.multicast_cycles + costs.multicast_receiver_cycles * max(role, 0)) / 2
            late += arrival if role > 0 else sent + arrival
            # A core that also receives comes to the next step when it has.
            starts = max(starts, arrival if role < 0 else 0.0)
            # The receivers have room again, and the sender knows it, before it sends the next one.
            handshake = max(handshake, sent + arrival + ring / 2 + 4 * costs.buffer_call_cycles)
    if not own_bytes:
        return _Step(calls, 0.0, 0.0, handshake, 0, starts, late)
    issued = pages * (costs.noc_issue_cycles + costs.accessor_cycles)
    transfers = max(own_bytes / costs.noc_payload_bytes_per_cycle, issued)
    latency = ring + costs.dram_read_cycles
    return _Step(calls + latency, transfers, sending, handshake, from_dram, starts, late)


def _moved(flows: Sequence[tuple[float, int, float]], target: Target) -> list[float]:
    """The cycles that each of these transfers from DRAM takes: so many cores, the bytes of each, and when it starts.
    All that go on at a time have the same share of the bandwidth, at most that of a link."""
    costs = target.costs
    left = [float(count) for _, count, _ in flows]
    ends = [start for _, _, start in flows]
    now = min((start for _, count, start in flows if count), default=0.0)
    while running := [at for at, count in enumerate(left) if count > 0]:
        active = [at for at in running if flows[at][2] <= now]
        cores = sum(flows[at][0] for at in active)
        rate = min(costs.noc_payload_bytes_per_cycle, costs.dram_read_bytes_per_cycle / max(cores, 1.0))
        later = [flows[at][2] - now for at in running if at not in active]
        step = min([*(left[at] / rate for at in active), *later])
        now += step
        for at in active:
            left[at] -= rate * step
            if left[at] < 1:
                left[at], ends[at] = 0.0, now
    return [end - start for end, (_, _, start) in zip(ends, flows, strict=True)]


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


# The cycles for several configurations that differ in their math fidelity.
_Cycles = npt.NDArray[np.float64]


def _cycles(body: Iterable[tirx.Stmt], computes: Sequence[ComputeConfig], target: Target, *, in_loop: bool) -> _Cycles:
    """The cycles of the slowest of unpack, math and pack."""
    total = np.zeros(len(computes))
    for one in body:
        name = op_name(one)
        if is_parallel(one):
            total += _elementwise(one)
        elif isinstance(one, tirx.For):
            turns = constant(one.extent) or 0
            total += turns * _cycles(statements(one.body), computes, target, in_loop=turns > 1)
        elif isinstance(one, tirx.IfThenElse):
            arms = [one.then_case, *([one.else_case] if one.else_case is not None else [])]
            total += np.max([_cycles(statements(arm), computes, target, in_loop=in_loop) for arm in arms], axis=0)
        elif name == "tl.gemm":
            total += _product(one, computes, target, in_loop=in_loop)
        elif name in ("tl.copy", "tl.reduce"):
            source, to = (region.source for region in regions(one)[:2])
            if is_on_chip(source) and is_on_chip(to):
                total += prod(tile_grid(shape_of(source)[-2:])) * (COPY_CYCLES + PACK_CYCLES)
    return total


def _product(statement: tirx.Stmt, computes: Sequence[ComputeConfig], target: Target, *, in_loop: bool) -> list[float]:
    costs, compute = target.costs, computes[0]
    a, b, c = (region.source for region in regions(statement)[:3])
    rows, columns = tile_grid(shape_of(c))
    depth = prod(tile_grid(shape_of(a))) // rows
    a_bytes, b_bytes = (DATA_FORMATS[FORMAT_OF_DTYPE[storage_dtype(dtype_of(one))]].tile_bytes for one in (a, b))
    part = max(sub_blocks((rows, columns), compute.dst_tiles), key=lambda one: (one.tiles, one.columns))
    unpack = depth * unpack_cycles(costs, matmul_unpacked(part.rows, part.columns, a_bytes, b_bytes))
    math = pack = 0
    if in_loop and part.turns > 1:
        # Partial sums leave DST after each step, and come back unless the packer adds them up.
        pack = part.tiles * pack_cycles(costs, _PARTIAL_BYTES, PACK_CYCLES)
        if compute.accumulate == "reload":
            unpack += part.tiles * unpack_cycles(costs, _PARTIAL_BYTES) + 3 * INIT_CYCLES
            math += part.tiles * COPY_CYCLES + 3 * INIT_CYCLES
    return [
        part.turns * (max(unpack, math + depth * product, pack) + _hand_over(part))
        for product in (matmul_cycles(costs, one.math_fidelity, part.tiles) for one in computes)
    ]


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
