"""Shifts by elements, also by more places than there are, and by fewer than none, against NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
from ttexplore.ops.integers import shifted_left, shifted_right

_KERNEL = """
import ttexplore.language as T


@T.prim_func
def kernel(
    A: T.Tensor((32, 64), "{dtype}"), S: T.Tensor((32, 64), "{places}"), N: T.Tensor((4,), "int32"),
    B: T.Tensor((32, 64), "{out}"), C: T.Tensor((32, 64), "{out}"), D: T.Tensor((32, 64), "{out}"),
    E: T.Tensor((32, 64), "{out}"),
):
    with T.Kernel(1) as by:
        a = T.alloc_shared((32, 64), "{dtype}")
        s = T.alloc_shared((32, 64), "{places}")
        b, c, d, e = (T.alloc_shared((32, 64), "{out}") for _ in range(4))
        T.copy(A, a)
        T.copy(S, s)
        for i, j in T.Parallel(32, 64):
            b[i, j] = a[i, j] >> s[i, j]
            c[i, j] = (a[i, j] << s[i, j]) >> 1
            d[i, j] = a[i, j] >> (j % 32)
            e[i, j] = a[i, j] >> N[1]
        T.copy(b, B)
        T.copy(c, C)
        T.copy(d, D)
        T.copy(e, E)
"""
_PLACES = np.array([0, 1, 7, 8, 9, 16, 31, 32, 33, 64, 127, -1, -31, -32, -128, 1000, 2**31 - 1, -(2**31)])


@pytest.mark.parametrize(
    ("dtype", "places"), [("int32", "int32"), ("int8", "int32"), ("int8", "int8"), ("uint8", "uint8")]
)
@pytest.mark.parametrize("scalar", [31, 32, -1])
def test_places_out_of_range_leave_the_sign(dtype: str, places: str, scalar: int, tmp_path: Path) -> None:
    random = np.random.default_rng(scalar % 64)
    out = np.result_type(dtype, places).name
    file = tmp_path / "kernel.py"
    file.write_text(_KERNEL.format(dtype=dtype, places=places, out=out))
    exploration = ttx.explore(f"{file}::kernel")
    assert exploration.error is None, str(exploration.error)
    limits, held = np.iinfo(dtype), np.iinfo(places)
    a = random.integers(limits.min, limits.max + 1, (32, 64)).astype(dtype)
    s = np.resize(_PLACES[(held.min <= _PLACES) & (held.max >= _PLACES)], (32, 64)).astype(places)
    given: list[Any] = [a, s, np.array([0, scalar, 0, 0], np.int32)]
    # Python's own integers have no end.
    exact = a.astype(object)
    far = np.where((s >= 0) & (s < 32), s, 31).astype(object)
    want = [
        exact >> far,
        (np.where((s >= 0) & (s < 32), exact << far, 0).astype("int64").astype(out)) >> 1,
        exact >> (np.arange(64) % 32).astype(object),
        exact >> (scalar if 0 <= scalar < 32 else 31),
    ]
    check = exploration.check(given)
    assert check, str(check)
    for backend in ("interpreter", "emulator"):
        for name, found, right in zip("BCDE", exploration.run(given, backend=backend).outputs, want, strict=True):
            np.testing.assert_array_equal(found.astype("int64"), right.astype("int64"), err_msg=f"{backend} {name}")


_DECIDED = """
import ttexplore.language as T


@T.prim_func
def kernel(N: T.Tensor((9,), "{dtype}"), S: T.Tensor((9,), "int32"), B: T.Tensor((9 * 32, 32), "float32")):
    with T.Kernel(9) as by:
        b = T.alloc_shared((32, 32), "float32")
        T.fill(b, 0.0)
        if N[by] << S[by] < 0:
            for j in T.Parallel(32):
                b[0, j] = 1.0
        for i, j in T.Parallel(1, 32):
            if j < N[by] >> S[by]:
                b[1 + i, j] = 1.0
        for _ in range((N[by] >> S[by]) + 1):
            for j in T.Parallel(32):
                b[2, j] = b[2, j] + 1.0
        T.copy(b, B[by * 32, 0])
"""


@pytest.mark.parametrize("dtype", ["int32", "int8"])
def test_places_that_decide(dtype: str, tmp_path: Path) -> None:
    numbers = np.array([8, -8, -8, 9, 9, -9, 6, 5, -1], dtype)
    places = np.array([1, 33, 1, -1, 28 if dtype == "int32" else 4, -(2**31), 0, 32, 2], np.int32)
    file = tmp_path / "kernel.py"
    file.write_text(_DECIDED.format(dtype=dtype))
    exploration = ttx.explore(f"{file}::kernel")
    assert exploration.error is None, str(exploration.error)
    right, left = numbers.astype(np.int32) >> places, numbers.astype(np.int32) << places
    assert exploration.check([numbers, places])
    for backend in ("interpreter", "emulator"):
        blocks = exploration.run([numbers, places], backend=backend).outputs[0].reshape(9, 32, 32)
        np.testing.assert_array_equal(blocks[:, 0, 0], left < 0)
        np.testing.assert_array_equal(blocks[:, 1].sum(axis=1), np.clip(right, 0, 32))
        np.testing.assert_array_equal(blocks[:, 2, 5], np.maximum(right + 1, 0))


def test_places_that_are_plain_numbers_keep_the_width() -> None:
    numbers = np.array([1, -1, 7, 8, 15, 2**31 - 1, -(2**31)], np.int32)
    for places in range(32):
        left, right = shifted_left(numbers, places), shifted_right(numbers, places)
        assert (left.dtype, right.dtype) == (np.int32, np.int32)
        wrapped = (numbers.astype(np.int64) << places) & 0xFFFFFFFF
        np.testing.assert_array_equal(left, np.where(wrapped < 2**31, wrapped, wrapped - 2**32))
        np.testing.assert_array_equal(right, numbers.astype(np.int64) >> places)
