"""Two lowerings side by side, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from ttexplore.views.markup import content_id, escape
from ttexplore.views.theme import fragment


def comparison_html(rows: Sequence[tuple[str, str, str]]) -> str:
    """Rows of (what, first, second) as an HTML fragment; what differs is marked with ``~`` and in bold."""
    table = f'<table class="t facts" aria-label="two lowerings"><tbody>{"".join(map(_row, rows))}</tbody></table>'
    return fragment(content_id("ttx-compare", table), "two lowerings side by side", table)


def _row(row: tuple[str, str, str]) -> str:
    what, first, second = map(escape, row)
    if first == second:
        return f'<tr><td></td><td>{what}</td><td class="q">{first}</td><td class="q">{second}</td></tr>'
    glyph = '<span class="tilde" role="img" aria-label="differs">~</span>'
    return f"<tr><td>{glyph}</td><td>{what}</td><td><b>{first}</b></td><td><b>{second}</b></td></tr>"
