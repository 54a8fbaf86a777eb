"""A0: start the plan from the target's defaults, and normalize the kernel, in parts that can be opened one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tvm import tirx

from ttexplore.analysis.work_orders import note_on_work
from ttexplore.ir.program import TirProgram
from ttexplore.ir.rewrite import Firings, Rule
from ttexplore.notes import Note, note
from ttexplore.options import Partials
from ttexplore.passes.normalize.blocks.asked_blocks import with_asked_blocks
from ttexplore.passes.normalize.blocks.converting_copies import CAST, note_on_cast, with_casts_for_copies
from ttexplore.passes.normalize.blocks.direct_tensors import with_staged_tensors
from ttexplore.passes.normalize.blocks.flat_blocks import with_flat_blocks, with_joined_loops
from ttexplore.passes.normalize.blocks.folded_vectors import with_folded_vectors
from ttexplore.passes.normalize.blocks.memory_views import check_views
from ttexplore.passes.normalize.blocks.parts import with_whole_blocks
from ttexplore.passes.normalize.blocks.plain_elements import with_plain_elements
from ttexplore.passes.normalize.blocks.rows_by_index import ROWS, note_on_rows, with_rows_by_index
from ttexplore.passes.normalize.by_thread.blocks import with_threads_as_axes
from ttexplore.passes.normalize.chosen_partials import with_chosen_partials
from ttexplore.passes.normalize.decisions.branch_loops import with_branches_as_loops
from ttexplore.passes.normalize.decisions.compared_indices import with_compared_indices
from ttexplore.passes.normalize.decisions.computed_branches import with_computed_branches
from ttexplore.passes.normalize.decisions.deciding_variables import with_named_variables
from ttexplore.passes.normalize.decisions.loaded_scalars import (
    notes_on_decisions,
    with_checked_places,
    with_loaded_scalars,
    with_named_choices,
)
from ttexplore.passes.normalize.decisions.partial_masks import with_partial_masks
from ttexplore.passes.normalize.decisions.scalar_values import with_scalar_blocks
from ttexplore.passes.normalize.decisions.zeroed_variables import with_zeroed_variables
from ttexplore.passes.normalize.loops.cut_loops import with_cut_loops
from ttexplore.passes.normalize.loops.empty_nests import without_empty_nests
from ttexplore.passes.normalize.loops.first_turns import without_guarded_fills
from ttexplore.passes.normalize.loops.integers import check_integers
from ttexplore.passes.normalize.loops.merged_loops import with_merged_loops
from ttexplore.passes.normalize.loops.parallel_orders import with_ordered_axes, with_ordered_parallel
from ttexplore.passes.normalize.loops.persistent import with_launched_places
from ttexplore.passes.normalize.loops.scattered_updates import with_scattered_updates
from ttexplore.passes.normalize.loops.turn_values import with_turn_values
from ttexplore.passes.normalize.loops.while_loops import with_counted_loops
from ttexplore.passes.normalize.loops.wide_indices import with_wide_indices, with_wide_numbers
from ttexplore.passes.normalize.owners import with_owners
from ttexplore.passes.normalize.reductions.bit_reductions import BITS, note_on_bits, with_bits_reduced
from ttexplore.passes.normalize.reductions.integer_products import PRODUCT, note_on_product, with_products_of_numbers
from ttexplore.passes.normalize.reductions.scans import SCAN, note_on_scan, with_scans_as_loops
from ttexplore.passes.normalize.threads.parallel_races import check_races
from ttexplore.passes.normalize.threads.read_elements import check_elements
from ttexplore.passes.normalize.threads.thread_groups import with_one_sequence
from ttexplore.passes.step import Pass
from ttexplore.passes.verify.normal_form import (
    BLOCKS_ARE_MATRICES,
    BRANCHES_ARE_LOOPS,
    COPIES_KEEP_WIDE_DTYPES,
    DECIDERS_HAVE_NAMES,
    LOOPS_ARE_COUNTED,
    NESTS_ARE_FLAT,
    NESTS_USE_BLOCKS,
    NO_INTEGER_PRODUCTS,
    NO_SCANS,
    NO_THREAD_GROUPS,
)
from ttexplore.target import Target

_Rewrite = Callable[[tirx.PrimFunc, Firings], tirx.PrimFunc]
# What the plan says about the statements that some rules change.
_NOTES: dict[Rule, Callable[[tirx.Stmt], Note]] = {
    SCAN: note_on_scan,
    BITS: note_on_bits,
    ROWS: note_on_rows,
    CAST: note_on_cast,
    PRODUCT: note_on_product,
}


def apply_defaults(
    program: TirProgram, target: Target, lowered: Callable[..., TirProgram], *, partials: Partials
) -> TirProgram:  # fmt: skip
    """Start the plan from the target's defaults and normalize the kernel.

    Defaults apply where neither the options nor the kernel ask for something else: work items in contiguous row-major
    runs, tensors in 32x32 tiles in DRAM, interleaved over its banks. Each other part brings the kernel into a plainer
    form on which later passes rely; what each part requires and establishes is checked, so that their order explains
    itself.

    Raises what its parts raise: Unsupported for what has no plainer form, KernelError for elements outside of their
    block or tensor, for races, and for waits that never end.
    """
    *normalizing, choosing, owning, masking = PARTS
    assert (choosing.function, owning.function) == (choose_partial_sums, give_updates_owners), "they have options"
    for step in normalizing:
        program = step.function(program, target)
    program = choose_partial_sums(program, target, lowered, partials=partials)
    return masking.function(give_updates_owners(program, target, partials=partials), target)


def record_defaults(program: TirProgram, target: Target) -> TirProgram:
    """Record the target's defaults in the plan.

    plan.notes: none  ==>  work: contiguous, row-major
                           tensors: DRAM, interleaved, 32x32 tiles
    """
    notes = (note_on_work(program.options), note("tensors", asked=", ".join(program.options.layouts or {}) or None))
    return program.with_plan(target=target.name, notes=(*program.plan.notes, *notes))


def count_while_loops(program: TirProgram, target: Target) -> TirProgram:
    """Turn each `while` into a loop over the number of its iterations.

        x = bx                        x = bx
        while x < n:                  x_first = x
            T.copy(A[x, 0], a)   ==>  turns = max((n - x_first + 3) // 4, 0)
            x += 4                    for turn in range(turns):
                                          x = x_first + turn * 4
                                          T.copy(A[x, 0], a)
                                          x += 4
                                      x = x_first + turns * 4

    Then checks that no integer arithmetic of the kernel leaves int32. Raises Unsupported if it can, and for loops
    whose number of iterations is not known when they begin.
    """
    program = _rewritten(program, with_counted_loops)
    check_integers(program.kernel, program.plan.size_values)
    return program


def expand_scans(program: TirProgram, target: Target) -> TirProgram:
    """Expand scans, and reductions of bits, into loops that the chip can run.

        T.cumsum(a, dim=1)  ==>  T.fill(a_scan, 0)
                                 for place in range(64):
                                     for i, j in T.Parallel(32, 64):
                                         a_one[i, j] = T.if_then_else(j == place, a[i, j], 0)
                                     T.reduce_sum(a_one, a_part, dim=1)
                                     for i, j in T.Parallel(32, 64):
                                         if j >= place:
                                             a_scan[i, j] += a_part[i]
                                 T.copy(a_scan, a)

    A reduction of bits, such as T.reduce_bitor, becomes a loop over the bits. Raises Unsupported for tensors, for more
    than two dimensions, and for other dtypes than float32, bfloat16, float16 and int32.
    """
    return _rewritten(program, with_scans_as_loops, with_bits_reduced)


def order_thread_groups(program: TirProgram, target: Target) -> TirProgram:
    """Turn code for threads into code for blocks: groups that wait at barriers into one sequence, threads into axes.

        for k in range(n):                              for k in T.Pipelined(n, num_stages=2):
            with T.ws(1):                                   T.copy(A[..., k * 64], a)
                T.barrier_wait(empty[k % 2], ...)    ==>    T.gemm(a, b, c)
                T.tma_copy(A[..., k * 64], a[k % 2, :, :], barrier=full[k % 2])
                T.barrier_arrive(full[k % 2])
            with T.ws(0):
                T.barrier_wait(full[k % 2], ...)
                T.gemm(a[k % 2, :, :], b, c)
                T.barrier_arrive(empty[k % 2])

    In code for single threads, the threads and their elements are axes of blocks afterwards.

        x = T.alloc_local((4,), "float32")             x = T.alloc_fragment((128,), "float32")
        for k in T.vectorized(4):                 ==>  for tx_k in T.Parallel(128):
            x[k] = A[bx, tx * 4 + k]                       x[tx_k] = A[bx, tx_k]

    Then checks that no iteration of a T.Parallel stores what another one uses, that elements that are read lie inside
    of their block or tensor, and that a block over the memory of another one is stored in its own dtype before it is
    read. Raises KernelError for races and for waits that never end, Unsupported for groups that are no such sequence.
    """
    firings = Firings()
    kernel, notes = with_one_sequence(with_threads_as_axes(program.kernel, firings), firings)
    check_elements(kernel)
    check_races(kernel)
    check_views(kernel)
    program = _with_kernel(program, kernel, firings)
    return program.with_plan(notes=(*program.plan.notes, *notes)) if notes else program


def launch_persistent_tiles(program: TirProgram, target: Target) -> TirProgram:
    """Launch the tiles of T.Persistent instead of one block for each core.

        with T.Kernel(cores) as block:                           with T.Kernel(8, 4) as (bx, by):
            for bx, by in T.Persistent([8, 4], cores, block): ==>    ...
                ...

    The options `policy` and `order` then say which core takes which tile. Kernels that do more than this loop keep it.
    """
    return _rewritten(program, with_launched_places)


def widen_indices(program: TirProgram, target: Target) -> TirProgram:
    """Widen starts, bounds, conditions and indices in narrow integer types to int32.

    for k in range(T.int8(bx * 100), 4)    ==>    for k in range((bx * 100 + 128) % 256 - 128, 4)
    """
    return _rewritten(program, with_wide_indices)


def flatten_parallel_nests(program: TirProgram, target: Target) -> TirProgram:
    """Flatten each T.Parallel: branches become choices, loops inside of it are unrolled or merged into it.

        for i, j in T.Parallel(32, 32):               for i, j in T.Parallel(32, 32):
            if i >= j:                          ==>       c[i, j] = T.if_then_else(i >= j, a[i, j], c[i, j])
                c[i, j] = a[i, j]                         d[i, j] = d[i, j] + a[i, j] * 0
            for k in range(2):                            d[i, j] = d[i, j] + a[i, j] * 1
                d[i, j] += a[i, j] * k

    A T.Parallel in which nothing is done is left out; loops that count together through one axis become one, axes along
    which elements say what T.atomic_add updates become loops, and scalar variables that are stored in it become names.
    Raises Unsupported for loops of unknown or great length, and for stores to tensors under a condition about values of
    elements.
    """
    return _rewritten(
        program,
        without_empty_nests,
        with_merged_loops,
        with_cut_loops,
        with_scattered_updates,
        with_plain_elements,
        with_turn_values,
    )


def gather_rows(program: TirProgram, target: Target) -> TirProgram:
    """Gather blocks whose rows elements of an index tensor choose, row by row.

        for i, j in T.Parallel(64, 128):           T.clear(k_block)
            k_block[i, j] = K[Index[bx, i], j]     for row in range(64):
                                                       place = Index[bx, row]
                                          ==>          if place >= 0 and place < 4096:
                                                           T.copy(K[place, 0:128], k_row)
                                                       else:
                                                           T.clear(k_row)
                                                       for i, j in T.Parallel(64, 128):
                                                           k_block[i, j] = T.if_then_else(i == row, k_row[j], ...)

    What lies outside of the tensor is zero, and so is what lies outside of the index tensor.
    """
    return _rewritten(program, with_rows_by_index)


def name_deciding_variables(program: TirProgram, target: Target) -> TirProgram:
    """Name the values of scalar variables on which places, lengths and conditions depend.

        group = T.alloc_var("int32")
        group = 0                                  group = 0
        for i in range(3):                         group_1 = T.if_then_else(bx >= Starts[0], 0, group)
            if bx >= Starts[i]:             ==>    group_2 = T.if_then_else(bx >= Starts[1], 1, group_1)
                group = i                          group_3 = T.if_then_else(bx >= Starts[2], 2, group_2)
        T.copy(B[group, 0, 0], b)                  T.copy(B[group_3, 0, 0], b)

    A variable that may be read before it is stored holds 0. T.any_of and T.all_of of a computed block become a loop
    over its elements, which stores such a variable. Where only the compute kernel knows a variable or an element, and a
    branch on it stores elements of blocks only, it chooses what they are:

        if found:                                  for i in T.Parallel(64):
            for i in T.Parallel(64):    ==>            x[i] = T.if_then_else(found, x[i] / s[i], x[i])
                x[i] /= s[i]

    Raises Unsupported for blocks of too many elements.
    """
    return _rewritten(program, with_zeroed_variables, with_asked_blocks, with_named_variables, with_computed_branches)


def stage_scalars(program: TirProgram, target: Target) -> TirProgram:
    """Compute scalars that are operands in blocks of one element.

        sink = Sinks[bx]                             T.copy(Sinks[bx : bx + 1], sink)
        rate = T.alloc_var("float32")                rate = T.alloc_fragment((1,), "float32")
        rate = T.exp2(-5.0 - bx)              ==>    for i in T.Parallel(1):
                                                         rate[i] = T.exp2(-5.0 - bx)
        for i in T.Parallel(64):                     for i in T.Parallel(64):
            c[i] = a[i] * rate + sink                    c[i] = a[i] * rate[0] + sink[0]

    Scalars that places, lengths or conditions depend on stay as they are.
    """
    return _rewritten(program, with_scalar_blocks)


def name_deciding_elements(program: TirProgram, target: Target) -> TirProgram:
    """Name the elements of tensors that decide branches, lengths of loops and places of blocks.

        for k in range(Counts[bx]):       Counts_value = Counts[bx]
            if Mask[bx, k]:               for k in range(Counts_value):
                T.copy(A[k * 64, 0], a)       Mask_value = Mask[bx, k]
                                      ==>     if Mask_value:
                                                  T.copy(A[k * 64, 0], a)

    Each is read right before the statement that it decides; arithmetic on it is computed in int32. An element with
    which a T.Parallel compares an index that float32 may not hold decides how far its loop variables go. Raises
    Unsupported where something depends on what the chip computes.
    """
    return _rewritten(program, with_compared_indices, with_loaded_scalars, with_wide_numbers)


def stage_tensors(program: TirProgram, target: Target) -> TirProgram:
    """Copy tensors to and from blocks on the chip, where the kernel works on their elements.

        for i, j in T.Parallel(32, 64):                   T.copy(A[by * 32 : +32, bx * 64 : +64], A_block)
            C[by * 32 + i, bx * 64 + j] =            ==>  for i, j in T.Parallel(32, 64):
                A[by * 32 + i, bx * 64 + j] * 2               C_block[i, j] = A_block[i, j] * 2
                                                          T.copy(C_block, C[by * 32 : +32, bx * 64 : +64])

    Before that, the loops of a T.Parallel of three and more axes are put in the order of the axes that they store, and
    joined where they store one axis together. Raises Unsupported for elements that make no block.
    """
    return _rewritten(program, with_ordered_axes, with_joined_loops, with_staged_tensors)


def flatten_blocks(program: TirProgram, target: Target) -> TirProgram:
    """Flatten blocks of three and more dimensions to matrices: all axes but the last one become the rows.

        for b, i, j in T.Parallel(2, 8, 32):          for b_i, j in T.Parallel(16, 32):
            c[b, i, j] = a[b, i, j] + v[b, j]   ==>       c[b_i, j] = a[b_i, j] + v[b_i // 8, j]

    Vectors that hold the elements of matrices, row by row, become matrices as well. Raises Unsupported for parts of
    such blocks that are no rows.
    """
    return _rewritten(program, with_folded_vectors, with_flat_blocks)


def extract_block_parts(program: TirProgram, target: Target) -> TirProgram:
    """Extract rows, columns, elements and regions of blocks into blocks of their own.

        for i, j in T.Parallel(4, 64):          a_masked = a where its row is 2, else 0
            o[i, j] = a[2, j] * b[i, j]    ==>  T.reduce_sum(a_masked, a_row, dim=0)
                                                for i, j in T.Parallel(4, 64):
                                                    o[i, j] = a_row[j] * b[i, j]

        T.copy(a[:, 64:96], b)             ==>  T.copy_tiles(a, b, 0, 2)

        T.copy(v, a[:, k])                 ==>  a[i, j] = v[i] where j is k, else a[i, j]

    What has another form is left as it is, for later passes to refuse.
    """
    return _rewritten(program, with_whole_blocks)


def legalize_dtypes(program: TirProgram, target: Target) -> TirProgram:
    """Legalize dtypes: copies that convert to 8 bits or fewer, and products of integers.

        T.copy(c, C[by * 32, bx * 32])  ==>  for i, j in T.Parallel(32, 32):
                                                 c_cast[i, j] = T.cast(c[i, j], "float8_e4m3fn")
                                             T.copy(c_cast, C[by * 32, bx * 32])

        T.gemm(a, b, c)  ==>  for i, j in T.Parallel(32, 64):
                                  b_high[i, j] = T.floor(T.cast(b[i, j], "float32") / 16)
                                  b_low[i, j] = T.cast(b[i, j], "float32") - b_high[i, j] * 16
                              T.gemm(a, b_high, c_high, clear_accum=True)
                              T.gemm(a, b_low, c_low, clear_accum=True)
                              for i, j in T.Parallel(32, 64):
                                  c[i, j] += T.cast(c_high[i, j] * 16 + c_low[i, j], "int32")

    Raises Unsupported for products of integers whose sums DST does not hold exactly.
    """
    return _rewritten(program, with_casts_for_copies, with_products_of_numbers)


def turn_branches_into_loops(program: TirProgram, target: Target) -> TirProgram:
    """Turn branches around operations on blocks into loops of one iteration or none.

        if by * 64 < n:                      for taken in range(select(by * 64 < n, 1, 0)):
            T.copy(A[by * 64, 0], S)    ==>      T.copy(A[by * 64, 0], S)
        else:                                for taken in range(select(not by * 64 < n, 1, 0)):
            T.clear(S)                           T.clear(S)

    A fill in only the first iteration of a loop moves before the loop, other conditional fills become a choice for each
    element. Raises Unsupported for conditions and lengths of loops that depend on what the chip computes.
    """
    return _rewritten(program, without_guarded_fills, with_branches_as_loops)


def check_chosen_places(program: TirProgram, target: Target) -> TirProgram:
    """Check, while the kernel runs, places that elements of tensors choose.

        page = Table[bx, k]                            page = Table[bx, k]
        T.copy(K[page * 64, 0], k_shared)    ==>       checked = tt.check_read(page * 64 >= 0)
                                                       T.copy(K[page * 64, 0], k_shared)

    Before that, the loops of each T.Parallel are put in the order of the axes that they store, and conditions in them
    that only elements of tensors decide get a name.
    """
    program = _rewritten(program, with_ordered_parallel, with_named_choices, with_checked_places)
    notes = notes_on_decisions(program.kernel)
    return program.with_plan(notes=(*program.plan.notes, *notes)) if notes else program


def choose_partial_sums(
    program: TirProgram, target: Target, lowered: Callable[..., TirProgram], *, partials: Partials
) -> TirProgram:  # fmt: skip
    """Choose by predicted time whether several cores hand on partial sums, or one core adds them up.

        plan.choices: none  ==>  partials: noc (noc 11.5 us, dram 21.2 us)

    With `partials="auto"`, both are lowered on trial up to B1, where work items have their cores, and the closed form
    of the clock predicts their times. Several cores have to be 3% faster. Where they can hand on nothing, or the option
    says what to do, nothing is chosen.
    """
    if partials != "auto":
        return program
    return with_chosen_partials(program, target, lambda chosen: lowered(partials=chosen))


def give_updates_owners(program: TirProgram, target: Target, *, partials: Partials) -> TirProgram:
    """Give each element that several work items update one owner: they run on one core, one after another.

        with T.Kernel(2, 2, 4) as (bx, by, bz):          with T.Kernel(2, 2) as (bx, by):
            T.atomic_add(C[by * 32, bx * 32], c)   ==>       for bz in range(4):
                                                                 T.atomic_add(C[by * 32, bx * 32], c)

    With `partials="noc"` they run on several cores, which hand on what they have updated so far; with ``auto``, as the
    part before has chosen.

    Raises KernelError where two work items use an element that one of them writes without T.atomic_add, Unsupported
    where the places of other reads and writes are not known.
    """
    chosen = next((choice.chosen for choice in program.plan.choices if choice.name == "partials"), partials)
    firings = Firings()
    kernel, notes = with_owners(program.kernel, program.plan.size_values, firings, over_noc=chosen == "noc")
    program = _with_kernel(program, kernel, firings)
    return program.with_plan(notes=(*program.plan.notes, *notes)) if notes else program


def mask_partial_blocks(program: TirProgram, target: Target) -> TirProgram:
    """Run a mask of a product, in a loop over blocks, only for the blocks that it changes.

        for k in range(bx + 1):                      for k in range(bx + 1):
            T.gemm(Q, K, S)                              T.gemm(Q, K, S)
            for i, j in T.Parallel(64, 64):   ==>        if bx * 64 < k * 64 + 63:
                S[i, j] = T.if_then_else(                    for i, j in T.Parallel(64, 64):
                    bx * 64 + i >= k * 64 + j,                   S[i, j] = T.if_then_else(...)
                    S[i, j], -1e30)

    Where the condition is a comparison of sums, its end follows from those of the block: where it holds for all
    elements, the mask stores what is there. A causal mask changes the blocks on the diagonal only. Masks outside of
    loops, and those whose condition does not change from block to block, stay as they are; so do those of products of
    one tile, which DST holds until the mask has run.
    """
    return _rewritten(program, with_partial_masks)


def _rewritten(program: TirProgram, *rewrites: _Rewrite) -> TirProgram:
    """The program with its kernel rewritten, and with notes on what some rules did."""
    firings, kernel = Firings(), program.kernel
    for rewrite in rewrites:
        kernel = rewrite(kernel, firings)
    program = _with_kernel(program, kernel, firings)
    notes = tuple(_on_rewrites(firings))
    return program.with_plan(notes=(*program.plan.notes, *notes)) if notes else program


def _with_kernel(program: TirProgram, kernel: tirx.PrimFunc, firings: Firings) -> TirProgram:
    return program if kernel is program.kernel else program.with_kernel(kernel, firings)


def _on_rewrites(firings: Firings) -> Iterable[Note]:
    """How copies cast, integers are multiplied, blocks are scanned and bits are reduced, and why."""
    return (
        _NOTES[firing.rule](firing.source) for firing in firings.all
        if firing.rule in _NOTES and firing.source is not None
    )  # fmt: skip


PARTS: tuple[Pass, ...] = (
    Pass("A0.1", "layout", record_defaults, reads=("policy", "order", "work_lists", "layouts")),
    Pass("A0.2", "layout", count_while_loops, establishes=(LOOPS_ARE_COUNTED,)),
    Pass("A0.3", "layout", expand_scans, requires=(LOOPS_ARE_COUNTED,), establishes=(NO_SCANS,)),
    Pass("A0.4", "layout", order_thread_groups, requires=(LOOPS_ARE_COUNTED,), establishes=(NO_THREAD_GROUPS,)),
    Pass("A0.5", "layout", launch_persistent_tiles, requires=(NO_THREAD_GROUPS,)),
    Pass("A0.6", "layout", widen_indices, requires=(LOOPS_ARE_COUNTED,)),
    Pass("A0.7", "layout", flatten_parallel_nests, requires=(NO_THREAD_GROUPS,), establishes=(NESTS_ARE_FLAT,)),
    Pass("A0.8", "layout", gather_rows, requires=(NESTS_ARE_FLAT,)),
    Pass("A0.9", "layout", name_deciding_variables, requires=(LOOPS_ARE_COUNTED,)),
    Pass("A0.10", "layout", stage_scalars, requires=(NESTS_ARE_FLAT,)),
    Pass("A0.11", "layout", name_deciding_elements, establishes=(DECIDERS_HAVE_NAMES,)),
    Pass("A0.12", "layout", stage_tensors, requires=(NESTS_ARE_FLAT,), establishes=(NESTS_USE_BLOCKS,)),
    Pass("A0.13", "layout", flatten_blocks, requires=(NESTS_USE_BLOCKS,), establishes=(BLOCKS_ARE_MATRICES,)),
    Pass("A0.14", "layout", extract_block_parts, requires=(BLOCKS_ARE_MATRICES,)),
    Pass("A0.15", "layout", legalize_dtypes, establishes=(COPIES_KEEP_WIDE_DTYPES, NO_INTEGER_PRODUCTS)),
    Pass(
        "A0.16", "layout", turn_branches_into_loops, requires=(DECIDERS_HAVE_NAMES,), establishes=(BRANCHES_ARE_LOOPS,)
    ),
    Pass("A0.17", "layout", check_chosen_places, requires=(DECIDERS_HAVE_NAMES, NESTS_ARE_FLAT)),
    Pass("A0.18", "layout", choose_partial_sums, requires=(BRANCHES_ARE_LOOPS,), trial_until="B1.2"),
    Pass("A0.19", "layout", give_updates_owners, requires=(BRANCHES_ARE_LOOPS,), reads=("choices",)),
    Pass("A0.20", "layout", mask_partial_blocks, requires=(NESTS_ARE_FLAT, BRANCHES_ARE_LOOPS)),
)
