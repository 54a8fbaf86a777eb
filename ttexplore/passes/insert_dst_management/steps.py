"""Read the compute kernel: which operations work on DST, tile by tile of a block."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from tvm import ir, tirx

from ttexplore.analysis.engine_setup import operations
from ttexplore.errors import Unsupported
from ttexplore.ir.adapter import identity, span_of
from ttexplore.ir.arithmetic.bounds import is_marked_empty
from ttexplore.ir.build import arguments, buffer_of, constant, number_of, op_name
from ttexplore.ops import FORMS, OPS
from ttexplore.ops.op import Form, Op

AccessKind = Literal["read", "write", "update"]


@dataclass(frozen=True, slots=True)
class DstOperand:
    """A DST operand of an operation: the value, its tile, how it is used, its position among the arguments."""

    value: tirx.Buffer
    index: ir.Expr
    access: AccessKind
    position: int


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of the table: the statement, its arguments, and its DST operands."""

    call: tirx.Stmt
    op: Op
    arguments: tuple[ir.Expr, ...]
    operands: tuple[DstOperand, ...]

    def given(self, name: str) -> ir.Expr:
        """The argument for an operand."""
        return FORMS[self.op.ir_name].named(self.arguments)[name]

    def number(self, name: str) -> int:
        """The argument for a constant operand."""
        return number_of(self.given(name))


@dataclass(frozen=True, slots=True)
class TileStep:
    """One operation over the tiles of a block: the tile loop, or the loop of a matrix product."""

    statement: tirx.For
    operation: Operation
    variable: ir.Var
    tiles: int
    grid: tuple[int, int] | None = None

    @property
    def op(self) -> Op:
        return self.operation.op

    @property
    def operands(self) -> tuple[DstOperand, ...]:
        return self.operation.operands

    @property
    def packs(self) -> bool:
        return bool(self.op.packs)

    @property
    def is_matmul(self) -> bool:
        return self.grid is not None

    @property
    def target(self) -> tirx.Buffer:
        """The value that the operation makes or changes; packs have none."""
        return next(operand.value for operand in self.operands if operand.access != "read")

    @property
    def fills_with_zero(self) -> bool:
        if self.op.name != "fill_tile":
            return False
        value = self.operation.given("value")
        return isinstance(value, tirx.FloatImm) and float(value.value) == 0.0


@dataclass(frozen=True, slots=True)
class Touch:
    """How statements use a DST value: what they do first, and whether they change it. They read what the value held
    (`read`) or overwrite it completely (`write`). If only loops that may run zero iterations write it (`may_write`),
    its old content can still be there afterwards."""

    first: Literal["read", "write", "may_write"]
    changes: bool


Touches = dict[tirx.Buffer, Touch]


@dataclass(frozen=True, slots=True)
class Seen:
    """A statement as read: the statements in it if it is a loop, all operations in it, and how these use values, in
    order."""

    statement: tirx.Stmt
    inside: tuple[tirx.Stmt, ...]
    operations: tuple[Operation, ...]
    touches: Touches
    step: TileStep | None = None


def tiles_of(value: tirx.Buffer) -> int:
    """The tiles of a DST value or of a circular buffer."""
    return number_of(value.ty.shape[0])


class StepReader:
    """Reads the statements of one compute kernel, each once. Set-up calls are left out, because they follow from the
    operations. `from_writer` are the circular buffers that the writer fills, which may first store what was packed
    before; `passed_before` says, for each buffer that the reader fills, how many blocks it hands to the writer before:
    the writer may first store what was packed before these.

    Raises Unsupported for a condition around operations on DST.
    """

    def __init__(self, from_writer: Iterable[str] = (), passed_before: Mapping[str, int] | None = None) -> None:
        self.from_writer = frozenset(from_writer)
        self.passed_before = {**(passed_before or {})}
        self._seen: dict[int, Seen] = {}
        # One object per value: TVM makes a new one for each access, and comparing them is slow.
        self._values: dict[int, tirx.Buffer] = {}

    def body(self, body: tirx.Stmt) -> list[tirx.Stmt]:
        return operations(body)

    def inside(self, loop: tirx.Stmt) -> list[tirx.Stmt]:
        return list(self.seen(loop).inside)

    def step(self, statement: tirx.Stmt) -> TileStep | None:
        """The tile loop or matrix product that a statement is; None for other statements."""
        return self.seen(statement).step

    def values(self, statement: tirx.Stmt) -> list[tirx.Buffer]:
        """The DST values that a statement uses, in order, each once."""
        return list(self.seen(statement).touches)

    def has_values(self, statement: tirx.Stmt) -> bool:
        return bool(self.seen(statement).touches)

    def touched(self, body: Iterable[tirx.Stmt]) -> Touches:
        """How a body uses each of its DST values, in the order of first use."""
        touches: Touches = {}
        for statement in body:
            _join(touches, self.seen(statement).touches)
        return touches

    def seen(self, statement: tirx.Stmt) -> Seen:
        key = identity(statement)
        summary = self._seen.get(key)
        if summary is None:
            summary = self._seen[key] = self._read(statement)
        return summary

    def _read(self, statement: tirx.Stmt) -> Seen:
        if type(statement) is tirx.For:
            return self._loop(statement)
        if type(statement) is tirx.IfThenElse:
            return self._condition(statement)
        name = op_name(statement)
        if name not in OPS:
            return Seen(statement, (), (), {})
        operation = self._operation(statement, name)
        touches: Touches = {}
        for operand in operation.operands:
            kinds = {use.access for use in operation.operands if use.value is operand.value}
            touches[operand.value] = Touch("write" if kinds == {"write"} else "read", kinds != {"read"})
        return Seen(statement, (), (operation,), touches)

    def _condition(self, statement: tirx.IfThenElse) -> Seen:
        arms = [self.body(case) for case in (statement.then_case, statement.else_case) if case is not None]
        below = tuple(operation for arm in arms for inner in arm for operation in self.seen(inner).operations)
        if any(operation.operands for operation in below):
            # The sections would depend on the condition.
            raise Unsupported(
                "L005",
                "operations on tiles under a condition that is known only at run time",
                hint="use T.if_then_else on elements, or decide the condition in Python",
                span=span_of(statement),
            )
        return Seen(statement, (), below, {})

    def _operation(self, statement: tirx.Stmt, name: str) -> Operation:
        values = arguments(statement)
        operands: list[DstOperand] = []
        for at, access in _DST_POSITIONS.get(name, ()):
            operands.append(DstOperand(self._value(values[at]), values[at + 1], access, at))
        return Operation(statement, OPS[name], tuple(values), tuple(operands))

    def _value(self, argument: ir.Expr) -> tirx.Buffer:
        key = identity(argument)
        value = self._values.get(key)
        if value is None:
            value = self._values[key] = buffer_of(argument)
        return value

    def _loop(self, statement: tirx.For) -> Seen:
        inside = tuple(self.body(statement.body))
        summaries = [self.seen(inner) for inner in inside]
        touches: Touches = {}
        for summary in summaries:
            _join(touches, summary.touches)
        if touches and is_marked_empty(statement):
            touches = {
                value: Touch("may_write" if touch.first == "write" else touch.first, touch.changes)
                for value, touch in touches.items()
            }
        below = tuple(operation for summary in summaries for operation in summary.operations)
        return Seen(statement, inside, below, touches, _step(statement, summaries))


def _step(statement: tirx.For, inside: list[Seen]) -> TileStep | None:
    if len(inside) != 1 or type(inside[0].statement) is tirx.For or not inside[0].touches:
        return None
    extent = constant(statement.extent)
    if extent is None:
        return None
    (operation,) = inside[0].operations
    if operation.op.name == "matmul_block":
        rows, columns = operation.number("rt_dim"), operation.number("ct_dim")
        return TileStep(statement, operation, statement.loop_var, rows * columns, (rows, columns))
    return TileStep(statement, operation, statement.loop_var, extent)


def _positions(form: Form) -> tuple[tuple[int, AccessKind], ...]:
    """The positions of the DST operands of an operation among its arguments."""
    return tuple((at, operand.access or "read") for operand, at in form.places if operand.kind == "dst")


_DST_POSITIONS = {name: positions for name, form in FORMS.items() if (positions := _positions(form))}


def _join(touches: Touches, later: Touches) -> None:
    """Add to `touches` the uses by later statements."""
    for value, touch in later.items():
        before = touches.get(value)
        if before is None:
            touches[value] = touch
        elif not before.changes or before.first == "may_write":
            first = touch.first if before.first == "may_write" else before.first
            touches[value] = Touch(first, before.changes or touch.changes)
