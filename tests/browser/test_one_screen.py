"""What one does and what it did stand on one screen: how many lines are in sight, and nothing moves meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

import ttexplore as ttx
from tests.browser.conftest import Open, Show
from tests.browser.explorer_page import ExplorerPage
from ttexplore import Exploration

# What JupyterLab leaves to a notebook in a window of 1400 x 900, with its side bar and without.
NOTEBOOKS = ((953, 786), (1205, 786))
ROW_PIXELS = 18

_LINES_IN_SIGHT = "rows => rows.clientHeight / 18"
_NAMES = """all => all.filter((name) => {
    const [own, list] = [name, name.closest(".steplist")].map((one) => one.getBoundingClientRect());
    return name.scrollWidth > name.clientWidth || own.right > list.right;
}).map((name) => name.textContent)"""


def lines_in_sight(explorer: ExplorerPage, rows: str) -> float:
    return explorer.find(rows).evaluate(_LINES_IN_SIGHT)


@pytest.mark.parametrize(("width", "height"), [*NOTEBOOKS, (1400, 900), (1920, 900)])
def test_the_explorer_fills_what_it_stands_in(show: Show, gemm: Exploration, width: int, height: int) -> None:
    explorer = show(gemm.data, width=width, height=height)
    box = explorer.root.bounding_box()
    assert box is not None
    assert height - 8 <= box["height"] <= height
    assert lines_in_sight(explorer, ".diff") >= 24
    assert lines_in_sight(explorer, ".source .rows") >= 14
    # One row of tools stands above the changes, and the names of steps are whole.
    pane, changes = explorer.find(".diffpane").bounding_box(), explorer.find(".diff").bounding_box()
    assert pane is not None
    assert changes is not None
    assert changes["y"] - pane["y"] <= 28
    assert explorer.find(".steplist .name").evaluate_all(_NAMES) == []
    for tab in ("Code", "Cores", "Run", "What if"):
        explorer.tab(tab)
        assert explorer.root.bounding_box() == box


def test_a_report_shows_as_many_lines(open_context: Open, gemm: Exploration, tmp_path: Path) -> None:
    path = ttx.report(tmp_path / "report.html", gemm, run=False)
    page = open_context(viewport={"width": 1400, "height": 900}).new_page()
    page.goto(path.as_uri())
    explorer = ExplorerPage(page, gemm.data)
    explorer.find(".diff .l").first.wait_for()
    assert lines_in_sight(explorer, ".diff") >= 24
    assert lines_in_sight(explorer, ".source .rows") >= 14
