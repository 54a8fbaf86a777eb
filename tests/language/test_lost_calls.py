"""Calls that only a statement of the kernel can execute: none is lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from ttexplore.errors import KernelError


def filled(block: Any) -> None:
    T.fill(block, 1.0)


def copied(source: Any, block: Any) -> None:
    T.copy(source, block)


def summed(block: Any, sums: Any) -> None:
    T.reduce_sum(block, sums, dim=1)


def multiplied(block: Any, product: Any) -> None:
    T.gemm(block, block, product)


def scanned(block: Any) -> None:
    T.cumsum(block, dim=1)


def returned(block: Any) -> Any:
    return T.fill(block, 1.0)


@T.macro
def in_macro(block: Any) -> None:
    T.fill(block, 1.0)


def kernel(what: str) -> Any:
    @T.prim_func
    def main(A: T.Tensor((32, 32), "float32"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1):
            a, c = T.alloc_shared((32, 32), "float32"), T.alloc_fragment((32, 32), "float32")
            s = T.alloc_fragment((32,), "float32")
            T.copy(A, a)
            T.clear(c)
            T.clear(s)
            if what == "fill":
                filled(a)
            if what == "copy":
                copied(A[0:32, 0:32], a)
            if what == "sum":
                summed(a, s)
            if what == "gemm":
                multiplied(a, c)
            if what == "scan":
                scanned(a)
            if what == "list":
                [T.fill(block, 1.0) for block in (a, c)]
            if what == "name":
                named = T.fill(a, 1.0)  # noqa: F841
            if what == "returned":
                returned(a)
            if what == "macro":
                in_macro(a)
            T.copy(a, C)

    return main


@pytest.mark.parametrize("what", ["fill", "copy", "sum", "gemm", "scan", "list", "name"])
def test_calls_that_no_statement_executes_are_refused(what: str) -> None:
    with pytest.raises(KernelError, match=r"no statement of the kernel executes this T\.") as caught:
        ttx.explore(kernel, what=what)
    assert caught.value.code == "TTX-K010"
    assert caught.value.span is not None
    assert "@T.macro" in caught.value.hint


@pytest.mark.parametrize("what", ["returned", "macro"])
def test_calls_that_statements_execute(what: str) -> None:
    outputs = ttx.explore(kernel, what=what).run([np.full((32, 32), 3, np.float32)]).outputs
    np.testing.assert_array_equal(outputs[0], np.ones((32, 32)))
