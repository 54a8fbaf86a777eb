"""Branches that the compute kernel decides, as choices of the elements that they store."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from tvm import ir, tirx

from ttexplore.ir.build import (
    allocation,
    arguments,
    constant,
    dtype_of,
    expressions_of,
    is_whole,
    parallel_nest,
    regions,
    runs,
    shape_of,
    statements,
    when,
    with_nest,
)
from ttexplore.ir.dag import nodes_of
from ttexplore.ir.dataflow import is_on_chip, is_parallel, loads_of, parallel_body, same_indices
from ttexplore.ir.operations.by_thread import written_buffer
from ttexplore.ir.rewrite import Context, Firings, StatementRule, bodies, rewrite, walk
from ttexplore.ops import language as tl
from ttexplore.passes.normalize.blocks.plain_elements import flattened
from ttexplore.passes.normalize.decisions.loaded_blocks import LoadedBlocks


def with_computed_branches(function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
    """The kernel whose branches around T.Parallel, on values that only the compute kernel knows, choose elements.

        if found:                              for i in T.Parallel(64):
            for i in T.Parallel(64):    ==>        x[i] = T.if_then_else(found, x[i] / s[i], x[i])
                x[i] /= s[i]

    Other kernels have no part in such a branch if all that it does is to store elements of blocks, and to fill and copy
    blocks on the chip. Branches around anything else stay as they are, for later parts to refuse. A block that nothing
    outside of the branch uses, and that the branch overwrites first, needs no choice.
    """
    return rewrite(_RULES, _ComputedBranches(function, firings))


class _ComputedBranches(Context):
    """`computed` are the names whose values only the compute kernel knows, `chosen` those that elements decide."""

    def __init__(self, function: tirx.PrimFunc, firings: Firings) -> None:
        super().__init__(function, firings)
        self.held = LoadedBlocks(function)
        self.computed = set[ir.Expr]()
        self.chosen = set[ir.Expr]()

    # Rules

    def seen(self, statement: tirx.Stmt) -> None:
        """Not a rule that changes statements."""
        if self.is_in_nest:
            return
        self.held.pass_by(statement, [*self.around])
        if isinstance(statement, tirx.Bind):
            if self.is_computed(statement.value):
                self.computed.add(statement.var)
            if self.is_chosen(statement.value):
                self.chosen.add(statement.var)

    def branch(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        if not isinstance(statement, tirx.IfThenElse) or self.is_in_nest or not self.is_computed(statement.condition):
            return None
        if not any(map(is_parallel, walk(statement))) or not self.are_elements(statement):
            return None
        return _chosen(statement, None, self.private(statement))

    def are_elements(self, branch: tirx.IfThenElse) -> bool:
        """Whether a branch does nothing but store elements of blocks, also where its condition does not hold."""
        for statement in (inner for body in bodies(branch) for inner in statements(body)):
            if is_parallel(statement):
                if not all(map(self.is_element, walk(statement))):
                    return False
            elif isinstance(statement, tirx.IfThenElse):
                if not self.are_elements(statement):
                    return False
            elif not self.is_element(statement) or isinstance(statement, tirx.For):
                return False
        return True

    def is_element(self, statement: tirx.Stmt) -> bool:
        match statement:
            case tirx.BufferStore():
                return is_on_chip(statement.buffer) and not self.may_be_outside(statement)
            case tirx.Bind() | tirx.IfThenElse() | tirx.For():
                return not self.may_be_outside(statement)
            case tirx.Evaluate() if runs(statement, tl.FILL, tl.COPY):
                return all(is_on_chip(region.source) and is_whole(region) for region in regions(statement)) and (
                    runs(statement, tl.FILL) or _is_of_equals(statement)
                )
            case _:
                return False

    def may_be_outside(self, statement: tirx.Stmt) -> bool:
        """Whether elements decide which element of a tensor is read: where the condition does not hold, there may be
        none."""
        return any(
            self.is_chosen(index)
            for value in expressions_of(statement)
            for load in loads_of(value)
            if not is_on_chip(load.source)
            for index in load.indices
        )

    def private(self, branch: tirx.IfThenElse) -> set[tirx.Buffer]:
        """The blocks that nothing outside of a branch uses, and that each side overwrites before it reads them."""
        inside, everywhere = (_uses(walk(body)) for body in (branch, self.function.body))
        blocks = {buffer for buffer, count in inside.items() if everywhere[buffer] == count}
        for body in bodies(branch):
            for buffer in [*blocks]:
                uses = [nested for nested in statements(body) if _uses(walk(nested))[buffer]]
                if uses and not _overwrites(uses[0], buffer):
                    blocks.remove(buffer)
        return blocks

    # Values

    def is_computed(self, value: ir.Expr) -> bool:
        return any(
            node in self.computed
            or (
                isinstance(node, ir.TensorLoad)
                and is_on_chip(node.source)
                and self.held.element(node, [*self.around], self.bounds) is None
            )
            for node in nodes_of(value)
        )

    def is_chosen(self, value: ir.Expr) -> bool:
        return any(node in self.chosen or isinstance(node, ir.TensorLoad) for node in nodes_of(value))


def _chosen(branch: tirx.IfThenElse, around: ir.Expr | None, private: set[tirx.Buffer]) -> list[tirx.Stmt]:
    """The statements of a branch, in which conditions choose what they store; `around` is the condition around it."""
    before: list[tirx.Stmt] = []
    condition = branch.condition if around is None else tirx.And(around, branch.condition)
    written = set(map(written_buffer, walk(branch)))
    if any(load.source in written for load in loads_of(condition)):
        # What the sides store must not change which of them runs.
        copied = allocation("chosen", (1,), "int32", "local.var", branch.span)
        zero = tirx.const(0, "int32")
        number = tirx.if_then_else(condition, tirx.const(1, "int32"), zero)
        before = [copied, tirx.BufferStore(copied.buffer, number, [zero], branch.span)]
        condition = tirx.NE(tirx.BufferLoad(copied.buffer, [zero]), zero)
    negation = tirx.Not(branch.condition) if around is not None and not before else tirx.Not(condition)
    if around is not None:
        negation = tirx.And(around, negation)
    sides = [(condition, branch.then_case)]
    sides += [] if branch.else_case is None else [(negation, branch.else_case)]
    return [
        *before,
        *(new for test, side in sides for inner in statements(side) for new in _under(test, inner, private)),
    ]


def _under(condition: ir.Expr, statement: tirx.Stmt, private: set[tirx.Buffer]) -> list[tirx.Stmt]:
    """A statement of a branch, for which the condition chooses what it stores."""
    if isinstance(statement, tirx.Bind):
        return [statement]
    if isinstance(statement, tirx.IfThenElse):
        return _chosen(statement, condition, private)
    if isinstance(statement, tirx.BufferStore):
        return [statement] if statement.buffer in private else flattened(when(condition, [statement], statement.span))
    nest = statement
    if not is_parallel(statement):
        source = None if runs(statement, tl.FILL) else regions(statement)[0].source
        fill = arguments(statement)[-1]
        nest = parallel_nest(
            regions(statement)[-1].source, lambda at: fill if source is None else tirx.BufferLoad(source, at)
        )
    loops, body = parallel_body(nest)
    if all(inner.buffer in private for inner in body if isinstance(inner, tirx.BufferStore)):
        return [with_nest(loops, body)]
    return [with_nest(loops, flattened(when(condition, body, statement.span)))]


def _is_of_equals(copy: tirx.Stmt) -> bool:
    source, target = (region.source for region in regions(copy))
    return len(arguments(copy)) == 2 and dtype_of(source) == dtype_of(target) and shape_of(source) == shape_of(target)


def _uses(body: Iterable[tirx.Stmt]) -> Counter[tirx.Buffer]:
    """How often statements load, store or name each buffer."""
    uses = Counter[tirx.Buffer]()
    for statement in body:
        if isinstance(statement, tirx.BufferStore):
            uses[statement.buffer] += 1
        if isinstance(statement, tirx.Evaluate):
            uses.update(region.source for region in regions(statement))
        uses.update(load.source for value in expressions_of(statement) for load in loads_of(value))
    return uses


def _overwrites(statement: tirx.Stmt, buffer: tirx.Buffer) -> bool:
    """Whether a statement stores all elements of a block, and reads none of them before."""
    if isinstance(statement, tirx.BufferStore):
        is_all = math.prod(shape_of(buffer)) == 1
        return is_all and not any(load.source == buffer for load in loads_of(statement.value))
    if not is_parallel(statement):
        return runs(statement, tl.FILL, tl.COPY) and regions(statement)[-1].source == buffer
    loops, body = parallel_body(statement)
    first = body[0] if body else None
    return (
        isinstance(first, tirx.BufferStore)
        and first.buffer == buffer
        and same_indices(first.indices, [loop.loop_var for loop in loops])
        and tuple(constant(loop.extent) for loop in loops) == shape_of(buffer)
        and not any(load.source == buffer for load in loads_of(first.value))
    )


_RULES = (
    StatementRule(
        "what blocks hold", "What a block holds of a tensor is noted; nothing changes.", _ComputedBranches.seen
    ),
    StatementRule(
        "computed branch",
        "A branch that the compute kernel decides chooses the elements that it stores.",
        _ComputedBranches.branch,
    ),
)
