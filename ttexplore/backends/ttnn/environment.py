"""The environment of the SDK: a Python of its own with ttnn, the device compiler, the simulators.

`setup.py` makes it and writes ``environment.json`` last; here it is read, with a look at whether all is still there.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ttexplore.backends.cache import default_cache_folder
from ttexplore.errors import BackendError

# The SDK's release that the emitted text is for, and what runs it without a card.
TTNN_VERSION = "0.81.1"
WOLFPINE_VERSION = "2.2"

RECORD = "environment.json"
VERIFIED = "verified"
SET_UP = "ttexplore setup device"

# What the driver, tt-kmd, makes for the cards; their PCI identities are those of its enumerate.c.
CARD_DEVICES = Path("/dev/tenstorrent")
PCI_DEVICES = Path("/sys/bus/pci/devices")
TENSTORRENT_VENDOR = "0x1e52"
CARD_ARCHITECTURES = {"0x401e": "wormhole", "0xb140": "blackhole"}


@dataclass(frozen=True, slots=True)
class DeviceEnvironment:
    """Where the parts of the SDK are.

    `folder` holds environment.json and what is made again: compiled kernels and logs. `python` imports ttnn (3.10 or
    3.12), whose package is `sdk_folder`; `sfpi_folder` is the device compiler. `wolfpine_folders` holds the simulator
    of each architecture ("wormhole", "blackhole"), none if wolfpine is not installed. `ttsim_folder` holds the
    libraries of ttsim, if the user has named it. `managed` says that set-up has installed the SDK; otherwise it is the
    user's own.
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
    """The folder that set-up takes if none is named."""
    return default_cache_folder() / "device"


def read_environment(folder: Path | None = None) -> DeviceEnvironment:
    """The environment in `folder`, by default the one of :func:`default_environment_folder`.

    Raises BackendError, with the command that mends it, where there is none, where a part of it is gone, and where
    ttnn is of another version than the one that set-up installs.
    """
    environment = recorded_environment(folder)
    fault = environment_fault(environment)
    if fault:
        own = "" if environment.managed else f" --sdk-python {environment.python}"
        raise BackendError(
            "B020",
            f"the device environment in {environment.folder} is broken: {fault}",
            hint=f"{_set_up_command(folder)}{own}",
        )
    return environment


def recorded_environment(folder: Path | None = None) -> DeviceEnvironment:
    """The environment as its record tells, whether or not all is still there. Raises BackendError if it has none."""
    place = folder or default_environment_folder()
    try:
        record: dict[str, Any] = json.loads((place / RECORD).read_text(encoding="utf-8"))
        ttsim = record["ttsim_folder"]
        return DeviceEnvironment(
            folder=place,
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
        unfinished = place.exists() and any(place.iterdir())
        what = "its set-up was not finished" if unfinished else "it is not set up"
        raise BackendError(
            "B020", f"there is no device environment in {place}: {what}", hint=_set_up_command(folder)
        ) from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BackendError("B020", f"{place / RECORD} cannot be read: {error}", hint=_set_up_command(folder)) from error


def _set_up_command(folder: Path | None) -> str:
    return SET_UP + (f" --folder {folder}" if folder else "")


def card_architecture(pci_devices: Path = PCI_DEVICES) -> str | None:
    """ "wormhole" or "blackhole" for the first card of this machine, None where there is none that is known."""
    for vendor in sorted(pci_devices.glob("*/vendor")):
        if vendor.read_text().strip() == TENSTORRENT_VENDOR:
            architecture = CARD_ARCHITECTURES.get(vendor.with_name("device").read_text().strip())
            if architecture is not None:
                return architecture
    return None


def write_environment(environment: DeviceEnvironment) -> None:
    """Writes environment.json: from then on the environment counts as made."""
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
    """What of the environment is gone or wrong, None if nothing. Looks at files only, so it is quick."""
    if not environment.python.exists():
        return f"its Python, {environment.python}, is gone"
    if not (environment.sdk_folder / "__init__.py").exists():
        return f"ttnn is gone from {environment.sdk_folder}"
    version = installed_version(environment.sdk_folder)
    if environment.managed and version != TTNN_VERSION:
        return f"ttnn {version or 'of an unknown version'} is installed, {TTNN_VERSION} is needed"
    if not compiler_file(environment.sfpi_folder).exists():
        return f"the device compiler is gone from {environment.sfpi_folder}"
    for path in environment.wolfpine_folders.values():
        if not (path / "run.sh").exists():
            return f"the simulator wolfpine is gone from {path}"
    return None


def installed_version(sdk_folder: Path) -> str | None:
    """The version of ttnn by the metadata beside its package, None where there is none."""
    found = sorted(sdk_folder.parent.glob("ttnn-*.dist-info"))
    return found[0].name.removesuffix(".dist-info").removeprefix("ttnn-") if len(found) == 1 else None


def verified_file(environment: DeviceEnvironment) -> Path:
    """The file that tells that a program has run in the environment as it is now."""
    return environment.folder / VERIFIED


def compiler_file(sfpi_folder: Path) -> Path:
    """The compiler for the chip's RISC-V processors."""
    return sfpi_folder / "compiler" / "bin" / "riscv-tt-elf-g++"
