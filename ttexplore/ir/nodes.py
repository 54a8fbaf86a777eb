"""The kinds of TIR nodes, for what reads the IR without importing TVM: the emitter."""

from __future__ import annotations

from typing import Any

import tvm_ffi
from tvm import ir, tirx

AllocBuffer: Any = tirx.AllocBuffer
Bind: Any = tirx.Bind
Call: Any = ir.Call
Cast: Any = tirx.Cast
Evaluate: Any = tirx.Evaluate
FloatImm: Any = tirx.FloatImm
For: Any = tirx.For
IfThenElse: Any = tirx.IfThenElse


def uses(body: Any, variable: Any) -> bool:
    """Whether a statement or expression uses a variable."""
    found: list[Any] = []
    tvm_ffi.structural_walk(body, (ir.Var, lambda v: found.append(v) if v.same_as(variable) else None), order="pre")
    return bool(found)
