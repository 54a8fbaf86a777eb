"""A recorded run in the drawing of the dataflow: every moment is what the record itself says."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.conftest import Show
from tests.browser.explorer_page import ExplorerPage
from tests.browser.test_accessibility import violations
from tests.corpus import CORPUS
from ttexplore import Exploration, explore
from ttexplore.views.figures.timeline import RESERVE, Timeline
from ttexplore.views.runs.recording import Recording

_GLYPHS = {"": "▸", "runs": "▸", "waits": "‖", "stuck": "✖", "done": "■"}

# What the drawing says: pages and filled share of the bar by buffer, class and two lines by kernel, edges of waits.
_DRAWN = """svg => ({
    pages: Object.fromEntries([...svg.querySelectorAll("[data-buffer]")].map((box) => [box.dataset.buffer,
        [box.querySelector(".now text").textContent,
         box.querySelector(".held").getBBox().width / box.querySelector(".gauge").getBBox().width]])),
    kernels: Object.fromEntries([...svg.querySelectorAll("[data-kernel]")].map((box) => [box.dataset.kernel,
        [box.getAttribute("class"), ...[...box.querySelectorAll(".now .s")].map((line) => line.textContent)]])),
    edges: [...new Set([...svg.querySelectorAll(".edge.waited")].map((edge) => edge.dataset.edge))].sort(),
})"""


def states(recorded: Timeline, moment: int) -> list[str]:
    """What each kernel of a core does at logical step `moment`."""
    found: list[str] = []
    for number, role in enumerate(recorded.kernels):
        own = recorded.records[(recorded.records["kernel"] == number) & (recorded.records["time"] <= moment)]
        wait = next((one for one in recorded.waits if one.kernel == role and one.start <= moment < one.end), None)
        stuck = any(one.kernel == role and one.stuck and one.start <= moment for one in recorded.waits)
        finished = len(own) and recorded.operations[int(own["operation"][-1])] == "finish"
        found.append("done" if finished else "stuck" if stuck else "waits" if wait else "runs" if len(own) else "")
    return found


@pytest.fixture(scope="module")
def uneven(gemm: Exploration) -> Recording:
    """All cores are alike but one, whose reader brings nothing."""
    head = "void kernel_main() {"
    text = gemm.code["reader"].text
    assert head in text
    return gemm.timeline(
        code={"reader": text.replace(head, f"{head} if (get_arg_val<uint32_t>(0) == 5) return;")}
    ).recording


def moment_of(explorer: ExplorerPage) -> int:
    return int(explorer.find(".clock .m:visible").inner_text().split(" step ")[1].split(" of ")[0].replace(",", ""))


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
    return explorer.find(".flow svg").first.evaluate(_DRAWN)


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


@pytest.mark.parametrize("name", ["gemm", "gemm_bias_reload", "copy_bf16"])
def test_each_moment_is_drawn_as_it_was_recorded(show: Show, gemm: Exploration, name: str) -> None:
    case = next((case for case in CORPUS if case.name == name), None)
    exploration = explore(case.make(), options=case.options) if case else gemm
    recorded = exploration.timeline()
    explorer = show(exploration.data)
    explorer.tab("Buffers")
    graph = explorer.find(".flow svg").first
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
    explorer.answer_what_if(gemm, gemm.fork(stages=3))
    explorer.button("Explore this lowering").click()
    explorer.tab("Buffers")
    assert not explorer.find(".scrubber").is_visible()
    assert explorer.find(".buffersview .now:visible").count() == 0


def test_the_map_plays_what_each_core_did(show: Show, gemm: Exploration, uneven: Recording) -> None:
    explorer = show(gemm.data)
    record(explorer, uneven[5, 0])
    explorer.button("Play all cores on their map").click()
    seen: set[str] = set()
    for moment in (0, 3, 20, 40, uneven[5, 0].end + 1, uneven[0, 0].end):
        explorer.find(".recorded .scrubber").evaluate(
            "(one, moment) => { one.value = moment; one.dispatchEvent(new Event('input')); }", moment
        )
        assert moment_of(explorer) == moment
        for one in uneven:
            doing = states(one, moment)
            seen |= set(doing)
            cell = explorer.find(f".coremap [data-core='{one.core[0]},{one.core[1]}']")
            assert cell.locator("text").text_content() == "".join(_GLYPHS[state] for state in doing)
            told = cell.get_attribute("aria-label") or ""
            assert told.startswith(f"core ({one.core[0]}, {one.core[1]}): reader ")
            colour = (cell.locator("path").get_attribute("class") or "").split()[-1]
            if "stuck" in doing:
                assert colour == "stuck"
            elif doing[1] not in ("", "done"):
                assert colour == doing[1]
            elif set(doing) == {"done"}:
                assert colour == "done"
    assert seen == {"runs", "waits", "stuck", "done"}
    assert "stuck: 1" in explorer.find(".coresview > .tools").first.inner_text()


@pytest.mark.parametrize("way", ["click", "Enter"])
def test_a_core_of_the_map_opens_at_that_moment(show: Show, gemm: Exploration, uneven: Recording, way: str) -> None:
    explorer = show(gemm.data)
    record(explorer, uneven[5, 0])
    explorer.tab("Cores")
    explorer.find(".recorded .scrubber").focus()
    explorer.type(*["ArrowRight"] * 7)
    if way == "click":
        explorer.find(".coremap [data-core='2,1']").click()
    else:
        # From the stuck core (5, 0), with the arrows.
        explorer.find(".coremap [data-core='5,0']").focus()
        explorer.type("ArrowLeft", "ArrowLeft", "ArrowLeft", "ArrowDown", "Enter")
    assert explorer.find(".timeline .clock .m").inner_text().startswith("core (2, 1), logical step 7 of ")
    assert explorer.find(".timeline select").first.input_value() == "2,1"
    lanes = explorer.find(".lane").evaluate_all("all => all.map((one) => one.className.replace('lane ', ''))")
    assert lanes == states(uneven[2, 1], 7)
    assert explorer.find(".flow svg").first.evaluate(_DRAWN) == expected(uneven[2, 1], 7)


def test_a_run_plays_pauses_and_ends(show: Show, gemm: Exploration) -> None:
    explorer = show(gemm.data)
    recorded = gemm.timeline()
    record(explorer, recorded)
    speed = explorer.find(".timeline [aria-label=speed]")
    speed.select_option("10")
    explorer.press("t")
    explorer.find("[aria-label=pause]:visible").wait_for()
    explorer.page.wait_for_function("Number(document.querySelector('.scrubber').value) > 2")
    explorer.press("t")
    explorer.find("[aria-label=play]:visible").wait_for()
    stopped = moment_of(explorer)
    # Both views show the same moment.
    explorer.tab("Cores")
    assert moment_of(explorer) == stopped
    speed = explorer.find(".recorded [aria-label=speed]")
    assert speed.input_value() == "10"
    speed.select_option("1000")
    explorer.press("t")
    explorer.page.wait_for_function(
        "(end) => document.querySelector('.recorded .scrubber').value === end", arg=str(recorded.end)
    )
    explorer.find("[aria-label=play]:visible").wait_for()
    explorer.spoken(f"step {recorded.end}: done: 16")
    # A view without a run pauses it; at the end it begins anew.
    speed.select_option("1")
    explorer.press("t")
    explorer.tab("Code")
    explorer.tab("Buffers")
    explorer.find("[aria-label=play]:visible").wait_for()
    assert moment_of(explorer) < recorded.end


def test_jumps_lead_to_each_wait_of_a_kernel(show: Show, gemm: Exploration) -> None:
    explorer = show(gemm.data)
    recorded = gemm.timeline()
    record(explorer, recorded)
    without: list[str] = []
    for role in ("any kernel", *recorded.kernels):
        explorer.find(".timeline [aria-label='waits of']").select_option(role)
        starts = sorted({wait.start for wait in recorded.waits if role in ("any kernel", wait.kernel)})
        explorer.find(".timeline .scrubber").focus()
        explorer.type("Home")
        found = [0] if 0 in starts else []
        for _ in range(len(starts) - len(found)):
            explorer.press("n")
            found.append(moment_of(explorer))
        assert found == starts
        if not starts:
            without.append(role)
            continue
        explorer.press("n")
        assert moment_of(explorer) == starts[-1]
        explorer.spoken("no further wait")
        explorer.button("previous wait").click()
        assert moment_of(explorer) == (starts[-2] if len(starts) > 1 else starts[-1])
    assert without == ["reader"]


def test_plots_and_scrubber_share_one_axis(show: Show, gemm: Exploration) -> None:
    explorer = show(gemm.data)
    recorded = gemm.timeline()
    record(explorer, recorded)
    scrubber, track = explorer.find(".timeline .scrubber"), explorer.find(".timeline .track").nth(4)

    def window() -> tuple[int, int]:
        first, last = (scrubber.get_attribute(name) or "" for name in ("min", "max"))
        x, _, width, _ = (track.locator("svg").get_attribute("viewBox") or "").split()
        assert (int(x), int(x) + int(width)) == (int(first), int(last))
        return int(first), int(last)

    assert window() == (0, recorded.end)
    for zoomed in range(3):
        first, last = window()
        box = track.bounding_box()
        assert box
        for share in (0.25, 0.7):
            explorer.page.mouse.click(box["x"] + share * box["width"], box["y"] + 8)
            assert abs(moment_of(explorer) - (first + share * (last - first))) <= 1
            # The line in the plots is where the moment is; so is the middle of the scrubber's thumb, which is 16 wide.
            now = track.locator(".now").bounding_box()
            slide = scrubber.bounding_box()
            assert now
            assert slide
            at = (moment_of(explorer) - first) / (last - first)
            assert abs(now["x"] - (box["x"] + at * box["width"])) < 1.5
            assert abs(slide["x"] + 8 + at * (slide["width"] - 16) - now["x"]) < 1.5
        explorer.press("+")
        assert last - first > window()[1] - window()[0] or zoomed == 2
    # A moment outside takes the window with it.
    scrubber.focus()
    explorer.type("End")
    assert moment_of(explorer) == recorded.end == window()[1]
    explorer.type("ArrowLeft")
    assert moment_of(explorer) == recorded.end - 1
    explorer.button("whole run").click()
    assert window() == (0, recorded.end)


def test_cores_that_are_left_out_are_named(show: Show, gemm: Exploration) -> None:
    recording = gemm.timeline((1, 1)).recording
    few = recording.within(1)
    explorer = show(gemm.data)
    record(explorer, few[1, 1])
    assert few.missing in explorer.find(".timeline").inner_text()
    assert "Steps are logical" in explorer.find(".timeline").inner_text()
    explorer.find(".timeline select").first.select_option("0,0")
    assert "Core (0, 0) is not recorded" in explorer.find(".timeline").inner_text()
    assert not explorer.find(".plots").is_visible()
    # What is recorded next has the chosen core.
    explorer.button("Record a run").click()
    assert explorer.sent()[-1]["core"] == "0,0"
    explorer.answer({"state": "done"}, recording.data)
    explorer.tab("Cores")
    explorer.find(".coremap [data-core='0,0'] text").filter(has_text="▸").wait_for()
    # What has changed since is recorded from the map, too.
    explorer.find(".coresview").get_by_role("button", name="Record a run").click()
    assert explorer.sent()[-1]["do"] == "record"
    assert len(explorer.sent()) == 3


def test_the_map_shows_its_measures_again(show: Show, gemm: Exploration) -> None:
    explorer = show(gemm.data)
    explorer.tab("Cores")
    cell = explorer.find(".coremap [data-core='2,1']")
    before = cell.get_attribute("aria-label"), cell.locator("text").text_content()
    explorer.button("Record a run").click()
    explorer.answer({"state": "done"}, gemm.timeline().recording.data)
    explorer.find(".recorded").wait_for()
    assert explorer.find(".coremap .legend text").count() == 0
    assert (cell.get_attribute("aria-label"), cell.locator("text").text_content()) != before
    explorer.find("[aria-label=measure]").select_option("work items")
    assert (cell.get_attribute("aria-label"), cell.locator("text").text_content()) == before
    assert explorer.find(".coremap .legend text").count()
    assert not explorer.find(".recorded").is_visible()


def test_a_run_is_recorded_from_the_map_too(show: Show, gemm: Exploration) -> None:
    explorer = show(gemm.data)
    explorer.tab("Cores")
    assert not explorer.find(".recorded").is_visible()
    explorer.find(".coremap [data-core='3,0']").click()
    explorer.button("Record a run").click()
    assert explorer.sent()[-1]["core"] == "3,0"
    explorer.answer({"state": "done"}, gemm.timeline((3, 0)).recording.data)
    explorer.find(".recorded").wait_for()
    assert explorer.find("[aria-label=measure]").input_value() == "recorded run"
    assert explorer.find(".recorded .m").inner_text().startswith("core (3, 0), logical step 0 of ")
    assert violations(explorer) == []
    # Buffers, which was not open before, comes up at that moment.
    explorer.find(".recorded .scrubber").focus()
    explorer.type("ArrowRight", "ArrowRight")
    explorer.find(".coremap [data-core='2,0']").click()
    assert explorer.find(".timeline .clock .m").inner_text().startswith("core (2, 0), logical step 2 of ")
    assert explorer.find(".lane").count() == 3
    assert explorer.find(".track").count() == 3 + len(gemm.plan.buffers)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_playing_map_is_readable(show: Show, gemm: Exploration, uneven: Recording, theme: Any) -> None:
    explorer = show(gemm.data, theme=theme)
    record(explorer, uneven[5, 0])
    drawn(explorer, 30)
    explorer.tab("Cores")
    assert violations(explorer) == []


def test_nothing_moves_by_itself_for_who_does_not_want_it(show: Show, gemm: Exploration) -> None:
    recorded = gemm.timeline()
    explorer = show(gemm.data)
    explorer.page.emulate_media(reduced_motion="reduce")
    record(explorer, recorded)
    times = sorted(set(recorded.records["time"].tolist()) - {0})
    for time in times[:3]:
        explorer.press("t")
        assert moment_of(explorer) == time
    explorer.button("next event").click()
    assert moment_of(explorer) == times[3]
