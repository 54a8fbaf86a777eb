"""What is told of a node or an edge of a flow graph that is chosen."""

from __future__ import annotations

from ttexplore.ops.op import DST_SCOPE
from ttexplore.plan import DATA_FORMATS, FORMAT_OF_DTYPE, CircularBuffer
from ttexplore.views.flow.graph import End, FlowEdge, FlowGraph, FlowNode
from ttexplore.views.flow.statements import Memory
from ttexplore.views.markup import byte_size, plural, visible

# Of a type that this version does not know, as a saved exploration may have it.
_USUAL_FORMAT = "Float16_b"


def node_facts(graph: FlowGraph, node: FlowNode, buffers: dict[str, CircularBuffer]) -> list[list[str]]:
    facts = store_facts(graph, node.store, buffers) if node.store else list(node.facts)
    for name in node.within:
        facts.append((f"through {name}", ", ".join(value for _, value in store_facts(graph, name, buffers))))
    return [[visible(name), visible(value)] for name, value in facts]


def store_facts(graph: FlowGraph, name: str, buffers: dict[str, CircularBuffer]) -> list[tuple[str, str]]:
    buffer = buffers.get(name)
    if buffer is not None:
        return [
            ("buffer", "not numbered" if buffer.index is None else f"CB {buffer.index}"),
            (
                "holds",
                f"{buffer.block_pages} × {buffer.stages} pages, {buffer.data_format}, {byte_size(buffer.total_bytes)}",
            ),
            ("from, to", f"{buffer.producer} → {buffer.consumer}"),
        ]
    store = graph.memory.get(name)
    return [("holds", f"{plural(store.tiles, 'tile')} of {store.dtype} in {_where(store)}")] if store else []


def edge_facts(graph: FlowGraph, edge: FlowEdge, buffers: dict[str, CircularBuffer]) -> list[tuple[str, str]]:
    facts: list[tuple[str, str]] = []
    for name in edge.stores:
        store = graph.memory[name]
        buffer = buffers.get(name)
        tiles = buffer.block_pages if buffer else store.tiles
        size = buffer.page_bytes * buffer.block_pages if buffer else _bytes(store)
        facts.append((name, f"{plural(tiles, 'tile')}, {byte_size(size)} in {_where(store)}"))
        if buffer:
            facts.append(
                (
                    "depth",
                    f"{plural(buffer.stages, 'block')} of {plural(buffer.block_pages, 'page')}: {buffer.producer} "
                    f"waits for room, {buffer.consumer} for tiles",
                )
            )
    if edge.carried:
        facts.append(("when", "in the next iteration"))
    return facts


def _where(store: Memory) -> str:
    return {DST_SCOPE: "DST", "tensor": "DRAM"}.get(store.scope, "L1")


def _bytes(store: Memory) -> int:
    return store.tiles * DATA_FORMATS[FORMAT_OF_DTYPE.get(store.dtype, _USUAL_FORMAT)].tile_bytes


def _name(graph: FlowGraph, end: End) -> str:
    if isinstance(end, str):
        return end
    node = graph.nodes[end]
    return node.store or f"{node.title} of line {node.origin}"


def edge_title(graph: FlowGraph, edge: FlowEdge) -> str:
    return visible(f"{_name(graph, edge.source)} → {_name(graph, edge.target)}")
