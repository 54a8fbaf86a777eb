"""Everything that the command prints can be read at 80 and at 160 columns, and whole in a file."""

from __future__ import annotations

import ast
import importlib
import json
import re
import unicodedata
import zipfile
from pathlib import Path
from typing import Any

import pytest

import ttexplore as ttx
from tests.test_cli import ELEMENTWISE, GEMM, REPOSITORY, SMALL_GEMM, call, call_json
from ttexplore.characters import Printed, printable, visible
from ttexplore.errors import TTExploreError
from ttexplore.views.runs.comparison import comparison_text
from ttexplore.views.terminal import CONTINUED, fold, terminal_columns

KERNELS: dict[str, tuple[str, ...]] = {
    "matmul": (f"{GEMM}::matmul", *SMALL_GEMM),
    "attention": (f"{REPOSITORY / 'notebooks' / 'gallery' / 'attention.py'}::causal_attention",),
    "bias_exp": (f"{ELEMENTWISE}::bias_exp", "M=64", "N=128"),
    # It fails on the way, with a long message.
    "refused": (f"{GEMM}::matmul", *(f"{name}=1024" for name in ("M", "N", "K", "block_M", "block_N", "block_K"))),
}
# What each prints that differs from run to run.
TIMES = re.compile(r"\d+\.\d\d m?s of this machine's time")


def words_of(text: str) -> str:
    """What `text` says, however it is folded."""
    return "".join(TIMES.sub("", " ".join(text.split())).replace(CONTINUED.strip(), "").split())


COMMANDS: dict[str, tuple[str, ...]] = {
    "show": (), "show step": ("--step", "C2"), "show plan": ("--plan",), "show reader": ("--code", "reader"),
    "show compute": ("--code", "compute"), "show host": ("--code", "host"), "run": (), "check": (), "timeline": (),
    "export": ("-o", "{folder}"),
}  # fmt: skip


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("command", COMMANDS)
def test_no_line_is_too_long_and_nothing_is_missing(
    name: str, command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    options = [word.format(folder=tmp_path / "a folder" / "of files") for word in COMMANDS[command]]
    words = (command.partition(" ")[0], *KERNELS[name], *options)
    monkeypatch.delenv("COLUMNS", raising=False)
    whole = call(capsys, *words)
    assert "\x1b" not in whole[1] + whole[2]
    assert CONTINUED not in whole[1] + whole[2]
    for columns in (80, 160):
        monkeypatch.setenv("COLUMNS", str(columns))
        status, *folded = call(capsys, *words)
        assert status == whole[0]
        for text, full in zip(folded, whole[1:], strict=True):
            assert [line for line in text.splitlines() if len(line) > columns] == []
            assert words_of(text) == words_of(full)


def test_messages_help_and_entries_fit(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    calls = (
        ("--help",), ("explain",), ("explain", "circular buffer"), ("explain", "TTX-R001"), ("doctor",),
        ("run", KERNELS["matmul"][0], "--target", "wormhole"), ("show", "missing.py::kernel"),
    )  # fmt: skip
    for words in calls:
        monkeypatch.delenv("COLUMNS", raising=False)
        _, *whole = call(capsys, *words)
        for columns in (80, 160):
            monkeypatch.setenv("COLUMNS", str(columns))
            _, *folded = call(capsys, *words)
            for text, full in zip(folded, whole, strict=True):
                assert [line for line in text.splitlines() if len(line) > columns] == [], words
                assert words_of(text) == words_of(full)


@pytest.mark.parametrize("command", ["show", "run", "check", "compare", "timeline", "report", "save", "doctor"])
@pytest.mark.parametrize("columns", [80, 160])
def test_help_of_a_command_fits(
    command: str, columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    with pytest.raises(SystemExit):
        call(capsys, command, "--help")
    assert [line for line in capsys.readouterr().out.splitlines() if len(line) > columns] == []


# Folding


def test_a_fact_goes_on_below_its_column() -> None:
    assert fold("name   one two three four", 16) == "name   one two\n       three\n       four"
    assert fold("a plain sentence goes on", 14) == "a plain\n  sentence\n  goes on"
    assert fold("short", 0) == fold("short", 80) == "short"
    assert fold("not folded for a file, however long it is " * 9, 0).count("\n") == 0


def test_code_goes_on_after_a_mark() -> None:
    assert fold("    call(first, second);", 18, code=True) == "    call(first,\n      ↪ second);"
    assert fold("+   call(first, second)", 18, code=True) == "+   call(first,\n      ↪ second)"


def test_a_word_that_is_cut_has_a_mark() -> None:
    assert fold("name  /a/long/path/of/a/file", 16) == "name  /a/long/pa\n      ↪ th/of/a/\n      ↪ file"
    assert fold("x" * 20, 12) == "x" * 12 + "\n  ↪ " + "x" * 8
    for columns in (8, 12, 40, 80):
        assert max(map(len, fold(" " * 70 + "x" * 99, columns).splitlines())) <= columns


@pytest.mark.parametrize("columns", [-5, *range(1, 12)])
@pytest.mark.parametrize("code", [False, True])
def test_the_narrowest_terminals(columns: int, code: bool) -> None:
    text = f"{' ' * 9}name  {'x' * 40} one two\n+   {'y' * 30}"
    parts = fold(text, columns, code=code).splitlines()
    assert max(map(len, parts)) <= max(columns, 8)
    assert "".join("".join(parts).split()).replace("↪", "") == "".join(text.split())


def test_a_file_or_pipe_has_no_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "72")
    assert terminal_columns() == 72


# Comparing and several kernels


def test_compare_with_another_option(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("compare", *KERNELS["matmul"], "--with", "policy=strided", "--with-target", "blackhole_p150")
    for columns in (80, 160):
        monkeypatch.setenv("COLUMNS", str(columns))
        status, out, complaint = call(capsys, *words)
        assert (status, complaint) == (0, "")
        assert max(map(len, out.splitlines())) <= columns
        changed = [line.split()[1:] for line in out.splitlines() if line.startswith("~")]
        assert ["target", "wormhole_n150", "blackhole_p150"] in changed
        assert ["policy", "by", "predicted", "time", "strided"] in changed
    status, data = call_json(capsys, *words)
    assert (status, data["first"]["target"], data["second"]["target"]) == (0, "wormhole_n150", "blackhole_p150")
    assert ["policy", "by predicted time", "strided"] in data["rows"]


def test_compare_names_steps_and_files_and_shows_each(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("compare", *KERNELS["matmul"], "--with", "policy=strided")
    _, out, _ = call(capsys, *words)
    assert "\n● B2   grid_to_core_grid              rewrites differently\n" in out
    assert "\n↓ C1   lower_shared_to_cb             only passes on earlier differences\n" in out
    assert out.endswith("\nfiles that differ: reader.cpp, writer.cpp\n")
    _, data = call_json(capsys, *words)
    assert [one["change"] for one in data["steps"]] == [*["same"] * 4, "plan", "program", *["carried"] * 9]
    assert [one["change"] for one in data["steps"][0]["parts"]] == ["same"] * 20
    assert data["files"] == ["reader.cpp", "writer.cpp"]
    for what, line in (("B2", "+         work = work_start + item * "), ("reader.cpp", "work = work_start + item * ")):
        status, out, _ = call(capsys, *words, "--show", what)
        assert (status, line in out) == (0, True)
    status, out, complaint = call(capsys, *words, "--show", "B9")
    assert (status, out, "there is no step or file 'B9'" in complaint) == (2, "", True)


def test_show_compares_two_steps_and_tells_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call(capsys, "show", *KERNELS["matmul"], "--step", "C1", "--against", "B1")
    assert out.startswith("B1 layout_aware_work_partition → C1 lower_shared_to_cb: ")
    status, _, complaint = call(capsys, "show", *KERNELS["matmul"], "--against", "B1")
    assert (status, "--against is given without a step" in complaint) == (2, True)
    words = ("show", *KERNELS["matmul"], "--options", "--option", "stages=3")
    _, out, _ = call(capsys, *words)
    assert "A2  stages            3              option\n      Blocks per circular buffer" in out
    _, data = call_json(capsys, *words)
    assert {one["name"]: one["by"] for one in data["options"]}["stages"] == "option"


def test_compare_two_kernels_or_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    saved = str(tmp_path / "a=b.ttx")
    assert call(capsys, "save", *KERNELS["bias_exp"], "-o", saved)[0] == 0
    status, data = call_json(capsys, "compare", *KERNELS["matmul"], saved)
    assert (status, data["first"]["kernel"], data["second"]["kernel"]) == (0, "matmul", "bias_exp")
    for words, problem in (
        (("compare",), "no kernel is given"),
        (("compare", *KERNELS["matmul"]), "two lowerings are compared, not 1"),
        (("compare", *KERNELS["matmul"], saved, "--with", "stages=1"), "two lowerings are compared, not 3"),
        (("compare", saved, "--with", "stages=1"), f"{saved} is a saved exploration, which cannot be lowered again"),
        (("compare", *KERNELS["matmul"], "--with", "stages"), "the option 'stages' has no value"),
    ):
        status, out, complaint = call(capsys, *words)
        assert (status, out) == (2, "")
        assert complaint.startswith(f"UsageError: {problem}\n  hint: ")


TWO_LAUNCHES = """
import ttexplore.language as T


def two(M=64):
    @T.prim_func
    def main(A: T.Tensor((M, 32), "bfloat16"), B: T.Tensor((M, 32), "bfloat16"), C: T.Tensor((M, 32), "bfloat16")):
        with T.Kernel(M // 32) as bx:
            a = T.alloc_shared((32, 32), "bfloat16")
            T.copy(A[bx * 32, 0], a)
            T.copy(a, B[bx * 32, 0])
        with T.Kernel(M // 32) as bx:
            b = T.alloc_shared((32, 32), "bfloat16")
            T.copy(B[bx * 32, 0], b)
            T.copy(b, C[bx * 32, 0])

    return main
"""


def test_one_launch_of_several(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "launches.py"
    file.write_text(TWO_LAUNCHES)
    kernel = f"{file}::two"
    monkeypatch.setenv("COLUMNS", "80")
    for words in (("show", kernel), ("run", kernel), ("check", kernel), ("timeline", kernel, "--launch", "2"),
                  ("compare", kernel, "--launch", "1", "--with", "stages=1")):  # fmt: skip
        status, out, complaint = call(capsys, *words)
        assert (status, complaint) == (0, ""), words
        assert max(map(len, out.splitlines())) <= 80
    for command in ("timeline", "compare"):
        words = (command, kernel, *(("--with", "stages=1") if command == "compare" else ()), "--launch", "3")
        assert call(capsys, *words)[::2] == (
            2, "UsageError: there is no launch 3\n  hint: the kernel has 2, counted from 1 [TTX-U001]\n"
        )  # fmt: skip


def test_cells_of_a_comparison_are_folded_in_their_columns() -> None:
    rows = [("cores", "8 of 64 cores, 1 item each", "one"), ("same", "a", "a")]
    assert comparison_text(rows, 24) == (
        "~ cores  8 of 64    one\n           cores,\n           1 item\n           each\n  same   a          a"
    )
    assert comparison_text(rows).splitlines()[0] == "~ cores  8 of 64 cores, 1 item each  one"


def test_report_of_several_kernels(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "kernels.html"
    words = ("report", *KERNELS["bias_exp"], *KERNELS["matmul"], "--no-run", "-o", str(file))
    status, data = call_json(capsys, *words)
    assert (status, data["file"]) == (0, str(file))
    names: list[Any] = [one["kernel"] for one in data["lowerings"]]
    assert names == ["bias_exp", "matmul"]
    page = file.read_text(encoding="utf-8")
    assert "bias_exp on wormhole_n150, matmul on wormhole_n150" in page


def test_a_timeline_says_what_its_steps_are(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = call(capsys, "timeline", *KERNELS["matmul"], "--core", "1,0")
    assert status == 0
    unit = "emulator, in logical steps, one for each operation: not a time of the chip"
    assert out.startswith(f"{unit}\n4 cores recorded")
    assert "\ncore (1, 0): " in out
    assert re.search(r"^  CB 0 +A_shared ", out, re.MULTILINE)
    status, data = call_json(capsys, "timeline", *KERNELS["matmul"])
    assert (status, data["core"], data["deadlock"]) == (0, [0, 0], "")
    assert {wait["kernel"] for wait in data["waits"]} <= {"reader", "compute", "writer"}
    status, _, complaint = call(capsys, "timeline", *KERNELS["matmul"], "--core", "7,7")
    assert status == 2
    assert complaint.startswith("UsageError: core (7, 7) does no work\n")


# Foreign texts

# Sets the title, clears the screen, turns the line around, hides characters, ends lines elsewhere; a lone surrogate.
STEERING = "\x1b]0;title\x07\x1b[2J\x9b31m\x7f\x00\r\u202e\u2066\u200e\u200b\ufeff\u2028\u2029\udc80"
STAYS = "µ → é 漢字 ✓"


def steering(text: str) -> set[str]:
    return {one for one in text if one not in "\n\t" and unicodedata.category(one) in ("Cc", "Cf", "Cs", "Zl", "Zp")}


def test_characters_that_steer_are_shown() -> None:
    assert printable(f"a\tb\n{STAYS}") == f"a\tb\n{STAYS}"
    assert printable("\x1b[2J") == "⟨U+001B⟩[2J"
    assert steering(STEERING) == set(STEERING) - set("]0;title[2J31m")
    assert steering(printable(STEERING)) == steering(visible(STEERING)) == set()
    for number in (
        *range(0x20),
        *range(0x7F, 0xA0),
        *range(0x200B, 0x2010),
        *range(0x2028, 0x202F),
        *range(0x2060, 0x2070),
    ):
        assert (printable(chr(number)) == chr(number)) == (chr(number) in "\n\t")


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved exploration, each of whose texts that may have any characters steers the terminal."""
    folder = tmp_path_factory.mktemp("foreign")
    kernel = folder / "kernel.py"
    lines = Path(ELEMENTWISE).read_text(encoding="utf-8").split("\n")
    kernel.write_text(
        "\n".join(f"{line}  # {STAYS}" if "T.copy(" in line else line for line in lines), encoding="utf-8"
    )
    ttx.explore(f"{kernel}::bias_exp", M=64, N=64).save(folder / "good.ttx")
    with zipfile.ZipFile(folder / "good.ttx") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    trace = json.loads(parts["trace.json"])
    trace["kernel"] += STEERING
    listings = [trace["source"], *trace["files"].values()]
    for step in trace["steps"]:
        listings += [step["before"], step["after"]]
        step["summary"] += STEERING
        step["name"] += STEERING
    for listing in listings:
        for line in listing["lines"]:
            line["text"] += f" // {STEERING}"
    parts["trace.json"] = json.dumps(trace).encode()
    with zipfile.ZipFile(folder / "foreign.ttx", "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return folder / "foreign.ttx"


@pytest.mark.parametrize(
    "options",
    [
        ("show",), ("show", "--step", "3"), ("show", "--step", "nowhere"), ("show", "--code", "reader"),
        ("show", "--code", "host"), ("show", "--plan"), ("show", "--options"), ("show", f"--step={STEERING[:-1]}"),
        ("report", "--no-run", "-o", "{folder}/report.html"), ("export", "-o", "{folder}/out"),
        ("check",), (f"sh{STEERING[:-1]}ow",),
    ],
)  # fmt: skip
def test_nothing_foreign_steers_the_terminal(
    foreign: Path, options: tuple[str, ...], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    command, *rest = (word.replace("{folder}", str(tmp_path)) for word in options)
    _, out, complaint = call(capsys, command, str(foreign), *rest)
    assert out + complaint != ""
    assert steering(out) == steering(complaint) == set()
    _, out, complaint = call(capsys, command, str(foreign), *rest, "--json")
    assert steering(out) == steering(complaint) == set()
    json.loads(out)


def test_json_has_the_characters_themselves(foreign: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, data = call_json(capsys, "show", str(foreign), "--code", "reader")
    assert STEERING in data["code"]["reader"]


def test_what_is_no_kernel_is_told_without_steering(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    name = STEERING.replace("\0", "")
    file = tmp_path / f"{name[:-1]}.py"
    file.write_text(f"raise ValueError({STEERING!r})", encoding="utf-8")
    for words in (("show", str(file)), ("show", f"{file}::{name}"), ("explain", name), ("gallery", name),
                  ("run", KERNELS["matmul"][0], f"M={name}"), ("freeze", str(file))):  # fmt: skip
        status, out, complaint = call(capsys, *words)
        assert status != 0
        assert complaint != ""
        assert steering(out) == steering(complaint) == set()


def test_legitimate_characters_stay(foreign: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = call(capsys, "show", f"{foreign.parent / 'kernel.py'}::bias_exp", "--step", "A0", "M=64", "N=64")
    assert status == 0
    assert STAYS in printable(ttx.load(foreign.parent / "good.ttx").kernel.source.text)
    assert "⟨U+" not in out


def test_objects_print_without_steering(foreign: Path) -> None:
    lowering = ttx.load(foreign)
    first, _ = lowering.kernel.source.lines[0].origins[0].span.line, lowering.data
    shown: list[object] = [
        lowering, lowering.steps, lowering.steps[2], lowering.steps[2].diff(), lowering.steps[2].why(1),
        lowering.steps[2].listing, lowering.history(first), lowering.find("copy"), lowering.settings, lowering.plan,
        lowering.view(), lowering.static(), lowering.kernel.source, lowering.dot(), lowering.dot("passes"),
        ttx.compare(lowering, lowering), *lowering.code.values(),
    ]  # fmt: skip
    for one in shown:
        assert steering(str(one)) == steering(repr(one)) == set(), type(one)
    assert STEERING in lowering.code["reader"].text
    assert STEERING in "".join(lowering.code["reader"])


def test_errors_print_without_steering() -> None:
    error = TTExploreError("U001", STEERING, hint=STEERING)
    assert steering(str(error)) == steering(repr(error)) == set()
    assert error.message == STEERING


# Below these, what prints itself is of our own making: code, IR.
_OURS = ("ir", "passes", "language", "emit", "ops")


def test_what_prints_itself_is_printed() -> None:
    """By construction: a class with a text of its own writes it through `Printed`."""
    package = Path(ttx.__file__).parent
    found = 0
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        if parts[0] in _OURS or "foreign" in parts or parts[-1] in ("worker", "__init__"):
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and {"__str__", "__repr__"} & _defined(node):
                bases = {ast.unparse(base) for base in node.bases}
                if bases & {"NamedTuple", "anywidget.AnyWidget"}:
                    continue
                kind = getattr(importlib.import_module(".".join(["ttexplore", *parts])), node.name)
                assert issubclass(kind, Printed), kind
                found += 1
    assert found > 40


def _defined(node: ast.ClassDef) -> set[str]:
    names = {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
    return names | {ast.unparse(to) for one in node.body if isinstance(one, ast.Assign) for to in one.targets}
