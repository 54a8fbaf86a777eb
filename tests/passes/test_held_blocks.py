# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
"""Decisions by elements of blocks that hold a part of a tensor, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus.index_tensors import masked_by_block
from tests.passes.test_limited_stores import Numbers, held
from ttexplore.errors import Unsupported


@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool"])
@pytest.mark.parametrize("through", ["fragment", "both"])
def test_a_block_that_holds_a_mask(dtype: str, through: str) -> None:
    def expected(a: Numbers, mask: Numbers) -> Numbers:
        blocks = a.reshape(2, 32, 4, 64)
        return (blocks * (mask != 0)[:, None, :, None]).sum(2).reshape(64, 64)

    mask = np.array([[0, 1, 0, 1], [1, 0, 0, 0]]).astype(dtype)
    exploration = held(masked_by_block(dtype, through), {1: mask}, expected, 1e-5)
    assert not any(one.name.startswith("mask") for one in exploration.plan.buffers)


def test_places_and_lengths_by_elements_of_blocks() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((128, 64), "float32"), S: T.Tensor((3, 3), "int32"), B: T.Tensor((96, 64), "float32")):
        with T.Kernel(3) as bx:
            a = T.alloc_shared((32, 64), "float32")
            b = T.alloc_fragment((32, 64), "float32")
            s = T.alloc_shared((3,), "int32")
            T.copy(S[bx, :], s)
            T.clear(b)
            first = s[0]
            for k in range(s[1]):
                T.copy(A[first + k * 32, 0], a)
                for i, j in T.Parallel(32, 64):
                    b[i, j] += a[i, j]
            for i, j in T.Parallel(32, 64):
                if i < s[2]:
                    B[bx * 32 + i, j] = b[i, j]

    def expected(a: Numbers, s: Numbers) -> Numbers:
        out = np.full((3, 32, 64), np.nan)
        for n in range(3):
            total = sum((a[s[n, 0] + k * 32 :][:32] for k in range(s[n, 1])), np.zeros((32, 64)))
            out[n, : s[n, 2]] = total[: s[n, 2]]
        return out.reshape(96, 64)

    held(kernel, {1: [[0, 2, 32], [33, 1, 7], [5, 0, 0]]}, expected, 1e-5)


@pytest.mark.parametrize("change", ["before", "in the loop"])
def test_a_block_that_was_changed(change: str) -> None:
    """Only the compute kernel knows what it has changed."""

    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float32"), S: T.Tensor((8,), "int32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((32, 64), "float32")
            s = T.alloc_fragment((8,), "int32")
            T.copy(S, s)
            T.clear(a)
            if change == "before":
                for i in T.Parallel(8):
                    s[i] += 1
            for k in range(2):
                if s[k] > 0:
                    T.copy(A[k * 32, 0], a)
                T.copy(a, B[k * 32, 0])
                if change == "in the loop":
                    for i in T.Parallel(8):
                        s[i] += 1

    error = ttx.explore(kernel).error
    assert isinstance(error, Unsupported)
    assert "depends on an element of the block s, which only the compute kernel knows" in error.message


def test_choices_of_indices_have_ranges() -> None:
    """A name for a choice is between its sides, whatever TVM knows of choices."""

    @T.prim_func
    def kernel(A: T.Tensor((128, 64), "float32"), S: T.Tensor((1,), "int32"), B: T.Tensor((128, 64), "float32")):
        with T.Kernel(4) as bx:
            a = T.alloc_shared((32, 64), "float32")
            last = T.if_then_else(bx > S[0], 1, 0)
            T.copy(A[bx * 32, 0], a)
            for i, j in T.Parallel(32, 64):
                a[i, j] = T.if_then_else(last == 1, a[i, j], T.if_then_else(i + 3 * last > j, 1.0, 0.0))
            T.copy(a, B[bx * 32, 0])

    def expected(a: Numbers, s: Numbers) -> Numbers:
        row, column = np.ogrid[:128, :64]
        return np.where(row // 32 > s[0], a, row % 32 > column)

    for s in (-9, 1, 2**20):
        held(kernel, {1: [s]}, expected)


@pytest.mark.parametrize("start", [0, 5, 16, 37])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_vectors_of_tensors_of_any_size_that_start_anywhere(start: int, dtype: str) -> None:
    n = T.dynamic("n")

    @T.prim_func
    def kernel(A: T.Tensor((3, n), dtype), S: T.Tensor((1,), "int32"), B: T.Tensor((3, 64), dtype)):
        with T.Kernel(3) as bx:
            a = T.alloc_fragment((64,), dtype)
            first = S[0]
            T.copy(A[bx, first : first + 64], a)
            for j in T.Parallel(64):
                B[bx, j] = a[j] * 2

    def expected(a: Numbers, s: Numbers) -> Numbers:
        return np.pad(a, ((0, 0), (0, 64)))[:, s[0] : s[0] + 64] * 2

    for size in (70, 110):
        held(ttx.explore(kernel, sizes={"n": size}), {1: [start]}, expected, 1e-2)
