"""E1: decide the arguments of each kernel and their order."""

from __future__ import annotations

from tvm import ir, tirx

from ttexplore.errors import ResourceError
from ttexplore.ir.build import text_of
from ttexplore.ir.program import TirProgram
from ttexplore.ir.rewrite import walk
from ttexplore.ops import op
from ttexplore.plan import KERNEL_ROLES, Argument, KernelRole, KernelSignature, Plan
from ttexplore.target import Target


def finalize_persistent_signature(program: TirProgram, target: Target) -> TirProgram:
    """Decide the order and kind of the arguments of each kernel.

        reader uses A, B, work_start, work_count
    ==> compile-time: accessor words of A, of B; common: A_address, B_address; per core: work_start, work_count

    The host passes exactly these arguments. A list of work items, whose length differs from core to core, comes last.
    """
    return program.with_plan(signature=tuple(_signature(program, role, target) for role in KERNEL_ROLES))


def core_arguments(function: tirx.PrimFunc) -> list[Argument]:
    """The per-core arguments that a kernel reads, in order; a list comes last."""
    values: list[Argument] = []
    lists: list[Argument] = []
    for statement in walk(function.body):
        value = statement.value if type(statement) is tirx.Bind else None
        if type(value) is not ir.Call:
            continue
        match value.op.name:
            case op.CORE_VALUE:
                name = text_of(value.args[0])
                values.append(Argument(name, "core_value", name))
            case op.CORE_ITEM:
                name = text_of(value.args[0])
                lists.append(Argument(name, "core_list", name))
            case _:
                pass
    return [*values, *lists]


def _placed(argument: Argument, plan: Plan) -> Argument:
    """The argument for a core value: for the place of a core its coordinate on the NoC, which the host finds out."""
    for prefix in (prefix for sharing in (*plan.shared, *plan.partials) for prefix in sharing.places):
        if argument.of == f"{prefix}_x":
            return Argument(argument.name, "noc_x", prefix)
        if argument.of == f"{prefix}_y":
            return Argument(argument.name, "noc_y", prefix)
    return argument


def _signature(program: TirProgram, role: KernelRole, target: Target) -> KernelSignature:
    tensors = [accessor for accessor in program.plan.accessors if any(b.kernel == role for b in accessor.bindings)]
    compile_time = tuple(Argument(f"{accessor.tensor}_accessor", "accessor", accessor.tensor) for accessor in tensors)
    common = tuple(Argument(f"{accessor.tensor}_address", "tensor_address", accessor.tensor) for accessor in tensors)
    runtime = tuple(_placed(argument, program.plan) for argument in core_arguments(program.functions[role]))
    partition = program.plan.partition
    listed = max((len(core.listed) for core in partition.cores), default=0) if partition is not None else 0
    words = len(common) + sum(listed if argument.source == "core_list" else 1 for argument in runtime)
    if words > target.max_kernel_arguments:
        raise ResourceError(
            "R004",
            f"the {role} has {words} words of runtime arguments; {target.name} takes {target.max_kernel_arguments}",
            hint=f"use more cores, or a policy whose items count up: {listed} of these words list work items"
            if listed
            else "use fewer tensors",
        )
    return KernelSignature(role, compile_time, common, runtime)
