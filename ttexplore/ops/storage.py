"""The precision with which tensors store numbers."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ttexplore.ops.sfpu import as_int32
from ttexplore.plan import FORMAT_OF_DTYPE

Array = NDArray[Any]


def rounded(values: Any, dtype: str) -> Array:
    """`values` as float32, rounded to the chip's precision for a kernel dtype; as int32 if that is the dtype."""
    if dtype == "int32":
        numbers = np.asarray(values)
        return (as_int32(numbers) if numbers.dtype.kind == "f" else numbers).astype(np.int32)
    if dtype == "uint8":
        numbers = np.asarray(values, np.float32)
        # Unwritten elements stay recognizable.
        return np.where(np.isnan(numbers), numbers, as_int32(numbers) & 255).astype(np.float32)
    if dtype in FORMAT_OF_DTYPE and FORMAT_OF_DTYPE[dtype] == "Float16_b":
        return np.asarray(values, np.float32).astype(ml_dtypes.bfloat16).astype(np.float32)
    return np.asarray(values, np.float32)
