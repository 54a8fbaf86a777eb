# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false
# pyright: reportIndexIssue=false, reportUnusedVariable=false, reportCallIssue=false, reportArgumentType=false
# ruff: noqa: F841
"""Unsupported."""

from __future__ import annotations

from typing import Any

import ttexplore as ttx
import ttexplore.language as T
from tests.faults.kernels import difference
from tests.faults.plant import inserted
from tests.faults.test_faults import sound
from ttexplore.emit import emit
from ttexplore.ir.build import op


def l001() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((64, 64), "bfloat16")):
        with T.Kernel(2) as bx:
            T.atomic_store(B[0, 0], 1.0)

    return ttx.explore(kernel)


def l002() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((64, 64), "bfloat16")):
        with T.Kernel(1) as bx:
            a = T.alloc_shared((64, 64), "bfloat16")
            T.copy(A, a)
            for i, j in T.Parallel(64, 64):
                a[i, j] = T.atan(a[i, j])
            T.copy(a, B)

    return ttx.explore(kernel)


def l003() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((64, 64), "bfloat16")):
        with T.Kernel(1) as bx:
            for i, j in T.Parallel(64, 64):
                B[i * 2, j] = A[i, j] + 1.0

    return ttx.explore(kernel)


def l005() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((64, 64), "bfloat16")):
        with T.Kernel(2) as bx:
            a = T.alloc_shared((64, 64), "bfloat16")
            T.copy(A, a)
            for i, j in T.Parallel(64, 64):
                a[i, j] = a[i, j] * 2
            if a[0, 0] > 0:
                T.copy(a, B)

    return ttx.explore(kernel)


def l006() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((32, 32), "bfloat16")):
        with T.Kernel(1) as bx:
            a = T.alloc_shared((32, 32), "bfloat16")
            T.copy(B, a)
            T.copy(a, A[8, 8])

    return ttx.explore(kernel, options={"layouts": {"A": {"dtype": "bfloat8_b"}}})


def l007() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((4, 64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(1) as bx:
            b = T.alloc_fragment((64, 64), "float32")
            T.reduce_sum(A[0:1, 0:64, 0:64], b, dim=0)
            T.copy(b, B)

    return ttx.explore(kernel)


def l009() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float64"), B: T.Tensor((64, 64), "float64")):
        with T.Kernel(1) as bx:
            a = T.alloc_shared((64, 64), "float64")
            T.copy(A, a)
            T.copy(a, B)

    return ttx.explore(kernel)


def l010() -> Any:
    M = T.dynamic("M")

    @T.prim_func
    def kernel(A: T.Tensor((M, 64), "bfloat16")):
        with T.Kernel(T.ceildiv(M, 64)) as bx:
            a = T.alloc_shared((64, 64), "bfloat16")
            T.copy(A[bx * 64, 0], a)
            T.copy(a, A[bx * 32, 0])

    return ttx.explore(kernel)


def l012() -> Any:
    """An operation that is not in the table of operations, planted after the last step."""
    program = inserted("compute", "tile_regs_commit", lambda _: op("nothing"))(sound(difference).steps["E1"].after)
    return emit(program.functions, program.plan)


def l013() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((128, 32), "bfloat16"), S: T.Tensor((4,), "int32"), B: T.Tensor((128, 32), "bfloat16")):
        with T.Kernel(4) as bx:
            a = T.alloc_shared((32, 32), "bfloat16")
            s = T.alloc_shared((4,), "int32")
            T.copy(S, s)
            for i in T.Parallel(4):
                s[i] = s[i] + 1
            T.copy(A[s[bx] * 32, 0], a)
            T.copy(a, B[bx * 32, 0])

    return ttx.explore(kernel)


def l014() -> Any:
    return ttx.explore(difference(), options={"layouts": {"A": {"halo": [1, 1]}}})


def l015() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((128, 32), "bfloat16"), B: T.Tensor((128, 32), "bfloat16")):
        with T.Kernel(4) as bx:
            a = T.alloc_shared((32, 32), "bfloat16")
            T.copy(A[(bx + 3) * 1000003 * 1021 % 4 * 32, 0], a)
            T.copy(a, B[bx * 32, 0])

    return ttx.explore(kernel)


def l016() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((64, 32), "bfloat16"), B: T.Tensor((64, 32), "bfloat16")):
        with T.Kernel(2) as bx:
            a = T.alloc_shared((32, 32), "bfloat16")
            T.copy(A[sum(bx for _ in range(3200)) // 100, 0], a)
            T.copy(a, B[bx * 32, 0])

    return ttx.explore(kernel)


def l017() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((64, 64), "bfloat16")):
        with T.Kernel(1, threads=256) as bx:
            a = T.alloc_shared((64, 64), "bfloat16")
            b = T.alloc_shared((64, 64), "bfloat16")
            there, back = T.alloc_barrier(128), T.alloc_barrier(128)
            with T.ws(0):
                for k in range(2):
                    T.copy(A, a)
                    T.barrier_arrive(there)
                    T.barrier_wait(back, k % 2)
                    T.copy(b, B)
            with T.ws(1):
                for k in range(1, 3):
                    T.barrier_wait(there, (k + 1) % 2)
                    T.copy(a, b)
                    T.barrier_arrive(back)

    return ttx.explore(kernel)
