"""The inputs of a run that nobody gives: kinds of numbers, by name; and arrays that the user has, by the names of
variables."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ttexplore.errors import UsageError, unknown
from ttexplore.given import named, whole, wrong

Array = NDArray[Any]
Make = Callable[[np.random.Generator, tuple[int, ...], str], Array]

LARGEST_RANDOM_INTEGER = 1000
# A prime, so that the rows of a tensor begin with different numbers; below 256 every dtype holds all of them exactly.
COUNTED = 251
# Finite in every dtype, and so are products of a few of them and long sums: what is infinite, the kernel has made.
_EXTREME_FLOATS = (0.0, -0.0, 1.0, -1.0, 2.0**-14, -(2.0**-14), 2.0**14, -(2.0**14))
_EXTREMES: dict[str, tuple[float, ...]] = {
    "int32": (0, 1, -1, 32767, -32768),
    "uint8": (0, 1, 127, 128, 255),
}


class Tensor(NamedTuple):
    """A tensor of a kernel as its caller sees it."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    def __str__(self) -> str:
        return f"{self.name} {self.dtype} {self.shape}"


@dataclass(frozen=True, slots=True)
class InputKind:
    """A kind of inputs. `seeded` kinds are random: another seed gives other numbers."""

    name: str
    what: str
    seeded: bool
    make: Make


def _random(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    match dtype:
        case "int32":
            return random.integers(-LARGEST_RANDOM_INTEGER, LARGEST_RANDOM_INTEGER + 1, shape)
        case "uint8":
            return random.integers(0, 256, shape) * random.integers(0, 2, shape)
        case _:
            return random.standard_normal(shape)


def _uniform(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    match dtype:
        case "int32":
            return random.integers(0, LARGEST_RANDOM_INTEGER + 1, shape)
        case "uint8":
            return random.integers(0, 256, shape)
        case _:
            return random.random(shape)


def _ones(_: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    del dtype
    return np.ones(shape)


def _counting(_: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    del dtype
    return np.arange(np.prod(shape, dtype=np.int64)).reshape(shape) % COUNTED


def _identity(_: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    del dtype
    # A vector is one row, as it is in a tile.
    rows, columns = (1, 1, *shape)[-2:]
    return np.broadcast_to(np.eye(rows, columns), (*shape[:-2], rows, columns)).reshape(shape)


def _extreme(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    return random.choice(np.array(_EXTREMES.get(dtype, _EXTREME_FLOATS)), shape)


INPUT_KINDS: dict[str, InputKind] = {
    kind.name: kind
    for kind in (
        InputKind("random", "normally distributed; integers from -1000 to 1000; half of uint8 is 0", True, _random),
        InputKind("uniform", "from 0 to 1; integers from 0 to 1000, uint8 to 255", True, _uniform),
        InputKind("ones", "1 everywhere", False, _ones),
        InputKind("counting", f"0, 1, 2 ... {COUNTED - 1} and again from 0, in the order of memory", False, _counting),
        InputKind("identity", "1 on the diagonal of the last two dimensions, else 0", False, _identity),
        InputKind("extreme", "0, -0, ±1, ±2^-14, ±2^14; int32 to 16 bits; uint8 0, 1, 127, 128, 255", True, _extreme),
    )
}


def own_dtype(dtype: str) -> Any:
    """The NumPy dtype of a kernel's dtype."""
    return np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)


def make_inputs(kind: str, tensors: Sequence[Tensor], seed: int = 0) -> tuple[Array, ...]:
    """Arrays for `tensors`, in their own dtypes. Raises UsageError for another kind, and for what is no seed."""
    kind = named("kind of inputs", kind, INPUT_KINDS)
    random = np.random.default_rng(checked_seed(seed))
    return tuple(INPUT_KINDS[kind].make(random, shape, dtype).astype(own_dtype(dtype)) for _, shape, dtype in tensors)


def checked_seed(seed: Any) -> int:
    """`seed` as a number of 64 bits. Raises UsageError."""
    return whole("seed", seed, 0, 2**64 - 1)


# What a user may give in place of arrays in parameter order: arrays by the names of the tensors, a kind, nothing.
Inputs = Sequence[Any] | Mapping[str, Any] | str | None


def given_inputs(inputs: Inputs, tensors: Sequence[Tensor]) -> list[Array] | None:
    """The array that is given for each of `tensors`, whatever its shape; None where a kind is asked for.

    Raises UsageError for a wrong number, a name that no tensor has, a tensor that is left out, and what is no array of
    numbers.
    """
    if inputs is None or isinstance(inputs, str):
        return None
    hint = f"one for each input tensor: {', '.join(map(str, tensors))}"
    if isinstance(inputs, Mapping):
        names = [tensor.name for tensor in tensors]
        for name in inputs:
            if name not in names:
                raise unknown("input", name, names)
        for name in names:
            if name not in inputs:
                raise UsageError("U005", f"input {name} is not given", hint=hint)
        inputs = [inputs[name] for name in names]
    # Sets have no order, and what is used up by looking at it cannot be looked at twice.
    given: Any = inputs
    is_array = isinstance(given, np.ndarray) and given.ndim > 0
    if not (is_array or isinstance(given, Sequence)) or isinstance(given, bytes | bytearray | range):
        raise wrong("inputs", inputs, f"a kind ({', '.join(INPUT_KINDS)}), or arrays, {hint}")
    if len(inputs) != len(tensors):
        raise UsageError("U005", f"{len(inputs)} inputs are given, the kernel takes {len(tensors)}", hint=hint)
    return [_array(place, one, tensor) for place, (one, tensor) in enumerate(zip(inputs, tensors, strict=True))]


def _array(place: int, given: Any, tensor: Tensor) -> Array:
    try:
        array = np.asarray(given)
    except Exception as error:  # Whatever a stranger's __array__ raises.
        raise UsageError(
            "U005",
            f"input {place} ({tensor.name}) is {type(given).__name__}, the kernel takes arrays",
            hint=f"NumPy says: {error}",
        ) from None
    # The names of the dtypes of ml_dtypes are those of numbers too.
    if not array.dtype.name.startswith(("bool", "int", "uint", "float", "bfloat")):
        raise UsageError(
            "U005",
            f"input {place} ({tensor.name}) is {array.dtype.name}, the kernel takes {tensor.dtype}",
            hint="give it numbers",
        )
    return array


def arrays_for(inputs: Inputs, tensors: Sequence[Tensor], seed: int = 0) -> tuple[Array, ...]:
    """An array of numbers for each of `tensors`, of its shape and of any dtype.

    Raises UsageError for another kind, and for whatever is given and no such array.
    """
    seed, arrays = checked_seed(seed), given_inputs(inputs, tensors)
    if arrays is None:
        return make_inputs("random" if inputs is None else str(inputs), tensors, seed)
    for place, (array, tensor) in enumerate(zip(arrays, tensors, strict=True)):
        if array.shape != tensor.shape:
            raise UsageError(
                "U005",
                f"input {place} ({tensor.name}) is {array.shape}, the kernel takes {tensor.shape}",
                hint="reshape it",
            )
    return tuple(arrays)


def named_inputs(names: str, variables: Mapping[str, Any]) -> Inputs:
    """The values of variables, by their names with commas between them; a single one may be a list or dictionary of
    arrays. Names are looked up, nothing is computed.

    Raises UsageError for what is no name, and for a variable that is not there.
    """
    found: list[Any] = []
    for name in (part.strip() for part in names.split(",") if part.strip()):
        if not name.isidentifier() or keyword.iskeyword(name):
            raise UsageError(
                "U005",
                f"inputs are looked up by name, and {name!r} is none",
                hint="give the array a name in a cell: a = ...",
            )
        if name not in variables:
            raise unknown("variable", name, _arrays_among(variables))
        found.append(variables[name])
    if not found:
        raise UsageError("U005", "no variable is named for the inputs", hint="write the names of arrays, as in a, b")
    only: Inputs = found[0]
    return only if len(found) == 1 and isinstance(only, list | tuple | Mapping) else found


def _arrays_among(variables: Mapping[str, Any]) -> list[str]:
    """The names of those variables that may be meant; what a shell keeps for itself is not among them."""
    return sorted(
        name
        for name, value in list(variables.items())
        if not name.startswith("_") and name not in ("In", "Out")
        and (isinstance(value, list | tuple | Mapping) or hasattr(value, "__array__"))
    )  # fmt: skip
