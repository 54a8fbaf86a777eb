"""The pictures of the README, taken from the explorer itself: ``pytest --update-golden`` writes them anew."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from tests.browser.conftest import Show
from ttexplore import Exploration

IMAGES = Path(__file__).parents[2] / "docs" / "images"
LARGEST_BYTES = 300_000

PICTURES: tuple[tuple[str, Literal["light", "dark"], str], ...] = (
    ("explorer_steps", "light", "Steps"),
    ("explorer_code", "dark", "Code"),
    ("explorer_cores", "light", "Cores"),
)


@pytest.mark.parametrize(("name", "theme", "tab"), PICTURES)
def test_pictures_of_the_readme(
    name: str, theme: Literal["light", "dark"], tab: str, gemm: Exploration, show: Show, request: pytest.FixtureRequest
) -> None:
    # The path of the clone is nobody's business.
    data = {**gemm.data, "where": "gemm.py:10"}
    explorer = show(data, width=1280, height=760, theme=theme, estimate=gemm.estimate_data())
    explorer.find(".badge:enabled").wait_for()
    explorer.go("D5")
    explorer.find(".source .l").filter(has_text="T.gemm(").click()
    if tab != "Steps":
        explorer.tab(tab)
    picture = explorer.root.screenshot()
    assert 20_000 < len(picture) < LARGEST_BYTES
    path = IMAGES / f"{name}.png"
    if request.config.getoption("--update-golden"):
        path.write_bytes(picture)
    # Fonts differ from machine to machine, so that bytes are not compared; the picture must be there.
    assert path.read_bytes().startswith(b"\x89PNG")
