"""Setting up the device environment, with a stand-in for Python and pip: no network, nothing installed."""

from __future__ import annotations

import fcntl
import hashlib
import io
import os
import stat
import subprocess
import tarfile
import urllib.error
from pathlib import Path

import pytest

import ttexplore.installation.doctor
from tests.typecheck import headers
from ttexplore.backends.ttnn import Ttnn, setup
from ttexplore.backends.ttnn.environment import (
    TTNN_VERSION,
    WOLFPINE_VERSION,
    card_architecture,
    compiler_file,
    default_environment_folder,
    read_environment,
    verified_file,
)
from ttexplore.backends.ttnn.setup import find_python, remove, set_up
from ttexplore.errors import BackendError, UsageError

# Answers like the parts of Python that set-up calls: the version, venv, pip install and download, the extraction.
INTERPRETER = """#!/bin/sh
echo "$@" >> "{log}"
case "$*" in
  *ensurepip*) {ask}
    echo {version} ;;
  *"import importlib.metadata"*) {look} ;;
  "-m venv "*)
    mkdir -p "$3/bin" "$3/lib/python3.12/site-packages"
    cp "$0" "$3/bin/python"
    {venv}
    mkdir "$3/lib/python3.12/site-packages/pip-25.0.dist-info"
    touch "$3/lib/python3.12/site-packages/pip-25.0.dist-info/RECORD" ;;
  *"pip"*" install "*)
    {pip}
    packages=$(dirname "$(dirname "$0")")/lib/python3.12/site-packages
    for name in ttnn-{ttnn} wolfpine-{wolfpine} zstandard-0.25.0; do
      mkdir -p "$packages/$name.dist-info"; touch "$packages/$name.dist-info/RECORD"
    done
    mkdir -p "$packages/ttnn/runtime" "$packages/ttnn/tt_metal"
    touch "$packages/ttnn/__init__.py"
    printf '{sfpi_version}' > "$packages/ttnn/tt_metal/sfpi-version"
    for chip in wormhole blackhole; do
      mkdir -p "$packages/framework/sim/$chip"; touch "$packages/framework/sim/$chip/run.sh"
    done ;;
  *"pip"*" download "*)
    for word; do folder=$last; last=$word; done
    touch "$folder/jax_tt_plugin.whl" ;;
  *extract_compiler.py*)
    {extract}
    for word; do folder=$word; done
    mkdir -p "$folder/runtime/sfpi/compiler/bin"
    printf '{compiler}' > "$folder/runtime/sfpi/compiler/bin/riscv-tt-elf-g++"
    chmod +x "$folder/runtime/sfpi/compiler/bin/riscv-tt-elf-g++" ;;
esac
"""
# As strict as the real one, which compiles nothing without being told the processor.
COMPILER = (
    '#!/bin/sh\\ncase "$*" in --version|*-mcpu=tt-*) echo "riscv-tt-elf-g++ (tenstorrent/sfpi:7.87.0) 15.1.0" ;; '
    "*) exit 1 ;; esac\\n"
)


PYTHON_CANDIDATES = setup._python_candidates


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "commands.log"


@pytest.fixture(autouse=True)
def no_interpreter_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Only stand-ins are found: a real Python would install a real SDK."""
    monkeypatch.setattr(setup, "_python_candidates", lambda: iter(()))

    def refuse(url: str, timeout: float) -> io.BytesIO:
        raise urllib.error.URLError("Name or service not known")

    monkeypatch.setattr(setup.urllib.request, "urlopen", refuse)


def interpreter(
    tmp_path: Path, log: Path, *, version: str = "3.12", ask: str = ":", venv: str = ":", pip: str = ":",
    extract: str = ":", look: str = "exit 1", compiler: str = COMPILER, sfpi_version: str = "",
) -> Path:  # fmt: skip
    """A stand-in; what is given as `ask`, `venv`, `pip`, `extract` and `look` is run at that step, in its shell."""
    file = tmp_path / f"python{len(list(tmp_path.iterdir()))}"
    file.write_text(
        INTERPRETER.format(
            log=log, version=version, ask=ask, venv=venv, pip=pip, extract=extract, look=look, compiler=compiler,
            sfpi_version=sfpi_version, ttnn=TTNN_VERSION, wolfpine=WOLFPINE_VERSION,
        )
    )  # fmt: skip
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


def commands(log: Path) -> list[str]:
    """What the stand-in was called with, except for being asked its version."""
    return [line for line in log.read_text().splitlines() if "ensurepip" not in line]


def silent(text: str) -> None:
    del text


def test_a_set_up_is_complete_and_a_second_one_does_nothing(tmp_path: Path, log: Path) -> None:
    folder, told = tmp_path / "device", list[str]()
    made = set_up(folder, python=interpreter(tmp_path, log), report=told.append)
    assert read_environment(folder) == made
    assert (made.ttnn_version, set(made.wolfpine_folders)) == (TTNN_VERSION, {"wormhole", "blackhole"})
    assert made.compiler_version == "tenstorrent/sfpi:7.87.0, 15.1.0"
    assert [text for text in told if not text.startswith("  done")] == [
        f"environment on {tmp_path / 'python0'} ...",
        f"packages ttnn=={TTNN_VERSION}, wolfpine=={WOLFPINE_VERSION}, zstandard==0.25.0 ...",
        "device compiler, the SDK's own download ...",
        f"  not available ({made.sdk_folder}/tt_metal/sfpi-version does not name a sfpi_version); using the wheel "
        "jax-tt-plugin==0.1.3",
        "device compiler from jax-tt-plugin==0.1.3 ...",
    ]
    before, told[:] = commands(log), []
    assert set_up(folder, report=told.append) == made
    assert (commands(log), told) == (before, [])
    assert Ttnn(environment_folder=folder).missing() is None


def test_an_interrupted_set_up_goes_on_where_it_stopped(tmp_path: Path, log: Path) -> None:
    folder = tmp_path / "device"
    killed = interpreter(tmp_path, log, extract="kill -9 $$")
    with pytest.raises(BackendError) as caught:
        set_up(folder, python=killed, report=silent)
    assert caught.value.message.startswith("extracting the compiler from jax-tt-plugin==0.1.3 failed (exit status -9)")
    assert not (folder / "sfpi").exists()
    with pytest.raises(BackendError, match="its set-up did not finish"):
        read_environment(folder)
    log.unlink()
    (folder / "venv" / "bin" / "python").write_bytes(interpreter(tmp_path, log).read_bytes())
    set_up(folder, report=silent)
    assert [line.split(" -")[0] for line in commands(log) if " install " in line or "venv" in line] == []
    assert compiler_file(read_environment(folder).sfpi_folder).exists()


def test_no_network_is_told_with_pips_word(tmp_path: Path, log: Path) -> None:
    refused = "echo 'ERROR: Could not find a version that satisfies the requirement ttnn' >&2; exit 1"
    with pytest.raises(BackendError) as caught:
        set_up(tmp_path / "device", python=interpreter(tmp_path, log, pip=refused), report=silent)
    assert caught.value.message == (
        "pip install failed (exit status 1): ERROR: Could not find a version that satisfies the requirement ttnn"
    )
    assert caught.value.hint == "check pip's settings and index, then run it again: it continues from here"


def test_an_index_that_cannot_be_reached_is_no_missing_version(tmp_path: Path, log: Path) -> None:
    # What pip 23 to 25 say without a network: the reason first, and something else last.
    (tmp_path / "said").write_text(
        "WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by 'NewConnectionError('<pip._vendor."
        "urllib3.connection.HTTPSConnection object at 0x7fd8>: Failed to establish a new connection: [Errno -2] Name "
        "or service not known')': /simple/ttnn/\n"
        "ERROR: Could not find a version that satisfies the requirement ttnn==0.81.1 (from versions: none)\n"
        "ERROR: No matching distribution found for ttnn==0.81.1\n"
    )
    refused = f"cat {tmp_path / 'said'} >&2; exit 1"
    with pytest.raises(BackendError) as caught:
        set_up(tmp_path / "device", python=interpreter(tmp_path, log, pip=refused), report=silent)
    assert caught.value.message == (
        "pip cannot reach its index: NewConnectionError('Failed to establish a new connection: [Errno -2] Name or "
        "service not known')"
    )
    assert caught.value.hint == "check the network or proxy, then run it again: it continues from here"
    log_text = (tmp_path / "device" / "logs" / "setup-pip-install.log").read_text()
    assert log_text.endswith("ERROR: No matching distribution found for ttnn==0.81.1\n")


def test_a_python_that_does_not_suit_is_refused_before_anything_is_made(tmp_path: Path, log: Path) -> None:
    def message(python: Path) -> str:
        with pytest.raises(BackendError) as caught:
            set_up(tmp_path / "device", python=python, report=silent)
        assert not (tmp_path / "device" / "venv").exists()
        assert "apt install python3.12-venv" in caught.value.hint
        return caught.value.message.removesuffix("; ttnn needs Python 3.12 or 3.10 with venv")

    old = interpreter(tmp_path, log, version="3.11")
    assert message(old) == f"{old} is Python 3.11"
    bare = interpreter(tmp_path, log, ask="echo \"ModuleNotFoundError: No module named 'ensurepip'\" >&2; exit 1")
    assert message(bare) == f"{bare} does not run or has no venv (ModuleNotFoundError: No module named 'ensurepip')"
    with pytest.raises(UsageError, match=f"there is no program {tmp_path / 'none'}"):
        set_up(tmp_path / "device", python=tmp_path / "none", report=silent)


def test_an_environment_without_pip_is_made_again(tmp_path: Path, log: Path) -> None:
    folder = tmp_path / "device"
    with pytest.raises(BackendError, match=r"creating the environment failed \(exit status -15\)"):
        set_up(folder, python=interpreter(tmp_path, log, venv="kill -TERM $$"), report=silent)
    assert (folder / "venv" / "bin" / "python").exists()
    log.unlink()
    set_up(folder, python=interpreter(tmp_path, log), report=silent)
    assert commands(log)[0].startswith("-m venv ")
    assert read_environment(folder).ttnn_version == TTNN_VERSION


def test_a_package_without_its_record_is_installed_again(tmp_path: Path, log: Path) -> None:
    folder = tmp_path / "device"
    made = set_up(folder, python=interpreter(tmp_path, log), report=silent)
    half = made.sdk_folder.parent / f"ttnn-{TTNN_VERSION}.dist-info"
    (half / "RECORD").unlink()
    (half / "METADATA").touch()
    log.unlink()
    set_up(folder, report=silent)
    assert [line for line in commands(log) if " install " in line] != []
    # pip found nothing of it: with METADATA there it would have taken the package for installed.
    assert sorted(file.name for file in half.iterdir()) == ["RECORD"]


def test_a_compiler_that_does_not_run_is_replaced(tmp_path: Path, log: Path) -> None:
    folder, told = tmp_path / "device", list[str]()
    made = set_up(folder, python=interpreter(tmp_path, log), report=silent)
    verified_file(made).touch()
    compiler_file(folder / "sfpi").write_text("#!/bin/sh\nexit 1\n")
    set_up(folder, report=told.append)
    assert told[0] == f"replacing the device compiler in {folder / 'sfpi'}, which does not run"
    assert subprocess.run([compiler_file(made.sfpi_folder), "--version"], stdout=subprocess.PIPE).returncode == 0
    # What was proved with the old compiler is not proved any more.
    assert not verified_file(made).exists()
    # A folder that something else left half-made where the SDK looks gives way, too.
    made.sfpi_folder.unlink()
    (made.sfpi_folder / "compiler").mkdir(parents=True)
    set_up(folder, report=silent)
    assert made.sfpi_folder.resolve() == folder / "sfpi"


def test_a_compiler_for_another_machine_is_not_kept(tmp_path: Path, log: Path) -> None:
    with pytest.raises(BackendError) as caught:
        set_up(tmp_path / "device", python=interpreter(tmp_path, log, compiler="#!/bin/sh\\nexit 1\\n"), report=silent)
    assert caught.value.message == "the compiler does not run on this machine"
    assert caught.value.hint == f"read the logs in {tmp_path / 'device' / 'logs'}"
    assert [path.name for path in (tmp_path / "device").iterdir() if path.name.startswith(("sfpi", "unf"))] == []


@pytest.fixture
def bare_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "path"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(setup, "_python_candidates", PYTHON_CANDIDATES)
    return folder


def test_without_a_suitable_python_it_is_told_how_to_get_one(bare_home: Path, tmp_path: Path, log: Path) -> None:
    with pytest.raises(BackendError) as caught:
        find_python()
    assert caught.value.message == (
        "ttnn needs Python 3.12 or 3.10 with venv, which was not found (none was found on the PATH or in the folders "
        "of pyenv, uv and conda)"
    )
    assert "ttexplore setup device --python /path/to/python3.12" in caught.value.hint
    # A shim that does not run, and a Python of a version that ttnn has no wheel for.
    (bare_home / "python3.12").write_text("#!/bin/sh\nexit 127\n")
    (bare_home / "python3.12").chmod(0o755)
    interpreter(tmp_path, log, version="3.11").rename(bare_home / "python3")
    with pytest.raises(BackendError, match=r"\(tried \S+/path/python3.12, \S+/path/python3\)"):
        find_python()
    hidden = tmp_path / "pyenv" / "versions" / "3.12.1" / "bin"
    hidden.mkdir(parents=True)
    interpreter(tmp_path, log).rename(hidden / "python3.12")
    os.environ["PATH"] += ":/bin"  # for the stand-in's own commands
    assert find_python() == hidden / "python3.12"


def test_what_is_gone_is_named(tmp_path: Path, log: Path) -> None:
    folder = tmp_path / "device"
    made = set_up(folder, python=interpreter(tmp_path, log), report=silent)
    mend = f"ttexplore setup device --folder {folder}"

    def fault() -> str:
        with pytest.raises(BackendError) as caught:
            read_environment(folder)
        assert caught.value.hint == mend
        return caught.value.message.removeprefix(f"the device environment in {folder} is broken: ")

    run_script = made.wolfpine_folders["wormhole"] / "run.sh"
    run_script.unlink()
    assert fault() == f"the simulator wolfpine is missing from {run_script.parent}"
    compiler_file(made.sfpi_folder).unlink()
    assert fault() == f"the device compiler is missing from {made.sfpi_folder}"
    assert Ttnn(environment_folder=folder).missing() == (
        f"the device environment in {folder} is broken: the device compiler is missing from {made.sfpi_folder}: {mend}"
    )
    information = made.sdk_folder.parent / f"ttnn-{TTNN_VERSION}.dist-info"
    information.rename(information.with_name("ttnn-0.70.0.dist-info"))
    assert fault() == f"ttnn 0.70.0 is installed, {TTNN_VERSION} is required"
    (made.sdk_folder / "__init__.py").unlink()
    assert fault() == f"ttnn is missing from {made.sdk_folder}"
    made.python.unlink()
    assert fault() == f"its Python, {made.python}, is missing"
    (folder / "environment.json").write_text("{")
    with pytest.raises(BackendError, match=r"environment.json cannot be read: Expecting property name"):
        read_environment(folder)
    (folder / "environment.json").unlink()
    with pytest.raises(BackendError, match="its set-up did not finish"):
        read_environment(folder)
    with pytest.raises(BackendError, match="it is not set up"):
        read_environment(tmp_path / "elsewhere")
    # All of that is mended by the one command.
    assert set_up(folder, python=interpreter(tmp_path, log), report=silent).ttnn_version == TTNN_VERSION
    assert read_environment(folder).ttnn_version == TTNN_VERSION


def test_two_set_ups_at_once_do_not_meet(tmp_path: Path, log: Path) -> None:
    folder = tmp_path / "device"
    folder.mkdir()
    with (folder / "set-up-began").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(BackendError, match=f"another set-up is running in {folder}"):
            set_up(folder, python=interpreter(tmp_path, log), report=silent)
        with pytest.raises(BackendError, match=f"another set-up is running in {folder}"):
            remove(folder)
    assert [path.name for path in folder.iterdir()] == ["set-up-began"]


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path, log: Path) -> None:
    folder = tmp_path / "device"
    folder.mkdir()
    (folder / "set-up-began").touch()
    (folder / "logs").touch()
    with pytest.raises(BackendError) as caught:
        set_up(folder, python=interpreter(tmp_path, log), report=silent)
    assert caught.value.message == f"the set-up in {folder} failed: [Errno 17] File exists: '{folder / 'logs'}'"
    with pytest.raises(BackendError, match="device/logs/below cannot be written: Not a directory"):
        set_up(folder / "logs" / "below", report=silent)


def test_too_little_room_is_told(tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "NEEDED_BYTES", 1 << 60)
    with pytest.raises(BackendError, match=r"has \d+\.\d GiB free, but 1073741824 GiB are required"):
        set_up(tmp_path / "device", python=interpreter(tmp_path, log), report=silent)


def test_only_an_environment_is_removed(tmp_path: Path, log: Path) -> None:
    folder = tmp_path / "device"
    assert remove(folder) is False
    set_up(folder, python=interpreter(tmp_path, log), report=silent)
    assert remove(folder) is True
    assert not folder.exists()
    foreign = tmp_path / "thesis"
    foreign.mkdir()
    (foreign / "chapter1.tex").touch()
    # Others name files so, too.
    (foreign / "environment.json").write_text("{}")
    with pytest.raises(UsageError, match="thesis is not a device environment"):
        remove(foreign)
    with pytest.raises(UsageError, match="thesis is not empty, and not a device environment"):
        set_up(foreign, report=silent)
    assert (foreign / "chapter1.tex").exists()


def test_ttsim_is_taken_by_its_path(tmp_path: Path, log: Path) -> None:
    folder, libraries = tmp_path / "device", tmp_path / "ttsim"
    libraries.mkdir()
    with pytest.raises(UsageError, match=r"there is no libttsim_wh.so or libttsim_bh.so in "):
        set_up(folder, ttsim_folder=libraries, report=silent)
    made = set_up(folder, python=interpreter(tmp_path, log), report=silent)
    assert Ttnn("ttsim", folder).missing() == (
        "ttsim is not set up: run ttexplore setup device --ttsim FOLDER, where FOLDER contains libttsim_wh.so"
    )
    for name in ("wh", "bh"):
        (libraries / f"libttsim_{name}.so").touch()
    made = set_up(folder, ttsim_folder=libraries, report=silent)
    assert made.ttsim_folder == libraries
    assert set_up(folder, report=silent).ttsim_folder == libraries
    assert Ttnn("ttsim", folder).missing() is None
    # A broken environment forgets neither it nor anything else that it was told.
    compiler_file(made.sfpi_folder).unlink()
    assert set_up(folder, report=silent).ttsim_folder == libraries
    link = folder / "ttsim" / "blackhole" / "soc_descriptor.yaml"
    assert link.readlink() == made.sdk_folder / "tt_metal" / "soc_descriptors" / "blackhole_140_arch.yaml"


def test_a_card_that_is_not_there_and_an_unknown_device(tmp_path: Path, log: Path) -> None:
    folder = tmp_path / "device"
    set_up(folder, python=interpreter(tmp_path, log), report=silent)
    if not Path("/dev/tenstorrent").exists():
        assert (Ttnn("card", folder).missing() or "").startswith("there is no Tenstorrent card: /dev/tenstorrent")
    with pytest.raises(UsageError, match="there is no device 'gpu'"):
        Ttnn("gpu", folder)


def test_a_download_with_a_wrong_hash_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    version = tmp_path / "sfpi-version"
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:xz"):
        pass

    def answer(url: str, timeout: float) -> io.BytesIO:
        assert url.startswith("https://example.org/sfpi/releases/download/7.89.0/sfpi_7.89.0_x86_64_")
        assert timeout <= 10.0
        return io.BytesIO(archive.getvalue())

    monkeypatch.setattr(setup.urllib.request, "urlopen", answer)
    monkeypatch.setattr(setup.platform, "machine", lambda: "x86_64")
    version.write_text(SFPI_VERSION.replace("HASH", "00").replace("\\n", "\n"))
    with pytest.raises(BackendError, match="the downloaded archive does not have the hash that the SDK names"):
        setup._download_compiler(version, tmp_path)
    right = hashlib.sha256(archive.getvalue()).hexdigest()
    version.write_text(SFPI_VERSION.replace("HASH", right).replace("\\n", "\n"))
    with pytest.raises(BackendError, match=r"the archive contains no riscv-tt-elf-g\+\+"):
        setup._download_compiler(version, tmp_path)
    monkeypatch.setattr(setup.platform, "machine", lambda: "riscv64")
    with pytest.raises(BackendError, match="does not name a sfpi_riscv64_"):
        setup._download_compiler(version, tmp_path)


# Of both families of systems, so that the test is the same on each.
SFPI_VERSION = (
    "sfpi_repo=https://example.org/sfpi\\nsfpi_version=7.89.0\\nsfpi_hashtype=sha256\\n"
    "sfpi_x86_64_debian_txz_hash=HASH\\nsfpi_x86_64_fedora_txz_hash=HASH\\n"
)


def test_the_sdks_own_download_comes_first(tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = b'#!/bin/sh\necho "riscv-tt-elf-g++ (tenstorrent/sfpi:7.89.0) 15.1.0"\n'
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz") as archive:
        entry = tarfile.TarInfo("sfpi/compiler/bin/riscv-tt-elf-g++")
        entry.size, entry.mode = len(content), 0o755
        archive.addfile(entry, io.BytesIO(content))
    monkeypatch.setattr(setup.urllib.request, "urlopen", lambda url, timeout: io.BytesIO(packed.getvalue()))
    monkeypatch.setattr(setup.platform, "machine", lambda: "x86_64")
    version = SFPI_VERSION.replace("HASH", hashlib.sha256(packed.getvalue()).hexdigest())
    made = set_up(tmp_path / "device", python=interpreter(tmp_path, log, sfpi_version=version), report=silent)
    assert made.compiler_version == "tenstorrent/sfpi:7.89.0, 15.1.0"
    assert [line for line in commands(log) if " download " in line or "extract_compiler" in line] == []


# An SDK that the user has


def users_sdk(tmp_path: Path, version: str) -> tuple[Path, str]:
    """The package of an SDK of its own with a compiler, and what its Python answers when it is looked at."""
    sdk = tmp_path / "sdk" / "ttnn"
    compiler = compiler_file(sdk / "runtime" / "sfpi")
    compiler.parent.mkdir(parents=True)
    (sdk / "__init__.py").touch()
    compiler.write_text('#!/bin/sh\necho "riscv-tt-elf-g++ (tenstorrent/sfpi:7.90.0) 15.1.0"\n')
    compiler.chmod(0o755)
    return sdk, f"""echo '["{sdk}", "{version}", []]'"""


def test_an_sdk_that_is_there_is_used_and_nothing_is_installed(
    tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder, told = default_environment_folder(), list[str]()
    sdk, look = users_sdk(tmp_path, "0.82.0")
    python = interpreter(tmp_path, log, look=look)
    made = set_up(folder, sdk_python=python, report=told.append)
    assert (made.python, made.sdk_folder, made.ttnn_version, made.managed) == (python, sdk, "0.82.0", False)
    assert made.compiler_version == "tenstorrent/sfpi:7.90.0, 15.1.0"
    assert told == [
        f"using ttnn 0.82.0 of {python}",
        f"  note: the emitted code is for ttnn {TTNN_VERSION}; other versions may reject it",
    ]
    assert [line for line in log.read_text().splitlines() if "pip" in line or "venv" in line] == []
    # Another version is a remark of the doctor there, no error; and wolfpine goes where that SDK is.
    found = {finding.name.strip(): finding for finding in ttexplore.installation.doctor.examine()}
    assert (found["ttnn"].ok, found["ttnn"].found) == (True, f"0.82.0 (the emitted code is for {TTNN_VERSION})")
    assert found["wolfpine"].fix == f"{python} -m pip install wolfpine=={WOLFPINE_VERSION}"
    # The plain command, which is the mending one, stays with that SDK.
    told.clear()
    assert (set_up(folder, report=told.append), told) == (made, [])
    compiler_file(made.sfpi_folder).unlink()
    with pytest.raises(BackendError) as caught:
        read_environment(folder)
    assert caught.value.hint == f"ttexplore setup device --folder {folder} --sdk-python {python}"
    with pytest.raises(BackendError, match=f"the SDK of {python} has no device compiler in {sdk}/runtime/sfpi or "):
        set_up(folder, report=silent)


def test_a_python_without_an_sdk_is_refused(tmp_path: Path, log: Path) -> None:
    python = interpreter(tmp_path, log, look="echo \"ModuleNotFoundError: No module named 'ttnn'\" >&2; exit 1")
    with pytest.raises(BackendError) as caught:
        set_up(tmp_path / "device", sdk_python=python, report=silent)
    assert caught.value.message == f"{python} cannot import ttnn: ModuleNotFoundError: No module named 'ttnn'"
    assert caught.value.hint == "give the Python for which your SDK is installed"
    with pytest.raises(UsageError, match="python and sdk_python exclude each other"):
        set_up(tmp_path / "device", python=python, sdk_python=python, report=silent)


def test_relative_paths_are_recorded_whole(tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ttsim").mkdir()
    (tmp_path / "ttsim" / "libttsim_wh.so").touch()
    monkeypatch.chdir(tmp_path)
    python = Path(interpreter(tmp_path, log).name)
    made = set_up(Path("device"), python=Path(".") / python, ttsim_folder=Path("ttsim"), report=silent)
    assert (made.folder, made.ttsim_folder) == (tmp_path / "device", tmp_path / "ttsim")
    assert made.python == tmp_path / "device" / "venv" / "bin" / "python"


# One home of what several places must agree on


def test_the_versions_of_the_headers_and_of_the_sdk_agree() -> None:
    assert headers.TTNN_VERSION == TTNN_VERSION


@pytest.mark.parametrize(("device", "architecture"), [("0x401e", "wormhole"), ("0xb140", "blackhole"), ("0x1", None)])
def test_a_card_is_known_by_its_pci_identity(tmp_path: Path, device: str, architecture: str | None) -> None:
    for place, vendor, identity in (("0000:00:01.0", "0x8086", "0x401e"), ("0000:01:00.0", "0x1e52", device)):
        (tmp_path / place).mkdir()
        (tmp_path / place / "vendor").write_text(f"{vendor}\n")
        (tmp_path / place / "device").write_text(f"{identity}\n")
    assert card_architecture(tmp_path) == architecture


@pytest.mark.parametrize("says", ["", "echo hello", "echo 3"])
def test_a_program_that_is_no_python(tmp_path: Path, says: str) -> None:
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{says}\n")
    program.chmod(0o755)
    with pytest.raises(BackendError, match="cannot import ttnn: its output is not Python's") as caught:
        set_up(tmp_path / "device", sdk_python=program)
    assert "give the Python" in caught.value.hint
