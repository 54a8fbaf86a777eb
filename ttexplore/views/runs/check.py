"""The table that shows how the result after each step compares with the reference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ttexplore.views.markup import content_id, escape, paragraphs
from ttexplore.views.runs.run import correlation
from ttexplore.views.terms import defined
from ttexplore.views.theme import fragment


@dataclass(frozen=True, slots=True)
class CheckRow:
    """One executed step, or part of one, and how its result compares; `of_parts` where rows of its parts follow."""

    letter: str
    step: str
    passed: bool
    pcc: float
    max_rel_error: float
    message: str
    of_parts: bool = False


def check_html(rows: Sequence[CheckRow]) -> str:
    """The checked steps as an HTML fragment: one row each, with the reason below a step that is wrong. Rows of parts
    follow that of their step."""
    bad = next((row for row in rows if not row.passed and not row.of_parts), None)
    subject = "" if bad is None else f"{escape(bad.letter)} {escape(bad.step)} changes the result"
    if bad is not None and not bad.letter:
        subject = f"{escape(bad.step)} differs from your reference"
    verdict = (
        f'<span class="bad">✖</span> {subject}' if bad else '<span class="ok">✔</span> every step matches the reference'
    )
    heads = "".join(f'<th scope="col">{defined(text)}</th>' for text in ("", "step", "", "PCC", "max relative error"))
    table = (
        f'<table class="t facts" aria-label="checked steps"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(map(_row, rows))}</tbody></table>"
    )
    card = f'<div class="card {"fault" if bad else "good"}"><p><b>{verdict}</b></p>{table}</div>'
    return fragment(content_id("ttx-check", card), "checked steps", card)


def _row(row: CheckRow) -> str:
    glyph = '<span class="ok">✔</span>' if row.passed else '<span class="bad">✖</span>'
    error = f"{row.max_rel_error:.2e}" if math.isfinite(row.max_rel_error) else str(row.max_rel_error)
    cells = (glyph, escape(row.letter), escape(row.step), correlation(row.pcc), error)
    shown = "".join(f"<td>{cell}</td>" for cell in cells)
    fault = f'<tr><td></td><td colspan="4" class="pre">{paragraphs(row.message)}</td></tr>'
    why = "" if row.passed or row.of_parts else fault
    return f"<tr>{shown}</tr>{why}"
