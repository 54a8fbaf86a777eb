"""Branches as loops: what runs under a condition is a loop of one turn or none.

Whatever is true of a loop whose length is known only when the kernel runs is then true of a branch. Listings, the
kernels as values and C++ show it as an `if`.
"""

from __future__ import annotations

from tvm import ir, tirx

from ttexplore.ir.build import constant, sequence, variable

# The mark of a loop that is a branch.
BRANCH = "tt.branch"


def branch(condition: ir.Expr, body: list[tirx.Stmt], span: ir.Span | None = None) -> tirx.For:
    """The loop that makes one turn if a condition holds, otherwise none."""
    turns = tirx.Select(condition, tirx.const(1, "int32"), tirx.const(0, "int32"))
    return tirx.For(
        variable("taken"), tirx.const(0, "int32"), turns, tirx.ForKind.SERIAL, sequence(body), None, {BRANCH: 1}, None,
        span,
    )  # fmt: skip


def branch_condition(loop: tirx.For) -> ir.Expr | None:
    """The condition of a loop that is a branch; None for another loop."""
    if constant(loop.extent) is not None or BRANCH not in loop.annotations:
        return None
    turns = loop.extent
    return turns.condition if isinstance(turns, tirx.Select) else turns > 0
