"""Element-wise arithmetic on blocks: every element of a block at once. Without threads, the barrier
has nothing to do."""

import ttexplore.language as T


def scaled_sum(M=128, N=128, block=64, dtype="bfloat16"):
    """C = 0.5 * A + exp(B)"""

    @T.prim_func
    def kernel(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
            a = T.alloc_shared((block, block), dtype)
            b = T.alloc_shared((block, block), dtype)
            c = T.alloc_fragment((block, block), "float32")
            T.copy(A[by * block, bx * block], a)
            T.copy(B[by * block, bx * block], b)
            T.sync_threads()
            for i, j in T.Parallel(block, block):
                c[i, j] = 0.5 * a[i, j] + T.exp(b[i, j])
            T.copy(c, C[by * block, bx * block])

    return kernel
