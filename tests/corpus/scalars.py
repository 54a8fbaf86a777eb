# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false, reportOperatorIssue=false
"""Scalars that are operands: names of elements, scalar variables, single elements of blocks."""

from __future__ import annotations

from typing import Any

import ttexplore.language as T
from tests.corpus.case import Case

BF16, FP32 = "bfloat16", "float32"


def joined_splits() -> Any:
    """Partial results with weights from scalar variables, which loops carry, and from elements of a tensor."""

    @T.prim_func
    def kernel(G: T.Tensor((2, 3), FP32), P: T.Tensor((2, 3, 64), BF16), Out: T.Tensor((2, 64), FP32)):
        with T.Kernel(2) as bx:
            acc = T.alloc_fragment((64,), FP32)
            split = T.alloc_var(FP32)
            most = T.alloc_var(FP32, init=-T.infinity(FP32))
            total = T.alloc_var(FP32)
            T.clear(acc)
            T.clear(total)
            for k in T.serial(3):
                most = T.max(most, G[bx, k])
            for k in T.serial(3):
                split = G[bx, k]
                total += T.exp2(split - most)
            total = T.log2(total) + most
            for k in T.serial(3):
                weight = T.exp2(G[bx, k] - total)
                for i in T.Parallel(64):
                    acc[i] += P[bx, k, i] * weight
            T.copy(acc, Out[bx, :])

    return kernel


def decays() -> Any:
    """Numbers made from block indices, in a scalar variable, in the element of a local block and in a fill."""

    @T.prim_func
    def kernel(A: T.Tensor((4, 32, 64), FP32), Out: T.Tensor((4, 32, 64), FP32), Z: T.Tensor((4, 32), FP32)):
        with T.Kernel(2, 2) as (bx, by):
            a, z = T.alloc_fragment((32, 64), FP32), T.alloc_fragment((32,), FP32)
            rate = T.alloc_var(FP32)
            far = T.alloc_local((1,), FP32)
            rate = T.log2(1 - T.exp2(-2.0 - 1.0 * by))
            far[0] = T.Cast(FP32, bx - 1) * 0.5
            T.copy(A[bx * 2 + by, :, :], a)
            for i, j in T.Parallel(32, 64):
                a[i, j] = a[i, j] * T.exp2((i - j) * rate * 0.1) + far[0]
            T.fill(z, rate + far[0])
            T.copy(a, Out[bx * 2 + by, :, :])
            T.copy(z, Z[bx * 2 + by, :])

    return kernel


def elements_of_blocks() -> Any:
    """Single elements of blocks, read outside of T.Parallel and in it, and stored one by one."""

    @T.prim_func
    def kernel(
        A: T.Tensor((40,), FP32), B: T.Tensor((32, 64), FP32), Out: T.Tensor((40,), FP32), S: T.Tensor((6,), FP32)
    ):  # fmt: skip
        with T.Kernel(1) as bx:
            a, b = T.alloc_fragment((40,), FP32), T.alloc_shared((32, 64), FP32)
            s = T.alloc_fragment((6,), FP32)
            T.copy(A, a)
            T.copy(B, b)
            for i, j in T.Parallel(32, 64):
                b[i, j] = b[i, j] * 0.5
            last = a[39]
            s[0] = last * 2
            s[1] = b[3, 40] - a[0]
            for k in range(4):
                s[k + 2] = a[k * 3] + k
            a[5] = 7
            s[0] += a[5] + a[7]
            for i in T.Parallel(40):
                a[i] = a[i] * b[31, 63] + last
            T.copy(s, S)
            T.copy(a, Out)

    return kernel


def whole_scalars() -> Any:
    """Integers and conditions as scalars: negative ones, of a mask, carried through a loop, chosen in a branch."""

    @T.prim_func
    def kernel(
        N: T.Tensor((4,), "int32"), M: T.Tensor((4,), "uint8"), H: T.Tensor((4,), BF16),
        Out: T.Tensor((4, 32), FP32), Whole: T.Tensor((4, 32), "int32"),
    ):  # fmt: skip
        with T.Kernel(4) as bx:
            o, w = T.alloc_fragment((32,), FP32), T.alloc_fragment((32,), "int32")
            n, on = N[bx], M[3 - bx] != 0
            h = H[bx] * H[3 - bx]
            v = T.alloc_var("int32")
            f = T.alloc_var(FP32, init=0.0)
            v = bx - 2
            for k in range(3):
                v += n + k
            if on:
                f = T.Cast(FP32, v) * 0.5
            elif bx > 2:
                f = -1.0
            for i in T.Parallel(32):
                o[i] = T.if_then_else(on, f, f + 0.25) + h
                w[i] = v + i - n
            T.copy(o, Out[bx, :])
            T.copy(w, Whole[bx, :])

    return kernel


def scalars_of_turns() -> Any:
    """Scalar variables and a local block that each turn of T.Parallel has of its own."""

    @T.prim_func
    def kernel(A: T.Tensor((32, 64), FP32), Out: T.Tensor((32, 64), FP32)):
        with T.Kernel(1):
            a, own = T.alloc_fragment((32, 64), FP32), T.alloc_local((2,), FP32)
            rounded = T.alloc_var(BF16)
            T.copy(A, a)
            for i, j in T.Parallel(32, 64):
                sign = T.alloc_var(FP32)
                if a[i, j] > 0:
                    sign = 1.0
                else:
                    sign = -0.5 - a[i, j]
                    sign -= 0.5
                for k in range(2):
                    own[k] = a[i, j] * (k + 1)
                rounded = own[1] * 1.01
                a[i, j] = sign + own[0] * rounded
                sign = sign * j
                a[i, j] += sign
            T.copy(a, Out)

    return kernel


SCALARS: tuple[Case, ...] = (
    Case("joined_splits", joined_splits),
    Case("decays", decays),
    Case("elements_of_blocks", elements_of_blocks, on_chip=False),
    Case("whole_scalars", whole_scalars),
    Case("scalars_of_turns", scalars_of_turns, on_chip=False),
)
