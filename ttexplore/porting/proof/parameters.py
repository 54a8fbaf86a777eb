"""Parameters with which a source is tried besides usual ones: what types make others of."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator

import numpy as np

from ttexplore.porting.foreign.host import computed_parameters
from ttexplore.porting.foreign.marks import ForeignKernel

# Parameters of which float32 holds no product, or another one than float64, and whole ones that wrap around.
_REAL = ((0.1, 0.3), (1e25, 3e-25), (1e-25, 0.7))
_WHOLE = ((2**31 - 1, 65_537), (-(2**31), 3), (70_000, 0.3))


def parameters_to_try(kernel: ForeignKernel, parameters: Collection[str]) -> Iterator[dict[str, float]]:
    """The least and the largest numbers of whole parameters, and what conversions make others of. For those from which
    something is computed before an element comes in: numbers that float32 does not hold, or no product of them, and,
    where types are open, whole ones."""
    types = {parameter.name: parameter.dtype for parameter in kernel.parameters if parameter.name in parameters}
    dtypes = {name: dtype for name, dtype in types.items() if "int" in dtype}
    for number in range(3 if dtypes else 0):
        yield {name: _whole_numbers(dtype)[number] for name, dtype in dtypes.items()}
    computed = sorted((computed_parameters(kernel) & types.keys()) - dtypes.keys())
    if computed:
        for numbers in (*_REAL, *(() if kernel.has_types else _WHOLE)):
            yield dict(zip(computed, itertools.cycle(numbers), strict=False))


def _whole_numbers(dtype: str) -> tuple[int, int, int]:
    """Whole numbers of a dtype that become others where they are converted, added or multiplied."""
    # A float64 holds them, as which they are passed.
    limits = np.iinfo(dtype)
    largest = min(int(limits.max), 2**40 + 3)
    return largest, (-3 if limits.min else largest // 2 + 1), max(int(limits.min), -(2**40) - 5)
