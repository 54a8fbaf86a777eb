"""Explorations in files: what is opened again, without TVM, and every file that is none."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
from tests.corpus import gemm
from tests.steps import LETTERS
from ttexplore.cli import main
from ttexplore.errors import BackendError, ResourceError, UsageError
from ttexplore.exploration import Exploration
from ttexplore.record import Trace, from_json, to_json
from ttexplore.session.pages import reported
from ttexplore.views.explorer import packed

NO_TEXT = {"language": "cpp", "lines": [], "name": ""}

# Whatever asks for TVM is refused, as where it is not installed.
WITHOUT_TVM = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("tvm", "tvm_ffi"):
            raise ImportError(f"{name} is not installed")
sys.meta_path.insert(0, Refuse())
import ttexplore as ttx
saved = ttx.load(sys.argv[1])
assert saved._repr_html_() and saved.core_map.svg and saved.dataflow.svg and saved.l1_map.svg and saved.data
assert saved.widget().view()
saved.export(sys.argv[2])
print(saved)
print(saved.steps["C1"].diff())
print(saved.code["reader"])
print(saved.run().passed, saved.run(seed=1).compared)
"""


@pytest.fixture(scope="module")
def exploration() -> Exploration:
    return ttx.explore(gemm(64, 64, 64, 32, 32, 32))


@pytest.fixture(scope="module")
def file(exploration: Exploration, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return exploration.save(tmp_path_factory.mktemp("saved") / "gemm.ttx")


def test_opens_and_runs_without_tvm(exploration: Exploration, file: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", WITHOUT_TVM, str(file), str(tmp_path / "out")]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    expected = [exploration, exploration.steps["C1"].diff(), exploration.code["reader"], "True False"]
    assert told == "".join(f"{one}\n" for one in expected)
    assert {path.name for path in (tmp_path / "out").iterdir()} == set(exploration.files)


def test_what_is_opened_is_what_was_saved(exploration: Exploration, file: Path, tmp_path: Path) -> None:
    saved = ttx.load(file)
    assert saved.trace == exploration.trace
    assert saved.plan == exploration.plan
    assert saved.target == exploration.target
    assert saved._repr_html_() == exploration._repr_html_()
    assert saved.steps.B1.plan == exploration.steps.B1.plan
    assert [step.listing for step in saved.steps] == [step.listing for step in exploration.steps]
    for one, other in zip(saved.inputs(), exploration.inputs(), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(saved.reference()[0], exploration.reference()[0])
    # Only the kernel itself has a predicted time.
    *same, time = ttx.compare(exploration, exploration).rows
    assert ttx.compare(saved, exploration).rows == tuple(same)
    assert time == ("time", exploration.estimated, exploration.estimated)
    assert ttx.load(saved.save(tmp_path / "again.ttx")).trace == exploration.trace


def test_a_run_without_a_reference_says_so(exploration: Exploration, file: Path) -> None:
    saved = ttx.load(file)
    run = saved.run(seed=1)
    assert (run.passed, run.compared) == (None, False)
    assert "there is no reference for these inputs" in str(run)
    assert repr(run) == "<run on emulator: not compared>"
    assert "not compared" in run._repr_html_()
    np.testing.assert_array_equal(run.outputs[0], exploration.run(seed=1).outputs[0])
    # The same inputs have the reference, whoever gives them.
    assert saved.run(saved.inputs()).passed


def test_elements_that_choose_places_are_those_that_were_saved(tmp_path: Path) -> None:
    gallery = Path(__file__).parents[1] / "notebooks" / "gallery"
    exploration = ttx.explore(f"{gallery / 'indexed.py'}::paged_attention")
    saved = ttx.load(exploration.save(tmp_path / "paged.ttx"))
    for seed in (0, 3):
        for own, of_file in zip(exploration.inputs(seed), saved.inputs(seed), strict=True):
            assert own.dtype == of_file.dtype
            if not seed or own.dtype != np.int32:
                np.testing.assert_array_equal(own, of_file)
    run = saved.run()
    assert run.passed, run.message
    np.testing.assert_array_equal(run.outputs[0], exploration.run().outputs[0])
    # Other numbers, in the places that are in the file.
    np.testing.assert_array_equal(saved.run(seed=3).outputs[0], exploration.run(saved.inputs(3)).outputs[0])


@pytest.mark.parametrize(
    ("use", "what"),
    [
        (lambda saved: saved.fork(policy="strided"), "lowering again"),
        (lambda saved: saved.check(), "executing each step"),
        (lambda saved: saved.run(backend="interpreter"), "the backend interpreter"),
        (lambda saved: saved.run(sizes={"M": 3}), "a lowering for other sizes"),
        (lambda saved: saved.reference(seed=1), "the reference of these inputs"),
        (lambda saved: saved.estimate_data(), "an estimate"),
    ],
)
def test_what_needs_the_kernel_says_so(file: Path, use: Callable[[Any], Any], what: str) -> None:
    with pytest.raises(UsageError, match=f"{what} needs the kernel itself") as caught:
        use(ttx.load(file))
    assert "explore the kernel again" in caught.value.hint


def test_all_that_only_a_kernel_can_do_says_so(file: Path) -> None:
    """Whatever an exploration has that a saved one has not, the saved one knows by name."""
    saved = ttx.load(file)
    of_a_kernel = {name for name in dir(ttx.Exploration) if name[0] != "_"} - {*dir(saved), "ported"}
    assert of_a_kernel > {"check", "estimate", "fork", "gpu", "link_map"}
    for name in of_a_kernel:
        with pytest.raises(UsageError, match="needs the kernel itself") as caught:
            getattr(saved, name)
        assert caught.value.code == "TTX-U017"
    with pytest.raises(AttributeError, match="a saved exploration has no 'frok'"):
        _ = saved.frok


def test_what_cannot_be_done_is_known_before_it_is_asked_for(exploration: Exploration, file: Path) -> None:
    saved = ttx.load(file)
    assert exploration.missing.keys() <= {"record"}
    assert saved.missing.keys() - {"record"} == {"check", "edit", "estimate", "fork", "gpu"}
    for what, why in saved.missing.items():
        assert what == "record" or why == "needs the kernel itself, which a saved exploration does not contain"
    assert {one["name"] for one in saved.backends if one["missing"].startswith("needs the kernel itself")} == {
        "interpreter", "reference",
    }  # fmt: skip


def test_a_failed_exploration_is_saved_with_its_error(tmp_path: Path) -> None:
    saved = ttx.load(ttx.explore(gemm(4096, 4096, 4096, 2048, 2048, 2048)).save(tmp_path / "failed.ttx"))
    assert isinstance(saved.error, ResourceError)
    assert "failed at A2" in repr(saved)
    with pytest.raises(ResourceError, match="of L1"):
        saved.run()
    with pytest.raises(UsageError, match="there is no step 'C1'"):
        saved.steps["C1"]


def test_large_tensors_are_left_out(tmp_path: Path) -> None:
    saved = ttx.load(ttx.explore(gemm(2048, 2048, 64, 64, 64, 32)).save(tmp_path / "large.ttx"))
    assert not saved._lowerings[0].kept


def test_a_folder_that_is_not_there(exploration: Exploration, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        exploration.save(tmp_path / "missing" / "gemm.ttx")
    with pytest.raises(UsageError, match="there is no file"):
        ttx.load(tmp_path / "gemm.ttx")


def test_what_could_not_be_read_again_is_not_saved(
    exploration: Exploration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ttexplore.session.archive._LARGEST_JSON_BYTES", 10_000)
    with pytest.raises(
        UsageError, match=r"cannot be written: trace.json would have [\d,]+ B, above the limit of 10,000 B"
    ):
        exploration.save(tmp_path / "gemm.ttx")
    assert list(tmp_path.iterdir()) == []


def changed(file: Path, target: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    with zipfile.ZipFile(file) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return target


def edit(name: str, *path: Any, value: Any) -> Callable[[dict[str, bytes]], None]:
    """Puts `value` at a path of a JSON member."""

    def change(members: dict[str, bytes]) -> None:
        data = json.loads(members[name])
        place = data
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        members[name] = json.dumps(data).encode()

    return change


def test_a_file_from_before_steps_had_parts_opens(exploration: Exploration, file: Path, tmp_path: Path) -> None:
    def without_parts(members: dict[str, bytes]) -> None:
        trace = json.loads(members["trace.json"])
        for step in trace["steps"]:
            del step["parts"]
        members["trace.json"] = json.dumps(trace).encode()

    saved = ttx.load(changed(file, tmp_path / "old.ttx", without_parts))
    assert [step.letter for step in saved.steps] == [step.letter for step in exploration.steps]
    assert [step.parts for step in saved.steps] == [()] * len(LETTERS)
    assert len(saved.data["steps"]) == len(LETTERS)
    assert saved.steps[0].listing == exploration.steps[0].listing
    # What A0 changed stands where its parts would have it.
    assert "A0.1" not in saved._repr_html_()
    assert "A0.1" in exploration._repr_html_()


def put(name: str, content: bytes) -> Callable[[dict[str, bytes]], None]:
    return lambda members: members.update({name: content})


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (edit("ttx.json", "version", value=7), "it has version 7, and this ttexplore reads version 2"),
        (lambda members: members.pop("trace.json"), "trace.json is missing"),
        (put("trace.json", b"{"), "trace.json is not JSON"),
        (put("trace.json", b"[" * 100_000), "trace.json is not JSON"),
        (put("trace.json", b"[]"), "trace.json is not a JSON object"),
        (put("trace.json", b" " * ((64 << 20) + 1)), "trace.json is larger than 67,108,864 B"),
        (put("inputs", b"123"), "inputs has 3 B, but the tensors of the plan have"),
        (edit("trace.json", "steps", value=[]), "it has no steps"),
        (edit("trace.json", "steps", value="abc"), "is not a list"),
        (edit("trace.json", "steps", 3, "index", value="3"), "'3' is not a <class 'int'>"),
        (edit("trace.json", "steps", 3, "seconds", value=True), "True is not a <class 'float'>"),
        (edit("trace.json", "steps", 3, "strange", value=1), "KeyError: 'strange'"),
        (edit("trace.json", "steps", 0, "parts", value="abc"), "is not a list"),
        (edit("trace.json", "steps", 0, "parts", 17, "index", value="3"), "'3' is not a <class 'int'>"),
        (edit("trace.json", "steps", 0, "parts", 17, "strange", value=1), "KeyError: 'strange'"),
        (
            edit("trace.json", "steps", 0, "parts", 3, "firings", value=[{"rule": "", "before": [99], "after": []}]),
            "its parts are inconsistent",
        ),
        (edit("trace.json", "source", "language", value="html"), "'html' is not one of 'python'"),
        (edit("trace.json", "files", value={}), "its parts are inconsistent"),
        (
            edit("trace.json", "files", "../own.txt", value=NO_TEXT),
            "it has a file '../own.txt', but exports contain only reader",
        ),
        (edit("trace.json", "files", "/tmp/own.txt", value=NO_TEXT), "it has a file '/tmp/own.txt'"),
        (edit("trace.json", "files", "Makefile", value=NO_TEXT), "it has a file 'Makefile'"),
        (edit("trace.json", "plan", "buffers", 0, "data_format", value="Float8"), "'Float8' is not a data format"),
        (edit("trace.json", "plan", "layouts", 0, "data_format", value="Bfp4"), "'Bfp4' is not a data format"),
        (edit("trace.json", "plan", "layouts", 0, "dtype", value="float9"), "'float9' is not a dtype of a tensor"),
        (edit("trace.json", "plan", "partition", "core_grid", value=[10**9, 1]), "no chip has more than 64 columns"),
        (edit("trace.json", "plan", "layouts", 0, "shape", value=[-64, 64]), "a tensor has an extent below 1"),
        (
            edit("trace.json", "plan", "partition", "grid", value=[10**9]),
            "there are 1,000,000,000 work items, and at most 67,108,864 are lowered",
        ),
        (edit("ttx.json", "target", "compute_grid", value=[10**9, 10**9]), "no chip has more than 64 columns"),
    ],
)
def test_every_malformed_file_is_refused(
    file: Path, tmp_path: Path, change: Callable[[dict[str, bytes]], None], why: str
) -> None:
    with pytest.raises(UsageError, match="is not a valid saved exploration: ") as caught:
        ttx.load(changed(file, tmp_path / "changed.ttx", change))
    assert why in caught.value.message
    assert caught.value.hint == "save it again: exploration.save(file)"


def test_half_a_character_is_shown_escaped(file: Path, tmp_path: Path) -> None:
    """JSON has them, UTF-8 has not, and the explorer is given UTF-8."""
    change = edit("trace.json", "steps", 1, "options", value={"match": "\ud800"})
    opened = ttx.load(changed(file, tmp_path / "changed.ttx", change))
    opened.report(tmp_path / "page.html", run=False)
    shown = json.loads(zlib.decompress(packed(opened.data)).decode())
    assert json.dumps(shown) == json.dumps(opened.data)


def test_another_packing_is_refused(file: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(file) as archive, zipfile.ZipFile(tmp_path / "other.ttx", "w", zipfile.ZIP_BZIP2) as other:
        for name in archive.namelist():
            other.writestr(name, archive.read(name))
    with pytest.raises(UsageError, match=r"ttx\.json uses an unsupported compression method"):
        ttx.load(tmp_path / "other.ttx")


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("trace.json", "it has 'trace.json' twice"),
        ("inputs", "it has 'inputs' twice"),
        ("../out.py", "it has '../out.py', which no save writes"),
        ("\x1b[31m", r"it has '\x1b[31m', which no save writes"),
    ],
)
def test_a_member_that_no_save_writes_is_refused(file: Path, tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / "other.ttx").write_bytes(file.read_bytes())
    with zipfile.ZipFile(tmp_path / "other.ttx", "a") as archive:
        archive.writestr(name, "{}")
    with pytest.raises(UsageError, match=re.escape(why)):
        ttx.load(tmp_path / "other.ttx")


@pytest.mark.parametrize("nth", [0, -1], ids=["member", "directory"])
def test_a_members_name_that_is_no_text(file: Path, tmp_path: Path, nth: int) -> None:
    """Both places that have the name, with the flag that it is UTF-8."""
    content = bytearray(file.read_bytes())
    name = [at for at in range(len(content)) if content.startswith(b"ttx.json", at)][nth]
    content[name + 4] = 0xFF
    content[name - 46 + 9 if nth else name - 30 + 7] |= 0x08
    (tmp_path / "other.ttx").write_bytes(content)
    with pytest.raises(UsageError, match="is not a valid saved exploration: it cannot be unpacked"):
        ttx.load(tmp_path / "other.ttx")


def test_no_zip_and_a_damaged_one(file: Path, tmp_path: Path) -> None:
    (tmp_path / "text.ttx").write_text("a text")
    with pytest.raises(UsageError, match="it is damaged, or not a zip file"):
        ttx.load(tmp_path / "text.ttx")
    content = bytearray(file.read_bytes())
    content[2000] ^= 0xFF
    (tmp_path / "damaged.ttx").write_bytes(content)
    with pytest.raises(UsageError, match="is not a valid saved exploration"):
        ttx.load(tmp_path / "damaged.ttx")


def test_records_read_back_what_they_wrote(exploration: Exploration) -> None:
    assert from_json(Trace, json.loads(json.dumps(to_json(exploration.trace)))) == exploration.trace


# Asking before the C++ of a file runs


@pytest.fixture(scope="module")
def foreign(file: Path) -> Path:
    """A file whose C++ shows that somebody compiled it: it is no C++."""
    with zipfile.ZipFile(file) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    trace = json.loads(parts["trace.json"])
    for name in ("reader.cpp", "compute.cpp", "writer.cpp"):
        trace["files"][name]["lines"][0]["text"] = "#error compiled"
    with zipfile.ZipFile(file.with_name("foreign.ttx"), "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, json.dumps(trace) if name == "trace.json" else content)
    return file.with_name("foreign.ttx")


def test_the_command_asks_before_it_compiles_a_file(
    foreign: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    assert main(["timeline", str(foreign)]) == 2
    complaint = capsys.readouterr().err
    assert complaint == (
        f"UsageError: a timeline of {foreign} compiles and executes the C++ in this file\n"
        "  hint: if you trust the file, add --run [TTX-U014]\n"
    )
    for words in ([], ["--no-run"]):
        assert main(["report", str(foreign), "-o", str(page), *words]) == 0
        assert (f"not run: {foreign}" in capsys.readouterr().out) == (not words)
        assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    compiling = (["timeline", "--run"], ["report", "--run", "-o", str(page)], ["run"])
    for command, *words in compiling:
        assert main([command, str(foreign), *words]) == 1
        assert "#error compiled" in capsys.readouterr().err
    assert main(["report", str(foreign), "--run", "--no-run", "-o", str(page)]) == 2


def test_only_explorations_of_this_process_are_reported_with_a_run(
    exploration: Exploration, foreign: Path, tmp_path: Path
) -> None:
    opened = ttx.load(foreign)
    opened.report(tmp_path / "saved.html")
    ttx.report(tmp_path / "both.html", exploration, opened)
    pages = [*reported(exploration, None), *reported(opened, None)]
    ran = [(one.timeline is not None, "recorded_run" in one.state) for one in pages]
    assert ran == [(True, True), (False, False)]
    assert [one.note.endswith(", not run") for one in pages] == [False, True]
    writes: tuple[Callable[[], object], ...] = (
        lambda: opened.report(tmp_path / "saved.html", run=True), lambda: opened.run(), lambda: opened.timeline(),
        lambda: ttx.report(tmp_path / "both.html", exploration, opened, run=True), lambda: opened.tile("C", 0, 0),
    )  # fmt: skip
    for write in writes:
        with pytest.raises(BackendError, match="#error compiled"):
            write()
