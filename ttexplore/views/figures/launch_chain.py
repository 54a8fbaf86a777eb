"""The launches of a kernel one after another, and the tensors that go from each to those that read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ttexplore.views.figures.svg import arrow_marker, drawing, path, rectangle, text, tooltip
from ttexplore.views.launches import LaunchRow
from ttexplore.views.markup import content_id, shortened, visible

_CHARACTER, _MARGIN, _GAP = 7.2, 6, 34
_BOX_TOP, _BOX = 22, 24
_LANE = 17
_LONGEST = 40


def launch_chain_svg(kernel: str, rows: Sequence[LaunchRow]) -> str:
    """Launches from left to right, with what they read from outside above them; what nothing reads later, and what
    passes by other launches, below."""
    handed = _handed(rows)
    ways: dict[tuple[int, int], list[str]] = {}
    for tensor, source, reader in handed:
        ways.setdefault((source, reader), []).append(tensor)
    names = [f"{'✖ ' if row.failed else ''}{visible(row.name)}" for row in rows]
    inside = {(tensor, reader) for tensor, _, reader in handed}
    above = [_listed(name for name in row.reads if (name, number) not in inside) for number, row in enumerate(rows)]
    read = {(tensor, source) for tensor, source, _ in handed}
    below = [_listed(name for name in row.writes if (name, number) not in read) for number, row in enumerate(rows)]
    identifier = content_id("ttx-chain", repr(rows))
    shapes = [f"<defs>{arrow_marker(identifier + '-a')}</defs>"]
    arrow = f' marker-end="url(#{identifier}-a)"'
    x_next, lefts, widths = float(_MARGIN), list[float](), list[float]()
    for number, name in enumerate(names):
        lefts.append(x_next)
        widths.append(_CHARACTER * max(len(name), len(above[number]) + 2, len(below[number]) + 2) + 18)
        between = ways.get((number, number + 1), [])
        x_next += widths[-1] + (_CHARACTER * len(_listed(between)) + _GAP if between else _GAP)
    middle, bottom, lanes = _BOX_TOP + _BOX / 2, _BOX_TOP + _BOX, 0
    for (source, reader), tensors in ways.items():
        start, label = lefts[source] + widths[source], _listed(tensors)
        if reader == source + 1:
            way = f"M{start:g} {middle:g}H{lefts[reader] - 1:g}"
            told_of = text((start + lefts[reader]) / 2 - 4, middle - 5, label, "m", "s", anchor="middle")
        else:
            lanes += 1
            y = bottom + 14 + _LANE * lanes
            way = f"M{start - 12:g} {bottom:g}V{y:g}H{lefts[reader] + 12:g}V{bottom + 1:g}"
            told_of = text((start + lefts[reader]) / 2, y - 4, label, "m", "s", anchor="middle")
        told = tooltip(f"{', '.join(map(visible, tensors))}: from {names[source]} to {names[reader]}")
        shapes.append(f"<g>{told}{path(way, 'edge', extra=arrow)}{told_of}</g>")
    for number, row in enumerate(rows):
        x, width = lefts[number], widths[number]
        told = (
            f"{names[number]}: reads {', '.join(row.reads) or 'nothing'}; writes {', '.join(row.writes)}; {row.state}"
        )
        shapes.append(
            f'<g data-launch="{number}">{tooltip(visible(told))}'
            f"{rectangle(x + 0.5, _BOX_TOP + 0.5, width - 1, _BOX - 1, 'box', radius=4)}"
            f"{text(x + width / 2, middle + 4, names[number], 'm', 'b', anchor='middle')}</g>"
        )
        for words, y in ((above[number], _BOX_TOP - 7), (below[number], bottom + 13)):
            shapes.append(text(x + width / 2, y, f"↓ {words}", "m", "s", anchor="middle") if words else "")
    height = bottom + (18 if any(below) else 6) + (14 if lanes else 0) + _LANE * lanes
    description = "; ".join(f"{tensor} goes from {names[a]} to {names[b]}" for tensor, a, b in handed)
    return drawing(
        identifier,
        f"launches of {visible(kernel)}",
        description,
        round(x_next - _GAP + _MARGIN),
        height,
        "".join(shapes),
    )


def _handed(rows: Sequence[LaunchRow]) -> list[tuple[str, int, int]]:
    """Each tensor that a launch reads and an earlier one wrote last, with both."""
    writer: dict[str, int] = {}
    handed: list[tuple[str, int, int]] = []
    for number, row in enumerate(rows):
        handed += [(tensor, writer[tensor], number) for tensor in row.reads if tensor in writer]
        writer |= dict.fromkeys(row.writes, number)
    return handed


def _listed(tensors: Iterable[str]) -> str:
    return shortened(", ".join(map(visible, tensors)), _LONGEST)
