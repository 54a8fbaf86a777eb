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

_LINES_IN_SIGHT = "rows => rows.clientHeight / 18"
_PLACES = "all => all.map((one) => Object.values(one.getBoundingClientRect().toJSON()).join())"
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


def inside(explorer: ExplorerPage, *selectors: str) -> bool:
    """Whether the first element with each selector is in the window, whole in height."""
    height = (explorer.page.viewport_size or {})["height"]
    boxes = [explorer.find(selector).first.bounding_box() for selector in selectors]
    return all(box is not None and box["y"] >= 0 and box["y"] + box["height"] <= height for box in boxes)


@pytest.mark.parametrize("width", [1000, 1400, 1920])
def test_what_if_keeps_what_is_changed_and_what_it_leads_to_in_sight(show: Show, gemm: Exploration, width: int) -> None:
    explorer = show(gemm.data, width=width)
    explorer.tab("What if")
    form = explorer.find(".whatifview form")
    policy = form.get_by_label("policy", exact=True)
    fields = form.locator(".option :is(input, select):visible")
    before = fields.evaluate_all(_PLACES)
    assert len(before) > 15
    policy.select_option("strided")
    form.get_by_label("stages", exact=True).fill("3")
    # Nothing moves while one chooses.
    assert fields.evaluate_all(_PLACES) == before
    chosen = form.locator(".chosen button")
    assert chosen.all_inner_texts() == ["stages=3 ×", "policy=strided ×"]
    chosen.first.click()
    assert chosen.all_inner_texts() == ["policy=strided ×"]
    assert form.get_by_label("stages", exact=True).input_value() == ""
    button = explorer.button("Lower and compare")
    box = button.bounding_box()
    button.click()
    assert explorer.sent()[-1]["options"] == {"policy": "strided"}
    explorer.answer_what_if(gemm, gemm.fork(policy="strided"))
    assert button.bounding_box() == box
    assert fields.evaluate_all(_PLACES) == before
    assert inside(explorer, ".go", ".chosen button", ".compared table", ".compared .tools")
    # Another result takes the place of the last one, which stays until then.
    button.click()
    assert explorer.find(".compared.waiting table").count() == 1
    explorer.answer_what_if(gemm, gemm.fork(policy="strided"), "2")
    assert explorer.find(".compared.waiting").count() == 0
    assert explorer.find(".compared > .tools").count() == 1
    for _ in range(2):
        explorer.button("Run both").click()
        for count in (1, 2):
            explorer.page.wait_for_function("sent.at(-1).do === 'run'")
            sent = len(explorer.sent())
            explorer.answer({"state": "done", "html": "<p>ran</p>", "passed": True})
            if count == 1:
                explorer.page.wait_for_function("(count) => sent.length > count", arg=sent)
        explorer.drawn()
        assert explorer.find(".compared").get_by_text("ran", exact=True).count() == 2


def test_nothing_moves_when_a_run_starts(show: Show, gemm: Exploration) -> None:
    explorer = show(gemm.data)
    explorer.tab("Run")
    controls = explorer.find(".runview > .tools :is(select, input, button)")
    run = explorer.root.get_by_role("button", name="Run", exact=True)
    run.click()
    explorer.answer({"state": "done", "html": "<p style='height: 200px'>first result</p>", "passed": True})
    explorer.find(".result").get_by_text("first result").wait_for()
    before = controls.evaluate_all(_PLACES)
    top = (explorer.find(".result").bounding_box() or {})["y"]
    run.click()
    # The last result stays, greyed, until there is another.
    assert explorer.find(".result.waiting").get_by_text("first result").is_visible()
    assert controls.evaluate_all(_PLACES) == before
    assert (explorer.find(".result").bounding_box() or {})["y"] == top
    assert inside(explorer, ".runview .run", ".result")
    explorer.answer({"state": "done", "html": "<p>second result</p>", "passed": True})
    explorer.find(".result:not(.waiting)").get_by_text("second result").wait_for()
    assert explorer.find(".result").get_by_text("first result").count() == 0
    assert controls.evaluate_all(_PLACES) == before


@pytest.mark.parametrize("width", [1000, 1400, 1920])
def test_a_moment_of_a_run_stands_on_one_screen(show: Show, gemm: Exploration, width: int) -> None:
    explorer = show(gemm.data, width=width)
    explorer.tab("Buffers")
    explorer.button("Record a run").click()
    explorer.answer({"state": "done"}, gemm.timeline().recording.data)
    explorer.find(".lane").first.wait_for()
    assert inside(explorer, "div.flow svg", ".lanes", ".plots", ".transport", ".scrubber")
    bottom = explorer.find("div.flow").bounding_box() or {}
    drawing = explorer.find("div.flow svg").first.bounding_box() or {}
    assert drawing["y"] + drawing["height"] <= bottom["y"] + bottom["height"]
    assert not explorer.find("[aria-label='time on the device']").is_visible()


@pytest.mark.parametrize("width", [1000, 1400, 1920])
def test_the_details_of_a_core_stand_beside_the_map(show: Show, gemm: Exploration, width: int) -> None:
    explorer = show(gemm.data, width=width)
    explorer.tab("Cores")
    explorer.find(".coremap [data-core='2,1']").click()
    assert inside(explorer, ".coremap svg", ".corecard", ".corecard table")
    card, drawing = explorer.find(".corecard"), explorer.find(".coremap svg")
    assert "core (2, 1)" in card.inner_text()
    assert (drawing.bounding_box() or {})["x"] + (drawing.bounding_box() or {})["width"] <= (card.bounding_box() or {})[
        "x"
    ]
    # Each row of its tables can be seen.
    clipped = "all => all.filter((one) => one.scrollHeight > one.clientHeight).length"
    assert card.locator("table").evaluate_all(clipped) == 0


def test_cores_are_coloured_by_what_differs_most(show: Show, gemm: Exploration) -> None:
    estimate = gemm.estimate_data()
    explorer = show(gemm.data, estimate=estimate)
    explorer.tab("Cores")
    explorer.find(".badge:enabled").wait_for()
    spreads = {
        measure["name"]: max(measure["steps"]) - min(measure["steps"])
        for measure in (*gemm.data["cores"]["measures"], *estimate["measures"])
    }
    assert max(spreads.values()) > 0
    select = explorer.find("select[aria-label=measure]")
    assert select.input_value() == max(spreads, key=lambda name: spreads[name])
    # What is chosen stays.
    select.select_option("work items")
    explorer.tab("Steps")
    explorer.tab("Cores")
    assert select.input_value() == "work items"


@pytest.mark.parametrize("width", [1000, 1400, 1920])
def test_a_refusal_comes_first(show: Show, refused: Exploration, width: int) -> None:
    explorer = show(refused.data, width=width)
    failed = next(step["letter"] for step in reversed(explorer.data["steps"]) if step["error"])
    head = explorer.button(f"✖ refused at {failed}")
    card, kernel = explorer.find(".refusal .card"), explorer.find(".source")
    assert (card.bounding_box() or {})["y"] < (kernel.bounding_box() or {})["y"]
    assert inside(explorer, ".refusal .card", ".source .l.lit0")
    # What was lowered up to there can be read, and the head leads back.
    explorer.go("A0")
    assert not card.is_visible()
    assert explorer.find(".diff .l:not(.gap)").count() > 3
    explorer.tab("Run")
    head.click()
    assert explorer.letter() == failed
    assert card.is_visible()
