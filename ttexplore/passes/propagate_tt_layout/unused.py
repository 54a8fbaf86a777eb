"""Remove values that reach no tensor: unused loads, and results that are overwritten or never read."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import ir, tirx

from ttexplore.ir.adapter import identity, line_of
from ttexplore.ir.build import regions, runs, statements, with_body, with_function_body
from ttexplore.ir.dag import nodes_of
from ttexplore.ir.dataflow import Web, is_on_chip, is_parallel, nest_of, parallel_body, webs
from ttexplore.ir.rewrite import Firings, Rule
from ttexplore.notes import Note, note
from ttexplore.ops import language as tl


def without_unused(function: tirx.PrimFunc, firings: Firings) -> tuple[tirx.PrimFunc, tuple[Note, ...]]:
    """The kernel without the statements that no output depends on, and a note for each removed statement.

    Raises the errors of :func:`webs`.
    """
    notes: list[Note] = []
    while True:
        told = len(notes)
        body = _Liveness(webs(function), firings).body(statements(function.body), notes)
        if len(notes) == told:
            return function, tuple(notes)
        # Values that only removed statements read are unused now.
        function = with_function_body(function, body)


_LEFT = Rule("what is used", "A T.Parallel keeps the statements that an output depends on.")


_REMOVED = Rule("unused value", "What no output depends on is left out.")


class _Liveness:
    """The webs that outputs depend on: `live`, by number."""

    def __init__(self, kernel_webs: tuple[Web, ...], firings: Firings) -> None:
        self.firings = firings
        self.webs = kernel_webs
        self.written: dict[tirx.Stmt, list[int]] = {}
        # The webs whose values a statement may need. A statement that changes a buffer in place may also read it for
        # another result.
        self.read: dict[tirx.Stmt, list[int]] = {}
        for number, web in enumerate(kernel_webs):
            for write in web.writes:
                self.written.setdefault(write, []).append(number)
            for statement in (*(read for read, _ in web.reads), *web.writes):
                self.read.setdefault(statement, []).append(number)
        self.live: set[int] = set()
        # Each statement once, and again when more of its results become live.
        waiting = [*self.read]
        while waiting:
            statement = waiting.pop()
            needed = {identity(buffer) for buffer in self.needed(statement)}
            for number in self.read[statement]:
                if number not in self.live and identity(kernel_webs[number].buffer) in needed:
                    self.live.add(number)
                    waiting += kernel_webs[number].writes

    def needed(self, statement: tirx.Stmt) -> Sequence[ir.Var]:
        """The buffers whose values the statement needs for its live results."""
        if is_parallel(statement):
            return self.kept(statement)[1]
        stores = runs(statement, tl.COPY) and not is_on_chip(regions(statement)[1].source)
        if not stores and not self.live_targets(statement):
            return []
        return [region.source for region in regions(statement)]

    def live_targets(self, statement: tirx.Stmt) -> list[tirx.Buffer]:
        """The buffers with live values that the statement writes."""
        return [self.webs[number].buffer for number in self.written.get(statement, ()) if number in self.live]

    def kept(self, nest: tirx.Stmt) -> tuple[list[tirx.Stmt], list[ir.Var]]:
        """The statements of a T.Parallel nest that its live results need, and the buffers whose previous values these
        statements read.

        A store covers its whole buffer: the previous value is needed only if the stored value reads it.
        """
        needed: dict[int, ir.Var] = {identity(buffer): buffer for buffer in self.live_targets(nest)}
        live_statements: list[tirx.Stmt] = []
        for statement in reversed(nest_of(nest)[1]):
            if needed.pop(identity(_target(statement)), None) is None:
                continue
            live_statements.append(statement)
            for node in nodes_of(statement.value):
                if isinstance(node, ir.TensorLoad):
                    needed[identity(node.source)] = node.source
                elif isinstance(node, ir.Var):
                    needed[identity(node)] = node
        return live_statements[::-1], [*needed.values()]

    # Removal

    def body(self, body: list[tirx.Stmt], notes: list[Note]) -> list[tirx.Stmt]:
        return [remaining for statement in body for remaining in self.statement(statement, notes)]

    def statement(self, statement: tirx.Stmt, notes: list[Note]) -> list[tirx.Stmt]:
        if is_parallel(statement):
            return self.parallel(statement, notes)
        if isinstance(statement, tirx.For):
            inner = self.body(statements(statement.body), notes)
            return [with_body(statement, inner)] if inner else self.firings.made(_REMOVED, statement, [])
        written = self.written.get(statement, ())
        if written and not self.live_targets(statement):
            notes.append(_note(self.webs[written[0]].buffer, statement))
            return self.firings.made(_REMOVED, statement, [])
        return [statement]

    def parallel(self, statement: tirx.Stmt, notes: list[Note]) -> list[tirx.Stmt]:
        """The nest with only the stores and names that live results need."""
        live_statements = self.kept(statement)[0]
        stay = {identity(inner) for inner in live_statements}
        gone = [inner for inner in nest_of(statement)[1] if identity(inner) not in stay]
        notes += [_note(_target(inner), inner) for inner in gone]
        if not gone:
            return [statement]
        return self.firings.made(_LEFT, statement, [_nest(statement, live_statements)] if live_statements else [])


def _nest(statement: tirx.Stmt, body: list[tirx.Stmt]) -> tirx.Stmt:
    """The nest around other statements."""
    for axis_loop in reversed(parallel_body(statement)[0]):
        body = [with_body(axis_loop, body)]
    return body[0]


def _target(statement: tirx.BufferStore | tirx.Bind) -> ir.Var:
    return statement.buffer if isinstance(statement, tirx.BufferStore) else statement.var


def _note(variable: ir.Var, statement: tirx.Stmt) -> Note:
    return note("unused", buffer=str(variable.name), line=line_of(statement))
