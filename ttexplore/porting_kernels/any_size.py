"""A kernel for any number of rows, which is known only when it is launched."""

import ttexplore.language as T


def any_size(N=64, block=32, dtype="bfloat16"):
    """B = max(A, 0)"""
    rows = T.dynamic("rows")

    @T.prim_func
    def kernel(A: T.Tensor((rows, N), dtype), B: T.Tensor((rows, N), dtype)):
        with T.Kernel(T.ceildiv(rows, block)) as by:
            a = T.alloc_shared((block, N), dtype)
            b = T.alloc_fragment((block, N), dtype)
            T.copy(A[by * block, 0], a)
            for i, j in T.Parallel(block, N):
                b[i, j] = T.max(a[i, j], 0.0)
            T.copy(b, B[by * block, 0])

    return kernel
