"""Arithmetic of the kernel language: on plain numbers at once, on elements as TIR expressions.

Plain numbers give what elements of float32 that hold them give; whole ones stay whole where that says the same.
"""

from __future__ import annotations

import builtins
import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import ir, tirx

from ttexplore.errors import KernelError, shown
from ttexplore.ir.functions import FUNCTIONS
from ttexplore.language.arithmetic import folded, is_float
from ttexplore.language.builder import condition, constant, element, is_constant, is_dynamic, plain
from ttexplore.language.dtypes import dtype, dtype_name
from ttexplore.ops import OPS


def _matched(values: list[Any], args: tuple[Any, ...]) -> list[Any]:
    """The operands; a plain number takes the dtype of the first one that is not."""
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
    name: str, count: int, meaning: Callable[..., Any], of_integers: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """A function of the language. `meaning` is what it gives of constants, in NumPy and the constants' dtype;
    `of_integers` what it is on whole numbers of Python, where these do not become float32."""

    def function(*args: Any) -> Any:
        args = tuple(plain(arg) for arg in args)
        if len(args) != count:
            raise KernelError("K008", f"T.{name} takes {count} argument{'s' * (count > 1)}, not {len(args)}")
        if all(isinstance(arg, int | float) for arg in args):
            if of_integers is not None and all(isinstance(arg, int) for arg in args):
                return _of_integers(name, of_integers, args)
            return _number(folded(meaning, "float32", *args))
        values = _matched([element(arg, f"T.{name}") for arg in args], args)
        if name in _TRUNCATED and any(is_float(str(value.ty.dtype)) for value in values):
            raise KernelError(
                "K009",
                "an operation on integers is applied to floating-point numbers",
                hint=f"write {_TRUNCATED[name]}",
            )
        if name in _FLOATING and not is_float(str(values[0].ty.dtype)):
            values = [tirx.Cast(ir.PrimType("float32"), value) for value in values]
        dtypes = {str(value.ty.dtype) for value in values}
        if name == "pow" and not any(map(is_float, dtypes)):
            raise KernelError(
                "K009",
                f"T.pow takes floating-point numbers, and these are {' and '.join(sorted(dtypes))}",
                hint='write x * x, or 1 << x for a power of 2; of elements T.pow(T.cast(x, "float32"), y)',
            )
        if name == "pow" and dtypes & {"bfloat16", "float16"}:
            # TVM has no power of these.
            values = [cast(value, "float32") for value in values]
        dtypes = {str(value.ty.dtype) for value in values}
        if all(map(is_constant, values)) and len(dtypes) == 1 and (is_float(*dtypes) or of_integers is not None):
            return folded(meaning, *dtypes, *(value.value for value in values))
        return getattr(tirx, name)(*values)

    function.__name__ = function.__qualname__ = name
    return function


def _number(constant: Any) -> float | bool:
    return bool(constant.value) if str(constant.ty.dtype) == "bool" else float(constant.value)


def _of_integers(name: str, meaning: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    try:
        return meaning(*args)
    except (ArithmeticError, ValueError) as error:
        raise KernelError("K011", f"T.{name}{args}: {error}", hint="give it other numbers") from None


def _operation(name: str, kind: str, of_integers: Callable[[int, int], int]) -> Callable[[Any, Any], Any]:
    """A function of two integers that has an operator as well."""

    def function(a: Any, b: Any) -> Any:
        args = (plain(a), plain(b))
        if all(isinstance(arg, int) for arg in args):
            return _of_integers(name, of_integers, args)
        first, second = (element(arg, f"T.{name}") for arg in args)
        return getattr(operator, kind)(first, second)

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


def _same(value: int) -> int:
    return value


max = _function("max", 2, np.maximum, builtins.max)
min = _function("min", 2, np.minimum, builtins.min)
exp = _function("exp", 1, FUNCTIONS["exp"])
exp2 = _function("exp2", 1, FUNCTIONS["exp2"])
exp10 = _function("exp10", 1, FUNCTIONS["exp10"])
log = _function("log", 1, FUNCTIONS["log"])
log2 = _function("log2", 1, FUNCTIONS["log2"])
log10 = _function("log10", 1, FUNCTIONS["log10"])
log1p = _function("log1p", 1, FUNCTIONS["log1p"])
sqrt = _function("sqrt", 1, FUNCTIONS["sqrt"])
rsqrt = _function("rsqrt", 1, FUNCTIONS["rsqrt"])
tanh = _function("tanh", 1, FUNCTIONS["tanh"])
sigmoid = _function("sigmoid", 1, FUNCTIONS["sigmoid"])
erf = _function("erf", 1, FUNCTIONS["erf"])
sin = _function("sin", 1, FUNCTIONS["sin"])
cos = _function("cos", 1, FUNCTIONS["cos"])
tan = _function("tan", 1, FUNCTIONS["tan"])
sinh = _function("sinh", 1, FUNCTIONS["sinh"])
cosh = _function("cosh", 1, FUNCTIONS["cosh"])
asin = _function("asin", 1, np.arcsin)
acos = _function("acos", 1, np.arccos)
atan = _function("atan", 1, np.arctan)
asinh = _function("asinh", 1, np.arcsinh)
acosh = _function("acosh", 1, np.arccosh)
atanh = _function("atanh", 1, np.arctanh)
atan2 = _function("atan2", 2, np.arctan2)
hypot = _function("hypot", 2, FUNCTIONS["hypot"])
copysign = _function("copysign", 2, np.copysign)
fmod = _function("fmod", 2, np.fmod)
abs = _function("abs", 1, FUNCTIONS["abs"], builtins.abs)
pow = _function("pow", 2, FUNCTIONS["pow"], builtins.pow)
floor = _function("floor", 1, FUNCTIONS["floor"], _same)
ceil = _function("ceil", 1, FUNCTIONS["ceil"], _same)
round = _function("round", 1, FUNCTIONS["round"], _same)
nearbyint = _function("nearbyint", 1, FUNCTIONS["nearbyint"], _same)
trunc = _function("trunc", 1, FUNCTIONS["trunc"], _same)
floordiv = _operation("floordiv", "floordiv", operator.floordiv)
floormod = _operation("floormod", "mod", operator.mod)
truncdiv = _function("truncdiv", 2, lambda a, b: np.trunc(a / b), _truncated)
truncmod = _function("truncmod", 2, np.fmod, lambda a, b: a - b * _truncated(a, b))
isnan = _function("isnan", 1, np.isnan, lambda a: False)
isinf = _function("isinf", 1, np.isinf, lambda a: False)
isfinite = _function("isfinite", 1, np.isfinite, lambda a: True)
bitwise_and = _operation("bitwise_and", "and_", operator.and_)
bitwise_or = _operation("bitwise_or", "or_", operator.or_)
bitwise_xor = _operation("bitwise_xor", "xor", operator.xor)
shift_left = _operation("shift_left", "lshift", operator.lshift)
shift_right = _operation("shift_right", "rshift", operator.rshift)


def bitwise_not(a: Any) -> Any:
    """The bits that an integer does not have."""
    return ~plain(a) if isinstance(plain(a), int) else ~element(a, "T.bitwise_not")


def ceildiv(a: Any, b: Any) -> Any:
    """The quotient, rounded up."""
    a, b = plain(a), plain(b)
    if isinstance(a, int) and isinstance(b, int):
        return -(-a // b)
    left, right = element(a, "T.ceildiv"), element(b, "T.ceildiv")
    return tirx.floordiv(left + right - 1, right)


def clamp(value: Any, low: Any, high: Any) -> Any:
    """`value`, but `low` at least and `high` at most."""
    return min(max(value, low), high)


def if_then_else(test: Any, then: Any, otherwise: Any, *, what: str = "T.if_then_else") -> Any:
    """`then` where `test` holds, else `otherwise`."""
    test = plain(test)
    if not is_dynamic(test):
        return then if test else otherwise
    args = (plain(then), plain(otherwise))
    values = _matched([element(arg, what) for arg in args], args)
    return tirx.if_then_else(condition(test), *values)


def cast(value: Any, dtype_: Any) -> Any:
    """`value` as another dtype. Raises KernelError for what is no dtype, or cannot be cast."""
    if is_dynamic(dtype_):
        raise KernelError(
            "K009", f"{shown(dtype_)} is no dtype", hint="write T.cast(value, dtype) or T.Cast(dtype, value)"
        )
    return dtype(dtype_)(plain(value))


def Cast(dtype_: Any, value: Any) -> Any:
    """`value` as another dtype, which comes first, as of TVM's node: ``T.Cast("float32", x)`` is
    ``T.cast(x, "float32")``. Raises KernelError for what is no dtype, or cannot be cast."""
    if is_dynamic(dtype_):
        raise KernelError(
            "K009", f"{shown(dtype_)} is no dtype", hint="write T.Cast(dtype, value) or T.cast(value, dtype)"
        )
    return cast(value, dtype_)


def infinity(dtype_: Any) -> Any:
    """Plus infinity of a floating-point dtype. Raises KernelError for an integer one."""
    name = dtype_name(dtype_)
    if "float" not in name:
        raise KernelError("K008", f"{name} has no infinity", hint="use T.max_value")
    return tirx.const(math.inf, name)


def max_value(dtype_: Any) -> Any:
    """The largest finite value of a dtype."""
    return tirx.max_value(dtype_name(dtype_))


def min_value(dtype_: Any) -> Any:
    """The smallest finite value of a dtype."""
    return tirx.min_value(dtype_name(dtype_))


def logical_and(a: Any, b: Any) -> Any:
    """Whether both conditions hold."""
    return tirx.And(condition(a), condition(b)) if is_dynamic(a) or is_dynamic(b) else a and b


def logical_or(a: Any, b: Any) -> Any:
    """Whether one of the conditions holds."""
    return tirx.Or(condition(a), condition(b)) if is_dynamic(a) or is_dynamic(b) else a or b


def logical_not(a: Any) -> Any:
    """Whether the condition does not hold."""
    return tirx.Not(condition(a)) if is_dynamic(a) else not a


def conjunction(*conditions: Any) -> Any:
    """``T.all(a, b, c)``: whether all of the conditions hold. Raises KernelError where none is given."""
    return _joined("T.all", conditions, logical_and)


def disjunction(*conditions: Any) -> Any:
    """``T.any(a, b, c)``: whether one of the conditions holds. Raises KernelError where none is given."""
    return _joined("T.any", conditions, logical_or)


def _joined(what: str, conditions: tuple[Any, ...], join: Callable[[Any, Any], Any]) -> Any:
    if not conditions:
        raise KernelError("K008", f"{what} works on numbers, and this is None", hint=f"write {what}(i > 0, j > 0)")
    return functools.reduce(join, conditions)
