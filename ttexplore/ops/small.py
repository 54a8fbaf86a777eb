"""Numbers of dtypes of 8 bits and fewer: which there are, and what others become when they are cast to one.

A cast to a floating-point dtype rounds to the nearest number, ties to even, as ml_dtypes does. Beyond the largest
number it gives that number with the sign, as a GPU's casts do, where ml_dtypes gives infinity or NaN. A cast to an
integer dtype rounds towards zero and keeps the lowest bits; one to bool compares with zero. NaN stays NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ttexplore.ops.integers import SMALL_INTEGERS
from ttexplore.ops.sfpu import as_int32
from ttexplore.plan import SMALL_FLOATS, SMALL_WHOLES

Array = NDArray[Any]


@dataclass(frozen=True)
class SmallFloat:
    """A floating-point dtype: the bits of its fraction, the exponent of its smallest normal number, and its largest
    number."""

    fraction_bits: int
    least_exponent: int
    largest: float

    def holds(self, other: SmallFloat) -> bool:
        """Whether each number of `other` is one of this dtype as well."""
        return (
            self.fraction_bits >= other.fraction_bits
            and self.least_exponent - self.fraction_bits <= other.least_exponent - other.fraction_bits
            and self.largest >= other.largest
        )


FLOATS: dict[str, SmallFloat] = {
    "float8_e4m3fn": SmallFloat(3, -6, 448.0),
    "float8_e5m2": SmallFloat(2, -14, 57344.0),
    "float8_e4m3fnuz": SmallFloat(3, -7, 240.0),
    "float8_e5m2fnuz": SmallFloat(2, -15, 57344.0),
    "float8_e3m4": SmallFloat(4, -2, 15.5),
    "float8_e4m3b11fnuz": SmallFloat(3, -10, 30.0),
    "float6_e2m3fn": SmallFloat(3, 0, 7.5),
    "float6_e3m2fn": SmallFloat(2, -2, 28.0),
    "float4_e2m1fn": SmallFloat(1, 0, 6.0),
}


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """The NumPy dtype with the numbers of a kernel dtype; those of 4 bits have a byte each."""
    match dtype:
        case "int4" | "uint4":
            return np.dtype(dtype.replace("4", "8"))
        case _ if dtype == "bfloat16" or dtype in SMALL_FLOATS:
            return np.dtype(getattr(ml_dtypes, dtype))
        case _:
            return np.dtype(dtype)


def rounded_to(values: Any, dtype: str) -> Array:
    """The results of casts to a dtype of 8 bits or fewer, as float32."""
    numbers = np.asarray(values)
    if dtype in SMALL_FLOATS:
        numbers = np.asarray(numbers, np.float32)
        largest = np.float32(FLOATS[dtype].largest)
        with np.errstate(invalid="ignore"):
            inside = np.clip(numbers, -largest, largest).astype(numpy_dtype(dtype)).astype(np.float32)
        return np.where(np.isnan(numbers), numbers, inside)
    is_float = numbers.dtype.kind not in "iub"
    if dtype == "bool":
        rounded = (numbers != 0).astype(np.float32)
    else:
        low, high = SMALL_INTEGERS[dtype]
        integers = np.asarray(as_int32(numbers) if is_float else numbers, np.int64)
        rounded = ((integers - low & high - low) + low).astype(np.float32)
    return np.where(np.isnan(np.asarray(numbers, np.float32)), np.float32(np.nan), rounded) if is_float else rounded


def on_host(numbers: Any, dtype: str) -> Array:
    """The numbers that a device stores as bfloat16, in their own dtype. What the dtype does not hold comes from an
    unwritten element or from a fault of the program, and becomes NaN, or a conspicuous number."""
    values = np.asarray(numbers, np.float32)
    stored = rounded_to(values, dtype)
    if dtype in SMALL_FLOATS:
        # NaN is the only number that such a dtype can tell a fault with; those of fewer bits have none.
        fault = np.nan if dtype.startswith("float8") else -FLOATS[dtype].largest
        return np.where(stored == values, stored, fault).astype(numpy_dtype(dtype))
    strange = {"uint8": 0xDE, "int8": -0x22, "bool": True, "int4": -3, "uint4": 13}[dtype]
    with np.errstate(invalid="ignore"):
        return np.where(stored == values, stored, strange).astype(numpy_dtype(dtype))


def largest_magnitude(dtype: str) -> int:
    """The largest absolute value of an integer dtype of 8 bits or fewer."""
    low, high = (0, 1) if dtype == "bool" else SMALL_INTEGERS[dtype]
    return max(-low, high)


def is_small(dtype: str) -> bool:
    """Whether tiles store a dtype as bfloat16 because it has 8 bits or fewer."""
    return dtype in SMALL_FLOATS or dtype in SMALL_WHOLES
