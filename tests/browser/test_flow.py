"""The graph of what happens: every node leads to its lines, frames fold, and the keyboard reaches all of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.conftest import Show
from tests.browser.explorer_page import ExplorerPage
from tests.browser.test_accessibility import violations
from tests.corpus import copy_block
from ttexplore import Exploration, explore
from ttexplore.errors import UsageError
from ttexplore.views.explorer import error_data


@pytest.fixture(scope="module")
def attention() -> Exploration:
    return explore("notebooks/gallery/attention.py::causal_attention")


@pytest.fixture
def explorer(show: Show, attention: Exploration) -> ExplorerPage:
    shown = show(attention.data)
    shown.tab("Buffers")
    return shown


def flow(explorer: ExplorerPage, words: str) -> dict[str, Any]:
    """Shows one of the graphs; gives what Python says of it."""
    explorer.button(words).click()
    explorer.drawn()
    return next(each for each in explorer.data["flows"] if each["words"] == words)


def card(explorer: ExplorerPage) -> str:
    return explorer.find(".flowcard:popover-open").inner_text()


@pytest.mark.parametrize("words", ["tile operations", "kernel statements"])
def test_a_click_on_every_node_of_attention_lands(explorer: ExplorerPage, words: str) -> None:
    graph = flow(explorer, words)
    assert len(graph["nodes"]) >= 20
    for number, node in enumerate(graph["nodes"]):
        box = explorer.find(f".flow [data-node='{number}']")
        # As a click in its middle, wherever the node is in the graph.
        box.dispatch_event("click")
        explorer.drawn()
        told = card(explorer)
        assert told.startswith(node["title"])
        assert all(value in told for _, value in node["facts"])
        # Its line is pinned: all nodes of it stand out, and no others.
        chosen = explorer.find(".flow .chosen").evaluate_all("boxes => boxes.map((box) => Number(box.dataset.node))")
        assert set(chosen) == {other for other, each in enumerate(graph["nodes"]) if each["line"] == node["line"]}


def test_what_is_chosen_in_the_graph_is_pinned_in_every_view(explorer: ExplorerPage) -> None:
    graph = flow(explorer, "tile operations")
    number = next(number for number, node in enumerate(graph["nodes"]) if node["title"] == "matmul")
    explorer.find(f".flow [data-node='{number}']").click()
    explorer.find(".flowcard").get_by_role("button", name="in the code").click()
    explorer.drawn()
    lit = explorer.find("section[aria-label='compute.cpp'] .cursor").inner_text()
    assert "matmul_block" in lit
    explorer.tab("Steps")
    lit = explorer.find(".diff .cursor").inner_text()
    assert "gemm" in lit or "matmul_block" in lit


def test_an_edge_tells_tiles_bytes_and_who_waits(explorer: ExplorerPage) -> None:
    graph = flow(explorer, "tile operations")
    number = next(number for number, edge in enumerate(graph["edges"]) if edge["ends"][0] == "k")
    explorer.find(f".flow [data-flow='{number}']").dispatch_event("click")
    explorer.drawn()
    told = card(explorer)
    assert "2 tiles, 4 KiB in L1" in told
    assert "2 blocks of 2 pages: reader waits for room, compute for tiles" in told


def test_a_frame_folds_and_opens_again(explorer: ExplorerPage) -> None:
    graph = flow(explorer, "tile operations")
    inside = {number for number, node in enumerate(graph["nodes"]) if node["frame"] == 1}
    height = "() => document.querySelector('.flow svg').viewBox.baseVal.height"
    whole = explorer.page.evaluate(height)

    def hidden() -> set[int]:
        nodes = explorer.find(".flow [data-node]").evaluate_all(
            "boxes => boxes.filter((box) => !box.getBoundingClientRect().width).map((box) => Number(box.dataset.node))"
        )
        return set(nodes)

    assert hidden() == set()
    explorer.find(".flow [data-label='1']").click()
    explorer.drawn()
    assert hidden() == inside
    assert explorer.page.evaluate(height) < whole - 300
    # What is left does not overlap.
    boxes = explorer.find(".flow svg > g > .box:visible, .flow svg > [data-side] > rect:visible").evaluate_all(
        "boxes => boxes.map((box) => box.getBoundingClientRect()).map(({x, y, width, height}) => [x, y, width, height])"
        ".filter(([, , width, height]) => width < 300 && height < 100)"
    )
    assert len(boxes) > 12
    for position, (x, y, width, height_) in enumerate(boxes):
        for x2, y2, width2, height2 in boxes[:position]:
            assert x + width <= x2 or x2 + width2 <= x or y + height_ <= y2 or y2 + height2 <= y
    explorer.find(".flow [data-label='1']").press("Enter")
    explorer.drawn()
    assert hidden() == set()
    assert explorer.page.evaluate(height) == whole


def test_the_graph_follows_the_step_and_the_keyboard(explorer: ExplorerPage) -> None:
    pressed = "[aria-label='statements or operations'] [aria-pressed=true]"
    for letter, words in (
        ("A3", "kernel statements"),
        ("C1", "kernel statements"),
        ("C2", "tile operations"),
        ("D5", "tile operations"),
    ):
        explorer.tab("Steps")
        explorer.go(letter)
        explorer.tab("Buffers")
        assert explorer.find(pressed).inner_text() == words
    # One stop of Tab; arrows go to the nearest box, Enter tells of it, Escape comes back.
    stop = explorer.find(".flow :is([data-node],[data-side],[data-label])[tabindex='0']")
    assert stop.count() == 1
    stop.focus()
    reached = set[str | None]()
    for _ in range(6):
        explorer.type("ArrowDown")
        reached.add(explorer.find(".flow :focus").get_attribute("data-node"))
    assert len(reached) == 6
    explorer.type("Enter")
    assert explorer.find(".flowcard:popover-open").count() == 1
    explorer.type("Escape")
    assert explorer.find(".flowcard:popover-open").count() == 0
    assert explorer.find(".flow :focus").count() == 1


def test_the_text_of_the_graph_can_be_read(explorer: ExplorerPage) -> None:
    """No text is smaller than 11 pixels, and none lies on another one, or sticks out of its box."""
    flow(explorer, "tile operations")
    sizes = explorer.find(".flow svg text").evaluate_all(
        "texts => texts.map((text) => parseFloat(getComputedStyle(text).fontSize))"
    )
    assert min(sizes) >= 11
    overlapping = explorer.find(".flow svg").evaluate(
        """svg => {
            const texts = [...svg.querySelectorAll("text")].filter((text) => text.textContent && text.checkVisibility())
                .map((text) => [text.textContent, text.getBoundingClientRect()]);
            const meet = (p, q) =>
                p.left < q.right - 1 && q.left < p.right - 1 && p.top < q.bottom - 3 && q.top < p.bottom - 3;
            return texts.flatMap(([a, p], i) =>
                texts.slice(i + 1).flatMap(([b, q]) => meet(p, q) ? [`${a} / ${b}`] : []));
        }"""
    )
    assert overlapping == []
    outside = explorer.find(".flow [data-node], .flow [data-side]").evaluate_all(
        """nodes => nodes.flatMap((node) => {
            const {left, right} = node.querySelector("rect").getBoundingClientRect();
            return [...node.querySelectorAll("text")].filter((text) => text.checkVisibility()).flatMap((text) => {
                const box = text.getBoundingClientRect();
                return box.width && (box.left < left || box.right > right) ? [text.textContent] : [];
            });
        })"""
    )
    assert outside == []


def test_a_program_that_only_moves_data_has_its_dataflow(show: Show) -> None:
    explorer = show(explore(copy_block()).data)
    explorer.tab("Buffers")
    assert explorer.find("[aria-label='statements or operations'] [aria-pressed=true]").inner_text() == "dataflow"
    # Nothing in it can be chosen.
    hint = explorer.root.get_by_text("click a box or an arrow")
    assert not hint.is_visible()
    assert explorer.find(".flow [data-buffer]").evaluate_all("all => all.map((one) => one.dataset.buffer)") == ["S"]
    assert violations(explorer) == []
    flow(explorer, "kernel statements")
    assert hint.is_visible()


def test_lines_have_bars_for_what_they_cost(show: Show, attention: Exploration) -> None:
    estimate = attention.estimate_data()
    explorer = show(attention.data, estimate=estimate, missing={})
    explorer.find(".badge:enabled").wait_for()
    explorer.tab("Code")
    pane = explorer.file("compute.cpp")
    costs = estimate["costs"]["files"]["compute.cpp"]
    pane.locator(".n.cost").first.wait_for()
    shown = pane.locator(".n.cost").evaluate_all(
        "all => all.map((one) => [one.textContent, parseFloat(one.style.getPropertyValue('--works')), one.title])"
    )
    assert shown == [[line, costs[line][0], costs[line][2]] for line, _, _ in shown]
    drawn = pane.locator(".n:not(.cost)").all_text_contents()
    assert not {*drawn} & {*costs}
    # The cost of a kernel line stands where its work is done, in the program of each step.
    line, cost = 56, estimate["costs"]["kernel"]["56"]
    explorer.tab("Steps")
    explorer.source_row(line).click()
    for letter in ("C2", "D5"):
        explorer.go(letter)
        number = explorer.find(".diff .cursor .n.cost")
        assert number.get_attribute("title") == f"kernel line {line}: {cost[2]}"
    # The graph tells it of its boxes; nothing was asked for.
    explorer.tab("Buffers")
    graph = flow(explorer, "tile operations")
    number = next(number for number, node in enumerate(graph["nodes"]) if node["line"] == 56)
    explorer.find(f".flow [data-node='{number}']").dispatch_event("click")
    explorer.drawn()
    assert cost[2] in card(explorer)
    assert [message["do"] for message in explorer.sent() if message["do"] != "trace"] == []


def test_costs_that_take_long_are_asked_for(show: Show, attention: Exploration) -> None:
    estimate = attention.estimate_data()
    explorer = show(attention.data, estimate={**estimate, "costs": None}, missing={})
    explorer.find(".badge:enabled").click()
    explorer.drawn()
    assert explorer.find(".n.cost").count() == 0
    explorer.button("what each line costs").click()
    assert explorer.sent()[-1]["do"] == "costs"
    explorer.answer({"state": "done", "costs": estimate["costs"]})
    explorer.find(".source .n.cost").first.wait_for()
    assert explorer.button("what each line costs").count() == 0


def test_costs_that_are_refused_say_why_and_can_be_asked_for_again(show: Show, attention: Exploration) -> None:
    estimate = attention.estimate_data()
    explorer = show(attention.data, estimate={**estimate, "costs": None}, missing={})
    explorer.find(".badge:enabled").click()
    explorer.button("what each line costs").click()
    failure = UsageError("U010", "too long", hint="none")
    explorer.answer({"state": "failed", "error": error_data(failure.record())})
    told = explorer.find(".estimate [role=alert]")
    assert "too long" in told.inner_text()
    assert explorer.button("what each line costs").is_enabled()
    explorer.button("what each line costs").click()
    assert [message["do"] for message in explorer.sent()] == ["costs", "costs"]
    assert told.count() == 0
    explorer.answer({"state": "done", "costs": estimate["costs"]})
    explorer.find(".source .n.cost").first.wait_for()
