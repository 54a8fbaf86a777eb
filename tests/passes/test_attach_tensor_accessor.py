"""A3 decides the tile grid and the page strides of each tensor."""

from __future__ import annotations

import ttexplore.language as T
from tests.passes.conftest import PassGolden, Shown


@T.prim_func
def batched(A: T.Tensor((2, 64, 32), "bfloat16"), B: T.Tensor((2, 64, 32), "bfloat16")):
    with T.Kernel(2) as batch:
        a = T.alloc_shared((64, 32), "bfloat16")
        T.copy(A[batch, 0, 0], a)
        T.copy(a, B[batch, 0, 0])


def test_golden(pass_golden: PassGolden) -> None:
    pass_golden("A3", Shown("pages of tiles, and pages of rows", batched, {"layouts": {"B": {"page": "row"}}}))
