"""The kernel is edited in its pane: what is typed is lowered, the reader stays where they are, and an error leaves what
could be lowered in sight."""

from __future__ import annotations

import json
import threading
import zlib
from typing import Any

import pytest
from playwright.sync_api import FloatRect, Locator

from tests.browser.conftest import Show
from tests.browser.explorer_page import NARROW, WIDE, ExplorerPage
from tests.browser.test_accessibility import violations
from ttexplore import Exploration
from ttexplore.session.widget import ExplorerWidget


class Python:
    """Answers a page as the notebook's kernel does."""

    def __init__(self, explorer: ExplorerPage, exploration: Exploration, monkeypatch: pytest.MonkeyPatch) -> None:
        self.explorer = explorer
        self.widget: ExplorerWidget = exploration.widget()
        self.said: list[tuple[dict[str, Any], list[bytes] | None]] = []
        monkeypatch.setattr(self.widget, "_tell", lambda message, buffers=None: self.said.append((message, buffers)))

    def answer(self, count: int, do: str = "edit") -> dict[str, Any]:
        """Waits until the page has asked so often in all, and answers the last question; gives the answer."""
        asked = "([count, what]) => sent.filter((one) => one.do === what).length >= count"
        self.explorer.page.wait_for_function(asked, arg=[count, do])
        questions = [one for one in self.explorer.sent() if one["do"] == do]
        assert len(questions) == count
        question = questions[-1]
        self.widget._answer(question, threading.Event())
        message, buffers = self.said[-1]
        message = {name: value for name, value in message.items() if name != "id"}
        data = json.loads(zlib.decompress(buffers[0])) if buffers else None
        at = next(i for i, one in enumerate(self.explorer.sent()) if one.get("id") == question["id"])
        self.explorer.answer(message, data, at)
        if data and do == "edit" and not message["error"]:
            self.explorer.data = data
        return message


@pytest.fixture
def explorer(show: Show, gemm: Exploration) -> ExplorerPage:
    return show(gemm.data)


@pytest.fixture
def python(explorer: ExplorerPage, gemm: Exploration, monkeypatch: pytest.MonkeyPatch) -> Python:
    return Python(explorer, gemm, monkeypatch)


def field(explorer: ExplorerPage) -> Locator:
    return explorer.root.get_by_role("textbox", name="kernel, edited").locator("visible=true")


def replace(explorer: ExplorerPage, old: str, new: str) -> None:
    """Selects a text of the kernel, and types another one."""
    field(explorer).evaluate(
        "(one, old) => { const at = one.value.indexOf(old); if (at < 0) throw old; one.focus();"
        " one.setSelectionRange(at, at + old.length); }",
        old,
    )
    explorer.page.keyboard.insert_text(new)


def bounds(element: Locator) -> FloatRect:
    box = element.bounding_box()
    assert box
    return box


def status(explorer: ExplorerPage, text: str) -> None:
    explorer.find(".draft [role=status]:visible").filter(has_text=text).wait_for()


def test_a_block_size_is_edited_and_the_reader_stays(explorer: ExplorerPage, python: Python) -> None:
    explorer.go("D5")
    explorer.source_row(21).click()
    listing = explorer.find(".diff")
    explorer.press("c")
    listing.evaluate("one => one.scrollTo(0, 60)")
    assert listing.evaluate("one => one.scrollTop") == 60
    before = explorer.find(".history").inner_text()
    facts = explorer.head()
    assert "L21\n" in before
    explorer.press("e")
    assert explorer.find(".steplist [aria-selected=true] .letter").inner_text() == "D5"
    # A new line above what is pinned.
    replace(explorer, "        A_shared =", "        # tiles\n        A_shared =")
    status(explorer, "lowering …")
    python.answer(1)
    status(explorer, "edited; source unchanged")
    assert explorer.letter() == "D5"
    assert "L22\n" in explorer.find(".history").inner_text()
    assert listing.evaluate("one => one.scrollTop") == 60
    # The block size: a few keys are one question.
    replace(explorer, "block_K=32", "block_K=")
    explorer.page.keyboard.type("128", delay=30)
    python.answer(2)
    explorer.find("header .fact.flash").first.wait_for()
    assert explorer.head() != facts
    assert explorer.find(".step.flash").count()
    assert explorer.letter() == "D5"
    assert "L22\n" in explorer.find(".history").inner_text()
    assert listing.evaluate("one => one.scrollTop") == 60
    explorer.page.wait_for_function("() => !document.querySelector('.flash')")


def test_an_error_leaves_what_could_be_lowered(explorer: ExplorerPage, python: Python, gemm: Exploration) -> None:
    explorer.press("e")
    replace(explorer, "T.clear(C_local)", "T.clera(C_local)")
    error = python.answer(1)["error"]
    marked = explorer.find(".text [data-mark=error]")
    marked.wait_for()
    assert "T.clera" in marked.inner_text()
    assert "T.clera does not exist" in explorer.find(".marks .link:visible").inner_text()
    status(explorer, "✖ not lowered")
    outdated = explorer.root.evaluate("one => getComputedStyle(one.querySelector('.tabs'), '::after').content")
    assert outdated == '"the last version that could be lowered"'
    facts = explorer.head()
    assert explorer.find(".steplist [role=option]").count() == len(gemm.data["steps"])
    for theme in ("Steps", "Code"):
        explorer.tab(theme)
        assert violations(explorer) == []
    # A click on the message leads to the line; mended, all is well.
    explorer.tab("Steps")
    explorer.find(".marks .link:visible").first.click()
    at = field(explorer).evaluate("one => one.value.slice(0, one.selectionStart).split('\\n').length")
    assert at + gemm.kernel.first_line - 1 == error["line"]
    replace(explorer, "T.clera", "T.clear")
    explorer.page.wait_for_function("() => !document.querySelector('.outdated')")
    assert explorer.head() == facts
    # A lowering that fails on the way says so, too.
    replace(explorer, "num_stages=2", "num_stages=2000")
    assert "of L1" in "".join(python.answer(2)["error"]["message"])
    explorer.page.locator(".outdated .text [data-mark=error]").wait_for()
    assert explorer.head() == facts


@pytest.mark.parametrize("width", [WIDE, 1000, NARROW])
def test_an_error_lies_under_its_line(
    show: Show, gemm: Exploration, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    explorer = show(gemm.data, width=width, height=800)
    python = Python(explorer, gemm, monkeypatch)
    explorer.press("e")
    sheet = explorer.find(".editor:visible .sheet")
    height = sheet.evaluate("one => one.clientHeight")
    assert height >= 16 * 18
    replace(explorer, "T.clear(C_local)", "T.clera(C_local)")
    python.answer(1)
    message = explorer.find(".marks .link:visible")
    message.wait_for()
    # Nothing moved to make room for it, and no bar lies on it.
    assert sheet.evaluate("one => one.clientHeight") == height
    row, told, room = (
        bounds(one) for one in (explorer.find(".editor:visible [data-mark=error]").first, message, sheet)
    )
    assert told["y"] == row["y"] + row["height"]
    assert told["y"] + told["height"] <= room["y"] + room["height"]
    assert message.evaluate(
        """one => {
            const { x, y, width, height } = one.getBoundingClientRect();
            return document.elementFromPoint(x + width / 2, y + height / 2) === one;
        }"""
    )
    assert explorer.root.evaluate("one => one.querySelector('header').scrollWidth <= one.clientWidth")
    # What it lies on is read with the caret in it.
    opacity = "one => getComputedStyle(one).opacity"
    assert message.evaluate(opacity) == "1"
    explorer.type("ArrowDown")
    assert float(message.evaluate(opacity)) < 0.5
    # Esc keeps the text and the error; the keys are the explorer's again, and what is said leads back.
    explorer.type("Escape")
    place = sheet.evaluate("one => one.scrollTop")
    assert "T.clera" in field(explorer).input_value()
    explorer.press("]")
    assert sheet.evaluate("one => one.scrollTop") == place
    explorer.button("✖ not lowered").click()
    explorer.type("End", "Backspace", "Backspace")
    assert "T.clera(C_loca\n" in field(explorer).input_value()


def test_a_line_above_the_decorator_moves_numbers_and_marks(
    explorer: ExplorerPage, python: Python, gemm: Exploration
) -> None:
    explorer.press("e")
    first = gemm.kernel.first_line
    field(explorer).evaluate("one => { one.focus(); one.setSelectionRange(0, 0); }")
    explorer.page.keyboard.insert_text("# hi\n")
    python.answer(1)
    status(explorer, "edited; source unchanged")
    assert explorer.find(".source .listing .l .n").first.text_content() == str(first)
    numbers = "one => getComputedStyle(one.querySelector('.source .text')).getPropertyValue('--before')"
    assert explorer.root.evaluate(numbers) == str(first - 1)
    replace(explorer, "T.gemm(A_shared, B_shared", "T.gemm(A_shared, B_shard")
    error = python.answer(2)["error"]
    marked = explorer.find(".source .text [data-mark=error]")
    marked.wait_for()
    assert "B_shard" in (marked.text_content() or "")
    rows = field(explorer).input_value().split("\n")
    assert "B_shard" in rows[error["line"] - first]
    assert f"line {error['line']}:" in explorer.find(".marks .link:visible").inner_text()
    # Undone, the numbers are the first ones again.
    explorer.button("undo all").click()
    python.answer(3)
    explorer.page.wait_for_function("() => !document.querySelector('.outdated')")
    explorer.find(".draft [role=status]:visible").filter(has_text="lowered as you type").wait_for()
    assert explorer.find(".source .listing .l").first.text_content() == f"{first}{gemm.kernel.source.lines[0].text}"


def test_a_lowering_that_failed_is_mended(show: Show, refused: Exploration, monkeypatch: pytest.MonkeyPatch) -> None:
    explorer = show(refused.data)
    python = Python(explorer, refused, monkeypatch)
    failed = explorer.letter()
    explorer.press("e")
    # Another failure takes the place of this one.
    replace(explorer, "num_stages=2", "num_stages=3")
    assert python.answer(1)["error"] is not None
    explorer.find(".text [data-mark=error]").wait_for()
    assert not explorer.page.locator(".outdated").count()
    assert explorer.letter() == failed
    replace(explorer, "    M, N, K = T.const", "    block_M = block_N = 64\n    M, N, K = T.const")
    assert python.answer(2)["error"] is None
    status(explorer, "edited; source unchanged")
    assert explorer.letter() == failed
    assert not explorer.find(".card.fault").count()


def test_only_the_newest_text_counts(explorer: ExplorerPage, gemm: Exploration) -> None:
    explorer.press("e")
    replace(explorer, "num_stages=2", "num_stages=3")
    asked = "(count) => sent.filter((one) => one.do === 'edit').length === count"
    explorer.page.wait_for_function(asked, arg=1)
    replace(explorer, "num_stages=3", "num_stages=4")
    explorer.page.wait_for_function(asked, arg=2)
    first, cancel, second = explorer.sent()
    assert cancel == {"do": "cancel", "edit": first["id"]}
    other, newest = (gemm.edited(one["text"]) for one in (first, second))
    done: dict[str, Any] = {"state": "done", "moved": [], "error": None}
    explorer.answer({**done, "variant": "2"}, newest.data, 2)
    status(explorer, "edited; source unchanged")
    shown = explorer.head()
    # What comes late changes nothing; Python may forget it.
    explorer.answer({**done, "variant": "1"}, other.data, 0)
    replace(explorer, "num_stages=4", "num_stages=5")
    explorer.page.wait_for_function(asked, arg=3)
    third = explorer.sent()[-1]
    assert (third["variant"], third["unused"]) == ("2", ["1"])
    assert explorer.head() == shown


def test_a_result_says_that_it_is_of_another_lowering(explorer: ExplorerPage, python: Python) -> None:
    explorer.tab("Run")
    explorer.button("Run").click()
    explorer.answer({"state": "done", "html": "<p>first result</p>", "passed": True})
    result = explorer.find(".result")
    result.get_by_text("first result").wait_for()
    mark = "one => getComputedStyle(one, '::before').content"
    assert result.evaluate(mark) == "none"
    explorer.tab("Steps")
    explorer.button("edit the kernel").click()
    text = field(explorer).input_value()
    field(explorer).fill(text.replace("num_stages=2", "num_stages=3"))
    python.answer(1)
    explorer.tab("Run")
    assert result.get_by_text("first result").is_visible()
    assert result.evaluate(mark) == '"of another lowering: run again"'
    # Nothing is marked where nothing is shown.
    assert explorer.find(".checks").evaluate(mark) == "none"
    explorer.button("Run").click()
    assert result.evaluate(mark) == '"of another lowering: run again"'
    explorer.answer({"state": "done", "html": "<p>second result</p>", "passed": True})
    result.get_by_text("second result").wait_for()
    assert result.evaluate(mark) == "none"


def test_all_edits_are_undone_and_copied(explorer: ExplorerPage, python: Python, gemm: Exploration) -> None:
    facts = explorer.head()
    explorer.button("edit the kernel").click()
    replace(explorer, "block_K=32", "block_K=64")
    python.answer(1)
    status(explorer, "edited; source unchanged")
    # Code shows the same text, and edits it.
    explorer.tab("Code")
    assert "block_K=64" in field(explorer).input_value()
    replace(explorer, "num_stages=2", "num_stages=3")
    python.answer(2)
    status(explorer, "edited; source unchanged")
    explorer.button("copy the kernel").click()
    explorer.spoken("kernel copied")
    copied = explorer.page.evaluate("navigator.clipboard.readText()")
    wanted = gemm.kernel.source.text.replace("block_K=32", "block_K=64").replace("num_stages=2", "num_stages=3")
    assert copied == wanted[:-1]
    # Esc ends it, the edits stay; Run takes their lowering.
    field(explorer).press("Escape")
    assert not field(explorer).count()
    explorer.tab("Run")
    explorer.root.get_by_role("button", name="Run", exact=True).click()
    assert explorer.sent()[-1]["variant"] == "2"
    explorer.tab("Steps")
    assert "block_K=64" in explorer.find(".source .rows").inner_text()
    edited = explorer.head()
    explorer.button("undo all").click()
    python.answer(3)
    assert explorer.new_head(edited) == facts
    assert not explorer.button("undo all").is_visible()


def test_a_what_if_gives_the_edits_back(explorer: ExplorerPage, python: Python) -> None:
    explorer.press("e")
    replace(explorer, "block_K=32", "block_K=64")
    python.answer(1)
    status(explorer, "edited; source unchanged")
    # One that is not lowered yet, and one of a C++ kernel.
    replace(explorer, "T.clear(C_local)", "T.clera(C_local)")
    python.answer(2)
    explorer.page.locator(".outdated").wait_for()
    text = field(explorer).input_value()
    explorer.tab("Code")
    explorer.file("reader.cpp").get_by_role("button", name="edit reader.cpp").click()
    explorer.page.keyboard.type("// mine\n")
    explorer.tab("What if")
    explorer.button("Lower and compare").click()
    assert explorer.sent()[-1]["variant"] == "1"
    python.answer(1, "fork")
    explorer.button("Explore this lowering").click()
    assert not explorer.page.locator(".outdated").count()
    explorer.button("Back to the original").click()
    assert field(explorer).input_value() == text
    python.answer(3)
    explorer.find(".text [data-mark=error]").first.wait_for()
    explorer.tab("Code")
    assert "// mine" in explorer.root.get_by_role("textbox", name="reader.cpp, edited").input_value()


def test_edits_of_another_lowering_do_not_run(explorer: ExplorerPage, python: Python, gemm: Exploration) -> None:
    """An edited kernel for which another text is emitted now is kept and marked, and runs when that is undone."""
    text = gemm.kernel.source.text.replace("block_K=32", "block_K=64")
    other = gemm.edited(text)
    changed = [role for role in ("reader", "compute", "writer") if str(gemm.code[role]) != str(other.code[role])]
    assert "compute" in changed
    assert "writer" not in changed
    explorer.tab("Code")
    for name in ("compute.cpp", "writer.cpp"):
        explorer.file(name).get_by_role("button", name=f"edit {name}").click()
        explorer.page.keyboard.type("// mine\n")
    explorer.tab("Steps")
    explorer.press("e")
    replace(explorer, "block_K=32", "block_K=64")
    python.answer(1)
    status(explorer, "edited; source unchanged")
    explorer.tab("Code")
    assert explorer.file("writer.cpp").locator(".filehead .q").inner_text() == "edited"
    pane = explorer.file("compute.cpp")
    assert pane.locator(".filehead .q").inner_text() == "✖ edited before the kernel changed"
    assert "// mine" in explorer.root.get_by_role("textbox", name="compute.cpp, edited").input_value()
    assert violations(explorer) == []
    # Nothing runs a mix of two lowerings.
    explorer.tab("Run")
    run = explorer.root.get_by_role("button", name="Run", exact=True)
    assert run.is_disabled()
    reason = "compute.cpp edited before the kernel changed: undo one of the two"
    assert explorer.find(".runview .status .why").inner_text() == f"Run: {reason}"
    assert explorer.button("Follow").first.is_disabled()
    explorer.tab("Buffers")
    assert explorer.button("Record a run").is_disabled()
    # With the kernel's edit undone it is the lowering that was edited.
    explorer.tab("Steps")
    explorer.button("undo all").click()
    python.answer(2)
    explorer.page.wait_for_function("() => !document.querySelector('.outdated')")
    status(explorer, "lowered as you type")
    explorer.tab("Run")
    run.click()
    assert set(explorer.sent()[-1]["code"]) == {"compute", "writer"}


def test_edits_of_a_kernel_are_undone_for_the_new_lowering(explorer: ExplorerPage, python: Python) -> None:
    explorer.tab("Code")
    explorer.file("compute.cpp").get_by_role("button", name="edit compute.cpp").click()
    explorer.page.keyboard.type("// mine\n")
    explorer.tab("Steps")
    explorer.press("e")
    replace(explorer, "block_K=32", "block_K=64")
    python.answer(1)
    status(explorer, "edited; source unchanged")
    explorer.tab("Code")
    pane = explorer.file("compute.cpp")
    pane.get_by_role("button", name="undo the edits of compute.cpp").click()
    pane.get_by_role("button", name="edit compute.cpp").click()
    explorer.page.keyboard.type("// again\n")
    assert pane.locator(".filehead .q").inner_text() == "edited"
    explorer.tab("Run")
    explorer.root.get_by_role("button", name="Run", exact=True).click()
    code = explorer.sent()[-1]["code"]
    assert list(code) == ["compute"]
    assert code["compute"].startswith("// again\n")


def test_what_changed_flashes_once(explorer: ExplorerPage, python: Python) -> None:
    explorer.press("e")
    replace(explorer, "block_K=32", "block_K=64")
    python.answer(1)
    explorer.find(".step.flash").first.wait_for()
    explorer.tab("Run")
    # Longer than it lasts, out of the page.
    explorer.page.wait_for_timeout(2000)
    explorer.tab("Steps")
    assert not explorer.find(".flash").count()


def test_what_cannot_be_edited_says_why(show: Show, gemm: Exploration) -> None:
    for state, reason in (
        ({"live": False}, "this page has no Python"),
        ({"missing": {"edit": "needs the kernel"}}, "Not available: needs the kernel."),
    ):
        explorer = show(gemm.data, **state)
        explorer.press("e")
        status(explorer, reason)
        assert not field(explorer).count()
        assert violations(explorer) == []
        explorer.press("e")
        assert explorer.find(".draft [role=status]").first.inner_text() == ""


def test_a_view_that_opens_later_shows_the_edited_text(
    show: Show, gemm: Exploration, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = gemm.kernel.source.text[:-1].replace("block_K=32", "block_K=64")
    explorer = show(gemm.data, here={"tab": "Steps", "step": "D3", "pin": "21", "file": "", "text": text})
    python = Python(explorer, gemm, monkeypatch)
    python.answer(1)
    status(explorer, "edited; source unchanged")
    assert explorer.letter() == "D3"
    assert "L21" in explorer.find(".history").inner_text()


def test_options_of_a_what_if_stay(explorer: ExplorerPage, python: Python) -> None:
    explorer.tab("What if")
    form = explorer.find(".whatifview form")
    form.get_by_label("stages").fill("3")
    form.get_by_label("policy").select_option("strided")
    form.get_by_label("target").select_option("blackhole_p150")
    explorer.tab("Steps")
    explorer.press("e")
    replace(explorer, "block_K=32", "block_K=64")
    python.answer(1)
    status(explorer, "edited; source unchanged")
    explorer.tab("What if")
    chosen = {name: form.get_by_label(name).input_value() for name in ("stages", "policy", "target")}
    assert chosen == {"stages": "3", "policy": "strided", "target": "blackhole_p150"}
    explorer.button("Lower and compare").click()
    question = explorer.sent()[-1]
    assert (question["variant"], question["options"]) == ("1", {"stages": "3", "policy": "strided"})
