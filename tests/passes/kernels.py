"""The two kernels that most passes are shown on, so that one can be followed from pass to pass."""

from __future__ import annotations

import ttexplore.language as T


@T.prim_func
def double(A: T.Tensor((64, 32), "bfloat16"), B: T.Tensor((64, 32), "bfloat16")):
    with T.Kernel(2) as block:
        a = T.alloc_shared((32, 32), "bfloat16")
        T.copy(A[block * 32, 0], a)
        for i, j in T.Parallel(32, 32):
            a[i, j] = a[i, j] * 2.0
        T.copy(a, B[block * 32, 0])


@T.prim_func
def product(A: T.Tensor((32, 64), "bfloat16"), B: T.Tensor((64, 32), "bfloat16"), C: T.Tensor((32, 32), "bfloat16")):
    with T.Kernel(1):
        a = T.alloc_shared((32, 32), "bfloat16")
        b = T.alloc_shared((32, 32), "bfloat16")
        c = T.alloc_fragment((32, 32), "float32")
        T.clear(c)
        for k in T.Pipelined(2, num_stages=3):
            T.copy(A[0, k * 32], a)
            T.copy(B[k * 32, 0], b)
            T.gemm(a, b, c)
        T.copy(c, C)
