from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, Literal, overload

from tvm.ir import BaseFunc, DictAttrs, Expr, Object, PrimType, Range, Span, TensorLoad, TensorRegion, Type
from tvm.ir import Var as Var
from tvm.tirx import analysis as analysis
from tvm.tirx import expr as expr
from tvm_ffi import Array, Map

# Buffers: variables whose type has a shape.

class BufferType(Type):
    dtype: PrimType
    storage_scope: str
    shape: Array[Expr]

class Buffer(Var):
    """A variable with a BufferType. TVM has no class of its own for it: ask :func:`ttexplore.ir.adapter.is_buffer`."""

    @property
    def ty(self) -> BufferType: ...  # pyright: ignore

def is_buffer_var(value: object) -> bool: ...
def decl_buffer(
    shape: Sequence[Expr | int],
    dtype: str | None = None,
    name: str = "buffer",
    *,
    scope: str = "",
    span: Span | None = None,
) -> Buffer: ...
def BufferLoad(buffer: Buffer, indices: Sequence[Expr], span: Span | None = None) -> TensorLoad: ...
def BufferRegion(buffer: Buffer, region: Sequence[Range]) -> TensorRegion: ...

# Expressions.

class IntImm(Expr):
    value: int
    def __init__(self, dtype: str | PrimType, value: int, span: Span | None = None) -> None: ...

class FloatImm(Expr):
    value: float
    def __init__(self, dtype: str | PrimType, value: float, span: Span | None = None) -> None: ...

class Cast(Expr):
    value: Expr
    def __init__(self, dtype: str | PrimType, value: Expr, span: Span | None = None) -> None: ...

class BinaryOpExpr(Expr):
    """At run time in tvm.tirx.expr alone."""

    a: Expr
    b: Expr
    def __init__(self, a: Expr, b: Expr, span: Span | None = None) -> None: ...

class Add(BinaryOpExpr): ...
class Sub(BinaryOpExpr): ...
class Mul(BinaryOpExpr): ...
class Div(BinaryOpExpr): ...
class Mod(BinaryOpExpr): ...
class FloorDiv(BinaryOpExpr): ...
class FloorMod(BinaryOpExpr): ...
class Min(BinaryOpExpr): ...
class Max(BinaryOpExpr): ...
class LShift(BinaryOpExpr): ...
class RShift(BinaryOpExpr): ...
class BitwiseAnd(BinaryOpExpr): ...
class BitwiseOr(BinaryOpExpr): ...
class BitwiseXor(BinaryOpExpr): ...
class EQ(BinaryOpExpr): ...
class NE(BinaryOpExpr): ...
class LT(BinaryOpExpr): ...
class LE(BinaryOpExpr): ...
class GT(BinaryOpExpr): ...
class GE(BinaryOpExpr): ...
class And(BinaryOpExpr): ...
class Or(BinaryOpExpr): ...

class Not(Expr):
    a: Expr
    def __init__(self, a: Expr, span: Span | None = None) -> None: ...

class BitwiseNot(Expr):
    a: Expr
    def __init__(self, a: Expr, span: Span | None = None) -> None: ...

class Select(Expr):
    condition: Expr
    true_value: Expr
    false_value: Expr
    def __init__(self, condition: Expr, true_value: Expr, false_value: Expr, span: Span | None = None) -> None: ...

class IterVar(Object):
    var: Var
    dom: Range | None
    iter_type: int
    thread_tag: str
    span: Span | None
    def __init__(
        self, dom: Range | None, var: Var | str, iter_type: int, thread_tag: str = "", span: Span | None = None
    ) -> None: ...

# Statements.

class Stmt(Object):
    span: Span | None

class SeqStmt(Stmt):
    seq: Array[Stmt]
    def __init__(self, seq: Sequence[Stmt], span: Span | None = None) -> None: ...

class Evaluate(Stmt):
    value: Expr
    def __init__(self, value: Expr, span: Span | None = None) -> None: ...

class Bind(Stmt):
    var: Var
    value: Expr
    def __init__(self, var: Var, value: Expr, span: Span | None = None) -> None: ...

class BufferStore(Stmt):
    buffer: Buffer
    value: Expr
    indices: Array[Expr]
    def __init__(self, buffer: Buffer, value: Expr, indices: Sequence[Expr], span: Span | None = None) -> None: ...

class AllocBuffer(Stmt):
    buffer: Buffer
    annotations: Map[str, Any]
    def __init__(
        self, buffer: Buffer, annotations: Mapping[str, object] | None = None, span: Span | None = None
    ) -> None: ...

class ForKind(IntEnum):
    SERIAL = 0
    PARALLEL = 1
    VECTORIZED = 2
    UNROLLED = 3
    THREAD_BINDING = 4

class For(Stmt):
    loop_var: Var
    min: Expr
    extent: Expr
    kind: ForKind
    body: Stmt
    thread_binding: IterVar | None
    annotations: Map[str, Any]
    step: Expr | None
    def __init__(
        self,
        loop_var: Var,
        min: Expr,
        extent: Expr,
        kind: ForKind,
        body: Stmt,
        thread_binding: IterVar | None = None,
        annotations: Mapping[str, object] | None = None,
        step: Expr | None = None,
        span: Span | None = None,
    ) -> None: ...

class While(Stmt):
    condition: Expr
    body: Stmt
    def __init__(self, condition: Expr, body: Stmt, span: Span | None = None) -> None: ...

class IfThenElse(Stmt):
    condition: Expr
    then_case: Stmt
    else_case: Stmt | None
    def __init__(self, condition: Expr, then_case: Stmt, else_case: Stmt | None, span: Span | None = None) -> None: ...

class Break(Stmt):
    def __init__(self, span: Span | None = None) -> None: ...

class Continue(Stmt):
    def __init__(self, span: Span | None = None) -> None: ...

class PrimFunc(BaseFunc):
    params: Array[Var]
    body: Stmt
    def __init__(
        self,
        params: Sequence[Var],
        body: Stmt,
        ret_type: Type | None = None,
        attrs: DictAttrs | None = None,
        span: Span | None = None,
    ) -> None: ...
    def with_attr(self, attr_key_or_dict: str, attr_value: object) -> PrimFunc: ...

@overload
def const(value: int, dtype: Literal["int32"]) -> IntImm: ...
@overload
def const(value: float, dtype: str | PrimType | None = None, span: Span | None = None) -> IntImm | FloatImm: ...
def floordiv(a: Expr, b: Expr | int, span: Span | None = None) -> Expr: ...
def floormod(a: Expr, b: Expr | int, span: Span | None = None) -> Expr: ...
def max(a: Expr, b: Expr, span: Span | None = None) -> Expr: ...
def min(a: Expr, b: Expr, span: Span | None = None) -> Expr: ...
def if_then_else(cond: Expr, t: Expr, f: Expr, span: Span | None = None) -> Expr: ...
def min_value(dtype: str, span: Span | None = None) -> Expr: ...
def max_value(dtype: str, span: Span | None = None) -> Expr: ...
