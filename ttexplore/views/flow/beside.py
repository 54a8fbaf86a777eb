"""What stands beside the operations of a graph: circular buffers, reader and writer, tensors, and the transfers."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ttexplore.plan import CircularBuffer, Plan
from ttexplore.views.figures.cb_graph import doing, either, gauge, tiles_moved
from ttexplore.views.figures.svg import path, rectangle, text, tooltip
from ttexplore.views.flow.graph import FlowGraph
from ttexplore.views.flow.layout import BUFFER_HEIGHT, CHIP_HEIGHT, SIDE_HEIGHT, SIDE_WIDTH, Box, PlacedGraph
from ttexplore.views.markup import byte_size, escape, plural, shortened

MARGIN, APART = 4, 20
TENSOR_WIDTH, MOVER_WIDTH = 100, 58
TOP = 62
# So many characters fit into a box that is so wide: of the small code font, 6.7 pixels each.
CHARACTER_WIDTH = 6.8


@dataclass(frozen=True, slots=True)
class Sizes:
    """Where what is beside the kernel stands; there are no movers where no kernels are decided."""

    left: float
    right: float
    width: float


def edge_width(tiles: int) -> str:
    return f"{min(5.0, 1.25 + 0.6 * math.log2(max(1, tiles))):.2g}"


def chip(name: str, buffer: CircularBuffer | None, x: float, y: float, width: float) -> str:
    """A buffer that an operation fills and drains itself."""
    number = f"CB {buffer.index} " if buffer is not None and buffer.index is not None else ""
    shown = shortened(f"↻ {number}{name}", int((width - 8) / CHARACTER_WIDTH))
    frame = rectangle(x + 0.5, y + 0.5, width - 1, CHIP_HEIGHT - 3, "panel", radius=7)
    words = text(x + 7, y + 12, shown, "m", "s")
    if buffer is None:
        return f"<g>{frame}{words}</g>"
    now = gauge(buffer, x + 46, width - 46, y + 2) + text(x + 7, y + 12, shortened(name, 7), "m", "s")
    told = tooltip(f"{name}, filled and drained by this operation alone")
    return f'<g data-buffer="{escape(name)}">{told}{frame}{either(words, now)}</g>'


def buffer_texts(name: str, buffer: CircularBuffer | None, graph: FlowGraph, box: Box) -> str:
    middle = box.x + box.width / 2
    shown = shortened(name, int((box.width - 12) / 7.6))
    below = box.y + box.height / 2 + 12
    if buffer is None:
        store = graph.memory.get(name)
        words = f"{plural(store.tiles, 'tile')}, {store.dtype}" if store else ""
        return text(middle, box.y + box.height / 2 - 3, shown, "m", "b", anchor="middle") + text(
            middle, below, words, "s", anchor="middle"
        )
    number = "not numbered" if buffer.index is None else f"CB {buffer.index}"
    size = f"{number} · {buffer.block_pages} × {buffer.stages} · {byte_size(buffer.total_bytes)}"
    plain = text(middle, below, size, "s", anchor="middle")
    now = gauge(buffer, box.x, box.width, below - 8)
    return text(middle, box.y + box.height / 2 - 3, shown, "m", "b", anchor="middle") + either(plain, now)


def side_box(graph: FlowGraph, plan: Plan, name: str, box: Box, buffers: dict[str, CircularBuffer]) -> str:
    if name not in buffers:
        return tensor_box(plan, name, box.x, box.y, box.width, graph)
    buffer = buffers[name]
    return (
        f'<g class="node e-data" data-side="{escape(name)}" data-buffer="{escape(name)}">'
        f"{tooltip(f'{name}: {buffer.producer} fills it, {buffer.consumer} drains it')}"
        f"{rectangle(box.x + 0.5, box.y + 0.5, box.width - 1, box.height - 1, 'box', radius=9)}"
        f"{buffer_texts(name, buffer, graph, box)}</g>"
    )


def tensor_box(plan: Plan, name: str, x: float, y: float, width: float, graph: FlowGraph) -> str:
    store = graph.memory.get(name)
    shape = "×".join(map(str, store.shape)) if store else ""
    layout = next((layout for layout in plan.layouts if layout.name == name), None)
    role = layout.data_format if layout else ""
    middle, most = x + width / 2, int((width - 8) / 6.2)
    label = f"{name}: {layout.role if layout else 'tensor'} {shape}, {role}"
    return (
        f'<g class="node e-data" data-side="{escape(name)}">{tooltip(label)}'
        f"{rectangle(x + 0.5, y + 0.5, width - 1, SIDE_HEIGHT - 1, 'panel', radius=2)}"
        f"{text(middle, y + 15, shortened(name, int(most / 1.25)), 'm', 'b', anchor='middle')}"
        f"{text(middle, y + 29, shortened(shape, most), 's', anchor='middle')}"
        f"{text(middle, y + 43, shortened(role, most), 's', anchor='middle')}</g>"
    )


def movers(graph: FlowGraph, plan: Plan, layout: PlacedGraph, sizes: Sizes, arrow: str, bottom: float) -> list[str]:
    """Reader and writer, the tensors, and the edges between them and the buffers."""
    shapes: list[str] = []
    reader = MARGIN + TENSOR_WIDTH + APART
    writer = sizes.right + APART
    ends = {"left": (reader, MARGIN), "right": (writer, writer + MOVER_WIDTH + APART)}
    for side, (x, tensor_x) in ends.items():
        role = "reader" if side == "left" else "writer"
        names = [name for name, box in layout.sides.items() if graph.sides[name] == side and box]
        heights: dict[str, float] = {}
        for name in names:
            box, into = layout.sides[name], plan.buffer(name).producer != "compute"
            near, far = (x + MOVER_WIDTH, box.x) if side == "left" else (x, box.x + box.width)
            start, end, edge = (near, far, f"{role}>{name}") if into else (far, near, f"{name}>{role}")
            shapes.append(transfer_edge(plan, start, end, box.middle, edge, arrow))
            for source, target in graph.transfers:
                tensor = {source: target, target: source}.get(name)
                if tensor:
                    heights[tensor] = min(heights.get(tensor, box.middle), box.middle)
        least = TOP
        for tensor, wish in sorted(heights.items(), key=lambda item: (item[1], item[0])):
            y = max(least, wish - SIDE_HEIGHT / 2)
            least = y + SIDE_HEIGHT + 8
            shapes.append(tensor_box(plan, tensor, tensor_x, y, TENSOR_WIDTH, graph))
            stored = any(target == tensor for _, target in graph.transfers)
            loaded = any(source == tensor for source, _ in graph.transfers)
            near, far = (x, tensor_x + TENSOR_WIDTH) if side == "left" else (x + MOVER_WIDTH, tensor_x)
            if loaded:
                apart = SIDE_HEIGHT / 4 if stored else 0
                shapes.append(transfer_edge(plan, far, near, y + SIDE_HEIGHT / 2 + apart, f"{tensor}>{role}", arrow))
            if stored:
                apart = SIDE_HEIGHT / 4 if loaded else 0
                shapes.append(transfer_edge(plan, near, far, y + SIDE_HEIGHT / 2 - apart, f"{role}>{tensor}", arrow))
            bottom = max(bottom, y + SIDE_HEIGHT)
        middle = (layout.inner.y + bottom) / 2
        label = text(x + MOVER_WIDTH / 2, middle, role, "b", "t", anchor="middle")
        noc = text(x + MOVER_WIDTH / 2, middle + 15, "NoC 0" if side == "left" else "NoC 1", "s", "t", anchor="middle")
        shapes.append(
            f'<g data-kernel="{role}">{tooltip(f"{role} kernel")}'
            f"{rectangle(x + 0.5, layout.inner.y + 0.5, MOVER_WIDTH - 1, bottom - layout.inner.y - 1, 'box', radius=2)}"
            f"{either(label + noc, doing(role, x + MOVER_WIDTH / 2, middle))}</g>"
        )
    for heading, x, width in (
        ("DRAM", MARGIN, TENSOR_WIDTH),
        ("circular buffers, L1", sizes.left, SIDE_WIDTH),
        ("circular buffers, L1", sizes.right - SIDE_WIDTH, SIDE_WIDTH),
        ("DRAM", writer + MOVER_WIDTH + APART, TENSOR_WIDTH),
    ):
        shapes.append(text(x + width / 2, 18, heading, "s", "t", anchor="middle"))
    return shapes


def transfer_edge(plan: Plan, start: float, end: float, y: float, edge: str, arrow: str) -> str:
    source, _, target = edge.partition(">")
    edges = plan.graph.edges if plan.graph else ()
    counted = next((each for each in edges if (each.source, each.target) == (source, target)), None)
    width = f' style="--w:{edge_width((counted and counted.tiles_per_item) or 1)}"'
    label = f"{source} → {target}" + (f": {tiles_moved(counted)}" if counted else "")
    named = f' data-edge="{escape(source)}&gt;{escape(target)}"'
    return f"<g>{tooltip(label)}{path(f'M{start:g} {y:g}H{end:g}', 'edge', extra=arrow + named + width)}</g>"


def untouched_buffers(
    graph: FlowGraph, plan: Plan, layout: PlacedGraph, sizes: Sizes, arrow: str
) -> tuple[list[str], float]:
    """Buffers that no operation of this program touches, below it: those between reader and writer, and those that
    later steps add."""
    drawn = {
        *graph.sides,
        *(node.store for node in graph.nodes),
        *(name for node in graph.nodes for name in node.within),
    }
    shapes: list[str] = []
    y = layout.height + 16
    x = layout.inner.x
    added: list[CircularBuffer] = []
    for buffer in plan.buffers:
        if buffer.name in drawn:
            continue
        if buffer.producer == buffer.consumer == "compute":
            added.append(buffer)
            continue
        box = Box(x + (layout.inner.width - SIDE_WIDTH) / 2, y, SIDE_WIDTH, BUFFER_HEIGHT)
        reader, writer = MARGIN + TENSOR_WIDTH + APART + MOVER_WIDTH, sizes.right + APART
        for role, edge, at in (
            (buffer.producer, f"{buffer.producer}>{buffer.name}", 0),
            (buffer.consumer, f"{buffer.name}>{buffer.consumer}", 1),
        ):
            if role != "compute":
                mover = reader if role == "reader" else writer
                side = box.x if role == "reader" else box.x + box.width
                start, end = (mover, side) if at == 0 else (side, mover)
                shapes.append(transfer_edge(plan, start, end, box.middle, edge, arrow))
        shapes.append(side_box(graph, plan, buffer.name, box, {buffer.name: buffer}))
        y += BUFFER_HEIGHT + 10
    if added:
        shapes.append(text(x, y + 6, "for values that DST cannot keep, added by later steps:", "s"))
        y += 14
        columns = max(1, int((layout.inner.width + 10) // (SIDE_WIDTH + 10)))
        for position, buffer in enumerate(added):
            row, column = divmod(position, columns)
            box = Box(x + column * (SIDE_WIDTH + 10), y + row * (BUFFER_HEIGHT + 8), SIDE_WIDTH, BUFFER_HEIGHT)
            shapes.append(side_box(graph, plan, buffer.name, box, {buffer.name: buffer}))
        y += (1 + (len(added) - 1) // columns) * (BUFFER_HEIGHT + 8)
    return shapes, max(layout.height, y) if shapes else layout.height
