"""The functions of Triton's language, each with its parameters, as NumPy computes them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ttexplore.porting.proof.triton.blocks import (
    Arithmetic,
    Block,
    BlockPointer,
    Dtype,
    Pointer,
    Unrunnable,
    is_block,
    is_integer,
    is_number,
    is_real,
    is_tuple,
)
from ttexplore.porting.proof.triton.memory import CheckedMemory

ASSERTED = "an assertion of the source, which does not hold with these sizes,"
# The most elements that a block of the language may have.
_LARGEST = 2**20


@dataclass(frozen=True, slots=True)
class Called:
    """A call: the values of its arguments by the names of the parameters, and its line."""

    name: str
    values: Mapping[str, Any]
    line: int

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def get(self, name: str, default: Any = None) -> Any:
        return self.values.get(name, default)


@dataclass(frozen=True, slots=True)
class ProgramInstance:
    """One program of a grid, and what it computes with."""

    index: tuple[int, int, int]
    grid: tuple[int, int, int]
    memory: CheckedMemory
    arithmetic: Arithmetic

    def call(self, name: str, positional: Sequence[Any], keywords: Mapping[str, Any], line: int) -> Any:
        """Call a function of the language. Raises Unrunnable for one that is not known, or other arguments."""
        if name not in FUNCTIONS:
            raise Unrunnable(f"tl.{name}")
        signature, function = FUNCTIONS[name]
        return function(self, Called(name, bound(f"tl.{name}", signature.split(), positional, keywords), line))


def bound(
    name: str, parameters: Sequence[str], positional: Sequence[Any], keywords: Mapping[str, Any]
) -> dict[str, Any]:
    """Arguments by the names of the parameters; of one that ends with ``*`` all that are left, a name with ``?`` may
    lack. Raises Unrunnable."""
    values: dict[str, Any] = {}
    rest = list(positional)
    for parameter in parameters:
        plain = parameter.rstrip("?*")
        if parameter.endswith("*"):
            if rest:
                values[plain] = rest[0] if len(rest) == 1 and isinstance(rest[0], tuple) else tuple(rest)
            rest = []
        elif rest:
            values[plain] = rest.pop(0)
        if plain in keywords:
            if plain in values:
                raise Unrunnable(f"two values of {plain} of {name}")
            values[plain] = keywords[plain]
        if plain not in values and not parameter.endswith("?"):
            raise Unrunnable(f"{name} without {plain}")
    unknown = keywords.keys() - {parameter.rstrip("?*") for parameter in parameters} - _HINTS
    if rest or unknown:
        raise Unrunnable(f"{name} with {'more arguments' if rest else min(unknown)}")
    return values


# What changes nothing of what is computed.
_HINTS = {
    "cache_modifier",
    "eviction_policy",
    "volatile",
    "allow_tf32",
    "input_precision",
    "max_num_imprecise_acc",
    "sem",
    "scope",
    "num_stages",
    "loop_unroll_factor",
    "flatten",
    "warp_specialize",
    "disallow_acc_multi_buffer",
    "order",
}


def integer(value: Any) -> int:
    """A number of elements or of an axis. Raises Unrunnable for what is no integer."""
    if isinstance(value, bool | int):
        return int(value)
    if is_block(value) and value.ndim == 0 and is_integer(value):
        return int(value)
    raise Unrunnable("a size or an axis that is no integer")


def integers(values: Any) -> tuple[int, ...]:
    return tuple(map(integer, values)) if is_tuple(values) else (integer(values),)


def _shape(values: Any) -> tuple[int, ...]:
    shape = integers(values)
    if math.prod(shape) > _LARGEST or min(shape, default=1) < 0:
        raise Unrunnable(f"a block of {' x '.join(map(str, shape))} elements")
    return shape


def _mask(mask: Any) -> Block | None:
    return None if mask is None or mask is True else np.asarray(mask) != 0


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
    (size,) = _shape(end - start)
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
    return np.full(_shape(call["shape"]), program.arithmetic.cast(value, name.name))


def _zeros_like(program: ProgramInstance, call: Called) -> Block:
    return np.zeros_like(program.arithmetic.block(call["input"]))


def _load(program: ProgramInstance, call: Called) -> Block:
    pointer, mask, beyond = call["pointer"], _mask(call.get("mask")), call.get("other")
    if isinstance(pointer, BlockPointer):
        if mask is not None or beyond is not None:
            raise Unrunnable("a mask of a block pointer")
        checked = integers(call.get("boundary_check", ()))
        padding = call.get("padding_option", "")
        if padding not in ("", "zero", "nan"):
            raise Unrunnable(f"the padding {padding}")
        addresses, inside = _addresses(pointer, checked)
        fill = math.nan if padding == "nan" else 0.0 if padding == "zero" or pointer.is_descriptor else None
        return program.memory.load(addresses, inside, fill, call.line)
    if not isinstance(pointer, Pointer):
        raise Unrunnable("a load from what is no address")
    return program.memory.load(pointer, mask, beyond, call.line)


def _store(program: ProgramInstance, call: Called) -> None:
    pointer, mask = call["pointer"], _mask(call.get("mask"))
    elements = program.arithmetic.block(call["value"])
    if isinstance(pointer, BlockPointer):
        if mask is not None:
            raise Unrunnable("a mask of a block pointer")
        addresses, inside = _addresses(pointer, integers(call.get("boundary_check", ())))
        program.memory.store(addresses, elements, inside, call.line)
    elif isinstance(pointer, Pointer):
        program.memory.store(_wide(pointer, elements, mask), elements, mask, call.line)
    else:
        raise Unrunnable("a store to what is no address")


def _wide(pointer: Pointer, elements: Block, mask: Block | None) -> Pointer:
    """An address that a block is stored to is that of its elements, if it is as large as they are."""
    shape = pointer.offsets.shape
    if mask is not None and mask.shape != shape and np.broadcast_shapes(mask.shape, shape) != shape:
        raise Unrunnable("a mask that is larger than the block of addresses")
    if np.broadcast_shapes(elements.shape, shape) != shape:
        raise Unrunnable("a block that is stored to a smaller one")
    return pointer


def _atomic(program: ProgramInstance, call: Called) -> Block:
    pointer = call["pointer"]
    if not isinstance(pointer, Pointer):
        raise Unrunnable("an atomic operation on what is no address")
    elements = program.arithmetic.block(call["val"])
    return program.memory.atomic(call.name, pointer, elements, _mask(call.get("mask")), call.line)


def _exchange(program: ProgramInstance, call: Called) -> Block:
    pointer = call["pointer"]
    if not isinstance(pointer, Pointer):
        raise Unrunnable("an atomic operation on what is no address")
    block = program.arithmetic.block
    return program.memory.exchange(pointer, block(call["cmp"]), block(call["val"]), call.line)


def _made_block_pointer(program: ProgramInstance, call: Called) -> BlockPointer:
    base = call["base"]
    if not isinstance(base, Pointer) or base.offsets.shape:
        raise Unrunnable("a block pointer of what is no address")
    shape, strides, blocks = integers(call["shape"]), integers(call["strides"]), _shape(call["block_shape"])
    is_descriptor = call.name != "make_block_ptr"
    offsets = (0,) * len(shape) if is_descriptor else integers(call["offsets"])
    if not len(shape) == len(strides) == len(blocks) == len(offsets):
        raise Unrunnable("a block pointer whose shapes have different numbers of axes")
    return BlockPointer(base, shape, strides, offsets, blocks, is_descriptor)


def _advanced(program: ProgramInstance, call: Called) -> BlockPointer:
    pointer, by = call["base"], integers(call["offsets"])
    if not isinstance(pointer, BlockPointer) or len(by) != len(pointer.offsets):
        raise Unrunnable("tl.advance of what is no block pointer")
    offsets = tuple(offset + step for offset, step in zip(pointer.offsets, by, strict=True))
    return BlockPointer(pointer.base, pointer.shape, pointer.strides, offsets, pointer.block_shape)


def _addresses(pointer: BlockPointer, checked: Sequence[int]) -> tuple[Pointer, Block]:
    """The addresses of a block, and which of them lie inside of the axes that are checked."""
    rank = len(pointer.shape)
    addresses, inside = pointer.base.offsets, np.ones(pointer.block_shape, bool)
    for axis in range(rank):
        index = pointer.offsets[axis] + np.arange(pointer.block_shape[axis], dtype=np.int64)
        index = index.reshape([-1 if axis == other_axis else 1 for other_axis in range(rank)])
        addresses = addresses + index * pointer.strides[axis]
        if pointer.is_descriptor or axis in checked:
            inside = inside & (index >= 0) & (index < pointer.shape[axis])
    return Pointer(pointer.base.tensor, addresses), inside


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
        narrow = program.arithmetic.narrow(block)
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
        wide = block.astype(np.float32) if program.arithmetic.narrow(block) else block
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
        sizes = _shape(shape) if shape != () else (-1,)
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
    **{name: ("pointer val mask?", _atomic) for name in _ATOMICS},
    **{name: ("x", _real(function)) for name, function in _OF_REAL.items()},
    "program_id": ("axis", _program_id),
    "num_programs": ("axis", _num_programs),
    "arange": ("start end", _arange),
    "zeros": ("shape dtype?", _full),
    "full": ("shape value dtype", _full),
    "zeros_like": ("input", _zeros_like),
    "load": ("pointer mask? other? boundary_check? padding_option?", _load),
    "store": ("pointer value mask? boundary_check?", _store),
    "atomic_cas": ("pointer cmp val", _exchange),
    "make_block_ptr": ("base shape strides offsets block_shape order?", _made_block_pointer),
    "make_tensor_descriptor": ("base shape strides block_shape", _made_block_pointer),
    "_experimental_make_tensor_descriptor": ("base shape strides block_shape", _made_block_pointer),
    "advance": ("base offsets", _advanced),
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
