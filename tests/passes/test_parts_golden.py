"""Each part of a step has its golden file, which shows what it does on a small kernel."""

from __future__ import annotations

from typing import Any

import pytest

import ttexplore.language as T
from tests.corpus import gemm
from tests.corpus.scans import scanned
from tests.corpus.sums import split_k
from tests.corpus.warps import ring
from tests.corpus.whiles import strided
from tests.passes.conftest import PassGolden, Shown
from tests.passes.kernels import double
from ttexplore.passes.pipeline import PIPELINE

BF16, FP32 = "bfloat16", "float32"


@T.prim_func
def persistent(A: T.Tensor((128, 32), BF16), B: T.Tensor((128, 32), BF16)):
    with T.Kernel(2) as block:
        a = T.alloc_shared((32, 32), BF16)
        for row, column in T.Persistent([4, 1], 2, block):
            T.copy(A[row * 32, column * 32], a)
            T.copy(a, B[row * 32, column * 32])


@T.prim_func
def narrow(A: T.Tensor((128, 32), BF16), B: T.Tensor((32, 32), BF16)):
    with T.Kernel(1) as bx:
        a = T.alloc_shared((32, 32), BF16)
        for k in T.serial(T.cast(bx + 2, "int8"), 4):
            T.copy(A[k * 32, 0], a)
        T.copy(a, B)


@T.prim_func
def branches(A: T.Tensor((32, 32), FP32), B: T.Tensor((32, 32), FP32)):
    with T.Kernel(1):
        a = T.alloc_shared((32, 32), FP32)
        b = T.alloc_fragment((32, 32), FP32)
        T.copy(A, a)
        T.clear(b)
        for i, j in T.Parallel(32, 32):
            if i >= j:
                b[i, j] = a[i, j]
            for k in range(2):
                b[i, j] += a[i, j] * k
        T.copy(b, B)


@T.prim_func
def gathered(A: T.Tensor((96, 32), FP32), Index: T.Tensor((32,), "int32"), B: T.Tensor((32, 32), FP32)):
    with T.Kernel(1):
        b = T.alloc_shared((32, 32), FP32)
        for i, j in T.Parallel(32, 32):
            b[i, j] = A[Index[i], j]
        T.copy(b, B)


@T.prim_func
def grouped(A: T.Tensor((96, 32), FP32), Starts: T.Tensor((2,), "int32"), B: T.Tensor((64, 32), FP32)):
    with T.Kernel(2) as bx:
        a = T.alloc_shared((32, 32), FP32)
        group = T.alloc_var("int32")
        group = 0
        for i in range(2):
            if bx >= Starts[i]:
                group = i + 1
        T.copy(A[group * 32, 0], a)
        T.copy(a, B[bx * 32, 0])


@T.prim_func
def scalars(A: T.Tensor((32, 32), FP32), Sinks: T.Tensor((2,), FP32), B: T.Tensor((64, 32), FP32)):
    with T.Kernel(2) as bx:
        a = T.alloc_shared((32, 32), FP32)
        T.copy(A, a)
        sink = Sinks[bx]
        for i, j in T.Parallel(32, 32):
            a[i, j] = a[i, j] + sink
        T.copy(a, B[bx * 32, 0])


@T.prim_func
def decided(A: T.Tensor((96, 32), FP32), Counts: T.Tensor((2,), "int32"), B: T.Tensor((64, 32), FP32)):
    with T.Kernel(2) as bx:
        a = T.alloc_shared((32, 32), FP32)
        T.clear(a)
        for k in range(Counts[bx]):
            T.copy(A[k * 32, 0], a)
        T.copy(a, B[bx * 32, 0])


@T.prim_func
def direct(A: T.Tensor((64, 32), FP32), B: T.Tensor((64, 32), FP32)):
    with T.Kernel(2) as bx:
        for i, j in T.Parallel(32, 32):
            B[bx * 32 + i, j] = A[bx * 32 + i, j] * 2.0


@T.prim_func
def deep(A: T.Tensor((4, 8, 32), FP32), B: T.Tensor((4, 8, 32), FP32)):
    with T.Kernel(1):
        a = T.alloc_shared((4, 8, 32), FP32)
        T.copy(A, a)
        for b, i, j in T.Parallel(4, 8, 32):
            a[b, i, j] = a[b, i, j] * 2.0
        T.copy(a, B)


@T.prim_func
def rows(A: T.Tensor((32, 32), FP32), B: T.Tensor((32, 32), FP32)):
    with T.Kernel(1):
        a = T.alloc_shared((32, 32), FP32)
        b = T.alloc_fragment((32, 32), FP32)
        T.copy(A, a)
        for i, j in T.Parallel(32, 32):
            b[i, j] = a[2, j]
        T.copy(b, B)


@T.prim_func
def converted(A: T.Tensor((32, 32), FP32), B: T.Tensor((32, 32), "int8"), C: T.Tensor((32, 32), "int32")):
    with T.Kernel(1):
        a = T.alloc_shared((32, 32), FP32)
        b = T.alloc_shared((32, 32), "int8")
        c = T.alloc_fragment((32, 32), "int32")
        T.copy(A, a)
        T.copy(a, b)
        T.clear(c)
        T.gemm(b, b, c)
        T.copy(b, B)
        T.copy(c, C)


@T.prim_func
def branching(A: T.Tensor((64, 32), FP32), B: T.Tensor((64, 32), FP32)):
    with T.Kernel(2) as bx:
        a = T.alloc_shared((32, 32), FP32)
        if bx < 1:
            T.copy(A[bx * 32, 0], a)
        else:
            T.fill(a, 3.0)
        T.copy(a, B[bx * 32, 0])


@T.prim_func
def placed(A: T.Tensor((96, 32), FP32), Table: T.Tensor((2,), "int32"), B: T.Tensor((64, 32), FP32)):
    with T.Kernel(2) as bx:
        a = T.alloc_shared((32, 32), FP32)
        T.copy(A[Table[bx] * 32, 0], a)
        T.copy(a, B[bx * 32, 0])


@T.prim_func
def summed(A: T.Tensor((96, 32), FP32), B: T.Tensor((32, 32), FP32)):
    with T.Kernel(3) as bx:
        a = T.alloc_shared((32, 32), FP32)
        T.copy(A[bx * 32, 0], a)
        T.atomic_add(B, a)


@T.prim_func
def elements(A: T.Tensor((64, 64), FP32), B: T.Tensor((32, 32), FP32)):
    with T.Kernel(1):
        a = T.alloc_shared((32, 32), FP32)
        T.copy(A[1, 1], a)
        T.copy(a, B)


@T.prim_func
def padded(A: T.Tensor((32, 40), BF16), B: T.Tensor((40, 32), BF16), C: T.Tensor((32, 32), BF16)):
    with T.Kernel(1):
        a = T.alloc_shared((32, 40), BF16)
        b = T.alloc_shared((40, 32), BF16)
        c = T.alloc_fragment((32, 32), FP32)
        T.copy(A, a)
        for i, j in T.Parallel(32, 40):
            a[i, j] = a[i, j] + 1.0
        T.copy(B, b)
        T.clear(c)
        T.gemm(a, b, c)
        T.copy(c, C)


@T.prim_func
def totals(A: T.Tensor((32, 96), FP32), B: T.Tensor((32,), FP32)):
    with T.Kernel(1):
        a = T.alloc_shared((32, 32), FP32)
        s = T.alloc_fragment((32,), FP32)
        T.clear(s)
        for k in T.serial(3):
            T.copy(A[0, k * 32], a)
            T.reduce_sum(a, s, dim=1, clear=False)
        T.copy(s, B)


@T.prim_func
def unused(A: T.Tensor((32, 32), FP32), B: T.Tensor((32, 32), FP32), C: T.Tensor((32, 32), FP32)):
    with T.Kernel(1):
        a = T.alloc_shared((32, 32), FP32)
        b = T.alloc_shared((32, 32), FP32)
        T.copy(A, a)
        T.copy(B, b)
        T.copy(a, C)


@T.prim_func
def triangle(A: T.Tensor((160, 160), FP32), B: T.Tensor((160, 32), FP32)):
    with T.Kernel(5) as bx:
        a = T.alloc_shared((32, 32), FP32)
        s = T.alloc_fragment((32, 32), FP32)
        T.clear(s)
        for k in T.serial(bx + 1):
            T.copy(A[bx * 32, k * 32], a)
            for i, j in T.Parallel(32, 32):
                s[i, j] = s[i, j] + a[i, j]
        T.copy(s, B[bx * 32, 0])


@T.prim_func
def masked(A: T.Tensor((192, 32), "bfloat16"), B: T.Tensor((192, 32), "bfloat16"), C: T.Tensor((192, 64), FP32)):
    with T.Kernel(3) as bx:
        a = T.alloc_shared((64, 32), "bfloat16")
        b = T.alloc_shared((64, 32), "bfloat16")
        p = T.alloc_fragment((64, 64), FP32)
        s = T.alloc_fragment((64, 64), FP32)
        T.clear(s)
        T.copy(A[bx * 64, 0], a)
        for k in T.serial(bx + 1):
            T.copy(B[k * 64, 0], b)
            T.clear(p)
            T.gemm(a, b, p, transpose_B=True)
            for i, j in T.Parallel(64, 64):
                p[i, j] = T.if_then_else(bx * 64 + i >= k * 64 + j, p[i, j], 0)
            for i, j in T.Parallel(64, 64):
                s[i, j] = s[i, j] + p[i, j]
        T.copy(s, C[bx * 64, 0])


_GEMM = gemm(256, 256, 512, 64, 64, 64), {"cores": (2, 2)}
KERNELS: dict[str, Any] = {
    "A0.1": double, "A0.2": strided(2, 6, 2), "A0.3": scanned("cumsum", (32, 32), 1), "A0.4": ring(4, 2),
    "A0.5": persistent, "A0.6": narrow, "A0.7": branches, "A0.8": gathered, "A0.9": grouped, "A0.10": scalars,
    "A0.11": decided, "A0.12": direct, "A0.13": deep, "A0.14": rows, "A0.15": converted, "A0.16": branching,
    "A0.17": placed, "A0.18": (split_k(64, 64, 256, 4), {"partials": "auto"}), "A0.19": summed,
    "A0.20": masked,
    "A2.1": elements, "A2.2": padded, "A2.3": totals, "A2.4": unused, "A2.5": double,
    "B1.1": _GEMM, "B1.2": gemm(512, 512, 512, 64, 64, 64), "B1.3": (triangle, {"cores": (2, 1)}),
    "D1.1": _GEMM, "D1.2": double,
    "D5.1": double, "D5.2": double,
}  # fmt: skip


@pytest.mark.parametrize("letter", [part.letter for step in PIPELINE for part in step.parts])
def test_part(letter: str, pass_golden: PassGolden) -> None:
    kernel, options = KERNELS[letter] if isinstance(KERNELS[letter], tuple) else (KERNELS[letter], {})
    pass_golden(letter, Shown("what it changes", kernel, options))
