"""The values of a Triton kernel while it runs: numbers and blocks, with the dtypes and operators of the language."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeGuard

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Block = NDArray[Any]


class Unrunnable(Exception):
    """What an operation cannot do with its values; the interpreter knows the line."""


@dataclass(frozen=True, slots=True)
class Dtype:
    """A dtype of the language by its name, as ``float32``."""

    name: str


NUMPY: dict[str, Any] = {
    "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32, "float64": np.float64,
    "float8e4nv": ml_dtypes.float8_e4m3fn, "float8e5": ml_dtypes.float8_e5m2,
    "int1": np.bool_, "int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64,
    "uint8": np.uint8, "uint16": np.uint16, "uint32": np.uint32, "uint64": np.uint64,
}  # fmt: skip
NAMES = {np.dtype(kind): name for name, kind in NUMPY.items()}
_NARROW = {np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)}


@dataclass(frozen=True, slots=True)
class Pointer:
    """Addresses in a tensor, one or a block of them, counted in elements from its first one."""

    tensor: str
    offsets: Block

    def moved(self, by: Any) -> Pointer:
        distance = np.asarray(by)
        if not is_integer(distance):
            raise Unrunnable("an address that moves by what is no integer")
        return Pointer(self.tensor, self.offsets + distance.astype(np.int64))


@dataclass(frozen=True, slots=True)
class BlockPointer:
    """A block of a tensor: what ``tl.make_block_ptr`` and tensor descriptors are made of."""

    base: Pointer
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offsets: tuple[int, ...]
    block_shape: tuple[int, ...]
    # A descriptor checks all of its edges; a block pointer those that are asked for.
    is_descriptor: bool = False


def is_number(value: object) -> bool:
    """Whether a value is a constant of the compiler, which takes the dtype of what it meets."""
    return isinstance(value, bool | int | float)


def is_block(value: object) -> TypeGuard[Block]:
    """Whether a value is a block, or a number with a dtype, which is a block without axes."""
    return isinstance(value, np.ndarray)


def is_tuple(value: object) -> TypeGuard[tuple[Any, ...]]:
    return isinstance(value, tuple)


def is_integer(block: Block) -> bool:
    return block.dtype.kind in "iub"


def is_real(block: Block) -> bool:
    return not is_integer(block)


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """The operators of the language. Where nothing `rounds`, every floating-point number is float64."""

    rounds: bool = True

    def dtype(self, name: str) -> Any:
        kind = NUMPY.get(name)
        if kind is None:
            raise Unrunnable(f"the dtype {name}")
        return kind if self.rounds or np.dtype(kind).kind in "iub" else np.float64

    def real(self) -> Any:
        """The dtype of what has none of its own."""
        return np.float32 if self.rounds else np.float64

    def argument(self, value: bool | int | float) -> Block:
        """A parameter that is no constant."""
        if isinstance(value, bool):
            return np.asarray(value)
        if isinstance(value, float):
            return np.asarray(value, self.real())
        return np.asarray(value, np.int32 if -(2**31) <= value < 2**31 else np.int64)

    def cast(self, value: Any, name: str) -> Block:
        block = np.asarray(value)
        kind = self.dtype(name)
        if np.dtype(kind).kind == "b":
            return block != 0
        return block.astype(kind)

    def block(self, value: Any) -> Block:
        """A value as a block, a constant with the dtype that it has alone."""
        if isinstance(value, Pointer | BlockPointer | tuple | str | Dtype) or value is None:
            raise Unrunnable("an operation on what is no number")
        return self.argument(value) if is_number(value) else np.asarray(value)

    def alike(self, left: Any, right: Any) -> tuple[Block, Block]:
        """Two values with the dtype in which the language computes with both."""
        if is_number(left) and is_number(right):
            left, right = self.argument(left), self.argument(right)
        if is_number(left):
            return self.constant(left, self.block(right)), self.block(right)
        if is_number(right):
            return self.block(left), self.constant(right, self.block(left))
        left, right = self.block(left), self.block(right)
        kind = _common(left.dtype, right.dtype)
        return left.astype(kind), right.astype(kind)

    def constant(self, number: bool | int | float, beside: Block) -> Block:
        if is_real(beside):
            return np.asarray(number, beside.dtype)
        if isinstance(number, float):
            return np.asarray(number, self.real())
        if beside.dtype.kind == "b":
            return self.argument(number)
        try:
            return np.asarray(number, beside.dtype)
        except OverflowError:
            return np.asarray(number, np.int64)

    def binary(self, name: str, left: Any, right: Any) -> Any:
        """An operator; constants are computed as Python does."""
        if isinstance(left, Pointer) or isinstance(right, Pointer):
            return _address(name, left, right)
        if is_number(left) and is_number(right):
            return _OPERATORS[name](left, right)
        left, right = self.alike(left, right)
        if left.dtype != right.dtype:
            # A real constant beside integers.
            kind = self.real()
            left, right = left.astype(kind), right.astype(kind)
        if name == "/":
            if is_integer(left):
                left, right = left.astype(self.real()), right.astype(self.real())
            return np.asarray(left / right)
        if name in ("//", "%") and is_integer(left):
            return _divided(name, left, right)
        if name in ("//", "%"):
            if name == "//":
                raise Unrunnable("// of real numbers")
            return np.asarray(np.fmod(left, right))
        if name in _BITS and is_real(left):
            raise Unrunnable(f"{name} of real numbers")
        if left.dtype.kind == "b" and name in _ONE_BIT:
            # Numbers of one bit wrap around.
            name = _ONE_BIT[name]
        return np.asarray(_OPERATORS[name](left, right))

    def compared(self, name: str, left: Any, right: Any) -> Any:
        if any(isinstance(side, str | Dtype | tuple) or side is None for side in (left, right)):
            if name not in ("==", "!="):
                raise Unrunnable(f"{name} of what is no number")
            return (left == right) == (name == "==") if type(left) is type(right) else name == "!="
        if is_number(left) and is_number(right):
            return _COMPARED[name](left, right)
        left, right = self.alike(left, right)
        return np.asarray(_COMPARED[name](left, right))

    def chosen(self, condition: Any, then: Any, otherwise: Any) -> Any:
        if isinstance(then, Pointer) and isinstance(otherwise, Pointer) and then.tensor == otherwise.tensor:
            return Pointer(then.tensor, np.where(np.asarray(condition), then.offsets, otherwise.offsets))
        left, right = self.alike(then, otherwise)
        if left.dtype != right.dtype:
            left, right = left.astype(self.real()), right.astype(self.real())
        return np.where(np.asarray(condition) != 0, left, right)

    def narrow(self, block: Block) -> bool:
        return block.dtype in _NARROW


def _common(left: np.dtype[Any], right: np.dtype[Any]) -> np.dtype[Any]:
    if left == right:
        return left
    reals = [kind for kind in (left, right) if kind.kind not in "iub"]
    if len(reals) == 1:
        return reals[0]
    if reals:
        if left.itemsize == right.itemsize:
            return np.dtype(np.float32)
        return max(reals, key=lambda kind: kind.itemsize)
    if "b" in (left.kind, right.kind):
        return right if left.kind == "b" else left
    if left.kind == right.kind or left.itemsize != right.itemsize:
        signed, unsigned = (left, right) if left.kind == "i" else (right, left)
        if left.kind != right.kind:
            return unsigned if unsigned.itemsize >= signed.itemsize else signed
        return max(left, right, key=lambda kind: kind.itemsize)
    return left if left.kind == "u" else right


def _address(name: str, left: Any, right: Any) -> Any:
    match name, left, right:
        case "+", Pointer(), _ if not isinstance(right, Pointer):
            return left.moved(right)
        case "+", _, Pointer():
            return right.moved(left)
        case "-", Pointer(), _ if not isinstance(right, Pointer):
            return left.moved(-np.asarray(right, np.int64))
        case _:
            raise Unrunnable(f"{name} of addresses")


def _divided(name: str, left: Block, right: Block) -> Block:
    """Division toward zero, as in C, and what is left of it."""
    if not np.all(right):
        raise Unrunnable("a division by zero")
    if left.dtype.kind == "u" or (not np.any(left < 0) and not np.any(right < 0)):
        return np.asarray(left // right if name == "//" else left % right)
    quotient = np.where((left < 0) == (right < 0), np.abs(left) // np.abs(right), -(np.abs(left) // np.abs(right)))
    quotient = quotient.astype(left.dtype)
    return quotient if name == "//" else np.asarray(left - quotient * right)


_ONE_BIT = {"+": "^", "-": "^", "*": "&"}
_BITS = ("&", "|", "^", "<<", ">>")


def _power(left: Any, right: Any) -> Any:
    return left**right


def _true_divided(left: Any, right: Any) -> Any:
    return left / right


def _floor_divided(left: Any, right: Any) -> Any:
    return left // right


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": _true_divided, "//": _floor_divided,
    "%": operator.mod, "**": _power, "&": lambda left, right: left & right, "|": lambda left, right: left | right,
    "^": lambda left, right: left ^ right, "<<": lambda left, right: left << right,
    ">>": lambda left, right: left >> right,
}  # fmt: skip
_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
