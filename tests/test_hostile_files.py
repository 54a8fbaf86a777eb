"""Saved explorations that somebody has changed: `python -m tests.hostile_files 10000` tries more of them."""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

import ttexplore as ttx
from tests.corpus import gemm
from tests.hostile_files import Attacker, attack, outside
from ttexplore.errors import ResourceError
from ttexplore.explored import Explored


@pytest.fixture(scope="module")
def attacker(tmp_path_factory: pytest.TempPathFactory) -> Attacker:
    return Attacker(ttx.explore(gemm(64, 64, 64, 32, 32, 32)).save(tmp_path_factory.mktemp("saved") / "gemm.ttx"))


def told(content: bytes, tmp_path: Path, name: str, *, run: bool) -> Counter[str]:
    folder = tmp_path / name / "inner"
    folder.mkdir(parents=True)
    ends, wrong = attack(content, folder, run=run)
    assert wrong == []
    assert outside(folder) == []
    return ends


def test_random_changes(attacker: Attacker, tmp_path: Path) -> None:
    ends: Counter[str] = Counter()
    for seed in range(60):
        ends += told(attacker.file(seed), tmp_path, str(seed), run=seed % 20 == 0)
    # The tests reach what lies behind loading too.
    assert ends["load refused"] > 30
    assert ends["report done"] > 5
    assert ends["export done"] > 5


def changed_plan(attacker: Attacker, part: str, name: str, value: Any) -> bytes:
    """The file with another value of the plan, and without kept inputs."""
    trace = json.loads(attacker.members["trace.json"])
    place = trace["plan"][part]
    (place[0] if isinstance(place, list) else place)[name] = value
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr("ttx.json", attacker.members["ttx.json"])
        file.writestr("trace.json", json.dumps(trace))
    return packed.getvalue()


@pytest.mark.parametrize(
    ("part", "name", "value", "end"),
    [
        ("layouts", "shape", [10**30, 64], "load refused"),
        ("layouts", "shape", [2**40, 64], "load refused"),
        ("layouts", "shape", [1] * 40, "run refused"),
        ("layouts", "name", "a 1 1 1 1 - /tmp/own", "load refused"),
        ("buffers", "name", "cb\nkernel 0 /tmp/own", "load refused"),
        ("layouts", "name", "other", "run refused"),
        ("buffers", "block_pages", 2**40, "run refused"),
        ("buffers", "index", 2**31, "run refused"),
        ("accessors", "pages", 2**40, "run refused"),
        ("compute", "dst_tiles", 10**9, "run refused"),
    ],
)
def test_numbers_that_nothing_holds(
    attacker: Attacker, tmp_path: Path, part: str, name: str, value: Any, end: str
) -> None:
    assert told(changed_plan(attacker, part, name, value), tmp_path, "one", run=True)[end] == 1


def test_too_little_memory_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, attacker: Attacker) -> None:
    def exhausted(*_: Any, **__: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr("ttexplore.explored.make_inputs", exhausted)
    monkeypatch.setattr("ttexplore.explored.arrays_for", exhausted)
    (tmp_path / "gemm.ttx").write_bytes(changed_plan(attacker, "compute", "dst_tiles", 4))
    saved: Explored = ttx.load(tmp_path / "gemm.ttx")
    for use in (saved.inputs, saved.run, saved.timeline):
        with pytest.raises(ResourceError, match="needs more memory than this machine has") as caught:
            use()
        assert "smaller" in caught.value.hint
