"""Work items that take different times are divided so that all cores have about as much work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.said import said
from ttexplore import Exploration

BLOCKS = 12
ROWS = BLOCKS * 32


def triangle() -> Any:
    """Row of blocks `bx` sums the blocks up to the diagonal."""

    @T.prim_func
    def main(A: T.Tensor((2, ROWS, ROWS), "float32"), B: T.Tensor((2, ROWS, 32), "float32")):
        with T.Kernel(BLOCKS, 2) as (bx, by):
            a = T.alloc_shared((32, 32), "float32")
            total = T.alloc_fragment((32, 32), "float32")
            T.clear(total)
            for k in T.serial(bx + 1):
                T.copy(A[by, bx * 32, k * 32], a)
                for i, j in T.Parallel(32, 32):
                    total[i, j] = total[i, j] + a[i, j]
            T.copy(total, B[by, bx * 32, 0])

    return main


def reversed_triangle() -> Any:
    """The first rows have the most blocks, from the diagonal on, and the length is a name."""

    @T.prim_func
    def main(A: T.Tensor((2, ROWS, ROWS), "float32"), B: T.Tensor((2, ROWS, 32), "float32")):
        with T.Kernel(BLOCKS, 2) as (bx, by):
            a = T.alloc_shared((32, 32), "float32")
            total = T.alloc_fragment((32, 32), "float32")
            T.clear(total)
            count = BLOCKS - bx
            for k in T.serial(count):
                T.copy(A[by, bx * 32, (bx + k) * 32], a)
                for i, j in T.Parallel(32, 32):
                    total[i, j] = total[i, j] + a[i, j]
            T.copy(total, B[by, bx * 32, 0])

    return main


def in_branch() -> Any:
    """Only blocks up to the diagonal are added, by a branch in a loop over all."""

    @T.prim_func
    def main(A: T.Tensor((2, ROWS, ROWS), "float32"), B: T.Tensor((2, ROWS, 32), "float32")):
        with T.Kernel(BLOCKS, 2) as (bx, by):
            a = T.alloc_shared((32, 32), "float32")
            total = T.alloc_fragment((32, 32), "float32")
            T.clear(total)
            for k in T.serial(BLOCKS):
                if k <= bx:
                    T.copy(A[by, bx * 32, k * 32], a)
                    for i, j in T.Parallel(32, 32):
                        total[i, j] = total[i, j] + a[i, j]
            T.copy(total, B[by, bx * 32, 0])

    return main


def even() -> Any:
    @T.prim_func
    def main(A: T.Tensor((2, ROWS, 32), "float32"), B: T.Tensor((2, ROWS, 32), "float32")):
        with T.Kernel(BLOCKS, 2) as (bx, by):
            a = T.alloc_shared((32, 32), "float32")
            T.copy(A[by, bx * 32, 0], a)
            T.copy(a, B[by, bx * 32, 0])

    return main


def upper(A: Any, *, reverse: bool) -> Any:
    blocks = np.asarray(A, np.float64).reshape(2, BLOCKS, 32, BLOCKS, 32)
    seen = np.tril(np.ones((BLOCKS, BLOCKS)))
    return np.einsum("brick,rc->brik", blocks, seen.T if reverse else seen).reshape(2, ROWS, 32)


def most_blocks(ex: Exploration, blocks: Callable[[int], int]) -> int:
    """The blocks that the core with the most work adds."""
    partition = ex.plan.partition
    assert partition is not None
    items = [[*partition.items_of(core)] for core in partition.cores]
    assert sorted(item for mine in items for item in mine) == list(range(2 * BLOCKS))
    return max(sum(blocks(item % BLOCKS) for item in mine) for mine in items)


@pytest.mark.parametrize(
    ("kernel", "blocks"),
    [(triangle(), lambda bx: bx + 1), (reversed_triangle(), lambda bx: BLOCKS - bx), (in_branch(), lambda bx: bx + 1)],
    ids=["triangle", "reversed_triangle", "in_branch"],
)
def test_long_items_are_paired_with_short_ones(kernel: Any, blocks: Callable[[int], int]) -> None:
    """156 blocks on eight cores: 19.5 each, 45 for the last core of contiguous runs."""
    ex = ttx.explore(kernel, options={"cores": (4, 2)})
    assert ex.plan.partition is not None
    assert ex.plan.partition.policy == "balanced"
    assert most_blocks(ex, blocks) <= 22
    contiguous = ttx.explore(kernel, options={"cores": (4, 2), "policy": "contiguous"})
    assert contiguous.plan.partition is not None
    assert contiguous.plan.partition.policy == "contiguous"
    assert most_blocks(contiguous, blocks) >= 33
    assert not any(one.name == "policy" for one in contiguous.plan.choices)
    estimates = ex.estimate().us, contiguous.estimate().us
    assert estimates[0] < 0.75 * estimates[1]
    A = np.random.default_rng(0).integers(-4, 5, (2, ROWS, ROWS)).astype(np.float32)
    run = ex.run(inputs=[A])
    assert np.array_equal(run.outputs[0], upper(A, reverse=blocks(0) > 1))


def test_the_choice_and_its_times_are_recorded() -> None:
    ex = ttx.explore(triangle(), options={"cores": (4, 2)})
    choice = next(one for one in ex.plan.choices if one.name == "policy")
    times = {one.name: one.predicted_us for one in choice.candidates}
    assert choice.chosen == "balanced"
    assert (times["balanced"] or 0) < 0.7 * (times["contiguous"] or 0)
    assert any(
        one.startswith("the policy is balanced, because work items take different times") for one in said(ex.plan)
    )
    assert not any("contiguous, row-major" in one for one in said(ex.plan))


@pytest.mark.parametrize("options", [{}, {"cores": (8, 3)}], ids=["a core for each item", "the same"])
def test_nothing_is_chosen_where_every_core_has_one_item(options: dict[str, Any]) -> None:
    ex = ttx.explore(triangle(), options=options)
    assert ex.plan.partition is not None
    assert ex.plan.partition.policy == "contiguous"
    assert not any(one.name == "policy" for one in ex.plan.choices)


def test_even_items_stay_in_runs_and_are_dealt_evenly_on_request() -> None:
    ex = ttx.explore(even(), options={"cores": (5, 1)})
    assert ex.plan.partition is not None
    assert ex.plan.partition.policy == "contiguous"
    asked = ttx.explore(even(), options={"cores": (5, 1), "policy": "balanced"})
    assert asked.plan.partition is not None
    assert sorted(core.items for core in asked.plan.partition.cores) == [4, 5, 5, 5, 5]
    A = np.random.default_rng(1).standard_normal((2, ROWS, 32)).astype(np.float32)
    assert np.array_equal(asked.run(inputs=[A]).outputs[0], A)


def test_a_core_runs_its_items_in_the_order_asked_for() -> None:
    ex = ttx.explore(triangle(), options={"cores": (4, 2), "policy": "balanced", "order": "column_major"})
    partition = ex.plan.partition
    assert partition is not None
    for core in partition.cores:
        places = [(item % BLOCKS, item // BLOCKS) for item in partition.items_of(core)]
        assert places == sorted(places)
    assert most_blocks(ex, lambda bx: bx + 1) <= 22


def test_lengths_known_only_at_run_time_are_refused() -> None:
    n = T.dynamic("n")

    @T.prim_func
    def main(A: T.Tensor((n, 32), "float32"), B: T.Tensor((n, 32), "float32")):
        with T.Kernel(T.ceildiv(n, 32)) as bx:
            a = T.alloc_shared((32, 32), "float32")
            T.copy(A[bx * 32, 0], a)
            T.copy(a, B[bx * 32, 0])

    error = ttx.explore(main, options={"policy": "balanced"}, sizes={"n": 64}).error
    assert error is not None
    assert error.code == "TTX-L014"
    assert "take times that are known only when it runs" in str(error)


def test_times_of_products_depend_on_the_math_fidelity() -> None:
    """The policy is asked for: the step that divides work predicts the products' times, in forks as well."""

    @T.prim_func
    def main(
        A: T.Tensor((ROWS, 64), "bfloat16"), B: T.Tensor((ROWS, 64), "bfloat16"), C: T.Tensor((ROWS, 32), "float32")
    ):
        with T.Kernel(BLOCKS) as bx:
            a = T.alloc_shared((32, 64), "bfloat16")
            b = T.alloc_shared((32, 64), "bfloat16")
            c = T.alloc_fragment((32, 32), "float32")
            T.clear(c)
            T.copy(A[bx * 32, 0], a)
            for k in T.Pipelined(bx + 1, num_stages=2):
                T.copy(B[k * 32, 0], b)
                T.gemm(a, b, c, transpose_B=True)
            T.copy(c, C[bx * 32, 0])

    options = {"cores": (3, 1), "policy": "balanced", "multicast": "off"}
    ex = ttx.explore(main, options=options)
    assert ex.error is None, str(ex.error)
    assert most_blocks_of(ex) <= 28
    A, B = np.random.default_rng(2).integers(-2, 3, (2, ROWS, 64)).astype(np.float32)
    blocks = np.einsum("rd,kcd->rkc", A, B.reshape(BLOCKS, 32, 64))
    seen = np.arange(BLOCKS) <= np.arange(ROWS)[:, None] // 32
    expected = np.einsum("rkc,rk->rc", blocks, seen)
    assert np.array_equal(ex.run(inputs=[A, B]).outputs[0], expected)
    low = ex.fork(math_fidelity="LoFi")
    assert low.plan.partition == ttx.explore(main, options=options | {"math_fidelity": "LoFi"}).plan.partition


def most_blocks_of(ex: Exploration) -> int:
    """The products of the core with the most work, of 78 in all."""
    partition = ex.plan.partition
    assert partition is not None
    return max(sum(item + 1 for item in partition.items_of(core)) for core in partition.cores)
