"""Verifying a device environment: one tiny kernel is compiled and run on the device."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ttexplore.backends.ttnn.environment import DeviceEnvironment, verified_file
from ttexplore.errors import BackendError
from ttexplore.exploration import Run, explore

# The first run includes compilation, the firmware build, the simulator's start and the transfers.
LIMIT_SECONDS = 240.0

KERNEL = f"{Path(__file__).with_name('verification_kernel.py')}::add_tiles"


def verify(
    environment: DeviceEnvironment, device: str = "wolfpine", target: str = "wormhole_n150",
    progress: Callable[[str], None] | None = None,
) -> Run:  # fmt: skip
    """Add two tiles on `device`, and record the success in the environment's folder.

    Raises BackendError if the program does not run or gives a wrong result.
    """
    run = explore(KERNEL, target=target).run(
        backend="ttnn", device=device, environment=environment.folder, time_limit_seconds=LIMIT_SECONDS,
        progress=progress,
    )  # fmt: skip
    if not run.passed:
        raise BackendError(
            "B031", f"{device} gives a wrong sum of two tiles: {run.message}", hint="run ttexplore doctor"
        )
    verified_file(environment).write_text(f"{environment.ttnn_version}\n", encoding="utf-8")
    return run
