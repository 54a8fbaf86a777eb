"""`ttexplore gallery`: the list, one kernel, the page, and what is wrong with the folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.gallery import GALLERY, KERNELS, PAGE
from ttexplore.cli import main
from ttexplore.course import gallery as module
from ttexplore.course import root as course
from ttexplore.course.gallery import PHASES, RECORDS, Entry, read_gallery
from ttexplore.errors import UsageError

Captured = pytest.CaptureFixture[str]


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_the_list_fits(columns: int, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main(["gallery"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= columns
    titles = [phase.title for phase in PHASES]
    assert [line for line in lines if line in titles] == titles
    assert ("time" in lines[0].split()) == (columns == 200)
    for kernel in KERNELS:
        assert any(kernel.partition("::")[2] in line.split() for line in lines)


def test_one_kernel(capsys: Captured) -> None:
    file = GALLERY / "gemm.py"
    for name in ("gemm", "gemm.py::gemm", f"{file}::gemm"):
        assert main(["gallery", name]) == 0
        text = capsys.readouterr().out
        assert "Phase 1: foundation; 1.3 GEMM" in text
        line = next(n for n, one in enumerate(file.read_text().splitlines(), 1) if one.startswith("def gemm("))
        assert f"gemm.py:{line}\n" in text
        assert "      return A @ B\n" in text
    command = next(line.strip() for line in text.splitlines() if line.startswith("  ttexplore run "))
    assert main(command.split()[1:]) == 0
    assert "passed" in capsys.readouterr().out


def test_as_data(capsys: Captured) -> None:
    assert main(["gallery", "--json"]) == 0
    data: Any = json.loads(capsys.readouterr().out)
    assert [one["kernel"] for one in data["kernels"]] == list(KERNELS)
    assert set(data["versions"]) == {"ttnn", "wolfpine"}
    assert main(["gallery", "top_k", "--json"]) == 0
    one: Any = json.loads(capsys.readouterr().out)
    assert (one["section"], one["kernel"], one["steps"] > 10) == ("5.3", "topk.py::top_k", True)
    assert one["formula"].startswith("def top_k_reference(A, k=4):")


def test_the_page(tmp_path: Path, capsys: Captured) -> None:
    assert main(["gallery", "-o", str(tmp_path / "page.md")]) == 0
    assert (tmp_path / "page.md").read_text() == PAGE.read_text()
    assert main(["gallery", "-o", str(tmp_path)]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_an_unknown_kernel(capsys: Captured) -> None:
    assert main(["gallery", "softmx"]) == 2
    assert "there is no kernel in the gallery 'softmx'\n  hint: did you mean softmax?" in capsys.readouterr().err


def test_without_the_folder(tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(course, "ROOTS", (Path(),))
    assert main(["gallery"]) == 2
    complaint = capsys.readouterr().err
    assert "there is no notebooks/gallery/gallery.json\n  hint: run this in a checkout of the project" in complaint


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"kernels": 3, "versions": {}}'])
def test_records_that_are_none(tmp_path: Path, text: str) -> None:
    (tmp_path / RECORDS).write_text(text)
    with pytest.raises(UsageError, match=r"gallery\.json cannot be read: .*\n  hint: restore it"):
        read_gallery(tmp_path)


def test_a_kernel_that_is_not_in_its_file(tmp_path: Path) -> None:
    (tmp_path / "gemm.py").write_text("def other():\n    pass\n")
    entry = Entry(PHASES[0], PHASES[0].sections[2], "gemm.py::gemm", tmp_path, {})
    with pytest.raises(UsageError, match=r"gemm\.py does not define gemm and gemm_reference"):
        entry.source()


def test_what_was_never_recorded(tmp_path: Path) -> None:
    (tmp_path / RECORDS).write_text('{"versions": {}, "kernels": {}}')
    entry = read_gallery(tmp_path).entry("gemm")
    assert (entry.steps, entry.errors, entry.moved, entry.chip("wormhole_n150")) == ("-", "-", "-", "-")
    assert "| - | - | - |" in module.page(read_gallery(tmp_path))
