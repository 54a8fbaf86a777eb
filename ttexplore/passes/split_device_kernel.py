"""D1: split one function into reader, compute kernel and writer."""

from __future__ import annotations

from collections.abc import Mapping

from tvm import tirx

from ttexplore.errors import Unsupported, VerifyError
from ttexplore.ir.adapter import elements, identity, span_of
from ttexplore.ir.build import buffer_of, op, op_name, operands, statements, with_body, with_function_body
from ttexplore.ir.program import Program
from ttexplore.ir.rewrite import Firings, Rule, walk
from ttexplore.ops import FORMS
from ttexplore.passes.kernel_statements import packed_by, pruned
from ttexplore.plan import KERNEL_ROLES, KernelRole, Plan
from ttexplore.target import Target

_MARKERS = ("tt.receive_block", "tt.send_block")

_RECEIVE = Rule("receive a block", "The compute kernel receives the block that the reader moves here.")
_SEND = Rule("send a block", "The compute kernel sends the block that it packed to the writer.")


def split_device_kernel(program: Program, target: Target) -> Program:
    """Split the kernel in three: the reader loads, the compute kernel computes, the writer stores. Of a tensor that the
    kernel loads and stores, the writer does both.

        tt.read_block(A, A_shared, ...)      reader:  tt.read_block(A, A_shared, ...)
        tt.add_tiles(A_shared, ...)      ==> compute: tt.receive_block(A_shared, 4); tt.add_tiles(A_shared, ...)
        tt.pack_tile(..., C_shared, t)                tt.pack_tile(..., C_shared, t); tt.send_block(C_shared, 4)
        tt.write_block(C_shared, C, ...)     writer:  tt.write_block(C_shared, C, ...)

    The three kernels run at the same time on each core. Each keeps the loops and the index computations that its
    statements need. They hand over whole blocks; D3 inserts the protocol for that.
    """
    body = statements(program.kernel.body)
    functions: dict[str, tirx.PrimFunc] = {}
    firings = Firings()
    for role in KERNEL_ROLES:
        used = set[int]()
        kept = pruned(_select(body, role, program.plan, firings), used)
        parameters = [parameter for parameter in elements(program.kernel.params) if identity(parameter) in used]
        functions[role] = with_function_body(program.kernel, kept, parameters)
    _check_complete(program.kernel, functions)
    return program.with_functions(functions, firings)


def _role_of(statement: tirx.Stmt, plan: Plan) -> KernelRole:
    """The kernel that runs an operation."""
    name = op_name(statement)
    if name not in FORMS:
        raise Unsupported("L001", f"no kernel can run {name or type(statement).__name__}", span=span_of(statement))
    role = FORMS[name].op.role
    return plan.buffer(buffer_of(operands(statement)["cb"]).name).producer if role == "reader" else role


def _select(body: list[tirx.Stmt], role: KernelRole, plan: Plan, firings: Firings) -> list[tirx.Stmt]:
    made: list[tirx.Stmt] = []
    for statement in body:
        if isinstance(statement, tirx.AllocBuffer | tirx.Bind):
            made.append(statement)
        elif isinstance(statement, tirx.For):
            inner = _select(statements(statement.body), role, plan, firings)
            if any(not isinstance(one, tirx.AllocBuffer | tirx.Bind) for one in inner):
                made.append(with_body(statement, inner))
            if role == "compute":
                made += _sent(statement, plan, firings)
        elif _role_of(statement, plan) == role:
            made.append(statement)
            if role == "compute":
                made += _sent(statement, plan, firings)
        elif role == "compute" and FORMS[op_name(statement)].op.role == "reader":
            cb = buffer_of(operands(statement)["cb"])
            if plan.buffer(cb.name).consumer == "compute":
                made += firings.made(_RECEIVE, statement, [_marker("receive_block", cb, plan)])
    return made


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
