"""Sums over work items that several cores add up: which cores hand a block on to which.

The work items that update a block of a tensor may run on different cores. Cores that update the same blocks, in the
same order, form a chain: each updates the block that it got from the core before, and hands it on to the next one. The
first one reads the block from the tensor, the last one stores it there. All cores of a chain make the same steps, so
none waits for a block that no other core sends; and all chains follow one order of the cores, so no two wait for each
other.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping
from math import prod

from tvm import tirx

from ttexplore.analysis.launch_grid import grid_loops
from ttexplore.errors import ResourceError, UsageError
from ttexplore.ir.adapter import span_of
from ttexplore.ir.operations.atomics import HANDED_ON
from ttexplore.ir.program import TirProgram
from ttexplore.ir.rewrite import walk
from ttexplore.notes import Note, note
from ttexplore.passes.layout_aware_work_partition.shard_work import Block, TensorCopy, tensor_copies, tensors_moved
from ttexplore.plan import (
    TILE_COLUMNS,
    TILE_ROWS,
    CircularBuffer,
    PartialSums,
    Partition,
    TensorLayout,
    item_block,
)
from ttexplore.record import Span
from ttexplore.target import Target

_Core = tuple[int, int]
# One says that there is room, one that a block is there.
_SEMAPHORES = 2
# The blocks that all cores together update, one by one.
_MOST_BLOCKS = 1 << 20


def with_partial_sums(program: TirProgram, target: Target) -> TirProgram:
    """The program whose plan says which cores hand on blocks of the tensors that A0 has marked, and whose cores have
    the values for that.

    Raises UsageError for a tensor of which that cannot be proved, ResourceError where the semaphores do not suffice.
    """
    marked = [str(name) for name in program.kernel.attrs.get(HANDED_ON, ())] if program.kernel.attrs else []
    if not marked:
        if program.options.partials != "noc":
            return program
        return program.with_plan(notes=(*program.plan.notes, note("no partial sums")))
    plan = program.plan
    assert plan.partition is not None, "it is decided"
    copies = tensor_copies(grid_loops(program.kernel))
    moves = Counter(tensor for statement in walk(program.kernel.body) for tensor in tensors_moved(statement))
    sums: list[PartialSums] = []
    notes: list[Note] = []
    for name in marked:
        new_sums = _sums(program, plan.layout(name), copies, moves[name], len(sums) * _SEMAPHORES, target)
        sums.append(new_sums)
        notes.append(note("partial sums", tensor=name))
    if len(sums) * _SEMAPHORES > target.semaphores:
        raise ResourceError(
            "R007",
            f"partial sums of {len(sums)} tensors need {len(sums) * _SEMAPHORES} semaphores; {target.name} has "
            f"{target.semaphores} per core",
            hint="use partials='dram'",
        )
    values: dict[_Core, dict[str, int]] = {(core.x, core.y): {} for core in plan.partition.cores}
    for tensor_sums in sums:
        for core, core_values in tensor_sums.core_values.items():
            values[core] |= core_values
    return program.with_plan(
        partials=tuple(sums), partition=plan.partition.with_values(values), notes=(*plan.notes, *notes)
    )  # fmt: skip


def _sums(
    program: TirProgram, layout: TensorLayout, copies: list[TensorCopy], moves: int, first: int, target: Target
) -> PartialSums:  # fmt: skip
    """The chains of cores that update a tensor. Raises UsageError where they are not known, or are none."""
    name, plan = layout.name, program.plan
    partition = plan.partition
    assert partition is not None, "it is decided"
    span = _line_of(program, name)

    def refused(reason: str, hint: str) -> UsageError:
        return UsageError("U025", f"partial sums of {name} cannot be sent: {reason}", hint=hint, span=span)

    own_copies = [copy for copy in copies if copy.tensor == name]
    loads, stores = ([copy for copy in own_copies if copy.loads is way] for way in (True, False))
    if layout.memory != "dram" or layout.page != "tile":
        where = "it lies in L1" if layout.memory != "dram" else "it is row-major"
        raise refused(where, "keep it in DRAM, in tiles, or use partials='dram'")
    if not (len(loads) == len(stores) == 1 and moves == _LOAD_AND_STORE):
        reason = (
            f"{moves // _LOAD_AND_STORE} statements update it, instead of one"
            if moves > _LOAD_AND_STORE
            else "it is updated under a condition, or in a loop whose length varies"
        )
        raise refused(reason, "update it once for each work item, with one T.atomic_add, or use partials='dram'")
    load, store = loads[0], stores[0]
    into, out = _buffers(program, load, store)
    if into is None or out is None or not _alike(into, out):
        raise refused(
            "its blocks do not pass through circular buffers of one kind", "use another block, or partials='dram'"
        )
    if into.stages != 1:
        raise refused(
            f"{into.name} holds {into.stages} blocks: only with one do blocks lie at the same address on all cores",
            f"set the depth of {into.name} to 1",
        )
    steps_of_all = partition.work_items * prod(load.loops)
    if load.extents != store.extents or steps_of_all > _MOST_BLOCKS:
        raise refused("its blocks are too many to follow", "use larger blocks, or partials='dram'")
    steps = _steps(load, partition)
    if steps != _steps(store, partition):
        raise refused("it is loaded and stored at different places", "use partials='dram'")
    if not _whole_tiles(load.extents, layout) or any(
        start % extent for blocks in steps.values() for block in blocks
     for start, extent in zip(block, load.extents, strict=True)
    ):  # fmt: skip
        raise refused(
            "its blocks are not whole tiles, or overlap in part",
            "update blocks of multiples of 32 rows and columns that start at multiples of their size, or use "
            "partials='dram'",
        )
    for core, blocks in steps.items():
        if repeated := [block for block, count in Counter(blocks).items() if count > 1]:
            raise refused(
                f"core {core} updates the block at {repeated[0]} more than once", _even_work(partition, load, target)
            )
    chains: dict[tuple[Block, ...], list[_Core]] = {}
    order = {(core.x, core.y): [*partition.items_of(core)[:1]] for core in partition.cores}
    for core in sorted(steps, key=lambda candidate: order[candidate]):
        chains.setdefault(steps[core], []).append(core)
    owner: dict[Block, tuple[Block, ...]] = {}
    for blocks, cores in chains.items():
        for block in blocks:
            if (owner_blocks := owner.setdefault(block, blocks)) is not blocks:
                raise refused(
                    f"cores {chains[owner_blocks][0]} and {cores[0]} both update the block at {block}, but not the "
                    f"same "
                    "blocks at the same steps",
                    _even_work(partition, load, target),
                )
    return PartialSums(
        name, into.name, out.name, first, first + 1, tuple(map(tuple, chains.values())), tuple(map(len, chains)),
        into.block_pages * into.page_bytes,
    )  # fmt: skip


# The statements that an update consists of.
_LOAD_AND_STORE = 2


def _whole_tiles(extents: Block, layout: TensorLayout) -> bool:
    """Whether a block, each start of which is a multiple of its size, consists of whole tiles."""
    axes = zip(extents[::-1], layout.shape[::-1], (TILE_COLUMNS, TILE_ROWS), strict=False)
    return all(extent % tile == 0 or extent >= length for extent, length, tile in axes)


def _even_work(partition: Partition, copy: TensorCopy, target: Target) -> str:
    """A hint at cores that have work items for the same blocks, each of another part of the sums."""
    advice = "give all cores the same number of work items, each for another block"
    blocks = prod(partition.grid[axis] for axis in copy.axes)
    columns, rows = target.compute_grid
    # Items count up along x first: the work items of the first blocks come first if no axis before theirs is summed.
    if copy.axes == tuple(range(len(copy.axes))):
        for share in (number for number in range(1, blocks + 1) if blocks % number == 0):
            count = partition.work_items // share
            wide = next((x for x in range(columns, 0, -1) if count % x == 0 and count // x <= rows), None)
            if wide is not None:
                advice += f", with cores=({wide}, {count // wide}) and the policy contiguous"
                break
    return f"{advice}, or use partials='dram'"


def _steps(copy: TensorCopy, partition: Partition) -> Mapping[_Core, tuple[Block, ...]]:
    """The first elements of the blocks that each core moves, in order."""
    return {
        (core.x, core.y): tuple(
            itertools.chain(*(copy.starts(item_block(partition.grid, item)) for item in partition.items_of(core)))
        )
        for core in partition.cores
    }


def _buffers(
    program: TirProgram, load: TensorCopy, store: TensorCopy
) -> tuple[CircularBuffer | None, CircularBuffer | None]:  # fmt: skip
    """The circular buffers that only the load fills and only the store empties; None where there are none."""
    staging = program.staging
    assert staging is not None, "A2 decides it"
    buffers = {buffer.name: buffer for buffer in program.plan.buffers}
    filled = [name for key, name in staging.writes.items() if key[0].same_as(load.statement)]
    drained = [name for key, name in staging.reads.items() if key[0].same_as(store.statement)]
    into = buffers.get(filled[0]) if filled and list(staging.writes.values()).count(filled[0]) == 1 else None
    out = buffers.get(drained[0]) if drained and list(staging.reads.values()).count(drained[0]) == 1 else None
    return into, out


def _alike(into: CircularBuffer, out: CircularBuffer) -> bool:
    """Whether a block of one is the same bytes as that of the other."""
    same = (into.data_format, into.block_pages, into.tile_order) == (out.data_format, out.block_pages, out.tile_order)
    is_plain = not (into.row_tiles or out.row_tiles or into.shard_of or out.shard_of)
    return same and is_plain and into.producer == out.consumer == "writer"


def _line_of(program: TirProgram, tensor: str) -> Span | None:
    """The line that updates a tensor."""
    return next((span_of(statement) for statement in walk(program.kernel.body) if _moves(statement, tensor)), None)


def _moves(statement: tirx.Stmt, tensor: str) -> bool:
    return isinstance(statement, tirx.Evaluate) and tensor in tensors_moved(statement)
