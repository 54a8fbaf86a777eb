"""B2: turn the launch grid into a loop on each core."""

from __future__ import annotations

from tvm import ir, tirx

from ttexplore.analysis.launch_grid import grid_loops
from ttexplore.ir.adapter import call, is_buffer
from ttexplore.ir.arithmetic.bounds import BLOCK_RANGES
from ttexplore.ir.arithmetic.sizes import BOUND_SIZES, size_variables
from ttexplore.ir.build import bind, constant, loop, statements, variable, with_function_body
from ttexplore.ir.program import TirProgram
from ttexplore.ir.rewrite import Firings, Rule
from ttexplore.ops.op import CORE_ITEM, CORE_VALUE
from ttexplore.plan import Partition
from ttexplore.target import Target

_WORK = Rule("loop over work items", "Each core loops over its own blocks of the launch grid.")


def grid_to_core_grid(program: TirProgram, target: Target) -> TirProgram:
    """Replace the launch grid with a persistent loop over the work items of each core.

    for bx in T.thread_binding(8, "blockIdx.x"):      work_start = tt.core_value("work_start")
        for by in T.thread_binding(8, "blockIdx.y"):  for item in range(work_count):
            body                                 ==>      work = work_start + item
                                                          by = work // 8
                                                          bx = work % 8
                                                          body

    The host passes `work_start` and `work_count` to each core. Rectangles of blocks become one loop per axis. Items
    that are not evenly spaced are passed as a list of runtime arguments: `work = tt.core_item("work_items", item)`.
    """
    loops = grid_loops(program.kernel)
    partition = program.plan.partition
    assert partition is not None, "B1 decides the partition"
    blocks = [grid_loop.loop_var for grid_loop in loops]
    body = statements(loops[-1].body)
    named = size_variables(program.kernel)
    sizes = [
        bind(size_variable, call(CORE_VALUE, [size.core_value], dtype="int32"))
        for size_variable, size in zip(named, program.plan.sizes, strict=True)
    ]
    counts, extents = _extents(loops)
    nest = (
        _rectangular(partition, blocks, extents, body)
        if partition.form == "rectangle"
        else _linear(partition, blocks, extents, body)
    )
    firings = Firings()
    nest = firings.made(_WORK, loops[0], [*sizes, *counts, *nest])
    tensors = [parameter for parameter in program.kernel.params if is_buffer(parameter)]
    function = with_function_body(program.kernel, nest, tensors)
    ranges = {grid_loop.loop_var: grid_loop.extent for grid_loop in loops}
    return program.with_kernel(function.with_attr(BLOCK_RANGES, ranges).with_attr(BOUND_SIZES, named), firings)


def _extents(loops: list[tirx.For]) -> tuple[list[tirx.Stmt], list[ir.Expr | int]]:
    """Bindings for block counts that depend on T.dynamic sizes, and the block counts of all axes."""
    bindings: list[tirx.Stmt] = []
    extents: list[ir.Expr | int] = []
    for grid_loop, axis in zip(loops, "xyz", strict=False):
        count = constant(grid_loop.extent)
        if count is None:
            count = variable(f"blocks_{axis}")
            bindings.append(bind(count, grid_loop.extent))
        extents.append(count)
    return bindings, extents


def _core_value(name: str) -> tuple[ir.Var, tirx.Stmt]:
    value = variable(name)
    return value, bind(value, call(CORE_VALUE, [name], dtype="int32"))


def _linear(
    partition: Partition, blocks: list[ir.Var], extents: list[ir.Expr | int], body: list[tirx.Stmt]
) -> list[tirx.Stmt]:
    count, bind_count = _core_value("work_count")
    item, work = variable("item"), variable("work")
    prologue = [bind_count]
    if partition.form == "list":
        index = call(CORE_ITEM, ["work_items", item], dtype="int32")
    else:
        start, bind_start = _core_value("work_start")
        prologue.insert(0, bind_start)
        index = start + item * partition.step if partition.step > 1 else start + item
    inner = [bind(work, index)]
    axes = list(range(len(blocks)))
    if partition.form == "range" and partition.order == "column_major":
        axes[:2] = axes[1::-1]
    size: ir.Expr | int = 1
    for axis in axes:
        value = work if isinstance(size, int) and size == 1 else tirx.floordiv(work, size)
        if axis != axes[-1]:
            value = tirx.floormod(value, extents[axis])
        inner.insert(1, bind(blocks[axis], value))
        size = extents[axis] * size
    return [*prologue, loop(item, count, [*inner, *body])]


def _rectangular(
    partition: Partition, blocks: list[ir.Var], extents: list[ir.Expr | int], body: list[tirx.Stmt]
) -> list[tirx.Stmt]:
    inner = body
    prologue: list[tirx.Stmt] = []
    nest = list(enumerate(zip(blocks, "xyz", strict=False)))
    if partition.order == "column_major":
        nest[:2] = nest[1::-1]
    for axis, (block, name) in nest:
        if axis == 2:
            inner = [loop(block, extents[2], inner)]
            continue
        start, bind_start = _core_value(f"{name}_start")
        count, bind_count = _core_value(f"{name}_count")
        item = variable(f"item_{name}")
        prologue += [bind_start, bind_count]
        inner = [loop(item, count, [bind(block, start + item), *inner])]
    return [*prologue, *inner]
