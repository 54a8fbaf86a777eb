"""A reduction along rows, block by block, with the running total in float32."""

import ttexplore.language as T


def row_sums(M=128, N=256, block_M=32, block_N=64, dtype="bfloat16"):
    """Sum[i] = sum of A[i, :], Largest[i] = maximum of A[i, :]"""

    @T.prim_func
    def kernel(A: T.Tensor((M, N), dtype), Sum: T.Tensor((M,), "float32"), Largest: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, block_M)) as by:
            a = T.alloc_shared((block_M, block_N), dtype)
            total = T.alloc_fragment((block_M,), "float32")
            largest = T.alloc_fragment((block_M,), "float32")
            T.clear(total)
            T.fill(largest, -T.infinity("float32"))
            for k in T.Pipelined(T.ceildiv(N, block_N), num_stages=2):
                T.copy(A[by * block_M, k * block_N], a)
                T.reduce_sum(a, total, dim=1, clear=False)
                T.reduce_max(a, largest, dim=1, clear=False)
            T.copy(total, Sum[by * block_M])
            T.copy(largest, Largest[by * block_M])

    return kernel
