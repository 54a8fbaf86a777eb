"""Whether any element of a block is true, or all are: as one number, 1 or 0, that a name stands for.

It decides branches, as elements of tensors do: the reader looks at the elements, and hands the number on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import ir, tirx

from ttexplore.ir.adapter import call, elements, operation_name
from ttexplore.ir.build import number_of
from ttexplore.ops import language as tl


@dataclass(frozen=True)
class Quantified:
    """A block, by its first element and its extents, and whether all of its elements count, or any. What lies outside
    of a tensor is not true."""

    first: ir.TensorLoad
    extents: tuple[int, ...]
    of_all: bool

    @property
    def source(self) -> tirx.Buffer:
        return self.first.source

    def expression(self) -> ir.Expr:
        return call(tl.QUANTIFIED, [self.first, *self.extents, int(self.of_all)], dtype="int32")

    def moved(self, source: tirx.Buffer, starts: Sequence[ir.Expr], extents: Sequence[int]) -> Quantified:
        """The same of another block."""
        return Quantified(tirx.BufferLoad(source, list(starts), self.first.span), tuple(extents), self.of_all)


def quantified_of(value: ir.Expr) -> Quantified | None:
    """The block that a value tells of; None for other values."""
    if type(value) is not ir.Call or operation_name(value) != tl.QUANTIFIED:
        return None
    first, *extents, of_all = elements(value.args)
    assert isinstance(first, ir.TensorLoad), "it is no name: passes replace the value as a whole"
    return Quantified(first, tuple(map(number_of, extents)), bool(number_of(of_all)))


def deciding_load(value: ir.Expr) -> ir.TensorLoad | None:
    """The element of a tensor, or the first of a block, whose reading gives a value; None for other values."""
    if isinstance(value, ir.TensorLoad):
        return value
    quantified = quantified_of(value)
    return None if quantified is None else quantified.first
