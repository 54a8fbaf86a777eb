# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false
"""T.reshape and T.view against NumPy, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus.reshaped import read_and_stored, weighted_scores
from ttexplore.errors import KernelError, TTExploreError, Unsupported


def run(kernel: Any, arrays: list[Any] | None = None) -> tuple[list[Any], Any]:
    """The inputs, and the outputs of the emulator; every step of the lowering is right."""
    exploration = ttx.explore(kernel)
    assert exploration.error is None, str(exploration.error)
    given = list(exploration.inputs()) if arrays is None else arrays
    check = exploration.check(given)
    assert check, str(check)
    made = exploration.run(given)
    assert made.passed, made.message
    return given, made.outputs


def numbered(*shape: int) -> Any:
    """Numbers that are all different."""
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


@pytest.mark.parametrize(("queries", "heads"), [(1, 64), (2, 32), (4, 16)])
def test_sums_over_the_heads_of_a_product(queries: int, heads: int) -> None:
    (k, q, w), (found,) = run(weighted_scores(queries, heads))
    scores = np.maximum(k.astype(np.float64) @ q.astype(np.float64).T, 0).reshape(64, queries, heads)
    np.testing.assert_allclose(found, (scores * w).sum(2), rtol=2e-2, atol=0.2)


@pytest.mark.parametrize(("shape", "other", "dim"), [
    ((32, 64), (64, 32), 1), ((32, 64), (64, 32), 0), ((2, 32, 32), (64, 32), 0), ((4, 6, 8), (12, 16), 1),
    ((9, 20), (6, 30), 0), ((512,), (16, 32), 1), ((5, 3, 7), (3, 35), 0),
])  # fmt: skip
def test_a_block_in_two_shapes(shape: tuple[int, ...], other: tuple[int, int], dim: int) -> None:
    (a,), (twice, most, stored) = run(read_and_stored(shape, other, dim), [numbered(*shape)])
    np.testing.assert_array_equal(twice, a.reshape(other) * 2)
    np.testing.assert_array_equal(most, a.reshape(other).max(dim))
    np.testing.assert_array_equal(stored, a * 2)


@pytest.mark.parametrize(
    ("shape", "other"), [((20, 16), (40, 8)), ((20, 16), (8, 40)), ((4, 6, 8), (12, 16)), ((512,), (16, 32))]
)
def test_a_view_that_is_stored_to(shape: tuple[int, ...], other: tuple[int, int]) -> None:
    """T.Parallel over the view's shape changes the block in place."""

    @T.prim_func
    def kernel(A: T.Tensor(shape, "float32"), Out: T.Tensor(shape, "float32")):
        with T.Kernel(1):
            a, r = T.alloc_shared(shape, "float32"), T.alloc_fragment((other[0],), "float32")
            v = T.reshape(a, other)
            T.copy(A, a)
            T.reduce_max(v, r, dim=1)
            for i, j in T.Parallel(*other):
                if j > 2:
                    v[i, j] = v[i, j] - r[i] * 0.5 + i
            T.copy(a, Out)

    (a,), (found,) = run(kernel, [numbered(*shape)])
    want = a.reshape(other).copy()
    want[:, 3:] += np.arange(other[0])[:, None] - want.max(1, keepdims=True) * 0.5
    np.testing.assert_array_equal(found, want.reshape(shape))


def test_elements_are_those_of_one_memory() -> None:
    """What Python read from a view keeps its value when its base is stored to, also where a branch asks for it."""

    @T.prim_func
    def kernel(A: T.Tensor((32, 64), "float32"), N: T.Tensor((2, 4), "int32"), Out: T.Tensor((64, 32), "float32")):
        with T.Kernel(1):
            a, o = T.alloc_shared((32, 64), "float32"), T.alloc_fragment((64, 32), "float32")
            n = T.alloc_shared((2, 4), "int32")
            v, m = T.reshape(a, (64, 32)), T.view(n, shape=(8,), dtype="int32")
            T.copy(A, a)
            T.copy(N, n)
            x = v[1, 3]
            T.fill(a, 5.0)
            if m[6] > 0:
                T.fill(v[32:64, :], 7.0)
            for i, j in T.Parallel(64, 32):
                o[i, j] = v[i, j] + x
            T.copy(o, Out)

    a = numbered(32, 64)
    for sign in (1, -1):
        n = np.full((2, 4), -sign, np.int32)
        n[1, 2] = sign
        _, (found,) = run(kernel, [a, n])
        want = np.full((64, 32), 5.0 + a[0, 35])
        want[32:] += 2 * (sign > 0)
        np.testing.assert_array_equal(found, want)


def test_an_element_of_a_view_that_only_its_base_is_stored_to() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32, 64), "float32"), Out: T.Tensor((64, 32), "float32")):
        with T.Kernel(1):
            a, o = T.alloc_shared((32, 64), "float32"), T.alloc_fragment((64, 32), "float32")
            v = T.reshape(a, (64, 32))
            T.copy(A, a)
            read = [v[1, 3]]
            T.fill(a, 5.0)
            for i, j in T.Parallel(64, 32):
                o[i, j] = v[i, j] + read[0]
            T.copy(o, Out)

    a = numbered(32, 64)
    _, (found,) = run(kernel, [a])
    np.testing.assert_array_equal(found, np.full((64, 32), 5.0 + a[0, 35], np.float32))


def test_products_and_sums_that_a_block_keeps() -> None:
    """Into a block of another shape, whose old values count; of a part; and through a view of a view."""

    @T.prim_func
    def kernel(
        A: T.Tensor((32, 64), "bfloat16"), B: T.Tensor((32, 32), "bfloat16"), C: T.Tensor((32, 64), "float32"),
        R: T.Tensor((2, 32), "float32"),
    ):  # fmt: skip
        with T.Kernel(1):
            a, b = T.alloc_shared((32, 64), "bfloat16"), T.alloc_shared((32, 32), "bfloat16")
            c, r = T.alloc_fragment((32, 64), "float32"), T.alloc_fragment((2, 32), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.fill(c, 1.0)
            T.gemm(T.reshape(T.reshape(a, (2048,)), (64, 32)), b, T.reshape(c, (64, 32)))
            T.fill(r, 2.0)
            T.reduce_sum(T.reshape(c, (2, 32, 32)), r, dim=1, clear=False)
            T.copy(c, C)
            T.copy(r, R)

    (a, b), (c, r) = run(kernel)
    want = a.astype(np.float64).reshape(64, 32) @ b.astype(np.float64) + 1
    np.testing.assert_allclose(c, want.reshape(32, 64), rtol=1e-2, atol=0.1)
    np.testing.assert_allclose(r, want.reshape(2, 32, 32).sum(1) + 2, rtol=1e-2, atol=0.5)


def test_tensors_have_views_as_well() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 32), "float32"), Out: T.Tensor((32, 32), "float32")):
        halves = T.reshape(A, (2, 32, 32))
        with T.Kernel(1):
            a = T.alloc_shared((32, 32), "float32")
            T.copy(halves[1, 0, 0], a)
            T.copy(a, Out)

    (a,), (found,) = run(kernel)
    np.testing.assert_array_equal(found, a[32:])


@pytest.mark.parametrize(("made", "error", "message", "hint"), [
    (lambda a: T.reshape(a, (3, 5)), KernelError, "a tensor of (3, 5) float32 over the memory of a, which is (32, 64)",
     "give both the same dtype and number of elements"),
    (lambda a: T.view(a, (32, 32), "int32"), KernelError, "T.view of a, which has 65,536 bits, as (32, 32) int32 of",
     "the same number of bits"),
    (lambda a: T.reshape(3, (3, 5)), KernelError, "T.reshape takes a buffer or a tensor, not 3", "index the result"),
    (lambda a: T.reshape(T.alloc_var("int32"), (1, 1)), KernelError, "T.reshape takes a buffer or a tensor", "index"),
])  # fmt: skip
def test_what_is_no_view(made: Callable[[Any], Any], error: type[TTExploreError], message: str, hint: str) -> None:
    with pytest.raises(error) as caught:

        @T.prim_func
        def kernel(A: T.Tensor((32, 64), "float32"), Out: T.Tensor((32, 64), "float32")):
            with T.Kernel(1):
                a = T.alloc_shared((32, 64), "float32")
                T.copy(A, a)
                v = made(a)
                T.copy(v, Out)

    assert message in caught.value.message
    assert hint in caught.value.hint
    assert caught.value.span is not None


def test_a_part_that_ends_inside_of_a_row_is_not_stored() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32, 64), "float32"), Out: T.Tensor((32, 64), "float32")):
        with T.Kernel(1):
            a, o = T.alloc_shared((32, 64), "float32"), T.alloc_fragment((8, 32), "float32")
            v = T.reshape(a, (64, 32))
            T.copy(A, a)
            T.fill(o, 3.0)
            T.copy(o, v[3:11, :])
            T.copy(a, Out)

    error = ttx.explore(kernel).error
    assert isinstance(error, Unsupported)
    assert error.code == "TTX-L003"
    assert error.span is not None
    assert error.hint
