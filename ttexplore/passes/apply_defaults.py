"""The target's defaults, before anything is decided."""

from __future__ import annotations

from ttexplore.ir.program import Program
from ttexplore.ir.rewrite import Firings
from ttexplore.options import Options
from ttexplore.passes.first_turns import without_guarded_fills
from ttexplore.passes.integers import check_integers
from ttexplore.passes.parallel_orders import with_ordered_parallel
from ttexplore.passes.wide_indices import with_wide_indices
from ttexplore.target import Target


def apply_defaults(program: Program, target: Target) -> Program:
    """Start the plan with the target's defaults, where neither options nor the kernel ask for anything else.

    Contiguous row-major work, tensors in DRAM, interleaved over its banks, 32x32 tiles. A block that the first turn of
    a loop alone fills is filled before the loop, a T.Parallel nest gets its loops in the order in which it stores, and
    indices of few bits are computed in int32.
    Raises Unsupported for whole numbers of the kernel that int32 does not hold.
    """
    check_integers(program.kernel, program.plan.size_values)
    notes = (*program.plan.notes, f"work: {_work(program.options)}", f"tensors: {_tensors(program)}")
    kernel, firings = program.kernel, Firings()
    for better in (with_wide_indices, without_guarded_fills, with_ordered_parallel):
        kernel = better(kernel, firings)
    program = program if kernel is program.kernel else program.with_kernel(kernel, firings)
    return program.with_plan(target=target.name, notes=notes)


def _work(options: Options) -> str:
    if options.work_lists is not None:
        return "as work_lists says"
    own_order = options.policy.replace("-", "_").startswith(("block_linear", "z_order"))
    order = options.order or ("" if own_order else "row-major")
    return ", ".join(one for one in (options.policy, order) if one)


def _tensors(program: Program) -> str:
    asked = list(program.options.layouts or {})
    default = "DRAM, interleaved, 32x32 tiles"
    return f"{', '.join(asked)} as asked for, others in {default}" if asked else default
