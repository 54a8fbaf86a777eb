"""The precision with which tensors store numbers."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ttexplore.ops.sfpu import as_int32
from ttexplore.ops.small import is_small, rounded_to
from ttexplore.plan import FORMAT_OF_DTYPE

Array = NDArray[Any]


def instead_of(dtype: str) -> str:
    """What to use instead of a dtype that tiles do not store."""
    if dtype == "float64":
        return "use float32: the chips compute with no wider numbers"
    if "int" in dtype:
        return "use int32: integers of other sizes above 8 bits have no tiles"
    return f"use one of {', '.join(FORMAT_OF_DTYPE)}"


def rounded(values: Any, dtype: str) -> Array:
    """`values` as float32, rounded to the chip's precision for a kernel dtype; as int32 if that is the dtype."""
    if dtype == "int32":
        numbers = np.asarray(values)
        return (as_int32(numbers) if numbers.dtype.kind == "f" else numbers).astype(np.int32)
    if is_small(dtype):
        # Unwritten elements stay recognizable.
        return rounded_to(values, dtype)
    if dtype in FORMAT_OF_DTYPE and FORMAT_OF_DTYPE[dtype] == "Float16_b":
        return np.asarray(values, np.float32).astype(ml_dtypes.bfloat16).astype(np.float32)
    return np.asarray(values, np.float32)
