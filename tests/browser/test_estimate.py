"""The predicted time: asked for once the explorer is seen; its line, its card, on the map of cores, in What if."""

from __future__ import annotations

import re
import threading
from math import prod
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.browser.conftest import Open, Show
from tests.browser.explorer_page import ExplorerPage
from tests.browser.test_accessibility import violations
from tests.corpus.deciding_variables import searched
from ttexplore import Exploration, explore, load
from ttexplore.clock.estimate import Estimate
from ttexplore.errors import UsageError
from ttexplore.plan import DATA_FORMATS
from ttexplore.views.explorer import error_data
from ttexplore.views.runs.times import short_time
from ttexplore.views.theme import HEAT, heat_step


def answered(explorer: ExplorerPage, exploration: Exploration, question: int = -1) -> None:
    explorer.page.wait_for_function("(n) => sent.length > n", arg=max(0, question))
    explorer.answer({"state": "done", "estimate": exploration.estimate_data()}, question=question)


@pytest.fixture
def explorer(show: Show, gemm: Exploration) -> ExplorerPage:
    explorer = show(gemm.data, missing={})
    answered(explorer, gemm)
    explorer.find(".badge:enabled").wait_for()
    return explorer


def test_it_is_asked_for_once_and_only_when_it_can_be_seen(show: Show, gemm: Exploration) -> None:
    explorer = show(gemm.data, displays=3, missing={})
    explorer.page.wait_for_function("sent.length > 1")
    explorer.page.wait_for_timeout(200)
    asked = [{name: one[name] for name in ("do", "variant")} for one in explorer.sent()]
    # Of three displays, one below the other, the page shows two.
    assert asked == [{"do": "estimate", "variant": ""}] * 2
    assert explorer.find(".badge").inner_text() == "estimating …"
    assert explorer.find(".badge").is_disabled()
    explorer.page.locator(".ttx-explorer").nth(2).scroll_into_view_if_needed()
    explorer.page.wait_for_function("() => sent.length === 3")
    for tab in ("Cores", "Buffers", "Steps"):
        explorer.tab(tab)
    explorer.press("j", "k")
    assert len(explorer.sent()) == 3


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_its_card_opens_under_the_pointer_and_with_the_keyboard(
    show: Show, gemm: Exploration, theme: Literal["light", "dark"]
) -> None:
    explorer = show(gemm.data, theme=theme, missing={})
    data = gemm.estimate_data()
    badge, card = explorer.find(".badge"), explorer.find(".estimate")
    room = badge.bounding_box()
    answered(explorer, gemm)
    explorer.find(".badge:enabled").wait_for()
    assert badge.inner_text() == data["badge"]
    # Nothing moves when it comes.
    assert badge.bounding_box() == room
    assert not card.is_visible()
    badge.hover()
    assert card.is_visible()
    text = card.inner_text()
    assert all(fact in text for _, fact in data["facts"])
    assert [row.split("\t")[0] for row in card.locator("tbody").nth(1).inner_text().splitlines()] == [
        name for name, _, percent in data["gains"] if percent
    ]
    assert all(name in card.locator("p").nth(1).inner_text() for name, _, percent in data["gains"] if not percent)
    box, window = card.bounding_box(), explorer.page.viewport_size
    assert box is not None
    assert window is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= window["width"]
    assert violations(explorer, theme) == []
    explorer.page.mouse.move(5, 800)
    assert not card.is_visible()
    badge.focus()
    assert card.is_visible()
    assert badge.get_attribute("aria-expanded") == "true"
    explorer.type("Escape")
    assert not card.is_visible()
    assert badge.evaluate("badge => badge === document.activeElement")
    explorer.type("Enter")
    assert card.is_visible()
    explorer.press("j")
    assert not card.is_visible()


@pytest.fixture(scope="module")
def decided() -> Exploration:
    """A program whose time depends on elements of its inputs."""
    return explore(searched())


def refused_without_inputs(explorer: ExplorerPage, exploration: Exploration) -> None:
    """Answers that elements decide; gives way to the question with inputs."""
    with pytest.raises(UsageError) as caught:
        exploration.estimate_data()
    explorer.page.wait_for_function("() => sent.length")
    explorer.answer({"state": "failed", "error": error_data(caught.value.record())}, question=0)
    explorer.page.wait_for_function("() => sent.length === 2")


def estimated(exploration: Exploration, question: dict[str, Any]) -> dict[str, Any]:
    """What Python answers to a question with inputs."""
    sent: list[dict[str, Any]] = []
    widget = exploration.widget()
    widget._tell = lambda message, buffers=None: sent.append(message)
    widget._answer(question, threading.Event())
    return sent[-1]


def test_a_time_that_elements_decide_is_that_of_the_chosen_inputs(show: Show, decided: Exploration) -> None:
    explorer = show(decided.data, missing={})
    refused_without_inputs(explorer, decided)
    question = explorer.sent()[1]
    assert {name: question[name] for name in ("do", "inputs", "seed")} == {
        "do": "estimate", "inputs": "random", "seed": 0,
    }  # fmt: skip
    explorer.answer(estimated(decided, question), question=1)
    badge, card = explorer.find(".badge:enabled"), explorer.find(".estimate")
    badge.wait_for()
    wanted = decided.estimate(inputs="random")
    assert isinstance(wanted, Estimate)
    assert badge.inner_text().startswith(f"{short_time(wanted.us)} estimate for these inputs · ")
    badge.hover()
    assert "inputs random, seed 0" in card.inner_text()
    assert "the interpreter ran it" in card.inner_text()
    assert violations(explorer) == []
    # Buffers asks with the same inputs.
    explorer.tab("Buffers")
    explorer.page.wait_for_function("() => sent.length === 3")
    question = explorer.sent()[2]
    assert (question["do"], question["inputs"]) == ("trace", "random")
    explorer.answer(estimated(decided, question), question=2)
    explorer.part("time on the device")
    explorer.find("[aria-label='time on the device'] .plot").first.wait_for()
    # Other inputs have another time, which is asked for once they are chosen.
    explorer.tab("Run")
    explorer.find("select[aria-label=inputs]:visible").select_option("ones")
    explorer.page.wait_for_function("() => sent.length === 4")
    question = explorer.sent()[3]
    assert (question["do"], question["inputs"]) == ("estimate", "ones")
    assert explorer.find(".badge").inner_text() == "estimating …"
    explorer.answer(estimated(decided, question), question=3)
    explorer.find(".badge:enabled").hover()
    assert "inputs ones" in explorer.find(".estimate").inner_text()


def test_inputs_that_cannot_be_taken_say_so(show: Show, decided: Exploration) -> None:
    explorer = show(decided.data, missing={})
    refused_without_inputs(explorer, decided)
    answer = estimated(decided, {**explorer.sent()[1], "inputs": "yours", "names": "nowhere"})
    assert answer["state"] == "failed"
    explorer.answer(answer, question=1)
    badge, card = explorer.find(".badge:enabled"), explorer.find(".estimate")
    badge.wait_for()
    assert badge.inner_text() == "no estimate"
    badge.hover()
    assert "nowhere" in card.inner_text()
    assert violations(explorer) == []


def test_a_saved_exploration_says_why_it_has_none(show: Show, gemm: Exploration, tmp_path: Path) -> None:
    saved = load(gemm.save(tmp_path / "gemm.ttx"))
    explorer = show(saved.data, missing=saved.missing)
    explorer.find(".badge:enabled").hover()
    assert explorer.find(".estimate").inner_text() == saved.missing["estimate"]
    assert explorer.sent() == []


def test_a_lowering_that_failed_has_none(show: Show, refused: Exploration) -> None:
    explorer = show(refused.data, missing={})
    explorer.page.wait_for_timeout(200)
    assert explorer.sent() == []
    assert not explorer.find(".badge").is_visible()


def test_a_page_brings_it_along(gemm: Exploration, open_context: Open, tmp_path: Path) -> None:
    path = gemm.report(tmp_path / "gemm.html", run=False)
    page = open_context(viewport={"width": 1400, "height": 900}).new_page()
    page.goto(path.as_uri())
    badge = page.locator(".badge:enabled")
    badge.wait_for()
    assert badge.inner_text() == gemm.estimate_data()["badge"]


def test_the_map_is_coloured_by_what_cores_do(explorer: ExplorerPage, gemm: Exploration) -> None:
    explorer.tab("Cores")
    measures = gemm.estimate_data()["measures"]
    select = explorer.find("select[aria-label=measure]")
    assert select.locator("option").all_inner_texts()[-len(measures) :] == [one["name"] for one in measures]
    for one in measures:
        select.select_option(one["name"])
        cores = [(core["x"], core["y"]) for core in explorer.data["cores"]["cores"]]
        cells = [explorer.find(f'.coremap [data-core="{x},{y}"]') for x, y in cores]
        assert [cell.locator("text").text_content() for cell in cells] == list(one["labels"])
        assert [cell.locator("path").get_attribute("class") for cell in cells] == [f"f{step}" for step in one["steps"]]
        assert one["name"] in explorer.find(".coremap .legend").text_content()
        assert violations(explorer) == []
    assert measures[0]["shown"][0] in explorer.find(".corecard").inner_text()


def test_links_are_coloured_by_the_bytes_that_the_plan_moves(show: Show) -> None:
    """Of a program on one core, what leaves the core over the NoCs is its output, which the plan has."""
    exploration = explore(
        f"{Path(__file__).parents[2] / 'notebooks' / 'kernels' / 'gemm.py'}::matmul",
        M=64, N=64, K=128, block_M=64, block_N=64,
    )  # fmt: skip
    partition = exploration.plan.partition
    assert partition is not None
    (core,) = [one for one in partition.cores if one.items]
    output = exploration.plan.layout("C")
    written = prod(output.padded_shape) // (32 * 32) * DATA_FORMATS[output.data_format].tile_bytes
    explorer = show(exploration.data, missing={})
    answered(explorer, exploration)
    explorer.find(".badge:enabled").wait_for()
    explorer.tab("Cores")
    explorer.find("select[aria-label=measure]").select_option("NoC link bytes (estimate)")
    cell = explorer.find(f'.coremap [data-core="{core.x},{core.y}"]')
    cell.click()
    shown = explorer.find(".corecard tr").filter(has_text="NoC link bytes (estimate)").locator("td").inner_text()
    links = {way: int(count.replace(",", "")) for count, way in re.findall(r"([\d,]+) B (\w+)", shown)}
    # The writer's NoC goes up and left; halves of bytes are rounded.
    assert set(links) == {"up", "left"}
    assert sum(links.values()) == pytest.approx(written, abs=1)
    legend = explorer.find(".coremap .legend")
    busiest = max(links.values())
    assert f"{busiest:,} B" in legend.locator("text").all_text_contents()
    assert cell.locator("text").text_content() == f"{busiest / 1000:.1f}k"
    # Each link that carries something is drawn as an edge, the busiest ones with the last colour of the scale.
    found = exploration.estimate()
    assert isinstance(found, Estimate)
    edges = legend.locator("g path")
    drawn = edges.evaluate_all(
        "all => all.map((one) => [one.getAttribute('stroke'), one.getAttribute('d').split('M').length - 1])"
    )
    assert sum(count for _, count in drawn) == len(found.links.carried)
    colours = {heat_step(count, found.links.most_bytes) for count in found.links.carried.values()}
    assert {colour for colour, _ in drawn} == {HEAT[one] for one in colours}
    reads = sum(prod(exploration.plan.layout(one).padded_shape) * 2 for one in "AB")
    assert found.links.most_bytes <= reads


def test_a_measure_waits_for_the_estimate_of_an_edited_kernel(explorer: ExplorerPage, gemm: Exploration) -> None:
    explorer.tab("Cores")
    select = explorer.find("select[aria-label=measure]")
    name = gemm.estimate_data()["measures"][0]["name"]
    select.select_option(name)
    explorer.tab("What if")
    explorer.button("Lower and compare").click()
    other = gemm.fork(stages=3)
    explorer.answer_what_if(gemm, other, question=2)
    explorer.button("Explore this lowering").click()
    explorer.tab("Cores")
    assert explorer.find(".badge").is_disabled()
    assert name not in select.locator("option").all_inner_texts()
    explorer.page.wait_for_function("() => sent.some(({do: what, variant}) => what === 'estimate' && variant === '1')")
    number = next(i for i, one in enumerate(explorer.sent()) if (one["do"], one["variant"]) == ("estimate", "1"))
    answered(explorer, other, number)
    explorer.find(".badge:enabled").wait_for()
    assert select.input_value() == name
    assert explorer.find(".badge").inner_text() == other.estimate_data()["badge"]


def test_what_if_compares_both_times(explorer: ExplorerPage, gemm: Exploration) -> None:
    explorer.tab("What if")
    explorer.button("Lower and compare").click()
    other = gemm.fork(stages=3)
    explorer.answer_what_if(gemm, other, question=2)
    rows = explorer.find(".compared table.grid tr")
    # That of the shown lowering is known.
    explorer.page.wait_for_function("() => sent.length === 4")
    assert [(one["do"], one["variant"]) for one in explorer.sent()[3:]] == [("estimate", "1")]
    answered(explorer, other, 3)
    figures = [one.estimate_data()["figures"] for one in (gemm, other)]
    explorer.find(".compared th").filter(has_text="time (estimate)").wait_for()
    for (name, now), (_, then) in zip(*figures, strict=True):
        row = rows.filter(has_text=name)
        assert row.locator("td").all_inner_texts() == [now, then]


def test_what_if_of_a_lowering_without_a_time(explorer: ExplorerPage, gemm: Exploration) -> None:
    explorer.tab("What if")
    explorer.button("Lower and compare").click()
    explorer.answer_what_if(gemm, gemm, question=2)
    explorer.page.wait_for_function("() => sent.length === 4")
    failure = UsageError("U022", "no time", hint="none")
    explorer.answer({"state": "failed", "error": error_data(failure.record())}, question=3)
    # Nor has it one for the chosen inputs.
    explorer.page.wait_for_function("() => sent.length === 5")
    assert explorer.sent()[4]["inputs"] == "random"
    failure = UsageError("U010", "too long", hint="none")
    explorer.answer({"state": "failed", "error": error_data(failure.record())}, question=4)
    row = explorer.find(".compared tr").filter(has_text="time (estimate)")
    row.wait_for()
    assert row.locator("td").all_inner_texts() == [gemm.estimate_data()["figures"][0][1], "–"]


@pytest.fixture
def device(explorer: ExplorerPage, gemm: Exploration) -> ExplorerPage:
    """The time on the device, in Buffers."""
    explorer.tab("Buffers")
    assert [(one["do"], one["core"]) for one in explorer.sent()[1:]] == [("trace", "0,0")]
    explorer.answer({"state": "done", "trace": gemm.trace_data((0, 0))})
    explorer.part("time on the device")
    explorer.find("[aria-label='time on the device'] .plot").first.wait_for()
    return explorer


def test_buffers_show_the_microseconds_of_the_chosen_core(device: ExplorerPage, gemm: Exploration) -> None:
    section = device.find("[aria-label='time on the device']")
    data = gemm.trace_data((0, 0))
    assert "time on the device (estimate)" in section.inner_text()
    assert data["unit"] in section.inner_text()
    assert data["note"] in section.inner_text()
    for one in data["processors"]:
        assert one["name"] in section.locator(".name").all_inner_texts()
        assert one["told"] in section.inner_text()
    assert section.locator("svg").count() == len(data["processors"]) == 5
    assert section.locator("svg").first.get_attribute("viewBox") == f"0 0 {data['end']} 22"
    assert violations(device) == []


def test_the_parts_that_are_drawn_are_those_of_the_trace(device: ExplorerPage, gemm: Exploration) -> None:
    section = device.find("[aria-label='time on the device']")
    for row, one in zip(section.locator("svg").all(), gemm.trace_data((0, 0))["processors"], strict=True):
        parts = one["parts"]
        begins = [start for start, busy in zip(parts[::4], parts[2::4], strict=True) if busy]
        drawn = row.locator(".ran").get_attribute("d") or ""
        assert [int(part.split()[0]) for part in drawn.split("M")[1:]] == begins
        for kind, name in enumerate(("waited", "far", "near")):
            spans = row.locator(f".{name}").get_attribute("d") or ""
            assert spans.count("M") == parts[3::4].count(kind)


def test_the_axis_is_looked_at_closer(device: ExplorerPage, gemm: Exploration) -> None:
    section = device.find("[aria-label='time on the device']")
    end = gemm.trace_data((0, 0))["end"]

    def window() -> tuple[int, int]:
        first, _, span, _ = map(int, (section.locator("svg").first.get_attribute("viewBox") or "").split())
        return first, span

    device.button("closer").click()
    assert window()[1] == pytest.approx(end / 2, abs=1)
    assert window()[0] == pytest.approx(end / 4, abs=1)
    device.button("later").click()
    device.button("later").click()
    assert sum(window()) == end
    device.button("earlier").click()
    assert window()[0] == pytest.approx(end / 4, abs=2)
    device.button("further away").click()
    assert window() == (0, end)
    for _ in range(12):
        device.button("closer").click()
    assert window()[1] == 500


def test_another_core_is_asked_for_and_one_without_kernels_says_so(device: ExplorerPage, gemm: Exploration) -> None:
    asked = len(device.sent())
    device.part("dataflow")
    device.find("select[aria-label='core to record']").select_option("1,0")
    device.part("time on the device")
    assert [(one["do"], one["core"]) for one in device.sent()[asked:]] == [("trace", "1,0")]
    with pytest.raises(UsageError) as caught:
        gemm.trace_data((9, 9))
    device.answer({"state": "failed", "error": error_data(caught.value.record())})
    card = device.find("[aria-label='time on the device'] .card.fault")
    card.wait_for()
    assert "core (9, 9) does not run the program" in card.inner_text()


def test_buffers_of_a_page_without_python_show_no_time(show: Show, gemm: Exploration) -> None:
    explorer = show(gemm.data, live=False, estimate=gemm.estimate_data())
    explorer.find(".badge:enabled").wait_for()
    explorer.tab("Buffers")
    explorer.part("time on the device")
    assert explorer.find(".none").is_visible()
    assert not explorer.find("[aria-label='time on the device']").is_visible()


def test_advice_is_asked_for_in_the_card_and_tried_in_what_if(show: Show, gemm: Exploration) -> None:
    """Options and arguments of the kernel are lowered with one click; what was asked once stays known."""
    explorer = show(gemm.data, missing={})
    answered(explorer, gemm)
    explorer.find(".badge:enabled").hover()
    card = explorer.find(".estimate")
    assert len(explorer.sent()) == 1
    card.get_by_role("button", name="what would be faster").click()
    explorer.page.wait_for_function("() => sent.at(-1).do === 'advice'")
    card.get_by_text("trying what would be faster").wait_for()
    explorer.answer({"state": "progress", "text": "trying stages=3"})
    card.get_by_text("trying stages=3").wait_for()
    told = {"cause": "48 of 64 cores idle", "percent": 50, "told": "takes 17.8 µs instead of 35.5 µs"}
    wishes: list[dict[str, str]] = [{"block_M": "32", "block_N": "32"}, {"stages": "3"}]
    advice = [
        {**told, "wish": wish, "words": ", ".join(f"{name}={value}" for name, value in wish.items())} for wish in wishes
    ]
    explorer.answer({"state": "done", "advice": advice})
    text = "48 of 64 cores idle: block_M=32, block_N=32 takes 17.8 µs instead of 35.5 µs (−50 %) try"
    assert " ".join(card.locator(".advice p").first.inner_text().split()) == text
    # It stands first in What if, too, and is not asked for again.
    explorer.tab("What if")
    assert [one["do"] for one in explorer.sent()] == ["estimate", "advice"]
    first = explorer.find(".options > :first-child")
    assert "block_M=32, block_N=32" in first.inner_text()
    for wish, name in zip(wishes, ("block_M=32, block_N=32", "stages=3"), strict=True):
        first.get_by_role("button", name=f"try {name}").click()
        assert not card.is_visible()
        asked = explorer.sent()[-1]
        arguments = {name: value for name, value in wish.items() if name != "stages"}
        assert (asked["do"], asked["options"], asked["arguments"]) == (
            "fork", {name: value for name, value in wish.items() if name == "stages"}, arguments,
        )  # fmt: skip
        chips = explorer.find(".chosen .chip").all_inner_texts()
        assert chips == [f"{name}={value} ×" for name, value in wish.items()]
        explorer.answer_what_if(gemm, gemm.fork(stages=3))
        assert explorer.find(".compared .tools b").first.inner_text() == name
    explorer.find(".chosen .chip").click()
    assert explorer.find(".chosen .chip").count() == 0
