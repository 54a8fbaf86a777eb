# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false
"""Kernels whose blocks ask a tile scheduler for their tiles."""

from __future__ import annotations

from typing import Any

import ttexplore.language as T
from tests.corpus.case import Case


def scheduled(rows: int, columns: int, workers: int, *, cluster: int = 1) -> Any:
    """Tiles, changed by their indices. With `cluster`, so many neighbouring blocks take
    neighbouring rows."""

    @T.prim_func
    def kernel(A: T.Tensor((32 * rows, 32 * columns), "float32"), Out: T.Tensor((32 * rows, 32 * columns), "float32")):
        with T.Kernel(workers * cluster) as block:
            a = T.alloc_shared((32, 32), "float32")
            tiles = T.PersistentTileScheduler(rows, columns, workers, swizzle_size=2, cluster_size=cluster)
            with T.ws_op("begin"):
                tiles.init(block // cluster)
            while tiles.valid():
                row = tiles.m_idx * cluster + block % cluster
                column = tiles.n_idx
                T.copy(A[row * 32, column * 32], a)
                for i, j in T.Parallel(32, 32):
                    a[i, j] = a[i, j] * 0.5 + (row * 10 + column)
                T.copy(a, Out[row * 32, column * 32])
                tiles.next_tile()

    return kernel


def counted(rows: int, columns: int, workers: int) -> Any:
    """Tiles, and how many each block has done before."""

    @T.prim_func
    def kernel(A: T.Tensor((32 * rows, 32 * columns), "float32"), Out: T.Tensor((32 * rows, 32 * columns), "float32")):
        with T.Kernel(workers) as block:
            a = T.alloc_shared((32, 32), "float32")
            tiles = T.PersistentTileScheduler(rows, columns, workers)
            tiles.init(block)
            while tiles.valid():
                T.copy(A[tiles.m_idx * 32, tiles.n_idx * 32], a)
                for i, j in T.Parallel(32, 32):
                    a[i, j] = a[i, j] + tiles.current_iter
                T.copy(a, Out[tiles.m_idx * 32, tiles.n_idx * 32])
                tiles.next_tile()

    return kernel


SCHEDULERS: tuple[Case, ...] = (
    Case("tile_scheduler", lambda: scheduled(4, 3, 5)),
    Case("tile_scheduler_counted", lambda: counted(4, 3, 5), on_chip=False),
    Case("tile_scheduler_cluster", lambda: scheduled(4, 3, 2, cluster=2), on_chip=False),
)
