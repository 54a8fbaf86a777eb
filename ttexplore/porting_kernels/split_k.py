"""Split-K: several blocks add their parts of one product to the same tile of the result."""

import ttexplore.language as T


def split_k(M=64, N=64, K=512, parts=4, block_K=32, dtype="bfloat16"):
    """C += A @ B"""
    part = K // parts

    @T.prim_func
    def kernel(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 32), parts) as (bx, by, bz):
            a = T.alloc_shared((32, block_K), dtype)
            b = T.alloc_shared((block_K, 32), dtype)
            c = T.alloc_fragment((32, 32), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(part, block_K), num_stages=2):
                T.copy(A[by * 32, bz * part + k * block_K], a)
                T.copy(B[bz * part + k * block_K, bx * 32], b)
                T.gemm(a, b, c)
            T.atomic_add(C[by * 32, bx * 32], c)

    return kernel
