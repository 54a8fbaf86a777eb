"""A kernel with several launches: one explorer with a bar of them in a notebook, and an index of them on a page."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from typing import Any, Literal

import pytest

import ttexplore as ttx
from tests.browser.conftest import Open, Show
from tests.browser.explorer_page import ExplorerPage
from tests.browser.test_accessibility import violations
from tests.corpus.launches import two_products
from ttexplore import Exploration
from ttexplore.views.explorer import TABS

CURRENT = "[data-launch][aria-current=true]"


@pytest.fixture(scope="module")
def products() -> Exploration:
    return ttx.explore(two_products())


def shown(show: Show, explored: Exploration, **how: Any) -> ExplorerPage:
    """The explorer of all launches, with what the widget sends."""
    widget = explored.widget()
    launches = [{**one, "data": base64.b64encode(one["data"]).decode()} for one in widget.launches]
    first = json.loads(zlib.decompress(widget.launches[0]["data"]))
    return show(first, launches=launches, chain=widget.chain, **how)


def go(explorer: ExplorerPage, number: int) -> None:
    explorer.find(f"[data-launch='{number}']").click()
    explorer.find(f"{CURRENT}[data-launch='{number}']").wait_for()
    explorer.drawn()


@pytest.mark.parametrize("width", [1000, 1400, 1920])
def test_the_bar_leads_to_each_launch_in_every_view(show: Show, products: Exploration, width: int) -> None:
    explorer = shown(show, products, width=width)
    title = explorer.find("header h3")
    assert explorer.find("nav.launches").inner_text().split() == [
        "M", "kernel_1", "↓", "A,", "B", "kernel_2", "↓", "C", "↓", "D",
    ]  # fmt: skip
    for tab in TABS[:-1]:
        explorer.tab(tab)
        for number, launch in ((1, "kernel_2"), (0, "kernel_1")):
            go(explorer, number)
            assert title.inner_text() == launch
            assert explorer.find("[aria-label=views] [aria-selected=true]").inner_text() == tab
    explorer.tab("Code")
    for number, launch in ((1, "kernel_2"), (0, "kernel_1")):
        go(explorer, number)
        name = products.launches[number].code["writer"].text.splitlines()[0]
        assert launch in name
        explorer.file("writer.cpp").get_by_text("lines of comments and includes").first.click()
        assert explorer.find("section[aria-label='writer.cpp']").get_by_text(name).is_visible()
    box, bar = explorer.root.bounding_box(), explorer.find("nav.launches").bounding_box()
    assert box is not None
    assert bar is not None
    assert (box["width"] >= bar["width"], bar["height"] < 90) == (True, True)


def test_the_keyboard_walks_along_the_bar(show: Show, products: Exploration) -> None:
    explorer = shown(show, products)
    explorer.find(CURRENT).focus()
    explorer.type("ArrowRight", "Enter")
    explorer.find(f"{CURRENT}[data-launch='1']").wait_for()
    assert explorer.find("header h3").inner_text() == "kernel_2"
    explorer.spoken("kernel_2")
    explorer.type("ArrowRight", "ArrowLeft", " ")
    explorer.find(f"{CURRENT}[data-launch='0']").wait_for()


def test_what_is_pinned_and_edited_stays_and_is_of_the_launch(show: Show, products: Exploration) -> None:
    explorer = shown(show, products, missing={"estimate": "no Python", "gpu": "no Python"})
    explorer.source_row(explorer.data["source"]["lines"][3]).click()
    explorer.press("e")
    field = explorer.find(".source textarea")
    field.press("End")
    field.type("  # my own")
    explorer.page.wait_for_function("sent.some((one) => one.do === 'edit')")
    edit = explorer.sent()[-1]
    assert (edit["do"], edit["launch"], edit["variant"]) == ("edit", 0, "launch 0")
    go(explorer, 1)
    explorer.page.wait_for_function("sent.filter((one) => one.do === 'edit').length > 1")
    again = explorer.sent()[-1]
    assert (again["do"], again["launch"], again["variant"]) == ("edit", 1, "launch 1")
    assert again["text"] == edit["text"]
    assert "# my own" in again["text"]
    explorer.tab("Run")
    explorer.button("Run").click()
    assert explorer.sent()[-1]["variant"] == "launch 1"


def test_it_opens_at_the_launch_that_is_asked_for_or_failed(show: Show, products: Exploration) -> None:
    explorer = shown(show, products, place={"launch": "kernel_2", "tab": "Code"})
    assert explorer.find("header h3").inner_text() == "kernel_2"
    failing = ttx.explore(two_products(), options={"cb_depth": {"b": 100000}})
    failed = [launch.error is not None for launch in failing.launches]
    explorer = shown(show, failing)
    assert explorer.find(CURRENT).get_attribute("data-launch") == str(failed.index(True))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_in_the_bar(show: Show, products: Exploration, theme: Literal["light", "dark"]) -> None:
    explorer = shown(show, products, theme=theme)
    assert violations(explorer, theme) == []


def test_a_launch_is_chosen_by_name(open_context: Open, products: Exploration, tmp_path: Path) -> None:
    products.report(tmp_path / "page.html", run=False)
    page = open_context(viewport={"width": 1400, "height": 800}).new_page()
    page.goto((tmp_path / "page.html").as_uri())
    title = page.locator(".ttx-explorer h3").first
    for name in ("kernel_1", "kernel_2", "kernel_1"):
        page.get_by_role("link", name=name).click()
        title.filter(has_text=name).wait_for()
        assert page.locator(".ttx-explorer").count() == 1
    page.get_by_role("link", name="kernel_2").press("Enter")
    title.filter(has_text="kernel_2").wait_for()
    box = page.locator(".ttx-explorer").bounding_box()
    assert box is not None
    assert (box["width"], box["height"] > 700) == (1400, True)
