"""A matrix product with an epilogue: bias and activation are applied before the result leaves the core."""

import ttexplore.language as T


def gemm_epilogue(M=128, N=128, K=128, block=64, block_K=32, dtype="bfloat16"):
    """C = max(A @ B + bias, 0)"""

    @T.prim_func
    def kernel(
        A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), bias: T.Tensor((N,), dtype), C: T.Tensor((M, N), dtype)
    ):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
            a = T.alloc_shared((block, block_K), dtype)
            b = T.alloc_shared((block_K, block), dtype)
            row = T.alloc_shared((block,), dtype)
            c = T.alloc_fragment((block, block), "float32")
            T.copy(bias[bx * block], row)
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[by * block, k * block_K], a)
                T.copy(B[k * block_K, bx * block], b)
                T.gemm(a, b, c)
            for i, j in T.Parallel(block, block):
                c[i, j] = T.max(c[i, j] + row[j], 0.0)
            T.copy(c, C[by * block, bx * block])

    return kernel
