"""Thread groups: the threads of a GPU's block that take the same branches, and what each of them executes.

A kernel may branch by the index of a thread and make groups of threads wait for each other at barriers. Here is what
such kernels look like in TIR: ``tl.thread_index()`` in conditions, barriers as buffers of a scope of their own,
``tl.barrier_wait(b[i], parity)``, ``tl.barrier_arrive(b[i])``, copies with a barrier as a third argument, and products
that are over later.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from tvm import ir, tirx

from ttexplore.errors import Unsupported
from ttexplore.ir.adapter import call, span_of
from ttexplore.ir.arithmetic.expression import format_expression
from ttexplore.ir.arithmetic.index import VariableNumbers, compiled, convert
from ttexplore.ir.build import (
    arguments,
    attributes,
    op_name,
    runs,
    scope_of,
    statements,
    when,
    with_body,
    with_function_body,
)
from ttexplore.ir.dag import nodes_of, replaced, written_out
from ttexplore.ir.operations.by_thread import block_threads, is_asynchronous
from ttexplore.ir.operations.thread_indices import ALL_AXES, is_thread_index, thread_axis
from ttexplore.ir.operations.thread_kernel import thread_kernel
from ttexplore.ir.operations.threads_written_out import written_out_threads
from ttexplore.ir.program import KERNEL
from ttexplore.ir.rewrite import walk
from ttexplore.ops import language as tl

# Threads of a warp group.
WARP_GROUP = 128
BARRIER_SCOPE = "shared.barrier"
# Annotations of allocations: how many threads arrive at each barrier, what all threads see, and the name of the block
# over whose memory another one lies in another dtype.
COUNTS, TENSOR_MEMORY, VIEW_OF = "arrive_count", "tensor_memory", "view_of"
# What a group does at barriers: each of its threads on its own.
AT_BARRIERS = frozenset(
    operation.name for operation in (tl.BARRIER_WAIT, tl.BARRIER_ARRIVE, tl.GEMM_WAIT, tl.GEMM_ARRIVE, tl.SYNC_THREADS)
)


@dataclass(frozen=True)
class ThreadGroup:
    """Threads of a block that take the same branches, by number."""

    threads: tuple[int, ...]

    def __str__(self) -> str:
        low, high = self.threads[0], self.threads[-1]
        if len(self.threads) == high - low + 1:
            return f"thread {low}" if low == high else f"threads {low} to {high}"
        return f"{len(self.threads)} threads from {low} to {high}"


@dataclass(frozen=True)
class ThreadGroups:
    """The groups of a kernel's block, for each branch by thread the numbers of those that take its first side, and the
    names that depend on the thread."""

    groups: tuple[ThreadGroup, ...]
    taken: Mapping[tirx.IfThenElse, frozenset[int]]
    names: frozenset[ir.Var]

    def depends(self, expression: ir.Expr) -> bool:
        """Whether a value is another one in each thread."""
        return any(node in self.names or is_thread_index(node) for node in nodes_of(expression))

    @property
    def all(self) -> frozenset[int]:
        return frozenset(range(len(self.groups)))

    @property
    def threads(self) -> int:
        return sum(len(group.threads) for group in self.groups)


def thread_groups(function: tirx.PrimFunc) -> ThreadGroups | None:
    """The groups of a kernel; None for one that is for no threads. Raises Unsupported for branches by thread that
    depend on more than the thread."""
    all_statements = walk(function.body)
    if not any(is_for_threads(statement) for statement in all_statements):
        return None
    extents = next((axes for statement in all_statements if (axes := _threads(statement))), (WARP_GROUP,))
    names = {statement.var: statement.value for statement in all_statements if isinstance(statement, tirx.Bind)}
    branches = [statement for statement in all_statements if isinstance(statement, tirx.IfThenElse)]
    tests = {branch: test for branch in branches if (test := _by_thread(branch, names, extents[0])) is not None}
    signatures: dict[tuple[bool, ...], list[int]] = {}
    for thread in range(prod(extents)):
        signatures.setdefault(tuple(bool(test(thread)[0]) for test in tests.values()), []).append(thread)
    groups = tuple(ThreadGroup(tuple(threads)) for threads in signatures.values())
    takers = {
        branch: frozenset(number for number, chosen in enumerate(signatures) if chosen[position])
        for position, branch in enumerate(tests)
    }
    by_thread: set[ir.Var] = set()
    for name, value in names.items():
        if any(node in by_thread or is_thread_index(node) for node in nodes_of(value)):
            by_thread.add(name)
    return ThreadGroups(groups, takers, frozenset(by_thread))


def _threads(statement: tirx.Stmt) -> tuple[int, ...]:
    """The threads of a block along each axis, as the launch grid's first loop says; none where it says nothing."""
    if not isinstance(statement, tirx.For) or statement.thread_binding is None:
        return ()
    return block_threads(statement)


def is_for_threads(statement: tirx.Stmt) -> bool:
    match statement:
        case tirx.AllocBuffer():
            return scope_of(statement.buffer) == BARRIER_SCOPE or TENSOR_MEMORY in dict(statement.annotations)
        case tirx.Bind():
            return has_thread_index(statement.value)
        case tirx.IfThenElse():
            return has_thread_index(statement.condition)
        case tirx.BufferStore():
            return any(map(has_thread_index, (statement.value, *statement.indices)))
        case tirx.Evaluate():
            return op_name(statement) in AT_BARRIERS or is_asynchronous(statement)
        case _:
            return False


def has_thread_index(expression: ir.Expr) -> bool:
    return any(map(is_thread_index, nodes_of(expression)))


def _by_thread(
    branch: tirx.IfThenElse, names: Mapping[ir.Var, ir.Expr], along_first: int
) -> Callable[[int], tuple[int, ...]] | None:
    """The condition of a branch as a function of the number of a thread, of so many along the first axis; None where it
    does not depend on the thread."""
    condition = written_out(branch.condition, names)
    if not has_thread_index(condition):
        return None
    thread = tirx.Var("thread", "int32")
    along = {0: tirx.FloorMod(thread, tirx.const(along_first, "int32")), ALL_AXES: thread}
    number = VariableNumbers()
    alone = replaced(condition, lambda node: along[thread_axis(node)] if is_thread_index(node) else node)
    predicate = compiled([convert(alone, number)], "thread", {number(thread): "thread"})
    if predicate is None:
        raise Unsupported(
            "L001",
            f"a branch by thread that depends on more than the thread: {format_expression(branch.condition)}",
            hint="choose the threads in a branch of its own: if tx < 128:",
            span=span_of(branch),
        )
    return predicate


# One function for each group


@functools.lru_cache(maxsize=16)
def projected(function: tirx.PrimFunc) -> dict[str, tirx.PrimFunc]:
    """What each group of a kernel executes, by its name, to be run at the same time; the kernel alone if it has none,
    with its threads written out if it is for single threads.

    What several groups execute together, the first of them does, between two ``tl.rendezvous(groups)``, which has a
    bit for each of them.
    """
    alone = thread_kernel(function)
    if alone is not None:
        return {KERNEL: written_out_threads(function, alone)}
    split = thread_groups(function)
    if split is None:
        return {KERNEL: function}
    return {
        str(group): with_function_body(function, _Projection(split, number).body(statements(function.body), split.all))
        for number, group in enumerate(split.groups)
    }


@dataclass(frozen=True)
class _Projection:
    """What one group executes."""

    found: ThreadGroups
    number: int

    def body(self, body: Sequence[tirx.Stmt], around: frozenset[int]) -> list[tirx.Stmt]:
        return [rewritten for statement in body for rewritten in self.statement(statement, around)]

    def statement(self, statement: tirx.Stmt, around: frozenset[int]) -> list[tirx.Stmt]:
        match statement:
            case tirx.IfThenElse() if statement in self.found.taken:
                takers = self.found.taken[statement]
                if self.number in takers:
                    return self.body(statements(statement.then_case), around & takers)
                otherwise = [] if statement.else_case is None else statements(statement.else_case)
                return self.body(otherwise, around - takers)
            case tirx.IfThenElse():
                then = self.body(statements(statement.then_case), around)
                otherwise = None if statement.else_case is None else self.body(statements(statement.else_case), around)
                return [when(statement.condition, then, statement.span, otherwise=otherwise)]
            case tirx.For() if statement.thread_binding is not None:
                # A block begins and ends with all its threads.
                meet = _meet(self.found.all, statement.span)
                return [with_body(statement, [meet, *self.body(statements(statement.body), around), meet])]
            case tirx.For() if statement.kind != tirx.ForKind.PARALLEL:
                return [with_body(statement, self.body(statements(statement.body), around))]
            case tirx.Bind():
                return [] if statement.var in self.found.names else [statement]
            case tirx.Evaluate() if op_name(statement) in AT_BARRIERS:
                return [self.at_barrier(statement)]
            case tirx.Evaluate() if is_asynchronous(statement):
                return self.together([without_barrier(statement), *_arrival(statement)], around)
            case _:
                return self.together([statement], around)

    def at_barrier(self, statement: tirx.Stmt) -> tirx.Stmt:
        thread_count = len(self.found.groups[self.number].threads)
        operands = arguments(statement)
        match op_name(statement):
            case tl.BARRIER_ARRIVE.name:
                return tirx.Evaluate(call(tl.BARRIER_ARRIVE.name, [thread_count, *operands]), statement.span)
            case tl.SYNC_THREADS.name:
                return tirx.Evaluate(
                    call(tl.SYNC_THREADS.name, [thread_count, *(operands or (-1, self.found.threads))]), statement.span
                )
            case _:
                return statement

    def together(self, joint: list[tirx.Stmt], around: frozenset[int]) -> list[tirx.Stmt]:
        """Statements that several groups execute together."""
        if len(around) == 1:
            return joint
        meet = _meet(around, joint[0].span)
        return [meet, *joint, meet] if self.number == min(around) else [meet, meet]


def _arrival(statement: tirx.Stmt) -> list[tirx.Stmt]:
    """What says that a product is over, of one that has a barrier."""
    operands = arguments(statement)
    is_said = runs(statement, tl.GEMM) and len(operands) == 4
    return [tirx.Evaluate(call(tl.GEMM_ARRIVE.name, operands[3:]), statement.span)] if is_said else []


def without_barrier(statement: tirx.Stmt) -> tirx.Stmt:
    """A copy or a product that is over at once."""
    name, operands = op_name(statement), arguments(statement)
    attrs = {key: value for key, value in attributes(statement).items() if key != tl.ASYNCHRONOUS}
    count = {tl.COPY.name: 2, tl.GEMM.name: 3}.get(name, len(operands))
    return tirx.Evaluate(call(name, operands[:count], attrs), statement.span)


def _meet(groups: frozenset[int], span: ir.Span | None) -> tirx.Stmt:
    return tirx.Evaluate(call(tl.RENDEZVOUS.name, [sum(1 << number for number in groups)]), span)
