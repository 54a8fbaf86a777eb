"""Values that reach no tensor: loads that nothing reads, results that are overwritten or forgotten."""

from __future__ import annotations

from typing import Any

from tvm import ir, tirx

from ttexplore.ir.adapter import span_of
from ttexplore.ir.build import arguments, op_name, statements, with_body, with_function_body
from ttexplore.ir.dag import nodes_of
from ttexplore.ir.dataflow import Web, is_on_chip, is_parallel, loads_of, parallel_body, parallel_nest, webs


def without_unused(function: Any) -> tuple[Any, tuple[str, ...]]:
    """The kernel without the statements that no output depends on, and a note for each of them.

        T.copy(A[...], a); T.copy(B[...], b); T.copy(a, C[...])  ==>  T.copy(A[...], a); T.copy(a, C[...])

    They would fill circular buffers that nobody empties. Raises what finding the webs raises.
    """
    notes: list[str] = []
    while True:
        told = len(notes)
        found = webs(function)
        body = _body(statements(function.body), found, _live(found), notes)
        if len(notes) == told:
            return function, tuple(notes)
        # What only they have read has lost its readers.
        function = with_function_body(function, body)


def _live(found: tuple[Web, ...]) -> set[int]:
    """The numbers of the webs that a stored value depends on."""
    # A nest that changes a buffer in place may read it for another result, too.
    readers = [
        (number, statement, web.buffer)
        for number, web in enumerate(found)
        for statement in (*(read for read, _ in web.reads), *web.writes)
    ]
    live: set[int] = set()
    while True:
        more = {
            number
            for number, read, buffer in readers
            if number not in live and any(buffer.same_as(one) for one in _needed(read, found, live))
        }
        if not more:
            return live
        live |= more


def _needed(statement: Any, found: tuple[Web, ...], live: set[int]) -> list[Any]:
    """The buffers whose values the statement needs for what is live of its results."""
    if is_parallel(statement):
        return _kept(statement, found, live)[1]
    stores = op_name(statement) == "tl.copy" and not is_on_chip(arguments(statement)[1].source)
    if not stores and not _live_targets(statement, found, live):
        return []
    return [region.source for region in arguments(statement) if hasattr(region, "source")]


def _live_targets(statement: Any, found: tuple[Web, ...], live: set[int]) -> list[Any]:
    """The buffers of live values that the statement writes."""
    return [
        found[number].buffer
        for number in sorted(live)
        if any(write.same_as(statement) for write in found[number].writes)
    ]


def _kept(nest: Any, found: tuple[Web, ...], live: set[int]) -> tuple[list[Any], list[Any]]:
    """The statements of a T.Parallel nest that its live results need, and the buffers that these read from before it.

    A store covers its buffer: what was in it before is needed only where the stored value reads it.
    """
    needed = _live_targets(nest, found, live)
    kept: list[Any] = []
    for one in reversed(parallel_body(nest)[1]):
        target = one.buffer if isinstance(one, tirx.BufferStore) else one.var
        if any(target.same_as(other) for other in needed):
            kept.insert(0, one)
            needed = [other for other in needed if not target.same_as(other)]
            needed += [load.source for load in loads_of(one.value)]
            needed += [node for node in nodes_of(one.value) if isinstance(node, ir.Var)]
    return kept, needed


def _body(body: list[Any], found: tuple[Web, ...], live: set[int], notes: list[str]) -> list[Any]:
    made: list[Any] = []
    for statement in body:
        made += _statement(statement, found, live, notes)
    return made


def _statement(statement: Any, found: tuple[Web, ...], live: set[int], notes: list[str]) -> list[Any]:
    written = [web for web in found if any(write.same_as(statement) for write in web.writes)]
    if is_parallel(statement):
        return _parallel(statement, found, live, notes)
    if isinstance(statement, tirx.For):
        inner = _body(statements(statement.body), found, live, notes)
        if not inner:
            return []
        return [with_body(statement, inner)]
    if written and not _live_targets(statement, found, live):
        notes.append(_note(written[0].buffer, statement))
        return []
    return [statement]


def _parallel(statement: Any, found: tuple[Web, ...], live: set[int], notes: list[str]) -> list[Any]:
    """The nest with the stores and names that live results need."""
    kept, _ = _kept(statement, found, live)
    gone = [one for one in parallel_body(statement)[1] if not any(one.same_as(other) for other in kept)]
    notes += [_note(one.buffer if isinstance(one, tirx.BufferStore) else one.var, one) for one in gone]
    if not gone:
        return [statement]
    return [_nest(statement, kept)] if kept else []


def _nest(statement: Any, body: list[Any]) -> Any:
    """The nest around other stores."""
    for one in reversed(parallel_nest(statement)[0]):
        body = [with_body(one, body)]
    return body[0]


def _note(variable: Any, statement: Any) -> str:
    span = span_of(statement)
    where = f" of line {span.line}" if span else ""
    return f"the value of {variable.name}{where} is never used: it is left out"
