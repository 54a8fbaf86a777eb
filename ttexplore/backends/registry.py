"""The table of backends: what each runs, the arguments that it takes and how it ends.

Imports no other package, so that the doctor and the command line can list backends that cannot run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ttexplore.backends.finding import Finding

if TYPE_CHECKING:
    from ttexplore.backends.base import Backend

Arithmetic = Literal["exact", "fast"]
ARITHMETICS: tuple[Arithmetic, ...] = ("exact", "fast")
# The first one is the default.
DEVICES = ("wolfpine", "ttsim", "card")
DEVICE_NAMES = f"{', '.join(DEVICES[:-1])} or {DEVICES[-1]}"

EMULATOR_SECONDS = 60.0
DEVICE_SECONDS = 300.0

# The arguments of a run that only some backends take.
Argument = Literal["arithmetic", "code", "device", "environment"]


@dataclass(frozen=True, slots=True)
class BackendSettings:
    """The settings of a backend for a run; None leaves the choice to the backend.

    `event_core` is the index of a core whose events are recorded in any case; at most `move_limit` moves of values are
    recorded.
    """

    arithmetic: Arithmetic = "exact"
    device: str | None = None
    environment: Path | None = None
    progress: Callable[[str], None] | None = None
    event_core: int = 0
    move_limit: int = 0


@dataclass(frozen=True, slots=True)
class BackendEntry:
    """A backend.

    `runs` describes the part of a lowering that it executes, `on` what executes it. `make` creates the object that runs
    emitted texts; if it is None, the exploration executes the program itself, which needs the kernel. `takes` are the
    arguments of a run that only some backends take. `time_limit_seconds` is the default limit. `cancelled` says what
    cancelling ends. `compared_with` names a backend whose result is compared with its own, besides the reference. The
    doctor fails if a `required` backend cannot run.
    """

    name: str
    runs: str
    on: str
    cancelled: str
    missing: Callable[[], str | None]
    examine: Callable[[], tuple[Finding, ...]]
    make: Callable[[BackendSettings], Backend] | None = None
    takes: tuple[Argument, ...] = ()
    time_limit_seconds: float = math.inf
    records_events: bool = False
    compared_with: str = ""
    required: bool = True

    @property
    def needs_kernel(self) -> bool:
        """Whether it needs the kernel itself, so that saved explorations cannot use it."""
        return self.make is None


def _nothing() -> None:
    return None


def _always(name: str) -> Callable[[], tuple[Finding, ...]]:
    return lambda: (Finding(f"backend {name}", True, True, "built in"),)


def _emulator_missing() -> str | None:
    from ttexplore.backends.emulator import Emulator

    return Emulator().missing()


def _emulator_findings() -> tuple[Finding, ...]:
    from ttexplore.backends.emulator.compiler import find_compiler

    compiler, missing = find_compiler(), _emulator_missing()
    fault, _, fix = (missing or "").partition(": ")
    detail = " ".join(compiler.command) if compiler else fault
    return (Finding("backend emulator", missing is None, True, detail, fix),)


def _emulator(settings: BackendSettings) -> Backend:
    from ttexplore.backends.emulator import Emulator

    return Emulator(
        event_core=settings.event_core, move_limit=settings.move_limit, arithmetic=settings.arithmetic,
        progress=settings.progress,
    )  # fmt: skip


def _ttnn_missing() -> str | None:
    from ttexplore.backends.ttnn import Ttnn

    return Ttnn().missing()


def _ttnn_findings() -> tuple[Finding, ...]:
    from ttexplore.backends.ttnn.findings import findings

    return findings()


def _ttnn(settings: BackendSettings) -> Backend:
    from ttexplore.backends.ttnn import Ttnn

    device = DEVICES[0] if settings.device is None else settings.device
    return Ttnn(device, settings.environment, settings.progress)


BACKENDS: dict[str, BackendEntry] = {
    backend.name: backend
    for backend in (
        BackendEntry(
            "reference", "the traced kernel, before any step", "NumPy", "between two statements",
            _nothing, _always("reference"),
        ),
        BackendEntry(
            "interpreter", "the IR after any step", "NumPy, as three communicating kernels on each core",
            "between two statements", _nothing, _always("interpreter"),
        ),
        BackendEntry(
            "emulator", "the emitted C++ as it is",
            "the host's C++ compiler, all cores simulated at native speed, "
            "with the matrix unit's arithmetic bit for bit",
            "its processes", _emulator_missing, _emulator_findings, _emulator,
            ("arithmetic", "code"), EMULATOR_SECONDS, records_events=True,
        ),
        BackendEntry(
            "ttnn", "the exported program",
            "the real SDK with its compiler and firmware, on a simulated chip (`wolfpine`, `ttsim`) or a card",
            "its processes", _ttnn_missing, _ttnn_findings, _ttnn,
            ("code", "device", "environment"), DEVICE_SECONDS, compared_with="emulator", required=False,
        ),
    )
}  # fmt: skip

DEFAULT_BACKEND = "emulator"


def recorder() -> BackendEntry:
    """The backend that records the events on the cores."""
    return next(backend for backend in BACKENDS.values() if backend.records_events)


def taker(argument: Argument) -> str:
    """The first backend that takes an argument of a run."""
    return next(backend.name for backend in BACKENDS.values() if argument in backend.takes)
