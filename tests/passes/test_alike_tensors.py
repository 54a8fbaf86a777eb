# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false, reportOperatorIssue=false
"""Tensors and blocks of one dtype and shape at equal indices stay apart wherever expressions are compared."""

from __future__ import annotations

import numpy as np
import pytest
from tvm import tirx

import ttexplore as ttx
import ttexplore.language as T
from tests.passes.test_rearranged import run
from ttexplore.ir.adapter import call
from ttexplore.ir.build import whole_region
from ttexplore.ir.dag import same_expression

BF16, FP32, INT32 = "bfloat16", "float32", "int32"
RNG = np.random.default_rng(7)


def small(*shape, dtype=np.float32):
    return RNG.integers(-4, 5, shape).astype(dtype)


def test_elements_at_places_from_two_tensors() -> None:
    @T.prim_func
    def kernel(
        A: T.Tensor((64, 64), FP32), B: T.Tensor((64, 64), FP32), N: T.Tensor((32,), INT32), M: T.Tensor((32,), INT32),
        Out: T.Tensor((32, 64), FP32), Same: T.Tensor((32, 64), FP32),
    ):  # fmt: skip
        with T.Kernel(1):
            a, b, c = (T.alloc_fragment((32, 64), FP32) for _ in range(3))
            for i, j in T.Parallel(32, 64):
                a[i, j] = A[N[i], j]
            for i, j in T.Parallel(32, 64):
                b[i, j] = A[M[i], j]
            for i, j in T.Parallel(32, 64):
                c[i, j] = B[N[i], j]
            for i, j in T.Parallel(32, 64):
                Out[i, j] = a[i, j] + 16 * b[i, j] + 256 * c[i, j]
            for i, j in T.Parallel(32, 64):
                Same[i, j] = A[2 * i, 63 - j] + 16 * B[2 * i, 63 - j]

    n, m = (RNG.integers(0, 64, 32).astype(np.int32) for _ in range(2))
    given = [small(64, 64), small(64, 64), n, m]
    (a, b, _, _), (out, same), _ = run(kernel, given)
    np.testing.assert_array_equal(out, a[n] + 16 * a[m] + 256 * b[n])
    np.testing.assert_array_equal(same, (a + 16 * b)[::2, ::-1])


def test_branches_that_choose_between_tensors() -> None:
    @T.prim_func
    def kernel(
        A: T.Tensor((64, 64), FP32), B: T.Tensor((64, 64), FP32), N: T.Tensor((4,), INT32), M: T.Tensor((4,), INT32),
        Out: T.Tensor((64, 64), FP32), Rows: T.Tensor((64, 64), FP32),
    ):  # fmt: skip
        with T.Kernel(2) as bx:
            for i, j in T.Parallel(32, 64):
                if i < j:
                    Out[bx * 32 + i, j] = A[bx * 32 + i, j]
                else:
                    Out[bx * 32 + i, j] = B[bx * 32 + i, j]
            c = T.alloc_fragment((32, 64), FP32)
            T.clear(c)
            if N[bx] > 0:
                T.copy(A[bx * 32, 0], c)
            if M[bx] > 0:
                for i, j in T.Parallel(32, 64):
                    c[i, j] += B[bx * 32 + i, j] * 16
            T.copy(c, Rows[bx * 32, 0])

    for n, m in (([1, 0], [0, 1]), ([0, 0], [1, 1]), ([1, 1], [1, 0])):
        given = [small(64, 64), small(64, 64), np.array([*n, 0, 0], np.int32), np.array([*m, 0, 0], np.int32)]
        (a, b, _, _), (out, rows), _ = run(kernel, given)
        i, j = np.mgrid[:64, :64]
        np.testing.assert_array_equal(out, np.where(i % 32 < j, a, b))
        np.testing.assert_array_equal(rows, np.repeat(n, 32)[:, None] * a + 16 * np.repeat(m, 32)[:, None] * b)


def test_stores_whose_ends_come_from_two_tensors() -> None:
    @T.prim_func
    def kernel(
        A: T.Tensor((64, 64), FP32), N: T.Tensor((2,), INT32), M: T.Tensor((2,), INT32), Out: T.Tensor((64, 64), FP32),
        Other: T.Tensor((64, 64), FP32),
    ):  # fmt: skip
        with T.Kernel(2) as bx:
            n, m = N[bx], M[bx]
            for i, j in T.Parallel(32, 64):
                Out[bx * 32 + i, j] = -1.0
            for i, j in T.Parallel(32, 64):
                Other[bx * 32 + i, j] = -1.0
            for i, j in T.Parallel(32, 64):
                if i < n:
                    Out[bx * 32 + i, j] = A[bx * 32 + i, j]
            for i, j in T.Parallel(32, 64):
                if i < m:
                    Other[bx * 32 + i, j] = A[bx * 32 + i, j]

    for n, m in (([5, 32], [17, 0]), ([32, 1], [31, 8])):
        given = [small(64, 64), np.array(n, np.int32), np.array(m, np.int32)]
        (a, _, _), (out, other), _ = run(kernel, given)
        i = np.mgrid[:64, :64][0]
        first, second = (i % 32 < np.repeat(one, 32)[:, None] for one in (n, m))
        np.testing.assert_array_equal(out, np.where(first, a, -1))
        np.testing.assert_array_equal(other, np.where(second, a, -1))


def test_stores_to_the_same_elements_with_ends_from_two_tensors_are_refused() -> None:
    @T.prim_func
    def kernel(
        A: T.Tensor((64, 64), FP32), N: T.Tensor((2,), INT32), M: T.Tensor((2,), INT32), Out: T.Tensor((64, 64), FP32)
    ):  # fmt: skip
        with T.Kernel(2) as bx:
            for i, j in T.Parallel(32, 64):
                if i < N[bx]:
                    Out[bx * 32 + i, j] = A[bx * 32 + i, j]
                if i < M[bx]:
                    Out[bx * 32 + i, j] = A[bx * 32 + i, j] * 16

    assert "other stores to these elements have other conditions" in str(ttx.explore(kernel).error)


def test_conditions_on_two_blocks_do_not_make_one_whole() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32, 64), FP32), B: T.Tensor((32, 64), FP32), Out: T.Tensor((32, 64), FP32)):
        with T.Kernel(1):
            a, b = T.alloc_shared((32, 64), FP32), T.alloc_shared((32, 64), FP32)
            c = T.alloc_fragment((32, 64), FP32)
            v = T.alloc_local((1,), FP32)
            T.copy(A, a)
            T.copy(B, b)
            for i, j in T.Parallel(32, 64):
                if a[i, j] > 0:
                    v[0] = 1.0
                if T.Not(b[i, j] > 0):
                    v[0] = 2.0
                c[i, j] = v[0]
            T.copy(c, Out)

    assert "a turn of T.Parallel reads v before it stores to it" in str(ttx.explore(kernel).error)


def test_tvm_tells_variables_and_buffers_of_one_type_apart() -> None:
    """Not those of regions, which is why passes compare these apart."""
    a, b = (tirx.decl_buffer((4, 4), INT32, "a") for _ in range(2))
    i, j = (tirx.Var("i", INT32) for _ in range(2))
    zero = tirx.const(0, INT32)

    def load(buffer, *indices):
        return tirx.BufferLoad(buffer, [*indices])

    for make in (
        lambda one, v: load(one, v, zero),
        lambda one, v: load(one, v, zero) + v,
        lambda one, v: load(a, load(one, v, j), j),
        lambda one, v: tirx.if_then_else(load(one, v, v) < 3, load(a, i, j), zero),
        lambda one, v: tirx.Cast("float32", load(one, v, j)),
        lambda one, v: tirx.Not(load(one, v, zero) > 0),
        lambda one, v: call("tl.atomic_add", [load(one, v, v), v], dtype=INT32),
    ):
        assert same_expression(make(a, i), make(a, i))
        assert not same_expression(make(a, i), make(b, i))
        assert not same_expression(make(a, i), make(a, j))
    assert same_expression(whole_region(a), whole_region(b))


@pytest.mark.parametrize("dtype", [BF16, FP32])
def test_values_of_a_turn_under_conditions_on_two_blocks(dtype: str) -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32, 64), dtype), B: T.Tensor((32, 64), dtype), Out: T.Tensor((32, 64), FP32)):
        with T.Kernel(1):
            a, b = T.alloc_shared((32, 64), dtype), T.alloc_shared((32, 64), dtype)
            c = T.alloc_fragment((32, 64), FP32)
            v = T.alloc_local((1,), FP32)
            T.copy(A, a)
            T.copy(B, b)
            for i, j in T.Parallel(32, 64):
                v[0] = 8.0
                if a[i, j] > 0:
                    v[0] = 1.0
                if b[i, j] > 0:
                    v[0] = v[0] + 2.0
                c[i, j] = v[0] + 16 * a[i, j] + 256 * b[i, j]
            T.copy(c, Out)

    (a, b), (out,), _ = run(kernel)
    np.testing.assert_array_equal(out, np.where(a > 0, 1, 8) + np.where(b > 0, 2, 0) + 16 * a + 256 * b)


def test_additions_to_one_of_two_tensors() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), FP32), B: T.Tensor((32, 64), FP32), C: T.Tensor((32, 64), FP32)):
        with T.Kernel(2) as bx:
            a = T.alloc_fragment((32, 64), FP32)
            T.copy(A[bx * 32, 0], a)
            for i, j in T.Parallel(32, 64):
                T.atomic_add(B[i, j], a[i, j])
            for i, j in T.Parallel(32, 64):
                T.atomic_add(C[i, j], a[i, j] * 16)

    given = [small(64, 64), small(32, 64), small(32, 64)]
    (a, b, c), (first, second), _ = run(kernel, given)
    np.testing.assert_array_equal(first, b + a[:32] + a[32:])
    np.testing.assert_array_equal(second, c + 16 * (a[:32] + a[32:]))


def test_parts_of_two_blocks_at_equal_places() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32, 64), FP32), B: T.Tensor((32, 64), FP32), Out: T.Tensor((32, 64), FP32)):
        with T.Kernel(1):
            a, b, c = (T.alloc_fragment((32, 64), FP32) for _ in range(3))
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            for i, j in T.Parallel(32, 30):
                c[i, j + 3] = a[i, j + 7] + 16 * b[i, j + 7]
            for i, j in T.Parallel(32, 20):
                c[i, j + 40] = a[31 - i, 2 * j] + 16 * b[31 - i, 2 * j]
            T.copy(c, Out)

    (a, b), (out,), _ = run(kernel)
    want = np.zeros((32, 64))
    want[:, 3:33] = (a + 16 * b)[:, 7:37]
    want[:, 40:60] = (a + 16 * b)[::-1, 0:40:2]
    np.testing.assert_array_equal(out, want)
