"""The tile dataflow graph: which kernel moves which tiles."""

from __future__ import annotations

from tvm import tirx

from ttexplore.ir.adapter import is_buffer
from ttexplore.ir.build import constant, op_name, operands, statements
from ttexplore.ir.program import TirProgram
from ttexplore.ops import FORMS
from ttexplore.plan import CircularBuffer, GraphEdge, GraphNode, TileGraph


def tile_graph(program: TirProgram, buffers: tuple[CircularBuffer, ...]) -> TileGraph:
    """Tensors, kernels and circular buffers, with the tiles that flow between them per work item."""
    edges: dict[tuple[str, str], int] = {}
    pages = {buffer.name: buffer.block_pages for buffer in buffers}
    movers = {buffer.name: buffer.producer for buffer in buffers}

    def flow(source: str, target: str, tiles: int) -> None:
        edges[(source, target)] = edges.get((source, target), 0) + tiles

    def visit(body: list[tirx.Stmt], times: int) -> None:
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
                case {"source": source}:
                    flow(source, movers[cb], times * pages.get(source, pages[cb]))
                    flow(movers[cb], cb, times * pages[cb])
                case {"target": tensor}:
                    flow(cb, "writer", times * pages[cb])
                    flow("writer", tensor, times * pages[cb])
                case _:
                    flow("reader", cb, 1)

    visit(statements(program.kernel.body), 1)
    for buffer in buffers:
        filled = edges.get((buffer.producer, buffer.name))
        drained = edges.get((buffer.name, "writer"))
        if buffer.producer == "compute":
            flow("compute", buffer.name, drained or buffer.block_pages)
        if buffer.consumer == "compute":
            flow(buffer.name, "compute", filled or buffer.block_pages)
    tensors = [GraphNode(layout.name, "tensor", layout.data_format) for layout in program.plan.layouts]
    kernels = [GraphNode(role, "kernel") for role in ("reader", "compute", "writer")]
    cb_nodes = [GraphNode(buffer.name, "circular_buffer", buffer.data_format) for buffer in buffers]
    return TileGraph(
        (*tensors, *kernels, *cb_nodes),
        tuple(GraphEdge(source, target, tiles) for (source, target), tiles in edges.items()),
    )


def tile_graph_with(graph: TileGraph | None, buffers: tuple[CircularBuffer, ...]) -> TileGraph | None:
    """The graph, extended by circular buffers that later passes added."""
    if graph is None:
        return None
    names = {node.name for node in graph.nodes}
    new = [buffer for buffer in buffers if buffer.name not in names]
    nodes = [GraphNode(buffer.name, "circular_buffer", buffer.data_format) for buffer in new]
    edges = [edge for buffer in new for edge in (GraphEdge("compute", buffer.name), GraphEdge(buffer.name, "compute"))]
    return TileGraph((*graph.nodes, *nodes), (*graph.edges, *edges))
