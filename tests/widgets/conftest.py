"""The tools of the browser's modules: Node from pyright's wheel, the rest as `widgets/package-lock.json` has it."""

from __future__ import annotations

import os

import pytest

from widgets.build import ESBUILD, TSC


@pytest.fixture(scope="session", autouse=True)
def node_tools() -> None:
    """Without them the tests are skipped, in CI they fail."""
    if ESBUILD.exists() and TSC.exists():
        return
    missing = "the tools of widgets/package-lock.json are not installed; run: make lint"
    if os.environ.get("CI") == "true":
        pytest.fail(missing, pytrace=False)
    pytest.skip(missing)
