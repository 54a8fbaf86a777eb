"""What the statements of reader, compute and writer need and give: names, and blocks that are packed."""

from __future__ import annotations

from tvm import ir, tirx

from ttexplore.errors import Unsupported
from ttexplore.ir.adapter import identity, span_of, variables_of
from ttexplore.ir.build import arguments, buffer_of, op_name, operands, statements, when, with_body
from ttexplore.ir.index import is_binary


def packed_by(statement: tirx.Stmt) -> tirx.Buffer | None:
    """The circular buffer that a tile loop packs a block into, or that gets a block of rows or tiles; else None."""
    if op_name(statement) in ("tt.tilize", "tt.untilize"):
        return buffer_of(operands(statement)["out"])
    inner = statements(statement.body) if isinstance(statement, tirx.For) else []
    return buffer_of(operands(inner[0])["out"]) if len(inner) == 1 and op_name(inner[0]) == "tt.pack_tile" else None


def pruned(body: list[tirx.Stmt], used: set[int]) -> list[tirx.Stmt]:
    """The statements without bindings and allocations that nothing uses. A variable is used after it is bound, so one
    look from the end is enough; `used` collects the variables that are read, by identity, those after the body
    included."""
    made: list[tirx.Stmt] = []
    for statement in reversed(body):
        match statement:
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
                raise Unsupported("L001", f"no kernel runs {type(statement).__name__}", span=span_of(statement))
        made.append(statement)
    return made[::-1]


def _collect(expression: ir.Expr, used: set[int]) -> None:
    """Add the variables of an expression. Most are of few parts: TVM's own walk is slow to start."""
    if type(expression) is ir.Var:
        used.add(identity(expression))
    elif is_binary(expression):
        _collect(expression.a, used)
        _collect(expression.b, used)
    elif type(expression) is not tirx.IntImm:
        used.update(map(identity, variables_of(expression)))
