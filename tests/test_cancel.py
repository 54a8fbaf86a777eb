"""Cancelling ends a run within a second, on every backend, and the processes that it has started."""

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
from ttexplore.errors import BackendError, Cancelled, UsageError
from ttexplore.exploration import Exploration

TURNS = 2_000_000


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


@pytest.fixture(scope="module")
def stuck(endless: Exploration) -> dict[str, str]:
    """A text that ends in a loop of its own, without a call that could look around."""
    text = endless.code["compute"].text
    return {"compute": text.replace("void kernel_main() {", "void kernel_main() {\n    for (volatile int i = 0;;) {}")}


def children() -> set[int]:
    """The processes that this one has started and that run."""
    listed = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    return {int(number) for file in listed for number in file.read_text().split()}


def cancelled(run: Callable[[threading.Event], Any]) -> None:
    """Runs, cancels what goes on, and sees that it ends within a second."""
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
    assert time.monotonic() - at[0] < 1.0
    assert caught.value.code == "TTX-B006"
    assert children() == before


@pytest.mark.parametrize("backend", ["reference", "interpreter", "emulator"])
def test_a_run_is_cancelled(endless: Exploration, backend: str) -> None:
    cancelled(lambda cancel: endless.run(backend=backend, cancel=cancel))


def test_a_loop_that_calls_nothing_is_cancelled(endless: Exploration, stuck: dict[str, str]) -> None:
    cancelled(lambda cancel: endless.run(code=stuck, cancel=cancel))
    cancelled(lambda cancel: endless.timeline(code=stuck, cancel=cancel))


@pytest.mark.parametrize(
    ("backend", "where"),
    [("reference", "it was"), ("interpreter", r"core \(0, 0\) was")],
    ids=["reference", "interpreter"],
)
def test_a_run_ends_at_its_time_limit(endless: Exploration, backend: str, where: str) -> None:
    start = time.monotonic()
    with pytest.raises(BackendError) as caught:
        endless.run(backend=backend, time_limit_seconds=0.3)
    assert time.monotonic() - start < 2.0
    limit = "the program did not end within the time limit of 0.3 seconds"
    assert re.match(f"{limit}: {where} at this line", caught.value.message)
    assert caught.value.code == "TTX-B003"
    assert caught.value.span is not None
    assert caught.value.hint.startswith("raise the time limit")
    assert endless.kernel.file == caught.value.span.file


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
    asked = {"inputs": "random", "seed": 0, "names": "", "variant": "", **question}
    for number in (1, 2):
        widget._asked(None, {**asked, "id": number}, [])
    # A recording ends by itself, after a number of events.
    time.sleep(0.2 if question["do"] == "record" else 1.0)
    widget._asked(None, {"id": 3, "do": "cancel"}, [])
    end = time.monotonic() + 1.0
    while len(ended := [one for one in told if one["state"] != "progress"]) < 2 and time.monotonic() < end:
        time.sleep(0.01)
    assert sorted(one["id"] for one in ended) == [1, 2]
    assert all("the run was cancelled" in str(one["error"]) for one in ended)
    assert widget._running == set()
