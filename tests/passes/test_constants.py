# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
"""A function of a constant is the function of an element that holds the constant."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T

Array = np.ndarray[Any, Any]
F32, BF16, I32, U8 = "float32", "bfloat16", "int32", "uint8"

INF, NAN = float("inf"), float("nan")
FLOATS = (0.0, -0.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 1.0, -1.0, 3.0, 100.0, 1e30, -1e30, 1e-30, INF, -INF, NAN)
INTEGERS = [0, 1, -1, 2, 5, -7, 31, 2**31 - 1, -(2**31), 2**24 + 1]
BYTES = [0, 1, 2, 5, 127, 128, 200, 255]

# By name, with what the chip computes otherwise than NumPy (docs/numerics.md).
HUGE = (1e30, -1e30)
LEFT_OUT: dict[str, tuple[float, ...]] = {
    **dict.fromkeys(("sin", "cos", "tan"), HUGE), **dict.fromkeys(("sigmoid", "erf", "min", "max"), (NAN,)),
    "hypot": (*HUGE, 1e-30, NAN, INF, -INF), "div": (NAN,),
    "pow": (NAN, INF, -INF, *HUGE, 1e-30, -0.0, -0.5, -1.0, -1.5, -2.5),
}  # fmt: skip
# Functions whose results the chip rounds correctly, or that need no rounding.
EXACT = ("abs", "floor", "ceil", "round", "nearbyint", "trunc", "negative", "add", "sub", "mul", "max", "min")

UNARY: dict[str, Callable[[Any], Any]] = {
    "negative": operator.neg,
    **{
        one.__name__: one
        for one in (
            T.exp, T.exp2, T.exp10, T.log, T.log2, T.log10, T.log1p, T.sqrt, T.rsqrt, T.tanh, T.sigmoid, T.erf, T.sin,
            T.cos, T.tan, T.sinh, T.cosh, T.abs, T.floor, T.ceil, T.round, T.nearbyint, T.trunc,
        )
    },
}  # fmt: skip
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "max": T.max, "min": T.min,
    "pow": T.pow, "hypot": T.hypot,
}  # fmt: skip
ON_INTEGERS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "max": T.max, "min": T.min, "and": operator.and_,
    "or": operator.or_, "xor": operator.xor,
}  # fmt: skip
OF_INTEGERS: tuple[Callable[[Any], Any], ...] = (
    lambda x: x // 4, lambda x: x % 8, lambda x: x << 3, lambda x: x >> 2, operator.invert, operator.neg, T.abs,
)  # fmt: skip


# What is computed of elements of two blocks, and the same with constants in place of one or both: for each of these a
# function of an element, or a number.
Form = tuple[Callable[[Any, Any], Any], list[Any]]


def kernel_of(forms: list[Form], dtype: str, result: str) -> Any:
    """Out has a row of tiles for each form, what it gives of A and B; Same has what it gives of A and the constants,
    which have a column each."""
    rows, columns = 32 * len(forms), 32 * len(forms[0][1])

    def chosen(constants: list[Any], element: Any, j: Any) -> Any:
        # What starts from an element is no number made of indices, which have bounds of their own.
        made = T.cast(element, result)
        for column, constant in enumerate(constants):
            value = T.cast(constant(element) if callable(constant) else constant, result)
            made = T.if_then_else(j >= 32 * column, value, made)
        return made

    @T.prim_func
    def kernel(
        A: T.Tensor((32, columns), dtype), B: T.Tensor((32, columns), dtype),
        Out: T.Tensor((rows, columns), result), Same: T.Tensor((rows, columns), result),
    ):  # fmt: skip
        with T.Kernel(1) as _:
            a, b = T.alloc_shared((32, columns), dtype), T.alloc_shared((32, columns), dtype)
            T.copy(A, a)
            T.copy(B, b)
            for row, (function, constants) in enumerate(forms):
                o, s = T.alloc_shared((32, columns), result), T.alloc_shared((32, columns), result)
                for i, j in T.Parallel(32, columns):
                    o[i, j] = function(a[i, j], b[i, j])
                for i, j in T.Parallel(32, columns):
                    s[i, j] = chosen(constants, a[i, j], j)
                T.copy(o, Out[32 * row, 0])
                T.copy(s, Same[32 * row, 0])

    return kernel


def blocks(values: Any, dtype: str) -> Array:
    numpy = ml_dtypes.bfloat16 if dtype == BF16 else dtype
    row = np.asarray(values, np.float64 if dtype in (F32, BF16) else dtype).astype(numpy)
    return np.repeat(row, 32)[None].repeat(32, 0)


def check_alike(forms: list[Form], dtype: str, result: str, inputs: list[Array], places: float = 0.0) -> None:
    """The reference gives the same number of elements and of constants, the chip the same but for `places`. Of bfloat16
    the chip is not asked: constants and elements are float32 by then, but for the FPU, which has no NaN."""
    exploration = ttx.explore(kernel_of(forms, dtype, result))
    assert exploration.error is None, str(exploration.error)
    element, constant = exploration.reference(inputs)
    np.testing.assert_allclose(element.astype(np.float64), constant.astype(np.float64), rtol=places / 20)
    for got in exploration.run(inputs).outputs if dtype != BF16 else ():
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(
                got.astype(np.float64), element.astype(np.float64), rtol=places, atol=1e-37 if places else 0
            )


def held(name: str, dtype: str) -> list[float]:
    """The nasty values as a dtype holds them, without those that the chip computes otherwise."""
    values = [value for value in FLOATS if not any(value is one or value == one for one in LEFT_OUT.get(name, ()))]
    return [float(value) for value in blocks(values, dtype)[0, ::32].astype(np.float32)]


def of_two(function: Callable[[Any, Any], Any], values: list[Any], right: Any, left: Any) -> list[Form]:
    """A constant on the right, and on the left; `right` and `left` say how they are written."""
    return [
        (function, [lambda x, one=one: function(x, right(one)) for one in values]),
        (lambda x, y: function(y, x), [lambda x, one=one: function(left(one), x) for one in values]),
    ]


def of_constants(function: Callable[[Any, Any], Any], values: list[Any], typed: Any) -> tuple[list[Form], list[Any]]:
    """Each constant and the next one, and the latter."""
    others = values[1:] + values[:1]
    pairs = zip(values, others, strict=True)
    return [(function, [lambda _, a=a, b=b: function(typed(a), typed(b)) for a, b in pairs])], others


@pytest.mark.parametrize("dtype", [F32, BF16])
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_a_float(name: str, dtype: str) -> None:
    """As a number of Python, and as a constant of the dtype."""
    function, typed, values = UNARY[name], getattr(T, dtype), held(name, dtype)

    def of_one(x: Any, _: Any) -> Any:
        return function(x)

    numbers = [function(one) for one in values]
    constants = [lambda _, one=one: function(typed(one)) for one in values]
    places = 0.0 if name in EXACT else 4e-6
    check_alike([(of_one, numbers), (of_one, constants)], dtype, F32, [blocks(values, dtype)] * 2, places)


@pytest.mark.parametrize("dtype", [F32, BF16])
@pytest.mark.parametrize("name", BINARY)
def test_operations_on_floats(name: str, dtype: str) -> None:
    """With a constant on either side, and on two of them; a number of Python is float32 beside any float."""
    function, typed, values = BINARY[name], getattr(T, dtype), held(name, dtype)
    if name in ("div", "hypot"):
        values = [value for value in values if np.isfinite(value)]
    others = np.resize(np.asarray(values), (32, 32 * len(values))).astype(blocks(values, dtype).dtype)
    places = 0.0 if name in EXACT else 1e-5
    check_alike(of_two(function, values, typed, float), dtype, F32, [others, blocks(values, dtype)], places)
    forms, others = of_constants(function, values, typed)
    check_alike(forms, dtype, F32, [blocks(values, dtype), blocks(others, dtype)], places)


@pytest.mark.parametrize(("dtype", "values"), [(I32, INTEGERS), (U8, BYTES)])
@pytest.mark.parametrize("name", ON_INTEGERS)
def test_operations_on_integers(name: str, dtype: str, values: list[int]) -> None:
    """They wrap around in the dtype of the elements, and of two constants in theirs."""
    function, typed = ON_INTEGERS[name], getattr(T, dtype)
    others = np.resize(np.asarray(values), (32, 32 * len(values))).astype(dtype)
    check_alike(of_two(function, values, int, typed), dtype, dtype, [others, blocks(values, dtype)])
    forms, others = of_constants(function, values, typed)
    check_alike(forms, dtype, dtype, [blocks(values, dtype), blocks(others, dtype)])


@pytest.mark.parametrize(("dtype", "values"), [(I32, INTEGERS), (U8, BYTES)])
def test_functions_of_an_integer(dtype: str, values: list[int]) -> None:
    typed = getattr(T, dtype)
    forms: list[Form] = [
        (lambda x, _, f=function: f(x), [lambda _, f=function, one=one: f(typed(one)) for one in values])
        for function in OF_INTEGERS
    ]
    check_alike(forms, dtype, dtype, [blocks(values, dtype)] * 2)


@pytest.mark.parametrize("target", ["int32", "uint8", "int8", "uint16", "bool", "bfloat16"])
def test_casts(target: str) -> None:
    """Of numbers that are negative, large or have a fraction."""
    values = [*held("", F32), 255.0, 256.0, float(np.float32(300.7)), -300.875, 2.0**31, 1e10, -1e10, 0.125]
    if target == "bool":
        values = [value for value in values if not np.isnan(value)]

    def cast(x: Any, _: Any = None) -> Any:
        return T.cast(T.cast(x, target), F32)

    numbers = [lambda _, one=one: cast(one) for one in values]
    constants = [lambda _, one=one: cast(T.float32(one)) for one in values]
    check_alike([(cast, numbers), (cast, constants)], F32, F32, [blocks(values, F32)] * 2)


# Of x (NUMBERS), y (1 each) and the index of a column: the kernel's expression, and the same by NumPy. 1 / 0.0 is inf,
# 1 / -0.0 is -inf.
NUMBERS = np.array([0.0, -0.0, 1.5, -2.5, INF, 1e-30, 2e38, -2e38, NAN], np.float32)
ONE = np.float32(1)
SIGNS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "x + 0": (lambda x, y, j: y / (x + 0.0), lambda x, j: ONE / (x + np.float32(0.0))),
    "0 + x": (lambda x, y, j: y / (0.0 + x), lambda x, j: ONE / (np.float32(0.0) + x)),
    "x + -0": (lambda x, y, j: y / (x + -0.0), lambda x, j: ONE / (x + np.float32(-0.0))),
    "x - 0": (lambda x, y, j: y / (x - 0.0), lambda x, j: ONE / (x - np.float32(0.0))),
    "x - -0": (lambda x, y, j: y / (x - -0.0), lambda x, j: ONE / (x - np.float32(-0.0))),
    "0 - x": (lambda x, y, j: y / (0.0 - x), lambda x, j: ONE / (np.float32(0.0) - x)),
    "-0 - x": (lambda x, y, j: y / (-0.0 - x), lambda x, j: ONE / (np.float32(-0.0) - x)),
    "abs(x) + 0": (lambda x, y, j: y / (T.abs(x) + 0.0), lambda x, j: ONE / np.abs(x)),
    "choice": (lambda x, y, j: y / T.if_then_else(x > 1.0, 0.0, -0.0), lambda x, j: np.where(x > 1, INF, -INF)),
    "other choice": (lambda x, y, j: y / T.if_then_else(x > 1.0, 1.0, -0.0), lambda x, j: np.where(x > 1, 1, -INF)),
    "both choices": (lambda x, y, j: y * 0.0 + T.if_then_else(x > -0.0, 1.0, 0.0), lambda x, j: (x > 0) * ONE),
    "root": (lambda x, y, j: y / T.pow(x, 0.5), lambda x, j: ONE / np.power(x, np.full_like(x, 0.5))),
    "root below": (lambda x, y, j: T.pow(x, -0.5), lambda x, j: np.power(x, np.full_like(x, -0.5))),
    "0 / x": (lambda x, y, j: 0.0 / x, lambda x, j: np.float32(0) / x),
    "3e10 / x": (lambda x, y, j: 3e10 / x, lambda x, j: np.float32(3e10) / x),
    "infinite": (lambda x, y, j: INF / x, lambda x, j: np.float32(INF) / x),
    "index": (lambda x, y, j: y / T.cast(-j, F32), lambda x, j: ONE / (0 - j).astype(np.float32)),
    "product": (lambda x, y, j: y / T.cast(j * (j - 5), F32), lambda x, j: ONE / (j * (j - 5)).astype(np.float32)),
    "quotient": (lambda x, y, j: y / T.cast(j // 4 * -3, F32), lambda x, j: ONE / (j // 4 * -3).astype(np.float32)),
}


@pytest.mark.parametrize("name", SIGNS)
def test_constants_keep_the_signs_of_zeros(name: str) -> None:
    """And what is no number, and what is huge."""
    function, expected = SIGNS[name]

    @T.prim_func
    def kernel(A: T.Tensor((32, 32), F32), B: T.Tensor((32, 32), F32), C: T.Tensor((32, 32), F32)):
        with T.Kernel(1) as _:
            a, b = T.alloc_shared((32, 32), F32), T.alloc_shared((32, 32), F32)
            T.copy(A, a)
            T.copy(B, b)
            for i, j in T.Parallel(32, 32):
                b[i, j] = function(a[i, j], b[i, j], j)
            T.copy(b, C)

    x, y = np.resize(NUMBERS, (32, 32)), np.ones((32, 32), np.float32)
    exploration = ttx.explore(kernel)
    with np.errstate(all="ignore"):
        wanted = np.broadcast_to(expected(x, np.arange(32)), (32, 32)).astype(np.float32)
    (got,) = exploration.run([x, y]).outputs
    np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1.2e-38)
    (reference,) = exploration.reference([x, y])
    np.testing.assert_allclose(reference, wanted, rtol=1e-6, atol=1.2e-38)
