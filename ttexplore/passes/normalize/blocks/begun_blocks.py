"""Blocks of which parts are stored before the whole is: they begin with what shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tvm import tirx

from ttexplore.ir.adapter import call, identity
from ttexplore.ir.build import constant, dtype_of, is_whole, regions, runs, shape_of, statements, whole_region
from ttexplore.ir.dataflow import is_on_chip, is_parallel, parallel_body, same_indices
from ttexplore.ir.rewrite import Context, Firings, StatementRule, rewrite, walk
from ttexplore.ops import language as tl
from ttexplore.ops.op import UNWRITTEN

# The dtypes in which an element that was never written shows.
_SHOWING = ("float32", "bfloat16", "float16", "int32")


class BegunBlocks:
    """The blocks of a kernel of which parts are stored before the whole is."""

    def __init__(self, function: tirx.PrimFunc) -> None:
        self.found: list[tirx.Buffer] = []
        self._order = {identity(statement): number for number, statement in enumerate(walk(function.body))}
        self._wholes = _whole_writes(function, self._order)

    def store_part(self, buffer: tirx.Buffer, statement: tirx.Stmt, around: Sequence[tirx.Stmt]) -> None:
        """Note that a statement, in loops and branches `around` it, stores a part of a buffer."""
        position, inside = self._order[identity(statement)], [identity(loop) for loop in around]
        for before, loops in self._wholes.get(buffer, ()):
            if before < position and loops == inside[: len(loops)]:
                return
        if not any(buffer.same_as(begun_buffer) for begun_buffer in self.found):
            self.found.append(buffer)

    def filled(self, function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
        """The kernel that fills these blocks where they are allocated, with what the reference finds in elements that
        were never written."""
        return rewrite([_BEGUN], _Begun(function, firings, self.found)) if self.found else function


class _Begun(Context):
    def __init__(self, function: tirx.PrimFunc, firings: Firings, begun: Sequence[tirx.Buffer]) -> None:
        super().__init__(function, firings)
        self.begun = begun

    def allocation(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        if not isinstance(statement, tirx.AllocBuffer) or not any(
            statement.buffer.same_as(buffer) for buffer in self.begun
        ):
            return None
        dtype = dtype_of(statement.buffer)
        nothing = UNWRITTEN["int32" if dtype == "int32" else "float32"] if dtype in _SHOWING else 0
        value = tirx.const(nothing, statement.buffer.ty.dtype)
        return [statement, tirx.Evaluate(call(tl.FILL.name, [whole_region(statement.buffer), value]))]


def _whole_writes(
    function: tirx.PrimFunc, order: Mapping[int, int]
) -> dict[tirx.Buffer, list[tuple[int, list[int]]]]:  # fmt: skip
    """For each block the statements that write all of it: their number, and the loops and branches around them."""
    writes: dict[tirx.Buffer, list[tuple[int, list[int]]]] = {}

    def visit(body: tirx.Stmt, around: list[int]) -> None:
        for statement in statements(body):
            number = order[identity(statement)]
            if is_parallel(statement):
                loops, inside = parallel_body(statement)
                variables, extents = [loop.loop_var for loop in loops], [constant(loop.extent) for loop in loops]
                for inner in inside:
                    if (
                        isinstance(inner, tirx.BufferStore)
                        and same_indices(inner.indices, variables)
                        and [*shape_of(inner.buffer)] == extents
                    ):
                        writes.setdefault(inner.buffer, []).append((number, around))
            elif isinstance(statement, tirx.For | tirx.While):
                visit(statement.body, [*around, identity(statement)])
            elif isinstance(statement, tirx.IfThenElse):
                visit(statement.then_case, [*around, identity(statement)])
                if statement.else_case is not None:
                    # What one branch writes the other does not find.
                    visit(statement.else_case, [*around, -identity(statement)])
            elif runs(statement, tl.COPY, tl.FILL, tl.REDUCE, tl.GEMM):
                target = regions(statement)[-1]
                if is_on_chip(target.source) and is_whole(target):
                    writes.setdefault(target.source, []).append((number, around))

    visit(function.body, [])
    return writes


_BEGUN = StatementRule(
    "before the first part", "A block of which parts are stored first begins with NaN, which shows.", _Begun.allocation
)
