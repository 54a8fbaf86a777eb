"""The backends in one table: a planted one is found wherever backends are named, and the documents are the table's."""

from __future__ import annotations

import dataclasses
import math
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.installation.doctor
from tests.conftest import compare_golden
from tests.corpus import elementwise
from ttexplore import Exploration
from ttexplore.backends.base import Array, Execution, Program
from ttexplore.backends.finding import Finding
from ttexplore.backends.registry import BACKENDS, BackendEntry, BackendSettings, recorder, taker
from ttexplore.cli import main
from ttexplore.errors import UsageError

REPOSITORY = Path(__file__).parents[2]
KERNEL = ("notebooks/kernels/gemm.py::matmul", "M=64", "N=64", "K=64")


@dataclasses.dataclass(frozen=True)
class Planted:
    """Gives outputs of ones, and keeps what it was asked."""

    settings: BackendSettings
    asked: list[tuple[float, threading.Event | None]]

    def run(
        self, program: Program, inputs: Sequence[Array], *, time_limit_seconds: float,
        cancel: threading.Event | None = None,
    ) -> Execution:  # fmt: skip
        if self.settings.progress is not None:
            self.settings.progress("planted is at work")
        self.asked.append((time_limit_seconds, cancel))
        outputs = [one for one in program.plan.layouts if one.role == "output"]
        return Execution(tuple(np.ones(one.shape, np.float32) for one in outputs), 0.0, None, "planted")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, threading.Event | None]]:
    """What the planted backend was asked."""
    asked: list[tuple[float, threading.Event | None]] = []
    other = BackendEntry(
        "other", "", "", "", lambda: None, lambda: (), lambda settings: Planted(settings, asked), time_limit_seconds=7.0
    )
    planted = BackendEntry(
        "planted", "nothing", "paper", "at once", lambda: None,
        lambda: (Finding("backend planted", True, False, "in the soil"),),
        lambda settings: Planted(settings, asked), (), 5.0, compared_with="other", required=False,
    )  # fmt: skip
    monkeypatch.setitem(BACKENDS, "other", other)
    monkeypatch.setitem(BACKENDS, "planted", planted)
    return asked


@pytest.fixture(scope="module")
def exploration() -> Exploration:
    return ttx.explore(elementwise(lambda a, b: a + b))


def test_a_planted_backend_runs(
    exploration: Exploration, asked: list[tuple[float, threading.Event | None]], tmp_path: Path
) -> None:
    cancel, told = threading.Event(), list[str]()
    run = exploration.run(backend="planted", cancel=cancel, progress=told.append)
    assert (run.backend, run.passed) == ("planted", False)
    assert [one for one in told if one == "planted is at work"] == ["planted is at work"] * 2
    assert asked == [(5.0, cancel), (7.0, cancel)]
    assert [side.name for side in run.sides] == [
        "planted against reference", "planted against other", "other against reference",
    ]  # fmt: skip
    exploration.run(backend="planted", time_limit_seconds=2)
    assert asked[2][0] == 2.0
    assert ttx.load(exploration.save(tmp_path / "one.ttx")).run(backend="planted").message.startswith("planted")


def test_it_takes_what_its_entry_says(exploration: Exploration, asked: list[object]) -> None:
    with pytest.raises(UsageError, match="the backend planted does not run C") as texts:
        exploration.run(backend="planted", code={"compute": ""})
    assert texts.value.hint == "choose backend='emulator'"
    with pytest.raises(UsageError, match="the backend planted takes no device") as device:
        exploration.run(backend="planted", device="wolfpine")
    assert device.value.hint == "choose backend='ttnn'"
    assert asked == []


@pytest.mark.usefixtures("asked")
def test_it_is_named_everywhere(
    exploration: Exploration, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as wrong:
        exploration.run(backend="plantd")
    assert wrong.value.hint.startswith("did you mean planted? use one of ")
    assert main(["run", *KERNEL, "--backend", "plantd"]) == 2
    assert "did you mean planted?" in capsys.readouterr().err
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main(["run", *KERNEL, "--backend", "planted"]) == 1
    said = capsys.readouterr()
    assert "planted" in said.out
    assert "planted is at work" in said.err
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    assert "planted" in capsys.readouterr().out
    expected = {"name": "planted", "missing": "", "arithmetic": False, "limit": 5.0}
    saved = ttx.load(exploration.save(tmp_path / "one.ttx"))
    for one in (exploration, saved):
        assert expected in one.backends
    assert [one["name"] for one in saved.backends] == [
        "other", "emulator", "interpreter", "reference", "planted", "ttnn",
    ]  # fmt: skip
    assert expected in exploration.widget().backends
    assert Finding("backend planted", True, False, "in the soil") in ttexplore.installation.doctor.examine()
    monkeypatch.setitem(ttexplore.installation.doctor.REQUIRED_PACKAGES, "no-such-package", None)
    broken = next(one for one in ttexplore.installation.doctor.examine() if one.name == "backend planted")
    assert (broken.ok, broken.found) == (False, "needs no-such-package")
    assert "| `planted` |" in page()


@pytest.mark.usefixtures("asked")
def test_the_explorer_runs_it_and_hears_of_its_progress(
    exploration: Exploration, monkeypatch: pytest.MonkeyPatch
) -> None:
    widget, told = exploration.widget(), list[dict[str, Any]]()
    monkeypatch.setattr(widget, "send", lambda message, buffers=None: told.append(message))
    question = {"id": 1, "do": "run", "backend": "planted", "inputs": "random", "seed": 0}
    widget._answer(question, threading.Event())
    words = [one["text"] for one in told if one.get("state") == "progress"]
    assert words == [
        "running on planted", "planted is at work", "computing the reference", "comparing with the reference",
        "running on other, to compare", "planted is at work",
    ]  # fmt: skip
    assert told[-1]["state"] == "done"


def test_each_entry_is_whole() -> None:
    for name, one in BACKENDS.items():
        assert one.name == name
        assert one.compared_with in ("", *BACKENDS)
        assert one.needs_kernel == (one.time_limit_seconds == math.inf)
        assert one.examine()[0].name == f"backend {name}"
    assert recorder().name == "emulator"
    assert (taker("code"), taker("device")) == ("emulator", "ttnn")


def page() -> str:
    """docs/backends.md"""
    words: dict[bool, str] = {True: "yes", False: "no"}
    columns: dict[str, Callable[[BackendEntry], str]] = {
        "backend": lambda one: f"`{one.name}`",
        "takes": lambda one: ", ".join(f"`{argument}`" for argument in one.takes) or "–",
        "time limit": lambda one: "none" if one.time_limit_seconds == math.inf else f"{one.time_limit_seconds:g} s",
        "records events": lambda one: words[one.records_events],
        "runs saved explorations": lambda one: words[not one.needs_kernel],
        "compared with": lambda one: "reference" + (f", {one.compared_with}" if one.compared_with else ""),
        "cancelling ends": lambda one: one.cancelled,
    }
    rows = [f"| {' | '.join(of(one) for of in columns.values())} |" for one in BACKENDS.values()]
    return "\n".join(
        [
            "# What each backend takes", "",
            "Generated from `ttexplore/backends/registry.py` by `tests/backends/test_registry.py --update-golden`.", "",
            f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}", *rows, "",
        ]
    )  # fmt: skip


def test_the_page_of_backends(request: pytest.FixtureRequest) -> None:
    update = bool(request.config.getoption("--update-golden"))
    compare_golden(REPOSITORY / "docs" / "backends.md", page(), update=update)


def test_the_table_in_the_readme() -> None:
    rows = [f"| `{one.name}` | {one.runs} | {one.on} |" for one in BACKENDS.values()]
    assert "\n".join(["| backend | runs | on |", "|---|---|---|", *rows, ""]) in (REPOSITORY / "README.md").read_text()
