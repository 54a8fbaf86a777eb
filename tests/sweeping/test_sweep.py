"""Sweeps find what explorations find, one by one, and keep it."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import inspect
import itertools
import json
import re
import sys
import threading
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.sweeping.conftest import GEMM, SIZES
from ttexplore.backends.base import Deadlock, KernelFault
from ttexplore.errors import (
    BackendError,
    Cancelled,
    KernelError,
    ResourceError,
    TTExploreError,
    Unsupported,
    UsageError,
    VerifyError,
    out_of_memory,
)
from ttexplore.language.load import FoundKernel
from ttexplore.language.tracer.rewrite import _compiled
from ttexplore.sweeping import sweep as module
from ttexplore.sweeping.cost import LoweringFigures
from ttexplore.sweeping.evaluate import Answered, PointResult, Task, evaluate
from ttexplore.sweeping.shipping import _is_own, shipped_file, shipped_object, ttexplore_digest
from ttexplore.sweeping.space import space_of

N150 = "wormhole_n150"
BLOCKS = {"block_M": [32, 64, 128], "block_N": [32, 64]}
FACTORY = """
import ttexplore.language as T
from neighbour import SCALE


def scaled(N=64, block=32):
    @T.prim_func
    def main(A: T.Tensor((N, N), "float32"), B: T.Tensor((N, N), "float32")):
        with T.Kernel(N // block, N // block) as (bx, by):
            a = T.alloc_shared((block, block), "float32")
            T.copy(A[by * block, bx * block], a)
            for i, j in T.Parallel(block, block):
                a[i, j] = a[i, j] * SCALE
            T.copy(a, B[by * block, bx * block])

    return main
"""


@pytest.fixture
def factory(tmp_path: Path) -> str:
    (tmp_path / "scaled.py").write_text(FACTORY)
    (tmp_path / "neighbour.py").write_text("SCALE = 2.0\n")
    return f"{tmp_path / 'scaled.py'}::scaled"


def test_the_table_has_what_the_blocks_read_and_write() -> None:
    found = ttx.sweep(GEMM, BLOCKS, prove=0, **SIZES)
    rows = found.table()
    assert [(row["block_M"], row["block_N"]) for row in rows] == [*itertools.product(*BLOCKS.values())]
    for row in rows:
        m, n = row["block_M"], row["block_N"]
        blocks = (128 // m) * (128 // n)
        block_bytes = 2 * (m * 128 + 128 * n + m * n)
        assert row["dram_bytes"] == blocks * block_bytes
        assert row["used_cores"] == blocks
        one = ttx.explore(GEMM, block_M=m, block_N=n, **SIZES)
        assert row["l1_bytes"] == sum(buffer.total_bytes for buffer in one.plan.on_chip.buffers)
        estimate = one.estimate()
        assert (row["estimate_us"], row["bound"]) == (round(estimate.us, 3), estimate.bound)
        assert (row["state"], row["code"], row["reason"], row["line"], row["pcc"]) == ("verified", *[None] * 4)
    by_hand = min(range(len(rows)), key=lambda one: (rows[one]["estimate_us"], rows[one]["l1_bytes"], one))
    assert found.winner == by_hand


def test_the_best_is_proven_and_gives_the_product() -> None:
    found = ttx.sweep(GEMM, BLOCKS, prove=2, **SIZES)
    assert [found.state(number) for number in found.ranking[:3]] == ["proven", "proven", "verified"]
    row = found.table()[found.winner]
    assert row["pcc"] > 0.999
    best = found.best
    assert best is found.best
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-3, 4, (128, 128)).astype(np.float32) for _ in range(2))
    run = best.run([a, b])
    assert run.passed
    assert np.array_equal(np.asarray(run.outputs[0], np.float32), a @ b)
    assert (row["block_M"], row["block_N"]) == tuple(found.points[found.winner].given.values())


def test_what_is_refused_stays_with_its_reason() -> None:
    sizes: dict[str, Any] = {"M": 2048, "N": 2048, "K": 64}
    found = ttx.sweep(GEMM, {"block_M": [64, 1024], "block_N": [1024]}, prove=0, **sizes)
    good, bad = found.table()
    error = ttx.explore(GEMM, block_M=1024, block_N=1024, **sizes).error
    assert error is not None
    assert (bad["state"], bad["code"], bad["reason"]) == ("refused", "TTX-R001", error.message)
    assert bad["line"] == str(error.span) or error.span is None
    assert (bad["estimate_us"], bad["l1_bytes"]) == (None, None)
    assert good["state"] == "verified"
    assert "1 refused: " in str(found)
    assert "the first: block_M=1024 block_N=1024" in str(found)
    with pytest.raises(type(error)):
        found.explore(1).run()
    assert found.explore(0).error is None


def test_without_a_usable_schedule_there_is_no_best() -> None:
    found = ttx.sweep(GEMM, {"block_M": [1024], "block_N": [1024]}, M=1024, N=1024, K=64)
    assert found.ranking == ()
    with pytest.raises(UsageError, match="no schedule of the space can be lowered") as caught:
        _ = found.best
    assert "the most frequent reason: " in caught.value.hint
    assert "no schedule of the space can be lowered" in str(found)
    assert found._repr_html_()


def test_options_and_targets_reach_the_lowering() -> None:
    space = {"policy": ["contiguous", "strided"], "target": ["wormhole_n150", "blackhole_p100"], "cores": ["1x2"]}
    found = ttx.sweep(GEMM, space, options={"stages": 3}, prove=0, block_M=32, block_N=32, **SIZES)
    for number, (policy, target) in enumerate(itertools.product(space["policy"], space["target"])):
        one = found.explore(number)
        assert (one.target.name, one.plan.options["policy"], one.plan.options["stages"]) == (target, policy, 3)
        row = found.table()[number]
        assert (row["cores"], row["used_cores"]) == ("1x2", 2)
        assert found.table()[number]["target"] == target


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of points of each task that is evaluated from now on."""
    tasks: list[int] = []

    def counting(task: Task) -> Any:
        tasks.append(len(task.points))
        return evaluate(task)

    monkeypatch.setattr(module, "evaluate", counting)
    return tasks


def test_what_was_found_is_not_lowered_again(
    factory: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_cache: Path
) -> None:
    tasks = counted(monkeypatch)

    def lowered(**more: Any) -> int:
        tasks.clear()
        found = ttx.sweep(factory, {"block": [32, 64], "stages": [1, 2]}, prove=0, **more)
        tables.append(found.table())
        return sum(tasks)

    tables: list[Any] = []
    assert lowered() == 4
    assert lowered() == 0
    assert tables[0] == tables[1]
    assert lowered(fresh=True) == 4
    assert lowered(N=128) == 4
    assert lowered(target="blackhole_p150") == 4
    assert lowered(target="blackhole_p150") == 0
    # What the kernel's file imports is part of the kernel.
    (tmp_path / "neighbour.py").write_text("SCALE = 3.0\n")
    assert lowered() == 4
    (tmp_path / "scaled.py").write_text(FACTORY + "\n")
    assert lowered() == 4
    # A file beside that is not Python of today is no reason to keep nothing.
    (tmp_path / "scaled.py").write_text(FACTORY + "try:\n    import old\nexcept SyntaxError:\n    pass\n")
    (tmp_path / "old.py").write_text("print 1")
    assert lowered() == 4
    assert lowered() == 0
    (tmp_path / "old.py").write_text("print 2")
    assert lowered() == 4
    # A line that was cut off counts as not found; others are still there.
    (file,) = [one for one in (own_cache / "sweeps").iterdir() if one == max(own_cache.rglob("*.jsonl"), key=mtime)]
    first, second, *_ = (line for line in file.read_bytes().splitlines() if line)
    file.write_bytes(first + b"\n" + second[:-20])
    assert lowered() == 3
    assert lowered() == 0
    assert tables[-1] == tables[-3]


def mtime(path: Path) -> int:
    return path.stat().st_mtime_ns


@pytest.mark.parametrize("folder", ["site-packages", "lib/python3/dist-packages", "mine"])
def test_installed_packages_are_not_among_the_sources(folder: str, tmp_path: Path) -> None:
    """In whichever folder: that of the user, or that of Debian."""
    place = tmp_path / folder
    place.mkdir(parents=True)
    (place / "one.py").write_text("")
    assert _is_own(place / "one.py") == (folder == "mine")


def test_other_sources_of_ttexplore_find_nothing(factory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = shipped_file(factory)
    monkeypatch.setattr("ttexplore.sweeping.shipping.ttexplore_digest", lambda: "another version")
    assert before.digest
    assert shipped_file(factory).digest not in ("", before.digest)


def test_the_emulator_and_what_computes_are_part_of_the_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ttx, "__file__", str(tmp_path / "__init__.py"))
    digests: set[str] = set()
    for number, name in enumerate(("__init__.py", "cb.h", "runner.cpp"), 1):
        (tmp_path / name).write_text("")
        digests.add(ttexplore_digest.__wrapped__())
        assert len(digests) == number
    for number, name in enumerate(("apache-tvm", "numpy"), 4):
        version = importlib.metadata.version
        monkeypatch.setattr(
            "importlib.metadata.version", lambda one, name=name, v=version: v(one) + "!" * (one == name)
        )
        digests.add(ttexplore_digest.__wrapped__())
        assert len(digests) == number


def test_a_proof_is_kept_and_a_failed_run_is_never_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[str] = []
    real = ttx.Exploration.run

    def run(self: ttx.Exploration, *arguments: Any, **more: Any) -> Any:
        runs.append(str(self.kernel.name))
        found = real(self, *arguments, **more)
        return dataclasses.replace(found, passed=len(runs) > 1)

    monkeypatch.setattr(ttx.Exploration, "run", run)
    found = ttx.sweep(GEMM, BLOCKS, prove=1, **SIZES)
    assert len(runs) == 2
    states = [found.state(number) for number in range(6)]
    assert (states.count("wrong"), states.count("proven")) == (1, 1)
    assert found.state(found.winner) == "proven"
    assert states.index("wrong") not in found.ranking
    assert "not proven: block_M=" in str(found)
    again = ttx.sweep(GEMM, BLOCKS, prove=1, **SIZES)
    assert len(runs) == 2
    assert again.table() == found.table()


def test_a_run_that_cannot_be_done_proves_nothing_and_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(self: ttx.Exploration, *arguments: Any, **more: Any) -> Any:
        raise BackendError("B001", "no compiler today", hint="install one")

    with monkeypatch.context() as patched:
        patched.setattr(ttx.Exploration, "run", run)
        found = ttx.sweep(GEMM, BLOCKS, prove=1, **SIZES)
    assert found.state(found.winner) == "verified"
    assert "no compiler today" in str(found)
    assert ttx.sweep(GEMM, BLOCKS, prove=1, **SIZES).state(found.winner) == "proven"


def test_what_bounds_the_best_ten_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever was kept: of others, and the proof beside it."""
    monkeypatch.setattr(ttx.Exploration, "run", passes)
    space = {**BLOCKS, "math_fidelity": ["LoFi", "HiFi2", "HiFi4"]}
    one_of_them = {name: [value] for name, value in ttx.sweep(GEMM, space, prove=0, **SIZES).points[0].given.items()}
    proven = ttx.sweep(GEMM, one_of_them, prove=1, **SIZES)
    assert (proven.state(0), proven.table()[0]["bound"]) == ("proven", proven.best.estimate().bound)
    found = ttx.sweep(GEMM, space, prove=0, **SIZES)
    assert len(found.points) > 10
    table = found.table()
    assert [bool(table[number]["bound"]) for number in found.ranking] == [True] * 10 + [False] * (len(table) - 10)
    for number in (found.ranking[0], found.ranking[9]):
        assert table[number]["bound"] == found.explore(number).estimate().bound
    monkeypatch.setattr(ttx.Exploration, "run", None)
    assert ttx.sweep(GEMM, one_of_them, prove=1, **SIZES).table() == proven.table()


def passes(self: ttx.Exploration, *arguments: Any, **more: Any) -> Any:
    return types.SimpleNamespace(passed=True, pcc=1.0, message="")


@pytest.mark.parametrize("passed", [True, False])
def test_what_is_kept_does_not_show(monkeypatch: pytest.MonkeyPatch, passed: bool) -> None:
    proof = types.SimpleNamespace(passed=passed, pcc=1.0, message="")
    monkeypatch.setattr(ttx.Exploration, "run", lambda self, *arguments, **more: proof)
    before = ttx.sweep(GEMM, BLOCKS, prove=0, **SIZES)
    proven_before = ttx.sweep(GEMM, BLOCKS, prove=1, fresh=True, **SIZES)
    for number in (before.ranking[0], before.ranking[-1]):
        one = {name: [value] for name, value in before.points[number].given.items()}
        assert ttx.sweep(GEMM, one, prove=1, **SIZES).state(0) == ("proven" if passed else "wrong")
    after = ttx.sweep(GEMM, BLOCKS, prove=0, **SIZES)
    assert (after.table(), after.winner) == (before.table(), before.ranking[0])
    assert ttx.sweep(GEMM, BLOCKS, prove=1, **SIZES).table() == proven_before.table()


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (Deadlock("no kernel can proceed", hint="look", core=0, waits=()), "wrong"),
        (KernelFault("B004", "the program crashed", hint="look"), "wrong"),
        (KernelFault("B002", "reader.cpp does not compile", hint="look"), "wrong"),
        (KernelFault("B003", "the program did not end within the time limit", hint="wait"), "verified"),
        (BackendError("B001", "no compiler today", hint="install one"), "verified"),
        (out_of_memory("running"), "verified"),
    ],
)
def test_a_run_with_a_fault_is_wrong_and_one_that_cannot_be_done_is_not(
    error: TTExploreError, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(self: ttx.Exploration, *arguments: Any, **more: Any) -> Any:
        raise error

    monkeypatch.setattr(ttx.Exploration, "run", run)
    found = ttx.sweep(GEMM, {"block_M": [32]}, prove=1, **SIZES)
    assert found.state(0) == state
    assert error.message in str(found)
    # A fault is kept, a run that could not be done is done again.
    monkeypatch.setattr(ttx.Exploration, "run", passes)
    assert ttx.sweep(GEMM, {"block_M": [32]}, prove=1, **SIZES).state(0) == ("wrong" if state == "wrong" else "proven")


def test_ctrl_c_keeps_what_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(text: str) -> None:
        if "] 4 of 6" in text:
            raise KeyboardInterrupt

    monkeypatch.setattr(module, "_TELL_SECONDS", 0.0)
    found = ttx.sweep(GEMM, BLOCKS, workers=1, progress=interrupted, **SIZES)
    assert not found.complete
    assert [row["state"] for row in found.table()] == ["verified"] * 4 + ["not done"] * 2
    assert "2 not done" in found.summary
    tasks = counted(monkeypatch)
    whole = ttx.sweep(GEMM, BLOCKS, workers=1, prove=0, **SIZES)
    assert sum(tasks) == 2
    assert whole.complete
    # What bounds the best was not looked for.
    assert [{**row, "bound": None} for row in whole.table()[:4]] == found.table()[:4]


def test_ctrl_c_here_loses_one_point(monkeypatch: pytest.MonkeyPatch) -> None:
    traces: set[int] = set()

    def interrupted(task: Task) -> Answered:
        if len(traces) == 1 and len(task.lowerings) == 5:
            raise KeyboardInterrupt
        traces.add(id(task.lowerings))
        task.lowerings[str(len(task.lowerings))] = []
        return Answered(tuple(PointResult(figures=LoweringFigures(1.0, 1, 1, 1)) for _ in task.points))

    monkeypatch.setattr(module, "evaluate", interrupted)
    found = ttx.sweep(GEMM, {"block_M": range(32, 32 * 101, 32)}, workers=1, **SIZES)
    assert [row["state"] for row in found.table()] == ["verified"] * 5 + ["not done"] * 95


def test_points_that_differ_in_options_share_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    traced: list[object] = []
    trace = FoundKernel.trace

    def counting(self: FoundKernel, arguments: dict[str, object]) -> Any:
        traced.append(arguments)
        return trace(self, arguments)

    monkeypatch.setattr(FoundKernel, "trace", counting)
    space = {"block_M": [32, 64], "policy": ["contiguous", "strided"]}
    ttx.sweep(GEMM, space, workers=1, prove=0, **SIZES)
    # One to see whether the call is right, one for each block, and one for each point whose bound is found.
    assert len(traced) == 1 + 2 + 4


def test_numbers_of_no_point_are_refused() -> None:
    found = ttx.sweep(GEMM, {"block_M": [32]}, prove=0, **SIZES)
    for call in (found.state, found.schedule, found.explore):
        for number in (1, -1):
            with pytest.raises(UsageError, match=f"the number of a point is {number}"):
                call(number)


@pytest.mark.parametrize(
    ("error", "kept"),
    [
        (KernelError("K002", "shapes differ"), True),
        (Unsupported("L016", "too deep"), True),
        (ResourceError("R001", "too large for L1"), True),
        (UsageError("U010", "no such option value"), True),
        (out_of_memory("the step A1"), False),
        (ResourceError("R011", "called from too deep"), False),
        (KernelError("K011", "OSError: no such file"), False),
        (VerifyError("V060", "the step A1 failed inside ttexplore: KeyError: 1"), False),
        (VerifyError("V001", "a law is violated"), False),
        (BackendError("B003", "the estimate did not end within 60 s"), False),
        (Cancelled(), False),
    ],
)
def test_only_what_lasts_is_kept(
    monkeypatch: pytest.MonkeyPatch, own_cache: Path, error: TTExploreError, kept: bool
) -> None:
    monkeypatch.setattr("ttexplore.sweeping.evaluate.figures", raising(error))
    first = ttx.sweep(GEMM, {"block_M": [32]}, workers=1, prove=0, **SIZES)
    assert first.table()[0]["code"] == error.code
    monkeypatch.setattr("ttexplore.sweeping.evaluate.figures", lambda lowered: LoweringFigures(1.0, 2, 3, 4))
    again = ttx.sweep(GEMM, {"block_M": [32]}, workers=1, prove=0, **SIZES)
    assert again.table()[0]["code"] == (error.code if kept else None)


def raising(error: Exception) -> Any:
    def raises(*_: object) -> Any:
        raise error

    return raises


@pytest.mark.parametrize("depth", [880, 920, 940, 960])
def test_a_deep_caller_is_told_and_refuses_no_point(depth: int) -> None:
    """Whatever is the first that the rest of the stack does not suffice for."""

    def inside(calls: int) -> Any:
        if calls:
            return inside(calls - 1)
        try:
            return ttx.sweep(GEMM, {"block_M": [32, 64]}, workers=1, prove=0, fresh=True, **SIZES).table()
        except ResourceError as error:
            return error.code

    ttx.explore(GEMM, **SIZES)
    _compiled.cache_clear()
    found = inside(depth - len(inspect.stack(0)))
    codes = [found] if isinstance(found, str) else [row["code"] for row in found]
    assert set(codes) <= {None, "TTX-R011"}
    assert depth < 940 or codes == ["TTX-R011"]
    shallow = ttx.sweep(GEMM, {"block_M": [32, 64]}, workers=1, prove=0, **SIZES)
    assert [row["state"] for row in shallow.table()] == ["verified", "verified"]


def test_a_kernel_that_never_ends_calling_itself_is_its_own_fault() -> None:
    def endless() -> Any:
        return endless()

    with pytest.raises(KernelError, match="RecursionError"):

        @T.prim_func
        def kernel(A: T.Tensor((32, 32), "float32"), C: T.Tensor((32, 32), "float32")):
            with T.Kernel(1) as _:
                T.copy(A, C)
                endless()


def test_another_python_finds_nothing(factory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = shipped_file(factory).digest
    ttexplore_digest.cache_clear()
    monkeypatch.setattr("platform.python_version", lambda: "3.99.0")
    try:
        assert shipped_file(factory).digest != before
    finally:
        ttexplore_digest.cache_clear()


def test_foreign_lines_of_the_cache_are_skipped(own_cache: Path) -> None:
    def table() -> Any:
        return ttx.sweep(GEMM, {"block_M": [32]}, prove=0, **SIZES).table()

    found = table()
    (file,) = own_cache.rglob("*.jsonl")
    (key,) = {json.loads(line)[0] for line in file.read_text().splitlines() if line}
    file.write_text(f'5\n[[1], 2]\nnull\n"ab"\n["{key}", 5]\n["{key}", {{"figures": 7}}]\n')
    assert table() == found


def test_cancelled_before_it_begins() -> None:
    cancel = threading.Event()
    cancel.set()
    result = ttx.sweep(GEMM, BLOCKS, progress=None, cancel=cancel, **SIZES)
    assert "no schedule of the space was tried" in str(result)
    with pytest.raises(UsageError, match="no schedule of the space was tried"):
        _ = result.best


def test_cancelling_keeps_what_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_TELL_SECONDS", 0.0)
    cancel = threading.Event()
    told: list[str] = []

    def progress(text: str) -> None:
        told.append(text)
        if "] 3 of 6" in text:
            cancel.set()

    found = ttx.sweep(GEMM, BLOCKS, progress=progress, cancel=cancel, **SIZES)
    assert [row["state"] for row in found.table()].count("verified") == 3
    assert told[0] == "[........................] 0 of 6 points, 0 refused"
    assert re.fullmatch(r"\[############\.{12}\] 3 of 6 points, 0 refused, about \d+ s left", told[-1])


def test_a_kernel_of_this_process_can_be_swept() -> None:
    def product(M: int, block: int) -> Any:
        @T.prim_func
        def main(A: T.Tensor((M, M), "bfloat16"), B: T.Tensor((M, M), "bfloat16")):
            with T.Kernel(M // block, M // block) as (bx, by):
                a = T.alloc_shared((block, block), "bfloat16")
                T.copy(A[by * block, bx * block], a)
                T.copy(a, B[by * block, bx * block])

        return main

    found = ttx.sweep(product, {"block": [32, 64, 48]}, prove=0, M=64)
    assert [row["used_cores"] for row in found.table()] == [4, 1, 1]
    # A kernel that has been traced has options only.
    again = ttx.sweep(product(64, 32), {"policy": ["contiguous", "strided"]}, prove=0)
    assert [row["state"] for row in again.table()] == ["verified"] * 2
    assert shipped_object(product(64, 32)) is None


def nothing() -> None: ...


def number(block_M: int) -> int:
    return block_M


def staged(stages: int) -> int:
    return stages


def named(reason: int) -> int:
    return reason


@pytest.mark.parametrize(
    ("kernel", "space", "more", "kind", "message"),
    [
        (GEMM, {"block_Q": [1]}, SIZES, UsageError, "takes no argument block_Q"),
        (GEMM, {"polcy": ["strided"]}, SIZES, UsageError, "takes no argument polcy"),
        (GEMM, {"block_M": [32]}, {}, UsageError, "needs M, N, K"),
        (GEMM, {}, SIZES, UsageError, "the space is empty"),
        ("gemm.py::matmul", {"block_M": [32]}, {}, UsageError, "there is no file gemm.py"),
        (3, {"block_M": [32]}, {}, UsageError, "3 is not a kernel but a value of type int"),
        (len, {"block_M": [32]}, {}, UsageError, "is not a kernel but a value of type builtin"),
        (nothing, {"block_M": [32]}, {}, UsageError, "takes no argument block_M"),
        (number, {"block_M": [32]}, {}, UsageError, "returns int, not a kernel"),
        (GEMM, {"block_M": [32]}, {**SIZES, "workers": 0}, UsageError, "workers is 0"),
        (GEMM, {"block_M": [32]}, {**SIZES, "workers": 100_000}, UsageError, "workers is 100000"),
        (GEMM, {"block_M": [32]}, {**SIZES, "client": "tcp://x"}, UsageError, "client is 'tcp://x'"),
        (GEMM, {"block_M": [32]}, {**SIZES, "prove": -1}, UsageError, "prove is -1"),
        (GEMM, {"block_M": [32]}, {**SIZES, "fresh": "x"}, UsageError, "fresh is 'x'"),
        (GEMM, {"target": [N150]}, {**SIZES, "target": N150}, UsageError, "target is in the space, and has a value"),
        (GEMM, {"block_M": [32]}, {**SIZES, "workers": 1, "scheduler": "x"}, UsageError, "are several answers"),
        (named, {"reason": [1]}, {}, UsageError, "reason is a name of the space and a column of the table"),
        (staged, {"stages": [1]}, {}, UsageError, "stages is an option of the passes and an argument"),
    ],
)
def test_wrong_use(kernel: Any, space: Any, more: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=re.escape(message)) as caught:
        ttx.sweep(kernel, space, **more)
    assert getattr(caught.value, "hint", "")


def test_the_name_of_an_option_is_suggested() -> None:
    with pytest.raises(UsageError) as caught:
        ttx.sweep(GEMM, {"polcy": ["strided"]}, **SIZES)
    assert caught.value.hint == "did you mean the option policy?"


def test_a_kernel_that_raises_for_some_values_is_refused_there() -> None:
    def copies(block: int) -> Any:
        if block == 64:
            raise ValueError("no 64 today")

        @T.prim_func
        def main(A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((64, 64), "bfloat16")):
            with T.Kernel(64 // block):
                T.copy(A, B)

        return main

    _, bad = ttx.sweep(copies, {"block": [32, 64]}, prove=0).table()
    with pytest.raises(KernelError) as caught:
        ttx.explore(copies, block=64)
    assert (bad["state"], bad["reason"]) == ("refused", caught.value.message)
    assert bad["line"] == str(caught.value.span)


def test_a_data_frame_has_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    found = ttx.sweep(GEMM, {"block_M": [32, 64]}, prove=0, **SIZES)
    pandas = types.ModuleType("pandas")
    vars(pandas)["DataFrame"] = lambda rows: ("frame", rows)
    monkeypatch.setitem(sys.modules, "pandas", pandas)
    assert found.frame() == ("frame", found.table())
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(BackendError, match="pandas is not installed"):
        found.frame()


def test_a_cache_folder_that_cannot_be_written_is_named(own_cache: Path) -> None:
    own_cache.write_text("a file")
    with pytest.raises(BackendError, match=r"the cache folder .* cannot be written"):
        ttx.sweep(GEMM, {"block_M": [32]}, **SIZES)


def test_a_worker_of_another_version_is_refused() -> None:
    points = space_of({"block_M": [32]}, "wormhole_n150", None, SIZES).points
    with pytest.raises(BackendError, match="another version of ttexplore"):
        evaluate(Task(shipped_file(GEMM), points, "another")).checked()
