"""Writing the sections of a group: acquire, load and compute, commit, wait, pack, release, part by part of a block."""

from __future__ import annotations

from typing import Any

from tvm import ir, tirx

from ttexplore.ir.build import arguments, loop, op, op_name, variable, when, with_body
from ttexplore.passes.dst.blocks import Part, SubBlock, plus, substituted, times
from ttexplore.passes.dst.groups import Group
from ttexplore.passes.dst.line import Line
from ttexplore.passes.dst.schedule import Fetch, Run, Schedule, Section
from ttexplore.passes.dst.spills import RELOAD, SECTION, SLOTS, SPILL, Spill, SpillBuffers
from ttexplore.passes.dst.steps import Step
from ttexplore.passes.engine_setup import operations


def write_group(
    group: Group, line: Line, schedule: Schedule, shape: SubBlock, spilled: dict[Any, Spill], dst: Any,
    buffers: SpillBuffers,
) -> list[Any]:  # fmt: skip
    """The statements of a group: a loop over the parts of its block around the sections of the schedule.

    `spilled` says where values that come from outside are, and where those that leave go.
    """
    part, around = Part.loops(shape)
    source = group.steps[0].statement
    writer = _Writer(line, schedule, part, spilled, dst, buffers, source)
    body: list[Any] = []
    for number, section in enumerate(schedule.sections):
        body += writer.section(number, section)
    return buffers.firings.made(SECTION, source, [*writer.waits(), *around(body)])


class _Writer:
    def __init__(
        self, line: Line, schedule: Schedule, part: Part, spilled: dict[Any, Spill], dst: Any, buffers: SpillBuffers,
        source: Any,
    ) -> None:  # fmt: skip
        self.line, self.part, self.spilled, self.dst, self.buffers = line, part, spilled, dst, buffers
        self.firings, self.source = buffers.firings, source
        self.tiles = part.shape.tiles
        self.entering = {number: value for value, number in line.entering.items()}
        self.first: dict[int, tuple[int, int]] = {}
        self.last: dict[int, tuple[int, int]] = {}
        for index, section in enumerate(schedule.sections):
            for place, action in enumerate(section.actions):
                if isinstance(action, Fetch):
                    self.first.setdefault(action.value, (index, place))
                    self.last[action.value] = (index, place)
        self.lent: dict[int, Any] = {}

    def waits(self) -> list[Any]:
        """What must have arrived before the first part, because it is looked at and stays."""
        found = [self.spilled[self.entering[number]] for number in sorted(self.line.staying)]
        waits = [op("cb_wait_front", spill.cb, spill.shape.block_tiles) for spill in found if not spill.waited]
        return self.firings.made(RELOAD, self.source, waits)

    def section(self, number: int, section: Section) -> list[Any]:
        made: list[Any] = [op("tile_regs_acquire")]
        for place, action in enumerate(section.actions):
            match action:
                case Fetch():
                    made += self.firings.made(RELOAD, self.source, self.fetch(action, (number, place)))
                case Run():
                    made.append(self.step(self.line.steps[action.operation], action.reads, action.writes))
        made.append(op("tile_regs_commit"))
        leaving = {version: value for value, version in self.line.leaving.items()}
        packs: list[Any] = []
        pushes: list[Any] = []
        for version, slot in section.stores:
            if version in leaving:
                spill = self.spilled[leaving[version]]
                packs += self.kept(*self.store(spill, slot))
                if not self.accumulates(spill):
                    made += self.kept(op("cb_reserve_back", spill.cb, self.tiles))
                    pushes += self.kept(op("cb_push_back", spill.cb, self.tiles))
            if version in self.last:
                cb = self.lent[version] = self.buffers.borrow(self.line.owner[version], self.tiles)
                packs += self.kept(self.pack_part(cb, slot))
                made += self.kept(op("cb_reserve_back", cb, self.tiles))
                pushes += self.kept(op("cb_push_back", cb, self.tiles))
        made.append(op("tile_regs_wait"))
        made += [self.step(self.line.steps[operation], (slot,), None) for operation, slot in section.packs]
        return [*made, *packs, op("tile_regs_release"), *pushes]

    def kept(self, *made: Any) -> list[Any]:
        """What moves a value to a circular buffer."""
        return self.firings.made(SPILL, self.source, made)

    # Loads and stores

    def fetch(self, action: Fetch, place: tuple[int, int]) -> list[Any]:
        version, slot = action.value, action.slot
        maker = self.line.makers.get(version)
        if maker is not None:
            return [self.step(maker, (), slot)]
        if version in self.line.staying:
            first = self.part.first_in_parts()
            return [self.copy_part(self.spilled[self.entering[version]].cb, slot, first)]
        spill = self.spilled[self.entering[version]] if version in self.entering else None
        cb = self.lent[version] if spill is None else spill.cb
        made: list[Any] = []
        if place == self.first[version]:
            made.append(op("cb_wait_front", cb, self.tiles))
        made.append(self.copy_part(cb, slot, 0))
        if place == self.last[version]:
            made.append(op("cb_pop_front", cb, self.tiles))
            if spill is None:
                self.buffers.give_back(cb)
        return made if spill is None or spill.fresh is None else [when(spill.fresh > 0, made)]

    def copy_part(self, cb: Any, slot: int, first: Any) -> Any:
        t = variable("t")
        return loop(t, self.tiles, [op("copy_tile", cb, plus(t, first), self.dst, plus(t, slot * self.tiles))])

    def pack_part(self, cb: Any, slot: int) -> Any:
        t = variable("t")
        return loop(t, self.tiles, [op("pack_tile", self.dst, plus(t, slot * self.tiles), cb, t)])

    @staticmethod
    def accumulates(spill: Spill) -> bool:
        return spill.in_l1 and spill.fresh is not None

    def store(self, spill: Spill, slot: int) -> list[Any]:
        """Put a part into its circular buffer, or add it there."""
        if not self.accumulates(spill):
            return [self.pack_part(spill.cb, slot)]
        t = variable("t")
        target = plus(t, self.part.first_in_parts())
        return [
            op("pack_l1_accumulate", tirx.Cast(ir.PrimType("int32"), spill.fresh > 0)),
            loop(t, self.tiles, [op("pack_tile", self.dst, plus(t, slot * self.tiles), spill.cb, target)]),
            op("pack_l1_accumulate", 0),
        ]

    # Steps

    def step(self, step: Step, reads: tuple[int, ...], writes: int | None) -> Any:
        """A step on the current part, with its values in these slots."""
        made = self.product(step, writes) if step.is_matmul else self.tile_loop(step, reads, writes)
        return self.firings.made(SLOTS, step.statement, [made])[0]

    def product(self, step: Step, slot: int | None) -> Any:
        assert slot is not None
        in0, in1, a, b, _, _, transpose, _, _, depth = step.operation.arguments
        shape = self.part.shape
        a = plus(a, times(self.part.row, shape.rows * int(depth.value)))
        b = plus(b, times(self.part.column, shape.columns))
        base = slot * self.tiles
        made = op("matmul_block", in0, in1, a, b, self.dst, base, transpose, shape.columns, shape.rows, depth)
        self.firings.made(SLOTS, step.operation.call, [made])
        if int(step.statement.extent.value) == 1:
            return replaced(made, {step.variable: tirx.const(0, "int32")})
        return with_body(step.statement, [made])

    def tile_loop(self, step: Step, reads: tuple[int, ...], writes: int | None) -> Any:
        slots = iter(reads)
        given = {o.position: next(slots) for o in step.operands if o.access == "read"}
        for operand in step.operands:
            if operand.access != "read":
                assert writes is not None
                given[operand.position] = writes

        def tile(block_tile: Any, part_tile: Any) -> Any:
            values = list(step.operation.arguments)
            for position, slot in given.items():
                values[position], values[position + 1] = self.dst, plus(part_tile, slot * self.tiles)
            for position, value in enumerate(values):
                if position - 1 not in given and position not in given:
                    values[position] = substituted(value, {step.variable: block_tile})
            return self.firings.made(SLOTS, step.operation.call, [op(step.op.name, *values)])[0]

        return self.part.each(tile)


def replaced(statement: Any, values: dict[Any, Any]) -> Any:
    """A statement, loops and all, with variables replaced."""
    if isinstance(statement, tirx.For):
        made = with_body(statement, _all_replaced(statement.body, values))
        if isinstance(made.extent, tirx.IntImm):
            return made
        return tirx.For(
            made.loop_var, made.min, substituted(made.extent, values), made.kind, made.body, made.thread_binding,
            made.annotations, made.step, made.span,
        )  # fmt: skip
    if isinstance(statement, tirx.Bind):
        return tirx.Bind(statement.var, substituted(statement.value, values), statement.span)
    if isinstance(statement, tirx.IfThenElse):
        otherwise = None if statement.else_case is None else _all_replaced(statement.else_case, values)
        test, body = substituted(statement.condition, values), _all_replaced(statement.then_case, values)
        return when(test, body, statement.span, otherwise=otherwise)
    return op(op_name(statement)[3:], *[substituted(a, values) for a in arguments(statement)], span=statement.span)


def _all_replaced(body: Any, values: dict[Any, Any]) -> list[Any]:
    return [replaced(one, values) for one in operations(body)]
