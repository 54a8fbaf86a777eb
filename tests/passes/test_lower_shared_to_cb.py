"""C1 gives each value on the chip its storage: a circular buffer, or DST."""

from __future__ import annotations

import ttexplore.language as T
from tests.passes.conftest import PassGolden, Shown
from tests.passes.kernels import double


@T.prim_func
def written_anew(
    A: T.Tensor((32, 32), "bfloat16"), B: T.Tensor((32, 32), "bfloat16"), C: T.Tensor((32, 32), "bfloat16")
):
    with T.Kernel(1):
        a = T.alloc_shared((32, 32), "bfloat16")
        T.copy(A, a)
        T.copy(a, B)
        T.copy(A, a)
        for i, j in T.Parallel(32, 32):
            a[i, j] = T.exp(a[i, j])
        T.copy(a, C)


def test_golden(pass_golden: PassGolden) -> None:
    pass_golden(
        "C1",
        Shown("a value in DST, from one circular buffer into another", double),
        Shown("a buffer that is written anew for other readers", written_anew),
    )
