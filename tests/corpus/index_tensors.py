# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false
"""Branches, lengths and places that elements of tensors decide."""

from __future__ import annotations

from typing import Any

import ttexplore.language as T
from tests.corpus.case import Case


def masked_blocks(dtype: str = "int32", size: int = 64, steps: int = 4) -> Any:
    """A product that leaves out the blocks whose entry in a mask is 0."""

    @T.prim_func
    def kernel(
        A: T.Tensor((2 * size, 32 * steps), "bfloat16"), B: T.Tensor((32 * steps, 2 * size), "bfloat16"),
        Mask: T.Tensor((2, 2, steps), dtype), C: T.Tensor((2 * size, 2 * size), "float32"),
    ):  # fmt: skip
        with T.Kernel(2, 2) as (bx, by):
            a = T.alloc_shared((size, 32), "bfloat16")
            b = T.alloc_shared((32, size), "bfloat16")
            c = T.alloc_fragment((size, size), "float32")
            T.clear(c)
            for k in T.Pipelined(steps, num_stages=2):
                if Mask[by, bx, k]:
                    T.copy(A[by * size, k * 32], a)
                    T.copy(B[k * 32, bx * size], b)
                    T.gemm(a, b, c)
            T.copy(c, C[by * size, bx * size])

    return kernel


def counted(most: int = 4) -> Any:
    """The sum of as many blocks as a tensor says for each row of blocks."""

    @T.prim_func
    def kernel(
        A: T.Tensor((96, 64 * most), "float32"), Counts: T.Tensor((3,), "int32"), C: T.Tensor((96, 64), "float32")
    ):
        with T.Kernel(3) as bx:
            a = T.alloc_shared((32, 64), "float32")
            c = T.alloc_fragment((32, 64), "float32")
            T.clear(c)
            count = Counts[bx]
            for k in range(count):
                T.copy(A[bx * 32, k * 64], a)
                for i, j in T.Parallel(32, 64):
                    c[i, j] += a[i, j]
            T.copy(c, C[bx * 32, 0])

    return kernel


def table(pages: int = 5, dtype: str = "bfloat16") -> Any:
    """Blocks of rows in the order of a table, those with a negative entry left out, stored in another order."""

    @T.prim_func
    def kernel(
        A: T.Tensor((pages, 32, 64), dtype), Pages: T.Tensor((4, 3), "int32"), To: T.Tensor((4,), "int32"),
        C: T.Tensor((128, 64), "float32"),
    ):  # fmt: skip
        with T.Kernel(4) as bx:
            a = T.alloc_shared((32, 64), dtype)
            c = T.alloc_fragment((32, 64), "float32")
            T.clear(c)
            for k in range(3):
                page = Pages[bx, k]
                if page >= 0:
                    T.copy(A[page, 0, 0], a)
                    for i, j in T.Parallel(32, 64):
                        c[i, j] += a[i, j] * (k + 1)
            T.copy(c, C[To[bx] * 32, 0])

    return kernel


def ragged(rows: int = 160) -> Any:
    """Sums over sequences of any lengths, which lie one after the other, in blocks that may reach into the next one."""

    @T.prim_func
    def kernel(A: T.Tensor((rows, 64), "float32"), Starts: T.Tensor((4,), "int32"), C: T.Tensor((96, 64), "float32")):
        with T.Kernel(3) as bx:
            a = T.alloc_shared((32, 64), "float32")
            c = T.alloc_fragment((32, 64), "float32")
            T.clear(c)
            start = Starts[bx]
            length = Starts[bx + 1] - start
            for k in range(T.ceildiv(length, 32)):
                T.copy(A[start + k * 32, 0], a)
                for i, j in T.Parallel(32, 64):
                    c[i, j] += T.if_then_else(k * 32 + i < length, a[i, j], 0.0)
            T.copy(c, C[bx * 32, 0])

    return kernel


def chained(dtype: str = "int32") -> Any:
    """An element that says which element says which block; what a condition lets nobody ask for is not there."""

    @T.prim_func
    def kernel(
        A: T.Tensor((96, 64), "bfloat16"), First: T.Tensor((3,), "int32"), Second: T.Tensor((3,), dtype),
        C: T.Tensor((128, 64), "float32"),
    ):  # fmt: skip
        with T.Kernel(4) as bx:
            a = T.alloc_shared((32, 64), "bfloat16")
            c = T.alloc_fragment((32, 64), "float32")
            T.fill(c, -1.0)
            if bx < 3 and First[bx] > 0:
                T.copy(A[Second[First[bx]] * 32, 0], a)
                for i, j in T.Parallel(32, 64):
                    c[i, j] = a[i, j] + 1.0
            T.copy(c, C[bx * 32, 0])

    return kernel


def masked_by_block(dtype: str = "int32", through: str = "fragment") -> Any:
    """A sum that leaves out the blocks whose entry in a block is 0, which holds a part of a mask."""

    @T.prim_func
    def kernel(A: T.Tensor((64, 256), "float32"), Mask: T.Tensor((2, 4), dtype), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(2) as bx:
            a = T.alloc_shared((32, 64), "float32")
            c = T.alloc_fragment((32, 64), "float32")
            mask = T.alloc_fragment((4,), dtype)
            if through == "both":
                mask_shared = T.alloc_shared((4,), dtype)
                T.copy(Mask[bx, :], mask_shared)
                T.copy(mask_shared, mask)
            else:
                T.copy(Mask[bx, :], mask)
            T.clear(c)
            for k in T.Pipelined(4, num_stages=2):
                if mask[k] != 0:
                    T.copy(A[bx * 32, k * 64], a)
                    for i, j in T.Parallel(32, 64):
                        c[i, j] += a[i, j]
            T.copy(c, C[bx * 32, 0])

    return kernel


def in_two_loops() -> Any:
    """Two sums of products over the turns that a tensor leaves to each block, in two loops: the condition around them
    says that the first loop makes a turn, and the second may make none."""

    @T.prim_func
    def kernel(
        A: T.Tensor((256, 64), "bfloat16"), Ends: T.Tensor((1,), "int32"), C: T.Tensor((256, 64), "float32"),
        D: T.Tensor((256, 64), "float32"),
    ):  # fmt: skip
        with T.Kernel(4) as bx:
            a = T.alloc_shared((64, 64), "bfloat16")
            square = T.alloc_shared((64, 64), "bfloat16")
            s = T.alloc_fragment((64, 64), "float32")
            c = T.alloc_fragment((64, 64), "float32")
            d = T.alloc_fragment((64, 64), "float32")
            half = T.min(Ends[0], 8) // 2
            if bx < half * 2:
                T.clear(c)
                T.clear(d)
                late = bx - half
                left = half - late
                first = T.if_then_else(bx < half, 1, left)
                second = T.if_then_else(bx < half, left, 0)
                for k in T.Pipelined(first, num_stages=2):
                    T.copy(A[(bx + k) % 4 * 64, 0], a)
                    T.clear(s)
                    T.gemm(a, a, s, transpose_B=True)
                    T.copy(s, square)
                    T.gemm(square, a, c)
                    T.gemm(a, a, d)
                for k in T.Pipelined(second, num_stages=2):
                    T.copy(A[k % 4 * 64, 0], a)
                    T.gemm(a, a, c)
                    T.gemm(a, a, d)
                T.copy(c, C[bx * 64, 0])
                T.copy(d, D[bx * 64, 0])

    return kernel


def cache_update(slots: int = 4) -> Any:
    """New blocks, and a new row of each head, go to their places in two caches, which keep the rest."""

    @T.prim_func
    def kernel(
        New: T.Tensor((2, 32, 64), "bfloat16"), Slots: T.Tensor((2,), "int32"), Row: T.Tensor((1,), "int32"),
        Blocks: T.Tensor((slots, 32, 64), "bfloat16"), Rows: T.Tensor((2, 70, 64), "bfloat16"),
    ):  # fmt: skip
        with T.Kernel(2) as bx:
            a = T.alloc_shared((32, 64), "bfloat16")
            T.copy(New[bx, 0, 0], a)
            T.copy(a, Blocks[Slots[bx], 0, 0])
            for j in T.Parallel(64):
                Rows[bx, Row[0], j] = New[bx, 3, j]

    return kernel


# Of the others, most numbers name nothing that there is.
INDEX_TENSORS = [
    Case("index_masked_blocks", masked_blocks),
    Case("index_masked_by_bytes", lambda: masked_blocks("uint8", 128), on_chip=False),
    Case("index_masked_by_block", masked_by_block),
    Case("index_counted", lambda: counted(3)),
    Case("index_in_two_loops", in_two_loops),
    Case("index_cache_update", cache_update),
]
