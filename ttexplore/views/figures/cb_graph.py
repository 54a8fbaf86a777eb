"""The tile dataflow in swim lanes: DRAM, reader, circular buffers, compute, circular buffers, writer, DRAM.

The graph is small and typed, so its layout is fixed: no engine, the same bytes every time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from ttexplore.plan import CircularBuffer, GraphEdge, Plan, TensorLayout
from ttexplore.views.figures.svg import arrow_marker, drawing, path, rectangle, text, tooltip
from ttexplore.views.markup import byte_size, content_id, escape, plural, shortened

Item = TypeVar("Item")

_TENSOR, _MOVER, _BUFFER, _COMPUTE = 118, 64, 152, 200
_GAP = 40
_BOX = 58
_ROW = _BOX + 14
_TOP = 34
_MARGIN = 4

_X_TENSOR_IN = _MARGIN
_X_READER = _X_TENSOR_IN + _TENSOR + _GAP
_X_BUFFER_IN = _X_READER + _MOVER + _GAP
_X_COMPUTE = _X_BUFFER_IN + _BUFFER + _GAP
_X_BUFFER_OUT = _X_COMPUTE + _COMPUTE + _GAP
_X_WRITER = _X_BUFFER_OUT + _BUFFER + _GAP
_X_TENSOR_OUT = _X_WRITER + _MOVER + _GAP
_WIDTH = _X_TENSOR_OUT + _TENSOR + _MARGIN
_X_MIDDLE_BUFFER = _X_COMPUTE + (_COMPUTE - _BUFFER) // 2


@dataclass(frozen=True, slots=True)
class _Lanes:
    """What is drawn where: `tensors_out` and `buffers_out` are those at the writer, which may also load some;
    `loaded_out` are the tensors that it loads, `stored` those that it stores."""

    tensors_in: list[str]
    tensors_out: list[str]
    buffers_in: list[CircularBuffer]
    buffers_out: list[CircularBuffer]
    loops: list[CircularBuffer]
    through: list[CircularBuffer]
    loaded_out: list[str]
    stored: list[str]

    @property
    def rows(self) -> int:
        return max(1, len(self.tensors_in), len(self.tensors_out), len(self.buffers_in), len(self.buffers_out))


# What is true at a moment of a run: how full the buffers are, what the kernels do, which edge one of them waits at.
MOMENT_STYLE = """<style>
.ttx-svg .now,.ttx-svg.moment .plain{display:none}
.ttx-svg.moment .now{display:inline}
.ttx-svg .gauge{fill:var(--ttx-panel);stroke:var(--ttx-muted)}
.ttx-svg .held{fill:var(--ttx-change)}
.ttx-svg .pages{stroke:var(--ttx-surface);stroke-width:1}
.ttx-svg .waits>.box{stroke:var(--ttx-warn);stroke-width:2;
fill:color-mix(in srgb,var(--ttx-warn) 15%,var(--ttx-surface))}
.ttx-svg .waits .s{fill:currentColor}
.ttx-svg .done>.box{stroke:var(--ttx-line)}
.ttx-svg .done text{fill:var(--ttx-muted)}
.ttx-svg .edge.waited{stroke:color-mix(in srgb,var(--ttx-warn) 75%,var(--ttx-text));stroke-width:3;stroke-dasharray:6 3}
</style>"""
_NOTE = (
    "Grey: tensors. Square boxes: kernels. Round boxes: circular buffers, pages per block × stages × page size. "
    "Edges: tiles per work item."
)
NOTE_OF_MOMENTS = (
    "Bars: pages held / capacity. ▸ the kernel runs, ‖ it waits at the dashed orange edge, ■ it is done, "
    "✖ it waits forever."
)
# A gauge with more pages has no lines between them.
_MOST_PAGES_DRAWN = 24


def cb_graph_svg(plan: Plan, *, with_moments: bool = False) -> str:
    """The dataflow of one core. Numbers on the edges are tiles per work item.

    Tensors that the writer loads, and their buffers, are on its side. A buffer that compute fills and drains itself
    hangs below compute; one that the reader passes straight to the writer runs below both. A drawing `with_moments` has
    places for what is true at a moment of a run: the explorer fills them, and shows them by the class ``moment``.
    """
    if plan.graph is None:
        return _undecided(plan)
    plan = plan.on_chip
    assert plan.graph is not None
    lanes = _lanes(plan, plan.graph.edges)
    counts = {(edge.source, edge.target): edge for edge in plan.graph.edges}
    main_bottom = _TOP + lanes.rows * _ROW - 14
    loop_top = main_bottom + 26
    through_top = loop_top + len(lanes.loops) * _ROW if lanes.loops else main_bottom + 14
    bottom = through_top + len(lanes.through) * _ROW if lanes.through or lanes.loops else main_bottom + 14
    movers_bottom = bottom - 14 if lanes.through else main_bottom
    described = [buffer.described for buffer in plan.buffers]
    identifier = content_id("ttx-graph", repr(plan.graph), *described, repr(plan.layouts), repr(plan.compute))
    arrow = f' marker-end="url(#{identifier}-a)"'

    def flow(y: float, x1: float, x2: float, source: str, target: str) -> str:
        edge = counts.get((source, target))
        label = f"{source} → {target}" + (f": {tiles_moved(edge)}" if edge else "")
        number = f"{edge.tiles_per_item:,}" if edge and edge.tiles_per_item is not None else ""
        shown = text((x1 + x2) / 2 - 3, y - 5, number, "s", anchor="middle") if number else ""
        drawn = path(f"M{x1:g} {y:g}H{x2:g}", "edge", extra=arrow + named(source, target))
        return f"<g>{tooltip(label)}{drawn}{shown}</g>"

    def named(source: str, target: str) -> str:
        return f' data-edge="{escape(source)}&gt;{escape(target)}"' if with_moments else ""

    shapes = [f"<defs>{arrow_marker(identifier + '-a')}</defs>", _lane_headings()]
    if with_moments:
        shapes.append(MOMENT_STYLE)
    for name, y in _places(lanes.tensors_in, lanes.rows):
        shapes.append(_tensor(plan, name, _X_TENSOR_IN, y))
        shapes.append(flow(y + _BOX / 2, _X_TENSOR_IN + _TENSOR, _X_READER, name, "reader"))
    for buffer, y in _places(lanes.buffers_in, lanes.rows):
        shapes.append(_buffer(buffer, _X_BUFFER_IN, y, with_moments))
        shapes.append(flow(y + _BOX / 2, _X_READER + _MOVER, _X_BUFFER_IN, "reader", buffer.name))
        shapes.append(flow(y + _BOX / 2, _X_BUFFER_IN + _BUFFER, _X_COMPUTE, buffer.name, "compute"))
    for buffer, y in _places(lanes.buffers_out, lanes.rows):
        shapes.append(_buffer(buffer, _X_BUFFER_OUT, y, with_moments))
        if buffer.producer == "writer":
            shapes.append(flow(y + _BOX / 2, _X_WRITER, _X_BUFFER_OUT + _BUFFER, "writer", buffer.name))
            shapes.append(flow(y + _BOX / 2, _X_BUFFER_OUT, _X_COMPUTE + _COMPUTE, buffer.name, "compute"))
            continue
        shapes.append(flow(y + _BOX / 2, _X_COMPUTE + _COMPUTE, _X_BUFFER_OUT, "compute", buffer.name))
        shapes.append(flow(y + _BOX / 2, _X_BUFFER_OUT + _BUFFER, _X_WRITER, buffer.name, "writer"))
    for name, y in _places(lanes.tensors_out, lanes.rows):
        shapes.append(_tensor(plan, name, _X_TENSOR_OUT, y))
        apart = _BOX / 4 if name in lanes.stored and name in lanes.loaded_out else 0
        if name in lanes.stored:
            shapes.append(flow(y + _BOX / 2 - apart, _X_WRITER + _MOVER, _X_TENSOR_OUT, "writer", name))
        if name in lanes.loaded_out:
            shapes.append(flow(y + _BOX / 2 + apart, _X_TENSOR_OUT, _X_WRITER + _MOVER, name, "writer"))
    for position, buffer in enumerate(lanes.loops):
        y = loop_top + position * _ROW
        arrows = tuple(arrow + named(*edge) for edge in (("compute", buffer.name), (buffer.name, "compute")))
        shapes.append(_loop(buffer, y, main_bottom, len(lanes.loops) - position, len(lanes.loops), counts, arrows))
        shapes.append(_buffer(buffer, _X_MIDDLE_BUFFER, y, with_moments))
    for position, buffer in enumerate(lanes.through):
        y = through_top + position * _ROW
        shapes.append(_buffer(buffer, _X_MIDDLE_BUFFER, y, with_moments))
        shapes.append(flow(y + _BOX / 2, _X_READER + _MOVER, _X_MIDDLE_BUFFER, "reader", buffer.name))
        shapes.append(flow(y + _BOX / 2, _X_MIDDLE_BUFFER + _BUFFER, _X_WRITER, buffer.name, "writer"))
    shapes.append(_mover("reader", _X_READER, movers_bottom, with_moments))
    shapes.append(_mover("writer", _X_WRITER, movers_bottom, with_moments))
    shapes.append(_compute(plan, lanes, main_bottom, with_moments))
    notes = [_NOTE]
    drawn = _drawn(lanes)
    if missing := [
        f"{edge.source} → {edge.target}" for edge in plan.graph.edges if (edge.source, edge.target) not in drawn
    ]:
        notes.append("not drawn: " + ", ".join(missing))
    for position, note in enumerate(notes):
        line = text(_MARGIN, bottom + 8 + 15 * position, note, "s")
        now = with_moments and note is _NOTE
        shapes.append(either(line, text(_MARGIN, bottom + 8, NOTE_OF_MOMENTS, "s") if now else ""))
    description = f"{plural(len(plan.buffers), 'circular buffer')} between reader, compute and writer"
    return drawing(
        identifier, f"Tile dataflow of {plan.kernel}", description, _WIDTH, bottom + 15 * len(notes), "".join(shapes)
    )


def _undecided(plan: Plan) -> str:
    identifier = content_id("ttx-graph", plan.kernel)
    note = "Step C3 build_tile_dfg, which builds the tile dataflow graph, did not run."
    return drawing(identifier, f"Tile dataflow of {plan.kernel}", note, 480, 28, text(_MARGIN, 18, note, "s"))


def tiles_moved(edge: GraphEdge) -> str:
    return "tiles vary" if edge.tiles_per_item is None else f"{plural(edge.tiles_per_item, 'tile')} per work item"


def _lanes(plan: Plan, edges: tuple[GraphEdge, ...]) -> _Lanes:
    flows = [(edge.source, edge.target) for edge in edges]
    names = [layout.name for layout in plan.layouts]

    def between(producer: str, consumer: str) -> list[CircularBuffer]:
        return [buffer for buffer in plan.buffers if (buffer.producer, buffer.consumer) == (producer, consumer)]

    loaded_out = [name for name in names if (name, "writer") in flows]
    stored = [name for name in names if ("writer", name) in flows]
    return _Lanes(
        tensors_in=[name for name in names if (name, "reader") in flows],
        tensors_out=[name for name in names if name in loaded_out or name in stored],
        buffers_in=between("reader", "compute"),
        buffers_out=[*between("writer", "compute"), *between("compute", "writer")],
        loops=between("compute", "compute"),
        through=between("reader", "writer"),
        loaded_out=loaded_out,
        stored=stored,
    )


def _drawn(lanes: _Lanes) -> set[tuple[str, str]]:
    drawn = {(name, "reader") for name in lanes.tensors_in} | {(name, "writer") for name in lanes.loaded_out}
    drawn |= {("writer", name) for name in lanes.stored}
    for buffer in (*lanes.buffers_in, *lanes.buffers_out, *lanes.loops, *lanes.through):
        drawn |= {(buffer.producer, buffer.name), (buffer.name, buffer.consumer)}
    return drawn


def _places(items: list[Item], rows: int) -> list[tuple[Item, float]]:
    start = _TOP + (rows - len(items)) * _ROW / 2
    return [(item, start + position * _ROW) for position, item in enumerate(items)]


def _lane_headings() -> str:
    lanes = (
        ("DRAM", _X_TENSOR_IN, _TENSOR),
        ("NoC 0", _X_READER, _MOVER),
        ("circular buffers, L1", _X_BUFFER_IN, _BUFFER),
        ("FPU and SFPU", _X_COMPUTE, _COMPUTE),
        ("circular buffers, L1", _X_BUFFER_OUT, _BUFFER),
        ("NoC 1", _X_WRITER, _MOVER),
        ("DRAM", _X_TENSOR_OUT, _TENSOR),
    )
    return "".join(text(x + width / 2, 18, name, "s", "t", anchor="middle") for name, x, width in lanes)


def _tensor(plan: Plan, name: str, x: int, y: float) -> str:
    layout: TensorLayout = plan.layout(name)
    shape = " × ".join(str(extent) for extent in layout.shape)
    storage = f"{layout.data_format} {layout.page}s, {layout.memory} {layout.arrangement}"
    label = f"{name}: {layout.role} {shape} {layout.dtype}, {storage}"
    middle = x + _TENSOR / 2
    return (
        f"<g>{tooltip(label)}{rectangle(x + 0.5, y + 0.5, _TENSOR - 1, _BOX - 1, 'panel', radius=2)}"
        f"{text(middle, y + 19, shortened(name, 14), 'm', 'b', anchor='middle')}"
        f"{text(middle, y + 34, shortened(shape, 20), 's', anchor='middle')}"
        f"{text(middle, y + 48, shortened(f'{layout.role} · {layout.data_format}', 20), 's', anchor='middle')}</g>"
    )


def _buffer(buffer: CircularBuffer, x: int, y: float, with_moments: bool) -> str:
    number = "not numbered" if buffer.index is None else f"CB {buffer.index}"
    size = f"{buffer.block_pages} × {buffer.stages} × {byte_size(buffer.page_bytes)} = {byte_size(buffer.total_bytes)}"
    label = (
        f"{buffer.name}: {number}, {buffer.data_format}, {plural(buffer.pages, 'page')} of {buffer.page_bytes:,} B = "
        f"{buffer.total_bytes:,} B; {buffer.producer} fills it, {buffer.consumer} drains it"
        + (", unpacked to DST without rounding" if buffer.unpack_to_dest else "")
        + (f", rows of {plural(buffer.row_tiles, 'tile')}" if buffer.row_tiles else "")
        + (f"; allocated in line {buffer.origin.line}" if buffer.origin else "")
    )
    middle = x + _BUFFER / 2
    contents = gauge(buffer, x, _BUFFER, y + 40) if with_moments else ""
    return (
        f'<g data-buffer="{escape(buffer.name)}">{tooltip(label)}'
        f"{rectangle(x + 0.5, y + 0.5, _BUFFER - 1, _BOX - 1, 'box', radius=9)}"
        f"{text(middle, y + 19, shortened(buffer.name, 19), 'm', 'b', anchor='middle')}"
        f"{text(middle, y + 34, f'{number} · {buffer.data_format}', 's', anchor='middle')}"
        f"{either(text(middle, y + 48, size, 's', anchor='middle'), contents)}</g>"
    )


def either(plain: str, now: str) -> str:
    """What is drawn where no moment is shown, and what in its place at one; `now` is empty for a plain drawing."""
    return f'<g class="plain">{plain}</g><g class="now">{now}</g>' if now else plain


def gauge(buffer: CircularBuffer, x: float, width: float, y: float) -> str:
    """A bar for the pages that are held, as wide as those that the buffer has, and room for both numbers, in a box
    that is so wide."""
    left, top, bar, height = x + 10.5, y + 0.5, width - 68, 9
    step = bar / buffer.pages
    between = range(1, buffer.pages) if buffer.pages <= _MOST_PAGES_DRAWN else ()
    lines = "".join(f"M{left + step * page:g} {top + 0.5:g}v{height - 1}" for page in between)
    return (
        rectangle(left, top, bar, height, "gauge")
        + f'<rect class="held" x="{left:g}" y="{top:g}" width="0" height="{height}" data-page="{step:g}"/>'
        + path(lines, "pages")
        + text(x + width - 10, y + 9, "", "m", "s", anchor="end")
    )


def doing(name: str, middle_x: float, middle_y: float) -> str:
    """A kernel's name and below it two lines for what it does."""
    lines = "".join(text(middle_x, middle_y + below, "", "s", anchor="middle") for below in (6, 20))
    return text(middle_x, middle_y - 10, name, "b", "t", anchor="middle") + lines


def _loop(
    buffer: CircularBuffer, y: float, compute_bottom: float, channel: int, channels: int,
    counts: dict[tuple[str, str], GraphEdge], arrows: tuple[str, ...],
) -> str:  # fmt: skip
    """The edges from compute down into a buffer and back up, outside the buffers above it."""
    # The first buffer is the innermost: its edges run closest to the boxes.
    offset = 12 if channels == 1 else 5 + 17 * (channels - channel) / channels
    middle = y + _BOX / 2
    left, right = _X_MIDDLE_BUFFER - offset, _X_MIDDLE_BUFFER + _BUFFER + offset
    down = counts.get(("compute", buffer.name))
    up = counts.get((buffer.name, "compute"))
    into = path(f"M{left:g} {compute_bottom:g}V{middle:g}H{_X_MIDDLE_BUFFER}", "edge", extra=arrows[0])
    back = path(f"M{_X_MIDDLE_BUFFER + _BUFFER} {middle:g}H{right:g}V{compute_bottom:g}", "edge", extra=arrows[1])
    shown = ""
    if down and down.tiles_per_item is not None:
        shown += text(left - 5, middle - 3, f"{down.tiles_per_item:,}", "s", anchor="end")
    if up and up.tiles_per_item is not None:
        shown += text(right + 5, middle - 3, f"{up.tiles_per_item:,}", "s")
    label = f"compute → {buffer.name} → compute" + (f": {tiles_moved(down)}" if down else "")
    return f"<g>{tooltip(label)}{into}{back}{shown}</g>"


def _mover(role: str, x: int, bottom: float, with_moments: bool) -> str:
    middle = (_TOP + bottom) / 2
    name = text(x + _MOVER / 2, middle + 4, role, "b", "t", anchor="middle")
    return (
        f'<g data-kernel="{role}">{tooltip(f"{role} kernel")}'
        f"{rectangle(x + 0.5, _TOP + 0.5, _MOVER - 1, bottom - _TOP - 1, 'box')}"
        f"{either(name, doing(role, x + _MOVER / 2, middle) if with_moments else '')}</g>"
    )


def _compute(plan: Plan, lanes: _Lanes, bottom: float, with_moments: bool) -> str:
    idle = not (lanes.buffers_in or lanes.buffers_out or lanes.loops)
    lines: list[str] = []
    if idle:
        lines = ["moves no tiles"]
    elif plan.compute:
        config = plan.compute
        lines = [
            f"{config.math_fidelity} · {'fp32' if config.fp32_dest_acc_en else '16-bit'} DST",
            f"{plural(config.dst_tiles, 'DST tile')} · {config.accumulate}",
        ]
    label = "compute kernel" + ("".join(f"; {reason}" for reason in plan.compute.reasons) if plan.compute else "")
    middle, x = (_TOP + bottom) / 2 - 7 * len(lines), _X_COMPUTE + _COMPUTE / 2
    rows = "".join(text(x, middle + 19 + 15 * row, line, "s", "t", anchor="middle") for row, line in enumerate(lines))
    frame = rectangle(_X_COMPUTE + 0.5, _TOP + 0.5, _COMPUTE - 1, bottom - _TOP - 1, "box")
    name = text(x, middle + 4, "compute", "b", "t", anchor="middle")
    shown = either(name + rows, doing("compute", x, (_TOP + bottom) / 2) if with_moments else "")
    return f'<g data-kernel="compute">{tooltip(label)}{frame}{shown}</g>'
