"""A group of steps as a straight line of tile operations, which can be scheduled."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from tvm import ir, tirx

from ttexplore.ir.build import number_of
from ttexplore.passes.insert_dst_management.schedule import TileOperation, ValueSource
from ttexplore.passes.insert_dst_management.steps import TileStep

# How a group gets a value that it reads: from its circular buffer; the same, except that in the first iteration of a
# loop the buffer is empty, which counts as zero; not at all, because the packer adds to the value in L1.
Entry = Literal["buffer", "buffer_or_zero", "added_in_l1"]

# An operation that reads only circular buffers is run again instead of spilling its result, if it costs little more
# than a pack and a copy.
_CHEAP_CYCLES = 90


@dataclass(frozen=True)
class StraightLine:
    """A straight line of tile operations. Values are numbered; an operation's number is that of its step.

    `makers` are the steps that recompute a value on demand; `entering` are the values that come from buffers (by DST
    value), `staying` those of them that later steps need unchanged, `leaving` the values that change in this line and
    are needed later; `owner` is the DST value of each number.
    """

    steps: tuple[TileStep, ...]
    operations: tuple[TileOperation, ...]
    sources: dict[int, ValueSource]
    makers: dict[int, TileStep]
    entering: dict[tirx.Buffer, int]
    staying: frozenset[int]
    leaving: dict[tirx.Buffer, int]
    owner: dict[int, tirx.Buffer]

    @property
    def slots_needed(self) -> int:
        """The slots that the widest operation needs."""
        return max((_width(operation) for operation in self.operations), default=1)


@dataclass(frozen=True)
class _Placed:
    position: int
    step: TileStep
    operation: TileOperation


def straight_line(
    steps: list[TileStep], entries: dict[tirx.Buffer, Entry], live: Collection[tirx.Buffer]
) -> StraightLine:
    """The line of `steps`. `entries` are the values that come from outside, `live` those that are needed afterwards.

    A zero fill whose value only a product adds to is left out, because DST is zero when it is acquired. A pack goes
    right after the operation that makes its value.
    """
    owner: dict[int, tirx.Buffer] = {}
    current: dict[tirx.Buffer, int] = {}
    zero: set[tirx.Buffer] = set()
    placed: list[_Placed] = []
    maker: dict[int, int] = {}

    def new(value: tirx.Buffer) -> int:
        version = len(owner)
        owner[version] = value
        current[value] = version
        return version

    entering: dict[tirx.Buffer, int] = {}
    for value, entry in entries.items():
        if entry == "added_in_l1":
            zero.add(value)
        else:
            entering[value] = new(value)
    only_added_to = _only_added_to(steps)
    for position, step in enumerate(steps):
        if position in only_added_to:
            zero.add(step.target)
            current.pop(step.target, None)
            continue
        updated = next((o.value for o in step.operands if o.access == "update"), None)
        fresh = step.op.accumulates and (updated is None or updated in zero)
        reads = [current[o.value] for o in step.operands if o.access == "read"]
        if updated is not None and not fresh:
            reads.insert(0, current[updated])
        if step.packs:
            placed.append(_Placed(position, step, TileOperation(tuple(reads), packs=True)))
            continue
        zero.discard(step.target)
        written = new(step.target)
        maker[written] = position
        operation = TileOperation(
            tuple(reads), written, in_place=updated is not None and not fresh, fresh=fresh,
            overlay=all(_is_tile(step, operand.index) for operand in step.operands), cycles=_cycles(step),
        )  # fmt: skip
        placed.append(_Placed(position, step, operation))
    leaving = {v: current[v] for v in live if v in current and current[v] != entering.get(v)}
    staying = frozenset(version for v, version in entering.items() if v in live and current[v] == version)
    makers = _made_when_wanted(placed, frozenset(leaving.values()))
    sources = {version: ValueSource(step.op.cycles) for version, step in makers.items()}
    for value, version in entering.items():
        sources[version] = ValueSource(fresh=entries[value] == "buffer_or_zero")

    def order(placement: _Placed) -> tuple[int, int, int]:
        value = placement.operation.reads[0] if placement.operation.packs else None
        if value is None or value in sources:
            return placement.position, 0, 0
        return maker[value], 1, placement.position

    line_steps = sorted((placement for placement in placed if placement.operation.writes not in makers), key=order)
    return StraightLine(
        tuple(placement.step for placement in line_steps), tuple(placement.operation for placement in line_steps),
        sources, makers, entering, staying,
        leaving, owner,
    )  # fmt: skip


def _only_added_to(steps: list[TileStep]) -> set[int]:
    """The positions of the zero fills whose value is next used by a product that adds to it."""
    fills: set[int] = set()
    # Whether the next step that uses a value adds to it; filled from the end.
    added_to: dict[tirx.Buffer, bool] = {}
    for position in reversed(range(len(steps))):
        step = steps[position]
        if step.fills_with_zero and added_to.get(step.target, False):
            fills.add(position)
        for operand in reversed(step.operands):
            added_to[operand.value] = step.op.accumulates and operand.access == "update"
    return fills


def _made_when_wanted(placed: list[_Placed], leaving: frozenset[int]) -> dict[int, TileStep]:
    """The steps that read nothing from DST, are cheap, and whose value is used only in the line."""
    read = {value for placement in placed for value in placement.operation.reads}
    makers: dict[int, TileStep] = {}
    for placement in placed:
        value = placement.operation.writes
        if (
            value is None
            or placement.operation.reads
            or placement.operation.fresh
            or placement.operation.cycles > _CHEAP_CYCLES
        ):
            continue
        if value in read and value not in leaving:
            makers[value] = placement.step
    return makers


def _cycles(step: TileStep) -> int:
    return step.op.cycles * (number_of(step.statement.extent) if step.is_matmul else 1)


def _is_tile(step: TileStep, index: ir.Expr) -> bool:
    return step.is_matmul or (isinstance(index, ir.Var) and index.same_as(step.variable))


def _width(operation: TileOperation) -> int:
    shared = operation.in_place or (operation.overlay and not operation.fresh and bool(operation.reads))
    return len(set(operation.reads)) + (0 if shared or operation.writes is None else 1)


def product_depth(step: TileStep) -> int:
    """The tiles along the inner dimension of a matrix product."""
    return step.operation.number("kt_dim")
