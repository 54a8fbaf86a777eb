"""Which core does what, in which order: the policies and sets of cores, on kernels of other subjects."""

from __future__ import annotations

from typing import Any

import ttexplore.language as T
from tests.corpus.case import Case
from tests.corpus.spine import gemm


def blocks(columns: int = 5, rows: int = 3, depth: int = 0) -> Any:
    """Each block copies its own tile: item n of the grid reads and writes page n."""
    shape = (depth, rows * 32, columns * 32) if depth else (rows * 32, columns * 32)
    grid = (columns, rows, depth) if depth else (columns, rows) if rows > 1 else (columns,)

    @T.prim_func
    def copy(A: T.Tensor(shape, "bfloat16"), B: T.Tensor(shape, "bfloat16")):
        with T.Kernel(*grid) as block:
            at = block if isinstance(block, tuple | list) else (block,)
            row = at[1] * 32 if len(grid) > 1 else 0
            S = T.alloc_shared((32, 32), "bfloat16")
            if depth:
                T.copy(A[at[2], row, at[0] * 32], S)
                T.copy(S, B[at[2], row, at[0] * 32])
            else:
                T.copy(A[row, at[0] * 32], S)
                T.copy(S, B[row, at[0] * 32])

    return copy


def added(rows: int, columns: int, block_rows: int, block_columns: int) -> Any:
    """A sum, block by block."""
    shape, block = (rows, columns), (block_rows, block_columns)

    @T.prim_func
    def add(A: T.Tensor(shape, "bfloat16"), B: T.Tensor(shape, "bfloat16"), C: T.Tensor(shape, "bfloat16")):
        with T.Kernel(columns // block_columns, rows // block_rows) as (bx, by):
            a = T.alloc_shared(block, "bfloat16")
            b = T.alloc_shared(block, "bfloat16")
            c = T.alloc_shared(block, "bfloat16")
            T.copy(A[by * block_rows, bx * block_columns], a)
            T.copy(B[by * block_rows, bx * block_columns], b)
            for i, j in T.Parallel(*block):
                c[i, j] = a[i, j] + b[i, j]
            T.copy(c, C[by * block_rows, bx * block_columns])

    return add


LOCAL = {"policy": "match_shard", "match": "A", "mode": "local_shard"}

WORK_LISTS = {(6, 1): [14, (0, 0), (3, 1)], (0, 0): [1, 2, 3, 4, 5, 6, 7], (2, 7): [9, 10, 11, 12, 13]}

SCHEDULES: tuple[Case, ...] = (
    Case("z_order_gemm", lambda: gemm(160, 192, 64, 32, 32, 32), {"policy": "z_order", "cores": (3, 2)}),
    Case("block_linear_3d", lambda: blocks(5, 3, 2), {"policy": "block_linear(2)", "cores": (2, 2)}, on_chip=False),
    Case("column_major", blocks, {"policy": "strided", "order": "column_major", "cores": (3, 1)}, on_chip=False),
    Case(
        "rectangles_column_major", lambda: blocks(5, 3, 2),
        {"policy": "rectangular", "order": "column_major", "cores": (2, 2), "core_offset": (1, 3)}, on_chip=False,
    ),
    Case("core_ranges", blocks, {"policy": "strided", "core_ranges": [((0, 0), (1, 1)), ((4, 3), (4, 5))]}),
    Case("work_lists", blocks, {"work_lists": WORK_LISTS}),
    Case(
        "multicast_rows_and_columns", lambda: gemm(128, 128, 96, 32, 32, 32),
        {"policy": "rectangular", "cores": (2, 2), "multicast": "all"},
    ),
    Case(
        "multicast_uneven", lambda: gemm(64, 128, 64, 32, 32, 32),
        {"policy": "rectangular", "cores": (3, 2), "core_offset": (1, 2), "multicast": "all"}, on_chip=False,
    ),
    Case(
        "multicast_to_all", lambda: gemm(128, 32, 64, 32, 32, 32), {"cores": (2, 2), "multicast": {"B": "grid"}},
    ),
    Case(
        "loaded_by_both", lambda: gemm(128, 128, 96, 32, 32, 32),
        {"policy": "rectangular", "cores": (2, 2), "multicast": "all", "loaded_by": "both"},
    ),
    Case(
        "sent_to_all_by_the_writer", lambda: gemm(128, 32, 64, 32, 32, 32),
        {"cores": (2, 2), "multicast": {"B": "grid"}, "loaded_by": {"A": "reader", "B": "writer"}},
    ),
    Case(
        "loaded_by_the_writer", lambda: gemm(64, 96, 64, 32, 32, 32),
        {"cores": (2, 1), "loaded_by": {"A": "writer", "B": "writer"}}, on_chip=False,
    ),
    Case("one_core", blocks, {"cores": (1, 1), "core_offset": (7, 7)}, on_chip=False),
    Case("l1_interleaved", lambda: gemm(64, 64, 64, 32, 32, 32), {"layouts": {"A": "L1", "C": "L1"}}, on_chip=False),
    Case(
        "sharded_height_and_width", lambda: gemm(160, 128, 64, 32, 32, 32),
        {"layouts": {"A": T.TTShard(axis=0, placement="L1"), "C": {"shard": "width"}}, "cores": (3, 2)},
    ),
    Case(
        "sharded_blocks", lambda: gemm(160, 128, 64, 32, 32, 32),
        {
            "layouts": {"A": {"shard": "block", "order": "column_major"}, "C": T.TTShard(axis=(0, 1), placement="L1")},
            "cores": (2, 3), "core_offset": (1, 2),
        },
        on_chip=False,
    ),
    Case(
        "sharded_in_dram", lambda: gemm(96, 160, 64, 32, 32, 32),
        {"layouts": {"B": {"memory": "DRAM", "shard": "width"}, "A": {"memory": "DRAM", "shard": "height"}}},
        on_chip=False,
    ),
    Case(
        "sharded_nd", lambda: blocks(4, 3, 2),
        {"layouts": {"A": {"nd_shard": {"axes": [0, 1, 2], "grid": [2, 3, 2]}}, "B": T.TTShard(0, placement="L1")}},
        on_chip=False,
    ),
    Case(
        "match_shard", lambda: gemm(160, 128, 64, 32, 32, 32),
        {"layouts": {"C": {"shard": "block"}}, "cores": (2, 3), "policy": "match_shard", "order": "column_major"},
        on_chip=False,
    ),
    Case(
        "local_shards", lambda: added(160, 64, 32, 64),
        {"layouts": {name: {"shard": "height"} for name in "ABC"}, "cores": (2, 1), **LOCAL},
    ),
    Case(
        "local_blocks_of_some", lambda: added(128, 128, 64, 64),
        {
            "layouts": {name: {"shard": "block", "order": "column_major"} for name in "AC"}, "cores": (2, 2),
            "core_offset": (1, 2), **LOCAL,
        },
        on_chip=False,
    ),
    Case(
        "local_product", lambda: gemm(128, 32, 128, 32, 32, 32),
        {"layouts": {"A": {"shard": "height"}, "C": {"shard": "height"}}, "cores": (4, 1), **LOCAL}, on_chip=False,
    ),
    Case(
        "local_copy", lambda: blocks(1, 4), {"layouts": {"A": {"shard": "height"}}, "cores": (2, 1), **LOCAL},
        on_chip=False,
    ),
    Case(
        "depths", lambda: gemm(64, 64, 128, 32, 32, 32), {"cb_depth": {"a": 3}, "chunk_k_tiles": 4}, on_chip=False
    ),
)  # fmt: skip
