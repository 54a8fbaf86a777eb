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
    found = {role: walk(function.body) for role, function in program.functions.items()}
    names = {op_name(statement) for statements_of in found.values() for statement in statements_of}
    _spans(found)
    if program.plan.buffers:
        check_l1(program.plan.buffers, target)
    _coverage(program)
    if program.is_split:
        for role in program.functions:
            _operands(role, found[role])
            _producers(role, found[role], program)
        if "tt.cb_push_back" in names:
            _balance(program, found)
        if "tt.tile_regs_acquire" in names:
            _dst(program, found["compute"])


def _spans(found: dict[str, list[Any]]) -> None:
    """Law 4: each statement knows a kernel line."""
    for role, statements_of in found.items():
        for statement in statements_of:
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


def _operands(role: str, found: list[Any]) -> None:
    """Operations get operands of the kind that they want."""
    for statement in found:
        known = OPS.get(op_name(statement))
        if known is None:
            continue
        values = iter(arguments(statement))
        for operand in known.operands:
            value = next(values)
            scope = {"cb": "tt.cb", "dst": "tt.dst", "tensor": "global"}.get(operand.kind)
            if scope is not None and not (is_buffer(value) and scope_of(value) == scope):
                raise VerifyError(
                    f"{role}: {known.name} wants a {operand.kind} as {operand.name}, not {value}",
                    span=span_of(statement),
                )
            if operand.kind == "dst":
                next(values)


def _producers(role: str, found: list[Any], program: Program) -> None:
    """A circular buffer is pushed by one kernel and popped by one, those that the plan names."""
    for statement in found:
        name = op_name(statement)
        if name not in ("tt.cb_push_back", "tt.cb_pop_front"):
            continue
        buffer = program.plan.buffer(str(arguments(statement)[0].name))
        wanted = buffer.producer if name == "tt.cb_push_back" else buffer.consumer
        if role != wanted:
            what = "pushes" if name == "tt.cb_push_back" else "pops"
            raise VerifyError(f"the {role} {what} {buffer.name}, which the {wanted} should", span=span_of(statement))


def _balance(program: Program, found: dict[str, list[Any]]) -> None:
    """Over each work item every buffer gets as many tiles as it gives, in amounts that divide its size."""
    pushed, popped = dict[str, int](), dict[str, int]()
    for role, function in program.functions.items():
        _count_tiles(function.body, 1, {"tt.cb_push_back": pushed, "tt.cb_pop_front": popped}, found[role], program)
    for buffer in program.plan.buffers:
        given, taken = pushed.get(buffer.name, 0), popped.get(buffer.name, 0)
        if given != taken:
            raise VerifyError(
                f"{buffer.name}: {given} tiles are pushed and {taken} popped for each work item", span=buffer.origin
            )


def _count_tiles(body: Any, times: int, totals: dict[str, dict[str, int]], found: list[Any], program: Program) -> None:
    for statement in statements(body):
        if isinstance(statement, tirx.For):
            _count_tiles(statement.body, times * (constant(statement.extent) or 1), totals, found, program)
        elif isinstance(statement, tirx.IfThenElse):
            # `if k > 0` runs in all turns but the first one: the one branch that passes make.
            turns = _turns(found, statement)
            _count_tiles(statement.then_case, times * (turns - 1) // turns, totals, found, program)
        elif (name := op_name(statement)) in totals:
            buffer, amount = str(arguments(statement)[0].name), int(arguments(statement)[1].value)
            pages = program.plan.buffer(buffer).pages
            if pages % amount:
                raise VerifyError(
                    f"{buffer} holds {pages} pages, which {amount} at a time do not divide: "
                    "a block would straddle its end",
                    span=span_of(statement),
                )
            totals[name][buffer] = totals[name].get(buffer, 0) + times * amount


def _turns(found: list[Any], branch: Any) -> int:
    variable = branch.condition.a
    for statement in found:
        if isinstance(statement, tirx.For) and statement.loop_var.same_as(variable):
            return constant(statement.extent) or 1
    raise VerifyError(f"the branch on {branch.condition} is not on a loop variable", span=span_of(branch))


def _dst(program: Program, found: list[Any]) -> None:
    """Sections are acquired, committed, waited for and released in this order, and slots are inside of DST."""
    order = ["tt.tile_regs_acquire", "tt.tile_regs_commit", "tt.tile_regs_wait", "tt.tile_regs_release"]
    compute = program.plan.compute
    assert compute is not None
    expected = 0
    for statement in found:
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
