"""Packages that only some features need, and how to install packages."""

from __future__ import annotations

import importlib
import shlex
import sys
from typing import Any, Literal

from ttexplore.errors import BackendError

# The extras of pyproject.toml. Hints name their packages, because ttexplore itself is not on a package index.
Extra = Literal["lab", "cluster", "port"]
EXTRAS: dict[Extra, tuple[str, ...]] = {
    "lab": ("jupyterlab>=4.4",),
    "cluster": ("distributed>=2026.1",),
    "port": ("tree-sitter>=0.26", "tree-sitter-cuda>=0.21"),
}


def install(*packages: str) -> str:
    """Return the command that installs packages into the environment of this Python."""
    return shlex.join([sys.executable, "-m", "pip", "install", *packages])


def install_extra(name: Extra) -> str:
    """Return the command that installs the packages of an extra."""
    return install(*EXTRAS[name])


def optional(module: str, command: str, otherwise: str) -> Any:
    """Import an optional module. Raises BackendError if it is not installed: `command` installs it; `otherwise` says
    how to do without."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise BackendError("B035", f"{module} is not installed", hint=f"run {command}, or {otherwise}") from None
