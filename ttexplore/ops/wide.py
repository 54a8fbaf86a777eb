"""Products and functions of float32, computed in float64 and rounded once.

A BLAS adds in an order of its own for each processor and number of threads, and NumPy has other approximations of a
function for each set of vector instructions. In float32 that shows in the last place, and so in figures that are
compared with another machine's; in float64 it is lost when the result is rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def product(left: Array, right: Array) -> Array:
    """Multiply matrices or stacks of them: the result has the dtype of the operands."""
    sums = np.matmul(left.astype(np.float64, copy=False), right.astype(np.float64, copy=False))
    return sums.astype(np.result_type(left, right), copy=False)


def widened(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a NumPy function that computes in float64 where its result is float32."""

    @wraps(function)
    def wide(*operands: Any) -> Any:
        if np.result_type(*operands) != np.float32:
            return function(*operands)
        # An item of arrays without axes is a scalar, as the function itself returns for scalars.
        return np.asarray(function(*(np.asarray(operand, np.float64) for operand in operands))).astype(np.float32)[()]

    return wide


exp, exp2, log, log2, log10, log1p = map(widened, (np.exp, np.exp2, np.log, np.log2, np.log10, np.log1p))
sin, cos, tan, sinh, cosh, tanh = map(widened, (np.sin, np.cos, np.tan, np.sinh, np.cosh, np.tanh))
arcsin, arccos, arctan, arctan2 = map(widened, (np.arcsin, np.arccos, np.arctan, np.arctan2))
arcsinh, arccosh, arctanh = map(widened, (np.arcsinh, np.arccosh, np.arctanh))
power, hypot = widened(np.power), widened(np.hypot)
