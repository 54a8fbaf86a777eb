# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false, reportOperatorIssue=false
"""Blocks that the writer rearranges, against NumPy; and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus.rearranged import chained, computed_places, deep_blocks, joined_loops, slots, unaligned_parts
from tests.passes.test_parts import HEAD
from tests.said import said
from ttexplore.errors import KernelError


def run(kernel: Any, given: Any = None, **options: Any) -> tuple[list[Any], list[Any], Any]:
    """The inputs as float64, the outputs of interpreter and emulator, which are equal, and the exploration."""
    exploration = ttx.explore(kernel, options=options)
    assert exploration.error is None, str(exploration.error)
    inputs = exploration.inputs()
    if given is None:
        numbers = np.random.default_rng(3)
        given = [numbers.integers(-4, 5, one.shape).astype(one.dtype) for one in inputs]
    check = exploration.check(given)
    assert check, str(check)
    made = [exploration.run(given, backend=one).outputs for one in ("interpreter", "emulator")]
    for one, other in zip(*made, strict=True):
        np.testing.assert_array_equal(one, other)
    return [one.astype(np.float64) for one in given], [one.astype(np.float64) for one in made[1]], exploration


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "int32"])
def test_computed_places(dtype: str) -> None:
    (a, v), (out, w), exploration = run(computed_places(dtype))
    i, j = np.mgrid[:40, :70]
    n = np.arange(64)
    for item in range(2):
        s = a[item * 40 : item * 40 + 40]
        b = s * 3 + 1
        want = b[i, j // 2] * 2 - b[39 - i, (j * 5 + 2) % 64] + s[i // 8, j - j // 10] + v[(i + j) % 50]
        want += v[j % 7] - v[i // 3]
        for k in range(3):
            want += b[i // 2 + k * 10, j % 5 + k]
        np.testing.assert_array_equal(out[item], want)
        np.testing.assert_array_equal(w[item], b[n // 2, n % 2] + b[n % 40, n])
    assert any("is rearranged in line" in one and " 70 single elements" in one for one in said(exploration.plan))


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "int32"])
def test_parts_that_start_inside_of_tiles(dtype: str) -> None:
    (a,), (out, v), _ = run(unaligned_parts(dtype))
    want = np.zeros((70, 64))
    want[9:29, 1:41] = a[3:23, 17:57]
    want[60:65, 33:53] = a[7:12, 5:25] * 2
    for k in range(4):
        want[6 * k + 40 : 6 * k + 46, 3 * k : 3 * k + 3] = a[30:33, 11 * k : 11 * k + 6].T
    want[31:39, 50:63] = 5
    np.testing.assert_array_equal(out, want)
    np.testing.assert_array_equal(v, want[9, 2:35] + a[7:40, 9])


def test_rearranged_blocks_are_operands_of_everything() -> None:
    (a, b), (out, m, s), _ = run(chained())
    j = np.arange(64)
    total, counted = np.zeros((64, 32)), np.zeros(64)
    for k in range(2):
        p = a[:, k * 64 + j // 32 + 2 * (j % 32)]
        total += p @ b[k * 64 : k * 64 + 64]
        counted += total.max(axis=1)[j // 4 * 4]
    np.testing.assert_array_equal(out, total)
    np.testing.assert_array_equal(m, counted)
    np.testing.assert_array_equal(s, p[::-1, 1::2])


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_blocks_of_three_dimensions(dtype: str) -> None:
    (a, v), (out, r, m, s), _ = run(deep_blocks(dtype))
    for item in range(2):
        count = 4 - item
        b = np.zeros((4, 5, 40))
        b[:count] = a[item * 4 : item * 4 + 4] * 2 - v[item * 4 : item * 4 + 4, None]
        np.testing.assert_array_equal(r[item * 4 : item * 4 + 4], b.max(axis=2))
        np.testing.assert_array_equal(m[item * 4 : item * 4 + 4], b.sum(axis=1))
        total = 3 + b.sum(axis=0)
        b += total
        np.testing.assert_array_equal(out[item * 4 : item * 4 + 4], b[:count])
        np.testing.assert_array_equal(s[item * 5 : item * 5 + 5], total)


@pytest.mark.parametrize("clear", [True, False])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_reductions_of_parts_of_blocks_of_three_dimensions(dim: int, clear: bool) -> None:
    shape = [extent for axis, extent in enumerate((2, 5, 40)) if axis != dim]
    held = [(3, 5, 40), (4, 1, 40), (4, 5)][dim]
    low, high = (1, 2) if dim == 0 else (2, 4)

    @T.prim_func
    def kernel(A: T.Tensor((4, 5, 40), "float32"), R: T.Tensor(held, "float32"), S: T.Tensor(shape, "float32")):
        with T.Kernel(1):
            a, s = T.alloc_shared((4, 5, 40), "float32"), T.alloc_fragment(shape, "float32")
            r = T.alloc_fragment(held, "float32")
            T.copy(A, a)
            T.fill(r, 7)
            T.fill(s, 7)
            T.reduce_sum(a[1:3, :, :], s, dim=dim, clear=clear)
            if dim < 2:
                T.reduce_max(a[2:4, :, :], r[low:high, :, :], dim=dim, clear=clear)
            else:
                T.reduce_max(a[2:4, :, :], r[low:high, :], dim=dim, clear=clear)
            T.copy(r, R)
            T.copy(s, S)

    (a,), (r, s), _ = run(kernel)
    want = np.full(held, 7.0)
    want[low:high] = np.maximum(a[2:4].max(axis=dim, keepdims=dim < 2), -np.inf if clear else 7)
    np.testing.assert_array_equal(r, want)
    np.testing.assert_array_equal(s, a[1:3].sum(axis=dim) + (0 if clear else 7))


def test_blocks_of_three_dimensions_with_one_column() -> None:
    """The rows of several matrices, of one element each: they are no elements along the first axis alone."""

    @T.prim_func
    def kernel(A: T.Tensor((40, 5, 1), "float32"), Out: T.Tensor((8, 5, 1), "float32")):
        with T.Kernel(2) as bx:
            a, b = T.alloc_shared((4, 5, 1), "float32"), T.alloc_fragment((4, 5, 1), "float32")
            T.copy(A[bx * 4, 0, 0], a)
            for n, i, j in T.Parallel(4, 5, 1):
                b[n, i, j] = a[n, i, j] * 2
            T.copy(b, Out[bx * 4, 0, 0])

    (a,), (out,), _ = run(kernel)
    np.testing.assert_array_equal(out, a[:8] * 2)

    @T.prim_func
    def apart(A: T.Tensor((40, 3, 5, 1), "float32"), Out: T.Tensor((4, 1, 5, 1), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((4, 1, 5, 1), "float32")
            T.copy(A[0, 1, 0, 0], a)
            T.copy(a, Out)

    error = ttx.explore(apart).error
    assert error is not None
    assert error.message == "A: the rows of a block (20, 1) lie along several axes"


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_slots_of_blocks(dtype: str) -> None:
    (a, b), (out, c), _ = run(slots(dtype))
    want = np.full((3, 32, 40), 4.0)
    want[:2] = a[1:] - a[:2, :, ::-1]
    want[2, 5] = a[0, 3]
    np.testing.assert_array_equal(out, want)
    np.testing.assert_array_equal(c, a[0] @ b + a[1] @ b)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "int32"])
def test_variables_that_count_as_one(dtype: str) -> None:
    (a,), (out, c), _ = run(joined_loops(dtype))
    k, i, j = np.mgrid[:8, :8, :8]
    for item in range(2):
        b = a[item] + 1
        np.testing.assert_array_equal(out[item], 2 * b.reshape(-1))
        want = np.zeros((8, 64))
        want[k, j * 8 + i] = b[i % 6, j] + a[item, k // 2, i] + i
        np.testing.assert_array_equal(c[item], want)


def test_blocks_of_matrices_end_at_sizes_known_when_the_kernel_runs() -> None:
    size = T.dynamic("n")

    @T.prim_func
    def kernel(A: T.Tensor((size, 4, 4), "float32"), B: T.Tensor((size, 4, 4), "float32")):
        with T.Kernel(T.ceildiv(size, 8)) as bx:
            a, b = T.alloc_shared((8, 4, 4), "float32"), T.alloc_fragment((8, 4, 4), "float32")
            T.copy(A[bx * 8, 0, 0], a)
            for n, i, j in T.Parallel(8, 4, 4):
                b[n, i, j] = a[n, j, i] + 1
            T.copy(b, B[bx * 8, 0, 0])

    for n in (16, 21):
        exploration = ttx.explore(kernel, sizes={"n": n})
        assert exploration.error is None, str(exploration.error)
        (a,) = given = exploration.inputs()
        assert exploration.check(given)
        (b,) = exploration.run(given).outputs
        np.testing.assert_array_equal(b, a.transpose(0, 2, 1) + 1)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "int32", "uint8", "int8", "float8_e4m3fn"])
def test_every_dtype_is_copied_exactly(dtype: str) -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32, 40), dtype), Out: T.Tensor((32, 80), dtype)):
        with T.Kernel(1):
            a, b = T.alloc_shared((32, 40), dtype), T.alloc_fragment((32, 80), dtype)
            T.copy(A, a)
            for i, j in T.Parallel(32, 80):
                b[i, j] = a[31 - i, j // 2]
            T.copy(b, Out)

    numbers = np.random.default_rng(1)
    if "int" in dtype:
        low, high = (-(2**31), 2**31) if dtype == "int32" else (-128, 128) if dtype == "int8" else (0, 256)
        a = numbers.integers(low, high, (32, 40)).astype(dtype)
    else:
        a = (numbers.standard_normal((32, 40)) * 3).astype(getattr(ml_dtypes, dtype, None) or dtype)
    _, (out,), _ = run(kernel, [a])
    want = a[::-1].repeat(2, axis=1)
    if dtype == "float16":  # stored as bfloat16
        want = want.astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(out, want.astype(np.float64))


def test_infinity_and_nan_stay_where_they_are() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32, 40), "float32"), Out: T.Tensor((32, 70), "float32")):
        with T.Kernel(1):
            a, b = T.alloc_fragment((32, 40), "float32"), T.alloc_fragment((32, 70), "float32")
            T.copy(A, a)
            for i, j in T.Parallel(32, 40):
                a[i, j] = T.abs(a[i, j])
            for i, j in T.Parallel(32, 70):
                b[i, j] = a[i, j // 2 + 3]
            T.copy(b, Out)

    a = np.random.default_rng(1).standard_normal((32, 40)).astype(np.float32)
    a[3, 7], a[3, 9], a[31, 39] = np.nan, -np.inf, 1e-40
    _, (out,), _ = run(kernel, [a])
    # The SFPU takes denormal numbers for zero.
    a[31, 39] = 0
    np.testing.assert_array_equal(out, np.abs(a)[:, np.arange(70) // 2 + 3])


@pytest.mark.parametrize(
    ("body", "line", "message", "hint"),
    [
        (
            "for i, j in T.Parallel(64, 64):\n    b[i, j] = a[i, 2 * j]", 1,
            "a has 64 elements along axis 1, and column * 2 may be outside", "limit the index: T.max(index, 0)",
        ),
        (
            "for i, j in T.Parallel(64, 64):\n    b[i, j] = a[i, (j + 1) // 2 - 1]", 1,
            "a has 64 elements along axis 1, and (column + 1) // 2 - 1 may be outside", "T.min(index, length - 1)",
        ),
    ],
)  # fmt: skip
def test_places_outside_are_refused(tmp_path: Path, body: str, line: int, message: str, hint: str) -> None:
    file = tmp_path / "kernels.py"
    text = HEAD + "".join(f"        {one}\n" for one in body.split("\n")) + "        T.copy(b, B)\n"
    file.write_text(text)
    error = ttx.explore(f"{file}::kernel").error
    assert isinstance(error, KernelError), str(error)
    assert message in error.message
    assert hint in (error.hint or "")
    assert error.span is not None
    assert error.span.line == HEAD.count("\n") + 1 + line


def test_a_nest_of_one_row_or_column_stores_to_vectors() -> None:
    @T.prim_func
    def kernel(
        A: T.Tensor((6, 70), "float32"), V: T.Tensor((70,), "float32"), W: T.Tensor((40,), "float32"),
        E: T.Tensor((3,), "float32"),
    ):  # fmt: skip
        with T.Kernel(1):
            a, v = T.alloc_shared((1, 70), "float32"), T.alloc_fragment((70,), "float32")
            w, e = T.alloc_fragment((40,), "float32"), T.alloc_fragment((3,), "float32")
            T.clear(v)
            T.clear(w)
            T.clear(e)
            for k in range(6):
                T.copy(A[k, 0], a)
                for i, j in T.Parallel(1, 70):
                    v[j] += a[i, j] * 2.0
                for i, _ in T.Parallel(33, 1):
                    w[i + 5] += a[0, i] + a[0, 1]
                for i, j in T.Parallel(1, 1):
                    e[1] += a[i, j]
            T.copy(v, V)
            T.copy(w, W)
            T.copy(e, E)

    (a,), (v, w, e), _ = run(kernel)
    np.testing.assert_array_equal(v, a.sum(axis=0) * 2)
    np.testing.assert_array_equal(w, np.pad(a[:, :33].sum(axis=0) + a[:, 1].sum(), (5, 2)))
    np.testing.assert_array_equal(e, [0, a[:, 0].sum(), 0])
