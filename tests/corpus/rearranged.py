# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false, reportOperatorIssue=false
"""Blocks read and stored at places that no operation on tiles reaches: the writer copies their elements on the chip."""

from __future__ import annotations

from typing import Any

import ttexplore.language as T
from tests.corpus.case import Case

BF16, FP32, INT32 = "bfloat16", "float32", "int32"


def computed_places(dtype: str = FP32) -> Any:
    """Places of a computed block and of a loaded one that are quotients, remainders, multiples and differences of loop
    variables, the same for all rows or all columns, on a diagonal, and those of a loop."""

    @T.prim_func
    def kernel(
        A: T.Tensor((80, 64), dtype), V: T.Tensor((50,), dtype), Out: T.Tensor((2, 40, 70), dtype),
        W: T.Tensor((2, 64), dtype),
    ):  # fmt: skip
        with T.Kernel(2) as bx:
            s, a = T.alloc_shared((40, 64), dtype), T.alloc_fragment((40, 64), dtype)
            v, w = T.alloc_shared((50,), dtype), T.alloc_fragment((64,), dtype)
            o = T.alloc_fragment((40, 70), dtype)
            T.copy(A[bx * 40, 0], s)
            T.copy(V, v)
            for i, j in T.Parallel(40, 64):
                a[i, j] = s[i, j] * 3 + 1
            for i, j in T.Parallel(40, 70):
                pair = j // 2
                o[i, j] = a[i, pair] - a[39 - i, (j * 5 + 2) % 64] + s[i // 8, j - j // 10] + v[(i + j) % 50]
                o[i, j] += v[j % 7] - v[i // 3] + a[i, pair]
            for k in T.serial(3):
                for i, j in T.Parallel(40, 70):
                    o[i, j] += a[i // 2 + k * 10, j % 5 + k]
            T.copy(o, Out[bx, 0, 0])
            for i in T.Parallel(64):
                w[i] = a[i // 2, i % 2] + a[i % 40, i]
            T.copy(w, W[bx, 0])

    return kernel


def unaligned_parts(dtype: str = FP32) -> Any:
    """Parts of blocks that start inside of tiles, read, stored, copied, filled and turned."""

    @T.prim_func
    def kernel(A: T.Tensor((40, 96), dtype), Out: T.Tensor((70, 64), dtype), V: T.Tensor((33,), dtype)):
        with T.Kernel(1):
            a, b = T.alloc_shared((40, 96), dtype), T.alloc_fragment((70, 64), dtype)
            v = T.alloc_fragment((33,), dtype)
            T.copy(A, a)
            T.clear(b)
            T.copy(a[3:23, 17:57], b[9:29, 1:41])
            for i, j in T.Parallel(5, 20):
                b[i + 60, j + 33] = a[i + 7, j + 5] * 2
            for k in T.serial(4):
                for i, j in T.Parallel(6, 3):
                    b[i + 6 * k + 40, j * 1 + 3 * k] = a[j + 30, i + 11 * k]
            T.fill(b[31:39, 50:63], 5)
            for j in T.Parallel(33):
                v[j] = b[9, j + 2] + a[j + 7, 9]
            T.copy(b, Out)
            T.copy(v, V)

    return kernel


def chained(dtype: str = BF16) -> Any:
    """Rearranged blocks as operands of products, of rearranged ones, of reductions, and in a pipelined loop."""

    @T.prim_func
    def kernel(
        A: T.Tensor((64, 128), dtype), B: T.Tensor((128, 32), dtype), Out: T.Tensor((64, 32), FP32),
        M: T.Tensor((64,), FP32), S: T.Tensor((64, 32), dtype),
    ):  # fmt: skip
        with T.Kernel(1):
            a, b = T.alloc_shared((64, 64), dtype), T.alloc_shared((64, 32), dtype)
            p, q = T.alloc_fragment((64, 64), dtype), T.alloc_fragment((64, 32), dtype)
            c, m, n = T.alloc_fragment((64, 32), FP32), T.alloc_fragment((64,), FP32), T.alloc_fragment((64,), FP32)
            T.clear(c)
            T.clear(n)
            for k in T.Pipelined(2, num_stages=2):
                T.copy(A[0, k * 64], a)
                T.copy(B[k * 64, 0], b)
                for i, j in T.Parallel(64, 64):
                    p[i, j] = a[i, j // 32 + 2 * (j % 32)]
                T.gemm(p, b, c)
                for i, j in T.Parallel(64, 32):
                    q[i, j] = p[63 - i, 2 * j + 1]
                T.reduce_max(c, m, dim=1)
                for i in T.Parallel(64):
                    n[i] += m[i // 4 * 4]
            T.copy(c, Out)
            T.copy(n, M)
            T.copy(q, S)

    return kernel


def pairs(dtype: str = BF16) -> Any:
    """Few elements, each for two: a simulated chip takes its time for each of them."""

    @T.prim_func
    def kernel(A: T.Tensor((4, 40), dtype), Out: T.Tensor((8, 70), FP32)):
        with T.Kernel(1):
            a, b = T.alloc_shared((4, 40), dtype), T.alloc_fragment((8, 70), FP32)
            T.copy(A, a)
            for i, j in T.Parallel(8, 70):
                b[i, j] = a[3 - i // 2, j // 2 + 5] * 2.0
            T.copy(b, Out)

    return kernel


def deep_blocks(dtype: str = FP32, items: int = 7) -> Any:
    """Blocks of three dimensions, whose last ones are beyond the tensor: loaded, computed, reduced along each axis, and
    stored."""

    @T.prim_func
    def kernel(
        A: T.Tensor((items, 5, 40), dtype), V: T.Tensor((items, 40), dtype), Out: T.Tensor((items, 5, 40), FP32),
        R: T.Tensor((8, 5), FP32), M: T.Tensor((8, 40), FP32), S: T.Tensor((10, 40), FP32),
    ):  # fmt: skip
        with T.Kernel(2) as bx:
            a = T.alloc_shared((4, 5, 40), dtype)
            v = T.alloc_shared((4, 40), dtype)
            b = T.alloc_fragment((4, 5, 40), FP32)
            r = T.alloc_fragment((4, 5), FP32)
            m = T.alloc_fragment((4, 40), FP32)
            s = T.alloc_fragment((5, 40), FP32)
            T.copy(A[bx * 4, 0, 0], a)
            T.copy(V[bx * 4, 0], v)
            for n, i, j in T.Parallel(4, 5, 40):
                b[n, i, j] = a[n, i, j] * 2 - v[n, j]
            T.reduce_max(b, r, dim=-1)
            T.reduce_sum(b, m, dim=1)
            T.fill(s, 3)
            T.reduce_sum(b, s, dim=0, clear=False)
            for n, i, j in T.Parallel(4, 5, 40):
                b[n, i, j] += s[i, j]
            T.copy(b, Out[bx * 4, 0, 0])
            T.copy(r, R[bx * 4, 0])
            T.copy(m, M[bx * 4, 0])
            T.copy(s, S[bx * 5, 0])

    return kernel


def slots(dtype: str = FP32) -> Any:
    """A block of three dimensions used slot by slot, in T.Parallel, copies, products and fills."""

    @T.prim_func
    def kernel(A: T.Tensor((3, 32, 40), dtype), B: T.Tensor((40, 32), dtype), Out: T.Tensor((3, 32, 40), dtype),
               C: T.Tensor((32, 32), FP32)):  # fmt: skip
        with T.Kernel(1):
            a, o = T.alloc_shared((3, 32, 40), dtype), T.alloc_fragment((3, 32, 40), dtype)
            b, c = T.alloc_shared((40, 32), dtype), T.alloc_fragment((32, 32), FP32)
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            T.fill(o[2, :, :], 4)
            for n in T.serial(2):
                T.gemm(a[n, :, :], b, c)
                for i, j in T.Parallel(32, 40):
                    o[n, i, j] = a[n + 1, i, j] - a[n, i, 39 - j]
            T.copy(a[0, 3, :], o[2, 5, :])
            T.copy(o, Out)
            T.copy(c, C)

    return kernel


def joined_loops(dtype: str = FP32) -> Any:
    """Elements stored where two loop variables count as one, to a block and to tensors."""

    @T.prim_func
    def kernel(A: T.Tensor((2, 6, 8), dtype), Out: T.Tensor((2, 48), dtype), C: T.Tensor((2, 8, 64), dtype)):
        with T.Kernel(2) as bx:
            a, b = T.alloc_shared((6, 8), dtype), T.alloc_fragment((6, 8), dtype)
            c = T.alloc_fragment((8, 64), dtype)
            T.copy(A[bx, 0, 0], a)
            for i, j in T.Parallel(6, 8):
                b[i, j] = a[i, j] + 1
            for i, j in T.Parallel(6, 8):
                Out[bx, i * 8 + j] = b[i, j] * 2
            for k, i, j in T.Parallel(8, 8, 8):
                c[k, j * 8 + i] = b[i % 6, j] + a[k // 2, i] + i
            T.copy(c, C[bx, 0, 0])

    return kernel


REARRANGED: tuple[Case, ...] = (
    Case("deep_blocks", deep_blocks, on_chip=False),
    Case("slots", lambda: slots(BF16), on_chip=False),
    Case("joined_loops", lambda: joined_loops(BF16), on_chip=False),
    Case("computed_places", computed_places, on_chip=False),
    Case("unaligned_parts", lambda: unaligned_parts(BF16), on_chip=False),
    Case("pairs", pairs),
    Case("chained_rearrangements", chained, on_chip=False),
)
