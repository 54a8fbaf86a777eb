"""Reducers of the kernel language: blocks that the turns of a T.Parallel add to, several to one element.

An update of an element is a store whose value is an operation of :mod:`ttexplore.ir.operations.atomics`. Once the
kernel is traced, updates on the chip become plain arithmetic, or reductions where iterations share an element.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import ir, tirx

from ttexplore.errors import KernelError, Unsupported, shown
from ttexplore.ir.adapter import call, elements, is_buffer, operation_name, span_of
from ttexplore.ir.build import (
    allocation,
    constant,
    dtype_of,
    expressions_of,
    number_of,
    sequence,
    shape_of,
    statements,
    whole_region,
    with_body,
    with_nest,
)
from ttexplore.ir.dag import nodes_of
from ttexplore.ir.dataflow import is_on_chip, loads_of, parallel_body
from ttexplore.ir.names import unused_name
from ttexplore.ir.operations.atomics import ATOMICS, KINDS, UPDATES, plain, updated
from ttexplore.ir.operations.by_thread import VECTORIZED, buffer_names, is_by_thread
from ttexplore.ir.operations.reductions import JOININGS
from ttexplore.ir.rewrite import Context, Firings, StatementRule, rewrite, walk
from ttexplore.language.api.tile import copy, fill, note_hints
from ttexplore.language.tracer.builder import AllocationRequest, Builder, current, described, element, unsupported
from ttexplore.language.tracer.builder import shape_of as shape_given
from ttexplore.language.tracer.dtypes import dtype_name
from ttexplore.language.tracer.spans import caller_span
from ttexplore.ops import language as tl

# Of the blocks that are reduced.
_MOST_LOOPS = 2


@dataclass(frozen=True)
class Reducer(AllocationRequest):
    """A block whose elements the turns of T.Parallel share for one kind of update."""

    update: str = ""

    def make(self, builder: Builder, name: str) -> tirx.Buffer:
        buffer = super().make(builder, name)
        builder.reducers[buffer] = self.update
        return buffer


def alloc_reducer(
    shape: object, dtype: object = "float32", op: str = "sum", replication: object = None
) -> Reducer:  # fmt: skip
    """Allocate a block that T.Parallel may update several times at one element: by ``r[i] += value``,
    ``r[i] = T.max(r[i], value)`` or T.reducer_update. `op` is ``sum``, ``max`` or ``min``; `replication` has no
    effect: it says how the threads of a GPU share the block.

    Raises Unsupported for another `op`.
    """
    callee = "T.alloc_reducer"
    builder = current(callee)
    if op not in UPDATES:
        raise unsupported(f"{callee} with op={shown(op)}", f"reducers are {', '.join(UPDATES)}")
    if replication is not None:
        builder.leave_out(f"{callee} replication=")
    return Reducer(shape_given(shape, callee), dtype_name(dtype), "local.fragment", update=UPDATES[op])


def reducer_init(reducer: object, value: object = None, **hints: object) -> ir.Call:
    """Start the sum (maximum, minimum) of each element of a reducer at a value: without one, at the value that changes
    no result."""
    callee = "T.reducer_init"
    update = _update_of(callee, current(callee), reducer)
    note_hints(callee, hints)
    assert is_buffer(reducer)
    kind = KINDS[tl.ATOMICS[update]]
    return fill(reducer, JOININGS[kind].neutral_of(dtype_of(reducer)) if value is None else value)


def reducer_update(target: object, value: object) -> None:
    """Add a value to an element of a reducer (or take the larger, or smaller, of both). Raises KernelError for anything
    but an element of a reducer."""
    callee = "T.reducer_update"
    builder = current(callee)
    update = _update_of(callee, builder, target.source if isinstance(target, ir.TensorLoad) else None)
    assert isinstance(target, ir.TensorLoad)
    builder.span = caller_span(builder.files)
    operand = element(value, callee)
    operand = operand if operand.ty == target.ty else tirx.Cast(target.ty, operand)
    builder.store(target.source, tuple(target.indices), updated(update, target, operand))


def finalize_reducer(reducer: object, dst: object = None, **hints: object) -> ir.Call | None:
    """End the updates of a reducer: `dst`, or without it the reducer itself, holds the results. Raises KernelError for
    anything but a reducer."""
    callee = "T.finalize_reducer"
    _update_of(callee, current(callee), reducer)
    note_hints(callee, {name: value for name, value in hints.items() if (name, value) != ("batch", 1)})
    return None if dst is None else copy(reducer, dst)


def _update_of(callee: str, builder: Builder, reducer: object) -> str:
    if not is_buffer(reducer) or reducer not in builder.reducers:
        name = reducer.name if is_buffer(reducer) else described(reducer)
        raise KernelError(
            "K008", f"{callee} takes a reducer, not {name}", hint="allocate it with T.alloc_reducer(shape, dtype)"
        )
    return builder.reducers[reducer]


def with_plain_updates(function: tirx.PrimFunc) -> tirx.PrimFunc:
    """The kernel without updates of blocks on the chip.

        for i, j in T.Parallel(32, 64):       for i, j in T.Parallel(32, 64):
            T.reducer_update(r[i], a[i, j])       r_turns[i, j] = 0
                                        ==>       r_turns[i, j] = r_turns[i, j] + a[i, j]
                                              T.reduce_sum(r_turns, r, dim=1, clear=False)

    Raises Unsupported for turns that share an element whose place is more than their variables, and KernelError for
    an element that such turns read.
    """
    if not any(_updated(stmt) for stmt in walk(function.body)):
        return function
    return rewrite([_UPDATED], _Updates(function, Firings()))


def _updated(statement: tirx.Stmt) -> str:
    """The operation with which a statement updates an element on the chip, or nothing."""
    if not isinstance(statement, tirx.BufferStore) or not is_on_chip(statement.buffer):
        return ""
    name = operation_name(statement.value) if isinstance(statement.value, ir.Call) else ""
    return name if name in ATOMICS else ""


class _Updates(Context):
    def __init__(self, function: tirx.PrimFunc, firings: Firings) -> None:
        super().__init__(function, firings)
        self.names = buffer_names(function)
        self.is_by_thread = is_by_thread(function)

    def statement(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        if self.is_by_thread and (not self.is_nest(statement) or VECTORIZED in dict(statement.annotations)):
            # Each thread updates it.
            return None
        if not self.is_nest(statement):
            return [_plain(statement)] if _updated(statement) else None
        loops, body = parallel_body(statement)
        if not any(_updated(stmt) for stmt in walk(sequence(body))):
            return None
        nest = _UpdateNest(self, loops)
        inner = [rewritten for stmt in body for rewritten in nest.statement(stmt)]
        nest.check_reads(inner)
        return [*nest.allocated, with_nest(loops, [*nest.started, *inner]), *nest.reduced]

    def allocate(self, preferred_name: str, shape: Sequence[int], dtype: str, span: ir.Span | None) -> tirx.AllocBuffer:
        name = unused_name(preferred_name, self.names)
        self.names.add(name)
        return allocation(name, shape, dtype, "local.fragment", span)


class _UpdateNest:
    """A nest of turns: the blocks of one element for each turn that it needs, how each turn starts them, and what
    reduces them after it."""

    def __init__(self, updates: _Updates, loops: Sequence[tirx.For]) -> None:
        self.updates, self.loops = updates, loops
        self.allocated: list[tirx.Stmt] = []
        self.started: list[tirx.Stmt] = []
        self.reduced: list[tirx.Stmt] = []
        self.updated: set[tirx.Buffer] = set()

    def statement(self, stmt: tirx.Stmt) -> list[tirx.Stmt]:
        match stmt:
            case tirx.BufferStore() if _updated(stmt):
                used = {node for index in stmt.indices for node in nodes_of(index)}
                shared = [axis for axis, loop in enumerate(self.loops) if loop.loop_var not in used]
                return [self.shared(stmt, shared) if shared else _plain(stmt)]
            case tirx.For():
                return [with_body(stmt, [self.body(stmt.body)])]
            case tirx.IfThenElse():
                else_body = None if stmt.else_case is None else self.body(stmt.else_case)
                return [tirx.IfThenElse(stmt.condition, self.body(stmt.then_case), else_body, stmt.span)]
            case _:
                return [stmt]

    def body(self, body: tirx.Stmt) -> tirx.Stmt:
        return sequence([rewritten for stmt in statements(body) for rewritten in self.statement(stmt)])

    def shared(self, store: tirx.BufferStore, shared: list[int]) -> tirx.Stmt:
        """The store to a block of the turns, in place of an update of an element that several turns share."""
        variables = [loop.loop_var for loop in self.loops]
        self.check(store, shared)
        self.updated.add(store.buffer)
        name, buffer_dtype = str(store.buffer.name), dtype_of(store.buffer)
        dtype = (
            buffer_dtype if buffer_dtype in ("float32", "int32") else "int32" if "int" in buffer_dtype else "float32"
        )
        shape = [number_of(loop.extent) for loop in self.loops]
        turns = self.updates.allocate(f"{name}_turns", shape, dtype, store.span)
        kind = KINDS[_updated(store)]
        joining = JOININGS[kind]
        neutral = tirx.const(joining.neutral_of(dtype), dtype)
        self.allocated.append(turns)
        self.started.append(tirx.BufferStore(turns.buffer, neutral, variables, store.span))
        source = turns.buffer
        if len(shared) == _MOST_LOOPS:
            column = self.updates.allocate(f"{name}_column", shape[:1], dtype, store.span)
            self.allocated.append(column)
            self.reduced.append(_reduced(source, column.buffer, kind, 1, store.span, clear=True))
            source = column.buffer
        self.reduced.append(_reduced(source, store.buffer, kind, shared[0], store.span, clear=False))
        assert isinstance(store.value, ir.Call)
        value = elements(store.value.args)[1]
        value = value if dtype == buffer_dtype else tirx.Cast(ir.PrimType(dtype), value)
        joined = joining.expression(tirx.BufferLoad(turns.buffer, variables), value)
        return tirx.BufferStore(turns.buffer, joined, variables, store.span)

    def check_reads(self, body: Sequence[tirx.Stmt]) -> None:
        """Raises KernelError for an element that is read before all turns have updated it."""
        for statement in (inner for stmt in body for inner in walk(stmt)):
            for load in (load for expression in expressions_of(statement) for load in loads_of(expression)):
                if load.source in self.updated:
                    raise KernelError(
                        "K006",
                        f"{load.source.name} is read in the T.Parallel whose turns update it",
                        hint="read it after the T.Parallel, when all turns have updated it",
                        span=span_of(statement),
                    )

    def check(self, store: tirx.BufferStore, shared: list[int]) -> None:
        """Raises Unsupported where a block of the turns is not reduced to the whole of the updated one."""
        sizes = [loop for axis, loop in enumerate(self.loops) if axis not in shared]
        target, indexed_loops = shape_of(store.buffer), list[tirx.For]()
        for index, extent in zip(store.indices, target, strict=True):
            loop = next((loop for loop in sizes if loop.loop_var.same_as(index)), None)
            if loop is not None and constant(loop.extent) == extent and constant(loop.min) == 0:
                indexed_loops.append(loop)
            elif constant(index) != 0 or extent != 1:
                indexed_loops.clear()
                break
        loop_extents = [constant(loop.extent) for loop in sizes] or [1]
        fits = [*target] == loop_extents or [*target] == [*loop_extents[: shared[0]], 1, *loop_extents[shared[0] :]]
        if len(self.loops) > _MOST_LOOPS or indexed_loops != sizes or not fits:
            indices = ", ".join(map(str, store.indices))
            loop_name = self.loops[shared[0]].loop_var.name
            raise Unsupported(
                "L003",
                f"{store.buffer.name}[{indices}], of the shape {target}, is updated by all turns of {loop_name}",
                hint="loop over one or two axes, and use the variables of all others as the indices of the whole block",
            )


def _reduced(
    source: tirx.Buffer, target: tirx.Buffer, kind: str, dim: int, span: ir.Span | None, *, clear: bool
) -> tirx.Stmt:
    attrs = {"kind": kind, "dim": dim, "clear": int(clear)}
    return tirx.Evaluate(call(tl.REDUCE.name, [whole_region(source), whole_region(target)], attrs), span)


def _plain(store: tirx.Stmt) -> tirx.Stmt:
    assert isinstance(store, tirx.BufferStore)
    return tirx.BufferStore(store.buffer, plain(store.value), list(store.indices), store.span)


_UPDATED = StatementRule(
    "plain update", "An update of a block on the chip needs no other block to wait.", _Updates.statement
)
