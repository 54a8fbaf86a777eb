"""The circular buffers of DST management: they hold the values that one section leaves for later ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tvm import ir, tirx

from ttexplore.analysis.dst_blocks import SubBlock
from ttexplore.ir.adapter import identity, span_of
from ttexplore.ir.build import allocation, dtype_of
from ttexplore.ir.names import unused_name
from ttexplore.ir.rewrite import Firings, Rule
from ttexplore.ops.op import CB_SCOPE
from ttexplore.passes.insert_dst_management.steps import tiles_of
from ttexplore.plan import FORMAT_OF_DTYPE, CircularBuffer

# The rules of D5 that apply wherever it writes sections.
SECTION = Rule("section of DST", "Operations that share DST acquire it, compute, commit, pack and release it.")
SLOTS = Rule("slots of DST", "An operation runs on the part of its block that fits in DST, with its values in slots.")
SPILL = Rule("spill", "A value that DST cannot keep is spilled to a circular buffer.")
RELOAD = Rule("reload", "A spilled value is reloaded into DST right before its use.")
_BUFFER = Rule("spill buffer", "A value that is spilled needs a circular buffer.")


@dataclass(frozen=True)
class Fresh:
    """The variable of a loop whose first iteration starts from zero, and the fill that said so."""

    loop_var: ir.Var
    fill: tirx.Stmt


@dataclass(frozen=True)
class Spill:
    """A value that is kept in a circular buffer between sections, one part of its block after another.

    `fresh` is the loop whose first iteration has nothing to load yet; `in_l1` says that the packer
    accumulates in L1, so that nothing is loaded in that loop. `waited` says that the whole block was waited for outside
    the loop that reads it. `number` is the position of the value among those that got a buffer.
    """

    cb: tirx.Buffer
    shape: SubBlock
    number: int
    fresh: Fresh | None = None
    in_l1: bool = False
    waited: bool = False

    @property
    def accumulates_from(self) -> Fresh | None:
        """The loop in which, from the second iteration, the packer adds to the value in L1."""
        return self.fresh if self.in_l1 else None


class SpillBuffers:
    """Makes the circular buffers: for whole blocks, and temporarily for one part of a value. Values that are not alive
    together share a buffer. `sources` are the allocations of the values."""

    def __init__(self, used_names: set[str], firings: Firings, sources: Mapping[int, tirx.Stmt]) -> None:
        self.taken, self.firings, self.sources = set(used_names), firings, sources
        self.buffers: list[CircularBuffer] = []
        self.allocations: list[tirx.Stmt] = []
        self.largest_part = 0
        self._given = 0
        self._idle: dict[tuple[int, str], list[tirx.Buffer]] = {}

    def block(self, value: tirx.Buffer, shape: SubBlock, reason: str, handed_on: list[tirx.Buffer]) -> Spill:
        """A buffer for the whole block of a value, until it is given back: one removed from `handed_on` if one fits,
        otherwise another one."""
        self._given += 1
        for position, cb in enumerate(handed_on):
            if (tiles_of(cb), dtype_of(cb)) == (shape.block_tiles, dtype_of(value)):
                return Spill(handed_on.pop(position), shape, self._given)
        cb = self._take(f"{value.name}_partials", shape.block_tiles, value, reason)
        return Spill(cb, shape, self._given)

    def borrow(self, value: tirx.Buffer, tiles: int) -> tirx.Buffer:
        """A buffer for one part of a value, until it is given back."""
        self.largest_part = max(self.largest_part, tiles)
        return self._take(f"{value.name}_spilled", tiles, value, "more values are alive at once than DST holds")

    def give_back(self, cb: tirx.Buffer) -> None:
        """Make a buffer, which is now empty, available to later values."""
        self._idle[(tiles_of(cb), dtype_of(cb))].append(cb)

    def _take(self, base_name: str, tiles: int, value: tirx.Buffer, reason: str) -> tirx.Buffer:
        dtype = dtype_of(value)
        idle = self._idle.setdefault((tiles, dtype), [])
        if idle:
            return idle.pop(0)
        name = unused_name(base_name, self.taken)
        self.taken.add(name)
        allocated = allocation(name, (tiles, 32, 32), dtype, CB_SCOPE, value.span)
        data_format = FORMAT_OF_DTYPE[dtype]
        self.allocations += self.firings.made(_BUFFER, self.sources[identity(value)], [allocated])
        self.buffers.append(
            CircularBuffer(
                name, tiles, 1, data_format, "compute", "compute", unpack_to_dest=data_format == "Float32",
                origin=span_of(value), reason=reason,
            )
        )  # fmt: skip
        return allocated.buffer
