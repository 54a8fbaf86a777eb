# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false
"""Tensors of any size and rank, blocks of any size, and blocks that reach beyond their tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ttexplore.language as T
from tests.corpus.case import Case


def copied(shape: tuple[int, int], block: tuple[int, int], dtype: str = "bfloat16") -> Any:
    rows, columns = shape
    bm, bn = block

    @T.prim_func
    def copy(A: T.Tensor(shape, dtype), B: T.Tensor(shape, dtype)):
        with T.Kernel(T.ceildiv(columns, bn), T.ceildiv(rows, bm)) as (bx, by):
            S = T.alloc_shared(block, dtype)
            T.copy(A[by * bm, bx * bn], S)
            T.copy(S, B[by * bm, bx * bn])

    return copy


def exponent(shape: tuple[int, int], block: tuple[int, int], dtype: str = "float32") -> Any:
    """exp is not zero at zero: what a block has beyond its tensor must not be stored."""
    rows, columns = shape
    bm, bn = block

    @T.prim_func
    def exponential(A: T.Tensor(shape, dtype), B: T.Tensor(shape, dtype)):
        with T.Kernel(T.ceildiv(columns, bn), T.ceildiv(rows, bm)) as (bx, by):
            a = T.alloc_shared(block, dtype)
            b = T.alloc_fragment(block, "float32")
            T.copy(A[by * bm, bx * bn], a)
            for i, j in T.Parallel(bm, bn):
                b[i, j] = T.exp(a[i, j])
            T.copy(b, B[by * bm, bx * bn])

    return exponential


def product(m: int, n: int, k: int, bm: int, bn: int, bk: int, *, tb: bool = False, exp: bool = False) -> Any:
    """C = A @ B, or exp(A) @ B: the tail of A beyond the tensor is then 1, and that of B keeps it out."""

    @T.prim_func
    def matmul(
        A: T.Tensor((m, k), "bfloat16"),
        B: T.Tensor((n, k) if tb else (k, n), "bfloat16"),
        C: T.Tensor((m, n), "float32"),
    ):
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm)) as (bx, by):
            a = T.alloc_shared((bm, bk), "bfloat16")
            b = T.alloc_shared((bn, bk) if tb else (bk, bn), "bfloat16")
            c = T.alloc_fragment((bm, bn), "float32")
            T.clear(c)
            for kb in T.Pipelined(T.ceildiv(k, bk), num_stages=2):
                T.copy(A[by * bm, kb * bk], a)
                if exp:
                    for i, j in T.Parallel(bm, bk):
                        a[i, j] = T.exp(a[i, j])
                if tb:
                    T.copy(B[bx * bn, kb * bk], b)
                else:
                    T.copy(B[kb * bk, bx * bn], b)
                T.gemm(a, b, c, transpose_B=tb)
            T.copy(c, C[by * bm, bx * bn])

    return matmul


def masked_product(
    function: Callable[[Any], Any], dtype: str = "bfloat16", *, k: int = 50, ta: bool = False, tb: bool = False
) -> Any:  # fmt: skip
    """C = function(A) @ B in blocks of 50 along the summed axis: the rest of their last tiles is not zero, but what the
    function makes of zeros, or what follows in the tensor."""

    @T.prim_func
    def masked(
        A: T.Tensor((k, 64) if ta else (64, k), dtype),
        B: T.Tensor((48, k) if tb else (k, 48), dtype),
        C: T.Tensor((64, 48), "float32"),
    ):
        with T.Kernel(1, 2) as (bx, by):
            a = T.alloc_shared((50, 32) if ta else (32, 50), dtype)
            b = T.alloc_shared((48, 50) if tb else (50, 48), dtype)
            c = T.alloc_fragment((32, 48), "float32")
            if ta:
                T.copy(A[0, by * 32], a)
            else:
                T.copy(A[by * 32, 0], a)
            T.copy(B[0, 0], b)
            for i, j in T.Parallel(*((50, 32) if ta else (32, 50))):
                a[i, j] = function(a[i, j])
            T.gemm(a, b, c, transpose_A=ta, transpose_B=tb, clear_accum=True)
            T.copy(c, C[by * 32, 0])

    return masked


def _infinite_at_zero(x: Any) -> Any:
    return T.log(T.abs(x))


def vector(length: int, block: int, dtype: str = "bfloat16") -> Any:
    @T.prim_func
    def scaled(A: T.Tensor((length,), dtype), B: T.Tensor((length,), dtype)):
        with T.Kernel(T.ceildiv(length, block)) as bx:
            a = T.alloc_shared((block,), dtype)
            T.copy(A[bx * block], a)
            for i in T.Parallel(block):
                a[i] = a[i] * 2.0 + 1.0
            T.copy(a, B[bx * block])

    return scaled


def row_of_bias(rows: int, columns: int, block: int) -> Any:
    """Blocks of one row, and a vector that is broadcast along them."""

    @T.prim_func
    def bias(
        A: T.Tensor((rows, columns), "float32"), V: T.Tensor((columns,), "float32"),
        C: T.Tensor((rows, columns), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(columns, block), rows) as (bx, by):
            a = T.alloc_shared((1, block), "float32")
            v = T.alloc_shared((block,), "float32")
            T.copy(A[by, bx * block], a)
            T.copy(V[bx * block], v)
            for i, j in T.Parallel(1, block):
                a[i, j] = a[i, j] - v[j]
            T.copy(a, C[by, bx * block])

    return bias


def rank_five() -> Any:
    """Slices of two tensors of rank 5: matrices, and rows that come from different matrices."""

    @T.prim_func
    def slices(
        A: T.Tensor((2, 1, 3, 33, 40), "float32"), B: T.Tensor((2, 1, 3, 33, 40), "float32"),
        C: T.Tensor((2, 3, 3, 40), "float32"),
    ):  # fmt: skip
        with T.Kernel(3, 2) as (h, n):
            a = T.alloc_shared((33, 40), "float32")
            T.copy(A[n, 0, h, :, :], a)
            T.copy(a, B[n, 0, h, :, :])
            row = T.alloc_shared((3, 40), "float32")
            T.copy(A[n, 0, 0:3, 4, :], row)
            T.copy(row, C[n, h, :, :])

    return slices


def beyond_every_axis() -> Any:
    """Blocks that lie behind a tensor in part or whole, along a leading axis too."""

    @T.prim_func
    def padded(A: T.Tensor((3, 40, 50), "bfloat16"), B: T.Tensor((4, 128, 96), "bfloat16")):
        with T.Kernel(2, 2, 4) as (bx, by, bz):
            a = T.alloc_shared((64, 64), "bfloat16")
            T.copy(A[bz, by * 64, bx * 64], a)
            T.copy(a, B[bz, by * 64, bx * 64])

    return padded


def strided_batches() -> Any:
    @T.prim_func
    def every_other(A: T.Tensor((5, 32, 48), "float32"), B: T.Tensor((2, 32, 48), "float32")):
        with T.Kernel(2) as b:
            a = T.alloc_shared((32, 48), "float32")
            T.copy(A[b * 2 + 1, :, :], a)
            T.copy(a, B[b, :, :])

    return every_other


def unused_tensors() -> Any:
    """Tensors that the kernel does not touch, before, between and after those that it does."""

    @T.prim_func
    def one_of_four(
        U: T.Tensor((3, 5), "int32"), A: T.Tensor((64, 64), "float32"), V: T.Tensor((4,), "bfloat16"),
        B: T.Tensor((64, 64), "float32"), W: T.Tensor((2, 2, 33, 1), "uint8"),
    ):  # fmt: skip
        with T.Kernel(2) as bx:
            a = T.alloc_shared((32, 64), "float32")
            T.copy(A[bx * 32, 0], a)
            T.copy(a, B[bx * 32, 0])

    return one_of_four


SHAPES = (
    Case("copy_100x70", lambda: copied((100, 70), (64, 64)), {"cores": (1, 1)}),
    Case("copy_faces", lambda: copied((48, 40), (16, 16)), {"cores": (2, 1)}),
    Case("exp_31x33", lambda: exponent((31, 33), (32, 32)), on_chip=False),
    Case("gemm_100x70x50", lambda: product(100, 70, 50, 64, 32, 32), {"cores": (1, 1)}),
    Case("gemm_one_block", lambda: product(33, 20, 50, 33, 20, 50), on_chip=False),
    Case("gemm_tails_transposed", lambda: product(40, 70, 50, 32, 64, 64, tb=True), on_chip=False),
    Case("gemm_of_exp", lambda: product(40, 32, 50, 32, 32, 32, exp=True), on_chip=False),
    Case("gemm_masked", lambda: masked_product(T.exp), {"cores": (1, 1)}),
    Case("gemm_masked_neighbours", lambda: masked_product(lambda x: x, k=100, tb=True), on_chip=False),
    Case("gemm_masked_infinite", lambda: masked_product(_infinite_at_zero, "float32", ta=True), on_chip=False),
    Case("vector_blocks_of_48", lambda: vector(100, 48, "float32"), on_chip=False),
    Case("rows_of_bias", lambda: row_of_bias(3, 50, 32), on_chip=False),
    Case("rank_five", rank_five, on_chip=False),
    Case("unused_tensors", unused_tensors),
    Case("beyond_every_axis", beyond_every_axis, on_chip=False),
)
