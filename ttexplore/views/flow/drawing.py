"""The graph of what a core does: tensors, reader, circular buffers, the operations of the compute kernel, writer.

The drawing is complete by itself. What the explorer makes of it, such as what is told of a node that is chosen, refers
to nodes, edges and frames by their numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ttexplore.ops.op import CB_SCOPE, DST_SCOPE
from ttexplore.plan import CircularBuffer, Plan
from ttexplore.record import StepRecord, Trace
from ttexplore.views.figures.cb_graph import MOMENT_STYLE, doing, either, gauge
from ttexplore.views.figures.svg import arrow_marker, drawing, path, rectangle, text, tooltip
from ttexplore.views.flow.facts import edge_facts, edge_title, node_facts, store_facts
from ttexplore.views.flow.graph import FlowEdge, FlowGraph, FlowNode, operation_graph, statement_graph
from ttexplore.views.flow.layout import (
    BUFFER_HEIGHT,
    CHIP_HEIGHT,
    NODE_HEIGHT,
    SIDE_HEIGHT,
    SIDE_WIDTH,
    Box,
    PlacedGraph,
    laid_out,
)
from ttexplore.views.markup import byte_size, content_id, escape, plural, shortened, visible

_MARGIN, _APART = 4, 20
_TENSOR, _MOVER = 100, 58
_TOP = 62
_LEGEND_LINE = 15
# So many characters fit into a box that is so wide: of the small code font, 6.7 pixels each.
_CHARACTER = 6.8
_STYLE = """<style>
.ttx-svg .e-fpu{--engine:var(--ttx-change)}.ttx-svg .e-sfpu{--engine:var(--ttx-note)}
.ttx-svg .e-unpack{--engine:var(--ttx-add)}.ttx-svg .e-pack{--engine:var(--ttx-warn)}
.ttx-svg .e-data,.ttx-svg .e-statement{--engine:var(--ttx-muted)}
.ttx-svg .node>.box,.ttx-svg .stripe{fill:color-mix(in srgb,var(--engine) 12%,var(--ttx-surface));stroke:var(--engine)}
.ttx-svg .stripe{fill:var(--engine);stroke:none}
.ttx-svg .e-data>.box{fill:var(--ttx-surface)}
.ttx-svg .frame{fill:color-mix(in srgb,var(--ttx-text) 3%,transparent);stroke:var(--ttx-line)}
.ttx-svg .edge.dst{stroke:color-mix(in srgb,var(--ttx-note) 70%,var(--ttx-muted))}
.ttx-svg .edge[style]{stroke-width:var(--w)}
.ttx-svg .edge.carried{stroke-dasharray:5 3}
.ttx-svg .hit{stroke:transparent;stroke-width:9;fill:none}
.ttx-svg .halo{paint-order:stroke;stroke:var(--ttx-surface);stroke-width:5px;stroke-linejoin:round}
</style>"""
_ENGINES = (
    ("fpu", "FPU, products"),
    ("sfpu", "SFPU, elements"),
    ("unpack", "unpacker"),
    ("pack", "packer"),
)


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Where what is beside the kernel stands; there are no movers where no kernels are decided."""

    left: float
    right: float
    width: float


def flows_data(trace: Trace, plan: Plan) -> list[dict[str, Any]]:
    """The graphs of a lowering as the explorer wants them, each with the first step, among all with their parts, that
    it is true of: of kernel statements, and of tile operations once there are some."""
    flows: list[dict[str, Any]] = []
    steps = [(step, number) for step, number in _numbered(trace.steps) if step.error is None and _is_whole(step)]
    plain = [step for step, _ in steps if not _has_operations(step) and not _has_buffers(step)]
    if plain:
        flows.append({"step": 0, "words": "kernel statements", **_data(statement_graph(plain[-1].after), plan, False)})
    lowered = [(step, number) for step, number in steps if _has_operations(step)]
    if lowered and plan.graph:
        graph = operation_graph(lowered[-1][0].after, plan.buffers)
        if graph.nodes:
            flows.append({"step": lowered[0][1], "words": "tile operations", **_data(graph, plan, True)})
    return flows


def _numbered(steps: Sequence[StepRecord]) -> list[tuple[StepRecord, int]]:
    """The steps with their positions in a list in which parts follow their step."""
    numbered: list[tuple[StepRecord, int]] = []
    position = 0
    for step in steps:
        numbered.append((step, position))
        position += 1 + len(step.parts)
    return numbered


def _is_whole(step: StepRecord) -> bool:
    """Whether the program is not split into kernels yet."""
    return sum(line.text.startswith("def ") for line in step.after.lines) == 1


def _has_operations(step: StepRecord) -> bool:
    return any(line.text.lstrip().startswith("tt.") for line in step.after.lines)


def _has_buffers(step: StepRecord) -> bool:
    return any(line.text.endswith(f'"{CB_SCOPE}")') for line in step.after.lines)


def _data(graph: FlowGraph, plan: Plan, with_kernels: bool) -> dict[str, Any]:
    buffers = {buffer.name: buffer for buffer in plan.buffers} if with_kernels else {}
    return {
        "svg": _svg(graph, plan, with_kernels),
        "nodes": [
            {
                "title": visible(node.title),
                "line": node.origin,
                "frame": node.frame,
                "facts": node_facts(graph, node, buffers),
            }
            for node in graph.nodes
        ],
        "frames": [
            {"label": visible(frame.label), "line": frame.origin, "parent": frame.parent} for frame in graph.frames
        ],
        "edges": [
            {
                "title": edge_title(graph, edge),
                "ends": [edge.source, edge.target],
                "facts": [[visible(name), visible(value)] for name, value in edge_facts(graph, edge, buffers)],
            }
            for edge in graph.edges
        ],
        "sides": {
            visible(name): [[fact, visible(value)] for fact, value in store_facts(graph, name, buffers)]
            for name in graph.sides
        },
    }


# The drawing


def _svg(graph: FlowGraph, plan: Plan, with_kernels: bool) -> str:
    buffers = {buffer.name: buffer for buffer in plan.buffers} if with_kernels else {}
    left = _MARGIN + (_TENSOR + _APART + _MOVER + _APART if with_kernels else 0)
    layout = laid_out(graph, left, _TOP)
    right = layout.inner.x + layout.inner.width
    rights = [box.x for name, box in layout.sides.items() if graph.sides[name] == "right"]
    out = max([right, *(x + SIDE_WIDTH for x in rights)])
    sizes = _Sizes(left, out, out + (_APART + _MOVER + _APART + _TENSOR if with_kernels else 0) + _MARGIN)
    identifier = content_id(
        "ttx-flow", repr(graph), repr([buffer.described for buffer in plan.buffers]), str(with_kernels)
    )
    arrow = f' marker-end="url(#{identifier}-a)"'
    shapes = [f"<defs>{arrow_marker(identifier + '-a')}</defs>", _STYLE, MOMENT_STYLE if with_kernels else ""]
    shapes.append(_kernel_box(plan, layout, with_kernels))
    for number, box in enumerate(layout.frames):
        shapes.append(
            f'<g data-loop="{number}">{rectangle(box.x, box.y, box.width, box.height, "frame", radius=6)}</g>'
        )
    for number, (edge, route) in enumerate(zip(graph.edges, layout.routes, strict=True)):
        shapes.append(_edge(graph, edge, number, route, arrow, buffers))
    for number, (frame, box) in enumerate(zip(graph.frames, layout.frames, strict=True)):
        label = shortened(frame.label, int((box.width - 50) / _CHARACTER))
        shapes.append(
            f'<g class="loop" data-label="{number}">{tooltip(f"{frame.label}, line {frame.origin}")}'
            f"{text(box.x + 8, box.y + 16, '▾', 'halo')}{text(box.x + 22, box.y + 16, label, 'm', 'halo')}</g>"
        )
    for number, (node, box) in enumerate(zip(graph.nodes, layout.nodes, strict=True)):
        shapes.append(_node(graph, node, number, box, buffers))
    for name, box in layout.sides.items():
        shapes.append(_side(graph, plan, name, box, buffers))
    bottom = layout.height
    if with_kernels:
        more, bottom = _others(graph, plan, layout, sizes, arrow)
        shapes += [*_movers(graph, plan, layout, sizes, arrow, bottom), *more]
    bottom += 16
    shapes.append(_legend(bottom, with_kernels))
    operations = plural(sum(not node.store for node in graph.nodes), "operation" if with_kernels else "statement")
    title = f"What a core does in {plan.kernel}" if with_kernels else f"Statements of {plan.kernel}"
    return drawing(
        identifier,
        title,
        f"{operations} and what flows between them",
        math.ceil(max(sizes.width, 620)),
        math.ceil(bottom + _LEGEND_LINE + 8),
        "".join(shapes),
    )


def _kernel_box(plan: Plan, layout: PlacedGraph, with_kernels: bool) -> str:
    box = layout.inner
    if not with_kernels:
        return ""
    words = "compute"
    if plan.compute:
        config = plan.compute
        words = (
            f"compute · {config.math_fidelity} · {'fp32' if config.fp32_dest_acc_en else '16-bit'} DST of "
            f"{plural(config.dst_tiles, 'tile')}"
        )
    head = text(box.x + box.width / 2, box.y - 12, words, "b", "t", anchor="middle")
    now = (
        text(box.x + box.width / 2, box.y - 12, "compute", "b", "t", anchor="middle")
        + text(box.x + box.width / 2 + 40, box.y - 12, "", "s")
        + text(box.x + box.width / 2 + 110, box.y - 12, "", "s")
    )
    reasons = "".join(f"; {reason}" for reason in plan.compute.reasons) if plan.compute else ""
    return (
        f'<g data-kernel="compute">{tooltip(f"compute kernel{reasons}")}'
        f"{rectangle(box.x + 0.5, box.y + 0.5, box.width - 1, box.height - 1, 'box', radius=2)}{either(head, now)}</g>"
    )


def _edge(
    graph: FlowGraph,
    edge: FlowEdge,
    number: int,
    route: Sequence[tuple[float, float]],
    arrow: str,
    buffers: dict[str, CircularBuffer],
) -> str:
    scope = graph.memory[edge.stores[0]].scope
    tiles = max(graph.memory[name].tiles for name in edge.stores)
    classes = ["edge", *(["dst"] if scope == DST_SCOPE else []), *(["carried"] if edge.carried else [])]
    named = ""
    name = edge.stores[0]
    if name in buffers:
        into = edge.target == name or (isinstance(edge.target, int) and graph.nodes[edge.target].store == name)
        named = f' data-edge="{f"compute&gt;{escape(name)}" if into else f"{escape(name)}&gt;compute"}"'
    data = _line(route)
    width = f' style="--w:{_width(tiles)}"'
    what = ", ".join(f"{name}: {plural(graph.memory[name].tiles, 'tile')}" for name in edge.stores)
    carried = ", in the next iteration" if edge.carried else ""
    return (
        f'<g class="flow" data-flow="{number}">{tooltip(f"{edge_title(graph, edge)}: {what}{carried}")}'
        f"{path(data, 'hit')}{path(data, *classes, extra=arrow + named + width)}</g>"
    )


def _width(tiles: int) -> str:
    return f"{min(5.0, 1.25 + 0.6 * math.log2(max(1, tiles))):.2g}"


def _line(route: Sequence[tuple[float, float]]) -> str:
    """A path of horizontal and vertical parts."""
    data = f"M{route[0][0]:g} {route[0][1]:g}"
    for (x, y), (next_x, next_y) in pairwise(route):
        if next_x != x:
            data += f"H{next_x:g}"
        if next_y != y:
            data += f"V{next_y:g}"
    return data


def _node(graph: FlowGraph, node: FlowNode, number: int, box: Box, buffers: dict[str, CircularBuffer]) -> str:
    inside = int((box.width - 16) / _CHARACTER)
    if node.store:
        content = _buffer_texts(node.store, buffers.get(node.store), graph, box)
        buffer = f' data-buffer="{escape(node.store)}"' if node.store in buffers else ""
        return (
            f'<g class="node e-data" data-node="{number}"{buffer}>{tooltip(f"{node.store}: hands a block on")}'
            f"{rectangle(box.x + 0.5, box.y + 0.5, box.width - 1, box.height - 1, 'box', radius=9)}{content}</g>"
        )
    line = f"L{node.origin}" if node.origin else ""
    told = f"{node.title}, line {node.origin}: {node.told}"
    chips = "".join(
        _chip(name, buffers.get(name), box.x + 10, box.y + NODE_HEIGHT - 4 + CHIP_HEIGHT * position, box.width - 18)
        for position, name in enumerate(node.within)
    )
    return (
        f'<g class="node e-{node.engine}" data-node="{number}">{tooltip(told)}'
        f"{rectangle(box.x + 0.5, box.y + 0.5, box.width - 1, box.height - 1, 'box', radius=3)}"
        f"{rectangle(box.x, box.y, 5, box.height, 'stripe', radius=2)}"
        f"{text(box.x + 11, box.y + 17, shortened(node.title, 15), 'b')}"
        f"{text(box.x + box.width - 6, box.y + 17, line, 'm', 's', anchor='end')}"
        f"{text(box.x + 11, box.y + 33, shortened(node.result, inside), 'm', 's')}{chips}</g>"
    )


def _chip(name: str, buffer: CircularBuffer | None, x: float, y: float, width: float) -> str:
    """A buffer that an operation fills and drains itself."""
    number = f"CB {buffer.index} " if buffer is not None and buffer.index is not None else ""
    shown = shortened(f"↻ {number}{name}", int((width - 8) / _CHARACTER))
    frame = rectangle(x + 0.5, y + 0.5, width - 1, CHIP_HEIGHT - 3, "panel", radius=7)
    words = text(x + 7, y + 12, shown, "m", "s")
    if buffer is None:
        return f"<g>{frame}{words}</g>"
    now = gauge(buffer, x + 46, width - 46, y + 2) + text(x + 7, y + 12, shortened(name, 7), "m", "s")
    told = tooltip(f"{name}, filled and drained by this operation alone")
    return f'<g data-buffer="{escape(name)}">{told}{frame}{either(words, now)}</g>'


def _buffer_texts(name: str, buffer: CircularBuffer | None, graph: FlowGraph, box: Box) -> str:
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


def _side(graph: FlowGraph, plan: Plan, name: str, box: Box, buffers: dict[str, CircularBuffer]) -> str:
    if name not in buffers:
        return _tensor(plan, name, box.x, box.y, box.width, graph)
    buffer = buffers[name]
    return (
        f'<g class="node e-data" data-side="{escape(name)}" data-buffer="{escape(name)}">'
        f"{tooltip(f'{name}: {buffer.producer} fills it, {buffer.consumer} drains it')}"
        f"{rectangle(box.x + 0.5, box.y + 0.5, box.width - 1, box.height - 1, 'box', radius=9)}"
        f"{_buffer_texts(name, buffer, graph, box)}</g>"
    )


def _tensor(plan: Plan, name: str, x: float, y: float, width: float, graph: FlowGraph) -> str:
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


def _movers(graph: FlowGraph, plan: Plan, layout: PlacedGraph, sizes: _Sizes, arrow: str, bottom: float) -> list[str]:
    """Reader and writer, the tensors, and the edges between them and the buffers."""
    shapes: list[str] = []
    reader = _MARGIN + _TENSOR + _APART
    writer = sizes.right + _APART
    ends = {"left": (reader, _MARGIN), "right": (writer, writer + _MOVER + _APART)}
    for side, (x, tensor_x) in ends.items():
        names = [name for name, box in layout.sides.items() if graph.sides[name] == side and box]
        heights: dict[str, float] = {}
        for name in names:
            box, into = layout.sides[name], plan.buffer(name).producer != "compute"
            role = "reader" if side == "left" else "writer"
            near, far = (x + _MOVER, box.x) if side == "left" else (x, box.x + box.width)
            start, end, edge = (near, far, f"{role}>{name}") if into else (far, near, f"{name}>{role}")
            shapes.append(_flow(plan, start, end, box.middle, edge, arrow))
            for source, target in graph.transfers:
                tensor = {source: target, target: source}.get(name)
                if tensor:
                    heights[tensor] = min(heights.get(tensor, box.middle), box.middle)
        least = _TOP
        for tensor, wish in sorted(heights.items(), key=lambda item: (item[1], item[0])):
            y = max(least, wish - SIDE_HEIGHT / 2)
            least = y + SIDE_HEIGHT + 8
            shapes.append(_tensor(plan, tensor, tensor_x, y, _TENSOR, graph))
            stored = any(target == tensor for _, target in graph.transfers)
            loaded = any(source == tensor for source, _ in graph.transfers)
            near, far = (x, tensor_x + _TENSOR) if side == "left" else (x + _MOVER, tensor_x)
            role = "reader" if side == "left" else "writer"
            if loaded:
                apart = SIDE_HEIGHT / 4 if stored else 0
                shapes.append(_flow(plan, far, near, y + SIDE_HEIGHT / 2 + apart, f"{tensor}>{role}", arrow))
            if stored:
                apart = SIDE_HEIGHT / 4 if loaded else 0
                shapes.append(_flow(plan, near, far, y + SIDE_HEIGHT / 2 - apart, f"{role}>{tensor}", arrow))
            bottom = max(bottom, y + SIDE_HEIGHT)
        role = "reader" if side == "left" else "writer"
        middle = (layout.inner.y + bottom) / 2
        label = text(x + _MOVER / 2, middle, role, "b", "t", anchor="middle")
        noc = text(x + _MOVER / 2, middle + 15, "NoC 0" if side == "left" else "NoC 1", "s", "t", anchor="middle")
        shapes.append(
            f'<g data-kernel="{role}">{tooltip(f"{role} kernel")}'
            f"{rectangle(x + 0.5, layout.inner.y + 0.5, _MOVER - 1, bottom - layout.inner.y - 1, 'box', radius=2)}"
            f"{either(label + noc, doing(role, x + _MOVER / 2, middle))}</g>"
        )
    for heading, x, width in (
        ("DRAM", _MARGIN, _TENSOR),
        ("circular buffers, L1", sizes.left, SIDE_WIDTH),
        ("circular buffers, L1", sizes.right - SIDE_WIDTH, SIDE_WIDTH),
        ("DRAM", writer + _MOVER + _APART, _TENSOR),
    ):
        shapes.append(text(x + width / 2, 18, heading, "s", "t", anchor="middle"))
    return shapes


def _flow(plan: Plan, start: float, end: float, y: float, edge: str, arrow: str) -> str:
    source, _, target = edge.partition(">")
    edges = plan.graph.edges if plan.graph else ()
    tiles = next((each.tiles_per_item for each in edges if (each.source, each.target) == (source, target)), None)
    width = f' style="--w:{_width(tiles or 1)}"'
    label = f"{source} → {target}" + (f": {plural(tiles, 'tile')} per work item" if tiles else "")
    named = f' data-edge="{escape(source)}&gt;{escape(target)}"'
    return f"<g>{tooltip(label)}{path(f'M{start:g} {y:g}H{end:g}', 'edge', extra=arrow + named + width)}</g>"


def _others(graph: FlowGraph, plan: Plan, layout: PlacedGraph, sizes: _Sizes, arrow: str) -> tuple[list[str], float]:
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
        reader, writer = _MARGIN + _TENSOR + _APART + _MOVER, sizes.right + _APART
        for role, edge, at in (
            (buffer.producer, f"{buffer.producer}>{buffer.name}", 0),
            (buffer.consumer, f"{buffer.name}>{buffer.consumer}", 1),
        ):
            if role != "compute":
                mover = reader if role == "reader" else writer
                side = box.x if role == "reader" else box.x + box.width
                start, end = (mover, side) if at == 0 else (side, mover)
                shapes.append(_flow(plan, start, end, box.middle, edge, arrow))
        shapes.append(_side(graph, plan, buffer.name, box, {buffer.name: buffer}))
        y += BUFFER_HEIGHT + 10
    if added:
        shapes.append(text(x, y + 6, "for values that DST cannot keep, added by later steps:", "s"))
        y += 14
        columns = max(1, int((layout.inner.width + 10) // (SIDE_WIDTH + 10)))
        for position, buffer in enumerate(added):
            row, column = divmod(position, columns)
            box = Box(x + column * (SIDE_WIDTH + 10), y + row * (BUFFER_HEIGHT + 8), SIDE_WIDTH, BUFFER_HEIGHT)
            shapes.append(_side(graph, plan, buffer.name, box, {buffer.name: buffer}))
        y += (1 + (len(added) - 1) // columns) * (BUFFER_HEIGHT + 8)
    return shapes, max(layout.height, y) if shapes else layout.height


def _legend(y: float, with_kernels: bool) -> str:
    if not with_kernels:
        return text(
            _MARGIN,
            y,
            "boxes: statements of a kernel line · arrows: blocks, as wide as their tiles; dashed: next iteration",
            "s",
        )
    x: float = _MARGIN
    shapes: list[str] = []
    for engine, words in _ENGINES:
        shapes.append(f'<g class="e-{engine}">{rectangle(x, y - 9, 10, 10, "stripe", radius=2)}</g>')
        shapes.append(text(x + 15, y, words, "s", "t"))
        x += 24 + 6.4 * len(words)
    words = "round: circular buffer, pages × stages and size"
    shapes.append(text(x + 4, y, words, "s"))
    shapes.append(
        text(
            _MARGIN,
            y + _LEGEND_LINE,
            "arrows: as wide as they have tiles; violet: in DST; dashed: to the next iteration",
            "s",
        )
    )
    return "".join(shapes)
