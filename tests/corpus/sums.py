# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false, reportOperatorIssue=false
"""Work items that share something: tensors that a kernel reads and writes, which are sums over work items or changed
in place, and places that blocks of the launch grid deal among themselves."""

from __future__ import annotations

from typing import Any

import ttexplore.language as T
from tests.corpus.case import Case

BF16, FP32, INT32 = "bfloat16", "float32", "int32"


def split_k(m: int = 64, n: int = 64, k: int = 256, parts: int = 4, out: str = FP32) -> Any:
    """Each block of the product is the sum of what `parts` work items make, added element by element."""

    @T.prim_func
    def kernel(A: T.Tensor((m, k), BF16), B: T.Tensor((k, n), BF16), C: T.Tensor((m, n), out)):
        with T.Kernel(T.ceildiv(n, 32), T.ceildiv(m, 32), parts) as (bx, by, bz):
            a, b = T.alloc_shared((32, 32), BF16), T.alloc_shared((32, 32), BF16)
            c = T.alloc_fragment((32, 32), FP32)
            T.clear(c)
            for ko in T.Pipelined(k // parts // 32, num_stages=2):
                T.copy(A[by * 32, bz * (k // parts) + ko * 32], a)
                T.copy(B[bz * (k // parts) + ko * 32, bx * 32], b)
                T.gemm(a, b, c)
            for i, j in T.Parallel(32, 32):
                T.atomic_add(C[by * 32 + i, bx * 32 + j], c[i, j])

    return kernel


def sums_of_heads(heads: int = 4, groups: int = 2, blocks: int = 3, dtype: str = FP32) -> Any:
    """Each block of rows adds to all rows of its head (`Q`), and the heads of a group to one block (`K`)."""

    @T.prim_func
    def kernel(
        A: T.Tensor((heads, blocks * 32, 64), dtype), Q: T.Tensor((heads, blocks * 32, 64), dtype),
        K: T.Tensor((heads // groups, blocks * 32, 64), dtype),
    ):  # fmt: skip
        with T.Kernel(heads, blocks) as (bx, by):
            a, q = T.alloc_shared((32, 64), dtype), T.alloc_fragment((32, 64), dtype)
            T.copy(A[bx, by * 32 : (by + 1) * 32, :], a)
            for k in T.serial(blocks):
                for i, j in T.Parallel(32, 64):
                    q[i, j] = a[i, j] * (k + 1)
                T.atomic_add(Q[bx, k * 32 : (k + 1) * 32, :], q)
            T.atomic_add(K[bx // groups, by * 32, 0], a)

    return kernel


def sums_of_found_rows(columns: int = 64, dtype: str = FP32, rows: int = 32) -> Any:
    """Each block is added to rows that start where an index tensor says, and of the first rows the largest are kept in
    others: any two blocks may share rows, except of other columns."""

    @T.prim_func
    def kernel(
        A: T.Tensor((4 * rows, 2 * columns), dtype), To: T.Tensor((4,), "int32"), Count: T.Tensor((4,), "int32"),
        S: T.Tensor((3 * rows, 2 * columns), dtype), M: T.Tensor((3 * rows, 2 * columns), dtype),
    ):  # fmt: skip
        with T.Kernel(2, 4) as (bx, by):
            a = T.alloc_shared((rows, columns), dtype)
            T.copy(A[by * rows, bx * columns], a)
            start = To[by]
            T.atomic_add(S[start, bx * columns], a)
            for i, j in T.Parallel(rows, columns):
                if i < Count[by]:
                    T.atomic_max(M[start + i, bx * columns + j], a[i, j])

    return kernel


def sums_of_columns(rows: int = 96, columns: int = 70, dtype: str = FP32) -> Any:
    """The sums of a tensor's columns, added up block by block, and the largest elements; one item for each block."""

    @T.prim_func
    def kernel(
        A: T.Tensor((rows, columns), dtype), S: T.Tensor((columns,), dtype), M: T.Tensor((rows, columns), dtype)
    ):
        with T.Kernel(T.ceildiv(rows, 32)) as bx:
            a, s = T.alloc_shared((32, columns), dtype), T.alloc_fragment((columns,), dtype)
            T.copy(A[bx * 32, 0], a)
            T.reduce_sum(a, s, dim=0)
            for j in T.Parallel(columns):
                T.atomic_add(S[j], s[j])
            T.atomic_max(M[bx * 32, 0], a)

    return kernel


def in_place(rows: int, columns: int, dtype: str, block: int = 32) -> Any:
    """Blocks that are read, changed and written where they were."""

    @T.prim_func
    def kernel(A: T.Tensor((rows, columns), dtype), B: T.Tensor((rows, columns), dtype)):
        with T.Kernel(T.ceildiv(rows, block)) as bx:
            a, b = T.alloc_shared((block, columns), dtype), T.alloc_shared((block, columns), dtype)
            T.copy(A[bx * block, 0], a)
            T.copy(B[bx * block, 0], b)
            for i, j in T.Parallel(block, columns):
                b[i, j] = b[i, j] * 2 + a[i, j]
            T.copy(b, B[bx * block, 0])
            for i, j in T.Parallel(block, columns):
                B[bx * block + i, j] = B[bx * block + i, j] - a[i, j]

    return kernel


def persistent(m: int = 160, n: int = 96, blocks: int = 4, *, more: bool = False) -> Any:
    """A product whose blocks are dealt to some blocks of the launch grid; with `more`, each of these ends with a store
    of its own."""

    @T.prim_func
    def kernel(A: T.Tensor((m, 64), BF16), B: T.Tensor((64, n), BF16), C: T.Tensor((m, n), FP32),
               D: T.Tensor((blocks * 32, 32), FP32)):  # fmt: skip
        with T.Kernel(blocks) as block:
            a, b = T.alloc_shared((32, 32), BF16), T.alloc_shared((32, 32), BF16)
            c, d = T.alloc_fragment((32, 32), FP32), T.alloc_fragment((32, 32), FP32)
            for bx, by in T.Persistent([T.ceildiv(m, 32), T.ceildiv(n, 32)], blocks, block):
                T.clear(c)
                for k in T.Pipelined(2, num_stages=2):
                    T.copy(A[bx * 32, k * 32], a)
                    T.copy(B[k * 32, by * 32], b)
                    T.gemm(a, b, c)
                T.copy(c, C[bx * 32, by * 32])
            if more:
                for i, j in T.Parallel(32, 32):
                    d[i, j] = block + 1
                T.copy(d, D[block * 32, 0])

    return kernel


SUMS: tuple[Case, ...] = (
    Case("split_k", split_k),
    Case("split_k_of_a_few_cores", lambda: split_k(96, 70, 128, 2), {"cores": (2, 1)}),
    Case("split_k_over_the_noc", lambda: split_k(64, 64, 128, 2), {"cores": (2, 2), "partials": "noc"}),
    Case(
        "split_k_over_the_noc_with_tails",
        lambda: split_k(96, 70, 128, 2),
        {"cores": (3, 2), "partials": "noc", "multicast": "auto"},
        on_chip=False,
    ),
    Case("sums_of_heads", sums_of_heads),
    Case(
        "sums_of_heads_over_the_noc",
        lambda: sums_of_heads(2, 2, 2, INT32),
        {"cores": (2, 2), "partials": "noc"},
        on_chip=False,
    ),
    Case("sums_of_heads_int32", lambda: sums_of_heads(dtype=INT32), on_chip=False),
    Case("sums_of_found_rows", lambda: sums_of_found_rows(32, rows=16)),
    Case("sums_of_found_rows_bfloat16", lambda: sums_of_found_rows(dtype=BF16), on_chip=False),
    Case("sums_of_columns", sums_of_columns, on_chip=False),
    Case("persistent", persistent),
    Case("persistent_with_more", lambda: persistent(more=True)),
    Case("in_place", lambda: in_place(96, 64, BF16)),
    Case("in_place_with_tails", lambda: in_place(70, 50, FP32), on_chip=False),
    Case("in_place_by_rows", lambda: in_place(64, 64, BF16), {"layouts": {"B": {"page": "row"}}}, on_chip=False),
)
