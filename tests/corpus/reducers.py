# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false
"""Reducers: blocks of which several turns of a T.Parallel update one element."""

from __future__ import annotations

from typing import Any

import ttexplore.language as T
from tests.corpus.case import Case

BF16, FP32, INT32 = "bfloat16", "float32", "int32"


def gemv(rows: int, columns: int, turns: int, dtype: str = BF16) -> Any:
    """A matrix times a vector: each row's products are added up by all turns of its columns, in all turns of a loop."""

    @T.prim_func
    def kernel(
        A: T.Tensor((2 * rows, turns * columns), dtype), X: T.Tensor((turns * columns,), dtype),
        Out: T.Tensor((2 * rows,), FP32),
    ):  # fmt: skip
        with T.Kernel(2) as bx:
            a = T.alloc_shared((rows, columns), dtype)
            x = T.alloc_fragment((columns,), dtype)
            r = T.alloc_reducer((rows,), FP32, replication="all")
            T.clear(r)
            for k in T.Pipelined(turns, num_stages=2):
                T.copy(A[bx * rows, k * columns], a)
                T.copy(X[k * columns], x)
                for i, j in T.Parallel(rows, columns):
                    r[i] += a[i, j] * x[j]
            T.finalize_reducer(r)
            T.copy(r, Out[bx * rows])

    return kernel


def extremes(op: str, rows: int, columns: int, dtype: str = FP32) -> Any:
    """The largest or smallest element of each column under a condition, and of a whole block."""
    extreme = getattr(T, op)

    @T.prim_func
    def kernel(A: T.Tensor((2 * rows, columns), dtype), Out: T.Tensor((2, columns), dtype), All: T.Tensor((2,), dtype)):
        with T.Kernel(2) as bx:
            a = T.alloc_shared((rows, columns), dtype)
            r = T.alloc_reducer((columns,), dtype, op=op)
            s = T.alloc_reducer((1,), dtype, op)
            c, d = T.alloc_fragment((columns,), dtype), T.alloc_fragment((1,), dtype)
            T.copy(A[bx * rows, 0], a)
            T.reducer_init(r)
            T.reducer_init(s, 1)
            for i, j in T.Parallel(rows, columns):
                if i > j:
                    T.reducer_update(r[j], a[i, j])
                else:
                    r[j] = extreme(a[i, j] + a[i, j], r[j])
                T.reducer_update(s[0], a[i, j])
            T.finalize_reducer(r, c)
            T.finalize_reducer(s, d)
            T.copy(c, Out[bx, 0])
            T.copy(d, All[bx])

    return kernel


def shared_elements(length: int) -> Any:
    """Elements on the chip that T.atomic_add updates: some by one turn, some by all."""

    @T.prim_func
    def kernel(A: T.Tensor((2, length), FP32), Out: T.Tensor((2, length), FP32)):
        with T.Kernel(2) as bx:
            a = T.alloc_shared((length,), FP32)
            total = T.alloc_shared((1,), FP32)
            T.copy(A[bx, 0], a)
            T.fill(total, 1)
            for i in T.Parallel(length):
                T.atomic_add(total[0], a[i])
            for i in T.Parallel(length):
                T.atomic_add(a[i], total[0])
            T.copy(a, Out[bx, 0])

    return kernel


REDUCERS: tuple[Case, ...] = (
    # wolfpine computes sums on the SFPU wrongly: its case uses the FPU.
    Case("reducer_gemv", lambda: gemv(32, 64, 2), {"eltwise": "fpu"}),
    Case("reducer_gemv_tail", lambda: gemv(40, 70, 2, FP32), on_chip=False),
    Case("reducer_max", lambda: extremes("max", 40, 20), on_chip=False),
    Case("reducer_min_int32", lambda: extremes("min", 33, 50, INT32), on_chip=False),
    Case("reducer_atomic", lambda: shared_elements(70), on_chip=False),
)
