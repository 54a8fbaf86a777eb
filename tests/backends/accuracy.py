"""The accuracy of the kernel language's functions, by operands: checked by tests, and listed in docs/numerics.md."""

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
    """The largest relative error of ``T.name`` on float32 operands whose magnitude is between `low` and `high`, of both
    signs if `negative`."""

    name: str
    meaning: Callable[[Any], Any]
    bound: float
    low: float = 1e-36
    high: float = 1e38
    negative: bool = True

    def operands(self) -> NDArray[np.float32]:
        """Operands spread evenly over all magnitudes, and denser where functions have high curvature."""
        random = np.random.default_rng(1)
        low, high = math.log(self.low), math.log(self.high)
        spread = np.exp(random.uniform(low, high, 4096))
        middle = np.exp(random.uniform(max(low, math.log(1e-8)), min(high, math.log(100)), 4096))
        magnitudes = np.concatenate([spread, middle]).reshape(32, 256)
        signs = np.where(random.random(magnitudes.shape) < 0.5, -1, 1) if self.negative else 1
        return (magnitudes * signs).astype(np.float32)


_erf = np.vectorize(math.erf, otypes=[np.float64])

ACCURACIES = (
    Accuracy("exp", np.exp, 1e-7), Accuracy("exp2", np.exp2, 1e-7), Accuracy("exp10", lambda x: 10.0**x, 5e-6),
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

The largest relative error of each float32 function, compared with float64, on operands of every magnitude. It holds
for the emulator, which agrees with the chips bit for bit, and for the reference. Results below 1.2e-38 may be 0.

| Function | Operands | Relative error |
|---|---|---|
""" + "".join(
    f"| `T.{one.name}` | {'±' if one.negative else ''}{one.low:g} to {'±' if one.negative else ''}{one.high:g} "
    f"| {one.bound:g} |\n"
    for one in ACCURACIES
) + """
`T.log1p` has this accuracy for negative numbers down to -0.5. `T.sin`, `T.cos` and `T.tan` lose digits above 3e5, and
have no correct digits above 1e7. `T.hypot` squares its operands: they must be between 1e-19 and 1e19.

The chip does not always propagate NaN: the minimum of NaN and a number, and clamped NaN, are the number, so a cast of
NaN to float8 gives the largest number; 1 / NaN is 0, as is any nonzero constant from -1 to 1 divided by NaN;
`T.sigmoid` and `T.erf` of NaN are 0 and 1; `T.pow(x, 0.5)` and `T.pow(x, -0.5)` of minus infinity are NaN. A run whose
result depends on this fails, with a message that says so.

Constants keep the sign of zero: `x + 0.0` turns -0.0 into 0.0, `x - 0.0` does not. The chip does not always keep it: a
product or quotient that is 0 may lose its sign, the maximum and minimum of two zeros may be either zero, and a bfloat16
output of -0.0 becomes 0.0.

Subnormal numbers are not supported: chips read and write them as 0. So `T.log` of a subnormal is infinite, and
`T.rsqrt` of one is far off: a run whose outputs depend on this fails. `T.sin`, `T.cos` and `T.tan` of huge angles may
be any number: a run fails if they are among the largest values of an output; beside larger values they are not judged.

## When a run passes

A result is compared with that of the kernel before lowering. First, the output as a whole: the correlation, and the
largest error relative to the largest value. Then each row and each column of each 32x32 tile, so that large values do
not hide small ones: its error must be at most a quarter of its own norm, or an error that rounding explains. The latter
is computed by running the kernel: each operation may be wrong by one unit of its precision, and errors propagate to the
results computed from them. So a sum that cancels may have the error that its operands explain, and a part that is zero,
negated or garbage is found. If rounding explains the error of every row and column, the result passes without a
correlation.

Where the error of a number reaches over a step, as that of a quotient near 2.5 before it is rounded to an integer, both
integers are right, in this element and on this side; so are both sides of a comparison. Integers and sums of them have
no other errors. A number that the kernel keeps in bfloat16 need not be rounded where the program does not store it: the
errors of a long sum reach from the one that is rounded at each step to the one that never is.

Not detected: errors below a quarter of a row or column that is small compared with the rest of its output, errors that
are small compared with intermediate results, as in `(x + 1000) - 1000`, and errors of elements that share both their
row and their column of a tile with larger numbers. A saved exploration has no kernel for computing this: its runs are
compared only as a whole.
"""  # fmt: skip
