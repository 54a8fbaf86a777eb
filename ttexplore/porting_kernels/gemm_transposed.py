"""A matrix product with a transposed operand: nothing is transposed in memory."""

import ttexplore.language as T


def gemm_transposed(M=128, N=128, K=128, block=64, block_K=32, dtype="bfloat16"):
    """C = A @ B.T"""

    @T.prim_func
    def kernel(A: T.Tensor((M, K), dtype), B: T.Tensor((N, K), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block)) as (bx, by):
            a = T.alloc_shared((block, block_K), dtype)
            b = T.alloc_shared((block, block_K), dtype)
            c = T.alloc_fragment((block, block), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[by * block, k * block_K], a)
                T.copy(B[bx * block, k * block_K], b)
                T.gemm(a, b, c, transpose_B=True)
            T.copy(c, C[by * block, bx * block])

    return kernel
