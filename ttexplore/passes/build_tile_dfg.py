"""C3: the tile dataflow graph, and the number of each circular buffer."""

from __future__ import annotations

from ttexplore.ir.program import Program
from ttexplore.passes.core_resources import number_buffers
from ttexplore.passes.tile_graph import tile_graph
from ttexplore.target import Target


def build_tile_dfg(program: Program, target: Target) -> Program:
    """Draw who moves which tiles, and number the circular buffers.

        tt.read_block(A, A_shared, ...); tt.matmul_block(A_shared, ...)  ==>  A -> reader -> A_shared (0) -> compute

    A buffer's role follows from its use: filled from DRAM it is an input, drained to DRAM an output.
    """
    buffers = number_buffers(program.plan.buffers, target)
    return program.with_plan(buffers=buffers, graph=tile_graph(program, buffers))
