"""Arithmetic of the kernel language: on plain numbers at once, on elements as TIR expressions."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

from tvm import ir, tirx

from ttexplore.errors import KernelError
from ttexplore.language.builder import condition, constant, element, is_dynamic, plain
from ttexplore.language.dtypes import dtype, dtype_name


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


def _function(name: str, count: int, python: Callable[..., Any] | None, intrinsic: Any = None) -> Callable[..., Any]:
    target = intrinsic or getattr(tirx, name)

    def function(*args: Any) -> Any:
        args = tuple(plain(arg) for arg in args)
        if len(args) != count:
            raise KernelError(f"T.{name} takes {count} argument{'s' * (count > 1)}, not {len(args)}")
        if python is not None and all(isinstance(arg, int | float) for arg in args):
            return python(*args)
        values = _matched([element(arg, f"T.{name}") for arg in args], args)
        if count == 1 and name in _FLOATING and not str(values[0].ty.dtype).startswith(("float", "bfloat")):
            values = [tirx.Cast(ir.PrimType("float32"), values[0])]
        return target(*values)

    function.__name__ = function.__qualname__ = name
    return function


_FLOATING = frozenset(
    [
        "exp",
        "exp2",
        "exp10",
        "log",
        "log2",
        "log10",
        "log1p",
        "sqrt",
        "rsqrt",
        "tanh",
        "sigmoid",
        "erf",
        "sin",
        "cos",
        "tan",
        "sinh",
        "cosh",
        "asin",
        "acos",
        "atan",
        "asinh",
        "acosh",
        "atanh",
    ]
)
max = _function("max", 2, builtins.max)
min = _function("min", 2, builtins.min)
exp = _function("exp", 1, math.exp)
exp2 = _function("exp2", 1, math.exp2)
exp10 = _function("exp10", 1, lambda x: 10.0**x)
log = _function("log", 1, math.log)
log2 = _function("log2", 1, math.log2)
log10 = _function("log10", 1, math.log10)
log1p = _function("log1p", 1, math.log1p)
sqrt = _function("sqrt", 1, math.sqrt)
rsqrt = _function("rsqrt", 1, lambda x: 1 / math.sqrt(x))
tanh = _function("tanh", 1, math.tanh)
sigmoid = _function("sigmoid", 1, lambda x: 1 / (1 + math.exp(-x)))
erf = _function("erf", 1, math.erf)
sin = _function("sin", 1, math.sin)
cos = _function("cos", 1, math.cos)
tan = _function("tan", 1, math.tan)
sinh = _function("sinh", 1, math.sinh)
cosh = _function("cosh", 1, math.cosh)
asin = _function("asin", 1, math.asin)
acos = _function("acos", 1, math.acos)
atan = _function("atan", 1, math.atan)
asinh = _function("asinh", 1, math.asinh)
acosh = _function("acosh", 1, math.acosh)
atanh = _function("atanh", 1, math.atanh)
atan2 = _function("atan2", 2, math.atan2)
hypot = _function("hypot", 2, math.hypot)
copysign = _function("copysign", 2, math.copysign)
fmod = _function("fmod", 2, math.fmod)
abs = _function("abs", 1, builtins.abs)
pow = _function("pow", 2, builtins.pow)
floor = _function("floor", 1, math.floor)
ceil = _function("ceil", 1, math.ceil)
round = _function("round", 1, builtins.round)
nearbyint = _function("nearbyint", 1, builtins.round)
trunc = _function("trunc", 1, math.trunc)
floordiv = _function("floordiv", 2, lambda a, b: a // b)
floormod = _function("floormod", 2, lambda a, b: a % b)
truncdiv = _function("truncdiv", 2, lambda a, b: int(a / b))
truncmod = _function("truncmod", 2, math.fmod)
isnan = _function("isnan", 1, math.isnan)
isinf = _function("isinf", 1, math.isinf)
isfinite = _function("isfinite", 1, math.isfinite)
bitwise_and = _function("bitwise_and", 2, lambda a, b: a & b)
bitwise_or = _function("bitwise_or", 2, lambda a, b: a | b)
bitwise_xor = _function("bitwise_xor", 2, lambda a, b: a ^ b)
bitwise_not = _function("bitwise_not", 1, lambda a: ~a)
shift_left = _function("shift_left", 2, lambda a, b: a << b)
shift_right = _function("shift_right", 2, lambda a, b: a >> b)


def ceildiv(a: Any, b: Any) -> Any:
    """The quotient, rounded up."""
    if isinstance(a, int) and isinstance(b, int):
        return -(-a // b)
    left, right = element(a, "T.ceildiv"), element(b, "T.ceildiv")
    return tirx.floordiv(left + right - 1, right)


def clamp(value: Any, low: Any, high: Any) -> Any:
    """`value`, but `low` at least and `high` at most."""
    return min(max(value, low), high)


def if_then_else(test: Any, then: Any, otherwise: Any) -> Any:
    """`then` where `test` holds, else `otherwise`."""
    if not is_dynamic(test):
        return then if test else otherwise
    args = (plain(then), plain(otherwise))
    values = _matched([element(arg, "T.if_then_else") for arg in args], args)
    return tirx.if_then_else(condition(test), *values)


def cast(value: Any, dtype_: Any) -> Any:
    """`value` as another dtype."""
    return dtype(dtype_)(plain(value))


def infinity(dtype_: Any) -> Any:
    """Plus infinity of a floating-point dtype. Raises KernelError for an integer one."""
    name = dtype_name(dtype_)
    if "float" not in name:
        raise KernelError(f"{name} has no infinity", hint="use T.max_value")
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
