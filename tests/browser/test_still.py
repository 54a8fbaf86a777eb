"""Which of the two outputs of an exploration is seen beside whatever else a cell has, in the front ends' own markup."""

from __future__ import annotations

import pytest

from tests.browser.conftest import Open
from ttexplore.views.runs.check import CheckRow, check_html
from ttexplore.views.still import PLACE, still_html

LAB = '<div class="lm-Widget lm-Panel jp-OutputArea-child">{}</div>'
WIDGET = LAB.format('<div class="lm-Widget lm-Panel jp-OutputArea-output">{}</div>')
LIVE = WIDGET.format('<div class="lm-Widget"><div class="ttx-explorer">live</div></div>')
LOADING = WIDGET.format("Loading widget...")
ERROR = LOADING.replace("output", "output jupyter-widgets").replace("Loading", "Error displaying")
RENDERED = '<div class="lm-Widget jp-RenderedHTMLCommon jp-RenderedHTML jp-OutputArea-output">{}</div>'
FROZEN = LAB.format(RENDERED.format(PLACE))
STILL = LAB.format(RENDERED.format(still_html("<p>still</p>")))
TEXT = LAB.format('<div class="jp-RenderedText jp-OutputArea-output"><pre>text</pre></div>')
TABS = WIDGET.format(f'<div class="jp-OutputArea">{LIVE}{STILL}</div>')
CODE = '<div class="cell_container">{}</div>'
IN_CODE = '<div class="output_container"><div class="output">{}</div></div>'
CODE_STILL = IN_CODE.format(still_html("<p>still</p>"))
CODE_LIVE = IN_CODE.format('<div class="ttx-explorer">live</div>')
SAID = "The live explorer is not running: rerun the cell to use it."
SEEN = """() => [...document.querySelectorAll(":not(:has(*))")].flatMap((one) => {
    const said = getComputedStyle(one, "::after").content;
    if (said !== "none") return [JSON.parse(said)];
    return one.checkVisibility({visibilityProperty: true}) && one.innerText ? [one.innerText] : [];
})"""


CASES: tuple[tuple[str, list[str]], ...] = (
    (LIVE + STILL, ["live"]),
    (TEXT + LIVE + STILL + TEXT, ["text", "live", "text"]),
    (LIVE + STILL + LIVE + STILL, ["live", "live"]),
    # A widget of its own, then one in an output widget.
    (LIVE + TABS, ["live", "live"]),
    (ERROR + STILL, [SAID, "still"]),
    (FROZEN + STILL, ["still"]),
    (TEXT + STILL, ["text", "still"]),
    # An error of something else is not ours to hide.
    (ERROR + TEXT + STILL, ["Error displaying widget...", "text", "still"]),
    (CODE.format(CODE_LIVE + CODE_STILL), ["live"]),
    (CODE.format(CODE_LIVE) + CODE.format(CODE_STILL), ["live", "still"]),
)


def test_which_output_is_seen(open_context: Open) -> None:
    page = open_context().new_page()
    for outputs, seen in CASES:
        page.set_content(f"<!doctype html><body>{outputs}</body>")
        assert page.evaluate(SEEN) == seen, outputs


def test_the_page_waits_for_the_explorer_but_not_for_ever(open_context: Open) -> None:
    page = open_context().new_page()
    page.set_content(f"<!doctype html><body>{LOADING}{STILL}</body>")
    height = "document.querySelector('.ttx-still').getBoundingClientRect().height"
    assert page.evaluate(height) == 0
    page.wait_for_function(f"{height} > 10")


def test_headings_stand_above_their_columns(open_context: Open) -> None:
    page = open_context(viewport={"width": 1200, "height": 600}).new_page()
    row = CheckRow("A0", "apply_defaults", True, 1.0, 0.0, "")
    # JupyterLab sets the cells of any table to the right.
    style = "<style>:not(.x).jp-RenderedHTMLCommon :is(td,th){text-align:right;padding:.5em}</style>"
    page.set_content(f"<!doctype html>{style}<div class='jp-RenderedHTMLCommon'>{check_html([row])}</div>")
    edges = """cells => cells.map((cell) => {
        const text = document.createRange();
        text.selectNodeContents(cell);
        return text.getBoundingClientRect().left;
    })"""
    heads, cells = (page.locator(f"table {name}").evaluate_all(edges) for name in ("th", "td"))
    # Two columns, the letter and the name, have the one heading "step".
    assert [heads[k] for k in (1, 3, 4)] == pytest.approx([cells[k] for k in (1, 3, 4)], abs=1)
    # The table is no wider than what is in it.
    assert page.locator("table").evaluate("one => one.clientWidth") < 500
