"""Copies, element-wise blocks, rows, matrix products: the constructs that everything else builds on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ttexplore.language as T
from tests.corpus.case import Case


def copy_block(dtype: str = "bfloat16") -> Any:
    @T.prim_func
    def copy(A: T.Tensor((64, 96), dtype), B: T.Tensor((64, 96), dtype)):
        with T.Kernel(3, 2) as (bx, by):
            S = T.alloc_shared((32, 32), dtype)
            T.copy(A[by * 32, bx * 32], S)
            T.copy(S, B[by * 32, bx * 32])

    return copy


def elementwise(operation: Callable[[Any, Any], Any], dtype: str = "bfloat16", out: str = "") -> Any:
    @T.prim_func
    def binary(A: T.Tensor((128, 64), dtype), B: T.Tensor((128, 64), dtype), C: T.Tensor((128, 64), out or dtype)):
        with T.Kernel(1, 2) as (bx, by):
            a = T.alloc_shared((64, 64), dtype)
            b = T.alloc_shared((64, 64), dtype)
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A[by * 64, bx * 64], a)
            T.copy(B[by * 64, bx * 64], b)
            for i, j in T.Parallel(64, 64):
                c[i, j] = operation(a[i, j], b[i, j])
            T.copy(c, C[by * 64, bx * 64])

    return binary


def in_place(dtype: str = "bfloat16") -> Any:
    @T.prim_func
    def scale(A: T.Tensor((64, 64), dtype), B: T.Tensor((64, 64), dtype)):
        with T.Kernel(2, 1) as (bx, by):
            S = T.alloc_shared((64, 32), dtype)
            T.copy(A[by * 64, bx * 32], S)
            for i, j in T.Parallel(64, 32):
                S[i, j] = S[i, j] * 2.0 + 1.0
            T.copy(S, B[by * 64, bx * 32])

    return scale


def row_bias(dtype: str = "bfloat16", through_fragment: bool = False) -> Any:
    @T.prim_func
    def bias(A: T.Tensor((64, 128), dtype), V: T.Tensor((128,), dtype), C: T.Tensor((64, 128), dtype)):
        with T.Kernel(2, 1) as (bx, by):
            a = T.alloc_shared((64, 64), dtype)
            v = T.alloc_shared((64,), dtype)
            c = T.alloc_fragment((64, 64), "float32" if through_fragment else dtype)
            T.copy(A[by * 64, bx * 64], a)
            T.copy(V[bx * 64], v)
            for i, j in T.Parallel(64, 64):
                if through_fragment:
                    c[i, j] = T.exp(a[i, j] * 0.5) - v[j]
                else:
                    c[i, j] = a[i, j] + v[j]
            T.copy(c, C[by * 64, bx * 64])

    return bias


def gemm(
    m: int = 128, n: int = 128, k: int = 128, bm: int = 64, bn: int = 64, bk: int = 32, stages: int = 2, *,
    dtype: str = "bfloat16", out: str = "", ta: bool = False, tb: bool = False, relu: bool = False, bias: bool = False,
    clear_accum: bool = False,
) -> Any:  # fmt: skip
    out = out or dtype

    @T.prim_func
    def matmul(
        A: T.Tensor((k, m) if ta else (m, k), dtype),
        B: T.Tensor((n, k) if tb else (k, n), dtype),
        V: T.Tensor((n,), dtype),
        C: T.Tensor((m, n), out),
    ):
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm)) as (bx, by):
            a = T.alloc_shared((bk, bm) if ta else (bm, bk), dtype)
            b = T.alloc_shared((bn, bk) if tb else (bk, bn), dtype)
            v = T.alloc_shared((bn,), dtype)
            c = T.alloc_fragment((bm, bn), "float32")
            T.copy(V[bx * bn], v)
            T.clear(c)
            for kb in T.Pipelined(T.ceildiv(k, bk), num_stages=stages):
                if ta:
                    T.copy(A[kb * bk, by * bm], a)
                else:
                    T.copy(A[by * bm, kb * bk], a)
                if tb:
                    T.copy(B[bx * bn, kb * bk], b)
                else:
                    T.copy(B[kb * bk, bx * bn], b)
                T.gemm(a, b, c, transpose_A=ta, transpose_B=tb)
            for i, j in T.Parallel(bm, bn):
                c[i, j] = c[i, j] + v[j]
            if relu:
                for i, j in T.Parallel(bm, bn):
                    c[i, j] = T.max(c[i, j], 0)
            T.copy(c, C[by * bm, bx * bn])

    @T.prim_func
    def plain(
        A: T.Tensor((k, m) if ta else (m, k), dtype),
        B: T.Tensor((n, k) if tb else (k, n), dtype),
        C: T.Tensor((m, n), out),
    ):
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm)) as (bx, by):
            a = T.alloc_shared((bk, bm) if ta else (bm, bk), dtype)
            b = T.alloc_shared((bn, bk) if tb else (bk, bn), dtype)
            c = T.alloc_fragment((bm, bn), "float32")
            if not clear_accum:
                T.clear(c)
            for kb in T.Pipelined(T.ceildiv(k, bk), num_stages=stages):
                if ta:
                    T.copy(A[kb * bk, by * bm], a)
                else:
                    T.copy(A[by * bm, kb * bk], a)
                if tb:
                    T.copy(B[bx * bn, kb * bk], b)
                else:
                    T.copy(B[kb * bk, bx * bn], b)
                T.gemm(a, b, c, transpose_A=ta, transpose_B=tb, clear_accum=clear_accum)
            if relu:
                for i, j in T.Parallel(bm, bn):
                    c[i, j] = T.max(c[i, j], 0)
            T.copy(c, C[by * bm, bx * bn])

    return matmul if bias else plain


def two_gemms() -> Any:
    """An intermediate that stays on chip: C = (A @ B) @ D."""

    @T.prim_func
    def chained(
        A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((64, 64), "bfloat16"), D: T.Tensor((64, 64), "bfloat16"),
        C: T.Tensor((64, 64), "bfloat16"),
    ):  # fmt: skip
        with T.Kernel(1, 2) as (bx, by):
            a = T.alloc_shared((32, 64), "bfloat16")
            b = T.alloc_shared((64, 64), "bfloat16")
            d = T.alloc_shared((64, 64), "bfloat16")
            s = T.alloc_shared((32, 64), "bfloat16")
            x = T.alloc_fragment((32, 64), "float32")
            y = T.alloc_fragment((32, 64), "float32")
            T.copy(A[by * 32, 0], a)
            T.copy(B, b)
            T.copy(D, d)
            T.clear(x)
            T.gemm(a, b, x)
            T.copy(x, s)
            T.clear(y)
            T.gemm(s, d, y)
            T.copy(y, C[by * 32, bx * 64])

    return chained


def batched(rank: int) -> Any:
    shape = {3: (3, 64, 64), 4: (2, 2, 64, 64)}[rank]

    @T.prim_func
    def batch(A: T.Tensor(shape, "bfloat16"), B: T.Tensor(shape, "bfloat16"), C: T.Tensor(shape, "float32")):
        with T.Kernel(2, 1, 3 if rank == 3 else 4) as (bx, by, bz):
            a = T.alloc_shared((64, 32), "bfloat16")
            b = T.alloc_shared((32, 32), "bfloat16")
            c = T.alloc_fragment((64, 32), "float32")
            T.clear(c)
            for k in T.serial(2):
                if rank == 3:
                    T.copy(A[bz, by * 64, k * 32], a)
                    T.copy(B[bz, k * 32, bx * 32], b)
                else:
                    T.copy(A[bz // 2, bz % 2, by * 64, k * 32], a)
                    T.copy(B[bz // 2, bz % 2, k * 32, bx * 32], b)
                T.gemm(a, b, c)
            if rank == 3:
                T.copy(c, C[bz, by * 64, bx * 32])
            else:
                T.copy(c, C[bz // 2, bz % 2, by * 64, bx * 32])

    return batch


def vector() -> Any:
    @T.prim_func
    def axpy(X: T.Tensor((256,), "float32"), Y: T.Tensor((256,), "float32"), Z: T.Tensor((256,), "float32")):
        with T.Kernel(4) as bx:
            x = T.alloc_shared((64,), "float32")
            y = T.alloc_shared((64,), "float32")
            T.copy(X[bx * 64], x)
            T.copy(Y[bx * 64], y)
            for i in T.Parallel(64):
                x[i] = x[i] * 3.0 + y[i]
            T.copy(x, Z[bx * 64])

    return axpy


def two_outputs() -> Any:
    @T.prim_func
    def both(A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((64, 64), "bfloat16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(2, 2) as (bx, by):
            a = T.alloc_shared((32, 32), "bfloat16")
            b = T.alloc_fragment((32, 32), "bfloat16")
            c = T.alloc_fragment((32, 32), "float32")
            T.copy(A[by * 32, bx * 32], a)
            for i, j in T.Parallel(32, 32):
                b[i, j] = T.max(a[i, j], 0.25)
                c[i, j] = T.exp(a[i, j]) - a[i, j]
            T.copy(b, B[by * 32, bx * 32])
            T.copy(c, C[by * 32, bx * 32])

    return both


def deep_expression() -> Any:
    @T.prim_func
    def deep(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, 1) as (bx, by):
            a = T.alloc_shared((64, 64), "float32")
            b = T.alloc_shared((64, 64), "float32")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            T.copy(B, b)
            for i, j in T.Parallel(64, 64):
                c[i, j] = a[i, j] * b[i, j] + T.min(a[i, j], b[i, j])
            for i, j in T.Parallel(64, 64):
                c[i, j] = 1.0 - c[i, j]
            T.copy(c, C)

    return deep


def named_values() -> Any:
    """Values with names of their own inside T.Parallel."""

    @T.prim_func
    def named(A: T.Tensor((64, 64), "float32"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(2, 2) as (bx, by):
            a = T.alloc_shared((32, 32), "float32")
            c = T.alloc_fragment((32, 32), "float32")
            T.copy(A[by * 32, bx * 32], a)
            for i, j in T.Parallel(32, 32):
                twice = a[i, j] + a[i, j]
                square = twice * twice
                c[i, j] = square - a[i, j]
            T.copy(c, C[by * 32, bx * 32])

    return named


def filled() -> Any:
    @T.prim_func
    def fill(C: T.Tensor((64, 64), "bfloat16")):
        with T.Kernel(2, 2) as (bx, by):
            c = T.alloc_fragment((32, 32), "bfloat16")
            T.fill(c, 1.5)
            T.copy(c, C[by * 32, bx * 32])

    return fill


def k_loop_accumulate() -> Any:
    """A sum that a loop carries, without a matrix product."""

    @T.prim_func
    def total(A: T.Tensor((64, 256), "bfloat16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, 2) as (bx, by):
            a = T.alloc_shared((32, 64), "bfloat16")
            c = T.alloc_fragment((32, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[by * 32, k * 64], a)
                for i, j in T.Parallel(32, 64):
                    c[i, j] += a[i, j]
            T.copy(c, C[by * 32, bx * 64])

    return total


def shared_with_writer() -> Any:
    """A loaded block that is computed with and stored as it is."""

    @T.prim_func
    def split(A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((64, 64), "bfloat16"), C: T.Tensor((64, 64), "bfloat16")):
        with T.Kernel(2, 1) as (bx, by):
            a = T.alloc_shared((64, 32), "bfloat16")
            c = T.alloc_fragment((64, 32), "float32")
            T.copy(A[by * 64, bx * 32], a)
            for i, j in T.Parallel(64, 32):
                c[i, j] = a[i, j] - 1.0
            T.copy(a, B[by * 64, bx * 32])
            T.copy(c, C[by * 64, bx * 32])

    return split


def two_accumulators() -> Any:
    """Two accumulators in one loop, one of them added to twice, and both stored."""

    @T.prim_func
    def kernel(
        A: T.Tensor((128, 128), "bfloat16"), B: T.Tensor((128, 128), "bfloat16"), C: T.Tensor((128, 128), "bfloat16"),
        D: T.Tensor((128, 128), "float32"),
    ):  # fmt: skip
        with T.Kernel(2, 2) as (bx, by):
            a = T.alloc_shared((64, 32), "bfloat16")
            b = T.alloc_shared((32, 64), "bfloat16")
            c = T.alloc_fragment((64, 64), "float32")
            d = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            T.clear(d)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[by * 64, k * 32], a)
                T.copy(B[k * 32, bx * 64], b)
                T.gemm(a, b, c)
                T.gemm(a, b, d)
                T.gemm(a, b, d)
            for i, j in T.Parallel(64, 64):
                c[i, j] = c[i, j] + d[i, j]
            T.copy(c, C[by * 64, bx * 64])
            T.copy(d, D[by * 64, bx * 64])

    return kernel


def scaled_in_the_loop(block: int, before: bool) -> Any:
    """An accumulator that each turn scales, before or after it adds."""

    @T.prim_func
    def kernel(
        A: T.Tensor((128, 128), "bfloat16"), B: T.Tensor((128, 128), "bfloat16"), C: T.Tensor((128, 128), "bfloat16")
    ):  # fmt: skip
        with T.Kernel(128 // block, 128 // block) as (bx, by):
            a = T.alloc_shared((block, 32), "bfloat16")
            b = T.alloc_shared((32, block), "bfloat16")
            c = T.alloc_fragment((block, block), "float32")
            T.clear(c)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[by * block, k * 32], a)
                T.copy(B[k * 32, bx * block], b)
                if before:
                    for i, j in T.Parallel(block, block):
                        c[i, j] = c[i, j] * 0.5
                T.gemm(a, b, c)
                if not before:
                    for i, j in T.Parallel(block, block):
                        c[i, j] = T.max(c[i, j] * 0.5, 0)
            T.copy(c, C[by * block, bx * block])

    return kernel


def starts_with_a_row() -> Any:
    """An accumulator that starts with a bias instead of zero, and that is stored twice."""

    @T.prim_func
    def kernel(
        A: T.Tensor((128, 64), "bfloat16"), B: T.Tensor((64, 128), "bfloat16"), V: T.Tensor((128,), "float32"),
        C: T.Tensor((128, 128), "float32"), D: T.Tensor((128, 128), "bfloat16"),
    ):  # fmt: skip
        with T.Kernel(1, 1) as (bx, by):
            a = T.alloc_shared((128, 32), "bfloat16")
            b = T.alloc_shared((32, 128), "bfloat16")
            v = T.alloc_shared((128,), "float32")
            c = T.alloc_fragment((128, 128), "float32")
            T.copy(V, v)
            for i, j in T.Parallel(128, 128):
                c[i, j] = v[j]
            for k in T.serial(2):
                T.copy(A[by * 128, k * 32], a)
                T.copy(B[k * 32, bx * 128], b)
                T.gemm(a, b, c)
            T.copy(c, C)
            for i, j in T.Parallel(128, 128):
                c[i, j] = T.exp(c[i, j] * 0.01)
            T.copy(c, D)

    return kernel


def stored_in_the_loop() -> Any:
    """A running sum that each turn stores: the last turn must leave nothing behind."""

    @T.prim_func
    def kernel(A: T.Tensor((64, 128), "bfloat16"), C: T.Tensor((64, 128), "bfloat16")):
        with T.Kernel(1, 2) as (bx, by):
            a = T.alloc_shared((32, 32), "bfloat16")
            c = T.alloc_fragment((32, 32), "float32")
            T.clear(c)
            for k in T.serial(4):
                T.copy(A[by * 32, bx * 128 + k * 32], a)
                for i, j in T.Parallel(32, 32):
                    c[i, j] = c[i, j] + a[i, j]
                T.copy(c, C[by * 32, k * 32])

    return kernel


def reused_buffer() -> Any:
    """One shared buffer for two loads and for the result."""

    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((64, 64), "bfloat16"), C: T.Tensor((64, 64), "bfloat16")):
        with T.Kernel(2, 2) as (bx, by):
            s = T.alloc_shared((32, 32), "bfloat16")
            c = T.alloc_fragment((32, 32), "float32")
            T.copy(A[by * 32, bx * 32], s)
            for i, j in T.Parallel(32, 32):
                c[i, j] = s[i, j] * 3.0
            T.copy(B[by * 32, bx * 32], s)
            for i, j in T.Parallel(32, 32):
                c[i, j] = c[i, j] - s[i, j]
            T.copy(c, s)
            T.copy(s, C[by * 32, bx * 32])

    return kernel


SPINE: tuple[Case, ...] = (
    Case("copy_bf16", copy_block),
    Case("copy_fp32", lambda: copy_block("float32")),
    Case("add_bf16", lambda: elementwise(lambda a, b: a + b)),
    Case("sub_bf16", lambda: elementwise(lambda a, b: a - b)),
    Case("mul_bf16", lambda: elementwise(lambda a, b: a * b)),
    Case("max_bf16", lambda: elementwise(T.max)),
    Case("add_fp16", lambda: elementwise(lambda a, b: a + b, "float16")),
    Case("add_fp32", lambda: elementwise(lambda a, b: a + b, "float32")),
    Case("mul_to_fp32", lambda: elementwise(lambda a, b: a * b, "bfloat16", "float32")),
    Case("exp_fp32", lambda: elementwise(lambda a, b: T.exp(a) * b + 0.5, "float32")),
    Case("in_place_bf16", in_place),
    Case("in_place_fp32", lambda: in_place("float32")),
    Case("row_bias_bf16", row_bias),
    Case("row_bias_fp32", lambda: row_bias("float32")),
    Case("row_bias_fragment_bf16", lambda: row_bias("bfloat16", True)),
    Case("row_bias_fragment_fp32", lambda: row_bias("float32", True)),
    Case("gemm_in_dst", gemm),
    Case("gemm_reload", lambda: gemm(128, 256, 128, 128, 128, 32, 3)),
    Case("gemm_relu", lambda: gemm(128, 128, 64, 128, 64, 64, relu=True)),
    Case("gemm_bias", lambda: gemm(bias=True, relu=True)),
    Case("gemm_bias_reload", lambda: gemm(128, 128, 64, 128, 128, 32, bias=True)),
    Case("gemm_transposed_b", lambda: gemm(tb=True)),
    Case("gemm_transposed_a", lambda: gemm(ta=True)),
    Case("gemm_transposed_both", lambda: gemm(64, 128, 96, 64, 64, 32, ta=True, tb=True)),
    Case("gemm_odd_blocks", lambda: gemm(96, 160, 96, 96, 160, 96)),
    Case("gemm_fp32_out", lambda: gemm(out="float32")),
    Case("gemm_one_k", lambda: gemm(128, 128, 32, 128, 128, 32)),
    Case("gemm_clear_accum", lambda: gemm(64, 64, 32, 64, 64, 32, clear_accum=True)),
    Case("chained_gemms", two_gemms),
    Case("batched_rank3", lambda: batched(3)),
    Case("batched_rank4", lambda: batched(4)),
    Case("vector_fp32", vector),
    Case("two_outputs", two_outputs),
    Case("deep_expression", deep_expression),
    Case("named_values", named_values),
    Case("filled", filled),
    Case("loop_carried_sum", k_loop_accumulate),
    Case("shared_with_writer", shared_with_writer),
    Case("two_accumulators", two_accumulators),
    Case("scaled_before", lambda: scaled_in_the_loop(128, True)),
    Case("scaled_after", lambda: scaled_in_the_loop(64, False)),
    Case("starts_with_a_row", starts_with_a_row),
    Case("stored_in_the_loop", stored_in_the_loop),
    Case("reused_buffer", reused_buffer),
)
