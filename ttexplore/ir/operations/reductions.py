"""The reductions of the kernel language: what each joins the elements of a block with, along one of its axes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, assert_never

import numpy as np
from tvm import tirx

from ttexplore.ir.arithmetic.uncertain import lifted
from ttexplore.ir.build import attribute, regions, runs, text_attribute
from ttexplore.ops import language as tl
from ttexplore.ops.integers import SMALL_INTEGERS
from ttexplore.ops.small import FLOATS
from ttexplore.options import Engine


@dataclass(frozen=True)
class Joining:
    """How a reduction joins elements: `joined` is the operation on two of them, `expression` the same in the IR, and
    `of_magnitudes` says that it joins absolute values. `of_bits` says that it joins each bit of integers by itself, as
    `pool` joins the numbers 0 and 1; of a sum that is the lowest bit."""

    pool: Literal["sum", "max", "min"]
    joined: Callable[[Any, Any], Any]
    expression: type[tirx.BinaryOpExpr]
    of_magnitudes: bool = False
    of_bits: bool = False

    @property
    def fits_fpu(self) -> bool:
        """Whether the FPU has it: sums and maxima of numbers as they are."""
        return self.pool in ("sum", "max") and not self.of_magnitudes

    def neutral_of(self, dtype: str) -> float:
        """The number of a dtype that changes no result."""
        if self.pool == "sum" or self.of_magnitudes:
            return 0
        if dtype == "int32" or dtype in SMALL_INTEGERS:
            low, high = SMALL_INTEGERS.get(dtype, (-(2**31), 2**31 - 1))
        else:
            high = 1.0 if dtype == "bool" else FLOATS[dtype].largest if dtype in FLOATS else np.inf
            low = 0.0 if dtype == "bool" else -high
        match self.pool:
            case "max":
                return low
            case "min":
                return high
            case _:
                assert_never(self.pool)


def _of_integers(joined: np.ufunc) -> Callable[[Any, Any], Any]:
    """The operation on integers that numbers stand for."""
    return lifted(lambda first, second: joined(np.asarray(first, np.int64), np.asarray(second, np.int64)))


JOININGS: dict[str, Joining] = {
    "sum": Joining("sum", np.add, tirx.Add),
    "max": Joining("max", np.maximum, tirx.Max),
    "min": Joining("min", np.minimum, tirx.Min),
    "abssum": Joining("sum", np.add, tirx.Add, of_magnitudes=True),
    "absmax": Joining("max", np.maximum, tirx.Max, of_magnitudes=True),
    "bitand": Joining("min", _of_integers(np.bitwise_and), tirx.BitwiseAnd, of_bits=True),
    "bitor": Joining("max", _of_integers(np.bitwise_or), tirx.BitwiseOr, of_bits=True),
    "bitxor": Joining("sum", _of_integers(np.bitwise_xor), tirx.BitwiseXor, of_bits=True),
}


@dataclass(frozen=True)
class Reduction:
    """A reduction of a block of `rank` dimensions along dimension `dim`. With `clear` the result takes the place of
    what the target holds, else both are joined."""

    kind: str
    dim: int
    rank: int
    clear: bool

    @property
    def joining(self) -> Joining:
        return JOININGS[self.kind]

    @property
    def along_rows(self) -> bool:
        """Whether the elements of a row become one, so that the result is a column."""
        return self.dim == self.rank - 1

    def of(self, values: Any) -> Any:
        """The result for an array of elements: half of them is joined with the other half, until one is left."""
        reduced = np.abs(values) if self.joining.of_magnitudes else values
        joined, before = self.joining.joined, (slice(None),) * self.dim
        remainders: list[Any] = []
        while (length := reduced.shape[self.dim]) > 1:
            if length % 2:
                remainders.append(reduced[(*before, length - 1)])
            first, second = (reduced[(*before, slice(low, low + length // 2))] for low in (0, length // 2))
            reduced = joined(first, second)
        return functools.reduce(joined, remainders, reduced[(*before, 0)])


def runs_on_fpu(reduction: Reduction, dtype: str, engine: Engine) -> bool:
    """Whether the FPU is to join the elements of a tile of this storage dtype: it takes sums and maxima, and cuts
    float32 to TF32. It aligns what it adds, which sums of integers do not bear."""
    if not reduction.joining.fits_fpu or dtype not in ("bfloat16", "float32", *FLOATS):
        return False
    return engine == "fpu" or (engine == "auto" and dtype != "float32")


def reduction_of(statement: tirx.Stmt) -> Reduction | None:
    """The reduction that a statement is, else None."""
    if not runs(statement, tl.REDUCE):
        return None
    rank = len(regions(statement)[0].region)
    kind, dim = text_attribute(statement, "kind"), attribute(statement, "dim")
    return Reduction(kind, dim, rank, bool(attribute(statement, "clear")))
