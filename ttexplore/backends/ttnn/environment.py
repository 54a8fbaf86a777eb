"""The SDK's environment: its own Python with ttnn, the device compiler, the simulators.

`setup.py` creates it and writes ``environment.json`` last; this module reads that file and checks that all parts exist.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ttexplore.backends.cache import default_cache_folder
from ttexplore.backends.environments import VERIFIED
from ttexplore.errors import BackendError

# The SDK release that the emitted code targets, and the simulator that runs it without a card.
TTNN_VERSION = "0.81.1"
WOLFPINE_VERSION = "2.2"

RECORD = "environment.json"
SET_UP = "ttexplore setup device"

# The device files of the cards' driver, tt-kmd, and the PCI identities in its enumerate.c.
CARD_DEVICES = Path("/dev/tenstorrent")
PCI_DEVICES = Path("/sys/bus/pci/devices")
TENSTORRENT_VENDOR = "0x1e52"
CARD_ARCHITECTURES = {"0x401e": "wormhole", "0xb140": "blackhole"}


@dataclass(frozen=True, slots=True)
class DeviceEnvironment:
    """The locations of the SDK's parts.

    `folder` holds environment.json, and compiled kernels and logs, which can be deleted. `python` (3.10 or 3.12)
    imports ttnn, whose package is `sdk_folder`; `sfpi_folder` is the device compiler. `wolfpine_folders` has the
    simulator of each architecture ("wormhole", "blackhole"), and is empty if wolfpine is not installed. `ttsim_folder`
    has the libraries of ttsim, if the user named it. `managed` is true if set-up installed the SDK, and false if it is
    the user's own.
    """

    folder: Path
    python: Path
    ttnn_version: str
    sdk_folder: Path
    sfpi_folder: Path
    compiler_version: str
    wolfpine_folders: dict[str, Path]
    ttsim_folder: Path | None
    managed: bool


def default_environment_folder() -> Path:
    """The folder that set-up uses by default."""
    return default_cache_folder() / "device"


def read_environment(folder: Path | None = None) -> DeviceEnvironment:
    """The environment in `folder`, by default the one of :func:`default_environment_folder`.

    Raises BackendError, with the command that fixes it, if there is none, if a part is missing, or if ttnn has another
    version than the one that set-up installs.
    """
    environment = recorded_environment(folder)
    fault = environment_fault(environment)
    if fault:
        sdk_option = "" if environment.managed else f" --sdk-python {environment.python}"
        raise BackendError(
            "B020",
            f"the device environment in {environment.folder} is broken: {fault}",
            hint=f"{_set_up_command(folder)}{sdk_option}",
        )
    return environment


def recorded_environment(folder: Path | None = None) -> DeviceEnvironment:
    """The environment as recorded, without checking its parts. Raises BackendError if there is no record."""
    root = folder or default_environment_folder()
    try:
        record: dict[str, Any] = json.loads((root / RECORD).read_text(encoding="utf-8"))
        ttsim = record["ttsim_folder"]
        return DeviceEnvironment(
            folder=root,
            python=Path(record["python"]),
            ttnn_version=record["ttnn_version"],
            sdk_folder=Path(record["sdk_folder"]),
            sfpi_folder=Path(record["sfpi_folder"]),
            compiler_version=record["compiler_version"],
            wolfpine_folders={name: Path(path) for name, path in record["wolfpine_folders"].items()},
            ttsim_folder=Path(ttsim) if ttsim else None,
            managed=record["managed"],
        )
    except FileNotFoundError as error:
        unfinished = root.exists() and any(root.iterdir())
        fault = "its set-up did not finish" if unfinished else "it is not set up"
        raise BackendError(
            "B020", f"there is no device environment in {root}: {fault}", hint=_set_up_command(folder)
        ) from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BackendError("B020", f"{root / RECORD} cannot be read: {error}", hint=_set_up_command(folder)) from error


def _set_up_command(folder: Path | None) -> str:
    return SET_UP + (f" --folder {folder}" if folder else "")


def card_architecture(pci_devices: Path = PCI_DEVICES) -> str | None:
    """ "wormhole" or "blackhole" for the first card of this machine, None if there is no known card."""
    for vendor in sorted(pci_devices.glob("*/vendor")):
        if vendor.read_text().strip() == TENSTORRENT_VENDOR:
            architecture = CARD_ARCHITECTURES.get(vendor.with_name("device").read_text().strip())
            if architecture is not None:
                return architecture
    return None


def write_environment(environment: DeviceEnvironment) -> None:
    """Write environment.json: from then on, the environment counts as set up."""
    record = {
        "python": str(environment.python),
        "ttnn_version": environment.ttnn_version,
        "sdk_folder": str(environment.sdk_folder),
        "sfpi_folder": str(environment.sfpi_folder),
        "compiler_version": environment.compiler_version,
        "wolfpine_folders": {name: str(path) for name, path in environment.wolfpine_folders.items()},
        "ttsim_folder": str(environment.ttsim_folder) if environment.ttsim_folder else None,
        "managed": environment.managed,
    }
    unfinished = environment.folder / f"{RECORD}.new"
    unfinished.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    unfinished.rename(environment.folder / RECORD)


def environment_fault(environment: DeviceEnvironment) -> str | None:
    """The first missing or wrong part of the environment, None if it is intact. Quick: it only looks at files."""
    if not environment.python.exists():
        return f"its Python, {environment.python}, is missing"
    if not (environment.sdk_folder / "__init__.py").exists():
        return f"ttnn is missing from {environment.sdk_folder}"
    version = installed_version(environment.sdk_folder)
    if environment.managed and version != TTNN_VERSION:
        return f"ttnn {version or 'of an unknown version'} is installed, {TTNN_VERSION} is required"
    if not compiler_file(environment.sfpi_folder).exists():
        return f"the device compiler is missing from {environment.sfpi_folder}"
    for path in environment.wolfpine_folders.values():
        if not (path / "run.sh").exists():
            return f"the simulator wolfpine is missing from {path}"
    return None


def installed_version(sdk_folder: Path) -> str | None:
    """The version of ttnn from its package's metadata, None if there is none."""
    dist_infos = sorted(sdk_folder.parent.glob("ttnn-*.dist-info"))
    return dist_infos[0].name.removesuffix(".dist-info").removeprefix("ttnn-") if len(dist_infos) == 1 else None


def verified_file(environment: DeviceEnvironment) -> Path:
    """The file whose existence shows that a program has run in the environment in its current state."""
    return environment.folder / VERIFIED


def compiler_file(sfpi_folder: Path) -> Path:
    """The compiler for the chip's RISC-V processors."""
    return sfpi_folder / "compiler" / "bin" / "riscv-tt-elf-g++"
