"""Going through the steps: keys, clicks, changes, search, filters; all without a word to Python."""

from __future__ import annotations

import pytest

from tests.browser.conftest import Show
from tests.browser.explorer_page import NARROW, ExplorerPage
from tests.steps import LETTERS
from ttexplore import Exploration
from ttexplore.record import ErrorRecord
from ttexplore.views.explorer import TABS, error_data


@pytest.fixture
def explorer(show: Show, gemm: Exploration) -> ExplorerPage:
    return show(gemm.data)


def texts(explorer: ExplorerPage, rows: str = ".diff") -> list[str]:
    return explorer.find(f"{rows} .l code").all_text_contents()


def test_the_first_step_shown_is_the_first_that_changes_the_program(explorer: ExplorerPage) -> None:
    assert explorer.letter() == "B2"
    assert explorer.find(".steplist [role=option]").count() == len(explorer.data["steps"])
    summary = explorer.data["steps"][explorer.step()]["summary"]
    assert explorer.find(".title").inner_text().split() == ["B2", *summary.split()]


def test_the_styles_of_static_pages_beside_it_are_not_for_the_explorer(
    explorer: ExplorerPage, gemm: Exploration
) -> None:
    places = """() => [...document.querySelectorAll(".ttx-explorer, .ttx-explorer *")].map((one) => {
        const {left, top, width, height} = one.getBoundingClientRect();
        return [one.className, left, top, width, height, getComputedStyle(one).color].join();
    })"""
    explorer.find(".badge:enabled").wait_for()
    before = explorer.page.evaluate(places)
    assert len(before) > 100
    explorer.page.evaluate("(page) => document.body.insertAdjacentHTML('beforeend', page)", gemm._repr_html_())
    assert explorer.page.evaluate(places) == before


def test_keys_and_clicks_go_through_the_steps_and_ask_python_nothing(explorer: ExplorerPage) -> None:
    first = explorer.step()
    explorer.press("j", "ArrowDown", "j")
    assert explorer.step() == first + 3
    explorer.press("k", "ArrowUp")
    assert explorer.step() == first + 1
    explorer.press(*["k"] * 20)
    assert explorer.step() == 0
    explorer.press(*["j"] * 30)
    assert explorer.step() == len(explorer.data["steps"]) - 1
    for step in explorer.data["steps"]:
        explorer.go(step["letter"])
        assert explorer.letter() == step["letter"]
        assert explorer.find(".title b").text_content() == step["name"]
    assert explorer.sent() == []


def test_the_arrows_in_the_list_of_steps_keep_the_focus_on_the_selected_one(explorer: ExplorerPage) -> None:
    explorer.find(".steplist [aria-selected=true]").focus()
    explorer.type("ArrowDown", "ArrowDown")
    focused = explorer.page.evaluate("document.activeElement.dataset.step")
    assert int(focused) == explorer.step()
    assert explorer.find(".steplist [tabindex='0']").count() == 1
    option = explorer.find(".steplist [aria-selected=true]")
    assert option.get_attribute("aria-posinset") == str(explorer.step() + 1)
    assert option.get_attribute("aria-setsize") == str(len(explorer.data["steps"]))


def test_a_step_is_announced(explorer: ExplorerPage) -> None:
    explorer.press("j")
    step = explorer.data["steps"][explorer.step()]
    assert step["letter"] == "C1"
    explorer.spoken(f"step {LETTERS.index('C1') + 1} of {len(LETTERS)}, lower_shared_to_cb")


def test_the_whole_step_is_the_listing_after_it(explorer: ExplorerPage) -> None:
    explorer.go("C2")
    explorer.press("c")
    step = explorer.data["steps"][explorer.step()]
    after = [text for text, _ in explorer.listing(step["ir"]["after"])]
    shown = explorer.find(".diff .l:not(.old) code").all_text_contents()
    assert shown == after
    before = [text for text, _ in explorer.listing(step["ir"]["before"])]
    assert explorer.find(".diff .l:is(.old, :not(.new)) code").count() == len(before)


def test_a_fold_opens(explorer: ExplorerPage) -> None:
    explorer.go("D4")
    explorer.find(".diff").focus()
    gap = explorer.find(".diff .gap").first
    count = int(gap.inner_text().split()[1])
    rows, gaps = explorer.find(".diff .l").count(), explorer.find(".diff .gap").count()
    gap.click()
    assert explorer.find(".diff .gap").count() == gaps - 1
    assert explorer.find(".diff .l").count() == rows - 1 + count
    # The focus did not go with the fold.
    explorer.type("j")
    assert explorer.letter() == "D5"


def test_what_is_drawn_anew_keeps_the_focus(explorer: ExplorerPage) -> None:
    explorer.go("D3")
    for name in ("wrap", "protocol", "plan", "program"):
        (explorer.option if name in ("wrap", "protocol") else explorer.button)(name).focus()
        explorer.type(" ")
        assert explorer.page.evaluate("document.querySelector('.diffpane').contains(document.activeElement)"), name
    explorer.find(".diff").focus()
    explorer.type("2", "1", "j")
    assert explorer.letter() == "D4"


def test_counts_of_the_list_and_the_tabs_are_those_of_the_data(explorer: ExplorerPage) -> None:
    for position, step in enumerate(explorer.data["steps"]):
        if step["part_of"] >= 0 and step["glyph"] == "○":
            assert explorer.find(f".steplist [data-step='{position}']").inner_text() == ""
            continue
        totals = [a + b for a, b in zip(step["ir"]["counts"], step["plan"]["counts"], strict=True)]
        wanted = " ".join(f"{glyph}{n}" for glyph, n in zip("+−~≈⇄", totals, strict=True) if n) or "·"
        assert explorer.find(f".steplist [data-step='{position}'] .counts").inner_text().split() == wanted.split()
    explorer.go("D1")
    assert explorer.button("program").inner_text().split() == ["program", "+21", "−2", "⇄3"]


def test_n_and_p_go_to_the_changes(explorer: ExplorerPage) -> None:
    explorer.go("D3")
    cursors: list[int] = []
    for _ in range(3):
        explorer.press("n")
        cursors.append(int(explorer.find(".diff .cursor").get_attribute("data-i") or -1))
        assert explorer.find(".diff .cursor").get_attribute("class") != "l cursor"
    assert cursors == sorted(set(cursors))
    explorer.press("p", "p")
    assert int(explorer.find(".diff .cursor").get_attribute("data-i") or -1) < cursors[2]
    explorer.press(*["n"] * 60)
    explorer.spoken("no more changes")


def test_c_s_and_w_collapse_split_and_wrap(explorer: ExplorerPage) -> None:
    explorer.go("D3")
    for key, name in (("c", "collapse"), ("s", "side by side"), ("w", "wrap")):
        chip = explorer.option(name)
        before = chip.get_attribute("aria-pressed")
        explorer.press(key)
        assert chip.get_attribute("aria-pressed") != before
        chip.click()
        assert chip.get_attribute("aria-pressed") == before
    explorer.press("s")
    row = explorer.find(".diff.split .l:not(.gap)").first
    assert row.locator("code").count() == 2


def test_a_hidden_class_of_lines_leaves_the_diff(explorer: ExplorerPage) -> None:
    explorer.go("E1")
    explorer.button("program").click()
    # Room for all rows.
    explorer.press("c", "f")
    chip = explorer.option("protocol")
    assert any("cb_wait_front" in text for text in texts(explorer))
    chip.click()
    assert not any("cb_wait_front" in text for text in texts(explorer))
    hidden = explorer.find(".diffpane .menu").inner_text()
    step = explorer.data["steps"][explorer.step()]
    flat = explorer.data["listings"][step["ir"]["after"]]
    number = explorer.data["classes"].index("protocol") + 1
    assert f"{flat[2::4].count(number)} lines hidden" in hidden
    assert explorer.find(".diffpane .tools > :last-child > button").inner_text().endswith(" hidden")
    explorer.option("protocol").click()
    assert any("cb_wait_front" in text for text in texts(explorer))


def test_digits_choose_the_tabs_and_arrows_walk_them(explorer: ExplorerPage) -> None:
    for digit, name in enumerate(TABS, 1):
        explorer.press(f"{digit}")
        assert explorer.find("[aria-label=views] [aria-selected=true]").inner_text() == name
        assert explorer.find("[role=tabpanel]").get_attribute("aria-label") == name
    explorer.find("[aria-label=views] [aria-selected=true]").focus()
    explorer.type("ArrowRight")
    assert explorer.find("[aria-label=views] [aria-selected=true]").inner_text() == TABS[0]
    explorer.type("ArrowLeft")
    assert explorer.find("[aria-label=views] [aria-selected=true]").inner_text() == TABS[-1]


def test_help_opens_with_a_key_and_closes(explorer: ExplorerPage) -> None:
    explorer.press("?")
    help_ = explorer.find("dialog.help")
    assert help_.is_visible()
    step = explorer.step()
    explorer.type("j")
    assert explorer.step() == step
    explorer.type("Escape")
    assert not help_.is_visible()


def test_escape_unpins_then_leaves(explorer: ExplorerPage) -> None:
    explorer.source_row(25).click()
    explorer.page.mouse.move(5, 5)
    explorer.root.focus()
    assert "pinned" in explorer.find(".history").inner_text()
    explorer.type("Escape")
    assert "pinned" not in explorer.find(".history").inner_text()
    explorer.type("Escape")
    assert explorer.page.evaluate("document.activeElement === document.body")


def test_keys_with_control_stay_with_the_browser(explorer: ExplorerPage) -> None:
    step = explorer.step()
    explorer.press("Control+j", "Alt+k", "Control+c")
    assert explorer.step() == step


def test_no_key_reaches_what_is_around_the_explorer(explorer: ExplorerPage) -> None:
    explorer.page.evaluate(
        "() => { window.leaked = []; document.body.addEventListener('keydown', (e) => leaked.push(e.key)); }"
    )
    explorer.press(*"abxddjkcswnph", "Enter", " ", "ArrowDown", "Escape")
    assert explorer.page.evaluate("leaked") == []


def test_a_failed_lowering_shows_the_failed_step_and_keeps_the_earlier_ones(show: Show, refused: Exploration) -> None:
    explorer = show(refused.data)
    assert explorer.letter() == "A2.5"
    card = explorer.find(".refusal .card.fault")
    assert "the circular buffers need 12,582,912 B of L1" in card.inner_text()
    assert "make the block of C_local_out smaller" in card.inner_text()
    assert explorer.find(".steplist [aria-selected=true] .bad").inner_text() == "✖"
    explorer.go("A1")
    assert explorer.find(".refusal .card.fault").count() == 0
    assert explorer.find(".diff .l").count() > 10
    for tab, says in (("Cores", "Step B1, which assigns work items to cores"), ("Run", "there is no program to run")):
        explorer.tab(tab)
        assert says in explorer.find(".body").inner_text()
    explorer.tab("Buffers")
    explorer.tab("Code")
    assert explorer.find(".codeview .l").count() > 0


def test_an_unexpected_error_of_a_pass_is_a_failed_step(show: Show, gemm: Exploration) -> None:
    data = gemm.data
    error = error_data(ErrorRecord("ZeroDivisionError", "division by zero", "please report it"))
    reached = next(i for i, step in enumerate(data["steps"]) if step["letter"] == "C1")
    steps = [*data["steps"][:reached], {**data["steps"][reached], "error": error, "glyph": "✖", "state": "failed"}]
    explorer = show({**data, "steps": steps, "files": [], "cores": None, "buffers": None})
    assert explorer.letter() == "C1"
    assert "ZeroDivisionError" in explorer.find(".card.fault").inner_text()
    explorer.press("k")
    assert explorer.find(".diff .l").count() > 10


def test_two_displays_of_one_exploration_are_independent(show: Show, gemm: Exploration) -> None:
    first = show(gemm.data, displays=2)
    second = ExplorerPage(first.page, gemm.data, 1)
    start = second.step()
    first.press("j", "j")
    first.source_row(25).click()
    assert (first.step(), second.step()) == (start + 2, start)
    assert "pinned" not in second.find(".history").inner_text()
    second.tab("Cores")
    assert first.find("[role=tab][aria-selected=true]").inner_text() == "Steps"


def test_data_of_another_version_says_so(show: Show, gemm: Exploration) -> None:
    explorer = show({**gemm.data, "form": 0})
    assert explorer.root.inner_text() == "Another version of ttexplore made this page: rerun the cell."


def test_the_cleanup_takes_all_listeners_back(show: Show, gemm: Exploration) -> None:
    explorer = show(gemm.data, displays=2)
    assert explorer.page.evaluate("models[0].count()") == 10
    explorer.page.evaluate("cleanups[0]()")
    assert explorer.page.evaluate("models[0].count()") == 5
    explorer.page.evaluate("cleanups[1]()")
    assert explorer.page.evaluate("models[0].count()") == 0


def test_a_changed_kernel_is_told_in_a_banner(explorer: ExplorerPage) -> None:
    assert not explorer.find(".banner").is_visible()
    explorer.set("stale", "matmul has changed since this exploration was made: explore it again")
    assert "matmul has changed" in explorer.find(".banner").inner_text()
    explorer.set("stale", "")
    assert not explorer.find(".banner").is_visible()


def test_a_narrow_page_has_all_of_it(show: Show, gemm: Exploration) -> None:
    explorer = show(gemm.data, width=NARROW)
    choice = explorer.find(".stepchoice")
    assert choice.is_visible()
    assert not explorer.find(".steplist").is_visible()
    choice.select_option(index=explorer.position("D1"))
    assert explorer.find(".title b").inner_text() == "split_device_kernel"
    for name in ("Steps", "Cores", "Buffers", "Code", "Run", "What if"):
        explorer.tab(name)
        # Nothing sticks out of the page: what is wide scrolls in its own box.
        assert explorer.page.evaluate("document.documentElement.scrollWidth") <= NARROW
    explorer.tab("Steps")
    assert explorer.find(".diff").bounding_box()["height"] >= 120  # pyright: ignore[reportOptionalSubscript]


def test_a_very_narrow_page_still_shows_lines(show: Show, gemm: Exploration) -> None:
    explorer = show(gemm.data, width=360)
    assert explorer.find(".diff .l").count() > 5
    assert explorer.page.evaluate("document.documentElement.scrollWidth") <= 360
