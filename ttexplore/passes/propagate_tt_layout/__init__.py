"""A2: decide the circular buffers and the configuration of the compute engine."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tvm import ir, tirx

from ttexplore.analysis.core_resources import check_l1, tensors_in_l1
from ttexplore.analysis.staging import plan_staging, storage_dtype
from ttexplore.errors import UsageError, unknown
from ttexplore.ir.adapter import is_buffer
from ttexplore.ir.build import dtype_of, regions, runs
from ttexplore.ir.dataflow import blocks, is_parallel, load_role, nest_of, parallel_body
from ttexplore.ir.operations.storage import Staging, StagingBuffer, TensorMove
from ttexplore.ir.program import TirProgram
from ttexplore.ir.rewrite import Firings
from ttexplore.notes import Note, note
from ttexplore.ops import language as tl
from ttexplore.options import Accumulate, AccumulateDtype, Engine, Fidelity
from ttexplore.passes.propagate_tt_layout.chunks import sequence_depths, summed_depths
from ttexplore.passes.propagate_tt_layout.padding import with_masks
from ttexplore.passes.propagate_tt_layout.reductions import with_joined_results
from ttexplore.passes.propagate_tt_layout.tensor_regions import tensor_regions
from ttexplore.passes.propagate_tt_layout.unused import without_unused
from ttexplore.passes.step import Pass
from ttexplore.passes.verify.normal_form import (
    BLOCKS_ARE_MATRICES,
    NESTS_ARE_FLAT,
    NESTS_USE_BLOCKS,
    RESULTS_ARE_APART,
    VALUES_ARE_READ,
)
from ttexplore.plan import (
    FORMAT_OF_DTYPE,
    CircularBuffer,
    ComputeConfig,
)
from ttexplore.target import Target


def propagate_tt_layout(program: TirProgram, target: Target, **options: Any) -> TirProgram:
    """Decide a circular buffer for each staging buffer, from the regions that the kernel moves.

        A_shared = T.alloc_shared((128, 32)); T.copy(A[...], A_shared) in T.Pipelined(..., num_stages=3)
    ==> A_shared: reader -> compute, 4 tiles x 3 stages, 2048 bytes a tile

    Before that, operands are masked whose padding would change a result, results of reductions get buffers of their
    own, and values that no output depends on are removed.
    """
    *rewriting, last = PARTS
    for step in rewriting:
        program = step.function(program, target)
    return last.function(program, target, **options)


def check_tensor_regions(program: TirProgram, target: Target) -> TirProgram:
    """Check that each copy moves tiles, runs of rows or single elements of its tensor.

        for k in T.serial(2):
            T.copy(A[by * 32, k * 8 + 1], a)  ==>  plan.notes: a is read element by element in line 6: 1024 reads ...

    The notes say where neither tiles nor rows of 16 elements express a region, and what that costs, and where a block
    can never lie in its tensor. Raises the errors
    of :func:`block_region`, at the kernel's line, for a region that nothing expresses.
    """
    regions, notes = tensor_regions(program, target)
    program = program.with_plan(notes=(*program.plan.notes, *notes)) if notes else program
    moves = {statement: TensorMove(block.zero_rows, block.zero_columns, bool(block.steps))
             for statement, block in regions.items()}  # fmt: skip
    return dataclasses.replace(program, moves=moves)


def mask_padding(program: TirProgram, target: Target) -> TirProgram:
    """Mask operands of products and reductions that would take in what lies beyond their blocks.

        T.gemm(a, b, c)  ==>  for i, j in T.Parallel(32, 50):
                                  a_masked[i, j] = T.if_then_else(j < 50, a[i, j], 0)
                              T.gemm(a_masked, b, c)

    Where a block does not fill its last tiles, a matrix product would also add up the elements beyond the block. Unless
    they are known to be zero, the product reads a masked copy of the block; the plan's notes list each mask and its
    reason.
    """
    assert program.moves is not None, "the part before finds them"
    firings = Firings()
    kernel, notes = with_masks(program.kernel, program.moves, firings)
    return _rewritten(program, kernel, firings, notes)


def join_reductions(program: TirProgram, target: Target) -> TirProgram:
    """Join what a block holds with the result of a reduction, which gets a buffer of its own.

    T.reduce_sum(a, s, dim=1, clear=False)  ==>  T.reduce_sum(a, s_part, dim=1)
                                                 for i in T.Parallel(32):
                                                     s[i] = s[i] + s_part[i]
    """
    firings = Firings()
    return _rewritten(program, with_joined_results(program.kernel, firings), firings)


def remove_unused_values(program: TirProgram, target: Target) -> TirProgram:
    """Remove values that no output depends on.

        T.copy(A[...], a)
        T.copy(B[...], b)   ==>  T.copy(A[...], a)
        T.copy(a, C[...])        T.copy(a, C[...])

    They would fill circular buffers that no kernel drains. Raises KernelError for reads of what was never written.
    """
    firings = Firings()
    kernel, notes = without_unused(program.kernel, firings)
    return _rewritten(program, kernel, firings, notes)


def choose_buffers(
    program: TirProgram,
    target: Target,
    *,
    stages: int | None,
    cb_depth: Mapping[str, int] | None,
    chunk_k_tiles: int | None,
    qk_chunk_tiles: int | None,
    math_fidelity: Fidelity,
    accumulate: Accumulate,
    accumulate_dtype: AccumulateDtype,
    dst_full_sync: bool,
) -> TirProgram:
    """Choose a circular buffer or DST for each value, and configure the compute engine.

        A_shared = T.alloc_shared((128, 32)); T.copy(A[...], A_shared) in T.Pipelined(..., num_stages=3)
    ==> A_shared: reader -> compute, 4 tiles x 3 stages, 2048 bytes a tile

    Vectors that a reduction along rows makes lie in columns of tiles.

    `stages` is the depth, in blocks, of the circular buffers that the reader fills; the default is num_stages inside
    T.Pipelined, and 2 elsewhere. `cb_depth` sets the depth of single circular buffers by name: ``{"A_shared": 3}``.
    `chunk_k_tiles` sets the depth of matrix operands in tiles along the summed dimension, as a multiple of the block;
    `qk_chunk_tiles` that of the operands that a loop loads for chained products, as K and V of attention, in tiles of
    the loop's sequence.
    The plan's notes say where one of these options overrides another.

    `math_fidelity` selects the passes of the FPU over the mantissas: more passes are slower and more precise.
    `accumulate` selects how an accumulator larger than DST is carried through a loop: ``reload`` copies partial sums
    back into DST, ``l1`` lets the packer add in L1 (faster on silicon, but not every simulator models it).
    `accumulate_dtype` is the width of DST: with 32 bits, DST holds half as many tiles; with 16 bits, every operation
    and every product is rounded. ``auto`` selects 16 bits where no result loses precision. `dst_full_sync` doubles the
    tiles in DST, but packing no longer overlaps with computing.
    """
    kernel = program.kernel
    assert program.moves is not None, "A2.1 finds them"
    single = frozenset(statement for statement, move in program.moves.items() if move.by_elements)
    staging = plan_staging(kernel, stages, program.plan.layouts, program.options.eltwise, single)
    program = dataclasses.replace(program, staging=staging, moves=None)
    wide, reasons = _dst_width(program, staging, accumulate_dtype)
    tiles = target.dst_tiles(wide, dst_full_sync)
    if dst_full_sync:
        reasons.append(f"full-sync DST of {tiles} tiles, as requested: packing does not overlap with computing")
    compute = ComputeConfig(math_fidelity, wide, dst_full_sync, False, tiles, accumulate, tuple(reasons))
    buffers = tuple(circular_buffer(buffer, compute) for buffer in staging.buffers.values() if buffer.kind == "cb")
    summed = {} if chunk_k_tiles is None else summed_depths(staging, chunk_k_tiles)
    along = {} if qk_chunk_tiles is None else sequence_depths(kernel, staging, qk_chunk_tiles)
    chunks = summed | along
    single = dict(cb_depth or {})
    buffers = _with_depths(buffers, chunks | single)
    depths = [*_depth_notes(stages, staging, chunks | single)] if stages is not None else []
    for name, depth in chunks.items():
        along_k = f"chunk_k_tiles={chunk_k_tiles}"
        option = f"qk_chunk_tiles={qk_chunk_tiles}" if name in along else along_k
        if single.get(name, depth) != depth:
            depths.append(note("depth overridden", buffer=name, depth=single[name], overridden=depth, option=option))
        else:
            depths.append(note("depth", buffer=name, depth=depth, option=option))
        if name in along and summed.get(name, depth) != depth:
            depths.append(note("chunk overridden", buffer=name, overridden=summed[name], option=along_k))
    check_l1(buffers, target, tensors_in_l1(program))
    return program.with_plan(
        buffers=buffers,
        compute=compute,
        notes=(*program.plan.notes, *depths),
    )


def _rewritten(program: TirProgram, kernel: tirx.PrimFunc, firings: Firings, notes: Sequence[Note] = ()) -> TirProgram:
    """The program with its kernel rewritten, and with notes on that."""
    program = program if kernel is program.kernel else program.with_kernel(kernel, firings)
    return program.with_plan(notes=(*program.plan.notes, *notes)) if notes else program


def _with_depths(buffers: tuple[CircularBuffer, ...], depths: Mapping[str, int]) -> tuple[CircularBuffer, ...]:
    """The buffers with the requested depths. Raises UsageError for an unknown buffer."""
    names = [buffer.name for buffer in buffers]
    for name in depths:
        if name not in names:
            raise unknown("circular buffer", name, names)
    return tuple(dataclasses.replace(buffer, stages=depths.get(buffer.name, buffer.stages)) for buffer in buffers)


def _depth_notes(stages: int, staging: Staging, depths: Mapping[str, int]) -> Iterator[Note]:
    """Notes on the option `stages`: the buffers that it applies to, what it overrides, and the other buffers."""
    buffers = [buffer for buffer in staging.buffers.values() if buffer.kind == "cb"]
    filled = [buffer for buffer in buffers if buffer.producer == "reader"]
    own_depths = {buffer.name: depths[buffer.name] for buffer in filled if depths.get(buffer.name, stages) != stages}
    for pipeline in dict.fromkeys(buffer.pipeline for buffer in filled):
        names = [buffer.name for buffer in filled if buffer.pipeline == pipeline and buffer.name not in own_depths]
        if names:
            instead_of = None
            if pipeline is not None and pipeline.stages != stages:
                instead_of = f"num_stages={pipeline.stages} of T.Pipelined at {pipeline.span}"
            yield note("depth by stages", stages=stages, buffers=", ".join(names), instead_of=instead_of)
    for name, depth in own_depths.items():
        yield note("depth set otherwise", stages=stages, buffer=name, depth=depth)
    if other_buffers := [buffer.name for buffer in buffers if buffer.producer != "reader"]:
        yield note("depth of others", stages=stages, buffers=", ".join(other_buffers))


def circular_buffer(staging: StagingBuffer, compute: ComputeConfig) -> CircularBuffer:
    """The circular buffer of a staging buffer in L1. A 16-bit DST cannot hold float32 exactly."""
    data_format = staging.data_format or FORMAT_OF_DTYPE[staging.dtype]
    uncut = staging.exact and data_format == "Float32" and staging.consumer == "compute"
    exact = uncut and compute.fp32_dest_acc_en
    return CircularBuffer(
        staging.name, staging.tiles, staging.stages, data_format, staging.producer, staging.consumer,
        unpack_to_dest=exact, tile_order=staging.order, origin=staging.span, reason=staging.reason,
        row_tiles=_row_tiles(staging, compute),
    )  # fmt: skip


def _row_tiles(staging: StagingBuffer, compute: ComputeConfig) -> int:
    """The width, in tiles, of the contiguous rows in a buffer of rows; 0 for a buffer of tiles."""
    if not staging.rows:
        return 0
    columns = staging.tile_grid[1]
    if staging.producer == "reader":
        # Tiles in column-major order are converted one at a time.
        return columns if staging.order == "row_major" else 1
    return next(count for count in range(min(columns, compute.half_dst_tiles), 0, -1) if columns % count == 0)


def _dst_width(program: TirProgram, staging: Staging, asked: str) -> tuple[bool, list[str]]:
    """Whether DST holds 32-bit values, and the reasons."""
    function = program.kernel
    block_statements = blocks(function.body)
    names_of: dict[str, list[str]] = {}
    # Only copies touch tensors. An unused tensor may have any dtype.
    moved = {
        region.source for statement in block_statements if runs(statement, tl.COPY) for region in regions(statement)
    }
    on_chip = (statement.buffer for statement in block_statements if isinstance(statement, tirx.AllocBuffer))
    for buffer in (
        *on_chip,
        *(parameter for parameter in function.params if is_buffer(parameter) and parameter in moved),
    ):
        names_of.setdefault(storage_dtype(dtype_of(buffer)), []).append(str(buffer.name))
    if "int32" in names_of and asked == "bfloat16":
        raise UsageError(
            "U010",
            f"accumulate_dtype is {asked!r}, but {', '.join(names_of['int32'])} hold int32",
            hint="omit accumulate_dtype: integers need 32-bit DST",
        )
    if asked != "auto":
        return asked == "float32", [f"{32 if asked == 'float32' else 16}-bit DST, as requested"]
    for dtype in ("float32", "int32"):
        if dtype in names_of:
            return True, [f"32-bit DST: {', '.join(names_of[dtype])} hold {dtype}"]
    if any(runs(statement, tl.GEMM) for statement in block_statements):
        return True, ["32-bit DST: a 16-bit accumulator rounds after every product"]
    if any(runs(statement, tl.REDUCE) for statement in block_statements):
        return True, ["32-bit DST: a 16-bit sum rounds after every element"]
    engine = program.options.eltwise
    for statement in block_statements:
        if not is_parallel(statement):
            continue
        body = nest_of(statement)[1]
        if not all(_one_fpu_operation(store, statement, staging, engine) for store in body):
            return True, ["32-bit DST: SFPU operations truncate 16-bit results"]
    return False, ["16-bit DST: only bfloat16 copies, sums and differences"]


def _one_fpu_operation(store: tirx.BufferStore | tirx.Bind, nest: tirx.Stmt, staging: Staging, engine: Engine) -> bool:
    """Whether a store is a copy, or a sum or difference that the FPU computes from circular buffers."""
    if not isinstance(store, tirx.BufferStore):
        return False
    variables = [loop.loop_var for loop in parallel_body(nest)[0]]

    def role(load: ir.Expr) -> str:
        if not isinstance(load, ir.TensorLoad):
            return ""
        load_kind = load_role(load, variables)
        name = staging.reads.get((nest, load.source, load_kind))
        return load_kind if name is not None and staging.buffers[name].kind == "cb" else ""

    value = store.value
    if not isinstance(value, tirx.Add | tirx.Sub):
        return bool(role(value))
    if "float" not in str(value.ty.dtype):  # bytes wrap around, as integers of 32 bits
        return False
    left, right = role(value.a), role(value.b)
    if isinstance(value, tirx.Add) and left != "element":
        left, right = right, left
    return left == "element" and bool(right) and engine != "sfpu"


PARTS: tuple[Pass, ...] = (
    Pass("A2.1", "layout", check_tensor_regions, requires=(BLOCKS_ARE_MATRICES, NESTS_USE_BLOCKS)),
    Pass("A2.2", "layout", mask_padding, requires=(NESTS_ARE_FLAT,)),
    Pass("A2.3", "layout", join_reductions, establishes=(RESULTS_ARE_APART,)),
    Pass("A2.4", "layout", remove_unused_values, establishes=(VALUES_ARE_READ,)),
    Pass(
        "A2.5",
        "layout",
        choose_buffers,
        requires=(RESULTS_ARE_APART, VALUES_ARE_READ),
        ends=(VALUES_ARE_READ,),
        reads=("eltwise", "mode"),
    ),
)
