"""What makes a program faster: each advice is lowered here again, and its time is that of its own estimate."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import ttexplore as ttx
import ttexplore.language as T
from ttexplore.control import Control
from ttexplore.errors import Cancelled
from ttexplore.exploration.advising import LEAST_GAIN, advice
from ttexplore.language.machine import get_num_sms

GEMM = "notebooks/kernels/gemm.py::matmul"


@T.jit
def repeated(n: int = 256, block: int = 64, rounds: int = 32) -> Any:
    """No tensor tells how often the elements are doubled; fewer rounds would take less time."""

    @T.prim_func
    def main(A: T.Tensor((n, n), "float32"), B: T.Tensor((n, n), "float32")):
        with T.Kernel(n // block) as bx:
            rows = T.alloc_fragment((block, n), "float32")
            T.copy(A[bx * block, 0], rows)
            for _ in T.serial(rounds):
                for i, j in T.Parallel(block, n):
                    rows[i, j] = rows[i, j] * 2.0
            T.copy(rows, B[bx * block, 0])

    return main


def test_idle_cores_get_work_from_smaller_blocks() -> None:
    """The figures of the review: 16 of 64 cores work on blocks of 128 x 128."""
    ex = ttx.explore(GEMM, M=512, N=512, K=256)
    now = ex.estimate().us
    first, *others = advice(ex)
    assert (first.changed, first.cause) == ({"block_M": "64", "block_N": "64"}, "48 of 64 cores idle")
    assert first.us == ttx.explore(GEMM, M=512, N=512, K=256, block_M=64, block_N=64).estimate().us
    assert first.gain == 1 - first.us / now
    assert others
    for each in others:
        assert each.us == ttx.explore(GEMM, M=512, N=512, K=256, options=dict(each.changed)).estimate().us
        assert first.us < each.us <= now * (1 - LEAST_GAIN)
    # It is tried once, and is the same each time.
    assert advice(ex, Control(progress=lambda words: pytest.fail(words))) == [first, *others]
    (told, *_) = ex.advice_data()
    assert told == {
        "cause": "48 of 64 cores idle", "percent": 50, "wish": {"block_M": "64", "block_N": "64"},
        "words": "block_M=64, block_N=64", "told": "takes 17.8 µs instead of 35.5 µs",
    }  # fmt: skip


def test_an_argument_that_changes_the_result_is_no_block_size() -> None:
    ex = ttx.explore(repeated)
    tried: list[str] = []
    found = advice(ex, Control(progress=tried.append))
    assert any(words.startswith("trying rounds=") for words in tried)
    assert any(words.startswith("trying block=") for words in tried)
    # Tensors depend on it.
    assert not any(words.startswith("trying n=") for words in tried)
    assert not any("rounds" in each.changed for each in found)


def test_what_was_set_from_outside_is_not_lost() -> None:
    """Only a kernel that is traced again as it was is tried with other arguments."""
    annotated: Any = T.annotate_tt_schedule(repeated.compile(block=64), {"policy": "strided"})
    tried: list[str] = []
    advice(ttx.explore(annotated), Control(progress=tried.append))
    assert tried
    assert not any(words.startswith("trying block=") for words in tried)


@T.jit
def for_many_cores(n: int = 256, block: int = 128) -> Any:
    assert get_num_sms() > 100, "a large chip is needed"

    @T.prim_func
    def main(A: T.Tensor((n, n), "float32"), B: T.Tensor((n, n), "float32")):
        with T.Kernel(n // block) as bx:
            rows = T.alloc_fragment((block, n), "float32")
            T.copy(A[bx * block, 0], rows)
            T.copy(rows, B[bx * block, 0])

    return main


def test_a_kernel_that_asks_for_the_chip_is_traced_again_for_it() -> None:
    tried: list[str] = []
    advised = advice(ttx.explore(for_many_cores, target="blackhole_p150"), Control(progress=tried.append))
    assert "trying block=64" in tried
    (smaller,) = [each for each in advised if "block" in each.changed]
    alone = ttx.explore(for_many_cores, target="blackhole_p150", block=int(smaller.changed["block"]))
    assert smaller.us == alone.estimate().us


def test_it_ends_when_it_is_cancelled() -> None:
    ex = ttx.explore(GEMM, M=256, N=256, K=128, block_M=64, block_N=64)
    cancel = threading.Event()

    def progress(words: str) -> None:
        if words.startswith("trying"):
            cancel.set()

    with pytest.raises(Cancelled):
        advice(ex, Control(cancel, progress=progress))
    assert not ex._advised
