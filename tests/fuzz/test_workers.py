"""The fuzzer's workers: they come to what one process comes to, also if one of them is killed."""

from __future__ import annotations

import random
import subprocess
from collections import Counter
from collections.abc import Callable, Generator
from types import SimpleNamespace

import pytest

from tests.fuzz import __main__ as program
from tests.fuzz import chunks
from tests.fuzz.campaign import Failure, Tally
from tests.fuzz.chunks import Chunk, Known, run_chunk
from tests.fuzz.draw import case
from ttexplore.control import Control
from ttexplore.sweeping import workers
from ttexplore.sweeping.workers import LostTask

COUNT, OF_CHUNK, SEED = 7, 3, 5
WORDS = [str(COUNT), "--workers", "2", "--seed", str(SEED), "--emulate-every", "1000"]


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "CHUNK", OF_CHUNK)


def after_first_line(text: str) -> str:
    return text.partition("\n")[2]


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.usefixtures("small_chunks")
def test_the_seeds_of_a_killed_worker_run_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    children: list[subprocess.Popen[bytes]] = []
    started = workers._started

    def recorded() -> subprocess.Popen[bytes]:
        children.append(started())
        if len(children) == 1:
            children[0].kill()
        return children[-1]

    monkeypatch.setattr(workers, "_started", recorded)
    assert program.main(WORDS) == 0
    assert len(children) == 3
    # What a chunk does to the garbage collector of its process is not for this one.
    monkeypatch.setattr(chunks, "gc", SimpleNamespace(freeze=list, set_threshold=max))
    alone = Tally()
    for seed, count in ((SEED, 3), (SEED + 1, 3), (SEED + 2, 1)):
        alone.add(run_chunk(Chunk(count, seed, 1000, Known())))
    assert alone.kernels == COUNT
    said = capsys.readouterr().out
    assert said.startswith(f"7 kernels in 2 processes, from seed {SEED}\n")
    assert said.endswith(f"{after_first_line(program._summary(alone))}\n")


@pytest.mark.usefixtures("small_chunks")
def test_broken_laws_and_lost_seeds_are_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What one worker has made small, the next ones leave alone; kernels that no worker survives end no search."""
    kernel, schedule = case(random.Random(1))
    failure = Failure("values: #", "values: nothing is right", kernel, schedule)
    known: list[frozenset[str]] = []

    class Fake:
        count = 1

        def __init__(self, count: int) -> None:
            pass

        def answers(
            self, call: Callable[[Chunk], Tally], tasks: list[Chunk], control: Control
        ) -> Generator[tuple[int, Tally | LostTask]]:
            known.append(tasks[0].known.signatures)
            yield 0, Tally(failures={failure.signature: failure}, again=Counter([failure.signature]))
            yield 1, LostTask("it ended with signal 9")
            known.append(tasks[2].known.signatures)
            yield 2, Tally(outcomes=Counter(["", ""]))

    monkeypatch.setattr(program, "Processes", Fake)
    assert program.main(WORDS) == 1
    assert known == [frozenset(), {"values: #"}]
    said = capsys.readouterr().out
    assert f"\n{failure.text(1)}\n" in said
    assert f"\nthe kernels of seed {SEED + 1} ended their process: it ended with signal 9\n" in said
    assert "      1  BROKEN values: #\n" in said


@pytest.mark.parametrize(("count", "sizes"), [(40, [4] * 10), (6, [4, 2]), (250, [25] * 10), (2030, [100] * 20 + [30])])
def test_a_short_run_has_work_for_several(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], count: int, sizes: list[int]
) -> None:
    """The chunks and their seeds are those of any number of workers."""
    given: list[tuple[Chunk, ...]] = []

    class Fake:
        def __init__(self, count: int) -> None:
            self.count = count

        def answers(
            self, call: Callable[[Chunk], Tally], tasks: list[Chunk], control: Control
        ) -> Generator[tuple[int, Tally]]:
            given.append(tuple(tasks))
            yield from ((number, Tally()) for number, _ in enumerate(tasks))

    monkeypatch.setattr(program, "Processes", Fake)
    for number in ("1", "8"):
        assert program.main([str(count), "--workers", number, "--seed", str(SEED)]) == 0
    assert [chunk.count for chunk in given[0]] == sizes
    assert [chunk.start for chunk in given[0]] == list(range(SEED, SEED + len(sizes)))
    assert given[1] == given[0]


def test_a_scheduler_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("distributed")
    assert program.main(["4", "--scheduler", "nowhere://x"]) == 2
    assert capsys.readouterr().err.startswith("the scheduler nowhere://x cannot be reached")
