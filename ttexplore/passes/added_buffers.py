"""Buffers that a pass adds to a kernel: their names, and their allocations beside those of the buffers that they are
like."""

from __future__ import annotations

from tvm import tirx

from ttexplore.ir.build import allocation, dtype_of, scope_of, shape_of
from ttexplore.ir.names import unused_name
from ttexplore.ir.rewrite import Context, Firings, walk


def taken_names(function: tirx.PrimFunc) -> set[str]:
    """The names of the buffers and parameters of a kernel."""
    names = {str(one.buffer.name) for one in walk(function.body) if isinstance(one, tirx.AllocBuffer)}
    return names | {str(parameter.name) for parameter in function.params}


class AddedBuffers(Context):
    """A rewrite that adds buffers like those that are there."""

    def __init__(self, function: tirx.PrimFunc, firings: Firings) -> None:
        super().__init__(function, firings)
        self.names = taken_names(function)
        # The allocations to add, by the buffer beside which they stand.
        self.allocated: dict[tirx.Buffer, list[tirx.Stmt]] = {}

    def like(self, buffer: tirx.Buffer, wanted: str) -> tirx.Buffer:
        """A new buffer of the same shape, dtype and scope."""
        name = unused_name(wanted, self.names)
        self.names.add(name)
        made = allocation(name, shape_of(buffer), dtype_of(buffer), scope_of(buffer), buffer.span)
        self.allocated.setdefault(buffer, []).append(made)
        return made.buffer

    def allocation(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        """The replacement of an allocation beside which others are added, for a rule of the pass."""
        if not isinstance(statement, tirx.AllocBuffer) or statement.buffer not in self.allocated:
            return None
        return [statement, *self.allocated[statement.buffer]]
