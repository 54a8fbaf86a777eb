"""What a work item does, read from its blocks before there are transfers: what times are predicted from.

The cycles are those of the target and of the operations, as far as blocks tell which these will be.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import get_args

import numpy as np
import numpy.typing as npt
from tvm import ir, tirx

from ttexplore.analysis.dst_blocks import SubBlock, sub_blocks
from ttexplore.analysis.launch_grid import grid_loops
from ttexplore.analysis.staging import storage_dtype
from ttexplore.ir.arithmetic.index import Expression, Variable, VariableNumbers, compiled, convert, placed
from ttexplore.ir.build import constant, dtype_of, op_name, regions, shape_of, statements
from ttexplore.ir.dag import nodes_of
from ttexplore.ir.dataflow import is_on_chip, is_parallel, parallel_body
from ttexplore.ir.operations.storage import tile_grid
from ttexplore.ir.operations.work import ItemWork, Load, Stored
from ttexplore.ir.program import TirProgram
from ttexplore.ir.rewrite import walk
from ttexplore.ops import language as tl
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
from ttexplore.passes.layout_aware_work_partition.shard_work import Block, TensorCopy, tensor_copies, tensors_moved
from ttexplore.plan import DATA_FORMATS, FORMAT_OF_DTYPE, ComputeConfig
from ttexplore.target import Target

# An operation on the elements of a tile, for lack of a better number: most functions of the SFPU take more, and sums
# and products less.
_ELEMENTWISE_CYCLES = 128
_PARTIAL_BYTES = DATA_FORMATS["Float32"].tile_bytes


def item_works(program: TirProgram, target: Target) -> dict[str, ItemWork] | None:
    """What a core does for a work item after A2, by math fidelity; None if that is known only when the kernel runs."""
    plan, staging = program.plan, program.staging
    assert staging is not None, "A2 decides it"
    assert plan.compute is not None, "A2 decides it"
    loops = grid_loops(program.kernel)
    copies = tensor_copies(loops)
    if plan.sizes or _is_open(loops[-1].body, copies):
        return None
    homes = {key[0]: plan_name for key, plan_name in staging.writes.items()}
    buffers = {buffer.name: buffer for buffer in plan.buffers}
    loads: list[Load] = []
    stores: list[Stored] = []
    in_loops = any(not copy.loads and copy.loops for copy in copies)
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
    computes = [dataclasses.replace(plan.compute, math_fidelity=fidelity) for fidelity in fidelities]
    cycles = _cycles(statements(loops[-1].body), computes, target, in_loop=False)
    return {
        fidelity: ItemWork(tuple(loads), float(cycles[at]), tuple(stores)) for at, fidelity in enumerate(fidelities)
    }


# What a work item computes


# From a work item and the variables of the uneven loops around it, the start and the length of a loop.
_Span = Callable[[Block, Block], tuple[int, ...]]


@dataclass(frozen=True)
class _UnevenWork:
    """The cycles of statements, and the uneven loops among them: those whose length or place, or that of a loop in
    them, depends on the work item."""

    cycles: float
    uneven: tuple[tuple[_Span, _UnevenWork], ...]

    def of(self, item: Block, around: Block = ()) -> float:
        total = self.cycles
        for span, body in self.uneven:
            start, length = span(item, around)
            if body.uneven:
                total += sum(body.of(item, (*around, number)) for number in range(start, start + length))
            else:
                total += max(length, 0) * body.cycles
        return total


def item_cycles(program: TirProgram, target: Target) -> Callable[[Block], float] | None:
    """What computes the cycles of a work item from its place in the launch grid, where the lengths of loops depend on
    that, and otherwise the same number for all; None where something else decides how long a loop is."""
    loops = grid_loops(program.kernel)
    every = walk(loops[-1].body)
    if any(isinstance(node, tirx.While) for node in every):
        return None
    if not any(map(_is_of_open_length, every)):
        return lambda _: 1.0
    number = VariableNumbers()
    bound: dict[Variable, Expression] = {}
    compute = program.plan.compute
    assert compute is not None, "A2 decides it"

    def work(body: Iterable[tirx.Stmt], names: dict[Variable, str], depth: int) -> _UnevenWork | None:
        even: list[tirx.Stmt] = []
        uneven: list[tuple[_Span, _UnevenWork]] = []
        for statement in body:
            if isinstance(statement, tirx.Bind):
                bound[number(statement.var)] = convert(statement.value, number)
            elif not isinstance(statement, tirx.For) or not any(map(_is_of_open_length, walk(statement))):
                even.append(statement)
            else:
                ends = [placed(convert(end, number), bound) for end in (statement.min, statement.extent)]
                span = compiled(ends, "b, v", names)
                inside = names | {number(statement.loop_var): f"v[{depth}]"}
                inner = work(statements(statement.body), inside, depth + 1)
                if span is None or inner is None:
                    return None
                uneven.append((span, inner))
        return _UnevenWork(float(_cycles(even, [compute], target, in_loop=depth > 0)[0]), tuple(uneven))

    length = work(
        statements(loops[-1].body), {number(loop.loop_var): f"b[{axis}]" for axis, loop in enumerate(loops)}, 0
    )
    return None if length is None else length.of


def _is_of_open_length(statement: tirx.Stmt) -> bool:
    return isinstance(statement, tirx.For) and constant(statement.extent) is None


def _is_open(body: tirx.Stmt, copies: Sequence[TensorCopy]) -> bool:
    """Whether something decides only when the kernel runs what is read, or how often."""
    copy_statements = {copy.statement for copy in copies}
    for statement in walk(body):
        if isinstance(statement, tirx.While) or _is_of_open_length(statement):
            return True
        if tensors_moved(statement) and statement not in copy_statements:
            return True
    return False


# The cycles for several configurations that differ in their math fidelity.
_Cycles = npt.NDArray[np.float64]


def _cycles(body: Iterable[tirx.Stmt], computes: Sequence[ComputeConfig], target: Target, *, in_loop: bool) -> _Cycles:
    """The cycles of the slowest of unpack, math and pack."""
    total = np.zeros(len(computes))
    for statement in body:
        name = op_name(statement)
        if is_parallel(statement):
            total += _elementwise(statement)
        elif isinstance(statement, tirx.For):
            turns = constant(statement.extent) or 0
            total += turns * _cycles(statements(statement.body), computes, target, in_loop=turns > 1)
        elif isinstance(statement, tirx.IfThenElse):
            arms = [statement.then_case, *([statement.else_case] if statement.else_case is not None else [])]
            total += np.max([_cycles(statements(arm), computes, target, in_loop=in_loop) for arm in arms], axis=0)
        elif name == tl.GEMM.name:
            total += _product(statement, computes, target, in_loop=in_loop)
        elif name in (tl.COPY.name, tl.REDUCE.name):
            source, to = (region.source for region in regions(statement)[:2])
            if is_on_chip(source) and is_on_chip(to):
                total += prod(tile_grid(shape_of(source)[-2:])) * (COPY_CYCLES + PACK_CYCLES)
    return total


def _product(statement: tirx.Stmt, computes: Sequence[ComputeConfig], target: Target, *, in_loop: bool) -> list[float]:
    costs, compute = target.costs, computes[0]
    a, b, c = (region.source for region in regions(statement)[:3])
    rows, columns = tile_grid(shape_of(c))
    depth = prod(tile_grid(shape_of(a))) // rows
    a_bytes, b_bytes = (
        DATA_FORMATS[FORMAT_OF_DTYPE[storage_dtype(dtype_of(operand))]].tile_bytes for operand in (a, b)
    )
    subblock = max(
        sub_blocks((rows, columns), compute.dst_tiles), key=lambda candidate: (candidate.tiles, candidate.columns)
    )
    unpack = depth * unpack_cycles(costs, matmul_unpacked(subblock.rows, subblock.columns, a_bytes, b_bytes))
    math = pack = 0
    if in_loop and subblock.turns > 1:
        # Partial sums leave DST after each step, and come back unless the packer adds them up.
        pack = subblock.tiles * pack_cycles(costs, _PARTIAL_BYTES, PACK_CYCLES)
        if compute.accumulate == "reload":
            unpack += subblock.tiles * unpack_cycles(costs, _PARTIAL_BYTES) + 3 * INIT_CYCLES
            math += subblock.tiles * COPY_CYCLES + 3 * INIT_CYCLES
    return [
        subblock.turns * (max(unpack, math + depth * product, pack) + _hand_over(subblock))
        for product in (matmul_cycles(costs, variant.math_fidelity, subblock.tiles) for variant in computes)
    ]


def _hand_over(subblock: SubBlock) -> float:
    return SECTION_CYCLES / 2 if subblock.turns > 1 else SECTION_CYCLES


def _elementwise(nest: tirx.Stmt) -> float:
    loops, body = parallel_body(nest)
    extents = [constant(nest_loop.extent) or 1 for nest_loop in loops]
    tiles = prod(tile_grid(tuple(extents[-2:]))) * prod(extents[:-2])
    operations = sum(
        not isinstance(node, ir.TensorLoad | ir.Var | tirx.IntImm | tirx.FloatImm | tirx.Cast)
        for statement in body
        if isinstance(statement, tirx.BufferStore | tirx.Bind)
        for node in nodes_of(statement.value)
    )
    return tiles * (operations * _ELEMENTWISE_CYCLES + COPY_CYCLES + PACK_CYCLES)
