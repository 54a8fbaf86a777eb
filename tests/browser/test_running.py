"""What Python is doing: how it is told, limited, cancelled, and taken up by a page that is opened meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.conftest import Show
from tests.browser.explorer_page import ExplorerPage
from tests.browser.test_accessibility import violations
from ttexplore import Exploration
from ttexplore.record import ErrorRecord
from ttexplore.views.explorer import error_data

RUNNING = {"id": "other", "do": "run", "variant": "", "words": "on emulator, inputs ones", "since": 0}
CANCELLED = {"state": "failed", "error": error_data(ErrorRecord("Cancelled", "the run was cancelled", "run it again"))}


@pytest.fixture
def explorer(show: Show, gemm: Exploration) -> ExplorerPage:
    return show(gemm.data)


def answer(explorer: ExplorerPage, identifier: str, message: dict[str, Any]) -> None:
    """Answers a question by its id, whoever asked it."""
    explorer.page.evaluate(
        "([id, message]) => models[0].emit('msg:custom', {id, ...message}, [])", [identifier, message]
    )


@pytest.mark.parametrize(
    ("tab", "start", "busy", "do"),
    [
        ("Run", "Run", "Running …", "run"),
        ("Run", "Check every step", "Checking …", "check"),
        ("Buffers", "Record a run", "Recording …", "record"),
        ("What if", "Lower and compare", "Lowering …", "fork"),
    ],
)
def test_cancel_is_beside_each_button(explorer: ExplorerPage, tab: str, start: str, busy: str, do: str) -> None:
    explorer.tab(tab)
    cancel = explorer.button("Cancel")
    assert not cancel.is_visible()
    explorer.root.get_by_role("button", name=start, exact=True).click()
    assert explorer.root.get_by_role("button", name=busy, exact=True).is_disabled()
    near, button = (explorer.root.get_by_role("button", name=one).bounding_box() for one in (busy, "Cancel"))
    assert near is not None
    assert button is not None
    assert abs(near["y"] - button["y"]) < 60
    cancel.click()
    assert [one["do"] for one in explorer.sent()] == [do, "cancel"]
    assert explorer.find(".busy [role=status]:visible").inner_text() == "cancelling …"
    explorer.answer(CANCELLED, question=0)
    explorer.find(".card.fault").filter(has_text="the run was cancelled").wait_for()
    assert not cancel.is_visible()
    assert not explorer.root.get_by_role("button", name=start, exact=True).is_disabled()


def test_one_tab_cancels_what_another_began(explorer: ExplorerPage) -> None:
    explorer.tab("Buffers")
    explorer.button("Record a run").click()
    explorer.tab("Run")
    explorer.button("Cancel").click()
    assert [one["do"] for one in explorer.sent()] == ["record", "cancel"]


def test_both_runs_end_with_the_first_that_is_cancelled(explorer: ExplorerPage, gemm: Exploration) -> None:
    explorer.tab("What if")
    explorer.button("Lower and compare").click()
    explorer.answer_what_if(gemm, gemm)
    explorer.button("Run both").click()
    explorer.button("Cancel").click()
    explorer.answer(CANCELLED, question=1)
    explorer.find(".compared .card.fault").wait_for()
    assert [one["do"] for one in explorer.sent()] == ["fork", "run", "cancel"]


def test_each_step_of_a_check_is_told_as_it_is_done(explorer: ExplorerPage) -> None:
    explorer.tab("Run")
    explorer.button("Check every step").click()
    bar = explorer.find(".runview progress")
    assert not bar.is_visible()
    explorer.answer({"state": "progress", "text": "computing the reference"})
    assert not bar.is_visible()
    for number in (1, 2):
        explorer.answer({"state": "progress", "text": f"{number} of 15: A{number} x equals the reference"})
        assert bar.is_visible()
        assert (bar.get_attribute("value"), bar.get_attribute("max")) == (str(number), "15")
    explorer.answer({"state": "progress", "text": "executing A3 y"})
    # All that was said can be read meanwhile.
    log = explorer.find(".log")
    assert log.is_visible()
    assert log.inner_text().splitlines() == [
        "computing the reference", "1 of 15: A1 x equals the reference", "2 of 15: A2 x equals the reference",
        "executing A3 y",
    ]  # fmt: skip
    assert explorer.find(".runview .busy [role=status]").inner_text() == "executing A3 y"
    assert violations(explorer) == []
    explorer.answer({"state": "done", "results": [], "first_bad": None})
    assert not bar.is_visible()
    assert not log.is_visible()


def test_the_time_so_far_is_told(explorer: ExplorerPage) -> None:
    explorer.page.clock.install(time=0)
    # Else it goes on while the test is busy.
    explorer.page.clock.pause_at(1_000)
    explorer.tab("Run")
    explorer.button("Run").click()
    explorer.page.clock.run_for(3_600)
    time = explorer.find(".runview .busy > .q").first
    assert time.inner_text() == "3 s"
    # A view that was away goes on counting.
    explorer.tab("Steps")
    explorer.page.clock.run_for(60_000)
    explorer.tab("Run")
    assert time.inner_text() == "1 min 3 s"
    explorer.page.clock.run_for(2_000)
    assert time.inner_text() == "1 min 5 s"


def test_a_time_limit_is_chosen_beside_the_button(explorer: ExplorerPage) -> None:
    explorer.tab("Run")
    backend, limit = explorer.find("select[aria-label=backend]"), explorer.find(".runview [aria-label^='time limit']")
    usual: list[str | None] = []
    for name in ("reference", "emulator", "ttnn"):
        backend.select_option(name)
        usual.append(limit.get_attribute("placeholder"))
    assert usual == ["none", "60", "300"]
    backend.select_option("emulator")
    explorer.button("Run").click()
    explorer.answer(CANCELLED)
    limit.fill("2.5")
    for start in ("Run", "Check every step"):
        explorer.root.get_by_role("button", name=start, exact=True).click()
        explorer.answer(CANCELLED)
    # It is the same one in each view.
    explorer.tab("Buffers")
    recording = explorer.find(".timeline [aria-label^='time limit']")
    assert (recording.input_value(), recording.get_attribute("placeholder")) == ("2.5", "60")
    recording.fill("0")
    explorer.button("Record a run").click()
    assert [(one["do"], one["limit"]) for one in explorer.sent()] == [
        ("run", None), ("run", 2.5), ("check", 2.5), ("record", None),
    ]  # fmt: skip


def test_a_page_that_is_opened_meanwhile_takes_part(show: Show, gemm: Exploration) -> None:
    """As after reloading: what goes on is shown, can be cancelled, and its result is there."""
    explorer = show(gemm.data, running=[RUNNING])
    explorer.tab("Run")
    assert explorer.root.get_by_role("button", name="Running …").is_disabled()
    answer(explorer, "other", {"state": "progress", "text": "simulating 4 cores"})
    assert explorer.find(".runview .busy [role=status]").inner_text() == "simulating 4 cores"
    explorer.button("Cancel").click()
    assert [one["do"] for one in explorer.sent()] == ["cancel"]
    answer(explorer, "other", {"state": "done", "html": "<b>passed</b>", "passed": True})
    explorer.set("running", [])
    assert explorer.find(".result").inner_text().startswith("on emulator, inputs ones")
    assert explorer.find(".result b").inner_text() == "passed"
    assert not explorer.root.get_by_role("button", name="Run", exact=True).is_disabled()


def test_what_jupyter_refuses_to_send_is_not_waited_for(explorer: ExplorerPage) -> None:
    """JupyterLab throws in the moment between the end of a kernel and the word of it."""
    explorer.page.evaluate("() => { models[0].send = () => { throw Error('Cannot send'); }; }")
    explorer.tab("Run")
    explorer.button("Run").click()
    told = "the notebook's kernel restarted or ended: run the cell again"
    explorer.find(".banner").filter(has_text=told).wait_for()
    assert told in explorer.find(".result .card.fault").inner_text()
    assert explorer.button("Run").is_disabled()


def test_what_ended_while_nobody_listened_is_not_waited_for(show: Show, gemm: Exploration) -> None:
    explorer = show(gemm.data, running=[{**RUNNING, "do": "check"}])
    explorer.tab("Run")
    assert explorer.button("Checking …").is_disabled()
    explorer.set("running", [])
    assert not explorer.button("Check every step").is_disabled()


def test_two_views_of_one_explorer_are_busy_together(show: Show, gemm: Exploration) -> None:
    first = show(gemm.data, displays=2)
    second = ExplorerPage(first.page, first.data, 1)
    for one in (first, second):
        one.tab("Run")
    first.root.get_by_role("button", name="Run", exact=True).click()
    identifier = first.sent()[0]["id"]
    first.set("running", [{**RUNNING, "id": identifier}])
    second.root.get_by_role("button", name="Running …").wait_for()
    first.answer({"state": "done", "html": "<b>passed</b>", "passed": True})
    first.set("running", [])
    for one in (first, second):
        assert one.find(".result b").inner_text() == "passed"
        assert not one.root.get_by_role("button", name="Run", exact=True).is_disabled()


def test_a_kernel_that_is_gone_after_cancel_raises_nothing(explorer: ExplorerPage) -> None:
    """No promise is left that nobody waits for: the page's errors fail a test."""
    explorer.tab("Run")
    explorer.button("Run").click()
    explorer.button("Cancel").click()
    explorer.page.evaluate("models[0].emit('comm_live_update')")
    explorer.find(".result .card.fault").wait_for()
    assert not explorer.button("Cancel").is_visible()
    assert explorer.find(".runview .why").inner_text() == "the notebook's kernel restarted or ended: run the cell again"
