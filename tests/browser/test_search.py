"""The search: a list of all that has a text, and a way through all of it, whatever view it is in."""

from __future__ import annotations

import pytest

from tests.browser.conftest import Show
from tests.browser.explorer_page import ExplorerPage
from ttexplore import Exploration

WORDS = "c_local_out"


@pytest.fixture
def explorer(show: Show, gemm: Exploration) -> ExplorerPage:
    return show(gemm.data)


def search(explorer: ExplorerPage, words: str) -> None:
    explorer.press("/")
    explorer.find("input[type=search]").fill(words)


def expected(explorer: ExplorerPage, words: str) -> list[tuple[str, str]]:
    """Where each line with the words is: "kernel", "D3 program", "D3 plan", "compute.cpp"; and its text."""
    data = explorer.data
    found: list[tuple[str, str]] = []

    def look(where: str, listing: int) -> None:
        found.extend((where, text.strip()) for text, _ in explorer.listing(listing) if words in text.lower())

    look("kernel", data["source"]["listing"])
    wholes = {step["part_of"] for step in data["steps"]}
    first = next(number for number in range(len(data["steps"])) if number not in wholes)
    for number, step in enumerate(data["steps"]):
        title = f"{step['name']}: {step['summary']}"
        if words in title.lower():
            found.append((f"{step['letter']} step", title))
        for part, name in (("ir", "program"), ("plan", "plan")):
            if number == first or (number not in wholes and step[part]["before"] != step[part]["after"]):
                look(f"{step['letter']} {name}", step[part]["after"])
    for file in data["files"]:
        look(file["name"], file["listing"])
    return found


def test_search_walks_through_all(explorer: ExplorerPage) -> None:
    """Enter leads to every match in its turn, switches view and part, and shows each with its line under the cursor."""
    wanted = expected(explorer, WORDS)
    assert len(wanted) > 60
    explorer.go("A0")
    search(explorer, WORDS)
    assert explorer.find(".found").inner_text() == f"– of {len(wanted)}"
    tabs: set[str] = set()
    parts: set[str] = set()
    start = next(k for k, (where, _) in enumerate(wanted) if where != "kernel")
    for k in range(len(wanted)):
        number = (start + k) % len(wanted)
        explorer.type("Enter")
        where, text = wanted[number]
        assert explorer.find(".found").inner_text() == f"{number + 1} of {len(wanted)}"
        place, _, part = where.partition(" ")
        tab = explorer.find("[aria-label=views] [aria-selected=true]").inner_text()
        tabs.add(tab)
        parts.add(part or place)
        if part in ("program", "plan"):
            assert (tab, explorer.letter()) == ("Steps", place)
            assert explorer.button(part).get_attribute("aria-pressed") == "true"
            row = explorer.find(".diff .cursor code").last
        elif part:
            assert (tab, explorer.letter()) == ("Steps", place)
            continue
        elif place == "kernel":
            row = explorer.find(f".{tab.lower()}view [aria-label='kernel source'] .cursor code")
        else:
            assert tab == "Code"
            row = explorer.find(f".codeview [role=list][aria-label='{place}'] .cursor code")
        assert row.inner_text().strip() == text
        assert WORDS in row.locator("mark").first.inner_text().lower()
        list_row = explorer.find(".finder .cursor code")
        assert list_row.inner_text().strip() == text
        # What is searched for can go on being typed.
        assert explorer.page.evaluate("document.activeElement.type") == "search"
    assert tabs == {"Steps", "Code"}
    assert {"program", "plan", "compute.cpp"} <= parts
    explorer.type("Shift+Enter")
    last = (start + len(wanted) - 2) % len(wanted) + 1
    assert explorer.find(".found").inner_text() == f"{last} of {len(wanted)}"


def test_the_steps_that_have_it_have_ticks(explorer: ExplorerPage) -> None:
    search(explorer, "pop_front")
    ticks = explorer.find(".steplist [data-hits]")
    wanted: dict[str, int] = {}
    for where, _ in expected(explorer, "pop_front"):
        if " " in where:
            letter = where.split()[0]
            wanted[letter] = wanted.get(letter, 0) + 1
    shown = ticks.evaluate_all("all => all.map((one) => [one.dataset.step, one.dataset.hits])")
    assert {explorer.data["steps"][int(step)]["letter"]: int(hits) for step, hits in shown} == wanted
    explorer.type("Escape")
    assert ticks.count() == 0


def test_a_match_in_a_fold_or_a_hidden_class_is_shown(explorer: ExplorerPage) -> None:
    explorer.go("D5.2")
    explorer.option("protocol").click()
    explorer.type("Escape")
    search(explorer, "cb_wait_front")
    explorer.type("Enter")
    assert "cb_wait_front" in explorer.find(".diff .cursor code").inner_text()


def test_the_kernel_comes_first_and_is_searched_where_it_is_shown(explorer: ExplorerPage) -> None:
    explorer.go("A0")
    for tab in ("Steps", "Code"):
        explorer.tab(tab)
        search(explorer, "t.clear(")
        explorer.find(".finder .stage").filter(has_text="kernel").click()
        row = explorer.find(f".{tab.lower()}view [aria-label='kernel source'] .cursor code")
        assert row.inner_text().strip() == "T.clear(C_local)"
        assert row.locator("mark").inner_text() == "T.clear("
        explorer.type("Escape")


def test_a_click_goes_to_a_match(explorer: ExplorerPage) -> None:
    search(explorer, "kernel_main")
    file, text = expected(explorer, "kernel_main")[-1]
    explorer.find(".finder .l").filter(has_text=text).last.click()
    assert explorer.find("[aria-label=views] [aria-selected=true]").inner_text() == "Code"
    row = explorer.find(f".codeview [role=list][aria-label='{file}'] .cursor code")
    assert row.inner_text().strip() == text


def test_search_for_what_is_nowhere_says_so(explorer: ExplorerPage) -> None:
    search(explorer, "no such text")
    assert explorer.find(".found").inner_text() == "not found"
    step = explorer.step()
    explorer.type("Enter")
    explorer.spoken("no matches")
    assert explorer.step() == step


def test_typing_in_the_search_steers_nothing(explorer: ExplorerPage) -> None:
    step = explorer.step()
    explorer.press("/")
    explorer.page.keyboard.type("jkcsw123?")
    assert explorer.step() == step
    assert explorer.find("[aria-label=views] [aria-selected=true]").inner_text() == "Steps"
    assert not explorer.find("dialog").is_visible()


def test_the_search_opens_in_every_view_and_leaves_no_trace(explorer: ExplorerPage) -> None:
    for tab in ("Cores", "Buffers", "Code", "Run"):
        explorer.tab(tab)
        search(explorer, "a_shared")
        assert explorer.find(".finder").is_visible()
        explorer.type("Escape")
        assert not explorer.find(".finder").is_visible()
        assert explorer.find("[aria-label=views] [aria-selected=true]").inner_text() == tab
    assert explorer.find("mark").count() == 0
    explorer.type("1", "j")
    assert explorer.find("input[type=search]").input_value() == ""
