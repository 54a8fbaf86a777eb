"""Element-wise operations of the SFPU, on tiles in DST."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np

from ttexplore.ops import wide
from ttexplore.ops.op import Op, Operand, Tile, TileKind, dst, integers, quiet, scalar
from ttexplore.ops.sfpu_cycles import sfpu_cycles

_COMPUTE = "api/compute/compute_kernel_api.h"
_UNARY = "api/compute/eltwise_unary/"
_BINARY = "api/compute/eltwise_binary_sfpu.h"

# The init that floor, ceil, trunc and round share, and the one of the operations with a scalar.
_ROUNDING_INIT = "rounding_op_tile_init()"
_SCALAR_INIT = "binop_with_scalar_tile_init()"

_ONE_OVER_LN_2 = "0x3fb8aa3bu"
# The bits of the exponent of a float32.
_EXPONENT = 0x7F800000

# The largest relative error of the fast exponential, where DST has 16 bits; 3.1 % where it has 32.
FAST_ERROR = 0.035

_INT32_LOW, _INT32_HIGH = np.float64(-(2**31)), np.float64(2**31 - 1)


def _log_with_base(a: Tile, scale: Tile) -> Tile:
    return wide.log(a) * scale


def _exp_of_product(a: Tile, factor: Tile) -> Tile:
    return wide.exp(a * factor)


def _reciprocal(a: Tile) -> Tile:
    return np.reciprocal(a)


def _reciprocal_root(a: Tile) -> Tile:
    return np.float32(1) / np.sqrt(a)


def _erf(a: Tile) -> Tile:
    values = np.asarray(a, np.float32)
    return np.fromiter((math.erf(number) for number in values.flat), np.float32, values.size).reshape(values.shape)


def _sigmoid(a: Tile) -> Tile:
    return np.float32(1) / (np.float32(1) + wide.exp(-a))


def _silu(a: Tile) -> Tile:
    # The product with 0 at minus infinity is 0.
    return np.where(a == -np.inf, np.float32(0), a * _sigmoid(a))


def _gelu(a: Tile) -> Tile:
    half = np.float32(0.5) * a
    return np.where(a == -np.inf, np.float32(0), half * (np.float32(1) + _erf(a * np.float32(math.sqrt(0.5)))))


def _relu(a: Tile) -> Tile:
    return np.maximum(a, np.float32(0))


def _leaky_relu(a: Tile, slope: Tile) -> Tile:
    return np.where(a >= 0, a, a * slope)


def _clamp(a: Tile, low: Tile, high: Tile) -> Tile:
    return np.minimum(np.maximum(a, low), high)


def _logical_not(a: Tile) -> Tile:
    return np.equal(a, 0)


def _reverse_subtract(a: Tile, b: Tile) -> Tile:
    return b - a


def _where(condition: Tile, a: Tile, b: Tile) -> Tile:
    return np.where(condition != 0, a, b)


def _same(a: Tile) -> Tile:
    return a


def _unchanged(meaning: Callable[..., Tile]) -> Callable[..., Tile]:
    return meaning


def as_int32(a: Tile) -> Tile:
    """Round towards zero; numbers out of range saturate, and NaN counts as the infinity of its sign."""
    numbers = np.asarray(a, np.float64)
    numbers = np.where(np.isnan(numbers), np.copysign(np.inf, numbers), numbers)
    return np.clip(np.trunc(numbers), _INT32_LOW, _INT32_HIGH).astype(np.int32)


def _power_of_two(a: Tile) -> Tile:
    return (np.asarray(a, np.float32).view(np.uint32) & np.uint32(_EXPONENT)).view(np.float32)


def _bits_of(a: Tile) -> Tile:
    return np.asarray(a, np.float32).view(np.int32)


def _of_bits(a: Tile) -> Tile:
    return np.asarray(a, np.int32).view(np.float32)


def _as_bfloat16(a: Tile) -> Tile:
    bits = np.asarray(a, np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(a), a, rounded.view(np.float32))


def _op(
    name: str,
    operands: tuple[Operand, ...],
    meaning: Callable[..., Tile],
    header: str,
    *,
    init: str = "",
    init_operands: tuple[str, ...] = (),
    template: str = "",
    cpp: str = "",
    dst_bits: Literal[16, 32] | None = None,
    note: str = "",
    defines: tuple[str, ...] = (),
    takes: TileKind | Literal["any"] = "float32",
    gives: TileKind | Literal["same"] = "float32",
    function: str = "",
    fast: bool = False,
) -> Op:
    """An SFPU operation. Its init and call in C++ are named after it and take its `template` arguments, unless `init`
    and `cpp` are given."""
    values = ", ".join(f"{{{operand.name}}}" for operand in operands)
    return Op(
        f"{name}_tile",
        operands,
        cpp or f"{name}_tile{template}({values})",
        header,
        "sfpu",
        init=init or f"{name}_tile_init{template}()",
        init_operands=init_operands,
        meaning=(quiet if gives == "float32" else integers if gives == "int32" else _unchanged)(meaning),
        takes=takes,
        gives=gives,
        cycles=sfpu_cycles(f"{name}_tile", dst_bits=dst_bits),
        dst_bits=dst_bits,
        note=note,
        defines=defines,
        function=function,
        of_elements=meaning if function else None,
        fast=fast,
    )


_VALUE = (dst("value", "update"),)
_VALUE_AND_SCALAR = (*_VALUE, scalar("scalar"))
_TWO_VALUES = (dst("a", "read"), dst("b", "read"), dst("out"))


def _with_zero(compare: Callable[[Tile, Tile], Tile]) -> Callable[[Tile], Tile]:
    return lambda a: compare(a, np.zeros_like(a))


# fmt: off
_FUNCTIONS = (
    _op("exp", _VALUE, wide.exp, f"{_UNARY}exp.h", function="exp"),
    # Without the macro, the SDK rounds its whole numbers at random.
    _op("exp_fast", _VALUE_AND_SCALAR, _exp_of_product, f"{_UNARY}exp.h", init="exp_tile_init<true, {scalar}>()",
        init_operands=("scalar",), cpp="exp_tile<true>({value})", defines=("DISABLE_SFPLOADMACRO 1",), fast=True,
        note=f"exp(value * scalar), up to {FAST_ERROR:.1%} off; 0 below -88.5, no number above 88.7"),
    _op("exp2", _VALUE, wide.exp2, _COMPUTE, function="exp2"),
    _op("log", _VALUE, wide.log, _COMPUTE, function="log"),
    _op("log2", _VALUE, wide.log2, _COMPUTE, init="log_with_base_tile_init()", function="log2",
        cpp=f"log_with_base_tile<false, true>({{value}}, {_ONE_OVER_LN_2})", note="exact for powers of two"),
    _op("log_with_base", _VALUE_AND_SCALAR, _log_with_base, _COMPUTE,
        note="log(value) * scalar, where the scalar is 1 / ln(base)"),
    _op("sqrt", _VALUE, np.sqrt, f"{_UNARY}sqrt.h", function="sqrt"),
    _op("rsqrt", _VALUE, _reciprocal_root, f"{_UNARY}rsqrt.h", function="rsqrt"),
    _op("recip", _VALUE, _reciprocal, f"{_UNARY}recip.h"),
    _op("sigmoid", _VALUE, _sigmoid, _COMPUTE, function="sigmoid"),
    _op("tanh", _VALUE, wide.tanh, _COMPUTE, function="tanh"),
    _op("gelu", _VALUE, _gelu, f"{_UNARY}gelu.h", template="<false>"),
    _op("silu", _VALUE, _silu, _COMPUTE),
    # Without the macro, the SDK uses coefficients with the accuracy of bfloat16, an error of 3e-3.
    _op("erf", _VALUE, _erf, f"{_UNARY}erf_erfc.h", template="<false>", function="erf",
        defines=("INP_FLOAT32",)),
    _op("sin", _VALUE, wide.sin, f"{_UNARY}trigonometry.h", function="sin"),
    _op("cos", _VALUE, wide.cos, f"{_UNARY}trigonometry.h", function="cos"),
    _op("square", _VALUE, np.square, _COMPUTE),
    _op("power", _VALUE_AND_SCALAR, wide.power, _COMPUTE),
)
_ROUNDINGS = (
    _op("floor", _VALUE, np.floor, f"{_UNARY}rounding.h", init=_ROUNDING_INIT, function="floor"),
    _op("ceil", _VALUE, np.ceil, f"{_UNARY}rounding.h", init=_ROUNDING_INIT, function="ceil"),
    _op("trunc", _VALUE, np.trunc, f"{_UNARY}rounding.h", init=_ROUNDING_INIT, function="trunc"),
    _op("round", _VALUE, np.round, f"{_UNARY}rounding.h", init=_ROUNDING_INIT, cpp="round_tile({value}, 0)",
        function="nearbyint", note="to whole numbers, ties to even"),
)
_SIGNS = (
    # The SDK names a format of integers here, but the bits are those of a number.
    _op("power_of_two", _VALUE, _power_of_two, f"{_UNARY}bitwise.h", init="bitwise_and_tile_init()",
        cpp=f"bitwise_and_tile<DataFormat::Int32>({{value}}, {_EXPONENT:#x}u)", dst_bits=32,
        note="the largest power of two that is not above the magnitude; 0 for 0"),
    # Nothing changes in DST: these say what the bits stand for from here on.
    _op("reinterpret_fp32_to_int32", _VALUE, _bits_of, f"{_UNARY}bitwise.h", init="bitwise_and_tile_init()",
        cpp="bitwise_and_tile<DataFormat::Int32>({value}, 0xffffffffu)", dst_bits=32, gives="int32",
        note="the bits of a number as an integer"),
    _op("reinterpret_int32_to_fp32", _VALUE, _of_bits, f"{_UNARY}bitwise.h", init="bitwise_or_tile_init()",
        cpp="bitwise_or_tile<DataFormat::Int32>({value}, 0x00000000u)", dst_bits=32, takes="int32",
        note="the number with the bits of an integer"),
    _op("relu", _VALUE, _relu, f"{_UNARY}relu.h"),
    _op("leaky_relu", _VALUE_AND_SCALAR, _leaky_relu, f"{_UNARY}relu.h"),
    _op("negative", _VALUE, np.negative, f"{_UNARY}negative.h"),
    _op("abs", _VALUE, np.abs, _COMPUTE, function="abs"),
    _op("sign", _VALUE, np.sign, _COMPUTE),
    _op("clamp", (*_VALUE, scalar("low"), scalar("high")), _clamp,
        f"{_UNARY}clamp.h"),
    # The SDK's logical_not_tile treats -0 as true.
    _op("logical_not", _VALUE, _logical_not, f"{_UNARY}comp.h", init="eqz_tile_init()", cpp="eqz_tile({value})"),
)
_COMPARISONS: dict[str, Callable[[Tile, Tile], Tile]] = {
    "gt": np.greater, "ge": np.greater_equal, "lt": np.less, "le": np.less_equal, "eq": np.equal, "ne": np.not_equal,
}  # fmt: skip
_COMPARED_WITH_ZERO = tuple(
    _op(f"{name}z", _VALUE, _with_zero(compare), f"{_UNARY}comp.h", note="1.0 or 0.0")
    for name, compare in _COMPARISONS.items()
)
_COMPARED_WITH_SCALAR = tuple(
    _op(f"unary_{name}", _VALUE_AND_SCALAR, compare, f"{_UNARY}comp.h", note="1.0 or 0.0")
    for name, compare in _COMPARISONS.items()
)
_COMPARED = tuple(
    _op(f"{name}_binary", _TWO_VALUES, compare, _BINARY, note="1.0 or 0.0")
    for name, compare in _COMPARISONS.items()
)
_WITH_SCALAR = (
    _op("add_unary", _VALUE_AND_SCALAR, np.add, f"{_UNARY}binop_with_scalar.h", init=_SCALAR_INIT),
    _op("sub_unary", _VALUE_AND_SCALAR, np.subtract, f"{_UNARY}binop_with_scalar.h", init=_SCALAR_INIT),
    _op("mul_unary", _VALUE_AND_SCALAR, np.multiply, f"{_UNARY}binop_with_scalar.h", init=_SCALAR_INIT),
    _op("rsub_unary", _VALUE_AND_SCALAR, _reverse_subtract, f"{_UNARY}binop_with_scalar.h", init=_SCALAR_INIT),
    _op("unary_max", _VALUE_AND_SCALAR, np.maximum, _COMPUTE),
    _op("unary_min", _VALUE_AND_SCALAR, np.minimum, _COMPUTE),
)
_OF_TWO = (
    _op("add_binary", _TWO_VALUES, np.add, _BINARY),
    _op("sub_binary", _TWO_VALUES, np.subtract, _BINARY),
    _op("rsub_binary", _TWO_VALUES, _reverse_subtract, _BINARY),
    _op("mul_binary", _TWO_VALUES, np.multiply, _BINARY),
    _op("div_binary", _TWO_VALUES, np.divide, _BINARY),
    _op("power_binary", _TWO_VALUES, wide.power, _BINARY),
    _op("binary_max", _TWO_VALUES, np.maximum, "api/compute/binary_max_min.h"),
    _op("binary_min", _TWO_VALUES, np.minimum, "api/compute/binary_max_min.h"),
)
# fmt: on


def _choice(name: str, template: str, dst_bits: Literal[16, 32]) -> Op:
    """The SDK's where_tile; its template argument names the width of DST, not a format (op-truth.md, trap 12)."""
    return _op(
        name, (dst("condition", "read"), dst("a", "read"), dst("b", "read"), dst("out")), _where, f"{_UNARY}where.h",
        init="where_tile_init()", cpp=f"where_tile<DataFormat::{template}>({{condition}}, {{a}}, {{b}}, {{out}})",
        dst_bits=dst_bits, note="a if the condition is not 0, otherwise b; -0 counts as true",
        takes="any", gives="same",
    )  # fmt: skip


_CHOICES = (_choice("where", "Float32", 32), _choice("where_bf16", "Float16_b", 16))


def _typecast(name: str, meaning: Callable[..., Tile], source: str, target: str, note: str) -> Op:
    def kind(data_format: str) -> TileKind:
        return "int32" if data_format == "Int32" else "float32"

    template = f"<static_cast<uint32_t>(DataFormat::{source}), static_cast<uint32_t>(DataFormat::{target})>"
    return _op(
        f"typecast_{name}", _VALUE, meaning, f"{_UNARY}typecast.h", init=f"typecast_tile_init{template}()",
        cpp=f"typecast_tile{template}({{value}})", dst_bits=32, note=note, takes=kind(source),
        gives=kind(target),
    )  # fmt: skip


_TYPECASTS = (
    _typecast("fp32_to_int32", as_int32, "Float32", "Int32", "towards zero"),
    _typecast("bf16_to_int32", as_int32, "Float16_b", "Int32", "towards zero"),
    _typecast("int32_to_fp32", _same, "Int32", "Float32", "to nearest, ties to even"),
    _typecast("int32_to_bf16", _as_bfloat16, "Int32", "Float16_b", "to nearest, ties to even"),
    _typecast("fp32_to_bf16", _as_bfloat16, "Float32", "Float16_b", "to nearest, ties to even"),
)

SFPU_OPS = (
    *_FUNCTIONS,
    *_ROUNDINGS,
    *_SIGNS,
    *_COMPARED_WITH_ZERO,
    *_WITH_SCALAR,
    *_COMPARED_WITH_SCALAR,
    *_OF_TWO,
    *_COMPARED,
    *_CHOICES,
    *_TYPECASTS,
)
