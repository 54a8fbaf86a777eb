"""C3: build the tile dataflow graph and number the circular buffers."""

from __future__ import annotations

from ttexplore.analysis.core_resources import number_buffers
from ttexplore.analysis.tile_graph import tile_graph
from ttexplore.ir.program import TirProgram
from ttexplore.target import Target


def build_tile_dfg(program: TirProgram, target: Target) -> TirProgram:
    """Build the tile dataflow graph, and number the circular buffers.

        tt.read_block(A, A_shared, ...); tt.matmul_block(A_shared, ...)  ==>  A -> reader -> A_shared (0) -> compute

    The number of a circular buffer follows from its use: inputs, which the reader fills, count from 0, outputs, which
    the writer drains, from 16, and intermediate values from 24. Functions do not change.
    """
    buffers = number_buffers(program.plan.buffers, target)
    return program.with_plan(buffers=buffers, graph=tile_graph(program, buffers))
