"""Asking TileLang's process: one request, one answer, both plain JSON. It can crash or hang without harm."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

from ttexplore.backends.process import LONGEST_SECONDS, finish, kill_group, workspace
from ttexplore.control import Control
from ttexplore.errors import BackendError
from ttexplore.gpu.environment import GpuEnvironment
from ttexplore.record import JsonObject

WORKER = Path(__file__).with_name("worker.py")
# Its output ends with what is wrong.
_LAST_LINES = 3


def ask(environment: GpuEnvironment, request: JsonObject, control: Control) -> JsonObject:
    """The answer of a new process to a request; `worker.py` describes both.

    Raises BackendError if the process does not start, ends without an answer, or exceeds the time limit, and Cancelled.
    """
    seconds = min(control.seconds, LONGEST_SECONDS)
    with workspace() as folder:
        file = folder / "request.json"
        file.write_text(json.dumps(request) + "\n", encoding="utf-8")
        variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        # Sets are printed in one order; nothing is kept in the user's home.
        variables |= {"PYTHONHASHSEED": "0", "TILELANG_CACHE_DIR": str(folder / "cache"), "TMPDIR": str(folder)}
        try:
            with file.open("rb") as question:
                child = subprocess.Popen(
                    [str(environment.python), str(WORKER)], stdin=question, stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE, cwd=folder, env=variables, start_new_session=True,
                )  # fmt: skip
        except OSError as error:
            raise BackendError(
                "B041", f"{environment.python} does not start: {error.strerror}", hint="run ttexplore setup gpu"
            ) from error
        try:
            answer, said = finish(child, seconds, control.cancel)
        except subprocess.TimeoutExpired as error:
            raise BackendError(
                "B003",
                f"TileLang did not end within {seconds:.0f} seconds",
                hint="raise the limit: ex.gpu(time_limit_seconds=600)",
            ) from error
        finally:
            kill_group(child)
            child.wait()
            for stream in (child.stdout, child.stderr):
                if stream:
                    stream.close()
        return _read(child.returncode, answer, said.decode(errors="replace"))


def _read(status: int, answer: bytes, said: str) -> JsonObject:
    lines = [line for line in said.splitlines() if line.strip()]
    last = ": " + " | ".join(lines[-_LAST_LINES:]) if lines else ""
    hint = "the kernel cannot be shown for a GPU; everything else of it works"
    if status < 0:
        raise BackendError(
            "B041", f"TileLang's process was ended by signal {signal.Signals(-status).name}{last}", hint=hint
        )
    if status:
        raise BackendError("B041", f"TileLang's process ended with exit status {status}{last}", hint=hint)
    try:
        read: Any = json.loads(answer)
    except ValueError:
        read = None
    if not isinstance(read, dict):
        raise BackendError("B041", f"TileLang's process gave no answer{last}", hint=hint)
    return read  # pyright: ignore[reportUnknownVariableType]
