"""D2: bind accessors to kernel arguments."""

from __future__ import annotations

import dataclasses

from ttexplore.ir.program import TirProgram
from ttexplore.plan import KERNEL_ROLES, AccessorBinding
from ttexplore.target import Target


def configure_tensor_accessor(program: TirProgram, target: Target) -> TirProgram:
    """Bind each tensor's accessor to the arguments of the kernels that use it.

        reader uses A  ==>  A: common runtime argument A_address, compile-time words of its TensorAccessorArgs

    The address is the same on every core, so it is a common argument; the SDK supplies the words when the program runs.
    A tensor whose shards are circular buffers needs no accessor.
    """
    in_place = {buffer.shard_of for buffer in program.plan.buffers}
    users = {role: {str(p.name) for p in program.functions[role].params} - in_place for role in KERNEL_ROLES}
    accessors = tuple(
        dataclasses.replace(
            accessor,
            bindings=tuple(
                AccessorBinding(role, f"{accessor.tensor}_address")
                for role in KERNEL_ROLES
                if accessor.tensor in users[role]
            ),
        )
        for accessor in program.plan.accessors
    )
    return program.with_plan(accessors=accessors)
