"""The launches of a kernel: what each reads and writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ttexplore.views.markup import content_id, escape, plural, visible
from ttexplore.views.terms import defined
from ttexplore.views.theme import fragment


@dataclass(frozen=True, slots=True)
class LaunchRow:
    """One launch: its name, the tensors that it reads and writes, and how far its lowering came."""

    name: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    state: str
    failed: bool


_HEADS = ("launch of a kernel", "reads", "writes", "")


def launches_text(kernel: str, target: str, rows: Sequence[LaunchRow]) -> str:
    """The launches as a table."""
    cells = [_HEADS, *((row.name, ", ".join(row.reads), ", ".join(row.writes), row.state) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return "\n".join([f"{visible(kernel)}  {visible(target)}  {plural(len(rows), 'launch')}", "", *map(visible, lines)])


def launches_html(kernel: str, target: str, rows: Sequence[LaunchRow]) -> str:
    """The launches as an HTML fragment."""
    head = "".join(f'<th scope="col">{defined(name)}</th>' for name in _HEADS)
    body = "".join(_row(row) for row in rows)
    title = f"<h3>{escape(kernel)} on {escape(target)}: {plural(len(rows), 'launch')}, one after another</h3>"
    content = f'{title}<table class="t"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return fragment(content_id("ttx-launches", content), f"launches of {kernel}", content)


def _row(row: LaunchRow) -> str:
    mark, glyph = ("bad", "✖") if row.failed else ("ok", "✔")
    texts = (", ".join(row.reads), ", ".join(row.writes))
    cells = "".join(f'<td class="m">{escape(text)}</td>' for text in texts)
    state = f'<td><span class="{mark}">{glyph}</span> {escape(row.state)}</td>'
    return f'<tr><th scope="row">{escape(row.name)}</th>{cells}{state}</tr>'
