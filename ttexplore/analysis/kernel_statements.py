"""Statements of reader, compute and writer: which variables they use, and which blocks they pack."""

from __future__ import annotations

from tvm import ir, tirx

from ttexplore.errors import Unsupported
from ttexplore.ir.adapter import identity, span_of, variables_of
from ttexplore.ir.arithmetic.index import is_binary
from ttexplore.ir.build import arguments, bound_form, buffer_of, op_name, operands, statements, when, with_body
from ttexplore.ops.blocks import TILIZE, UNTILIZE
from ttexplore.ops.move import PACK_TILE
from ttexplore.ops.scalars import READ_NUMBERS, RECEIVE_NUMBER


def packed_by(statement: tirx.Stmt) -> tirx.Buffer | None:
    """The circular buffer that a tile loop packs into, or that tilize or untilize fills; None for other statements."""
    if op_name(statement) in (TILIZE.ir_name, UNTILIZE.ir_name):
        return buffer_of(operands(statement)["out"])
    inner = statements(statement.body) if type(statement) is tirx.For else []
    return buffer_of(operands(inner[0])["out"]) if len(inner) == 1 and op_name(inner[0]) == PACK_TILE.ir_name else None


def pruned(body: list[tirx.Stmt], used: set[int]) -> list[tirx.Stmt]:
    """The statements without unused bindings and allocations.

    Uses follow their binding, so one pass from the end suffices. `used` holds the variables, by identity, that
    statements after the body use; those that the body uses are added.
    """
    live_statements: list[tirx.Stmt] = []
    for statement in reversed(body):
        match statement:
            case tirx.Bind() if (form := bound_form(statement)) is not None:
                # What an operation does is done, whether or not its result is used.
                if form.op in (*READ_NUMBERS, RECEIVE_NUMBER) and identity(statement.var) not in used:
                    continue
                _collect(statement.value, used)
            case tirx.Bind():
                if identity(statement.var) not in used:
                    continue
                _collect(statement.value, used)
            case tirx.AllocBuffer():
                if identity(statement.buffer) not in used:
                    continue
            case tirx.For():
                statement = with_body(statement, pruned(statements(statement.body), used))
                _collect(statement.min, used)
                _collect(statement.extent, used)
            case tirx.IfThenElse():
                then, otherwise = statement.then_case, statement.else_case
                then = pruned(statements(then), used)
                otherwise = None if otherwise is None else pruned(statements(otherwise), used)
                statement = when(statement.condition, then, statement.span, otherwise=otherwise)
                _collect(statement.condition, used)
            case tirx.Evaluate():
                for value in arguments(statement):
                    _collect(value, used)
            case _:
                raise Unsupported("L001", f"no kernel can run {type(statement).__name__}", span=span_of(statement))
        live_statements.append(statement)
    return live_statements[::-1]


def _collect(expression: ir.Expr, used: set[int]) -> None:
    """Add the variables of an expression. Most expressions are small, and TVM's own walk is slow to start."""
    if type(expression) is ir.Var:
        used.add(identity(expression))
    elif is_binary(expression):
        _collect(expression.a, used)
        _collect(expression.b, used)
    elif type(expression) is not tirx.IntImm:
        used.update(map(identity, variables_of(expression)))
