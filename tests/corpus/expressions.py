"""Expressions of T.Parallel: every function and operator, broadcasts, masks, casts, several values and stores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ttexplore.language as T
from tests.corpus.case import Case


def unary(function: Callable[[Any], Any], dtype: str = "float32", out: str = "") -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), dtype), B: T.Tensor((64, 64), out or dtype)):
        with T.Kernel(1, 2) as (bx, by):
            a = T.alloc_shared((32, 64), dtype)
            b = T.alloc_fragment((32, 64), out or dtype)
            T.copy(A[by * 32, bx * 64], a)
            for i, j in T.Parallel(32, 64):
                b[i, j] = function(a[i, j])
            T.copy(b, B[by * 32, bx * 64])

    return kernel


def binary(function: Callable[[Any, Any], Any], dtype: str = "float32", out: str = "") -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), dtype), B: T.Tensor((64, 64), dtype), C: T.Tensor((64, 64), out or dtype)):
        with T.Kernel(1, 2) as (bx, by):
            a = T.alloc_shared((32, 64), dtype)
            b = T.alloc_shared((32, 64), dtype)
            c = T.alloc_fragment((32, 64), out or dtype)
            T.copy(A[by * 32, bx * 64], a)
            T.copy(B[by * 32, bx * 64], b)
            for i, j in T.Parallel(32, 64):
                c[i, j] = function(a[i, j], b[i, j])
            T.copy(c, C[by * 32, bx * 64])

    return kernel


def with_vector(function: Callable[..., Any], axis: int, dtype: str = "bfloat16") -> Any:
    """A vector along one axis of a block."""
    extent = (64, 128)[axis]
    block = (32, 64)[axis]

    @T.prim_func
    def kernel(A: T.Tensor((64, 128), dtype), V: T.Tensor((extent,), dtype), C: T.Tensor((64, 128), dtype)):
        with T.Kernel(2, 2) as (bx, by):
            a = T.alloc_shared((32, 64), dtype)
            v = T.alloc_shared((block,), dtype)
            c = T.alloc_fragment((32, 64), dtype)
            T.copy(A[by * 32, bx * 64], a)
            if axis:
                T.copy(V[bx * 64], v)
            else:
                T.copy(V[by * 32], v)
            for i, j in T.Parallel(32, 64):
                c[i, j] = function(a[i, j], v[j] if axis else v[i])
            T.copy(c, C[by * 32, bx * 64])

    return kernel


def masked(function: Callable[..., Any], dtype: str = "float32") -> Any:
    """An expression of the element, its indices in the tensor and the block's."""

    @T.prim_func
    def kernel(A: T.Tensor((128, 128), dtype), B: T.Tensor((128, 128), dtype)):
        with T.Kernel(2, 2) as (bx, by):
            a = T.alloc_shared((64, 64), dtype)
            b = T.alloc_fragment((64, 64), dtype)
            T.copy(A[by * 64, bx * 64], a)
            for i, j in T.Parallel(64, 64):
                b[i, j] = function(a[i, j], by * 64 + i, bx * 64 + j, bx, by)
            T.copy(b, B[by * 64, bx * 64])

    return kernel


def outer_sum() -> Any:
    """A vector as a column and as a row, and its first element."""

    @T.prim_func
    def kernel(V: T.Tensor((64,), "bfloat16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1) as bx:
            v = T.alloc_shared((64,), "bfloat16")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(V, v)
            for i, j in T.Parallel(64, 64):
                c[i, j] = (v[i] - v[j]) * v[0]
            T.copy(c, C)

    return kernel


def symmetric() -> Any:
    """A block and itself transposed."""

    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "bfloat16"), C: T.Tensor((64, 64), "bfloat16")):
        with T.Kernel(1) as bx:
            a = T.alloc_shared((64, 64), "bfloat16")
            c = T.alloc_fragment((64, 64), "bfloat16")
            T.copy(A, a)
            for i, j in T.Parallel(64, 64):
                c[i, j] = a[i, j] + a[j, i]
            T.copy(c, C)

    return kernel


def swapped() -> Any:
    """Two blocks that are exchanged, computed with in place and used after they were stored to."""

    @T.prim_func
    def kernel(
        A: T.Tensor((32, 64), "float32"), B: T.Tensor((32, 64), "float32"), C: T.Tensor((32, 64), "float32"),
        D: T.Tensor((32, 64), "float32"), E: T.Tensor((32, 64), "bfloat16"),
    ):  # fmt: skip
        with T.Kernel(1) as bx:
            a = T.alloc_fragment((32, 64), "float32")
            b = T.alloc_fragment((32, 64), "float32")
            e = T.alloc_fragment((32, 64), "bfloat16")
            T.copy(A, a)
            T.copy(B, b)
            for i, j in T.Parallel(32, 64):
                before = a[i, j]
                twice = before + before
                a[i, j] = b[i, j] * 2.0
                b[i, j] = before + a[i, j] * twice
                e[i, j] = T.exp(b[i, j]) + 1.0
            for i, j in T.Parallel(32, 64):
                a[i, j] = a[i, j] + e[i, j]
            T.copy(a, C)
            T.copy(b, D)
            T.copy(e, E)

    return kernel


def common_parts() -> Any:
    """The same product, root and sum several times."""

    @T.prim_func
    def kernel(
        A: T.Tensor((32, 64), "float32"), B: T.Tensor((32, 64), "float32"), C: T.Tensor((32, 64), "float32"),
        D: T.Tensor((32, 64), "float32"),
    ):  # fmt: skip
        with T.Kernel(1) as bx:
            a = T.alloc_shared((32, 64), "float32")
            b = T.alloc_shared((32, 64), "float32")
            c = T.alloc_fragment((32, 64), "float32")
            d = T.alloc_fragment((32, 64), "float32")
            T.copy(A, a)
            T.copy(B, b)
            for i, j in T.Parallel(32, 64):
                c[i, j] = T.exp(a[i, j] * b[i, j]) + T.sqrt(T.abs(b[i, j] * a[i, j]))
                d[i, j] = T.exp(a[i, j] * b[i, j]) - T.sqrt(T.abs(a[i, j] * b[i, j]))
            T.copy(c, C)
            T.copy(d, D)

    return kernel


def _causal(x: Any, row: Any, column: Any, bx: Any, by: Any) -> Any:
    return T.if_then_else(row >= column, x, -1.0)


def _indices(x: Any, row: Any, column: Any, bx: Any, by: Any) -> Any:
    inside = T.logical_and(row < 100, T.logical_or(column % 8 < 5, row // 3 != 7))
    return T.if_then_else(inside, x * T.cast(row - 2 * column, "float32") * 0.01, x)


def _bits_of_conditions(x: Any, row: Any, column: Any, bx: Any, by: Any) -> Any:
    inside = ((row < 100) & ~(column > 70)) | (x > 0.5)
    return T.if_then_else(inside ^ (bx == by), x, -2.0 * x)


def _blocks(x: Any, row: Any, column: Any, bx: Any, by: Any) -> Any:
    return T.if_then_else(bx > by, T.cast(bx - 3 * by, "float32") + x, x * T.cast(by, "float32"))


def _exact_gelu(x: Any) -> Any:
    return 0.5 * x * (1.0 + T.erf(x * 0.7071067811865476))


def _positive(x: Any) -> Any:
    return T.abs(x) + 0.1


def vectors_of_any_size(dtype: str = "bfloat16") -> Any:
    """A column, a row and one element beside a block that is no whole tiles; a column that the kernel computes."""

    @T.prim_func
    def kernel(
        A: T.Tensor((50, 70), dtype), V: T.Tensor((50,), dtype), W: T.Tensor((1, 70), dtype), S: T.Tensor((1,), dtype),
        C: T.Tensor((50, 70), dtype),
    ):  # fmt: skip
        with T.Kernel(1) as bx:
            a = T.alloc_shared((50, 70), dtype)
            v = T.alloc_shared((50,), dtype)
            w = T.alloc_shared((1, 70), dtype)
            s = T.alloc_shared((1,), dtype)
            e = T.alloc_fragment((50,), dtype)
            c = T.alloc_fragment((50, 70), dtype)
            T.copy(A, a)
            T.copy(V, v)
            T.copy(W, w)
            T.copy(S, s)
            for i in T.Parallel(50):
                e[i] = T.exp(v[i])
            for i, j in T.Parallel(50, 70):
                c[i, j] = (a[i, j] * v[i] + w[0, j] * s[0]) / e[i]
            T.copy(c, C)

    return kernel


def _roots_and_logarithms(x: Any) -> Any:
    x = _positive(x)
    logarithms = T.log(x) + T.log2(x) + T.log10(x) + T.log1p(x)
    return logarithms + T.sqrt(x) + T.rsqrt(x) + T.exp2(x) + 2.0 / x


def _activations(x: Any) -> Any:
    return x * T.sigmoid(x) + T.tanh(x) * T.sigmoid(x) + T.clamp(x, -0.5, 0.75) + T.min(x, 1.0) - T.max(-x, 0.25)


def _trigonometry(x: Any) -> Any:
    return T.sin(x) * T.cos(x) + T.sinh(x) - T.cosh(x) + T.exp10(x * 0.25) + T.erf(x)


def _quotients_and_powers(x: Any, y: Any) -> Any:
    quotients = x / _positive(y) + y / 3.0 - 1.0 / T.sqrt(_positive(x))
    return quotients + T.pow(_positive(x), y) + T.pow(_positive(x), 2.5) + T.pow(x, 2.0) + T.pow(T.float32(2), x)


def _rounding(x: Any) -> Any:
    narrow = T.floor(T.cast(T.cast(x * 1.7, "bfloat16"), "float32") * 64.0) * 0.125
    whole = T.cast(T.cast(x * 5.0, "int32"), "float32")
    return T.ceil(x) + T.trunc(x) + T.nearbyint(x * 3.0) + T.round(T.floor(x * 4.0) * 0.5) + narrow + whole


def _logic(x: Any, y: Any) -> Any:
    inside = T.logical_and(x > 0, T.logical_or(y > 0, T.logical_not(x < y)))
    return T.if_then_else(inside, x, y * 2.0) + T.cast(x <= 0.5, "float32") + T.cast(x != y, "float32")


def _chosen(x: Any) -> Any:
    """What is not chosen is NaN or infinite."""
    return T.if_then_else(x > 0.0, T.log(x), T.if_then_else(x < -1.0, T.sqrt(-x), 1.0 / (x - x)))


EXPRESSIONS: tuple[Case, ...] = (
    Case("elements_roots", lambda: unary(_roots_and_logarithms), on_chip=False),
    Case("elements_activations", lambda: unary(_activations, "bfloat16"), on_chip=False),
    Case("elements_gelu", lambda: unary(_exact_gelu, "bfloat16")),
    Case("elements_trigonometry", lambda: unary(_trigonometry), on_chip=False),
    Case("elements_powers", lambda: binary(_quotients_and_powers), on_chip=False),
    Case("elements_rounding", lambda: unary(_rounding), on_chip=False),
    Case("elements_logic", lambda: binary(_logic), on_chip=False),
    Case("elements_compared_bf16", lambda: binary(lambda x, y: T.if_then_else(x + y > 1.0, x, y), "bfloat16")),
    Case(
        "elements_chosen_16_bit_dst",
        lambda: unary(_chosen, "bfloat16"),
        {"accumulate_dtype": "bfloat16"},
        on_chip=False,
    ),
    Case("elements_column_bf16", lambda: with_vector(lambda x, v: x * v, 0), on_chip=False),
    Case("elements_column_fp32", lambda: with_vector(lambda x, v: T.exp(x) + v, 0, "float32"), on_chip=False),
    Case("elements_row_difference", lambda: with_vector(lambda x, v: v - x, 1), on_chip=False),
    Case("elements_vectors_of_any_size", vectors_of_any_size, on_chip=False),
    Case("elements_vectors_of_any_size_fp32", lambda: vectors_of_any_size("float32"), on_chip=False),
    Case("elements_outer_sum", outer_sum, on_chip=False),
    Case("elements_transposed", symmetric, on_chip=False),
    Case("elements_causal_mask_bf16", lambda: masked(_causal, "bfloat16")),
    Case("elements_indices", lambda: masked(_indices), on_chip=False),
    Case("elements_bits_of_conditions", lambda: masked(_bits_of_conditions), on_chip=False),
    Case("elements_blocks", lambda: masked(_blocks), on_chip=False),
    Case("elements_swapped", swapped, on_chip=False),
    Case("elements_common_parts", common_parts, on_chip=False),
)
