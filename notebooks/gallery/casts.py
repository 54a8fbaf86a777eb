"""Casts between number formats, with rounding and saturation written out."""

import numpy as np

import ttexplore.language as T


def to_integers(M=64, N=128, block=32):
    """Out = A as int32, cut towards zero as in C."""

    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), Out: T.Tensor((M, N), "int32")):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block)) as (bx, by):
            a = T.alloc_shared((block, block), "float32")
            out = T.alloc_fragment((block, block), "int32")
            T.copy(A[by * block, bx * block], a)
            for i, j in T.Parallel(block, block):
                out[i, j] = T.cast(a[i, j] * 100.0, "int32")
            T.copy(out, Out[by * block, bx * block])

    return main


def to_integers_reference(A):
    return np.trunc(A * np.float32(100)).astype(np.int32)


def quantized(M=64, N=128, block_M=32, dtype="bfloat16"):
    """Whole numbers from -127 to 127 of each row, which bfloat16 holds, and the scale of each row that turns them
    back."""

    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), Out: T.Tensor((M, N), dtype), Scale: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, block_M)) as by:
            a = T.alloc_shared((block_M, N), dtype)
            largest = T.alloc_fragment((block_M,), "float32")
            out = T.alloc_fragment((block_M, N), "float32")
            T.copy(A[by * block_M, 0], a)
            T.reduce_absmax(a, largest, dim=1)
            for i in T.Parallel(block_M):
                largest[i] = largest[i] / 127.0
            for i, j in T.Parallel(block_M, N):
                out[i, j] = T.round(a[i, j] / largest[i])
            T.copy(out, Out[by * block_M, 0])
            T.copy(largest, Scale[by * block_M])

    return main


def quantized_reference(A):
    scale = np.abs(A).max(axis=1) / 127
    return np.round(A / scale[:, None]), scale
