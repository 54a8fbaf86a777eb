"""Creating the SDK's environment: ``ttexplore setup device``.

Each step checks whether its result exists, so an interrupted set-up continues where it stopped, and a complete one does
nothing. Nothing is installed outside the environment's folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import http.client
import json
import lzma
import os
import platform
import re
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
    SET_UP,
    TTNN_VERSION,
    VERIFIED,
    WOLFPINE_VERSION,
    DeviceEnvironment,
    compiler_file,
    default_environment_folder,
    environment_fault,
    recorded_environment,
    write_environment,
)
from ttexplore.errors import BackendError, UsageError

Report = Callable[[str], None]

# ttnn has wheels only for these versions of Python.
PYTHON_VERSIONS = ("3.12", "3.10")
PACKAGES = (f"ttnn=={TTNN_VERSION}", f"wolfpine=={WOLFPINE_VERSION}", "zstandard==0.25.0")
# Contains the device compiler 7.87.0, which ttnn 0.81.1 accepts although it requests 7.89.0 (real-stack.md).
COMPILER_WHEEL = "jax-tt-plugin==0.1.3"
# Only a folder with this file is changed or removed.
MARKER = "set-up-began"
NEEDED_BYTES = 4 << 30
DOWNLOAD_TIMEOUT_SECONDS = 10.0
INSTALL_LIMIT_SECONDS = 1800.0


def set_up(
    folder: Path | None = None, *, python: Path | None = None, sdk_python: Path | None = None,
    ttsim_folder: Path | None = None, report: Report = print,
) -> DeviceEnvironment:  # fmt: skip
    """Create or complete the environment in `folder`, and return it.

    `python` is the interpreter to build on, by default the first suitable one found. `sdk_python` names an interpreter
    that already has ttnn, for a card: then nothing is installed. `ttsim_folder` holds the libraries of ttsim. The last
    two are remembered from earlier set-ups. `report` is called with a message for each change.

    Raises BackendError if a step fails, with what to do; completed steps are kept. Raises UsageError for arguments that
    exclude each other and for folders with other content.
    """
    if python is not None and sdk_python is not None:
        raise UsageError(
            "U013",
            "python and sdk_python exclude each other",
            hint="use --python to install the SDK on a Python, or --sdk-python if that Python has the SDK already",
        )
    place = _absolute(folder or default_environment_folder())
    if ttsim_folder is not None:
        ttsim_folder = _absolute(ttsim_folder)
        _check_ttsim(ttsim_folder)
    with _as_backend_error(f"the set-up in {place}"):
        _mark(place)
        with _sole_use(place):
            return _set_up(place, python, sdk_python, ttsim_folder, report)


def _set_up(
    place: Path, python: Path | None, sdk_python: Path | None, ttsim_folder: Path | None, report: Report
) -> DeviceEnvironment:
    (place / "logs").mkdir(exist_ok=True)
    before: DeviceEnvironment | None = None
    with contextlib.suppress(BackendError):
        before = recorded_environment(place)
    if before is not None:
        ttsim_folder = ttsim_folder or before.ttsim_folder
        if python is None and sdk_python is None and not before.managed:
            sdk_python = before.python
    if sdk_python is not None:
        made = _users_own(place, _executable(sdk_python), ttsim_folder)
    else:
        made = _managed(place, python, ttsim_folder, report)
    fault = environment_fault(made)
    if fault:
        raise BackendError(
            "B021", f"the environment is incomplete: {fault}", hint=f"run {SET_UP} --remove, then {SET_UP}"
        )
    if made != before:
        _unverify(place)
        write_environment(made)
        if sdk_python is not None:
            report(f"using ttnn {made.ttnn_version} of {made.python}")
            if made.ttnn_version != TTNN_VERSION:
                report(f"  note: the emitted code is for ttnn {TTNN_VERSION}; other versions may reject it")
        if ttsim_folder is not None and (before is None or before.ttsim_folder != ttsim_folder):
            report(f"using ttsim in {ttsim_folder}")
    return made


def remove(folder: Path | None = None) -> bool:
    """Delete the environment in `folder`; returns False if there is none.

    Raises UsageError for a folder that set-up did not create, BackendError while a set-up is running in it.
    """
    place = (folder or default_environment_folder()).expanduser().resolve()
    if not place.exists():
        return False
    if not (place / MARKER).is_file():
        raise UsageError("U012", f"{place} is not a device environment", hint="to delete it, remove it yourself")
    with _as_backend_error(f"removing {place}"), _sole_use(place):
        # The marker is removed last, so that an interrupted removal can be repeated.
        for entry in place.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            elif entry.name != MARKER:
                entry.unlink()
        (place / MARKER).unlink()
        place.rmdir()
    return True


def _absolute(path: Path) -> Path:
    """`path` as an absolute path, with links unresolved: an environment's Python is a link."""
    return path.expanduser().absolute()


@contextlib.contextmanager
def _as_backend_error(what: str) -> Generator[None]:
    """Turn errors of the operating system, such as a full disk, into BackendError."""
    try:
        yield
    except OSError as error:
        raise BackendError(
            "B021", f"{what} failed: {error}", hint="fix that, then run it again: it continues from here"
        ) from error


def _mark(place: Path) -> None:
    """Mark the folder as created by set-up. Raises UsageError if it has other content."""
    try:
        if place.exists() and any(place.iterdir()) and not (place / MARKER).is_file():
            raise UsageError(
                "U012",
                f"{place} is not empty, and not a device environment",
                hint="choose another folder with --folder",
            )
        place.mkdir(parents=True, exist_ok=True)
        (place / MARKER).touch()
    except OSError as error:
        raise BackendError(
            "B021", f"{place} cannot be written: {error.strerror}", hint="choose another folder with --folder"
        ) from error


@contextlib.contextmanager
def _sole_use(place: Path) -> Generator[None]:
    """Exclude other set-ups and removals."""
    with (place / MARKER).open("a") as marker:
        try:
            fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise BackendError(
                "B021", f"another set-up is running in {place}", hint="wait until it has finished"
            ) from error
        yield


def _unverify(place: Path) -> None:
    """Delete the record of verification, because the environment has changed."""
    (place / VERIFIED).unlink(missing_ok=True)


def _check_ttsim(folder: Path) -> None:
    if not any(folder.glob("libttsim_*.so")):
        raise UsageError(
            "U012", f"there is no libttsim_wh.so or libttsim_bh.so in {folder}", hint="give the folder with them"
        )


# An SDK that the user has installed

# Prints where ttnn and wolfpine are, and the version of ttnn; an SDK built from source may have none.
LOOK = """\
import importlib.metadata, importlib.util, json, os, ttnn
try:
    version = importlib.metadata.version("ttnn")
except importlib.metadata.PackageNotFoundError:
    version = "unknown"
wolfpine = importlib.util.find_spec("framework")
places = list(wolfpine.submodule_search_locations or ()) if wolfpine else []
print(json.dumps([os.path.dirname(ttnn.__file__), version, places]))
"""


def _users_own(place: Path, python: Path, ttsim_folder: Path | None) -> DeviceEnvironment:
    done = _run([str(python), "-c", LOOK], place, "sdk", 120.0)
    name_it = "give the Python for which your SDK is installed"
    if done.returncode != 0:
        raise BackendError("B021", f"{python} cannot import ttnn: {_last_words(done)}", hint=name_it)
    try:
        folder, version, wolfpine = json.loads(done.stdout.splitlines()[-1])
    except (LookupError, ValueError, TypeError):
        raise BackendError("B021", f"{python} cannot import ttnn: its output is not Python's", hint=name_it) from None
    sdk = Path(folder)
    compiler = next((f for f in _compiler_folders(sdk) if compiler_file(f).exists()), None)
    if compiler is None:
        raise BackendError(
            "B021",
            f"the SDK of {python} has no device compiler in {sdk / 'runtime' / 'sfpi'} or /opt/tenstorrent/sfpi",
            hint="install sfpi as described in the SDK's documentation",
        )
    told = _compiler_version(compiler, place)
    simulators = _wolfpine(Path(wolfpine[0])) if wolfpine else {}
    return DeviceEnvironment(place, python, version, sdk, compiler, told, simulators, ttsim_folder, False)


def _executable(python: Path) -> Path:
    """The full path of `python`, a path or a name on the PATH. Raises UsageError if it does not exist."""
    found = shutil.which(python.expanduser()) or shutil.which(_absolute(python))
    if found is None:
        raise UsageError(
            "U001", f"there is no program {python}", hint="give a Python interpreter, for example /usr/bin/python3.12"
        )
    return _absolute(Path(found))


def _compiler_folders(sdk: Path) -> tuple[Path, ...]:
    """The folders in which the SDK looks for its compiler."""
    return sdk / "runtime" / "sfpi", Path("/opt/tenstorrent/sfpi")


def _wolfpine(framework: Path) -> dict[str, Path]:
    """The folder of each simulated chip in wolfpine's package."""
    folders = {name: framework / "sim" / name for name in ("wormhole", "blackhole")}
    return {name: folder for name, folder in folders.items() if (folder / "run.sh").exists()}


# An SDK that is installed here


def _managed(place: Path, python: Path | None, ttsim_folder: Path | None, report: Report) -> DeviceEnvironment:
    interpreter = place / "venv" / "bin" / "python"
    if not _is_whole(interpreter):
        chosen = find_python() if python is None else _suitable(_executable(python))
        with _step(report, place, f"environment on {chosen}"):
            shutil.rmtree(place / "venv", ignore_errors=True)
            done = _run([str(chosen), "-m", "venv", str(place / "venv")], place, "venv", 300.0)
            _check(done, "creating the environment", place)
    packages = _site_packages(interpreter)
    if not all(_installed(packages, pin) for pin in PACKAGES):
        if shutil.disk_usage(place).free < NEEDED_BYTES:
            free = shutil.disk_usage(place).free / 2**30
            raise BackendError(
                "B021",
                f"{place} has {free:.1f} GiB free, but {NEEDED_BYTES >> 30} GiB are required",
                hint="free space, or choose another folder with --folder",
            )
        with _step(report, place, f"packages {', '.join(PACKAGES)}"):
            _forget_unfinished(packages)
            _pip(interpreter, place, "install", *PACKAGES)
    sdk = packages / "ttnn"
    compiler = _provide_compiler(place, interpreter, sdk, report)
    told = _compiler_version(compiler, place)
    wolfpine = _wolfpine(packages / "framework")
    return DeviceEnvironment(place, interpreter, TTNN_VERSION, sdk, compiler, told, wolfpine, ttsim_folder, True)


def find_python() -> Path:
    """Find the first Python that ttnn has wheels for and that can create environments. Raises BackendError."""
    tried: list[str] = []
    for candidate in _python_candidates():
        if str(candidate) in tried:
            continue
        tried.append(str(candidate))
        if _suits(candidate):
            return candidate
    wanted = " or ".join(PYTHON_VERSIONS)
    looked = (
        f"tried {', '.join(tried)}" if tried else "none was found on the PATH or in the folders of pyenv, uv and conda"
    )
    raise BackendError(
        "B021",
        f"ttnn needs Python {wanted} with venv, which was not found ({looked})",
        hint="install one (Debian, Ubuntu: apt install python3.12-venv; or: pyenv install 3.12; or: uv python install "
        "3.12) or give its path: ttexplore setup device --python /path/to/python3.12",
    )


def _python_candidates() -> Iterator[Path]:
    for name in (*(f"python{version}" for version in PYTHON_VERSIONS), "python3"):
        for folder in os.environ.get("PATH", "").split(os.pathsep):
            if folder and (Path(folder) / name).is_file():
                yield _absolute(Path(folder) / name)
    roots = {Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv"), Path.home() / ".pyenv"}
    for version in PYTHON_VERSIONS:
        for root in sorted(roots):
            yield from sorted(root.glob(f"versions/{version}*/bin/python{version}"))
        yield from sorted(Path.home().glob(f".local/share/uv/python/cpython-{version}*/bin/python{version}"))
        yield from sorted(Path.home().glob(f"mini*3/bin/python{version}"))


def _suits(python: Path) -> bool:
    return _version_or_fault(python) in PYTHON_VERSIONS


def _suitable(python: Path) -> Path:
    """`python`, if ttnn has wheels for it and it can create environments. Raises BackendError."""
    found = _version_or_fault(python)
    if found not in PYTHON_VERSIONS:
        what = f"is Python {found}" if re.fullmatch(r"\d+\.\d+", found) else found
        raise BackendError(
            "B021",
            f"{python} {what}; ttnn needs Python {' or '.join(PYTHON_VERSIONS)} with venv",
            hint="use another one, or install its venv (Debian, Ubuntu: apt install python3.12-venv)",
        )
    return python


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
        return f"does not run or has no venv ({_last_words(done)})"
    return done.stdout.strip()


def _is_whole(python: Path) -> bool:
    """Whether the environment of `python` is complete: venv installs pip last."""
    return python.exists() and _suits(python) and any(_site_packages(python).glob("pip-*.dist-info/RECORD"))


def _site_packages(python: Path) -> Path:
    found = sorted((python.parents[1] / "lib").glob("python3*/site-packages"))
    if not found:
        raise BackendError(
            "B021", f"{python.parents[1]} is not a Python environment", hint=f"run {SET_UP} --remove, then {SET_UP}"
        )
    return found[0]


def _installed(packages: Path, pin: str) -> bool:
    # pip writes the record of a package after its files.
    name, _, version = pin.partition("==")
    return (packages / f"{name}-{version}.dist-info" / "RECORD").exists()


def _forget_unfinished(packages: Path) -> None:
    """Remove packages of an interrupted pip: it treats a package without its record as installed."""
    for information in packages.glob("*.dist-info"):
        if not (information / "RECORD").exists():
            shutil.rmtree(information)


# The compiler


def _provide_compiler(place: Path, python: Path, sdk: Path, report: Report) -> Path:
    """The folder of the compiler that the SDK finds; installs one if there is none, or if ours does not run."""
    own, link = place / "sfpi", sdk / "runtime" / "sfpi"
    if own.exists() and not _compiles(own, place):
        report(f"replacing the device compiler in {own}, which does not run")
        shutil.rmtree(own)
    for folder in _compiler_folders(sdk):
        if compiler_file(folder).exists():
            return folder
    if not own.exists():
        _get_compiler(place, python, sdk, report)
    if link.is_dir() and not link.is_symlink():
        shutil.rmtree(link)
    link.unlink(missing_ok=True)
    link.symlink_to(own.resolve())
    return link


def _compiles(sfpi: Path, place: Path) -> bool:
    """Whether the compiler compiles an empty text for Wormhole, which shows that more than its driver exists."""
    try:
        command = [str(compiler_file(sfpi)), "-mcpu=tt-wh", "-x", "c++", "-S", "-o", "-", "/dev/null"]
        return _run(command, place, "compiler", 60.0).returncode == 0
    except BackendError:
        return False


def _usable(sfpi: Path, place: Path) -> Path:
    if not _compiles(sfpi, place):
        raise BackendError("B021", "the compiler does not run on this machine", hint=_logs(place))
    return sfpi


def _get_compiler(place: Path, python: Path, sdk: Path, report: Report) -> None:
    """Install the device compiler in ``sfpi``: by the SDK's own download, otherwise from the wheel that contains it."""
    for old in place.glob("unfinished-*"):
        shutil.rmtree(old)
    with tempfile.TemporaryDirectory(prefix="unfinished-", dir=place) as name:
        staging = Path(name)
        try:
            with _step(report, place, "device compiler, the SDK's own download"):
                got = _usable(_download_compiler(sdk / "tt_metal" / "sfpi-version", staging), place)
        except DOWNLOAD_ERRORS as error:
            report(f"  not available ({_reason(error)}); using the wheel {COMPILER_WHEEL}")
            with _step(report, place, f"device compiler from {COMPILER_WHEEL}"):
                got = _usable(_compiler_from_wheel(place, python, staging), place)
        _link_wormhole_libraries(got / "compiler")
        # A single rename completes it: an interrupted extraction never counts as a compiler.
        got.rename(place / "sfpi")


DOWNLOAD_ERRORS = (OSError, EOFError, http.client.HTTPException, lzma.LZMAError, tarfile.TarError, BackendError)


def _reason(error: Exception) -> str:
    match error:
        case urllib.error.HTTPError():
            return f"{error.code} {error.reason}"
        case urllib.error.URLError():
            return str(error.reason)
        case BackendError():
            return error.message
        case _:
            return str(error) or type(error).__name__


def _download_compiler(version_file: Path, staging: Path) -> Path:
    """Download the release that the SDK names, and check its hash."""
    lines = (line.partition("=") for line in version_file.read_text(encoding="utf-8").splitlines())
    facts = {name: value.strip("'\"") for name, separator, value in lines if separator}
    system = f"{platform.machine()}_{_distribution()}"
    try:
        release, repository = facts["sfpi_version"], facts["sfpi_repo"]
        kind, wanted = facts["sfpi_hashtype"], facts[f"sfpi_{system}_txz_hash"]
    except KeyError as error:
        raise BackendError("B021", f"{version_file} does not name a {error.args[0]}", hint="") from error
    url = f"{repository}/releases/download/{release}/sfpi_{release}_{system}.txz"
    archive = staging / "sfpi.txz"
    with urllib.request.urlopen(url, timeout=DOWNLOAD_TIMEOUT_SECONDS) as answer, archive.open("wb") as file:
        shutil.copyfileobj(answer, file)
    with archive.open("rb") as file:
        digest = hashlib.file_digest(file, kind).hexdigest()
    if digest != wanted:
        raise BackendError("B021", "the downloaded archive does not have the hash that the SDK names", hint="try again")
    with tarfile.open(archive, "r:xz") as content:
        content.extractall(staging, filter="data")
    archive.unlink()
    return _unpacked(staging, "*/compiler/bin/riscv-tt-elf-g++")


def _distribution() -> str:
    """The SDK's name for this system's family; Debian for unknown ones."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return "debian"
    return "fedora" if "fedora" in (release.get("ID"), *release.get("ID_LIKE", "").split()) else "debian"


def _unpacked(staging: Path, pattern: str) -> Path:
    found = next(iter(sorted(staging.glob(pattern))), None)
    if found is None:
        raise BackendError("B021", "the archive contains no riscv-tt-elf-g++", hint="")
    return found.parents[2]


def _compiler_from_wheel(place: Path, python: Path, staging: Path) -> Path:
    """Extract the compiler from the wheel. It is under the GPL: the copy is for local use and never redistributed."""
    _pip(python, place, "download", "--no-deps", "--no-cache-dir", "--dest", str(staging), COMPILER_WHEEL)
    wheel = next(staging.glob("*.whl"))
    script = Path(__file__).with_name("extract_compiler.py")
    done = _run([str(python), str(script), str(wheel), str(staging)], place, "extract", 900.0)
    _check(done, f"extracting the compiler from {COMPILER_WHEEL}", place)
    made = _unpacked(staging, "runtime/sfpi/compiler/bin/riscv-tt-elf-g++")
    for file in made.rglob("*"):
        if not file.is_symlink():
            file.chmod(file.stat().st_mode | 0o200)
    return made


def _compiler_version(sfpi: Path, place: Path) -> str:
    """The compiler's own version text. Raises BackendError if it does not run."""
    done = _run([str(compiler_file(sfpi)), "--version"], place, "compiler", 60.0)
    _check(done, f"the device compiler in {sfpi}", place)
    return done.stdout.splitlines()[0].rpartition("(")[2].replace(")", ",") if done.stdout else "unknown"


def _link_wormhole_libraries(compiler: Path) -> None:
    """Link Wormhole's libraries to the default ones (plain rv32i) if the archive has only those of Blackhole.

    Without the links, no C++ header is found for Wormhole.
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
    again = "then run it again: it continues from here"
    if done.returncode != 0:
        # Without a network, pip's last line is that there is no such version, which is misleading.
        broken = re.findall(r"connection broken by '(.*)': /", done.stderr)
        if broken:
            why = re.sub(r"<[^<>]*>: ", "", broken[-1])
            raise BackendError(
                "B021", f"pip cannot reach its index: {why}", hint=f"check the network or proxy, {again}"
            )
    _check(done, f"pip {command}", place, hint=f"check pip's settings and index, {again}")


def _run(command: Sequence[str], place: Path, name: str, limit_seconds: float) -> subprocess.CompletedProcess[str]:
    """Run a command in the environment's folder, without input, and save its output in the logs."""
    log = place / "logs" / f"setup-{name}.log"
    with log.open("w+", encoding="utf-8", errors="replace") as complaints:
        complaints.write(f"{' '.join(command)}\n")
        complaints.flush()
        start = complaints.tell()
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=complaints, encoding="utf-8",
                errors="replace", timeout=limit_seconds, check=False, cwd=place,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise BackendError(
                "B021", f"{Path(command[0]).name} did not end within {limit_seconds:.0f} seconds", hint=_logs(place)
            ) from error
        except OSError as error:
            raise BackendError("B021", f"{command[0]} does not run: {error.strerror}", hint=_logs(place)) from error
        complaints.seek(start)
        done.stderr = complaints.read()
        complaints.write(done.stdout)
    return done


def _logs(place: Path) -> str:
    return f"read the logs in {place / 'logs'}"


def _check(done: subprocess.CompletedProcess[str], what: str, place: Path, hint: str = "") -> None:
    if done.returncode != 0:
        raise BackendError(
            "B021", f"{what} failed (exit status {done.returncode}): {_last_words(done)}", hint=hint or _logs(place)
        )


def _last_words(done: subprocess.CompletedProcess[str]) -> str:
    """The line that shows why a command failed: its last error, otherwise its last line."""
    lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    return next((line for line in reversed(lines) if line.startswith("ERROR")), lines[-1] if lines else "no output")


@contextlib.contextmanager
def _step(report: Report, place: Path, what: str) -> Generator[None]:
    _unverify(place)
    report(f"{what} ...")
    start = time.monotonic()
    yield
    report(f"  done in {time.monotonic() - start:.0f} s")
