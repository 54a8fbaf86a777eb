"""What can go wrong with a device, done to a real one: each gives one clear message, and the next run works."""

from __future__ import annotations

import dataclasses
import os
import re
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import ttexplore as ttx
from tests.corpus import elementwise
from ttexplore.backends.base import Array, KernelFault, Program
from ttexplore.backends.ttnn import Ttnn
from ttexplore.backends.ttnn.backend import opening, shared_session
from ttexplore.backends.ttnn.environment import read_environment
from ttexplore.backends.ttnn.session import Session, tagged_processes
from ttexplore.errors import BackendError, Cancelled

pytestmark = [pytest.mark.device, pytest.mark.slow, pytest.mark.xdist_group("wormhole_n150")]


@pytest.fixture(scope="module")
def program() -> Program:
    exploration = ttx.explore(elementwise(lambda a, b: a + b), options={"cores": (1, 1)})
    texts = {role: exploration.code[role].text for role in ("reader", "compute", "writer")}
    return Program(texts, exploration.plan)


@pytest.fixture(scope="module")
def hanging(program: Program) -> Program:
    """The program whose reader never hands over its first operand."""
    reader = program.texts["reader"].replace("a_buffer.push_back(4);", "", 1)
    assert reader != program.texts["reader"]
    return dataclasses.replace(program, texts={**program.texts, "reader": reader})


@pytest.fixture(scope="module")
def arrays() -> tuple[Array, Array]:
    random = np.random.default_rng(0)
    return random.integers(-8, 8, (128, 64)).astype(np.float32), random.integers(-8, 8, (128, 64)).astype(np.float32)


@pytest.fixture
def session(environment: Path) -> Session:
    return shared_session(opening("wolfpine", "wormhole", read_environment(environment)))


def assert_works(environment: Path, program: Program, arrays: tuple[Array, Array]) -> str:
    execution = Ttnn(environment_folder=environment).run(program, arrays)
    assert np.array_equal(execution.outputs[0].astype(np.float32), arrays[0] + arrays[1])
    return execution.message


def while_running(act: Callable[[], None]) -> Callable[[str], None]:
    """What is told of a run's progress, and acts as soon as the program runs, however long compiling took."""

    def progress(stage: str) -> None:
        if stage == "running":
            act()

    return progress


def kill_process_of(session: Session) -> None:
    process_id = session.process_id
    assert process_id is not None
    os.kill(process_id, signal.SIGKILL)


def test_a_text_that_does_not_compile_is_told_at_its_line(
    environment: Path, program: Program, arrays: tuple[Array, Array]
) -> None:
    compute = program.texts["compute"].replace("add_tiles(", "add_tilez(")
    broken = dataclasses.replace(program, texts={**program.texts, "compute": compute})
    line = next(n for n, text in enumerate(compute.splitlines(), 1) if "add_tilez(" in text)
    with pytest.raises(KernelFault) as caught:
        Ttnn(environment_folder=environment).run(broken, arrays)
    assert (caught.value.kernel, caught.value.cpp_line) == ("compute", line)
    assert caught.value.message.startswith(
        f"the device's compiler rejects compute.cpp line {line}: 'add_tilez' was not declared in this scope: add_tilez("
    )
    assert caught.value.hint.startswith("read the full log: ")
    assert "add_tilez" in Path(caught.value.hint.removeprefix("read the full log: ")).read_text(encoding="utf-8")
    assert_works(environment, program, arrays)


def test_a_hang_is_told_with_who_waits(
    environment: Path, program: Program, hanging: Program, arrays: tuple[Array, Array]
) -> None:
    with pytest.raises(KernelFault) as caught:
        Ttnn(environment_folder=environment).run(hanging, arrays, time_limit_seconds=1.0)
    message = caught.value.message
    assert re.match(r"the program did not end within \d+ seconds: writer ", message)
    assert "writer waits for pages in a circular buffer (wait_front) on core (0, 0); reader has ended" in message
    assert "the emulator, which names the line" in caught.value.hint
    assert_works(environment, program, arrays)


def test_a_worker_that_is_killed_comes_back(
    environment: Path, program: Program, hanging: Program, arrays: tuple[Array, Array], session: Session
) -> None:
    assert_works(environment, program, arrays)
    kill = while_running(lambda: kill_process_of(session))
    with pytest.raises(BackendError) as caught:
        Ttnn(environment_folder=environment, progress=kill).run(hanging, arrays)
    assert caught.value.message.startswith("the process that holds the device ended by signal SIGKILL while running")
    assert caught.value.hint.startswith("run again, which restarts it, or read the full log: ")
    assert_works(environment, program, arrays)
    kill_process_of(session)
    while session.process_id is not None:
        time.sleep(0.01)
    assert "the device's process had ended and was restarted" in assert_works(environment, program, arrays)


def test_a_simulator_that_dies_is_noticed(
    environment: Path, program: Program, hanging: Program, arrays: tuple[Array, Array], session: Session
) -> None:
    assert_works(environment, program, arrays)
    (simulator,) = tagged_processes(session.tag)
    kill = while_running(lambda: os.kill(simulator, signal.SIGKILL))
    with pytest.raises(BackendError) as caught:
        Ttnn(environment_folder=environment, progress=kill).run(hanging, arrays)
    assert caught.value.message.startswith("the simulator ended while running")
    assert_works(environment, program, arrays)


def test_a_run_can_be_cancelled(
    environment: Path, program: Program, hanging: Program, arrays: tuple[Array, Array], session: Session
) -> None:
    assert_works(environment, program, arrays)
    cancel, at = threading.Event(), list[float]()

    def set_it() -> None:
        at.append(time.monotonic())
        cancel.set()

    with pytest.raises(Cancelled, match="the run was cancelled"):
        Ttnn(environment_folder=environment, progress=while_running(set_it)).run(hanging, arrays, cancel=cancel)
    assert time.monotonic() - at[0] < 20.0
    assert session.process_id is None
    assert tagged_processes(session.tag) == []
    assert_works(environment, program, arrays)


def test_progress_is_told(environment: Path, program: Program, arrays: tuple[Array, Array]) -> None:
    told: list[str] = []
    # A text that no cache has seen.
    writer = program.texts["writer"] + f"// {time.time_ns()}\n"
    fresh = dataclasses.replace(program, texts={**program.texts, "writer": writer})
    Ttnn(environment_folder=environment, progress=told.append).run(fresh, arrays)
    kernels = [text for text in told if text.startswith("compiling kernel ")]
    assert kernels, told
    assert all(text.split()[2:5] in (["1", "of", "3"], ["2", "of", "3"], ["3", "of", "3"]) for text in kernels)
    order = [told.index(stage) for stage in ("writing the inputs", "compiling", "running", "reading the outputs")]
    assert order == sorted(order)


def test_a_core_that_the_chip_has_not_is_refused(
    environment: Path, program: Program, arrays: tuple[Array, Array]
) -> None:
    partition = program.plan.partition
    assert partition is not None
    far = dataclasses.replace(partition.cores[0], x=20)
    plan = program.plan.replace(partition=dataclasses.replace(partition, cores=(far,)))
    with pytest.raises(BackendError, match=r"the program uses core \(20, 0\), but the device has 8x9 cores"):
        Ttnn(environment_folder=environment).run(dataclasses.replace(program, plan=plan), arrays)
    assert_works(environment, program, arrays)
