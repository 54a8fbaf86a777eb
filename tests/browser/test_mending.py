"""A kernel is broken, run on the emulator, found at its lines and mended by the fix that was tried."""

from __future__ import annotations

import json
import threading
from typing import Any, Literal

import pytest
from playwright.sync_api import Locator

from tests.browser.conftest import Show
from tests.browser.explorer_page import ExplorerPage
from tests.browser.test_accessibility import violations
from tests.browser.test_editor import edited
from tests.corpus import gemm as gemm_of
from ttexplore import Exploration, explore

MISSING = "        A_shared_buffer.pop_front(2);"


@pytest.fixture(autouse=True)
def _emulated(gemm: Exploration) -> None:
    if missing := next(one["missing"] for one in gemm.backends if one["name"] == "emulator"):
        pytest.skip(missing)


def run(explorer: ExplorerPage, exploration: Exploration) -> None:
    """Runs the kernels on the emulator."""
    explorer.tab("Run")
    explorer.find("select[aria-label=backend]").select_option("emulator")
    explorer.button("Run").click()
    answer(explorer, exploration)


def answer(explorer: ExplorerPage, exploration: Exploration) -> None:
    """Answers what the page has asked last about an exploration as Python does."""
    widget, told = exploration.widget(), list[dict[str, Any]]()
    widget.send = lambda message, buffers=None: told.append(message)  # pyright: ignore
    widget._answer({**explorer.sent()[-1], "variant": ""}, threading.Event())
    explorer.answer({name: value for name, value in told[-1].items() if name != "id"})


def without(explorer: ExplorerPage, call: str, instead: str = "") -> tuple[Locator, int]:
    """Takes the line of compute.cpp with a call out, or puts another one there; its pane, and the line's number."""
    pane = edited(explorer)
    lines = pane.locator("textarea").input_value().split("\n")
    (position,) = [i for i, line in enumerate(lines) if call in line]
    pane.locator("textarea").fill(
        "\n".join([*lines[:position], *([instead] if instead else []), *lines[position + 1 :]])
    )
    return pane, position + 1


def marked(pane: Locator) -> list[tuple[str | None, str | None]]:
    rows = pane.locator(".text > [data-mark], .rows:visible .l[data-mark]")
    return [(one.get_attribute("data-mark"), one.locator("code").or_(one).last.text_content()) for one in rows.all()]


@pytest.mark.parametrize(("width", "theme"), [(1000, "dark"), (1400, "light"), (1920, "dark")])
def test_a_missing_pop_is_found_mended_and_the_run_passes(
    show: Show, gemm: Exploration, width: int, theme: Literal["light", "dark"]
) -> None:
    explorer = show(gemm.data, width=width, theme=theme)
    pane, _ = without(explorer, "A_shared_buffer.pop_front")
    run(explorer, gemm)
    card = explorer.find(".result .card.fault")
    assert violations(explorer, theme) == []
    waiting = {"reader": "A_shared_buffer.reserve_back(2);", "compute": "B_shared_buffer.wait_front(2);"}
    waiting["writer"] = "C_local_out_buffer.wait_front(4);"
    for role, call in waiting.items():
        explorer.tab("Run")
        card.get_by_role("button", name=f"{role}.cpp line").click()
        file = explorer.find(f"section[aria-label='{role}.cpp']")
        assert [(kind, (text or "").strip()) for kind, text in marked(file)] == [("stuck", call)]
        assert file.evaluate("one => one.contains(document.activeElement)")
        at = file.locator(".at:visible, .rows:visible .cursor")
        assert call in (at.text_content() or "")
        assert at.evaluate(
            """one => {
                const [row, list] = [one, one.closest(".sheet, .rows")].map((one) => one.getBoundingClientRect());
                return row.top >= list.top && row.bottom <= list.bottom;
            }"""
        )
        assert violations(explorer, theme) == []
    # A listing says it where the cursor comes by.
    explorer.type("ArrowUp", "ArrowDown")
    explorer.spoken("wait_front(4) on circular buffer 16 (C_local_out), which has 0 of 8 tiles")
    explorer.tab("Run")
    assert "compute.cpp gets A_shared_buffer.pop_front(2); before line 32" in card.inner_text()
    assert card.locator(".pre code").inner_text() == "A_shared_buffer.pop_front(2);"
    explorer.button("Apply this fix").click()
    assert explorer.button("Apply this fix").is_disabled()
    assert "added A_shared_buffer.pop_front(2); as compute.cpp line 32" in card.inner_text()
    card.get_by_role("button", name="compute.cpp line 32").click()
    assert marked(pane) == [("changed", f"    {MISSING}")]
    assert pane.locator(".text > .at").text_content() == f"    {MISSING}"
    assert sorted(pane.locator("textarea").input_value().split("\n")) == sorted(gemm.code["compute"].text.split("\n"))
    run(explorer, gemm)
    explorer.spoken("the run passed")
    assert explorer.sent()[-1]["code"].keys() == {"compute"}
    explorer.tab("Code")
    assert marked(pane) == []


def test_a_buffer_that_is_too_small_is_deepened_in_what_if_and_the_run_passes(show: Show) -> None:
    """The reader does all of A before B, while compute takes both in turn."""
    exploration = explore(gemm_of(64, 64, 128, 64, 64, 32, 2), options={"cb_depth": {"b": 3}, "loaded_by": "reader"})
    explorer = show(exploration.data)
    pane = edited(explorer, "reader.cpp")
    lines = pane.locator("textarea").input_value().split("\n")
    first = next(i for i, line in enumerate(lines) if "for (uint32_t kb = 0; kb < 4;" in line)
    loop = lines[first : first + 15]
    a_only = [loop[i] for i in (0, 1, 3, 4, 5, 6, 11, 12, 14)]
    b_only = [loop[i] for i in (0, 2, 7, 8, 9, 10, 11, 13, 14)]
    pane.locator("textarea").fill("\n".join([*lines[:first], *a_only, *b_only, *lines[first + 15 :]]))
    run(explorer, exploration)
    assert "the program ends when a holds 8 tiles instead of 4" in explorer.find(".result").inner_text()
    explorer.button("Apply this fix").click()
    # What is asked for waits for the module of the tab, which is opened for the first time.
    explorer.find(".whatifview").wait_for()
    # The depth that was set already stays.
    depths = {"b": 3, "a": 4}
    asked = explorer.sent()[-1]
    assert (asked["do"], json.loads(asked["options"]["cb_depth"])) == ("fork", depths)
    deeper = exploration.fork(cb_depth=depths)
    explorer.answer_what_if(exploration, deeper)
    assert json.loads(explorer.find(".whatifview form").get_by_label("cb_depth").input_value()) == depths
    explorer.button("Explore this lowering").click()
    # What is edited stays edited: the same text was emitted for it.
    run(explorer, deeper)
    explorer.spoken("the run passed")
    assert explorer.sent()[-1]["code"].keys() == {"reader"}
    # Applied once more, it is tried once more.
    explorer.button("Back to the original").click()
    run(explorer, exploration)
    explorer.button("Apply this fix").click()
    assert explorer.sent()[-1]["do"] == "fork"


def test_an_error_of_the_compiler_is_at_its_line(show: Show, gemm: Exploration) -> None:
    explorer = show(gemm.data)
    pane, number = without(explorer, "tile_regs_commit", "        tile_regs_commit(1);")
    run(explorer, gemm)
    explorer.find(".result").get_by_role("button", name=f"compute.cpp line {number}").click()
    assert marked(pane) == [("error", "        tile_regs_commit(1);")]
    told = pane.locator(".marks button")
    assert told.inner_text().startswith(f"line {number}: ")
    # It is told by a sign as well, not by its colour alone.
    for place in (told, pane.locator(".text > [data-mark]")):
        assert "✖" in place.evaluate("one => getComputedStyle(one, '::before').content")
    assert "tile_regs_commit" in told.inner_text()
    assert violations(explorer) == []
    # The keyboard goes from the text to what is said, and from there to the line.
    explorer.type("Control+Home", "Enter", "Tab", "Enter")
    assert told.inner_text().startswith(f"line {number + 1}: ")
    assert explorer.page.evaluate("document.activeElement.tagName") == "TEXTAREA"
    assert pane.locator(".text > .at").text_content() == "        tile_regs_commit(1);"
    # What is changed is no longer what the compiler judged.
    explorer.type("End", "Backspace")
    assert marked(pane) == []
    assert not told.is_visible()


def test_a_recording_that_fails_marks_its_line_too(show: Show, gemm: Exploration) -> None:
    explorer = show(gemm.data)
    pane, number = without(explorer, "tile_regs_commit", "wrong;")
    explorer.tab("Buffers")
    explorer.button("Record a run").click()
    answer(explorer, gemm)
    explorer.find(".timeline").get_by_role("button", name=f"compute.cpp line {number}").click()
    assert marked(pane) == [("error", "wrong;")]


def test_marks_go_with_the_edits(show: Show, gemm: Exploration) -> None:
    explorer = show(gemm.data)
    pane, _ = without(explorer, "A_shared_buffer.pop_front")
    run(explorer, gemm)
    explorer.tab("Code")
    assert [kind for kind, _ in marked(pane)] == ["stuck"]
    pane.get_by_role("button", name="undo the edits of compute.cpp").click()
    assert marked(pane) == []
    reader = explorer.file("reader.cpp")
    assert [kind for kind, _ in marked(reader)] == ["stuck"]
    reader.get_by_role("button", name="edit reader.cpp").click()
    assert [kind for kind, _ in marked(reader)] == ["stuck"]
    assert reader.locator(".marks button").count() == 1


def test_a_fix_is_not_applied_to_another_text(show: Show, gemm: Exploration) -> None:
    explorer = show(gemm.data)
    pane, _ = without(explorer, "A_shared_buffer.pop_front")
    run(explorer, gemm)
    explorer.tab("Code")
    pane.locator("textarea").press("Control+Home")
    explorer.type("Enter")
    text = pane.locator("textarea").input_value()
    explorer.tab("Run")
    explorer.button("Apply this fix").click()
    assert "compute.cpp has changed around line 32: run it again" in explorer.find(".result").inner_text()
    explorer.tab("Code")
    assert pane.locator("textarea").input_value() == text
