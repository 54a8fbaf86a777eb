"""A0: start the plan from the target's defaults."""

from __future__ import annotations

from collections.abc import Iterator

from ttexplore.ir.program import Program
from ttexplore.ir.rewrite import Firings
from ttexplore.options import Partials
from ttexplore.passes.asked_blocks import with_asked_blocks
from ttexplore.passes.bit_reductions import BITS, note_on_bits, with_bits_reduced
from ttexplore.passes.branch_loops import with_branches_as_loops
from ttexplore.passes.converting_copies import CAST, note_on_cast, with_casts_for_copies
from ttexplore.passes.deciding_variables import with_named_variables
from ttexplore.passes.direct_tensors import with_staged_tensors
from ttexplore.passes.empty_nests import without_empty_nests
from ttexplore.passes.first_turns import without_guarded_fills
from ttexplore.passes.flat_blocks import with_flat_blocks, with_joined_loops
from ttexplore.passes.integer_products import PRODUCT, note_on_product, with_products_of_numbers
from ttexplore.passes.integers import check_integers
from ttexplore.passes.loaded_scalars import (
    notes_on_decisions,
    with_checked_places,
    with_loaded_scalars,
    with_named_choices,
)
from ttexplore.passes.merged_loops import with_merged_loops
from ttexplore.passes.owners import with_owners
from ttexplore.passes.parallel_orders import with_ordered_axes, with_ordered_parallel
from ttexplore.passes.parallel_races import check_races
from ttexplore.passes.parts import with_whole_blocks
from ttexplore.passes.persistent import with_launched_places
from ttexplore.passes.plain_elements import with_plain_elements
from ttexplore.passes.read_elements import check_elements
from ttexplore.passes.rows_by_index import ROWS, note_on_rows, with_rows_by_index
from ttexplore.passes.scalar_values import with_scalar_blocks
from ttexplore.passes.scans import SCAN, note_on_scan, with_scans_as_loops
from ttexplore.passes.thread_groups import with_one_sequence
from ttexplore.passes.turn_values import with_turn_values
from ttexplore.passes.while_loops import with_counted_loops
from ttexplore.passes.wide_indices import with_wide_indices, with_wide_numbers
from ttexplore.passes.work_orders import note_on_work
from ttexplore.target import Target


def apply_defaults(program: Program, target: Target, *, partials: Partials) -> Program:
    """Start the plan from the target's defaults and normalize the kernel.

    Defaults apply where neither the options nor the kernel ask for something else: work items in contiguous row-major
    runs, tensors in 32x32 tiles in DRAM, interleaved over its banks.

    Each `while` first becomes a loop over the number of its turns, scans of blocks and reductions of bits become loops,
    and groups of threads that wait for each other at barriers become one sequence of statements.

    Later passes rely on these changes: each T.Parallel does something; in a T.Parallel, loops that count together
    become one, branches become choices and other loops are unrolled; blocks whose rows elements of tensors choose are
    filled row by row; T.any_of and T.all_of of computed blocks become loops; tensors that the kernel works on directly
    are copied to and from blocks on the chip; parts of blocks become blocks of their own; copies that convert to 8 bits
    or fewer cast in a T.Parallel, and products of integers become products of numbers; a fill in only the first
    iteration of a loop moves before it; other branches around operations on blocks become loops of one iteration or
    none; what decides branches, lengths and places has a name, and places are checked at run time; the loops of a
    T.Parallel nest follow the axis order of its stores; and arithmetic in narrow integer types is computed in int32.

    Work items that update the same elements of a tensor with T.atomic_add, T.atomic_max or T.atomic_min run on one
    core, in a loop that takes the place of an axis of the launch grid. With `partials="noc"` they run on several cores,
    which hand on what they have updated so far; with ``auto``, as is predicted to be faster.

    Raises Unsupported where the kernel's integer arithmetic can leave the range of int32, KernelError for elements
    outside of their block or tensor, and the errors of groups of threads: KernelError for races and for waits
    that never end, Unsupported for groups that are no sequence.
    """
    firings = Firings()
    kernel = with_counted_loops(program.kernel, firings)
    check_integers(kernel, program.plan.size_values)
    kernel = with_bits_reduced(with_scans_as_loops(kernel, firings), firings)
    kernel, groups = with_one_sequence(kernel, firings)
    notes = (*program.plan.notes, *groups, note_on_work(program.options), f"tensors: {_tensors(program)}")
    check_elements(kernel)
    check_races(kernel)
    for better in (
        without_empty_nests,
        with_launched_places,
        with_wide_indices,
        with_merged_loops,
        with_plain_elements,
        with_turn_values,
        with_rows_by_index,
        with_asked_blocks,
        with_named_variables,
        with_scalar_blocks,
        with_loaded_scalars,
        with_wide_numbers,
        with_ordered_axes,
        with_joined_loops,
        with_staged_tensors,
        with_flat_blocks,
        with_whole_blocks,
        with_casts_for_copies,
        with_products_of_numbers,
        without_guarded_fills,
        with_branches_as_loops,
        with_ordered_parallel,
        with_named_choices,
        with_checked_places,
    ):
        kernel = better(kernel, firings)
    kernel, owned = with_owners(kernel, program.plan.size_values, firings, over_noc=partials == "noc")
    program = program if kernel is program.kernel else program.with_kernel(kernel, firings)
    notes = (*notes, *owned, *notes_on_decisions(kernel), *_on_rewrites(firings))
    return program.with_plan(target=target.name, notes=notes)


def _on_rewrites(firings: Firings) -> Iterator[str]:
    """How copies cast, integers are multiplied, blocks are scanned and bits are reduced, and why."""
    for firing in firings.all:
        if firing.rule is CAST and firing.source is not None:
            yield note_on_cast(firing.source)
        if firing.rule is PRODUCT and firing.source is not None:
            yield note_on_product(firing.source)
        if firing.rule is SCAN and firing.source is not None:
            yield note_on_scan(firing.source)
        if firing.rule is BITS and firing.source is not None:
            yield note_on_bits(firing.source)
        if firing.rule is ROWS and firing.source is not None:
            yield note_on_rows(firing.source)


def _tensors(program: Program) -> str:
    asked = list(program.options.layouts or {})
    default = "DRAM, interleaved, 32x32 tiles"
    return f"{', '.join(asked)} as asked for, others in {default}" if asked else default
