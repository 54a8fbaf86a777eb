"""The card that shows how a run went."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ttexplore.views.figures.error_map import STYLE as TINTS_STYLE
from ttexplore.views.figures.error_map import TileErrors, error_map_svg
from ttexplore.views.figures.ulp_histogram import histogram_axis_svg, histogram_svg
from ttexplore.views.markup import content_id, escape, paragraphs
from ttexplore.views.terms import defined
from ttexplore.views.theme import fragment

# On a narrow page the bars of a comparison stand below its figures.
_STYLE = f"""{TINTS_STYLE}
.ttx .sides-and-map{{display:flex;flex-wrap:wrap;align-items:flex-start;gap:14px 28px;margin-top:6px}}
.ttx .sides-and-map>*{{flex:none;max-width:100%}}
.ttx table.t.sides{{width:auto;margin:0;font:12px/1.4 var(--ttx-ui)}}
.ttx table.t.sides th,.ttx table.t.sides td{{padding:4px 14px 4px 0;text-align:right;white-space:nowrap;
vertical-align:bottom;font-weight:400;background:none;border:0;line-height:1.4;color:inherit}}
.ttx table.t.sides thead th{{color:var(--ttx-muted);padding-bottom:3px}}
.ttx table.t.sides tbody tr{{border-top:1px solid var(--ttx-line)}}
.ttx table.t.sides th:first-child{{text-align:left}}
.ttx table.t.sides td.m{{font:12px/1.4 var(--ttx-code);font-variant-numeric:tabular-nums}}
.ttx table.t.sides .bars{{display:block}}
.ttx table.t.sides .last{{padding-right:0;text-align:left}}
.ttx table.t.sides td.last{{padding-bottom:3px}}
@container (max-width:900px){{
.ttx table.t.sides{{display:block;width:100%}}
.ttx .sides thead,.ttx .sides tbody{{display:block}}
.ttx .sides tr{{display:grid;grid-template-columns:minmax(170px,1fr) 72px 92px 68px 68px 84px}}
.ttx table.t.sides tr>:is(th,td){{padding:4px 0 2px}}
.ttx table.t.sides tr>.last{{grid-column:1/-1;padding-bottom:5px}}
}}
@container (max-width:590px){{
.ttx .sides tr{{grid-template-columns:1fr 1.4fr 1fr 1fr 1fr}}
.ttx .sides th:first-child{{grid-column:1/-1}}
}}
"""


_VERDICTS: dict[bool | None, tuple[str, str, str]] = {
    True: ("✔", "ok", "passed"), False: ("✖", "bad", "failed"), None: ("○", "q", "not compared"),
}  # fmt: skip
_CARDS: dict[bool | None, str] = {True: "good", False: "fault", None: ""}


@dataclass(frozen=True, slots=True)
class SideFigures:
    """One comparison of a run: what with what, its measures, the number of elements in each class of error (the first
    class without an error), and the errors by tile, if they are to be drawn."""

    name: str
    passed: bool
    pcc: float
    max_rel_error: float
    max_ulp: float
    equal_share: float
    worst_tile: str
    histogram: tuple[tuple[str, int], ...]
    tiles: TileErrors | None = None


def run_html(
    *, backend: str, passed: bool | None, pcc: float | None, max_rel_error: float | None, message: str = "",
    time: str | None = None, sides: Sequence[SideFigures] = (), detailed: bool = False,
) -> str:  # fmt: skip
    """The card as an HTML fragment. `pcc` and `max_rel_error` compare the outputs with the reference's; `sides` are
    all comparisons of the run, drawn if there are several, the run failed, or it is to be `detailed`, with the first
    side's map of errors.

    `passed` is None for a run that was not compared. Times differ from run to run: give `time`, in words that say
    whose time it is, only where the page need not stay the same.
    """
    glyph, state, word = _VERDICTS[passed]
    verdict = f'<span class="{state}">{glyph}</span> {word}'
    compared = _sides(sides) if len(sides) > 1 or (sides and (detailed or not passed)) else ""
    figures = [("backend", backend)]
    # A table of the comparisons says it all.
    if pcc is not None and not compared:
        figures.append(("PCC", correlation(pcc)))
    if max_rel_error is not None and not compared:
        figures.append(("max relative error", f"{max_rel_error:.3g}"))
    if time is not None:
        figures.append(("", time))
    shown = "".join(
        f'<span><span class="q">{defined(name)}</span> <span class="m">{escape(value)}</span></span> '
        for name, value in figures
    )
    note = f'<p class="pre{" q" if passed and compared else ""}">{paragraphs(message)}</p>' if message else ""
    card = f'<div class="card {_CARDS[passed]}"><div class="opts"><b>{verdict}</b> {shown}</div>{note}{compared}</div>'
    label = f"run on {backend}: {word}"
    return fragment(content_id("ttx-run", card), label, card)


def _sides(sides: Sequence[SideFigures]) -> str:
    heads = ("compared", "PCC", "max relative error", "max ULP", "equal", "worst tile")
    head = "".join(f'<th scope="col">{defined(text)}</th>' for text in heads)
    axis = histogram_axis_svg([label for label, _ in sides[0].histogram])
    head += f'<th scope="col" class="last">{defined("elements by error in ULP")} {axis}</th>'
    rows = "".join(_row(side) for side in sides)
    table = f'<table class="t sides"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    tiles = sides[0].tiles
    drawn = f'<div class="scroll">{error_map_svg(tiles)}</div>' if tiles and any(map(any, tiles.errors)) else ""
    note = '<p class="q">Heights of bars are logarithmic; the numbers above them count elements.</p>'
    return f'<style>{_STYLE}</style><div class="sides-and-map"><div>{table}{note}</div>{drawn}</div>'


def _row(side: SideFigures) -> str:
    texts = (
        correlation(side.pcc), f"{side.max_rel_error:.2e}", f"{side.max_ulp:.1f}", f"{side.equal_share:.2%}",
        side.worst_tile,
    )  # fmt: skip
    cells = "".join(f'<td class="m">{escape(text)}</td>' for text in texts)
    bars = histogram_svg(side.histogram, passed=side.passed)
    return f'<tr><th scope="row">{escape(side.name)}</th>{cells}<td class="last">{bars}</td></tr>'


def correlation(pcc: float) -> str:
    """A correlation with six digits, rounded down, so that only 1 itself reads as 1."""
    return f"{math.floor(pcc * 1e6) / 1e6:.6f}" if math.isfinite(pcc) else str(pcc)
