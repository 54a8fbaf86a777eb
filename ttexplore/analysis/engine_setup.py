"""Insert the calls that set the compute engine up before each operation of the compute kernel, on all paths.

The placement depends only on the operations, so each pass that writes operations computes it once: D4 for those of C2
and D3, D5 for those in its sections. Existing set-up calls are ignored and replaced.
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm import tirx

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
    made = placer.body(body, state)
    allocations = [one for one in made if isinstance(one, tirx.AllocBuffer)]
    rest = [one for one in made if not isinstance(one, tirx.AllocBuffer)]
    return with_function_body(function, [*allocations, operation, *rest])


def leave_out(function: tirx.PrimFunc, firings: Firings) -> None:
    """Record that what sets the engine up in a kernel gives way to what will be set up for other statements."""
    for one in walk(function.body):
        if op_name(one) in _SETUP:
            firings.made(_ANEW, one, [])


def operations(body: tirx.Stmt) -> list[tirx.Stmt]:
    """The statements of a body in order, without those that set the engine up."""
    return [one for one in statements(body) if op_name(one) not in _SETUP]


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


def _startup(body: list[tirx.Stmt], firings: Firings) -> tuple[tirx.Stmt, tirx.Buffer, tirx.Buffer, tirx.Buffer] | None:
    """The start-up statement and the buffers to whose formats it sets SrcA, SrcB and the packer; None without packs."""
    found = [inner for inner in _unconditional(body) if op_name(inner) in OPS]
    packing = [inner for inner in found if OPS[op_name(inner)].packs]
    if not packing:
        return None
    pack = buffer_of(operands(packing[0])[OPS[op_name(packing[0])].packs])
    first = next((inner for inner in found if OPS[op_name(inner)].source_a), None)
    if first is None:
        (made,) = firings.made(_START, packing[0], [op("compute_startup", pack, pack, pack)])
        return made, pack, pack, pack
    known, values = OPS[op_name(first)], operands(first)
    a = buffer_of(values[known.source_a])
    b = buffer_of(values[known.source_b]) if known.source_b else a
    if known.name == "matmul_block":
        made = op("compute_startup_matmul", b, a, pack)
    else:
        made = op("compute_startup", a, b, pack)
    firings.made(_START, first, [made])
    return made, a, b, pack


def _unconditional(body: list[tirx.Stmt]) -> list[tirx.Stmt]:
    """The statements of a body and of its loops, without those of branches."""
    found: list[tirx.Stmt] = []
    for statement in body:
        if type(statement) is tirx.For:
            found += _unconditional(operations(statement.body))
        elif type(statement) is not tirx.IfThenElse:
            found.append(statement)
    return found


class _Placer:
    """Places the set-up calls. It reads each statement once, because all loops around a statement ask for it."""

    def __init__(self, plan: Plan, firings: Firings) -> None:
        self.firings = firings
        self.formats = {one.name: (one.data_format, one.unpack_to_dest) for one in plan.buffers}
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
        known = OPS.get(op_name(statement))
        if known is None or not (known.source_a or known.source_b or known.packs or known.init):
            return {}
        values = operands(statement)
        wanted: State = {}
        for part, name in (("a", known.source_a), ("b", known.source_b), ("pack", known.packs)):
            if name:
                wanted[part] = self.source(buffer_of(values[name]))
        if known.init:
            parameters = tuple(constant(values[name]) for name in known.init_operands if not _is_cb(known, name))
            formats = tuple(wanted[part].key for part in ("a", "b") if part in wanted)
            engine = "sfpu" if known.engine == "sfpu" else "fpu"
            text = known.init if engine == "sfpu" else known.name
            wanted[engine] = Init((text, parameters, formats), statement)
        return wanted

    def body_needs(self, body: list[tirx.Stmt]) -> dict[str, tuple[EngineSetting, EngineSetting]]:
        """The first and the last setting of each part that a body needs. A branch restores what it changes."""
        found: dict[str, tuple[EngineSetting, EngineSetting]] = {}
        for statement in body:
            if type(statement) is tirx.For:
                inner = self.loop_needs(statement)
                if _may_be_empty(statement):
                    # With zero iterations, the last setting is the one before the loop.
                    inner = {part: (first, last if _same(last, found.get(part, (first, first))[1]) else _NOTHING)
                             for part, (first, last) in inner.items()}  # fmt: skip
            elif type(statement) is tirx.IfThenElse:
                continue
            else:
                inner = {part: (setting, setting) for part, setting in self.needs(statement).items()}
            for part, (first, last) in inner.items():
                found[part] = (found[part][0] if part in found else first, last)
            if self.ends_with_uninit(statement):
                found["fpu"] = (found["fpu"][0], _NOTHING)
        return found

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
            inner = [one for one in self.inside(statement) if not op_name(one).startswith("tt.cb_")]
            self.tile_operations[number] = self.tile_operation(inner[0]) if len(inner) == 1 else statement
        return self.tile_operations[number]

    def ends_with_uninit(self, statement: tirx.Stmt) -> bool:
        known = OPS.get(op_name(self.tile_operation(statement)))
        return known is not None and bool(known.uninit)

    # Placing

    def change(self, state: State, wanted: State, place: tirx.Stmt) -> list[tirx.Stmt]:
        """The statements that bring the engine from `state` to `wanted`, at a statement; updates `state`."""
        made: list[tirx.Stmt] = []
        for part, name in (("a", "source_a"), ("b", "source_b"), ("pack", "pack")):
            setting = wanted.get(part)
            if not isinstance(setting, BufferFormat):
                continue
            before = state.get(part)
            if before is None or before.key != setting.key:
                # Given the old buffer, the SDK omits what does not change. If the old one is not known, as in a loop
                # that ends with another format than it starts with, the format is set unconditionally.
                if isinstance(before, BufferFormat):
                    change = op(f"reconfig_{name}", before.cb, setting.cb)
                else:
                    change = op(f"set_{name}", setting.cb)
                made += self.firings.made(_FORMAT, place, [change])
                state[part] = setting
                if part != "pack":
                    state.pop("fpu", None)
        for part in ("fpu", "sfpu"):
            setting = wanted.get(part)
            if not isinstance(setting, Init):
                continue
            before = state.get(part)
            if before is None or before.key != setting.key:
                made += self.firings.made(_INIT, setting.operation, [_init(setting.operation)])
                state[part] = setting
        return made

    def body(self, body: list[tirx.Stmt], state: State, *, in_tile_loop: bool = False) -> list[tirx.Stmt]:
        """A body with its set-up calls; updates `state`."""
        made: list[tirx.Stmt] = []
        for statement in body:
            if type(statement) is tirx.For:
                made += self.loop(statement, state, in_tile_loop=in_tile_loop)
            elif type(statement) is tirx.IfThenElse:
                made.append(self.branch(statement, state))
            else:
                made += self.change(state, self.needs(statement), statement)
                made.append(statement)
            if not in_tile_loop and self.ends_with_uninit(statement):
                operation = self.tile_operation(statement)
                made += self.firings.made(_UNINIT, operation, [_uninit(operation)])
                state.pop("fpu", None)
        return made

    def loop(self, statement: tirx.For, state: State, *, in_tile_loop: bool) -> list[tirx.Stmt]:
        in_tile_loop = in_tile_loop or self.ends_with_uninit(statement)
        if in_tile_loop:
            wanted = self.body_needs([self.tile_operation(statement)])
            needed = {part: (first, first) for part, (first, _) in wanted.items()}
        else:
            needed = self.loop_needs(statement)
        ready = {part: first for part, (first, last) in needed.items() if first.key == last.key}
        # A part that the body changes and does not restore is unknown when the next iteration starts.
        before = self.change(state, ready, statement)
        for part in needed:
            if part not in ready:
                state.pop(part, None)
        after = dict(state)
        made = self.body(self.inside(statement), after, in_tile_loop=in_tile_loop)
        if _may_be_empty(statement):
            # With zero iterations, everything is as it was before the loop.
            after = {part: setting for part, setting in after.items() if _same(setting, state.get(part))}
        state.clear()
        state.update(after)
        return [*before, with_body(statement, made)]

    def branch(self, statement: tirx.IfThenElse, state: State) -> tirx.IfThenElse:
        """A branch whose arms restore what they change."""
        entry = dict(state)
        arms: list[list[tirx.Stmt]] = []
        for case in (statement.then_case, statement.else_case):
            if case is None:
                continue
            after = dict(entry)
            made = self.body(operations(case), after)
            made += self.change(after, {part: entry[part] for part in after if part in entry}, statement)
            arms.append(made)
            for part in [*state]:
                if part in after:
                    state[part] = after[part]
                else:
                    del state[part]
        return when(statement.condition, arms[0], statement.span, otherwise=arms[1] if len(arms) > 1 else None)


def _may_be_empty(loop: tirx.For) -> bool:
    turns = constant(loop.extent)
    return turns is None or turns < 1


def _init(operation: tirx.Stmt) -> tirx.Stmt:
    known, values = OPS[op_name(operation)], operands(operation)
    return op(f"{known.name}_init", *[values[name] for name in known.init_operands])


def _uninit(operation: tirx.Stmt) -> tirx.Stmt:
    known, values = OPS[op_name(operation)], operands(operation)
    return op(f"{known.name}_uninit", *[values[name] for name in known.uninit_operands])


def _same(setting: EngineSetting, other: EngineSetting | None) -> bool:
    return other is not None and setting.key == other.key


def _is_cb(known: Op, name: str) -> bool:
    return next(operand for operand in known.operands if operand.name == name).kind == "cb"
