"""The table of TileLang's examples (benchmarks/upstream.py), on small files of our own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ttexplore as ttx
from benchmarks.upstream import Kernel, Result, inputs_of, read_kernels, run_all, run_kernel, table

FILE = """
import os
import tilelang
import tilelang.language as T

ROWS = 4096


@tilelang.jit
def doubled(A, number=2.0):
    A: T.Tensor((ROWS, 32), "float32")
    C = T.empty((ROWS, 32), "float32")
    with T.Kernel(ROWS // 32) as bx:
        c = T.alloc_fragment((32, 32), "float32")
        T.copy(A[bx * 32, 0], c)
        for i, j in T.Parallel(32, 32):
            c[i, j] = c[i, j] * number
        T.copy(c, C[bx * 32, 0])
    return C


@tilelang.jit
def threads(A):
    A: T.Tensor((ROWS, 32), "float32")
    with T.Kernel(1) as bx:
        random_number = T.rng_rand()


def dies():
    os._exit(9)


def hangs():
    while True:
        pass


def raises():
    raise KeyboardInterrupt
"""


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    (tmp_path / "kernels.py").write_text(FILE)
    return tmp_path


def kernel(name: str, **fields: Any) -> Kernel:
    return Kernel("kernels.py", name, **fields)


def test_a_kernel_runs_with_smaller_constants(examples: Path) -> None:
    result = run_kernel(kernel("doubled", args={"number": 3.0}, constants={"ROWS": 64}), examples, emulate=False)
    assert (result.kind, result.construct, result.detail) == ("runs", "", "")


def test_inputs_of_the_list_are_used(examples: Path) -> None:
    explored = ttx.explore(f"{examples}/kernels.py::doubled")
    drawn = inputs_of(explored, kernel("doubled", inputs={"A": {"from": 3, "below": 5}}))["A"]
    assert drawn.shape == (4096, 32)
    assert set(drawn.flat) == {3, 4}
    assert (inputs_of(explored, kernel("doubled", inputs={"A": 7}))["A"] == 7).all()


def test_a_refusal_is_counted_without_names_and_numbers(examples: Path) -> None:
    result = run_kernel(kernel("threads"), examples, emulate=False)
    assert (result.kind, result.construct) == ("refused", "TTX-L001 Trng_rand is not lowered")
    assert "kernels.py:26: T.rng_rand is not lowered" in result.detail
    assert result.detail.endswith("random_number = T.rng_rand()")


def test_wrong_arguments_are_no_construct(examples: Path) -> None:
    result = run_kernel(kernel("doubled", args={"factor": 3}), examples, emulate=False)
    assert (result.kind, result.construct) == (
        "refused",
        "the arguments are wrong, or the file cannot be loaded",
    )


def test_a_wrong_step_is_found(examples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import ttexplore.exploration.lowered as exploration

    true, count = exploration.interpret, 0

    def wrong_once(*arguments: Any, **options: Any) -> Any:
        nonlocal count
        count += 1
        result = true(*arguments, **options)
        if count == 5:
            result.outputs[0][:] = 0
        return result

    monkeypatch.setattr(exploration, "interpret", wrong_once)
    result = run_kernel(kernel("doubled", constants={"ROWS": 32}), examples, emulate=False)
    assert result.kind == "wrong"


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_nothing_stops_the_table(examples: Path) -> None:
    results: dict[str, str] = {}
    for names, seconds in ((["dies", "raises", "threads"], 120), (["hangs"], 2)):
        found = run_all(map(kernel, names), examples, emulate=False, workers=2, seconds=seconds)
        results |= {one.name: result.kind for one, result in found}
    assert results == {"dies": "crash", "hangs": "slow", "raises": "crash", "threads": "refused"}


def test_the_table_counts_and_orders() -> None:
    pairs = [
        (Kernel("f.py", "a"), Result("refused", 1, "L001 rare", "why")),
        (Kernel("f.py", "b"), Result("refused", 1, "L002 frequent", "why")),
        (Kernel("f.py", "c"), Result("refused", 1, "L002 frequent", "why")),
        (Kernel("f.py", "d", variant="small"), Result("runs", 1.5, notes=2)),
        (Kernel("f.py", "e"), Result("wrong", 1, detail="step C1")),
    ]
    text = table(pairs)
    assert text.startswith("5 kernels: 1 runs, 3 refused, 1 wrong, 0 crash, 0 slow\n")
    assert "WRONG f.py::e\n    step C1" in text
    assert text.index("2  L002 frequent") < text.index("1  L001 rare")
    assert "1.5 s  f.py::d (small)  (2 notes)" in text


def test_the_list_names_each_kernel_once() -> None:
    labels = [one.label for one in read_kernels()]
    assert len(labels) == len(set(labels)) == 228
