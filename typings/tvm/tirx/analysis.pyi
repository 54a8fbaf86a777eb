from collections.abc import Sequence

from tvm.ir import Var
from tvm.tirx import Expr, Stmt
from tvm_ffi import Array

def undefined_vars(node: Stmt | Expr, defs: Sequence[Var] | None = None) -> Array[Var]: ...
