"""Kernels whose tensors have sizes that are known only when the program runs."""

from __future__ import annotations

from typing import Any

import ttexplore.language as T
from tests.corpus.case import Case
from tests.corpus.rows import ROWS, total


def any_size_gemm(block: int = 32, dtype: str = "bfloat16") -> Any:
    m, n, k = T.dynamic("m, n, k")

    @T.prim_func
    def product(A: T.Tensor((m, k), dtype), B: T.Tensor((k, n), dtype), C: T.Tensor((m, n), "float32")):
        with T.Kernel(T.ceildiv(n, block), T.ceildiv(m, block)) as (bx, by):
            a = T.alloc_shared((block, 32), dtype)
            b = T.alloc_shared((32, block), dtype)
            c = T.alloc_fragment((block, block), "float32")
            T.clear(c)
            for ko in T.Pipelined(T.ceildiv(k, 32), num_stages=2):
                T.copy(A[by * block, ko * 32], a)
                T.copy(B[ko * 32, bx * block], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * block, bx * block])

    return product


def any_size_add() -> Any:
    n = T.dynamic("n")

    @T.prim_func
    def add(A: T.Tensor((64, n), "float32"), B: T.Tensor((64, n), "float32"), C: T.Tensor((64, n), "float32")):
        with T.Kernel(T.ceildiv(n, 64), 2) as (bx, by):
            a = T.alloc_shared((32, 64), "float32")
            b = T.alloc_shared((32, 64), "float32")
            T.copy(A[by * 32, bx * 64], a)
            T.copy(B[by * 32, bx * 64], b)
            for i, j in T.Parallel(32, 64):
                a[i, j] = a[i, j] + b[i, j]
            T.copy(a, C[by * 32, bx * 64])

    return add


SIZES: tuple[Case, ...] = (
    Case("any_size_gemm", any_size_gemm),
    Case("any_size_gemm_64", lambda: any_size_gemm(64), on_chip=False),
    Case("any_size_gemm_reload", lambda: any_size_gemm(96), {"policy": "strided"}, on_chip=False),
    Case("any_size_add", any_size_add, on_chip=False),
    Case("any_size_rows", any_size_gemm, {"layouts": dict.fromkeys("ABC", ROWS)}, on_chip=False),
    Case(
        "rows_of_any_length", lambda: total((33, T.dynamic("n")), (32, 64), "bfloat16"),
        {"layouts": dict.fromkeys("ABC", ROWS)},
    ),
)  # fmt: skip
