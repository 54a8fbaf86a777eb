"""The page of a kernel with several launches: one explorer at a time, chosen by name, by mouse and by keyboard."""

from __future__ import annotations

from pathlib import Path

import ttexplore as ttx
from tests.browser.conftest import Open
from tests.corpus.launches import two_products


def test_a_launch_is_chosen_by_name(open_context: Open, tmp_path: Path) -> None:
    explored = ttx.explore(two_products())
    explored.report(tmp_path / "page.html", run=False)
    page = open_context().new_page()
    page.goto((tmp_path / "page.html").as_uri())
    shown = page.locator("iframe:visible")
    for choice, name in ((0, "kernel_1"), (1, "kernel_2"), (0, "kernel_1")):
        page.get_by_text(name, exact=True).click()
        assert shown.count() == 1
        assert shown.get_attribute("title") == name
        frame = page.frame_locator(f"#page_{choice}")
        frame.locator(".ttx-explorer").wait_for()
        frame.get_by_text(name).first.wait_for()
    page.get_by_label("kernel_1").press("ArrowRight")
    assert shown.get_attribute("title") == "kernel_2"
    box = shown.bounding_box()
    assert box is not None
    assert box["height"] > 400
