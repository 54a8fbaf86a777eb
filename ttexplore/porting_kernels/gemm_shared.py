"""A matrix product whose blocks one core reads and sends to the others of its row or column."""

import ttexplore.language as T


def gemm_shared(M=256, N=256, K=256, block=64, dtype="bfloat16"):
    """C = A @ B, with the work in rectangles, so that cores of a row need the same A and cores of a column the same
    B."""

    @T.prim_func
    def kernel(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block)) as (bx, by):
            T.annotate_tt_schedule(policy="rectangular", multicast="all")
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
