"""The table of device operations. A new operation is one `Op` value in the module of its family."""

from __future__ import annotations

from ttexplore.ops.blocks import BLOCK_OPS
from ttexplore.ops.eltwise import ELTWISE_OPS
from ttexplore.ops.integers import INTEGER_OPS
from ttexplore.ops.matmul import MATMUL_OPS
from ttexplore.ops.move import MOVE_OPS
from ttexplore.ops.op import Form, Op, Operand
from ttexplore.ops.protocol import PROTOCOL_OPS
from ttexplore.ops.reduce import REDUCE_OPS
from ttexplore.ops.scalars import SCALAR_OPS
from ttexplore.ops.semaphores import SEMAPHORE_OPS
from ttexplore.ops.sfpu import SFPU_OPS

__all__ = ["FORMS", "OPS", "Form", "Op", "Operand"]

OPS: dict[str, Op] = {
    op.ir_name: op
    for family in (
        MATMUL_OPS,
        MOVE_OPS,
        ELTWISE_OPS,
        SFPU_OPS,
        INTEGER_OPS,
        REDUCE_OPS,
        PROTOCOL_OPS,
        BLOCK_OPS,
        SCALAR_OPS,
        SEMAPHORE_OPS,
    )
    for op in family
}
# Every operation of the IR by name: the table's operations, their inits and uninits.
FORMS: dict[str, Form] = {form.name: form for op in OPS.values() for form in op.forms}
