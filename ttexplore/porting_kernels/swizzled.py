"""A launch whose blocks run in another order than row by row. The order for a GPU's L2 cache is only noted."""

import ttexplore.language as T


def swizzled(M=256, N=256, K=64, block=32, dtype="bfloat16"):
    """C = A @ B, with the blocks of the result in squares of four by four"""

    @T.prim_func
    def kernel(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block)) as (bx, by):
            T.use_swizzle(8)
            T.annotate_tt_schedule(order="block_linear(4)")
            a = T.alloc_shared((block, block), dtype)
            b = T.alloc_shared((block, block), dtype)
            c = T.alloc_fragment((block, block), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, block), num_stages=2):
                T.copy(A[by * block, k * block], a)
                T.copy(B[k * block, bx * block], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * block, bx * block])

    return kernel
