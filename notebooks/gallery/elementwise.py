"""Element-wise kernels: a sum, and expressions of several operands."""

import numpy as np

import ttexplore.language as T


def add(M=128, N=128, block_M=64, block_N=64, dtype="bfloat16"):
    """Out = A + B."""

    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype), Out: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M)) as (bx, by):
            a = T.alloc_shared((block_M, block_N), dtype)
            b = T.alloc_shared((block_M, block_N), dtype)
            out = T.alloc_fragment((block_M, block_N), dtype)
            T.copy(A[by * block_M, bx * block_N], a)
            T.copy(B[by * block_M, bx * block_N], b)
            for i, j in T.Parallel(block_M, block_N):
                out[i, j] = a[i, j] + b[i, j]
            T.copy(out, Out[by * block_M, bx * block_N])

    return main


def add_reference(A, B):
    return A + B


def weighted_sum(M=128, N=192, block_M=64, block_N=64, dtype="bfloat16"):
    """Out = 0.5 * A + B * C - row, where `row` is added to every row."""

    @T.prim_func
    def main(
        A: T.Tensor((M, N), dtype),
        B: T.Tensor((M, N), dtype),
        C: T.Tensor((M, N), dtype),
        row: T.Tensor((N,), dtype),
        Out: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M)) as (bx, by):
            a = T.alloc_shared((block_M, block_N), dtype)
            b = T.alloc_shared((block_M, block_N), dtype)
            c = T.alloc_shared((block_M, block_N), dtype)
            r = T.alloc_shared((block_N,), dtype)
            out = T.alloc_fragment((block_M, block_N), dtype)
            T.copy(A[by * block_M, bx * block_N], a)
            T.copy(B[by * block_M, bx * block_N], b)
            T.copy(C[by * block_M, bx * block_N], c)
            T.copy(row[bx * block_N], r)
            for i, j in T.Parallel(block_M, block_N):
                out[i, j] = 0.5 * a[i, j] + b[i, j] * c[i, j] - r[j]
            T.copy(out, Out[by * block_M, bx * block_N])

    return main


def weighted_sum_reference(A, B, C, row):
    return 0.5 * A + B * C - row


def swiglu(M=128, N=128, block_M=32, block_N=128, dtype="bfloat16"):
    """Out = silu(Gate) * Up, the activation of gated feed-forward layers."""

    @T.prim_func
    def main(Gate: T.Tensor((M, N), dtype), Up: T.Tensor((M, N), dtype), Out: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M)) as (bx, by):
            gate = T.alloc_shared((block_M, block_N), dtype)
            up = T.alloc_shared((block_M, block_N), dtype)
            out = T.alloc_fragment((block_M, block_N), "float32")
            T.copy(Gate[by * block_M, bx * block_N], gate)
            T.copy(Up[by * block_M, bx * block_N], up)
            for i, j in T.Parallel(block_M, block_N):
                out[i, j] = gate[i, j] / (1.0 + T.exp(-gate[i, j])) * up[i, j]
            T.copy(out, Out[by * block_M, bx * block_N])

    return main


def swiglu_reference(Gate, Up):
    return Gate / (1 + np.exp(-Gate)) * Up
