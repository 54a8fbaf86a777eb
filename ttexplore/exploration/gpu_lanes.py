"""A lowering beside what TileLang makes of the same kernel for a GPU."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ttexplore.control import Control, Progress
from ttexplore.emit.kernels import emitted_parts
from ttexplore.errors import UsageError
from ttexplore.given import path as path_of
from ttexplore.given import wrong
from ttexplore.gpu.beside import Beside
from ttexplore.gpu.lane import ARCHITECTURES, GpuLane, architectures, check_architecture, kernel_digest, request_for
from ttexplore.gpu.lane import TIME_LIMIT_SECONDS as GPU_SECONDS
from ttexplore.gpu.lane import lower as lower_for_gpu
from ttexplore.gpu.programs import TileProgram
from ttexplore.gpu.shown import beside_data
from ttexplore.ir.boundary import errors_of_ours
from ttexplore.language.portable import portable
from ttexplore.plan import KERNEL_ROLES, KernelRole
from ttexplore.porting.linked import NAME as PORT
from ttexplore.porting.linked import port_data
from ttexplore.record import JsonObject, Listing

if TYPE_CHECKING:
    from ttexplore.exploration import Exploration


def gpu(
    exploration: Exploration, arch: str = "sm_90a", *, environment: Path | None = None,
    time_limit_seconds: float | None = None, progress: Progress | None = None, cancel: threading.Event | None = None,
) -> GpuLane:  # fmt: skip
    """Lower the same kernel for a GPU with TileLang's own pipeline, in the environment of ``ttexplore setup gpu``;
    no GPU is needed. `arch` is such as ``"sm_90a"`` (CUDA) or ``"gfx942"`` (HIP).

    `environment` is the folder of the environment, by default the one that set-up uses; without one, the kernels of
    the gallery have recorded lanes. `time_limit_seconds` is 120 by default. `progress` and `cancel` are those of
    :meth:`run`. If a pass fails, the lane ends with it and holds the error; its code raises it.

    Raises UsageError for wrong arguments, and BackendError if there is no environment, if TileLang rejects the
    kernel, with its line, and if the process crashes or exceeds the time limit; Cancelled if cancelled.
    """
    target = check_architecture(arch)
    control = Control.checked(cancel, time_limit_seconds, progress).of("the GPU lane")
    if time_limit_seconds is None:
        control = control.of(control.what, seconds=GPU_SECONDS)
    sent = portable(exploration.kernel)
    request = request_for(sent.texts, sent.arguments, target)
    folder = None if environment is None else path_of("the environment", environment)
    lane = lower_for_gpu(
        exploration.kernel.name, exploration.kernel.source, request, sent.places, target, folder, control
    )
    exploration._lanes[target] = lane
    return lane


def gpu_data(exploration: Exploration, arch: str, control: Control) -> JsonObject:
    """The GPU lane for an architecture beside this lowering, as the explorer shows it, in JSON form; for the first
    one that there is, if `arch` is empty. Raises what the lane and the lowering raise."""
    sent = portable(exploration.kernel)
    names = architectures(sent.texts, sent.arguments)
    offered = _offered(exploration, names)
    if arch == PORT or (exploration.ported is not None and not arch):
        return _port_data(exploration, offered)
    _ = exploration._lowered.final
    chosen = arch or names[0]
    lane = exploration._lanes.get(chosen) or exploration.gpu(chosen, progress=control.progress, cancel=control.cancel)
    return beside_data(exploration.beside(lane), offered)


def lanes_data(exploration: Exploration) -> list[JsonObject]:
    """The GPU lanes that were loaded until now, as the explorer shows them, in JSON form."""
    offered = _offered(exploration, exploration._lanes)
    ported = [] if exploration.ported is None else [_port_data(exploration, offered)]
    return ported + [beside_data(exploration.beside(lane), offered) for lane in exploration._lanes.values()]


def _offered(exploration: Exploration, architectures: Iterable[str]) -> dict[str, str]:
    """What can stand beside this lowering, by name, as it is shown."""
    ported = (
        {}
        if exploration.ported is None
        else {PORT: f"{exploration.ported.written.name} ({exploration.ported.language})"}
    )
    return ported | {arch: f"{arch} ({ARCHITECTURES[arch]})" for arch in architectures}


def _port_data(exploration: Exploration, offered: dict[str, str]) -> JsonObject:
    if exploration.ported is None:
        raise UsageError("U001", "the kernel is not a port", hint="ttx.explore(ttx.port(source)) explores one")
    return port_data(exploration.ported, exploration.ported.written, exploration.kernel.source, offered)


def beside(exploration: Exploration, lane: GpuLane | str = "sm_90a") -> Beside:
    """This lowering beside a GPU lane of the same kernel: the passes of both by what they do, the lines of both
    programs by their kernel line, and a map of concepts with counts, bytes and lines of both.

    `lane` is one of :meth:`gpu`, or its architecture. Raises UsageError for another kernel's lane and for a kernel
    with several launches, the lowering's error, if it failed, and what :meth:`gpu` raises.
    """
    files: dict[KernelRole, Listing] = {role: exploration.files[f"{role}.cpp"] for role in KERNEL_ROLES}
    gpu_lane = exploration.gpu(lane) if isinstance(lane, str) else lane
    if not _is_lane(gpu_lane):
        raise wrong("the lane", lane, 'one of ex.gpu(), or an architecture such as "sm_90a"')
    sent = portable(exploration.kernel)
    if gpu_lane.digest != kernel_digest({"texts": sent.texts, "arguments": sent.arguments}):
        raise UsageError(
            "U010", f"the lane is of another kernel than {exploration.kernel.name}, or of one with other arguments",
            hint="use ex.beside(ex.gpu())",
        )  # fmt: skip
    lowered = exploration._lowered
    with errors_of_ours("counting the operations"):
        ours = TileProgram(files, emitted_parts(lowered.final.functions, lowered.plan), lowered.plan)
    return Beside(gpu_lane, tuple(step.record for step in lowered.steps), ours, lowered.target)


def _is_lane(value: object) -> bool:
    return isinstance(value, GpuLane)
