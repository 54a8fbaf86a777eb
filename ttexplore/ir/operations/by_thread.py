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
    arguments,
    attribute,
    expressions_of,
    op_name,
    regions,
    scope_of,
    statements,
    variable,
)
from ttexplore.ir.build import loop as serial_loop
from ttexplore.ir.dag import nodes_of, parts_of, written_out
from ttexplore.ir.operations.thread_indices import ALL_AXES, is_thread_index, over_threads, thread_axis
from ttexplore.ir.rewrite import walk
from ttexplore.ops import language as tl

# The annotation of the launch grid that has the threads along each axis of a block, and that of a loop of one thread
# whose iterations are independent.
THREADS, VECTORIZED = "thread_axes", "vectorized"
# Threads of a warp, which are neighbours along the first axis.
WARP = 32
_PRIVATE = ("local", "local.var")
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
        return frozenset[int]().union(
            *(differing_axes(expression, {**numbers, **self.owned}) for expression in expressions)
        )


def with_owned(kernel: ThreadKernel, buffer: ir.Var, axes: frozenset[int]) -> ThreadKernel:
    """The kernel with one more buffer of which each thread along some axes has its own."""
    return dataclasses.replace(kernel, owned={**kernel.owned, buffer: axes})


def differing_axes(expression: ir.Expr, differing: Mapping[ir.Var, frozenset[int]]) -> frozenset[int]:
    """The axes along which a value differs, where that is `differing` of names and buffers."""
    axes, waiting, visited = _NO_AXES, [expression], set[int]()
    while waiting:
        node = waiting.pop()
        if identity(node) in visited:
            continue
        visited.add(identity(node))
        joined = over_threads(node)
        if joined is not None:
            axes |= differing_axes(joined[1], differing) - {joined[2]}
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


def written_buffer(statement: tirx.Stmt) -> tirx.Buffer | None:
    """The buffer that a store or an operation writes."""
    if isinstance(statement, tirx.BufferStore):
        return statement.buffer
    operation = tl.BLOCKS.get(op_name(statement))
    return None if operation is None else regions(statement)[operation.target].source


def is_private(buffer: ir.Var) -> bool:
    """Whether each thread has a buffer of its own."""
    return is_buffer(buffer) and scope_of(buffer) in _PRIVATE


def axes_of_names(body: Sequence[tirx.Stmt], *, guarded: bool) -> dict[ir.Var, frozenset[int]]:
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
            axes = frozenset[int]().union(*(differing_axes(value, differing) for value in values_of(statement)))
            match statement:
                case tirx.Bind():
                    learn(statement.var, axes)
                case tirx.BufferStore() | tirx.Evaluate():
                    target = written_buffer(statement)
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
    axes = frozenset[int]().union(*(differing_axes(value, differing) for value in values_of(statement)))
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
    by_value = axes_of_names(statements(function.body), guarded=False)
    return any(_is_by_thread(statement, by_value, names) for statement in all_statements)


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


def refused(construct: str, statement: tirx.Stmt) -> Unsupported:
    """The error for what is not lowered in code for single threads."""
    return Unsupported("L001", f"{construct} is not lowered", hint=_HINT, span=span_of(statement))
