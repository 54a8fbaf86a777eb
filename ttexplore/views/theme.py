"""One style for all views: twelve tokens over JupyterLab's theme variables, with fallbacks for light and dark pages.

Tints and coloured text are mixed from the theme's own surface and text colours, so they keep their contrast in any
theme. Hues are the Okabe-Ito palette; heat is cividis. Both are safe for colour-blind readers, and every colour goes
with a glyph, a hatch or a number.
"""

from __future__ import annotations

from pathlib import Path

from ttexplore.views.markup import escape

GREEN = "#009e73"
VERMILLION = "#d55e00"
BLUE = "#0072b2"
ORANGE = "#e69f00"
PURPLE = "#cc79a7"
SKY = "#56b4e9"

# Segments of a bar, in order. They repeat; numbers tell them apart.
CATEGORIES = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILLION)

# cividis in nine steps, dark to light, and the text colour that stands out on each (contrast 4.5:1 or better).
HEAT = ("#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#9b9377", "#bbab6b", "#e1cc55")
HEAT_TEXT = ("#ffffff", "#ffffff", "#ffffff", "#ffffff", "#ffffff", "#000000", "#000000", "#000000", "#000000")


def tokens_style(where: str = ".ttx,.ttx-svg") -> str:
    """The colours and fonts that all views share, as custom properties of what the selectors `where` name."""
    return f"""
{where}{{
--ttx-surface:var(--jp-layout-color0,#fff);--ttx-text:var(--jp-content-font-color1,#1f2328);
--ttx-muted:var(--jp-content-font-color2,#59636e);--ttx-line:var(--jp-border-color2,#d8dee4);
--ttx-code:var(--jp-code-font-family,ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace);
--ttx-ui:var(--jp-ui-font-family,system-ui,-apple-system,"Segoe UI",sans-serif);
--ttx-panel:color-mix(in srgb,var(--ttx-text) 4%,var(--ttx-surface));
--ttx-add:{GREEN};--ttx-remove:{VERMILLION};--ttx-change:{BLUE};--ttx-warn:{ORANGE};--ttx-note:{PURPLE};
color:var(--ttx-text);background:var(--ttx-surface)}}
@media (prefers-color-scheme:dark){{{where}{{
--ttx-surface:var(--jp-layout-color0,#14171c);--ttx-text:var(--jp-content-font-color1,#dfe3e8);
--ttx-muted:var(--jp-content-font-color2,#9aa4af);--ttx-line:var(--jp-border-color2,#333b45)}}}}
"""


def _rules(name: str) -> str:
    return "\n" + Path(__file__).with_name(name).read_text(encoding="utf-8")


_DRAWING = _rules("drawing.css") + "".join(
    f".ttx-svg .f{step}{{fill:{colour}}}.ttx-svg .h{step}{{fill:{ink}}}\n"
    for step, (colour, ink) in enumerate(zip(HEAT, HEAT_TEXT, strict=True))
)
_PAGE = _rules("page.css")


def svg_style() -> str:
    """The `<style>` element of a drawing that stands alone (in a file or an `<img>`) or inside a page."""
    return f"<style>{tokens_style()}{_DRAWING}</style>"


def html_style() -> str:
    """The `<style>` element of an HTML fragment; drawings inside it use it too."""
    return f"<style>{tokens_style()}{_DRAWING}{_PAGE}</style>"


def fragment(identifier: str, label: str, content: str) -> str:
    """A whole HTML fragment: one labelled region with its style. `label` is plain text, `content` is HTML."""
    head = f'<div class="ttx" id="{identifier}" role="region" aria-label="{escape(label)}">'
    return f"{head}{html_style()}{content}</div>\n"


def heat_step(value: int, largest: int) -> int:
    """The index into :data:`HEAT` of `value` on a scale from 0 to `largest`."""
    if largest <= 0:
        return 0
    return max(0, min(len(HEAT) - 1, (value * (len(HEAT) - 1) + largest // 2) // largest))
