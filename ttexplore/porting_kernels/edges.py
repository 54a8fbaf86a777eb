"""A tensor whose last blocks lie partly outside: no masks, and nothing beyond the tensor reaches a sum."""

import ttexplore.language as T


def edges(M=70, N=100, block=64, dtype="bfloat16"):
    """Out[i] = sum of A[i, :]. Neither M nor N is a multiple of the block or of a tile."""

    @T.prim_func
    def kernel(A: T.Tensor((M, N), dtype), Out: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, block)) as by:
            a = T.alloc_shared((block, block), dtype)
            total = T.alloc_fragment((block,), "float32")
            T.clear(total)
            for k in T.Pipelined(T.ceildiv(N, block), num_stages=2):
                T.copy(A[by * block, k * block], a)
                T.reduce_sum(a, total, dim=1, clear=False)
            T.copy(total, Out[by * block])

    return kernel
