"""A2 decides the circular buffers and the compute configuration."""

from __future__ import annotations

import ttexplore.language as T
from tests.passes.conftest import PassGolden, Shown
from tests.passes.kernels import product


@T.prim_func
def beyond_the_block(
    A: T.Tensor((32, 40), "bfloat16"), B: T.Tensor((40, 32), "bfloat16"), C: T.Tensor((32, 32), "bfloat16")
):
    with T.Kernel(1):
        a = T.alloc_shared((32, 40), "bfloat16")
        b = T.alloc_shared((40, 32), "bfloat16")
        c = T.alloc_fragment((32, 32), "float32")
        T.copy(A, a)
        for i, j in T.Parallel(32, 40):
            a[i, j] = a[i, j] + 1.0
        T.copy(B, b)
        T.clear(c)
        T.gemm(a, b, c)
        T.copy(c, C)


def test_golden(pass_golden: PassGolden) -> None:
    pass_golden(
        "A2",
        Shown("the stages of a pipelined loop", product),
        Shown("a product that must not add what lies beyond its block gets a mask", beyond_the_block),
    )
