"""The card that shows how a run went."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ttexplore.views.markup import content_id, escape, paragraphs
from ttexplore.views.theme import fragment

BAR_WIDTH, BAR_HEIGHT, BAR_GAP = 14, 19, 3


@dataclass(frozen=True, slots=True)
class SideFigures:
    """One comparison of a run: what with what, its measures, and the number of elements in each class of error."""

    name: str
    pcc: float
    max_rel_error: float
    max_ulp: float
    equal_share: float
    worst_tile: str
    histogram: tuple[tuple[str, int], ...]


def run_html(
    *, backend: str, passed: bool, pcc: float | None, max_rel_error: float | None, message: str = "",
    seconds: float | None = None, sides: Sequence[SideFigures] = (),
) -> str:  # fmt: skip
    """The card as an HTML fragment. `pcc` and `max_rel_error` compare the outputs with the reference's; `sides` are
    all comparisons of the run, drawn if there are several.

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
        f'<div class="opts"><b>{verdict}</b> {shown}</div>{note}{_sides(sides) if len(sides) > 1 else ""}</div>'
    )
    label = f"run on {escape(backend)}: {'passed' if passed else 'failed'}"
    return fragment(content_id("ttx-run", card), label, card)


def _sides(sides: Sequence[SideFigures]) -> str:
    heads = ("", "PCC", "max rel. error", "max ULP", "equal", "worst tile", "elements by ULP of error")
    head = "".join(f'<td class="q">{escape(text)}</td>' for text in heads)
    rows = "".join(
        f"<tr><td>{escape(side.name)}</td>"
        + "".join(
            f'<td class="m">{escape(text)}</td>'
            for text in (
                correlation(side.pcc), f"{side.max_rel_error:.2e}", f"{side.max_ulp:.1f}", f"{side.equal_share:.2%}",
                side.worst_tile,
            )
        )
        + f"<td>{_histogram(side.histogram)}</td></tr>"
        for side in sides
    )  # fmt: skip
    return f'<table class="t facts sides"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'


def _histogram(classes: Sequence[tuple[str, int]]) -> str:
    """Bars on a logarithmic scale, since a few large errors matter beside many small ones; an empty class is a dot."""
    most = max((count for _, count in classes), default=0)
    bars: list[str] = []
    for place, (label, count) in enumerate(classes):
        height = 2 + (BAR_HEIGHT - 2) * math.log1p(count) / math.log1p(most) if count else 1
        kind = "f2" if place == 0 else "f8" if label in ("more", "broken") else "f5"
        bars.append(
            f'<rect class="{kind if count else "tip"}" x="{place * (BAR_WIDTH + BAR_GAP)}" '
            f'y="{BAR_HEIGHT - height:.1f}" width="{BAR_WIDTH}" height="{height:.1f}">'
            f"<title>{escape(label)}: {count}</title></rect>"
        )
    told = ", ".join(f"{label}: {count}" for label, count in classes if count)
    width = len(classes) * (BAR_WIDTH + BAR_GAP)
    return (
        f'<svg class="ttx-svg" width="{width}" height="{BAR_HEIGHT}" role="img" aria-label="{escape(told)}">'
        f"{''.join(bars)}</svg>"
    )


def correlation(pcc: float) -> str:
    """A correlation with six digits, rounded down, so that only 1 itself reads as 1."""
    return f"{math.floor(pcc * 1e6) / 1e6:.6f}" if math.isfinite(pcc) else str(pcc)
