"""The target's defaults, before anything is decided."""

from __future__ import annotations

from ttexplore.ir.program import Program
from ttexplore.target import Target


def apply_defaults(program: Program, target: Target) -> Program:
    """Start the plan with the target's defaults.

    Contiguous row-major work, tensors in DRAM, interleaved over its banks, 32x32 tiles.
    """
    notes = (*program.plan.notes, "work: contiguous, row-major", "tensors: DRAM, interleaved, 32x32 tiles")
    return program.with_plan(target=target.name, notes=notes)
