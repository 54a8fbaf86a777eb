"""Arithmetic of the kernel language: evaluated at once on plain numbers, built as TIR expressions on elements.

Plain numbers give the results that float32 elements with these values give; integers stay integers where that makes no
difference.
"""

from __future__ import annotations

import builtins
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

import numpy as np
from tvm import ir, tirx

from ttexplore.errors import KernelError, shown
from ttexplore.ir.arithmetic.functions import FUNCTIONS
from ttexplore.language.tracer.arithmetic import folded, is_float
from ttexplore.language.tracer.builder import (
    Integer,
    Value,
    condition,
    constant,
    element,
    is_constant,
    is_dynamic,
    plain,
)
from ttexplore.language.tracer.dtypes import dtype, dtype_name
from ttexplore.ops import OPS, wide
from ttexplore.ops.op import Tile

T = TypeVar("T")


def _matched(values: list[ir.Expr], args: Sequence[object]) -> list[ir.Expr]:
    """The operands; a plain number takes the dtype of the first operand that has one."""
    kinds = [value.ty for value, arg in zip(values, args, strict=True) if not isinstance(arg, int | float)]
    if not kinds:
        return values
    name = str(kinds[0].dtype)
    # A fraction does not become an integer: then TVM's own rules for mixed operands apply.
    return [
        constant(arg, name) if isinstance(arg, int) or (isinstance(arg, float) and "float" in name) else value
        for value, arg in zip(values, args, strict=True)
    ]


def _function(
    name: str,
    node: Callable[..., ir.Expr],
    count: int,
    meaning: Callable[..., object],
    of_integers: Callable[..., Value] | None = None,
) -> Callable[..., Value]:
    """A function of the language. `node` builds TVM's expression; `meaning` computes it on constants, in NumPy and in
    their dtype; `of_integers` computes it on Python integers if these are not converted to float32."""

    def function(*args: object) -> Value:
        args = tuple(plain(arg) for arg in args)
        if len(args) != count:
            raise KernelError("K008", f"T.{name} takes {count} argument{'s' * (count > 1)}, not {len(args)}")
        numbers = [arg for arg in args if isinstance(arg, int | float)]
        if len(numbers) == count:
            if of_integers is not None and all(isinstance(arg, int) for arg in numbers):
                return _of_integers(name, of_integers, args)
            return _number(folded(meaning, "float32", *numbers))
        values = _matched([element(arg, f"T.{name}") for arg in args], args)
        if name in _TRUNCATED and any(is_float(str(value.ty.dtype)) for value in values):
            raise KernelError(
                "K009",
                "an integer operation is applied to floating-point numbers",
                hint=f"write {_TRUNCATED[name]}",
            )
        if name in _FLOATING and not is_float(str(values[0].ty.dtype)):
            values = [tirx.Cast(ir.PrimType("float32"), value) for value in values]
        dtypes = {str(value.ty.dtype) for value in values}
        if name == "pow" and not any(map(is_float, dtypes)):
            raise KernelError(
                "K009",
                f"T.pow takes floating-point numbers, not {' and '.join(sorted(dtypes))}",
                hint='write x * x, 1 << x for a power of 2, or cast the elements: T.pow(T.cast(x, "float32"), y)',
            )
        if name == "pow" and dtypes & {"bfloat16", "float16"}:
            # TVM has no power of these.
            values = [cast(value, "float32") for value in values]
        first, *remaining_dtypes = (str(value.ty.dtype) for value in values)
        constants = [value.value for value in values if is_constant(value)]
        if len(constants) == count and {first} >= {*remaining_dtypes} and (is_float(first) or of_integers is not None):
            return folded(meaning, first, *constants)
        return node(*values)

    function.__name__ = function.__qualname__ = name
    return function


def _number(constant: tirx.IntImm | tirx.FloatImm) -> float | bool:
    return bool(constant.value) if str(constant.ty.dtype) == "bool" else float(constant.value)


def _of_integers(name: str, meaning: Callable[..., Value], args: tuple[object, ...]) -> Value:
    try:
        return meaning(*args)
    except (ArithmeticError, ValueError) as error:
        raise KernelError("K011", f"T.{name}{args}: {error}", hint="use operands for which it is defined") from None


def _operation(name: str, meaning: Callable[[Any, Any], Value]) -> Callable[[object, object], Value]:
    """A function of two integers that is also an operator."""

    def function(a: object, b: object) -> Value:
        args = (plain(a), plain(b))
        if all(isinstance(arg, int) for arg in args):
            return _of_integers(name, meaning, args)
        first, second = (element(arg, f"T.{name}") for arg in args)
        return meaning(first, second)

    function.__name__ = function.__qualname__ = name
    return function


# Functions of numbers: an integer becomes float32 first. The others keep whole numbers whole.
_WHOLE = frozenset({"abs", "ceil", "floor", "nearbyint", "trunc"})
_FLOATING = frozenset(
    [
        *(op.function for op in OPS.values() if op.function and op.function not in _WHOLE),
        "exp10", "log10", "log1p", "tan", "sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh",
    ]
)  # fmt: skip


# What takes the place of the functions of integers, for other numbers.
_TRUNCATED = {"truncdiv": "T.trunc(a / b)", "truncmod": "a - T.trunc(a / b) * b"}


def _truncated(a: int, b: int) -> int:
    quotient = builtins.abs(a) // builtins.abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _truncated_remainder(a: int, b: int) -> int:
    return a - b * _truncated(a, b)


def _truncated_quotient(a: Tile, b: Tile) -> Tile:
    return np.trunc(a / b)


def _magnitude(value: int) -> int:
    return builtins.abs(value)


def _same(value: int) -> int:
    return value


def _no(_value: int) -> bool:
    return False


def _yes(_value: int) -> bool:
    return True


max = _function("max", tirx.max, 2, np.maximum, builtins.max)
min = _function("min", tirx.min, 2, np.minimum, builtins.min)
exp = _function("exp", tirx.exp, 1, FUNCTIONS["exp"])
exp2 = _function("exp2", tirx.exp2, 1, FUNCTIONS["exp2"])
exp10 = _function("exp10", tirx.exp10, 1, FUNCTIONS["exp10"])
log = _function("log", tirx.log, 1, FUNCTIONS["log"])
log2 = _function("log2", tirx.log2, 1, FUNCTIONS["log2"])
log10 = _function("log10", tirx.log10, 1, FUNCTIONS["log10"])
log1p = _function("log1p", tirx.log1p, 1, FUNCTIONS["log1p"])
sqrt = _function("sqrt", tirx.sqrt, 1, FUNCTIONS["sqrt"])
rsqrt = _function("rsqrt", tirx.rsqrt, 1, FUNCTIONS["rsqrt"])
tanh = _function("tanh", tirx.tanh, 1, FUNCTIONS["tanh"])
sigmoid = _function("sigmoid", tirx.sigmoid, 1, FUNCTIONS["sigmoid"])
erf = _function("erf", tirx.erf, 1, FUNCTIONS["erf"])
sin = _function("sin", tirx.sin, 1, FUNCTIONS["sin"])
cos = _function("cos", tirx.cos, 1, FUNCTIONS["cos"])
tan = _function("tan", tirx.tan, 1, FUNCTIONS["tan"])
sinh = _function("sinh", tirx.sinh, 1, FUNCTIONS["sinh"])
cosh = _function("cosh", tirx.cosh, 1, FUNCTIONS["cosh"])
asin = _function("asin", tirx.asin, 1, wide.arcsin)
acos = _function("acos", tirx.acos, 1, wide.arccos)
atan = _function("atan", tirx.atan, 1, wide.arctan)
asinh = _function("asinh", tirx.asinh, 1, wide.arcsinh)
acosh = _function("acosh", tirx.acosh, 1, wide.arccosh)
atanh = _function("atanh", tirx.atanh, 1, wide.arctanh)
atan2 = _function("atan2", tirx.atan2, 2, wide.arctan2)
hypot = _function("hypot", tirx.hypot, 2, FUNCTIONS["hypot"])
copysign = _function("copysign", tirx.copysign, 2, np.copysign)
fmod = _function("fmod", tirx.fmod, 2, np.fmod)
abs = _function("abs", tirx.abs, 1, FUNCTIONS["abs"], _magnitude)
pow = _function("pow", tirx.pow, 2, FUNCTIONS["pow"], builtins.pow)
floor = _function("floor", tirx.floor, 1, FUNCTIONS["floor"], _same)
ceil = _function("ceil", tirx.ceil, 1, FUNCTIONS["ceil"], _same)
round = _function("round", tirx.round, 1, FUNCTIONS["round"], _same)
nearbyint = _function("nearbyint", tirx.nearbyint, 1, FUNCTIONS["nearbyint"], _same)
trunc = _function("trunc", tirx.trunc, 1, FUNCTIONS["trunc"], _same)
floordiv = _operation("floordiv", lambda a, b: a // b)
floormod = _operation("floormod", lambda a, b: a % b)
truncdiv = _function("truncdiv", tirx.truncdiv, 2, _truncated_quotient, _truncated)
truncmod = _function("truncmod", tirx.truncmod, 2, np.fmod, _truncated_remainder)
isnan = _function("isnan", tirx.isnan, 1, np.isnan, _no)
isinf = _function("isinf", tirx.isinf, 1, np.isinf, _no)
isfinite = _function("isfinite", tirx.isfinite, 1, np.isfinite, _yes)
bitwise_and = _operation("bitwise_and", lambda a, b: a & b)
bitwise_or = _operation("bitwise_or", lambda a, b: a | b)
bitwise_xor = _operation("bitwise_xor", lambda a, b: a ^ b)
shift_left = _operation("shift_left", lambda a, b: a << b)
shift_right = _operation("shift_right", lambda a, b: a >> b)


def bitwise_not(a: object) -> Value:
    """Invert all bits of an integer."""
    number = plain(a)
    return ~number if isinstance(number, int) else ~element(number, "T.bitwise_not")


@overload
def ceildiv(a: int, b: int) -> int: ...
@overload
def ceildiv(a: object, b: object) -> Integer: ...
def ceildiv(a: object, b: object) -> Integer:
    """Divide and round up."""
    a, b = plain(a), plain(b)
    if isinstance(a, int) and isinstance(b, int):
        return -(-a // b)
    left, right = element(a, "T.ceildiv"), element(b, "T.ceildiv")
    return tirx.floordiv(left + right - 1, right)


def clamp(value: object, low: object, high: object) -> Value:
    """Limit `value` to the range from `low` to `high`."""
    return min(max(value, low), high)


def if_then_else(test: object, then: T, otherwise: T, *, what: str = "T.if_then_else") -> T | ir.Expr:
    """`then` if `test` is true, otherwise `otherwise`."""
    test = plain(test)
    if not is_dynamic(test):
        return then if test else otherwise
    args = (plain(then), plain(otherwise))
    left, right = _matched([element(arg, what) for arg in args], args)
    return tirx.if_then_else(condition(test), left, right)


def cast(value: object, dtype_: object) -> ir.Expr:
    """Cast `value` to a dtype. Raises KernelError if the dtype is invalid or the value cannot be cast."""
    if is_dynamic(dtype_):
        raise KernelError(
            "K009", f"{shown(dtype_)} is not a dtype", hint="write T.cast(value, dtype) or T.Cast(dtype, value)"
        )
    return dtype(dtype_)(plain(value))


def reinterpret(value: object, dtype: object) -> ir.Expr:
    """The bits of an element as those of another dtype: of a float32 as uint32 or int32, and the reverse; of an integer
    as one of as many bits; and of a uint16 as float16 or bfloat16.

    Raises KernelError for other dtypes, and for a plain number.
    """
    value = plain(value)
    if dtype == "handle" and isinstance(value, tirx.IntImm) and int(value.value) == 0:
        # No memory, as T.attr has it for a reducer.
        return value
    name = dtype_name(dtype)
    source_dtype = str(value.ty.dtype) if isinstance(value, ir.Expr) and ir.is_prim_expr(value) else ""
    pairs = (["float32", "int32"], ["float32", "uint32"], ["int32", "uint32"], ["int8", "uint8"], ["int16", "uint16"])
    if sorted((source_dtype, name)) not in pairs and (source_dtype, name) not in (
        ("uint16", "float16"),
        ("uint16", "bfloat16"),
    ):
        raise KernelError(
            "K009",
            f"T.reinterpret of {source_dtype or shown(value)} as {name}",
            hint="read the bits of float32 as uint32 or int32, or the reverse; those of uint16 as float16 or bfloat16",
        )
    assert isinstance(value, ir.Expr)
    return tirx.reinterpret(name, value)


def Cast(dtype_: object, value: object) -> ir.Expr:
    """Cast `value` to a dtype that comes first, as in TVM: ``T.Cast("float32", x)`` is ``T.cast(x, "float32")``. Raises
    KernelError if the dtype is invalid or the value cannot be cast."""
    if is_dynamic(dtype_):
        raise KernelError(
            "K009", f"{shown(dtype_)} is not a dtype", hint="write T.Cast(dtype, value) or T.cast(value, dtype)"
        )
    return cast(value, dtype_)


def infinity(dtype_: object) -> ir.Expr:
    """Positive infinity of a floating-point dtype. Raises KernelError for integer dtypes."""
    name = dtype_name(dtype_)
    if "float" not in name:
        raise KernelError("K008", f"{name} has no infinity", hint="use T.max_value")
    return tirx.const(math.inf, name)


def max_value(dtype_: object) -> ir.Expr:
    """The largest finite value of a dtype."""
    return tirx.max_value(dtype_name(dtype_))


def min_value(dtype_: object) -> ir.Expr:
    """The smallest finite value of a dtype."""
    return tirx.min_value(dtype_name(dtype_))


def logical_and(a: object, b: object) -> object:
    """Whether both conditions are true."""
    return tirx.And(condition(a), condition(b)) if is_dynamic(a) or is_dynamic(b) else a and b


def logical_or(a: object, b: object) -> object:
    """Whether at least one of the conditions is true."""
    return tirx.Or(condition(a), condition(b)) if is_dynamic(a) or is_dynamic(b) else a or b


def logical_not(a: object) -> Value:
    """Whether the condition is false."""
    return tirx.Not(condition(a)) if is_dynamic(a) else not a


def conjunction(*conditions: object) -> object:
    """``T.all(a, b, c)``: whether all conditions are true. Raises KernelError if none is given."""
    return _joined("T.all", conditions, logical_and)


def disjunction(*conditions: object) -> object:
    """``T.any(a, b, c)``: whether at least one condition is true. Raises KernelError if none is given."""
    return _joined("T.any", conditions, logical_or)


def _joined(callee: str, conditions: tuple[object, ...], join: Callable[[object, object], object]) -> object:
    if not conditions:
        raise KernelError("K008", f"{callee} needs at least one condition", hint=f"write {callee}(i > 0, j > 0)")
    return functools.reduce(join, conditions)
