"""The request for a run: its checked arguments as one value."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ttexplore.backends.registry import (
    ARITHMETICS,
    BACKENDS,
    DEVICE_NAMES,
    Argument,
    BackendEntry,
    BackendSettings,
    taker,
)
from ttexplore.control import Control
from ttexplore.errors import UsageError
from ttexplore.given import dictionary, flag, named, path, text
from ttexplore.session.formula import Formula, checked_formula
from ttexplore.session.inputs import Inputs

if TYPE_CHECKING:
    from ttexplore.backends.base import Backend


@dataclass(frozen=True, slots=True, eq=False)
class RunRequest:
    """The arguments of a run on `backend` with `settings`. `runner` runs C++ texts; None if the backend cannot.

    `inputs` and `sizes` are not checked against the kernel yet. `code` holds texts of kernels by role. The limit of
    `control` is the one that was asked for, `time_limit_seconds` that of the program on the backend.
    """

    backend: BackendEntry
    runner: Backend | None
    settings: BackendSettings
    inputs: Inputs
    seed: int
    control: Control
    time_limit_seconds: float
    sizes: Mapping[str, int] | None
    code: Mapping[str, str]
    compared: bool
    formula: Formula | None

    @classmethod
    def checked(
        cls, backend: str, inputs: Inputs, seed: int, *, arithmetic: str = ARITHMETICS[0], device: str | None = None,
        environment: str | Path | None = None, time_limit_seconds: float | None = None,
        progress: Callable[[str], None] | None = None, cancel: threading.Event | None = None,
        sizes: Mapping[str, int] | None = None, code: Mapping[str, str] | None = None, compared: bool = True,
        reference: object = None,
    ) -> RunRequest:  # fmt: skip
        """Check the arguments of a run. Raises UsageError for wrong values and for arguments that the backend does not
        take."""
        entry = BACKENDS[named("backend", backend, BACKENDS)]
        control = Control.checked(cancel, time_limit_seconds, progress)
        settings = BackendSettings(
            named("arithmetic", arithmetic, ARITHMETICS),
            None if device is None else text("device", device, DEVICE_NAMES),
            None if environment is None else path("environment", environment),
            control.progress,
        )
        texts = {} if code is None else dictionary("code", code, "kernels", '{"compute": text}')
        if texts and "code" not in entry.takes:
            raise UsageError(
                "U010", f"the backend {entry.name} does not run C++ texts", hint=f"choose backend='{taker('code')}'"
            )
        on_device: dict[Argument, object] = {"device": device, "environment": environment}
        for argument, value in on_device.items():
            if value is not None and argument not in entry.takes:
                raise UsageError(
                    "U010", f"the backend {entry.name} takes no {argument}", hint=f"choose backend='{taker(argument)}'"
                )
        runner = None if entry.make is None else entry.make(settings)
        limit = entry.time_limit_seconds if time_limit_seconds is None else control.seconds
        formula, compared = checked_formula(reference), flag("compared", compared)
        if formula is not None and not compared:
            raise UsageError("U010", "a run that is not compared takes no reference", hint="leave out compared=False")
        return cls(entry, runner, settings, inputs, seed, control, limit, sizes, texts, compared, formula)

    @property
    def on_backend(self) -> Control:
        """How the program on the backend is controlled."""
        return self.control.of("the program", seconds=self.time_limit_seconds)
