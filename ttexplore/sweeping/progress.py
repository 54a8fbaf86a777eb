"""Who hears of a sweep's progress unless a function does: somebody at a notebook or at a terminal, in one line."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Generator
from typing import Any

from ttexplore.characters import visible
from ttexplore.control import Progress


@contextlib.contextmanager
def one_line() -> Generator[Progress | None]:
    """A line that each text replaces and that is gone in the end: in the output of a notebook's cell, or on standard
    error if that is a terminal. None where neither is there to be seen."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    # The shell of a terminal has no kernel.
    if getattr(shell, "kernel", None) is not None:
        with _in_a_cell() as told:
            yield told
    elif sys.stderr.isatty():
        with _at_a_terminal() as told:
            yield told
    else:
        yield None


@contextlib.contextmanager
def _in_a_cell() -> Generator[Progress]:
    from IPython import display

    # An output without data shows nothing and is stored as such, so that a notebook is the same after each run.
    handle: Any = display.DisplayHandle()
    handle.display({}, raw=True)
    try:
        yield lambda text: handle.update({"text/plain": visible(text)}, raw=True)
    finally:
        handle.update({}, raw=True)


@contextlib.contextmanager
def _at_a_terminal() -> Generator[Progress]:
    columns = max(20, shutil.get_terminal_size().columns)

    def tell(text: str) -> None:
        print(f"\r{visible(text)[: columns - 1]}\x1b[K", end="", file=sys.stderr, flush=True)

    try:
        yield tell
    finally:
        tell("")
