"""Cancelling ends a run at once, on every backend, and the processes that it has started; so do time limits."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus import gemm
from tests.steps import before
from ttexplore.cli import main
from ttexplore.clock import replay
from ttexplore.control import Control
from ttexplore.errors import BackendError, Cancelled, UsageError
from ttexplore.exploration import Exploration, Steps
from ttexplore.exploration.lowered import Lowered
from ttexplore.ir import rewrite
from ttexplore.passes.layout_aware_work_partition import shared_inputs
from ttexplore.passes.verify import pages
from ttexplore.plan import KERNEL_ROLES

TURNS = 2_000_000
# What ends at once takes some hundredths of a second, but on a busy machine; what goes on takes minutes.
AT_ONCE_SECONDS = 20.0


@pytest.fixture(scope="module")
def endless() -> Exploration:
    """A kernel that takes minutes on any backend."""

    @T.prim_func
    def kernel(A: T.Tensor((32, 32), "float32"), B: T.Tensor((32, 32), "float32")):
        with T.Kernel(1) as _:
            a = T.alloc_shared((32, 32), "float32")
            b = T.alloc_fragment((32, 32), "float32")
            T.clear(b)
            for _k in T.serial(TURNS):
                T.copy(A[0, 0], a)
                for i, j in T.Parallel(32, 32):
                    b[i, j] = b[i, j] + a[i, j]
            T.copy(b, B[0, 0])

    return ttx.explore(kernel)


def spinning(exploration: Exploration, role: str) -> dict[str, str]:
    """A text that ends in a loop of its own, without a call that could look around."""
    text = exploration.code[role].text
    return {role: text.replace("void kernel_main() {", "void kernel_main() {\n    for (volatile int i = 0;;) {}")}


def children() -> set[int]:
    """The processes that this one has started and that run."""
    listed = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    return {int(number) for file in listed for number in file.read_text().split()}


def cancelled(run: Callable[[threading.Event], Any]) -> None:
    """Runs, cancels what goes on, and sees that it ends at once."""
    before = children()
    cancel = threading.Event()
    at: list[float] = []

    def set_it() -> None:
        at.append(time.monotonic())
        cancel.set()

    timer = threading.Timer(1.5, set_it)
    timer.start()
    with pytest.raises(Cancelled, match="the run was cancelled") as caught:
        run(cancel)
    assert time.monotonic() - at[0] < AT_ONCE_SECONDS
    assert caught.value.code == "TTX-B006"
    assert children() == before


@pytest.mark.parametrize("backend", ["reference", "interpreter", "emulator"])
def test_a_run_is_cancelled(endless: Exploration, backend: str) -> None:
    cancelled(lambda cancel: endless.run(backend=backend, cancel=cancel))


@pytest.mark.slow
@pytest.mark.parametrize("role", KERNEL_ROLES)
def test_a_loop_that_calls_nothing_is_cancelled(endless: Exploration, role: str) -> None:
    stuck = spinning(endless, role)
    cancelled(lambda cancel: endless.run(code=stuck, cancel=cancel))
    cancelled(lambda cancel: endless.timeline(code=stuck, cancel=cancel))


@pytest.mark.slow
@pytest.mark.parametrize("role", KERNEL_ROLES)
def test_a_loop_that_calls_nothing_ends_at_its_time_limit(endless: Exploration, role: str) -> None:
    """In the middle of a simulation, too, and no process stays."""
    before = children()
    for run in (endless.run, endless.timeline):
        with pytest.raises(BackendError, match=r"time limit of 0.5 seconds: the \w+ kernel on core") as caught:
            run(code=spinning(endless, role), time_limit_seconds=0.5)
        assert caught.value.code == "TTX-B003"
        assert caught.value.hint.endswith("raise the time limit (time_limit_seconds)")
        assert children() == before


@pytest.mark.parametrize(
    ("backend", "where"),
    [("reference", "it was"), ("interpreter", r"core \(0, 0\) was")],
    ids=["reference", "interpreter"],
)
def test_a_run_ends_at_its_time_limit(endless: Exploration, backend: str, where: str) -> None:
    start = time.monotonic()
    with pytest.raises(BackendError) as caught:
        endless.run(backend=backend, time_limit_seconds=0.3)
    assert time.monotonic() - start < AT_ONCE_SECONDS
    limit = "the program did not end within the time limit of 0.3 seconds"
    assert re.match(f"{limit}: {where} at this line", caught.value.message)
    assert caught.value.code == "TTX-B003"
    assert caught.value.span is not None
    assert caught.value.hint.startswith("raise the time limit")
    assert endless.kernel.file == caught.value.span.file


def test_a_check_ends_at_its_time_limit(endless: Exploration) -> None:
    start = time.monotonic()
    with pytest.raises(BackendError) as caught:
        endless.check(time_limit_seconds=0.4)
    assert time.monotonic() - start < AT_ONCE_SECONDS
    limit = "the check, still at the reference, did not end within the time limit of 0.4 seconds"
    assert caught.value.message.startswith(limit)
    assert (caught.value.code, caught.value.span is not None) == ("TTX-B003", True)


def test_the_limit_of_a_check_is_that_of_all_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step takes some of it; the step at which it is over is named."""
    exploration, told = ttx.explore(gemm(64, 64, 64, 32, 32, 32)), list[str]()
    clock, run, passed = time.perf_counter, Lowered.run, 0.0

    def slow(self: Lowered, program: Any, *arguments: Any, **options: Any) -> Any:
        nonlocal passed
        if program is Steps(self.steps).C2.after:
            passed = 600.0
        return run(self, program, *arguments, **options)

    monkeypatch.setattr(time, "perf_counter", lambda: clock() + passed)
    monkeypatch.setattr(Lowered, "run", slow)
    with pytest.raises(BackendError, match=r"the check, at C2 \w+, did not end within the time limit of 600 seconds"):
        exploration.check(time_limit_seconds=600, progress=told.append)
    assert told[-1].startswith("executing C2 ")


def test_the_reference_has_the_limit_that_was_asked_for(endless: Exploration) -> None:
    ending = {role: "void kernel_main() {}\n" for role in KERNEL_ROLES}
    with pytest.raises(BackendError, match=r"the reference did not end within the time limit of 2 seconds"):
        endless.run(code=ending, time_limit_seconds=2)


def test_parts_of_the_work_are_told() -> None:
    exploration, told = ttx.explore(gemm(64, 64, 64, 32, 32, 32)), list[str]()
    exploration.run(progress=told.append)
    assert [one for one in told if not one.startswith(("compiling", "building"))] == [
        "running on emulator", "simulating 4 cores", "reading the outputs", "computing the reference",
        "comparing with the reference",
    ]  # fmt: skip
    told.clear()
    exploration.timeline(progress=told.append)
    assert told == [
        "recording on emulator", "simulating 4 cores", "reading the outputs", "sorting the events"
    ]  # fmt: skip
    told.clear()
    check = exploration.check(progress=told.append)
    done = [one for one in told if not one.startswith("executing")]
    count = len(check.results)
    assert done == [
        "computing the reference",
        *(f"{number} of {count}: {one.headline}" for number, one in enumerate(check.results, 1)),
    ]
    assert done[1].endswith(" equals the reference, PCC 1.0000000")


def test_the_cores_that_have_ended_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ttexplore.ir.interpreter.where._TELL_SECONDS", 0.0)
    told: list[str] = []
    ttx.explore(gemm(64, 64, 64, 32, 32, 32)).run(backend="interpreter", progress=told.append)
    assert [one for one in told if "cores" in one] == [f"cores that have ended: {n} of 4" for n in (1, 2, 3)]


def test_a_lowering_is_cancelled_after_its_step() -> None:
    exploration, told, cancel = ttx.explore(gemm(64, 64, 64, 32, 32, 32)), list[str](), threading.Event()

    def tell(text: str) -> None:
        told.append(text)
        if text.startswith("B1"):
            cancel.set()

    with pytest.raises(Cancelled):
        exploration.lower_again({"stages": "3"}, None, Control(cancel, progress=tell))
    assert told[-1].startswith("B1 ")


def test_a_check_is_cancelled(endless: Exploration) -> None:
    cancelled(lambda cancel: endless.check(cancel=cancel))


def test_what_is_cancelled_before_does_not_begin(endless: Exploration) -> None:
    cancel = threading.Event()
    cancel.set()
    for backend in ("reference", "interpreter", "emulator"):
        with pytest.raises(Cancelled):
            endless.run(backend=backend, cancel=cancel)


def test_cancel_is_an_event(endless: Exploration) -> None:
    with pytest.raises(UsageError, match="cancel is True") as caught:
        endless.run(cancel=True)  # pyright: ignore[reportArgumentType]
    assert "threading.Event" in caught.value.hint


@pytest.mark.slow
@pytest.mark.parametrize(
    "question",
    [
        {"do": "run", "backend": "reference"},
        {"do": "run", "backend": "interpreter"},
        {"do": "run", "backend": "emulator"},
        {"do": "check"},
        {"do": "record", "core": "0,0"},
    ],
    ids=lambda question: " ".join(question.values()),
)
def test_the_explorers_button_cancels_what_goes_on(
    endless: Exploration, monkeypatch: pytest.MonkeyPatch, question: dict[str, str]
) -> None:
    """All of it: a question that came later does not shield an earlier one."""
    widget = endless.widget()
    told: list[dict[str, Any]] = []
    monkeypatch.setattr(widget, "_tell", lambda message, buffers=None: told.append(message))
    asked: dict[str, Any] = {
        "inputs": "random", "seed": 0, "names": "", "variant": "", "words": "as told", **question,
    }  # fmt: skip
    if question["do"] == "record":
        # Else it ends by itself, after a number of events.
        asked["code"] = spinning(endless, "compute")
    for number in (1, 2):
        widget._asked(None, {**asked, "id": number}, [])
    # Whoever opens the explorer now knows of them.
    _wait_until(lambda: len(widget.running) == 2)
    assert [(one["id"], one["do"], one["words"]) for one in sorted(widget.running, key=lambda one: one["id"])] == [
        (1, question["do"], "as told"), (2, question["do"], "as told"),
    ]  # fmt: skip
    time.sleep(1.0)
    widget._asked(None, {"id": 3, "do": "cancel"}, [])
    _wait_until(lambda: not widget.running)
    ended = [one for one in told if one["state"] != "progress"]
    assert sorted(one["id"] for one in ended) == [1, 2]
    assert all("the run was cancelled" in str(one["error"]) for one in ended)
    assert widget._running == {}


def _wait_until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + AT_ONCE_SECONDS
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_an_answer_that_was_lost_on_the_way_is_waited_for_no_longer(
    endless: Exploration, monkeypatch: pytest.MonkeyPatch
) -> None:
    widget, told = endless.widget(), list[dict[str, Any]]()
    monkeypatch.setattr(widget, "_tell", lambda message, buffers=None: told.append(message))
    widget._running["2"] = ("run", threading.Event())
    widget._asked(None, {"do": "waiting", "ids": ["1", "2"]}, [])
    assert [(one["id"], one["state"], one["error"]["kind"]) for one in told] == [("1", "failed", "AnswerLost")]
    assert "lost while there was no connection" in str(told[0]["error"]["message"])


def test_the_explorers_limit_ends_a_run(endless: Exploration, monkeypatch: pytest.MonkeyPatch) -> None:
    widget, told = endless.widget(), list[dict[str, Any]]()
    monkeypatch.setattr(widget, "_tell", lambda message, buffers=None: told.append(message))
    code = spinning(endless, "compute")
    for do in ("run", "record", "check"):
        question = {"id": do, "do": do, "backend": "emulator", "core": "0,0", "inputs": "random", "seed": 0}
        widget._answer({**question, "code": code, "limit": 0.5}, threading.Event())
        assert "within the time limit of 0.5 seconds" in str(told[-1]["error"]["message"])


GEMM = "notebooks/kernels/gemm.py::matmul"
SIZES: dict[str, Any] = {"M": 8192, "N": 8192, "K": 256}


def counted(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, then: Callable[[], None]) -> list[int]:
    """Calls of a function of a module, which begin with something else."""
    calls = [0]
    function = getattr(module, name)

    def call(*arguments: Any, **options: Any) -> Any:
        calls[0] += 1
        then()
        return function(*arguments, **options)

    monkeypatch.setattr(module, name, call)
    return calls


@pytest.mark.parametrize(
    ("module", "name", "most"),
    [(shared_inputs, "item_block", 4096 // 64 + 1), (pages, "_at_rows", 40), (rewrite, "statements", 40)],
    ids=["B1 follows work items", "D3 follows pages", "a pass walks the kernel"],
)
def test_a_lowering_is_cancelled_within_a_step(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, most: int
) -> None:
    ttx.explore(GEMM, **SIZES, options={"multicast": "auto"})
    whole = counted(monkeypatch, module, name, lambda: None)
    ttx.explore(GEMM, **SIZES)
    monkeypatch.undo()
    cancel = threading.Event()
    calls = counted(monkeypatch, module, name, cancel.set)
    with pytest.raises(Cancelled):
        ttx.explore(GEMM, **SIZES, cancel=cancel)
    assert 0 < calls[0] <= most < whole[0]


def test_a_lowering_tells_its_steps_and_is_cancelled_between_them() -> None:
    cancel, told = threading.Event(), list[str]()

    def tell(text: str) -> None:
        told.append(text)
        if text.startswith("B1"):
            cancel.set()

    with pytest.raises(Cancelled):
        ttx.explore(GEMM, M=64, N=64, K=64, cancel=cancel, progress=tell)
    assert [line.partition(" ")[0] for line in told] == before("B2")


def test_a_lowering_and_an_estimate_end_at_their_time_limit() -> None:
    """An error of what was asked for, not of the kernel; nothing of it stays."""
    with pytest.raises(BackendError) as lowering:
        ttx.explore(GEMM, **SIZES, time_limit_seconds=1e-9)
    assert lowering.value.message == "the lowering did not end within the time limit of 1e-09 seconds"
    exploration = ttx.explore(GEMM, M=64, N=64, K=64, time_limit_seconds=600)
    with pytest.raises(BackendError) as estimate:
        exploration.estimate(time_limit_seconds=1e-9)
    assert estimate.value.message == "the estimate did not end within the time limit of 1e-09 seconds"
    assert (lowering.value.code, estimate.value.code) == ("TTX-B003", "TTX-B003")
    assert "time_limit_seconds" in lowering.value.hint
    assert exploration.estimate(time_limit_seconds=600).cycles > 0


def test_an_estimate_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    cancel = threading.Event()
    exploration = ttx.explore(GEMM, M=512, N=512, K=512)
    calls = counted(monkeypatch, replay.heapq, "heappop", cancel.set)
    with pytest.raises(Cancelled):
        exploration.estimate(cancel=cancel)
    assert calls == [1]
    monkeypatch.undo()
    assert exploration.estimate().cycles > 0


def test_the_command_takes_a_time_limit(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("show", "estimate"):
        assert main([command, GEMM, "M=64", "N=64", "K=64", "--time-limit", "1e-9"]) == 1
        assert "the lowering did not end within the time limit of 1e-09 seconds" in capsys.readouterr().err
        assert main([command, GEMM, "M=64", "N=64", "K=64", "--time-limit", "600"]) == 0


@pytest.mark.parametrize(
    ("grid", "text"),
    [((1 << 26) + 1, "67,108,865"), ((1 << 20, 1 << 20), "1,099,511,627,776"), ((1 << 14, 1 << 13), "134,217,728")],
)
def test_more_work_items_than_are_lowered_are_refused_at_once(grid: Any, text: str) -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32, 32), "float32"), B: T.Tensor((32, 32), "float32")):
        with T.Kernel(*([grid] if isinstance(grid, int) else grid)) as _:
            T.copy(A, B)

    error = ttx.explore(kernel).error
    assert error is not None
    assert (error.code, error.span is None) == ("TTX-R012", False)
    assert f"has {text} blocks; at most 67,108,864 are lowered" in error.message
