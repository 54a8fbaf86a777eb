# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false
# pyright: reportIndexIssue=false, reportUnusedVariable=false, reportCallIssue=false, reportArgumentType=false
"""Kernels that are written for one thread: products of a matrix and a vector, in the ways in which threads share them.

All take a vector of k elements and a matrix of n rows, and give n sums.
"""

from __future__ import annotations

from typing import Any

import ttexplore.language as T

FP32 = "float32"


def row_of_each_thread(n: int, k: int, rows: int, width: int, dtype: str = FP32) -> Any:
    """Each thread adds up a row, of blocks that all threads load."""

    @T.prim_func
    def kernel(A: T.Tensor((k,), dtype), B: T.Tensor((n, k), dtype), C: T.Tensor((n,), dtype)):
        with T.Kernel(T.ceildiv(n, rows), threads=rows) as bn:
            tn = T.get_thread_binding(0)
            a = T.alloc_shared((width,), dtype)
            b = T.alloc_shared((rows, width), dtype)
            total = T.alloc_local((1,), FP32)
            T.clear(total)
            for bk in T.serial(T.ceildiv(k, width)):
                for column in T.serial(width):
                    a[column] = A[bk * width + column]
                    b[tn, column] = B[bn * rows + tn, bk * width + column]
                for column in T.serial(width):
                    total[0] += T.cast(a[column], FP32) * T.cast(b[tn, column], FP32)
            C[bn * rows + tn] = total[0]

    return kernel


def split_and_added(
    n: int, k: int, rows: int, threads: int, each: int, dtype: str = FP32, vectorized: bool = False
) -> Any:
    """Several threads share a row; each loads some of its elements, and they add up their sums with T.atomic_add."""
    loop = T.vectorized if vectorized else T.serial
    width = threads * each

    @T.prim_func
    def kernel(A: T.Tensor((k,), dtype), B: T.Tensor((n, k), dtype), C: T.Tensor((n,), dtype)):
        with T.Kernel(T.ceildiv(n, rows), threads=(rows, threads)) as bn:
            tn = T.get_thread_binding(0)
            tk = T.get_thread_binding(1)
            a = T.alloc_local((each,), dtype)
            b = T.alloc_local((each,), dtype)
            sums = T.alloc_shared((rows,), FP32)
            total = T.alloc_local((1,), FP32)
            if tk == 0:
                sums[tn] = 0
            T.clear(total)
            for bk in T.serial(T.ceildiv(k, width)):
                for i in loop(each):
                    a[i] = A[bk * width + tk * each + i]
                    b[i] = B[bn * rows + tn, bk * width + tk * each + i]
                for i in T.serial(each):
                    total[0] += T.cast(a[i], FP32) * T.cast(b[i], FP32)
            T.atomic_add(sums[tn], total[0])
            C[bn * rows + tn] = sums[tn]

    return kernel


def element_of_each_thread(n: int, k: int, rows: int, width: int, dtype: str = FP32) -> Any:
    """Each thread loads one element at a time."""

    @T.prim_func
    def kernel(A: T.Tensor((k,), dtype), B: T.Tensor((n, k), dtype), C: T.Tensor((n,), dtype)):
        with T.Kernel(T.ceildiv(n, rows), threads=(rows, width)) as bn:
            tn = T.get_thread_binding(0)
            tk = T.get_thread_binding(1)
            a = T.alloc_local((1,), dtype)
            b = T.alloc_local((1,), dtype)
            total = T.alloc_local((1,), FP32)
            sums = T.alloc_shared((rows,), FP32)
            if tk == 0:
                sums[tn] = 0
            T.clear(total)
            for bk in T.serial(T.ceildiv(k, width)):
                a[0] = A[bk * width + tk]
                b[0] = B[bn * rows + tn, bk * width + tk]
                total[0] += T.cast(a[0], FP32) * T.cast(b[0], FP32)
            T.atomic_add(sums[tn], total[0])
            C[bn * rows + tn] = sums[tn]

    return kernel


def joined_by_all(n: int, k: int, rows: int, threads: int, each: int, dtype: str = FP32) -> Any:
    """The threads of a row join their sums with T.tvm_thread_allreduce; the first one stores it."""
    width = threads * each

    @T.prim_func
    def kernel(A: T.Tensor((k,), dtype), B: T.Tensor((n, k), dtype), C: T.Tensor((n,), dtype)):
        with T.Kernel(T.ceildiv(n, rows), threads=(threads, rows)) as bn:
            tk = T.thread_binding(0, threads, thread="threadIdx.x")
            tn = T.thread_binding(0, rows, thread="threadIdx.y")
            a = T.alloc_local((each,), dtype)
            b = T.alloc_local((each,), dtype)
            total = T.alloc_local((1,), FP32)
            joined = T.alloc_local((1,), FP32)
            T.clear(total)
            for bk in T.serial(T.ceildiv(k, width)):
                for i in T.vectorized(each):
                    a[i] = A[bk * width + tk * each + i]
                    b[i] = B[bn * rows + tn, bk * width + tk * each + i]
                for i in T.serial(each):
                    total[0] += T.cast(a[i], FP32) * T.cast(b[i], FP32)
            with T.attr(
                T.comm_reducer(lambda x, y: x + y, [T.cast(0, FP32)]),
                "reduce_scope",
                T.reinterpret(T.uint64(0), dtype="handle"),
            ):
                T.evaluate(T.tvm_thread_allreduce(T.uint32(1), total[0], True, joined[0], tk, dtype="handle"))
            if tk == 0:
                C[bn * rows + tn] = joined[0]

    return kernel


def row_of_each_warp(n: int, k: int, rows: int, dtype: str = FP32) -> Any:
    """The threads of a warp share a row, and join their sums with T.warp_reduce_sum."""

    @T.prim_func
    def kernel(A: T.Tensor((k,), dtype), B: T.Tensor((n, k), dtype), C: T.Tensor((n,), dtype)):
        with T.Kernel(T.ceildiv(n, rows), threads=(32, rows)) as bn:
            lane, row = T.get_thread_bindings()
            total = T.alloc_var(FP32)
            total = 0.0
            for bk in T.serial(T.ceildiv(k, 32)):
                total += T.cast(A[bk * 32 + lane], FP32) * T.cast(B[bn * rows + row, bk * 32 + lane], FP32)
            joined = T.warp_reduce_sum(total)
            if lane == 0:
                C[bn * rows + row] = joined

    return kernel
