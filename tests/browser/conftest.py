"""One browser for all tests of this folder, and pages with the explorer in it."""

from __future__ import annotations

import os
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Error, sync_playwright

from tests.browser.explorer_page import ADDRESS, WIDE, ExplorerPage, keep_inside, mount, serve
from ttexplore import Exploration, explore

Show = Callable[..., ExplorerPage]
Open = Callable[..., BrowserContext]

_HERE = Path(__file__).parent
_KERNELS = _HERE.parents[1] / "notebooks" / "kernels"
_PATIENCE_MS = 30_000
_MOST_OF_A_FILE = 8


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this folder share one browser, so they run in one process. The first of each file is not slow. Not
    thorough are so many of each file and, of several widths and themes, the first and the last."""
    files: Counter[Path] = Counter()
    tests: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.xdist_group("browser"))
            if item.path in files:
                item.add_marker(pytest.mark.slow)
            files[item.path] += 1
            if files[item.path] > _MOST_OF_A_FILE:
                item.add_marker(pytest.mark.thorough)
            tests[item.nodeid.partition("[")[0]].append(item)
    for cases in tests.values():
        for item in cases[1:-1]:
            item.add_marker(pytest.mark.thorough)


def chromium_path() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium, without a window. Without it the test is skipped, in CI it fails."""
    path = chromium_path()
    if path is None:
        missing = "no chromium found; install it, for example: sudo apt-get install chromium"
        if os.environ.get("CI") == "true":
            pytest.fail(missing, pytrace=False)
        pytest.skip(missing)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def open_context(browser: Browser) -> Iterator[Open]:
    """``open_context(expected=, **options)``: a context that asks nothing of another machine, and whose scripts do not
    fail, but for errors on the console with one of the texts `expected`."""
    contexts: list[BrowserContext] = []
    outside: list[str] = []
    faults: list[str] = []

    def failed(error: Error) -> None:
        faults.append(str(error))

    def make(*, expected: tuple[str, ...] = (), **options: Any) -> BrowserContext:
        def listen(message: ConsoleMessage) -> None:
            if message.type == "error" and not any(text in message.text for text in expected):
                faults.append(message.text)

        context = browser.new_context(**options)
        context.set_default_timeout(_PATIENCE_MS)
        keep_inside(context, outside)
        context.on("console", listen)
        context.on("weberror", lambda error: failed(error.error))
        contexts.append(context)
        return context

    yield make
    for context in contexts:
        context.close()
    assert outside == []
    assert faults == []


@pytest.fixture
def show(open_context: Open) -> Show:
    """``show(data, width=, height=, theme=, displays=, **state)``: the explorer of `data` in a page of its own."""

    def make(
        data: dict[str, Any], *, width: int = WIDE, height: int = 900, theme: Literal["light", "dark"] = "light",
        displays: int = 1, **state: Any,
    ) -> ExplorerPage:  # fmt: skip
        context = open_context(
            viewport={"width": width, "height": height}, color_scheme=theme, accept_downloads=True,
            permissions=["clipboard-read", "clipboard-write"],
        )  # fmt: skip
        serve(context)
        page = context.new_page()
        page.goto(ADDRESS)
        return mount(page, data, displays=displays, **state)

    return make


@pytest.fixture(scope="session")
def gemm() -> Exploration:
    return explore(f"{_KERNELS / 'gemm.py'}::matmul", M=256, N=256, K=128, block_M=64, block_N=64)


@pytest.fixture(scope="session")
def refused() -> Exploration:
    """A lowering that fails on the way: its circular buffers do not fit L1."""
    return explore(f"{_KERNELS / 'gemm.py'}::matmul", M=1024, N=1024, K=1024, block_M=1024, block_N=1024, block_K=1024)
