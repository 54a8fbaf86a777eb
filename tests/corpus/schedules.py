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
)  # fmt: skip
