"""The kernel language's functions on elements: NumPy's, rounded to the dtype of their operands.

The interpreter computes elements with them and the language constants, so that both are the same number.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ttexplore.ops import OPS, wide
from ttexplore.ops.storage import Array


def _exp10(x: Array) -> Array:
    return wide.power(np.float32(10), x)


def _power(x: Array, y: Array) -> Array:
    """C's pow. For a scalar exponent 0.5 NumPy computes the root, which differs at -0.0 and at minus infinity."""
    differs = np.equal(y, 0.5) & (np.equal(x, 0) | np.equal(x, -np.inf))
    return wide.power(np.where(differs, np.abs(x), x), y)


def _round_half_away(x: Array) -> Array:
    """To the nearest whole number, ties away from zero, as C's round and a GPU's do."""
    truncated = np.trunc(x)
    return truncated + np.trunc(np.float32(2) * (x - truncated))


# By the names that TIR has for them: those that are one operation of the chip, and those that are lowered to several.
FUNCTIONS: dict[str, Callable[..., Array]] = {
    **{op.function: op.of_elements for op in OPS.values() if op.of_elements is not None},
    "exp10": _exp10, "log10": wide.log10, "log1p": wide.log1p, "tan": wide.tan, "sinh": wide.sinh, "cosh": wide.cosh,
    "hypot": wide.hypot, "pow": _power, "fabs": np.abs, "round": _round_half_away,
}  # fmt: skip

# Those whose results are whole numbers.
TO_WHOLE = frozenset({"floor", "ceil", "trunc", "round", "nearbyint"})
