"""Whether several cores hand on partial sums, or one core adds them up: what is predicted to be faster.

Both are lowered up to B1, where the work items have their cores: that decides which cores can form chains, and how many
of them work at all. The predicted times are closed forms, as those of shared inputs; a chain adds its hops.
"""

from __future__ import annotations

from collections.abc import Callable

from ttexplore.analysis.predicted_time import microseconds, predicted_cycles, roles_of
from ttexplore.errors import TTExploreError
from ttexplore.ir.build import attribute, op_name
from ttexplore.ir.operations.atomics import ATOMIC
from ttexplore.ir.program import Program
from ttexplore.ir.rewrite import walk
from ttexplore.notes import Note, note
from ttexplore.ops.costs import COPY_CYCLES, INIT_CYCLES, PACK_CYCLES, SECTION_CYCLES, pack_cycles, unpack_cycles
from ttexplore.options import Partials
from ttexplore.plan import TILE_COLUMNS, TILE_ROWS, PartialSums, Plan
from ttexplore.target import Target

# The predicted time with chains, against that without, that chains are for: predictions are not exact.
_WORTH = 0.97
# The errors of partial sums that cannot be sent.
_REFUSALS = ("TTX-U025", "TTX-R007")
# An update of a tile of numbers of 32 bits, in the SFPU, and of others, in the FPU.
_WIDE_CYCLES, _NARROW_CYCLES = 128, 32
_WIDE_BYTES = 4 * TILE_ROWS * TILE_COLUMNS
_UNKNOWN_TIME = "how long several would take is not known"


def with_chosen_partials(
    program: Program, target: Target, lowered: Callable[[Partials], Program], begun: Callable[[Partials], Program]
) -> Program:
    """The program after A0, with partial sums as they are predicted to be faster, and a note that gives both times.

    `begun` gives the updates their owners, `lowered` also lowers through B1. Where cores can hand on nothing, one core
    adds up. Raises the errors of `begun`.
    """
    if not any(op_name(one) == "tl.copy" and attribute(one, ATOMIC) for one in walk(program.kernel.body)):
        return begun("dram")
    try:
        over_noc = lowered("noc")
        if not over_noc.plan.partials:
            return begun("dram")
        in_dram = lowered("dram")
    except TTExploreError as error:
        # Others are not about partial sums: the pass that finds them reports them.
        why = (note("one core adds", reason=error.message),) if error.code in _REFUSALS else ()
        return _noted(begun("dram"), *why)
    handed_on, alone = (_predicted(one, target) for one in (over_noc, in_dram))
    if handed_on is None or alone is None:
        return _noted(begun("dram"), note("one core adds", reason=_UNKNOWN_TIME))
    noc, dram = (microseconds(cycles, target) for cycles in (handed_on, alone))
    if handed_on < alone * _WORTH:
        return _noted(begun("noc"), note("several cores add", noc=noc, dram=dram))
    return _noted(begun("dram"), note("adding on one core is faster", noc=noc, dram=dram))


def _noted(program: Program, *notes: Note) -> Program:
    return program.with_plan(notes=(*program.plan.notes, *notes))


def _predicted(program: Program, target: Target) -> float | None:
    """The cycles from the launch to the end, of a program after B1; None if they are known only when it runs."""
    plan, work = program.plan, program.work
    if work is None or plan.partition is None:
        return None
    items = {(core.x, core.y): core.items for core in plan.partition.cores}
    shared = {one.tensor: roles_of(one.multicasts) for one in plan.shared}
    cycles = predicted_cycles(work, items, target, shared)
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
    update = _WIDE_CYCLES if buffer.page_bytes >= _WIDE_BYTES else _NARROW_CYCLES
    tile = max(
        2 * COPY_CYCLES + update, 2 * unpack_cycles(costs, buffer.page_bytes),
        pack_cycles(costs, buffer.page_bytes, PACK_CYCLES),
    )  # fmt: skip
    return transfer + signals, buffer.block_pages * tile + SECTION_CYCLES + 3 * INIT_CYCLES
