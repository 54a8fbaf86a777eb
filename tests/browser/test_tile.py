"""One tile followed in the explorer: picked in the picture, by its numbers or in the map of errors; played stop by
stop, each with its line of C++."""

from __future__ import annotations

from typing import Literal

import pytest

from tests.browser.conftest import Show
from tests.browser.explorer_page import NARROW, ExplorerPage
from tests.browser.test_accessibility import violations
from ttexplore import Exploration, explore


@pytest.fixture(scope="module")
def product() -> Exploration:
    return explore(
        "notebooks/kernels/gemm.py::matmul", M=256, N=256, K=256, block_M=32, block_N=32, block_K=32,
        options={"multicast": "off"},
    )  # fmt: skip


def opened(show: Show, exploration: Exploration, **state: object) -> ExplorerPage:
    explorer = show(exploration.data, **state)
    explorer.tab("Run")
    return explorer


def click_tile(explorer: ExplorerPage, row: int, column: int, rows: int = 8, columns: int = 8) -> None:
    box = explorer.find(".tiles").bounding_box()
    assert box is not None
    x, y = (column + 0.5) * (box["width"] - 2) / columns + 1, (row + 0.5) * (box["height"] - 2) / rows + 1
    explorer.find(".tiles").click(position={"x": x, "y": y})


def test_a_clicked_tile_names_its_pages_and_plays_its_lines(show: Show, product: Exploration) -> None:
    history = product.tile("C", 3, 5)
    explorer = opened(show, product)
    click_tile(explorer, 3, 5)
    asked = explorer.sent()[-1]
    assert (asked["do"], asked["output"], asked["tile"], asked["inputs"]) == ("tile", 0, [3, 5], "random")
    explorer.answer({"state": "done", **history.data})
    told = explorer.find(".way table").inner_text()
    assert "A[3, 0–7], B[0–7, 5]" in told
    assert f"({history.core[0]}, {history.core[1]})" in told
    stops = explorer.find(".stops li")
    assert stops.count() == len(history.stops) == 5
    for number, stop in enumerate(history.stops):
        assert stop.does in stops.nth(number).inner_text()
        stops.nth(number).get_by_role("button").first.click()
        assert stops.nth(number).get_attribute("aria-current") == "step"
        assert f"{stop.kernel}.cpp:{stop.line}" in stops.nth(number).inner_text()
        assert stop.text in stops.nth(number).locator("code").inner_text()


def test_playing_goes_through_the_stops_to_the_last(show: Show, product: Exploration) -> None:
    explorer = opened(show, product)
    click_tile(explorer, 3, 5)
    history = product.tile("C", 3, 5)
    explorer.answer({"state": "done", **history.data})
    explorer.find(".stops li").nth(2).get_by_role("button").first.click()
    explorer.find(".way [aria-label=play]").click()
    explorer.find(".way [aria-label=pause]").wait_for()
    explorer.find(".stops li:last-child[aria-current=step]").wait_for()
    explorer.find(".way [aria-label=play]").wait_for()
    explorer.spoken(f"stop 5 of 5: writer {history.stops[-1].does}")
    explorer.find(".way [aria-label=play]").click()
    explorer.find(".stops li:first-child[aria-current=step]").wait_for()


def test_a_stop_leads_to_its_file_and_pins_its_kernel_line(show: Show, product: Exploration) -> None:
    explorer = opened(show, product)
    click_tile(explorer, 3, 5)
    history = product.tile("C", 3, 5)
    explorer.answer({"state": "done", **history.data})
    explorer.find(".stops li").nth(2).get_by_role("button").first.click()
    stop = history.stops[2]
    explorer.button(f"compute.cpp:{stop.line}").click()
    # What the mouse is over is lit instead of what is pinned.
    explorer.page.mouse.move(0, 0)
    explorer.find(".codeview").wait_for()
    assert explorer.find("section[aria-label='compute.cpp']").is_visible()
    row = explorer.data["source"]["lines"].index(stop.kernel_line)
    explorer.find(f".codeview [aria-label='kernel source'] .l[data-i='{row}'].lit0").wait_for()


def test_tiles_are_chosen_with_the_keyboard(show: Show, product: Exploration) -> None:
    explorer = opened(show, product)
    explorer.find(".tiles").focus()
    explorer.type("ArrowDown", "ArrowDown", "ArrowRight", "ArrowUp", "ArrowLeft", "ArrowLeft")
    assert "tile (1, 0) is chosen" in (explorer.find(".tiles").get_attribute("aria-label") or "")
    explorer.type("Enter")
    assert explorer.sent()[-1]["tile"] == [1, 0]
    explorer.answer({"state": "done", **product.tile("C", 1, 0).data})
    explorer.find("[aria-label=tile]").fill("1, 7")
    explorer.button("Follow").click()
    assert explorer.sent()[-1]["tile"] == [1, 7]


def test_large_and_deep_tensors_keep_their_picture_small(show: Show, product: Exploration) -> None:
    data = {**product.data, "outputs": [{"name": "C", "tiles": [3, 128, 128]}, {"name": "V", "tiles": [40]}]}
    explorer = show(data)
    explorer.tab("Run")
    box = explorer.find(".tiles").bounding_box()
    assert box is not None
    assert box["width"] < 300
    assert box["height"] < 300
    explorer.find("[aria-label=tile]").fill("2 0 0")
    explorer.type("Tab")
    click_tile(explorer, 100, 31, 128, 128)
    # A tile has two pixels: the keys get from a neighbour to the one that was meant.
    leading, row, column = explorer.sent()[-1]["tile"]
    assert leading == 2
    assert abs(row - 100) <= 1
    assert abs(column - 31) <= 1
    explorer.answer({"state": "done", **product.tile("C", 3, 5).data})
    explorer.find("[aria-label=output]").select_option(index=1)
    click_tile(explorer, 0, 39, 1, 40)
    assert (explorer.sent()[-1]["output"], explorer.sent()[-1]["tile"]) == (1, [39])


def test_a_tile_of_the_map_of_errors_is_followed(show: Show, product: Exploration) -> None:
    card = product.run().card()
    explorer = opened(show, product)
    explorer.button("Run").first.click()
    explorer.answer({"state": "done", "html": card, "passed": True})
    explorer.find(".result [data-place='0'] [data-tile='3,5']").click()
    assert (explorer.sent()[-1]["do"], explorer.sent()[-1]["tile"]) == ("tile", [3, 5])


def test_an_error_is_shown_instead_of_the_stops(show: Show, product: Exploration) -> None:
    explorer = opened(show, product)
    click_tile(explorer, 0, 0)
    error = {
        "kind": "UsageError", "message": ["nothing wrote tile (0, 0) of C"], "hint": [], "where": "", "line": 0,
        "code": "U010",
    }  # fmt: skip
    explorer.answer({"state": "failed", "error": error})
    explorer.find(".way").get_by_text("nothing wrote tile (0, 0) of C").wait_for()
    assert not explorer.find(".stops").is_visible()


def test_without_python_it_says_why_no_tile_can_be_followed(show: Show, product: Exploration) -> None:
    explorer = opened(show, product, live=False)
    assert explorer.button("Follow").is_disabled()
    assert "Python" in explorer.find(".followed .tools").first.inner_text()


@pytest.mark.parametrize("width", [1400, NARROW])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(
    show: Show, product: Exploration, theme: Literal["light", "dark"], width: int
) -> None:
    explorer = opened(show, product, theme=theme, width=width)
    click_tile(explorer, 3, 5)
    explorer.answer({"state": "done", **product.tile("C", 3, 5).data})
    explorer.find(".stops").wait_for()
    assert violations(explorer, theme) == []
