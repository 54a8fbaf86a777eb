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
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float32": np.float32,
    "float64": np.float64,
    "float8e4nv": ml_dtypes.float8_e4m3fn,
    "float8e5": ml_dtypes.float8_e5m2,
    "int1": np.bool_,
    "int8": np.int8,
    "int16": np.int16,
    "int32": np.int32,
    "int64": np.int64,
    "uint8": np.uint8,
    "uint16": np.uint16,
    "uint32": np.uint32,
    "uint64": np.uint64,
}
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

    def alike(self, left_side: Any, right_side: Any) -> tuple[Block, Block]:
        """Two values with the dtype in which the language computes with both."""
        if is_number(left_side) and is_number(right_side):
            left_side, right_side = self.argument(left_side), self.argument(right_side)
        if is_number(left_side):
            return self.constant(left_side, self.block(right_side)), self.block(right_side)
        if is_number(right_side):
            return self.block(left_side), self.constant(right_side, self.block(left_side))
        left_side, right_side = self.block(left_side), self.block(right_side)
        kind = _common(left_side.dtype, right_side.dtype)
        return left_side.astype(kind), right_side.astype(kind)

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

    def binary(self, name: str, left_side: Any, right_side: Any) -> Any:
        """An operator; constants are computed as Python does."""
        if isinstance(left_side, Pointer) or isinstance(right_side, Pointer):
            return _address(name, left_side, right_side)
        if is_number(left_side) and is_number(right_side):
            return _OPERATORS[name](left_side, right_side)
        left_side, right_side = self.alike(left_side, right_side)
        if left_side.dtype != right_side.dtype:
            # A real constant beside integers.
            kind = self.real()
            left_side, right_side = left_side.astype(kind), right_side.astype(kind)
        if name == "/":
            if is_integer(left_side):
                left_side, right_side = left_side.astype(self.real()), right_side.astype(self.real())
            return np.asarray(left_side / right_side)
        if name in ("//", "%") and is_integer(left_side):
            return _divided(name, left_side, right_side)
        if name in ("//", "%"):
            if name == "//":
                raise Unrunnable("// of real numbers")
            return np.asarray(np.fmod(left_side, right_side))
        if name in _BITS and is_real(left_side):
            raise Unrunnable(f"{name} of real numbers")
        if left_side.dtype.kind == "b" and name in _ONE_BIT:
            # Numbers of one bit wrap around.
            name = _ONE_BIT[name]
        return np.asarray(_OPERATORS[name](left_side, right_side))

    def compared(self, name: str, left_side: Any, right_side: Any) -> Any:
        if any(isinstance(side, str | Dtype | tuple) or side is None for side in (left_side, right_side)):
            if name not in ("==", "!="):
                raise Unrunnable(f"{name} of what is no number")
            return (left_side == right_side) == (name == "==") if type(left_side) is type(right_side) else name == "!="
        if is_number(left_side) and is_number(right_side):
            return _COMPARED[name](left_side, right_side)
        left_side, right_side = self.alike(left_side, right_side)
        return np.asarray(_COMPARED[name](left_side, right_side))

    def chosen(self, condition: Any, then: Any, otherwise: Any) -> Any:
        if isinstance(then, Pointer) and isinstance(otherwise, Pointer) and then.tensor == otherwise.tensor:
            return Pointer(then.tensor, np.where(np.asarray(condition), then.offsets, otherwise.offsets))
        left_side, right_side = self.alike(then, otherwise)
        if left_side.dtype != right_side.dtype:
            left_side, right_side = left_side.astype(self.real()), right_side.astype(self.real())
        return np.where(np.asarray(condition) != 0, left_side, right_side)


def is_narrow(block: Block) -> bool:
    """Whether the elements are floating-point numbers of 16 bits."""
    return block.dtype in _NARROW


def _common(left_side: np.dtype[Any], right_side: np.dtype[Any]) -> np.dtype[Any]:
    if left_side == right_side:
        return left_side
    reals = [kind for kind in (left_side, right_side) if kind.kind not in "iub"]
    if len(reals) == 1:
        return reals[0]
    if reals:
        if left_side.itemsize == right_side.itemsize:
            return np.dtype(np.float32)
        return max(reals, key=lambda kind: kind.itemsize)
    if "b" in (left_side.kind, right_side.kind):
        return right_side if left_side.kind == "b" else left_side
    if left_side.kind == right_side.kind or left_side.itemsize != right_side.itemsize:
        signed, unsigned = (left_side, right_side) if left_side.kind == "i" else (right_side, left_side)
        if left_side.kind != right_side.kind:
            return unsigned if unsigned.itemsize >= signed.itemsize else signed
        return max(left_side, right_side, key=lambda kind: kind.itemsize)
    return left_side if left_side.kind == "u" else right_side


def _address(name: str, left_side: Any, right_side: Any) -> Any:
    match name, left_side, right_side:
        case "+", Pointer(), _ if not isinstance(right_side, Pointer):
            return left_side.moved(right_side)
        case "+", _, Pointer():
            return right_side.moved(left_side)
        case "-", Pointer(), _ if not isinstance(right_side, Pointer):
            return left_side.moved(-np.asarray(right_side, np.int64))
        case _:
            raise Unrunnable(f"{name} of addresses")


def _divided(name: str, left_side: Block, right_side: Block) -> Block:
    """Division toward zero, as in C, and what is left of it."""
    if not np.all(right_side):
        raise Unrunnable("a division by zero")
    if left_side.dtype.kind == "u" or (not np.any(left_side < 0) and not np.any(right_side < 0)):
        return np.asarray(left_side // right_side if name == "//" else left_side % right_side)
    quotient = np.where(
        (left_side < 0) == (right_side < 0),
        np.abs(left_side) // np.abs(right_side),
        -(np.abs(left_side) // np.abs(right_side)),
    )
    quotient = quotient.astype(left_side.dtype)
    return quotient if name == "//" else np.asarray(left_side - quotient * right_side)


_ONE_BIT = {"+": "^", "-": "^", "*": "&"}
_BITS = ("&", "|", "^", "<<", ">>")
# Of `operator`, those that have types.
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "%": operator.mod,
    "**": lambda a, b: a**b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
}
_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
