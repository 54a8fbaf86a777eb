"""Numbers of 8 bits: float8, each row with a scale, and tiles in which groups of 16 numbers share an exponent."""

import numpy as np

import ttexplore.language as T


def float8_gemm(M=128, N=128, K=128, block_M=64, block_N=64, block_K=64, fp8="float8_e4m3fn", dtype="bfloat16"):
    """C = scale of the row * (A @ B) * scale of the column, with both factors in float8 in DRAM."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), fp8),
        B: T.Tensor((K, N), fp8),
        RowScale: T.Tensor((M,), "float32"),
        ColumnScale: T.Tensor((N,), "float32"),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M)) as (bx, by):
            a = T.alloc_shared((block_M, block_K), fp8)
            b = T.alloc_shared((block_K, block_N), fp8)
            row = T.alloc_shared((block_M,), "float32")
            column = T.alloc_shared((block_N,), "float32")
            c = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[by * block_M, k * block_K], a)
                T.copy(B[k * block_K, bx * block_N], b)
                T.gemm(a, b, c)
            T.copy(RowScale[by * block_M], row)
            T.copy(ColumnScale[bx * block_N], column)
            for i, j in T.Parallel(block_M, block_N):
                c[i, j] = c[i, j] * row[i] * column[j]
            T.copy(c, C[by * block_M, bx * block_N])

    return main


def float8_gemm_reference(A, B, RowScale, ColumnScale):
    return RowScale[:, None] * (A @ B) * ColumnScale


def float8_rows(M=64, N=128, block_M=32, fp8="float8_e4m3fn", dtype="bfloat16"):
    """Rows in float8, each divided by the scale that makes its largest number 448, the largest one of float8, and the
    scales. The copy to `out` rounds."""

    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), Out: T.Tensor((M, N), fp8), Scale: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, block_M)) as by:
            a = T.alloc_shared((block_M, N), dtype)
            scale = T.alloc_fragment((block_M,), "float32")
            scaled = T.alloc_fragment((block_M, N), "float32")
            out = T.alloc_fragment((block_M, N), fp8)
            T.copy(A[by * block_M, 0], a)
            T.reduce_absmax(a, scale, dim=1)
            for i in T.Parallel(block_M):
                scale[i] = T.max(scale[i], 1e-4) / 448.0
            for i, j in T.Parallel(block_M, N):
                scaled[i, j] = T.clamp(a[i, j] / scale[i], -448.0, 448.0)
            T.copy(scaled, out)
            T.copy(out, Out[by * block_M, 0])
            T.copy(scale, Scale[by * block_M])

    return main


def float8_rows_reference(A):
    scale = np.maximum(np.abs(A).max(axis=1), 1e-4) / 448
    return A / scale[:, None], scale


def block_float_gemm(M=128, N=128, K=128, block_M=64, block_N=64, block_K=32, dtype="bfloat16"):
    """C = A @ B with the tiles of B in Bfp8_b, the chip's own format of 8 bits: 16 numbers share an exponent."""

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        T.annotate_tt_layout(B, dtype="bfp8_b")
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M)) as (bx, by):
            a = T.alloc_shared((block_M, block_K), dtype)
            b = T.alloc_shared((block_K, block_N), dtype)
            c = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[by * block_M, k * block_K], a)
                T.copy(B[k * block_K, bx * block_N], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * block_M, bx * block_N])

    return main


def block_float_gemm_reference(A, B):
    return A @ B
