"""What lights up is what the data says: kernel lines, the IR of each step, the emitted files."""

from __future__ import annotations

import pytest

from tests.browser.conftest import Show
from tests.browser.explorer_page import ExplorerPage
from ttexplore import Exploration


@pytest.fixture
def explorer(show: Show, gemm: Exploration) -> ExplorerPage:
    return show(gemm.data, height=1200)


def pin(explorer: ExplorerPage, kernel_line: int) -> None:
    explorer.source_row(kernel_line).click()
    explorer.page.mouse.move(2, 2)


@pytest.mark.parametrize("kernel_line", [20, 25, 27, 29])
def test_a_pinned_kernel_line_lights_its_lines_of_each_step(explorer: ExplorerPage, kernel_line: int) -> None:
    explorer.press("c")
    pin(explorer, kernel_line)
    for letter in ("B2", "C2", "D3", "D5"):
        explorer.go(letter)
        explorer.page.mouse.move(2, 2)
        lit_as_the_data_says(explorer, letter, kernel_line)


def lit_as_the_data_says(explorer: ExplorerPage, letter: str, kernel_line: int) -> None:
    step = explorer.data["steps"][explorer.position(letter)]
    numbers = explorer.find(".diff .l:not(.old)").evaluate_all(
        "rows => rows.map((row) => [+row.dataset.i, +[...row.querySelectorAll('.n')].at(-1).textContent - 1])"
    )
    line_of = {i: number for i, number in numbers}
    linked = explorer.linked(step["ir"]["after"], kernel_line)
    lit = {line_of[i]: kind for i, kind in explorer.lit(".diff").items() if i in line_of}
    shown = set(line_of.values())
    assert lit == {i: kind for i, kind in linked.items() if i in shown}
    assert lit


def test_the_history_counts_the_lines_of_each_step(explorer: ExplorerPage) -> None:
    pin(explorer, 25)
    titles = explorer.find(".history .cell").evaluate_all("cells => cells.map((cell) => cell.title)")
    wanted = [
        f"{step['letter']} {step['name']}: {len(explorer.linked(step['ir']['after'], 25))} lines"
        for step in explorer.data["steps"]
        if step["part_of"] < 0 or any(step["ir"]["counts"])
    ]
    assert titles == wanted
    assert "L25" in explorer.find(".history").inner_text()
    explorer.find(".history .cell").nth(9).click()
    assert explorer.letter() == "D1"


def test_the_history_names_the_lines_of_the_kernels(explorer: ExplorerPage) -> None:
    pin(explorer, 29)
    shown = explorer.find(".history .file").all_inner_texts()
    for text, file in zip(shown, explorer.data["files"], strict=False):
        linked = explorer.linked(file["listing"], 29)
        name, rest = text.split(None, 1)
        assert file["name"].startswith(name)
        positions: set[int] = set()
        for part in rest.split(", ") if rest != "–" else ():
            first, _, last = part.partition("–")
            positions |= set(range(int(first) - 1, int(last or first)))
        assert positions == set(linked)


def test_a_pinned_kernel_line_lights_the_emitted_lines(explorer: ExplorerPage) -> None:
    for kernel_line in (25, 27, 29):
        explorer.tab("Steps")
        pin(explorer, kernel_line)
        explorer.tab("Code")
        explorer.page.mouse.move(2, 2)
        files_lit_as_the_data_says(explorer, kernel_line)


def test_labels_of_code_are_whole_and_name_all_lines_on_hovering(explorer: ExplorerPage) -> None:
    explorer.tab("Code")
    labels = explorer.find(".codeview .o")
    assert labels.evaluate_all("all => all.filter((one) => one.scrollWidth > one.clientWidth).length") == 0
    several = labels.evaluate_all("all => all.map((one) => [one.title, one.textContent])")
    long_titles = [(title.split(), text) for title, text in several if len(title.split()) > 1]
    assert long_titles
    assert all(text == f"{title[0]} +{len(title) - 1}" for title, text in long_titles)


def files_lit_as_the_data_says(explorer: ExplorerPage, kernel_line: int) -> None:
    total = 0
    for name in ("reader.cpp", "compute.cpp", "writer.cpp"):
        file = next(file for file in explorer.data["files"] if file["name"] == name)
        rows = explorer.find(f"[aria-label='{name}'] .rows .l")
        visible = {int(i) for i in rows.evaluate_all("rows => rows.map((row) => row.dataset.i)")}
        linked = explorer.linked(file["listing"], kernel_line)
        lit = explorer.lit(f"section[aria-label='{name}']")
        assert lit == {i: kind for i, kind in linked.items() if i in visible}
        assert bool(lit) == bool(linked)
        total += len(lit)
    assert total


def test_lit_lines_stand_out_where_they_are_added_or_removed(explorer: ExplorerPage) -> None:
    pin(explorer, 27)
    explorer.go("C2")
    explorer.page.mouse.move(2, 2)
    colours = "all => all.map((one) => getComputedStyle(one).backgroundColor)"
    lit = explorer.find(".diff .l:is(.a,.r):is(.lit0,.lit1,.lit2) > .n").evaluate_all(colours)
    others = explorer.find(".diff .l:is(.a,.r):not(.lit0,.lit1,.lit2) > .n").evaluate_all(colours)
    assert lit
    assert others
    assert not {*lit} & {*others}


def test_hovering_lights_and_leaving_lets_go(explorer: ExplorerPage) -> None:
    explorer.source_row(26).hover()
    assert explorer.lit(".diff")
    explorer.page.mouse.move(2, 2)
    assert explorer.lit(".diff") == {}


def test_a_line_of_the_diff_pins_with_the_keyboard_and_lights_the_kernel(explorer: ExplorerPage) -> None:
    explorer.go("C2")
    explorer.find(".diff").focus()
    explorer.type("n")
    explorer.type("Enter")
    labels = explorer.find(".diff .cursor .o i").all_text_contents()
    assert labels
    lines = explorer.data["source"]["lines"]
    lit = {lines[i] for i in explorer.lit(".source")}
    assert {int(label[1:]) for label in labels} <= lit
    explorer.spoken("pinned")
    explorer.type("Enter")
    explorer.spoken("unpinned")


def test_links_of_each_kind_look_different(explorer: ExplorerPage) -> None:
    styles = explorer.page.evaluate(
        """() => {
            const row = document.querySelector(".diff .l");
            return [0, 1, 2].map((kind) => {
                row.className = `l lit${kind}`;
                return getComputedStyle(row).borderLeftStyle;
            });
        }"""
    )
    assert styles == ["solid", "dashed", "dotted"]


def test_coverage_is_the_share_of_the_data(explorer: ExplorerPage) -> None:
    explorer.go("D5")
    step = explorer.data["steps"][explorer.step()]
    exact, derived, inferred, unknown = step["coverage"]
    coverage = explorer.find(".coverage")
    assert (
        coverage.get_attribute("title") == f"{exact} exact, {derived} derived, {inferred} inferred, {unknown} unknown"
    )
    share = round(100 * (exact + derived) / (exact + derived + inferred + unknown))
    assert coverage.inner_text() == f"{share} % of statements linked"


def test_a_buffer_pins_the_line_that_it_comes_from(explorer: ExplorerPage) -> None:
    explorer.tab("Buffers")
    explorer.part("circular buffers")
    link = explorer.find(".buffersview table button.link").first
    line = int(link.inner_text()[1:])
    link.click()
    explorer.tab("Steps")
    assert explorer.data["source"]["lines"].index(line) in explorer.lit(".source")
