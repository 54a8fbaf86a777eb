"""A triangular matrix: blocks above the diagonal are neither read nor multiplied, and only the diagonal is masked."""

import ttexplore.language as T


def lower_triangle(M=128, N=64, block=32, dtype="bfloat16"):
    """Out = tril(L) @ B"""

    @T.prim_func
    def kernel(L: T.Tensor((M, M), dtype), B: T.Tensor((M, N), dtype), Out: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block)) as (bx, by):
            a = T.alloc_shared((block, block), dtype)
            kept = T.alloc_fragment((block, block), dtype)
            b = T.alloc_shared((block, block), dtype)
            c = T.alloc_fragment((block, block), "float32")
            T.clear(c)
            for k in T.Pipelined(by + 1, num_stages=2):
                T.copy(L[by * block, k * block], a)
                T.copy(B[k * block, bx * block], b)
                for i, j in T.Parallel(block, block):
                    kept[i, j] = T.if_then_else(k * block + j <= by * block + i, a[i, j], 0)
                T.gemm(kept, b, c)
            T.copy(c, Out[by * block, bx * block])

    return kernel
