"""The folder in which backends cache compiled files."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ttexplore.errors import BackendError


def default_cache_folder() -> Path:
    """The platform's cache folder. Raises BackendError if the user has no home folder."""
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The XDG base directory specification: a relative path is ignored.
    if sys.platform != "darwin" and given.is_absolute():
        return given / "ttexplore"
    try:
        home = Path.home().absolute()
    except RuntimeError:
        raise BackendError("B007", "there is no home folder for compiled files", hint=HOW_TO_CHOOSE) from None
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "ttexplore"


def unusable(folder: Path, why: str) -> BackendError:
    """Return the error for a cache folder that cannot be written."""
    return BackendError(
        "B007",
        f"the cache folder {' '.join(str(folder).splitlines())} cannot be written: {why}",
        hint=f"free space there, or {HOW_TO_CHOOSE}",
    )


def not_executable(folder: Path, why: str) -> BackendError:
    """Return the error for a cache folder from which the system cannot start programs."""
    return BackendError(
        "B007",
        f"programs in the cache folder {folder} cannot be started: {why}",
        hint=f"if its file system is mounted with noexec, {HOW_TO_CHOOSE}",
    )


HOW_TO_CHOOSE = (
    "set XDG_CACHE_HOME to the absolute path of a writable folder that allows programs to run "
    "(in Python: Emulator(cache_folder=...))"
)
