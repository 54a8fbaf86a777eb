"""Setting up the device environment, with a stand-in for Python and pip: no network, nothing installed."""

from __future__ import annotations

import fcntl
import io
import os
import stat
import tarfile
from pathlib import Path

import pytest

from ttexplore.backends.ttnn import Ttnn, setup
from ttexplore.backends.ttnn.environment import (
    TTNN_VERSION,
    WOLFPINE_VERSION,
    compiler_file,
    read_environment,
)
from ttexplore.backends.ttnn.setup import find_python, remove, set_up
from ttexplore.errors import BackendError, UsageError

# Answers like the parts of Python that set-up calls: the version, venv, pip install and download, the extraction.
INTERPRETER = """#!/bin/sh
echo "$@" >> "{log}"
case "$*" in
  *ensurepip*) echo {version} ;;
  "-m venv "*)
    mkdir -p "$3/bin" "$3/lib/python3.12/site-packages"
    cp "$0" "$3/bin/python" ;;
  *"pip"*" install "*)
    {pip}
    packages=$(dirname "$(dirname "$0")")/lib/python3.12/site-packages
    for name in ttnn-{ttnn} wolfpine-{wolfpine} zstandard-0.25.0; do
      mkdir -p "$packages/$name.dist-info"; touch "$packages/$name.dist-info/RECORD"
    done
    mkdir -p "$packages/ttnn/runtime" "$packages/ttnn/tt_metal"
    touch "$packages/ttnn/__init__.py" "$packages/ttnn/tt_metal/sfpi-version"
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
    printf '#!/bin/sh\\necho "riscv-tt-elf-g++ (tenstorrent/sfpi:7.87.0) 15.1.0"\\n' \\
      > "$folder/runtime/sfpi/compiler/bin/riscv-tt-elf-g++"
    chmod +x "$folder/runtime/sfpi/compiler/bin/riscv-tt-elf-g++" ;;
esac
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "commands.log"


def interpreter(tmp_path: Path, log: Path, *, version: str = "3.12", pip: str = ":", extract: str = ":") -> Path:
    file = tmp_path / f"python{len(list(tmp_path.iterdir()))}"
    file.write_text(
        INTERPRETER.format(
            log=log, version=version, pip=pip, extract=extract, ttnn=TTNN_VERSION, wolfpine=WOLFPINE_VERSION
        )
    )
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
        "  not to be had ('sfpi_version'), so out of the wheel jax-tt-plugin==0.1.3",
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
    assert caught.value.message.startswith("taking the compiler out of jax-tt-plugin==0.1.3 failed (exit status -9)")
    assert not (folder / "sfpi").exists()
    with pytest.raises(BackendError, match="its set-up was not finished"):
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
    assert caught.value.hint == "check the network and pip's index, then run it again: it goes on from here"


@pytest.fixture
def bare_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "path"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return folder


def test_without_a_suitable_python_it_is_told_how_to_get_one(bare_home: Path, tmp_path: Path, log: Path) -> None:
    with pytest.raises(BackendError) as caught:
        find_python()
    assert caught.value.message == (
        "ttnn needs Python 3.12 or 3.10, and no such Python with venv was found (none was found on the PATH, in "
        "pyenv's or in uv's folder)"
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
    assert fault() == f"the simulator wolfpine is gone from {run_script.parent}"
    compiler_file(made.sfpi_folder).unlink()
    assert fault() == f"the device compiler is gone from {made.sfpi_folder}"
    assert Ttnn(environment_folder=folder).missing() == (
        f"the device environment in {folder} is broken: the device compiler is gone from {made.sfpi_folder}: {mend}"
    )
    information = made.sdk_folder.parent / f"ttnn-{TTNN_VERSION}.dist-info"
    information.rename(information.with_name("ttnn-0.70.0.dist-info"))
    assert fault() == f"ttnn 0.70.0 is installed, {TTNN_VERSION} is needed"
    (made.sdk_folder / "__init__.py").unlink()
    assert fault() == f"ttnn is gone from {made.sdk_folder}"
    made.python.unlink()
    assert fault() == f"its Python, {made.python}, is gone"
    (folder / "environment.json").write_text("{")
    with pytest.raises(BackendError, match=r"environment.json cannot be read: Expecting property name"):
        read_environment(folder)
    (folder / "environment.json").unlink()
    with pytest.raises(BackendError, match="its set-up was not finished"):
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
        with pytest.raises(BackendError, match=f"another set-up is at work in {folder}"):
            set_up(folder, python=interpreter(tmp_path, log), report=silent)


def test_too_little_room_is_told(tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "NEEDED_BYTES", 1 << 60)
    with pytest.raises(BackendError, match=r"has \d+\.\d GiB free, 1073741824 GiB are needed"):
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
    with pytest.raises(UsageError, match="thesis holds no device environment"):
        remove(foreign)
    with pytest.raises(UsageError, match="thesis is not empty, and no device environment"):
        set_up(foreign, report=silent)
    assert (foreign / "chapter1.tex").exists()


def test_ttsim_is_taken_by_its_path(tmp_path: Path, log: Path) -> None:
    folder, libraries = tmp_path / "device", tmp_path / "ttsim"
    libraries.mkdir()
    with pytest.raises(UsageError, match=r"there is no libttsim_wh.so or libttsim_bh.so in "):
        set_up(folder, ttsim_folder=libraries, report=silent)
    made = set_up(folder, python=interpreter(tmp_path, log), report=silent)
    assert Ttnn("ttsim", folder).missing() == (
        "ttsim is not set up: ttexplore setup device --ttsim FOLDER, with libttsim_wh.so in it"
    )
    for name in ("wh", "bh"):
        (libraries / f"libttsim_{name}.so").touch()
    made = set_up(folder, ttsim_folder=libraries, report=silent)
    assert made.ttsim_folder == libraries
    assert set_up(folder, report=silent).ttsim_folder == libraries
    assert Ttnn("ttsim", folder).missing() is None
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
        assert url.startswith("https://example.org/sfpi/releases/download/7.89.0/sfpi_7.89.0_")
        assert timeout <= 10.0
        return io.BytesIO(archive.getvalue())

    monkeypatch.setattr(setup.urllib.request, "urlopen", answer)
    monkeypatch.setattr(setup.platform, "machine", lambda: "x86_64")
    version.write_text(
        "sfpi_repo='https://example.org/sfpi'\nsfpi_version='7.89.0'\nsfpi_hashtype='sha256'\n"
        "sfpi_x86_64_debian_txz_hash='00'\n"
    )
    with pytest.raises(BackendError, match="the downloaded archive has another hash than the SDK names"):
        setup._download_compiler(version, tmp_path)
