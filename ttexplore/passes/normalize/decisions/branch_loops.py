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
        tests = [one for one in conjuncts(condition) if not self.bounds.proves(one)]
        if not tests:
            return rewrite_body(then, _RULES, self)
        condition = functools.reduce(tirx.And, tests)
        other = tirx.Not(condition)
        if self.bounds.proves(other):
            return rewrite_body(otherwise, _RULES, self)
        made: list[tirx.Stmt] = []
        before = self.cleared
        new = [one for one in self.overwritten(then, otherwise) if one not in before]
        self.cleared = {*before, *new}
        for buffer in new:
            zero = tirx.const(0, dtype_of(buffer))
            made.append(tirx.Evaluate(call(tl.FILL.name, [whole_region(buffer), zero])))
        for test, body in ((condition, then), (other, otherwise)):
            if body:
                loop = branch(test, body, statement.span)
                made.append(self.inside(loop, lambda inner: rewrite_body(inner, _RULES, self)))
        self.cleared = before
        return made

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
        other = _first_writes(otherwise)
        both = [one for one in dict.fromkeys(_first_writes(then)) if one in other]
        return [one for one in both if self.uses.get(one, 0) > inside.get(one, 0)]


def _is_block_statement(statement: tirx.Stmt) -> bool:
    return is_parallel(statement) or op_name(statement) in tl.STATEMENTS


def _uses(body: list[tirx.Stmt]) -> dict[tirx.Buffer, int]:
    """How many statements read each block."""
    found: dict[tirx.Buffer, int] = {}
    for statement in body:
        if _is_block_statement(statement):
            for buffer in {one.buffer for one in accesses(statement) if one.kind != "write"}:
                found[buffer] = found.get(buffer, 0) + 1
    return found


def _first_writes(body: list[tirx.Stmt]) -> list[tirx.Buffer]:
    """The blocks of which a sequence overwrites the whole before it reads them, outside of loops that may make no
    turn."""
    written: list[tirx.Buffer] = []
    read = set[tirx.Buffer]()

    def visit(statement: tirx.Stmt) -> None:
        if isinstance(statement, tirx.For) and not is_parallel(statement) and (constant(statement.extent) or 0) > 0:
            for one in statements(statement.body):
                visit(one)
            return
        if isinstance(statement, tirx.IfThenElse) and statement.else_case is not None:
            sides = [_first_writes(statements(one)) for one in (statement.then_case, statement.else_case)]
            written.extend(one for one in sides[0] if one in sides[1] and one not in read)
        for one in blocks(statement):
            if not _is_block_statement(one):
                continue
            for access in accesses(one):
                if access.kind != "write":
                    read.add(access.buffer)
                elif one is statement and access.buffer not in read and is_on_chip(access.buffer):
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
