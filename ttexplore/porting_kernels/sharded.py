"""A tensor that stays in L1: each core finds the rows that it works on in its own memory."""

import ttexplore.language as T


def sharded(M=256, N=64, block=32, dtype="bfloat16"):
    """B = 2 * A, with A in shards of one block of rows for each core"""

    @T.prim_func
    def kernel(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block)) as by:
            T.annotate_tt_layout(A, memory="L1", layout="sharded", shard="height", order="match_shard")
            a = T.alloc_shared((block, N), dtype)
            b = T.alloc_fragment((block, N), dtype)
            T.copy(A[by * block, 0], a)
            for i, j in T.Parallel(block, N):
                b[i, j] = 2.0 * a[i, j]
            T.copy(b, B[by * block, 0])

    return kernel
