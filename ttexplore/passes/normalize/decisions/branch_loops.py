"""Branches around operations on blocks, as loops of one turn or none."""

from __future__ import annotations

import functools

from tvm import tirx

from ttexplore.ir.adapter import call
from ttexplore.ir.branches import branch
from ttexplore.ir.build import constant, dtype_of, op_name, sequence, statements, whole_region
from ttexplore.ir.dag import conjuncts
from ttexplore.ir.dataflow import accesses, blocks, is_on_chip, is_parallel, loads_of
from ttexplore.ir.rewrite import Context, Firings, StatementRule, rewrite, rewrite_body
from ttexplore.ops import language as tl
from ttexplore.passes.normalize.decisions.computed_decisions import refused


def with_branches_as_loops(function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
    """The kernel with a loop of one turn or none for each branch around operations on blocks.

    All kernels of a core then take the same turns, and values in DST stay as they are where none is taken. A condition
    that always or never holds goes. A block that both sides overwrite, and that is read after them, is cleared before
    them, so that it holds something whatever is taken. Raises Unsupported for conditions and lengths of loops that
    depend on what the chip computes.
    """
    return rewrite(_RULES, _Branches(function, firings))


class _Branches(Context):
    def __init__(self, function: tirx.PrimFunc, firings: Firings) -> None:
        super().__init__(function, firings)
        # What has been cleared before a branch around.
        self.cleared = set[tirx.Buffer]()

    @functools.cached_property
    def uses(self) -> dict[tirx.Buffer, int]:
        return _uses(blocks(self.function.body))

    def taken(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        if not isinstance(statement, tirx.IfThenElse) or any(map(is_parallel, self.around)):
            return None
        condition = statement.condition
        for load in loads_of(condition):
            if is_on_chip(load.source):
                raise refused("a condition around operations on blocks", load, statement)
        then = statements(statement.then_case)
        otherwise = [] if statement.else_case is None else statements(statement.else_case)
        tests = [conjunct for conjunct in conjuncts(condition) if not self.bounds.proves(conjunct)]
        if not tests:
            return rewrite_body(then, _RULES, self)
        condition = functools.reduce(tirx.And, tests)
        negation = tirx.Not(condition)
        if self.bounds.proves(negation):
            return rewrite_body(otherwise, _RULES, self)
        replacement: list[tirx.Stmt] = []
        before = self.cleared
        new = [buffer for buffer in self.overwritten(then, otherwise) if buffer not in before]
        self.cleared = {*before, *new}
        for buffer in new:
            zero = tirx.const(0, dtype_of(buffer))
            replacement.append(tirx.Evaluate(call(tl.FILL.name, [whole_region(buffer), zero])))
        for test, body in ((condition, then), (negation, otherwise)):
            if body:
                loop = branch(test, body, statement.span)
                replacement.append(self.inside(loop, lambda inner: rewrite_body(inner, _RULES, self)))
        self.cleared = before
        return replacement

    def counted(self, statement: tirx.Stmt) -> None:
        """Refuse a loop whose length the chip computes; nothing changes."""
        if isinstance(statement, tirx.For) and not any(map(is_parallel, (*self.around, statement))):
            for load in (*loads_of(statement.min), *loads_of(statement.extent)):
                if is_on_chip(load.source):
                    raise refused("the length of a loop", load, statement)

    def overwritten(self, then: list[tirx.Stmt], otherwise: list[tirx.Stmt]) -> list[tirx.Buffer]:
        """The blocks that both sides overwrite before they read them, and that others read."""
        if not then or not otherwise:
            return []
        inside = _uses(blocks(sequence([*then, *otherwise])))
        other_writes = _first_writes(otherwise)
        both = [buffer for buffer in dict.fromkeys(_first_writes(then)) if buffer in other_writes]
        return [buffer for buffer in both if self.uses.get(buffer, 0) > inside.get(buffer, 0)]


def _is_block_statement(statement: tirx.Stmt) -> bool:
    return is_parallel(statement) or op_name(statement) in tl.STATEMENTS


def _uses(body: list[tirx.Stmt]) -> dict[tirx.Buffer, int]:
    """How many statements read each block."""
    counts: dict[tirx.Buffer, int] = {}
    for statement in body:
        if _is_block_statement(statement):
            for buffer in {access.buffer for access in accesses(statement) if access.kind != "write"}:
                counts[buffer] = counts.get(buffer, 0) + 1
    return counts


def _first_writes(body: list[tirx.Stmt]) -> list[tirx.Buffer]:
    """The blocks of which a sequence overwrites the whole before it reads them, outside of loops that may make no
    turn."""
    written: list[tirx.Buffer] = []
    read = set[tirx.Buffer]()

    def visit(statement: tirx.Stmt) -> None:
        if isinstance(statement, tirx.For) and not is_parallel(statement) and (constant(statement.extent) or 0) > 0:
            for inner in statements(statement.body):
                visit(inner)
            return
        if isinstance(statement, tirx.IfThenElse) and statement.else_case is not None:
            sides = [_first_writes(statements(case)) for case in (statement.then_case, statement.else_case)]
            written.extend(buffer for buffer in sides[0] if buffer in sides[1] and buffer not in read)
        for inner in blocks(statement):
            if not _is_block_statement(inner):
                continue
            for access in accesses(inner):
                if access.kind != "write":
                    read.add(access.buffer)
                elif inner is statement and access.buffer not in read and is_on_chip(access.buffer):
                    written.append(access.buffer)

    for statement in body:
        visit(statement)
    return written


_RULES = (
    StatementRule(
        "length of a loop", "All kernels of a core know the lengths of loops; nothing changes.", _Branches.counted
    ),
    StatementRule("branch as a loop", "A branch becomes a loop of one turn or none for each side.", _Branches.taken),
)
