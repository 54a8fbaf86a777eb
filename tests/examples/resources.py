# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false
# pyright: reportIndexIssue=false, reportUnusedVariable=false, reportCallIssue=false, reportArgumentType=false
# ruff: noqa: F841
"""ResourceError."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.faults.kernels import difference, product


def r001() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((2048, 2048), "bfloat16"), B: T.Tensor((2048, 2048), "bfloat16")):
        with T.Kernel(1) as bx:
            a = T.alloc_shared((2048, 2048), "bfloat16")
            T.copy(A, a)
            T.copy(a, B)

    return ttx.explore(kernel)


def r002() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((33, 32, 32), "bfloat16"), B: T.Tensor((32, 32), "bfloat16")):
        with T.Kernel(1) as bx:
            a = [T.alloc_shared((32, 32), "bfloat16") for _ in range(33)]
            for n, block in enumerate(a):
                T.copy(A[n, 0, 0], block)
            for i, j in T.Parallel(32, 32):
                for block in a[1:]:
                    a[0][i, j] = a[0][i, j] + block[i, j]
            T.copy(a[0], B)

    return ttx.explore(kernel)


def r003() -> Any:
    return ttx.explore(product(), options={"subblock": (3, 2), "accumulate_dtype": "float32"})


def r004() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((80 * 32, 60 * 32), "bfloat16"), B: T.Tensor((80 * 32, 60 * 32), "bfloat16")):
        with T.Kernel(60, 80) as (bx, by):
            a = T.alloc_shared((32, 32), "bfloat16")
            T.copy(A[by * 32, bx * 32], a)
            T.copy(a, B[by * 32, bx * 32])

    return ttx.explore(kernel, options={"policy": "z_order", "cores": (1, 1)})


def r005() -> Any:
    return ttx.explore(difference(), options={"cores": (9, 9)})


def r006() -> Any:
    return ttx.explore(difference(), options={"layouts": {"A": {"shard": "height", "grid": [2]}}, "cores": (1, 1)})


def r007() -> Any:
    Block = T.Tensor((32, 32), "bfloat16")

    @T.prim_func
    def kernel(
        A: Block, B: Block, D: Block, E: Block, F: Block, G: Block, H: Block, K: Block, L: Block,
        C: T.Tensor((64, 32), "bfloat16"),
    ):  # fmt: skip
        with T.Kernel(2) as bx:
            blocks = []
            for tensor in (A, B, D, E, F, G, H, K, L):
                blocks.append(T.alloc_shared((32, 32), "bfloat16"))
                T.copy(tensor, blocks[-1])
            for i, j in T.Parallel(32, 32):
                for block in blocks[1:]:
                    blocks[0][i, j] = blocks[0][i, j] + block[i, j]
            T.copy(blocks[0], C[bx * 32, 0])

    return ttx.explore(kernel, options={"multicast": dict.fromkeys("ABDEFGHKL", "row")})


def r010(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A check for whose tensors NumPy cannot allocate memory."""

    def exhausted(*_: Any, **__: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr("ttexplore.exploration.lowered.interpret", exhausted)
    return ttx.explore(difference()).check()


def r011() -> Any:
    """A kernel whose own Python calls itself 500 times, in a function that is called 600 calls deep."""
    depth, frame = 0, inspect.currentframe()
    while frame is not None:
        depth, frame = depth + 1, frame.f_back

    def times(value: Any, count: int) -> Any:
        return value if count == 0 else times(value, count - 1) * 2

    def called(calls: int) -> Any:
        if calls:
            return called(calls - 1)

        @T.prim_func
        def kernel(A: T.Tensor((32, 32), "float32"), B: T.Tensor((32, 32), "float32")):
            with T.Kernel(1) as bx:
                a = T.alloc_shared((32, 32), "float32")
                T.copy(A, a)
                for i, j in T.Parallel(32, 32):
                    a[i, j] = times(a[i, j], 500)
                T.copy(a, B)

        return ttx.explore(kernel)

    return called(590 - depth)


def r012() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((1 << 15, 1 << 15), "bfloat16"), B: T.Tensor((1 << 15, 1 << 15), "bfloat16")):
        with T.Kernel(1 << 13, 1 << 14) as (bx, by):
            a = T.alloc_shared((2, 4), "bfloat16")
            T.copy(A[by * 2, bx * 4], a)
            T.copy(a, B[by * 2, bx * 4])

    return ttx.explore(kernel)


def _copied(rows: int, columns: int) -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((rows, columns), "bfloat16"), C: T.Tensor((rows, columns), "bfloat16")):
        with T.Kernel(rows // 32) as bx:
            a = T.alloc_shared((32, columns), "bfloat16")
            T.copy(A[bx * 32, 0], a)
            T.copy(a, C[bx * 32, 0])

    return kernel


def r013() -> Any:
    return ttx.explore(_copied(2**28, 64))


def r014() -> Any:
    return ttx.explore(_copied(2**27, 16), options={"layouts": {"A": {"page": "row"}, "C": {"page": "row"}}})
