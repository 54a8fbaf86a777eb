"""The table of device operations. A new operation is one `Op` value in the module of its family."""

from __future__ import annotations

from ttexplore.ops.eltwise import ELTWISE_OPS
from ttexplore.ops.integers import INTEGER_OPS
from ttexplore.ops.matmul import MATMUL_OPS
from ttexplore.ops.move import MOVE_OPS
from ttexplore.ops.op import Op, Operand
from ttexplore.ops.protocol import PROTOCOL_OPS
from ttexplore.ops.sfpu import SFPU_OPS

__all__ = ["OPS", "Op", "Operand"]

OPS: dict[str, Op] = {
    op.ir_name: op for op in (*MATMUL_OPS, *MOVE_OPS, *ELTWISE_OPS, *SFPU_OPS, *INTEGER_OPS, *PROTOCOL_OPS)
}
