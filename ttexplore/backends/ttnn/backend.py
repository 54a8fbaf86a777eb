"""The ttnn backend: the exported program through the real SDK, on a simulated chip or on a card."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import re
import shutil
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from ttexplore.backends.base import (
    Array,
    Execution,
    KernelFault,
    Program,
    card_time,
    checked_inputs,
    on_host,
    ordered_layouts,
    simulation_time,
    storage_dtype,
)
from ttexplore.backends.process import temporary_folder
from ttexplore.backends.registry import DEVICE_SECONDS, DEVICES
from ttexplore.backends.ttnn.environment import CARD_DEVICES, DeviceEnvironment, read_environment
from ttexplore.backends.ttnn.hang import describe_hang
from ttexplore.backends.ttnn.session import DeviceEnded, DeviceHang, Opening, ProgramError, Progress, Session
from ttexplore.errors import BackendError, Cancelled, UsageError, shown
from ttexplore.plan import BLOCK_FLOAT, KERNEL_ROLES, KernelRole, Plan
from ttexplore.record import lines_of, to_json
from ttexplore.target import get_target

Architecture = Literal["wormhole", "blackhole"]

# The watcher writes every other second; small programs reach their hang much earlier.
WATCHED_SECONDS = 10.0

# The names of ttsim's libraries, and the SDK's descriptors of the chips that they simulate.
TTSIM_LIBRARIES: dict[Architecture, tuple[str, str]] = {
    "wormhole": ("libttsim_wh.so", "wormhole_b0_80_arch.yaml"),
    "blackhole": ("libttsim_bh.so", "blackhole_140_arch.yaml"),
}

_NO_DIRECTION = "wolfpine's compare-and-swap cannot be reversed"
_NEGATE = "reduce the negated numbers the other way, or use device='ttsim' or a card"

# Calls in a kernel's text that a simulator (or its model of one chip) silently computes wrongly or fails on, and what
# to do instead.
REFUSED_CALLS = {
    "wolfpine": {
        "pack_reconfig_l1_acc": (
            "wolfpine ignores the packer's accumulation in L1: only the last partial sum would remain",
            "lower with accumulate='reload', or use device='ttsim' or a card",
        ),
        "pack_relu_config": ("wolfpine ignores the packer's ReLU", "use device='ttsim' or a card"),
        "where_tile<DataFormat::Float16_b>": (
            "wolfpine does not model T.if_then_else in 16-bit DST",
            "lower with accumulate_dtype='float32', or use device='ttsim' or a card",
        ),
        "sfpu_reduce<PoolType::SUM, DataFormat::Float": (
            "wolfpine sums tiles wrongly on the SFPU: it takes 1 for one of two summands",
            "add up on the FPU, or use device='ttsim' or a card",
        ),
        **{
            f"sfpu_reduce<PoolType::{pool}, DataFormat::{data_format}, ReduceDim::REDUCE_{axis}>": (
                _NO_DIRECTION,
                _NEGATE,
            )
            for pool, axis in (("MIN", "ROW"), ("MAX", "COL"))
            for data_format in ("Float32", "Float16_b", "Int32")
        },
    },
    "wolfpine-blackhole": {
        "mul_int_tile": (
            "wolfpine's Blackhole multiplies 32-bit integers wrongly",
            "use device='ttsim', a card, or a Wormhole target",
        ),
    },
}

# The same for tile formats.
REFUSED_FORMATS = {
    "wolfpine": {BLOCK_FLOAT: (f"wolfpine does not model {BLOCK_FLOAT}", "use device='ttsim' or a card")},
}

# The exported runner, so that the file that users get is tested here.
RUNNER = Path(__file__).parents[2] / "emit" / "run_ttnn.py"

# The last words of a simulator that ends because it does not model something, and their meaning (real-stack.md,
# op-truth.md: ttsim).
# After each such tile, the SDK unpacks an empty one to the other source register, which ttsim rejects in both of the
# unpacker's contexts.
_UNPACK_TO_DST = (
    "ttsim rejects 32-bit tiles that are unpacked to DST on Wormhole",
    "use device='wolfpine', a card, or a Blackhole target",
)
NOT_MODELLED = {
    "wolfpine": {
        # A Python exception of its model of the chip, as for a float that is no number to convert to an integer.
        "OverflowError": (
            "wolfpine does not compute with numbers as large as those of this program",
            "use smaller numbers as inputs, device='ttsim', or a card",
        ),
    },
    "ttsim": {
        # Float32 and Int32 in the unpacker's numbers.
        "unpack_to_dst=0 in_data_format=0": _UNPACK_TO_DST,
        "unpack_to_dst=0 in_data_format=8": _UNPACK_TO_DST,
        "tensix_unpacr: cfg_context_id=": _UNPACK_TO_DST,
        "UnsupportedFunctionality": (
            "ttsim does not model a feature that this program uses",
            "use device='wolfpine' or a card",
        ),
    },
}

# Before launching a program, the SDK adds up the bytes that a core must hold for it, nearly all of them code.
TOO_LARGE = re.compile(r"Program size \((?P<size>\d+)\) too large for kernel config buffer \((?P<room>\d+)\)")
CODE_SIZE = re.compile(r"(?P<processor>brisc|ncrisc|trisc[012]) +(?P<size>\d+) B")
KERNEL_OF_PROCESSOR = {
    "brisc": "writer", "ncrisc": "reader", "trisc0": "compute (unpack)", "trisc1": "compute (math)",
    "trisc2": "compute (pack)",
}  # fmt: skip

ERROR_LINE = re.compile(r"(?P<file>[^\s:]+)\.cpp:(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<message>[^\n]+)")


@dataclass(frozen=True, slots=True)
class Ttnn:
    """Runs programs through the real SDK (ttnn 0.81.1, its compiler and its firmware).

    `device` is ``wolfpine`` or ``ttsim``, simulated chips, or ``card``. The chip's architecture is the program's.
    `environment_folder` is where ``ttexplore setup device`` put the SDK (default: the platform's cache folder).
    `progress` is called with progress messages. The device stays open in a child process between runs; a failure ends
    that process, and the next run starts another. Raises UsageError for an unknown device.
    """

    device: str = DEVICES[0]
    environment_folder: Path | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if self.device not in DEVICES:
            raise UsageError(
                "U001", f"there is no device {shown(self.device)}", hint=f"use one of {', '.join(DEVICES)}"
            )

    def missing(self) -> str | None:
        """What is missing and how to install it, in one line; None if a Wormhole or Blackhole program can run."""
        try:
            environment = read_environment(self.environment_folder)
            for architecture in ("wormhole", "blackhole"):
                device_variables(self.device, architecture, environment)
        except BackendError as error:
            return f"{error.message}: {error.hint}"
        return None

    def run(
        self, program: Program, inputs: Sequence[Array], *, time_limit_seconds: float = DEVICE_SECONDS,
        cancel: threading.Event | None = None,
    ) -> Execution:  # fmt: skip
        """Compile and run `program`.

        `inputs` are the input and inout tensors in parameter order, in their logical shapes. Setting `cancel` ends
        the run. The time limit starts with the launch of the compiled kernels.

        Raises BackendError (no environment, wrong inputs, a device that does not open, match or answer, the time limit)
        and its subclasses Cancelled and KernelFault (a text that does not compile, or a program that hangs).
        """
        arrays = checked_inputs(program.plan, inputs)
        if (refused := refusal(program, self.device)) is not None:
            raise refused
        session = self._session(program.plan)
        with temporary_folder() as out:
            files = [out / f"input{number}.npy" for number in range(len(arrays))]
            for file, array in zip(files, arrays.values(), strict=True):
                np.save(file, array if array.dtype == np.int32 else array.astype(np.float32))
            folder = write_program(program, session.opening.cache_folder / "programs")
            try:
                outcome = session.run(
                    folder, files, out, time_limit_seconds=time_limit_seconds, progress=self.progress or _silent,
                    cancel=cancel or threading.Event(), check=lambda ready: check_fit(ready, program.plan),
                )  # fmt: skip
            except ProgramError as error:
                raise sdk_error(error, program, session) from None
            except DeviceEnded as end:
                raise not_modelled(self.device, end) from None
            except DeviceHang as hang:
                raise describe_hang(hang, lambda: self._watched(program.plan, folder, files, out, cancel)) from None
            outputs = read_outputs(out, program.plan)
        on_card = self.device == "card"
        took = card_time(outcome.seconds) if on_card else simulation_time(outcome.seconds)
        message = f"{self._title(session)}, compiled in {outcome.compile_seconds:.1f} s, {took}"
        notice = f"\n{session.notice}" if session.notice else ""
        return Execution(outputs, outcome.seconds, None, message + notice, outcome.log_file, on_card)

    def _watched(
        self, plan: Plan, folder: Path, files: list[Path], out: Path, cancel: threading.Event | None
    ) -> DeviceHang | None:  # fmt: skip
        """Repeat the hang under the SDK's watcher, which makes runs several times slower. Raises Cancelled."""
        opened = self._session(plan).opening
        variables = (*opened.variables, ("TT_METAL_WATCHER", "2"))
        watched = dataclasses.replace(opened, variables=variables, hang_pattern="")
        session = Session(watched)
        try:
            session.run(
                folder, files, out, time_limit_seconds=WATCHED_SECONDS, progress=_silent,
                cancel=cancel or threading.Event(), check=lambda ready: None,
            )  # fmt: skip
        except DeviceHang as hang:
            return hang
        except Cancelled:
            raise
        except BackendError:
            return None
        finally:
            session.close()
        return None

    def _title(self, session: Session) -> str:
        chip = f"a {session.ready['architecture']} card" if self.device == "card" else session.opening.name
        return f"{chip}, ttnn {read_environment(self.environment_folder).ttnn_version}"

    def _session(self, plan: Plan) -> Session:
        environment = read_environment(self.environment_folder)
        return shared_session(opening(self.device, architecture_of(plan), environment))


def refusal(program: Program, device: str) -> BackendError | None:
    """Why `device` cannot run `program`, as its first format or call that the device has wrongly or not at all."""
    formats = REFUSED_FORMATS.get(device, {})
    for buffer in program.plan.buffers:
        if buffer.data_format in formats:
            reason, fix = formats[buffer.data_format]
            return BackendError(
                "B025", f"{reason}, the format of circular buffer {buffer.name}", hint=fix, span=buffer.origin
            )
    chip = f"{device}-{architecture_of(program.plan)}"
    calls = REFUSED_CALLS.get(device, {}) | REFUSED_CALLS.get(chip, {})
    for call, (reason, fix) in calls.items():
        for role in KERNEL_ROLES:
            lines = lines_of(program.texts[role])
            number = next((n for n, line in enumerate(lines, 1) if call in line), None)
            if number is not None:
                return KernelFault("B025", reason, hint=fix, kernel=role, cpp_line=number)
    return None


def _silent(text: str) -> None:
    del text


def architecture_of(plan: Plan) -> Architecture:
    """The architecture of the plan's target."""
    match get_target(plan.target).arch:
        case "wormhole_b0":
            return "wormhole"
        case "blackhole":
            return "blackhole"


@functools.cache
def shared_session(opening: Opening) -> Session:
    """The only session of each device: opening a device takes seconds, and a card can be opened only once."""
    return Session(opening)


def device_variables(device: str, architecture: Architecture, environment: DeviceEnvironment) -> dict[str, str]:
    """The SDK's environment variables that choose `device` (real-stack.md, "Environment of a run").

    Raises BackendError if it is not installed.
    """
    match device:
        case "wolfpine":
            folder = environment.wolfpine_folders.get(architecture)
            if folder is None:
                raise BackendError(
                    "B020",
                    f"the simulator wolfpine is not installed for {environment.python}",
                    hint="run ttexplore setup device",
                )
            return {
                "TT_METAL_SIMULATOR": str(folder),
                "TT_METAL_MOCK_CLUSTER_DESC_PATH": str(folder / "cluster_descriptor.yaml"),
                "TT_METAL_SLOW_DISPATCH_MODE": "1",
                "TT_METAL_DISABLE_SFPLOADMACRO": "1",
                # Data arrives late, as on the chip, so that missing read barriers have an effect.
                "TT_SIM_COST_MODEL": "1",
                # Otherwise the default `python3` is started, which lacks wolfpine, and ttnn waits forever.
                "WOLFPINE_PYTHON": str(environment.python),
            }
        case "ttsim":
            return {
                "TT_METAL_SIMULATOR": str(ttsim_library(architecture, environment)),
                "TT_METAL_SLOW_DISPATCH_MODE": "1",
                "TT_METAL_DISABLE_SFPLOADMACRO": "1",
            }
        case "card":
            if not CARD_DEVICES.exists():
                raise BackendError(
                    "B020",
                    f"there is no Tenstorrent card: {CARD_DEVICES} does not exist",
                    hint="install the card's driver (tt-kmd), or use device='wolfpine', a simulated chip",
                )
            return {}
        case _:
            raise ValueError(f"no variables for the device {device!r}")


def ttsim_library(architecture: Architecture, environment: DeviceEnvironment) -> Path:
    """The simulator of `architecture` in a folder where the SDK also finds its `soc_descriptor.yaml`.

    The SDK looks for that file beside the library, and each chip has its own: so each library gets a folder with links.
    Raises BackendError if ttsim is not set up.
    """
    library, descriptor = TTSIM_LIBRARIES[architecture]
    source = environment.ttsim_folder / library if environment.ttsim_folder else None
    if source is None or not source.exists():
        raise BackendError(
            "B020",
            f"ttsim is not set up: {source} does not exist" if source else "ttsim is not set up",
            hint=f"run ttexplore setup device --ttsim FOLDER, where FOLDER contains {library}",
        )
    folder = environment.folder / "ttsim" / architecture
    folder.mkdir(parents=True, exist_ok=True)
    for link, file in (
        (folder / library, source.resolve()),
        (folder / "soc_descriptor.yaml", environment.sdk_folder / "tt_metal" / "soc_descriptors" / descriptor),
    ):
        if not link.is_symlink() or link.readlink() != file:
            link.unlink(missing_ok=True)
            link.symlink_to(file)
    return folder / library


def opening(device: str, architecture: Architecture, environment: DeviceEnvironment) -> Opening:
    """How `device` is opened. Raises as :func:`device_variables` does."""
    name = f"{device}-{architecture}"
    quiet = {"TT_LOGGER_LEVEL": "warning", "LOGURU_LEVEL": "WARNING"}
    return Opening(
        python=environment.python,
        variables=tuple(sorted((quiet | device_variables(device, architecture, environment)).items())),
        cache_folder=environment.folder / "cache" / name,
        logs_folder=environment.folder / "logs",
        name=name,
        hang_pattern=r"\[(?:DEADLOCK|UNIT WEDGED)" if device == "wolfpine" else "",
        has_server=device == "wolfpine",
    )


def check_fit(ready: dict[str, object], plan: Plan) -> None:
    """Raises BackendError if the opened device does not match the plan."""
    architecture = architecture_of(plan)
    if not str(ready["architecture"]).startswith(architecture):
        raise BackendError(
            "B022",
            f"the device is a {ready['architecture']}, but the program is for {plan.target}",
            hint=f"explore the kernel with a {ready['architecture']} target",
        )
    match ready["grid"]:
        case [int(columns), int(rows)]:
            pass
        case grid:
            raise BackendError("B022", f"the device reported the core grid {grid!r}", hint="run ttexplore doctor")
    for core in plan.partition.cores if plan.partition else ():
        if core.x >= columns or core.y >= rows:
            raise BackendError(
                "B022",
                f"the program uses core ({core.x}, {core.y}), but the device has {columns}x{rows} cores",
                hint=f"lower with cores=({columns}, {rows}) or fewer",
            )


def write_program(program: Program, folder: Path) -> Path:
    """Write the program as `Exploration.export` does, to a folder named after its content.

    The SDK caches compiled kernels by file name: different texts need different names, and the same text in another
    program (for example, for other sizes) should have the same name. Therefore the kernels have a folder of their own.
    """
    kernels = _folder_of({f"{role}.cpp": program.texts[role] for role in KERNEL_ROLES}, {}, folder)
    plan = {
        "tt.plan.json": json.dumps(to_json(program.plan), sort_keys=True),
        "run_ttnn.py": RUNNER.read_text(encoding="utf-8"),
    }
    return _folder_of(plan, {f"{role}.cpp": kernels / f"{role}.cpp" for role in KERNEL_ROLES}, folder)


def _folder_of(files: Mapping[str, str], links: Mapping[str, Path], folder: Path) -> Path:
    """Create a folder with these files and links, named after their content."""
    named = {**files, **{name: str(target) for name, target in links.items()}}
    target = folder / hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()[:16]
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(dir=folder))
        for name, text in files.items():
            (staging / name).write_text(text, encoding="utf-8")
        for name, linked in links.items():
            (staging / name).symlink_to(linked)
        try:
            staging.rename(target)
        except OSError:  # another process created it first
            shutil.rmtree(staging)
    return target


def read_outputs(folder: Path, plan: Plan) -> tuple[Array, ...]:
    """Read the output and inout tensors in parameter order, in storage dtype. Raises BackendError for wrong shapes."""
    outputs: list[Array] = []
    for layout in ordered_layouts(plan):
        if layout.role == "input":
            continue
        file = folder / f"{layout.name}.npy"
        if not file.exists():
            raise BackendError("B023", f"the device returned no tensor {layout.name}", hint="run ttexplore doctor")
        array = np.load(file)
        if array.shape != layout.shape:
            raise BackendError(
                "B023",
                f"the device returned {layout.name} with shape {array.shape}, but the tensor has shape {layout.shape}",
                hint="run ttexplore doctor: the SDK may have another version",
            )
        outputs.append(on_host(layout, array.astype(storage_dtype(layout))))
    return tuple(outputs)


def not_modelled(device: str, end: DeviceEnded) -> BackendError:
    """The error for the end of a device's process: a limit of the simulator, if its last words show one."""
    for words, (reason, fix) in NOT_MODELLED.get(device, {}).items():
        if words in end.message:
            return BackendError("B025", f"{reason} ({end.message})", hint=fix)
    return end


def sdk_error(error: ProgramError, program: Program, session: Session) -> BackendError:
    """The error for an exception of the SDK, at the C++ line if its compiler reported one."""
    large = program_too_large(error.text)
    if large is not None:
        return large
    match = ERROR_LINE.search(error.text)
    log = f"read the full log: {session.log_file}"
    if match is None:
        return BackendError("B023", f"the SDK raised {error.kind}: {gist(error.text)}", hint=log)
    role: KernelRole | None = next((role for role in KERNEL_ROLES if role == Path(match["file"]).name), None)
    line = int(match["line"])
    if role is None:
        return BackendError(
            "B002", f"the device's compiler rejects {match['file']}.cpp line {line}: {match['message']}", hint=log
        )
    text = lines_of(program.texts[role])[line - 1].strip()
    return KernelFault("B002", 
        f"the device's compiler rejects {role}.cpp line {line}: {match['message']}: {text}",
        hint=log, kernel=role, cpp_line=line,
    )  # fmt: skip


def program_too_large(text: str) -> BackendError | None:
    """The error for a program whose code does not fit a core; None for any other text of the SDK."""
    match = TOO_LARGE.search(text)
    if match is None:
        return None
    sizes = {match["processor"]: int(match["size"]) for match in CODE_SIZE.finditer(text)}
    kernels = ", ".join(f"{KERNEL_OF_PROCESSOR[name]} {size:,} B" for name, size in sizes.items())
    return BackendError(
        "B026",
        f"the program takes {int(match['size']):,} B of a core, which has room for {int(match['room']):,} B: {kernels}",
        hint="use fewer different functions in one kernel, or split it into two that pass on a tensor",
    )


def gist(text: str) -> str:
    """The essential lines of an SDK exception, without its place in the source and the backtrace."""
    lines = [line.strip() for line in text.partition("backtrace:")[0].splitlines()]
    messages = [line for line in lines if line and line != "info:" and not line.startswith(("TT_THROW", "TT_FATAL @"))]
    return " / ".join(messages or lines)[:500]
