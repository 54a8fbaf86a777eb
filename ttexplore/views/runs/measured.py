"""Measured times beside predicted ones, as tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ttexplore.views.markup import content_id, escape
from ttexplore.views.theme import fragment

_HEAD = ("", "predicted", "measured", "ratio", "works", "waits")


@dataclass(frozen=True, slots=True)
class MeasuredTable:
    """The rows of a launch: a name, the predicted and the measured time, the first as a part of the second, and how
    long of the predicted time the processor works and waits."""

    title: str
    rows: tuple[tuple[str, ...], ...]


def measured_text(title: str, summary: str, launches: Sequence[MeasuredTable]) -> str:
    """The tables of all launches, one under the other."""
    lines = [title]
    for table in launches:
        lines += ["", table.title]
        for name, *cells in (_HEAD, *table.rows):
            lines.append(f"  {name:<16}{''.join(f'{cell:>12}' for cell in cells)}".rstrip())
    return "\n".join([*lines, "", summary])


def measured_html(title: str, summary: str, launches: Sequence[MeasuredTable]) -> str:
    """The same as an HTML fragment."""
    content = f'<div class="head"><h3>{escape(title)}</h3><span>{escape(summary)}</span></div>'
    head = "".join(f"<th>{escape(cell)}</th>" for cell in _HEAD)
    for table in launches:
        rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in table.rows)
        content += (
            f'<div class="scroll drawn"><p class="q">{escape(table.title)}</p>'
            f'<table class="t facts" aria-label="{escape(table.title)}"><thead><tr>{head}</tr></thead>'
            f"<tbody>{rows}</tbody></table></div>"
        )
    return fragment(content_id("ttx-measured", content), f"measured times of {title}", content)
