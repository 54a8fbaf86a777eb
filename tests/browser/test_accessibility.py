"""axe finds nothing serious in any view, in both themes, wide and narrow; nothing is said by colour alone."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.browser.conftest import Show
from tests.browser.explorer_page import NARROW, WIDE, ExplorerPage
from ttexplore import Exploration
from ttexplore.record import ErrorRecord
from ttexplore.views.explorer import TABS, error_data

# Contrast takes most of the time, and the listings have hundreds of rows that look alike: of those with the same
# colours, backgrounds and letters in the same list, it is judged in one. What is no matter of colours is judged in all
# rows, in one theme.
RUN = """async (theme) => {
    const looks = (one) => {
        const style = getComputedStyle(one);
        return [one.tagName, style.color, style.background, style.font, style.opacity, style.visibility].join();
    };
    const judged = new Set();
    for (const row of document.querySelectorAll(".ttx-explorer .l")) {
        const list = row.parentElement.className;
        const all = [row, ...row.querySelectorAll("*")].map((one) => `${list} ${looks(one)}`);
        row.toggleAttribute("data-judged", all.every((one) => judged.has(one)));
        all.forEach((one) => judged.add(one));
    }
    const found = async (where, rules) => (await axe.run(where, {resultTypes: ["violations"], ...rules})).violations;
    const contrast = await found({exclude: [["[data-judged]"]]}, {runOnly: ["color-contrast"]});
    const others = {light: {rules: {"color-contrast": {enabled: false}}}, dark: {runOnly: ["link-in-text-block"]}};
    return [...contrast, ...(await found(document, others[theme]))];
}"""


def violations(explorer: ExplorerPage, theme: Literal["light", "dark"] = "light") -> list[str]:
    """What axe finds serious or critical: the rule, and the first elements that break it. In the dark theme only rules
    of colours are asked, as all others have been asked in the light one."""
    if not explorer.page.evaluate("typeof axe === 'object'"):
        explorer.page.evaluate(Axe().axe_script)
    found: list[dict[str, Any]] = explorer.page.evaluate(RUN, theme)
    return [
        f"{one['id']}: {node['html'][:120]} {[check['message'] for check in node['any']][:1]}"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"][:3]
    ]


def test_one_faint_row_among_many_is_found(show: Show, gemm: Exploration) -> None:
    explorer = show(gemm.data)
    faint = explorer.find(".source .l").nth(17)
    faint.evaluate("row => row.querySelectorAll('*').forEach((one) => (one.style.color = '#c0c0c0'))")
    assert {one.partition(":")[0] for one in violations(explorer, "light")} == {"color-contrast"}
    assert explorer.find(".source .l[data-judged]").count() > 5


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(
    show: Show, gemm: Exploration, refused: Exploration, theme: Literal["light", "dark"], width: int
) -> None:
    explorer = show(gemm.data, theme=theme, width=width, stale="matmul has changed: explore it again")
    found: dict[str, list[str]] = {}
    for tab in TABS:
        explorer.tab(tab)
        found[tab] = violations(explorer, theme)
    explorer.tab("What if")
    explorer.button("Lower and compare").click()
    explorer.answer_what_if(gemm, gemm.fork(policy="strided"))
    explorer.find(".lanesview .step").first.wait_for()
    found["lanes"] = violations(explorer, theme)
    explorer.tab("Steps")
    explorer.press("c", "s", "w")
    explorer.source_row(25).click()
    explorer.press("/")
    explorer.page.keyboard.type("copy")
    found["pinned, split, wrapped, searched"] = violations(explorer, theme)
    explorer.press("?")
    found["help"] = violations(explorer, theme)
    explorer.type("Escape")
    explorer.tab("Run")
    explorer.button("Run").click()
    explorer.answer({"state": "failed", "error": error_data(ErrorRecord("BackendError", "it failed", "try again"))})
    found["failed run"] = violations(explorer, theme)
    explorer.page.context.close()
    found["failed lowering"] = violations(show(refused.data, theme=theme, width=width), theme)
    assert {place: what for place, what in found.items() if what} == {}


def test_changes_and_states_are_told_by_signs_too(show: Show, gemm: Exploration) -> None:
    explorer = show(gemm.data)
    session = explorer.page.context.new_cdp_session(explorer.page)
    session.send("Emulation.setEmulatedVisionDeficiency", {"type": "achromatopsia"})
    explorer.go("D1")
    explorer.press("c")
    rows = explorer.find(".diff .l").evaluate_all(
        "rows => rows.map((row) => [row.classList.item(1), row.querySelector('.g').textContent])"
    )
    signs = {name: {sign for kind, sign in rows if kind == name} for name in ("a", "r", "v")}
    assert signs == {"a": {"+"}, "r": {"−"}, "v": {"⇄"}}
    glyphs = explorer.find(".steplist .k").all_inner_texts()
    # Parts that changed nothing are dots, with the same in their names.
    rows = [step for step in explorer.data["steps"] if step["part_of"] < 0 or step["glyph"] != "○"]
    assert glyphs == [step["glyph"] for step in rows]
    names = explorer.find(".steplist .k").evaluate_all("all => all.map((one) => one.getAttribute('aria-label'))")
    assert names == [step["state"] for step in rows]
    explorer.tab("Cores")
    working = [core for core in explorer.data["cores"]["cores"] if core["items"]]
    numbers = [text for text in explorer.find(".coremap [data-core] text").all_text_contents() if text.isdigit()]
    assert len(numbers) >= len(working)
