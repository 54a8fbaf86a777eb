"""The dtypes of the kernel language: strings that also cast."""

from __future__ import annotations

import importlib
import re
from typing import TYPE_CHECKING, Any, cast

import ml_dtypes
import numpy as np
from tvm import ir, tirx

from ttexplore.errors import KernelError, Unsupported, shown
from ttexplore.given import plain
from ttexplore.ir.adapter import set_members
from ttexplore.language.guard.names import NotLowered
from ttexplore.language.tracer.wide_tensors import narrow_element
from ttexplore.ops.sfpu import as_int32
from ttexplore.ops.small import rounded_to
from ttexplore.plan import SMALL_FLOATS

if TYPE_CHECKING:
    from typing_extensions import TypeIs

_NAMES = [
    "bool",
    "int4",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint4",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "float8_e3m4",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float4_e2m1fn",
]
# TensorFloat-32 is float32 with a shorter significand, in which a GPU multiplies; here float32 is multiplied as it is.
# A GPU has one float8 with four bits of exponent, which goes by both names.
ALIASES = {
    "half": "float16", "fp16": "float16", "bf16": "bfloat16", "float": "float32", "fp32": "float32",
    "double": "float64", "short": "int16", "int": "int32", "uint": "uint32", "long": "int64",
    "tfloat32": "float32", "tf32": "float32", "float8_e4m3": "float8_e4m3fn",
}  # fmt: skip


class dtype(str):
    """A dtype by its TVM name. Calling one casts a value: ``T.float32(x)``."""

    def __new__(cls, value: object) -> dtype:
        return str.__new__(cls, dtype_name(value))

    @property
    def bits(self) -> int:
        return 8 if self == "bool" else int(re.sub(r"\D*(\d+).*", r"\1", self))

    @property
    def bytes(self) -> int:
        return (self.bits + 7) // 8

    @property
    def itemsize(self) -> int:
        return self.bytes

    def as_torch(self) -> object:
        """The torch dtype of the same name. Raises KernelError where torch is not installed."""
        try:
            torch = importlib.import_module("torch")
        except ImportError as error:
            raise KernelError("K012", "torch is not installed", hint="use T.float16 or its name as dtype") from error
        return getattr(torch, self)

    def __call__(self, value: object) -> ir.Expr:
        value = number_of(value)
        if isinstance(value, int | float):
            return tirx.const(_cast(value, self), str(self))
        if isinstance(value, tirx.IntImm | tirx.FloatImm):
            return tirx.const(_cast(value.value, self), str(self))
        if not isinstance(value, ir.Expr) or not ir.is_prim_expr(value):
            raise KernelError(
                "K009", f"{shown(value)} cannot be cast to {self}", hint="cast numbers and elements, not blocks"
            )
        if self == "int32" and (narrow := narrow_element(value)) is not value:
            return narrow
        return tirx.Cast(ir.PrimType(str(self)), value)


def _cast(value: float, dtype: str) -> float | bool:
    """Cast a number: a fraction is truncated to an integer, and integers keep their lowest bits."""
    if "int" not in dtype:
        return held(value, dtype)
    integer = int(as_int32(np.asarray(value))) if isinstance(value, float) else int(value)
    low, high = integer_range(dtype)
    return (integer - low) % (high - low + 1) + low


def integer_range(dtype: str) -> tuple[int, int]:
    """The smallest and the largest number of an integer dtype."""
    bits = int(dtype.removeprefix("u").removeprefix("int"))
    return (0, 2**bits - 1) if dtype.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def held(value: float, dtype: str) -> float | bool:
    """A number as bool or a floating-point dtype holds it: float16 is stored as bfloat16. Digits beyond float32 are
    kept, because nothing is computed with them."""
    if dtype == "bool":
        return bool(value)
    if dtype in SMALL_FLOATS:
        return float(rounded_to(value, dtype))
    return float(ml_dtypes.bfloat16(np.float32(value))) if dtype in ("bfloat16", "float16") else float(value)


_FLOATS_OF_ML_DTYPES = ("bfloat16", *SMALL_FLOATS)


def number_of(value: object) -> object:
    """Convert NumPy scalars and zero-dimensional arrays to Python numbers; return other values unchanged."""
    if not _is_numpy(value) or value.ndim:
        return value
    if value.dtype.kind not in "biuf" and value.dtype.name not in _FLOATS_OF_ML_DTYPES:
        return value
    return value.item() if value.dtype.kind in "biu" else float(value)


def _is_numpy(value: object) -> TypeIs[np.ndarray[tuple[()], np.dtype[Any]]]:
    return isinstance(value, np.generic | np.ndarray)


def dtype_name(value: object) -> str:
    """The name of a dtype given by name, as a NumPy dtype or scalar type, as a Python number type, or as a torch dtype.

    Raises KernelError for anything else.
    """
    name = (str.__str__(value) if isinstance(value, str) else _name_of(value)).rpartition(".")[2]
    name = ALIASES.get(name, name)
    if isinstance(value, NotLowered):
        raise Unsupported("L009", f"the dtype {value!r} is not lowered", hint="use T.bfloat16 or T.float32")
    if name not in _NAMES:
        raise KernelError("K009", f"{shown(value)} is not a dtype", hint=f"use one of {', '.join(_NAMES)}")
    return name


def _name_of(value: object) -> str:
    """numpy.dtype has .name; numpy.float32 and int have __name__; torch.float16 prints as its name."""
    return str(getattr(value, "name", None) or getattr(value, "__name__", None) or value)


DTYPES: dict[str, dtype] = {name: dtype(name) for name in _NAMES}


def as_argument(value: object) -> object:
    """Convert a kernel argument: dtypes to the language's, NumPy numbers to Python's; return other values unchanged."""
    if isinstance(value, np.generic):
        value = plain(value)
    if isinstance(value, str):
        name = str.__str__(value)
        return DTYPES.get(name.rpartition(".")[2] if name.startswith(("torch.", "T.")) else name, value)
    # An array has no name, and its text may be long.
    is_numpy = not isinstance(value, np.ndarray) and (
        type(value).__module__.partition(".")[0] in ("numpy", "torch")
        or (isinstance(value, type) and value.__module__.partition(".")[0] in ("numpy", "ml_dtypes"))
    )
    return (
        dtype(cast(object, value))
        if is_numpy and _name_of(cast(object, value)).rpartition(".")[2] in _NAMES
        else cast(object, value)
    )


def _dtype_of(element: ir.Expr) -> dtype:
    return dtype(str(element.ty.dtype))


_dtype_of_buffer = vars(ir.Var)["dtype"]


def _dtype_of_variable(variable: ir.Var) -> object:
    return _dtype_of(variable) if ir.is_prim_expr(variable) else _dtype_of_buffer.__get__(variable)


# Values had this before TVM 0.27, and kernels' helper functions, which are plain Python, ask for it: x[i].dtype.
set_members(ir.Var, dtype=property(_dtype_of_variable))
set_members(ir.Expr, dtype=property(_dtype_of))
