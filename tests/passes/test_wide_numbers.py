# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
"""Arithmetic on elements of uint8, int8 and bool tensors that decide branches, lengths and places, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T

Numbers = np.ndarray[Any, Any]

_HEAD = """
import ttexplore.language as T


@T.prim_func
def kernel(
    A: T.Tensor((1024, 32), "float32"), L: T.Tensor((8,), "{dtype}"), F: T.Tensor((8,), "bool"),
    I: T.Tensor((8,), "int32"), B: T.Tensor((6 * 32, 32), "float32"),
):
    with T.Kernel(6) as b:
        a = T.alloc_shared((32, 32), "float32")
        T.fill(a, 0.0)
{body}
        T.copy(a, B[b * 32, 0])
"""
_LANGUAGE = SimpleNamespace(
    min=np.minimum, max=np.maximum, cast=lambda value, dtype: np.asarray(value).astype(dtype)[()],
    if_then_else=lambda test, one, other: one if test else other,
)  # fmt: skip
_A = np.arange(1024 * 32, dtype=np.float32).reshape(1024, 32)
_F = np.array([1, 0, 0, 1, 1, 0, 1, 1], bool)
_I = np.array([5, -3, 300, 0, 256, -256, 1, 7], np.int32)
_NUMBERS = {
    "uint8": np.array([255, 100, 0, 17, 200, 128, 3, 44], np.uint8),
    "int8": np.array([127, 100, -128, 17, -3, -127, 3, 44], np.int8),
}
# What holds for elements of 8 bits: each with its text for Python, where that is another one.
_CONDITIONS = (
    ("L[b + 1] - L[b] < 0",), ("L[b] + L[b + 1] < 100",), ("~L[b] == 155",), ("(L[b] << 4) == 16",),
    ("L[b] * L[b + 1] > 50",), ("-L[b] > 100",), ("(L[b] - 1) % 7 == 2",), ("(L[b] ^ 85) > (L[b] | 18) - 9",),
    ("T.min(L[b] - L[b + 1], L[b] + 100) > 60",), ("T.if_then_else(L[b] > 20, L[b] + 100, L[b] - 100) > 110",),
    ("L[b] - L[b + 1] + I[b] < 0",), ("(L[b] + L[b + 1]) >> 1 > 30",), ("not (L[b] - 100)",),
    ("L[b] + 1 > 5 and L[b] - 6 < 100",), ("L[b] < 300",), ("L[b] > -200",), ("L[b] == -3",),
    ("T.cast(I[b] * 3, L.dtype) + 10 < 30",), ("(L[b] << (L[b] & 7)) == 64",),
    ("L[b] + F[b] == 18",), ("F[b] + F[b + 1] == 1", "int(F[b]) + int(F[b + 1]) == 1"), ("~F[b]",),
    ("F[b] - F[b + 1] < 0", "F[b] < F[b + 1]"), ("F[b] ^ F[b + 1]",), ("-F[b] < 0", "F[b]"),
    ("(F[b] << 1) == 2", "F[b]"), ("(F[b] | F[b + 1]) and not F[b]",), ("F[b] * F[b + 1]",), ("F[b] == F[b + 1]",),
)  # fmt: skip


def outputs(body: str, dtype: str, folder: Path) -> tuple[Numbers, Numbers]:
    """What the interpreter and the emulator leave in B."""
    file = folder / "kernel.py"
    file.write_text(_HEAD.format(dtype=dtype, body=body))
    exploration = ttx.explore(f"{file}::kernel")
    assert exploration.error is None, str(exploration.error)
    given = [_A, _NUMBERS[dtype], _F, _I]
    check = exploration.check(given)
    assert check, str(check)
    exploration.inputs()
    one, other = (exploration.run(given, backend=name).outputs[0] for name in ("interpreter", "emulator"))
    return one, other


@pytest.mark.parametrize("dtype", _NUMBERS)
def test_conditions_wrap_around(dtype: str, tmp_path: Path) -> None:
    lines = [
        f"        if {text}:\n            for j in T.Parallel(32):\n                a[{row}, j] = 1.0"
        for row, (text, *_) in enumerate(_CONDITIONS)
    ]
    want = np.zeros((6, 32))
    with np.errstate(over="ignore"):
        for block in range(6):
            names = {"T": _LANGUAGE, "L": _NUMBERS[dtype], "F": _F, "I": _I, "b": block}
            want[block, : len(_CONDITIONS)] = [bool(eval(texts[-1], dict(names))) for texts in _CONDITIONS]
    assert 0 < want.mean() < 1
    for found in outputs("\n".join(lines), dtype, tmp_path):
        rows = found.reshape(6, 32, 32)
        assert np.array_equal(rows[:, :, 0], want), [
            (_CONDITIONS[row][0], block) for block, row in zip(*np.nonzero(rows[:, :, 0] != want), strict=True)
        ]


# Conditions on elements that have names.
_NAMED = (
    "x + y < 100", "x - y > 50", "x * y > 60", "x - y - y > x", "(x + y) // 2 < 40", "(x + y) % 8 == 3",
    "((x + y) >> 3) > 9", "T.max(x + y, y) > x", "x - 1 > x", "~x == y", "x * L[b + 1] == x * y", "f + f == 2",
)  # fmt: skip


@pytest.mark.parametrize("dtype", _NUMBERS)
def test_conditions_on_names_wrap_around(dtype: str, tmp_path: Path) -> None:
    lines = ["        x, y, f = L[b], L[b + 1], F[b]"]
    lines += [
        f"        if {text}:\n            for j in T.Parallel(32):\n                a[{row}, j] = 1.0"
        for row, text in enumerate(_NAMED)
    ]
    want, numbers = np.zeros((6, 32)), _NUMBERS[dtype]
    with np.errstate(over="ignore"):
        for block in range(6):
            names = {"x": numbers[block], "y": numbers[block + 1], "f": int(_F[block]), "L": numbers, "b": block}
            want[block, : len(_NAMED)] = [bool(eval(text, {"T": _LANGUAGE, **names})) for text in _NAMED]
    assert 0 < want.mean() < 1
    for found in outputs("\n".join(lines), dtype, tmp_path):
        np.testing.assert_array_equal(found.reshape(6, 32, 32)[:, :, 0], want)


_PARALLEL = "        for i, j in T.Parallel(32, 32):\n"
# Statements, and what block b has in row i: the sum of a number and an element of A.
_PLACES = {
    "copy": ("        T.copy(A[L[b] - L[b + 1], 0], a)", lambda b, i, L: (0, int(L[b] - L[b + 1]) + i)),
    "copy by a bool": ("        T.copy(A[F[b], 0], a)", lambda b, i, L: (0, int(_F[b]) + i)),
    "copy by bools": (
        "        T.copy(A[F[b] + F[b + 1] + b, 0], a)", lambda b, i, L: (0, int(_F[b]) + int(_F[b + 1]) + b + i),
    ),
    "rows by bools": (
        f"{_PARALLEL}            a[i, j] = A[F[i % 8], j]", lambda b, i, L: (0, int(_F[i % 8])),
    ),
    "rows": (
        f'{_PARALLEL}            a[i, j] = A[i + F[i % 8] * 2, j]',
        lambda b, i, L: (0, i + 2 * int(_F[i % 8])),
    ),
    "rows of sums": (
        f'{_PARALLEL}            a[i, j] = A[T.cast(T.cast(i, "uint8") * 9 - L[b], "int32"), j]',
        lambda b, i, L: (0, (i * 9 - int(L[b])) % 256),
    ),
    "length": (
        f"        for k in range((L[b] - L[b + 1]) // 16):\n    {_PARALLEL}                a[i, j] = a[i, j] + 1.0",
        lambda b, i, L: (int(L[b] - L[b + 1]) // 16, None),
    ),
    "length by a bool": (
        f"        for k in range(F[b] + F[b + 1]):\n    {_PARALLEL}                a[i, j] = a[i, j] + 1.0",
        lambda b, i, L: (int(_F[b]) + int(_F[b + 1]), None),
    ),
    "from one to another": (
        f"        for k in range(L[b], L[b + 1]):\n    {_PARALLEL}                a[i, j] = a[i, j] + 1.0",
        lambda b, i, L: (max(int(L[b + 1]) - int(L[b]), 0), None),
    ),
    "number and place": (
        '        n = L[b] - L[b + 1]\n        T.copy(A[T.cast(n, "int32"), 0], a)\n        if n > 100:\n'
        f'    {_PARALLEL}                a[i, j] = a[i, j] + T.cast(n, "float32")',
        lambda b, i, L: (n if (n := int(L[b] - L[b + 1])) > 100 else 0, n + i),
    ),
    "limit": (
        f"{_PARALLEL}            if T.cast(i, \"uint8\") - L[b] < 50 and not F[b]:\n                a[i, j] = 1.0",
        lambda b, i, L: (int((i - int(L[b])) % 256 < 50 and not _F[b]), None),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", _PLACES)
def test_places_and_lengths_wrap_around(name: str, tmp_path: Path) -> None:
    body, meaning = _PLACES[name]
    want = np.zeros((6 * 32, 32), np.float32)
    with np.errstate(over="ignore"):
        for block in range(6):
            for row in range(32):
                number, place = meaning(block, row, _NUMBERS["uint8"])
                want[block * 32 + row] = number + (0 if place is None else _A[place])
    for found in outputs(body, "uint8", tmp_path):
        np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize(
    ("dtype", "limit", "meaning"),
    [
        ("uint8", lambda n: T.max(0, n) - 1, lambda n: (n - 1) % 256),
        ("uint8", lambda n: T.min(3, n) - 5, lambda n: (min(3, n) - 5) % 256),
        ("uint8", lambda n: T.max(200, n) + 100, lambda n: (max(200, n) + 100) % 256),
        ("int8", lambda n: T.min(100, n) + 100, lambda n: (min(100, n) + 100 + 128) % 256 - 128),
    ],
)
def test_numbers_that_wrap_around_are_limits_beside_rows_by_index(
    dtype: str, limit: Callable[[Any], Any], meaning: Callable[[int], int]
) -> None:
    """What is known of loops is asked for while such a number has a name."""

    @T.prim_func
    def kernel(
        A: T.Tensor((64, 32), "float32"), Rows: T.Tensor((4, 32), "int32"), N: T.Tensor((4,), dtype),
        C: T.Tensor((128, 32), "float32"),
    ):  # fmt: skip
        with T.Kernel(4) as bx:
            a = T.alloc_shared((32, 32), "float32")
            n = limit(N[bx])
            for i, j in T.Parallel(32, 32):
                a[i, j] = A[Rows[bx, i], j]
            for i, j in T.Parallel(32, 32):
                a[i, j] = T.if_then_else(i < n, a[i, j], -1.0)
            T.copy(a, C[bx * 32, 0])

    random = np.random.default_rng(0)
    a, index = random.integers(-9, 10, (64, 32)).astype(np.float32), random.integers(0, 64, (4, 32)).astype(np.int32)
    numbers = np.array([0, 2, 7, 40], dtype)
    limits = np.array([meaning(int(n)) for n in numbers])[:, None, None]
    wanted = np.where(np.arange(32)[:, None] < limits, a[index], -1).reshape(128, 32)
    lowered = ttx.explore(kernel)
    assert lowered.error is None, str(lowered.error)
    for backend in ("interpreter", "emulator"):
        (found,) = lowered.run([a, index, numbers], backend=backend).outputs
        np.testing.assert_array_equal(found, wanted)
