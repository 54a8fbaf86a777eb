"""Operators on expressions while a kernel is traced.

TVM's own operators simplify what they build: ``x * 0.0`` becomes 0 whatever x is, and constants are computed in
float64. Here an operation with a constant remains an operation, and one on constants gives the result that elements of
their dtype would give. int32 expressions, of which indices consist, keep TVM's operators, which are exact.

A Python number takes the dtype of the other operand, so bytes wrap around with it as well. A fraction converts integers
to float32; comparisons with integers are exact.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeGuard

import numpy as np
from tvm import ir, tirx

from ttexplore.errors import KernelError
from ttexplore.language.tracer.builder import Value, comparable, constant, is_constant, plain
from ttexplore.ops.integers import shifted_left, shifted_right
from ttexplore.plan import SMALL_FLOATS

_NODES: dict[str, Callable[[ir.Expr, ir.Expr], ir.Expr]] = {
    "add": tirx.Add, "sub": tirx.Sub, "mul": tirx.Mul, "truediv": tirx.Div, "floordiv": tirx.FloorDiv,
    "mod": tirx.FloorMod, "lshift": tirx.LShift, "rshift": tirx.RShift, "and": tirx.BitwiseAnd, "or": tirx.BitwiseOr,
    "xor": tirx.BitwiseXor,
}  # fmt: skip
_MEANINGS: dict[str, Callable[..., object]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide, "floordiv": np.floor_divide,
    "mod": np.mod, "lshift": shifted_left, "rshift": shifted_right, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}  # fmt: skip
# How the operators on integers are written; / is none of them.
_OF_INTEGERS = {
    "floordiv": "//", "mod": "%", "lshift": "<<", "rshift": ">>", "and": "&", "or": "|", "xor": "^",
}  # fmt: skip
_OF_TRUTHS = ("and", "or", "xor")
_DIRECT = {f"__{kind}__": kind for kind in _NODES}
_REFLECTED = {f"__r{kind}__": kind for kind in _NODES}
# The dtypes whose operators of TVM simplify nothing that the chip computes otherwise.
_EXACT = ("int32", "int64", "bool")


def operator(name: str, usual: Callable[..., object], *operands: object) -> object:
    """Apply an operator, given by its Python name; `usual` is TVM's meaning of it.

    Raises KernelError for operands that it does not support.
    """
    operands = tuple(map(plain, operands))
    numbers = [operand for operand in operands if _is_number(operand)]
    if len(numbers) != len(operands):
        return usual(*operands)
    first, last = numbers[0], numbers[-1]
    match name:
        case "__neg__" if isinstance(first, ir.Expr):
            return _negative(first, usual)
        case "__invert__" if isinstance(first, ir.Expr):
            return _inverted(first, usual)
        case "__lt__" | "__le__" | "__gt__" | "__ge__":
            return usual(*comparable(first, last))
        case _ if name in _DIRECT:
            return binary(_DIRECT[name], first, last, usual)
        case _ if name in _REFLECTED:
            return binary(_REFLECTED[name], last, first, lambda a, b: usual(b, a))
        case _:
            raise ValueError(f"{name} is no operator")


def binary(kind: str, a: Value, b: Value, usual: Callable[[Value, Value], object]) -> object:
    """Apply an operation to two numbers or expressions, at least one of them an expression."""
    dtype = _result(a, b)
    if kind not in _OF_TRUTHS and not is_float(dtype):
        # As in C and in Python, the sum of two truths is a number.
        a, b = _without_truth(a), _without_truth(b)
        dtype = _result(a, b)
    _check(kind, dtype, b)
    fixed = [isinstance(operand, int | float) or is_constant(operand) for operand in (a, b)]
    if dtype == "bool" or not any(fixed) or (dtype in _EXACT and not all(fixed)):
        return usual(a, b)
    left, right = _as(a, dtype), _as(b, dtype)
    if is_constant(left) and is_constant(right):
        return folded(_MEANINGS[kind], dtype, left.value, right.value)
    return _NODES[kind](left, right)


def _without_truth(value: Value) -> Value:
    return _as(value, "int32") if isinstance(value, ir.Expr) and _dtype(value) == "bool" else value


def folded(meaning: Callable[..., object], dtype: str, *values: float) -> tirx.IntImm | tirx.FloatImm:
    """Compute `meaning` on numbers in `dtype` and return the constant; floats have the range of float32."""
    numpy_dtype = dtype if "int" in dtype else "float64" if dtype == "float64" else "float32"
    with np.errstate(all="ignore"):
        result = np.asarray(meaning(*(np.asarray([value]).astype(numpy_dtype) for value in values)))[0]
    return tirx.const(result.item(), "bool" if result.dtype.kind == "b" else dtype)


def _is_number(value: object) -> TypeGuard[Value]:
    return isinstance(value, int | float) or (isinstance(value, ir.Expr) and ir.is_prim_expr(value))


def _dtype(value: ir.Expr) -> str:
    return str(value.ty.dtype)


def is_float(dtype: str) -> bool:
    """Whether this is a floating-point dtype."""
    return dtype.startswith(("float", "bfloat"))


def _result(a: Value, b: Value) -> str:
    """The common dtype of two operands, at least one of them an expression."""
    if not isinstance(a, ir.Expr):
        a, b = b, a
    assert isinstance(a, ir.Expr)
    if isinstance(b, ir.Expr):
        return _promoted(_dtype(a), _dtype(b))
    if isinstance(b, float):
        return _promoted("float32", _dtype(a))
    return _promoted("int32", "bool") if _dtype(a) == "bool" else _dtype(a)


@functools.cache
def _promoted(first: str, second: str) -> str:
    """The common dtype of two dtypes by TVM's rules. Raises KernelError for two floating-point dtypes of 8 bits."""
    if first != second and first in SMALL_FLOATS and second in SMALL_FLOATS:
        raise KernelError(
            "K009", f"an operation joins {first} and {second}, of which neither holds the other's numbers",
            hint='cast both first: T.cast(x, "float32")',
        )  # fmt: skip
    return _dtype(tirx.max(ir.Var("a", ir.PrimType(first)), ir.Var("b", ir.PrimType(second))))


def _as(value: Value, dtype: str) -> ir.Expr:
    if isinstance(value, int | float):
        return constant(value, dtype)
    if _dtype(value) == dtype:
        return value
    return constant(value.value, dtype) if is_constant(value) else tirx.Cast(ir.PrimType(dtype), value)


def _check(kind: str, dtype: str, b: Value) -> None:
    """Raises KernelError for operations that the dtype does not support, and for invalid divisors and shift counts."""
    if kind in _OF_INTEGERS and is_float(dtype):
        raise floats_as_integers()
    if kind == "truediv" and not is_float(dtype):
        raise KernelError(
            "K009",
            "/ is applied to integers, and its result has a fraction",
            hint='use // for an integer result, or cast one side first: T.cast(x, "float32")',
        )
    number = b.value if is_constant(b) else b
    if kind in ("floordiv", "mod") and isinstance(number, int) and number == 0:
        raise KernelError("K008", f"{_OF_INTEGERS[kind]} by 0", hint="divide by a number that is not 0")
    bits = 32 if dtype == "bool" else int(dtype.removeprefix("u").removeprefix("int")) if "int" in dtype else 0
    if kind in ("lshift", "rshift") and isinstance(number, int) and not 0 <= number < bits:
        raise KernelError(
            "K008", f"{_OF_INTEGERS[kind]} of {dtype} by {number}", hint=f"shift {bits} bits by 0 to {bits - 1} places"
        )


def floats_as_integers() -> KernelError:
    return KernelError(
        "K009",
        "an integer operation is applied to floating-point numbers",
        hint='cast first: T.cast(x, "int32"), or write T.floor(a / b) for a // b, a - T.floor(a / b) * b for a % b',
    )


def _negative(a: ir.Expr, usual: Callable[[ir.Expr], object]) -> object:
    dtype = _dtype(a)
    if dtype in _EXACT and dtype != "bool":
        return usual(a)
    if dtype == "bool":
        return 0 - tirx.Cast(ir.PrimType("int32"), a)
    if is_constant(a):
        return folded(np.negative, dtype, a.value)
    return a * -1 if is_float(dtype) else 0 - a


def _inverted(a: ir.Expr, usual: Callable[[ir.Expr], object]) -> object:
    dtype = _dtype(a)
    if is_float(dtype):
        raise floats_as_integers()
    return folded(np.invert, dtype, a.value) if is_constant(a) and dtype not in _EXACT else usual(a)
