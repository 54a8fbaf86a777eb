"""Parts of a step in the explorer: rows for those that changed something, dots for the others, and what leads there."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.browser.conftest import Show
from tests.browser.explorer_page import NARROW, ExplorerPage
from tests.steps import LETTERS, PARTS, after_a0
from ttexplore import Exploration, explore
from ttexplore.record import ErrorRecord
from ttexplore.views.explorer import explorer_data

_ROWS = "rows => rows.map((row) => row.querySelector('.letter').innerText)"
# The parts of later steps that change something; of the first kernel, an input is loaded by the writer.
_GROUPS_LATER = ["A2.5", "B1.1", "B1.2", "D1.1", "D1.2", "D5.1", "D5.2"]
_SPARSE_LATER = ["A2.3", "A2.5", "B1.1", "D1.2", "D5.1", "D5.2"]


@pytest.fixture(scope="module")
def groups() -> Exploration:
    """Groups of threads: A0.4 rewrites the program, A0.1 the plan."""
    return explore("notebooks/gallery/warp_groups.py::group_that_loads")


@pytest.fixture(scope="module")
def sparse() -> Exploration:
    """Attention whose blocks a mask chooses: A0.11 rewrites, A0.1 and A0.17 decide."""
    return explore("notebooks/gallery/sparse_attention.py::block_sparse_attention")


@pytest.fixture
def explorer(show: Show, groups: Exploration) -> ExplorerPage:
    return show(groups.data)


def way(explorer: ExplorerPage, key: str, count: int) -> list[str]:
    """The letters of the steps that a key leads to."""
    letters: list[str] = []
    for _ in range(count):
        explorer.type(key)
        letters.append(explorer.letter())
    return letters


def test_parts_are_rows_or_dots(show: Show, groups: Exploration, sparse: Exploration) -> None:
    for exploration, parts, later in (
        (groups, ["A0.1", "A0.4"], _GROUPS_LATER), (sparse, ["A0.1", "A0.11", "A0.17"], _SPARSE_LATER),
    ):  # fmt: skip
        explorer = show(exploration.data)
        assert explorer.find(".steplist .step").evaluate_all(_ROWS) == ["A0", *parts, *after_a0(later)]
        assert explorer.find(".steplist .part").evaluate_all(_ROWS) == [*parts, *later]
        dots = explorer.find(".steplist .dot")
        every = [part for step in exploration.steps for part in step.parts]
        names = [f"{one.letter} {one.name}" for one in every if one.letter not in (*parts, *later)]
        assert dots.evaluate_all("dots => dots.map((dot) => dot.title.split(':')[0])") == names
        assert dots.evaluate_all("dots => dots.map((dot) => dot.ariaLabel)") == [f"{n}: changes nothing" for n in names]
        # All of a step in one line, below the rows of the parts and above the next step.
        boxes = dots.evaluate_all("dots => dots.map((dot) => dot.getBoundingClientRect().y)")
        boxes = [box for box, name in zip(boxes, names, strict=True) if name.startswith("A0.")]
        assert len(set(boxes)) == 1
        rows = explorer.find(".steplist .step")
        ends = [box["y"] for n in (len(parts), len(parts) + 1) if (box := rows.nth(n).bounding_box())]
        assert ends[0] < boxes[0] < ends[1]


def test_keys_go_through_the_rows_and_the_arrows_to_the_sides_through_all(explorer: ExplorerPage) -> None:
    explorer.go("A0")
    explorer.root.focus()
    assert way(explorer, "j", 4) == ["A0.1", "A0.4", "A1", "A2"]
    assert way(explorer, "ArrowUp", 5) == ["A1", "A0.4", "A0.1", "A0", "A0"]
    explorer.find(".steplist [aria-selected=true]").focus()
    every = [one["letter"] for one in explorer.data["steps"]]
    assert way(explorer, "ArrowRight", 20) == every[1:21]
    assert way(explorer, "ArrowLeft", 20) == every[19::-1]
    # The focus goes along, and only one of the list is a stop for Tab.
    explorer.type("ArrowRight", "ArrowRight")
    assert explorer.page.evaluate("document.activeElement.title.split(' ')[0]") == "A0.2"
    assert explorer.find(".steplist [tabindex='0']").count() == 1
    # From a dot, keys lead to the nearest rows.
    assert way(explorer, "ArrowDown", 1) == ["A0.4"]


def test_a_dot_shows_its_part(explorer: ExplorerPage) -> None:
    for letter in ("A0.3", "A0.18"):
        explorer.go(letter)
        assert explorer.find(".title .letter").inner_text() == letter
        assert explorer.find(".dot[aria-selected=true]").count() == 1
        explorer.spoken(f"{letter}, part {letter[3:]} of {len(PARTS['A0'])} of A0, ")
    explorer.go("A1")
    explorer.spoken(f"step 2 of {len(LETTERS)}, infer_tt_layout")


def test_a_search_names_the_part_and_no_dots(explorer: ExplorerPage) -> None:
    explorer.go("E1")
    explorer.press("/")
    explorer.page.keyboard.type("barrier_wait")
    groups = explorer.find(".finder .stage b").all_inner_texts()
    assert groups == ["kernel", "A0.1 program"]
    explorer.find(".finder .stage").nth(1).click()
    explorer.spoken("A0.1 program line")
    assert explorer.letter() == "A0.1"


def test_a_step_is_compared_with_a_part_in_the_order_of_time(explorer: ExplorerPage) -> None:
    choice = explorer.find("[aria-label='compare with']")
    explorer.press("v")
    offered = choice.locator("option").all_inner_texts()
    assert [one.split()[0] for one in offered[1:]] == ["A0", "A0.1", "A0.4", *after_a0(_GROUPS_LATER)]
    # The program after A0 is there after that of its parts.
    explorer.go("A0")
    explorer.option("compare with").select_option(label="A0.1 record_defaults")
    assert explorer.find(".title .what").inner_text().startswith("A0.1 → A0:")
    assert explorer.button("program").inner_text().split() == ["program", "−11", "~8"]
    explorer.go("A0.1")
    explorer.option("compare with").select_option(label="A0 apply_defaults")
    assert explorer.find(".title .what").inner_text().startswith("A0.1 → A0:")
    explorer.go("B2")
    explorer.option("compare with").select_option(label="A0.4 order_thread_groups")
    assert explorer.find(".title .what").inner_text().startswith("A0.4 → B2:")


def test_the_history_has_cells_for_parts_that_rewrite(show: Show, groups: Exploration, sparse: Exploration) -> None:
    for exploration, part, later in (
        (groups, "A0.4", ["D1.2", "D5.1", "D5.2"]), (sparse, "A0.11", ["A2.3", "D1.2", "D5.1", "D5.2"]),
    ):  # fmt: skip
        explorer = show(exploration.data)
        explorer.find(".source .l").filter(has_text="T.gemm").first.click()
        assert explorer.find(".cell .lab").all_inner_texts() == [
            letter[letter.find(".") :] if "." in letter else letter for letter in ("A0", part, *after_a0(later))
        ]
        cells = explorer.find(".cell").evaluate_all("cells => cells.map((cell) => cell.clientWidth)")
        assert explorer.find(".cell .lab").evaluate_all("labs => labs.map((lab) => lab.scrollWidth)") <= cells
        explorer.find(".cell").nth(1).click()
        assert explorer.letter() == part
        # A part without a cell is one of its step's.
        explorer.go("A0.2")
        assert explorer.find(".cell.now .lab").all_inner_texts() == ["A0"]


def test_an_option_of_a_step_and_its_part_is_offered_once(explorer: ExplorerPage) -> None:
    explorer.tab("What if")
    assert explorer.find(".options [aria-label=partials]").count() == 1
    groups = explorer.find(".options legend").all_inner_texts()
    assert [one.split()[0] for one in groups if one.startswith("A0")] == ["A0"]


def test_what_if_lists_the_part_that_does_something_else(show: Show) -> None:
    sums = explore("notebooks/gallery/work.py::split_k_added")
    explorer = show(sums.data)
    explorer.tab("What if")
    explorer.find(".options [aria-label=partials]").select_option("noc")
    explorer.button("Lower and compare").click()
    explorer.answer_what_if(sums, sums.fork(partials="noc"))
    letters = explorer.find(".lanelist .step:has(.letter:not(:empty))")
    assert letters.evaluate_all(_ROWS) == ["A0", "A0.19", *after_a0(["B1.1", "D1.1", "D1.2"])]
    said = explorer.find(".compared > .tools .q").first.inner_text()
    assert said.split(", ")[0] == "A0.19 rewrites differently"
    assert "A0 " not in said
    explorer.button("Explore this lowering").click()
    assert explorer.letter() == "A0.19"


def test_a_check_leads_to_the_parts(explorer: ExplorerPage, groups: Exploration) -> None:
    explorer.tab("Run")
    explorer.button("Check every step").click()
    results = [
        {"letter": letter, "step": groups.steps[letter].name, "passed": letter != "A0.4", "pcc": "1", "error": "0",
         "message": ""}
        for letter in ("A0", "A0.1", "A0.4", "A1")
    ]  # fmt: skip
    explorer.answer({"state": "done", "results": results, "first_bad": "order_thread_groups"})
    card = explorer.find(".checks .card.fault")
    assert card.locator("b").inner_text() == "✖ order_thread_groups is the first step that changes the result"
    assert card.locator("tbody th").all_inner_texts() == [f"{one['letter']} {one['step']}" for one in results]
    card.get_by_role("button", name="A0.4").click()
    assert explorer.letter() == "A0.4"


def test_a_place_names_a_part(show: Show, groups: Exploration) -> None:
    explorer = show(groups.data, place={"tab": "Steps", "step": "A0.4"})
    assert explorer.letter() == "A0.4"
    explorer.set("place", {"step": "A0.15"})
    assert explorer.letter() == "A0.15"
    assert groups.view(step="A0.4").place["step"] == "A0.4"


def test_a_part_that_fails_is_shown(show: Show, groups: Exploration) -> None:
    whole = groups.trace.steps[0]
    error = ErrorRecord("Unsupported", "too many groups", "use fewer", code="TTX-L001")
    same: dict[str, Any] = {"error": error, "changed_ir": False, "changed_plan": False}
    part = dataclasses.replace(whole.parts[3], after=whole.parts[3].before, **same)
    failed = dataclasses.replace(whole, after=whole.before, parts=(*whole.parts[:3], part), **same)
    trace = dataclasses.replace(groups.trace, steps=(failed,), files={})
    explorer = show(explorer_data(trace, groups.steps["A0.3"].plan, groups.target))
    assert explorer.letter() == "A0.4"
    assert explorer.find(".steplist .part").evaluate_all(_ROWS) == ["A0.1", "A0.4"]
    assert "too many groups" in explorer.find(".refusal .card.fault").inner_text()


def test_a_narrow_page_offers_all_parts(show: Show, groups: Exploration) -> None:
    explorer = show(groups.data, width=NARROW)
    choice = explorer.find(".stepchoice")
    offered = choice.locator("option").all_inner_texts()
    assert [one.split()[1] for one in offered] == [one["letter"] for one in explorer.data["steps"]]
    choice.select_option(index=4)
    assert explorer.find(".title b").inner_text() == "order_thread_groups"
