"""Rows that an index tensor chooses, as embeddings and paged caches need them."""

import ttexplore.language as T


def gathered_rows(count=64, rows=96, N=64, dtype="float32"):
    """Out[i] = A[Index[i]]"""

    @T.prim_func
    def kernel(A: T.Tensor((rows, N), dtype), Index: T.Tensor((count,), "int32"), Out: T.Tensor((count, N), dtype)):
        with T.Kernel(T.ceildiv(count, 32)) as by:
            a = T.alloc_shared((32, N), dtype)
            index = T.alloc_shared((32,), "int32")
            T.copy(Index[by * 32], index)
            for i, j in T.Parallel(32, N):
                a[i, j] = A[index[i], j]
            T.copy(a, Out[by * 32, 0])

    return kernel
