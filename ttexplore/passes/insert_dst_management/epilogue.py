"""Peel the last iteration off a loop, so that later statements find the result in DST."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from tvm import ir, tirx

from ttexplore.ir.build import constant, number_of
from ttexplore.ir.rewrite import Firings, Rule, inherit_places
from ttexplore.passes.insert_dst_management.groups import Grouping, SequencePart
from ttexplore.passes.insert_dst_management.sections import replaced
from ttexplore.passes.insert_dst_management.steps import StepReader

_TURN = Rule("peeled iteration", "An iteration is peeled off a loop, so that later statements find its results in DST.")
_SHORTER = Rule("shorter loop", "The last iteration of the loop follows it.")


def without_single_turns(body: list[tirx.Stmt], reader: StepReader, firings: Firings) -> list[tirx.Stmt]:
    """`body` with each single-iteration loop over operations on DST replaced by its body."""
    inlined: list[tirx.Stmt] = []
    for statement in body:
        summary = reader.seen(statement)
        if summary.touches and summary.step is None and type(statement) is tirx.For and constant(statement.extent) == 1:
            iteration = _turn(statement, statement.min, reader, firings)
            inherit_places(statement, iteration)
            inlined += without_single_turns(iteration, reader, firings)
        else:
            inlined.append(statement)
    return inlined


def _turn(statement: tirx.For, index: ir.Expr, reader: StepReader, firings: Firings) -> list[tirx.Stmt]:
    """The statements of one iteration of a loop. What they bind keeps its identity, by which the verifier counts."""
    body: list[tirx.Stmt] = []
    values: dict[ir.Var, ir.Expr] = {statement.loop_var: index}
    for inner in reader.inside(statement):
        body += firings.made(_TURN, inner, [replaced(inner, values)])
    return body


def last_turn_apart(
    statement: tirx.For, after: Iterable[SequencePart], grouping: Grouping, firings: Firings
) -> list[tirx.Stmt] | None:
    """A loop without its last iteration, and that iteration, if the operations in `after`, which follow the loop, can
    then share sections with the last operations in it and use one of their values; otherwise None. `grouping` has
    reached the loop."""
    extent = constant(statement.extent)
    reader = grouping.reader
    inner = reader.inside(statement)
    if extent is None or extent < 1:
        return None
    last = next((position for position in reversed(range(len(inner))) if reader.has_values(inner[position])), None)
    if last is None:
        return None
    last_index = tirx.const(number_of(statement.min) + extent - 1, "int32")
    apart = _turn(statement, last_index, reader, firings)
    before = [*_shorter(statement, extent - 1, reader, firings), *apart[:last]]
    end, rest = apart[last], apart[last + 1 :]
    trial = grouping.continued()
    for member in before:
        trial.add(member)
    if reader.step(end) is None:
        # A nested loop: its own last iteration shares sections with what follows.
        assert isinstance(end, tirx.For)
        peeled = last_turn_apart(end, itertools.chain(rest, after), trial, firings)
        return None if peeled is None else [*before, *peeled, *rest]
    trial.add(end)
    group = trial.group
    assert group is not None
    step_count = len(group.steps)
    for member in itertools.chain(rest, after):
        trial.add(member)
        if trial.group is not group:
            break
    loop_values = {operand.value for step in group.steps[:step_count] for operand in step.operands}
    is_read = any(operand.value in loop_values for step in group.steps[step_count:] for operand in step.operands)
    return [*before, end, *rest] if is_read else None


def _shorter(statement: tirx.For, extent: int, reader: StepReader, firings: Firings) -> list[tirx.Stmt]:
    if extent == 1:
        return _turn(statement, statement.min, reader, firings)
    shorter = tirx.For(
        statement.loop_var, statement.min, tirx.const(extent, "int32"), statement.kind, statement.body,
        statement.thread_binding, statement.annotations, statement.step, statement.span,
    )  # fmt: skip
    return firings.made(_SHORTER, statement, [shorter]) if extent else []
