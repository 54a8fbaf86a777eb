"""Room: every line can be read to its end, bars between panes move, and the explorer fills the screen."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.browser.conftest import Show
from tests.browser.explorer_page import ADDRESS, NARROW, ExplorerPage, mount
from tests.browser.test_accessibility import violations
from ttexplore import Exploration, explore

# Of the lines in lists with a selector: how many there are, how many are wider than their place, and how many of those
# cannot be read to their end when their list is scrolled to the right.
_LINES = """async (selector) => {
    const found = {};
    const drawn = () => new Promise(requestAnimationFrame);
    for (const rows of document.querySelectorAll(selector)) {
        if (!rows.clientHeight) continue;
        const lines = [...rows.querySelectorAll(".l code")];
        const over = lines.filter((one) => one.scrollWidth > one.clientWidth);
        rows.scrollLeft = 1e6;
        await drawn();
        await drawn();
        const range = document.createRange();
        const cut = over.filter((one) => {
            range.selectNodeContents(one);
            return range.getBoundingClientRect().right > one.getBoundingClientRect().right;
        });
        rows.scrollLeft = 0;
        await drawn();
        await drawn();
        found[rows.ariaLabel] = {lines: lines.length, over: over.length, cut: cut.length};
    }
    return found;
}"""


@pytest.fixture(scope="module")
def large() -> Exploration:
    return explore("notebooks/kernels/gemm.py::matmul", M=1024, N=1024, K=1024)


def lines_of_steps(explorer: ExplorerPage) -> Counter[str]:
    total: Counter[str] = Counter()
    for position in range(len(explorer.data["steps"])):
        explorer.find(".stepchoice").evaluate(
            "(one, i) => { one.selectedIndex = i; one.dispatchEvent(new Event('change')); }", position
        )
        total.update(explorer.page.evaluate(_LINES, ".diff")["changes of the step"])
    total.update(explorer.page.evaluate(_LINES, ".stepsview .listing")["kernel source"])
    return total


def lines_of_code(explorer: ExplorerPage) -> Counter[str]:
    explorer.tab("Code")
    found: dict[str, Any] = {}
    for tab in explorer.find(".files [role=tab]").all():
        tab.click()
        found |= explorer.page.evaluate(_LINES, ".codeview .rows")
    assert len(found) == 1 + len(explorer.data["files"])
    total: Counter[str] = Counter()
    for one in found.values():
        total.update(one)
    return total


@pytest.mark.parametrize(("width", "most"), [(1000, 0.05), (1400, 0.05), (1600, 0.05), (1920, 0.05), (NARROW, 1)])
def test_each_line_can_be_read_to_its_end(show: Show, large: Exploration, width: int, most: float) -> None:
    """Most lines at once, all of them scrolled, and all of them at once when wrapped, as code is at first."""
    explorer = show(large.data, width=width)
    steps = lines_of_steps(explorer)
    assert steps["lines"] > 200
    assert steps["cut"] == 0
    assert steps["over"] <= most * steps["lines"]
    explorer.press("w")
    assert lines_of_steps(explorer)["over"] == 0
    code = lines_of_code(explorer)
    assert code["lines"] > 200
    assert code["over"] == 0
    explorer.press("w")
    assert lines_of_code(explorer)["cut"] == 0


def test_each_line_can_be_read_to_its_end_under_the_style_of_jupyterlab(show: Show, large: Exploration) -> None:
    """JupyterLab gives code a size and a height of line of its own."""
    explorer = show(large.data, width=NARROW)
    explorer.page.add_style_tag(content=".jp-ThemedContainer code{font:13px/1.3077 serif}")
    explorer.page.evaluate("document.body.className = 'jp-ThemedContainer'")
    explorer.tab("Code")
    explorer.press("w")
    explorer.tab("Steps")
    for total in (lines_of_steps(explorer), lines_of_code(explorer)):
        assert total["over"] > 0
        assert total["cut"] == 0
    fonts = explorer.find(".codeview .l code, .codeview .n").evaluate_all(
        "all => all.map((one) => getComputedStyle(one).font)"
    )
    assert len(set(fonts)) == 1


def test_numbers_and_origins_stay_in_sight_while_code_moves_sideways(show: Show, large: Exploration) -> None:
    explorer = show(large.data, width=NARROW)
    for keys in ((), ("s",)):
        explorer.press(*keys)
        rows = explorer.find(".diff")
        fixed = rows.locator(".l:not(.gap)").first.locator(".n, .o")
        before = [one.bounding_box() for one in fixed.all()]
        texts = rows.locator(".l code").all_text_contents()
        rows.evaluate("rows => { rows.scrollLeft = 60; }")
        explorer.page.wait_for_function(
            "getComputedStyle(document.querySelector('.diff .l code')).textIndent === '-60px'"
        )
        assert [one.bounding_box() for one in fixed.all()] == before
        assert rows.locator(".l code").all_text_contents() == texts
        rows.evaluate("rows => { rows.scrollLeft = 0; }")


def test_wrapping_keeps_the_line_at_the_top(show: Show, large: Exploration) -> None:
    explorer = show(large.data, width=900)
    explorer.tab("Code")
    explorer.press("w")
    rows = explorer.file("main.cpp").locator(".rows")
    rows.evaluate("rows => { rows.scrollTop = 200 * 18; }")
    explorer.page.wait_for_function("document.querySelector('.other .rows [data-i=\"200\"]')")
    top = """rows => { const {top} = rows.getBoundingClientRect();
        return +[...rows.querySelectorAll(".l")].find((one) => one.getBoundingClientRect().bottom > top + 1).dataset.i;
    }"""
    assert rows.evaluate(top) == 200
    for _ in range(2):
        explorer.press("w")
        assert rows.evaluate(top) == 200


def shares(explorer: ExplorerPage, view: str) -> list[int]:
    widths: list[float] = explorer.find(f".{view} > .panes > :not(.bar)").evaluate_all(
        "all => all.map((one) => one.getBoundingClientRect().width)"
    )
    return [round(100 * width / sum(widths)) for width in widths]


def test_a_bar_moves_with_the_keyboard_and_the_mouse(show: Show, gemm: Exploration) -> None:
    explorer = show(gemm.data)
    explorer.tab("Code")
    explorer.button("as a column").click()
    explorer.drawn()
    bar = explorer.root.get_by_role("separator", name="size of the kernel")
    assert [bar.get_attribute(f"aria-value{name}") for name in ("min", "now", "max")] == ["10", "28", "90"]
    assert bar.get_attribute("aria-orientation") == "vertical"
    bar.focus()
    for key, share in (("ArrowRight", 30), ("ArrowRight", 32), ("ArrowLeft", 30), ("End", 90), ("Home", 10)):
        explorer.type(key)
        assert bar.get_attribute("aria-valuenow") == str(share)
        assert shares(explorer, "codeview") == [share, 100 - share]
    # The bar follows the mouse while its button is down, and a double click takes it back.
    box = bar.bounding_box()
    assert box is not None
    explorer.page.mouse.move(box["x"] + 2, box["y"] + 100)
    explorer.page.mouse.down()
    explorer.page.mouse.move(700, box["y"] + 120, steps=3)
    explorer.page.mouse.up()
    assert shares(explorer, "codeview") == [50, 50]
    explorer.page.mouse.move(300, 300)
    assert shares(explorer, "codeview") == [50, 50]
    bar.dblclick()
    assert shares(explorer, "codeview") == [28, 72]
    assert bar.get_attribute("aria-valuenow") == "28"


def test_bars_lie_where_panes_stand_below_each_other(show: Show, gemm: Exploration) -> None:
    explorer = show(gemm.data, width=1000)
    explorer.tab("Code")
    bar = explorer.root.get_by_role("separator", name="size of the kernel")
    assert bar.get_attribute("aria-orientation") == "horizontal"
    height = "one => one.previousElementSibling.getBoundingClientRect().height"
    before = bar.evaluate(height)
    bar.focus()
    explorer.type("ArrowRight", "ArrowDown", "ArrowDown")
    assert bar.get_attribute("aria-valuenow") == "32"
    assert bar.evaluate(height) > before


def test_sizes_and_wrapping_are_remembered(show: Show, gemm: Exploration) -> None:
    explorer = show(gemm.data)
    tall = explorer.find(".stepsview").bounding_box()
    explorer.root.get_by_role("separator", name="size of the list of steps").focus()
    explorer.type("ArrowRight", "ArrowRight")
    assert shares(explorer, "stepsview") == [23, 77]
    explorer.root.get_by_role("separator", name="height").focus()
    explorer.type("ArrowDown", "ArrowDown")
    taller = explorer.find(".stepsview").bounding_box()
    assert tall is not None
    assert taller is not None
    assert taller["height"] == tall["height"] + 40
    explorer.press("w")
    explorer.page.goto(ADDRESS)
    again = mount(explorer.page, gemm.data)
    assert shares(again, "stepsview") == [23, 77]
    assert again.find(".stepsview").bounding_box() == taller
    assert again.option("wrap").get_attribute("aria-pressed") == "true"


def test_bars_move_where_the_browser_forbids_its_storage(show: Show, gemm: Exploration) -> None:
    page = show(gemm.data).page
    page.add_init_script("Object.defineProperty(window, 'localStorage', {get() { throw new Error('forbidden'); }});")
    page.goto(ADDRESS)
    explorer = mount(page, gemm.data)
    bar = explorer.root.get_by_role("separator", name="size of the list of steps")
    bar.focus()
    explorer.type("End")
    assert bar.get_attribute("aria-valuenow") == "90"


@pytest.mark.parametrize("allowed", [True, False])
def test_f_fills_the_screen_and_escape_leaves(show: Show, gemm: Exploration, allowed: bool) -> None:
    explorer = show(gemm.data)
    page = explorer.page
    if not allowed:
        page.evaluate("Element.prototype.requestFullscreen = () => Promise.reject(new Error('not here')); 0")
    before = explorer.root.bounding_box()
    explorer.source_row(25).click()
    for by_key in (True, False):
        if by_key:
            explorer.press("f")
        else:
            explorer.button("full screen").click()
        page.wait_for_function("document.querySelector('.ttx-explorer').getBoundingClientRect().height === innerHeight")
        assert explorer.root.bounding_box() == {"x": 0, "y": 0, "width": 1400, "height": 900}
        assert page.evaluate("!!document.fullscreenElement") == allowed
        explorer.tab("Code")
        assert (explorer.find(".codeview").bounding_box() or {})["height"] > 750
        explorer.tab("Steps")
        if by_key:
            explorer.type("Escape")
        else:
            explorer.button("leave full screen").click()
        page.wait_for_function("document.querySelector('.ttx-explorer').getBoundingClientRect().height < innerHeight")
        assert explorer.root.bounding_box() == before
        # The line is pinned still.
        assert explorer.lit(".source")
        assert page.evaluate("document.querySelector('.ttx-explorer').contains(document.activeElement)")


def test_kernels_stand_side_by_side_where_the_explorer_has_room(show: Show, gemm: Exploration) -> None:
    explorer = show(gemm.data, width=1500)
    explorer.tab("Code")
    tabs, lists = explorer.find(".files [role=tab]"), explorer.find(".files .rows:visible")
    assert tabs.first.inner_text() == "reader.cpp, compute.cpp, writer.cpp"
    assert lists.count() == 3
    # It is the explorer's own width that counts: beside JupyterLab's file browser there is room for two.
    explorer.page.evaluate("document.querySelector('main').style.width = '1486px'; 0")
    explorer.page.wait_for_function("document.querySelectorAll('.files [role=tab]').length === 6")
    assert explorer.find(".files [aria-selected=true]").inner_text() == "reader.cpp"
    heads = explorer.find(".files section:visible .filehead > b")
    bars = explorer.find(".files .bar:visible")
    # Any two: the one that is chosen and the one before it.
    for role, shown in (
        ("writer", ["reader.cpp", "writer.cpp"]), ("compute", ["compute.cpp", "writer.cpp"]),
        ("reader", ["reader.cpp", "compute.cpp"]),
    ):  # fmt: skip
        explorer.file(f"{role}.cpp")
        assert heads.all_inner_texts() == shown
        assert bars.count() == 1
        before = lists.first.bounding_box()
        bars.focus()
        explorer.type("ArrowRight")
        after = lists.first.bounding_box()
        assert before
        assert after
        assert after["width"] > before["width"] + 5
    assert violations(explorer) == []
    explorer.file("main.cpp")
    assert lists.count() == 1
    assert bars.count() == 0
    explorer.file("writer.cpp")
    # The pair is remembered.
    explorer.page.goto(ADDRESS)
    again = mount(explorer.page, gemm.data)
    again.page.set_viewport_size({"width": 1100, "height": 900})
    again.tab("Code")
    assert again.find(".files section:visible .filehead > b").all_inner_texts() == ["reader.cpp", "writer.cpp"]
    again.page.set_viewport_size({"width": 880, "height": 900})
    again.page.wait_for_function("!document.querySelectorAll('.files .bar:not([hidden])')[0]?.checkVisibility()")
    assert again.find(".files .rows:visible").count() == 1
    assert again.find(".files [aria-selected=true]").inner_text() == "writer.cpp"


def test_the_kernel_is_a_strip_or_a_column(show: Show, gemm: Exploration) -> None:
    explorer = show(gemm.data)
    explorer.tab("Code")
    kernel, files = explorer.find("section[aria-label=kernel]"), explorer.find(".files")
    boxes = [pane.bounding_box() or {} for pane in (kernel, files)]
    assert boxes[0]["width"] == boxes[1]["width"]
    explorer.button("as a column").click()
    boxes = [pane.bounding_box() or {} for pane in (kernel, files)]
    assert boxes[0]["height"] == boxes[1]["height"]
    explorer.page.goto(ADDRESS)
    again = mount(explorer.page, gemm.data)
    again.tab("Code")
    again.button("as a strip").click()
    assert (again.find("section[aria-label=kernel]").bounding_box() or {})["width"] > 1300


def test_a_file_opens_at_its_main_loop(show: Show, large: Exploration) -> None:
    """What it includes is folded; a pinned line, or a step of the cursor, opens the fold."""
    explorer = show(large.data, width=1500)
    explorer.tab("Code")
    for role in ("reader", "compute", "writer"):
        rows = explorer.find(f"section[aria-label='{role}.cpp'] .rows")
        seen = rows.evaluate(
            """rows => { const {top, bottom} = rows.getBoundingClientRect();
            return [...rows.querySelectorAll(".l")].filter((row) => {
                const box = row.getBoundingClientRect();
                return box.top >= top - 1 && box.bottom <= bottom + 1;
            }).map((row) => row.textContent); }"""
        )
        assert any("for (uint32_t item" in line for line in seen[:12]), role
    rows = explorer.find("section[aria-label='main.cpp'] .rows")
    explorer.file("main.cpp")
    fold = rows.locator(".gap button")
    count = int(fold.inner_text().split()[1])
    assert count >= 4
    assert (fold.bounding_box() or {})["height"] < 30
    first = rows.locator(".l:not(.gap):visible").first
    assert int(first.locator(".n").inner_text()) == count + 1
    explorer.find("section[aria-label='main.cpp'] .rows").focus()
    explorer.type("ArrowDown", "Home")
    assert rows.locator(".gap").count() == 0
    assert rows.locator(".l").first.locator(".n").inner_text() == "1"
