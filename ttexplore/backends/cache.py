"""The folder in which backends cache compiled files."""

from __future__ import annotations

import grp
import os
import pwd
import shlex
import stat
import sys
from pathlib import Path

from ttexplore.errors import BackendError


def default_cache_folder() -> Path:
    """The platform's cache folder. Raises BackendError if the user has no home folder."""
    configured = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The XDG base directory specification: a relative path is ignored.
    if sys.platform != "darwin" and configured.is_absolute():
        return configured / "ttexplore"
    try:
        home = Path.home().absolute()
    except RuntimeError:
        raise BackendError("B007", "there is no home folder for compiled files", hint=HOW_TO_CHOOSE) from None
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "ttexplore"


def make_private(folder: Path) -> None:
    """Create a folder below the cache folder, for this user alone. Raises OSError."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)
    folder.mkdir(exist_ok=True)


def refuse_foreign(folder: Path) -> None:
    """Raise BackendError for a folder into which others than this user (and root) can put what is executed or believed
    here."""
    try:
        status = folder.stat()
    except OSError:
        # Creating it says what is wrong.
        return
    if status.st_uid not in (0, os.geteuid()):
        why, fix = f"it belongs to the user {_user(status.st_uid)}", ""
    elif status.st_mode & stat.S_IWOTH or (status.st_mode & stat.S_IWGRP and not _is_private_group(status)):
        why, fix = "other users can write to it", f"run chmod go-w {shlex.quote(str(folder))}, or "
    else:
        return
    raise BackendError("B007", f"the cache folder {folder} is not used: {why}", hint=f"{fix}{HOW_TO_CHOOSE}")


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _is_private_group(status: os.stat_result) -> bool:
    """Whether the group is this user's own, which many systems give each user, with folders that it can write to."""
    try:
        return grp.getgrgid(status.st_gid).gr_name == pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return False


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
