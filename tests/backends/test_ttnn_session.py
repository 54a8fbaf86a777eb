"""The process that holds a device, played by a shell: what is opened again after it was killed."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from ttexplore.backends.ttnn.session import Opening, Session
from ttexplore.errors import Cancelled

# Opens at once, and the next times as slowly as a device does, or when it may. The simulator is a process with the tag.
WORKER = """#!/bin/sh
[ -e {folder}/opened ] && sleep 3
while [ -e {folder}/waits ]; do sleep 0.05; done
touch {folder}/opened
sh -c 'sleep 60; :' "$TT_SIM_RUN_TAG" &
echo '{{"ready": {{"chip": "none"}}}}'
while read request; do echo '{{"done": {{"compile_seconds": 0.5, "seconds": 0.25}}}}'; done
"""


@pytest.fixture
def session(tmp_path: Path) -> Session:
    python = tmp_path / "python"
    python.write_text(WORKER.format(folder=tmp_path), encoding="utf-8")
    python.chmod(0o755)
    return Session(Opening(python, (), tmp_path / "cache", tmp_path / "logs", "played", has_server=True))


def test_a_device_that_opens_again_waits_for_its_simulator(session: Session, tmp_path: Path) -> None:
    def run() -> float:
        outcome = session.run(
            tmp_path, [], tmp_path, time_limit_seconds=60, progress=told.append, cancel=threading.Event(),
            check=lambda ready: None,
        )  # fmt: skip
        return outcome.seconds

    told: list[str] = []
    try:
        assert run() == 0.25
        assert session.notice == ""
        process = session.process_id or 0
        os.kill(process, signal.SIGKILL)
        while session.process_id == process:
            time.sleep(0.01)
        assert run() == 0.25
        assert session.notice == "the device's process had ended and was restarted"
        assert session.ready == {"chip": "none"}
    finally:
        session.close()


def test_a_run_that_waits_for_another_is_cancelled(session: Session, tmp_path: Path) -> None:
    """And the other one goes on."""
    (tmp_path / "waits").touch()
    ended: list[float] = []
    cancel = threading.Event()

    def run(cancel: threading.Event) -> float:
        return session.run(
            tmp_path, [], tmp_path, time_limit_seconds=60, progress=lambda text: None, cancel=cancel,
            check=lambda ready: None,
        ).seconds  # fmt: skip

    # It opens the device.
    first = threading.Thread(target=lambda: ended.append(run(threading.Event())))
    first.start()
    try:
        while not session._lock.locked():
            time.sleep(0.01)
        threading.Timer(0.3, cancel.set).start()
        with pytest.raises(Cancelled, match="the run was cancelled"):
            run(cancel)
        assert ended == []
        (tmp_path / "waits").unlink()
        first.join(60)
        assert ended == [0.25]
    finally:
        session.close()
