"""TileLang's environment: its own Python with TileLang, whose TVM and ours exclude each other.

`setup.py` creates it and writes ``environment.json`` last; this module reads that file and checks that all parts exist.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ttexplore.backends.cache import default_cache_folder
from ttexplore.backends.environments import EnvironmentKind
from ttexplore.errors import BackendError

TILELANG_VERSION = "0.1.15"
RECORD = "environment.json"
SET_UP = "ttexplore setup gpu"
# TileLang and torch have wheels for all of them.
KIND = EnvironmentKind(
    "GPU environment", SET_UP, "TileLang", ("3.11", "3.12", "3.13", "3.10"),
    "Debian, Ubuntu: apt install python3-venv",
    "Debian, Ubuntu: apt install python3.11-venv; or: pyenv install 3.11; or: uv python install 3.11",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class GpuEnvironment:
    """`folder` holds environment.json and logs. `python` imports TileLang, whose package is `package_folder`."""

    folder: Path
    python: Path
    tilelang_version: str
    package_folder: Path

    @property
    def include_folders(self) -> tuple[Path, ...]:
        """The headers that the generated source includes: TileLang's templates and CUTLASS."""
        return self.package_folder / "src", self.package_folder / "3rdparty" / "cutlass" / "include"


def default_environment_folder() -> Path:
    """The folder that set-up uses by default."""
    return default_cache_folder() / "gpu"


def read_environment(folder: Path | None = None) -> GpuEnvironment:
    """The environment in `folder`, by default the one of :func:`default_environment_folder`.

    Raises BackendError, with the command that fixes it, if there is none, if a part is missing, or if TileLang has
    another version than the one that set-up installs.
    """
    environment = recorded_environment(folder)
    fault = environment_fault(environment)
    if fault:
        raise BackendError(
            "B040", f"the GPU environment in {environment.folder} is broken: {fault}", hint=_set_up_command(folder)
        )
    return environment


def recorded_environment(folder: Path | None = None) -> GpuEnvironment:
    """The environment as recorded, without checking its parts. Raises BackendError if there is no record."""
    base = folder or default_environment_folder()
    try:
        record: dict[str, Any] = json.loads((base / RECORD).read_text(encoding="utf-8"))
        return GpuEnvironment(
            base, Path(record["python"]), str(record["tilelang_version"]), Path(record["package_folder"])
        )
    except FileNotFoundError as error:
        unfinished = base.exists() and any(base.iterdir())
        state = "its set-up did not finish" if unfinished else "it is not set up"
        raise BackendError(
            "B040", f"there is no GPU environment in {base}: {state}", hint=_set_up_command(folder)
        ) from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BackendError("B040", f"{base / RECORD} cannot be read: {error}", hint=_set_up_command(folder)) from error


def _set_up_command(folder: Path | None) -> str:
    return SET_UP + (f" --folder {folder}" if folder else "")


def write_environment(environment: GpuEnvironment) -> None:
    """Write environment.json: from then on, the environment counts as set up."""
    record = {
        "python": str(environment.python),
        "tilelang_version": environment.tilelang_version,
        "package_folder": str(environment.package_folder),
    }
    unfinished = environment.folder / f"{RECORD}.new"
    unfinished.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    unfinished.rename(environment.folder / RECORD)


def environment_fault(environment: GpuEnvironment) -> str | None:
    """The first missing or wrong part of the environment, None if it is intact. Quick: it only looks at files."""
    if not environment.python.exists():
        return f"its Python, {environment.python}, is missing"
    if not (environment.package_folder / "__init__.py").exists():
        return f"TileLang is missing from {environment.package_folder}"
    installed = sorted(environment.package_folder.parent.glob("tilelang-*.dist-info"))
    version = installed[0].name.removesuffix(".dist-info").removeprefix("tilelang-") if len(installed) == 1 else ""
    if version != TILELANG_VERSION:
        return f"TileLang {version or 'of an unknown version'} is installed, {TILELANG_VERSION} is required"
    return None
