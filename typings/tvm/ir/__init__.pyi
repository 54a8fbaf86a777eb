from collections.abc import Mapping, Sequence
from typing import Any

from tvm.tirx import Buffer
from tvm_ffi import Array, Map
from tvm_ffi import Object as Object

class SourceName(Object):
    name: str
    def __init__(self, name: str) -> None: ...

class Span(Object):
    source_name: SourceName
    line: int
    column: int
    end_line: int
    end_column: int
    def __init__(self, source_name: SourceName, line: int, end_line: int, column: int, end_column: int) -> None: ...

class SequentialSpan(Span):
    """Where a node stands for several places. At run time it is no Span, but a node's span may be one."""

    spans: Array[Span]
    def __init__(self, spans: Sequence[Span]) -> None: ...

class Node(Object): ...

class DictAttrs(Object):
    """Attributes of a call or a function: a mapping of strings to TVM's objects, numbers or strings."""

    def __getitem__(self, item: str) -> Any: ...
    def __contains__(self, item: str) -> bool: ...

class Type(Node):
    span: Span | None
    @staticmethod
    def missing() -> Type: ...

class PrimType(Type):
    dtype: str
    def __init__(self, dtype: str) -> None: ...

class ExprOperand: ...

class Expr(Node, ExprOperand):
    """An expression. `ty` is that of a scalar; :class:`tvm.tirx.Buffer` has its own."""

    span: Span | None
    @property
    def ty(self) -> PrimType: ...
    def __add__(self, other: Expr | float) -> Expr: ...
    def __radd__(self, other: Expr | float) -> Expr: ...
    def __sub__(self, other: Expr | float) -> Expr: ...
    def __rsub__(self, other: Expr | float) -> Expr: ...
    def __mul__(self, other: Expr | float) -> Expr: ...
    def __rmul__(self, other: Expr | float) -> Expr: ...
    def __floordiv__(self, other: Expr | int) -> Expr: ...
    def __mod__(self, other: Expr | int) -> Expr: ...
    def __neg__(self) -> Expr: ...
    def __lt__(self, other: Expr | float) -> Expr: ...
    def __le__(self, other: Expr | float) -> Expr: ...
    def __gt__(self, other: Expr | float) -> Expr: ...
    def __ge__(self, other: Expr | float) -> Expr: ...

class Var(Expr):
    name: str
    def __init__(self, name: str, ty: Type | str, span: Span | None = None) -> None: ...

class StringImm(Expr):
    value: str
    def __init__(self, value: str, span: Span | None = None) -> None: ...

class Op(Expr):
    name: str
    @staticmethod
    def get(op_name: str) -> Op: ...
    @staticmethod
    def list_op_names() -> Array[str]: ...

class Call(Expr):
    op: Op
    args: Array[Expr]
    attrs: DictAttrs | None
    def __init__(
        self,
        op: Op,
        args: Sequence[Expr],
        attrs: DictAttrs | Mapping[str, object] | None = None,
        ty_args: Sequence[Type] | None = None,
        ret_ty: Type | str | None = None,
        span: Span | None = None,
    ) -> None: ...

class Range(Node):
    min: Expr
    extent: Expr
    span: Span | None
    def __init__(self, begin: Expr, end: Expr | None = None, span: Span | None = None) -> None:
        """From `begin` to before `end`."""
    @staticmethod
    def from_min_extent(min_value: Expr | int, extent: Expr | int, span: Span | None = None) -> Range: ...

class TensorLoad(Expr):
    source: Buffer
    indices: Array[Expr]
    def __init__(
        self, source: Buffer, indices: Sequence[Expr], ty: Type | None = None, span: Span | None = None
    ) -> None: ...

class TensorRegion(Expr):
    source: Buffer
    region: Array[Range]
    def __init__(self, source: Buffer, region: Sequence[Range], ty: Type, span: Span | None = None) -> None: ...

class GlobalVar(Expr):
    name_hint: str

class IRModule(Node):
    functions: Map[Expr, BaseFunc]
    @staticmethod
    def from_expr(expr: Expr) -> IRModule: ...
    def __init__(self, functions: Mapping[str, BaseFunc] | None = None) -> None: ...
    def __getitem__(self, var: str | GlobalVar) -> BaseFunc: ...
    def get_global_vars(self) -> Array[GlobalVar]: ...

class BaseFunc(Expr):
    attrs: DictAttrs

def is_prim_expr(value: object) -> bool: ...
def register_op_attr(op_name: str, attr_key: str, value: object) -> None: ...
def save_json(node: Object) -> str: ...
def load_json(json_str: str) -> Object: ...
