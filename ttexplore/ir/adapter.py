"""Everything private of TVM that the project leans on, in one place (apache-tvm 0.27.0.post1).

The node set and the Python surface of TVM change between releases; a move to another one starts here.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import threading
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

import tvm_ffi
from tvm import ir, tirx
from tvm.ir import _ffi_api as _ir_ffi
from tvm.ir import _overload_prim_expr as _operators
from tvm.tirx import _ffi_api as _tirx_ffi
from tvm_ffi import _ffi_api as _ffi
from tvm_ffi import core

from ttexplore.record import Span

if TYPE_CHECKING:
    from typing_extensions import TypeIs

Element = TypeVar("Element")
# What a place in a kernel has; a function is an expression.
Node = ir.Expr | tirx.Stmt
# A number or an expression, where TVM takes both.
Number = ir.Expr | int | float

_OPAQUE_EFFECT = 3  # TCallEffectKind of an operation that updates state: no pass may drop or reorder it.


def register_op(name: str) -> ir.Op:
    """The TVM operation `name`, registered on first use."""
    if name not in _REGISTERED:
        with _REGISTERING:
            if name not in ir.Op.list_op_names():
                _ir_ffi.RegisterOp(name, f"ttexplore operation {name}")
                ir.register_op_attr(name, "TCallEffectKind", _OPAQUE_EFFECT)
                ir.register_op_attr(name, "TScriptPrinterName", name)
            _REGISTERED[name] = ir.Op.get(name)
    return _REGISTERED[name]


# A cache of TVM's own global registry, not state of ours. TVM registers a name once, whichever thread asks.
_REGISTERED: dict[str, ir.Op] = {}
_REGISTERING = threading.Lock()


def call(
    op_name: str, args: Sequence[Number | str], attrs: Mapping[str, object] | None = None, dtype: str = "void"
) -> ir.Call:
    """A call of `op_name`. Python ints become int32, floats float32, strings StringImm.

    Raises TypeError for None, which TVM would not survive.
    """
    operands = [to_expr(arg) for arg in args]
    if attrs:
        return ir.Call(register_op(op_name), operands, attrs=dict(attrs), ret_ty=dtype)
    return _ir_ffi.Call(_type_of(dtype), register_op(op_name), operands, None, [], None)


@functools.cache
def _type_of(dtype: str) -> ir.PrimType:
    return ir.PrimType(dtype)


def to_expr(value: object) -> ir.Expr:
    """Convert `value` to a TVM expression. Raises TypeError for other values, above all None."""
    # Most by exact types, because TVM's own isinstance is slow where every pass comes by.
    if type(value) is ir.Var or type(value) is tirx.IntImm:
        return value
    if isinstance(value, bool):
        return tirx.const(int(value), "int32")
    if isinstance(value, int):
        return tirx.const(value, "int32")
    if isinstance(value, float):
        return tirx.const(value, "float32")
    if isinstance(value, str):
        return ir.StringImm(value)
    if isinstance(value, ir.Expr):
        return value
    raise TypeError(f"{value!r} is no expression")


# The key of a node while it lives. TVM creates a new Python object on every access, and comparing those objects as
# dictionary keys would build expressions.
identity: Callable[[tvm_ffi.Object], int] = tvm_ffi.Object.__chandle__


# TVM's own lists and constructors, without the layers of Python around them, which take longer than they do.


def elements(array: tvm_ffi.Array[Element]) -> list[Element]:
    """Return the elements of a TVM array."""
    return [*map(_ffi.ArrayGetItem, itertools.repeat(array), range(_ffi.ArraySize(array)))]


def sequence_of(statements: list[tirx.Stmt]) -> tirx.SeqStmt:
    """Return the sequence of several statements."""
    return _tirx_ffi.SeqStmt(statements, None)


def for_of(loop_var: ir.Var, start: ir.Expr, extent: ir.Expr, like: tirx.For, body: tirx.Stmt) -> tirx.For:
    """Return a loop that takes its other fields from `like`."""
    return _tirx_ffi.For(
        loop_var, start, extent, like.kind, body, like.thread_binding, like.annotations, like.step, like.span
    )


def function_of(parameters: list[ir.Var], body: tirx.Stmt, like: tirx.PrimFunc) -> tirx.PrimFunc:
    """Return a function with the attributes and span of `like`."""
    return _tirx_ffi.PrimFunc(parameters, body, ir.Type.missing(), like.attrs, like.span)


def operation_name(called: ir.Call) -> str:
    """The name of the operation that a call is of."""
    op = called.op
    number = identity(op)
    name = _NAMES.get(number)
    if name is None:
        name = str(op.name)
        if type(op) is ir.Op:
            _NAMES[number] = name
    return name


def choice_of(expression: ir.Expr) -> tuple[ir.Expr, ir.Expr, ir.Expr] | None:
    """The condition of a choice, and what it is where that holds and where not; None for another expression."""
    if type(expression) is tirx.Select:
        return expression.condition, expression.true_value, expression.false_value
    if type(expression) is ir.Call and operation_name(expression).endswith(".if_then_else"):
        condition, then, otherwise = elements(expression.args)
        return condition, then, otherwise
    return None


# As _REGISTERED: TVM keeps an operation for ever.
_NAMES: dict[int, str] = {}


# What the operators of expressions do while a kernel is traced: it gets an operator's name, TVM's own meaning of it and
# the operands. None leaves TVM's, which fold and simplify.
OPERATORS: ContextVar[Callable[..., object] | None] = ContextVar("operators of expressions", default=None)

_ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "lshift", "rshift", "and", "or", "xor")
OPERATOR_NAMES = (
    *(f"__{reflected}{name}__" for name in _ARITHMETIC for reflected in ("", "r")), "__neg__", "__invert__",
    "__lt__", "__le__", "__gt__", "__ge__",
)  # fmt: skip


def _chosen(name: str, usual: Callable[..., object]) -> Callable[..., object]:
    @functools.wraps(usual)
    def operator(*operands: object) -> object:
        override = OPERATORS.get()
        return usual(*operands) if override is None else override(name, usual, *operands)

    return operator


for _name in OPERATOR_NAMES:
    setattr(_operators, _name, _chosen(_name, getattr(_operators, _name)))
# TVM's classes are abstract ones, but none has other classes registered: what is one derives from it.
type(tirx.Stmt).__instancecheck__ = type.__instancecheck__  # pyright: ignore
# NumPy's numbers leave an operator with an expression to the expression.
ir.ExprOperand.__array_ufunc__ = None  # pyright: ignore


def is_buffer(value: object) -> TypeIs[tirx.Buffer]:
    """Whether `value` is a buffer variable."""
    return isinstance(value, ir.Var) and tirx.is_buffer_var(value)


def spans_of(node: Node) -> tuple[Span, ...]:
    """Return the source spans of a node: several if it represents several statements, none if it has no span."""
    span = node.span
    if span is None:
        return ()
    spans = list(span.spans) if type(span) is ir.SequentialSpan else [span]
    return tuple(
        Span(
            str(source_span.source_name.name),
            int(source_span.line),
            int(source_span.column),
            int(source_span.end_line),
            int(source_span.end_column),
        )
        for source_span in spans
    )


def span_of(node: Node) -> Span | None:
    """The (first) source span of a node."""
    spans = spans_of(node)
    return spans[0] if spans else None


def line_of(node: Node) -> int | None:
    """The line of the kernel that a node comes from, if that is known."""
    span = span_of(node)
    return None if span is None else span.line


@functools.lru_cache(maxsize=8192)
def to_tvm_span(span: Span) -> ir.Span:
    """The TVM span of one source range."""
    return ir.Span(ir.SourceName(span.file), span.line, span.end_line, span.column, span.end_column)


def to_tvm_spans(spans: Iterable[Span]) -> ir.SequentialSpan:
    """The TVM span of several source ranges."""
    return ir.SequentialSpan([to_tvm_span(span) for span in spans])


@functools.cache
def _setter(kind: type[Node], name: str) -> Callable[[Node, object], None]:
    info = core._type_cls_to_type_info(kind)
    while info is not None:
        for field in info.fields or ():
            if field.name == name:
                return field.setter
        info = info.parent_type_info
    raise TypeError(f"{kind.__name__} has no {name}")


def set_span(node: Node, span: ir.Span) -> None:
    """Set the span of a new node that is not shared yet; the field is read-only in Python."""
    _setter(type(node), "span")(node, span)


# TVM's constructor goes through the whole body to find the type of the function, which its body does not change.
_copied: Callable[[tirx.PrimFunc], tirx.PrimFunc] = core._lookup_type_attr(
    core._object_type_key_to_index("tirx.PrimFunc") or 0, "__ffi_shallow_copy__"
)


def with_other_body(function: tirx.PrimFunc, body: tirx.Stmt) -> tirx.PrimFunc:
    """Return the function with another body; all else is kept."""
    copied = _copied(function)
    _setter(tirx.PrimFunc, "body")(copied, body)
    return copied


def variables_of(node: Node) -> list[ir.Var]:
    """Return the variables used in a statement or expression, buffers included, in order and with repetitions."""
    variables: list[ir.Var] = []
    tvm_ffi.structural_walk(node, (ir.Var, variables.append), order="pre")  # pyright: ignore[reportUnknownMemberType]
    return variables


def with_variables(expression: ir.Expr, value: Callable[[ir.Var], ir.Expr]) -> ir.Expr:
    """Substitute `value` of each variable in an expression."""
    return tvm_ffi.structural_map(  # pyright: ignore[reportUnknownMemberType]
        expression, (ir.Var, value), order="post"
    )


def set_members(kind: type, **members: object) -> None:
    """Give a class of TVM's these members, for the whole process."""
    for name, member in members.items():
        setattr(kind, name, member)


def without_casts(expression: ir.Expr) -> ir.Expr:
    """The expression with the operand of each cast of a wide integer in its place; other nodes keep their dtypes."""
    return tvm_ffi.structural_map(  # pyright: ignore[reportUnknownMemberType]
        expression, (tirx.Cast, _operand), order="post"
    )


def _operand(cast: tirx.Cast) -> ir.Expr:
    # Of a bool or a narrow number, TVM would compute what is around it as such a number.
    return cast.value if str(cast.value.ty.dtype) in ("int32", "int64") else cast


@contextlib.contextmanager
def older_names() -> Generator[None]:
    """Provide names that TVM had before 0.27, which annotations in TileLang's files still use."""
    missing = {name: kind for name, kind in {"PrimExpr": ir.Expr}.items() if not hasattr(tirx, name)}
    for name, kind in missing.items():
        setattr(tirx, name, kind)
    try:
        yield
    finally:
        for name in missing:
            delattr(tirx, name)
