"""The graph of what a core does: tensors, reader, circular buffers, the operations of the compute kernel, writer.

The drawing is complete by itself. What the explorer makes of it, such as what is told of a node that is chosen, refers
to nodes, edges and frames by their numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ttexplore.ops.op import CB_SCOPE, DST_SCOPE
from ttexplore.plan import CircularBuffer, Plan
from ttexplore.record import StepRecord, Trace
from ttexplore.views.figures.cb_graph import MOMENT_STYLE, NOTE_OF_MOMENTS, cb_graph_svg, either
from ttexplore.views.figures.svg import arrow_marker, drawing, path, rectangle, text, tooltip
from ttexplore.views.flow.beside import (
    APART,
    CHARACTER_WIDTH,
    MARGIN,
    MOVER_WIDTH,
    TENSOR_WIDTH,
    TOP,
    Sizes,
    buffer_texts,
    chip,
    edge_width,
    movers,
    side_box,
    untouched_buffers,
)
from ttexplore.views.flow.facts import edge_facts, edge_title, node_facts, store_facts
from ttexplore.views.flow.graph import FlowEdge, FlowGraph, FlowNode, operation_graph, statement_graph
from ttexplore.views.flow.layout import (
    CHIP_HEIGHT,
    NODE_HEIGHT,
    SIDE_WIDTH,
    Box,
    PlacedGraph,
    laid_out,
)
from ttexplore.views.markup import content_id, escape, plural, shortened, visible

_LEGEND_LINE = 15
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


def flows_data(trace: Trace, plan: Plan) -> list[dict[str, Any]]:
    """The graphs of a lowering as the explorer wants them, each with the first step, among all with their parts, that
    it is true of: of kernel statements, and of tile operations once there are some, or of the circular buffers alone
    for a program that computes nothing."""
    flows: list[dict[str, Any]] = []
    steps = [(step, number) for step, number in _numbered(trace.steps) if step.error is None and _is_whole(step)]
    plain = [step for step, _ in steps if not _has_operations(step) and not _has_buffers(step)]
    if plain:
        flows.append({"step": 0, "words": "kernel statements", **_data(statement_graph(plain[-1].after), plan, False)})
    lowered = [(step, number) for step, number in steps if _has_operations(step)]
    graph = operation_graph(lowered[-1][0].after, plan.buffers) if lowered and plan.graph else None
    first = lowered[0][1] if lowered else 0
    if graph and graph.nodes:
        flows.append({"step": first, "words": "tile operations", **_data(graph, plan, True)})
    elif plan.graph and plan.buffers:
        svg = cb_graph_svg(plan, with_moments=True)
        flows.append(
            {"step": first, "words": "dataflow", "svg": svg, "nodes": [], "frames": [], "edges": [], "sides": {}}
        )
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
        "svg": _svg(graph, plan, buffers, with_kernels),
        "nodes": [
            {
                "title": visible(node.title),
                "line": node.origin,
                "frame": node.frame,
                "facts": node_facts(graph, node, buffers),
            }
            for node in graph.nodes
        ],
        "frames": [frame.parent for frame in graph.frames],
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


def _svg(graph: FlowGraph, plan: Plan, buffers: dict[str, CircularBuffer], with_kernels: bool) -> str:
    left = MARGIN + (TENSOR_WIDTH + APART + MOVER_WIDTH + APART if with_kernels else 0)
    layout = laid_out(graph, left, TOP)
    right = layout.inner.x + layout.inner.width
    rights = [box.x for name, box in layout.sides.items() if graph.sides[name] == "right"]
    out = max([right, *(x + SIDE_WIDTH for x in rights)])
    sizes = Sizes(left, out, out + (APART + MOVER_WIDTH + APART + TENSOR_WIDTH if with_kernels else 0) + MARGIN)
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
        label = shortened(frame.label, int((box.width - 50) / CHARACTER_WIDTH))
        shapes.append(
            f'<g class="loop" data-label="{number}">{tooltip(f"{frame.label}, line {frame.origin}")}'
            f"{text(box.x + 8, box.y + 16, '▾', 'halo')}{text(box.x + 22, box.y + 16, label, 'm', 'halo')}</g>"
        )
    for number, (node, box) in enumerate(zip(graph.nodes, layout.nodes, strict=True)):
        shapes.append(_node(graph, node, number, box, buffers))
    for name, box in layout.sides.items():
        shapes.append(side_box(graph, plan, name, box, buffers))
    bottom = layout.height
    if with_kernels:
        more, bottom = untouched_buffers(graph, plan, layout, sizes, arrow)
        shapes += [*movers(graph, plan, layout, sizes, arrow, bottom), *more]
    bottom += 16
    shapes.append(_legend(bottom, with_kernels))
    operations = plural(sum(not node.store for node in graph.nodes), "operation" if with_kernels else "statement")
    title = f"What a core does in {plan.kernel}" if with_kernels else f"Statements of {plan.kernel}"
    return drawing(
        identifier,
        title,
        f"{operations} and what flows between them",
        math.ceil(max(sizes.width, 620)),
        math.ceil(bottom + (2 if with_kernels else 1) * _LEGEND_LINE + 8),
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
    width = f' style="--w:{edge_width(tiles)}"'
    what = ", ".join(f"{name}: {plural(graph.memory[name].tiles, 'tile')}" for name in edge.stores)
    carried = ", in the next iteration" if edge.carried else ""
    return (
        f'<g class="flow" data-flow="{number}">{tooltip(f"{edge_title(graph, edge)}: {what}{carried}")}'
        f"{path(data, 'hit')}{path(data, *classes, extra=arrow + named + width)}</g>"
    )


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
    inside = int((box.width - 16) / CHARACTER_WIDTH)
    if node.store:
        content = buffer_texts(node.store, buffers.get(node.store), graph, box)
        buffer = f' data-buffer="{escape(node.store)}"' if node.store in buffers else ""
        return (
            f'<g class="node e-data" data-node="{number}"{buffer}>{tooltip(f"{node.store}: hands a block on")}'
            f"{rectangle(box.x + 0.5, box.y + 0.5, box.width - 1, box.height - 1, 'box', radius=9)}{content}</g>"
        )
    line = f"L{node.origin}" if node.origin else ""
    told = f"{node.title}, line {node.origin}: {node.told}"
    chips = "".join(
        chip(name, buffers.get(name), box.x + 10, box.y + NODE_HEIGHT - 4 + CHIP_HEIGHT * position, box.width - 18)
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


def _legend(y: float, with_kernels: bool) -> str:
    if not with_kernels:
        return text(
            MARGIN,
            y,
            "boxes: statements of a kernel line · arrows: blocks, as wide as their tiles; dashed: next iteration",
            "s",
        )
    x: float = MARGIN
    shapes: list[str] = []
    for engine, words in _ENGINES:
        shapes.append(f'<g class="e-{engine}">{rectangle(x, y - 9, 10, 10, "stripe", radius=2)}</g>')
        shapes.append(text(x + 15, y, words, "s", "t"))
        x += 24 + 6.4 * len(words)
    words = "round: circular buffer, pages × stages and size"
    shapes.append(text(x + 4, y, words, "s"))
    shapes.append(
        text(
            MARGIN,
            y + _LEGEND_LINE,
            "arrows: as wide as they have tiles; violet: in DST; dashed: to the next iteration",
            "s",
        )
    )
    shapes.append(f'<g class="now">{text(MARGIN, y + 2 * _LEGEND_LINE, NOTE_OF_MOMENTS, "s")}</g>')
    return "".join(shapes)
