"""The scans of the kernel language, which join every element of a block with those before it along an axis."""

from __future__ import annotations

from dataclasses import dataclass

from tvm import tirx

from ttexplore.ir.build import attribute, regions, runs, text_attribute
from ttexplore.ir.operations.reductions import JOININGS, Joining
from ttexplore.ops import language as tl

# The joining of each scan, as reductions name it.
SCANS = {"cumsum": "sum", "cummax": "max"}


@dataclass(frozen=True)
class Scan:
    """A scan of a block of `rank` dimensions along dimension `dim`, from its end if `reverse`. `kind` is a reduction's
    that joins the same elements."""

    kind: str
    dim: int
    rank: int
    reverse: bool

    @property
    def joining(self) -> Joining:
        return JOININGS[self.kind]

    def places(self, length: int) -> range:
        """The places along the axis in the order in which they are joined."""
        return range(length - 1, -1, -1) if self.reverse else range(length)


def scan_of(statement: tirx.Stmt) -> Scan | None:
    """The scan that a statement is, else None."""
    if not runs(statement, tl.SCAN):
        return None
    rank = len(regions(statement)[0].region)
    kind, dim = text_attribute(statement, "kind"), attribute(statement, "dim")
    return Scan(kind, dim, rank, bool(attribute(statement, "reverse")))
