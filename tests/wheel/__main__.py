"""Build the package and try it where there is no checkout: `make dist` runs this.

    python -m tests.wheel

Builds source distribution and wheel into `dist` and checks their metadata. Then installs the wheel into a fresh
environment for each version of Python in the classifiers, outside of the checkout, and runs `smoke.py` there, and
unpacks the source distribution, and runs the demo and some tests there. A version that is not on this machine is
downloaded if that is possible; with CI=true, a missing one is a failure.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
DIST = REPOSITORY / "dist"
# Compiled files and downloaded packages of all versions; without SDK, so that hints about that are tried as well.
CACHE = REPOSITORY / ".cache" / "wheel"
UV = Path(sys.executable).with_name("uv")
TWINE = "twine>=7"
# So many versions are tried at a time.
WORKERS = 2
# Tests that need no more than what was unpacked.
TESTS = ("tests/test_binder.py", "tests/test_course.py", "tests/test_layers.py", "tests/test_target.py")


class Failed(Exception):
    """A command failed; the text says which one, and what it printed."""


def run(*command: str | Path, folder: Path = REPOSITORY) -> str:
    """Run a command without the settings of this environment, and return what it prints. Raises Failed."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment |= {
        "XDG_CACHE_HOME": str(CACHE), "UV_CACHE_DIR": str(CACHE / "uv"), "UV_PYTHON_INSTALL_DIR": str(CACHE / "python"),
        "OPENBLAS_NUM_THREADS": "1",
    }  # fmt: skip
    done = subprocess.run(
        [str(word) for word in command], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise Failed(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stdout}")
    return done.stdout


def versions() -> list[str]:
    """Return the versions of Python that the classifiers promise."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = (re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", one) for one in project["classifiers"])
    return [one[1] for one in found if one]


def interpreter(version: str) -> Path | None:
    """Return an interpreter of a version: the one on PATH, one that pyenv has built, or one that uv downloads."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    candidates = [shutil.which(f"python{version}"), *sorted((pyenv / "versions").glob(f"{version}.*/bin/python"))]
    for candidate in filter(None, candidates):
        try:
            if version in run(candidate, "--version"):
                return Path(candidate)
        except Failed:  # a shim of pyenv for a version that is not selected
            continue
    try:
        run(UV, "python", "install", "--quiet", version)
        return Path(run(UV, "python", "find", "--managed-python", version).strip())
    except Failed:
        return None


def build() -> tuple[Path, Path]:
    """Build source distribution and, from that, the wheel, and check their metadata."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(UV, "build", "--out-dir", DIST, ".")
    (source,), (wheel,) = DIST.glob("*.tar.gz"), DIST.glob("*.whl")
    run(UV, "tool", "run", "--from", TWINE, "twine", "check", "--strict", source, wheel)
    return source, wheel


def try_wheel(wheel: Path, version: str, python: Path, folder: Path) -> str:
    """Install the wheel, first without extras, and run the smoke program in an empty folder."""
    folder.mkdir()
    environment = folder / "environment"
    shutil.copy(REPOSITORY / "tests" / "wheel" / "smoke.py", folder)
    run(UV, "venv", "--quiet", "--python", python, environment, folder=folder)
    said: list[str] = []
    for what, extras in (("bare", ""), ("whole", "[lab,port]")):
        run(UV, "pip", "install", "--quiet", "--python", environment, f"{wheel}{extras}", folder=folder)
        said.append(run(environment / "bin" / "python", folder / "smoke.py", what, folder=folder).splitlines()[-1])
    return "\n".join(said)


def try_source(source: Path, folder: Path) -> str:
    """Unpack the source distribution: it has all files of the repository, its demo runs, and so do some tests."""
    with tarfile.open(source) as archive:
        archive.extractall(folder, filter="data")
    (root,) = folder.iterdir()
    if (REPOSITORY / ".git").exists():
        tracked = run("git", "ls-files").splitlines()
        if lacking := [name for name in tracked if (REPOSITORY / name).exists() and not (root / name).exists()]:
            raise Failed(f"{source.name} lacks {', '.join(lacking)}")
    run(UV, "venv", "--quiet", "--python", sys.executable, root / ".venv")
    run(UV, "pip", "install", "--quiet", "--python", root / ".venv", "--editable", ".[lab,port,test]", folder=root)
    (root / ".venv" / "installed").touch()
    run("make", "demo", folder=root)
    run(".venv/bin/python", "-m", "pytest", "-q", "-p", "no:nbval", *TESTS, folder=root)
    return f"{source.name}: the demo and {len(TESTS)} files of tests work"


def main() -> int:
    started = time.monotonic()
    try:
        source, wheel = build()
    except Failed as error:
        print(error)
        return 1
    print(f"{source.name} ({source.stat().st_size:,} bytes), {wheel.name} ({wheel.stat().st_size:,} bytes)", flush=True)
    found = {version: interpreter(version) for version in versions()}
    failures = 0
    for version in [version for version, python in found.items() if python is None]:
        failures += os.environ.get("CI") == "true"
        print(f"Python {version} is not on this machine and cannot be downloaded", flush=True)
    with tempfile.TemporaryDirectory(prefix="ttexplore-wheel-") as name, ThreadPoolExecutor(WORKERS) as pool:
        folder = Path(name)
        tasks = [
            pool.submit(try_wheel, wheel, version, python, folder / version)
            for version, python in found.items()
            if python is not None
        ]
        tasks.append(pool.submit(try_source, source, folder / "source"))
        for task in tasks:
            try:
                print(task.result(), flush=True)
            except Failed as error:
                failures += 1
                print(error, flush=True)
    print(f"{time.monotonic() - started:.0f} s")
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main())
