"""Places: an explorer that opens where it is told, and a report whose address says where the reader is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Page

import ttexplore as ttx
from tests.browser.conftest import Open, Show
from tests.browser.explorer_page import ExplorerPage
from tests.browser.test_accessibility import violations
from tests.steps import LETTERS
from ttexplore import Exploration
from ttexplore.cli import main
from ttexplore.session.pages import View
from ttexplore.views.explorer import TABS

_ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def other() -> Exploration:
    kernel = f"{_ROOT / 'notebooks' / 'kernels' / 'gemm.py'}::matmul"
    return ttx.explore(kernel, M=128, N=128, K=128, block_M=64, block_N=64, target="blackhole_p150")


def shown(page: Page) -> ExplorerPage:
    page.locator(".ttx-explorer .body .l").first.wait_for()
    return ExplorerPage(page, {})


def letter(explorer: ExplorerPage) -> str:
    return explorer.find(".title .letter").inner_text()


def pinned(explorer: ExplorerPage) -> list[str]:
    return explorer.find(".source .l[class*=' lit'] .n").all_inner_texts()


def test_a_view_opens_at_its_place(show: Show, gemm: Exploration) -> None:
    view = gemm.view(step="lower_cb_intrinsics", pin=27)
    assert isinstance(view, View)
    explorer = show(gemm.data, place=dict(view.place))
    assert letter(explorer) == "D3"
    assert pinned(explorer) == ["27"]
    place = dict(gemm.view(tab="code", file="compute.cpp", step="C2").place)
    explorer = show(gemm.data, place=place)
    assert explorer.find(".files [aria-selected=true]").inner_text() == "compute.cpp"
    # Python may lead on.
    explorer.set("place", {"tab": "Steps", "step": "D5"})
    assert letter(explorer) == "D5"


def test_a_fragment_leads_to_its_place_and_follows_the_reader(
    open_context: Open, gemm: Exploration, tmp_path: Path
) -> None:
    address = gemm.report(tmp_path / "report.html", run=False).as_uri()
    page = open_context(viewport={"width": 1400, "height": 800}).new_page()
    page.goto(f"{address}#step=D3&pin=27")
    explorer = shown(page)
    assert letter(explorer) == "D3"
    assert pinned(explorer) == ["27"]
    # The address says where the reader goes.
    explorer.press("j")
    page.wait_for_url(f"{address}#tab=Steps&step=D4&pin=27")
    explorer.tab("Code")
    explorer.file("compute.cpp")
    here = f"{address}#tab=Code&step=D4&pin=27&file=compute.cpp"
    page.wait_for_url(here)
    # A link within the page, and the page opened anew.
    page.evaluate("location.hash = 'tab=steps&step=C2&pin=25'")
    explorer.find(".title .letter").filter(has_text="C2").wait_for()
    assert pinned(explorer) == ["25"]
    page.evaluate("location.hash = 'pin='")
    explorer.find(".source [class*=' lit']").first.wait_for(state="detached")
    page.goto("about:blank")
    page.goto(here)
    again = shown(page)
    assert again.find(".files [aria-selected=true]").inner_text().split()[0] == "compute.cpp"
    again.tab("Steps")
    assert (letter(again), pinned(again)) == ("D4", ["27"])
    # What is nowhere leads nowhere, and says so.
    page.goto("about:blank")
    page.goto(f"{address}#lowering=<b>relu&tab=Nowhere&step=Z9&pin=x&more=1")
    lost = shown(page)
    assert letter(lost) == "B2"
    tabs = f"tab Nowhere (there are {', '.join(TABS)})"
    told = f"Not here: lowering <b>relu, {tabs}, step Z9, kernel line x."
    assert lost.find(".banner").inner_text() == told
    page.evaluate("location.hash = 'step=C2'")
    lost.find(".banner").wait_for(state="hidden")


@pytest.mark.parametrize("width", [1000, 1400, 1920])
def test_a_report_fills_the_window(open_context: Open, gemm: Exploration, tmp_path: Path, width: int) -> None:
    page = open_context(viewport={"width": width, "height": 800}).new_page()
    page.goto(gemm.report(tmp_path / "report.html", run=False).as_uri())
    explorer = shown(page)
    for tab in ("Steps", "Code"):
        explorer.tab(tab)
        assert explorer.root.bounding_box() == {"x": 0, "y": 0, "width": width, "height": 800}
        assert page.evaluate("document.documentElement.scrollWidth") == width


def test_a_report_names_no_folder(open_context: Open, gemm: Exploration, other: Exploration, tmp_path: Path) -> None:
    assert str(_ROOT) in gemm.data["where"]
    path = ttx.report(tmp_path / "report.html", gemm, other, run=False)
    assert str(_ROOT) not in path.read_text(encoding="utf-8")
    page = open_context(viewport={"width": 1400, "height": 800}).new_page()
    page.goto(path.as_uri())
    explorer = shown(page)
    assert explorer.find("header > .q").first.inner_text() == "gemm.py:10"
    # What is packed is read as the page reads it.
    folders = page.evaluate("""async (folder) => {
        const found = [];
        for (const {data} of JSON.parse(document.getElementById("lowerings").textContent)) {
            const stream = (await fetch(`data:;base64,${data}`)).body.pipeThrough(new DecompressionStream("deflate"));
            found.push((await new Response(stream).text()).includes(folder));
        }
        return found;
    }""".replace("(await fetch(`data:;base64,${data}`)).body", "new Blob([Uint8Array.from(atob(data), "
                 "(c) => c.charCodeAt(0))]).stream()"), str(_ROOT))  # fmt: skip
    assert folders == [False, False]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_several_lowerings_have_an_index(
    open_context: Open, gemm: Exploration, other: Exploration, tmp_path: Path, theme: Literal["light", "dark"]
) -> None:
    address = ttx.report(tmp_path / "all.html", gemm, other, run=False).as_uri()
    page = open_context(viewport={"width": 1400, "height": 800}, color_scheme=theme).new_page()
    page.goto(address)
    explorer = shown(page)
    index = page.get_by_role("navigation", name="2 lowerings").get_by_role("link")
    steps = f"{len(LETTERS)} steps"
    assert index.all_inner_texts() == [f"matmul 1 wormhole_n150, {steps}", f"matmul 2 blackhole_p150, {steps}"]
    assert explorer.find("header>.m").inner_text() == "wormhole_n150"
    page.screenshot(path=tmp_path / f"index_{theme}.png")
    # With the keyboard alone.
    index.nth(1).focus()
    page.keyboard.press("Enter")
    explorer.find("header>.m").filter(has_text="blackhole_p150").wait_for()
    assert page.locator(".ttx-explorer").count() == 1
    assert index.nth(1).get_attribute("aria-current") == "page"
    explorer = shown(page)
    explorer.press("j")
    page.wait_for_url(re.compile(r"all\.html#lowering=matmul\+2&tab=Steps&step="))
    # The address of a place in the second, opened anew.
    page.goto("about:blank")
    page.goto(f"{address}#lowering=matmul+2&step=D3&pin=27")
    explorer = shown(page)
    assert explorer.find("header>.m").inner_text() == "blackhole_p150"
    assert (letter(explorer), pinned(explorer)) == ("D3", ["27"])
    # The policy of the page keeps axe out of it, so its frame is judged without.
    bare = open_context(viewport={"width": 1400, "height": 800}, color_scheme=theme, bypass_csp=True).new_page()
    bare.goto(address)
    assert violations(shown(bare), theme) == []


def test_the_index_names_lowerings_as_they_were_typed(open_context: Open, tmp_path: Path) -> None:
    gemm, file = f"{_ROOT / 'notebooks' / 'kernels' / 'gemm.py'}", tmp_path / "report.html"
    main(
        [
            "report",
            f"{gemm}::matmul",
            *(f"{one}=1024" for one in "MNK"),
            f"{gemm}::matmul_relu",
            "--no-run",
            "-o",
            str(file),
        ]
    )
    page = open_context(viewport={"width": 1400, "height": 800}).new_page()
    page.goto(f"{file.as_uri()}#lowering=matmul_relu")
    shown(page)
    assert [one.split()[0] for one in page.locator("nav a").all_inner_texts()] == ["matmul", "matmul_relu"]
    assert page.locator("nav a[aria-current=page]").inner_text().startswith("matmul_relu")
    page.evaluate("location.hash = 'lowering=relu'")
    page.locator(".banner").filter(has_text="Not here: lowering relu.").wait_for()
    page.evaluate("location.hash = 'lowering=matmul'")
    page.locator(".banner").wait_for(state="hidden")
