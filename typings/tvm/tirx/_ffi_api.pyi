from collections.abc import Mapping, Sequence

from tvm.ir import DictAttrs, Expr, Span, Type
from tvm.tirx import For as _For
from tvm.tirx import IterVar, Stmt, Var
from tvm.tirx import PrimFunc as _PrimFunc
from tvm.tirx import SeqStmt as _SeqStmt

def SeqStmt(statements: Sequence[Stmt], span: Span | None) -> _SeqStmt: ...
def For(
    loop_var: Var, start: Expr, extent: Expr, kind: int, body: Stmt, thread_binding: IterVar | None,
    annotations: Mapping[str, object], step: Expr | None, span: Span | None,
) -> _For: ...  # fmt: skip
def PrimFunc(parameters: Sequence[Var], body: Stmt, result: Type, attrs: DictAttrs, span: Span | None) -> _PrimFunc: ...
