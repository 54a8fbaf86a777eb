"""Creating TileLang's environment: ``ttexplore setup gpu``."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from ttexplore.backends.environments import (
    VERIFIED,
    Report,
    absolute,
    as_backend_error,
    check,
    check_room,
    forget_unfinished,
    installed,
    pip,
    python_candidates,
    run,
    site_packages,
    sole_use,
    step,
    unverify,
)
from ttexplore.errors import BackendError
from ttexplore.gpu.environment import (
    KIND,
    SET_UP,
    TILELANG_VERSION,
    GpuEnvironment,
    default_environment_folder,
    environment_fault,
    recorded_environment,
    write_environment,
)

# TileLang imports torch, but no GPU is used: the build for the CPU, if its index answers, is smaller by 3 GB.
TORCH = "torch==2.13.0"
TORCH_INDEX = "https://download.pytorch.org/whl/cpu"
TILELANG = f"tilelang=={TILELANG_VERSION}"
NEEDED_BYTES = 3 << 30


def set_up(folder: Path | None = None, *, python: Path | None = None, report: Report = print) -> GpuEnvironment:
    """Create or complete the environment in `folder`, and return it; it has imported TileLang then.

    `python` is the interpreter to build on, by default the first suitable one found. `report` is called with a message
    for each change. Raises BackendError if a step fails, with what to do; completed steps are kept. Raises UsageError
    for folders with other content.
    """
    base = absolute(folder or default_environment_folder())
    with as_backend_error(f"the set-up in {base}"):
        KIND.mark(base)
        with sole_use(base):
            return _set_up(base, python, report)


def remove(folder: Path | None = None) -> bool:
    """Delete the environment in `folder`; returns False if there is none.

    Raises UsageError for a folder that set-up did not create, BackendError while a set-up is running in it.
    """
    return KIND.remove(folder or default_environment_folder())


def _set_up(base: Path, python: Path | None, report: Report) -> GpuEnvironment:
    (base / "logs").mkdir(exist_ok=True)
    interpreter = KIND.interpreter(base, python, lambda: KIND.find_python(_python_candidates()), report)
    packages = site_packages(interpreter, KIND)
    if not installed(packages, TILELANG):
        check_room(base, NEEDED_BYTES)
        forget_unfinished(packages)
        if not any(packages.glob("torch-*.dist-info/RECORD")):
            _install_torch(interpreter, base, report)
        with step(report, base, f"packages {TILELANG}, {TORCH}"):
            pip(interpreter, base, "install", TILELANG, TORCH)
    environment = GpuEnvironment(base, interpreter, TILELANG_VERSION, packages / "tilelang")
    fault = environment_fault(environment)
    if fault:
        raise BackendError(
            "B021", f"the environment is incomplete: {fault}", hint=f"run {SET_UP} --remove, then {SET_UP}"
        )
    before: GpuEnvironment | None = None
    with contextlib.suppress(BackendError):
        before = recorded_environment(base)
    if environment != before:
        unverify(base)
    if not (base / VERIFIED).exists():
        with step(report, base, f"importing {TILELANG}"):
            done = run([str(interpreter), "-c", "import tilelang; print(tilelang.__version__)"], base, "import", 300.0)
            check(done, f"importing {TILELANG}", base)
        write_environment(environment)
        (base / VERIFIED).touch()
    return environment


def _install_torch(interpreter: Path, base: Path, report: Report) -> None:
    """Install torch's build for the CPU; without its index, pip installs the other one with TileLang."""
    try:
        with step(report, base, f"package {TORCH} for the CPU"):
            words = ("--no-deps", "--timeout", "10", "--retries", "0", "--index-url", TORCH_INDEX, TORCH)
            pip(interpreter, base, "install", *words)
    except BackendError as error:
        report(f"  not available ({error.message}); using the build of pip's index")


def _python_candidates() -> Iterator[Path]:
    yield Path(sys.executable)
    yield from python_candidates(KIND.python_versions)
