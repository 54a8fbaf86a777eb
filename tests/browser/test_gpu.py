"""The tab GPU: its module and lane are asked for when it is opened; both programs are linked by their kernel lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Locator

import ttexplore as ttx
from tests.browser.conftest import Open, Show
from tests.browser.explorer_page import NARROW, WIDE, ExplorerPage
from tests.browser.test_accessibility import violations
from tests.porting.test_port import SOFTMAX
from ttexplore import Exploration, explore
from ttexplore.control import FREE
from ttexplore.errors import BackendError
from ttexplore.gpu.beside import Beside
from ttexplore.porting.linked import linked_source
from ttexplore.porting.pattern import patterns
from ttexplore.record import ErrorRecord
from ttexplore.views.assets import late_module
from ttexplore.views.explorer import error_data

NONE = Path("nowhere")
_ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def recorded() -> Exploration:
    """A kernel that has recorded lanes."""
    exploration = explore(f"{_ROOT / 'notebooks' / 'kernels' / 'gemm.py'}::matmul", M=256, N=256, K=256)
    for arch in ("sm_90a", "gfx942"):
        exploration.gpu(arch, environment=NONE)
    return exploration


@pytest.fixture(scope="module")
def both(recorded: Exploration) -> Beside:
    return recorded.beside(recorded.gpu("sm_90a", environment=NONE))


def asked(explorer: ExplorerPage, what: str, count: int = 1) -> int:
    """Waits until something has been asked for so often; gives the number of the last such question."""
    explorer.page.wait_for_function(
        "([what, count]) => sent.filter((one) => one.do === what).length === count", arg=[what, count]
    )
    return max(number for number, one in enumerate(explorer.sent()) if one["do"] == what)


def opened(explorer: ExplorerPage, answer: dict[str, Any], seen: str = "details summary, .card") -> Locator:
    explorer.tab("GPU")
    explorer.answer({"state": "done", "module": late_module("gpu")}, question=asked(explorer, "module"))
    explorer.answer(answer, question=asked(explorer, "gpu"))
    pane = explorer.find(".gpuview")
    pane.locator(seen).first.wait_for()
    return pane


@pytest.fixture
def explorer(show: Show, recorded: Exploration) -> ExplorerPage:
    explorer = show(recorded.data, missing={"estimate": "no Python"})
    opened(explorer, {"state": "done", "gpu": recorded.gpu_data("", FREE)})
    return explorer


def lit(explorer: ExplorerPage, listing: str) -> set[int]:
    """The numbers of the lit lines of a listing."""
    rows = explorer.find(f".gpuview .listing[aria-label='{listing}'] .l[class*=' lit'] .n")
    return {int(text) for text in rows.all_inner_texts()}


def source_row(explorer: ExplorerPage, text: str) -> tuple[int, Locator]:
    """The number of the kernel line with a text, and its row."""
    row = explorer.find(".gpuview .listing[aria-label='kernel source'] .l").filter(has_text=text)
    return int(row.locator(".n").inner_text()), row


def test_nothing_is_asked_for_until_the_tab_is_opened(show: Show, recorded: Exploration) -> None:
    explorer = show(recorded.data, missing={"estimate": "no Python"})
    for tab in ("Code", "Cores", "Steps"):
        explorer.tab(tab)
    assert explorer.sent() == []
    explorer.tab("GPU")
    assert [one["do"] for one in explorer.sent()] == ["module"]
    explorer.answer({"state": "done", "module": late_module("gpu")})
    question = asked(explorer, "gpu")
    assert (explorer.sent()[question]["arch"], explorer.sent()[question]["variant"]) == ("", "")
    explorer.answer({"state": "progress", "text": "TileLang lowers matmul for sm_90a"}, question=question)
    explorer.find(".gpuview [role=status]").filter(has_text="TileLang lowers matmul").wait_for()
    explorer.answer({"state": "done", "gpu": recorded.gpu_data("", FREE)}, question=question)
    explorer.find(".gpuview .listing[aria-label='kernel.cu'] .l").first.wait_for()
    # It is kept.
    for tab in ("Steps", "GPU"):
        explorer.tab(tab)
    assert len(explorer.sent()) == 2
    assert violations(explorer) == []


def test_a_kernel_line_lights_both_programs(explorer: ExplorerPage, both: Beside) -> None:
    number, row = source_row(explorer, "T.gemm(")
    row.hover()
    links = both.links[number]
    pane = explorer.find(".gpuview")
    row.click()
    product = next(i for i, line in enumerate(both.lane.code.listing.lines, 1) if "tl::wgmma_ss" in line.text)
    block = next(i for i, line in enumerate(both.files["compute"].lines, 1) if "matmul_block(" in line.text)
    cursors = pane.locator(".l.cursor .n")
    # Both lists go to what does the work.
    assert cursors.all_inner_texts() == [str(number), str(product), str(block)]
    drawn = {int(text) for text in pane.locator(".listing[aria-label='kernel.cu'] .n").all_inner_texts()}
    assert lit(explorer, "kernel.cu") == set(links.gpu) & drawn
    drawn = {int(text) for text in pane.locator(".listing[aria-label='compute.cpp'] .n").all_inner_texts()}
    assert lit(explorer, "compute.cpp") == set(links.ours["compute"]) & drawn
    assert pane.locator(".files .hits").inner_text().strip() == f"{len(links.ours['compute'])}"
    # Another line is read from elsewhere.
    number, row = source_row(explorer, "T.copy(A[")
    row.click()
    assert pane.locator(".files [aria-selected=true]").inner_text().split()[0] == "reader.cpp"
    assert lit(explorer, "kernel source") == {number}


def test_a_generated_line_lights_its_kernel_line_with_the_keyboard_alone(explorer: ExplorerPage, both: Beside) -> None:
    source = explorer.find(".gpuview .listing[aria-label='kernel.cu']")
    source.focus()
    stores = next(
        i
        for i, line in enumerate(both.lane.code.listing.lines)
        if line.origins and "*(uint1*)(C_local_cast" in line.text
    )
    explorer.type("Home", *["ArrowDown"] * stores)
    explorer.spoken(f"kernel.cu line {stores + 1}")
    explorer.type("Enter")
    wanted = {origin.span.line for origin in both.lane.code.listing.lines[stores].origins}
    assert lit(explorer, "kernel source") == wanted
    assert explorer.find(".gpuview .files [aria-selected=true]").inner_text().split()[0] == "compute.cpp"
    # The same is pinned everywhere.
    explorer.tab("Code")
    assert {
        int(one)
        for one in explorer.find(
            ".codeview .source .n, .codeview section[aria-label=kernel] .l[class*=' lit'] .n"
        ).all_inner_texts()
    } == wanted


def test_concepts_have_their_figures_and_lead_to_their_lines(explorer: ExplorerPage, both: Beside) -> None:
    pane = explorer.find(".gpuview")
    pane.get_by_role("tab", name="What stands for what").click()
    rows = pane.locator("tbody tr")
    assert rows.count() == len(both.concepts.rows)
    for row, concept in zip(rows.all(), both.concepts.rows, strict=True):
        text = row.inner_text()
        assert f"{concept.gpu_name} → {concept.name}" in text
        assert concept.sentence in text
        for fact in (*concept.gpu, *concept.ours):
            assert fact.count is None or f"{fact.count:,} × {fact.what}" in text
    copies = both.concepts["cp.async, TMA"]
    file, line = copies.ours[0].lines[0]
    pane.get_by_role("button", name=f"{file} line {line}").first.click()
    cursor = pane.locator(f".listing[aria-label='{file}'] .l.cursor .n")
    assert cursor.inner_text() == str(line)
    assert pane.get_by_role("tab", name="Lines").get_attribute("aria-selected") == "true"
    assert lit(explorer, "kernel source") == {
        origin.span.line for origin in both.files["reader"].lines[line - 1].origins
    }


def test_passes_are_aligned_and_lead_to_ours(explorer: ExplorerPage, both: Beside) -> None:
    pane = explorer.find(".gpuview")
    pane.get_by_role("tab", name="Passes").click()
    rows = pane.locator("tbody tr")
    for row, purpose in zip(rows.all(), both.passes.rows, strict=True):
        text = row.inner_text()
        assert purpose.purpose.sentence in text
        assert all(step.name in text for step in (*purpose.gpu, *purpose.ours))
    pane.get_by_role("button", name="D1 ").first.click()
    assert explorer.letter() == "D1"


def test_another_architecture_is_asked_for_once(explorer: ExplorerPage, recorded: Exploration) -> None:
    arch = explorer.find("select[aria-label='what stands beside']")
    assert arch.input_value() == "sm_90a"
    arch.select_option("gfx942")
    question = asked(explorer, "gpu", 2)
    assert explorer.sent()[question]["arch"] == "gfx942"
    explorer.answer({"state": "done", "gpu": recorded.gpu_data("gfx942", FREE)}, question=question)
    explorer.find(".gpuview .listing[aria-label='kernel.hip'] .l").first.wait_for()
    arch.select_option("sm_90a")
    explorer.find(".gpuview .listing[aria-label='kernel.cu'] .l").first.wait_for()
    assert len(explorer.sent()) == 3


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(
    show: Show, recorded: Exploration, theme: Literal["light", "dark"], width: int
) -> None:
    explorer = show(recorded.data, theme=theme, width=width, missing={"estimate": "no Python"})
    pane = opened(explorer, {"state": "done", "gpu": recorded.gpu_data("", FREE)})
    found: dict[str, list[str]] = {}
    for name in ("Lines", "What stands for what", "Passes"):
        pane.get_by_role("tab", name=name).click()
        found[name] = violations(explorer, theme)
        assert explorer.page.evaluate("document.documentElement.scrollWidth") <= width
    assert {place: what for place, what in found.items() if what} == {}


def test_without_a_lane_it_says_which_command_sets_it_up(show: Show, gemm: Exploration) -> None:
    with pytest.raises(BackendError) as caught:
        gemm.gpu(environment=NONE)
    explorer = show(gemm.data, missing={"estimate": "no Python"})
    pane = opened(explorer, {"state": "failed", "error": error_data(caught.value.record())})
    text = pane.locator(".card").inner_text()
    assert "there is no GPU environment" in text
    assert "ttexplore setup gpu" in text
    assert not pane.locator(".lanelines").is_visible()
    assert violations(explorer) == []
    # All else works, and once it is there, so does this.
    explorer.press("1", "j")
    explorer.tab("GPU")
    asked(explorer, "gpu", 2)
    pane.locator("[role=status]").filter(has_text="asking").wait_for()


def test_a_pass_that_fails_is_shown_as_an_error_beside_the_passes(show: Show, recorded: Exploration) -> None:
    causal = explore(f"{_ROOT / 'notebooks' / 'gallery' / 'attention.py'}::causal_attention")
    lane = causal.gpu("sm_90a", environment=NONE)
    assert lane.error is not None
    explorer = show(causal.data, missing={"estimate": "no Python"})
    pane = opened(explorer, {"state": "done", "gpu": causal.gpu_data("sm_90a", FREE)})
    assert lane.error.message.splitlines()[0] in pane.locator(".card.fault").inner_text()
    assert pane.get_by_role("tab").all_inner_texts()[:1] == ["Passes"]
    failed = next(one for one in lane.steps if one.error)
    assert f"✖ {failed.letter} {failed.name}" in pane.locator("tbody").inner_text()
    explorer.tab("Code")
    assert explorer.find(".codeview .l").count() > 5


def test_a_lowering_that_comes_later_gets_a_lane_of_its_own(explorer: ExplorerPage, recorded: Exploration) -> None:
    explorer.tab("What if")
    explorer.button("Lower and compare").click()
    other = recorded.fork(stages=3)
    explorer.answer_what_if(recorded, other)
    explorer.button("Explore this lowering").click()
    explorer.tab("GPU")
    question = asked(explorer, "gpu", 2)
    assert (explorer.sent()[question]["variant"], explorer.sent()[question]["arch"]) == ("1", "sm_90a")
    assert not explorer.find(".lanelines").is_visible()
    other.gpu("sm_90a", environment=NONE)
    explorer.answer({"state": "done", "gpu": other.gpu_data("sm_90a", FREE)}, question=question)
    number, row = source_row(explorer, "T.gemm(")
    row.click()
    linked = other.beside(other.gpu("sm_90a", environment=NONE)).links[number].ours["compute"]
    assert explorer.find(".gpuview .files .hits").inner_text().strip() == f"{len(linked)}"


def test_a_page_keeps_the_lanes_that_were_loaded(
    open_context: Open, recorded: Exploration, gemm: Exploration, tmp_path: Path
) -> None:
    path = ttx.report(tmp_path / "both.html", recorded, gemm, run=False, names=["with", "without"])
    # Nothing of this machine's folders.
    assert str(Path.home()) not in path.read_text(encoding="utf-8")
    page = open_context(viewport={"width": 1400, "height": 900}).new_page()
    page.goto(f"{path.as_uri()}#lowering=with&tab=GPU&pin=27")
    explorer = ExplorerPage(page, recorded.data)
    explorer.find(".gpuview .listing[aria-label='kernel.cu'] .l.cursor").wait_for()
    offered = explorer.find("select[aria-label='what stands beside'] option").all_inner_texts()
    assert offered == ["sm_90a (H100)", "gfx942 (MI300X)"]
    explorer.find("select[aria-label='what stands beside']").select_option("gfx942")
    explorer.find(".gpuview .listing[aria-label='kernel.hip'] .l").first.wait_for()
    page.evaluate("location.hash = 'lowering=without&tab=GPU'")
    page.locator(".body p").filter(has_text="Not available: ").wait_for()


def test_a_page_without_lanes_does_not_carry_the_module(gemm: Exploration, tmp_path: Path) -> None:
    text = gemm.report(tmp_path / "gemm.html", run=False).read_text(encoding="utf-8")
    assert "gpuview" not in text


def test_an_error_of_the_module_can_be_tried_again(show: Show, gemm: Exploration) -> None:
    explorer = show(gemm.data, missing={"estimate": "no Python"})
    explorer.tab("GPU")
    explorer.answer({"state": "failed", "error": error_data(ErrorRecord("KernelGone", "the answer was lost", "again"))})
    explorer.find(".card.fault").filter(has_text="the answer was lost").wait_for()
    for tab in ("Steps", "GPU"):
        explorer.tab(tab)
    asked(explorer, "module", 2)


@pytest.mark.parametrize(("width", "theme"), [(WIDE, "light"), (NARROW, "dark")])
def test_what_a_kernel_was_ported_from_stands_beside_it(
    show: Show, width: int, theme: Literal["light", "dark"]
) -> None:
    port = ttx.port(SOFTMAX)
    exploration = explore(port, rows=64, columns=64)
    explorer = show(exploration.data, width=width, theme=theme, missing={"estimate": "no Python"})
    data = exploration.gpu_data("", FREE)
    # A construct that no row is about.
    line = next(one.line for one in port.marks if one.text == "tl.max")
    data["port"]["marks"] = [[a, b, text, -1 if text == "tl.max" else row] for a, b, text, row in data["port"]["marks"]]
    pane = opened(explorer, {"state": "done", "gpu": data}, ".listing[aria-label='source.py'] .l")
    source = pane.locator(".listing[aria-label='source.py']")
    marked = source.locator("u, s").all_inner_texts()
    assert sorted(marked) == sorted(one.text for one in port.marks)
    assert source.locator("s").all_inner_texts() == ["tl.max"]
    row = source.locator(f".l[data-i='{line - 1}']")
    row.hover()
    told = pane.locator(".construct")
    arithmetic = patterns()["element-wise arithmetic"]
    assert arithmetic.note in told.inner_text()
    assert arithmetic.pitfall in told.inner_text()
    assert "tl.max is unknown" in told.inner_text()
    row.click()
    foreign = linked_source(port, port.written, exploration.kernel.source).lines[line - 1]
    assert lit(explorer, "kernel source") == {one.span.line for one in foreign.origins}
    # Ours stands right of it, or below.
    boxes = [one.bounding_box() for one in (source, pane.locator(".listing[aria-label='kernel source']"))]
    assert boxes[0] is not None
    assert boxes[1] is not None
    axis = "x" if width == WIDE else "y"
    assert boxes[0][axis] < boxes[1][axis]
    # The keyboard tells the same, where no pointer is over a line.
    explorer.page.mouse.move(2, 2)
    source.focus()
    explorer.type("Home", *["ArrowDown"] * (line - 2))
    before = next(one for one in port.marks if one.line == line - 1)
    assert patterns()[before.row].note in told.inner_text()
    found = violations(explorer, theme)
    pane.get_by_role("tab", name="Constructs").click()
    assert violations(explorer, theme) + found == []
    pane.get_by_role("button", name=f"source.py line {line}").first.click()
    assert source.locator(".l.cursor .n").inner_text() == str(line)
