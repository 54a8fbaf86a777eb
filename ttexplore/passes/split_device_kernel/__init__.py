"""D1: split one function into reader, compute kernel and writer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

from tvm import ir, tirx

from ttexplore.analysis.core_resources import check_l1, number_buffers
from ttexplore.analysis.kernel_statements import packed_by, pruned
from ttexplore.analysis.tile_graph import tile_graph_with
from ttexplore.errors import Unsupported, VerifyError
from ttexplore.ir.adapter import call, elements, identity, span_of
from ttexplore.ir.build import (
    allocation,
    bound_form,
    buffer_of,
    op,
    op_name,
    operands,
    sequence,
    statements,
    with_body,
    with_function_body,
    with_value,
)
from ttexplore.ir.names import unused_name
from ttexplore.ir.program import TirProgram
from ttexplore.ir.rewrite import Firings, Placement, Rule, walk
from ttexplore.ops import FORMS
from ttexplore.ops.blocks import RECEIVE_BLOCK, SEND_BLOCK
from ttexplore.ops.op import CB_SCOPE
from ttexplore.ops.scalars import CHECK_READ, CHECK_WRITE, READ_NUMBERS, RECEIVE_NUMBER, SEND_NUMBER
from ttexplore.passes.split_device_kernel.loaded_inputs import with_loaders
from ttexplore.passes.step import Pass
from ttexplore.passes.verify.normal_form import OF_ONE_KERNEL
from ttexplore.plan import KERNEL_ROLES, CircularBuffer, KernelRole, Loader, Plan
from ttexplore.target import Target

_MARKERS = (RECEIVE_BLOCK.ir_name, SEND_BLOCK.ir_name, SEND_NUMBER.ir_name, CHECK_READ.ir_name, CHECK_WRITE.ir_name)

_KERNELS = Placement(
    "one of three kernels", "A kernel keeps its own operations, and the loops, names and buffers that they need."
)
_NUMBERS = Rule("buffer of numbers", "Numbers that kernels share go from the reader through a circular buffer.")
_HAND_ON = Rule("hand on a number", "The reader hands a number of a tensor on to the kernels that need it.")
_CHECK = Rule("check of a place", "The kernel that reads or stores at a place checks it.")
_RECEIVE = Rule("receive a block", "The compute kernel receives the block that the reader moves here.")
_SEND = Rule("send a block", "The compute kernel sends the block that it packed to the writer.")


def split_device_kernel(program: TirProgram, target: Target, *, loaded_by: str | Mapping[str, Loader]) -> TirProgram:
    """Split the kernel in three: the reader loads, the compute kernel computes, the writer stores.

        tt.read_block(A, A_shared, ...)      reader:  tt.read_block(A, A_shared, ...)
        tt.add_tiles(A_shared, ...)      ==> compute: tt.receive_block(A_shared, 4); tt.add_tiles(A_shared, ...)
        tt.pack_tile(..., C_shared, t)                tt.pack_tile(..., C_shared, t); tt.send_block(C_shared, 4)
        tt.write_block(C_shared, C, ...)     writer:  tt.write_block(C_shared, C, ...)

    Of a tensor that the kernel loads and stores, the writer does both. With `loaded_by`, it also loads inputs, over its
    own NoC while the reader loads the others. It stores the results of a work item before it loads what the next one
    needs.
    """
    return split_into_kernels(choose_loaders(program, target, loaded_by=loaded_by), target)


def choose_loaders(program: TirProgram, target: Target, *, loaded_by: str | Mapping[str, Loader]) -> TirProgram:
    """Choose the inputs that the writer loads, over its own NoC while the reader loads the others.

        A -> reader -> A_shared          choices[loaded_by]: B by the writer (all by the reader 48 us, ... 41.9 us)
        B -> reader -> B_shared     ==>  A -> reader -> A_shared
                                         B -> writer -> B_shared

    With ``auto``, those with which the closed form of the clock predicts the shortest time, if that is up to 5% shorter
    than without; with ``both``, those that make the busier of the two kernels move the fewest bytes; or as asked for:
    ``{"B": "writer"}``.
    """
    return with_loaders(program, target, loaded_by)


def split_into_kernels(program: TirProgram, target: Target) -> TirProgram:
    """Split the kernel in three, by what each statement does.

    The three kernels run at the same time on each core. Each keeps the loops and the index computations that its
    statements need. They hand over whole blocks; D3 inserts the protocol for that.
    """
    body = statements(program.kernel.body)
    functions: dict[str, tirx.PrimFunc] = {}
    firings = Firings()
    numbers = _Numbers(program, firings)
    # The reader hands on the numbers that the other kernels turn out to need.
    for role in KERNEL_ROLES[::-1] if numbers.read else KERNEL_ROLES:
        used = set[int]()
        pruned_body = pruned(_select(body, role, program.plan, firings, numbers), used)
        numbers.needed(role, pruned_body)
        parameters = [parameter for parameter in elements(program.kernel.params) if identity(parameter) in used]
        functions[role] = with_function_body(program.kernel, pruned_body, parameters)
    firings.made(_KERNELS, None, walk(program.kernel.body))
    functions = {role: functions[role] for role in KERNEL_ROLES}
    _check_complete(program.kernel, functions)
    split = program.with_functions(functions, firings)
    return numbers.planned(split, target)


class _Numbers:
    """The elements of tensors that decide something: the reader reads them, and other kernels receive them through a
    circular buffer each. `read` are the names of the numbers, `given` those that each kernel receives."""

    def __init__(self, program: TirProgram, firings: Firings) -> None:
        self.firings = firings
        self.read = [statement.var for statement in walk(program.kernel.body) if _reads(statement)]
        used_names = {named.name for named in (*program.plan.buffers, *program.plan.layouts)}
        self.buffers: dict[KernelRole, tirx.AllocBuffer] = {
            role: allocation(unused_name(f"numbers_for_{role}", used_names), (1, 32, 32), "int32", CB_SCOPE)
            for role in _RECEIVERS
        }
        self.given: dict[KernelRole, set[ir.Var]] = {role: set[ir.Var]() for role in _RECEIVERS}

    def received(self, statement: tirx.Bind, role: KernelRole) -> tirx.Stmt:
        value = call(RECEIVE_NUMBER.ir_name, [self.buffers[role].buffer], dtype=str(statement.var.ty.dtype))
        return with_value(statement, value)

    def sent(self, statement: tirx.Bind) -> list[tirx.Stmt]:
        return [
            op("send_number", self.buffers[role].buffer, statement.var)
            for role in _RECEIVERS if statement.var in self.given[role]
        ]  # fmt: skip

    def needed(self, role: KernelRole, body: list[tirx.Stmt]) -> None:
        """Note the numbers that a kernel receives."""
        if role != "reader":
            self.given[role] |= {
                statement.var
                for statement in walk(sequence(body))
                if isinstance(statement, tirx.Bind) and _receives(statement)
            }

    def allocations(self, role: KernelRole) -> list[tirx.Stmt]:
        return [] if not self.read else [
            self.firings.made(_NUMBERS, None, [allocated])[0] for to,
            allocated in self.buffers.items() if role in ("reader", to)
        ]  # fmt: skip

    def planned(self, program: TirProgram, target: Target) -> TirProgram:
        """The program whose plan has the circular buffers of the numbers."""
        new = tuple(
            CircularBuffer(
                str(allocated.buffer.name), 1, _NUMBER_STAGES, "Int32", "reader", role,
                reason="numbers of tensors, which decide branches, lengths and places in all kernels alike",
            )
            for role, allocated in self.buffers.items() if self.given[role]
        )  # fmt: skip
        if not new:
            return program
        buffers = number_buffers((*program.plan.buffers, *new), target)
        check_l1(buffers, target, program.plan.layouts)
        return program.with_plan(buffers=buffers, graph=tile_graph_with(program.plan.graph, buffers))


_RECEIVERS: tuple[KernelRole, ...] = ("compute", "writer")
# So that the reader can be a decision ahead.
_NUMBER_STAGES = 2


def _reads(statement: tirx.Stmt) -> TypeGuard[tirx.Bind]:
    form = bound_form(statement) if type(statement) is tirx.Bind else None
    return form is not None and form.op in READ_NUMBERS


def _receives(statement: tirx.Bind) -> bool:
    form = bound_form(statement)
    return form is not None and form.op is RECEIVE_NUMBER


def _role_of(statement: tirx.Stmt, plan: Plan) -> KernelRole:
    """The kernel that runs an operation."""
    name = op_name(statement)
    if name not in FORMS:
        raise Unsupported("L001", f"no kernel can run {name or type(statement).__name__}", span=span_of(statement))
    role = FORMS[name].op.role
    return plan.buffer(buffer_of(operands(statement)["cb"]).name).producer if role == "reader" else role


def _select(
    body: list[tirx.Stmt], role: KernelRole, plan: Plan, firings: Firings, numbers: _Numbers, *, outermost: bool = True
) -> list[tirx.Stmt]:  # fmt: skip
    selected = numbers.allocations(role) if outermost else []
    for statement in body:
        if _reads(statement):
            if role == "reader":
                selected += [statement, *firings.made(_HAND_ON, statement, numbers.sent(statement))]
            else:
                selected += firings.made(_HAND_ON, statement, [numbers.received(statement, role)])
        elif type(statement) is tirx.Bind and (form := bound_form(statement)) is not None:
            if form.op.role == role:
                selected += firings.made(_CHECK, statement, [tirx.Evaluate(statement.value, statement.span)])
        elif type(statement) is tirx.AllocBuffer or type(statement) is tirx.Bind:
            selected.append(statement)
        elif type(statement) is tirx.For:
            inner = _select(statements(statement.body), role, plan, firings, numbers, outermost=False)
            if any(type(child) not in (tirx.AllocBuffer, tirx.Bind) for child in inner):
                selected.append(with_body(statement, inner))
            if role == "compute":
                selected += _sent(statement, plan, firings)
        elif _role_of(statement, plan) == role:
            selected.append(statement)
            if role == "compute":
                selected += _sent(statement, plan, firings)
        elif role == "compute":
            cb = _filled_by_mover(statement)
            if cb is not None and plan.buffer(cb.name).consumer == "compute":
                selected += firings.made(_RECEIVE, statement, [_marker("receive_block", cb, plan)])
    return selected


def _filled_by_mover(statement: tirx.Stmt) -> tirx.Buffer | None:
    """The circular buffer that reader or writer fill with a block."""
    form = FORMS[op_name(statement)]
    fills = any(operand.name == "cb" and operand.access == "write" for operand in form.operands)
    return buffer_of(operands(statement)["cb"]) if form.op.role != "compute" and fills else None


def _sent(statement: tirx.Stmt, plan: Plan, firings: Firings) -> list[tirx.Stmt]:
    """The marker after a statement that packs a block for the writer."""
    cb = packed_by(statement)
    if cb is not None and plan.buffer(cb.name).consumer == "writer":
        return firings.made(_SEND, statement, [_marker("send_block", cb, plan)])
    return []


def _marker(name: str, cb: tirx.Buffer, plan: Plan) -> tirx.Stmt:
    return op(name, cb, plan.buffer(cb.name).block_pages)


def _check_complete(kernel: tirx.PrimFunc, functions: Mapping[str, tirx.PrimFunc]) -> None:
    """Every operation is in exactly one kernel. Raises VerifyError."""

    def operations(function: tirx.PrimFunc) -> list[str]:
        return [op_name(s) for s in walk(function.body) if op_name(s) and op_name(s) not in _MARKERS]

    before = sorted(operations(kernel))
    after = sorted(name for function in functions.values() for name in operations(function))
    if before != after:
        raise VerifyError(
            "V051",
            "the three kernels do not have the operations of the kernel: "
            f"{len(before)} before the split, {len(after)} after",
            hint="report the kernel: this is a bug in the compiler",
        )


PARTS = (
    Pass("D1.1", "kernels", choose_loaders, reads=("match", "math_fidelity")),
    Pass("D1.2", "kernels", split_into_kernels, ends=OF_ONE_KERNEL),
)
