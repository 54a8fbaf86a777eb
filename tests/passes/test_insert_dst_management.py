"""D5 gives each value slots of DST, in sections."""

from __future__ import annotations

import ttexplore.language as T
from tests.passes.conftest import PassGolden, Shown
from tests.passes.kernels import double, product


@T.prim_func
def larger_than_dst(
    A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((64, 96), "bfloat16"), C: T.Tensor((64, 96), "bfloat16")
):
    with T.Kernel(1):
        a = T.alloc_shared((64, 32), "bfloat16")
        b = T.alloc_shared((32, 96), "bfloat16")
        c = T.alloc_fragment((64, 96), "float32")
        T.clear(c)
        for k in T.Pipelined(2):
            T.copy(A[0, k * 32], a)
            T.copy(B[k * 32, 0], b)
            T.gemm(a, b, c)
        T.copy(c, C)


def test_golden(pass_golden: PassGolden) -> None:
    pass_golden(
        "D5",
        Shown("one section", double),
        Shown("a sum that stays in DST", product),
        Shown("a sum of 6 tiles where DST holds 4: in parts, kept in between", larger_than_dst),
    )
