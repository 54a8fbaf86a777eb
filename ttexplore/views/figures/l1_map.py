"""Who uses the L1 of a core: a drawing with the headroom."""

from __future__ import annotations

from ttexplore.plan import CircularBuffer, Plan
from ttexplore.target import Target
from ttexplore.views.figures.svg import drawing, hatch_pattern, rectangle, text, tooltip
from ttexplore.views.markup import byte_size, content_id, plural, shortened
from ttexplore.views.theme import CATEGORIES

_WIDTH = 690
_BAR = 678
_LEFT = 6
_ROW = 20


# What the columns of a row hold, below the bar.
_HEADS = (
    (34, "CB", "end"), (46, "name", "start"), (250, "format", "start"), (414, "pages × stages × size", "end"),
    (486, "size", "end"), (500, "share of the largest", "start"),
)  # fmt: skip


def l1_used_bytes(plan: Plan) -> int:
    """The bytes of all circular buffers together."""
    return sum(buffer.total_bytes for buffer in plan.on_chip.buffers)


def l1_map_svg(plan: Plan, target: Target) -> str:
    """The usable L1 as one bar, cut into circular buffers, above a row for each buffer."""
    used, usable = l1_used_bytes(plan), target.l1_usable_bytes
    identifier = content_id("ttx-l1", *[buffer.described for buffer in plan.buffers], target.name, str(usable))
    scale = _BAR / max(used, usable)
    free = usable - used
    state = f"{byte_size(free)} free" if free >= 0 else f"over by {byte_size(-free)}"
    title = f"L1 per core: {byte_size(used)} of {byte_size(usable)} used ({100 * used / usable:.1f} %), {state}"
    shapes = [f"<defs>{hatch_pattern(identifier + '-h')}</defs>", text(_LEFT, 16, title, "b", "t")]
    shapes.append(rectangle(_LEFT, 26, usable * scale, 18, fill=f"url(#{identifier}-h)"))
    x = float(_LEFT)
    buffers = _ordered(plan)
    for position, buffer in enumerate(buffers):
        width = buffer.total_bytes * scale
        segment = rectangle(x, 26, max(width - 0.5, 0.5), 18, fill=CATEGORIES[position % len(CATEGORIES)])
        shapes.append(f"<g>{tooltip(_label(buffer))}{segment}</g>")
        x += width
    shapes.append(rectangle(_LEFT + 0.5, 26.5, usable * scale - 1, 17, "rule"))
    if free < 0:
        limit = _LEFT + usable * scale
        shapes.append(f'<path class="edge" d="M{limit:.1f} 22V50"/>')
        shapes.append(text(limit - 3, 58, "end of usable L1", "s", anchor="end"))
    largest = max((buffer.total_bytes for buffer in buffers), default=1)
    top = 84 if free >= 0 else 94
    shapes += [
        rectangle(_BAR - 26, top - 27, 10, 12, radius=2, fill=f"url(#{identifier}-h)"),
        rectangle(_BAR - 25.5, top - 26.5, 9, 11, "rule", radius=2),
        text(_BAR - 10, top - 18, "free", "s"),
        *(text(_LEFT + x, top - 18, head, "s", "t", anchor=anchor) for x, head, anchor in _HEADS),
    ]
    for position, buffer in enumerate(buffers):
        shapes.append(_row(buffer, position, top + position * _ROW, largest))
    if not buffers:
        shapes.append(text(_LEFT, top, "no circular buffers yet", "s"))
    height = top + max(len(buffers), 1) * _ROW - 8
    return drawing(identifier, f"L1 use of {plan.kernel}", title, _WIDTH, height, "".join(shapes))


def _ordered(plan: Plan) -> list[CircularBuffer]:
    return sorted(plan.on_chip.buffers, key=lambda buffer: (buffer.index is None, buffer.index or 0))


def _label(buffer: CircularBuffer) -> str:
    return f"{buffer.name}: {plural(buffer.pages, 'page')} of {buffer.page_bytes:,} B = {buffer.total_bytes:,} B"


def _row(buffer: CircularBuffer, position: int, y: int, largest: int) -> str:
    colour = CATEGORIES[position % len(CATEGORIES)]
    number = "–" if buffer.index is None else str(buffer.index)
    pages = f"{buffer.block_pages} × {buffer.stages} × {byte_size(buffer.page_bytes)}"
    return (
        f"<g>{tooltip(_label(buffer))}"
        f"{rectangle(_LEFT, y - 10, 10, 12, radius=2, fill=colour)}"
        f"{text(_LEFT + 34, y, number, 'm', anchor='end')}"
        f"{text(_LEFT + 46, y, shortened(buffer.name, 28), 'm')}"
        f"{text(_LEFT + 250, y, buffer.data_format, 's')}"
        f"{text(_LEFT + 414, y, pages, 's', anchor='end')}"
        f"{text(_LEFT + 486, y, byte_size(buffer.total_bytes), 'm', anchor='end')}"
        f"{rectangle(_LEFT + 500, y - 8, max(1, (_BAR - 500) * buffer.total_bytes / largest), 8, fill=colour)}</g>"
    )
