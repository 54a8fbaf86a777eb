"""Cores, code, run and what-if, with answers made by hand where Python would give them."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import pytest

from tests.browser.conftest import Show
from tests.browser.explorer_page import ExplorerPage
from ttexplore import Exploration, load
from ttexplore.record import ErrorRecord
from ttexplore.views.explorer import error_data


@pytest.fixture
def explorer(show: Show, gemm: Exploration) -> ExplorerPage:
    return show(gemm.data)


def test_cores_show_each_measure(explorer: ExplorerPage) -> None:
    explorer.tab("Cores")
    cores = explorer.data["cores"]["cores"]
    labels = explorer.find(".coremap [data-core]").evaluate_all(
        "cells => cells.map((cell) => [cell.dataset.core, cell.querySelector('text')?.textContent])"
    )
    shown = dict(labels)
    assert all(shown[f"{core['x']},{core['y']}"] == str(core["items"]) for core in cores if core["items"])
    explorer.find("select[aria-label=measure]").select_option("tiles moved")
    measure = next(one for one in explorer.data["cores"]["measures"] if one["name"] == "tiles moved")
    for core, label, step in zip(cores, measure["labels"], measure["steps"], strict=True):
        cell = explorer.find(f".coremap [data-core='{core['x']},{core['y']}']")
        assert cell.locator("text").text_content() == label
        assert cell.locator("path").get_attribute("class") == f"f{step}"
    assert explorer.sent() == []


def test_arrows_choose_cores_and_the_card_tells_their_arguments(explorer: ExplorerPage) -> None:
    explorer.tab("Cores")
    explorer.find(".coremap [data-core][tabindex='0']").focus()
    explorer.type("Home", "ArrowRight", "ArrowDown")
    chosen = explorer.find(".coremap [aria-pressed=true]").get_attribute("data-core")
    assert chosen == "1,1"
    core = next(core for core in explorer.data["cores"]["cores"] if (core["x"], core["y"]) == (1, 1))
    card = explorer.find(".corecard").inner_text()
    assert f"core (1, 1) NoC ({core['noc'][0]}, {core['noc'][1]})" in card
    for kernel, arguments in core["arguments"].items():
        assert not arguments or f"{kernel} runtime arguments" in card
        assert all(name in card and value in card for name, value in arguments)
    explorer.type("ArrowLeft")
    assert explorer.find(".coremap [aria-pressed=true]").get_attribute("data-core") == "0,1"
    # Arrows at the edge stay, and no step is changed.
    step = explorer.data["steps"][0]["letter"]
    explorer.type("ArrowLeft")
    assert explorer.find(".coremap [aria-pressed=true]").get_attribute("data-core") == "0,1"
    assert step == "A0"


def test_buttons_that_wrap_stay_together_at_the_right(show: Show, gemm: Exploration) -> None:
    explorer = show(gemm.data, width=760)
    explorer.tab("Cores")
    boxes = "all => all.map((one) => one.getBoundingClientRect()).map((box) => [box.top, box.right])"
    (top, _), (same, right) = explorer.find(".body .pictures button").evaluate_all(boxes)
    ((_, keys),) = explorer.button("keys").evaluate_all(boxes)
    assert (top, right, keys) == (same, pytest.approx(750, abs=3), pytest.approx(750, abs=3))


@pytest.mark.parametrize("kind", ["SVG", "PNG"])
def test_the_core_map_can_be_saved(explorer: ExplorerPage, kind: str, tmp_path: Path) -> None:
    explorer.tab("Cores")
    with explorer.page.expect_download() as download:
        explorer.button(f"save the drawing of cores as {kind}").click()
    path = tmp_path / "cores"
    download.value.save_as(path)
    assert path.read_bytes().startswith(b"<svg" if kind == "SVG" else b"\x89PNG")


def test_code_is_copied_and_saved_as_it_is(explorer: ExplorerPage, gemm: Exploration, tmp_path: Path) -> None:
    explorer.tab("Code")
    wanted = gemm.code["reader"].text
    explorer.file("reader.cpp").get_by_role("button", name="copy reader.cpp").click()
    explorer.spoken("reader.cpp copied")
    assert explorer.page.evaluate("navigator.clipboard.readText()").rstrip("\n") == wanted.rstrip("\n")
    with explorer.page.expect_download() as download:
        explorer.file("compute.cpp").get_by_role("button", name="download compute.cpp").click()
    assert download.value.suggested_filename == "compute.cpp"
    path = tmp_path / "compute.cpp"
    download.value.save_as(path)
    assert path.read_text(encoding="utf-8").rstrip("\n") == gemm.code["compute"].text.rstrip("\n")


def test_code_opens_at_a_file_with_what_is_pinned(explorer: ExplorerPage) -> None:
    explorer.source_row(27).click()
    explorer.tab("Code")
    chosen = explorer.find(".files [aria-selected=true]")
    assert chosen.inner_text().split()[0] == "compute.cpp"
    # What has been chosen stays.
    explorer.file("reader.cpp")
    explorer.find(".codeview > .panes > .pane").first.locator(".l").filter(has_text="C_local, C[").click()
    assert chosen.inner_text() == "reader.cpp"


def test_each_file_has_a_tab(explorer: ExplorerPage) -> None:
    explorer.tab("Code")
    tabs = explorer.find(".files [role=tab]")
    names = [file["name"] for file in explorer.data["files"]]
    assert tabs.all_inner_texts() == names
    explorer.file("tt.plan.json")
    assert '"kernel"' in explorer.find(".rows[aria-label='tt.plan.json']").inner_text()
    assert explorer.find(".files .rows:visible").count() == 1
    # The keyboard goes along them, and stays.
    explorer.type("ArrowRight", "ArrowRight")
    assert (
        explorer.find(".files [aria-selected=true]").inner_text()
        == names[(names.index("tt.plan.json") + 2) % len(names)]
    )
    assert explorer.page.evaluate("document.activeElement.getAttribute('aria-selected')") == "true"
    # Numbers of lines that come from what is pinned lead to the file.
    explorer.tab("Steps")
    explorer.source_row(27).click()
    explorer.tab("Code")
    for file, text in zip(explorer.data["files"], tabs.all_inner_texts(), strict=True):
        count = len(explorer.linked(file["listing"], 27))
        assert text.split() == [file["name"], *([str(count)] if count else [])]


def test_a_run_shows_its_progress_then_its_result(explorer: ExplorerPage) -> None:
    explorer.tab("Run")
    explorer.find("select[aria-label=backend]").select_option("emulator")
    explorer.find("[aria-label='seed of the inputs']").fill("7")
    explorer.button("Run").click()
    (question,) = explorer.sent()
    assert (question["do"], question["backend"], question["seed"]) == ("run", "emulator", 7)
    assert question["inputs"] == "random"
    busy = explorer.button("Running …")
    assert busy.is_disabled()
    explorer.answer({"state": "progress", "text": "compiling ..."})
    assert "compiling ..." in explorer.find(".runview .busy [role=status]").inner_text()
    # The button has lost the focus by becoming disabled; the explorer, not the page around it, has it now.
    assert explorer.page.evaluate("document.activeElement.classList.contains('ttx-explorer')")
    explorer.answer({"state": "done", "html": "<b>passed with PCC 1.0</b>", "passed": True})
    assert explorer.find(".result b").inner_text() == "passed with PCC 1.0"
    assert not explorer.button("Run").is_disabled()
    assert "compiling ..." in (explorer.find(".log").text_content() or "")
    explorer.spoken("the run passed")


def test_inputs_are_chosen_once_for_runs_checks_and_recordings(explorer: ExplorerPage) -> None:
    explorer.tab("Run")
    explorer.find("select[aria-label=backend]").select_option("emulator")
    chosen = explorer.find(".runview select[aria-label=inputs]")
    assert chosen.locator("option").all_inner_texts() == ["random", "ones", "yours"]
    explorer.find("[aria-label='seed of the inputs']").fill("3")
    chosen.select_option("ones")
    assert "1 everywhere" in explorer.find(".runview").inner_text()
    # What is the same each time has no seed.
    assert not explorer.find("[aria-label='seed of the inputs']").is_visible()
    assert not explorer.find(".runview [aria-label='names of notebook variables']").is_visible()
    explorer.button("Run").click()
    explorer.answer({"state": "done", "html": "<b>passed</b>", "passed": True})
    assert explorer.find(".result .q").inner_text() == "on emulator, inputs ones"
    chosen.select_option("yours")
    names = explorer.find(".runview [aria-label='names of notebook variables']")
    assert names.get_attribute("placeholder") == "a, b"
    assert "for A bfloat16 (256, 128), B bfloat16 (128, 256)" in explorer.find(".runview").inner_text()
    names.fill("left, right")
    explorer.button("Check every step").click()
    explorer.answer({"state": "done", "results": [], "first_bad": None})
    assert explorer.find(".checks .q").inner_text() == "inputs left, right"
    explorer.tab("Buffers")
    assert explorer.find(".timeline select[aria-label=inputs]").input_value() == "yours"
    explorer.button("Record a run").click()
    explorer.answer({"state": "failed", "error": error_data(ErrorRecord("UsageError", "no variable", ""))})
    asked = [(one["do"], one["inputs"], one["names"]) for one in explorer.sent()]
    assert asked == [("run", "ones", ""), ("check", "yours", "left, right"), ("record", "yours", "left, right")]
    explorer.find(".timeline select[aria-label=inputs]").select_option("random")
    explorer.tab("Run")
    assert chosen.input_value() == "random"
    assert explorer.find(".runview [aria-label='seed of the inputs']").input_value() == "3"


def test_cancel_asks_python_to_stop(explorer: ExplorerPage) -> None:
    explorer.tab("Run")
    assert not explorer.button("Cancel").is_visible()
    explorer.button("Run").click()
    explorer.button("Cancel").click()
    assert [question["do"] for question in explorer.sent()] == ["run", "cancel"]
    error = error_data(ErrorRecord("BackendError", "cancelled", "run it again"))
    explorer.answer({"state": "failed", "error": error}, question=0)
    assert "cancelled" in explorer.find(".result .card.fault").inner_text()
    assert not explorer.button("Cancel").is_visible()


def test_a_kernel_is_edited_run_and_taken_back(explorer: ExplorerPage, gemm: Exploration) -> None:
    explorer.tab("Code")
    pane = explorer.file("compute.cpp")
    emitted = gemm.code["compute"].text
    pane.get_by_role("button", name="edit compute.cpp").click()
    editor = pane.locator("textarea")
    assert editor.input_value() == emitted
    assert not editor.evaluate("one => one.spellcheck")
    # Keys are text here: no tab is chosen, no line is pinned, and the notebook hears of none.
    explorer.type("Control+Home", "1", "h", "Enter")
    assert editor.input_value() == f"1h\n{emitted}"
    explorer.tab("Run")
    explorer.find("select[aria-label=backend]").select_option("emulator")
    assert "Run uses the edited compute" in explorer.find(".runview .why").inner_text()
    explorer.tab("Buffers")
    assert "uses the edited compute" in explorer.find(".timeline .tools").first.inner_text()
    explorer.button("Record a run").click()
    assert explorer.sent()[-1]["code"] == {"compute": f"1h\n{emitted}"}
    explorer.answer({"state": "failed", "error": error_data(ErrorRecord("KernelFault", "stopped", ""))})
    explorer.tab("Run")
    explorer.button("Check every step").click()
    explorer.answer({"state": "done", "results": [], "first_bad": None})
    explorer.button("Run").click()
    explorer.answer({"state": "done", "html": "<b>passed</b>", "passed": True})
    assert explorer.find(".result .q").inner_text() == "on emulator, inputs random, seed 0, compute edited"
    explorer.tab("Code")
    assert editor.input_value() == f"1h\n{emitted}"
    pane.get_by_role("button", name="undo the edits of compute.cpp").click()
    assert not editor.is_visible()
    explorer.tab("Run")
    explorer.button("Run").click()
    assert [one.get("code") for one in explorer.sent()[1:]] == [None, {"compute": f"1h\n{emitted}"}, {}]


def test_a_failed_run_is_a_card_and_the_next_one_can_begin(explorer: ExplorerPage) -> None:
    # From elsewhere the key leads to Run, and runs nothing.
    explorer.press("r")
    assert explorer.find("[aria-label=views] [aria-selected=true]").inner_text() == "Run"
    assert all(one["do"] != "run" for one in explorer.sent())
    explorer.press("r")
    error = error_data(ErrorRecord("RuntimeFailure", "deadlock\nreader waits", "use more stages", None, "TTX-Q001"))
    explorer.answer({"state": "failed", "error": error})
    card = explorer.find(".result [role=alert]").inner_text()
    assert all(part in card for part in ("RuntimeFailure", "deadlock", "reader waits", "use more stages", "TTX-Q001"))
    assert not explorer.button("Run").is_disabled()


def test_a_backend_that_is_missing_says_what_it_needs(explorer: ExplorerPage) -> None:
    explorer.tab("Run")
    explorer.find("select[aria-label=backend]").select_option("ttnn")
    assert explorer.button("Run").is_disabled()
    assert "needs the SDK: ttexplore setup device" in explorer.find(".runview").inner_text()
    assert not explorer.button("Check every step").is_disabled()


def test_without_python_the_buttons_say_why_they_rest(show: Show, gemm: Exploration) -> None:
    explorer = show(gemm.data, live=False)
    why = "this page has no Python: explore the kernel in a notebook"
    explorer.tab("Run")
    assert explorer.button("Run").is_disabled()
    assert explorer.button("Check every step").is_disabled()
    assert explorer.find(".runview .why").inner_text() == why
    # There is nothing to choose for what cannot be done.
    assert explorer.find(".runview select:visible").count() == 0
    explorer.tab("Buffers")
    assert explorer.button("Record a run").is_disabled()
    assert why in explorer.find(".timeline").inner_text()
    assert explorer.find(".timeline select:visible").count() == 0
    explorer.tab("What if")
    assert explorer.find(".body").inner_text() == f"Not available: {why}."


def test_a_saved_exploration_offers_what_needs_no_kernel(show: Show, gemm: Exploration, tmp_path: Path) -> None:
    widget = load(gemm.save(tmp_path / "gemm.ttx")).widget()
    explorer = show(
        json.loads(zlib.decompress(widget.data)), missing=widget.missing,
        backends=[{**one, "missing": one["missing"] if one["name"] != "emulator" else ""} for one in widget.backends],
    )  # fmt: skip
    why = "needs the kernel itself, which a saved exploration does not contain"
    explorer.tab("Run")
    told = explorer.find(".runview .why")
    assert explorer.find("select[aria-label=backend]").input_value() == "emulator"
    assert not explorer.button("Run").is_disabled()
    assert explorer.button("Check every step").is_disabled()
    assert told.inner_text() == f"Check every step: {why}"
    explorer.find("select[aria-label=backend]").select_option("interpreter")
    assert explorer.button("Run").is_disabled()
    assert told.inner_text() == why
    explorer.tab("Buffers")
    assert not explorer.button("Record a run").is_disabled()
    explorer.tab("What if")
    assert explorer.find(".body").inner_text() == f"Not available: {why}."
    assert explorer.sent() == []


def test_the_check_names_the_first_bad_step_and_leads_to_it(explorer: ExplorerPage) -> None:
    explorer.tab("Run")
    explorer.button("Check every step").click()
    results = [
        {
            "letter": step["letter"], "step": step["name"], "passed": position < 9, "pcc": "0.5000000",
            "error": "1.00e+00", "message": "" if position < 9 else "C differs",
        }
        for position, step in enumerate(explorer.data["steps"])
    ]  # fmt: skip
    explorer.answer({"state": "done", "results": results, "first_bad": "split_device_kernel"})
    assert "✖ split_device_kernel is the first step that changes the result" in explorer.find(".checks").inner_text()
    explorer.button("D1 split_device_kernel").click()
    assert explorer.letter() == "D1"
    assert explorer.find("[role=tab][aria-selected=true]").inner_text() == "Steps"


def test_what_if_compares_and_explores_the_other_lowering(explorer: ExplorerPage, gemm: Exploration) -> None:
    explorer.tab("What if")
    form = explorer.find(".whatifview form")
    form.get_by_label("policy").select_option(label="strided")
    explorer.button("Lower and compare").click()
    (question,) = explorer.sent()
    assert (question["do"], question["options"]) == ("fork", {"policy": "strided"})
    other = gemm.fork(policy="strided")
    explorer.answer_what_if(gemm, other)
    compared = explorer.find(".compared")
    compared.locator("table").first.wait_for()
    assert "policy=strided" in compared.inner_text()
    assert "B1.1 decides differently, B2 rewrites differently" in compared.inner_text()
    explorer.button("Run both").click()
    explorer.answer({"state": "done", "html": "<p>first result</p>", "passed": True})
    explorer.page.wait_for_function("sent.length === 3")
    explorer.answer({"state": "done", "html": "<p>second result</p>", "passed": True})
    compared.get_by_text("second result").wait_for()
    assert [(one["variant"], one["inputs"]) for one in explorer.sent()[1:]] == [("", "random"), ("1", "random")]
    assert "on emulator, inputs random, seed 0" in compared.inner_text()
    cards = compared.locator("div:has(> b):has(> div)")
    assert cards.locator("> b").all_inner_texts() == ["now", "what if"]
    for card, text in zip(cards.all(), ["first result", "second result"], strict=True):
        assert card.get_by_text(text).is_visible()
    # The head of the explorer comes back into sight.
    explorer.page.set_viewport_size({"width": 1400, "height": 300})
    explorer.button("Explore this lowering").click()
    assert explorer.page.evaluate("scrollY") < 5
    assert "This is the what-if lowering." in explorer.find(".banner").inner_text()
    explorer.button("Back to the original").click()
    assert not explorer.find(".banner").is_visible()


@pytest.mark.parametrize(("tab", "name"), [
    ("Run", "Run"), ("Run", "Check every step"), ("Buffers", "Record a run"), ("What if", "Lower and compare"),
])  # fmt: skip
def test_a_button_that_rests_while_python_works_leaves_the_focus_here(
    explorer: ExplorerPage, tab: str, name: str
) -> None:
    explorer.tab(tab)
    explorer.root.get_by_role("button", name=name, exact=True).click()
    assert explorer.find(".primary").first.is_disabled()
    # Were it nowhere, the next keys would be the notebook's. A browser takes it away when it draws.
    explorer.page.evaluate("() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
    assert explorer.root.evaluate("one => one === document.activeElement")
    explorer.type("1")
    assert explorer.find(".tab[aria-selected=true]").inner_text() == "Steps"


def test_two_runs_do_not_cross(explorer: ExplorerPage, gemm: Exploration) -> None:
    explorer.tab("What if")
    explorer.button("Lower and compare").click()
    explorer.answer_what_if(gemm, gemm.fork(stages=3))
    both = explorer.button("Run both")
    both.click()
    both.click()
    assert [one["do"] for one in explorer.sent()] == ["fork", "run"]
    assert both.evaluate("one => one === document.activeElement")
    explorer.tab("Run")
    assert explorer.root.get_by_role("button", name="Run", exact=True).is_disabled()


def test_work_lists_are_written_where_the_policy_is_explicit(explorer: ExplorerPage, gemm: Exploration) -> None:
    explorer.tab("What if")
    form = explorer.find(".whatifview form")
    policy, lists, stride = (form.get_by_label(name, exact=True) for name in ("policy", "work_lists", "stride"))
    assert not lists.is_enabled()
    assert not stride.is_enabled()
    policy.select_option("strided")
    assert stride.is_enabled()
    stride.fill("3")
    policy.select_option("explicit")
    assert not stride.is_enabled()
    # Without lists there is nothing to lower.
    explorer.button("Lower and compare").click()
    assert explorer.sent() == []
    assert lists.evaluate("one => one.validity.valueMissing")
    example = (lists.get_attribute("placeholder") or "").removeprefix("e.g. ")
    lists.fill(example)
    explorer.button("Lower and compare").click()
    (question,) = explorer.sent()
    assert question["options"] == {"policy": "explicit", "work_lists": example}
    other = gemm.fork(**question["options"])
    assert other.error is None
    explorer.answer_what_if(gemm, other)
    explorer.find(".compared table").first.wait_for()
    cores = explorer.find(".compared tr").filter(has_text="cores in use")
    assert cores.locator(".num").all_inner_texts() == ["16 of 64 cores", "2 of 2 cores"]
    # In the other lowering the lists are there, until another policy is chosen.
    explorer.button("Explore this lowering").click()
    explorer.tab("What if")
    assert lists.input_value() == example
    policy.select_option("strided")
    explorer.button("Lower and compare").click()
    assert explorer.sent()[-1]["options"] == {"policy": "strided", "work_lists": ""}


def test_without_a_compiler_what_needs_the_emulator_rests(show: Show, gemm: Exploration) -> None:
    explorer = show(gemm.data, missing={"record": "no C++ compiler"})
    explorer.tab("Buffers")
    assert explorer.button("Record a run").is_disabled()
    assert "no C++ compiler" in explorer.find(".timeline").inner_text()
    explorer.tab("What if")
    explorer.button("Lower and compare").click()
    explorer.answer_what_if(gemm, gemm)
    explorer.find(".compared table").first.wait_for()
    assert explorer.button("Run both").is_disabled()
    assert "Run both: no C++ compiler" in explorer.find(".compared").inner_text()


def test_what_if_shows_the_refusal_of_an_option(explorer: ExplorerPage) -> None:
    explorer.tab("What if")
    explorer.button("Lower and compare").click()
    explorer.answer(
        {"state": "failed", "error": error_data(ErrorRecord("UsageError", "no such policy", "use strided"))}
    )
    explorer.find(".compared .card").wait_for()
    assert "no such policy" in explorer.find(".compared").inner_text()
    assert not explorer.button("Lower and compare").is_disabled()


def test_a_kernel_that_is_gone(explorer: ExplorerPage, gemm: Exploration) -> None:
    """What waits for it gives up; what needs it is off and says why; what needs no Python goes on."""
    why = "the notebook's kernel restarted or ended: run the cell again"
    explorer.tab("What if")
    explorer.button("Lower and compare").click()
    explorer.answer_what_if(gemm, gemm)
    explorer.find(".compared table").first.wait_for()
    explorer.tab("Run")
    explorer.root.get_by_role("button", name="Run", exact=True).click()
    asked = len(explorer.sent())
    explorer.page.evaluate("models[0].emit('comm_live_update')")
    assert explorer.find(".banner").inner_text() == f"⟳ {why}"
    explorer.spoken(why)
    assert why in explorer.find(".result .card.fault").inner_text()
    assert explorer.root.get_by_role("button", name="Run", exact=True).is_disabled()
    assert explorer.root.get_by_role("button", name="Check every step").is_disabled()
    explorer.press("r")
    explorer.tab("What if")
    assert explorer.find(".compared table").first.is_visible()
    explorer.button("Run both").click()
    explorer.find(".compared .card.fault").nth(1).wait_for()
    assert explorer.button("Lower and compare").is_disabled()
    explorer.tab("Buffers")
    assert explorer.button("Record a run").is_disabled()
    assert why in explorer.find(".timeline").inner_text()
    assert len(explorer.sent()) == asked
    explorer.tab("Steps")
    explorer.press("j")
    assert explorer.find(".diff .l").count() > 0


def test_shapes_of_drawings_have_the_size_that_they_were_drawn_with(explorer: ExplorerPage) -> None:
    """A class of the explorer that a drawing has, too, could give them another one."""
    sizes = """all => all.map((one) => [one.getAttribute("width"), one.getAttribute("height"), one.className.baseVal,
        getComputedStyle(one).width, getComputedStyle(one).height])"""
    for tab in ("Cores", "Buffers"):
        explorer.tab(tab)
        explorer.find("svg.ttx-svg rect").first.wait_for()
        for width, height, name, *shown in explorer.find("svg.ttx-svg rect").evaluate_all(sizes):
            drawn = [float(width), float(height)]
            assert [float(one.removesuffix("px")) for one in shown] == pytest.approx(drawn, abs=0.1), (tab, name)
