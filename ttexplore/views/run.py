"""The card that shows how a run went."""

from __future__ import annotations

import math

from ttexplore.views.markup import content_id, escape, paragraphs
from ttexplore.views.theme import fragment


def run_html(
    *, backend: str, passed: bool, pcc: float | None, max_rel_error: float | None, message: str = "",
    seconds: float | None = None,
) -> str:  # fmt: skip
    """The card as an HTML fragment. `pcc` and `max_rel_error` compare the outputs with the reference's.

    Times differ from run to run: give `seconds` only where the page need not stay the same.
    """
    verdict = '<span class="ok">✔</span> passed' if passed else '<span class="bad">✖</span> failed'
    figures = [("backend", backend)]
    if pcc is not None:
        figures.append(("PCC", correlation(pcc)))
    if max_rel_error is not None:
        figures.append(("max relative error", f"{max_rel_error:.3g}"))
    if seconds is not None:
        figures.append(("time", f"{seconds:.3g} s"))
    shown = "".join(
        f'<span><span class="q">{name}</span> <span class="m">{escape(value)}</span></span> ' for name, value in figures
    )
    note = f'<p class="pre">{paragraphs(message)}</p>' if message else ""
    card = (
        f'<div class="card {"good" if passed else "fault"}">'
        f'<div class="opts"><b>{verdict}</b> {shown}</div>{note}</div>'
    )
    label = f"run on {escape(backend)}: {'passed' if passed else 'failed'}"
    return fragment(content_id("ttx-run", card), label, card)


def correlation(pcc: float) -> str:
    """A correlation with six digits, rounded down, so that only 1 itself reads as 1."""
    return f"{math.floor(pcc * 1e6) / 1e6:.6f}" if math.isfinite(pcc) else str(pcc)
