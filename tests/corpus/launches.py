# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false, reportOperatorIssue=false, reportCallIssue=false, reportArgumentType=false
"""Kernels of several launches; the corpus has each launch as a kernel of its own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import ttexplore.language as T
from tests.corpus.case import Case
from ttexplore.language.tracer.kernel import trace
from ttexplore.passes.launches.splitting import launches_of

BF16, FP32, INT32 = "bfloat16", "float32", "int32"


def two_products(m: int = 64, k: int = 64, n: int = 96, dtype: str = BF16) -> Any:
    """(A @ B) @ C: the second product reads what the first has left in DRAM."""

    @T.prim_func
    def kernel(
        A: T.Tensor((m, k), dtype), B: T.Tensor((k, n), dtype), C: T.Tensor((n, k), dtype), D: T.Tensor((m, k), FP32)
    ):  # fmt: skip
        M = T.alloc_global((m, n), dtype)
        with T.Kernel(T.ceildiv(n, 32), T.ceildiv(m, 32)) as (bx, by):
            a, b = T.alloc_shared((32, 32), dtype), T.alloc_shared((32, 32), dtype)
            c = T.alloc_fragment((32, 32), FP32)
            T.clear(c)
            for ko in T.Pipelined(T.ceildiv(k, 32), num_stages=2):
                T.copy(A[by * 32, ko * 32], a)
                T.copy(B[ko * 32, bx * 32], b)
                T.gemm(a, b, c)
            T.copy(c, M[by * 32, bx * 32])
        with T.Kernel(T.ceildiv(k, 32), T.ceildiv(m, 32)) as (bx, by):
            a, b = T.alloc_shared((32, 32), dtype), T.alloc_shared((32, 32), dtype)
            c = T.alloc_fragment((32, 32), FP32)
            T.clear(c)
            for ko in T.Pipelined(T.ceildiv(n, 32), num_stages=2):
                T.copy(M[by * 32, ko * 32], a)
                T.copy(C[ko * 32, bx * 32], b)
                T.gemm(a, b, c)
            T.copy(c, D[by * 32, bx * 32])

    return kernel


def split_softmax(rows: int = 32, keys: int = 256, dim: int = 64, splits: int = 4) -> Any:
    """Attention whose keys are divided among work items: partial results and the logarithms of their sums, and a launch
    that combines them."""
    part, scale = keys // splits, dim**-0.5

    @T.prim_func
    def kernel(
        Q: T.Tensor((rows, dim), BF16), K: T.Tensor((keys, dim), BF16), V: T.Tensor((keys, dim), BF16),
        R: T.Tensor((rows, dim), FP32),
    ):  # fmt: skip
        L = T.alloc_global((splits, rows), FP32)
        P = T.alloc_global((splits, rows, dim), FP32)
        with T.Kernel(splits) as s:
            q, k, v = (
                T.alloc_shared((rows, dim), BF16),
                T.alloc_shared((32, dim), BF16),
                T.alloc_shared((32, dim), BF16),
            )
            scores, weights = T.alloc_fragment((rows, 32), FP32), T.alloc_fragment((rows, 32), BF16)
            out, total = T.alloc_fragment((rows, dim), FP32), T.alloc_fragment((rows,), FP32)
            new = T.alloc_fragment((rows,), FP32)
            T.copy(Q, q)
            T.clear(out)
            T.clear(total)
            for block in T.Pipelined(part // 32, num_stages=2):
                T.copy(K[s * part + block * 32, 0], k)
                T.copy(V[s * part + block * 32, 0], v)
                T.clear(scores)
                T.gemm(q, k, scores, transpose_B=True)
                for i, j in T.Parallel(rows, 32):
                    scores[i, j] = T.exp(scores[i, j] * scale)
                T.reduce_sum(scores, new, dim=1)
                for i in T.Parallel(rows):
                    total[i] = total[i] + new[i]
                T.copy(scores, weights)
                T.gemm(weights, v, out)
            for i, j in T.Parallel(rows, dim):
                out[i, j] = out[i, j] / total[i]
            for i in T.Parallel(rows):
                total[i] = T.log(total[i])
            T.copy(total, L[s, 0:rows])
            T.copy(out, P[s, 0:rows, 0:dim])
        with T.Kernel(T.ceildiv(rows, 32)) as b:
            each, most = T.alloc_fragment((splits, 32), FP32), T.alloc_fragment((32,), FP32)
            one, total = T.alloc_fragment((32,), FP32), T.alloc_fragment((32,), FP32)
            p, out = T.alloc_fragment((32, dim), FP32), T.alloc_fragment((32, dim), FP32)
            T.copy(L[0:splits, b * 32 : b * 32 + 32], each)
            T.reduce_max(each, most, dim=0)
            T.clear(total)
            T.clear(out)
            for s in T.serial(splits):
                T.copy(each[s, :], one)
                T.copy(P[s, b * 32 : b * 32 + 32, 0:dim], p)
                for i in T.Parallel(32):
                    one[i] = T.exp(one[i] - most[i])
                for i in T.Parallel(32):
                    total[i] = total[i] + one[i]
                for i, j in T.Parallel(32, dim):
                    out[i, j] = out[i, j] + p[i, j] * one[i]
            for i, j in T.Parallel(32, dim):
                out[i, j] = out[i, j] / total[i]
            T.copy(out, R[b * 32, 0])

    return kernel


def centred(rows: int = 96, columns: int = 64) -> Any:
    """Rows minus the mean of each column: the sums of 32 rows each, and a launch in which each block adds them up."""
    blocks = rows // 32

    @T.prim_func
    def kernel(A: T.Tensor((rows, columns), FP32), B: T.Tensor((rows, columns), FP32)):
        S = T.alloc_global((blocks, columns), FP32)
        with T.Kernel(blocks) as b:
            a, s = T.alloc_fragment((32, columns), FP32), T.alloc_fragment((columns,), FP32)
            T.copy(A[b * 32, 0], a)
            T.reduce_sum(a, s, dim=0)
            T.copy(s, S[b, 0:columns])
        with T.Kernel(blocks) as b:
            a, each = T.alloc_fragment((32, columns), FP32), T.alloc_fragment((blocks, columns), FP32)
            mean = T.alloc_fragment((columns,), FP32)
            T.copy(A[b * 32, 0], a)
            T.copy(S, each)
            T.reduce_sum(each, mean, dim=0)
            for i, j in T.Parallel(32, columns):
                a[i, j] = a[i, j] - mean[j] / rows
            T.copy(a, B[b * 32, 0])

    return kernel


def parts_of_output(rows: int = 128) -> Any:
    """Two launches write parts of one tensor: the second leaves what the first has written elsewhere."""

    @T.prim_func
    def kernel(A: T.Tensor((rows, 64), INT32), B: T.Tensor((rows, 64), INT32)):
        with T.Kernel(rows // 32) as b:
            a = T.alloc_shared((32, 64), INT32)
            T.copy(A[b * 32, 0], a)
            for i, j in T.Parallel(32, 64):
                a[i, j] = a[i, j] + 1
            T.copy(a, B[b * 32, 0])
        with T.Kernel(rows // 64) as b:
            a = T.alloc_shared((32, 64), INT32)
            T.copy(A[b * 64, 0], a)
            for i, j in T.Parallel(32, 64):
                a[i, j] = a[i, j] * 2
            T.copy(a, B[b * 64, 0])

    return kernel


def synchronized(rows: int = 96, cores: int = 4) -> Any:
    """A persistent kernel in two phases, with T.sync_grid between them: each block reads what others have written."""
    blocks = rows // 32

    @T.prim_func
    def kernel(A: T.Tensor((rows, 64), BF16), M: T.Tensor((rows, 64), BF16), B: T.Tensor((rows, 64), BF16)):
        with T.Kernel(cores) as core:
            a, b = T.alloc_shared((32, 64), BF16), T.alloc_fragment((32, 64), FP32)
            shift = core + 1
            for w in T.serial(T.ceildiv(blocks, cores)):
                place = w * cores + core
                if place < blocks:
                    T.copy(A[place * 32, 0], a)
                    for i, j in T.Parallel(32, 64):
                        a[i, j] = a[i, j] * a[i, j]
                    T.copy(a, M[place * 32, 0])
            T.sync_grid()
            for w in T.serial(T.ceildiv(blocks, cores)):
                if w * cores + shift - 1 < blocks:
                    T.clear(b)
                    for k in T.serial(blocks):
                        T.copy(M[k * 32, 0], a)
                        for i, j in T.Parallel(32, 64):
                            b[i, j] = b[i, j] + a[i, j]
                    T.copy(b, B[(w * cores + shift - 1) * 32, 0])

    return kernel


def sized() -> Any:
    """Two launches over a tensor whose size is known when the kernel runs."""
    n = T.dynamic("n")

    @T.prim_func
    def kernel(A: T.Tensor((n, 64), BF16), B: T.Tensor((n, 64), BF16)):
        M = T.alloc_global((n, 64), BF16)
        with T.Kernel(T.ceildiv(n, 32)) as b:
            a = T.alloc_shared((32, 64), BF16)
            T.copy(A[b * 32, 0], a)
            for i, j in T.Parallel(32, 64):
                a[i, j] = T.max(a[i, j], 0)
            T.copy(a, M[b * 32, 0])
        with T.Kernel(T.ceildiv(n, 32)) as b:
            a = T.alloc_shared((32, 64), BF16)
            T.copy(M[b * 32, 0], a)
            for i, j in T.Parallel(32, 64):
                a[i, j] = a[i, j] + 1
            T.copy(a, B[b * 32, 0])

    return kernel


LAUNCHED: dict[str, Callable[[], Any]] = {
    "two_products": two_products, "split_softmax": split_softmax, "centred": centred,
    "parts_of_output": parts_of_output, "synchronized": synchronized, "sized": sized,
}  # fmt: skip


def _launch(make: Callable[[], Any], number: int) -> Any:
    return launches_of(trace(make()))[number]


LAUNCHES = tuple(
    Case(
        f"launch {number + 1} of {name}",
        functools.partial(_launch, make, number),
        # wolfpine computes sums on the SFPU wrongly: its cases use the FPU.
        {"eltwise": "fpu"} if name in ("split_softmax", "centred") else {},
        on_chip=name != "sized",
    )
    for name, make in LAUNCHED.items()
    for number in range(2)
)
