"""Kernels for single threads as kernels for blocks: an axis of threads, and the elements of one, are axes of blocks.

Each statement becomes a T.Parallel over the threads that it differs in, together with the loops around it whose
iterations do not depend on each other; what threads add up becomes a T.reduce.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm import ir, tirx

from ttexplore.ir.adapter import call, is_buffer
from ttexplore.ir.build import (
    allocation,
    arguments,
    dtype_of,
    is_whole,
    regions,
    runs,
    statements,
    when,
    whole_region,
    with_body,
    with_function_body,
)
from ttexplore.ir.dataflow import is_parallel
from ttexplore.ir.operations.by_thread import ThreadKernel, is_private, refused
from ttexplore.ir.operations.thread_kernel import thread_kernel
from ttexplore.ir.rewrite import Firings, Rule
from ttexplore.ops import language as tl
from ttexplore.passes.normalize.by_thread.axes import Axes, Node
from ttexplore.passes.normalize.by_thread.joins import Joins, joining, without_layout
from ttexplore.passes.normalize.by_thread.leaves import (
    Leaves,
    ThreadStore,
    sides_of,
)
from ttexplore.passes.normalize.by_thread.nests import Nests
from ttexplore.passes.normalize.by_thread.races import check_store, check_tensors

_RULE = Rule(
    "thread axes",
    "A statement of each thread becomes a T.Parallel over the threads: their axes, and the elements of one, are those "
    "of blocks; what threads join is a reduction.",
)


def with_threads_as_axes(function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
    """The kernel as one for blocks, if it is for single threads.

    Raises KernelError for races: elements that several threads store, or that one stores and another uses where nothing
    says in which order; Unsupported for what has no such form.
    """
    kernel = thread_kernel(function)
    if kernel is None:
        return function
    body: Sequence[tirx.Stmt] = _Writer(function, kernel, firings).body(kernel.body)
    for loop in reversed(kernel.launch):
        body = [with_body(loop, body)]
    for statement in kernel.left_out:
        firings.made(_RULE, statement, [])
    return with_function_body(function, body)


class _Writer:
    def __init__(self, function: tirx.PrimFunc, kernel: ThreadKernel, firings: Firings) -> None:
        self.kernel, self.firings = kernel, firings
        self.leaves, self.axes = _read(kernel)
        sizes = [parameter for parameter in function.params if not is_buffer(parameter)]
        self.nests = Nests(self.axes, sizes)
        self.joins = Joins(self.nests, {*kernel.names})

    def body(self, body: Sequence[tirx.Stmt]) -> list[tirx.Stmt]:
        return [new for statement in body for new in self.statement(statement)]

    def statement(self, statement: tirx.Stmt) -> list[tirx.Stmt]:
        source = self.kernel.sources.get(statement, statement)
        if statement in self.leaves.of:
            new = [each for leaf in self.leaves.of[statement] for each in self.leaf(leaf)]
            return self.made(source, new)
        match statement:
            case tirx.AllocBuffer() if self.is_block(statement.buffer):
                buffer = statement.buffer
                new = allocation(
                    str(buffer.name), self.axes.shape(buffer), dtype_of(buffer), "local.fragment", statement.span
                )
                self.nests.blocks[buffer] = new.buffer
                return self.made(source, [new])
            case tirx.Evaluate() if runs(statement, tl.FILL) and regions(statement)[0].source in self.nests.blocks:
                region, value = regions(statement)[0], arguments(statement)[1]
                block = self.nests.blocks[region.source]
                if not is_whole(region):
                    raise refused(f"a fill of a part of {region.source.name}, which each thread has", statement)
                filled = call(tl.FILL.name, [whole_region(block), value])
                return self.made(source, [tirx.Evaluate(filled, statement.span)])
            case tirx.IfThenElse() if self.kernel.axes_of([statement.condition]):
                return self.made(source, [new for side, _ in sides_of(statement) for new in self.body(side)])
            case tirx.IfThenElse():
                otherwise = None if statement.else_case is None else self.body(statements(statement.else_case))
                then = self.body(statements(statement.then_case))
                branch: tirx.Stmt = when(statement.condition, then, statement.span, otherwise=otherwise)
                return self.made(source, [branch])
            case tirx.For() if not is_parallel(statement):
                return self.made(source, [with_body(statement, self.body(statements(statement.body)))])
            case _:
                return self.made(source, [statement])

    def made(self, source: tirx.Stmt, new: list[tirx.Stmt]) -> list[tirx.Stmt]:
        if len(new) == 1 and new[0] is source:
            return new
        return self.firings.made(_RULE, source, new)

    def is_block(self, buffer: tirx.Buffer) -> bool:
        return buffer in self.kernel.owned or buffer in self.leaves.partial

    def leaf(self, leaf: ThreadStore) -> list[tirx.Stmt]:
        joined = joining(leaf, self.kernel)
        if joined is not None:
            return self.joins.joined_values(leaf, joined)
        if leaf.store.buffer in self.leaves.partial and not leaf.summed:
            block = self.nests.blocks[leaf.store.buffer]
            return [tirx.Evaluate(call(tl.FILL.name, [whole_region(block), leaf.store.value]), leaf.store.span)]
        if not is_private(leaf.store.buffer):
            leaf = self.nests.specialized(leaf)
            check_store(leaf, self.leaves)
        elif leaf.loops and not self.leaves.is_injective(
            leaf.store.indices, [each for each in leaf.loops if each not in leaf.summed], ()
        ):
            raise refused(f"a store to one element of {leaf.store.buffer.name} in several iterations", leaf.store)
        before, totals = self.joins.totals(leaf)
        nodes: list[Node] = [*self.leaves.lanes_of(leaf), *(loop.loop_var for loop in leaf.loops)]
        return [*before, self.nests.nest(leaf, nodes, totals)]


def _read(kernel: ThreadKernel) -> tuple[Leaves, Axes]:
    """The leaves and the axes of a kernel; loops of sums that have no form as a block stay loops."""
    refused: set[ir.Var] = set()
    while True:
        leaves = Leaves(kernel, refused)
        bad = leaves.without_form()
        axes = Axes(leaves)
        bad = bad or without_layout(leaves, axes)
        if not bad:
            check_tensors(leaves)
            return leaves, axes
        refused |= bad
