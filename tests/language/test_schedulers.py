# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false
"""Tile schedulers against NumPy, and wrong uses of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus.schedulers import counted, scheduled
from ttexplore.errors import KernelError, TTExploreError


@pytest.mark.parametrize(("rows", "columns", "workers", "cluster"), [(4, 3, 5, 1), (1, 7, 3, 1), (4, 3, 2, 2)])
def test_each_tile_is_done_once(rows: int, columns: int, workers: int, cluster: int) -> None:
    exploration = ttx.explore(scheduled(rows, columns, workers, cluster=cluster))
    assert exploration.error is None, str(exploration.error)
    a = np.random.default_rng(1).integers(0, 100, (32 * rows, 32 * columns)).astype(np.float32)
    assert exploration.check([a])
    number = np.arange(rows)[:, None] * 10 + np.arange(columns)
    want = a * 0.5 + np.kron(number, np.ones((32, 32)))
    np.testing.assert_array_equal(exploration.run([a]).outputs[0], want)


@pytest.mark.parametrize(("rows", "columns", "workers"), [(4, 3, 5), (1, 7, 3), (2, 2, 4)])
def test_how_many_tiles_a_block_has_done(rows: int, columns: int, workers: int) -> None:
    exploration = ttx.explore(counted(rows, columns, workers))
    assert exploration.error is None, str(exploration.error)
    a = np.random.default_rng(1).integers(0, 100, (32 * rows, 32 * columns)).astype(np.float32)
    assert exploration.check([a])
    # Tiles are taken column by column.
    number = np.arange(rows * columns).reshape(columns, rows).T // workers
    np.testing.assert_array_equal(exploration.run([a]).outputs[0], a + np.kron(number, np.ones((32, 32))))


def wrong(what: str) -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((128, 96), "float32")):
        with T.Kernel(7) as block:
            a = T.alloc_shared((32, 32), "float32")
            tiles = T.PersistentTileScheduler(4, 3, 7, stateful=what != "stateless")
            if what != "uninitialised":
                tiles.init(block)
            if what == "outside":
                T.copy(A[tiles.m_idx * 32, 0], a)
            if what == "asked" and tiles.valid():
                T.copy(A[0, 0], a)
            while tiles.valid():
                T.copy(A[tiles.m_idx * 32, tiles.n_idx * 32], a)
                T.copy(a, A[tiles.m_idx * 32, tiles.n_idx * 32])
                if what == "numbered":
                    T.copy(A[tiles.linear_idx * 32, 0], a)
                if what == "branch":
                    if tiles.m_idx > 1:
                        tiles.next_tile()
                elif what != "endless":
                    tiles.next_tile()
                if what == "after":
                    T.copy(A[tiles.m_idx * 32, 0], a)
            if what == "again":
                while tiles.valid():
                    tiles.next_tile()

    return kernel


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("uninitialised", "no tiles are left here"),
        ("outside", "there is no tile outside of the loop"),
        ("after", "there is no tile outside of the loop"),
        ("asked", "the condition of a tile scheduler is known only when the kernel runs"),
        ("endless", "the loop does not end with next_tile"),
        ("again", "no tiles are left here"),
        ("branch", "next_tile in a branch or an inner loop is not lowered"),
        ("numbered", "the number of a tile is not lowered"),
        ("stateless", "with stateful=False is not lowered"),
    ],
)
def test_wrong_uses_are_refused(what: str, message: str) -> None:
    with pytest.raises(TTExploreError, match=message) as error:
        wrong(what)
    assert error.value.span is not None


def test_next_tile_outside_of_a_loop_is_refused() -> None:
    with pytest.raises(KernelError, match="next_tile is outside of a loop over tiles"):

        @T.prim_func
        def kernel(A: T.Tensor((128, 96), "float32")):
            with T.Kernel(7):
                T.PersistentTileScheduler(4, 3, 7).next_tile()
