"""The kernel that verifies a device environment: it adds two tiles."""

import ttexplore.language as T


@T.prim_func
def add_tiles(A: T.Tensor((32, 32), "bfloat16"), B: T.Tensor((32, 32), "bfloat16"), C: T.Tensor((32, 32), "bfloat16")):
    with T.Kernel(1) as _:
        a = T.alloc_shared((32, 32), "bfloat16")
        b = T.alloc_shared((32, 32), "bfloat16")
        c = T.alloc_fragment((32, 32), "bfloat16")
        T.copy(A, a)
        T.copy(B, b)
        for i, j in T.Parallel(32, 32):
            c[i, j] = a[i, j] + b[i, j]
        T.copy(c, C)
