"""Matrix products with what follows them: a bias, an activation, a residual, scales. All are done before the product
leaves the core."""

import math

import numpy as np

import ttexplore.language as T


def product(M, N, K, block_M, block_N, block_K, dtype, epilogue):
    """Out = epilogue(A @ B): a kernel without bias. `epilogue` is a T.macro that changes a block in place."""

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), Out: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M)) as (bx, by):
            a = T.alloc_shared((block_M, block_K), dtype)
            b = T.alloc_shared((block_K, block_N), dtype)
            c = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[by * block_M, k * block_K], a)
                T.copy(B[k * block_K, bx * block_N], b)
                T.gemm(a, b, c)
            epilogue(c)
            T.copy(c, Out[by * block_M, bx * block_N])

    return main


def gemm_gelu(M=128, N=128, K=128, block_M=64, block_N=64, block_K=32, dtype="bfloat16"):
    """Out = gelu(A @ B), with the exact gelu."""

    @T.macro
    def gelu(c):
        for i, j in T.Parallel(block_M, block_N):
            c[i, j] = 0.5 * c[i, j] * (1.0 + T.erf(c[i, j] * 0.70710678))

    return product(M, N, K, block_M, block_N, block_K, dtype, gelu)


def gemm_gelu_reference(A, B):
    return gelu_reference(A @ B)


def gelu_reference(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def gemm_silu(M=128, N=128, K=128, block_M=64, block_N=64, block_K=32, dtype="bfloat16"):
    """Out = silu(A @ B)"""

    @T.macro
    def silu(c):
        for i, j in T.Parallel(block_M, block_N):
            c[i, j] = c[i, j] * T.sigmoid(c[i, j])

    return product(M, N, K, block_M, block_N, block_K, dtype, silu)


def gemm_silu_reference(A, B):
    c = A @ B
    return c / (1 + np.exp(-c))


def gemm_bias_residual(M=128, N=128, K=128, block_M=64, block_N=64, block_K=32, dtype="bfloat16"):
    """Out = A @ B + bias + Residual"""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, N), dtype),
        bias: T.Tensor((N,), dtype),
        Residual: T.Tensor((M, N), dtype),
        Out: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M)) as (bx, by):
            a = T.alloc_shared((block_M, block_K), dtype)
            b = T.alloc_shared((block_K, block_N), dtype)
            added = T.alloc_shared((block_N,), dtype)
            residual = T.alloc_shared((block_M, block_N), dtype)
            c = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[by * block_M, k * block_K], a)
                T.copy(B[k * block_K, bx * block_N], b)
                T.gemm(a, b, c)
            T.copy(bias[bx * block_N], added)
            T.copy(Residual[by * block_M, bx * block_N], residual)
            for i, j in T.Parallel(block_M, block_N):
                c[i, j] = c[i, j] + added[j] + residual[i, j]
            T.copy(c, Out[by * block_M, bx * block_N])

    return main


def gemm_bias_residual_reference(A, B, bias, Residual):
    return A @ B + bias + Residual


def gemm_scaled(M=128, N=128, K=128, block_M=64, block_N=64, block_K=32, dtype="bfloat16"):
    """Out = rows[:, None] * (A @ B) * columns[None, :]: one scale for each row of A and each column of B."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, N), dtype),
        rows: T.Tensor((M,), "float32"),
        columns: T.Tensor((N,), "float32"),
        Out: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M)) as (bx, by):
            a = T.alloc_shared((block_M, block_K), dtype)
            b = T.alloc_shared((block_K, block_N), dtype)
            of_row = T.alloc_shared((block_M,), "float32")
            of_column = T.alloc_shared((block_N,), "float32")
            c = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(c)
            T.copy(rows[by * block_M], of_row)
            T.copy(columns[bx * block_N], of_column)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[by * block_M, k * block_K], a)
                T.copy(B[k * block_K, bx * block_N], b)
                T.gemm(a, b, c)
            for i, j in T.Parallel(block_M, block_N):
                c[i, j] = c[i, j] * of_row[i] * of_column[j]
            T.copy(c, Out[by * block_M, bx * block_N])

    return main


def gemm_scaled_reference(A, B, rows, columns):
    return rows[:, None] * (A @ B) * columns
