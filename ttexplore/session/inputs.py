"""The inputs of a run: generated kinds of inputs, by name, and the user's arrays, by the names of variables."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ttexplore.errors import UsageError, said, type_name, unknown
from ttexplore.given import named, pairs_of, plain, readable, whole, wrong
from ttexplore.ops.integers import SMALL_INTEGERS
from ttexplore.ops.small import FLOATS, numpy_dtype

Array = NDArray[Any]
Make = Callable[[np.random.Generator, tuple[int, ...], str], Array]

LARGEST_RANDOM_INTEGER = 1000
# A prime, so that the rows of a tensor start with different numbers; below 256, so that bfloat16 is exact. Other dtypes
# hold fewer whole numbers.
COUNTED = 251
_COUNTED = {
    "int8": 127, "uint4": 13, "int4": 7, "bool": 2, "float8_e5m2": 7, "float8_e5m2fnuz": 7,
    "float8_e4m3fn": 13, "float8_e4m3fnuz": 13, "float8_e3m4": 13, "float8_e4m3b11fnuz": 13,
    "float6_e2m3fn": 7, "float6_e3m2fn": 7, "float4_e2m1fn": 5,
}  # fmt: skip
# Finite in every dtype, as are products of a few of them and long sums: any infinity comes from the kernel.
_EXTREME_FLOATS = (0.0, -0.0, 1.0, -1.0, 2.0**-14, -(2.0**-14), 2.0**14, -(2.0**14))
_EXTREMES: dict[str, tuple[float, ...]] = {
    "int32": (0, 1, -1, 32767, -32768),
    "uint8": (0, 1, 127, 128, 255),
    "int8": (0, 1, -1, 127, -128),
    "uint4": (0, 1, 15),
    "int4": (0, 1, -1, 7, -8),
    "bool": (0, 1),
    **{
        name: (0.0, -0.0, 1.0, -1.0, 2.0**float_format.least_exponent, -float_format.largest, float_format.largest)
        for name, float_format in FLOATS.items()
    },
}


class Tensor(NamedTuple):
    """A kernel's tensor: name, shape and the kernel's own dtype."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    def __str__(self) -> str:
        return f"{self.name} {self.dtype} {self.shape}"


@dataclass(frozen=True, slots=True)
class InputKind:
    """A kind of generated inputs. `seeded` kinds are random: another seed gives other numbers."""

    name: str
    what: str
    seeded: bool
    make: Make


def _random(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    match dtype:
        case "int32":
            return random.integers(-LARGEST_RANDOM_INTEGER, LARGEST_RANDOM_INTEGER + 1, shape)
        case "uint8" | "uint4":
            return random.integers(0, SMALL_INTEGERS[dtype][1] + 1, shape) * random.integers(0, 2, shape)
        case "int8" | "int4":
            return random.integers(SMALL_INTEGERS[dtype][0], SMALL_INTEGERS[dtype][1] + 1, shape)
        case "bool":
            return random.integers(0, 2, shape)
        case _:
            return random.standard_normal(shape)


def _uniform(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    match dtype:
        case "int32":
            return random.integers(0, LARGEST_RANDOM_INTEGER + 1, shape)
        case "uint8" | "uint4" | "int8" | "int4":
            return random.integers(0, SMALL_INTEGERS[dtype][1] + 1, shape)
        case "bool":
            return random.integers(0, 2, shape)
        case _:
            return random.random(shape)


def _ones(_: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    del dtype
    return np.ones(shape)


def counted(dtype: str) -> int:
    """How many whole numbers, from 0, the inputs that count have of a dtype."""
    return _COUNTED.get(dtype, COUNTED)


def _counting(_: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    return np.arange(np.prod(shape, dtype=np.int64)).reshape(shape) % counted(dtype)


def _identity(_: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    del dtype
    # A vector counts as one row, as in a tile.
    rows, columns = (1, 1, *shape)[-2:]
    return np.broadcast_to(np.eye(rows, columns), (*shape[:-2], rows, columns)).reshape(shape)


def _extreme(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    return random.choice(np.array(_EXTREMES.get(dtype, _EXTREME_FLOATS)), shape)


INPUT_KINDS: dict[str, InputKind] = {
    kind.name: kind
    for kind in (
        InputKind("random", "normally distributed; integers to ±1000, all of int8; half of uint8 is 0", True, _random),
        InputKind("uniform", "from 0 to 1; integers from 0 to 1000, uint8 to 255, int8 to 127", True, _uniform),
        InputKind("ones", "1 everywhere", False, _ones),
        InputKind("counting", f"0, 1, 2 ... {COUNTED - 1} and again from 0, in the order of memory", False, _counting),
        InputKind("identity", "1 on the diagonal of the last two dimensions, 0 elsewhere", False, _identity),
        InputKind("extreme", "0, -0, ±1, ±2^-14, ±2^14; int32 to 16 bits; uint8 0, 1, 127, 128, 255", True, _extreme),
    )
}


def make_inputs(kind: str, tensors: Sequence[Tensor], seed: int = 0) -> tuple[Array, ...]:
    """Generate arrays for `tensors`, in their own dtypes. Raises UsageError for unknown kinds and invalid seeds."""
    kind = named("kind of inputs", kind, INPUT_KINDS)
    random = np.random.default_rng(checked_seed(seed))
    return tuple(INPUT_KINDS[kind].make(random, shape, dtype).astype(numpy_dtype(dtype)) for _, shape, dtype in tensors)


def checked_seed(seed: object) -> int:
    """`seed` as a 64-bit number. Raises UsageError."""
    return whole("seed", seed, 0, 2**64 - 1)


# Accepted inputs: arrays in parameter order, arrays by the names of the tensors, a kind, or nothing.
Inputs = Sequence[object] | Mapping[str, object] | str | None


def given_inputs(inputs: Inputs, tensors: Sequence[Tensor], reasons: Sequence[str] = ()) -> list[Array] | None:
    """The array given for each of `tensors`, in any shape; None if a kind is given. Messages repeat the `reasons` for
    which outputs are among them.

    Raises UsageError for a wrong number of arrays, an unknown or missing name, and a value that is not a numeric array.
    """
    if inputs is None or isinstance(inputs, str):
        return None
    hint = "; ".join([f"one for each input tensor: {', '.join(map(str, tensors))}", *reasons])
    if isinstance(inputs, Mapping):
        names = [tensor.name for tensor in tensors]
        by_name = inputs
        inputs = readable("inputs", by_name, lambda: {plain(name): array for name, array in pairs_of(by_name)})
        for name in inputs:
            if not isinstance(cast(object, name), str) or name not in names:
                raise unknown("input", name, names)
        for name in names:
            if name not in inputs:
                raise UsageError("U005", f"input {name} is missing", hint=hint)
        inputs = [inputs[name] for name in names]
    # Sets have no order, and iterators can be read only once.
    provided = cast(object, inputs)
    is_array = isinstance(provided, np.ndarray) and provided.ndim > 0
    if not (is_array or isinstance(provided, Sequence)) or isinstance(provided, bytes | bytearray | range):
        raise wrong("inputs", cast(object, provided), f"a kind ({', '.join(INPUT_KINDS)}), or arrays, {hint}")
    inputs = readable("inputs", inputs, lambda: [*cast(Sequence[object], provided)])
    if len(inputs) != len(tensors):
        message = f"the number of inputs is {len(inputs)}, but the kernel takes {len(tensors)}"
        raise UsageError("U005", message, hint=hint)
    return [_array(index, array, tensor) for index, (array, tensor) in enumerate(zip(inputs, tensors, strict=True))]


def _array(index: int, data: object, tensor: Tensor) -> Array:
    try:
        array = np.asarray(data)
    except (Exception, SystemExit) as error:  # A user's __array__ may raise anything.
        raise UsageError(
            "U005",
            f"input {index} ({tensor.name}) has the type {type_name(data)}, but the kernel takes arrays",
            hint=f"pass an array; NumPy says: {said(error)}",
        ) from None
    if issubclass(type(data), np.ma.MaskedArray) and np.ma.is_masked(data):
        raise UsageError(
            "U005",
            f"input {index} ({tensor.name}) is a masked array, of which some elements are no numbers",
            hint="say what stands for them: array.filled(0)",
        )
    # The names of ml_dtypes' dtypes denote numbers as well.
    if not array.dtype.name.startswith(("bool", "int", "uint", "float", "bfloat")):
        raise UsageError(
            "U005",
            f"input {index} ({tensor.name}) has the dtype {array.dtype.name}, but the kernel takes {tensor.dtype}",
            hint="pass an array of numbers",
        )
    return array


def arrays_for(
    inputs: Inputs, tensors: Sequence[Tensor], seed: int = 0, reasons: Sequence[str] = ()
) -> tuple[Array, ...]:  # fmt: skip
    """A numeric array for each of `tensors`, of its shape and of any dtype. A number is a tensor of one element.
    Messages repeat the `reasons` for which outputs are among them.

    Raises UsageError for unknown kinds and for inputs that are not such arrays.
    """
    seed, arrays = checked_seed(seed), given_inputs(inputs, tensors, reasons)
    if arrays is None:
        return make_inputs("random" if inputs is None else plain(inputs), tensors, seed)
    arrays = [
        array.reshape(1) if not array.ndim and tensor.shape == (1,) else array
        for array, tensor in zip(arrays, tensors, strict=True)
    ]
    for index, (array, tensor) in enumerate(zip(arrays, tensors, strict=True)):
        if array.shape != tensor.shape:
            raise UsageError(
                "U005",
                f"input {index} ({tensor.name}) has the shape {array.shape}, but the kernel takes {tensor.shape}",
                hint="reshape it",
            )
    return tuple(arrays)


def named_inputs(names: str, variables: Mapping[str, object]) -> Inputs:
    """The values of variables, given by comma-separated names; a single one may be a list or dictionary of arrays.
    Names are looked up, never evaluated.

    Raises UsageError for text that is not a name, and for undefined variables.
    """
    values: list[object] = []
    for name in (word.strip() for word in names.split(",") if word.strip()):
        if not name.isidentifier() or keyword.iskeyword(name):
            raise UsageError(
                "U005",
                f"inputs are looked up by name, and {name!r} is not a name",
                hint="assign the array to a variable in a cell, and enter the variable's name",
            )
        if name not in variables:
            raise unknown("variable", name, _arrays_among(variables))
        values.append(variables[name])
    if not values:
        raise UsageError("U005", "no variable is named for the inputs", hint="enter names of arrays, for example a, b")
    alone = len(values) == 1 and isinstance(values[0], list | tuple | Mapping)
    return cast(Inputs, values[0]) if alone else values


def _arrays_among(variables: Mapping[str, object]) -> list[str]:
    """The names of variables that may hold inputs, without those that the shell itself defines."""
    return sorted(
        name
        for name, value in list(variables.items())
        if not name.startswith("_") and name not in ("In", "Out")
        and (isinstance(value, list | tuple | Mapping) or hasattr(value, "__array__"))
    )  # fmt: skip
