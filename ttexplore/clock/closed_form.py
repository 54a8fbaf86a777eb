"""The time of a program before it has transfers, in closed forms: for choices between ways to lower a kernel.

The rates and costs are those with which :mod:`ttexplore.clock.replay` replays the emitted program. What only a replay
finds out is left out: who waits for whom, and what a kernel does before its first block and after its last. The forms
are for comparing candidates, which have that in common.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod

from ttexplore.clock.rates import FLAG_BYTES, UNLIMITED, Rates, rates_of
from ttexplore.ir.operations.work import ItemWork, Load
from ttexplore.noc_links import Moved, Way
from ttexplore.ops import OPS
from ttexplore.ops.costs import COPY_CYCLES, INIT_CYCLES, PACK_CYCLES, SECTION_CYCLES, pack_cycles, unpack_cycles
from ttexplore.plan import DATA_FORMATS, Loader, Multicast, PartialSums, Plan
from ttexplore.target import Target

Core = tuple[int, int]
_WIDE_BYTES = DATA_FORMATS["Float32"].tile_bytes


# How cores get one input: the number of those that a core sends it to, -1 if it only receives it.
Roles = Mapping[Core, int]


def roles_of(multicasts: Iterable[Multicast]) -> Roles:
    roles: dict[Core, int] = {}
    for multicast in multicasts:
        receivers = multicast.receivers
        roles |= dict.fromkeys(receivers, -1) | {multicast.sender: len(receivers)}
    return roles


# What several cores do alike: their number of work items, and their role for each shared input.
_Kind = tuple[int, ...]


def predicted_cycles(
    work: ItemWork, items: Mapping[Core, int], target: Target, shared: Mapping[str, Roles],
    by_writer: Collection[str] = (),
) -> float:  # fmt: skip
    """The cycles from the launch to the end, with the work items of each core, inputs that are `shared`, and inputs
    that the writer loads."""
    costs = target.costs
    roles = [[role_of.get(core, 0) for core in items] for role_of in shared.values()]
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
    shared = {sharing.tensor: roles_of(sharing.multicasts) for sharing in plan.shared}
    # Of each kind of core: its number of work items, and which inputs it reads and sends.
    alike: dict[tuple[int, tuple[tuple[bool, bool], ...]], list[Core]] = {}
    for assignment in plan.partition.cores:
        core = (assignment.x, assignment.y)
        roles = tuple([((role := each.get(core, 0)) >= 0, role > 0) for each in shared.values()])
        alike.setdefault((assignment.items, roles), []).append(core)
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
    rates = rates_of(target)
    loading = {kind: _Loading() for kind in kinds}
    most = max(count for count, *_ in kinds)
    turns = serial = 0
    groups = itertools.groupby(sorted(work.loads, key=lambda load: load.loops), key=lambda load: load.loops)
    for loops, together in groups:
        step = [*together]
        ways: list[tuple[_Loading, bool, _Step, float]] = []
        parts = [(writes, [load for load in step if (load.tensor in by_writer) == writes]) for writes in (False, True)]
        steps: dict[tuple[bool, _Kind], _Step] = {}
        for (kind, cores), (writes, loads) in itertools.product(kinds.items(), parts):
            if not loads:
                continue
            roles = kind[1:]
            if (writes, roles) not in steps:
                steps[writes, roles] = _step(loads, dict(zip(shared, roles, strict=True)), target, rates)
            # Of the turns of the busiest core, others take part in some.
            ways.append((loading[kind], writes, steps[writes, roles], cores * kind[0] / most))
        moved = _moved([(weight, load) for _, _, load, weight in ways], rates)
        for (loaded, writes, load, _), dram in zip(ways, moved, strict=True):
            cycles = load.cycles(dram) * prod(loops)
            if writes:
                loaded.writer += cycles
            else:
                loaded.reader += cycles
            loaded.arriving += load.late
        turns += prod(loops)
        serial += any(load.stages < 2 for load in step) * prod(loops)
    cycles_of: dict[_Kind, float] = {}
    for kind, loaded in loading.items():
        items = kind[0]
        reading, computing = max(loaded.reader, loaded.writer) * items, work.compute_cycles * items
        if not turns:
            cycles_of[kind] = computing
            continue
        # Blocks are read while others are computed, but for the first one, and where a buffer holds only one. The
        # writer loads the first one of an item when the item before is computed.
        first = items if by_writer else 1
        overlapped = max(reading, computing) + min(reading, computing) * first / (turns * items)
        share = serial / turns
        cycles_of[kind] = loaded.arriving + share * (reading + computing) + (1 - share) * overlapped
    return cycles_of


@dataclass(frozen=True, slots=True)
class _Step:
    """A kernel gets one block of each of some loads: the cycles of its calls, of the latency and the transfers over the
    NoC, and of what it sends, and those of the handshake with other cores; what it reads from DRAM, in pages of which
    size, how long that takes one core alone, when it starts, and how much later the first blocks are there that come
    from other cores."""

    calls: float
    latency: float
    transfers: float
    alone: float
    sending: float
    handshake: float
    from_dram: int
    page_bytes: float
    starts: float
    late: float

    def cycles(self, dram: float) -> float:
        """With the cycles of the transfers from DRAM, which all cores share. Cores that do not wait for one another
        are not in step: the latency of some is behind the transfers of others."""
        latency = self.latency if self.handshake else max(0.0, self.latency - max(0.0, dram - self.alone))
        return max(self.calls + latency + max(self.transfers, dram) + self.sending, self.handshake)


def _step(loads: Iterable[Load], roles: Mapping[str, int], target: Target, rates: Rates) -> _Step:
    costs, ring = target.costs, target.noc_round_trip_cycles
    own_bytes = from_dram = pages = calls = 0
    sending = late = handshake = starts = 0.0
    for load in loads:
        role = roles.get(load.tensor, 0)
        calls += 2 * costs.buffer_call_cycles
        # A flag follows the block.
        receivers = max(role, 0)
        sent = sum(
            count / rates.multicast_rate(receivers, min(count, costs.noc_packet_bytes))
            for count in (load.block_bytes, FLAG_BYTES)
        )
        if role >= 0:
            own_bytes += load.block_bytes
            from_dram += load.block_bytes if load.in_dram else 0
            pages += load.pages
        if role > 0:
            sending += sent
        if load.tensor in roles and role:
            arrival = rates.multicast_latency(receivers) / 2
            late += arrival if role > 0 else sent + arrival
            # A core that also receives comes to the next step when it has.
            starts = max(starts, arrival if role < 0 else 0.0)
            # The receivers have room again, and the sender knows it, before it sends the next one.
            handshake = max(handshake, sent + arrival + ring / 2 + 4 * costs.buffer_call_cycles)
    if not own_bytes:
        return _Step(calls, 0.0, 0.0, 0.0, 0.0, handshake, 0, 1.0, starts, late)
    issued = pages * (costs.noc_issue_cycles + costs.accessor_cycles)
    transfers = max(own_bytes / costs.noc_payload_bytes_per_cycle, issued)
    latency = ring + costs.dram_read_cycles
    alone = max(transfers, from_dram / rates.core)
    return _Step(calls, latency, transfers, alone, sending, handshake, from_dram, own_bytes / pages, starts, late)


def _moved(flows: Sequence[tuple[float, _Step]], rates: Rates) -> list[float]:
    """The cycles that what each of these steps reads from DRAM takes, in so many cores. All that go on at a time have
    the same share of the bandwidth, at most that of a core."""
    remaining = [float(step.from_dram) for _, step in flows]
    ends = [step.starts for _, step in flows]
    now = min((step.starts for _, step in flows if step.from_dram), default=0.0)
    while running := [at for at, count in enumerate(remaining) if count > 0]:
        active = [at for at in running if flows[at][1].starts <= now]
        busy = sum(flows[at][0] / rates.reading(1 / flows[at][1].page_bytes) for at in active)
        rate = min(rates.core, 1 / busy if busy else UNLIMITED)
        later = [flows[at][1].starts - now for at in running if at not in active]
        step = min([*(remaining[at] / rate for at in active), *later])
        now += step
        for at in active:
            remaining[at] -= rate * step
            if remaining[at] < 1:
                remaining[at], ends[at] = 0.0, now
    return [end - step.starts for end, (_, step) in zip(ends, flows, strict=True)]


# Partial sums


def handed_on_cycles(plan: Plan, target: Target) -> float:
    """The cycles that cores wait for partial sums of others, after B1."""
    cycles = 0.0
    for sums in plan.partials:
        handshake, update = _hand_over_cycles(sums, plan, target)
        # Each core adds to a block when the core before has sent it, and tells that core of room for the next one only
        # then. The chains of one tensor go on at the same time; those of another one may wait for them.
        cycles += max(
            (len(chain) - 1) * (handshake + update) + max(steps - 1, 0) * handshake
            for chain, steps in zip(sums.chains, sums.steps, strict=True)
            if len(chain) > 1
        )
    return cycles


def _hand_over_cycles(sums: PartialSums, plan: Plan, target: Target) -> tuple[float, float]:
    """From one core of a chain to the next one: transfer, barrier and signals; and the update of the block there."""
    costs, buffer = target.costs, plan.buffer(sums.received)
    transfer = sums.block_bytes / costs.noc_payload_bytes_per_cycle + 2 * costs.noc_issue_cycles
    signals = 1.5 * target.noc_round_trip_cycles + 6 * costs.buffer_call_cycles
    # Of numbers of 32 bits in the SFPU, of others in the FPU.
    update = OPS["tt.add_binary_tile" if buffer.page_bytes >= _WIDE_BYTES else "tt.add_tiles"].cycles
    tile = max(
        2 * COPY_CYCLES + update, 2 * unpack_cycles(costs, buffer.page_bytes),
        pack_cycles(costs, buffer.page_bytes, PACK_CYCLES),
    )  # fmt: skip
    return transfer + signals, buffer.block_pages * tile + SECTION_CYCLES + 3 * INIT_CYCLES


def predicted_us(cycles: float, target: Target) -> float:
    """Cycles as microseconds, rounded up to tenths."""
    return ceil(cycles / target.clock_hz * 1e7) / 10


def microseconds(cycles: float, target: Target) -> str:
    return f"{predicted_us(cycles, target):.1f} us"
