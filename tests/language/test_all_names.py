"""Every name of the language is used by some test; the functions here are those that no other test calls."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.language.test_compatibility import COLUMNS, ROWS, A, mapped, result
from ttexplore.errors import Unsupported
from ttexplore.language.guard.names import HINTS, IGNORED, INSTEAD, NOT_LOWERED, NotLowered

TEXTS = "\n".join(path.read_text(encoding="utf-8") for path in Path(__file__).parents[1].rglob("*.py"))


def test_a_name_that_is_not_lowered_is_in_one_list_and_each_hint_serves_a_name() -> None:
    names = [*IGNORED, *HINTS, *NOT_LOWERED]
    assert len(set(names)) == len(names) > 250
    assert {NotLowered(name).hint for name in NOT_LOWERED} >= {hint for hint, _ in INSTEAD}
    assert NotLowered("no such name").hint == "write this part with copies, gemm and T.Parallel"


@pytest.mark.parametrize("name", T.__all__)
def test_a_name_is_used(name: str) -> None:
    same = [other for other, value in vars(T).items() if value is getattr(T, name)]
    assert re.search(rf'\bT\.({"|".join(same)})\b|"{name}"', TEXTS), f"no test of a kernel with T.{name}"


@pytest.mark.parametrize(
    ("element", "wanted"),
    [
        (lambda a, i, j: T.cast(T.bitwise_or(i, j), "float32"), ROWS | COLUMNS),
        (lambda a, i, j: T.cast(T.bitwise_xor(i, j), "float32"), ROWS ^ COLUMNS),
        (lambda a, i, j: T.cast(T.bitwise_not(i), "float32"), ~ROWS),
        (lambda a, i, j: T.cast(T.floordiv(i, 5), "float32"), ROWS // 5),
        (lambda a, i, j: T.cast(T.floormod(j, 5), "float32"), COLUMNS % 5),
        (lambda a, i, j: T.max(a, T.min_value("float32")), A),
    ],
)
def test_functions(element: Callable[..., Any], wanted: Any) -> None:
    np.testing.assert_array_equal(result(mapped(element), A), wanted.astype(np.float32))


@pytest.mark.parametrize(
    ("name", "element"),
    [
        ("acos", T.acos), ("acosh", T.acosh), ("asin", T.asin), ("asinh", T.asinh), ("atanh", T.atanh),
        ("copysign", lambda a: T.copysign(2.0, a)), ("fmod", lambda a: T.fmod(a, 0.75)),
        ("isnan", lambda a: T.if_then_else(T.isfinite(a), a, 0.0)),
        ("isnan", lambda a: T.if_then_else(T.isinf(a), 0.0, a)),
    ],
)  # fmt: skip
def test_functions_that_no_rule_lowers(name: str, element: Callable[..., Any]) -> None:
    error = ttx.explore(mapped(lambda a, i, j: element(a))).error
    assert isinstance(error, Unsupported)
    assert error.message == f"no rule lowers {name} inside T.Parallel"


def test_loops_and_blocks() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):  # pyright: ignore
        with T.Kernel(2, 2):
            bx, by = T.get_block_bindings()[:2]
            a = T.alloc_shared((32, 32), "float32")
            T.copy(A[by * 32, bx * 32], a)
            for _ in T.unroll(2):
                for i in T.Parallel(32):
                    for j in T.vectorized(32):
                        a[i, j] = a[i, j] + 1.0
            T.copy(a, B[by * 32, bx * 32])

    assert isinstance(kernel, T.PrimFunc)
    np.testing.assert_array_equal(result(kernel, A), A + np.float32(1) + np.float32(1))
