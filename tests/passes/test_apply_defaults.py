"""A0 starts the plan, and writes the kernel in its plainest form."""

from __future__ import annotations

import ttexplore.language as T
from tests.passes.conftest import PassGolden, Shown
from tests.passes.kernels import double


@T.prim_func
def cleared_in_the_first_turn(
    A: T.Tensor((32, 64), "bfloat16"), B: T.Tensor((64, 32), "bfloat16"), C: T.Tensor((32, 32), "bfloat16")
):
    with T.Kernel(1):
        a = T.alloc_shared((32, 32), "bfloat16")
        b = T.alloc_shared((32, 32), "bfloat16")
        c = T.alloc_fragment((32, 32), "float32")
        for k in T.serial(2):
            if k == 0:
                T.clear(c)
            T.copy(A[0, k * 32], a)
            T.copy(B[k * 32, 0], b)
            T.gemm(a, b, c)
        T.copy(c, C)


def test_golden(pass_golden: PassGolden) -> None:
    pass_golden(
        "A0",
        Shown("defaults", double),
        Shown("what only the first turn fills is filled before the loop", cleared_in_the_first_turn),
    )
