"""How accurate the functions of the kernel language are, on which operands: what the tests hold and the page tells."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Accuracy:
    """Of ``T.name`` on float32: the largest error relative to the result on operands whose magnitude is between `low`
    and `high`, of both signs where `negative`."""

    name: str
    meaning: Callable[[Any], Any]
    bound: float
    low: float = 1e-36
    high: float = 1e38
    negative: bool = True

    def operands(self) -> NDArray[np.float32]:
        """Spread evenly over all magnitudes, and denser where functions bend."""
        random = np.random.default_rng(1)
        low, high = math.log(self.low), math.log(self.high)
        spread = np.exp(random.uniform(low, high, 4096))
        middle = np.exp(random.uniform(max(low, math.log(1e-8)), min(high, math.log(100)), 4096))
        magnitudes = np.concatenate([spread, middle]).reshape(32, 256)
        signs = np.where(random.random(magnitudes.shape) < 0.5, -1, 1) if self.negative else 1
        return (magnitudes * signs).astype(np.float32)


_erf = np.vectorize(math.erf, otypes=[np.float64])

ACCURACIES = (
    Accuracy("exp", np.exp, 2e-7), Accuracy("exp2", np.exp2, 1e-7), Accuracy("exp10", lambda x: 10.0**x, 5e-6),
    Accuracy("log", np.log, 2e-7, negative=False), Accuracy("log2", np.log2, 1.5e-7, negative=False),
    Accuracy("log10", np.log10, 2e-7, negative=False), Accuracy("log1p", np.log1p, 1.5e-7, negative=False),
    Accuracy("sqrt", np.sqrt, 1e-7, negative=False), Accuracy("rsqrt", lambda x: 1 / np.sqrt(x), 1e-7, negative=False),
    Accuracy("tanh", np.tanh, 2e-7), Accuracy("sinh", np.sinh, 4e-7), Accuracy("cosh", np.cosh, 3e-7),
    Accuracy("sigmoid", lambda x: 1 / (1 + np.exp(-x)), 2e-7), Accuracy("erf", _erf, 3e-7),
    Accuracy("sin", np.sin, 2e-7, high=1e5), Accuracy("cos", np.cos, 2e-7, high=1e5),
    Accuracy("tan", np.tan, 3e-7, high=1e5),
)  # fmt: skip

PAGE = """
## The functions of the kernel language

The largest relative error of each function of float32, against float64, on operands of every magnitude: of the
emulator, which computes bit for bit as the chips do, and of the reference. Results below 1.2e-38 may be 0.

| Function | Operands | Relative error |
|---|---|---|
""" + "".join(
    f"| `T.{one.name}` | {'±' if one.negative else ''}{one.low:g} to {'±' if one.negative else ''}{one.high:g} "
    f"| {one.bound:g} |\n"
    for one in ACCURACIES
) + """
`T.log1p` of negative numbers is as accurate down to -0.5. `T.sin`, `T.cos` and `T.tan` lose digits from 3e5 on and
have none left from 1e7 on. `T.hypot` squares its operands: they must lie between 1e-19 and 1e19.

NaN does not always stay NaN on the chip: the smaller of NaN and a number, and NaN clamped, are the number; 1 / NaN is
0, as is any constant from -1 to 1 but 0 over NaN; `T.sigmoid` and `T.erf` of NaN are 0 and 1; `T.pow(x, 0.5)` and
`T.pow(x, -0.5)` of minus infinity are NaN. A run whose result depends on it fails, and says so.

Constants keep the sign of zero: `x + 0.0` turns -0.0 into 0.0, `x - 0.0` does not. The chip does not always keep it: a
product or quotient that is 0 may lose its sign, the larger and the smaller of two zeros may be either, and a bfloat16
output of -0.0 is 0.0.

Not promised: subnormal numbers, which chips take for 0 and give as 0. So `T.log` of one is an infinity and `T.rsqrt` of
one is far off: a run whose outputs depend on it fails. `T.sin`, `T.cos` and `T.tan` of huge angles are any numbers: a
run fails where they are among the largest of an output; beside larger ones the verdict takes them as they come.

## What passes

A result is compared with that of the kernel before its lowering. As a whole: the correlation, and the largest error
beside the largest value. Then each row and each column of each 32x32 tile by itself, so that large values do not hide
small ones: its error is at most a quarter of its own norm, or what rounding explains. That is computed with the kernel:
each operation may be wrong by a unit of its precision, and errors go on to what is computed from them. So sums that
cancel are given what their operands explain, and a part that is zero, negated or garbage is found. Where rounding
explains the error of every row and column, the result is right although nothing correlates.

Not seen: errors below a quarter of a row or column that is small beside the rest of its output, errors that are small
beside the intermediate results, as of `(x + 1000) - 1000`, and what lies in the same row and the same column of a tile
as larger numbers. A saved exploration has no kernel to compute this with: its runs are compared as a whole.
"""  # fmt: skip
