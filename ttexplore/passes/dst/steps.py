"""Reading the compute kernel: which operations work on DST, tile by tile of a block."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from tvm import tirx

from ttexplore.errors import Unsupported
from ttexplore.ir.adapter import identity, span_of
from ttexplore.ir.bounds import is_marked_empty
from ttexplore.ir.build import constant, op_name, operands, statements
from ttexplore.ir.rewrite import walk
from ttexplore.ops import FORMS, OPS
from ttexplore.ops.op import Form, Op

AccessKind = Literal["read", "write", "update"]


@dataclass(frozen=True)
class DstOperand:
    """A DST operand of an operation: the value, its tile, how it is used, its place among the arguments."""

    value: Any
    index: Any
    access: AccessKind
    position: int


@dataclass(frozen=True)
class Step:
    """One operation over the tiles of a block: a tile loop around `call`, or the loop of a matrix product."""

    statement: Any
    call: Any
    variable: Any
    tiles: int
    operands: tuple[DstOperand, ...]
    grid: tuple[int, int] | None = None

    @property
    def op(self) -> Op:
        return OPS[op_name(self.call)]

    @property
    def packs(self) -> bool:
        return bool(self.op.packs)

    @property
    def is_matmul(self) -> bool:
        return self.grid is not None

    @property
    def target(self) -> Any:
        """The value that the operation makes or changes; None where it packs."""
        return next((operand.value for operand in self.operands if operand.access != "read"), None)

    @property
    def fills_with_zero(self) -> bool:
        if self.op.name != "fill_tile":
            return False
        value = operands(self.call)["value"]
        return isinstance(value, tirx.FloatImm) and float(value.value) == 0.0


def _positions(form: Form) -> tuple[tuple[int, AccessKind], ...]:
    """Where the DST operands of an operation stand among its arguments."""
    return tuple((at, operand.access or "read") for operand, at in form.places if operand.kind == "dst")


_DST_POSITIONS = {name: positions for name, form in FORMS.items() if (positions := _positions(form))}


def dst_operands(call: Any) -> tuple[DstOperand, ...]:
    """The DST operands of an operation, in order."""
    positions = _DST_POSITIONS.get(op_name(call))
    if positions is None:
        return ()
    values = call.value.args[:]
    return tuple(DstOperand(values[at], values[at + 1], access, at) for at, access in positions)


@dataclass(frozen=True, slots=True)
class Touch:
    """How a stretch of statements touches a DST value: what it does first, and whether it changes it at all. It reads
    what the value held or writes it whole; where only loops that may make no turn write it, what it held can be there
    afterwards."""

    first: Literal["read", "write", "may_write"]
    changes: bool


def touched(body: Iterable[Any]) -> dict[Any, Touch]:
    """How a body touches each of its DST values, in the order of the first touch."""
    found: dict[int, tuple[Any, Touch]] = {}
    _touch(body, found)
    return dict(found.values())


def _touch(body: Iterable[Any], found: dict[int, tuple[Any, Touch]]) -> None:
    for statement in body:
        if isinstance(statement, tirx.For):
            if not is_marked_empty(statement):
                _touch(statements(statement.body), found)
                continue
            for value, touch in touched(statements(statement.body)).items():
                first = "may_write" if touch.first == "write" else touch.first
                _join(found, value, Touch(first, touch.changes))
            continue
        positions = _DST_POSITIONS.get(op_name(statement), ())
        if not positions:
            continue
        values = statement.value.args[:]
        for at, _ in positions:
            kinds = {access for place, access in positions if values[place].same_as(values[at])}
            _join(found, values[at], Touch("write" if kinds == {"write"} else "read", kinds != {"read"}))


def _join(found: dict[int, tuple[Any, Touch]], value: Any, touch: Touch) -> None:
    """Take in what comes after what was found."""
    number = identity(value)
    if number in found:
        before = found[number][1]
        if before.changes and before.first != "may_write":
            return
        first = touch.first if before.first == "may_write" else before.first
        touch = Touch(first, before.changes or touch.changes)
    found[number] = (value, touch)


def values_in(statement: Any) -> list[Any]:
    """The DST values that a statement touches, in order, each once."""
    found: dict[int, Any] = {}
    for inner in walk(statement):
        positions = _DST_POSITIONS.get(op_name(inner))
        if positions:
            arguments = inner.value.args[:]
            for at, _ in positions:
                found[identity(arguments[at])] = arguments[at]
    return list(found.values())


def has_values(statement: Any) -> bool:
    """Whether a statement touches DST values."""
    return any(op_name(inner) in _DST_POSITIONS for inner in walk(statement))


def as_step(statement: Any) -> Step | None:
    """The tile loop or matrix product that a statement is, else None."""
    if not isinstance(statement, tirx.For):
        return None
    inner = statements(statement.body)
    extent = constant(statement.extent)
    if len(inner) != 1 or extent is None:
        return None
    touching = dst_operands(inner[0])
    if not touching:
        return None
    call = inner[0]
    if op_name(call) == "tt.matmul_block":
        given = operands(call)
        rows, columns = int(given["rt_dim"].value), int(given["ct_dim"].value)
        return Step(statement, call, statement.loop_var, rows * columns, touching, (rows, columns))
    return Step(statement, call, statement.loop_var, extent, touching)


def refuse_conditions(body: list[Any]) -> None:
    """Raise Unsupported for a condition around operations on DST: which section they are in would not be known."""
    for statement in body:
        for inner in walk(statement):
            if isinstance(inner, tirx.IfThenElse | tirx.While) and has_values(inner):
                raise Unsupported(
                    "L005",
                    "operations on tiles under a condition that is only known when the kernel runs",
                    hint="use T.if_then_else on elements, or decide it in Python",
                    span=span_of(inner),
                )
