"""Each term of the glossary that a view has as a label shows its definition, to the mouse and to the keyboard."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator

from tests.browser.conftest import Open, Show
from tests.browser.explorer_page import ADDRESS, ExplorerPage, mount, serve
from ttexplore import Exploration
from ttexplore.glossary import SPELLINGS, TERMS
from ttexplore.views.explorer import TABS

LABELS = "th, h4, label, .fact > .q, .tools > b, .filehead > :is(b, .q), .coverage, svg .t"
# The texts of labels that are no part of a term, each with its label's whole text.
LOOSE = """labels => labels.flatMap((label) => [...label.childNodes]
    .filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => [node.data, label.textContent]))"""
SPELLING = re.compile(rf"\b(?:{'|'.join(SPELLINGS)})s?\b", re.IGNORECASE)


@pytest.fixture
def explorer(show: Show, gemm: Exploration) -> ExplorerPage:
    return show(gemm.data)


def term(explorer: ExplorerPage, where: str, name: str) -> Locator:
    return explorer.find(where).get_by_role("button", name=name, exact=True).first


def meaning(explorer: ExplorerPage) -> str:
    return explorer.find(".meaning").inner_text()


def test_every_term_in_a_label_is_explained(explorer: ExplorerPage) -> None:
    explained: dict[str, set[str]] = {}
    for tab in TABS:
        explorer.tab(tab)
        loose: list[tuple[str, str]] = explorer.find(LABELS).evaluate_all(LOOSE)
        assert [(text, label) for text, label in loose if SPELLING.search(text)] == [], tab
        marked = explorer.find("[aria-description]:not(button)")
        words = marked.all_text_contents()
        told = marked.evaluate_all("all => all.map((one) => one.getAttribute('aria-description'))")
        for word, text in zip(words, told, strict=True):
            spelling = word.casefold()
            one = SPELLINGS.get(spelling) or SPELLINGS.get(spelling.removesuffix("s"))
            assert one is not None, (tab, word)
            assert text == one.card, (tab, word)
        explained[tab] = set(words)
    assert explained["Steps"] >= {"linked", "cores", "L1", "math fidelity", "DST", "accumulation"}
    assert explained["Cores"] >= {"NoC", "work items", "harvested", "runtime arguments", "circular buffers"}
    assert explained["Buffers"] >= {"CB", "data format", "pages", "stages", "FPU", "SFPU", "producer"}
    assert explained["Code"] >= {"kernel", "reader", "compute", "writer"}
    assert explained["Run"] >= {"backend"}
    explorer.tab("What if")
    for name in ("policy", "stages", "subblock"):
        option = explorer.find(".option .name").get_by_text(name, exact=True)
        assert SPELLINGS[name].card in (option.get_attribute("data-meaning") or "")


def test_the_keyboard_reaches_a_term_and_escape_hides_its_definition(explorer: ExplorerPage) -> None:
    explorer.tab("Buffers")
    explorer.part("circular buffers")
    pages = term(explorer, ".buffersview th", "pages")
    term(explorer, ".buffersview th", "data format").focus()
    explorer.type("Tab")
    assert pages.evaluate("one => one === document.activeElement")
    assert meaning(explorer) == TERMS["page"].card
    explorer.type("Escape")
    assert not explorer.find(".meaning").is_visible()
    # The focus has stayed: the explorer was not left.
    assert pages.evaluate("one => one === document.activeElement")
    explorer.type("Tab")
    assert meaning(explorer).startswith("stages: ")
    explorer.type("4")
    assert explorer.find("[aria-label=views] [aria-selected=true]").inner_text() == "Code"
    assert not explorer.find(".meaning").is_visible()


def test_a_reader_of_the_screen_hears_the_definition(explorer: ExplorerPage) -> None:
    session = explorer.page.context.new_cdp_session(explorer.page)
    explorer.tab("Buffers")
    explorer.find(".buffersview svg .t").get_by_text("FPU", exact=True).wait_for()
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    explorer.part("circular buffers")
    explorer.find(".buffersview th").get_by_text("CB").wait_for()
    nodes += session.send("Accessibility.getFullAXTree")["nodes"]
    heard = {
        node["name"]["value"]: node["description"]["value"]
        for node in nodes
        if node.get("role", {}).get("value") == "button" and node.get("description", {}).get("value")
    }
    # A description has no lines.
    buffer, noc = (TERMS[name].card.replace("\n", " ") for name in ("circular buffer", "NoC"))
    # In a table and in a drawing.
    assert heard["CB"] == heard["circular buffers"] == buffer
    assert heard["NoC"] == noc


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_mouse_shows_a_definition_beside_its_term(show: Show, gemm: Exploration, theme: str) -> None:
    explorer = show(gemm.data, theme=theme, width=620)
    explorer.tab("Buffers")
    for where, name in ((".buffersview svg .t", "FPU"), (".buffersview th", "item"), ("header", "L1")):
        explorer.part("circular buffers" if name == "item" else "dataflow")
        one = term(explorer, where, name)
        one.scroll_into_view_if_needed()
        one.hover()
        assert meaning(explorer).startswith(f"{name}: ")
        box, edge = explorer.find(".meaning").bounding_box(), one.bounding_box()
        assert box is not None
        assert edge is not None
        assert 0 <= box["x"] <= edge["x"] + 1
        assert box["x"] + box["width"] <= 620
        assert abs(box["y"] - edge["y"] - edge["height"]) < 10
    # One can go there to read or copy it.
    explorer.find(".meaning").hover()
    assert explorer.find(".meaning").is_visible()
    explorer.find("header h3").hover()
    assert not explorer.find(".meaning").is_visible()


def test_the_card_of_a_run_explains_its_measures(explorer: ExplorerPage, gemm: Exploration) -> None:
    explorer.tab("Run")
    explorer.button("Run").click()
    html = gemm.run(backend="interpreter").card()
    explorer.answer({"state": "done", "html": html, "passed": True})
    pcc = explorer.find(".result abbr").get_by_text("PCC", exact=True)
    pcc.focus()
    assert meaning(explorer) == TERMS["PCC"].card
    # What the browser would show as well is gone, what a screen reader reads is there.
    assert pcc.get_attribute("title") == ""
    assert pcc.get_attribute("aria-description") == meaning(explorer)


def test_buttons_and_stages_have_cards(explorer: ExplorerPage) -> None:
    """They are no place for another button."""
    names = ("layout", "partition", "tile", "kernel", "signature")
    stages = explorer.find(".stage").evaluate_all("all => all.map((one) => [one.textContent, one.dataset.meaning])")
    assert [stage for stage, _ in stages] == ["layout", "partition", "tiles", "kernels", "signature"]
    assert [one for _, one in stages] == [TERMS[name].card for name in names]
    explorer.find(".stage").first.hover()
    assert meaning(explorer) == TERMS["layout"].card
    plan = explorer.find(".toggles .tab").filter(has_text="plan")
    plan.focus()
    assert meaning(explorer) == TERMS["plan"].card
    plan.click()
    assert plan.get_attribute("aria-pressed") == "true"
    explorer.find(".toggles .tab").filter(has_text="program").click()
    explorer.go("D5")
    chip = explorer.option("DST")
    chip.hover()
    assert meaning(explorer).endswith(f" lines: click to hide them\n{TERMS['DST'].card}")


def test_a_tap_shows_a_card_and_another_hides_it(open_context: Open, gemm: Exploration) -> None:
    context = open_context(viewport={"width": 900, "height": 900}, has_touch=True)
    serve(context)
    page = context.new_page()
    page.goto(ADDRESS)
    explorer = mount(page, gemm.data)
    explorer.tab("Buffers")
    for where, name in ((".buffersview th", "CB"), (".buffersview svg .t", "FPU")):
        explorer.part("circular buffers" if name == "CB" else "dataflow")
        term(explorer, where, name).tap()
        assert SPELLINGS[name.casefold()].card == meaning(explorer)
        assert "\nIn CUDA: " in meaning(explorer)
    explorer.find("header h3").tap()
    assert not explorer.find(".meaning").is_visible()


def test_the_legend_of_the_map_follows_the_measure(explorer: ExplorerPage) -> None:
    explorer.tab("Cores")
    for measure in explorer.data["cores"]["measures"]:
        explorer.find("[aria-label=measure]").select_option(measure["name"])
        shown = explorer.find(".coremap .legend text").all_text_contents()
        assert shown == [*dict.fromkeys(text for text in measure["shown"]), measure["name"]]


def test_the_help_lists_all_terms(explorer: ExplorerPage) -> None:
    explorer.press("?")
    explorer.find(".help summary").click()
    listed = explorer.find(".help details p").all_inner_texts()
    assert sorted(listed) == sorted(one.card for one in TERMS.values())


def test_the_focus_survives_what_is_drawn_anew_beside_a_term(explorer: ExplorerPage) -> None:
    """Terms are marked after their label is made, so they do not count among what had the focus before."""
    explorer.tab("Cores")
    explorer.find(".coremap [data-core][tabindex='0']").focus()
    explorer.type("ArrowRight")
    assert explorer.page.evaluate("document.activeElement.dataset.core") == "1,0"
    explorer.find(".corecard").get_by_role("button", name="work items").focus()
    explorer.find(".workmap [data-core='2,0']").first.dispatch_event("click")
    # The card is another one now, and the next keys are still the explorer's.
    assert explorer.root.evaluate("one => one === document.activeElement")
