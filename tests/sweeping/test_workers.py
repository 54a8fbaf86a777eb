"""Workers in other processes: the same answers, also if one of them is killed."""

from __future__ import annotations

import dataclasses
import linecache
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
from tests.sweeping.conftest import GEMM, SIZES
from ttexplore.control import FREE, Control
from ttexplore.errors import BackendError, Cancelled
from ttexplore.sweeping import workers
from ttexplore.sweeping.shipping import is_loadable, shipped_object
from ttexplore.sweeping.workers import Here, LostTask, Processes

SPACE = {"block_M": [32, 64, 128], "block_N": [32, 64], "policy": ["contiguous", "strided"]}


def squared(number: int) -> int:
    print("nobody reads this")
    return number * number


def said(task: object) -> str:
    return str(task)


def fallible(number: int) -> int:
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 5:
        raise ValueError("five")
    return number


def endless(number: int) -> int:
    time.sleep(600)
    return number


def test_answers_are_those_of_this_process() -> None:
    wanted = sorted(Here().answers(squared, range(20), FREE))
    assert sorted(Processes(3).answers(squared, range(20), FREE)) == wanted == [(n, n * n) for n in range(20)]


def test_a_task_that_ends_its_worker_is_lost_and_no_other_one() -> None:
    found = dict(Processes(2).answers(fallible, [0, 1, 2, 3, 4], FREE))
    assert found == {0: 0, 1: 1, 2: 2, 3: LostTask("it ended with signal 9"), 4: 4}


def test_what_a_worker_raises_is_told() -> None:
    with pytest.raises(BackendError, match="a worker failed: ValueError: five") as caught:
        dict(Processes(1).answers(fallible, [0, 5], FREE))
    assert "in fallible" in caught.value.hint


def test_cancelling_ends_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    children: list[subprocess.Popen[bytes]] = []
    started = workers._started
    cancel = threading.Event()

    def recorded() -> subprocess.Popen[bytes]:
        children.append(started())
        cancel.set()
        return children[-1]

    monkeypatch.setattr(workers, "_started", recorded)
    with pytest.raises(Cancelled):
        dict(Processes(2).answers(endless, [1, 2], Control(cancel)))
    assert children
    assert all(child.returncode == -signal.SIGKILL for child in children)


@pytest.mark.slow
def test_a_killed_worker_loses_no_results(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = ttx.sweep(GEMM, SPACE, workers=1, prove=0, **SIZES)
    children: list[subprocess.Popen[bytes]] = []
    started = workers._started

    def recorded() -> subprocess.Popen[bytes]:
        children.append(started())
        return children[-1]

    monkeypatch.setattr(workers, "_started", recorded)
    monkeypatch.setattr("ttexplore.sweeping.sweep._TELL_SECONDS", 0.0)

    def progress(text: str) -> None:
        if len(children) == 3 and "] 0 of" not in text:
            children[0].kill()

    found = ttx.sweep(GEMM, SPACE, workers=3, prove=0, fresh=True, progress=progress, **SIZES)
    assert children[0].wait() == -signal.SIGKILL
    assert found.complete
    assert found.table() == alone.table()


KILLER = """
import os
import signal
import ttexplore.language as T


def copies(home, block):
    if block == 64 and os.getpid() != home:
        os.kill(os.getpid(), signal.SIGKILL)

    @T.prim_func
    def main(A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((64, 64), "bfloat16")):
        with T.Kernel(1):
            T.copy(A, B)

    return main
"""


@pytest.mark.slow
def test_a_point_that_ends_its_worker_is_refused_alone(tmp_path: Path) -> None:
    (tmp_path / "copies.py").write_text(KILLER)
    rows = ttx.sweep(
        f"{tmp_path / 'copies.py'}::copies", {"block": [16, 32, 64, 128]}, workers=2, prove=0, home=os.getpid()
    ).table()
    assert [row["state"] for row in rows] == ["verified", "verified", "refused", "verified"]
    assert (rows[2]["code"], rows[2]["reason"]) == (
        "TTX-B033",
        "the worker of this point ended: it ended with signal 9",
    )


FUNCTION = """
import ttexplore as ttx
import ttexplore.language as T

SIZE = 64

def copies(block):
    @T.prim_func
    def main(A: T.Tensor((SIZE, SIZE), "bfloat16"), B: T.Tensor((SIZE, SIZE), "bfloat16")):
        with T.Kernel(SIZE // block, SIZE // block) as (bx, by):
            a = T.alloc_shared((block, block), "bfloat16")
            T.copy(A[by * block, bx * block], a)
            T.copy(a, B[by * block, bx * block])
    return main

found = ttx.sweep(copies, {"block": [32, 64, 2048], "policy": ["contiguous", "strided"]}, workers=2, prove=0)
print([(row["used_cores"], row["state"], row["line"]) for row in found.table()])
"""


@pytest.mark.slow
def test_a_function_of_a_program_is_sent_to_the_workers(tmp_path: Path) -> None:
    """Its program is not run again there."""
    if os.environ.get("CI") != "true":
        pytest.importorskip("cloudpickle")
    program = tmp_path / "program.py"
    program.write_text(FUNCTION)
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    told: Any = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, env=environment, check=False
    )
    assert told.returncode == 0, told.stderr
    line = f"'{program}:"
    good = told.stdout.count("'verified', None")
    assert (told.stdout.count("[(4, "), good) == (1, 4), told.stdout
    assert told.stdout.count("'refused'") == 2
    assert line in told.stdout or "'refused', None" in told.stdout


CELLS = (
    """
import ttexplore.language as T

@T.macro
def through(source, target, block):
    part = T.alloc_shared((block, block), "bfloat16")
    T.copy(source, part)
    T.copy(part, target)
""",
    """
def copies(config, size=64):
    block = config if isinstance(config, int) else config.block
    if block == 128:
        raise SystemExit("no 128 today")
    @T.prim_func
    def main(A: T.Tensor((size, size), "bfloat16"), B: T.Tensor((size, size), "bfloat16")):
        with T.Kernel(size // block, size // block) as (bx, by):
            through(A[by * block, bx * block], B[by * block, bx * block], block)
            if block == 16:
                T.copy(A, missing)
    return main
""",
)


@dataclasses.dataclass(frozen=True)
class Config:
    block: int


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A kernel of a notebook, with its macro in another cell."""
    names: dict[str, Any] = {"__name__": "__main__"}
    files = [f"/nowhere/ipykernel_7/{number}.py" for number in (1, 2)]
    for file, cell in zip(files, CELLS, strict=True):
        monkeypatch.setitem(linecache.cache, file, (len(cell), None, cell.splitlines(keepends=True), file))
    monkeypatch.setattr(
        "ttexplore.language.tracer.spans._cell_number", lambda file: files.index(file) + 1 if file in files else None
    )
    monkeypatch.setattr("ttexplore.language.tracer.spans._cell_text", lambda file, lines: "")
    for file, cell in zip(files, CELLS, strict=True):
        exec(compile(cell, file, "exec"), names)
    return names["copies"]


@pytest.mark.slow
def test_the_cells_of_all_functions_are_sent_to_the_workers(copies: Any) -> None:
    if os.environ.get("CI") != "true":
        pytest.importorskip("cloudpickle")
    space = {"config": [16, 32, 64, 128]}
    shipped = shipped_object(copies)
    assert shipped is not None
    assert sorted(shipped.texts.values()) == sorted(CELLS)
    alone, shared = (ttx.sweep(copies, space, workers=count, prove=0, fresh=True).table() for count in (1, 2))
    assert shared == alone
    assert [row["state"] for row in alone] == ["refused", "verified", "verified", "refused"]
    assert [row["line"].partition(":")[0] for row in (alone[0], alone[3])] == ["cell 2"] * 2
    # A kernel that ends the program ends itself.
    assert alone[3]["reason"] == "SystemExit: no 128 today"


def test_values_that_no_worker_can_load_stay_here(copies: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # Another program's, which the workers would find.
    (tmp_path / "__main__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    mine = dataclasses.make_dataclass("Mine", [("block", int)], frozen=True, namespace={"__module__": "__main__"})
    monkeypatch.setattr(sys.modules["__main__"], "Mine", mine, raising=False)
    monkeypatch.setattr(workers, "_started", None)
    rows = ttx.sweep(copies, {"config": [mine(32), mine(64)]}, workers=2, prove=0).table()
    assert [(row["state"], row["used_cores"]) for row in rows] == [("verified", 4), ("verified", 1)]
    assert not is_loadable(pickle.dumps(mine(32)))
    assert is_loadable(pickle.dumps([Config(32), np.float32(1), {"a": {1, 2}}, Path("x"), print]))
    made = types.ModuleType("made_here")
    monkeypatch.setitem(sys.modules, "made_here", made)
    mine.__module__ = "made_here"
    vars(made)["Mine"] = mine
    assert not is_loadable(pickle.dumps(mine(32)))


def test_a_worker_that_cannot_be_started_ends_the_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: Any, **__: Any) -> Any:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", none)
    with pytest.raises(BackendError, match="a worker cannot be started: Resource temporarily unavailable") as caught:
        ttx.sweep(GEMM, SPACE, workers=2, prove=0, **SIZES)
    assert "use fewer workers" in caught.value.hint


def test_a_task_that_cannot_be_sent_ends_the_sweep() -> None:
    with pytest.raises(BackendError, match=r"a worker failed: .*pickle"):
        dict(Processes(2).answers(said, [1, lambda: 2], FREE))
