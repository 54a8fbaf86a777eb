"""The page of a kernel with several launches: one explorer at a time, chosen by name, by mouse and by keyboard."""

from __future__ import annotations

from pathlib import Path

import ttexplore as ttx
from tests.browser.conftest import Open
from tests.corpus.launches import two_products


def test_a_launch_is_chosen_by_name(open_context: Open, tmp_path: Path) -> None:
    explored = ttx.explore(two_products())
    explored.report(tmp_path / "page.html", run=False)
    page = open_context(viewport={"width": 1400, "height": 800}).new_page()
    page.goto((tmp_path / "page.html").as_uri())
    title = page.locator(".ttx-explorer h3").first
    for name in ("kernel_1", "kernel_2", "kernel_1"):
        page.get_by_role("link", name=name).click()
        title.filter(has_text=name).wait_for()
        assert page.locator(".ttx-explorer").count() == 1
    page.get_by_role("link", name="kernel_2").press("Enter")
    title.filter(has_text="kernel_2").wait_for()
    box = page.locator(".ttx-explorer").bounding_box()
    assert box is not None
    assert (box["width"], box["height"] > 700) == (1400, True)
