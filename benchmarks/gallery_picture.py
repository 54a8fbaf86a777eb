"""The small picture of a kernel of the gallery: what one core writes, and what this was made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from math import ceil, prod
from typing import Any

from ttexplore.exploration import Exploration
from ttexplore.plan import TensorLayout
from ttexplore.views.markup import escape
from ttexplore.views.runs.tile_history import page_index, tile_grid

READ, WRITTEN = "#2f81c1", "#dd7a12"
# Readable on white and on GitHub's dark page alike.
INK = "#6e7781"
_SIDE = 60
_LARGEST_CELL = 15.0
_LABEL, _GAP, _BETWEEN = 13, 2.0, 12
_ARROW, _ARROW_Y = 18, 24

Cell = tuple[int, int, int]


def picture(explored: Exploration, ran: Any) -> str:
    """The tensors of a kernel as matrices of tiles: orange is what the core writes that has written the last page of
    the first output, blue is all that this was made of."""
    layouts = sorted(explored.plan.layouts, key=lambda one: one.position)
    by_name = {one.name: one for one in layouts}
    first = next(one.name for one in layouts if one.role != "input")
    writes = _transfers(ran, "write", by_name)
    *_, core = max((cell, core) for name, cell, core in writes if name == first)
    written = _of_core(writes, core)
    # Tiles with parts of several cores were made of what all of these read.
    others = {(name, cell) for name, cell, own in writes if own != core}
    alone = [(name, cell) for name, cells in written.items() for cell in sorted(cells) if (name, cell) not in others]
    if not alone:
        read = _of_core(_transfers(ran, "read", by_name), core)
    else:
        read: dict[str, set[Cell]] = {}
        for output, cell in alone:
            history = explored.tile(output, *_index(by_name[output], cell))
            for pages in (history.pages, history.decided):
                for name, indices in pages.items():
                    found = {cell for index in indices for cell in _cells(by_name[name], index)}
                    read.setdefault(name, set()).update(found)
    inputs = [one for one in layouts if one.role != "output"]
    outputs = [one for one in layouts if one.role != "input"]
    return _drawn(explored.kernel.name, inputs, outputs, read, written)


def _transfers(ran: Any, operation: str, layouts: Mapping[str, TensorLayout]) -> set[tuple[str, Cell, int]]:
    """The cells that the cores read or write: the tensor, the cell, and the core's number."""
    events = ran.execution.events
    records = events.records[events.records["operation"] == events.operations.index(operation)]
    pages = zip(*((records[name]).tolist() for name in ("object", "amount", "core")), strict=True)
    found = {(events.tensors[of >> 8], page, core) for of, page, core in pages}
    return {
        (name, cell, core)
        for name, page, core in found
        for cell in _cells(layouts[name], page_index(layouts[name], page))
    }


def _of_core(transfers: Iterable[tuple[str, Cell, int]], core: int) -> dict[str, set[Cell]]:
    cells: dict[str, set[Cell]] = {}
    for name, cell, own in transfers:
        if own == core:
            cells.setdefault(name, set()).add(cell)
    return cells


def _shape(layout: TensorLayout) -> Cell:
    """Matrices, rows and columns of tiles."""
    *leading, rows, columns = (1, 1, *tile_grid(layout))
    return prod(leading), rows, columns


def _cells(layout: TensorLayout, index: tuple[int, ...]) -> Iterable[Cell]:
    """The cells of a page: its tile, or all tiles that its row of elements crosses."""
    *_, columns = _shape(layout)
    if layout.page == "tile" or len(layout.shape) < 2:
        *leading, row, column = (0, 0, *index)
        across = [column] if layout.page == "tile" else range(columns)
    else:
        *leading, row = (0, *index)
        row, across = row // 32, range(columns)
    matrix = 0
    lengths = layout.shape[:-2]
    for at, length in zip(leading[len(leading) - len(lengths) :], lengths, strict=True):
        matrix = matrix * length + at
    return [(matrix, row, one) for one in across]


def _index(layout: TensorLayout, cell: Cell) -> tuple[int, ...]:
    """A cell as an index of tiles."""
    matrix, row, column = cell
    leading: list[int] = []
    for length in reversed(layout.shape[:-2]):
        matrix, at = divmod(matrix, length)
        leading.append(at)
    return (*reversed(leading), row, column) if len(layout.shape) > 1 else (column,)


def _drawn(
    kernel: str, inputs: list[TensorLayout], outputs: list[TensorLayout], read: Mapping[str, set[Cell]],
    written: Mapping[str, set[Cell]],
) -> str:  # fmt: skip
    parts: list[str] = []
    x, bottom = 1.0, _ARROW_Y + 5.0
    for group, cells, colour in ((inputs, read, READ), (outputs, written, WRITTEN)):
        for layout in group:
            text, width, height = _tensor(layout, cells.get(layout.name, set()), x, colour)
            parts.append(text)
            x, bottom = x + max(width, 6.2 * len(layout.name)) + _BETWEEN, max(bottom, height)
        if group is inputs:
            parts.append(f'<path d="M{x:.0f} {_ARROW_Y}h{_ARROW - 8}m-4-4l4 4-4 4" fill="none" stroke="{INK}"/>')
            x += _ARROW
    width, height = ceil(x - _BETWEEN + 1), ceil(bottom + 1)
    title = f"What one core of {kernel} reads and writes"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img" font-family="sans-serif" font-size="10" fill="{INK}"><title>{escape(title)}</title>'
        f"{''.join(parts)}</svg>\n"
    )


def _tensor(layout: TensorLayout, cells: set[Cell], left: float, colour: str) -> tuple[str, float, float]:
    """The matrices of a tensor with its name above, and where they end."""
    matrices, rows, columns = _shape(layout)
    # As many matrices beside each other as make it nearly square.
    beside = min(matrices, max(1, round((matrices * rows / columns) ** 0.5)))
    below = ceil(matrices / beside)
    free = _SIDE - _GAP * (max(beside, below) - 1)
    cell = min(_LARGEST_CELL, free / (below * rows), free / (beside * columns))
    own_width, own_height = cell * columns, cell * rows
    frames, filled = "", ""
    for matrix in range(matrices):
        x = left + (own_width + _GAP) * (matrix % beside)
        y = _LABEL + (own_height + _GAP) * (matrix // beside)
        frames += f"M{x:.1f} {y:.1f}h{own_width:.1f}v{own_height:.1f}h-{own_width:.1f}z"
        for row in range(rows):
            marked = [column for column in range(columns) if (matrix, row, column) in cells]
            for _, run in groupby(enumerate(marked), lambda one: one[1] - one[0]):
                found = [column for _, column in run]
                width = cell * len(found)
                filled += f"M{x + cell * found[0]:.1f} {y + cell * row:.1f}h{width:.1f}v{cell:.1f}h-{width:.1f}z"
    text = f'<text x="{left:.0f}" y="9">{escape(layout.name)}</text>'
    if filled:
        text += f'<path d="{filled}" fill="{colour}"/>'
    text += f'<path d="{frames}" fill="none" stroke="{INK}" stroke-width=".8"/>'
    return text, beside * own_width + _GAP * (beside - 1), _LABEL + below * own_height + _GAP * (below - 1)
