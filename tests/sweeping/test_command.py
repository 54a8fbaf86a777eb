"""`ttexplore sweep`, and the drawing of what it found."""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import ttexplore as ttx
from tests.sweeping.conftest import GEMM, SIZES
from ttexplore.cli import main, parse_space
from ttexplore.errors import UsageError
from ttexplore.views.figures.pareto import ParetoPoint, front, pareto_svg

WORDS = ("sweep", GEMM, "M=128", "N=128", "K=128", "--prove", "0")
SPACE = ("--space", "block_M=32,64 block_N=32,512", "--space", "cores=(1,1),2x2")


def test_spaces_of_words() -> None:
    assert parse_space(["a=1,2 b=x", "c=(1, 2),(3,4)", "d=true,1.5"]) == {
        "a": [1, 2], "b": ["x"], "c": [(1, 2), (3, 4)], "d": [True, 1.5],
    }  # fmt: skip
    for words, message in ((["a"], "has no value"), (["a=1", "a=2"], "name of the space a is given twice")):
        with pytest.raises(UsageError, match=message):
            parse_space(words)


def test_the_command_prints_what_the_sweep_finds(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    space = {"block_M": [32, 64], "block_N": [32, 512], "cores": [(1, 1), "2x2"]}
    wanted = ttx.sweep(GEMM, space, prove=0, **SIZES)
    monkeypatch.delenv("COLUMNS", raising=False)
    assert main([*WORDS, *SPACE, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    table = json.loads(json.dumps(wanted.table()))
    assert (printed["table"], printed["best"], printed["complete"]) == (table, wanted.winner, True)
    assert main([*WORDS, *SPACE]) == 0
    whole = capsys.readouterr().out
    assert whole == f"{wanted}\n"
    for columns in (80, 160):
        monkeypatch.setenv("COLUMNS", str(columns))
        assert main([*WORDS, *SPACE, "--pareto", str(tmp_path / "p.svg")]) == 0
        text = capsys.readouterr().out
        assert [line for line in text.splitlines() if len(line) > columns] == []
        assert text.split() == whole.split()
    assert (tmp_path / "p.svg").read_text(encoding="utf-8") == wanted.pareto().svg


def test_targets_with_a_grid(capsys: pytest.CaptureFixture[str]) -> None:
    words = [*WORDS, "--space", "target=wormhole_n150,blackhole_p150", "--grid", "1x2", "--json"]
    assert main([*words, "--option", "policy=strided"]) == 0
    table = json.loads(capsys.readouterr().out)["table"]
    assert [(row["target"], row["used_cores"]) for row in table] == [("wormhole_n150", 1), ("blackhole_p150", 1)]
    assert main([*words, "--target", "wormhole_n150"]) == 2
    assert "target is in the space, and has a value besides" in capsys.readouterr().out


def test_the_status_and_the_bar(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["sweep", GEMM, "M=1024", "N=1024", "K=64", "--space", "block_M=1024", "block_N=1024"]) == 1
    assert "no schedule of the space can be lowered" in capsys.readouterr().out
    assert main(["sweep"]) == 2
    assert main([*WORDS]) == 2
    assert "the space is empty" in capsys.readouterr().err
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    assert main([*WORDS, *SPACE, "--fresh"]) == 0
    told = capsys.readouterr().err
    assert "\n" not in told
    assert told.startswith("\r[........................] 0 of 8 point\x1b[K")
    assert told.endswith("\r\x1b[K")


def test_a_drawing_that_cannot_be_written_is_told_first(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("ttexplore.sweeping.sweep.sweep", None)
    for place in (tmp_path, tmp_path / "nowhere" / "p.svg"):
        assert main([*WORDS, *SPACE, "--pareto", str(place)]) == 2
        assert str(place) in capsys.readouterr().err
    assert [*tmp_path.iterdir()] == []


def test_ctrl_c_prints_what_is_done(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(text: str) -> None:
        if "] 4 of 8" in text:
            raise KeyboardInterrupt

    monkeypatch.setattr("ttexplore.sweeping.sweep._TELL_SECONDS", 0.0)
    monkeypatch.setattr("ttexplore.sweeping.sweep.one_line", lambda: contextlib.nullcontext(interrupted))
    assert main([*WORDS, *SPACE, "--workers", "1"]) == 130
    assert "8 points: 4 verified, 4 not done" in capsys.readouterr().out


def test_the_front_is_what_no_other_place_beats() -> None:
    drawn = random.Random(3)
    for _ in range(50):
        places = [ParetoPoint(drawn.randint(1, 12), drawn.randint(1, 12), str(n)) for n in range(drawn.randint(0, 30))]
        unbeaten = {
            (a.x, a.y)
            for a in places
            if not any(b.x <= a.x and b.y <= a.y and (b.x, b.y) != (a.x, a.y) for b in places)
        }
        found = [(one.x, one.y) for one in front(places)]
        assert found == sorted(unbeaten)


def test_a_drawing_has_the_front_the_best_and_no_markup_of_labels() -> None:
    hostile = "<script>alert(1)</script> & \u202e"
    places = [ParetoPoint(x, y, hostile, best=x == 2) for x, y in ((1, 8), (2, 4), (3, 4), (8, 1), (9, 9))]
    svg = pareto_svg(places, "L1", "time", hostile)
    root = ElementTree.fromstring(svg)
    circles = [one for one in root.iter() if one.tag.endswith("circle")]
    assert [one.get("class") for one in circles].count("on") == 3
    assert [one.get("class") for one in circles].count("ring") == 1
    assert "<script>" not in svg
    assert "⟨U+202E⟩" in svg
    assert "5 schedules, 3 of them on the Pareto front" in svg
    ring = next(one for one in circles if one.get("class") == "ring")
    on = {(one.get("cx"), one.get("cy")) for one in circles if one.get("class") == "on"}
    assert (ring.get("cx"), ring.get("cy")) in on
    # Larger values are farther right and higher up, and everything lies inside of the drawing.
    xs, ys = zip(*((float(str(one.get("cx"))), float(str(one.get("cy")))) for one in circles[:3]), strict=True)
    assert [*xs] == sorted(xs)
    assert [*ys] == sorted(ys)
    assert all(0 < x < 690 and 0 < y < 392 for x, y in itertools.product(xs, ys))
    for few in ([], [ParetoPoint(5, 5, "one", best=True)], [ParetoPoint(0, 5, "zero")]):
        ElementTree.fromstring(pareto_svg(few, "L1", "time", "few"))
