"""Element-wise kernels: a sum, and a scaled exponential with a row added to each row of the block."""

import ttexplore.language as T


@T.jit
def add(A, B, block_M=64, block_N=64, dtype=T.bfloat16):
    M, N = T.const("M, N")

    A: T.Tensor((M, N), dtype)
    B: T.Tensor((M, N), dtype)
    C = T.empty((M, N), dtype)

    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
        A_shared = T.alloc_shared((block_M, block_N), dtype)
        B_shared = T.alloc_shared((block_M, block_N), dtype)
        C_local = T.alloc_fragment((block_M, block_N), dtype)

        T.copy(A[by * block_M, bx * block_N], A_shared)
        T.copy(B[by * block_M, bx * block_N], B_shared)
        for i, j in T.Parallel(block_M, block_N):
            C_local[i, j] = A_shared[i, j] + B_shared[i, j]
        T.copy(C_local, C[by * block_M, bx * block_N])

    return C


def bias_exp(M=256, N=256, block_M=64, block_N=64, scale=0.5, dtype="bfloat16"):
    """C[i, j] = exp(scale * A[i, j] + bias[j])"""

    @T.prim_func
    def main(
        A: T.Tensor((M, N), dtype),
        bias: T.Tensor((N,), dtype),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_N), dtype)
            bias_shared = T.alloc_shared((block_N,), dtype)
            C_local = T.alloc_fragment((block_M, block_N), dtype)

            T.copy(A[by * block_M, bx * block_N], A_shared)
            T.copy(bias[bx * block_N], bias_shared)
            for i, j in T.Parallel(block_M, block_N):
                C_local[i, j] = T.exp(A_shared[i, j] * scale + bias_shared[j])
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main
