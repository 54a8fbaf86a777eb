"""Where a result is wrong: the largest error of each tile of an output."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ttexplore.views.figures.svg import drawing, path, rectangle, text
from ttexplore.views.markup import content_id, plural, shortened

# Larger outputs are drawn with several tiles to a cell.
LARGEST_CELLS = 32
TINTS = 8

_SIDE, _LARGEST_CELL = 160, 20
_LEFT, _TOP, _LEGEND_HEIGHT = 24, 64, 48
_WIDTH = 246
_LONGEST_NAME = 40
_LEGEND_CELL = 12

# Tints are mixed from the page's own surface, so that on light and dark pages small errors recede and large ones
# stand out, by their lightness alone.
_SHARES = (12, 22, 33, 45, 57, 70, 84, 100)
STYLE = (
    "\n.ttx-svg{--hue:var(--ttx-change)}.ttx-svg.beyond,.ttx-svg .beyond{--hue:var(--ttx-remove)}"
    "\n.ttx-svg .x0{fill:color-mix(in srgb,var(--ttx-text) 26%,var(--ttx-surface))}"
    + "".join(
        f"\n.ttx-svg .x{step}{{fill:color-mix(in srgb,var(--hue) {share}%,var(--ttx-surface))}}"
        for step, share in enumerate(_SHARES, 1)
    )
    + "\n.ttx-svg .broken{fill:var(--ttx-text)}"
    "\n.ttx-svg .none{fill:var(--ttx-line)}"
    "\n.ttx-svg .frame{fill:none;stroke:var(--ttx-line)}"
    "\n.ttx-svg .ring{fill:none;stroke:var(--ttx-text);stroke-width:1.5}"
    "\n.ttx-svg .cross{fill:none;stroke:var(--ttx-surface);stroke-width:1.25}"
    "\n.ttx-svg .c,.ttx-svg .r{font-size:9.5px;text-anchor:middle;fill:var(--ttx-muted)}"
    "\n.ttx-svg .r{text-anchor:end}\n"
)


@dataclass(frozen=True, slots=True)
class TileErrors:
    """The largest absolute error of each tile of an output, `errors[tile row][tile column]`; infinite where an element
    is broken (not finite though it should be). `name` says which output or slice of it this is, as "C", `place`
    the same in numbers: the output and its leading indices. An error beyond `bound` is too large; where the comparison
    passed, none is."""

    name: str
    errors: Sequence[Sequence[float]]
    bound: float = math.inf
    place: tuple[int, ...] = (0,)


def error_map_svg(tiles: TileErrors) -> str:
    """The map of errors: a cell for each tile, or for square blocks of tiles where there are more than 32 in a row or
    column, then with the largest error of the block. The worst cell has a ring, a broken one a cross, an equal one no
    colour. The scale is linear from 0 to the largest finite error; only what is beyond the bound has a hue of alarm."""
    block, cells = _cells(tiles.errors)
    rows, columns = len(cells), max((len(row) for row in cells), default=0)
    if not rows or not columns:
        raise ValueError(f"{tiles.name} has no tiles to draw")
    largest = max((error for row in cells for error in row if math.isfinite(error)), default=0.0)
    size = max(5, min(_LARGEST_CELL, _SIDE // max(rows, columns)))
    groups: dict[str, list[str]] = {}
    crosses: list[str] = []
    for row, errors in enumerate(cells):
        for column, error in enumerate(errors):
            x, y = _LEFT + column * size, _TOP + row * size
            d, tile = f"M{x} {y}h{size - 1}v{size - 1}H{x}z", _worst_of(tiles, row, column, block)
            shape = f'<path d="{d}" data-tile="{tile}"><title>{_place(row, column, block)}: '
            groups.setdefault(_tint(error, largest, tiles.bound), []).append(f"{shape}{_number(error)}</title></path>")
            if math.isinf(error):
                crosses.append(_cross(x, y, size))
    shapes = [
        text(2, 13, "largest error per tile", "b"),
        text(2, 29, shortened(tiles.name, _LONGEST_NAME), "s"),
        text(2, 44, _worst(tiles, block), "s"),
    ]
    shapes += _axes(rows, columns, size, block)
    shapes.append(
        path(f"M{_LEFT - 1.5} {_TOP - 1.5}h{columns * size + 2}v{rows * size + 2}h-{columns * size + 2}z", "frame")
    )
    shown = "".join(f'<g class="{style}">{"".join(shapes)}</g>' for style, shapes in sorted(groups.items()))
    shapes.append(f'<g data-place="{",".join(map(str, tiles.place))}">{shown}</g>')
    if crosses:
        shapes.append(path("".join(crosses), "cross", extra=' pointer-events="none"'))
    shapes.append(_ring(cells, size))
    height = _TOP + rows * size + _LEGEND_HEIGHT
    shapes.append(_legend(largest, tiles.bound, _TOP + rows * size + 12, bool(crosses)))
    content = f"<style>{STYLE}</style>{''.join(shapes)}"
    return drawing(
        content_id("ttx-errors", content),
        f"Largest error per tile, {tiles.name}",
        summary(tiles),
        _WIDTH,
        height,
        content,
    )


def summary(tiles: TileErrors) -> str:
    """``8 × 8 tiles, 60 of them equal; worst tile (3, 4): 1.2e-03``, and how many hold broken elements."""
    every = [error for row in tiles.errors for error in row]
    equal, broken = every.count(0.0), sum(map(math.isinf, every))
    columns = max((len(row) for row in tiles.errors), default=0)
    told = f"{len(tiles.errors)} × {columns} tiles, {equal if equal < len(every) else 'all'} of them equal"
    if equal < len(every):
        row, column = _worst_place(tiles.errors)
        told += f"; worst tile ({row}, {column}): {_number(tiles.errors[row][column])}"
    if broken:
        told += f"; {plural(broken, 'tile')} with elements that are not finite"
    return told


def _cells(errors: Sequence[Sequence[float]]) -> tuple[int, list[list[float]]]:
    """The side of a block in tiles, and the largest error of each block."""
    columns = max((len(row) for row in errors), default=0)
    block = max(1, math.ceil(max(len(errors), columns) / LARGEST_CELLS))
    return block, [
        [
            max(error for row in errors[top : top + block] for error in row[left : left + block])
            for left in range(0, columns, block)
        ]
        for top in range(0, len(errors), block)
    ]


def _worst_place(errors: Sequence[Sequence[float]]) -> tuple[int, int]:
    cells = ((row, column) for row, line in enumerate(errors) for column in range(len(line)))
    return max(cells, key=lambda cell: errors[cell[0]][cell[1]])  # the first of several


def _worst_of(tiles: TileErrors, row: int, column: int, block: int) -> str:
    """The row and column of the tile with the largest error in a cell."""
    errors = [line[column * block : (column + 1) * block] for line in tiles.errors[row * block : (row + 1) * block]]
    down, right = _worst_place(errors)
    return f"{row * block + down},{column * block + right}"


def _worst(tiles: TileErrors, block: int) -> str:
    row, column = _worst_place(tiles.errors)
    error = tiles.errors[row][column]
    worst = f"worst ({row}, {column}): {_number(error)}" if error else "every tile is equal"
    return worst + (f"; a cell is {block}×{block} tiles" if block > 1 else "")


def _tint(error: float, largest: float, bound: float) -> str:
    if math.isinf(error):
        return "broken"
    tint = f"x{max(1, math.ceil(TINTS * error / largest))}" if error else "surface"
    return f"{tint} beyond" if error > bound else tint


def _number(error: float) -> str:
    if math.isinf(error):
        return "not finite"
    return f"{error:.2g}" if error else "equal"


def _place(row: int, column: int, block: int) -> str:
    if block == 1:
        return f"({row}, {column})"
    return f"from ({row * block}, {column * block})"


def _cross(x: int, y: int, size: int) -> str:
    inset = size / 4
    reach = size - 1 - 2 * inset
    return f"M{x + inset:g} {y + inset:g}l{reach:g} {reach:g}m0-{reach:g}l-{reach:g} {reach:g}"


def _ring(cells: Sequence[Sequence[float]], size: int) -> str:
    row, column = _worst_place(cells)
    if not cells[row][column]:
        return ""
    x, y = _LEFT + column * size - 0.5, _TOP + row * size - 0.5
    return path(f"M{x} {y}h{size}v{size}h-{size}z", "ring", extra=' pointer-events="none"')


def _axes(rows: int, columns: int, size: int, block: int) -> list[str]:
    """Tile numbers of the first and the last cell of each direction."""
    shapes = [
        text(_LEFT + (column + 0.5) * size, _TOP - 6, str(column * block), "c") for column in sorted({0, columns - 1})
    ]
    return shapes + [
        text(_LEFT - 5, _TOP + (row + 0.5) * size + 3, str(row * block), "r") for row in sorted({0, rows - 1})
    ]


def _legend(largest: float, bound: float, y: int, broken: bool) -> str:
    x = _LEFT
    shapes: list[str] = []
    if largest:
        shapes.append(text(x, y + 8, "0", "s"))
        x += 11
        for step in range(1, TINTS + 1):
            error = largest * step / TINTS
            shapes.append(rectangle(x, y, _LEGEND_CELL, 8, _tint(error, largest, bound)))
            x += _LEGEND_CELL
        shapes.append(text(x + 5, y + 8, f"{largest:.2g}", "s"))
        x += 48
    if broken:
        shapes.append(rectangle(x, y - 1, 10, 10, "broken"))
        shapes.append(path(_cross(x, y - 1, 11), "cross"))
        shapes.append(text(x + 14, y + 8, "not finite", "s"))
    if largest or broken:
        shapes.append(path(f"M{_LEFT + 1} {y + 17}h9v9h-9z", "ring"))
        shapes.append(text(_LEFT + 16, y + 26, "worst", "s"))
    if largest > bound:
        x = _LEFT + 58
        # A bound of 0 allows no error: what is within it has no colour.
        names = (("within", ""), (f"beyond {bound:.2g}", " beyond")) if bound else (("not equal", " beyond"),)
        for name, hue in names:
            shapes.append(rectangle(x, y + 17, 10, 10, f"x{TINTS // 2}{hue}"))
            shapes.append(text(x + 14, y + 26, name, "s"))
            x += 56
    return "".join(shapes)
