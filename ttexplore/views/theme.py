"""One style for all views: twelve tokens over JupyterLab's theme variables, with fallbacks for light and dark pages.

Tints and coloured text are mixed from the theme's own surface and text colours, so they keep their contrast in any
theme. Hues are the Okabe-Ito palette; heat is cividis. Both are safe for colour-blind readers, and every colour goes
with a glyph, a hatch or a number.
"""

from __future__ import annotations

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


_SVG = """
.ttx-svg text{font:12px var(--ttx-ui);fill:currentColor}
.ttx-svg .m{font-family:var(--ttx-code)}
.ttx-svg .b{font-weight:600}
.ttx-svg .s{font-size:11px;fill:var(--ttx-muted)}
.ttx-svg .surface{fill:var(--ttx-surface)}
.ttx-svg .box{fill:var(--ttx-surface);stroke:var(--ttx-muted);stroke-width:1}
.ttx-svg .panel{fill:var(--ttx-panel);stroke:none}
.ttx-svg .rule{stroke:var(--ttx-line);stroke-width:1;fill:none}
.ttx-svg .edge{stroke:var(--ttx-muted);stroke-width:1.25;fill:none}
.ttx-svg .tip{fill:var(--ttx-muted)}
.ttx-svg .hatch{stroke:var(--ttx-muted);stroke-width:1;opacity:.45}
.ttx-svg .n{text-anchor:middle}
.ttx-svg .idle{stroke:var(--ttx-line)}
""" + "".join(
    f".ttx-svg .f{step}{{fill:{colour}}}.ttx-svg .h{step}{{fill:{ink}}}\n"
    for step, (colour, ink) in enumerate(zip(HEAT, HEAT_TEXT, strict=True))
)

_HTML = """
.ttx{font:13px/1.45 var(--ttx-ui);padding:2px 0;max-width:1200px;container-type:inline-size;overflow-x:auto}
.ttx *{box-sizing:border-box}
.ttx p{margin:4px 0}
.ttx h3{font:600 15px/1.4 var(--ttx-ui);margin:0;color:inherit}
.ttx h4{font:600 12px/1.4 var(--ttx-ui);margin:14px 0 4px;color:var(--ttx-muted);letter-spacing:.02em}
.ttx code,.ttx .m{font-family:var(--ttx-code);font-size:12px;background:none;color:inherit;padding:0;border:0}
.ttx .q{color:var(--ttx-muted)}
.ttx .head{display:flex;flex-wrap:wrap;gap:2px 18px;align-items:baseline;padding-bottom:6px}
.ttx .head h3{font-family:var(--ttx-code)}
.ttx .plus,.ttx .ok{color:color-mix(in srgb,var(--ttx-add) 65%,var(--ttx-text))}
.ttx .minus,.ttx .bad{color:color-mix(in srgb,var(--ttx-remove) 65%,var(--ttx-text))}
.ttx .tilde{color:color-mix(in srgb,var(--ttx-change) 55%,var(--ttx-text))}
.ttx .card{border:1px solid var(--ttx-line);border-left:4px solid var(--ttx-line);padding:8px 12px;margin:6px 0}
.ttx .card.good{border-left-color:var(--ttx-add)}
.ttx .card.fault{border-left-color:var(--ttx-remove)}
.ttx .pre{white-space:pre-wrap;overflow-wrap:anywhere}
.ttx .pair{display:flex;flex-wrap:wrap;align-items:flex-start;gap:0 24px}
.ttx .pair>details,.ttx .drawn{margin-top:12px;min-width:0;max-width:100%}
.ttx .scroll{overflow-x:auto}
.ttx .scroll svg{display:block;max-width:100%;height:auto}
.ttx .scroll svg.wide{min-width:840px}
.ttx details>summary{cursor:pointer;list-style:none}
.ttx details>summary::-webkit-details-marker{display:none}
.ttx summary::before{content:"▸";display:inline-block;width:14px;flex:none;color:var(--ttx-muted);font-size:11px}
.ttx details[open]>summary::before{content:"▾"}
.ttx summary:hover{background:var(--ttx-panel)}
.ttx summary:focus-visible{outline:2px solid var(--ttx-change);outline-offset:-2px}
.ttx .body{padding:4px 0 10px 14px}
.ttx table.t{border-collapse:collapse;border:0;margin:0;width:100%;table-layout:auto;
font:12px/18px var(--ttx-code);color:inherit;background:none}
.ttx table.t tr{background:none;border:0}
.ttx table.t td{border:0;padding:0 6px;text-align:left;vertical-align:top;background:none;max-width:none;
white-space:pre-wrap;overflow-wrap:anywhere}
.ttx .code td:not(:last-child),.ttx .unified td:not(:last-child),.ttx .split td:not(:nth-child(3n)){width:1%;
user-select:none}
.ttx table.facts td:first-child,.ttx .code td:not(:last-child),.ttx .unified td:not(:last-child),
.ttx .split td:not(:nth-child(3n)){color:var(--ttx-muted);white-space:nowrap;overflow-wrap:normal;
font-variant-numeric:tabular-nums}
.ttx table.t th{border:0;padding:0 14px 2px 0;text-align:left;font:12px/20px var(--ttx-ui);color:var(--ttx-muted);
background:none}
.ttx .code td:first-child,.ttx .split td:nth-child(3n+1):not(:nth-child(7)),
.ttx .unified td:nth-last-child(3){text-align:right}
.ttx table.t.unified td:nth-last-child(2),.ttx table.t.split td:nth-child(3n+2){padding:0 2px;text-align:center;
color:inherit}
.ttx table.t tr.gap td.gap{color:var(--ttx-muted);background:var(--ttx-panel);padding:0 10px;text-align:left;
white-space:normal}
.ttx table.t i{font-style:normal}
.ttx table.facts{width:auto}
.ttx table.sides{margin-top:8px}
.ttx table.sides td{vertical-align:bottom;white-space:nowrap}
.ttx table.sides svg{vertical-align:bottom}
.ttx table.facts td{font:13px/20px var(--ttx-ui);padding-left:0;padding-right:14px}
.ttx .e{text-decoration:underline solid 1px;text-underline-offset:3px}
.ttx .d{text-decoration:underline dashed 1px;text-underline-offset:3px}
.ttx .i{text-decoration:underline dotted 1px;text-underline-offset:3px}
"""

_DIFF = """
.ttx{
--ttx-removed:color-mix(in srgb,var(--ttx-remove) 11%,var(--ttx-surface));
--ttx-added:color-mix(in srgb,var(--ttx-add) 12%,var(--ttx-surface));
--ttx-moved:color-mix(in srgb,var(--ttx-change) 7%,var(--ttx-surface))}
.ttx .unified.o td:first-child{padding-left:0}
.ttx table.unified .r td,.ttx table.split .r td:nth-child(-n+3),.ttx table.split .c td:nth-child(-n+3){
background:var(--ttx-removed)}
.ttx table.unified .a td,.ttx table.split .a td:nth-child(n+4):nth-child(-n+6),
.ttx table.split .c td:nth-child(n+4):nth-child(-n+6){background:var(--ttx-added)}
.ttx table.unified .w td,.ttx table.split .w td:nth-child(-n+6){background:var(--ttx-moved)}
.ttx table.unified.o td:first-child{background:none}
.ttx .t b{font-weight:600}
.ttx .r b,.ttx .c td:nth-child(3) b{background:color-mix(in srgb,var(--ttx-remove) 30%,var(--ttx-surface))}
.ttx .a b,.ttx .c td:nth-child(6) b{background:color-mix(in srgb,var(--ttx-add) 30%,var(--ttx-surface))}
.ttx table.split{table-layout:fixed}
.ttx table.t.split td{width:auto}
.ttx table.split col.cn{width:44px}
.ttx table.split col.cg{width:16px}
.ttx table.split col.cl{width:64px}
.ttx table.split td:nth-child(4){border-left:1px solid var(--ttx-line)}
@container (max-width:720px){
.ttx table.split,.ttx table.split tbody{display:block}
.ttx table.split colgroup{display:none}
.ttx table.split tr{display:grid;grid-template-columns:44px 16px minmax(0,1fr)}
.ttx table.split.o tr{grid-template-columns:44px 16px minmax(0,1fr) 64px}
.ttx table.split tr.gap,.ttx table.split tr.gap td{display:block}
.ttx table.split td{width:auto!important}
.ttx table.split td:nth-child(4){border-left:0;grid-column:1}
.ttx .split tr:not([class]) td:nth-child(-n+3),.ttx .split .a td:nth-child(-n+3),.ttx .split .w td:nth-child(-n+3),
.ttx .split .r td:nth-child(n+4):nth-child(-n+6){display:none}
}
"""

_STEPS = """
.ttx .steps{margin-top:8px}
.ttx .steps>h4{margin:0;padding:8px 0 3px}
.ttx .steps>details,.ttx .files>details{border-top:1px solid var(--ttx-line)}
.ttx .steps summary{display:flex;gap:0 8px;align-items:baseline;padding:3px 4px 3px 0}
.ttx .steps summary>span{flex:none}
.ttx .steps .k{width:14px;text-align:center;font-family:var(--ttx-code)}
.ttx .steps .letter{width:22px;color:var(--ttx-muted);font-family:var(--ttx-code);font-size:12px}
.ttx .steps .name{width:236px;font:12px var(--ttx-code)}
.ttx .steps .ir,.ttx .steps .pl{font:12px var(--ttx-code);text-align:right;white-space:pre;width:92px}
.ttx .steps .pl{width:84px;margin-right:14px}
.ttx .steps .ms{width:64px;text-align:right;font:12px var(--ttx-code);color:var(--ttx-muted)}
.ttx .steps summary>.what{flex:1 1 0;min-width:0;color:var(--ttx-muted);overflow:hidden;text-overflow:ellipsis;
white-space:nowrap}
.ttx .steps .noop .name{color:var(--ttx-muted)}
.ttx .steps>.part{margin-left:22px;border-top-style:dotted}
.ttx .steps .part .letter{width:38px}
.ttx .steps .part .name{width:198px}
.ttx .files summary{padding:3px 0}
.ttx .opts{display:flex;flex-wrap:wrap;gap:0 16px}
@container (max-width:820px){
.ttx .steps summary{flex-wrap:wrap}
.ttx .steps .name,.ttx .steps .part .name{flex:1 1 160px;width:auto}
.ttx .steps summary>.what{flex:1 0 100%;order:9;padding-left:66px;white-space:normal}
.ttx .steps .ir{width:78px}
.ttx .steps .pl{width:78px;margin-right:0}
}
"""

_CODE = """
.ttx .kw{color:color-mix(in srgb,var(--ttx-change) 62%,var(--ttx-text))}
.ttx .st{color:color-mix(in srgb,var(--ttx-add) 62%,var(--ttx-text))}
.ttx .nu{color:color-mix(in srgb,var(--ttx-remove) 62%,var(--ttx-text))}
.ttx .co{color:var(--ttx-muted);font-style:italic}
.ttx .pp{color:color-mix(in srgb,var(--ttx-note) 62%,var(--ttx-text))}
.ttx .fn{font-weight:600}
"""


def svg_style() -> str:
    """The `<style>` element of a drawing that stands alone (in a file or an `<img>`) or inside a page."""
    return f"<style>{tokens_style()}{_SVG}</style>"


def html_style() -> str:
    """The `<style>` element of an HTML fragment; drawings inside it use it too."""
    return f"<style>{tokens_style()}{_SVG}{_HTML}{_DIFF}{_STEPS}{_CODE}</style>"


def fragment(identifier: str, label: str, content: str) -> str:
    """A whole HTML fragment: one labelled region with its style. `label` is plain text, `content` is HTML."""
    head = f'<div class="ttx" id="{identifier}" role="region" aria-label="{escape(label)}">'
    return f"{head}{html_style()}{content}</div>\n"


def heat_step(value: int, largest: int) -> int:
    """The index into :data:`HEAT` of `value` on a scale from 0 to `largest`."""
    if largest <= 0:
        return 0
    return max(0, min(len(HEAT) - 1, (value * (len(HEAT) - 1) + largest // 2) // largest))
