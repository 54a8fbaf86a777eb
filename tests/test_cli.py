"""The command: exit status, one JSON object, messages of wrong use, and the main job on the notebooks' kernels."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.steps import LETTERS
from ttexplore.backends.ttnn.environment import DeviceEnvironment
from ttexplore.cli import COMMANDS, OVERVIEW, lab_command, main, parse_pairs, parse_value, verified_device
from ttexplore.course import root as course
from ttexplore.diagnostics import catalogue
from ttexplore.errors import BackendError, UsageError
from ttexplore.installation import doctor
from ttexplore.optional import EXTRAS
from ttexplore.target import TARGETS

REPOSITORY = Path(__file__).parents[1]
GEMM = str(REPOSITORY / "notebooks" / "kernels" / "gemm.py")
ELEMENTWISE = str(REPOSITORY / "notebooks" / "kernels" / "elementwise.py")
SMALL_GEMM = ("M=128", "N=64", "K=64", "block_M=64", "block_N=32", "block_K=32")

# Kernels of the notebooks with arguments that make them small.
KERNELS = [
    (f"{GEMM}::matmul", *SMALL_GEMM),
    (f"{GEMM}::matmul_relu", "M=128", "N=64", "K=64", "block_N=32"),
    (f"{ELEMENTWISE}::add", "M=128", "N=128"),
    (f"{ELEMENTWISE}::bias_exp", "M=64", "N=128"),
]
KERNEL_NAMES = ["matmul", "matmul_relu", "add", "bias_exp"]


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are whole."""
    monkeypatch.delenv("COLUMNS", raising=False)


def call(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of one call."""
    capsys.readouterr()
    status = main(words)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def call_json(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    """Exit status and the only object on standard output."""
    status, out, _ = call(capsys, *words, "--json")
    assert out.count("\n") == 1
    return status, json.loads(out)


# Words and values


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("256", 256), ("-3", -3), ("0.5", 0.5), ("1e-3", 1e-3), ("true", True), ("False", False),
        ("bfloat16", "bfloat16"), ("4,4", (4, 4)), ("4,", (4,)), ("", ""), ("0x10", "0x10"),
        ("{(0, 1): [2, (3, 4)]}", {(0, 1): [2, (3, 4)]}), ("[((0, 0), (1, 1))]", [((0, 0), (1, 1))]), ("(3", "(3"),
        ("{[1]: 2}", "{[1]: 2}"), (f"({'-' * 30000}1)", f"({'-' * 30000}1)"),
    ],
)  # fmt: skip
def test_values(text: str, value: object) -> None:
    parsed = parse_value(text)
    assert parsed == value
    assert type(parsed) is type(value)


def test_pairs() -> None:
    assert parse_pairs(["M=256", "dtype=float32", "path=a=b"], "argument") == {
        "M": 256, "dtype": "float32", "path": "a=b",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["shwo"], "there is no command 'shwo'\n  hint: did you mean show?"),
        (["compile"],
         "there is no command 'compile'\n  hint: use one of show, run, check, estimate, compare, sweep, validate, "
         "timeline, export, save, report, freeze, gallery, explain, doctor, setup, lab"),
        (["show"], "no kernel is given\n  hint: give it as file.py::name"),
        (["show", "gemm"], "'gemm' does not name a kernel\n  hint: give it as file.py::name"),
        (["check", "saved.ttx"],
         "'saved.ttx' is a saved exploration, not a kernel\n"
         "  hint: give a kernel as file.py::name; show, run, compare, timeline, export and report take them"),
        (["show", "k.py::f", "256"],
         "the argument '256' has no value\n  hint: write it as name=value, for example M=256"),
        (["show", "k.py::f", "M=1", "M=2"], "argument M is given twice\n  hint: give each name once"),
        (["show", "k.py::f", "target=x"], "target is not a kernel argument\n  hint: use --target"),
        (["show", "k.py::f", "options=x"], "options is not a kernel argument\n  hint: use --option"),
        (["show", "k.py::f", "--option", "policy"],
         "the option 'policy' has no value\n  hint: write it as name=value, for example M=256"),
        (["show", "k.py::f", "--grid", "8"], "'8' is not a grid\n  hint: write columns x rows, for example 8x4"),
        (["show", "k.py::f", "--grid", ""], "'' is not a grid\n  hint: write columns x rows, for example 8x4"),
        (["show", "k.py::f", "--grid", f"{'9' * 5000}x1"],
         f"'{'9' * 99}... is not a grid\n  hint: write columns x rows, for example 8x4"),
        (["show", "k.ttx", "--target", "wormhole_n150"],
         "k.ttx is a saved exploration and takes no arguments, options or target\n  hint: to change them, "
         "save the kernel again"),
        (["show", "k.ttx", "--grid", ""],
         "k.ttx is a saved exploration and takes no arguments, options or target\n  hint: to change them, "
         "save the kernel again"),
        (["show", "k.py::f", "--grid", "9x9"],
         "wormhole_n150 has 8x9 workers, not 9x9\n"
         "  hint: use a grid within that, or change harvested"),
        (["run", "k.py::f", "--target", "wormhole_n15"],
         "there is no target 'wormhole_n15'\n  hint: did you mean wormhole_n150? use one of "
         f"{', '.join(TARGETS)}"),
        (["run", "k.py::f", "--seed", "one"],
         "argument --seed: invalid int value: 'one'\n  hint: see: ttexplore run --help"),
        (["check", "k.py::f", "--backend", "emulator"],
         "unrecognized arguments: --backend emulator\n  hint: see: ttexplore check --help"),
        (["export", "k.py::f", "-o"],
         "argument -o/--output: expected one argument\n  hint: see: ttexplore export --help"),
        (["lab", "missing.ipynb"],
         "there is no missing.ipynb\n  hint: name a notebook or a folder"),
    ],
)  # fmt: skip
def test_wrong_use(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    problem, _, hint = message.partition("\n  hint: ")
    status, printed, complaint = call(capsys, *words)
    code = complaint[complaint.rindex("[") + 1 : -2]
    assert (status, printed, complaint) == (2, "", f"UsageError: {message} [{code}]\n")
    assert catalogue()[code].kind == "UsageError"
    if words[0] in COMMANDS and words[0] != "lab" and words[-1] != "-o":
        expected = {"kind": "UsageError", "message": problem, "hint": hint, "span": None, "code": code}
        assert call_json(capsys, *words) == (2, {"error": expected})


@pytest.mark.parametrize("name", ["kernel", "path_and_name", "self", "reference"])
def test_an_argument_called_as_ours_is_the_kernels(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, complaint = call(capsys, "show", f"{ELEMENTWISE}::add", "M=64", "N=64", f"{name}=3")
    assert status == 2
    assert f"takes no argument {name}\n" in complaint


def test_a_step_of_thousands_of_digits(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, complaint = call(capsys, "show", f"{ELEMENTWISE}::add", "M=64", "N=64", "--step", "9" * 5000)
    assert status == 2
    assert complaint.startswith("UsageError: there is no step '999")


def explained(output: Any, **environment: str) -> tuple[int, str]:
    """Exit status and complaint of a process that writes its answer to `output`."""
    words = [sys.executable, "-m", "ttexplore.cli", "explain", "U001"]
    done = subprocess.run(
        words, stdout=output, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}, check=False
    )
    return done.returncode, done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no full device")
def test_output_that_cannot_be_written() -> None:
    with open("/dev/full", "wb") as full:
        status, complaint = explained(full)
    assert status == 2
    assert complaint == (
        "UsageError: standard output cannot be written: No space left on device\n"
        "  hint: free space where it is written, or redirect it [TTX-U012]\n"
    )


def test_output_that_is_closed() -> None:
    words = [sys.executable, "-m", "ttexplore.cli", "explain", "U001"]
    done = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *words], stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_output_whose_encoding_lacks_what_is_drawn(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text(Path(ELEMENTWISE).read_text())
    words = [sys.executable, "-m", "ttexplore.cli", "show", str(tmp_path / "k.py::add"), "M=64", "N=64"]
    done = subprocess.run(
        words, capture_output=True, text=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "\\u25d0" in done.stdout


def test_the_package_is_the_command() -> None:
    words = [sys.executable, "-m", "ttexplore", "explain", "U001"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()[0], done.stderr) == (0, "TTX-U001", "")
    done = subprocess.run([*words[:3], "nothing"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, "--help") == (0, OVERVIEW, "")
    assert call(capsys) == (2, OVERVIEW, "")
    assert all(f"\n  {name} " in OVERVIEW for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_each_command(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([name, "--help"])
    assert caught.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: ttexplore {name} ")


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from ttexplore.cli import main; main(['--help']);"
        "print(sorted({'tvm', 'numpy', 'ml_dtypes', 'IPython'} & sys.modules.keys()))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPOSITORY)
    assert result.stdout.splitlines()[-1] == "[]"


# doctor and lab


def test_doctor_finds_everything(capsys: pytest.CaptureFixture[str]) -> None:
    status, data = call_json(capsys, "doctor")
    found = {finding["name"]: finding for finding in data["findings"]}
    assert (status, data["ok"]) == (0, True)
    assert found["apache-tvm"]["found"] == "0.27.0.post1"
    assert all(found[f"backend {name}"]["ok"] for name in ("reference", "interpreter", "emulator"))
    status, out, _ = call(capsys, "doctor")
    assert status == 0
    assert len([line for line in out.splitlines() if line.startswith(("ok", "absent"))]) == len(found)


def test_doctor_names_a_wrong_version(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(doctor.REQUIRED_PACKAGES, "numpy", "1.0")
    status, out, _ = call(capsys, "doctor")
    assert status == 1
    lines = out.splitlines()
    at = next(index for index, line in enumerate(lines) if line.startswith("MISSING  numpy"))
    assert lines[at].endswith("is installed, 1.0 is required")
    assert lines[at + 1].strip() == f"fix: {sys.executable} -m pip install numpy==1.0"
    assert "MISSING  backend emulator       needs numpy" in lines


def test_hints_install_what_the_extras_need() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {name: tuple(packages) for name, packages in project["optional-dependencies"].items() if name != "test"}
    assert extras == EXTRAS


def test_doctor_names_a_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(doctor.REQUIRED_PACKAGES, "no-such-package", None)
    finding = next(one for one in doctor.examine() if one.name == "no-such-package")
    assert (finding.ok, finding.required, finding.found) == (False, True, "not installed")
    assert finding.fix == f"{sys.executable} -m pip install no-such-package"


def test_doctor_names_a_missing_compiler(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    status, data = call_json(capsys, "doctor")
    emulator = next(finding for finding in data["findings"] if finding["name"] == "backend emulator")
    assert status == 1
    assert emulator["found"] == "no C++ compiler (c++, g++, clang++ or the ziglang wheel)"
    assert "pip install ziglang" in emulator["fix"]


def test_doctor_tells_how_to_get_the_device(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    status, data = call_json(capsys, "doctor")
    found = {finding["name"].strip(): finding for finding in data["findings"]}
    assert (status, data["ok"]) == (0, True)
    assert found["backend ttnn"] == {
        "name": "backend ttnn", "ok": False, "required": False, "fix": "ttexplore setup device",
        "found": f"there is no device environment in {tmp_path / 'ttexplore' / 'device'}: it is not set up",
    }  # fmt: skip
    assert "Python 3.12 or 3.10" in found


def test_a_run_says_where_it_ran_and_whose_time_it_took(capsys: pytest.CaptureFixture[str]) -> None:
    for backend in ("emulator", "interpreter"):
        status, out, complaint = call(capsys, "run", *KERNELS[2], "--backend", backend)
        assert (status, complaint) == (0, "")
        assert out.startswith(f"{backend}: passed, PCC ")
        assert re.search(r"simulated in \d+\.\d\d m?s of this machine's time", out)
    _, data = call_json(capsys, "run", *KERNELS[2])
    assert re.fullmatch(r"simulated in \d+\.\d\d m?s of this machine's time", data["time"])


def test_a_time_limit_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (("run", *KERNELS[2], "--backend", "interpreter"), ("check", *KERNELS[2])):
        status, out, complaint = call(capsys, *command, "--time-limit", "0.000001")
        assert (status, out) == (1, "")
        assert "did not end within the time limit of 1e-06 seconds" in complaint
        assert "raise the time limit" in complaint


def test_progress_is_told_at_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    status, _, told = call(capsys, "check", *KERNELS[2])
    assert status == 0
    assert told.startswith("computing the reference\nexecuting A0.1 ")
    assert f"\n1 of {len(LETTERS)}: A0 " in told


def test_without_the_device_environment_a_run_says_how_to_get_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ("run", *KERNELS[2], "--backend", "ttnn", "--environment", str(tmp_path / "none"))
    status, out, complaint = call(capsys, *words)
    assert (status, out) == (1, "")
    assert complaint == (
        "running on ttnn\n"
        f"BackendError: there is no device environment in {tmp_path / 'none'}: it is not set up\n"
        f"  hint: ttexplore setup device --folder {tmp_path / 'none'} [TTX-B020]\n"
    )


def test_setup_without_a_python_that_fits(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("PATH", "HOME", "PYENV_ROOT"):
        monkeypatch.setenv(name, str(tmp_path / "nothing"))
    status, out, complaint = call(capsys, "setup", "device", "--folder", str(tmp_path / "device"))
    assert (status, out) == (1, "")
    assert complaint.startswith("BackendError: ttnn needs Python 3.12 or 3.10 with venv, which was not found")
    status, data = call_json(capsys, "setup", "device", "--folder", str(tmp_path / "device"), "--remove")
    assert (status, data) == (0, {"folder": str(tmp_path / "device"), "removed": True})
    status, out, _ = call(capsys, "setup", "device", "--folder", str(tmp_path / "device"), "--remove")
    assert (status, out) == (0, f"there is no device environment in {tmp_path / 'device'}\n")


def test_a_set_up_is_verified_on_the_device_that_is_there(tmp_path: Path) -> None:
    none = DeviceEnvironment(
        folder=tmp_path, python=Path("python"), ttnn_version="0.81.1", sdk_folder=tmp_path, sfpi_folder=tmp_path,
        compiler_version="", wolfpine_folders={}, ttsim_folder=None, managed=True,
    )  # fmt: skip
    wolfpine = dataclasses.replace(none, wolfpine_folders={"wormhole": tmp_path}, ttsim_folder=tmp_path)
    ttsim = dataclasses.replace(none, ttsim_folder=tmp_path)
    assert verified_device(wolfpine) == ("wolfpine", "wormhole_n150")
    assert verified_device(ttsim) == ("ttsim", "blackhole_p100")
    (tmp_path / "libttsim_wh.so").touch()
    assert verified_device(ttsim) == ("ttsim", "wormhole_n150")
    assert verified_device(none) == ("card", "wormhole_n150")


def test_setup_of_what(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, complaint = call(capsys, "setup")
    hint = "run ttexplore setup device, or ttexplore setup gpu"
    assert (status, complaint) == (2, f"UsageError: nothing to set up is named\n  hint: {hint} [TTX-U013]\n")


def test_doctor_wants_what_the_project_pins() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pinned = dict(line.split("==") for line in project["dependencies"] if "==" in line)
    assert {name: version for name, version in doctor.REQUIRED_PACKAGES.items() if version} == pinned


def test_lab_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = tmp_path / "notebooks" / "00_start.ipynb"
    notebook.parent.mkdir()
    notebook.touch()
    (tmp_path / "notebooks" / "mine ä.ipynb").touch()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    served = f"--ServerApp.root_dir={tmp_path}"
    command, root = lab_command(None)
    assert command[:3] == [sys.executable, "-m", "jupyterlab"]
    assert command[-2:] == [served, "--LabApp.default_url=/lab/tree/notebooks/00_start.ipynb"]
    assert root == tmp_path
    assert lab_command("notebooks")[0][-2:] == [served, "--LabApp.default_url=/lab/tree/notebooks"]
    own = "--LabApp.default_url=/lab/tree/notebooks/mine%20%C3%A4.ipynb"
    assert lab_command("notebooks/mine ä.ipynb")[0][-2:] == [served, own]
    notebook.unlink()
    assert lab_command("elsewhere")[0][-2:] == [
        f"--ServerApp.root_dir={tmp_path / 'elsewhere'}", "--LabApp.default_url=/lab",
    ]  # fmt: skip


def test_lab_copies_the_notebooks_of_an_installed_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package, work = tmp_path / "site-packages" / "ttexplore", tmp_path / "work"
    for name in ("notebooks/00_start.ipynb", "notebooks/kernels/gemm.py", "docs/glossary.md"):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(name)
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setattr(course, "_PACKAGE", package)
    monkeypatch.setattr(course, "ROOTS", (Path(), package.parent, package))
    copy = work / "ttexplore-course"
    assert lab_command(None)[1] == copy
    assert (copy / "docs" / "glossary.md").read_text() == "docs/glossary.md"
    # What was changed there is kept.
    (copy / "notebooks" / "00_start.ipynb").write_text("changed")
    assert lab_command(None)[1] == copy
    assert (copy / "notebooks" / "00_start.ipynb").read_text() == "changed"
    (package / "notebooks" / "00_start.ipynb").unlink()
    (copy / "notebooks" / "00_start.ipynb").unlink()
    with pytest.raises(UsageError, match=r"there is no notebooks/00_start\.ipynb"):
        lab_command(None)


def test_lab_without_jupyterlab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(BackendError) as caught:
        lab_command(str(tmp_path))
    assert str(caught.value) == (
        f"JupyterLab is not installed\n  hint: run {sys.executable} -m pip install 'jupyterlab>=4.4' [TTX-B030]"
    )


def test_lab_refuses_a_missing_notebook() -> None:
    with pytest.raises(UsageError):
        lab_command("missing.ipynb")


# The main job


@pytest.mark.parametrize("kernel", KERNELS, ids=KERNEL_NAMES)
def test_run(kernel: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    status, data = call_json(capsys, "run", *kernel)
    assert (status, data["passed"], data["backend"]) == (0, True, "emulator")
    assert data["pcc"] >= 0.9999
    assert data["seconds"] > 0
    assert data["max_rel_error"] >= 0
    assert isinstance(data["message"], str)


@pytest.mark.parametrize("kernel", KERNELS, ids=KERNEL_NAMES)
def test_check(kernel: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    status, data = call_json(capsys, "check", *kernel)
    assert (status, data["ok"], data["first_bad"]) == (0, True, None)
    assert [step["letter"] for step in data["steps"]] == LETTERS
    assert all(step["passed"] for step in data["steps"])


def test_options_and_target_reach_the_lowering(capsys: pytest.CaptureFixture[str]) -> None:
    words = (
        f"{GEMM}::matmul",
        *SMALL_GEMM,
        "--grid",
        "2x1",
        "--target",
        "blackhole_p100",
        "--option",
        "policy=strided",
    )
    status, data = call_json(capsys, "show", *words)
    assert (status, data["target"]) == (0, "blackhole_p100")
    partition = data["plan"]["partition"]
    assert (partition["policy"], partition["core_grid"], len(partition["cores"])) == ("strided", [2, 1], 2)
    assert "error" not in data


def test_options_between_the_kernels_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    kernel, *rest = (f"{GEMM}::matmul", *SMALL_GEMM)
    status, data = call_json(capsys, "run", "--backend", "interpreter", kernel, rest[0], "--seed", "3", *rest[1:])
    assert (status, data["backend"], data["outputs"]) == (
        0, "interpreter", [{"shape": [128, 64], "dtype": "bfloat16"}],
    )  # fmt: skip


def test_show_text_step_and_code(capsys: pytest.CaptureFixture[str]) -> None:
    kernel = (f"{GEMM}::matmul", *SMALL_GEMM)
    status, out, _ = call(capsys, "show", *kernel)
    assert status == 0
    assert "lower_shared_to_cb" in out
    by_letter = call(capsys, "show", *kernel, "--step", "C1")
    assert by_letter == call(capsys, "show", *kernel, "--step", "lower_shared_to_cb")
    assert by_letter == call(capsys, "show", *kernel, "--step", "6")
    status, out, _ = call(capsys, "show", *kernel, "--code", "reader")
    assert status == 0
    assert out.count("void kernel_main()") == 1
    status, data = call_json(capsys, "show", *kernel, "--step", "C1")
    assert (status, data["step"]["name"], data["step"]["changed_ir"]) == (0, "lower_shared_to_cb", True)


def test_export(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "new" / "out"
    status, data = call_json(capsys, "export", f"{ELEMENTWISE}::add", "M=128", "N=128", "-o", str(folder))
    names = ["compute.cpp", "main.cpp", "reader.cpp", "run_ttnn.py", "tt.plan.json", "writer.cpp"]
    assert status == 0
    assert sorted(path.name for path in folder.iterdir()) == names
    assert sorted(data["files"]) == [str(folder / name) for name in names]


def test_export_to_an_unwritable_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "out"
    status, data = call_json(capsys, "export", f"{ELEMENTWISE}::add", "M=128", "N=128", "-o", str(folder))
    assert (status, data["error"]["kind"]) == (2, "UsageError")
    assert data["error"]["message"].startswith(f"{folder} cannot be written: ")


REFUSED = '''\
import ttexplore.language as T


@T.jit
def kernel(A):
    M = T.const("M")
    A: T.Tensor((M, 64), "bfloat16")
    C = T.empty((M, 64), "bfloat16")
    with T.Kernel(M // 64, threads=128) as bx:
        block = T.alloc_shared((4096, 4096), "bfloat16")
        T.copy(A[bx * 64, 0], block)
        T.copy(block, C[bx * 64, 0])
    return C
'''  # fmt: skip


@pytest.mark.parametrize("command", ["show", "run", "check", "export"])
def test_refused_kernel(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "refused.py").write_text(REFUSED)
    monkeypatch.chdir(tmp_path)
    status, data = call_json(capsys, command, "refused.py::kernel", "M=64")
    assert status == 1
    assert data["error"]["kind"] in ("KernelError", "ResourceError")
    assert data["error"]["span"]["file"] == "refused.py"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "start"),
    [
        (["run", "missing.py::f"], "there is no file missing.py"),
        (["run", f"{GEMM}::matmull", *SMALL_GEMM], f"{GEMM} has no kernel matmull"),
        (["run", f"{GEMM}::matmul", *SMALL_GEMM, "--backend", "gpu"], "there is no backend 'gpu'"),
        (["show", f"{GEMM}::matmul", *SMALL_GEMM, "--step", "Z9"], "there is no step 'Z9'"),
        (["show", f"{GEMM}::matmul", *SMALL_GEMM, "--step", "99"], "there is no step 99"),
        (["show", f"{GEMM}::matmul", *SMALL_GEMM, "--option", "polisy=strided"], "there is no option 'polisy'"),
        (["show", f"{GEMM}::matmul", "M=128"], ""),
        (["show", f"{GEMM}::matmul", *SMALL_GEMM, "blok=3"], ""),
    ],
)
def test_wrong_use_of_a_kernel(words: list[str], start: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, data = call_json(capsys, *words)
    assert (status, data["error"]["kind"]) == (2, "UsageError")
    assert data["error"]["message"].startswith(start)
    assert data["error"]["hint"]


def test_a_reader_that_goes_away() -> None:
    """`ttexplore ... | head` must not end in a traceback."""
    command = f"{sys.executable} -m ttexplore.cli doctor | true"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=REPOSITORY)
    assert (result.stdout, result.stderr) == ("", "")


def test_estimate_for_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "chosen.py").write_text(CHOSEN)
    kernel = f"{tmp_path}/chosen.py::kernel"
    status, _, complaint = call(capsys, "estimate", kernel)
    assert status != 0
    assert "a branch in the reader depends on elements of tensors" in complaint
    status, printed, _ = call(capsys, "estimate", kernel, "--inputs", "ones")
    assert status == 0
    assert "inputs: holds for these inputs only" in printed
    status, printed, _ = call(capsys, "estimate", kernel, "--inputs", "random", "--seed", "3", "--json")
    assert json.loads(printed)["estimate"]["of_inputs"] is True


CHOSEN = """import ttexplore.language as T


@T.prim_func
def kernel(A: T.Tensor((128, 32), "bfloat16"), Rows: T.Tensor((4,), "int32"), C: T.Tensor((128, 32), "bfloat16")):
    with T.Kernel(4) as by:
        a = T.alloc_shared((32, 32), "bfloat16")
        T.copy(A[Rows[by] * 32, 0], a)
        T.copy(a, C[by * 32, 0])
"""


def test_estimate(capsys: pytest.CaptureFixture[str]) -> None:
    kernel = f"{GEMM}::matmul"
    status, printed, complaint = call(capsys, "estimate", kernel, "M=128", "N=128", "K=128")
    assert (status, complaint) == (0, "")
    assert printed.startswith("estimate: ")
    assert "against published times" in printed
    status, printed, _ = call(capsys, "estimate", kernel, "M=128", "N=128", "K=128", "--json")
    found = json.loads(printed)["estimate"]
    assert status == 0
    assert found["us"] > found["compute_peak_us"] > 0
    assert found["gains_us"].keys() >= {"DRAM", "math", "RISC-V", "launch"}
    assert found["bound"] == max(found["gains_us"], key=found["gains_us"].get)
    assert found["roofline_us"] == max(found["compute_peak_us"], found["dram_peak_us"])
    assert found["compute_share"] == found["compute_peak_us"] / found["us"]
    assert found["cores"][0]["processors"].keys() >= {"reader", "math"}
    status, printed, _ = call(capsys, "compare", kernel, "M=128", "N=128", "K=128", "--with-target", "blackhole_p150")
    assert status == 0
    row = next(line for line in printed.splitlines() if line.startswith("~ time"))
    assert row.count("us (estimate), bound by") == 2
