"""What the functions of the kernel language give: NumPy's, in the dtype of their operands.

The interpreter computes elements with them and the language constants, so that both are the same number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np


def _exp10(x: Any) -> Any:
    return np.power(np.float32(10), x)


def _power(x: Any, y: Any) -> Any:
    """C's pow. For a scalar exponent 0.5 NumPy computes the root, which differs at -0.0 and at minus infinity."""
    differs = np.equal(y, 0.5) & (np.equal(x, 0) | np.equal(x, -np.inf))
    return np.power(np.where(differs, np.abs(x), x), y)


def _rsqrt(x: Any) -> Any:
    return np.float32(1) / np.sqrt(x)


def _sigmoid(x: Any) -> Any:
    return np.float32(1) / (np.float32(1) + np.exp(-x))


def _erf(x: Any) -> Any:
    values = np.asarray(x, np.float32)
    return np.fromiter((math.erf(one) for one in values.flat), np.float32, values.size).reshape(values.shape)


def _round_half_away(x: Any) -> Any:
    """To the nearest whole number, ties away from zero, as C's round and a GPU's do."""
    whole = np.trunc(x)
    return whole + np.trunc(np.float32(2) * (x - whole))


# By the names that TIR has for them.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "exp": np.exp, "exp2": np.exp2, "exp10": _exp10, "log": np.log, "log2": np.log2, "log10": np.log10,
    "log1p": np.log1p, "sqrt": np.sqrt, "rsqrt": _rsqrt, "sigmoid": _sigmoid, "tanh": np.tanh, "erf": _erf,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "sinh": np.sinh, "cosh": np.cosh, "hypot": np.hypot,
    "pow": _power, "fabs": np.abs, "abs": np.abs, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,
    "round": _round_half_away, "nearbyint": np.rint,
}  # fmt: skip
