"""Colours by kernel line, the rulers beside listings, and the way to where one is."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from tests.browser.conftest import Show
from tests.browser.explorer_page import ExplorerPage
from tests.browser.test_accessibility import violations
from ttexplore import Exploration
from ttexplore.session.pages import View

# How many marks of a class a ruler has, once it has that many.
MARKS = """(path) => (path?.getAttribute('d') ?? '').split('M').length - 1"""


def marks(explorer: ExplorerPage, listing: str, kind: str, count: int) -> None:
    """Waits until the ruler of a listing has so many marks of a kind."""
    explorer.page.wait_for_function(
        f"([root, selector, count]) => ({MARKS})(root.querySelector(selector)) === count",
        arg=[explorer.root.element_handle(), f"{listing} > .ruler .{kind}", count],
    )


def test_the_ruler_shows_what_changed_is_pinned_hovered_and_found(show: Show, gemm: Exploration) -> None:
    explorer = show(gemm.data)
    explorer.go("D3")
    explorer.drawn()
    rows = explorer.find(".diffpane .rows")
    rows.evaluate("(list) => (list.scrollTop = 0)")
    step = explorer.data["steps"][explorer.step()]
    kinds = [row[0] for row in step["ir"]["rows"]]
    for kind, number in (("a", 1), ("r", 2)):
        # A changed line is one that goes and one that comes.
        marks(explorer, ".diffpane .rows", kind, kinds.count(number) + kinds.count(3))
    line = next(n for n, text in enumerate(gemm.kernel.source.lines) if "T.gemm" in text.text)
    explorer.source_row(explorer.data["source"]["lines"][line]).click()
    marks(explorer, ".source .rows", "pin", 1)
    explorer.page.wait_for_function(
        "(root) => root.querySelector('.diffpane .rows > .ruler .pin')", arg=explorer.root.element_handle()
    )
    explorer.source_row(explorer.data["source"]["lines"][line + 1]).hover()
    marks(explorer, ".source .rows", "over", 1)
    explorer.press("/")
    explorer.find("input[type=search]").fill("alloc_shared")
    wanted = sum("alloc_shared" in text.text for text in gemm.kernel.source.lines)
    assert wanted > 1
    marks(explorer, ".source .rows", "hit", wanted)
    # It stays at the right edge of what is in sight.
    rows.evaluate("(list) => (list.scrollTop = list.scrollHeight)")
    explorer.drawn()
    ruler = explorer.find(".diffpane .rows > .ruler svg").bounding_box()
    box = rows.bounding_box()
    assert ruler is not None
    assert box is not None
    assert abs(ruler["y"] - box["y"]) < 2
    assert abs(ruler["height"] - box["height"]) < 20
    assert ruler["x"] > box["x"] + box["width"] - 30


def test_lines_have_the_colour_of_their_kernel_line_in_every_view(show: Show, gemm: Exploration) -> None:
    explorer = show(gemm.data, width=1920)
    assert explorer.find(".hued").count() == 0
    explorer.button("colours").click()
    empty = [n for n, text in enumerate(gemm.kernel.source.lines) if not text.text.strip()]
    assert empty
    for row in (explorer.source_row(explorer.data["source"]["lines"][n]) for n in empty):
        assert "hued" not in (row.get_attribute("class") or "")

    def hues(rows: str) -> dict[str, str]:
        """By the first label of each line, its hue."""
        return explorer.find(f"{rows} .l.hued:has(.o i)").evaluate_all(
            "rows => Object.fromEntries(rows.map((row) => "
            "[row.querySelector('.o i').textContent, row.style.getPropertyValue('--line')]))"
        )

    own = explorer.find(".source .l.hued").evaluate_all(
        "rows => Object.fromEntries(rows.map((row) => "
        "[`L${row.querySelector('.n').textContent.trim()}`, row.style.getPropertyValue('--line')]))"
    )
    assert len(set(own.values())) > 5
    steps = hues(".diffpane")
    explorer.tab("Code")
    code = hues(".files")
    for there in (steps, code):
        assert there
        assert {line: hue for line, hue in there.items() if line in own} == {
            line: own[line] for line in there if line in own
        }
    explorer.press("l")
    assert explorer.find(".hued").count() == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_in_colours(show: Show, gemm: Exploration, theme: Literal["light", "dark"]) -> None:
    explorer = show(gemm.data, theme=theme)
    explorer.go("D3")
    explorer.press("l")
    explorer.drawn()
    assert violations(explorer, theme) == []


@pytest.mark.parametrize("width", [940, 1000, 1250, 1400])
def test_all_of_the_head_is_in_sight(show: Show, gemm: Exploration, width: int) -> None:
    explorer = show(gemm.data, width=width)
    keys = explorer.find("header").get_by_role("button", name="keys").bounding_box()
    assert keys is not None
    assert keys["x"] + keys["width"] <= width


def test_a_link_leads_back_in_python(show: Show, gemm: Exploration) -> None:
    explorer = show(gemm.data)
    explorer.go("D3")
    line = explorer.data["source"]["lines"][4]
    explorer.source_row(line).click()
    explorer.tab("Code")
    explorer.button("copy what opens this place").click()
    explorer.spoken("copied")
    copied = explorer.page.evaluate("navigator.clipboard.readText()")
    names: dict[str, Any] = {"ex": gemm}
    view = eval(copied, names)
    assert isinstance(view, View)
    assert (view.place["tab"], view.place["step"], view.place["pin"]) == ("Code", "D3", str(line))
