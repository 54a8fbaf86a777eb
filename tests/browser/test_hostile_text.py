"""Whatever a kernel or an error says is shown as text: nothing of it becomes an element, nothing of it runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.browser.conftest import Open, Show
from tests.browser.explorer_page import ExplorerPage
from ttexplore import Exploration, explore
from ttexplore.record import ErrorRecord
from ttexplore.views.explorer import TABS, error_data
from ttexplore.views.report import Reported, report_html

TAGS = (
    "</td></script></style>]]><script>window.hacked=1</script>"
    "<img src=x onerror=window.hacked=1><svg onload=window.hacked=1>"
)
# Reverses the reading direction, hides a character.
UNSEEN = "\u202edrawkcab\u2066\u200b"
LONG = "x" * 10_000


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Exploration:
    path = tmp_path_factory.mktemp("kernels") / "<b>hostile.py"
    path.write_text(
        "import ttexplore.language as T\n"
        "@T.prim_func\n"
        "def main(A: T.Tensor((64, 64), 'bfloat16'), C: T.Tensor((64, 64), 'bfloat16')):\n"
        "    with T.Kernel(2, 2, threads=128) as (bx, by):\n"
        f"        # {TAGS}\n"
        f"        # {UNSEEN}\n"
        f"        # {LONG}\n"
        "        A_shared = T.alloc_shared((32, 32), 'bfloat16')\n"
        f"        T.copy(A[by * 32, bx * 32], A_shared)  # {TAGS}\n"
        "        T.copy(A_shared, C[by * 32, bx * 32])\n",
        encoding="utf-8",
    )
    return explore(f"{path}::main")


def poisoned(exploration: Exploration) -> dict[str, object]:
    """The data with hostile names and lines in every place, as a file made by somebody else could have it."""
    data = json.loads(json.dumps(exploration.data))
    data["kernel"] = f"k{TAGS}"
    data["facts"] = [*data["facts"], [f"fact{TAGS}", f"value{TAGS}"]]
    data["texts"] = [f"{text}{TAGS}" for text in data["texts"]]
    data["cores"]["summary"] += TAGS
    data["cores"]["svg"] = (
        f'<svg viewBox="0 0 9 9"><script>window.hacked=1</script><a href="javascript:window.hacked=1">z</a></svg>{TAGS}'
    )
    for one in data["buffers"]["buffers"]:
        one["name"] += TAGS
        one["reason"] += TAGS
    for step in data["steps"]:
        step["name"] += TAGS
        step["summary"] = step["stage"] = TAGS
        step["prose"] = [TAGS]
        step["ir"]["renames"] = [[TAGS, TAGS]]
    for file in data["files"]:
        file["name"] += TAGS
    data["steps"][-1]["error"] = error_data(ErrorRecord(f"Kind{TAGS}", f"message{TAGS}{LONG}", f"hint{TAGS}"))
    return data


def harmless(explorer: ExplorerPage) -> None:
    dangerous = "script, iframe, object, embed, img[src], [onerror], [onload], [href^='javascript']"
    for tab in TABS:
        explorer.tab(tab)
        found = explorer.find(dangerous).evaluate_all("all => all.map((one) => one.outerHTML.slice(0, 200))")
        assert found == [], tab
    explorer.page.wait_for_timeout(50)
    assert explorer.page.evaluate("window.hacked") is None


def test_a_hostile_kernel_is_shown_as_text(show: Show, hostile: Exploration) -> None:
    explorer = show(hostile.data)
    source = explorer.find(".source").inner_text()
    assert TAGS in source
    assert "⟨U+202E⟩drawkcab⟨U+2066⟩⟨U+200B⟩" in source
    assert "\u202e" not in explorer.root.inner_text()
    assert LONG in (explorer.find(".source .l").nth(5).text_content() or "") + (
        explorer.find(".source").text_content() or ""
    )
    harmless(explorer)
    assert explorer.page.evaluate("document.documentElement.scrollWidth") <= 1400


def test_hostile_data_is_shown_as_text(show: Show, gemm: Exploration) -> None:
    explorer = show(poisoned(gemm), stale=f"stale{TAGS}")
    assert f"Kind{TAGS}" in explorer.find(".card.fault").inner_text()
    assert f"stale{TAGS}" in explorer.find(".banner").inner_text()
    explorer.find(".source .l").nth(15).click()
    harmless(explorer)


def test_hostile_answers_are_shown_as_text(show: Show, gemm: Exploration) -> None:
    explorer = show(gemm.data, backends=[{"name": f"emulator{TAGS}", "missing": "", "arithmetic": False}])
    explorer.tab("Run")
    explorer.button("Run").click()
    explorer.answer({"state": "progress", "text": f"log{TAGS}"})
    assert f"log{TAGS}" in (explorer.find(".log").text_content() or "")
    explorer.answer(
        {"state": "failed", "error": error_data(ErrorRecord(f"Kind{TAGS}", f"message{TAGS}", f"hint{TAGS}"))}
    )
    assert f"message{TAGS}" in explorer.find(".result").inner_text()
    explorer.button("Run").click()
    fault = error_data(ErrorRecord("Deadlock", "stuck", ""))
    fault["places"] = [{"file": "reader.cpp", "line": 1, "kind": "stuck", "message": f"waits{TAGS}"}]
    lines = gemm.code["reader"].text.splitlines()
    fault["fix"] = {"kernel": "reader", "line": 2, "text": f"text{TAGS}", "around": lines[:2]}
    explorer.answer({"state": "failed", "error": fault})
    explorer.button("reader.cpp line 1").click()
    explorer.file("reader.cpp").get_by_role("button", name="edit reader.cpp").click()
    assert f"waits{TAGS}" in explorer.find(".marks .link:visible").inner_text()
    explorer.tab("Run")
    explorer.button("Apply this fix").click()
    assert f"text{TAGS}" in explorer.find(".result").inner_text()
    explorer.button("reader.cpp line 2").click()
    assert explorer.find(".text > .at:visible").text_content() == f"text{TAGS}"
    explorer.tab("Run")
    explorer.button("Run").click()
    explorer.answer({"state": "done", "html": f"<p>result</p>{TAGS}<p onclick='window.hacked=1'>p</p>", "passed": True})
    assert explorer.page.evaluate(
        "document.querySelector('.result > div').shadowRoot"
            ".querySelectorAll('script, [onerror], [onload], [onclick], [src]').length"
    ) == 0  # fmt: skip
    harmless_now = explorer.page.evaluate("window.hacked")
    assert harmless_now is None


@pytest.mark.parametrize(("scripts", "lowerings"), [(True, 1), (True, 2), (False, 1)], ids=["live", "index", "static"])
def test_a_hostile_report_is_harmless(
    open_context: Open, hostile: Exploration, tmp_path: Path, scripts: bool, lowerings: int
) -> None:
    report = tmp_path / "report.html"
    report.write_text(
        report_html(
            TAGS, [Reported(hostile.data, hostile._repr_html_(), TAGS, {"targets": [TAGS], "stale": TAGS})] * lowerings
        ),
        encoding="utf-8",
    )
    page = open_context(java_script_enabled=scripts).new_page()
    page.goto(report.as_uri())
    page.locator(".ttx-explorer .diff .l" if scripts else "#static").first.wait_for()
    if scripts:
        page.locator(".ttx-explorer").get_by_role("tab", name="What if").click()
        assert page.evaluate("window.hacked") is None
        assert TAGS in page.locator("main").inner_text()
    else:
        assert "⟨U+202E⟩drawkcab" in (page.locator("#static").text_content() or "")
    assert page.locator("main script, main iframe, main img, main [onerror], main [onload]").count() == 0


@pytest.mark.parametrize(
    "injected",
    [
        "<script>window.hacked=1</script>",
        "<script type=module>window.hacked=1</script>",
        "<script src='data:text/javascript,window.hacked=1'></script>",
        "<img src=x onerror=window.hacked=1>",
        "<p onclick=window.hacked=1 class=injected>p</p>",
        "<a href='javascript:void(window.hacked=1)' class=injected>a</a>",
    ],
)
def test_a_report_runs_no_other_script(open_context: Open, gemm: Exploration, tmp_path: Path, injected: str) -> None:
    written = report_html("report", [Reported(gemm.data, gemm._repr_html_())])
    assert written.count("<main>") == 1
    report = tmp_path / "report.html"
    report.write_text(written.replace("<main>", f"{injected}<main>"), encoding="utf-8")
    page = open_context(expected=("Content Security Policy",)).new_page()
    page.goto(report.as_uri())
    page.locator(".ttx-explorer").get_by_role("tab", name="Code", exact=True).click()
    page.locator(".ttx-explorer .body .l:visible").first.wait_for()
    if page.locator(".injected").count():
        page.locator(".injected").click()
    assert page.evaluate("window.hacked") is None


def test_the_static_picture_is_harmless(open_context: Open, hostile: Exploration, tmp_path: Path) -> None:
    path = tmp_path / "static.html"
    path.write_text(f"<!doctype html><meta charset=utf-8><body>{hostile._repr_html_()}</body>", encoding="utf-8")
    page = open_context().new_page()
    page.goto(path.as_uri())
    assert TAGS in (page.locator("body").text_content() or "")
    assert page.evaluate("window.hacked") is None
    assert page.locator("body script, img, iframe, [onerror], [onload]").count() == 0
