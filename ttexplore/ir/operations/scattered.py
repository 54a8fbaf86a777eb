"""Updates of a tensor where elements of another one say, in each turn of a T.Parallel: one turn after another."""

from __future__ import annotations

from tvm import ir, tirx

from ttexplore.ir.build import constant, loop, sequence, statements, when, with_nest
from ttexplore.ir.dag import nodes_of, uses, written_out
from ttexplore.ir.dataflow import is_on_chip, loads_of, parallel_body
from ttexplore.ir.operations.atomics import updates
from ttexplore.ir.rewrite import walk


def turn_by_turn(statement: tirx.For) -> list[tirx.Stmt] | None:
    """The statements in place of a T.Parallel that updates a tensor where elements say, another one in each turn; None
    for other nests.

        for i, j in T.Parallel(32, 64):                    for i in range(32):
            if N[i] >= 0:                           ==>        if N[i] >= 0:
                T.atomic_add(C[N[i], j], c[i, j])                  for j in T.Parallel(64):
                                                                       T.atomic_add(C[N[i], j], c[i, j])
    """
    loops, body = parallel_body(statement)
    stores = [inner for inner in walk(sequence(body)) if isinstance(inner, tirx.BufferStore)]
    if not stores or not all(not is_on_chip(store.buffer) and updates(store.value) for store in stores):
        return None
    names = {inner.var: inner.value for inner in walk(sequence(body)) if isinstance(inner, tirx.Bind)}
    indices = [written_out(index, names) for store in stores for index in store.indices]
    deciding = [load for index in indices for load in loads_of(index)]
    outer = [at for at in loops if any(uses(load, at.loop_var) for load in deciding)]
    inner = [at for at in loops if at not in outer]
    if not outer or any(constant(at.min) != 0 for at in outer):
        return None
    inside: list[tirx.Stmt] = _inside(body, inner)
    for at in reversed(outer):
        inside = list[tirx.Stmt]([loop(at.loop_var, at.extent, inside, span=at.span)])
    return inside


def _inside(body: list[tirx.Stmt], loops: list[tirx.For]) -> list[tirx.Stmt]:
    """The statements of a turn, with the other loops around those that use them."""
    if not loops:
        return body
    variables: set[ir.Var] = {at.loop_var for at in loops}
    for inner in walk(sequence(body)):
        if isinstance(inner, tirx.Bind) and _uses_any(inner.value, variables):
            variables.add(inner.var)
    names, last = [inner for inner in body if isinstance(inner, tirx.Bind)], body[-1]
    before = [binding for binding in names if binding.var not in variables]
    rest = [statement for statement in body if not isinstance(statement, tirx.Bind) or statement.var in variables]
    is_end = len(names) == len(body) - 1
    if (
        is_end
        and isinstance(last, tirx.IfThenElse)
        and last.else_case is None
        and not _uses_any(last.condition, variables)
    ):
        # Whoever asks for the place of an update asks the condition first.
        chosen = _inside([*rest[:-1], *statements(last.then_case)], loops)
        return [*before, when(last.condition, chosen, last.span)]
    return [*before, with_nest(loops, rest)]


def _uses_any(expression: ir.Expr, variables: set[ir.Var]) -> bool:
    return any(node in variables for node in nodes_of(expression))
