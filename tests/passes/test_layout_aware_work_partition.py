"""B1 decides which core does which work items."""

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
        "B1",
        Shown("a run of items for each core", grid_of_blocks, {"cores": (4, 1)}),
        Shown("a rectangle of blocks for each core", grid_of_blocks, {"cores": (2, 2), "policy": "rectangular"}),
    )
