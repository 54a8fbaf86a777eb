# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false
"""Running sums and maxima against NumPy, and what is refused."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus.scans import part, scanned
from tests.said import said
from ttexplore.errors import KernelError, Unsupported


def run(kernel: Any, array: Any) -> Any:
    """The emulator's output; every step of the lowering is right."""
    exploration = ttx.explore(kernel)
    assert exploration.error is None, str(exploration.error)
    check = exploration.check([array])
    assert check, str(check)
    made = exploration.run([array])
    assert made.passed, made.message
    return made.outputs[0]


def in_order(function: Any, array: Any, dim: int, reverse: bool) -> Any:
    turned = np.flip(array, dim) if reverse else array
    found = function.accumulate(turned, dim)
    return np.flip(found, dim) if reverse else found


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("shape", "dim"), [((40, 12), 0), ((3, 70), 1), ((40,), 0)])
@pytest.mark.parametrize("name", ["cumsum", "cummax"])
def test_scans_of_float32_are_those_of_numpy_to_the_last_bit(
    name: str, shape: tuple[int, ...], dim: int, reverse: bool
) -> None:
    """Of numbers of very different sizes: a product with a triangle of ones would lose the small ones."""
    random = np.random.default_rng(3)
    array = random.normal(size=(2, *shape)) * 10.0 ** random.integers(-3, 4, (2, *shape))
    array = array.astype(np.float32)
    found = run(scanned(name, shape, dim, reverse=reverse), array)
    want = in_order({"cumsum": np.add, "cummax": np.maximum}[name], array, dim + 1, reverse)
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("in_place", [False, True])
def test_sums_of_int32_are_exact_and_wrap_around(in_place: bool) -> None:
    array = np.random.default_rng(4).integers(-(2**30), 2**30, (2, 6, 40)).astype(np.int32)
    found = run(scanned("cumsum", (6, 40), 1, "int32", in_place=in_place), array)
    np.testing.assert_array_equal(found, np.add.accumulate(array, 2, dtype=np.int32))


def test_elements_before_an_infinity_stay_finite() -> None:
    array = np.ones((2, 4, 40), np.float32)
    array[0, 1, 20], array[1, 2, 10] = np.inf, -np.inf
    exploration = ttx.explore(scanned("cumsum", (4, 40), 1))
    np.testing.assert_array_equal(exploration.run([array]).outputs[0], np.add.accumulate(array, 2))


def test_sums_of_bfloat16_are_rounded_once() -> None:
    array = np.full((2, 300), 1.0, ml_dtypes.bfloat16)
    found = run(scanned("cumsum", (300,), 0, "bfloat16"), array)
    want = np.add.accumulate(array.astype(np.float32), 1)
    # In bfloat16 the sum would stay at 256.
    np.testing.assert_allclose(found.astype(np.float32), want, rtol=2**-8)


def test_a_part_of_a_block_is_scanned() -> None:
    array = np.random.default_rng(5).normal(size=(128, 20)).astype(np.float32)
    blocks = array.reshape(2, 64, 20)
    want = np.exp(np.add.accumulate(blocks[:, 32:], 2) * np.float32(0.125)) - blocks[:, :32]
    np.testing.assert_allclose(run(part(20), array), want.reshape(64, 20), rtol=1e-4, atol=1e-5)


def test_the_plan_says_how_a_scan_is_computed() -> None:
    notes = said(ttx.explore(scanned("cumsum", (32, 48), 1)).plan)
    assert any(one.startswith("T.cumsum of a in line") and "48 turns" in one for one in notes)


def refused(dtype: str, shape: tuple[int, ...], **given: Any) -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((*shape[:-1], 4 * shape[-1]), dtype)):
        with T.Kernel(1):
            a = T.alloc_shared(shape, dtype)
            T.copy(A[tuple(slice(0, size) for size in shape)], a)
            T.cumsum(a, **given)
            T.copy(a, A[tuple(slice(0, size) for size in shape)])

    return kernel


@pytest.mark.parametrize(
    ("dtype", "shape", "given", "message"),
    [
        ("int8", (32, 32), {}, "T.cumsum of a, which is int8"),
        ("float32", (2, 32, 32), {"dim": 0}, "T.cumsum of a along dimension 0 of 3"),
        ("float32", (2, 32, 32), {"dim": 1}, "T.cumsum of a, which is 2 matrices"),
        ("float32", (2, 32, 32), {"dim": 2}, "in loops over n, T.cumsum(a[n, :, :], ..., dim=2)"),
    ],
)
def test_scans_that_are_not_lowered(dtype: str, shape: tuple[int, ...], given: Any, message: str) -> None:
    error = ttx.explore(refused(dtype, shape, **given)).error
    assert isinstance(error, Unsupported)
    assert message in str(error)


def test_scans_of_tensors_are_refused() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32, 32), "float32")):
        with T.Kernel(1):
            T.cumsum(A)

    error = ttx.explore(kernel).error
    assert isinstance(error, Unsupported)
    assert "T.cumsum of A, which is a tensor" in str(error)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dim": 2}, r"dim=2, but a \(32, 32\) has 2 dimensions"),
        ({"dst": (32, 16)}, r"the shapes differ: a \(32, 32\)"),
    ],
)
def test_wrong_scans(given: Any, message: str) -> None:
    with pytest.raises(KernelError, match=message):

        @T.prim_func
        def kernel(A: T.Tensor((32, 32), "float32")):
            with T.Kernel(1):
                a = T.alloc_shared((32, 32), "float32")
                b = T.alloc_shared((32, 16), "float32")
                T.copy(A, a)
                if "dst" in given:
                    T.cumsum(a, b)
                else:
                    T.cumsum(a, **given)


@pytest.mark.parametrize("dim", [1, 2])
def test_one_matrix_after_another(dim: int) -> None:
    """As the hint for a scan of several matrices says."""

    @T.prim_func
    def kernel(A: T.Tensor((3, 5, 40), "float32"), B: T.Tensor((3, 5, 40), "float32")):
        with T.Kernel(1):
            a, b = T.alloc_shared((3, 5, 40), "float32"), T.alloc_shared((3, 5, 40), "float32")
            T.copy(A, a)
            for n in range(3):
                T.cumsum(a[n, :, :], b[n, :, :], dim=dim)
            T.copy(b, B)

    array = np.arange(600, dtype=np.float32).reshape(3, 5, 40) % 17 - 8
    np.testing.assert_allclose(run(kernel, array), np.cumsum(array, dim), atol=1e-3)
