# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false
"""Names that mean something to a pass, to C++ or to the SDK, macros that allocate, and bounds that have names."""

from __future__ import annotations

from typing import Any

import ttexplore.language as T
from tests.corpus.case import Case


def names_of_passes() -> Any:
    """Tensors and buffers that are called as passes would call theirs."""

    @T.prim_func
    def kernel(
        c_out: T.Tensor((64, 64), "float32"), c_partials: T.Tensor((64, 64), "float32"),
        c_operand: T.Tensor((64, 64), "float32"),
    ):  # fmt: skip
        with T.Kernel(2) as work:
            cb = T.alloc_shared((32, 64), "float32")
            c_out_2 = T.alloc_shared((64, 64), "float32")
            c = T.alloc_fragment((32, 64), "float32")
            T.clear(c)
            T.copy(c_partials, c_out_2)
            for item in T.serial(work + 1):
                T.copy(c_out[item * 32, 0], cb)
                T.gemm(cb, c_out_2, c)
                for t, s in T.Parallel(32, 64):
                    c[t, s] = c[t, s] * 0.5 + cb[t, s]
            T.copy(c, c_operand[work * 32, 0])

    return kernel


def names_of_masks() -> Any:
    @T.prim_func
    def kernel(
        a_masked: T.Tensor((50, 50), "float32"), a_masked_2: T.Tensor((50, 64), "float32"),
        zeros: T.Tensor((50, 64), "float32"),
    ):  # fmt: skip
        with T.Kernel(1) as work_start:
            a = T.alloc_shared((50, 50), "float32")
            dst = T.alloc_shared((50, 64), "float32")
            c = T.alloc_fragment((50, 64), "float32")
            T.copy(a_masked, a)
            T.copy(a_masked_2, dst)
            for i, j in T.Parallel(50, 50):
                a[i, j] = T.exp(a[i, j])
            T.gemm(a, dst, c, clear_accum=True)
            T.copy(c, zeros)

    return kernel


def names_of_cpp() -> Any:
    """Tensors, block indices and loops that are called like C++'s words and the SDK's functions."""

    @T.prim_func
    def kernel(
        get_arg_val: T.Tensor((64, 64), "float32"), uint32_t: T.Tensor((64, 64), "float32"),
        namespace: T.Tensor((64, 64), "float32"),
    ):  # fmt: skip
        with T.Kernel(2) as copy_tile:
            kernel_main = T.alloc_shared((32, 64), "float32")
            operator = T.alloc_shared((64, 64), "float32")
            constexpr = T.alloc_fragment((32, 64), "float32")
            T.clear(constexpr)
            T.copy(uint32_t, operator)
            for pack_tile in T.serial(copy_tile + 1):
                T.copy(get_arg_val[pack_tile * 32, 0], kernel_main)
                T.gemm(kernel_main, operator, constexpr)
                for i, j in T.Parallel(32, 64):
                    constexpr[i, j] = constexpr[i, j] * 0.5 + kernel_main[i, j]
            T.copy(constexpr, namespace[copy_tile * 32, 0])

    return kernel


@T.macro
def _scaled(A: Any, B: Any, block: Any, factor: Any) -> None:
    a = T.alloc_shared((32, 64), "bfloat16")
    c = T.alloc_fragment((32, 64), "float32")
    T.copy(A[block * 32, 0], a)
    for i, j in T.Parallel(32, 64):
        c[i, j] = a[i, j] * factor
    T.copy(c, B[block * 32, 0])


@T.macro
def _scaled_twice(A: Any, B: Any, C: Any, block: Any) -> None:
    _scaled(A, B, block, 2.0)
    _scaled(A, C, block, 4.0)


def allocation_in_macro() -> Any:
    @T.prim_func
    def kernel(
        A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((64, 64), "float32"), C: T.Tensor((64, 64), "float32")
    ):  # fmt: skip
        with T.Kernel(2) as bx:
            _scaled_twice(A, B, C, bx)

    return kernel


def named_bounds() -> Any:
    """A region whose length follows from what names stand for."""

    @T.prim_func
    def kernel(A: T.Tensor((128, 64), "bfloat16"), B: T.Tensor((128, 64), "bfloat16")):
        with T.Kernel(2) as bx:
            a = T.alloc_shared((64, 32), "bfloat16")
            number = bx + 1
            start, end = (number - 1) * 64, number * 64
            for k in T.serial(2):
                left = k * 32
                right = left + 32
                T.copy(A[start:end, left:right], a)
                T.copy(a, B[end - 64 : end, left:right])

    return kernel


NAMES = (
    Case("names_of_passes", names_of_passes, {"cores": (1, 1)}),
    Case("names_of_masks", names_of_masks, on_chip=False),
    Case("names_of_cpp", names_of_cpp),
    Case("named_bounds", named_bounds, on_chip=False),
)
