"""Buffers of which each turn of a T.Parallel has its own, as each thread of a GPU has its own registers."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import tirx

from ttexplore.ir.build import scope_of
from ttexplore.ir.dag import nodes_of
from ttexplore.ir.rewrite import walk


def stored_by_turns(loops: Sequence[tirx.For], body: tirx.Stmt) -> frozenset[tirx.Buffer]:
    """The scalar variables and local blocks that the body of a T.Parallel nest stores to wherever its turn is."""
    variables = {loop.loop_var for loop in loops}
    return frozenset(
        statement.buffer
        for statement in walk(body)
        if isinstance(statement, tirx.BufferStore)
        and scope_of(statement.buffer) in ("local.var", "local")
        and not any(node in variables for index in statement.indices for node in nodes_of(index))
    )
