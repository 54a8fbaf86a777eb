"""Whether several cores hand on partial sums, or one core adds them up: what is predicted to be faster.

Both are lowered up to B1, where the work items have their cores: that decides which cores can form chains, and how many
of them work at all.
"""

from __future__ import annotations

from collections.abc import Callable

from ttexplore.clock.closed_form import handed_on_cycles, microseconds, predicted_cycles, predicted_us, roles_of
from ttexplore.errors import TTExploreError
from ttexplore.ir.build import attribute, runs
from ttexplore.ir.operations.atomics import ATOMIC
from ttexplore.ir.program import TirProgram
from ttexplore.ir.rewrite import walk
from ttexplore.notes import Note, note
from ttexplore.ops import language as tl
from ttexplore.options import Partials
from ttexplore.plan import Candidate, Choice
from ttexplore.target import Target

# The predicted time with chains, against that without, that chains are for: predictions are not exact.
_WORTH = 0.97
# The errors of partial sums that cannot be sent.
_REFUSALS = ("TTX-U025", "TTX-R007")
_UNKNOWN_TIME = "how long several would take is not known"


def with_chosen_partials(program: TirProgram, target: Target, lowered: Callable[[Partials], TirProgram]) -> TirProgram:
    """The program whose plan says how partial sums are predicted to be added up faster, with a note on both times.

    `lowered` lowers through B1. Where cores can hand on nothing, there is no choice, and one core adds up.
    """
    if not any(runs(statement, tl.COPY) and attribute(statement, ATOMIC) for statement in walk(program.kernel.body)):
        return program
    try:
        over_noc = lowered("noc")
        if not over_noc.plan.partials:
            return program
        in_dram = lowered("dram")
    except TTExploreError as error:
        # Others are not about partial sums: the pass that finds them reports them.
        if error.code not in _REFUSALS:
            return program
        return _chosen(program, target, None, None, "dram", note("one core adds", reason=error.message))
    noc, dram = (_predicted(variant, target) for variant in (over_noc, in_dram))
    if noc is None or dram is None:
        return _chosen(program, target, noc, dram, "dram", note("one core adds", reason=_UNKNOWN_TIME))
    times = {"noc": microseconds(noc, target), "dram": microseconds(dram, target)}
    if noc < dram * _WORTH:
        return _chosen(program, target, noc, dram, "noc", note("several cores add", **times))
    return _chosen(program, target, noc, dram, "dram", note("adding on one core is faster", **times))


def _chosen(
    program: TirProgram, target: Target, noc: float | None, dram: float | None, chosen: Partials, why: Note
) -> TirProgram:  # fmt: skip
    candidates = tuple(
        Candidate(name, None if cycles is None else predicted_us(cycles, target))
        for name, cycles in (("noc", noc), ("dram", dram))
    )
    return program.with_choice(Choice("partials", candidates, chosen, why.text), why)


def _predicted(program: TirProgram, target: Target) -> float | None:
    """The cycles from the launch to the end, of a program after B1; None if they are known only when it runs."""
    plan, work = program.plan, program.work
    if work is None or plan.partition is None:
        return None
    items = {(core.x, core.y): core.items for core in plan.partition.cores}
    shared = {sharing.tensor: roles_of(sharing.multicasts) for sharing in plan.shared}
    return predicted_cycles(work, items, target, shared) + handed_on_cycles(plan, target)
