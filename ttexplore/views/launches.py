"""The launches of a kernel: what each reads and writes, and their explorers on one page with a chooser."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

from ttexplore.views.markup import content_id, escape, plural, visible
from ttexplore.views.terms import defined
from ttexplore.views.theme import fragment, html_style


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
    return fragment(content_id("ttx-launches", content), f"launches of {escape(kernel)}", content)


def _row(row: LaunchRow) -> str:
    mark, glyph = ("bad", "✖") if row.failed else ("ok", "✔")
    texts = (", ".join(row.reads), ", ".join(row.writes))
    cells = "".join(f'<td class="m">{escape(text)}</td>' for text in texts)
    state = f'<td><span class="{mark}">{glyph}</span> {escape(row.state)}</td>'
    return f'<tr><th scope="row">{escape(row.name)}</th>{cells}{state}</tr>'


_STYLE = """
body{margin:0;background:light-dark(#fff,#14171c)}
.chooser{padding:12px 12px 0}
.chooser input{position:absolute;opacity:0}
.chooser label{display:inline-block;padding:6px 12px;border:1px solid var(--ttx-line);border-radius:6px;cursor:pointer}
.chooser input:checked+label{border-color:currentColor;font-weight:600}
.chooser input:focus-visible+label{outline:2px solid}
.chooser iframe{display:none;width:100%;height:calc(100vh - 70px);border:0;margin-top:8px}
"""


def launches_page(kernel: str, target: str, pages: Sequence[tuple[str, str]]) -> str:
    """A page with the pages of the launches, by name, one of which is shown. It works offline and without scripts of
    its own."""
    title = escape(f"{kernel} on {target}")
    chosen = "".join(f"#shows_{n}:checked~#page_{n}{{display:block}}" for n, _ in enumerate(pages))
    choices = "".join(
        f'<input type="radio" name="launch" id="shows_{n}"{"" if n else " checked"}>'
        f'<label for="shows_{n}">{escape(name)}</label> '
        for n, (name, _) in enumerate(pages)
    )
    frames = "".join(
        f'<iframe id="page_{n}" title="{escape(name)}" srcdoc="{html.escape(page)}"></iframe>'
        for n, (name, page) in enumerate(pages)
    )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title} · ttexplore</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta name="color-scheme" content="light dark">{html_style()}<style>{_STYLE}{chosen}</style></head>'
        f'<body><main class="ttx chooser">{choices}{frames}</main></body></html>\n'
    )
