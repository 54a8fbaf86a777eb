"""What is told of a node or an edge of a flow graph that is chosen."""

from __future__ import annotations

from ttexplore.ops.op import CB_SCOPE, DST_SCOPE
from ttexplore.plan import CircularBuffer
from ttexplore.views.flow.graph import End, FlowEdge, FlowGraph, FlowNode, tiles_told
from ttexplore.views.markup import byte_size, plural, visible

_DST_BYTES = {"float32": 4096, "int32": 4096}
_DST_BYTES_16 = 2048


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
    return [("holds", tiles_told(store))] if store else []


def edge_facts(graph: FlowGraph, edge: FlowEdge, buffers: dict[str, CircularBuffer]) -> list[tuple[str, str]]:
    facts: list[tuple[str, str]] = []
    for name in edge.stores:
        store = graph.memory[name]
        buffer = buffers.get(name)
        tiles = buffer.block_pages if buffer else store.tiles
        size = buffer.page_bytes * buffer.block_pages if buffer else _bytes(graph, name)
        facts.append((name, f"{plural(tiles, 'tile')}, {byte_size(size)} {_where(store.scope)}"))
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


def _where(scope: str) -> str:
    return {CB_SCOPE: "in L1", DST_SCOPE: "in DST", "tensor": "in DRAM"}.get(scope, "in L1")


def _bytes(graph: FlowGraph, name: str) -> int:
    store = graph.memory[name]
    return store.tiles * _DST_BYTES.get(store.dtype, _DST_BYTES_16)


def _name(graph: FlowGraph, end: End) -> str:
    if isinstance(end, str):
        return end
    node = graph.nodes[end]
    return node.store or f"{node.title} of line {node.origin}"


def edge_title(graph: FlowGraph, edge: FlowEdge) -> str:
    return visible(f"{_name(graph, edge.source)} → {_name(graph, edge.target)}")
