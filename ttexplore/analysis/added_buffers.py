"""Buffers that a pass adds to a kernel: their names, and where their allocations stand."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from tvm import ir, tirx

from ttexplore.ir.build import allocation, dtype_of, scope_of, shape_of
from ttexplore.ir.names import unused_name
from ttexplore.ir.rewrite import Context, Firings, walk


class NewBuffers(Context):
    """A rewrite that allocates buffers beside the statements that use them."""

    @functools.cached_property
    def _taken(self) -> set[str]:
        allocated = {str(node.buffer.name) for node in walk(self.function.body) if type(node) is tirx.AllocBuffer}
        return allocated | {str(parameter.name) for parameter in self.function.params}

    def allocate(
        self, preferred_name: str, shape: Sequence[int], dtype: str, *, scope: str = "local.fragment",
        span: ir.Span | None = None,
    ) -> tirx.AllocBuffer:  # fmt: skip
        """The allocation of a block of `shape` elements, under the name that is wanted or one like it."""
        name = unused_name(preferred_name, self._taken)
        self._taken.add(name)
        return allocation(name, shape, dtype, scope, span)


class AddedBuffers(NewBuffers):
    """A rewrite that adds buffers like those that are there, beside their allocations."""

    def __init__(self, function: tirx.PrimFunc, firings: Firings) -> None:
        super().__init__(function, firings)
        # The allocations to add, by the buffer beside which they stand.
        self.allocated: dict[tirx.Buffer, list[tirx.Stmt]] = {}

    def like(self, buffer: tirx.Buffer, preferred_name: str) -> tirx.Buffer:
        """A new buffer of the same shape, dtype and scope."""
        alloc_buffer = self.allocate(
            preferred_name, shape_of(buffer), dtype_of(buffer), scope=scope_of(buffer), span=buffer.span
        )
        self.allocated.setdefault(buffer, []).append(alloc_buffer)
        return alloc_buffer.buffer

    def allocation(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        """The replacement of an allocation beside which others are added, for a rule of the pass."""
        if not isinstance(statement, tirx.AllocBuffer) or statement.buffer not in self.allocated:
            return None
        return [statement, *self.allocated[statement.buffer]]
