"""D4: the compute engine is set up before each operation, and not more often than needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm import tirx

from ttexplore.ir.build import (
    constant,
    op,
    op_name,
    operands,
    sequence,
    statements,
    when,
    with_body,
    with_function_body,
)  # fmt: skip
from ttexplore.ir.program import Program
from ttexplore.ir.rewrite import stamp
from ttexplore.ops import FORMS, OPS
from ttexplore.ops.op import Op
from ttexplore.ops.protocol import CONFIGURATION_OPS
from ttexplore.plan import Plan
from ttexplore.target import Target

_CONFIGURATION = frozenset(one.name for one in CONFIGURATION_OPS)


def insert_compute_init(program: Program, target: Target) -> Program:
    """Start the engine once, and put the init of an operation before it where another one ran last.

        for t in range(16):                         tt.compute_startup(A_shared, B_shared, C_shared)
            tt.add_tiles(A_shared, B_shared, ...)   tt.add_tiles_init(A_shared, B_shared)
                                               ==>  for t in range(16):
                                                        tt.add_tiles(A_shared, B_shared, ...)

    An init stays in force until another one of its engine: FPU and SFPU do not disturb each other, two SFPU
    operations do. A change of data format needs a reconfiguration, and the init again. Inits leave a loop where it
    starts with the state that it ends with.
    """
    compute = initialise(program.functions["compute"], program.plan)
    return program.with_function("compute", compute)


def initialise(function: Any, plan: Plan) -> Any:
    """The compute kernel with all inits placed anew; inits that it has already are dropped."""
    body = strip_inits(statements(function.body))
    startup = _startup(body)
    if startup is None:
        return with_function_body(function, body)
    operation, a, b, pack = startup
    state: State = {"a": Setting(_format(a, plan), cb=a), "b": Setting(_format(b, plan), cb=b)}
    state["pack"] = Setting(_format(pack, plan), cb=pack)
    made, _ = _Placer(plan).body(body, state)
    allocations = [one for one in made if isinstance(one, tirx.AllocBuffer)]
    rest = [one for one in made if not isinstance(one, tirx.AllocBuffer)]
    return with_function_body(function, [*allocations, operation, *rest])


@dataclass(frozen=True)
class Setting:
    """What one part of the engine is set to. `key` is compared; `cb` is the buffer whose format it is, `init` the
    statement that sets it."""

    key: Any
    cb: Any = None
    init: Any = None


State = dict[str, Setting]


def strip_inits(body: list[Any]) -> list[Any]:
    """The statements without start-up, inits and reconfigurations."""
    made: list[Any] = []
    for statement in body:
        form = FORMS.get(op_name(statement))
        if form is not None and (form.phase or form.op.name in _CONFIGURATION):
            continue
        if type(statement) is tirx.For:
            statement = with_body(statement, strip_inits(statements(statement.body)))
        elif type(statement) is tirx.IfThenElse:
            statement = when(statement.condition, strip_inits(statements(statement.then_case)), statement.span)
        made.append(statement)
    return made


def _format(cb: Any, plan: Plan) -> tuple[str, bool]:
    buffer = plan.buffer(str(cb.name))
    return buffer.data_format, buffer.unpack_to_dest


def _startup(body: list[Any]) -> tuple[Any, Any, Any, Any] | None:
    """The start-up statement and the buffers that SrcA, SrcB and the packer are set to by it; None without packs."""
    found = [inner for inner in _unconditional(body) if op_name(inner) in OPS]
    packing = [inner for inner in found if OPS[op_name(inner)].packs]
    if not packing:
        return None
    packs = [operands(inner)[OPS[op_name(inner)].packs] for inner in packing]
    first = next((inner for inner in found if OPS[op_name(inner)].source_a), None)
    if first is None:
        made = op("compute_startup", packs[0], packs[0], packs[0])
        stamp(made, packing[0].span)
        return made, packs[0], packs[0], packs[0]
    known, values = OPS[op_name(first)], operands(first)
    a = values[known.source_a]
    b = values[known.source_b] if known.source_b else a
    if known.name == "matmul_block":
        made = op("compute_startup_matmul", b, a, packs[0])
    else:
        made = op("compute_startup", a, b, packs[0])
    stamp(made, first.span)
    return made, a, b, packs[0]


def _unconditional(body: list[Any]) -> list[Any]:
    """The statements of a body and of its loops, without those of branches."""
    found: list[Any] = []
    for statement in body:
        if type(statement) is tirx.For:
            found += _unconditional(statements(statement.body))
        elif type(statement) is not tirx.IfThenElse:
            found.append(statement)
    return found


class _Placer:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.known: dict[Any, State] = {}

    # What an operation needs

    def needs(self, statement: Any) -> State:
        """Loops around it ask, one after another."""
        if statement not in self.known:
            self.known[statement] = self._needs(statement)
        return self.known[statement]

    def _needs(self, statement: Any) -> State:
        known = OPS.get(op_name(statement))
        if known is None:
            return {}
        values = operands(statement)
        wanted: State = {}
        for part, name in (("a", known.source_a), ("b", known.source_b), ("pack", known.packs)):
            if name:
                wanted[part] = Setting(_format(values[name], self.plan), cb=values[name])
        if known.init:
            parameters = tuple(constant(values[name]) for name in known.init_operands if not _is_cb(known, name))
            formats = tuple(wanted[part].key for part in ("a", "b") if part in wanted)
            init = op(f"{known.name}_init", *[values[name] for name in known.init_operands])
            stamp(init, statement.span)
            engine = "sfpu" if known.engine == "sfpu" else "fpu"
            text = known.init if engine == "sfpu" else known.name
            wanted[engine] = Setting((text, parameters, formats), init=init)
        return wanted

    def body_needs(self, body: list[Any]) -> dict[str, tuple[Setting, Setting]]:
        """The first and last setting of each part that a body needs. A branch puts back what it changes."""
        found: dict[str, tuple[Setting, Setting]] = {}
        for statement in body:
            if type(statement) is tirx.For:
                inner = self.body_needs(statements(statement.body))
                if constant(statement.extent) is None:
                    # Without a turn the last setting is that from before the loop.
                    inner = {part: (first, last if _same(last, found.get(part, (first, first))[1]) else Setting(None))
                             for part, (first, last) in inner.items()}  # fmt: skip
            elif type(statement) is tirx.IfThenElse:
                continue
            else:
                inner = {part: (setting, setting) for part, setting in self.needs(statement).items()}
            for part, (first, last) in inner.items():
                found[part] = (found[part][0] if part in found else first, last)
            if _ends_with_uninit(statement):
                # After the uninit the FPU is set to nothing.
                found["fpu"] = (found["fpu"][0], Setting(None))
        return found

    # Placing

    def change(self, state: State, wanted: State, span: Any) -> list[Any]:
        """The statements that bring the engine from `state` to `wanted`; `state` is brought along."""
        made: list[Any] = []
        for part, place in (("a", "source_a"), ("b", "source_b"), ("pack", "pack")):
            setting = wanted.get(part)
            if setting is None:
                continue
            before = state.get(part)
            if before is None or before.key != setting.key:
                # With the old buffer named, the SDK leaves out what does not change; where the old one is not
                # known, in a loop that ends with another format than it starts with, it must be set regardless.
                if before is not None:
                    made.append(op(f"reconfig_{place}", before.cb, setting.cb))
                else:
                    made.append(op(f"set_{place}", setting.cb))
                state[part] = setting
                if part != "pack":
                    state.pop("fpu", None)
        for part in ("fpu", "sfpu"):
            setting = wanted.get(part)
            if setting is None:
                continue
            before = state.get(part)
            if before is None or before.key != setting.key:
                made.append(tirx.Evaluate(setting.init.value, setting.init.span))
                state[part] = setting
        for one in made:
            stamp(one, span)
        return made

    def body(self, body: list[Any], state: State, *, in_tile_loop: bool = False) -> tuple[list[Any], State]:
        made: list[Any] = []
        for statement in body:
            if type(statement) is tirx.For:
                made += self.loop(statement, state, in_tile_loop=in_tile_loop)
            elif type(statement) is tirx.IfThenElse:
                made += self.branch(statement, state)
            else:
                made += self.change(state, self.needs(statement), statement.span)
                made.append(statement)
            if not in_tile_loop and _ends_with_uninit(statement):
                made.append(self.uninit(statement, state))
        return made, state

    def loop(self, statement: Any, state: State, *, in_tile_loop: bool) -> list[Any]:
        inner = statements(statement.body)
        in_tile_loop = in_tile_loop or _ends_with_uninit(statement)
        needed = self.body_needs(inner) if not in_tile_loop else self.body_needs([_tile_operation(statement)])
        if in_tile_loop:
            needed = {part: (first, first) for part, (first, _) in needed.items()}
        ready = {part: first for part, (first, last) in needed.items() if first.key == last.key}
        # A part that the body changes and does not put back is unknown when the next turn starts.
        before = self.change(state, ready, statement.span)
        for part in needed:
            if part not in ready:
                state.pop(part, None)
        made, after = self.body(inner, dict(state), in_tile_loop=in_tile_loop)
        if constant(statement.extent) is None:
            # It may make no turn: what its turns change is then as it was before.
            after = {part: setting for part, setting in after.items() if _same(setting, state.get(part))}
        state.clear()
        state.update(after)
        return [*before, with_body(statement, made)]

    def branch(self, statement: Any, state: State) -> list[Any]:
        entry = dict(state)
        inner, after = self.body(statements(statement.then_case), dict(state))
        restored = {part: entry[part] for part in after if part in entry}
        inner += self.change(after, restored, statement.span)
        state.clear()
        state.update({part: setting for part, setting in after.items() if part in entry})
        return [tirx.IfThenElse(statement.condition, sequence(inner), None, statement.span)]

    def uninit(self, statement: Any, state: State) -> Any:
        """The uninit of the operation that a tile loop ran."""
        inner = _tile_operation(statement)
        known, values = OPS[op_name(inner)], operands(inner)
        made = op(f"{known.name}_uninit", *[values[name] for name in known.uninit_operands])
        stamp(made, inner.span)
        state.pop("fpu", None)
        return made


def _same(setting: Setting, other: Setting | None) -> bool:
    return other is not None and setting.key == other.key


def _tile_operation(statement: Any) -> Any:
    """The one operation in a nest of loops, besides those on circular buffers, or the first thing that is no such
    loop."""
    while type(statement) is tirx.For:
        inner = [one for one in statements(statement.body) if not op_name(one).startswith("tt.cb_")]
        if len(inner) != 1:
            break
        statement = inner[0]
    return statement


def _ends_with_uninit(statement: Any) -> bool:
    known = OPS.get(op_name(_tile_operation(statement)))
    return known is not None and bool(known.uninit)


def _is_cb(known: Op, name: str) -> bool:
    return next(operand for operand in known.operands if operand.name == name).kind == "cb"
