"""Child processes of the backends: they end at the time limit, on cancellation, and with their parent."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import IO

from ttexplore.backends.cache import not_executable
from ttexplore.errors import BackendError, refuse_cancelled

# Cancelling takes effect within this time.
_POLL_SECONDS = 0.1
# After the end of a child, its pipes are read for so long.
_LEFT_BEHIND_SECONDS = 1.0
# Longer limits are treated as this one: waiting for pipes counts milliseconds in 32 bits.
LONGEST_SECONDS = 2e6
# With less free space than this, a folder counts as full.
_LEAST_FREE_BYTES = 1 << 16
# Temporary folders, and the file in each that its process holds locked.
_PREFIX, _LOCK = "ttexplore-", ".in-use"


def start(
    command: Sequence[str], folder: Path, read: int | IO[bytes], written: int | IO[bytes]
) -> subprocess.Popen[bytes]:
    """Start a compiled program in `folder`, with a process group of its own, what it reads and where its output goes.

    Raises BackendError if it cannot be started.
    """
    while True:
        try:
            return subprocess.Popen(
                command, cwd=folder, stdin=read, stdout=written, stderr=subprocess.PIPE, start_new_session=True
            )
        except OSError as error:
            # Another thread forked while this one wrote the file: the other process has it open for a moment.
            if error.errno != errno.ETXTBSY:
                raise not_executable(Path(command[0]).parent, error.strerror or str(error)) from error
            time.sleep(0.01)


def finish(child: subprocess.Popen[bytes], seconds: float, cancel: threading.Event | None) -> tuple[bytes, bytes]:
    """Wait for the child to end, and return what it wrote to its pipes.

    The child leads a process group. What it has started may hold its pipes open; once the child has ended, that is
    killed, and not waited for where it has left the group. Raises TimeoutExpired if the child does not end within
    `seconds`, Cancelled if `cancel` is set; the child then continues.
    """
    deadline = time.monotonic() + min(seconds, LONGEST_SECONDS)
    while True:
        refuse_cancelled(cancel)
        remaining = max(0.0, deadline - time.monotonic())
        try:
            return child.communicate(timeout=min(remaining, _POLL_SECONDS))
        except subprocess.TimeoutExpired:
            if child.poll() is not None:
                break
            if time.monotonic() >= deadline:
                raise
    kill_group(child)
    try:
        return child.communicate(timeout=_LEFT_BEHIND_SECONDS)
    except subprocess.TimeoutExpired as expired:
        # A process of another group holds the pipes open, perhaps for ever.
        for pipe in filter(None, (child.stdout, child.stderr)):
            pipe.close()
        return expired.output or b"", expired.stderr or b""


def kill_group(child: subprocess.Popen[bytes]) -> None:
    """Kill a child that leads a process group, with the whole group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


@contextlib.contextmanager
def workspace() -> Generator[Path]:
    """Create a temporary folder for the block.

    Raises BackendError if the system's folder for temporary files cannot be used, also for errors inside the block.
    """
    try:
        with temporary_folder() as folder:
            yield folder
    except OSError as error:
        raise unusable_workspace(error.strerror or str(error)) from error


@contextlib.contextmanager
def temporary_folder() -> Generator[Path]:
    """Create a temporary folder for the block, and remove those that processes have left that were killed."""
    _remove_abandoned()
    with tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as name:
        unlocked = Path(name) / f"{_LOCK}-unlocked"
        with unlocked.open("w") as file:
            # The lock ends with this process. The file has its name from when on it is locked.
            with contextlib.suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                unlocked.rename(Path(name) / _LOCK)
            yield Path(name)


def _remove_abandoned() -> None:
    """Remove temporary folders of this user whose lock nobody holds. Raises OSError if there is no folder for them."""
    with os.scandir(tempfile.gettempdir()) as entries:
        folders = [Path(entry.path) for entry in entries if entry.name.startswith(_PREFIX) and _is_own_folder(entry)]
    for folder in folders:
        with contextlib.suppress(OSError), (folder / _LOCK).open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)


def _is_own_folder(entry: os.DirEntry[str]) -> bool:
    with contextlib.suppress(OSError):
        return entry.is_dir(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_uid == os.getuid()
    return False


def unusable_workspace(why: str) -> BackendError:
    """Return the error for an unusable folder for temporary files."""
    return BackendError(
        "B007",
        f"the folder for temporary files {_temporary_folder()} cannot be used: {why}",
        hint="free space there, or set TMPDIR to another folder before you start Python",
    )


def is_full(folder: Path) -> bool:
    """Whether the file system of `folder` is full."""
    with contextlib.suppress(OSError):
        return shutil.disk_usage(folder).free < _LEAST_FREE_BYTES
    return False


def _temporary_folder() -> str:
    try:
        return tempfile.gettempdir()
    except OSError:
        return os.environ.get("TMPDIR", "")
