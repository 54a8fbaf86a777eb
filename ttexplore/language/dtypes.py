"""The dtypes of the kernel language: strings that also cast."""

from __future__ import annotations

from typing import Any

from tvm import ir, tirx

_BITS = {
    "bool": 8, "int8": 8, "int16": 16, "int32": 32, "int64": 64, "uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64,
    "float16": 16, "bfloat16": 16, "float32": 32, "float64": 64, "float8_e4m3fn": 8, "float8_e5m2": 8,
}  # fmt: skip
_ALIASES = {"bf16": "bfloat16", "fp16": "float16", "half": "float16", "float": "float32", "fp32": "float32", "int": "int32"}


class dtype(str):
    """A dtype by its TVM name; calling it casts a value."""

    @property
    def bits(self) -> int:
        return _BITS[self]

    @property
    def bytes(self) -> int:
        return self.bits // 8

    def __call__(self, value: Any) -> Any:
        if isinstance(value, int | float):
            return tirx.const(value, str(self))
        return tirx.Cast(ir.PrimType(str(self)), value)


DTYPES: dict[str, dtype] = {name: dtype(name) for name in _BITS}


def dtype_of(value: Any) -> dtype:
    """The dtype meant by a name, a NumPy dtype or a stand-in of torch's (``torch.float16``). Raises TypeError."""
    name = getattr(value, "name", None) or str(value)
    name = name.rpartition(".")[2]
    name = _ALIASES.get(name, name)
    if name not in DTYPES:
        raise TypeError(f"{value!r} is no dtype; known are {', '.join(DTYPES)}")
    return DTYPES[name]
