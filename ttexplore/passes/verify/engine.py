"""Check that the compute engine is set up for each operation, on all paths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from ttexplore.errors import VerifyError
from ttexplore.ir.arithmetic.index import show
from ttexplore.ir.kernel import Bind, Branch, Call, Kernel, Loop, Walk, calls
from ttexplore.ops import OPS
from ttexplore.ops.op import Op
from ttexplore.ops.protocol import COMPUTE_STARTUP, COMPUTE_STARTUP_MATMUL
from ttexplore.plan import Plan

_STARTUPS = (COMPUTE_STARTUP.ir_name, COMPUTE_STARTUP_MATMUL.ir_name)
_PARTS = {"a": "unpacker's source A", "b": "unpacker's source B", "pack": "packer"}
_PLACES = {"source_a": "a", "source_b": "b", "pack": "pack"}
_UNKNOWN = "set differently on different paths"


def check_engine(kernel: Kernel, plan: Plan) -> None:
    """The engine starts once, before all operations; each operation runs under its own init, with the data formats of
    its buffers; and an uninit runs before the next operation that needs it. Raises VerifyError."""
    engine_calls = [call for call in calls(kernel.body) if call.op.engine not in ("sync", "noc", "riscv")]
    starts = [call for call in engine_calls if call.name in _STARTUPS]
    if engine_calls and not starts:
        raise VerifyError(
            "V030",
            "the compute kernel never starts the engine",
            hint="put compute_startup first, or compute_startup_matmul if a matrix product comes first",
            span=engine_calls[0].span,
        )
    if len(starts) > 1:
        raise VerifyError(
            "V030",
            "the compute kernel starts the engine twice",
            hint="start it once, first in the kernel; change formats with reconfig operations",
            span=starts[1].span,
        )
    if starts and not any(statement is starts[0] for statement in kernel.body):
        raise VerifyError(
            "V030",
            "the compute kernel starts the engine in a loop or a branch",
            hint="start it once, first in the kernel",
            span=starts[0].span,
        )
    if starts and starts[0] is not engine_calls[0]:
        raise VerifyError(
            "V030",
            f"{engine_calls[0].name[3:]} comes before the start-up of the engine",
            hint=f"put {starts[0].name[3:]} first in the kernel",
            span=engine_calls[0].span,
        )
    walker = _Engine(plan)
    walker.body(kernel.body)
    walker.at_end()


# A data format, and whether it is unpacked to DST.
_Format = tuple[str, bool]
# An init: its operation or, for the SFPU, its text; the numbers and the formats that it is given.
_Init = tuple[str, tuple[str, ...], tuple[_Format, ...]]


@dataclass
class _EngineState:
    """The formats of the sources and the packer, and the inits that are in force, by part of the engine. None means
    that it depends on the path; a missing part was never set."""

    formats: dict[str, _Format | None] = field(default_factory=dict[str, _Format | None])
    inits: dict[str, _Init | None] = field(default_factory=dict[str, _Init | None])

    def copy(self) -> _EngineState:
        return _EngineState({**self.formats}, {**self.inits})

    def joined(self, alternative: _EngineState) -> _EngineState:
        """The state where two paths join."""
        return _EngineState(_joined(self.formats, alternative.formats), _joined(self.inits, alternative.inits))


class _Engine(Walk):
    def __init__(self, plan: Plan) -> None:
        self.formats = {b.name: (b.data_format, b.unpack_to_dest) for b in plan.buffers}
        self.bits = 32 if plan.compute is not None and plan.compute.fp32_dest_acc_en else 16
        self.state = _EngineState()
        # The operation whose uninit is pending, if any.
        self.pending: Call | None = None
        self.adds_in_l1: Call | None = None

    def bind(self, bind: Bind) -> None:
        """Bindings do not change the engine."""

    def loop(self, loop: Loop) -> None:
        if loop.turns == 0:
            return
        before, pending = self.state.copy(), self.pending
        self.body(loop.body)
        if loop.turns == 1:
            return
        # A part that the body changes is different in later iterations: repeat until the state is stable.
        entry, first = before.joined(self.state), before
        while entry != before or pending is not self.pending:
            before, pending = entry, self.pending
            self.state = entry.copy()
            self.body(loop.body)
            entry = before.joined(self.state)
        if loop.turns is None:
            self.state = first.joined(self.state)

    def branch(self, branch: Branch) -> None:
        before, pending = self.state.copy(), self.pending
        self.body(branch.then)
        after, pending_then = self.state, self.pending
        self.state, self.pending = before, pending
        self.body(branch.otherwise)
        self.state, self.pending = after.joined(self.state), self.pending or pending_then

    def at_end(self) -> None:
        if self.pending is not None:
            raise self.undone(self.pending, "the kernel ends")
        if self.adds_in_l1 is not None:
            raise VerifyError(
                "V033",
                "the kernel ends while the packer still accumulates in L1",
                hint="put pack_l1_accumulate(0) after the last pack that adds",
                span=self.adds_in_l1.span,
            )

    # Operations

    def call(self, call: Call) -> None:
        name = call.name[3:]
        if call.phase == "init":
            self.initialise(call)
        elif call.phase == "uninit":
            self.uninitialise(call)
        elif call.name in _STARTUPS:
            self.start(call)
        elif name.startswith("reconfig_") and name[9:] in _PLACES:
            self.reconfigure(call, _PLACES[name[9:]])
        elif name.startswith("set_") and name[4:] in _PLACES:
            self.set(_PLACES[name[4:]], call.buffer("new"))
        elif name == "pack_l1_accumulate":
            self.adds_in_l1 = None if call.values["enable"] == 0 else call
        elif call.op.engine in ("fpu", "sfpu", "pack", "block"):
            self.operation(call)

    def start(self, call: Call) -> None:
        first, second = ("in1", "in0") if call.name == _STARTUPS[1] else ("in0", "in1")
        for unit, operand in (("a", first), ("b", second), ("pack", "out")):
            self.state.formats[unit] = self.formats[call.buffer(operand)]

    def reconfigure(self, call: Call, unit: str) -> None:
        old, new = call.buffer("old"), call.buffer("new")
        if self.state.formats.get(unit) != self.formats[old]:
            raise VerifyError(
                "V032",
                f"{call.name[3:]} says that the {_PARTS[unit]} is set to {old} ({_named(self.formats[old])}); it is "
                f"{self.told(unit)}",
                hint=f"name the current buffer, or use set_{call.name[len('tt.reconfig_') :]}",
                span=call.span,
            )
        self.set(unit, new)

    def set(self, unit: str, cb: str) -> None:
        self.state.formats[unit] = self.formats[cb]
        if unit != "pack":
            # An init configures the unpacker for the current format.
            self.state.inits.pop("fpu", None)

    def initialise(self, call: Call) -> None:
        if call.op.engine == "sfpu":
            self.state.inits["sfpu"] = self.key(call)
            fpu = self.state.inits.get("fpu")
            if fpu is not None and OPS[f"tt.{fpu[0]}"].disturbs_sfpu:
                del self.state.inits["fpu"]
            return
        if self.pending is not None:
            raise self.undone(self.pending, f"{call.name[3:]} comes")
        self.state.inits["fpu"] = self.key(call)
        if call.op.disturbs_sfpu:
            self.state.inits.pop("sfpu", None)

    def uninitialise(self, call: Call) -> None:
        if self.pending is None or self.pending.op is not call.op:
            raise VerifyError(
                "V033",
                f"{call.name[3:]} comes where no {call.op.name} is in force",
                hint=f"call it once, after {call.op.name}",
                span=call.span,
            )
        self.pending = None
        self.state.inits.pop("fpu", None)

    def key(self, call: Call) -> _Init:
        op = call.op
        kinds = {operand.name: operand.kind for operand in op.operands}
        numbers = tuple(show(call.values[n]) for n in op.init_operands if kinds[n] != "cb")
        if op.engine == "sfpu":
            return op.init, numbers, ()
        formats = tuple(self.formats[call.buffer(n)] for n in op.init_operands if kinds[n] == "cb")
        return op.name, numbers, formats

    def operation(self, call: Call) -> None:
        op = call.op
        for unit, operand in (("a", op.source_a), ("b", op.source_b), ("pack", op.packs)):
            if not operand:
                continue
            cb = call.buffer(operand)
            if self.state.formats.get(unit) != self.formats[cb]:
                change = "pack" if unit == "pack" else f"source_{unit}"
                raise VerifyError(
                    "V032",
                    f"{op.name} takes {cb} ({_named(self.formats[cb])}); the {_PARTS[unit]} is {self.told(unit)}",
                    hint=f"put reconfig_{change}(..., {cb}) before it, and its init after that",
                    span=call.span,
                )
            for data_format, bits in op.wrong_in:
                if unit != "pack" and bits == self.bits and data_format == self.formats[cb][0]:
                    raise self.wrong(call, f"{op.name} of {cb} ({data_format})")
        if op.dst_bits not in (None, self.bits):
            raise self.wrong(call, op.name)
        if self.pending is not None and self.pending.op is not op and _disturbed(self.pending, op):
            raise self.undone(self.pending, f"{op.name} comes")
        if op.uninit:
            self.pending = call
        if not op.init:
            return
        unit = "sfpu" if op.engine == "sfpu" else "fpu"
        key, init = self.key(call), self.state.inits.get(unit)
        if init != key:
            if init is not None and init[0] == key[0]:
                raise VerifyError(
                    "V031",
                    f"{op.name} is called with ({', '.join(key[1])}) on {', '.join(map(_named, key[2]))}; its "
                    f"init was given ({', '.join(init[1])}) and {', '.join(map(_named, init[2]))}",
                    hint=f"give {op.name} and {op.name}_init the same arguments",
                    span=call.span,
                )
            raise VerifyError(
                "V031",
                f"{op.name} runs under {self.init_told(unit)}",
                hint=f"put {op.name}_init before it, after every other init of the {unit.upper()}",
                span=call.span,
            )

    def told(self, unit: str) -> str:
        if unit not in self.state.formats:
            return "not set"
        state = self.state.formats[unit]
        return _UNKNOWN if state is None else f"set to {_named(state)}"

    def init_told(self, unit: str) -> str:
        if unit not in self.state.inits:
            return f"no init of the {unit.upper()}"
        init = self.state.inits[unit]
        if init is None:
            return "different inits on different paths"
        return init[0] if unit == "sfpu" else f"the init of {init[0]}"

    def undone(self, call: Call, event: str) -> VerifyError:
        return VerifyError(
            "V033",
            f"{event} before {call.op.name}_uninit",
            hint=f"put {call.op.name}_uninit after the last {call.op.name}",
            span=call.span,
        )

    def wrong(self, call: Call, subject: str) -> VerifyError:
        return VerifyError(
            "V034",
            f"{subject} with {self.bits}-bit DST is silently wrong on the chip",
            hint=call.op.note or "use another operation, or the other width of DST",
            span=call.span,
        )


def _disturbed(pending: Call, op: Op) -> bool:
    """Whether a pending uninit affects an operation; it affects packs only if the pending operation packs itself."""
    return op.engine in ("fpu", "block") or (op.engine == "pack" and bool(pending.op.packs))


_Set = TypeVar("_Set")


def _joined(first: Mapping[str, _Set | None], two: Mapping[str, _Set | None]) -> dict[str, _Set | None]:
    return {
        unit: (first[unit] if first[unit] == two[unit] else None) if unit in first and unit in two else None
        for unit in first.keys() | two.keys()
    }


def _named(key: _Format) -> str:
    return f"{key[0]} to DST" if key[1] else key[0]
