"""Sums and extremes of rows and columns."""

import numpy as np

import ttexplore.language as T


def row_sums(M=128, N=256, block_M=32, block_N=64, dtype="bfloat16"):
    """Out[i] = sum of A[i, :], block by block, in float32."""

    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), Out: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, block_M)) as by:
            a = T.alloc_shared((block_M, block_N), dtype)
            total = T.alloc_fragment((block_M,), "float32")
            T.clear(total)
            for k in T.Pipelined(T.ceildiv(N, block_N), num_stages=2):
                T.copy(A[by * block_M, k * block_N], a)
                T.reduce_sum(a, total, dim=1, clear=False)
            T.copy(total, Out[by * block_M])

    return main


def row_sums_reference(A):
    return A.sum(axis=1)


def column_sums(M=160, N=128, block_M=32, block_N=64, dtype="float32"):
    """Out[j] = sum of A[:, j]"""

    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), Out: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block_N)) as bx:
            a = T.alloc_shared((block_M, block_N), dtype)
            total = T.alloc_fragment((block_N,), "float32")
            T.clear(total)
            for k in T.Pipelined(T.ceildiv(M, block_M), num_stages=2):
                T.copy(A[k * block_M, bx * block_N], a)
                T.reduce_sum(a, total, dim=0, clear=False)
            T.copy(total, Out[bx * block_N])

    return main


def column_sums_reference(A):
    return A.sum(axis=0)


def row_ranges(M=64, N=100, block_M=32, dtype="float32"):
    """The smallest and the largest number of each row; rows end in the middle of a tile."""

    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), Low: T.Tensor((M,), dtype), High: T.Tensor((M,), dtype)):
        with T.Kernel(T.ceildiv(M, block_M)) as by:
            a = T.alloc_shared((block_M, N), dtype)
            low = T.alloc_fragment((block_M,), dtype)
            high = T.alloc_fragment((block_M,), dtype)
            T.copy(A[by * block_M, 0], a)
            T.reduce_min(a, low, dim=1)
            T.reduce_max(a, high, dim=1)
            T.copy(low, Low[by * block_M])
            T.copy(high, High[by * block_M])

    return main


def row_ranges_reference(A):
    return np.min(A, axis=1), np.max(A, axis=1)


def column_sums_added(M=160, N=128, block_M=32, block_N=64, dtype="bfloat16"):
    """The sums of all columns, to which each block of rows adds its own."""

    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), Sum: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M)) as (bx, by):
            a = T.alloc_shared((block_M, block_N), dtype)
            sums = T.alloc_fragment((block_N,), "float32")
            T.copy(A[by * block_M, bx * block_N], a)
            T.reduce_sum(a, sums, dim=0)
            for j in T.Parallel(block_N):
                T.atomic_add(Sum[bx * block_N + j], sums[j])

    return main


def column_sums_added_reference(A, Sum):
    return Sum + A.sum(axis=0)


def running_sums(M=64, N=96, block_M=32, dtype="float32"):
    """Out[i, j] = the sum of A[i, 0], ..., A[i, j]"""

    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), Out: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block_M)) as by:
            a = T.alloc_shared((block_M, N), dtype)
            T.copy(A[by * block_M, 0], a)
            T.cumsum(a, dim=1)
            T.copy(a, Out[by * block_M, 0])

    return main


def running_sums_reference(A):
    return np.cumsum(A, axis=1)
