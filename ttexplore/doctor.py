"""What is installed, what is missing, and the command that mends it."""

from __future__ import annotations

import importlib.util
import platform
import shutil
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from ttexplore.errors import BackendError

# The versions that the package is built for (pyproject.toml); None takes any that is installed.
REQUIRED_PACKAGES: dict[str, str | None] = {
    "apache-tvm": "0.27.0.post1",
    "apache-tvm-ffi": "0.1.14.post1",
    "numpy": None,
    "ml_dtypes": None,
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked for. `found` says what is there, `mend` how to get what is not."""

    name: str
    ok: bool
    required: bool
    found: str
    mend: str = ""

    def __str__(self) -> str:
        mark = "ok     " if self.ok else ("MISSING" if self.required else "absent ")
        return f"{mark}  {self.name:<22} {self.found}" + ("" if self.ok else f"\n         {'':<22} mend: {self.mend}")


def examine() -> tuple[Finding, ...]:
    """Looks at Python, the packages, each backend and the optional tools."""
    packages = tuple(_package(name, version) for name, version in REQUIRED_PACKAGES.items())
    return (_python(), *packages, *_backends(packages), *_tools())


def _python() -> Finding:
    return Finding(
        "Python", sys.version_info >= (3, 11), True, platform.python_version(), "install Python 3.11 or newer"
    )


def _package(name: str, version: str | None) -> Finding:
    mend = (
        f"{sys.executable} -m pip install '{name}=={version}'" if version else f"{sys.executable} -m pip install {name}"
    )
    try:
        found = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Finding(name, False, True, "not installed", mend)
    if version not in (None, found):
        return Finding(name, False, True, f"{found} is installed, {version} is needed", mend)
    return Finding(name, True, True, found)


def _backends(packages: tuple[Finding, ...]) -> tuple[Finding, ...]:
    broken = next((package for package in packages if not package.ok), None)
    if broken is not None:
        return tuple(
            Finding(f"backend {name}", False, True, f"needs {broken.name}", broken.mend)
            for name in ("reference", "interpreter", "emulator", "ttnn")
        )
    from ttexplore.backends.emulator import Emulator
    from ttexplore.backends.emulator.compiler import find_compiler

    compiler = find_compiler()
    missing = Emulator().missing()
    what, _, mend = (missing or "").partition(": ")
    emulator = Finding(
        "backend emulator", missing is None, True, " ".join(compiler.command) if compiler else what, mend
    )
    always = (Finding(f"backend {name}", True, True, "always there") for name in ("reference", "interpreter"))
    return (*always, emulator, *_device())


def _device() -> tuple[Finding, ...]:
    """The parts of the backend ttnn; none of them is required."""
    from ttexplore.backends.ttnn.environment import (
        CARD_DEVICES,
        SET_UP,
        TTNN_VERSION,
        WOLFPINE_VERSION,
        card_architecture,
        read_environment,
    )
    from ttexplore.backends.ttnn.setup import find_python

    card = _card(CARD_DEVICES.exists(), card_architecture())
    try:
        environment = read_environment()
    except BackendError as error:
        try:
            python = Finding("  Python 3.12 or 3.10", True, False, str(find_python()))
        except BackendError as none:
            python = Finding("  Python 3.12 or 3.10", False, False, "none found", none.hint)
        return (
            Finding("backend ttnn", False, False, error.message, error.hint),
            python,
            card,
        )
    version = environment.ttnn_version
    other = "" if version == TTNN_VERSION else f" (the emitted text is for {TTNN_VERSION})"
    chips = ", ".join(environment.wolfpine_folders)
    get_wolfpine = (
        SET_UP if environment.managed else f"{environment.python} -m pip install wolfpine=={WOLFPINE_VERSION}"
    )
    libraries = sorted(file.name for file in (environment.ttsim_folder or Path("/nowhere")).glob("libttsim_*.so"))
    ttsim = f"{', '.join(libraries) or 'no library'} in {environment.ttsim_folder}"
    return (
        Finding("backend ttnn", True, False, str(environment.folder)),
        Finding("  Python", True, False, str(environment.python)),
        Finding("  ttnn", True, False, version + other),
        Finding("  device compiler", True, False, environment.compiler_version),
        Finding("  wolfpine", bool(chips), False, f"simulated {chips}" if chips else "not installed", get_wolfpine),
        Finding(
            "  ttsim", bool(libraries), False, ttsim if environment.ttsim_folder else "not set up",
            f"{SET_UP} --ttsim FOLDER, with the libraries of a release of tenstorrent/ttsim",
        ),
        card,
    )  # fmt: skip


def _card(driven: bool, architecture: str | None) -> Finding:
    match driven, architecture:
        case True, str():
            return Finding("  card", True, False, architecture)
        case True, None:
            return Finding("  card", False, False, "neither a Wormhole nor a Blackhole", "nothing else is supported")
        case False, str():
            return Finding("  card", False, False, f"{architecture}, without its driver", "install the driver, tt-kmd")
        case _:
            return Finding("  card", True, False, "none, and none is needed")


def _tools() -> tuple[Finding, ...]:
    lab = importlib.util.find_spec("jupyterlab") is not None
    dot = shutil.which("dot")
    version = metadata.version("jupyterlab") if lab else "for the notebooks"
    graphs = dot or "for other layouts of graphs"
    return (
        Finding("JupyterLab", lab, False, version, f"{sys.executable} -m pip install jupyterlab"),
        Finding("dot (Graphviz)", dot is not None, False, graphs, "apt-get install graphviz"),
    )
