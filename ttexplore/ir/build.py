"""Making TIR statements: short constructors that flatten sequences and check arity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import ir, tirx

from ttexplore.ir.adapter import call, elements, for_of, function_of, operation_name, sequence_of, set_span, to_expr
from ttexplore.ops import FORMS


def statements(body: Any) -> list[Any]:
    """The statements of a body in order. TVM keeps sequences flat; types are compared exactly, because TVM's own
    isinstance goes through an abstract class and is slow where every pass comes by."""
    kind = type(body)
    if kind is tirx.SeqStmt:
        return elements(body.seq)
    if kind is tirx.Evaluate and type(body.value) is tirx.IntImm:
        return []
    return [body]


def sequence(body: Sequence[Any]) -> Any:
    """One statement for several; none at all is the statement that does nothing."""
    flat = [inner for part in body for inner in statements(part)]
    if not flat:
        return tirx.Evaluate(tirx.const(0, "int32"))
    return flat[0] if len(flat) == 1 else sequence_of(flat)


def op(name: str, *arguments: Any, span: Any = None) -> Any:
    """The statement that runs operation ``tt.<name>``. Raises TypeError where the arity is wrong."""
    known = FORMS.get(f"tt.{name}")
    if known is not None:
        known.check(arguments)
    return tirx.Evaluate(call(f"tt.{name}", arguments), span)


def variable(name: str, span: Any = None) -> Any:
    """An int32 variable. Only variables of the kernel's own source have a span."""
    return tirx.Var(name, "int32", span)


def bind(var: Any, value: Any, span: Any = None) -> Any:
    return tirx.Bind(var, to_expr(value), span)


def loop(
    var: Any, extent: Any, body: Sequence[Any], *, annotations: dict[str, Any] | None = None, span: Any = None
) -> Any:
    """A serial loop from 0."""
    return tirx.For(
        var, tirx.const(0, "int32"), to_expr(extent), tirx.ForKind.SERIAL, sequence(body), None, annotations or {},
        None, span,
    )  # fmt: skip


def with_body(statement: Any, body: Sequence[Any]) -> Any:
    """The same loop around another body."""
    return for_of(statement.loop_var, statement.min, statement.extent, statement, sequence(body))


def when(test: Any, body: Sequence[Any], span: Any = None, *, otherwise: Sequence[Any] | None = None) -> Any:
    return tirx.IfThenElse(test, sequence(body), None if otherwise is None else sequence(otherwise), span)


def allocation(name: str, shape: Sequence[int], dtype: str, scope: str, span: Any = None) -> Any:
    """The statement that allocates a new buffer; the buffer is its `.buffer`."""
    made = tirx.AllocBuffer(tirx.decl_buffer(list(shape), dtype, name=name, scope=scope, span=span), {})
    if span is not None:
        # The constructor takes no span of several places, as in a macro.
        set_span(made, span)
    return made


def with_function_body(function: Any, body: Sequence[Any], parameters: Sequence[Any] | None = None) -> Any:
    """The same function around another body; attributes and span are kept."""
    given = elements(function.params) if parameters is None else list(parameters)
    return function_of(given, sequence(body), function)


def shape_of(buffer: Any) -> tuple[int, ...]:
    return tuple(int(extent) for extent in elements(buffer.ty.shape))


def dtype_of(buffer: Any) -> str:
    return str(buffer.ty.dtype.dtype)


def scope_of(buffer: Any) -> str:
    return str(buffer.ty.storage_scope)


def op_name(statement: Any) -> str:
    """The name of the operation that a statement runs, or "" where it runs none."""
    if type(statement) is tirx.Evaluate:
        value = statement.value
        if type(value) is ir.Call:
            return operation_name(value)
    return ""


def arguments(statement: Any) -> list[Any]:
    return elements(statement.value.args)


def operands(statement: Any) -> dict[str, Any]:
    """The arguments of an operation of the table by operand name; a dst operand gives its index."""
    return FORMS[op_name(statement)].named(arguments(statement))


def attribute(statement: Any, name: str) -> int:
    """An integer attribute of a call; 0 where it is not set."""
    attrs = statement.value.attrs
    return int(attrs[name]) if attrs is not None and name in attrs else 0


def constant(expression: Any) -> int | None:
    """The value of a constant expression, else None."""
    return int(expression.value) if type(expression) is tirx.IntImm else None
