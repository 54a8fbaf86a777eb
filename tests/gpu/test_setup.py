"""``ttexplore setup gpu`` with a stand-in for Python and pip."""

from __future__ import annotations

import fcntl
import stat
from pathlib import Path

import pytest

from ttexplore.cli import main
from ttexplore.errors import BackendError, UsageError
from ttexplore.gpu import setup
from ttexplore.gpu.environment import TILELANG_VERSION, read_environment
from ttexplore.gpu.setup import remove, set_up
from ttexplore.installation.doctor import examine

INTERPRETER = """#!/bin/sh
echo "$@" >> "{log}"
case "$*" in
  *ensurepip*) echo {version} ;;
  "-m venv "*)
    mkdir -p "$3/bin" "$3/lib/python3.11/site-packages/pip-25.0.dist-info"
    cp "$0" "$3/bin/python"
    touch "$3/lib/python3.11/site-packages/pip-25.0.dist-info/RECORD" ;;
  *"--index-url"*) {torch} ;;
  *"pip"*" install "*)
    {pip}
    packages=$(dirname "$(dirname "$0")")/lib/python3.11/site-packages
    mkdir -p "$packages/tilelang" "$packages/tilelang-{tilelang}.dist-info"
    touch "$packages/tilelang/__init__.py" "$packages/tilelang-{tilelang}.dist-info/RECORD" ;;
  *"import tilelang"*) {imported} ;;
esac
"""


@pytest.fixture(autouse=True)
def no_interpreter_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only stand-ins are found: a real Python would install the real TileLang."""
    monkeypatch.setattr(setup, "_python_candidates", lambda: iter(()))


def interpreter(
    folder: Path, *, version: str = "3.11", torch: str = ":", pip: str = ":", imported: str = ":"
) -> Path:  # fmt: skip
    file = folder / f"python{len(list(folder.iterdir()))}"
    file.write_text(
        INTERPRETER.format(
            log=folder / "commands.log", version=version, torch=torch, pip=pip, imported=imported,
            tilelang=TILELANG_VERSION,
        )
    )  # fmt: skip
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


def installs(folder: Path) -> list[str]:
    lines = (folder / "commands.log").read_text().splitlines()
    return [line for line in lines if "ensurepip" not in line]


def silent(text: str) -> None:
    del text


def test_a_set_up_is_complete_and_a_second_one_does_nothing(tmp_path: Path) -> None:
    folder, told = tmp_path / "gpu", list[str]()
    python = interpreter(tmp_path)
    made = set_up(folder, python=python, report=told.append)
    assert read_environment(folder) == made
    assert [text for text in told if not text.startswith("  done")] == [
        f"environment on {python} ...",
        "package torch==2.13.0 for the CPU ...",
        "packages tilelang==0.1.15, torch==2.13.0 ...",
        "importing tilelang==0.1.15 ...",
    ]
    before, told[:] = installs(tmp_path), []
    assert set_up(folder, report=told.append) == made
    assert (installs(tmp_path), told) == (before, [])


def test_without_the_index_of_torch_pips_own_is_used(tmp_path: Path) -> None:
    told: list[str] = []
    set_up(tmp_path / "gpu", python=interpreter(tmp_path, torch="echo ERROR: no route >&2; exit 1"), report=told.append)
    said = "  not available (pip install failed (exit status 1): ERROR: no route); using the build of pip's index"
    assert said in told


def test_an_interrupted_set_up_goes_on_where_it_stopped(tmp_path: Path) -> None:
    folder = tmp_path / "gpu"
    with pytest.raises(BackendError, match=r"pip install failed \(exit status -9\)"):
        set_up(folder, python=interpreter(tmp_path, pip="kill -9 $$"), report=silent)
    with pytest.raises(BackendError, match="its set-up did not finish"):
        read_environment(folder)
    (folder / "venv" / "bin" / "python").write_bytes(interpreter(tmp_path).read_bytes())
    set_up(folder, report=silent)
    assert [line for line in installs(tmp_path) if line.startswith("-m venv")] == [f"-m venv {folder / 'venv'}"]
    assert read_environment(folder).tilelang_version == TILELANG_VERSION


def test_a_tilelang_that_cannot_be_imported_is_told(tmp_path: Path) -> None:
    python = interpreter(tmp_path, imported="echo 'ImportError: libz3.so' >&2; exit 1")
    with pytest.raises(BackendError, match=r"importing tilelang==0\.1\.15 failed .*: ImportError: libz3"):
        set_up(tmp_path / "gpu", python=python, report=silent)
    with pytest.raises(BackendError, match="its set-up did not finish"):
        read_environment(tmp_path / "gpu")


def test_an_installation_without_tilelang_is_incomplete(tmp_path: Path) -> None:
    python = interpreter(tmp_path, pip="exit 0")
    with pytest.raises(BackendError, match="the environment is incomplete: TileLang is missing from") as caught:
        set_up(tmp_path / "gpu", python=python, report=silent)
    assert caught.value.hint == "run ttexplore setup gpu --remove, then ttexplore setup gpu"


def test_python_must_suit(tmp_path: Path) -> None:
    old = interpreter(tmp_path, version="3.8")
    with pytest.raises(
        BackendError, match=r"is Python 3\.8; TileLang needs Python 3\.11, 3\.12, 3\.13 or 3\.10 with venv"
    ):
        set_up(tmp_path / "gpu", python=old, report=silent)
    with pytest.raises(BackendError, match=r"TileLang needs Python .*, which was not found") as caught:
        set_up(tmp_path / "gpu", report=silent)
    assert caught.value.hint.endswith("give its path: ttexplore setup gpu --python /path/to/python3.11")


def test_other_folders_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    with pytest.raises(UsageError, match="is not empty, and not a GPU environment"):
        set_up(tmp_path, report=silent)
    with pytest.raises(UsageError, match="is not a GPU environment"):
        remove(tmp_path)
    assert not remove(tmp_path / "none")
    set_up(tmp_path / "gpu", python=interpreter(tmp_path), report=silent)
    with (tmp_path / "gpu" / "set-up-began").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(BackendError, match="another set-up is running"):
            remove(tmp_path / "gpu")
    assert remove(tmp_path / "gpu")
    assert not (tmp_path / "gpu").exists()


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "gpu"
    assert main(["setup", "gpu", "--folder", str(folder), "--python", str(interpreter(tmp_path))]) == 0
    assert capsys.readouterr().out == f"the GPU environment in {folder} works: TileLang 0.1.15\n"
    assert main(["setup", "gpu", "--folder", str(folder), "--remove"]) == 0
    assert main(["setup", "gpu", "--folder", str(folder), "--remove"]) == 0
    assert capsys.readouterr().out == f"removed {folder}\nthere is no GPU environment in {folder}\n"
    assert main(["setup", "gpu", "--ttsim", str(tmp_path)]) == 2
    assert "--ttsim is for setup device" in capsys.readouterr().err


def test_the_doctor_looks_at_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = {one.name: one for one in examine()}
    assert (found["GPU lane"].ok, found["GPU lane"].required) == (False, False)
    assert found["GPU lane"].fix == "ttexplore setup gpu"
    set_up(python=interpreter(tmp_path), report=silent)
    found = {one.name: one for one in examine()}
    assert (found["GPU lane"].ok, found["  TileLang"].found) == (True, TILELANG_VERSION)
