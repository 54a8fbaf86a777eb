"""Kernels that are written for one thread: each thread of a block indexes elements, and has blocks of its own.

Here is which values are another one in each thread, and what such a kernel does when its threads are written out. The
threads of a block make each step together, in the order of the statements: a GPU's compiler lets them wait for each
other where they share a block.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tvm import ir, tirx

from ttexplore.errors import Unsupported
from ttexplore.ir.adapter import elements, identity, is_buffer, span_of
from ttexplore.ir.build import (
    allocation,
    arguments,
    attribute,
    expressions_of,
    op_name,
    regions,
    runs,
    scope_of,
    sequence,
    statements,
    variable,
    when,
)
from ttexplore.ir.build import loop as serial_loop
from ttexplore.ir.dag import nodes_of, parts_of, replaced, written_out
from ttexplore.ir.dataflow import is_parallel, loads_of
from ttexplore.ir.names import unused_name
from ttexplore.ir.operations.thread_indices import ALL_AXES, is_thread_index, over_threads, thread_axis
from ttexplore.ir.rewrite import walk
from ttexplore.ops import language as tl

# The annotation of the launch grid that has the threads along each axis of a block, and that of a loop of one thread
# whose iterations are independent.
THREADS, VECTORIZED = "thread_axes", "vectorized"
# Threads of a warp, which are neighbours along the first axis.
WARP = 32
_PRIVATE = ("local", "local.var")
_ORDERING = frozenset(
    operation.name for operation in (tl.BARRIER_ARRIVE, tl.BARRIER_WAIT, tl.GEMM_ARRIVE, tl.GEMM_WAIT, tl.RENDEZVOUS)
)
_NO_AXES = frozenset[int]()
_HINT = "write the block with T.Parallel: for i in T.Parallel(threads), with i in place of the index of the thread"


@dataclass(frozen=True)
class ThreadAxis:
    """An axis of a block's threads: the index of a thread along it."""

    variable: ir.Var
    extent: int


@dataclass(frozen=True)
class ThreadKernel:
    """A kernel for single threads, in which an index of a thread is the variable of its axis.

    `axes` are those of the block; `launch` are the loops of the grid, `body` the statements in them. `owned` are the
    buffers of which each thread along some axes has its own; all threads share the others. `sources` has the
    statements of the kernel that others took the place of, `left_out` those that nothing took the place of, and `names`
    are those of buffers.
    """

    axes: tuple[ThreadAxis, ...]
    launch: tuple[tirx.For, ...]
    body: list[tirx.Stmt]
    owned: Mapping[ir.Var, frozenset[int]]
    sources: Mapping[tirx.Stmt, tirx.Stmt]
    left_out: tuple[tirx.Stmt, ...]
    names: frozenset[str]

    def axes_of(self, expressions: Iterable[ir.Expr]) -> frozenset[int]:
        """The axes along which threads have different values of some expressions."""
        numbers = {axis.variable: frozenset([number]) for number, axis in enumerate(self.axes)}
        return frozenset[int]().union(*(_axes(expression, {**numbers, **self.owned}) for expression in expressions))


def with_owned(kernel: ThreadKernel, buffer: ir.Var, axes: frozenset[int]) -> ThreadKernel:
    """The kernel with one more buffer of which each thread along some axes has its own."""
    return dataclasses.replace(kernel, owned={**kernel.owned, buffer: axes})


def _axes(expression: ir.Expr, differing: Mapping[ir.Var, frozenset[int]]) -> frozenset[int]:
    """The axes along which a value differs, where that is `differing` of names and buffers."""
    axes, waiting, visited = _NO_AXES, [expression], set[int]()
    while waiting:
        node = waiting.pop()
        if identity(node) in visited:
            continue
        visited.add(identity(node))
        joined = over_threads(node)
        if joined is not None:
            axes |= _axes(joined[1], differing) - {joined[2]}
        elif is_thread_index(node):
            axes |= {thread_axis(node)}
        elif isinstance(node, ir.Var):
            axes |= differing.get(node, _NO_AXES)
        elif isinstance(node, ir.TensorLoad):
            axes |= differing.get(node.source, _NO_AXES)
            waiting += elements(node.indices)
        elif isinstance(node, ir.TensorRegion):
            axes |= differing.get(node.source, _NO_AXES)
            waiting += [bound for interval in elements(node.region) for bound in (interval.min, interval.extent)]
        else:
            waiting += parts_of(node)
    return axes


def values_of(statement: tirx.Stmt) -> list[ir.Expr]:
    """The expressions of a statement, with the regions of an operation."""
    return arguments(statement) if op_name(statement) else expressions_of(statement)


def _written(statement: tirx.Stmt) -> tirx.Buffer | None:
    """The buffer that a store or an operation writes."""
    if isinstance(statement, tirx.BufferStore):
        return statement.buffer
    operation = tl.BLOCKS.get(op_name(statement))
    return None if operation is None else regions(statement)[operation.target].source


def is_private(buffer: ir.Var) -> bool:
    """Whether each thread has a buffer of its own."""
    return is_buffer(buffer) and scope_of(buffer) in _PRIVATE


def _known(body: Sequence[tirx.Stmt], *, guarded: bool) -> dict[ir.Var, frozenset[int]]:
    """The axes along which the values of names and private buffers differ; `guarded`: also because of branches."""
    differing: dict[ir.Var, frozenset[int]] = {}
    changed = True

    def learn(variable: ir.Var, axes: frozenset[int]) -> None:
        nonlocal changed
        if not axes <= differing.get(variable, _NO_AXES):
            differing[variable] = differing.get(variable, _NO_AXES) | axes
            changed = True

    def visit(body: Sequence[tirx.Stmt], around: frozenset[int]) -> None:
        for statement in body:
            axes = frozenset[int]().union(*(_axes(value, differing) for value in values_of(statement)))
            match statement:
                case tirx.Bind():
                    learn(statement.var, axes)
                case tirx.BufferStore() | tirx.Evaluate():
                    target = _written(statement)
                    if target is not None and is_private(target):
                        learn(target, axes | around)
                case tirx.IfThenElse():
                    inner = around | axes if guarded else around
                    visit(statements(statement.then_case), inner)
                    visit([] if statement.else_case is None else statements(statement.else_case), inner)
                case tirx.For() | tirx.While():
                    visit(statements(statement.body), around | axes if guarded else around)
                case _:
                    pass

    while changed:
        changed = False
        visit(body, _NO_AXES)
    return differing


def _is_by_thread(
    statement: tirx.Stmt, differing: Mapping[ir.Var, frozenset[int]], names: Mapping[ir.Var, ir.Expr]
) -> bool:
    """Whether a statement is another one in each thread, and more than a branch that chooses a group of threads."""
    axes = frozenset[int]().union(*(_axes(value, differing) for value in values_of(statement)))
    match statement:
        case tirx.Bind():
            return False
        case tirx.IfThenElse():
            used = nodes_of(written_out(statement.condition, names))
            alone = not any(isinstance(node, ir.Var | ir.TensorLoad) for node in used)
            return bool(axes) and not (alone and axes <= {0, ALL_AXES})
        case _:
            return bool(axes) or any(over_threads(node) for value in values_of(statement) for node in nodes_of(value))


def is_by_thread(function: tirx.PrimFunc) -> bool:
    """Whether threads of a kernel differ in more than the branches that groups of them take."""
    all_statements = walk(function.body)
    mentions = (node for statement in all_statements for value in values_of(statement) for node in nodes_of(value))
    if not any(is_thread_index(node) or over_threads(node) for node in mentions):
        return False
    names = {statement.var: statement.value for statement in all_statements if isinstance(statement, tirx.Bind)}
    by_value = _known(statements(function.body), guarded=False)
    return any(_is_by_thread(statement, by_value, names) for statement in all_statements)


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
    reading = _ThreadReading(_known(body, guarded=True), _named_axes(launch, body), names)
    read = reading.body(body, _NO_AXES)
    axes = tuple(reading.axes)
    owned = {
        buffer: axis_numbers
        for buffer, axis_numbers in reading.differing.items()
        if is_private(buffer) and axis_numbers
    }
    return ThreadKernel(axes, tuple(launch), read, owned, reading.sources, tuple(reading.left_out), frozenset(names))


def block_threads(grid_loop: tirx.For) -> tuple[int, ...]:
    """The threads of a block along each axis, as a loop of the launch grid says; none where it says nothing."""
    annotations = dict(grid_loop.annotations)
    if THREADS in annotations:
        return tuple(int(extent) for extent in annotations[THREADS])
    return (int(annotations["threads"]),) if "threads" in annotations else ()


def buffer_names(function: tirx.PrimFunc) -> set[str]:
    """The names of the buffers and the parameters of a kernel."""
    names = {str(each.buffer.name) for each in walk(function.body) if isinstance(each, tirx.AllocBuffer)}
    return names | {str(parameter.name) for parameter in function.params}


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
        return frozenset[int]().union(*(_axes(expression, self.differing) for expression in expressions))

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


def fill_as_stores(fill: tirx.Stmt) -> list[tirx.Stmt]:
    """A fill as loops over the elements, each a store of its own: some threads may make it, and of any value."""
    (target,), value = regions(fill), arguments(fill)[1]
    axes = elements(target.region)
    coordinates = [variable(f"e{number}") for number in range(len(axes))]
    indices = [interval.min + coordinate for interval, coordinate in zip(axes, coordinates, strict=True)]
    inner: tirx.Stmt = tirx.BufferStore(target.source, value, indices, fill.span)
    for coordinate, interval in zip(reversed(coordinates), reversed(axes), strict=True):
        inner = serial_loop(coordinate, interval.extent, [inner], span=fill.span)
    return [inner]


def is_asynchronous(statement: tirx.Stmt) -> bool:
    """Whether a copy or a product is over later than the statement after it begins."""
    name = op_name(statement)
    if name not in tl.STATEMENTS:
        return False
    return (name == tl.COPY.name and len(arguments(statement)) == 3) or bool(attribute(statement, tl.ASYNCHRONOUS))


def _check_condition(branch: tirx.IfThenElse, condition: ir.Expr, inner: Sequence[tirx.Stmt]) -> None:
    """A branch by thread may not store what its condition reads: all threads make each step in it together."""
    read = {load.source for load in loads_of(condition)}
    for statement in (nested for each in inner for nested in walk(each)):
        target = _written(statement)
        if target is not None and target in read:
            raise refused(f"a branch by thread that stores {target.name}, which decides it,", branch)


def refused(construct: str, statement: tirx.Stmt) -> Unsupported:
    """The error for what is not lowered in code for single threads."""
    return Unsupported("L001", f"{construct} is not lowered", hint=_HINT, span=span_of(statement))
