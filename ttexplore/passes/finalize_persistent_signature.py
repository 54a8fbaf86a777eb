"""E1: the arguments of each kernel, in order."""

from __future__ import annotations

from typing import Any

from tvm import tirx

from ttexplore.errors import ResourceError
from ttexplore.ir.program import Program
from ttexplore.ir.rewrite import walk
from ttexplore.plan import KERNEL_ROLES, Argument, KernelRole, KernelSignature
from ttexplore.target import Target


def finalize_persistent_signature(program: Program, target: Target) -> Program:
    """Decide the order and kind of the arguments of each kernel.

        reader uses A, B, work_start, work_count
    ==> compile-time: accessor words of A, of B; common: A_address, B_address; per core: work_start, work_count
    """
    return program.with_plan(signature=tuple(_signature(program, role, target) for role in KERNEL_ROLES))


def core_values(function: Any) -> list[str]:
    """The core values that a kernel reads, in order."""
    names: list[str] = []
    for statement in walk(function.body):
        if (
            isinstance(statement, tirx.Bind)
            and getattr(getattr(statement.value, "op", None), "name", "") == "tt.core_value"
        ):
            names.append(str(statement.value.args[0].value))
    return names


def _signature(program: Program, role: KernelRole, target: Target) -> KernelSignature:
    tensors = [accessor for accessor in program.plan.accessors if any(b.kernel == role for b in accessor.bindings)]
    compile_time = tuple(Argument(f"{one.tensor}_accessor", "accessor", one.tensor) for one in tensors)
    common = tuple(Argument(f"{one.tensor}_address", "tensor_address", one.tensor) for one in tensors)
    runtime = tuple(Argument(name, "core_value", name) for name in core_values(program.functions[role]))
    if len(common) + len(runtime) > target.max_kernel_arguments:
        raise ResourceError(
            f"the {role} has {len(common) + len(runtime)} runtime arguments; {target.name} takes "
            f"{target.max_kernel_arguments}",
            hint="use fewer tensors",
        )
    return KernelSignature(role, compile_time, common, runtime)
