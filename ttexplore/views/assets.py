"""The browser half of the widgets: one ES module and one style, nothing fetched.

`widgets` in the repository holds the sources and, in `dist`, what `widgets/build.py` makes of them.
"""

from __future__ import annotations

import functools
from pathlib import Path

from ttexplore.views.theme import tokens_style


def widget_folder() -> Path:
    """Where the modules are: inside an installed package, beside it in the repository."""
    package = Path(__file__).parents[1]
    installed = package / "widgets"
    return installed if installed.is_dir() else package.parent / "widgets"


# The modules of tabs that most explorers never open.
LATE = ("gpu", "whatif")


@functools.cache
def widget_module() -> str:
    """The ES module whose default export has `render`, as anywidget wants it."""
    return (widget_folder() / "dist" / "explorer.js").read_text(encoding="utf-8")


@functools.cache
def late_module(name: str) -> str:
    """The ES module of one of the tabs of `LATE`, which the explorer asks for when the tab is opened."""
    return (widget_folder() / "dist" / f"{name}.js").read_text(encoding="utf-8")


@functools.cache
def widget_style() -> str:
    """The style of the explorer, with the colours that all views share. It is no `.ttx`: the styles of static pages in
    the same notebook are not for it."""
    return tokens_style(".ttx-explorer,.ttx-svg") + (widget_folder() / "dist" / "explorer.css").read_text(
        encoding="utf-8"
    )
