"""Variables that are read before they are stored: they hold zero, as TileLang has it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tvm import tirx

from ttexplore.ir.build import constant, dtype_of, expressions_of, op_name, scope_of, statements
from ttexplore.ir.dataflow import loads_of, regions_used
from ttexplore.ir.rewrite import Context, Firings, StatementRule, bodies, rewrite


def with_zeroed_variables(function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
    """The kernel in which variables that may be read before they are stored are 0 first.

    last = T.alloc_var("int32")                last = T.alloc_var("int32")
    for k in T.serial(n):                      last = 0
        if M[k] > 0:                    ==>    for k in T.serial(n):
            last = k                               if M[k] > 0:
                                                       last = k

    One that a loop allocates, and that may be read first, stays as it is, for a later part to refuse.
    """
    read_first = {
        allocation.buffer
        for body in _once(function.body)
        for number, allocation in enumerate(body)
        if isinstance(allocation, tirx.AllocBuffer) and scope_of(allocation.buffer) == "local.var"
        if _reads_first(body[number + 1 :], allocation.buffer)
    }
    return rewrite(_RULES, _Zeroed(function, firings, read_first)) if read_first else function


def _once(body: tirx.Stmt) -> Iterator[list[tirx.Stmt]]:
    """The sequences of statements that no loop runs again: what a loop allocates may keep what an iteration stored."""
    yield statements(body)
    for statement in statements(body):
        if not isinstance(statement, tirx.For) or statement.kind == tirx.ForKind.THREAD_BINDING:
            for inner in bodies(statement):
                yield from _once(inner)


class _Zeroed(Context):
    """`read_first` are the variables that may be read before they are stored."""

    def __init__(self, function: tirx.PrimFunc, firings: Firings, read_first: set[tirx.Buffer]) -> None:
        super().__init__(function, firings)
        self.read_first = read_first

    def allocation(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        if not isinstance(statement, tirx.AllocBuffer) or statement.buffer not in self.read_first:
            return None
        zero = tirx.const(0, dtype_of(statement.buffer))
        return [statement, tirx.BufferStore(statement.buffer, zero, [tirx.const(0, "int32")], statement.span)]


def _reads_first(body: Sequence[tirx.Stmt], variable: tirx.Buffer) -> bool | None:
    """Whether statements may use what a variable holds before they store it; None where they need not do either.

    What a loop that may make no iteration, or only one side of a branch, stores may be read after it."""
    for statement in body:
        if any(load.source == variable for value in expressions_of(statement) for load in loads_of(value)):
            return True
        match statement:
            case tirx.BufferStore() if statement.buffer == variable:
                return False
            case tirx.Evaluate() if op_name(statement):
                used = [kind for region, kind in regions_used(statement) if region.source == variable]
                if used:
                    return any(kind != "write" for kind in used)
            case _:
                uses = [_reads_first(statements(inner), variable) for inner in bodies(statement)]
                if True in uses:
                    return True
                if uses and all(use is False for use in uses) and not _may_be_left_out(statement):
                    return False
    return None


def _may_be_left_out(statement: tirx.Stmt) -> bool:
    """Whether nothing in a loop or branch need run."""
    if isinstance(statement, tirx.For):
        return (constant(statement.extent) or 0) < 1
    return not isinstance(statement, tirx.IfThenElse) or statement.else_case is None


_RULES = (
    StatementRule("variable is zero", "A variable that may be read before it is stored holds 0.", _Zeroed.allocation),
)
