"""Arrays as the interpreter holds them: float32, or int32 where a buffer holds that, or float64 where nothing is to be
rounded; and what formats keep of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ttexplore.errors import Unsupported
from ttexplore.ir.arithmetic.uncertain import Uncertain
from ttexplore.ops.block_float import GROUP, rounded_in_groups
from ttexplore.ops.op import UNWRITTEN, TileKind
from ttexplore.ops.small import is_small, numpy_dtype
from ttexplore.ops.storage import Array, instead_of
from ttexplore.ops.storage import rounded as rounded_array
from ttexplore.plan import BLOCK_FLOAT, FORMAT_OF_DTYPE, SMALL_WHOLES

# The dtype of all floating-point numbers of a run that rounds none.
_UNROUNDED = "float64"


def _rounded(values: Any, dtype: str) -> Array:
    return np.asarray(values, np.float64) if dtype == _UNROUNDED else rounded_array(values, dtype)


def rounded(values: Any, dtype: str) -> Any:
    """Numbers of a kernel dtype: those nearest to `values`, or the ones that a cast to integers gives."""
    return _as_numbers(values, dtype, kept=False)


def stored_as(values: Any, dtype: str) -> Any:
    """What a buffer of a kernel dtype holds of `values`. A program that does not store numbers of 16 bits in between,
    or not each time, rounds them less often: their errors say so."""
    return _as_numbers(values, dtype, kept=FORMAT_OF_DTYPE.get(dtype) == "Float16_b" and not is_small(dtype))


def _as_numbers(values: Any, dtype: str, *, kept: bool) -> Any:
    if not isinstance(values, Uncertain):
        return _rounded(values, dtype)
    if dtype == _UNROUNDED and values.dtype == np.float64:
        # Where nothing is rounded, moving a number has no error.
        return values
    if dtype == "bool" and not isinstance(values := values != 0, Uncertain):
        return _rounded(values, dtype)
    return values.rounded(lambda array: _rounded(array, dtype), whole=is_whole(dtype), kept=kept)


def is_whole(dtype: str) -> bool:
    """Whether a kernel dtype is one of whole numbers."""
    return dtype == "int32" or dtype in SMALL_WHOLES


def unrounded(dtype: str) -> str:
    """The dtype in place of a kernel dtype in a run that rounds no floating-point number."""
    return _UNROUNDED if "float" in dtype else dtype


def held(dtype: str) -> TileKind:
    """In which dtype the interpreter holds what a kernel dtype stands for."""
    return "int32" if dtype == "int32" else "float32"


def in_tiles(dtype: str) -> str:
    """The dtype whose numbers tiles of a kernel dtype can hold. Tiles round nothing to 8 bits: operations do."""
    return "bfloat16" if is_small(dtype) else dtype


def unwritten(shape: Sequence[int], dtype: str) -> Array:
    return np.full(shape, UNWRITTEN[held(dtype)], _UNROUNDED if dtype == _UNROUNDED else held(dtype))


def storage(dtype: str) -> np.dtype[Any]:
    """The NumPy dtype of what the chip holds of a kernel dtype. Raises Unsupported where no tile format does."""
    if dtype not in FORMAT_OF_DTYPE:
        raise Unsupported("L009", f"{dtype} has no tile format", hint=instead_of(dtype))
    return numpy_dtype("bfloat16" if dtype == "float16" else dtype)


def in_format(array: Array, data_format: str | None) -> Array:
    """Numbers as a tile format holds them that is not their dtype's; as they are in others, or without one."""
    return rounded_in_groups(array) if data_format == BLOCK_FLOAT else array


def error_in_format(array: Uncertain, data_format: str | None) -> NDArray[np.float32]:
    """The errors of what a tensor holds, below and above: numbers of a group with one exponent are as wrong as the
    largest of them."""
    if data_format != BLOCK_FLOAT:
        return np.stack([array.below, array.above]).astype(np.float32)
    sizes = np.abs(array.value).reshape(-1, GROUP).max(axis=1, keepdims=True)
    cut = np.broadcast_to(sizes * array.unit, (len(sizes), GROUP)).reshape(array.shape)
    return np.stack([np.hypot(error, cut) for error in (array.below, array.above)])
