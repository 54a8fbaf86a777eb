"""The command lab trusts our notebooks as they are published, and no others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from nbformat import reads, sign  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

from ttexplore import cli
from ttexplore.course import trusting
from ttexplore.course.trusting import digest, published, trust

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


@pytest.fixture
def notary(tmp_path: Path) -> Any:
    return sign.NotebookNotary(data_dir=str(tmp_path))


def is_trusted(file: Path, notary: Any) -> bool:
    return notary.check_signature(reads(file.read_text(encoding="utf-8"), as_version=4))


def test_the_digests_are_those_of_the_notebooks() -> None:
    """If not, a notebook has changed: python -m ttexplore.course.trusting."""
    assert published() == {file.name: digest(file.read_bytes()) for file in NOTEBOOKS.glob("*.ipynb")}


def test_only_published_content_is_trusted(tmp_path: Path, notary: Any) -> None:
    original = (NOTEBOOKS / "00_start.ipynb").read_bytes()
    own, changed, foreign = (tmp_path / f"{name}.ipynb" for name in ("copy", "00_start", "01_more"))
    own.write_bytes(original)
    notebook = json.loads(original)
    outputs = next(cell["outputs"] for cell in notebook["cells"] if cell.get("outputs"))
    outputs.append({"output_type": "display_data", "metadata": {}, "data": {"text/html": "<script>1</script>"}})
    changed.write_text(json.dumps(notebook), encoding="utf-8")
    foreign.write_text(json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}), encoding="utf-8")
    no_notebook = tmp_path / "x.ipynb"
    no_notebook.write_bytes(b"\xff")
    assert trust([changed, foreign, no_notebook, own], notary) == [own]
    assert [is_trusted(file, notary) for file in (own, changed, foreign)] == [True, False, False]


def test_the_command_trusts_by_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "notebooks"
    folder.mkdir()
    for name in ("00_start", "01_other"):
        (folder / f"{name}.ipynb").write_text("{}", encoding="utf-8")
    started: list[object] = []
    trusted: list[Path] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli.subprocess, "run", lambda command: started.append(command) or _Done())
    monkeypatch.setattr(trusting, "trust", lambda files: trusted.extend(trust(files)))
    assert cli.main(["lab"]) == 0
    assert len(started) == 1
    assert trusted == []


class _Done:
    returncode = 0
