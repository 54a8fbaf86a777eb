"""Write the sections of a group: acquire, load and compute, commit, wait, pack, release, for each part of a block."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

from tvm import ir, tirx

from ttexplore.analysis.dst_blocks import BlockPart, Index, SubBlock, plus, substituted, times
from ttexplore.analysis.engine_setup import operations
from ttexplore.ir.branches import branch_condition
from ttexplore.ir.build import arguments, constant, loop, number_of, op, op_name, variable, when, with_body
from ttexplore.ir.rewrite import inherit_places
from ttexplore.passes.insert_dst_management.groups import StepGroup
from ttexplore.passes.insert_dst_management.line import StraightLine
from ttexplore.passes.insert_dst_management.schedule import Fetch, Schedule, Section, SlotOperation
from ttexplore.passes.insert_dst_management.spills import RELOAD, SECTION, SLOTS, SPILL, Spill, SpillBuffers
from ttexplore.passes.insert_dst_management.steps import TileStep


def write_group(
    group: StepGroup, line: StraightLine, schedule: Schedule, shape: SubBlock, spilled: dict[tirx.Buffer, Spill],
    dst: tirx.Buffer, buffers: SpillBuffers,
) -> list[tirx.Stmt]:  # fmt: skip
    """The statements of a group: a loop over the parts of its block around the sections of the schedule.

    `spilled` gives the buffers of the values that come from outside and of those that leave.
    """
    block_part, around = BlockPart.loops(shape)
    source = group.steps[0].statement
    writer = _SectionWriter(line, schedule, block_part, spilled, dst, buffers, source)
    body: list[tirx.Stmt] = []
    for position, section in enumerate(schedule.sections):
        body += writer.section(position, section)
    return buffers.firings.made(SECTION, source, [*writer.waits(), *around(body)])


class _SectionWriter:
    def __init__(
        self, line: StraightLine, schedule: Schedule, block_part: BlockPart, spilled: dict[tirx.Buffer, Spill],
        dst: tirx.Buffer, buffers: SpillBuffers, source: tirx.Stmt,
    ) -> None:  # fmt: skip
        self.line, self.part, self.spilled, self.dst, self.buffers = line, block_part, spilled, dst, buffers
        self.firings, self.source = buffers.firings, source
        self.tiles = block_part.shape.tiles
        self.entering = {version: value for value, version in line.entering.items()}
        self.first: dict[int, tuple[int, int]] = {}
        self.last: dict[int, tuple[int, int]] = {}
        for index, section in enumerate(schedule.sections):
            for action_index, action in enumerate(section.actions):
                if isinstance(action, Fetch):
                    self.first.setdefault(action.value, (index, action_index))
                    self.last[action.value] = (index, action_index)
        self.lent: dict[int, tirx.Buffer] = {}

    def waits(self) -> list[tirx.Stmt]:
        """Waits before the first part for the values that are read and stay in their buffers."""
        spills = [self.spilled[self.entering[version]] for version in sorted(self.line.staying)]
        waits = [op("cb_wait_front", spill.cb, spill.shape.block_tiles) for spill in spills if not spill.waited]
        return self.firings.made(RELOAD, self.source, waits)

    def section(self, position: int, section: Section) -> list[tirx.Stmt]:
        body: list[tirx.Stmt] = [op("tile_regs_acquire")]
        together = self.together(section)
        for action_index, action in enumerate(section.actions):
            match action:
                case _ if action_index in together:
                    body += self.steps(section.actions[action_index : action_index + 2])
                case _ if action_index - 1 in together:
                    pass
                case Fetch():
                    body += self.firings.made(RELOAD, self.source, self.fetch(action, (position, action_index)))
                case SlotOperation():
                    body += self.steps([action])
        body.append(op("tile_regs_commit"))
        leaving = {version: value for value, version in self.line.leaving.items()}
        packs: list[tirx.Stmt] = []
        pushes: list[tirx.Stmt] = []
        for version, slot in section.stores:
            if version in leaving:
                spill = self.spilled[leaving[version]]
                packs += self.kept(*self.store(spill, slot))
                if spill.accumulates_from is None:
                    body += self.kept(op("cb_reserve_back", spill.cb, self.tiles))
                    pushes += self.kept(op("cb_push_back", spill.cb, self.tiles))
            if version in self.last:
                cb = self.lent[version] = self.buffers.borrow(self.line.owner[version], self.tiles)
                packs += self.kept(self.pack_part(cb, slot))
                body += self.kept(op("cb_reserve_back", cb, self.tiles))
                pushes += self.kept(op("cb_push_back", cb, self.tiles))
        body.append(op("tile_regs_wait"))
        for operation, slot in section.packs:
            body += self.steps([SlotOperation(operation, (slot,), None)])
        return [*body, *packs, op("tile_regs_release"), *pushes]

    def kept(self, *statements: tirx.Stmt) -> list[tirx.Stmt]:
        """Statements that spill a value to a circular buffer."""
        return self.firings.made(SPILL, self.source, statements)

    # Loads and stores

    def fetch(self, action: Fetch, position: tuple[int, int]) -> list[tirx.Stmt]:
        version, slot = action.value, action.slot
        maker = self.line.makers.get(version)
        if maker is not None:
            return self.step(maker, (), slot)
        if version in self.line.staying:
            first = self.part.first_in_parts()
            return [self.copy_part(self.spilled[self.entering[version]].cb, slot, first)]
        spill = self.spilled[self.entering[version]] if version in self.entering else None
        cb = self.lent[version] if spill is None else spill.cb
        copies: list[tirx.Stmt] = []
        if position == self.first[version]:
            copies.append(op("cb_wait_front", cb, self.tiles))
        copies.append(self.copy_part(cb, slot, 0))
        if position == self.last[version]:
            copies.append(op("cb_pop_front", cb, self.tiles))
            if spill is None:
                self.buffers.give_back(cb)
        if spill is None or spill.fresh is None:
            return copies
        later = when(spill.fresh.loop_var > 0, copies, self.source.span)
        inherit_places(spill.fresh.fill, [later])
        return [later]

    def copy_part(self, cb: tirx.Buffer, slot: int, first: Index) -> tirx.Stmt:
        t = variable("t")
        return loop(t, self.tiles, [op("copy_tile", cb, plus(t, first), self.dst, plus(t, slot * self.tiles))])

    def pack_part(self, cb: tirx.Buffer, slot: int) -> tirx.Stmt:
        t = variable("t")
        return loop(t, self.tiles, [op("pack_tile", self.dst, plus(t, slot * self.tiles), cb, t)])

    def store(self, spill: Spill, slot: int) -> list[tirx.Stmt]:
        """Pack a part into its circular buffer, or add it to what is there."""
        if spill.accumulates_from is None:
            return [self.pack_part(spill.cb, slot)]
        t = variable("t")
        target = plus(t, self.part.first_in_parts())
        later = tirx.Cast(ir.PrimType("int32"), spill.accumulates_from.loop_var > 0)
        adding = op("pack_l1_accumulate", later, span=self.source.span)
        inherit_places(spill.accumulates_from.fill, [adding])
        return [
            adding,
            loop(t, self.tiles, [op("pack_tile", self.dst, plus(t, slot * self.tiles), spill.cb, target)]),
            op("pack_l1_accumulate", 0),
        ]

    # Steps

    def together(self, section: Section) -> frozenset[int]:
        """The positions of the operations of the FPU that are followed by one of the SFPU, whose tiles take turns with
        theirs: while the SFPU works on a tile, the next two are unpacked."""
        return frozenset(
            position
            for position, (action, following) in enumerate(itertools.pairwise(section.actions))
            if self.tiles > 1
            and isinstance(following, SlotOperation)
            and self.line.steps[following.operation].op.engine == "sfpu"
            and (step := self.step_of(action)) is not None
            and _unpacks_both(step)
        )

    def step_of(self, action: Fetch | SlotOperation) -> TileStep | None:
        """The step that an action runs; None for a copy."""
        return (
            self.line.steps[action.operation]
            if isinstance(action, SlotOperation)
            else self.line.makers.get(action.value)
        )

    def steps(self, actions: Sequence[Fetch | SlotOperation]) -> list[tirx.Stmt]:
        """The steps of the actions on the current part, on one tile after another."""
        chosen: list[tuple[TileStep, tuple[int, ...], int | None]] = []
        for action in actions:
            if (step := self.step_of(action)) is not None:
                reads, writes = ((), action.slot) if isinstance(action, Fetch) else (action.reads, action.writes)
                chosen.append((step, reads, writes))
        if len(chosen) == 1:
            return self.step(*chosen[0])
        tiles = [self.tile(step, reads, writes) for step, reads, writes in chosen]
        lowered = self.part.each(lambda block_tile, part_tile: [tile(block_tile, part_tile) for tile in tiles])
        for step, _, _ in chosen:
            self.firings.made(SLOTS, step.statement, lowered)
            inherit_places(step.statement, lowered)
        return lowered

    def step(self, step: TileStep, reads: tuple[int, ...], writes: int | None) -> list[tirx.Stmt]:
        """A step on the current part, with its values in these slots."""
        if step.is_matmul:
            lowered = [self.product(step, writes)]
        else:
            make = self.tile(step, reads, writes)
            lowered = self.part.each(lambda block_tile, part_tile: [make(block_tile, part_tile)])
        self.firings.made(SLOTS, step.statement, lowered)
        inherit_places(step.statement, lowered)
        return lowered

    def product(self, step: TileStep, slot: int | None) -> tirx.Stmt:
        assert slot is not None
        in0, in1, a, b, _, _, transpose, _, _, depth = step.operation.arguments
        shape = self.part.shape
        first = plus(a, times(self.part.row, shape.rows * number_of(depth)))
        second = plus(b, times(self.part.column, shape.columns))
        base = slot * self.tiles
        product = op(
            "matmul_block", in0, in1, first, second, self.dst, base, transpose, shape.columns, shape.rows, depth
        )
        self.firings.made(SLOTS, step.operation.call, [product])
        if constant(step.statement.extent) == 1:
            return replaced(product, {step.variable: tirx.const(0, "int32")})
        return with_body(step.statement, [product])

    def tile(self, step: TileStep, reads: tuple[int, ...], writes: int | None) -> Callable[[Index, Index], tirx.Stmt]:
        """What makes the operation of a step on a tile, by its number in the block and its number in the part."""
        slots = iter(reads)
        slot_of = {o.position: next(slots) for o in step.operands if o.access == "read"}
        for operand in step.operands:
            if operand.access != "read":
                assert writes is not None
                slot_of[operand.position] = writes

        def tile(block_tile: Index, part_tile: Index) -> tirx.Stmt:
            values: list[Index] = []
            for position, value in enumerate(step.operation.arguments):
                if position in slot_of:
                    values += [self.dst, plus(part_tile, slot_of[position] * self.tiles)]
                elif position - 1 not in slot_of:
                    values.append(substituted(value, {step.variable: block_tile}))
            return self.firings.made(SLOTS, step.operation.call, [op(step.op.name, *values)])[0]

        return tile


def _unpacks_both(step: TileStep) -> bool:
    """Whether it is an operation of the FPU on two circular buffers: unpacking takes longer than computing."""
    return step.op.engine == "fpu" and bool(step.op.source_b) and not step.op.uninit and not step.is_matmul


def replaced(statement: tirx.Stmt, values: Mapping[ir.Var, Index]) -> tirx.Stmt:
    """A statement, and all statements in it, with variables replaced."""
    if isinstance(statement, tirx.For):
        nest = with_body(statement, _all_replaced(statement.body, values))
        if isinstance(nest.extent, tirx.IntImm):
            return nest
        # The verifier compares the condition of a branch, and what its names stand for, with that in the other kernels.
        extent = substituted(nest.extent, values, simplify=branch_condition(nest) is None)
        return tirx.For(
            nest.loop_var, nest.min, extent, nest.kind, nest.body, nest.thread_binding,
            nest.annotations, nest.step, nest.span,
        )  # fmt: skip
    if isinstance(statement, tirx.Bind):
        return tirx.Bind(statement.var, substituted(statement.value, values, simplify=False), statement.span)
    if isinstance(statement, tirx.IfThenElse):
        otherwise = None if statement.else_case is None else _all_replaced(statement.else_case, values)
        test, body = substituted(statement.condition, values), _all_replaced(statement.then_case, values)
        return when(test, body, statement.span, otherwise=otherwise)
    return op(op_name(statement)[3:], *[substituted(a, values) for a in arguments(statement)], span=statement.span)


def _all_replaced(body: tirx.Stmt, values: Mapping[ir.Var, Index]) -> list[tirx.Stmt]:
    return [replaced(statement, values) for statement in operations(body)]
