"""A device that stays open in a child process across the runs of many explorations."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ttexplore.errors import BackendError, refuse_cancelled

WORKER = Path(__file__).with_name("worker.py")

# Building a chip's firmware, once per cache, takes 8 to 14 s; compiling a program takes 3 to 7 s. The limits allow for
# a busy machine.
OPEN_LIMIT_SECONDS = 240.0
COMPILE_LIMIT_SECONDS = 300.0
POLL_SECONDS = 0.1
# A killed simulator has some gigabytes to give back.
_END_LIMIT_SECONDS = 20.0
KEPT_LOGS = 20
KEPT_CHARACTERS = 2000

# The ELF files that the SDK's compiler makes for each kernel.
ELF_FILES = {
    "reader": ("ncrisc/ncrisc.elf",),
    "compute": ("trisc0/trisc0.elf", "trisc1/trisc1.elf", "trisc2/trisc2.elf"),
    "writer": ("brisc/brisc.elf",),
}

Progress = Callable[[str], None]


class ProgramError(BackendError):
    """The SDK raised an exception: `kind` is its Python type, `text` its full message."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__("B023", f"{kind}: {text}")
        self.kind = kind
        self.text = text


class DeviceEnded(BackendError):
    """The process that holds the device, or its simulator, ended unexpectedly."""


class DeviceHang(BackendError):
    """A program did not end within `seconds`. `log` is the output of simulator and SDK while it ran."""

    def __init__(self, seconds: float, log: str, watcher: str) -> None:
        super().__init__("B024", f"the program did not end within {seconds:.0f} seconds")
        self.seconds = seconds
        self.log = log
        self.watcher = watcher


@dataclass(frozen=True, slots=True)
class Opening:
    """The parameters for opening a device: the interpreter that has ttnn, the environment variables that choose the
    device, and the folder of compiled kernels and logs. `hang_pattern` matches the simulator's report that nothing
    makes progress; `tag` marks the simulator's own process, if it has one."""

    python: Path
    variables: tuple[tuple[str, str], ...]
    cache_folder: Path
    logs_folder: Path
    name: str
    hang_pattern: str = ""
    has_server: bool = False


@dataclass(frozen=True, slots=True)
class DeviceRun:
    """The result of a successful run: the seconds of compiling and of running, and the log file."""

    compile_seconds: float
    seconds: float
    log_file: Path


class Session:
    """One device, opened on the first run and reopened after a failure. Runs of several threads take turns."""

    def __init__(self, opening: Opening) -> None:
        self.opening = opening
        self.ready: dict[str, Any] = {}
        self.notice = ""
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._answers: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._log_file = Path()
        self._log_start = 0
        self.tag = ""

    def run(
        self, folder: Path, inputs: list[Path], out: Path, *, time_limit_seconds: float,
        progress: Progress, cancel: threading.Event, check: Callable[[dict[str, Any]], None],
    ) -> DeviceRun:  # fmt: skip
        """Run the exported program in `folder`, and write each result to a .npy file in `out`.

        `check` is called with the open device, and raises if the device does not match the program.

        Raises ProgramError, DeviceHang, DeviceEnded, Cancelled, and BackendError if the device does not open. The next
        run works after any error, in a new process if necessary. Cancelling a run that waits for another one does not
        affect the other one.
        """
        with self._held(cancel):
            try:
                self._open(progress, cancel)
            except BaseException:
                self.close()
                raise
            check(self.ready)
            try:
                return self._run(folder, inputs, out, time_limit_seconds, progress, cancel)
            except BaseException:
                self.close()
                raise

    @contextlib.contextmanager
    def _held(self, cancel: threading.Event) -> Generator[None]:
        """Hold the device for one run. Raises Cancelled if cancelled while another run holds it."""
        while not self._lock.acquire(timeout=POLL_SECONDS):
            refuse_cancelled(cancel)
        try:
            yield
        finally:
            self._lock.release()

    @property
    def log_file(self) -> Path:
        """The output of the SDK and the simulator."""
        return self._log_file

    @property
    def process_id(self) -> int | None:
        """The process that holds the device, None if it is not open."""
        return self._child.pid if self._child and self._child.poll() is None else None

    def close(self) -> None:
        """End the process and its simulator immediately."""
        child, self._child = self._child, None
        if child is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        for stream in (child.stdin, child.stdout):
            if stream:
                with contextlib.suppress(OSError):
                    stream.close()
        # A killed process is there until it has given its memory back; the next one needs the device for itself.
        deadline = time.monotonic() + _END_LIMIT_SECONDS
        while (processes := tagged_processes(self.tag)) and time.monotonic() < deadline:
            for process in processes:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            time.sleep(POLL_SECONDS)

    def _open(self, progress: Progress, cancel: threading.Event) -> None:
        self.notice = ""
        if self._child is not None:
            if self._child.poll() is None and (not self.opening.has_server or tagged_processes(self.tag)):
                return
            self.notice = "the device's process had ended and was restarted"
            progress(self.notice)
            self.close()
        self._start()
        deadline = time.monotonic() + OPEN_LIMIT_SECONDS
        while True:
            match self._next(deadline, cancel, "opening the device", lambda: None):
                case {"stage": stage}:
                    progress(f"{stage} (its firmware is built on first use)")
                case {"ready": ready}:
                    self.ready = ready
                    return
                case None:
                    raise BackendError(
                        "B023",
                        f"the device did not open within {OPEN_LIMIT_SECONDS:.0f} seconds",
                        hint=self._log_hint(),
                    )
                case answer:
                    raise self._unexpected(answer)

    def _start(self) -> None:
        opening = self.opening
        opening.logs_folder.mkdir(parents=True, exist_ok=True)
        opening.cache_folder.mkdir(parents=True, exist_ok=True)
        for old in sorted(opening.logs_folder.glob("*.log"), key=lambda file: file.stat().st_mtime)[:-KEPT_LOGS]:
            old.unlink(missing_ok=True)
        self.tag = f"ttexplore-{uuid.uuid4().hex[:12]}"
        self._log_file = opening.logs_folder / f"{opening.name}-{self.tag[-12:]}.log"
        self._log_start = 0
        work_folder = opening.cache_folder / "work" / self.tag
        work_folder.mkdir(parents=True)
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("TT_", "PYTHON"))}
        environment |= dict(opening.variables)
        environment |= {"TT_SIM_RUN_TAG": self.tag, "TT_METAL_CACHE": str(opening.cache_folder)}
        with self._log_file.open("wb") as log:
            try:
                self._child = subprocess.Popen(
                    [str(opening.python), "-u", str(WORKER)],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, cwd=work_folder, env=environment,
                    start_new_session=True,
                )  # fmt: skip
            except OSError as error:
                raise BackendError(
                    "B021", f"{opening.python} does not start: {error.strerror}", hint="run ttexplore setup device"
                ) from error
        # The previous simulator has ended, and the new one has not started: its absence is not an error yet.
        self.ready = {}
        self._answers = queue.SimpleQueue()
        threading.Thread(target=_read_answers, args=(self._child, self._answers), daemon=True).start()

    def _run(
        self, folder: Path, inputs: list[Path], out: Path, limit: float, progress: Progress, cancel: threading.Event
    ) -> DeviceRun:
        request = {"folder": str(folder), "inputs": [str(file) for file in inputs], "out": str(out)}
        child = self._child
        assert child is not None
        assert child.stdin is not None
        log_start = self._log_start = self._log_file.stat().st_size
        # Kernels that are in the cache already are not compiled in this run.
        compiling = _Compiling(self.opening.cache_folder, progress)
        try:
            child.stdin.write(json.dumps(request).encode() + b"\n")
            child.stdin.flush()
        except OSError as error:
            raise self._ended("a run began") from error
        stage = "starting"
        started = time.monotonic()
        deadline = started + COMPILE_LIMIT_SECONDS

        def hang() -> DeviceHang:
            return DeviceHang(time.monotonic() - started, self._log_since(log_start), self._watcher())

        def watch() -> None:
            if stage == "compiling":
                compiling.look()
            elif stage == "running" and self._reports(log_start) > 1:
                # The simulator repeats its report while nothing makes progress: one may be a pause, two are a hang.
                raise hang()

        while True:
            match self._next(deadline, cancel, stage, watch):
                case {"stage": str(said)}:
                    stage = said
                    progress(stage)
                    if stage == "running":
                        started = time.monotonic()
                        deadline = started + limit
                case {"done": done}:
                    return DeviceRun(done["compile_seconds"], done["seconds"], self._log_file)
                case {"error": error}:
                    raise ProgramError(error["kind"], error["text"])
                case None if stage == "running":
                    raise hang()
                case None:
                    raise BackendError(
                        "B003", f"{stage} did not end within {COMPILE_LIMIT_SECONDS:.0f} seconds", hint=self._log_hint()
                    )
                case answer:
                    raise self._unexpected(answer)

    def _next(
        self, deadline: float, cancel: threading.Event, stage: str, watch: Callable[[], None]
    ) -> dict[str, Any] | None:
        """The next answer, None at the deadline. Raises BackendError if the process or its simulator has ended."""
        looked = time.monotonic()
        while time.monotonic() < deadline:
            try:
                answer = self._answers.get(timeout=POLL_SECONDS)
            except queue.Empty:
                refuse_cancelled(cancel)
                watch()
                # A client waits forever for a dead simulator.
                if self.opening.has_server and self.ready and time.monotonic() - looked > 2.0:
                    looked = time.monotonic()
                    if not tagged_processes(self.tag):
                        raise self._ended(stage, "the simulator") from None
                continue
            if answer is None:
                raise self._ended(stage)
            return answer
        return None

    def _ended(self, stage: str, who: str = "the process that holds the device") -> DeviceEnded:
        child = self._child
        status = ""
        if child is not None and who != "the simulator":
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = child.wait(timeout=2.0)
                status = f" by signal {signal.Signals(-code).name}" if code < 0 else f" with exit status {code}"
        said = last_words(self._log_since(self._log_start))
        return DeviceEnded(
            "B023",
            f"{who} ended{status} while {stage}" + (f": {said}" if said else ""),
            hint=f"run again, which restarts it, or {self._log_hint()}",
        )

    def _unexpected(self, answer: Any) -> BackendError:
        return BackendError("B023", f"the device's process answered {answer!r}", hint=self._log_hint())

    def _log_hint(self) -> str:
        return f"read the full log: {self._log_file}"

    def _log_since(self, start: int) -> str:
        with self._log_file.open("rb") as log:
            log.seek(start)
            return log.read().decode(errors="replace")

    def _reports(self, log_start: int) -> int:
        """The number of the simulator's reports that nothing makes progress."""
        pattern = self.opening.hang_pattern
        return len(re.findall(pattern, self._log_since(log_start))) if pattern else 0

    def _watcher(self) -> str:
        """The last complete dump of the SDK's watcher, empty if it is off."""
        file = self.opening.cache_folder / "work" / self.tag / "generated" / "watcher" / "watcher.log"
        with contextlib.suppress(OSError):
            dumps = file.read_text(errors="replace").rpartition(" completed at ")[0]
            return dumps[: dumps.rfind("Dump #")].rpartition("Dump #")[2]
        return ""


class _Compiling:
    """Determines from the SDK's cache which kernels are being compiled."""

    def __init__(self, cache_folder: Path, progress: Progress) -> None:
        self.cache_folder = cache_folder
        self.progress = progress
        self.known = self._folders()
        self.told = ""

    def _folders(self) -> set[Path]:
        return {folder for folder in self.cache_folder.glob("*/kernels/*/*") if folder.parent.name in ELF_FILES}

    def look(self) -> None:
        new = self._folders() - self.known
        if not new:
            return
        ended = [folder for folder in new if all((folder / elf).exists() for elf in ELF_FILES[folder.parent.name])]
        names = ", ".join(sorted(folder.parent.name for folder in new if folder not in ended))
        text = f"compiling kernel {min(len(ended) + 1, len(ELF_FILES))} of {len(ELF_FILES)}"
        text += f" ({names})" if names else ""
        if text != self.told:
            self.told = text
            self.progress(text)


def _read_answers(child: subprocess.Popen[bytes], answers: queue.SimpleQueue[dict[str, Any] | None]) -> None:
    assert child.stdout is not None
    with contextlib.suppress(ValueError, OSError):  # closed while reading
        for line in child.stdout:
            answers.put(json.loads(line))
    answers.put(None)


def tagged_processes(tag: str) -> list[int]:
    """The processes with the word `tag` on their command line: simulators, which run in sessions of their own."""
    return [process for process, words in _command_lines() if tag.encode() in words]


def _command_lines() -> Iterator[tuple[int, list[bytes]]]:
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            yield int(folder.name), (folder / "cmdline").read_bytes().split(b"\0")


# A record of the SDK's log begins with a time and a level, and ends with a source location.
_RECORD = re.compile(r"^[-\d]+ [\d:.]+ \| (?:info|warning) .*?\(\w+\.cpp:\d+\)$", re.MULTILINE | re.DOTALL)
_NOISE = ("nanobind:", " - leaked", " - ... skipped", "[run.sh]", "[server]", " --- ", "backtrace:")


def last_words(log: str) -> str:
    """The last lines of a log that may show why a process ended, joined to one line."""
    lines = _RECORD.sub("", log).splitlines()
    telling = [line.strip() for line in lines if line.strip() and not line.startswith(_NOISE)]
    return " / ".join(telling[-3:])[-KEPT_CHARACTERS:]
