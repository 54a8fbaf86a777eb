# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false, reportOperatorIssue=false
"""Tensors that kernels work on directly, and branches and loops inside of T.Parallel."""

from __future__ import annotations

from typing import Any

import ttexplore.language as T
from tests.corpus.case import Case

BF16, FP32 = "bfloat16", "float32"


def elements_of_tensors() -> Any:
    """Blocks, rows and columns of tensors read in T.Parallel and stored from it, with a tail."""

    @T.prim_func
    def kernel(
        A: T.Tensor((40, 100), FP32), R: T.Tensor((100,), FP32), C: T.Tensor((40,), BF16),
        Out: T.Tensor((40, 100), FP32),
    ):  # fmt: skip
        with T.Kernel(2, 2) as (bx, by):
            for i, j in T.Parallel(32, 64):
                y = by * 32 + i
                if y < 40 and bx * 64 + j < 100:
                    Out[y, bx * 64 + j] = A[y, bx * 64 + j] * 2.0 + R[bx * 64 + j] * C[y]

    return kernel


def branches() -> Any:
    """Branches with and without an other side, one of which asks for what it changes, and a loop."""

    @T.prim_func
    def kernel(A: T.Tensor((32, 64), FP32), Out: T.Tensor((32, 64), FP32)):
        with T.Kernel(1) as bx:
            a, b = T.alloc_shared((32, 64), FP32), T.alloc_fragment((32, 64), FP32)
            T.copy(A[0, 0], a)
            for i, j in T.Parallel(32, 64):
                b[i, j] = 1.0
                if i > j:
                    b[i, j] = a[i, j]
                elif b[i, j] + a[i, j] > 1.0:
                    b[i, j] = 5.0
                else:
                    b[i, j] = b[i, j] - a[i, j]
                for k in range(3):
                    b[i, j] += k * a[i, j]
            T.copy(b, Out[0, 0])

    return kernel


def from_tensor_to_tensor() -> Any:
    """A copy between tensors, a reduction of a part of one, and a fill of another."""

    @T.prim_func
    def kernel(
        A: T.Tensor((2, 64, 64), FP32), Out: T.Tensor((2, 64, 64), FP32), S: T.Tensor((2, 64), FP32),
        Z: T.Tensor((2, 32), BF16),
    ):  # fmt: skip
        with T.Kernel(2) as bx:
            T.copy(A[bx, 0:32, :], Out[bx, 32:64, :])
            T.copy(A[bx, 32:64, :], Out[bx, 0:32, :])
            T.reduce_sum(A[bx, :, :], S[bx, :], dim=2)
            T.fill(Z[bx, :], 3.0)

    return kernel


def scattered_reads() -> Any:
    """A column of a matrix, single elements, a row that starts anywhere, and a turned block."""

    @T.prim_func
    def kernel(
        G: T.Tensor((2, 64, 3), FP32), H: T.Tensor((7,), BF16), A: T.Tensor((3, 100), BF16), B: T.Tensor((8, 40), FP32),
        Out: T.Tensor((2, 40, 8), FP32),
    ):  # fmt: skip
        with T.Kernel(2) as bx:
            for i, j in T.Parallel(40, 8):
                Out[bx, i, j] = G[bx, i + 5, 2] * H[bx + 3] + A[bx + 1, j + 3] + B[j, i]

    return kernel


def scattered_stores() -> Any:
    """A column of a matrix, single elements, and vectors that start anywhere and reach past both ends, where two cores
    store to each page."""

    @T.prim_func
    def kernel(
        A: T.Tensor((2, 40, 8), FP32), G: T.Tensor((2, 83, 3), FP32), S: T.Tensor((7,), BF16),
        V: T.Tensor((3, 70), "int32"), B: T.Tensor((5, 90), BF16),
    ):  # fmt: skip
        with T.Kernel(2) as bx:
            a = T.alloc_shared((40, 8), FP32)
            s = T.alloc_fragment((40,), FP32)
            t = T.alloc_fragment((1,), FP32)
            T.copy(A[bx, :, :], a)
            T.reduce_max(a, s, dim=1)
            for i in T.Parallel(40):
                G[1, bx * 40 + i + 3, 2] = s[i]
                V[bx + 1, i * 1 + 5] = i
            T.copy(A[bx, 39, 3], t)
            T.copy(t, S[bx + 4])
            T.copy(s, B[2, bx * 80 - 30 : bx * 80 + 10])

    return kernel


DIRECT: tuple[Case, ...] = (
    Case("elements_of_tensors", elements_of_tensors),
    Case("branches", branches, on_chip=False),
    Case("from_tensor_to_tensor", from_tensor_to_tensor, on_chip=False),
    Case("scattered_reads", scattered_reads),
    Case("scattered_stores", scattered_stores),
)
