"""Build and read TIR statements: constructors that flatten sequences and check arity, and typed accessors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

from tvm import ir, tirx

from ttexplore.ir.adapter import (
    Number,
    call,
    elements,
    for_of,
    function_of,
    is_buffer,
    operation_name,
    sequence_of,
    set_span,
    to_expr,
    with_other_body,
)
from ttexplore.ops import FORMS, Form
from ttexplore.ops.language import BLOCKS, LanguageOp

# A node never changes but for its span, and one that is asked about is asked again by every pass. TVM makes new Python
# objects for each answer, which takes longer than to remember those of the last nodes.
_MOST_REMEMBERED = 1 << 13


@functools.lru_cache(_MOST_REMEMBERED)
def _in_sequence(body: tirx.SeqStmt) -> tuple[tirx.Stmt, ...]:
    return tuple(elements(body.seq))


def statements(body: tirx.Stmt) -> list[tirx.Stmt]:
    """The statements of a body in order. TVM keeps sequences flat; types are compared exactly, because TVM's own
    isinstance goes through an abstract class and is slow where every pass comes by."""
    if type(body) is tirx.SeqStmt:
        return [*_in_sequence(body)]
    if type(body) is tirx.Evaluate and type(body.value) is tirx.IntImm:
        return []
    return [body]


def sequence(body: Sequence[tirx.Stmt]) -> tirx.Stmt:
    """Combine statements into one; no statements give one that does nothing."""
    flat = [inner for group in body for inner in statements(group)]
    if not flat:
        return tirx.Evaluate(tirx.const(0, "int32"))
    return flat[0] if len(flat) == 1 else sequence_of(flat)


def op(name: str, *arguments: Number | str, span: ir.Span | None = None) -> tirx.Evaluate:
    """The statement that runs operation ``tt.<name>``. Raises TypeError where the arity is wrong."""
    form = FORMS.get(f"tt.{name}")
    if form is not None:
        form.check(arguments)
    return tirx.Evaluate(call(f"tt.{name}", arguments), span)


def variable(name: str, span: ir.Span | None = None) -> ir.Var:
    """An int32 variable. Only variables of the kernel's own source have a span."""
    return tirx.Var(name, "int32", span)


def bind(var: ir.Var, value: Number, span: ir.Span | None = None) -> tirx.Bind:
    return tirx.Bind(var, to_expr(value), span)


def loop(
    var: ir.Var, extent: Number, body: Sequence[tirx.Stmt], *, annotations: Mapping[str, object] | None = None,
    span: ir.Span | None = None,
) -> tirx.For:  # fmt: skip
    """A serial loop from 0."""
    return tirx.For(
        var, tirx.const(0, "int32"), to_expr(extent), tirx.ForKind.SERIAL, sequence(body), None, annotations or {},
        None, span,
    )  # fmt: skip


def with_body(statement: tirx.For, body: Sequence[tirx.Stmt]) -> tirx.For:
    """Return the loop with another body."""
    return for_of(statement.loop_var, statement.min, statement.extent, statement, sequence(body))


def with_nest(loops: Sequence[tirx.For], body: Sequence[tirx.Stmt]) -> tirx.For:
    """The same loops, one inside of the other, around another body."""
    nest = with_body(loops[-1], body)
    for outer in reversed(loops[:-1]):
        nest = with_body(outer, [nest])
    return nest


def parallel_nest(target: tirx.Buffer, value: Callable[[list[ir.Var]], ir.Expr]) -> tirx.Stmt:
    """The T.Parallel that stores a value to each element of a block; `value` gets the loop variables."""
    shape = shape_of(target)
    indices = parallel_variables(len(shape))
    return parallel_loops(indices, shape, tirx.BufferStore(target, value(indices), indices))


def parallel_variables(rank: int) -> list[ir.Var]:
    """The variables of a T.Parallel over so many axes."""
    return [variable("ij"[axis] if rank <= 2 else f"i{axis}") for axis in range(rank)]


def parallel_loops(variables: Sequence[ir.Var], extents: Sequence[int], body: tirx.Stmt) -> tirx.Stmt:
    """T.Parallel over `variables`, from 0 up to the extents, around a body."""
    for index, extent in reversed([*zip(variables, extents, strict=True)]):
        body = tirx.For(
            index, tirx.const(0, "int32"), tirx.const(extent, "int32"), tirx.ForKind.PARALLEL, body, span=body.span
        )
    return body


def whole_region(buffer: tirx.Buffer) -> ir.TensorRegion:
    """The region that is all of a buffer."""
    zero = tirx.const(0, "int32")
    return tirx.BufferRegion(
        buffer, [ir.Range.from_min_extent(zero, tirx.const(extent, "int32")) for extent in shape_of(buffer)]
    )


def is_whole(region: ir.TensorRegion) -> bool:
    """Whether a region is all of a buffer, whose shape is constant."""
    return tuple(constant(axis.extent) for axis in region.region) == shape_of(region.source)


def whole_tensor(tensor: tirx.Buffer) -> ir.TensorRegion:
    """The region that is all of a tensor, whose sizes may be known only when the kernel runs."""
    zero = tirx.const(0, "int32")
    return tirx.BufferRegion(tensor, [ir.Range.from_min_extent(zero, extent) for extent in elements(tensor.ty.shape)])


def when(
    test: ir.Expr, body: Sequence[tirx.Stmt], span: ir.Span | None = None, *,
    otherwise: Sequence[tirx.Stmt] | None = None,
) -> tirx.IfThenElse:  # fmt: skip
    return tirx.IfThenElse(test, sequence(body), None if otherwise is None else sequence(otherwise), span)


def allocation(
    name: str, shape: Sequence[int], dtype: str, scope: str, span: ir.Span | None = None,
    annotations: Mapping[str, object] | None = None,
) -> tirx.AllocBuffer:  # fmt: skip
    """The statement that allocates a new buffer; the buffer is its `.buffer`."""
    buffer = tirx.decl_buffer(list(shape), dtype, name=name, scope=scope, span=span, layout=None)
    allocated = tirx.AllocBuffer(buffer, annotations or {})
    if span is not None:
        # The constructor takes no span of several places, as in a macro.
        set_span(allocated, span)
    return allocated


def with_value(
    statement: tirx.Bind | tirx.BufferStore, value: ir.Expr, indices: Sequence[ir.Expr] | None = None
) -> tirx.Bind | tirx.BufferStore:
    """The name or the store with another value, and a store with other indices; the same node if nothing changes."""
    if isinstance(statement, tirx.Bind):
        return statement if value.same_as(statement.value) else tirx.Bind(statement.var, value, statement.span)
    new_indices = [*statement.indices] if indices is None else [*indices]
    same = [value, *new_indices], [statement.value, *statement.indices]
    if all(new.same_as(old) for new, old in zip(*same, strict=True)):
        return statement
    return tirx.BufferStore(statement.buffer, value, new_indices, statement.span)


def with_function_body(
    function: tirx.PrimFunc, body: Sequence[tirx.Stmt], parameters: Sequence[ir.Var] | None = None
) -> tirx.PrimFunc:
    """Return the function with another body; attributes and span are kept."""
    if parameters is None:
        return with_other_body(function, sequence(body))
    return function_of([*parameters], sequence(body), function)


def shape_of(buffer: tirx.Buffer) -> tuple[int, ...]:
    """Return the shape of a buffer, in elements. Raises TypeError if an extent is not constant."""
    return tuple(map(number_of, elements(buffer.ty.shape)))


def dtype_of(buffer: tirx.Buffer) -> str:
    return str(buffer.ty.dtype.dtype)


def scope_of(buffer: tirx.Buffer) -> str:
    return str(buffer.ty.storage_scope)


def op_name(statement: tirx.Stmt) -> str:
    """The name of the operation that a statement runs, or "" where it runs none."""
    return _evaluated_name(statement) if type(statement) is tirx.Evaluate else ""


@functools.lru_cache(_MOST_REMEMBERED)
def _evaluated_name(statement: tirx.Evaluate) -> str:
    value = statement.value
    return operation_name(value) if type(value) is ir.Call else ""


def runs(statement: tirx.Stmt, *operations: LanguageOp) -> bool:
    """Tell whether a statement runs one of some operations of the kernel language."""
    name = op_name(statement)
    return bool(name) and name in [operation.name for operation in operations]


def overwrites(statement: tirx.Stmt) -> bool:
    """Tell whether an operation on blocks replaces the content of its target, instead of joining something to it."""
    flag = BLOCKS[op_name(statement)].overwrites
    return not flag or bool(attribute(statement, flag))


def bound_form(statement: tirx.Bind) -> Form | None:
    """The operation whose result a statement binds to a name; None where it binds something else."""
    value = statement.value
    return FORMS.get(operation_name(value)) if type(value) is ir.Call else None


def operation(statement: tirx.Stmt) -> ir.Call:
    """The call of the operation that a statement runs. Raises TypeError where it runs none."""
    value = statement.value if type(statement) is tirx.Evaluate or type(statement) is tirx.Bind else None
    if type(value) is not ir.Call:
        raise TypeError(f"{statement} runs no operation")
    return value


def arguments(statement: tirx.Stmt) -> list[ir.Expr]:
    """The arguments of the operation that a statement runs. Raises TypeError where it runs none."""
    return [*_arguments(statement)]


@functools.lru_cache(_MOST_REMEMBERED)
def _arguments(statement: tirx.Stmt) -> tuple[ir.Expr, ...]:
    return tuple(elements(operation(statement).args))


def regions(statement: tirx.Stmt) -> list[ir.TensorRegion]:
    """The regions of buffers among the arguments of an operation: source and target of a copy, the target of a fill,
    the two factors and the accumulator of a product."""
    return [argument for argument in arguments(statement) if type(argument) is ir.TensorRegion]


def operands(statement: tirx.Stmt) -> dict[str, ir.Expr]:
    """The arguments of an operation of the table by operand name; a dst operand gives its index."""
    return FORMS[operation_name(operation(statement))].named(arguments(statement))


def attributes(statement: tirx.Stmt) -> dict[str, object]:
    """The attributes of a call by name."""
    attrs = operation(statement).attrs
    return {} if attrs is None else {str(name): value for name, value in attrs.items()}


def with_arguments(statement: tirx.Stmt, values: Sequence[ir.Expr]) -> tirx.Evaluate:
    """The statement that runs the same operation, with the same attributes, on other arguments."""
    return tirx.Evaluate(call(op_name(statement), values, attributes(statement)), statement.span)


def attribute(statement: tirx.Stmt, name: str) -> int:
    """An integer attribute of a call; 0 where it is not set."""
    attrs = operation(statement).attrs
    return int(attrs[name]) if attrs is not None and name in attrs else 0


def text_attribute(statement: tirx.Stmt, name: str) -> str:
    """A textual attribute of a call; empty where it is not set."""
    attrs = operation(statement).attrs
    return str(attrs[name]) if attrs is not None and name in attrs else ""


def text_of(expression: ir.Expr) -> str:
    """Return the value of a string. Raises TypeError for other expressions."""
    if not isinstance(expression, ir.StringImm):
        raise TypeError(f"{expression} is not a string")
    return str(expression.value)


def expressions_of(statement: tirx.Stmt) -> list[ir.Expr]:
    """The expressions of a statement itself."""
    match statement:
        case tirx.Evaluate() if op_name(statement):
            values = arguments(statement)
            ends = [
                bound
                for operand in values
                if isinstance(operand, ir.TensorRegion)
                for axis in elements(operand.region)
                for bound in (axis.min, axis.extent)
            ]
            return [*(operand for operand in values if not isinstance(operand, ir.TensorRegion)), *ends]
        case tirx.BufferStore():
            return [statement.value, *statement.indices]
        case tirx.Bind():
            return [statement.value]
        case tirx.For():
            return [statement.min, statement.extent]
        case tirx.IfThenElse() | tirx.While():
            return [statement.condition]
        case _:
            return []


def constant(expression: ir.Expr) -> int | None:
    """Return the value of a constant expression, otherwise None."""
    return int(expression.value) if type(expression) is tirx.IntImm else None


def buffer_of(expression: ir.Expr) -> tirx.Buffer:
    """Return an operand as a buffer. Raises TypeError for other expressions."""
    if not is_buffer(expression):
        raise TypeError(f"{expression} is not a buffer")
    return expression


def number_of(expression: ir.Expr) -> int:
    """Return the value of a constant expression. Raises TypeError for other expressions."""
    value = constant(expression)
    if value is None:
        raise TypeError(f"{expression} is not constant")
    return value
