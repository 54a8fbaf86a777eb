"""Two lowerings in two lanes, any two steps of one, and what the form says of each option."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.conftest import Show
from tests.browser.explorer_page import ExplorerPage
from ttexplore import Exploration
from ttexplore.errors import UsageError
from ttexplore.options import OPTIONS, parse_options
from ttexplore.views.explorer import error_data


@pytest.fixture(scope="module")
def other(gemm: Exploration) -> Exploration:
    return gemm.fork(policy="strided", cores=(2, 2))


def compared(explorer: ExplorerPage, gemm: Exploration, other: Exploration) -> None:
    explorer.tab("What if")
    explorer.button("Lower and compare").click()
    explorer.answer_what_if(gemm, other)
    explorer.find(".lanesview .step").first.wait_for()


def chosen(explorer: ExplorerPage) -> str:
    return explorer.find(".lanelist [aria-selected=true] .name").inner_text()


def sides(explorer: ExplorerPage) -> list[list[str]]:
    """The code of the changed rows, now and what if."""
    rows = explorer.find(".lanesview .diff .l:is(.c,.a,.r)")
    return [row.locator("code").all_inner_texts() for row in rows.all()]


@pytest.mark.parametrize("width", [1000, 1400, 1920])
def test_each_step_and_file_is_read_in_two_lanes(show: Show, gemm: Exploration, other: Exploration, width: int) -> None:
    explorer = show(gemm.data, width=width)
    compared(explorer, gemm, other)
    # The part of B1 that decides differently has a row of its own.
    steps = len(gemm.steps) + 1
    glyphs = explorer.find(".lanelist .k").all_inner_texts()
    assert glyphs[:steps] == ["=", "=", "=", "=", "◐", "◐", "●", *["↓"] * 9]
    names = explorer.find(".lanelist .name").all_inner_texts()[steps:]
    assert dict(zip(names, glyphs[steps:], strict=True)) == {
        "reader.cpp": "●", "compute.cpp": "=", "writer.cpp": "●", "main.cpp": "●", "run_ttnn.py": "=",
    }  # fmt: skip
    # The first step that does something else is there, in its plan.
    assert chosen(explorer) == "layout_aware_work_partition"
    assert "decides differently: partition.policy contiguous → strided" in explorer.find(".lanesview").inner_text()
    # What a step rewrites is in its program.
    explorer.find(".lanelist .step").filter(has_text="grid_to_core_grid").click()
    ((now, what_if),) = sides(explorer)
    assert (now.strip(), what_if.strip()) == ("work = work_start + item", "work = work_start + item * 4")
    assert explorer.find(".laneheads").inner_text().split("\n") == ["now", "what if"]
    # Each lane has as much room as the other, and both are in the explorer.
    row = explorer.find(".lanesview .diff .l.c")
    first, second = (row.locator("code").nth(i).bounding_box() for i in (0, 1))
    assert first
    assert second
    assert abs(first["width"] - second["width"]) < 2
    assert first["width"] > 250
    assert second["x"] + second["width"] < width
    explorer.find(".lanelist .step").filter(has_text="reader.cpp").click()
    ((now, what_if),) = sides(explorer)
    assert now.strip() == "const uint32_t work = work_start + item;"
    assert what_if.strip() == "const uint32_t work = work_start + item * 4;"
    assert explorer.sent()[1:] == []


def test_the_keyboard_goes_through_the_lanes(show: Show, gemm: Exploration, other: Exploration) -> None:
    explorer = show(gemm.data)
    compared(explorer, gemm, other)
    explorer.press("j")
    assert chosen(explorer) == "assign_work_items"
    explorer.press("j")
    assert chosen(explorer) == "grid_to_core_grid"
    explorer.spoken("B2 grid_to_core_grid, rewrites differently")
    explorer.find(".lanelist [aria-selected=true]").focus()
    explorer.type("ArrowDown")
    assert chosen(explorer) == "lower_shared_to_cb"
    explorer.type("ArrowUp", "n")
    explorer.spoken("changed line 5")
    assert explorer.find(".lanesview .diff .cursor code").count() == 2
    # The step in Steps is the one that it was.
    explorer.press("h", "s")
    assert explorer.find(".lanesview .diff.split").count() == 0
    assert not explorer.find(".laneheads").is_visible()
    explorer.press("s")
    explorer.tab("Steps")
    # What was pinned in a lane is pinned everywhere: both lowerings are of one kernel.
    row = explorer.find(".source .l").filter(has_text="T.Kernel(")
    assert "lit" in (row.get_attribute("class") or "")


def test_the_consequences_stand_above_the_lanes(show: Show, gemm: Exploration, other: Exploration) -> None:
    explorer = show(gemm.data)
    compared(explorer, gemm, other)
    table, lanes = explorer.find(".compared table").first.bounding_box(), explorer.find(".lanesview").bounding_box()
    assert table
    assert lanes
    assert table["y"] < lanes["y"]


def test_a_step_opens_on_the_part_that_differs(show: Show, gemm: Exploration) -> None:
    explorer = show(gemm.data)
    explorer.go("D3")
    compared(explorer, gemm, gemm.fork(stages=3))
    seen: set[str] = set()
    for step in explorer.find(".lanelist .step").all()[: len(gemm.steps)]:
        step.click()
        if explorer.find(".lanelist [aria-selected=true] .k").inner_text() in "●◐↓":
            seen.add(explorer.find(".lanesview .tab[aria-pressed=true]").all_inner_texts()[0].split()[0])
            assert explorer.find(".lanesview .diff .l:is(.c,.a,.r,.w,.v)").count(), chosen(explorer)
    assert seen == {"plan"}


def test_a_value_without_effect_says_so(show: Show, gemm: Exploration) -> None:
    explorer = show(gemm.data)
    compared(explorer, gemm, gemm.fork(eltwise="sfpu"))
    text = explorer.find(".compared").inner_text()
    assert "no effect with these values: every step and every file is the same" in text


def test_any_two_steps_are_compared(show: Show, gemm: Exploration) -> None:
    """Without Python, as in a report."""
    explorer = show(gemm.data, live=False)
    explorer.go("C1")
    own = explorer.find(".diffpane .diff .l").count()
    explorer.press("v")
    against = explorer.find("select[aria-label='compare with']")
    assert against.evaluate("one => one === document.activeElement")
    explorer.type("Escape")
    assert explorer.root.evaluate("one => one === document.activeElement")
    explorer.option("compare with").select_option(label="B1 layout_aware_work_partition")
    text = explorer.find(".diffpane").inner_text()
    assert "B1 → C1: the program and the plan after these steps" in text
    # The names of the core's work came in B2, which C1 alone does not show.
    added = explorer.find(".diffpane .diff .l.a").all_inner_texts()
    assert any("core_value" in line for line in added)
    assert any("T.alloc_buffer" in line for line in added)
    assert explorer.find(".diffpane .diff .l").count() > own
    # It stays while the step changes; the earlier of the two comes first.
    explorer.go("A3")
    assert "A3 → B1: " in explorer.find(".diffpane").inner_text()
    explorer.find(".diffpane").get_by_role("button", name="plan").click()
    added = explorer.find(".diffpane .diff .l.a").all_inner_texts()
    assert any("partition.policy: contiguous" in line for line in added)
    explorer.go("B1")
    assert against.evaluate("one => one.selectedIndex") == 0
    explorer.go("C1")
    explorer.option("compare with").select_option(index=0)
    assert "→" not in explorer.find(".diffpane .title").inner_text()


def test_the_form_says_what_each_option_is_and_who_set_it(show: Show, gemm: Exploration) -> None:
    other = gemm.fork(stages=3, policy="z_order")
    explorer = show(other.data)
    explorer.tab("What if")
    for one in other.settings:
        row = explorer.find(".option").filter(has=explorer.page.get_by_label(one.name, exact=True))
        assert one.sentence in (row.locator(".name").get_attribute("data-meaning") or "")
        assert row.locator(".by").all_text_contents() == ([] if one.by == "default" else [f"set by {one.by}"])
    stages = explorer.find(".option").filter(has=explorer.page.get_by_label("stages", exact=True))
    assert "set by option" in stages.inner_text()
    # What cannot matter is listed on demand, and so is only what was changed.
    idle = {setting.name for setting in other.settings if setting.idle}
    assert idle
    names = explorer.find(".option:visible .name")
    assert idle.isdisjoint(names.all_inner_texts())
    form = explorer.find(".whatifview form")
    form.get_by_role("button", name="all", exact=True).click()
    assert names.all_inner_texts() == ["target", *(setting.name for setting in other.settings)]
    form.get_by_role("button", name="changed", exact=True).click()
    assert names.all_inner_texts() == [
        "target",
        *(setting.name for setting in other.settings if setting.by != "default"),
    ]


def test_a_wrong_value_is_refused_at_its_field(show: Show, gemm: Exploration) -> None:
    explorer = show(gemm.data)
    explorer.tab("What if")
    field = explorer.find(".whatifview form").get_by_label("stages", exact=True)
    field.fill("many")
    explorer.button("Lower and compare").click()
    assert explorer.sent()[-1]["options"] == {"stages": "many"}
    with pytest.raises(UsageError) as refused:
        parse_options({"stages": "many"})
    error: dict[str, Any] = {**error_data(refused.value.record()), "option": "stages"}
    explorer.answer({"state": "failed", "error": error})
    row = explorer.find(".option").filter(has=explorer.page.get_by_label("stages", exact=True))
    row.locator(".bad").filter(has_text="stages is 'many'").wait_for()
    assert field.get_attribute("aria-invalid") == "true"
    assert field.evaluate("one => one === document.activeElement")
    field.fill("3")
    assert field.get_attribute("aria-invalid") == "false"
    assert row.locator(".bad").text_content() == ""
    # A value that a step rejects, for what the kernel is.
    field.fill("400")
    explorer.button("Lower and compare").click()
    explorer.answer_what_if(gemm, gemm.fork(stages=400))
    row.locator(".bad").filter(has_text="the circular buffers need").wait_for()
    explorer.find(".lanelist .step").filter(has_text="E1").click()
    assert not explorer.find(".lanesview .diff").is_visible()


def test_options_are_all_in_the_form(gemm: Exploration) -> None:
    steps = [step for step in gemm.data["steps"] if step["part_of"] < 0]
    assert [one["name"] for step in steps for one in step["options"]] == list(OPTIONS)
