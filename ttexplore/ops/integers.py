"""Element-wise operations of the SFPU on 32-bit integers, on tiles in DST. They wrap around (two's complement)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ttexplore.ops.op import Op, Operand, Tile, dst, integer, integers
from ttexplore.ops.sfpu_cycles import sfpu_cycles

_FORMAT = "<DataFormat::Int32>"
_BITS = 32

# The integer dtypes whose arithmetic wraps around in fewer bits than the chip's: their smallest and largest numbers.
SMALL_INTEGERS: dict[str, tuple[int, int]] = {
    "int4": (-(2**3), 2**3 - 1), "uint4": (0, 2**4 - 1),
    "int8": (-(2**7), 2**7 - 1), "uint8": (0, 2**8 - 1), "int16": (-(2**15), 2**15 - 1), "uint16": (0, 2**16 - 1),
}  # fmt: skip


def shifted_left(a: Any, amounts: Any) -> Any:
    """``a << places``, or 0 if `amounts` is not in 0 to 31: on the chip, in NumPy and in PTX."""
    inside = (np.asarray(amounts) >= 0) & (np.asarray(amounts) < _BITS)
    return np.where(inside, np.left_shift(a, _as_wide(np.where(inside, amounts, 0), a)), np.zeros_like(a))


def shifted_right(a: Any, amounts: Any) -> Any:
    """``a >> places`` with sign extension: of places that are not in 0 to 31, only the sign is left, as in NumPy and in
    PTX."""
    inside = (np.asarray(amounts) >= 0) & (np.asarray(amounts) < _BITS)
    # The last place apart, which numbers of 32 bits without a sign need.
    places = _as_wide(np.where(inside, amounts, _BITS - 1), a)
    return np.right_shift(np.right_shift(a, places), _as_wide(~inside, a))


def _as_wide(amounts: NDArray[Any], a: Any) -> NDArray[Any]:
    """Places in the dtype of what is shifted: of two dtypes NumPy takes the wider one, in which no bit is lost."""
    return amounts.astype(np.asarray(a).dtype)


def shifted_right_by_sfpu(a: Any, amounts: Any) -> Any:
    """``a >> places`` as the chip has it: 0 if `amounts` is not in 0 to 31."""
    inside = (np.asarray(amounts) >= 0) & (np.asarray(amounts) < _BITS)
    return np.where(inside, shifted_right(a, amounts), 0)


def _filled(value: int) -> NDArray[np.int32]:
    # Numbers that the kernel computes are words of 32 bits without a sign.
    return np.full((32, 32), value & 0xFFFFFFFF, np.uint32).view(np.int32)


def _op(
    name: str,
    meaning: Callable[..., Tile],
    header: str,
    *,
    init: str,
    cpp: str,
    operands: tuple[Operand, ...],
    note: str = "",
) -> Op:
    return Op(
        f"{name}_tile", operands, cpp, header, "sfpu", init=init, meaning=integers(meaning), dst_bits=32,
        cycles=sfpu_cycles(f"{name}_tile", dst_bits=32), takes="int32", gives="int32", note=note,
    )  # fmt: skip


_TWO = (dst("a", "read"), dst("b", "read"), dst("out"))
_ONE = (dst("value", "update"),)


def _of_two(name: str, meaning: Callable[..., Tile], header: str, init: str) -> Op:
    call = f"{name}_tile" if name.startswith("binary_m") else f"{name}_tile{_FORMAT}"
    return _op(name, meaning, header, init=init, cpp=f"{call}({{a}}, {{b}}, {{out}})", operands=_TWO)


_COMPARISONS: dict[str, Callable[..., Any]] = {
    "gt": np.greater, "ge": np.greater_equal, "lt": np.less, "le": np.less_equal, "eq": np.equal, "ne": np.not_equal,
}  # fmt: skip
_BITWISE = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
_SHIFT = "api/compute/binary_shift.h"

FILL_TILE_INT = _op(
    "fill_int", _filled, "api/compute/eltwise_unary/fill.h", init="fill_tile_init()",
    cpp=f"fill_tile_int{_FORMAT}({{out}}, static_cast<uint32_t>({{value}}))",
    operands=(dst("out"), integer("value")),
)  # fmt: skip

INTEGER_OPS = (
    FILL_TILE_INT,
    _of_two("add_int", np.add, "api/compute/add_int_sfpu.h", "add_int_tile_init()"),
    _of_two("sub_int", np.subtract, "api/compute/sub_int_sfpu.h", "sub_int_tile_init()"),
    _of_two("mul_int", np.multiply, "api/compute/mul_int_sfpu.h", f"mul_int_tile_init{_FORMAT}()"),
    _of_two("binary_max_int32", np.maximum, "api/compute/binary_max_min.h", "binary_max_int32_tile_init()"),
    _of_two("binary_min_int32", np.minimum, "api/compute/binary_max_min.h", "binary_min_int32_tile_init()"),
    *(
        _of_two(f"{name}_int", compare, "api/compute/binary_comp.h", f"{name}_int_tile_init{_FORMAT}()")
        for name, compare in _COMPARISONS.items()
    ),
    *(
        _of_two(
            f"bitwise_{name}_binary", meaning, "api/compute/binary_bitwise_sfpu.h", "binary_bitwise_tile_init()"
        )
        for name, meaning in _BITWISE.items()
    ),
    _of_two("binary_left_shift", shifted_left, _SHIFT, "binary_shift_tile_init()"),
    _of_two("binary_right_shift", shifted_right_by_sfpu, _SHIFT, "binary_shift_tile_init()"),
    _op(
        "bitwise_not", np.invert, "api/compute/eltwise_unary/bitwise_not.h", init="bitwise_not_tile_init()",
        cpp="bitwise_not_tile({value})", operands=_ONE,
    ),
    _op(
        "abs_int32", np.abs, "api/compute/compute_kernel_api.h", init="abs_tile_init()", cpp="abs_tile_int32({value})",
        operands=_ONE,
    ),
)  # fmt: skip
