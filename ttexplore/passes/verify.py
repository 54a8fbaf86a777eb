"""What must hold after each pass, whatever it did."""

from __future__ import annotations

from typing import Any

from tvm import tirx

from ttexplore.errors import VerifyError
from ttexplore.ir.adapter import is_buffer, span_of
from ttexplore.ir.build import arguments, constant, op_name, scope_of, statements
from ttexplore.ir.program import Program
from ttexplore.ir.rewrite import walk
from ttexplore.ops import OPS
from ttexplore.passes.layout_aware_work_partition import items_of
from ttexplore.passes.propagate_tt_layout import check_l1
from ttexplore.target import Target


def verify(program: Program, target: Target) -> None:
    """Check the laws that can be checked without running. Raises VerifyError, or ResourceError for L1."""
    _spans(program)
    if program.plan.buffers:
        check_l1(program.plan.buffers, target)
    _coverage(program)
    if program.is_split:
        for role, function in program.functions.items():
            _operands(role, function)
            _producers(role, function, program)
        if _has(program, "tt.cb_push_back"):
            _balance(program)
        if _has(program, "tt.tile_regs_acquire"):
            _dst(program)


def _has(program: Program, name: str) -> bool:
    return any(op_name(s) == name for function in program.functions.values() for s in walk(function.body))


def _spans(program: Program) -> None:
    """Law 4: each statement knows a kernel line."""
    for role, function in program.functions.items():
        for statement in walk(function.body):
            if statement.span is None and not (
                isinstance(statement, tirx.AllocBuffer) and scope_of(statement.buffer).startswith("tt.")
            ):
                raise VerifyError(f"a statement of the {role} has no kernel line: {statement}")


def _coverage(program: Program) -> None:
    """Each work item is done exactly once."""
    partition = program.plan.partition
    if partition is None:
        return
    done = sorted(item for core in partition.cores for item in items_of(partition, core))
    if done != list(range(partition.work_items)):
        raise VerifyError(
            f"the cores do {len(done)} work items ({len(set(done))} different ones) of {partition.work_items}"
        )


def _operands(role: str, function: Any) -> None:
    """Operations get operands of the kind that they want."""
    for statement in walk(function.body):
        known = OPS.get(op_name(statement))
        if known is None:
            continue
        values = iter(arguments(statement))
        for operand in known.operands:
            value = next(values)
            scope = {"cb": "tt.cb", "dst": "tt.dst", "tensor": "global"}.get(operand.kind)
            if scope is not None and not (is_buffer(value) and scope_of(value) == scope):
                raise VerifyError(
                    f"{role}: {known.name} wants a {operand.kind} as {operand.name}, not {value}", span=span_of(statement)
                )
            if operand.kind == "dst":
                next(values)


def _producers(role: str, function: Any, program: Program) -> None:
    """A circular buffer is pushed by one kernel and popped by one, those that the plan names."""
    for statement in walk(function.body):
        name = op_name(statement)
        if name not in ("tt.cb_push_back", "tt.cb_pop_front"):
            continue
        buffer = program.plan.buffer(str(arguments(statement)[0].name))
        wanted = buffer.producer if name == "tt.cb_push_back" else buffer.consumer
        if role != wanted:
            what = "pushes" if name == "tt.cb_push_back" else "pops"
            raise VerifyError(f"the {role} {what} {buffer.name}, which the {wanted} should", span=span_of(statement))


def _balance(program: Program) -> None:
    """Over each work item every buffer gets as many tiles as it gives, in amounts that divide its size."""
    for buffer in program.plan.buffers:
        pushed, popped = (
            sum(_tiles(program.functions[role], name, buffer.name, program) for role in program.functions)
            for name in ("tt.cb_push_back", "tt.cb_pop_front")
        )
        if pushed != popped:
            raise VerifyError(
                f"{buffer.name}: {pushed} tiles are pushed and {popped} popped for each work item", span=buffer.origin
            )


def _tiles(function: Any, name: str, buffer: str, program: Program) -> int:
    def count(body: Any, times: int, first: bool) -> int:
        total = 0
        for statement in statements(body):
            if isinstance(statement, tirx.For):
                extent = constant(statement.extent)
                total += count(statement.body, times * (extent or 1), first)
            elif isinstance(statement, tirx.IfThenElse):
                # `if k > 0` runs in all turns but the first one: the one branch that passes make.
                turns = _turns(function, statement)
                total += count(statement.then_case, times * (turns - 1) // turns, first)
            elif op_name(statement) == name and str(arguments(statement)[0].name) == buffer:
                amount = int(arguments(statement)[1].value)
                if program.plan.buffer(buffer).pages % amount:
                    raise VerifyError(
                        f"{buffer} holds {program.plan.buffer(buffer).pages} pages, which {amount} at a time do not "
                        "divide: a block would straddle its end",
                        span=span_of(statement),
                    )
                total += times * amount
        return total

    return count(function.body, 1, True)


def _turns(function: Any, branch: Any) -> int:
    variable = branch.condition.a
    for statement in walk(function.body):
        if isinstance(statement, tirx.For) and statement.loop_var.same_as(variable):
            return constant(statement.extent) or 1
    raise VerifyError(f"the branch on {branch.condition} is not on a loop variable", span=span_of(branch))


def _dst(program: Program) -> None:
    """Sections are acquired, committed, waited for and released in this order, and slots are inside of DST."""
    order = ["tt.tile_regs_acquire", "tt.tile_regs_commit", "tt.tile_regs_wait", "tt.tile_regs_release"]
    compute = program.plan.compute
    assert compute is not None
    expected = 0
    for statement in walk(program.functions["compute"].body):
        name = op_name(statement)
        if name in order:
            if order.index(name) != expected:
                raise VerifyError(f"{name[3:]} comes where {order[expected][3:]} should", span=span_of(statement))
            expected = (expected + 1) % 4
        known = OPS.get(name)
        if known is None or not any(operand.kind == "dst" for operand in known.operands):
            continue
        wanted = 3 if known.engine == "pack" else 1
        if expected != wanted:
            raise VerifyError(f"{known.name} is outside of its part of a DST section", span=span_of(statement))
