"""The doctor's findings about the device environment."""

from __future__ import annotations

from pathlib import Path

from ttexplore.backends.finding import Finding
from ttexplore.backends.ttnn.environment import (
    CARD_DEVICES,
    SET_UP,
    TTNN_VERSION,
    WOLFPINE_VERSION,
    card_architecture,
    read_environment,
)
from ttexplore.backends.ttnn.setup import find_python
from ttexplore.errors import BackendError


def findings() -> tuple[Finding, ...]:
    """Check the SDK, its compiler, the simulated chips and the card, all of which are optional."""
    card = _card(CARD_DEVICES.exists(), card_architecture())
    try:
        environment = read_environment()
    except BackendError as error:
        return Finding("backend ttnn", False, False, error.message, error.hint), _python(), card
    version = environment.ttnn_version
    remark = "" if version == TTNN_VERSION else f" (the emitted code is for {TTNN_VERSION})"
    chips = ", ".join(environment.wolfpine_folders)
    get_wolfpine = (
        SET_UP if environment.managed else f"{environment.python} -m pip install wolfpine=={WOLFPINE_VERSION}"
    )
    libraries = sorted(file.name for file in (environment.ttsim_folder or Path("/nowhere")).glob("libttsim_*.so"))
    ttsim = f"{', '.join(libraries) or 'no library'} in {environment.ttsim_folder}"
    return (
        Finding("backend ttnn", True, False, str(environment.folder)),
        Finding("  Python", True, False, str(environment.python)),
        Finding("  ttnn", True, False, version + remark),
        Finding("  device compiler", True, False, environment.compiler_version),
        Finding("  wolfpine", bool(chips), False, f"simulated {chips}" if chips else "not installed", get_wolfpine),
        Finding(
            "  ttsim", bool(libraries), False, ttsim if environment.ttsim_folder else "not set up",
            f"{SET_UP} --ttsim FOLDER, with the libraries of a release of tenstorrent/ttsim",
        ),
        card,
    )  # fmt: skip


def _python() -> Finding:
    try:
        return Finding("  Python 3.12 or 3.10", True, False, str(find_python()))
    except BackendError as none:
        return Finding("  Python 3.12 or 3.10", False, False, "none found", none.hint)


def _card(driven: bool, architecture: str | None) -> Finding:
    match driven, architecture:
        case True, str():
            return Finding("  card", True, False, architecture)
        case True, None:
            return Finding("  card", False, False, "neither Wormhole nor Blackhole", "use a supported card")
        case False, str():
            return Finding("  card", False, False, f"{architecture}, without a driver", "install the driver, tt-kmd")
        case _:
            return Finding("  card", True, False, "none (not required)")
