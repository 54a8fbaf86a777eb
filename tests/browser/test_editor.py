"""The field for code: what is seen lies where it is typed, keys do what they say, and nobody is caught in it."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator

from tests.browser.conftest import Show
from tests.browser.explorer_page import NARROW, ExplorerPage
from tests.browser.test_accessibility import violations
from ttexplore import Exploration

LONG = "// " + "a long comment, which goes on and on " * 20


def edited(explorer: ExplorerPage, file: str = "compute.cpp") -> Locator:
    """The pane of a file whose text is being edited."""
    explorer.tab("Code")
    pane = explorer.file(file)
    pane.get_by_role("button", name=f"edit {file}").click()
    return pane


def rows(pane: Locator) -> list[str]:
    return pane.locator(".text > *").all_text_contents()


def test_rows_show_what_is_typed(show: Show, gemm: Exploration) -> None:
    explorer = show(gemm.data)
    pane = edited(explorer)
    editor = pane.locator("textarea")
    text = gemm.code["compute"].text
    assert "\n".join(rows(pane)) == editor.input_value() == text
    assert pane.locator(".text .kw").count() > 10
    explorer.type("Control+End", "Backspace")
    explorer.page.keyboard.type("for (;;) {\n")
    assert editor.input_value() == text[:-1] + "for (;;) {\n    "
    explorer.type("Control+a", "Delete")
    assert (editor.input_value(), rows(pane)) == ("", [""])
    explorer.page.keyboard.insert_text("one\n\n\ttwo\n")
    assert rows(pane) == ["one", "", "\ttwo", ""]
    # Typing is undone as it was done.
    explorer.type("Control+z", "Control+z")
    assert "\n".join(rows(pane)) == editor.input_value()
    assert editor.input_value().startswith(text[:100])


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("width", [1920, 1400, 1000, NARROW])
def test_the_field_lies_on_its_rows(show: Show, gemm: Exploration, width: int, wrapped: bool) -> None:
    explorer = show(gemm.data, width=width)
    pane = edited(explorer)
    explorer.page.keyboard.insert_text(f"{LONG}\n\tint indented = 1;   \n")
    if not wrapped:
        explorer.press("w")
    heights, overflow = pane.locator("textarea").evaluate(
        """async (field) => {
            const rows = [...field.previousSibling.children];
            const overflow = [field.scrollWidth - field.clientWidth, field.scrollTop, field.scrollLeft];
            const all = rows.reduce((sum, row) => sum + row.getBoundingClientRect().height, 0);
            field.style.height = 0;
            return [[field.scrollHeight, Math.round(all)], overflow];
        }"""
    )
    assert heights[0] == heights[1]
    assert overflow == [0, 0, 0]
    sheet = pane.locator(".sheet")
    sideways = sheet.evaluate("one => one.scrollWidth - one.clientWidth")
    assert (sideways == 0) == wrapped
    if not wrapped:
        sheet.evaluate("one => { one.scrollLeft = 1e6; }")
        ends = sheet.evaluate(
            """one => {
                const range = document.createRange();
                range.selectNodeContents(one.querySelector(".text > *"));
                return one.getBoundingClientRect().right - range.getBoundingClientRect().right;
            }"""
        )
        assert ends > 0
        # Line numbers stay in sight.
        pane.locator(".aside").wait_for()
        first = pane.locator(".text > *").first
        assert first.evaluate("one => getComputedStyle(one, '::before').position") == "sticky"


def test_tab_leaves_and_brackets_indent(show: Show, gemm: Exploration) -> None:
    explorer = show(gemm.data)
    pane = edited(explorer)
    editor = pane.locator("textarea")
    explorer.type("Control+a")
    explorer.page.keyboard.insert_text("one\n\ntwo\nthree")
    explorer.type("Control+Home", "Shift+ArrowDown", "Shift+ArrowDown", "Control+]")
    assert editor.input_value() == "    one\n\n    two\nthree"
    explorer.type("Control+]", "Control+[", "Control+[")
    assert editor.input_value() == "one\n\ntwo\nthree"
    # In one line, the caret stays where it is in it.
    explorer.type("Control+Home", "ArrowRight", "Control+]", "x", "Control+[", "y")
    assert editor.input_value() == "oxyne\n\ntwo\nthree"
    explorer.type("Home", "Control+[", "z")
    assert editor.input_value() == "zoxyne\n\ntwo\nthree"
    explorer.type("Tab")
    assert not editor.evaluate("one => one === document.activeElement")
    explorer.type("Shift+Tab")
    assert editor.evaluate("one => one === document.activeElement")
    explorer.type("Shift+Tab")
    assert not editor.evaluate("one => one === document.activeElement")


def test_pages_are_those_in_sight_and_the_place_is_kept(show: Show, gemm: Exploration) -> None:
    explorer = show(gemm.data, height=500)
    pane = edited(explorer)
    sheet = pane.locator(".sheet")
    explorer.page.keyboard.insert_text("\n".join(map(str, range(1, 301))))
    explorer.type("Control+Home")
    page = sheet.evaluate("one => Math.floor(one.clientHeight / 18) - 1")
    explorer.type("PageDown")
    current = pane.locator(".text > .at")
    assert current.text_content() == f"{1 + page}"
    explorer.type("PageDown", "PageDown", "PageUp")
    assert current.text_content() == f"{1 + 2 * page}"
    place = sheet.evaluate("one => one.scrollTop")
    assert place > 0
    explorer.file("reader.cpp")
    explorer.file("compute.cpp")
    assert sheet.evaluate("one => one.scrollTop") == place
    explorer.tab("Steps")
    explorer.tab("Code")
    explorer.page.wait_for_function(
        "place => document.querySelector('.editor:not([hidden]) .sheet').scrollTop === place", arg=place
    )


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious_in_an_editor(show: Show, gemm: Exploration, theme: str) -> None:
    explorer = show(gemm.data, theme=theme)
    edited(explorer)
    assert violations(explorer, "light" if theme == "light" else "dark") == []
