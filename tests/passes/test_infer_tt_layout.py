"""A1 decides where each tensor lies and in which format."""

from __future__ import annotations

import ttexplore.language as T
from tests.passes.conftest import PassGolden, Shown
from tests.passes.kernels import double

LAYOUTS = {"A": {"memory": "L1", "shard": "height"}, "B": {"page": "row"}}


@T.prim_func
def ragged(A: T.Tensor((50, 40), "float32"), B: T.Tensor((50, 40), "float32")):
    with T.Kernel(2) as block:
        a = T.alloc_shared((32, 64), "float32")
        T.copy(A[block * 32, 0], a)
        T.copy(a, B[block * 32, 0])


def test_golden(pass_golden: PassGolden) -> None:
    pass_golden(
        "A1",
        Shown("tensors in DRAM, padded to whole tiles", ragged),
        Shown("one tensor in shards in L1, the other row-major", double, {"layouts": LAYOUTS}),
    )
