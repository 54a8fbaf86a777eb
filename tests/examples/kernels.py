# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false
# pyright: reportIndexIssue=false, reportUnusedVariable=false, reportCallIssue=false, reportArgumentType=false
# ruff: noqa: F841, B007
"""KernelError."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ttexplore as ttx
import ttexplore.language as T


def k001() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((64, 64), "bfloat16")):
        with T.Kernel(1) as bx:
            T.copy(A[0:64, 32:96], B)

    return ttx.explore(kernel)


def k002() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((64, 32), "bfloat16")):
        with T.Kernel(1) as bx:
            T.copy(A, B)

    return ttx.explore(kernel)


def k003() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((64, 64), "bfloat16")):
        with T.Kernel(1) as bx:
            a = T.alloc_shared((64, 64), "bfloat16")
            for i, j in T.Parallel(64, 64):
                a[i] = 1.0

    return ttx.explore(kernel)


def k004() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((64, 64), "bfloat16")):
        with T.Kernel(64 / 32) as bx:
            T.copy(A, B)

    return ttx.explore(kernel)


def k005() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((64, 64), "bfloat16")):
        a = T.alloc_shared((64, 64), "bfloat16")
        with T.Kernel(1) as bx:
            T.copy(A, a)

    return ttx.explore(kernel)


def k006() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((64, 64), "bfloat16")):
        with T.Kernel(1) as bx:
            a = T.alloc_shared((64, 64), "bfloat16")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            T.gemm(a, a, c)
            T.copy(c, B)

    return ttx.explore(kernel)


def k007() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((64, 64), "bfloat16")):
        with T.Kernel(1) as bx:
            a = T.alloc_shared((64, 64), "bfloat16")
            T.copy(A, a)

    return ttx.explore(kernel)


def k008() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((64, 64), "bfloat16")):
        with T.Kernel(1) as bx:
            a = T.alloc_shared((64, 64), "bfloat16")
            T.fill(a, A)

    return ttx.explore(kernel)


def k009() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float33")):
        with T.Kernel(1) as bx:
            T.clear(A)

    return ttx.explore(kernel)


def k010() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((64, 64), "bfloat16")):
        with T.Kernel(2) as bx:
            for i in bx:
                T.copy(A, B)

    return ttx.explore(kernel)


def k011() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((64, 64), "bfloat16")):
        with T.Kernel(1) as bx:
            T.cpoy(A, B)

    return ttx.explore(kernel)


def k012(tmp_path: Path) -> Any:
    """A loop `for i in T.serial(flash_attn.size())`, with `import flash_attn` at the top of the file."""
    (tmp_path / "kernels.py").write_text(
        "import flash_attn\n"
        "import tilelang.language as T\n"
        "@T.prim_func\n"
        "def kernel(A: T.Tensor((64, 64))):\n"
        "    with T.Kernel(1) as bx:\n"
        "        for i in T.serial(flash_attn.size()):\n"
        "            T.clear(A)\n"
    )
    return ttx.explore(f"{tmp_path}/kernels.py::kernel")


def k013() -> Any:
    M = T.dynamic("M")

    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((64, 64), "bfloat16")):
        with T.Kernel(M) as bx:
            a = T.alloc_shared((64, 64), "bfloat16")
            T.copy(A, a)
            T.copy(a, B)

    return ttx.explore(kernel)


def k014() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((96, 32), "bfloat16"), B: T.Tensor((32, 32), "bfloat16")):
        with T.Kernel(1) as bx:
            row = 0
            for k in range(3):
                T.copy(A[row, 0], B)
                row += 32

    return ttx.explore(kernel)


def k015() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((128, 64), "bfloat16"), B: T.Tensor((128, 64), "bfloat16")):
        with T.Kernel(1, threads=256) as bx:
            a = T.alloc_shared((64, 64), "bfloat16")
            full = T.alloc_barrier(128)
            for k in range(2):
                with T.ws(0):
                    T.copy(A[k * 64, 0], a)
                    T.barrier_arrive(full)
                with T.ws(1):
                    T.barrier_wait(full, k % 2)
                    T.copy(a, B[k * 64, 0])

    return ttx.explore(kernel)


def k016() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((64, 64), "bfloat16")):
        with T.Kernel(1, threads=256) as bx:
            a = T.alloc_shared((64, 64), "bfloat16")
            full = T.alloc_barrier(256)
            with T.ws(0):
                T.copy(A, a)
                T.barrier_arrive(full)
            with T.ws(1):
                T.barrier_wait(full, 0)
                T.copy(a, B)

    return ttx.explore(kernel)


def k017() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((128, 32), "float32"), S: T.Tensor((32, 32), "float32")):
        with T.Kernel(4) as bx:
            a = T.alloc_shared((32, 32), "float32")
            s = T.alloc_shared((32, 32), "float32")
            T.copy(A[bx * 32, 0], a)
            T.copy(S, s)
            for i, j in T.Parallel(32, 32):
                s[i, j] = s[i, j] + a[i, j]
            T.copy(s, S)

    return ttx.explore(kernel)


def k018() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((64, 64), "bfloat16")):
        with T.Kernel(1) as bx:
            a = T.alloc_shared((64, 64), "bfloat16")
            T.copy(A, a)
        with T.Kernel(1) as bx:
            T.copy(a, B)

    return ttx.explore(kernel)
