"""C3: the tile dataflow graph, and the number of each circular buffer."""

from __future__ import annotations

import dataclasses
from typing import Any

from tvm import tirx

from ttexplore.errors import ResourceError
from ttexplore.ir.adapter import is_buffer
from ttexplore.ir.build import constant, op_name, operands, statements
from ttexplore.ir.program import Program
from ttexplore.ops import FORMS
from ttexplore.plan import CircularBuffer, GraphEdge, GraphNode, TileGraph
from ttexplore.target import Target

# Inputs from 0, outputs from 16 and intermediates from 24 is the SDK's own custom (tt-metal programming examples).
_FIRST_INPUT, _FIRST_OUTPUT, _FIRST_INTERMEDIATE = 0, 16, 24


def build_tile_dfg(program: Program, target: Target) -> Program:
    """Draw who moves which tiles, and number the circular buffers.

        tt.read_block(A, A_shared, ...); tt.matmul_block(A_shared, ...)  ==>  A -> reader -> A_shared (0) -> compute

    A buffer's role follows from its use: filled from DRAM it is an input, drained to DRAM an output.
    """
    buffers = number_buffers(program.plan.buffers, target)
    return program.with_plan(buffers=buffers, graph=tile_graph(program, buffers))


def number_buffers(buffers: tuple[CircularBuffer, ...], target: Target) -> tuple[CircularBuffer, ...]:
    """The buffers with an index each; those that have one keep it. Raises ResourceError where none is left."""
    taken = {buffer.index for buffer in buffers if buffer.index is not None}
    made: list[CircularBuffer] = []
    for buffer in buffers:
        if buffer.index is not None:
            made.append(buffer)
            continue
        first = _FIRST_INTERMEDIATE
        if buffer.consumer == "writer":
            first = _FIRST_OUTPUT
        elif buffer.producer == "reader":
            first = _FIRST_INPUT
        order = [*range(first, target.circular_buffers), *range(first)]
        index = next((number for number in order if number not in taken), None)
        if index is None:
            raise ResourceError(
                "R002",
                f"{len(buffers)} circular buffers are needed; a core of {target.name} has {target.circular_buffers}",
                hint="use fewer staging buffers"
                if buffer.producer != "compute" or buffer.consumer != "compute"
                else "use fewer staging buffers, or fewer values of a T.Parallel at a time: compute each right before "
                "its use",
                span=buffer.origin,
            )
        taken.add(index)
        made.append(dataclasses.replace(buffer, index=index))
    return tuple(made)


def tile_graph(program: Program, buffers: tuple[CircularBuffer, ...]) -> TileGraph:
    """Tensors, kernels and circular buffers, with the tiles that flow between them for each work item."""
    edges: dict[tuple[str, str], int] = {}
    pages = {buffer.name: buffer.block_pages for buffer in buffers}

    def flow(source: str, target: str, tiles: int) -> None:
        edges[(source, target)] = edges.get((source, target), 0) + tiles

    def visit(body: list[Any], times: int) -> None:
        for statement in body:
            if isinstance(statement, tirx.For):
                extent = constant(statement.extent)
                visit(statements(statement.body), times * (extent if extent is not None else 1))
                continue
            form = FORMS.get(op_name(statement))
            if form is None or form.op.role == "compute":
                continue
            values = {name: str(value.name) for name, value in operands(statement).items() if is_buffer(value)}
            cb = values["cb"]
            match values:
                case {"source": tensor}:
                    flow(tensor, "reader", times * pages[cb])
                    flow("reader", cb, times * pages[cb])
                case {"target": tensor}:
                    flow(cb, "writer", times * pages[cb])
                    flow("writer", tensor, times * pages[cb])
                case _:
                    flow("reader", cb, 1)

    visit(statements(program.kernel.body), 1)
    for buffer in buffers:
        filled = edges.get(("reader", buffer.name))
        drained = edges.get((buffer.name, "writer"))
        if buffer.producer == "compute":
            flow("compute", buffer.name, drained or buffer.block_pages)
        if buffer.consumer == "compute":
            flow(buffer.name, "compute", filled or buffer.block_pages)
    tensors = [GraphNode(layout.name, "tensor", layout.data_format) for layout in program.plan.layouts]
    kernels = [GraphNode(role, "kernel") for role in ("reader", "compute", "writer")]
    own = [GraphNode(one.name, "circular_buffer", one.data_format) for one in buffers]
    return TileGraph(
        (*tensors, *kernels, *own), tuple(GraphEdge(source, target, tiles) for (source, target), tiles in edges.items())
    )


def tile_graph_with(graph: TileGraph | None, buffers: tuple[CircularBuffer, ...]) -> TileGraph | None:
    """The graph with the circular buffers that have come since."""
    if graph is None:
        return None
    known = {node.name for node in graph.nodes}
    new = [buffer for buffer in buffers if buffer.name not in known]
    nodes = [GraphNode(one.name, "circular_buffer", one.data_format) for one in new]
    edges = [edge for one in new for edge in (GraphEdge("compute", one.name), GraphEdge(one.name, "compute"))]
    return TileGraph((*graph.nodes, *nodes), (*graph.edges, *edges))
