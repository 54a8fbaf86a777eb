"""Groups of consecutive steps that can share sections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tvm import tirx

from ttexplore.errors import Unsupported
from ttexplore.ir.adapter import span_of
from ttexplore.ir.build import arguments, buffer_of, constant, op_name
from ttexplore.ir.rewrite import walk
from ttexplore.ops.protocol import CB_POP_FRONT, CB_PUSH_BACK, CB_RESERVE_BACK, CB_WAIT_FRONT
from ttexplore.passes.insert_dst_management.steps import StepReader, TileStep, tiles_of

Grid = tuple[int, int]


@dataclass
class StepGroup:
    """Steps over blocks of the same shape, the protocol calls around them, the buffers that the steps pack to, and the
    buffers that are popped or pushed after them."""

    grid: Grid
    steps: list[TileStep] = field(default_factory=list[TileStep])
    before: list[tirx.Stmt] = field(default_factory=list[tirx.Stmt])
    after: list[tirx.Stmt] = field(default_factory=list[tirx.Stmt])
    packed: set[str] = field(default_factory=set[str])
    popped: set[str] = field(default_factory=set[str])

    @property
    def values(self) -> list[tirx.Buffer]:
        """The DST values of the steps, in order."""
        return list(dict.fromkeys(operand.value for step in self.steps for operand in step.operands))

    @property
    def statements(self) -> list[tirx.For]:
        return [step.statement for step in self.steps]

    def takes(self, statement: tirx.Stmt, refilled: set[str]) -> bool:
        """Add a protocol call, if it can run before or after all steps. Returns whether it was added.

        A buffer that was popped in this sequence is refilled only after the other buffers have been popped as well, so
        the wait for it stays after those pops. One that the writer fills, or that the reader fills after it has handed
        a block to the writer, may be filled only after the writer has stored what was pushed.
        """
        name = op_name(statement)
        if name in (CB_WAIT_FRONT.ir_name, CB_RESERVE_BACK.ir_name):
            moved = _moved(statement)
            if self.after and name == CB_WAIT_FRONT.ir_name and moved in refilled:
                return False
            if moved not in self.packed and moved not in self.popped:
                self.before.append(statement)
                return True
        elif name in (CB_POP_FRONT.ir_name, CB_PUSH_BACK.ir_name):
            self.after.append(statement)
            self.popped.add(_moved(statement))
            return True
        return False

    def add(self, step: TileStep) -> None:
        self.steps.append(step)
        if step.packs:
            self.packed.add(buffer_of(step.operation.given("out")).name)


def _moved(statement: tirx.Stmt) -> str:
    """The name of the circular buffer of a protocol call."""
    return buffer_of(arguments(statement)[0]).name


# Part of a sequence: a statement, or the statements of a finished section.
SequencePart = tirx.Stmt | list[tirx.Stmt]


def group_steps(
    body: Sequence[SequencePart], reader: StepReader, grids: dict[tirx.Buffer, Grid]
) -> list[SequencePart | StepGroup]:
    """A sequence as groups and the parts between them."""
    grouping = Grouping(reader, grids)
    for member in body:
        grouping.add(member)
    return grouping.made


class Grouping:
    """Groups a sequence, part by part; `group` is the group that the next step may join."""

    def __init__(self, reader: StepReader, grids: dict[tirx.Buffer, Grid]) -> None:
        self.reader, self.grids = reader, grids
        self.made: list[SequencePart | StepGroup] = []
        self.group: StepGroup | None = None
        self.refilled = {*reader.from_writer}
        # How many blocks the reader has certainly handed to the writer.
        self.passed = 0

    def add(self, member: SequencePart) -> None:
        step = None if isinstance(member, list) else self.reader.step(member)
        if step is not None:
            grid = self.grids[step.operands[0].value]
            if self.group is None or self.group.grid != grid:
                self.group = StepGroup(grid)
                self.made.append(self.group)
            self.group.add(step)
        elif isinstance(member, list) or self.group is None or not self.group.takes(member, self.late()):
            self.group = None
            self.made.append(member)
        if isinstance(member, list):
            return
        if op_name(member) == CB_POP_FRONT.ir_name:
            self.refilled.add(_moved(member))
        if self.reader.passed_before:
            waits = (statement for statement in walk(member) if op_name(statement) == CB_WAIT_FRONT.ir_name)
            self.passed = max(self.passed, *(self.reader.passed_before.get(_moved(wait), 0) for wait in waits), 0)

    def late(self) -> set[str]:
        """The buffers that are perhaps filled only after the writer has stored what was pushed."""
        return self.refilled | {name for name, number in self.reader.passed_before.items() if number > self.passed}

    def continued(self) -> Grouping:
        """A copy of the current state, to try out what follows."""
        continuation = Grouping(self.reader, self.grids)
        continuation.refilled, continuation.passed = set(self.refilled), self.passed
        if self.group is not None:
            group = self.group
            continuation.group = StepGroup(
                group.grid, [*group.steps], [*group.before], [*group.after], {*group.packed}, {*group.popped}
            )
        return continuation


def tile_grids(steps: list[TileStep]) -> dict[tirx.Buffer, Grid]:
    """Rows and columns of tiles of each DST value: those of the matrix product that it is used with, otherwise one row.

    Raises Unsupported if one value is used with products of different shapes.
    """
    leader: dict[tirx.Buffer, tirx.Buffer] = {}
    shape: dict[tirx.Buffer, Grid] = {}

    def root(value: tirx.Buffer) -> tirx.Buffer:
        while (above := leader[value]) is not value:
            # Shorten the path for later lookups.
            leader[value] = leader[above]
            value = above
        return value

    for step in steps:
        for operand in step.operands:
            leader.setdefault(operand.value, operand.value)
        first = root(step.operands[0].value)
        for operand in step.operands[1:]:
            linked = root(operand.value)
            if linked is not first:
                leader[linked] = first
                if linked in shape:
                    _meet(shape, first, shape[linked], step)
        if step.grid is not None:
            _meet(shape, first, step.grid, step)
    return {value: shape.get(root(value), (1, tiles_of(value))) for value in leader}


def _meet(shape: dict[tirx.Buffer, Grid], value: tirx.Buffer, grid: Grid, step: TileStep) -> None:
    if shape.setdefault(value, grid) != grid:
        raise Unsupported(
            "L007",
            f"{value.name} is {shape[value]} tiles in one matrix product and {grid} in another",
            hint="T.copy it to a buffer of the other shape",
            span=span_of(step.statement),
        )


def all_steps(body: list[tirx.Stmt], reader: StepReader) -> list[TileStep]:
    """The steps of a sequence and of the loops in it."""
    steps: list[TileStep] = []
    for statement in body:
        step = reader.step(statement)
        if step is not None:
            steps.append(step)
        else:
            steps += all_steps(reader.inside(statement), reader)
    return steps


def all_groups(
    body: list[tirx.Stmt], reader: StepReader, grids: dict[tirx.Buffer, Grid], turns: int = 1
) -> list[tuple[StepGroup, int]]:
    """The groups of a sequence and of the loops in it, with how often each runs."""
    groups: list[tuple[StepGroup, int]] = []
    for member in group_steps(body, reader, grids):
        if isinstance(member, StepGroup):
            groups.append((member, turns))
        elif isinstance(member, tirx.For) and reader.has_values(member):
            times = constant(member.extent)
            times = 1 if times is None else times
            groups += all_groups(reader.inside(member), reader, grids, turns * times)
    return groups
