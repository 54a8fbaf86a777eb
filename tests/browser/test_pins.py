"""Following what is pinned: where each list lands, the lines before and after, the rules that made them."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Locator

from tests.browser.conftest import Show
from tests.browser.explorer_page import ExplorerPage
from ttexplore import Exploration, explore

KERNELS = Path(__file__).parents[2] / "notebooks" / "kernels"

# Lines of the kernel.
COPY, PRODUCT, ELEMENTS = 50, 52, 54


@pytest.fixture(scope="module")
def relu() -> Exploration:
    return explore(f"{KERNELS / 'gemm.py'}::matmul_relu")


@pytest.fixture
def explorer(show: Show, relu: Exploration) -> ExplorerPage:
    return show(relu.data, height=900)


def pin(explorer: ExplorerPage, kernel_line: int) -> None:
    explorer.source_row(kernel_line).click()
    explorer.page.mouse.move(2, 2)


def cursor(pane: Locator) -> str:
    """The text of the line that the cursor of a list is on; it has to be in sight."""
    row = pane.locator(".l.cursor")
    row.wait_for()
    seen = row.evaluate(
        """(row) => {
            const list = row.closest(".rows").getBoundingClientRect(), own = row.getBoundingClientRect();
            return own.top >= list.top - 1 && own.bottom <= list.bottom + 1;
        }"""
    )
    assert seen
    return row.locator("code").last.inner_text().strip()


def test_code_lands_on_the_line_that_does_the_work(explorer: ExplorerPage) -> None:
    pin(explorer, PRODUCT)
    explorer.tab("Code")
    assert cursor(explorer.file("compute.cpp")).startswith("matmul_block(")
    explorer.tab("Steps")
    pin(explorer, COPY)
    explorer.tab("Code")
    assert "async_read(" in cursor(explorer.file("reader.cpp"))


def test_a_parallel_loop_is_linked_to_the_loops_that_replace_it(explorer: ExplorerPage) -> None:
    pin(explorer, ELEMENTS)
    for letter in ("C2", "D3", "D5"):
        explorer.go(letter)
        assert explorer.linked(explorer.data["steps"][explorer.step()]["ir"]["after"], ELEMENTS)
    explorer.tab("Code")
    explorer.file("compute.cpp")
    assert explorer.lit("section[aria-label='compute.cpp']")


def test_next_and_previous_go_round_and_tell_the_place(explorer: ExplorerPage) -> None:
    pin(explorer, PRODUCT)
    explorer.tab("Code")
    pane = explorer.file("compute.cpp")
    compute = next(file for file in explorer.data["files"] if file["name"] == "compute.cpp")
    lines = sorted(explorer.linked(compute["listing"], PRODUCT))
    texts = [text.strip() for text, _ in explorer.listing(compute["listing"])]
    at = next(k for k, line in enumerate(lines) if texts[line].startswith("matmul_block("))
    place = pane.locator(".pins .q")
    assert place.inner_text() == f"{at + 1} of {len(lines)}"
    for k in range(1, len(lines) + 1):
        pane.get_by_role("button", name="next line of what is pinned in compute.cpp").click()
        now = (at + k) % len(lines)
        assert place.inner_text() == f"{now + 1} of {len(lines)}"
        assert cursor(pane) == texts[lines[now]]
        explorer.spoken(f"{now + 1} of {len(lines)}: compute.cpp line {lines[now] + 1}")
    explorer.press("p")
    assert place.inner_text() == f"{(at - 1) % len(lines) + 1} of {len(lines)}"
    explorer.press("n", "N")
    assert place.inner_text() == f"{(at + 1) % len(lines) + 1} of {len(lines)}"
    # Another tab and back: the place stays.
    explorer.tab("Cores")
    explorer.tab("Code")
    assert place.inner_text() == f"{(at + 1) % len(lines) + 1} of {len(lines)}"
    explorer.press("Escape")
    place.wait_for(state="hidden")


def test_steps_follow_what_is_pinned_with_keys(explorer: ExplorerPage) -> None:
    pin(explorer, PRODUCT)
    explorer.go("D5")
    place = explorer.find(".diffpane .pins .q")
    assert cursor(explorer.find(".diffpane")).startswith("tt.matmul_block(")
    before = place.inner_text()
    explorer.press("N")
    assert place.inner_text() != before
    explorer.press("P")
    assert place.inner_text() == before
    explorer.find(".source .rows").focus()
    explorer.type("N")
    assert explorer.find(".source .pins .q").inner_text() == "1 of 1"


def test_no_fold_hides_what_is_pinned(explorer: ExplorerPage) -> None:
    explorer.go("C1")
    pane = explorer.find(".diffpane")
    work = pane.locator(".diff .l").filter(has_text="T.gemm(")
    fold = pane.get_by_role("button", name="2 unchanged lines", exact=False)
    assert (fold.count(), work.count()) == (1, 0)
    pin(explorer, PRODUCT)
    assert cursor(pane).startswith("T.gemm(")
    assert fold.count() == 0
    after = explorer.data["steps"][explorer.step()]["ir"]["after"]
    assert pane.locator(".pins .q").inner_text().endswith(f" of {len(explorer.linked(after, PRODUCT))}")
    pin(explorer, PRODUCT)
    assert (fold.count(), work.count()) == (1, 0)


def test_a_line_that_is_clicked_stays_where_it_is(explorer: ExplorerPage) -> None:
    explorer.tab("Code")
    pane = explorer.file("compute.cpp")
    row = pane.locator(".l", has_text="A_shared_buffer.wait_front").first
    row.click()
    assert "wait_front" in cursor(pane)


def test_lines_of_the_history_open_the_file(explorer: ExplorerPage) -> None:
    pin(explorer, PRODUCT)
    links = explorer.find(".history .file").filter(has_text="compute").locator("button")
    first = links.nth(1).inner_text().partition("–")[0]
    links.nth(1).focus()
    explorer.type("Enter")
    pane = explorer.find("section[aria-label='compute.cpp']")
    assert pane.locator(".l.cursor .n").inner_text() == first
    cursor(pane)
    # The keys go on from there.
    before = pane.locator(".pins .q").inner_text()
    explorer.type("n")
    assert pane.locator(".pins .q").inner_text() != before


def test_a_changed_line_says_which_rule_made_it(explorer: ExplorerPage) -> None:
    explorer.go("C2")
    row = explorer.find(".diff .l.new").filter(has_text="tt.matmul_block(").first
    row.hover()
    card = explorer.find(".rule")
    card.filter(
        has_text="by product of line 16 before · in the plan: products[0] · A product is a sum, in DST"
    ).wait_for()
    row.click()
    explorer.page.mouse.move(2, 2)
    card.get_by_role("button").first.click()
    assert "T.gemm(" in cursor(explorer.find(".diffpane"))
    card.filter(has_text="replaced by product").wait_for()


def test_each_rule_that_replaced_a_line_is_named_once_before_what_it_does(show: Show) -> None:
    """The slots of DST replaced the line twice: its operand, and its result."""
    explorer = show(explore(f"{KERNELS / 'elementwise.py'}::bias_exp").data)
    explorer.go("D5")
    explorer.find(".diff .l").filter(has_text="tt.copy_tile(A_shared, t, C_local_value[t])").first.click()
    explorer.page.mouse.move(2, 2)
    explorer.type("Escape")
    card = explorer.find(".rule")
    rules = [name.strip() for name in card.locator("b").all_inner_texts()]
    names = rules[: len(rules) // 2]
    assert len(names) == len(set(names)) > 2
    assert rules == [*names, *(f"{name}:" for name in names)]
    # The names are in sight, whole, and the rest in reach of the keyboard.
    inner = card.evaluate("card => card.getBoundingClientRect().bottom")
    last = card.locator("b").nth(len(names) - 1).bounding_box()
    assert last
    assert last["y"] + last["height"] <= inner
    card.focus()
    explorer.type("End")
    explorer.page.wait_for_function(
        "() => { const card = document.querySelector('.rule');"
        " return card.scrollTop > 0 && card.scrollTop + card.clientHeight >= card.scrollHeight - 1; }"
    )


def test_a_rule_names_the_decision_in_the_plan(explorer: ExplorerPage) -> None:
    explorer.go("C2")
    explorer.find(".diff .l.new").filter(has_text="tt.matmul_block(").first.click()
    explorer.page.mouse.move(2, 2)
    decision = explorer.find(".rule").get_by_role("button").last
    assert decision.inner_text() == "products[0]"
    decision.click()
    assert cursor(explorer.find(".diffpane")).startswith("products[0]: a A_shared, b B_shared")
