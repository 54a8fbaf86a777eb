"""A persistent kernel: as many blocks as workers, each with a loop over its tiles of the result."""

import ttexplore.language as T


def persistent(M=128, N=192, K=128, workers=4, block=32, dtype="bfloat16"):
    """C = A @ B"""

    @T.prim_func
    def kernel(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(workers) as worker:
            a = T.alloc_shared((block, block), dtype)
            b = T.alloc_shared((block, block), dtype)
            c = T.alloc_fragment((block, block), "float32")
            for by, bx in T.Persistent([T.ceildiv(M, block), T.ceildiv(N, block)], workers, worker):
                T.clear(c)
                for k in T.Pipelined(T.ceildiv(K, block), num_stages=2):
                    T.copy(A[by * block, k * block], a)
                    T.copy(B[k * block, bx * block], b)
                    T.gemm(a, b, c)
                T.copy(c, C[by * block, bx * block])

    return kernel
