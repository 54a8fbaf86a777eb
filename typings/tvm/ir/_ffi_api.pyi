from collections.abc import Sequence

from tvm.ir import Call as _Call
from tvm.ir import DictAttrs, Expr, Op, Span, Type

def RegisterOp(name: str, description: str) -> None: ...
def Call(
    result: Type, op: Op, args: Sequence[Expr], attrs: DictAttrs | None, type_args: Sequence[Type], span: Span | None
) -> _Call: ...
