"""Two lowerings side by side, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from ttexplore.views.markup import content_id, escape
from ttexplore.views.terminal import fold
from ttexplore.views.theme import fragment


def comparison_text(rows: Sequence[tuple[str, str, str]], columns: int = 0) -> str:
    """Rows of (what, first, second), those that differ with ``~``; cells take several lines where `columns` are few."""
    names = max(len(fact) for fact, _, _ in rows)
    widest = [max(len(row[side]) for row in rows) for side in (1, 2)]
    room = (columns - names - 6) // 2
    if columns and names + 6 + sum(widest) > columns:
        # What one side does not need is the other's.
        widest = [max(room, 2 * room - second) if first > room else first for first, second in (widest, widest[::-1])]
    lines: list[str] = []
    for fact, first, second in rows:
        cells = [fold(text, width).split("\n") for text, width in zip((first, second), widest, strict=True)]
        for number, (a, b) in enumerate(zip_longest(*cells, fillvalue="")):
            sign, name = ("~" if first != second else " ", fact) if number == 0 else ("", "")
            lines.append(f"{sign:<2}{name:<{names}}  {a:<{widest[0]}}  {b}".rstrip())
    return "\n".join(lines)


def comparison_html(rows: Sequence[tuple[str, str, str]]) -> str:
    """Rows of (what, first, second) as an HTML fragment; what differs is marked with ``~`` and in bold."""
    table = f'<table class="t facts" aria-label="two lowerings"><tbody>{"".join(map(_row, rows))}</tbody></table>'
    return fragment(content_id("ttx-compare", table), "two lowerings side by side", table)


def _row(row: tuple[str, str, str]) -> str:
    fact, first, second = map(escape, row)
    if first == second:
        return f'<tr><td></td><td>{fact}</td><td class="q">{first}</td><td class="q">{second}</td></tr>'
    glyph = '<span class="tilde" role="img" aria-label="differs">~</span>'
    return f"<tr><td>{glyph}</td><td>{fact}</td><td><b>{first}</b></td><td><b>{second}</b></td></tr>"
