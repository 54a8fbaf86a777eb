"""Child processes of the backends: they end in time, when they are cancelled, and with whoever waits for them."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Generator
from pathlib import Path

from ttexplore.errors import BackendError, refuse_cancelled

# Cancelling takes effect within this time.
_POLL_SECONDS = 0.1
# Longer limits are none, and the system's clocks do not take all numbers.
LONGEST_SECONDS = 1e7
# Less room than this is none.
_LEAST_FREE_BYTES = 1 << 16


def finish(child: subprocess.Popen[bytes], seconds: float, cancel: threading.Event | None) -> tuple[bytes, bytes]:
    """What the child writes to its pipes until it ends.

    Raises TimeoutExpired when it has not ended within `seconds`, Cancelled when `cancel` is set; it runs on then.
    """
    deadline = time.monotonic() + min(seconds, LONGEST_SECONDS)
    while True:
        refuse_cancelled(cancel)
        left = max(0.0, deadline - time.monotonic())
        try:
            return child.communicate(timeout=left if cancel is None else min(left, _POLL_SECONDS))
        except subprocess.TimeoutExpired:
            if time.monotonic() >= deadline:
                raise


def kill_group(child: subprocess.Popen[bytes]) -> None:
    """Ends a child that leads a group of processes, with all of them."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


@contextlib.contextmanager
def workspace() -> Generator[Path]:
    """An empty folder that is there inside.

    Raises BackendError where the system's folder for temporary files cannot be used, for whatever is done to it inside.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="ttexplore-", ignore_cleanup_errors=True) as name:
            yield Path(name)
    except OSError as error:
        raise unusable_workspace(error.strerror or str(error)) from error


def unusable_workspace(why: str) -> BackendError:
    """The error for a folder of temporary files that cannot be used."""
    return BackendError(
        "B007",
        f"the folder for temporary files {_temporary_folder()} cannot be used: {why}",
        hint="make room there, or set TMPDIR to a folder with room before Python starts",
    )


def is_full(folder: Path) -> bool:
    """Whether no file of `folder` can grow."""
    with contextlib.suppress(OSError):
        return shutil.disk_usage(folder).free < _LEAST_FREE_BYTES
    return False


def _temporary_folder() -> str:
    try:
        return tempfile.gettempdir()
    except OSError:
        return os.environ.get("TMPDIR", "")
