"""The launch grid with the core that does each work item: what a policy and an order look like."""

from __future__ import annotations

from ttexplore.plan import Partition, item_block, item_number, launch_extents
from ttexplore.views.figures.core_map import how
from ttexplore.views.figures.svg import drawing, text, tooltip
from ttexplore.views.markup import content_id, plural
from ttexplore.views.theme import heat_step

_CELL = 34
_SMALL_CELL = 14
_LEFT, _TOP = 30, 62
_LABELLED = "in each block: its core, and its position in that core's sequence; a shade for each core"
_SHADED = "a shade for each core; hover over a block for its core"
# Up to here a cell has room for its core and its turn.
_LARGEST_LABELLED = 300
_LARGEST_DRAWN = 4096


def work_map_svg(partition: Partition) -> str:
    """Each block of the grid, in its place, with its core's logical coordinates and in which turn the core does it.

    Neighbouring shades are cores that follow one another. Slices along z stand below one another; a grid of more than
    4,096 items is drawn as far as that.
    """
    columns, rows, slices = launch_extents(partition.grid)
    drawn = max(1, min(slices, _LARGEST_DRAWN // max(1, columns * rows)))
    columns_drawn = min(columns, _LARGEST_DRAWN)
    rows_drawn = min(rows, _LARGEST_DRAWN // max(1, columns_drawn))
    labelled = columns_drawn * rows_drawn * drawn <= _LARGEST_LABELLED
    cell = _CELL if labelled else _SMALL_CELL
    identifier = content_id("ttx-work", repr(partition))
    title = "Which core does which work item"
    grid = " × ".join(map(str, partition.grid))
    shapes = [
        text(2, 16, f"{grid} = {plural(partition.work_items, 'work item')}, {how(partition)}", "b", "t"),
        text(2, 33, _LABELLED if labelled else _SHADED, "s"),
        text(2, _TOP - 6, "by ↓" if slices == 1 else "bz·by ↓", "s"),
        text(_LEFT + columns_drawn * cell + 4, _TOP - 6, "← bx", "s"),
    ]
    step = max(1, -(-28 // cell))
    for x in range(0, columns_drawn, step):
        shapes.append(text(_LEFT + x * cell + cell / 2 - 1, _TOP - 6, str(x), "s", anchor="middle"))
    height = rows_drawn * cell + 12
    for z in range(drawn):
        for y in range(0, rows_drawn, step):
            label = f"{y}" if slices == 1 else f"{z}·{y}"
            shapes.append(text(_LEFT - 6, _TOP + z * height + y * cell + cell / 2 + 3, label, "s", anchor="end"))
    shown = [
        item_number(partition.grid, x, y, z)
        for z in range(drawn)
        for y in range(rows_drawn)
        for x in range(columns_drawn)
    ]
    for position, core in enumerate(partition.cores):
        shade = heat_step(position, max(1, len(partition.cores) - 1)) if len(partition.cores) > 1 else 2
        items = partition.items_of(core)
        # Evenly spaced items are not followed: there may be millions that are not drawn.
        spaced = isinstance(items, range)
        for order, item in (
            ((items.index(item), item) for item in shown if item in items) if spaced else enumerate(items)
        ):
            x, y, z = (*item_block(partition.grid, item), 0, 0)[:3]
            if z >= drawn or y >= rows_drawn or x >= columns_drawn:
                continue
            left, top = _LEFT + x * cell, _TOP + z * height + y * cell
            label = f"item {item}, block ({x}, {y}, {z}): core ({core.x}, {core.y}), position {order} in its sequence"
            square = f'<path class="f{shade}" d="M{left} {top}h{cell - 2}v{cell - 2}h-{cell - 2}z"/>'
            inside = ""
            if labelled:
                middle = left + (cell - 2) // 2
                inside = "".join(
                    f'<text class="n h{shade}" x="{middle}" y="{top + down}" style="font-size:{size}px">{shown}</text>'
                    for down, size, shown in ((14, 10, f"{core.x},{core.y}"), (26, 9, order))
                )
            shapes.append(f'<g data-core="{core.x},{core.y}">{tooltip(label)}{square}{inside}</g>')
    bottom = _TOP + drawn * height
    hidden = partition.work_items - columns_drawn * rows_drawn * drawn
    if hidden > 0:
        shapes.append(text(2, bottom + 10, f"{plural(hidden, 'more item')} not drawn", "s"))
    width = max(_LEFT + columns_drawn * cell + 36, 480)
    description = f"{plural(partition.work_items, 'work item')} on {plural(len(partition.cores), 'core')}"
    return drawing(identifier, title, description, width, bottom + (20 if hidden > 0 else 4), "".join(shapes))
