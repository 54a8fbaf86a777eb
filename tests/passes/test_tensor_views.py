# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false
"""T.reshape, T.view and T.Tensor(..., A.data) of tensors, against NumPy's reshape, element by element."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from ttexplore.errors import Unsupported

F32 = "float32"
Shape = tuple[int, ...]


def results(kernel: Any, *arrays: Any) -> list[Any]:
    """The outputs of the emulator, to which those of the interpreter are equal."""
    exploration = ttx.explore(kernel)
    assert exploration.error is None, str(exploration.error)
    emulated, interpreted = (exploration.run(arrays, backend=name) for name in ("emulator", "interpreter"))
    assert emulated.passed, emulated.message
    for one, other in zip(emulated.outputs, interpreted.outputs, strict=True):
        np.testing.assert_array_equal(one, other)
    return [*emulated.outputs]


def numbered(*shape: int) -> Any:
    """Numbers that are all different, and none of them 0."""
    return np.arange(1, math.prod(shape) + 1, dtype=np.float32).reshape(shape)


def block_starts(view: Shape, block: Shape) -> list[Shape]:
    """Where the blocks of a tensor begin, in the order of :func:`starts`."""
    return list(itertools.product(*(range(0, length, extent) for length, extent in zip(view, block, strict=True))))


def starts(number: Any, view: Shape, block: Shape) -> tuple[Any, ...]:
    """Where a block begins, by its number."""
    at: list[Any] = []
    for length, extent in reversed(list(zip(view, block, strict=True))):
        count = -(-length // extent)
        at.insert(0, number % count * extent)
        number = number // count
    return tuple(at)


def loads(base: Shape, view: Shape, block: Shape) -> Any:
    """Every block of a view, one after another."""
    count = len(block_starts(view, block))

    @T.prim_func
    def kernel(A: T.Tensor(base, F32), Out: T.Tensor((count, *block), F32)):
        v = T.Tensor(view, F32, A.data)
        with T.Kernel(count) as b:
            a = T.alloc_shared(block, F32)
            T.copy(v[starts(b, view, block)], a)
            T.copy(a, Out[(b, *[0] * len(block))])

    return kernel


def stores(base: Shape, view: Shape, block: Shape) -> Any:
    """Every block of a view, from one after another."""
    count = len(block_starts(view, block))

    @T.prim_func
    def kernel(In: T.Tensor((count, *block), F32), A: T.Tensor(base, F32)):
        v = T.reshape(T.view(A, (math.prod(base),)), view)
        with T.Kernel(count) as b:
            a = T.alloc_shared(block, F32)
            T.copy(In[(b, *[0] * len(block))], a)
            T.copy(a, v[starts(b, view, block)])

    return kernel


# Base, view, block. The last axis is split, merged and cut; blocks divide it or do not; whole tiles and less.
VIEWS: list[tuple[Shape, Shape, Shape]] = [
    ((2, 32, 2, 32), (64, 64), (32, 64)),
    ((32, 64), (64, 32), (64, 32)),
    ((48, 64), (64, 48), (32, 32)),
    ((64, 64), (4096,), (128,)),
    ((2048,), (32, 64), (32, 32)),
    ((100, 32), (2, 50, 32), (1, 32, 32)),
    ((5, 3, 7), (3, 35), (2, 20)),
    ((16, 4), (16, 4, 1, 1), (16, 4, 1, 1)),
    ((1, 64), (64, 1), (48, 1)),
    ((4, 32, 16), (64, 16, 2), (16, 8, 1)),
]


@pytest.mark.parametrize(("base", "view", "block"), VIEWS)
def test_blocks_that_are_loaded(base: Shape, view: Shape, block: Shape) -> None:
    """What lies past the end of the view, along any axis, is zero."""
    a = numbered(*base)
    (found,) = results(loads(base, view, block), a)
    ends = [(0, extent) for extent in block]
    padded = np.pad(a.reshape(view), ends)
    want = [padded[tuple(map(slice, at, np.add(at, block)))] for at in block_starts(view, block)]
    np.testing.assert_array_equal(found, np.stack(want))


@pytest.mark.parametrize(("base", "view", "block"), VIEWS)
def test_blocks_that_are_stored(base: Shape, view: Shape, block: Shape) -> None:
    """What lies past the end of the view, along any axis, is stored nowhere."""
    given = numbered(len(block_starts(view, block)), *block)
    (found,) = results(stores(base, view, block), given)
    padded = np.zeros(np.add(view, block), np.float32)
    for one, at in zip(given, block_starts(view, block), strict=True):
        padded[tuple(map(slice, at, np.add(at, block)))] = one
    np.testing.assert_array_equal(found, padded[tuple(map(slice, view))].reshape(base))


def test_operands_of_products_and_reductions() -> None:
    """Heads that are flattened on both sides of a product, and reduced."""

    @T.prim_func
    def kernel(
        A: T.Tensor((2, 32, 2, 32), "bfloat16"), W: T.Tensor((2, 32, 64), "bfloat16"),
        Out: T.Tensor((2, 32, 2, 32), F32), Most: T.Tensor((2, 32), F32),
    ):  # fmt: skip
        a, w, out = T.reshape(A, (64, 64)), T.reshape(W, (64, 64)), T.reshape(Out, (64, 64))
        with T.Kernel(2) as by:
            most = T.alloc_fragment((32,), "bfloat16")
            T.gemm(a[by * 32 : by * 32 + 32, :], w, out[by * 32 : by * 32 + 32, :], clear_accum=True)
            T.reduce_max(a[by * 32 : by * 32 + 32, :], most, dim=1)
            T.copy(most, Most[by, 0])

    a, w = (numbered(*shape) % 7 for shape in ((2, 32, 2, 32), (2, 32, 64)))
    out, most = results(kernel, a, w)
    np.testing.assert_array_equal(out.reshape(64, 64), a.reshape(64, 64) @ w.reshape(64, 64))
    np.testing.assert_array_equal(most.reshape(64), a.reshape(64, 64).max(1))


def test_elements_and_places() -> None:
    """Elements of views in T.Parallel, before and past the rows of the view; elements that decide and say where."""

    @T.prim_func
    def kernel(
        A: T.Tensor((48, 64), F32), N: T.Tensor((2, 3), "int32"), Sums: T.Tensor((64, 64), F32),
        Chosen: T.Tensor((2, 32, 2, 32), F32),
    ):  # fmt: skip
        v, n, chosen = T.reshape(A, (64, 48)), T.reshape(N, (3, 2)), T.reshape(Chosen, (64, 64))
        with T.Kernel(2) as b:
            s, c = T.alloc_fragment((32, 64), F32), T.alloc_shared((32, 32), F32)
            for i, j in T.Parallel(32, 64):
                s[i, j] = v[b * 32 + i, j] + v[b * 32 + i, j - 1] * 2.0
            T.copy(s, Sums[b * 32, 0])
            T.fill(c, 1.0)
            if n[1, b] > 0:
                T.copy(v[n[2, b], 16], c)
            for i, j in T.Parallel(32, 32):
                chosen[b * 32 + i, j] = c[i, j]
                chosen[b * 32 + i, 32 + j] = -c[i, j]

    a = numbered(48, 64)
    v = np.pad(a.reshape(64, 48), ((0, 0), (1, 16)))
    for signs in ((1, -1), (-1, 1)):
        sums, chosen = results(kernel, a, np.array([[0, 0, signs[0]], [signs[1], 5, 30]], np.int32))
        np.testing.assert_array_equal(sums, v[:, 1:] + 2 * v[:, :-1])
        halves = [
            v[at : at + 32, 17:49] if sign > 0 else np.ones((32, 32)) for at, sign in zip((5, 30), signs, strict=True)
        ]
        want = np.concatenate([np.concatenate([half, -half], 1) for half in halves])
        np.testing.assert_array_equal(chosen.reshape(64, 64), want)


def test_fills_copies_and_other_dtypes() -> None:
    @T.prim_func
    def kernel(
        A: T.Tensor((32, 2, 32), "int8"), Filled: T.Tensor((32, 64), F32), Copied: T.Tensor((64, 32), "int8"),
        Cast: T.Tensor((16, 128), "bfloat16"),
    ):  # fmt: skip
        a, filled = T.reshape(A, (32, 64)), T.reshape(Filled, (64, 32))
        copied, cast = T.reshape(Copied, (32, 64)), T.reshape(Cast, (32, 64))
        with T.Kernel(2) as b:
            c = T.alloc_shared((16, 64), F32)
            T.fill(filled[b * 32 : b * 32 + 32, 0:16], 1.5)
            T.fill(filled[b * 32 : b * 32 + 32, 16:32], 2.5)
            T.copy(a[b * 16 : b * 16 + 16, :], copied[b * 16 : b * 16 + 16, :])
            T.copy(a[b * 16, 0], c)
            T.copy(c, cast[b * 16, 0])

    a = (numbered(32, 2, 32) % 251 - 125).astype(np.int8)
    filled, copied, cast = results(kernel, a)
    np.testing.assert_array_equal(filled.reshape(64, 32), np.repeat([[1.5, 2.5]], 16, 1).repeat(64, 0))
    np.testing.assert_array_equal(copied.reshape(-1), a.reshape(-1))
    np.testing.assert_array_equal(cast.reshape(-1), a.reshape(-1))


def test_blocks_of_more_dimensions_with_other_columns() -> None:
    """Axes of one element do not count between ranks, also where a block has one in place of the columns."""

    @T.prim_func
    def kernel(A: T.Tensor((16, 4), F32), B: T.Tensor((16, 4), "bfloat16")):
        with T.Kernel(1):
            a = T.alloc_shared((16, 4, 1), F32)
            T.copy(A, a)
            T.copy(a, B)

    a = numbered(16, 4)
    (found,) = results(kernel, a)
    np.testing.assert_array_equal(found, a)


@T.macro
def stored_whole(v: Any, a: Any) -> None:
    for i, j in T.Parallel(32, 64):
        v[i, j] = a[i, j] * 2.0


@T.macro
def stored_past_the_end(v: Any, a: Any) -> None:
    w = T.reshape(v, (128, 16))
    for i, j in T.Parallel(32, 64):
        w[i, j] = a[i, j]


@T.macro
def added(v: Any, a: Any) -> None:
    T.atomic_add(v[0, 0], a)


@T.macro
def of_unknown_size(v: Any, a: Any) -> None:
    T.reshape(v, (T.dynamic("m"), 64))


@pytest.mark.parametrize(("stored", "message", "hint"), [
    (stored_whole, "T.Parallel stores to Out[i, j // 32, j % 32]", "T.copy a block on the chip"),
    (stored_past_the_end, "is stored to, and may be past the 16 elements of axis 1", "T.copy a block to the view"),
    (added, "it is not a block of 32 x 64 elements there", ""),
    (of_unknown_size, "T.reshape with the size m, which is not known", "constant sizes"),
])  # fmt: skip
def test_uses_that_are_refused(stored: Any, message: str, hint: str) -> None:
    def traced() -> Any:
        @T.prim_func
        def kernel(A: T.Tensor((32, 64), F32), Out: T.Tensor((32, 2, 32), F32)):
            v = T.reshape(Out, (32, 64))
            with T.Kernel(1):
                a = T.alloc_shared((32, 64), F32)
                T.copy(A, a)
                stored(v, a)

        return kernel

    try:
        error = ttx.explore(traced()).error
    except Unsupported as raised:
        error = raised
    assert isinstance(error, Unsupported)
    assert message in error.message
    assert hint in error.hint
    assert error.span is not None


@pytest.mark.parametrize("kind", ["add", "max"])
@pytest.mark.parametrize(("shape", "base", "at"), [
    ((64, 32), (2, 32, 32), lambda by: (by * 32, 0)),
    ((64, 32), (2, 32, 32), lambda by: (0, 0)),
    ((2, 32, 32), (64, 32), lambda by: (by, 0, 0)),
    ((2, 64, 32), (128, 32), lambda by: (by, 32, 0)),
])  # fmt: skip
def test_blocks_of_views_are_updated(kind: str, shape: Any, base: Any, at: Any) -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32, 32), "float32"), C: T.Tensor(base, "float32")):
        view = T.reshape(C, shape)
        with T.Kernel(2) as by:
            x = T.alloc_shared((32, 32), "float32")
            T.copy(A, x)
            getattr(T, f"atomic_{kind}")(view[at(by)], x)

    random = np.random.default_rng(1)
    a, c = (random.integers(-9, 9, size).astype(np.float32) for size in ((32, 32), base))
    wanted = c.copy().reshape(shape)
    for by in range(2):
        *before, row, column = at(by)
        block = wanted[(*before, slice(row, row + 32), slice(column, column + 32))]
        block[...] = block + a if kind == "add" else np.maximum(block, a)
    exploration = ttx.explore(kernel)
    assert exploration.error is None, str(exploration.error)
    for backend in ("interpreter", "emulator"):
        run = exploration.run([a, c], backend=backend)
        assert run.passed, run.message
        assert np.array_equal(run.outputs[0], wanted.reshape(base))


def test_blocks_of_views_with_another_shape_in_the_tensor_are_not_updated() -> None:
    with pytest.raises(Unsupported) as caught:

        @T.prim_func
        def kernel(A: T.Tensor((32, 32), "float32"), C: T.Tensor((64, 32), "float32")):
            view = T.reshape(C, (32, 64))
            with T.Kernel(2) as by:
                x = T.alloc_shared((32, 32), "float32")
                T.copy(A, x)
                T.atomic_add(view[0, by * 32], x)

    assert caught.value.code == "TTX-L006"
    assert "over the memory of C (64, 32): it is not a block of 32 x 32 elements there" in caught.value.message
