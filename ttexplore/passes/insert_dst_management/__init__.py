"""D5: assign DST slots to values; process blocks in sub-blocks and sections, and spill values between sections."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from tvm import ir, tirx

from ttexplore.analysis.dst_blocks import SubBlock, sub_blocks
from ttexplore.analysis.engine_setup import leave_out, set_up
from ttexplore.analysis.tile_graph import tile_graph_with
from ttexplore.errors import ResourceError, UsageError
from ttexplore.ir.adapter import identity, set_span, span_of, spans_of, to_tvm_spans
from ttexplore.ir.arithmetic.bounds import is_marked_empty
from ttexplore.ir.build import (
    allocation,
    arguments,
    buffer_of,
    op,
    op_name,
    scope_of,
    when,
    with_body,
    with_function_body,
)
from ttexplore.ir.names import DST
from ttexplore.ir.program import TirProgram
from ttexplore.ir.rewrite import Firings, Rule, walk
from ttexplore.ops.op import DST_SCOPE
from ttexplore.ops.protocol import CB_PUSH_BACK
from ttexplore.options import Epilogue
from ttexplore.passes.insert_dst_management.epilogue import last_turn_apart, without_single_turns
from ttexplore.passes.insert_dst_management.groups import (
    Grid,
    Grouping,
    SequencePart,
    StepGroup,
    all_groups,
    all_steps,
    group_steps,
    tile_grids,
)
from ttexplore.passes.insert_dst_management.lifetimes import sharing_notes, with_numbers
from ttexplore.passes.insert_dst_management.line import Entry, StraightLine, product_depth, straight_line
from ttexplore.passes.insert_dst_management.resident import can_stay, resident_loop, resident_stretches
from ttexplore.passes.insert_dst_management.schedule import Schedule, schedule
from ttexplore.passes.insert_dst_management.sections import write_group
from ttexplore.passes.insert_dst_management.spills import Fresh, Spill, SpillBuffers
from ttexplore.passes.insert_dst_management.steps import StepReader, TileStep, Touch, Touches
from ttexplore.passes.step import Pass
from ttexplore.passes.verify.normal_form import VALUES_SHARE_DST
from ttexplore.plan import CircularBuffer, Plan
from ttexplore.target import Target

_DST = Rule("the tiles of DST", "All values share the tiles of DST.")
_BETWEEN = Rule("buffer between iterations", "A value that a loop leaves for later waits in a buffer.")

# The cost of unpacking one tile for a product; most of it is hidden behind the multiplications.
_UNPACK_CYCLES = 4


def insert_dst_management(
    program: TirProgram,
    target: Target,
    *,
    epilogue: Epilogue,
    subblock: tuple[int, int] | None,
) -> TirProgram:
    """Assign DST slots to values, in sections that acquire, compute, commit, pack and release.

        for t in range(16):                          for s in range(4):
            tt.add_tiles(A, B, t, t, V[t])               tt.tile_regs_acquire()
        for t in range(16):                     ==>      for t in range(4):
            tt.pack_tile(V[t], C, t)                         tt.add_tiles(A, B, s * 4 + t, s * 4 + t, dst[t])
                                                         tt.tile_regs_commit(); tt.tile_regs_wait()
                                                         for t in range(4):
                                                             tt.pack_tile(dst[t], C, s * 4 + t)
                                                         tt.tile_regs_release()

    The inits are placed again, for the operations of the sections.
    """
    return set_up_sections(form_sections(program, target, epilogue=epilogue, subblock=subblock), target)


def form_sections(
    program: TirProgram,
    target: Target,
    *,
    epilogue: Epilogue,
    subblock: tuple[int, int] | None,
) -> TirProgram:
    """Form sections that acquire DST, compute, commit, pack and release.

        for t in range(16):                          for s in range(4):
            tt.add_tiles(A, B, t, t, V[t])               tt.tile_regs_acquire()
        for t in range(16):                     ==>      for t in range(4):
            tt.pack_tile(V[t], C, t)                         tt.add_tiles(A, B, s * 4 + t, s * 4 + t, dst[t])
                                                         tt.tile_regs_commit(); tt.tile_regs_wait()
                                                         for t in range(4):
                                                             tt.pack_tile(dst[t], C, s * 4 + t)
                                                         tt.tile_regs_release()

    A block is processed in sub-blocks that fit in DST. An accumulator that fits stays in DST for its whole loop; the
    partial sums of a larger one are spilled to a circular buffer between iterations. Where more values are alive than
    DST holds, the section ends: values that are needed later are spilled to circular buffers and reloaded right before
    their next use. Values that are never alive together share a buffer; if L1 has no room for all buffers, sub-blocks
    are smaller. The inits of the operations before are left out.

    `epilogue` determines where operations on the result of a loop run if its partial sums are spilled: ``fused`` peels
    off the last iteration of the loop, so that they find the result in DST; ``separate`` reloads the result. `subblock`
    is the shape (rows, columns), in tiles, in which matrix products are computed; by default the cheapest one.

    Where a core has too few circular buffers, or too little L1, for all buffers, those whose blocks are never there at
    the same time, or follow each other between two kernels, share one, as few of them as it takes.
    """
    assert program.plan.compute is not None
    function = program.functions["compute"]
    from_writer = [buffer.name for buffer in program.plan.buffers if buffer.producer == "writer"]
    reader = StepReader(from_writer, _passed_before(program))
    body = reader.body(function.body)
    management, function, buffers = _within_l1(program, body, reader, target, epilogue, subblock)
    compute = dataclasses.replace(
        program.plan.compute, reasons=(*program.plan.compute.reasons, *dict.fromkeys(management.reasons))
    )
    notes = (*program.plan.notes, *sharing_notes(buffers))
    plan = program.plan.replace(
        buffers=buffers, graph=tile_graph_with(program.plan.graph, buffers), compute=compute, notes=notes
    )  # fmt: skip
    firings = management.firings
    leave_out(program.functions["compute"], firings)
    return dataclasses.replace(program, plan=plan).with_functions({**program.functions, "compute": function}, firings)


def set_up_sections(program: TirProgram, target: Target) -> TirProgram:
    """Set the compute engine up again, for the operations of the sections.

        tt.tile_regs_acquire()                        tt.compute_startup(A, B, C)
        for t in range(4):                            tt.add_tiles_init(A, B)
            tt.add_tiles(A, B, t, t, dst[t])    ==>   tt.tile_regs_acquire()
        tt.tile_regs_commit()                         for t in range(4):
                                                          tt.add_tiles(A, B, t, t, dst[t])
                                                      tt.tile_regs_commit()

    As D4 does for the operations of C2: where another operation ran last, and outside of a loop where that suffices.
    """
    firings = Firings()
    compute = set_up(program.functions["compute"], program.plan, firings)
    return program.with_functions({**program.functions, "compute": compute}, firings)


def _passed_before(program: TirProgram) -> dict[str, int]:
    """For each circular buffer that the reader fills for the compute kernel: how many it fills for the writer before;
    those without any are left out."""
    consumers = {buffer.name: buffer.consumer for buffer in program.plan.buffers}
    passed_before: dict[str, int] = {}
    passed = 0
    for statement in walk(program.functions["reader"].body):
        if op_name(statement) == CB_PUSH_BACK.ir_name:
            name = buffer_of(arguments(statement)[0]).name
            if consumers[name] == "writer":
                passed += 1
            elif passed:
                passed_before.setdefault(name, passed)
    return passed_before


def _within_l1(
    program: TirProgram, body: list[tirx.Stmt], reader: StepReader, target: Target, epilogue: Epilogue,
    subblock: tuple[int, int] | None,
) -> tuple[_Management, tirx.PrimFunc, tuple[CircularBuffer, ...]]:  # fmt: skip
    """The management of DST, the kernel with it and all circular buffers, with sub-blocks small enough that the spill
    buffers fit in L1. Raises ResourceError if no sub-block is small enough."""
    plan, function = program.plan, program.functions["compute"]
    assert plan.compute is not None
    room, first = plan.compute.dst_tiles, None
    allocations = {
        identity(statement.buffer): statement for statement in body if isinstance(statement, tirx.AllocBuffer)
    }
    while True:
        management = _Management(reader, plan, target, epilogue, subblock, room, allocations)
        managed = _managed(function, management, management.function(body))
        try:
            functions = {**program.functions, "compute": managed}
            buffers = with_numbers((*plan.buffers, *management.spills.buffers), functions, target, plan.layouts)
        except ResourceError as error:
            first = first or error
            room = management.spills.largest_part - 1
            if room < 1 or subblock is not None:
                raise first from None
        else:
            if first is not None:
                management.reasons.append(f"sub-blocks of at most {room} tiles, because L1 has no room for larger ones")
            return management, managed, buffers


def _managed(function: tirx.PrimFunc, management: _Management, body: list[tirx.Stmt]) -> tirx.PrimFunc:
    """The kernel of these statements, with what D5 allocates instead of the values in DST."""
    statements = [
        statement
        for statement in body
        if not (isinstance(statement, tirx.AllocBuffer) and scope_of(statement.buffer) == DST_SCOPE)
    ]
    allocations = [statement for statement in statements if isinstance(statement, tirx.AllocBuffer)]
    rest = [statement for statement in statements if not isinstance(statement, tirx.AllocBuffer)]
    physical = [management.dst_allocation] if management.used_dst else []
    return with_function_body(function, [*allocations, *management.spills.allocations, *physical, *rest])


class _Management:
    """`room` is the number of tiles that a sub-block may have; `allocations` are those of the values."""

    def __init__(
        self,
        reader: StepReader,
        plan: Plan,
        target: Target,
        epilogue: Epilogue,
        subblock: tuple[int, int] | None,
        room: int,
        allocations: Mapping[int, tirx.AllocBuffer],
    ) -> None:
        assert plan.compute is not None
        self.reader = reader
        self.plan, self.target, self.compute = plan, target, plan.compute
        self.epilogue, self.subblock = epilogue, subblock
        self.capacity, self.room = plan.compute.dst_tiles, room
        self.firings = Firings()
        self.spills = SpillBuffers({named.name for named in (*plan.buffers, *plan.layouts)}, self.firings, allocations)
        dtype = "float32" if plan.compute.fp32_dest_acc_en else "bfloat16"
        self.dst_allocation = allocation(DST, (self.capacity, 32, 32), dtype, DST_SCOPE)
        self.firings.made(_DST, None, [self.dst_allocation])
        dst_allocations = [statement for statement in allocations.values() if scope_of(statement.buffer) == DST_SCOPE]
        for statement in dst_allocations:
            self.firings.made(_DST, statement, [])
        if spans := dict.fromkeys(span for statement in dst_allocations for span in spans_of(statement)):
            set_span(self.dst_allocation, to_tvm_spans(spans))
        self.dst = self.dst_allocation.buffer
        self.used_dst = False
        self.reasons: list[str] = []
        # Accumulators that are spilled, and whether the packer adds to them in L1.
        self.accumulated: dict[str, bool] = {}
        self.separated = False
        self.grids: dict[tirx.Buffer, Grid] = {}
        self.shapes: dict[Grid, SubBlock] = {}
        self.groups: list[tuple[StepGroup, int]] = []

    def function(self, body: list[tirx.Stmt]) -> list[tirx.Stmt]:
        steps = all_steps(body, self.reader)
        self.grids = tile_grids(steps)
        self.used_dst = bool(self.grids)
        self._check_subblock(steps)
        self.groups = all_groups(body, self.reader, self.grids)
        managed = self.body(body, {}, frozenset())
        self.reasons += self._without_effect(steps)
        return managed

    def _without_effect(self, steps: list[TileStep]) -> Iterator[str]:
        """The options that have no effect, and why."""
        if self.compute.accumulate == "l1":
            if not self.accumulated:
                yield "accumulate='l1' has no effect: no accumulator leaves DST between the iterations of a loop"
            for value, in_l1 in self.accumulated.items():
                if not in_l1:
                    yield f"{value} is reloaded despite accumulate='l1': its loop uses it more than once"
        if self.epilogue == "separate" and not self.separated:
            yield "epilogue='separate' has no effect: no loop has an operation on its result that could be fused"
        if self.subblock is not None and not any(step.is_matmul for step in steps):
            yield f"subblock={self.subblock} has no effect: the kernel has no matrix product"

    # Sequences

    def body(
        self, body: list[tirx.Stmt], spilled: dict[tirx.Buffer, Spill], live_after: frozenset[tirx.Buffer]
    ) -> list[tirx.Stmt]:
        """The statements of one sequence with their DST sections. `spilled` are the values that live in a circular
        buffer in this sequence, `live_after` those of them that are needed after it."""
        body = without_single_turns(body, self.reader, self.firings)
        stretches: Sequence[SequencePart] = body
        if self.subblock is None:
            stretches = resident_stretches(body, self.reader, spilled, self.dst, self.capacity, self.firings)
        remaining, fresh = self.without_first_fills(self.with_epilogues(stretches))
        members = group_steps(remaining, self.reader, self.grids)
        spilled = dict(spilled)
        touches = [self.touched(member) for member in members]
        local_cbs = self.spill_shared(members, touches, spilled, fresh)
        needed_later = _wanted_later(touches, live_after)
        managed: list[tirx.Stmt] = []
        for member, touch, later in zip(members, touches, needed_later, strict=True):
            if isinstance(member, StepGroup):
                live = {v for v in member.values if v in spilled and v in later}
                managed += self.group(member, spilled, live)
            elif isinstance(member, list):
                managed += member
            elif isinstance(member, tirx.For) and touch:
                managed += self.compound(member, touch, spilled, later)
            else:
                managed.append(member)
        for cb in local_cbs:
            self.spills.give_back(cb)
        return managed

    def touched(self, member: SequencePart | StepGroup) -> Touches:
        """How a part of a sequence uses its values; a finished section shares none with other parts."""
        if isinstance(member, list):
            return {}
        return (
            self.reader.touched(member.statements)
            if isinstance(member, StepGroup)
            else self.reader.seen(member).touches
        )

    def stays(self, statement: tirx.For) -> bool:
        """Whether the values of a loop stay in DST for the whole loop."""
        return self.subblock is None and can_stay(statement, self.reader, self.capacity)

    def compound(
        self, statement: tirx.For, touches: Touches, spilled: dict[tirx.Buffer, Spill], later: frozenset[tirx.Buffer]
    ) -> list[tirx.Stmt]:
        inner = self.reader.inside(statement)
        needed = frozenset(v for v in touches if v in spilled and v in later)
        if self.stays(statement):
            managed = resident_loop(statement, self.reader, spilled, needed, self.dst, self.firings)
            for value in touches:
                if value in spilled:
                    spilled[value] = dataclasses.replace(spilled[value], fresh=None, in_l1=False)
            return managed
        live = needed | {v for v, touch in touches.items() if v in spilled and touch.first == "read"}
        here: dict[tirx.Buffer, Spill] = {}
        for value, spill in sorted(((v, spilled[v]) for v in touches if v in spilled), key=_number):
            starts_here = spill.fresh is not None and spill.fresh.loop_var.same_as(statement.loop_var)
            here[value] = spill if starts_here else dataclasses.replace(spill, fresh=None)
        inside = self.reader.touched(inner) if is_marked_empty(statement) else touches
        waits: list[tirx.Stmt] = []
        again: list[tirx.Stmt] = []
        for value, touch in touches.items():
            if value in live and not touch.changes and not here[value].waited:
                # All iterations read the same block.
                waits.append(op("cb_wait_front", here[value].cb, here[value].shape.block_tiles))
                here[value] = dataclasses.replace(here[value], waited=True)
            if value in needed and inside[value].first == "write":
                # Each iteration produces a new block; the one of the previous iteration is discarded.
                cb, tiles = spilled[value].cb, spilled[value].shape.block_tiles
                again += [op("cb_wait_front", cb, tiles), op("cb_pop_front", cb, tiles)]
        # If the loop may run zero iterations, there is a block before the first one, too.
        discarded: Sequence[tirx.Stmt] = again
        if again and not is_marked_empty(statement):
            discarded = [when(statement.loop_var > statement.min, again)]
        managed: list[tirx.Stmt] = [*waits, with_body(statement, [*discarded, *self.body(inner, here, live)])]
        for value, spill in here.items():
            tiles = spill.shape.block_tiles
            if spill.in_l1 and spill.fresh is not None and spill.fresh.loop_var.same_as(statement.loop_var):
                managed = [op("cb_reserve_back", spill.cb, tiles), *managed, op("cb_push_back", spill.cb, tiles)]
            if value in live and value not in needed:
                # The last iteration leaves a block for a next one that does not come.
                managed += [op("cb_wait_front", spill.cb, tiles), op("cb_pop_front", spill.cb, tiles)]
            spilled[value] = dataclasses.replace(spilled[value], fresh=None, in_l1=False)
        return self.firings.made(_BETWEEN, statement, managed)

    def without_first_fills(self, body: Sequence[SequencePart]) -> tuple[list[SequencePart], dict[tirx.Buffer, Fresh]]:
        """`body` without zero fills before a loop that adds products, and that loop for each such value: the
        first iteration, which must exist, loads nothing. A value that `body` used before, for instance in a peeled
        iteration of a loop, is still filled."""
        fresh: dict[tirx.Buffer, Fresh] = {}
        remaining: list[SequencePart] = []
        positions: dict[tirx.Buffer, list[int]] = {}
        for position, statement in enumerate(body):
            for value in self.touched(statement):
                positions.setdefault(value, []).append(position)
        for position, statement in enumerate(body):
            step = None if isinstance(statement, list) else self.reader.step(statement)
            if step is not None and step.fills_with_zero:
                value = step.target
                is_new, later = positions[value][0] == position, positions[value][1:2]
                loop = body[later[0]] if is_new and later else None
                if isinstance(loop, tirx.For) and self.reader.step(loop) is None and not is_marked_empty(loop):
                    inside = self.reader.inside(loop)
                    first = self.reader.step(next(nested for nested in inside if value in self.touched(nested)))
                    if first is not None and first.is_matmul:
                        assert step is not None
                        fresh[value] = Fresh(loop.loop_var, step.statement)
                        continue
            remaining.append(statement)
        return remaining, fresh

    def with_epilogues(self, body: Sequence[SequencePart]) -> list[SequencePart]:
        """`body` with the last iteration peeled off each loop whose result later statements can find in DST."""
        peeled: list[SequencePart] = []
        grouping = Grouping(self.reader, self.grids)
        waiting: list[SequencePart] = []
        # How the waiting statements use each value first: one entry per statement, the next one last.
        upcoming: dict[tirx.Buffer, list[str]] = {}

        def put(member: SequencePart) -> None:
            waiting.append(member)
            for value, touch in self.touched(member).items():
                upcoming.setdefault(value, []).append(touch.first)

        for member in reversed(body):
            put(member)
        while waiting:
            statement = waiting.pop()
            values = [*self.touched(statement)]
            for value in values:
                upcoming[value].pop()
            pieces: Sequence[SequencePart] = [statement]
            nest = statement if isinstance(statement, tirx.For) and values else None
            if nest is not None and self.reader.step(nest) is None and not self.stays(nest):
                apart = last_turn_apart(nest, reversed(waiting), grouping, self.firings)
                results = [value for value in values if upcoming[value][-1:] == ["read"]]
                names = ", ".join(str(value.name) for value in results)
                if apart is None:
                    if results:
                        self.reasons.append(f"epilogue of {names} separate: other work comes before it")
                elif self.epilogue == "separate":
                    self.separated = True
                    self.reasons.append(f"epilogue of {names} separate, as requested: the result is reloaded")
                else:
                    self.reasons.append(
                        f"epilogue of {names} fused: the last iteration of {nest.loop_var.name} leaves it in DST"
                    )
                    pieces = apart
            peeled.append(pieces[0])
            grouping.add(pieces[0])
            for member in reversed(pieces[1:]):
                put(member)
        return peeled

    # Values that several groups or loops use

    def spill_shared(
        self, members: Sequence[SequencePart | StepGroup], touches: list[Touches], spilled: dict[tirx.Buffer, Spill],
        fresh: dict[tirx.Buffer, Fresh],
    ) -> list[tirx.Buffer]:  # fmt: skip
        """Give a circular buffer to each value that a group or loop of this sequence needs from another one. Returns
        the buffers, which are local to the sequence. A later value may reuse the buffer of a value that is dead. Nested
        sequences may not, because they may run before that value dies."""
        local_values: list[tirx.Buffer] = []
        handed_on: list[tirx.Buffer] = []
        # The first and the last group or loop that uses each value; a finished section shares none.
        lives: dict[tirx.Buffer, tuple[int, int]] = {}
        read_values: set[tirx.Buffer] = set()
        loops: dict[ir.Var, tirx.For] = {}
        for position, (member, touch) in enumerate(zip(members, touches, strict=True)):
            if not isinstance(member, StepGroup | tirx.For):
                continue
            for value, use in touch.items():
                lives[value] = (lives.get(value, (position, position))[0], position)
                if use.first == "read":
                    read_values.add(value)
            if isinstance(member, tirx.For):
                loops[member.loop_var] = member
        for value, (first, _) in lives.items():
            if value not in spilled and value in read_values:
                shape = self.shape(self.grids[value])
                reason = f"{value.name} is {shape.block_tiles} tiles, DST holds {self.capacity}"
                if shape.block_tiles <= self.capacity:
                    reason = f"{value.name} is spilled while other work uses DST"
                for dead in [candidate for candidate in local_values if lives[candidate][1] < first]:
                    local_values.remove(dead)
                    handed_on.append(spilled[dead].cb)
                spilled[value] = self.spills.block(value, shape, reason, handed_on)
                local_values.append(value)
            if value in fresh:
                once = (
                    sum(value in self.touched(nested) for nested in self.reader.inside(loops[fresh[value].loop_var]))
                    == 1
                )
                in_l1 = self.compute.accumulate == "l1" and once
                self.accumulated[str(value.name)] = in_l1
                spilled[value] = dataclasses.replace(spilled[value], fresh=fresh[value], in_l1=in_l1)
        return [*(spilled[value].cb for value in local_values), *handed_on]

    def shape(self, grid: Grid) -> SubBlock:
        """How blocks of this grid are cut into the parts that follow each other in the buffers of values that are
        spilled. Parts of one row, or of whole rows, leave the tiles in their order, so that each group may have parts
        of its own size; other parts must be the same for all groups."""
        if grid not in self.shapes:
            groups = [(group, times) for group, times in self.groups if group.grid == grid]
            holders = Counter(value for group, _ in groups for value in group.values)
            shared = [value for value, number in holders.items() if number > 1]
            lines = [
                (straight_line(group.steps, self.entries(group, shared), frozenset(shared)), times)
                for group, times in groups
            ]
            cycles, shape = self.cheapest(grid, lines)
            if not shape.is_linear and self.subblock is None:
                in_order_cycles = sum(self.cheapest(grid, [line], in_order=True)[0] for line in lines)
                shape = SubBlock(*grid, 1, 1) if in_order_cycles < cycles else shape
            self.shapes[grid] = shape
        return self.shapes[grid]

    def cheapest(
        self, grid: Grid, lines: list[tuple[StraightLine, int]], *, in_order: bool = False
    ) -> tuple[float, SubBlock]:  # fmt: skip
        """The sub-block that takes the fewest cycles for all lines, and these; among equals the largest, then the
        widest. With `in_order`, only those whose parts leave the tiles in their order."""
        asked = self.subblock if any(step.is_matmul for line, _ in lines for step in line.steps) else None
        best: tuple[tuple[float, int, int], SubBlock] | None = None
        # The schedule depends on the number of tiles of a sub-block, not on its shape.
        schedules: dict[tuple[int, int], Schedule | None] = {}
        for shape in sub_blocks(grid, self.room):
            if (asked is not None and (shape.rows, shape.columns) != asked) or (in_order and not shape.is_linear):
                continue
            cost = 0
            for number, (line, times) in enumerate(lines):
                key = (number, shape.tiles)
                if key not in schedules:
                    schedules[key] = self.schedule(line, shape)
                scheduled = schedules[key]
                if scheduled is None:
                    break
                products = sum(
                    product_depth(step) * min(shape.rows * (shape.columns + 1), shape.columns * (shape.rows + 1))
                    for step in line.steps
                    if step.is_matmul
                )
                once = scheduled.section_cycles + _UNPACK_CYCLES * products
                cost += times * shape.turns * (scheduled.cycles * shape.tiles + once)
            else:
                rank = (cost, -shape.tiles, -shape.columns)
                if best is None or rank < best[0]:
                    best = (rank, shape)
        if best is None:
            line = lines[0][0]
            raise ResourceError(
                "R003",
                f"{line.slots_needed} values of {asked[0]}x{asked[1]} tiles are alive at once; DST holds "
                f"{self.capacity} tiles"
                if asked
                else f"DST holds {self.capacity} tiles, too few for one operation",
                hint="use a smaller subblock" if asked else "use dst_full_sync",
                span=span_of(line.steps[0].statement),
            )
        return best[0][0], best[1]

    def schedule(self, line: StraightLine, shape: SubBlock) -> Schedule | None:
        outputs = frozenset(line.leaving.values())
        return schedule(line.operations, line.sources, outputs, self.capacity // shape.tiles, shape.tiles)

    # One group

    def group(
        self, group: StepGroup, spilled: dict[tirx.Buffer, Spill], live: Collection[tirx.Buffer]
    ) -> list[tirx.Stmt]:
        entries = self.entries(group, spilled)
        for value in entries:
            spill = spilled[value]
            if spill.fresh is not None:
                entries[value] = "added_in_l1" if spill.in_l1 else "buffer_or_zero"
        line = straight_line(group.steps, entries, live)
        shapes = [spilled[value].shape for value in group.values if value in spilled]
        shape = shapes[0] if shapes else None
        if shape is None or (shape.is_linear and self.subblock is None):
            shape = self.cheapest(group.grid, [(line, 1)], in_order=shape is not None)[1]
        scheduled = self.schedule(line, shape)
        assert scheduled is not None
        if scheduled.spilled:
            names = ", ".join(dict.fromkeys(str(line.owner[value].name) for value in scheduled.spilled))
            self.reasons.append(
                f"{len(scheduled.sections)} sections per sub-block of {shape.rows}x{shape.columns} tiles: DST holds "
                f"{self.capacity} tiles; {names} are spilled to circular buffers"
            )
        sections = write_group(group, line, scheduled, shape, spilled, self.dst, self.spills)
        for value in entries:
            # Once loaded, a value is in its buffer from now on.
            spilled[value] = dataclasses.replace(spilled[value], fresh=None)
        return [*group.before, *sections, *group.after]

    def entries(self, group: StepGroup, spilled: Collection[tirx.Buffer]) -> dict[tirx.Buffer, Entry]:
        """The values that a group reads from buffers."""
        touches = self.touched(group)
        return {value: "buffer" for value, touch in touches.items() if value in spilled and touch.first == "read"}

    def _check_subblock(self, steps: list[TileStep]) -> None:
        """Raise UsageError or ResourceError if the requested sub-block does not fit the matrix products."""
        if self.subblock is None:
            return
        rows, columns = self.subblock
        for step in steps:
            if step.grid is None:
                continue
            fitting = ", ".join(f"({s.rows}, {s.columns})" for s in sub_blocks(step.grid, self.capacity))
            if step.grid[0] % rows or step.grid[1] % columns:
                raise UsageError(
                    "U010",
                    f"sub-blocks of {rows}x{columns} tiles do not divide the block of {step.grid[0]}x{step.grid[1]}",
                    hint=f"use one of {fitting}",
                    span=span_of(step.statement),
                )
            if rows * columns > self.capacity:
                raise ResourceError(
                    "R003",
                    f"a sub-block of {rows}x{columns} tiles is {rows * columns} tiles; DST holds {self.capacity}",
                    hint=f"use one of {fitting}",
                    span=span_of(step.statement),
                )


def _number(value_spill: tuple[tirx.Buffer, Spill]) -> int:
    return value_spill[1].number


def _wanted_later(touches: list[Touches], live_after: frozenset[tirx.Buffer]) -> list[frozenset[tirx.Buffer]]:
    """For each part of a sequence: which of its values are read after it before they are written."""
    needed_later: list[frozenset[tirx.Buffer]] = []
    next_touch: dict[tirx.Buffer, Touch] = {}
    for touch in reversed(touches):
        needed_later.append(frozenset(
            value for value in touch
            if (next_touch[value].first == "read" if value in next_touch else value in live_after)
        ))  # fmt: skip
        next_touch |= {value: use for value, use in touch.items() if use.first != "may_write"}
    return needed_later[::-1]


PARTS: tuple[Pass, ...] = (
    Pass("D5.1", "kernels", form_sections, establishes=(VALUES_SHARE_DST,)),
    Pass("D5.2", "kernels", set_up_sections, requires=(VALUES_SHARE_DST,), ends=(VALUES_SHARE_DST,)),
)
