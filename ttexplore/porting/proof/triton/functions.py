"""The functions of Triton's language, each with its parameters, as NumPy computes them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ttexplore.porting.proof.triton.accesses import advanced, atomic, exchange, load, made_block_pointer, store
from ttexplore.porting.proof.triton.blocks import (
    Block,
    BlockPointer,
    Dtype,
    Pointer,
    Unrunnable,
    is_integer,
    is_narrow,
    is_number,
    is_real,
)
from ttexplore.porting.proof.triton.calls import Called, ProgramInstance, block_shape, bound, integer, integers

ASSERTED = "an assertion of the source, which does not hold with these sizes,"


def call_function(
    program: ProgramInstance, name: str, positional: Sequence[Any], keywords: Mapping[str, Any], line: int
) -> Any:
    """Call a function of the language. Raises Unrunnable for one that is not known, or other arguments."""
    if name not in FUNCTIONS:
        raise Unrunnable(f"tl.{name}")
    signature, function = FUNCTIONS[name]
    return function(program, Called(name, bound(f"tl.{name}", signature.split(), positional, keywords), line))


def _axis(program: ProgramInstance, call: Called) -> int:
    axis = integer(call["axis"])
    if not 0 <= axis < 3:
        raise Unrunnable(f"the axis {axis} of the grid")
    return axis


def _program_id(program: ProgramInstance, call: Called) -> Block:
    return np.asarray(program.index[_axis(program, call)], np.int32)


def _num_programs(program: ProgramInstance, call: Called) -> Block:
    return np.asarray(program.grid[_axis(program, call)], np.int32)


def _arange(program: ProgramInstance, call: Called) -> Block:
    start, end = integer(call["start"]), integer(call["end"])
    (size,) = block_shape(end - start)
    if size < 1 or size & (size - 1):
        raise Unrunnable(f"tl.arange of {size} elements, which is no power of 2,")
    return np.arange(start, end, dtype=np.int32)


def _full(program: ProgramInstance, call: Called) -> Block:
    name = call.get("dtype")
    if name is None:
        name = Dtype("float32")
    value = call.get("value", 0)
    if not isinstance(name, Dtype):
        raise Unrunnable("what is no dtype")
    return np.full(block_shape(call["shape"]), program.arithmetic.cast(value, name.name))


def _zeros_like(program: ProgramInstance, call: Called) -> Block:
    return np.zeros_like(program.arithmetic.block(call["input"]))


def _dot(program: ProgramInstance, call: Called) -> Block:
    left_side, right_side = program.arithmetic.block(call["input"]), program.arithmetic.block(call["other"])
    if left_side.ndim < 2 or right_side.ndim < 2 or left_side.dtype.kind == "b":
        raise Unrunnable("tl.dot of what is no block of rows and columns")
    total = np.int32 if is_integer(left_side) and is_integer(right_side) else program.arithmetic.real()
    product = np.matmul(left_side.astype(total), right_side.astype(total))
    accumulated = call.get("acc")
    if accumulated is not None:
        product = program.arithmetic.binary("+", accumulated, product)
    kind = call.get("out_dtype")
    return program.arithmetic.cast(product, kind.name) if isinstance(kind, Dtype) else product


def _reduced(function: Callable[..., Any]) -> Callable[[ProgramInstance, Called], Any]:
    def reduction(program: ProgramInstance, call: Called) -> Any:
        block, axis = program.arithmetic.block(call["input"]), call.get("axis")
        if call.name == "sum" and block.dtype.kind in "ib" and block.dtype.itemsize < 4:
            block = block.astype(np.int32)
        axis = None if axis is None else integer(axis)
        if block.size == 0:
            raise Unrunnable(f"tl.{call.name} of no elements")
        keeps = bool(call.get("keep_dims", False))
        # Numbers of few bits are added up with more, and rounded at the end.
        narrow = is_narrow(block)
        wide = block.astype(np.float32) if narrow else block
        result = np.asarray(function(wide, axis=axis, keepdims=keeps)).astype(block.dtype)
        if call.get("return_indices", False):
            if axis is None:
                raise Unrunnable("indices of what is reduced over all axes")
            best = np.argmax if call.name == "max" else np.argmin
            return result, np.asarray(best(wide, axis=axis, keepdims=keeps)).astype(np.int32)
        return result

    return reduction


def _position(function: Callable[..., Any]) -> Callable[[ProgramInstance, Called], Any]:
    def reduction(program: ProgramInstance, call: Called) -> Block:
        block = program.arithmetic.block(call["input"])
        keeps = bool(call.get("keep_dims", False))
        return np.asarray(function(block, axis=integer(call["axis"]), keepdims=keeps)).astype(np.int32)

    return reduction


def _scanned(function: Callable[..., Any]) -> Callable[[ProgramInstance, Called], Any]:
    def scan(program: ProgramInstance, call: Called) -> Block:
        block, axis = program.arithmetic.block(call["input"]), integer(call.get("axis", 0))
        if block.dtype.kind in "ib" and block.dtype.itemsize < 4:
            block = block.astype(np.int32)
        if call.get("reverse", False):
            return np.flip(function(np.flip(block, axis), axis=axis), axis).astype(block.dtype)
        return np.asarray(function(block, axis=axis)).astype(block.dtype)

    return scan


def _real(function: Callable[[Block], Any]) -> Callable[[ProgramInstance, Called], Block]:
    """A function of real numbers, rounded to their dtype."""

    def of_elements(program: ProgramInstance, call: Called) -> Block:
        block = program.arithmetic.block(call["x"])
        if not is_real(block):
            block = block.astype(program.arithmetic.real())
        wide = block.astype(np.float32) if is_narrow(block) else block
        return np.asarray(function(wide)).astype(block.dtype)

    return of_elements


def _larger(function: Callable[[Any, Any], Any]) -> Callable[[ProgramInstance, Called], Any]:
    def of_elements(program: ProgramInstance, call: Called) -> Any:
        if is_number(call["x"]) and is_number(call["y"]):
            return max(call["x"], call["y"]) if function is np.maximum else min(call["x"], call["y"])
        left_side, right_side = program.arithmetic.alike(call["x"], call["y"])
        return np.asarray(function(left_side, right_side))

    return of_elements


def _abs(program: ProgramInstance, call: Called) -> Any:
    return abs(call["x"]) if is_number(call["x"]) else np.abs(program.arithmetic.block(call["x"]))


def _where(program: ProgramInstance, call: Called) -> Any:
    return program.arithmetic.chosen(call["condition"], call["x"], call["y"])


def _operator(name: str) -> Callable[[ProgramInstance, Called], Any]:
    return lambda program, call: program.arithmetic.binary(name, call["x"], call["y"])


def _power(program: ProgramInstance, call: Called) -> Block:
    left_side, right_side = program.arithmetic.alike(call["x"], call["y"])
    kind = program.arithmetic.real()
    return np.asarray(np.power(left_side.astype(kind), right_side.astype(kind)))


def _fma(program: ProgramInstance, call: Called) -> Any:
    product = program.arithmetic.binary("*", call["x"], call["y"])
    return program.arithmetic.binary("+", product, call["z"])


def _clamp(program: ProgramInstance, call: Called) -> Block:
    block, low = program.arithmetic.alike(call["x"], call["min"])
    above, high = program.arithmetic.alike(np.maximum(block, low), call["max"])
    return np.minimum(above, high)


def _cdiv(program: ProgramInstance, call: Called) -> Any:
    binary = program.arithmetic.binary
    return binary("//", binary("-", binary("+", call["x"], call["div"]), 1), call["div"])


def _cast(program: ProgramInstance, call: Called) -> Block:
    kind = call["dtype"]
    if call.get("bitcast", False) or not isinstance(kind, Dtype):
        raise Unrunnable("another meaning of the same bits")
    if isinstance(call["input"], Pointer | BlockPointer):
        raise Unrunnable("a conversion of addresses")
    return program.arithmetic.cast(call["input"], kind.name)


def _transposed(program: ProgramInstance, call: Called) -> Any:
    order = call.get("dims")
    axes = None if order in (None, ()) else integers(order)
    block = call["input"]
    if isinstance(block, Pointer):
        return Pointer(block.tensor, np.transpose(block.offsets, axes))
    return np.transpose(program.arithmetic.block(block), axes)


def _shaped(function: Callable[[Block, tuple[int, ...]], Block]) -> Callable[[ProgramInstance, Called], Any]:
    def reshaped(program: ProgramInstance, call: Called) -> Any:
        block, shape = call["input"], call.get("shape", ())
        sizes = block_shape(shape) if shape != () else (-1,)
        if isinstance(block, Pointer):
            return Pointer(block.tensor, function(block.offsets, sizes))
        return function(program.arithmetic.block(block), sizes)

    return reshaped


def _expanded(program: ProgramInstance, call: Called) -> Any:
    block, axes = call["input"], integers(call["axis"])
    if isinstance(block, Pointer):
        return Pointer(block.tensor, np.expand_dims(block.offsets, axes))
    return np.expand_dims(program.arithmetic.block(block), axes)


def _flipped(program: ProgramInstance, call: Called) -> Block:
    block = program.arithmetic.block(call["x"])
    return np.flip(block, integer(call.get("dim", block.ndim - 1)))


def _joined(program: ProgramInstance, call: Called) -> Block:
    left_side, right_side = np.broadcast_arrays(*program.arithmetic.alike(call["a"], call["b"]))
    stacked = np.stack([left_side, right_side], axis=-1)
    return stacked if call.name == "join" else stacked.reshape(*left_side.shape[:-1], -1)


def _split(program: ProgramInstance, call: Called) -> tuple[Block, Block]:
    block = program.arithmetic.block(call["a"])
    if block.ndim < 1 or block.shape[-1] != 2:
        raise Unrunnable("tl.split of a block whose last axis has not two elements")
    return block[..., 0], block[..., 1]


def _same(program: ProgramInstance, call: Called) -> Any:
    return call["input"]


def _nothing(program: ProgramInstance, call: Called) -> None:
    return None


def _asserted(program: ProgramInstance, call: Called) -> None:
    if not np.all(np.asarray(call["cond"])):
        raise Unrunnable(ASSERTED)


def _erf(block: Block) -> Block:
    return np.asarray(np.vectorize(math.erf, otypes=[np.float64])(block.astype(np.float64)))


def _softmax(program: ProgramInstance, call: Called) -> Block:
    block, axis = program.arithmetic.block(call["x"]), integer(call.get("dim", 0))
    exponentials = np.exp(block - np.max(block, axis=axis, keepdims=True))
    return exponentials / np.sum(exponentials, axis=axis, keepdims=True)


def _rsqrt(block: Block) -> Any:
    return 1.0 / np.sqrt(block)


def _sigmoid(block: Block) -> Any:
    return 1.0 / (1.0 + np.exp(-block))


_REDUCTION = "input axis? keep_dims?"
_Function = Callable[[ProgramInstance, Called], Any]
# The parameters of each function, as ``bound`` takes them, and what computes it.
_ATOMICS = ("atomic_add", "atomic_max", "atomic_min", "atomic_xchg", "atomic_and", "atomic_or", "atomic_xor")
_OF_REAL: dict[str, Callable[[Block], Any]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "sqrt": np.sqrt,
    "sqrt_rn": np.sqrt,
    "rsqrt": _rsqrt,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "sigmoid": _sigmoid,
    "erf": _erf,
    "floor": np.floor,
    "ceil": np.ceil,
    "log1p": np.log1p,
    "expm1": np.expm1,
    "tan": np.tan,
    "rint": np.rint,
    "trunc": np.trunc,
}
FUNCTIONS: dict[str, tuple[str, _Function]] = {
    **{name: ("pointer val mask?", atomic) for name in _ATOMICS},
    **{name: ("x", _real(function)) for name, function in _OF_REAL.items()},
    "program_id": ("axis", _program_id),
    "num_programs": ("axis", _num_programs),
    "arange": ("start end", _arange),
    "zeros": ("shape dtype?", _full),
    "full": ("shape value dtype", _full),
    "zeros_like": ("input", _zeros_like),
    "load": ("pointer mask? other? boundary_check? padding_option?", load),
    "store": ("pointer value mask? boundary_check?", store),
    "atomic_cas": ("pointer cmp val", exchange),
    "make_block_ptr": ("base shape strides offsets block_shape order?", made_block_pointer),
    "make_tensor_descriptor": ("base shape strides block_shape", made_block_pointer),
    "_experimental_make_tensor_descriptor": ("base shape strides block_shape", made_block_pointer),
    "advance": ("base offsets", advanced),
    "dot": ("input other acc? out_dtype?", _dot),
    "sum": (_REDUCTION, _reduced(np.sum)),
    "max": (f"{_REDUCTION} return_indices?", _reduced(np.max)),
    "min": (f"{_REDUCTION} return_indices?", _reduced(np.min)),
    "argmax": ("input axis keep_dims?", _position(np.argmax)),
    "argmin": ("input axis keep_dims?", _position(np.argmin)),
    "cumsum": ("input axis? reverse?", _scanned(np.cumsum)),
    "cumprod": ("input axis? reverse?", _scanned(np.cumprod)),
    "where": ("condition x y", _where),
    "maximum": ("x y", _larger(np.maximum)),
    "minimum": ("x y", _larger(np.minimum)),
    "abs": ("x", _abs),
    "fabs": ("x", _abs),
    "fma": ("x y z", _fma),
    "clamp": ("x min max", _clamp),
    "fdiv": ("x y", _operator("/")),
    "div_rn": ("x y", _operator("/")),
    "pow": ("x y", _power),
    "cdiv": ("x div", _cdiv),
    "mul": ("x y", _operator("*")),
    "add": ("x y", _operator("+")),
    "sub": ("x y", _operator("-")),
    "softmax": ("x dim?", _softmax),
    "cast": ("input dtype bitcast?", _cast),
    "trans": ("input dims*?", _transposed),
    "permute": ("input dims*", _transposed),
    "reshape": ("input shape*", _shaped(np.reshape)),
    "view": ("input shape*", _shaped(np.reshape)),
    "ravel": ("input", _shaped(np.reshape)),
    "broadcast_to": ("input shape*", _shaped(np.broadcast_to)),
    "expand_dims": ("input axis", _expanded),
    "flip": ("x dim?", _flipped),
    "join": ("a b", _joined),
    "interleave": ("a b", _joined),
    "split": ("a", _split),
    "multiple_of": ("input values", _same),
    "max_contiguous": ("input values", _same),
    "max_constancy": ("input values", _same),
    "debug_barrier": ("", _nothing),
    "static_print": ("values*?", _nothing),
    "device_print": ("values*?", _nothing),
    "static_assert": ("cond msg?", _asserted),
    "device_assert": ("cond msg? mask?", _asserted),
    "assume": ("cond", _asserted),
    "constexpr": ("input", _same),
}
