"""Whether a device environment works: one tiny kernel goes the whole way to the chip and back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ttexplore.backends.ttnn.environment import DeviceEnvironment, verified_file
from ttexplore.errors import BackendError
from ttexplore.exploration import Run, explore

# The compiler, the firmware build, the simulator and the transfers are all in the time of the first run.
LIMIT_SECONDS = 240.0

KERNEL = f"{Path(__file__).with_name('verification_kernel.py')}::add_tiles"


def verify(
    environment: DeviceEnvironment, device: str = "wolfpine", target: str = "wormhole_n150",
    progress: Callable[[str], None] | None = None,
) -> Run:  # fmt: skip
    """Adds two tiles on `device` and notes in the environment's folder that it went well.

    Raises BackendError where it does not run or gives a wrong result.
    """
    run = explore(KERNEL, target=target).run(
        backend="ttnn", device=device, environment=environment.folder, time_limit_seconds=LIMIT_SECONDS,
        progress=progress,
    )  # fmt: skip
    if not run.passed:
        raise BackendError("B031", f"the {device} adds two tiles wrongly: {run.message}", hint="ttexplore doctor")
    verified_file(environment).write_text(f"{environment.ttnn_version}\n", encoding="utf-8")
    return run
