"""Insert the calls that set the compute engine up before each operation of the compute kernel, on all paths.

The placement depends only on the operations, so each pass that writes operations computes it once: D4 for those of C2
and D3, D5 for those in its sections. Existing set-up calls are ignored and replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import ir, tirx

from ttexplore.ir.adapter import identity
from ttexplore.ir.build import (
    buffer_of,
    constant,
    op,
    op_name,
    operands,
    statements,
    when,
    with_body,
    with_function_body,
)  # fmt: skip
from ttexplore.ir.rewrite import Firings, Rule, walk
from ttexplore.ops import FORMS, OPS
from ttexplore.ops.op import Op
from ttexplore.ops.protocol import CONFIGURATION_OPS
from ttexplore.plan import Plan

_START = Rule("start of the engine", "The compute engine starts once, with the buffers of its first operation.")
_FORMAT = Rule("data format", "The unpacker or the packer switches to the format of another circular buffer.")
_INIT = Rule("init", "An operation gets its init where another operation of its engine ran last.")
_ANEW = Rule(
    "set up anew", "What sets the engine up gives way to what sets it up for the statements that are there now."
)
_UNINIT = Rule("uninit", "The uninit of an operation, after its loop, restores what its init changed.")

_SETUP = frozenset(name for name, form in FORMS.items() if form.phase or form.op in CONFIGURATION_OPS)


def set_up(function: tirx.PrimFunc, plan: Plan, firings: Firings) -> tirx.PrimFunc:
    """The compute kernel with the engine set up for its operations, no more often than needed."""
    body = operations(function.body)
    startup = _startup(body, firings)
    if startup is None:
        return with_function_body(function, body)
    operation, a, b, pack = startup
    placer = _Placer(plan, firings)
    state: State = {"a": placer.source(a), "b": placer.source(b), "pack": placer.source(pack)}
    placed_body = placer.body(body, state)
    allocations = [statement for statement in placed_body if isinstance(statement, tirx.AllocBuffer)]
    rest = [statement for statement in placed_body if not isinstance(statement, tirx.AllocBuffer)]
    return with_function_body(function, [*allocations, operation, *rest])


def leave_out(function: tirx.PrimFunc, firings: Firings) -> None:
    """Record that what sets the engine up in a kernel gives way to what will be set up for other statements."""
    for statement in walk(function.body):
        if op_name(statement) in _SETUP:
            firings.made(_ANEW, statement, [])


def operations(body: tirx.Stmt) -> list[tirx.Stmt]:
    """The statements of a body in order, without those that set the engine up."""
    return [statement for statement in statements(body) if op_name(statement) not in _SETUP]


@dataclass(frozen=True, slots=True)
class EngineSetting:
    """The setting of one part of the engine. Settings with equal `key` are the same."""

    key: object


@dataclass(frozen=True, slots=True)
class BufferFormat(EngineSetting):
    """The data format of a circular buffer."""

    cb: tirx.Buffer


@dataclass(frozen=True, slots=True)
class Init(EngineSetting):
    """The init of an operation."""

    operation: tirx.Stmt


State = dict[str, EngineSetting]

# After the uninit of an operation, or where paths with different settings join.
_NOTHING = EngineSetting(None)
# What a part is set to before an operation changes it without a need of its own.
_ANYTHING = EngineSetting("anything")


def _startup(body: list[tirx.Stmt], firings: Firings) -> tuple[tirx.Stmt, tirx.Buffer, tirx.Buffer, tirx.Buffer] | None:
    """The start-up statement and the buffers to whose formats it sets SrcA, SrcB and the packer; None without packs."""
    device_ops = [inner for inner in _unconditional(body) if op_name(inner) in OPS]
    packing = [inner for inner in device_ops if OPS[op_name(inner)].packs]
    if not packing:
        return None
    pack = buffer_of(operands(packing[0])[OPS[op_name(packing[0])].packs])
    first = next((inner for inner in device_ops if OPS[op_name(inner)].source_a), None)
    if first is None:
        (startup,) = firings.made(_START, packing[0], [op("compute_startup", pack, pack, pack)])
        return startup, pack, pack, pack
    device_op, values = OPS[op_name(first)], operands(first)
    a = buffer_of(values[device_op.source_a])
    b = buffer_of(values[device_op.source_b]) if device_op.source_b else a
    if device_op.name == "matmul_block":
        startup = op("compute_startup_matmul", b, a, pack)
    else:
        startup = op("compute_startup", a, b, pack)
    firings.made(_START, first, [startup])
    return startup, a, b, pack


def _unconditional(body: list[tirx.Stmt]) -> list[tirx.Stmt]:
    """The statements of a body and of its loops, without those of branches."""
    unconditional: list[tirx.Stmt] = []
    for statement in body:
        if type(statement) is tirx.For:
            unconditional += _unconditional(operations(statement.body))
        elif type(statement) is not tirx.IfThenElse:
            unconditional.append(statement)
    return unconditional


class _Placer:
    """Places the set-up calls. It reads each statement once, because all loops around a statement ask for it."""

    def __init__(self, plan: Plan, firings: Firings) -> None:
        self.firings = firings
        self.formats = {buffer.name: (buffer.data_format, buffer.unpack_to_dest) for buffer in plan.buffers}
        self.bodies: dict[int, list[tirx.Stmt]] = {}
        self.tile_operations: dict[int, tirx.Stmt] = {}
        self.known: dict[int, State] = {}
        self.loops: dict[int, dict[str, tuple[EngineSetting, EngineSetting]]] = {}

    # Settings that operations need

    def source(self, cb: tirx.Buffer) -> BufferFormat:
        return BufferFormat(self.formats[str(cb.name)], cb)

    def inside(self, loop: tirx.For) -> list[tirx.Stmt]:
        """The operations in a loop."""
        number = identity(loop)
        if number not in self.bodies:
            self.bodies[number] = operations(loop.body)
        return self.bodies[number]

    def needs(self, statement: tirx.Stmt) -> State:
        number = identity(statement)
        if number not in self.known:
            self.known[number] = self._needs(statement)
        return self.known[number]

    def _needs(self, statement: tirx.Stmt) -> State:
        device_op = OPS.get(op_name(statement))
        if device_op is None or not (device_op.source_a or device_op.source_b or device_op.packs or device_op.init):
            return {}
        values = operands(statement)
        needed: State = {}
        for unit, name in (("a", device_op.source_a), ("b", device_op.source_b), ("pack", device_op.packs)):
            if name:
                needed[unit] = self.source(buffer_of(values[name]))
        if device_op.init:
            parameters = tuple(
                _parameter(values[name]) for name in device_op.init_operands if not _is_cb(device_op, name)
            )
            formats = tuple(needed[unit].key for unit in ("a", "b") if unit in needed)
            engine = "sfpu" if device_op.engine == "sfpu" else "fpu"
            text = device_op.init if engine == "sfpu" else device_op.name
            needed[engine] = Init((text, parameters, formats), statement)
        return needed

    def body_needs(self, body: list[tirx.Stmt]) -> dict[str, tuple[EngineSetting, EngineSetting]]:
        """The first and the last setting of each part that a body needs. A branch restores what it changes."""
        settings: dict[str, tuple[EngineSetting, EngineSetting]] = {}
        for statement in body:
            if type(statement) is tirx.For:
                inner = self.loop_needs(statement)
                if _may_be_empty(statement):
                    # With zero iterations, the last setting is the one before the loop.
                    inner = {unit: (first, last if _same(last, settings.get(unit, (first, first))[1]) else _NOTHING)
                             for unit, (first, last) in inner.items()}  # fmt: skip
            elif type(statement) is tirx.IfThenElse:
                continue
            else:
                inner = {unit: (setting, setting) for unit, setting in self.needs(statement).items()}
            for unit, (first, last) in inner.items():
                settings[unit] = (settings[unit][0] if unit in settings else first, last)
            if self.ends_with_uninit(statement):
                settings["fpu"] = (settings["fpu"][0], _NOTHING)
            if self.disturbs_sfpu(statement):
                settings["sfpu"] = (settings["sfpu"][0] if "sfpu" in settings else _ANYTHING, _NOTHING)
        return settings

    def loop_needs(self, loop: tirx.For) -> dict[str, tuple[EngineSetting, EngineSetting]]:
        number = identity(loop)
        if number not in self.loops:
            self.loops[number] = self.body_needs(self.inside(loop))
        return self.loops[number]

    def tile_operation(self, statement: tirx.Stmt) -> tirx.Stmt:
        """The one operation in a nest of loops, not counting those on circular buffers, or the outermost statement
        that is not such a nest."""
        if type(statement) is not tirx.For:
            return statement
        number = identity(statement)
        if number not in self.tile_operations:
            inner = [operation for operation in self.inside(statement) if not op_name(operation).startswith("tt.cb_")]
            self.tile_operations[number] = self.tile_operation(inner[0]) if len(inner) == 1 else statement
        return self.tile_operations[number]

    def ends_with_uninit(self, statement: tirx.Stmt) -> bool:
        device_op = OPS.get(op_name(self.tile_operation(statement)))
        return device_op is not None and bool(device_op.uninit)

    def disturbs_sfpu(self, statement: tirx.Stmt) -> bool:
        device_op = OPS.get(op_name(self.tile_operation(statement)))
        return device_op is not None and device_op.disturbs_sfpu

    def runs_again(self, statement: tirx.Stmt, later: Sequence[tirx.Stmt]) -> bool:
        """Whether what runs in `statement` comes again with the same init, and only the SFPU works in between."""
        (init,) = (need for need in self.needs(self.tile_operation(statement)).values() if isinstance(need, Init))
        for following in map(self.tile_operation, later):
            device_op = OPS.get(op_name(following))
            if device_op is not None and device_op.engine == "sfpu" and self.disturbs_sfpu(statement):
                return False
            if device_op is None or device_op.engine != "sfpu":
                return _same(init, self.needs(following).get("fpu"))
        return False

    # Placing

    def change(self, state: State, required: State, statement: tirx.Stmt) -> list[tirx.Stmt]:
        """The statements that bring the engine from `state` to `required`, at a statement; updates `state`."""
        changes: list[tirx.Stmt] = []
        for unit, name in (("a", "source_a"), ("b", "source_b"), ("pack", "pack")):
            setting = required.get(unit)
            if not isinstance(setting, BufferFormat):
                continue
            before = state.get(unit)
            if before is None or before.key != setting.key:
                # Given the old buffer, the SDK omits what does not change. If the old one is not known, as in a loop
                # that ends with another format than it starts with, the format is set unconditionally.
                if isinstance(before, BufferFormat):
                    change = op(f"reconfig_{name}", before.cb, setting.cb)
                else:
                    change = op(f"set_{name}", setting.cb)
                changes += self.firings.made(_FORMAT, statement, [change])
                state[unit] = setting
                if unit != "pack":
                    state.pop("fpu", None)
        for unit in ("fpu", "sfpu"):
            setting = required.get(unit)
            if not isinstance(setting, Init):
                continue
            before = state.get(unit)
            if before is None or before.key != setting.key:
                changes += self.firings.made(_INIT, setting.operation, [_init(setting.operation)])
                state[unit] = setting
        return changes

    def body(self, body: list[tirx.Stmt], state: State, *, in_tile_loop: bool = False) -> list[tirx.Stmt]:
        """A body with its set-up calls; updates `state`."""
        placed: list[tirx.Stmt] = []
        for number, statement in enumerate(body):
            if type(statement) is tirx.For:
                placed += self.loop(statement, state, in_tile_loop=in_tile_loop)
            elif type(statement) is tirx.IfThenElse:
                placed.append(self.branch(statement, state))
            else:
                placed += self.change(state, self.needs(statement), statement)
                placed.append(statement)
            if (
                not in_tile_loop
                and self.ends_with_uninit(statement)
                and not self.runs_again(statement, body[number + 1 :])
            ):
                operation = self.tile_operation(statement)
                placed += self.firings.made(_UNINIT, operation, [_uninit(operation)])
                state.pop("fpu", None)
            if self.disturbs_sfpu(statement):
                state.pop("sfpu", None)
        return placed

    def loop(self, statement: tirx.For, state: State, *, in_tile_loop: bool) -> list[tirx.Stmt]:
        in_tile_loop = in_tile_loop or self.ends_with_uninit(statement)
        if in_tile_loop:
            inner_needs = self.body_needs([self.tile_operation(statement)])
            needed = {unit: (first, first) for unit, (first, _) in inner_needs.items()}
        else:
            needed = self.loop_needs(statement)
        ready = {unit: first for unit, (first, last) in needed.items() if first.key == last.key}
        # A part that the body changes and does not restore is unknown when the next iteration starts.
        before = self.change(state, ready, statement)
        for unit in needed:
            if unit not in ready:
                state.pop(unit, None)
        after = dict(state)
        loop_body = self.body(self.inside(statement), after, in_tile_loop=in_tile_loop)
        if _may_be_empty(statement):
            # With zero iterations, everything is as it was before the loop.
            after = {unit: setting for unit, setting in after.items() if _same(setting, state.get(unit))}
        state.clear()
        state.update(after)
        return [*before, with_body(statement, loop_body)]

    def branch(self, statement: tirx.IfThenElse, state: State) -> tirx.IfThenElse:
        """A branch whose arms restore what they change."""
        entry = dict(state)
        arms: list[list[tirx.Stmt]] = []
        for case in (statement.then_case, statement.else_case):
            if case is None:
                continue
            after = dict(entry)
            arm = self.body(operations(case), after)
            arm += self.change(after, {unit: entry[unit] for unit in after if unit in entry}, statement)
            arms.append(arm)
            for unit in [*state]:
                if unit in after:
                    state[unit] = after[unit]
                else:
                    del state[unit]
        return when(statement.condition, arms[0], statement.span, otherwise=arms[1] if len(arms) > 1 else None)


def _may_be_empty(loop: tirx.For) -> bool:
    turns = constant(loop.extent)
    return turns is None or turns < 1


def _parameter(value: ir.Expr) -> float | None:
    return float(value.value) if isinstance(value, tirx.FloatImm) else constant(value)


def _init(operation: tirx.Stmt) -> tirx.Stmt:
    device_op, values = OPS[op_name(operation)], operands(operation)
    return op(f"{device_op.name}_init", *[values[name] for name in device_op.init_operands])


def _uninit(operation: tirx.Stmt) -> tirx.Stmt:
    device_op, values = OPS[op_name(operation)], operands(operation)
    return op(f"{device_op.name}_uninit", *[values[name] for name in device_op.uninit_operands])


def _same(setting: EngineSetting, other: EngineSetting | None) -> bool:
    return other is not None and setting.key == other.key


def _is_cb(device_op: Op, name: str) -> bool:
    return next(operand for operand in device_op.operands if operand.name == name).kind == "cb"
