"""Packages that only some sweeps need."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from ttexplore.errors import BackendError


def optional(module: str, package: str, otherwise: str) -> Any:
    """An optional module. Raises BackendError if it is not installed: `package` provides it; `otherwise` says how to do
    without."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise BackendError(
            "B035",
            f"{module} is not installed",
            hint=f"run {sys.executable} -m pip install '{package}', or {otherwise}",
        ) from None
