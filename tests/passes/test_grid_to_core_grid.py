"""B2 replaces the launch grid by a loop over the core's own work items."""

from __future__ import annotations

import ttexplore.language as T
from tests.passes.conftest import PassGolden, Shown


@T.prim_func
def grid_of_blocks(A: T.Tensor((64, 96), "bfloat16"), B: T.Tensor((64, 96), "bfloat16")):
    with T.Kernel(3, 2) as (bx, by):
        a = T.alloc_shared((32, 32), "bfloat16")
        T.copy(A[by * 32, bx * 32], a)
        T.copy(a, B[by * 32, bx * 32])


def test_golden(pass_golden: PassGolden) -> None:
    pass_golden(
        "B2",
        Shown("items that count up", grid_of_blocks),
        Shown("rectangles", grid_of_blocks, {"cores": (2, 2), "policy": "rectangular"}),
        Shown("items in another order", grid_of_blocks, {"cores": (2, 1), "order": "column_major"}),
    )
