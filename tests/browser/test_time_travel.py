"""A recorded run in the drawing of the dataflow: every moment is what the record itself says."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.conftest import Show
from tests.browser.explorer_page import ExplorerPage
from tests.browser.test_accessibility import violations
from tests.corpus import CORPUS
from ttexplore import Exploration, explore
from ttexplore.views.timeline import RESERVE, Timeline

# What the drawing says: pages and filled share of the bar by buffer, class and two lines by kernel, edges of waits.
_DRAWN = """svg => ({
    pages: Object.fromEntries([...svg.querySelectorAll("[data-buffer]")].map((box) => [box.dataset.buffer,
        [box.querySelector(".now text").textContent,
         box.querySelector(".held").getBBox().width / box.querySelector(".gauge").getBBox().width]])),
    kernels: Object.fromEntries([...svg.querySelectorAll("[data-kernel]")].map((box) => [box.dataset.kernel,
        [box.getAttribute("class"), ...[...box.querySelectorAll(".now .s")].map((line) => line.textContent)]])),
    edges: [...svg.querySelectorAll(".waited")].map((edge) => edge.dataset.edge).sort(),
})"""


def record(explorer: ExplorerPage, recorded: Timeline) -> None:
    explorer.tab("Buffers")
    explorer.button("Record a run").click()
    explorer.answer({"state": "done"}, recorded.recording.data)
    explorer.find(".scrubber").wait_for()


def drawn(explorer: ExplorerPage, moment: int) -> dict[str, Any]:
    """What the drawing says at logical step `moment`."""
    explorer.find(".scrubber").evaluate(
        "(one, moment) => { one.value = moment; one.dispatchEvent(new Event('input')); }", moment
    )
    return explorer.find(".buffersview > .scroll svg").first.evaluate(_DRAWN)


def expected(recorded: Timeline, moment: int) -> dict[str, Any]:
    last = int((recorded.records["time"] <= moment).sum()) - 1
    pages: dict[str, Any] = {}
    for number, name in recorded.buffers.items():
        held, capacity = int(recorded.occupancy(name)[last]), recorded.capacities[number]
        pages[name] = [f"{held}/{capacity}", pytest.approx(held / capacity)]
    kernels: dict[str, list[str]] = {}
    edges: list[str] = []
    for number, role in enumerate(recorded.kernels):
        own = recorded.records[(recorded.records["kernel"] == number) & (recorded.records["time"] <= moment)]
        finished = len(own) and recorded.operations[int(own["operation"][-1])] == "finish"
        wait = next((one for one in recorded.waits if one.kernel == role and one.start <= moment < one.end), None)
        if finished:
            kernels[role] = ["done", "■ done", ""]
        elif wait:
            room = wait.operation == RESERVE
            needs = f"room for {wait.amount}" if room else f"{wait.amount} tiles"
            kernels[role] = ["waits", "✖ stuck" if wait.stuck else "‖ waits", needs]
            edges.append(f"{role}>{wait.buffer}" if room else f"{wait.buffer}>{role}")
        else:
            kernels[role] = ["", "▸ runs" if len(own) else "not started", ""]
    return {"pages": pages, "kernels": kernels, "edges": sorted(edges)}


@pytest.mark.parametrize("name", ["gemm", "gemm_bias_reload"])
def test_each_moment_is_drawn_as_it_was_recorded(show: Show, gemm: Exploration, name: str) -> None:
    case = next((case for case in CORPUS if case.name == name), None)
    exploration = explore(case.make(), options=case.options) if case else gemm
    recorded = exploration.timeline()
    explorer = show(exploration.data)
    explorer.tab("Buffers")
    graph = explorer.find(".buffersview > .scroll svg").first
    assert graph.locator(".now:visible").count() == 0
    record(explorer, recorded)
    assert graph.locator(".plain:visible").count() == 0
    seen: set[str] = set()
    last = recorded.end
    for moment in sorted({*range(0, last, max(1, last // 12)), last}):
        shown = drawn(explorer, moment)
        assert shown == expected(recorded, moment), moment
        seen |= {state for state, *_ in shown["kernels"].values()}
    assert seen == {"", "waits", "done"}


def test_where_a_kernel_is_stuck_the_drawing_says_so(show: Show, gemm: Exploration) -> None:
    # A writer that pops nothing: the second block of a core finds no room.
    one_core = gemm.fork(cores=(1, 1))
    stuck = one_core.timeline(code={"writer": "void kernel_main() {}"})
    assert stuck.deadlock
    explorer = show(one_core.data)
    record(explorer, stuck)
    last = stuck.end + 1
    assert explorer.find(".scrubber").get_attribute("max") == str(last)
    for moment in (last - 1, last):
        shown = drawn(explorer, moment)
        assert shown == expected(stuck, moment)
    waiting = {role for role, (_, words, _) in shown["kernels"].items() if words == "✖ stuck"}
    assert waiting == {wait.kernel for wait in stuck.waits if wait.stuck} == {"reader", "compute"}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_moment_is_readable(show: Show, gemm: Exploration, theme: Any) -> None:
    explorer = show(gemm.data, theme=theme)
    record(explorer, gemm.timeline())
    drawn(explorer, 20)
    assert violations(explorer) == []
    # A wait is told by dashes and words too.
    edge = explorer.find(".waited").first
    assert edge.evaluate("one => getComputedStyle(one).strokeDasharray") == "6px, 3px"
    assert edge.evaluate("one => getComputedStyle(one).strokeWidth") == "3px"


def test_the_line_of_each_kernel_is_seen_on_a_narrow_page(show: Show, gemm: Exploration) -> None:
    explorer = show(gemm.data, width=480)
    record(explorer, gemm.timeline())
    drawn(explorer, 20)
    lines = explorer.find(".lane code")
    shown = lines.evaluate_all("all => all.map((one) => [one.textContent, one.clientWidth])")
    assert [text.split()[0].isdigit() and width > 300 for text, width in shown] == [True] * 3


def test_another_lowering_has_no_moment_yet(show: Show, gemm: Exploration) -> None:
    explorer = show(gemm.data)
    record(explorer, gemm.timeline())
    explorer.tab("What if")
    explorer.button("Lower and compare").click()
    explorer.answer({"state": "done", "variant": "1"}, gemm.fork(stages=3).data)
    explorer.button("Explore this lowering").click()
    explorer.tab("Buffers")
    assert not explorer.find(".scrubber").is_visible()
    assert explorer.find(".buffersview .now:visible").count() == 0
