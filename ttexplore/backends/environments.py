"""Creating environments for tools that ttexplore cannot import, as ``ttexplore setup`` does: the steps that they share.

Each step checks whether its result exists, so an interrupted set-up continues where it stopped, and a complete one does
nothing. Nothing is installed outside the environment's folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ttexplore.errors import BackendError, UsageError

Report = Callable[[str], None]

# Only a folder with this file is changed or removed.
MARKER = "set-up-began"
# The record that a program has run in the environment in its current state.
VERIFIED = "verified"
_INSTALL_LIMIT_SECONDS = 1800.0


@dataclass(frozen=True, slots=True)
class EnvironmentKind:
    """What distinguishes one environment from another: what it is called, the command that makes it, the package that
    decides about its Python, the versions of Python in order of preference, and how to install a venv and a Python."""

    name: str
    command: str
    package: str
    python_versions: tuple[str, ...]
    venv_hint: str
    python_hint: str

    def remove(self, folder: Path) -> bool:
        """Delete the environment in `folder`; returns False if there is none.

        Raises UsageError for a folder that set-up did not create, BackendError while a set-up is running in it.
        """
        root = folder.expanduser().resolve()
        if not root.exists():
            return False
        if not (root / MARKER).is_file():
            raise UsageError("U012", f"{root} is not a {self.name}", hint="to delete it, remove it yourself")
        with as_backend_error(f"removing {root}"), sole_use(root):
            # The marker is removed last, so that an interrupted removal can be repeated.
            for entry in root.iterdir():
                if entry.is_dir() and not entry.is_symlink():
                    shutil.rmtree(entry)
                elif entry.name != MARKER:
                    entry.unlink()
            (root / MARKER).unlink()
            root.rmdir()
        return True

    def mark(self, root: Path) -> None:
        """Mark the folder as created by set-up. Raises UsageError if it has other content."""
        try:
            if root.exists() and any(root.iterdir()) and not (root / MARKER).is_file():
                raise UsageError(
                    "U012",
                    f"{root} is not empty, and not a {self.name}",
                    hint="choose another folder with --folder",
                )
            root.mkdir(parents=True, exist_ok=True)
            (root / MARKER).touch()
        except OSError as error:
            raise BackendError(
                "B021", f"{root} cannot be written: {error.strerror}", hint="choose another folder with --folder"
            ) from error

    def interpreter(self, root: Path, python: Path | None, find: Callable[[], Path], report: Report) -> Path:
        """The Python of the environment, created on `python`, or on the one that `find` finds, if it is missing."""
        interpreter = root / "venv" / "bin" / "python"
        if not self._is_whole(interpreter):
            chosen = find() if python is None else self.suitable(executable(python))
            with step(report, root, f"environment on {chosen}"):
                shutil.rmtree(root / "venv", ignore_errors=True)
                done = run([str(chosen), "-m", "venv", str(root / "venv")], root, "venv", 300.0)
                check(done, "creating the environment", root)
        return interpreter

    def find_python(self, candidates: Iterable[Path]) -> Path:
        """Find the first candidate that suits. Raises BackendError."""
        tried: list[str] = []
        for candidate in candidates:
            if str(candidate) in tried:
                continue
            tried.append(str(candidate))
            if _version_or_fault(candidate) in self.python_versions:
                return candidate
        looked = (
            f"tried {', '.join(tried)}"
            if tried
            else "none was found on the PATH or in the folders of pyenv, uv and conda"
        )
        newest = self.python_versions[0]
        raise BackendError(
            "B021",
            f"{self.package} needs Python {self._wanted} with venv, which was not found ({looked})",
            hint=f"install one ({self.python_hint}) or give its path: {self.command} --python /path/to/python{newest}",
        )

    def suitable(self, python: Path) -> Path:
        """`python`, if the package has wheels for it and it can create environments. Raises BackendError."""
        version = _version_or_fault(python)
        if version not in self.python_versions:
            fault = f"is Python {version}" if re.fullmatch(r"\d+\.\d+", version) else version
            raise BackendError(
                "B021",
                f"{python} {fault}; {self.package} needs Python {self._wanted} with venv",
                hint=f"use another one, or install its venv ({self.venv_hint})",
            )
        return python

    @property
    def _wanted(self) -> str:
        return " or ".join([", ".join(self.python_versions[:-1]), self.python_versions[-1]])

    def _is_whole(self, python: Path) -> bool:
        """Whether the environment of `python` is complete: venv installs pip last."""
        return (
            python.exists()
            and _version_or_fault(python) in self.python_versions
            and any(site_packages(python, self).glob("pip-*.dist-info/RECORD"))
        )


# Folders


def absolute(path: Path) -> Path:
    """`path` as an absolute path, with links unresolved: an environment's Python is a link."""
    return path.expanduser().absolute()


@contextlib.contextmanager
def as_backend_error(action: str) -> Generator[None]:
    """Turn errors of the operating system, such as a full disk, into BackendError."""
    try:
        yield
    except OSError as error:
        raise BackendError(
            "B021", f"{action} failed: {error}", hint="fix that, then run it again: it continues from here"
        ) from error


@contextlib.contextmanager
def sole_use(root: Path) -> Generator[None]:
    """Exclude other set-ups and removals."""
    with (root / MARKER).open("a") as marker:
        try:
            fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise BackendError(
                "B021", f"another set-up is running in {root}", hint="wait until it has finished"
            ) from error
        yield


def unverify(root: Path) -> None:
    """Delete the record of verification, because the environment has changed."""
    (root / VERIFIED).unlink(missing_ok=True)


def check_room(root: Path, needed_bytes: int) -> None:
    """Raises BackendError if the file system of the folder has less room."""
    free = shutil.disk_usage(root).free
    if free < needed_bytes:
        raise BackendError(
            "B021",
            f"{root} has {free / 2**30:.1f} GiB free, but {needed_bytes >> 30} GiB are required",
            hint="free space, or choose another folder with --folder",
        )


# Interpreters


def executable(python: Path) -> Path:
    """The full path of `python`, a path or a name on the PATH. Raises UsageError if it does not exist."""
    path = shutil.which(python.expanduser()) or shutil.which(absolute(python))
    if path is None:
        raise UsageError(
            "U001", f"there is no program {python}", hint="give a Python interpreter, for example /usr/bin/python3.12"
        )
    return absolute(Path(path))


def python_candidates(versions: Sequence[str]) -> Iterator[Path]:
    """The interpreters on the PATH and in the folders of pyenv, uv and conda, those of the first version first."""
    for name in (*(f"python{version}" for version in versions), "python3"):
        for folder in os.environ.get("PATH", "").split(os.pathsep):
            if folder and (Path(folder) / name).is_file():
                yield absolute(Path(folder) / name)
    roots = {Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv"), Path.home() / ".pyenv"}
    for version in versions:
        for root in sorted(roots):
            yield from sorted(root.glob(f"versions/{version}*/bin/python{version}"))
        yield from sorted(Path.home().glob(f".local/share/uv/python/cpython-{version}*/bin/python{version}"))
        yield from sorted(Path.home().glob(f"mini*3/bin/python{version}"))


def _version_or_fault(python: Path) -> str:
    """The version of an interpreter that can create environments, such as ``3.12``; otherwise why it cannot."""
    code = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run(
            [str(python), "-c", code], stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8",
            errors="replace", timeout=30.0, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"does not run ({error})"
    if done.returncode != 0:
        return f"does not run or has no venv ({last_words(done)})"
    return done.stdout.strip()


# Packages


def site_packages(python: Path, kind: EnvironmentKind) -> Path:
    """The packages of the environment of `python`. Raises BackendError if it is not one."""
    folders = sorted((python.parents[1] / "lib").glob("python3*/site-packages"))
    if not folders:
        raise BackendError(
            "B021",
            f"{python.parents[1]} is not a Python environment",
            hint=f"run {kind.command} --remove, then {kind.command}",
        )
    return folders[0]


def installed(packages: Path, pin: str) -> bool:
    """Whether a package is installed in this version, ``name==version``."""
    # pip writes the record of a package after its files.
    name, _, version = pin.partition("==")
    return (packages / f"{name}-{version}.dist-info" / "RECORD").exists()


def forget_unfinished(packages: Path) -> None:
    """Remove packages of an interrupted pip: it treats a package without its record as installed."""
    for information in packages.glob("*.dist-info"):
        if not (information / "RECORD").exists():
            shutil.rmtree(information)


# Commands


def pip(python: Path, root: Path, command: str, *words: str) -> None:
    """Run a command of pip. Raises BackendError, with pip's reason, if it fails."""
    done = run(
        [str(python), "-m", "pip", "--disable-pip-version-check", command, "--quiet", *words],
        root, f"pip-{command}", _INSTALL_LIMIT_SECONDS,
    )  # fmt: skip
    again = "then run it again: it continues from here"
    if done.returncode != 0:
        # Without a network, pip's last line is that there is no such version, which is misleading.
        broken = re.findall(r"connection broken by '(.*)': /", done.stderr)
        if broken:
            why = re.sub(r"<[^<>]*>: ", "", broken[-1])
            raise BackendError(
                "B021", f"pip cannot reach its index: {why}", hint=f"check the network or proxy, {again}"
            )
    check(done, f"pip {command}", root, hint=f"check pip's settings and index, {again}")


def run(command: Sequence[str], root: Path, name: str, limit_seconds: float) -> subprocess.CompletedProcess[str]:
    """Run a command in the environment's folder, without input, and save its output in the logs."""
    log = root / "logs" / f"setup-{name}.log"
    with log.open("w+", encoding="utf-8", errors="replace") as complaints:
        complaints.write(f"{' '.join(command)}\n")
        complaints.flush()
        start = complaints.tell()
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=complaints, encoding="utf-8",
                errors="replace", timeout=limit_seconds, check=False, cwd=root,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise BackendError(
                "B021", f"{Path(command[0]).name} did not end within {limit_seconds:.0f} seconds", hint=logs(root)
            ) from error
        except OSError as error:
            raise BackendError("B021", f"{command[0]} does not run: {error.strerror}", hint=logs(root)) from error
        complaints.seek(start)
        done.stderr = complaints.read()
        complaints.write(done.stdout)
    return done


def logs(root: Path) -> str:
    return f"read the logs in {root / 'logs'}"


def check(done: subprocess.CompletedProcess[str], action: str, root: Path, hint: str = "") -> None:
    """Raises BackendError, with its last words, if a command failed."""
    if done.returncode != 0:
        raise BackendError(
            "B021", f"{action} failed (exit status {done.returncode}): {last_words(done)}", hint=hint or logs(root)
        )


def last_words(done: subprocess.CompletedProcess[str]) -> str:
    """The line that shows why a command failed: its last error, otherwise its last line."""
    lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    return next((line for line in reversed(lines) if line.startswith("ERROR")), lines[-1] if lines else "no output")


@contextlib.contextmanager
def step(report: Report, root: Path, action: str) -> Generator[None]:
    """Report a step of the set-up, and its time."""
    unverify(root)
    report(f"{action} ...")
    start = time.monotonic()
    yield
    report(f"  done in {time.monotonic() - start:.0f} s")
