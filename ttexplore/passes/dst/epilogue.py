"""The last turn of a loop, taken out of it, so that what follows finds the result in DST."""

from __future__ import annotations

from typing import Any

from tvm import tirx

from ttexplore.ir.build import constant, statements
from ttexplore.ir.rewrite import stamp
from ttexplore.passes.dst.groups import Grid, Group, group_steps
from ttexplore.passes.dst.sections import replaced
from ttexplore.passes.dst.steps import as_step, touches, values_in


def without_single_turns(body: list[Any]) -> list[Any]:
    """`body` with each loop of one turn over operations on DST replaced by that turn."""
    made: list[Any] = []
    for statement in body:
        if isinstance(statement, tirx.For) and as_step(statement) is None and constant(statement.extent) == 1:
            made += without_single_turns(turn(statement, statement.min) if values_in(statement) else [statement])
        else:
            made.append(statement)
    return made


def turn(statement: Any, number: Any) -> list[Any]:
    """The statements of one turn of a loop."""
    made = [replaced(one, {statement.loop_var: number}) for one in statements(statement.body)]
    for one in made:
        stamp(one, statement.span)
    return made


def last_turn_apart(body: list[Any], position: int, grids: dict[Any, Grid]) -> list[Any] | None:
    """`body` with the last turn of the loop at `position` behind the loop, if the operations after the loop then share
    sections with the last ones in it and want a value of theirs; else None."""
    statement = body[position]
    extent = constant(statement.extent)
    inner = statements(statement.body)
    if extent is None or extent < 1:
        return None
    last = next((one for one in reversed(inner) if values_in(one)), None)
    if last is None:
        return None
    apart = turn(statement, tirx.const(int(statement.min) + extent - 1, "int32"))
    after = body[position + 1 :]
    made = [*body[:position], *_shorter(statement, extent - 1), *apart, *after]
    end = apart[inner.index(last)]
    if as_step(end) is None:
        # A loop again: its own last turn is what shares sections with what follows.
        return last_turn_apart(made, next(i for i, one in enumerate(made) if one is end), grids)
    for group in group_steps(made, grids):
        if isinstance(group, Group) and any(one.same_as(end) for one in group.statements):
            joined = [one for one in group.statements if any(one is later for later in after)]
            others = [one for one in group.statements if not any(one is later for later in after)]
            wanted = any(touches(one, value) for other in others for value in values_in(other) for one in joined)
            return made if wanted else None
    return None


def _shorter(statement: Any, extent: int) -> list[Any]:
    if extent == 1:
        return turn(statement, statement.min)
    made = tirx.For(
        statement.loop_var, statement.min, tirx.const(extent, "int32"), statement.kind, statement.body,
        statement.thread_binding, statement.annotations, statement.step, statement.span,
    )  # fmt: skip
    return [made] if extent else []
