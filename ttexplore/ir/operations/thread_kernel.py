"""Reads a kernel that is written for one thread: its axes, what each thread has for itself, and its statements."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import ir, tirx

from ttexplore.errors import Unsupported
from ttexplore.ir.adapter import span_of
from ttexplore.ir.build import (
    allocation,
    arguments,
    op_name,
    regions,
    runs,
    sequence,
    statements,
    variable,
    when,
)
from ttexplore.ir.dag import replaced, written_out
from ttexplore.ir.dataflow import is_parallel, loads_of
from ttexplore.ir.names import unused_name
from ttexplore.ir.operations.by_thread import (
    VECTORIZED,
    ThreadAxis,
    ThreadKernel,
    axes_of_names,
    block_threads,
    buffer_names,
    differing_axes,
    fill_as_stores,
    is_asynchronous,
    is_by_thread,
    is_private,
    refused,
    values_of,
    written_buffer,
)
from ttexplore.ir.operations.thread_indices import ALL_AXES, is_thread_index, over_threads, thread_axis
from ttexplore.ir.rewrite import walk
from ttexplore.ops import language as tl

_ORDERING = frozenset(
    operation.name for operation in (tl.BARRIER_ARRIVE, tl.BARRIER_WAIT, tl.GEMM_ARRIVE, tl.GEMM_WAIT, tl.RENDEZVOUS)
)
_NO_AXES = frozenset[int]()


def thread_kernel(function: tirx.PrimFunc) -> ThreadKernel | None:
    """A kernel as one for single threads; None for one whose threads all do the same, or are groups that only branch
    and wait for each other. Raises Unsupported for what a thread cannot do here."""
    if not is_by_thread(function):
        return None
    body = statements(function.body)
    launch: list[tirx.For] = []
    while len(body) == 1 and isinstance(body[0], tirx.For) and body[0].thread_binding is not None:
        launch.append(body[0])
        body = statements(body[0].body)
    names = buffer_names(function)
    reading = _ThreadReading(axes_of_names(body, guarded=True), _named_axes(launch, body), names)
    read = reading.body(body, _NO_AXES)
    axes = tuple(reading.axes)
    owned = {
        buffer: axis_numbers
        for buffer, axis_numbers in reading.differing.items()
        if is_private(buffer) and axis_numbers
    }
    return ThreadKernel(axes, tuple(launch), read, owned, reading.sources, tuple(reading.left_out), frozenset(names))


def _named_axes(launch: Sequence[tirx.For], body: Sequence[tirx.Stmt]) -> list[ThreadAxis]:
    """The axes of a block's threads, named as the kernel names the indices."""
    extents: tuple[int, ...] = ()
    for grid_loop in launch:
        extents = block_threads(grid_loop) or extents
    spelled = dict[int, str]()
    for statement in body:
        if isinstance(statement, tirx.Bind) and is_thread_index(statement.value):
            spelled.setdefault(thread_axis(statement.value), str(statement.var.name))
    return [ThreadAxis(variable(spelled.get(axis, f"t{'xyz'[axis]}")), extent) for axis, extent in enumerate(extents)]


class _ThreadReading:
    """Reads a kernel for single threads: names of what differs from thread to thread are written out, loops of one
    thread are serial, and what is read for later is kept in a buffer of the thread."""

    def __init__(self, differing: dict[ir.Var, frozenset[int]], axes: list[ThreadAxis], buffer_names: set[str]) -> None:
        self.differing, self.axes, self.buffer_names = differing, axes, buffer_names
        self.names: dict[ir.Var, ir.Expr] = {}
        self.sources: dict[tirx.Stmt, tirx.Stmt] = {}
        self.left_out: list[tirx.Stmt] = []

    def differs(self, *expressions: ir.Expr) -> frozenset[int]:
        return frozenset[int]().union(*(differing_axes(expression, self.differing) for expression in expressions))

    def body(self, body: Sequence[tirx.Stmt], around: frozenset[int]) -> list[tirx.Stmt]:
        read: list[tirx.Stmt] = []
        for statement in body:
            new = self.statement(statement, around)
            if not new:
                self.left_out.append(statement)
            for each in new:
                if each is not statement:
                    self.sources[each] = statement
            read += new
        return read

    def plain(self, expression: ir.Expr) -> ir.Expr:
        def rule(node: ir.Expr) -> ir.Expr:
            return self.axis(node) if is_thread_index(node) else node

        return replaced(written_out(expression, self.names), rule)

    def axis(self, index: ir.Expr) -> ir.Var:
        number = thread_axis(index)
        if number == ALL_AXES:
            raise Unsupported(
                "L001",
                "the warp group of a thread, in code for single threads, is not lowered",
                hint="choose threads by their index along an axis: T.get_thread_binding()",
                span=span_of(index),
            )
        if number >= len(self.axes):
            raise Unsupported(
                "L001",
                f"the index of a thread along axis {number}, of a block with {len(self.axes)}",
                hint="say how many threads there are along each axis: T.Kernel(..., threads=(32, 8))",
                span=span_of(index),
            )
        return self.axes[number].variable

    def statement(self, statement: tirx.Stmt, around: frozenset[int]) -> list[tirx.Stmt]:
        match statement:
            case tirx.Bind():
                return self.named(statement)
            case tirx.AllocBuffer():
                return [statement]
            case tirx.BufferStore():
                before, (value, *indices) = self.joined(statement, [statement.value, *statement.indices])
                return [*before, tirx.BufferStore(statement.buffer, value, indices, statement.span)]
            case tirx.IfThenElse():
                before, (condition,) = self.joined(statement, [statement.condition])
                inner = around | self.differs(statement.condition)
                then = self.body(statements(statement.then_case), inner)
                otherwise = None if statement.else_case is None else self.body(statements(statement.else_case), inner)
                if self.differs(statement.condition):
                    _check_condition(statement, condition, [*then, *(otherwise or [])])
                return [*before, when(condition, then, statement.span, otherwise=otherwise)]
            case tirx.For() if is_parallel(statement) and VECTORIZED not in dict(statement.annotations):
                self.refuse_difference(statement)
                if around:
                    raise refused("T.Parallel in a branch that only some threads take", statement)
                return [statement]
            case tirx.For():
                if self.differs(statement.min, statement.extent):
                    raise refused("a loop whose length is another one in each thread", statement)
                low, extent = self.plain(statement.min), self.plain(statement.extent)
                body = sequence(self.body(statements(statement.body), around))
                annotations = {key: value for key, value in dict(statement.annotations).items() if key != VECTORIZED}
                return [
                    tirx.For(
                        statement.loop_var, low, extent, tirx.ForKind.SERIAL, body, None, annotations, None,
                        statement.span,
                    )
                ]  # fmt: skip
            case tirx.Evaluate() if runs(statement, tl.SYNC_THREADS):
                if around:
                    raise refused("T.sync_threads in a branch that only some threads take", statement)
                return []
            case tirx.Evaluate() if runs(statement, tl.FILL) and is_private(regions(statement)[0].source):
                if not around and not self.differs(arguments(statement)[1]):
                    return [statement]
                target, value = regions(statement)[0].source, arguments(statement)[1]
                if any(load.source.same_as(target) for load in loads_of(value)):
                    raise refused(f"a fill of {target.name} with a value of its own", statement)
                stores = self.body(fill_as_stores(statement), around)
                self.sources.update({nested: statement for each in stores for nested in walk(each)})
                return stores
            case tirx.Evaluate() if op_name(statement) in _ORDERING or is_asynchronous(statement):
                raise refused("code for single threads that wait at barriers", statement)
            case tirx.Evaluate():
                self.refuse_difference(statement)
                if around and op_name(statement):
                    raise refused("an operation of the whole block in a branch that only some threads take", statement)
                return [statement]
            case _:
                raise refused(f"{type(statement).__name__} in a kernel for single threads", statement)

    def named(self, bind: tirx.Bind) -> list[tirx.Stmt]:
        axes = self.differs(bind.value)
        before, (value,) = self.joined(bind, [bind.value])
        if not axes:
            return [*before, bind if value.same_as(bind.value) else tirx.Bind(bind.var, value, bind.span)]
        if not loads_of(value) and over_threads(value) is None:
            self.names[bind.var] = value
            return before
        load, stored = self.kept(str(bind.var.name), value, axes, bind)
        self.names[bind.var] = load
        return [*before, *stored]

    def kept(
        self, name: str, value: ir.Expr, axes: frozenset[int], source: tirx.Stmt
    ) -> tuple[ir.Expr, list[tirx.Stmt]]:
        """A value in a buffer of each thread, and what puts it there."""
        name = unused_name(name, self.buffer_names)
        self.buffer_names.add(name)
        allocated = allocation(name, [1], str(value.ty.dtype), "local", source.span)
        zero = tirx.const(0, "int32")
        self.differing[allocated.buffer] = axes
        store = tirx.BufferStore(allocated.buffer, value, [zero], source.span)
        return tirx.BufferLoad(allocated.buffer, [zero]), [allocated, store]

    def joined(self, statement: tirx.Stmt, values: Sequence[ir.Expr]) -> tuple[list[tirx.Stmt], list[ir.Expr]]:
        """The expressions of a statement with what threads join in buffers, which are stored before it."""
        before: list[tirx.Stmt] = []
        plain_values = [self.plain(value) for value in values]

        def rule(node: ir.Expr) -> ir.Expr:
            if over_threads(node) is None:
                return node
            load, stored = self.kept("over_threads", node, self.differs(node), statement)
            before.extend(stored)
            return load

        if isinstance(statement, tirx.BufferStore | tirx.Bind) and over_threads(plain_values[0]) is not None:
            return before, plain_values
        return before, [replaced(value, rule) for value in plain_values]

    def refuse_difference(self, statement: tirx.Stmt) -> None:
        for nested in walk(statement):
            if self.differs(*values_of(nested)) or (
                isinstance(nested, tirx.BufferStore) and self.differing.get(nested.buffer)
            ):
                nest = "T.Parallel" if is_parallel(statement) else "an operation of the whole block"
                raise refused(f"{nest} that uses what is another value in each thread", nested)


def _check_condition(branch: tirx.IfThenElse, condition: ir.Expr, inner: Sequence[tirx.Stmt]) -> None:
    """A branch by thread may not store what its condition reads: all threads make each step in it together."""
    read = {load.source for load in loads_of(condition)}
    for statement in (nested for each in inner for nested in walk(each)):
        target = written_buffer(statement)
        if target is not None and target in read:
            raise refused(f"a branch by thread that stores {target.name}, which decides it,", branch)
