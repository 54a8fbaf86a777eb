"""Triangular matrices: blocks above the diagonal are neither read nor multiplied."""

import numpy as np

import ttexplore.language as T


def lower_triangle_product(M=128, N=128, block=32, block_N=64, dtype="bfloat16"):
    """Out = tril(L) @ B: row of blocks `by` ends at the diagonal, and only the block there needs a mask."""

    @T.prim_func
    def main(L: T.Tensor((M, M), dtype), B: T.Tensor((M, N), dtype), Out: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block)) as (bx, by):
            a = T.alloc_shared((block, block), dtype)
            kept = T.alloc_fragment((block, block), dtype)
            b = T.alloc_shared((block, block_N), dtype)
            c = T.alloc_fragment((block, block_N), "float32")
            T.clear(c)
            for k in T.Pipelined(by + 1, num_stages=2):
                T.copy(L[by * block, k * block], a)
                T.copy(B[k * block, bx * block_N], b)
                for i, j in T.Parallel(block, block):
                    kept[i, j] = T.if_then_else(k * block + j <= by * block + i, a[i, j], 0)
                T.gemm(kept, b, c)
            T.copy(c, Out[by * block, bx * block_N])

    return main


def lower_triangle_product_reference(L, B):
    return np.tril(L) @ B


def keep_upper_triangle(M=96, N=128, block=32, dtype="float32"):
    """Out = triu(A)"""

    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), Out: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block)) as (bx, by):
            a = T.alloc_shared((block, block), dtype)
            kept = T.alloc_fragment((block, block), dtype)
            T.copy(A[by * block, bx * block], a)
            for i, j in T.Parallel(block, block):
                kept[i, j] = T.if_then_else(by * block + i <= bx * block + j, a[i, j], 0)
            T.copy(kept, Out[by * block, bx * block])

    return main


def keep_upper_triangle_reference(A):
    return np.triu(A)
