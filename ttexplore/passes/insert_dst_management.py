"""D5: values get slots of DST, blocks larger than DST are worked off in sub-blocks."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from tvm import ir, tirx

from ttexplore.errors import ResourceError
from ttexplore.ir.adapter import span_of
from ttexplore.ir.build import (
    allocation,
    arguments,
    constant,
    dtype_of,
    loop,
    op,
    op_name,
    scope_of,
    statements,
    variable,
    when,
    with_body,
    with_function_body,
)  # fmt: skip
from ttexplore.ir.program import Program
from ttexplore.ir.rewrite import stamp, walk
from ttexplore.ops import OPS
from ttexplore.passes.build_tile_dfg import number_buffers, tile_graph_with
from ttexplore.passes.insert_compute_init import initialise, strip_inits
from ttexplore.passes.propagate_tt_layout import check_l1
from ttexplore.plan import FORMAT_OF_DTYPE, CircularBuffer, Plan
from ttexplore.target import Target

AccessKind = Literal["read", "write"]


def insert_dst_management(program: Program, target: Target) -> Program:
    """Give each value slots of DST, in sections that acquire, compute, commit, pack and release.

        for t in range(16):                          for s in range(4):
            tt.add_tiles(A, B, t, t, V[t])               tt.tile_regs_acquire()
        for t in range(16):                     ==>      for t in range(4):
            tt.pack_tile(V[t], C, t)                         tt.add_tiles(A, B, s * 4 + t, s * 4 + t, dst[t])
                                                         tt.tile_regs_commit(); tt.tile_regs_wait()
                                                         for t in range(4):
                                                             tt.pack_tile(dst[t], C, s * 4 + t)
                                                         tt.tile_regs_release()

    A section holds as many tiles as fit DST. An accumulator that fits stays in DST through its whole loop; a larger
    one keeps its partial sums in a circular buffer of its own between the turns.
    """
    assert program.plan.compute is not None
    compute = with_function_body(
        program.functions["compute"], strip_inits(statements(program.functions["compute"].body))
    )
    manager = _Manager(program.plan, program.plan.compute.dst_tiles)
    body = manager.body(statements(compute.body), {}, frozenset())
    kept = [one for one in body if not (isinstance(one, tirx.AllocBuffer) and scope_of(one.buffer) == "tt.dst")]
    allocations = [one for one in kept if isinstance(one, tirx.AllocBuffer)]
    rest = [one for one in kept if not isinstance(one, tirx.AllocBuffer)]
    physical = [manager.dst_allocation] if manager.used_dst else []
    made = with_function_body(compute, [*allocations, *manager.allocations, *physical, *rest])
    buffers = number_buffers((*program.plan.buffers, *manager.buffers), target)
    check_l1(buffers, target, program.plan.layouts)
    plan = program.plan.replace(buffers=buffers, graph=tile_graph_with(program.plan.graph, buffers))
    return Program({**program.functions, "compute": initialise(made, plan)}, plan, program.source)


@dataclass(frozen=True)
class Spill:
    """A value kept in a circular buffer between sections, in sub-blocks of `rows` x `columns` tiles of its block.

    `fresh` is the loop variable in whose first turn there is nothing to load yet; `in_l1` says that the packer
    accumulates in L1, so that nothing is ever loaded in the loop.
    """

    cb: Any
    shape: SubBlock
    fresh: Any = None
    in_l1: bool = False


@dataclass(frozen=True)
class SubBlock:
    """A block of `block_rows` x `block_columns` tiles cut into parts of `rows` x `columns`."""

    block_rows: int
    block_columns: int
    rows: int
    columns: int

    @property
    def tiles(self) -> int:
        return self.rows * self.columns

    @property
    def block_tiles(self) -> int:
        return self.block_rows * self.block_columns


@dataclass(frozen=True)
class Step:
    """One operation over the tiles of a block: a tile loop around `call`, or the loop of a matrix product."""

    statement: Any
    call: Any
    variable: Any
    tiles: int
    packs: bool

    @property
    def is_matmul(self) -> bool:
        return op_name(self.call) == "tt.matmul_block"


@dataclass
class Group:
    """Steps that share their sections, and the protocol calls around them."""

    steps: list[Step] = field(default_factory=list[Step])
    before: list[Any] = field(default_factory=list[Any])
    after: list[Any] = field(default_factory=list[Any])
    values: dict[Any, None] = field(default_factory=dict[Any, None])
    packed: set[str] = field(default_factory=set[str])
    only_fills: bool = False


def dst_operands(call: Any) -> list[tuple[Any, Any, str, int]]:
    """The DST operands of an operation: buffer, index, access, position of the buffer among the arguments."""
    found: list[tuple[Any, Any, str, int]] = []
    known = OPS.get(op_name(call))
    if known is None:
        return found
    values, position = arguments(call), 0
    for operand in known.operands:
        if operand.kind == "dst":
            found.append((values[position], values[position + 1], operand.access, position))
            position += 1
        position += 1
    return found


def values_in(statement: Any) -> list[Any]:
    """The DST values that a statement touches, in order, each once."""
    found: dict[Any, None] = {}
    for inner in walk(statement):
        for buffer, _, _, _ in dst_operands(inner):
            found[buffer] = None
    return list(found)


def as_step(statement: Any) -> Step | None:
    """The tile loop or matrix product that a statement is, else None."""
    if not isinstance(statement, tirx.For):
        return None
    inner = statements(statement.body)
    extent = constant(statement.extent)
    if len(inner) != 1 or extent is None or not dst_operands(inner[0]):
        return None
    call = inner[0]
    if op_name(call) == "tt.matmul_block":
        columns, rows = (constant(value) or 0 for value in arguments(call)[7:9])
        return Step(statement, call, statement.loop_var, rows * columns, False)
    return Step(statement, call, statement.loop_var, extent, op_name(call) == "tt.pack_tile")


def first_access(body: list[Any], value: Any) -> AccessKind | None:
    """How a body touches a value first: reads what it held, or writes it whole."""
    for statement in body:
        for inner in walk(statement):
            for buffer, _, access, _ in dst_operands(inner):
                if buffer.same_as(value):
                    return "write" if access == "write" else "read"
    return None


class _Manager:
    def __init__(self, plan: Plan, capacity: int) -> None:
        assert plan.compute is not None
        self.plan, self.capacity = plan, capacity
        self.in_l1 = plan.compute.accumulate == "l1"
        self.buffers: list[CircularBuffer] = []
        self.allocations: list[Any] = []
        self.names = {buffer.name for buffer in plan.buffers}
        dtype = "float32" if plan.compute.fp32_dest_acc_en else "bfloat16"
        self.dst_allocation = allocation("dst", (capacity, 32, 32), dtype, "tt.dst")
        self.dst = self.dst_allocation.buffer
        self.used_dst = False

    # Sequences

    def body(self, body: list[Any], spilled: dict[Any, Spill], live_after: frozenset[Any]) -> list[Any]:
        """The statements of one sequence with their DST sections. `spilled` are values that live in a circular
        buffer here, `live_after` those of them that are still wanted after the sequence."""
        parts = self.resident(body, spilled)
        groups = self.groups(parts)
        spilled = dict(spilled)
        self.spill_shared(groups, spilled)
        made: list[Any] = []
        for position, part in enumerate(groups):
            rest = [inner for later in groups[position + 1 :] for inner in _statements_of(later)]
            if isinstance(part, Group):
                live = {v for v in part.values if v in spilled and _live(rest, v, live_after)}
                made += self.group(part, spilled, live, rest)
            elif isinstance(part, list):
                made += part
            elif isinstance(part, tirx.For) and values_in(part):
                made += self.compound(part, spilled, rest, live_after)
            else:
                made.append(part)
        return made

    def compound(
        self, statement: Any, spilled: dict[Any, Spill], rest: list[Any], live_after: frozenset[Any]
    ) -> list[Any]:
        inner = statements(statement.body)
        live = frozenset(
            value for value in values_in(statement)
            if value in spilled and (_live(rest, value, live_after) or first_access(inner, value) == "read")
        )  # fmt: skip
        here = {v: s if s.fresh is None or s.fresh.same_as(statement.loop_var) else dataclasses.replace(s, fresh=None)
                for v, s in spilled.items()}  # fmt: skip
        made: list[Any] = [with_body(statement, self.body(inner, here, live))]
        for value, spill in here.items():
            if spill.in_l1 and spill.fresh is not None and spill.fresh.same_as(statement.loop_var):
                tiles = spill.shape.block_tiles
                made = [op("cb_reserve_back", spill.cb, tiles), *made, op("cb_push_back", spill.cb, tiles)]
            if value in live and not _live(rest, value, live_after):
                # The last turn leaves a block behind for a next one that does not come.
                tiles = spill.shape.block_tiles
                made += [op("cb_wait_front", spill.cb, tiles), op("cb_pop_front", spill.cb, tiles)]
            spilled[value] = dataclasses.replace(spill, fresh=None, in_l1=False)
        for one in made:
            stamp(one, statement.span)
        return made

    # Accumulators that stay in DST

    def resident(self, body: list[Any], spilled: dict[Any, Spill]) -> list[Any]:
        """`body` with every stretch that can keep its values in DST, loops and all, made into one section: a list."""
        made: list[Any] = []
        position = 0
        while position < len(body):
            end = self._stretch(body, position, spilled)
            section = self._resident_section(body[position:end]) if end > position + 1 else None
            if section is None:
                made.append(body[position])
                position += 1
            else:
                made.append(section)
                position = end
        return made

    def _stretch(self, body: list[Any], start: int, spilled: dict[Any, Spill]) -> int:
        """The end of the stretch from `start` on in which values are alive that are touched in it only."""
        if as_step(body[start]) is None or any(value in spilled for value in values_in(body[start])):
            return start
        end, position = start + 1, start
        while position < end:
            for value in values_in(body[position]):
                touching = [i for i, one in enumerate(body) if any(value.same_as(v) for v in values_in(one))]
                if value in spilled or touching[0] < start:
                    return start
                end = max(end, touching[-1] + 1)
            position += 1
        return end

    def _resident_section(self, body: list[Any]) -> list[Any] | None:
        compound = [s for s in body if isinstance(s, tirx.For) and as_step(s) is None and values_in(s)]
        if not compound:
            return None
        if any(op_name(inner) == "tt.pack_tile" for statement in compound for inner in walk(statement)):
            return None
        values: dict[Any, int] = {}
        for statement in body:
            for value in values_in(statement):
                values.setdefault(value, int(value.ty.shape[0]))
        if sum(values.values()) > self.capacity:
            return None
        packs = [i for i, statement in enumerate(body) if _is_pack(statement)]
        math = [i for i, statement in enumerate(body) if values_in(statement) and not _is_pack(statement)]
        if not packs or (math and max(math) > min(packs)):
            return None
        slots: dict[Any, int] = {}
        for value in values:
            slots[value] = sum(values[other] for other in slots)
        self.used_dst = True
        made: list[Any] = [op("tile_regs_acquire")]
        zeroed = {v for v in values if self._starts_at_zero(body, v)}
        for index, statement in enumerate(body):
            if index == packs[0]:
                made += [op("tile_regs_commit"), op("tile_regs_wait")]
            if (
                _is_zero_fill(statement)
                and values_in(statement)[0] in zeroed
                and index == _first(body, values_in(statement)[0])
            ):
                continue
            made.append(self._place(statement, slots))
            if index == packs[-1]:
                made.append(op("tile_regs_release"))
        for one in made:
            stamp(one, body[0].span)
        return made

    @staticmethod
    def _starts_at_zero(body: list[Any], value: Any) -> bool:
        """Whether a value is filled with zero and then only added to by a matrix product first: DST is zero anyway."""
        touching = [s for s in body if any(value.same_as(v) for v in values_in(s))]
        if len(touching) < 2 or not _is_zero_fill(touching[0]):
            return False
        following = [
            inner for inner in walk(touching[1]) if any(value.same_as(b) for b, _, _, _ in dst_operands(inner))
        ]
        return op_name(following[0]) == "tt.matmul_block"

    def _place(self, statement: Any, slots: dict[Any, int]) -> Any:
        """The statement with each value replaced by its slots."""
        if isinstance(statement, tirx.For):
            return with_body(statement, [self._place(inner, slots) for inner in statements(statement.body)])
        found = dst_operands(statement)
        if not found:
            return statement
        values = arguments(statement)
        for buffer, index, _, position in found:
            values[position], values[position + 1] = self.dst, _plus(index, slots[buffer])
        return op(op_name(statement)[3:], *values, span=statement.span)

    # Groups

    def groups(self, body: list[Any]) -> list[Any]:
        """The sequence as groups of steps, and whatever stands between them."""
        made: list[Any] = []
        open_group: Group | None = None

        def close() -> None:
            nonlocal open_group
            if open_group is not None:
                made.append(open_group)
                open_group = None

        for position, part in enumerate(body):
            if isinstance(part, list):
                close()
                made.append(part)
                continue
            step = as_step(part)
            if step is not None:
                alone = _is_zero_fill(part) and self._next_is_loop(body, position)
                if open_group is not None and (open_group.only_fills != alone or not self._fits(open_group, step)):
                    close()
                open_group = open_group or Group(only_fills=alone)
                open_group.steps.append(step)
                open_group.values |= dict.fromkeys(values_in(part))
                if step.packs:
                    open_group.packed.add(str(arguments(step.call)[2].name))
                continue
            if open_group is not None and op_name(part) in ("tt.cb_wait_front", "tt.cb_reserve_back"):
                name = str(arguments(part)[0].name)
                popped = {str(arguments(one)[0].name) for one in cast(Group, open_group).after}
                if name not in open_group.packed and name not in popped:
                    open_group.before.append(part)
                    continue
            if open_group is not None and op_name(part) in ("tt.cb_pop_front", "tt.cb_push_back"):
                open_group.after.append(part)
                continue
            close()
            made.append(part)
        close()
        return made

    @staticmethod
    def _next_is_loop(body: list[Any], position: int) -> bool:
        """Whether the value that a fill sets is touched next by a loop that holds more than one operation."""
        value = values_in(body[position])[0]
        for later in body[position + 1 :]:
            if not isinstance(later, list) and any(value.same_as(v) for v in values_in(later)):
                return as_step(later) is None
        return False

    def _fits(self, group: Group, step: Step) -> bool:
        if group.steps[0].tiles != step.tiles:
            return False
        if sum(one.is_matmul for one in group.steps) and step.is_matmul and _grid(group.steps) != _grid([step]):
            return False
        trial = [*group.steps, step]
        if _slots(trial, frozenset(), frozenset())[1] > self.capacity:
            return False
        if step.packs:
            return True
        for buffer, _, access, _ in dst_operands(step.call):
            packed = any(one.packs and dst_operands(one.call)[0][0].same_as(buffer) for one in group.steps)
            if packed and access != "read":
                return False
        return True

    def spill_shared(self, groups: list[Any], spilled: dict[Any, Spill]) -> None:
        """Give a circular buffer to each value that several groups or loops of this sequence touch."""
        touched: dict[Any, list[Any]] = {}
        for part in groups:
            if isinstance(part, Group):
                for value in part.values:
                    touched.setdefault(value, []).append(part)
            elif isinstance(part, tirx.For):
                for value in values_in(part):
                    touched.setdefault(value, []).append(part)
        shared = [value for value, parts in touched.items() if len(parts) > 1 and value not in spilled]
        for value in shared:
            spilled[value] = self._spill(value, touched[value], groups)

    def _spill(self, value: Any, parts: list[Any], groups: list[Any]) -> Spill:
        tiles = int(value.ty.shape[0])
        steps = [s for part in parts for s in _all_steps(part) if s.tiles == tiles]
        products = [s for s in steps if s.is_matmul and dst_operands(s.call)[0][0].same_as(value)]
        width = max(_slots_with(_all_groups(part, self), value) for part in parts)
        shape = self.sub_block(products, tiles, width, steps[0].statement)
        name = f"{value.name}_partials"
        while name in self.names:
            name += "_"
        self.names.add(name)
        dtype = dtype_of(value)
        self.allocations.append(allocation(name, (tiles, 32, 32), dtype, "tt.cb", value.span))
        data_format = FORMAT_OF_DTYPE[dtype]
        self.buffers.append(
            CircularBuffer(
                name, tiles, 1, data_format, "compute", "compute", unpack_to_dest=data_format == "Float32",
                origin=span_of(value), reason=f"{value.name} is {tiles} tiles, DST holds {self.capacity}",
            )
        )  # fmt: skip
        spill = Spill(self.allocations[-1].buffer, shape)
        return self._first_turn(value, spill, parts, groups)

    def _first_turn(self, value: Any, spill: Spill, parts: list[Any], groups: list[Any]) -> Spill:
        """A fill with zero before a loop that adds products is left out: the first turn has nothing to load."""
        first, second = parts[0], parts[1]
        if not (isinstance(first, Group) and first.only_fills and isinstance(second, tirx.For)):
            return spill
        inner = statements(second.body)
        touching = [s for s in inner if any(value.same_as(v) for v in values_in(s))]
        step = as_step(touching[0]) if touching else None
        if step is None or not step.is_matmul:
            return spill
        first.steps = [s for s in first.steps if not values_in(s.statement)[0].same_as(value)]
        first.values.pop(value, None)
        return dataclasses.replace(spill, fresh=second.loop_var, in_l1=self.in_l1 and len(touching) == 1)

    def sub_block(self, products: list[Step], tiles: int, width: int, statement: Any) -> SubBlock:
        """The largest part of a block whose values fit DST, wide parts first: SrcA and SrcB are reused most."""
        room = self.capacity // max(width, 1)
        if room < 1:
            raise ResourceError(
                f"an expression needs {width} tiles of DST at once, which holds {self.capacity}",
                hint="split it into several T.Parallel blocks",
                span=span_of(statement),
            )
        block_rows, block_columns = _grid(products) if products else (1, tiles)
        best = SubBlock(block_rows, block_columns, 1, 1)
        for rows in range(1, min(room, block_rows) + 1):
            for columns in range(1, min(room // rows, block_columns) + 1):
                if block_rows % rows or block_columns % columns:
                    continue
                if (rows * columns, columns) > (best.tiles, best.columns):
                    best = SubBlock(block_rows, block_columns, rows, columns)
        return best

    # One group

    def group(self, group: Group, spilled: dict[Any, Spill], live: set[Any], rest: list[Any]) -> list[Any]:
        if not group.steps:
            return [*group.before, *group.after]
        self.used_dst = True
        loads = [
            v for v in group.values if v in spilled and first_access([s.statement for s in group.steps], v) == "read"
        ]
        stores = [v for v in group.values if v in live]
        slots, width = _slots(group.steps, frozenset(loads), frozenset(stores))
        shapes = [spilled[v].shape for v in group.values if v in spilled]
        products = [s for s in group.steps if s.is_matmul]
        shape = shapes[0] if shapes else self.sub_block(products, group.steps[0].tiles, width, group.steps[0].statement)
        if shape.tiles * width > self.capacity:
            raise ResourceError(
                f"a block of {shape.tiles} tiles with {width} values needs {shape.tiles * width} tiles of DST, "
                f"which holds {self.capacity}",
                hint="use smaller blocks, or split the expression",
                span=span_of(group.steps[0].statement),
            )
        rows_var, columns_var = variable("sm"), variable("sn")
        turns = (shape.block_rows // shape.rows, shape.block_columns // shape.columns)
        place = _Place(shape, slots, rows_var if turns[0] > 1 else 0, columns_var if turns[1] > 1 else 0, self.dst)
        section = self.section(group, place, spilled, loads, stores)
        if turns[1] > 1:
            section = [loop(columns_var, turns[1], section)]
        if turns[0] > 1:
            section = [loop(rows_var, turns[0], section)]
        for one in section:
            stamp(one, group.steps[0].statement.span)
        for value in loads:
            spill = spilled[value]
            if spill.fresh is not None:
                spilled[value] = dataclasses.replace(spill, fresh=None)
        return [*group.before, *section, *group.after]

    def section(
        self, group: Group, place: _Place, spilled: dict[Any, Spill], loads: list[Any], stores: list[Any]
    ) -> list[Any]:
        tiles = place.shape.tiles
        made: list[Any] = [op("tile_regs_acquire")]
        for value in loads:
            made += self.load(value, spilled[value], place)
        math = [step for step in group.steps if not step.packs]
        for position, step in enumerate(math):
            if not self._needless_fill(math, position, loads):
                made += place.step(step)
        made.append(op("tile_regs_commit"))
        reserved = [value for value in stores if not spilled[value].in_l1]
        made += [op("cb_reserve_back", spilled[value].cb, tiles) for value in reserved]
        made.append(op("tile_regs_wait"))
        for step in group.steps:
            if step.packs:
                made += place.step(step)
        for value in stores:
            made += self.store(value, spilled[value], place)
        made.append(op("tile_regs_release"))
        made += [op("cb_push_back", spilled[value].cb, tiles) for value in reserved]
        return made

    @staticmethod
    def _needless_fill(math: list[Step], position: int, loads: list[Any]) -> bool:
        step = math[position]
        if not _is_zero_fill(step.statement):
            return False
        value = values_in(step.statement)[0]
        others = [
            s for i, s in enumerate(math) if i != position and any(value.same_as(v) for v in values_in(s.statement))
        ]
        first = bool(others) and math.index(others[0]) > position and others[0].is_matmul
        return first and not any(value.same_as(v) for v in loads)

    def load(self, value: Any, spill: Spill, place: _Place) -> list[Any]:
        """Bring a sub-block back from its circular buffer."""
        if spill.in_l1 and spill.fresh is not None:
            return []
        tiles = place.shape.tiles
        t = variable("t")
        body = [
            op("cb_wait_front", spill.cb, tiles),
            loop(t, tiles, [op("copy_tile", spill.cb, t, self.dst, _plus(t, place.base(value)))]),
            op("cb_pop_front", spill.cb, tiles),
        ]
        return body if spill.fresh is None else [when(spill.fresh > 0, body)]

    def store(self, value: Any, spill: Spill, place: _Place) -> list[Any]:
        """Put a sub-block into its circular buffer, or add it there."""
        t = variable("t")
        tiles = place.shape.tiles
        slot = _plus(t, place.base(value))
        if not (spill.in_l1 and spill.fresh is not None):
            return [loop(t, tiles, [op("pack_tile", self.dst, slot, spill.cb, t)])]
        first = place.first_tile()
        return [
            op("pack_l1_accumulate", tirx.Cast(ir.PrimType("int32"), spill.fresh > 0)),
            loop(t, tiles, [op("pack_tile", self.dst, slot, spill.cb, _plus(t, first))]),
            op("pack_l1_accumulate", 0),
        ]


@dataclass(frozen=True)
class _Place:
    """Where the tiles of one sub-block are: `row` and `column` count sub-blocks, `slots` the values in DST."""

    shape: SubBlock
    slots: dict[Any, int]
    row: Any
    column: Any
    dst: Any

    def base(self, value: Any) -> int:
        return self.slots[value] * self.shape.tiles

    def first_tile(self) -> Any:
        """The number of the sub-block's first tile when sub-blocks lie one after another."""
        across = self.shape.block_columns // self.shape.columns
        return _plus(_times(self.row, across * self.shape.tiles), _times(self.column, self.shape.tiles))

    def step(self, step: Step) -> list[Any]:
        return self._product(step) if step.is_matmul else self._tiles(step)

    def _product(self, step: Step) -> list[Any]:
        in0, in1, a, b, out, _, transpose, _, _, depth = arguments(step.call)
        shape = self.shape
        a = _plus(a, _times(self.row, shape.rows * int(depth.value)))
        b = _plus(b, _times(self.column, shape.columns))
        base = self.base(out)
        turns = int(step.statement.extent.value)
        made = op("matmul_block", in0, in1, a, b, self.dst, base, transpose, shape.columns, shape.rows, depth)
        stamp(made, step.call.span)
        if turns == 1:
            return [_substituted(made, {step.variable: tirx.const(0, "int32")})]
        return [with_body(step.statement, [made])]

    def _tiles(self, step: Step) -> list[Any]:
        shape = self.shape
        linear = shape.rows == 1 or shape.columns == shape.block_columns
        if linear:
            t = variable("t")
            first = _plus(_times(self.row, shape.rows * shape.block_columns), _times(self.column, shape.columns))
            made = self._tile(step, _plus(t, first), t)
            if shape.tiles == 1:
                return [_substituted(made, {t: tirx.const(0, "int32")})]
            return [_stamped(loop(t, shape.tiles, [made]), step.statement)]
        r, c = variable("r"), variable("c")
        row = _plus(r, _times(self.row, shape.rows))
        column = _plus(c, _times(self.column, shape.columns))
        inner = self._tile(step, row * shape.block_columns + column, r * shape.columns + c)
        made = (
            loop(c, shape.columns, [inner]) if shape.columns > 1 else _substituted(inner, {c: tirx.const(0, "int32")})
        )
        return [_stamped(loop(r, shape.rows, [made]), step.statement)]

    def _tile(self, step: Step, tile: Any, slot: Any) -> Any:
        values = arguments(step.call)
        for buffer, _, _, position in dst_operands(step.call):
            values[position] = self.dst
            values[position + 1] = _plus(slot, self.base(buffer))
        taken = {position + 1 for _, _, _, position in dst_operands(step.call)}
        for position, value in enumerate(values):
            if position not in taken:
                values[position] = _replace(value, {step.variable: tile})
        made = op(op_name(step.call)[3:], *values)
        stamp(made, step.call.span)
        return made


def _slots(steps: list[Step], loaded: frozenset[Any], stored: frozenset[Any]) -> tuple[dict[Any, int], int]:
    """A slot for each value of a group, and how many are needed: values that are never alive together share one.

    A value that an operation adds to needs a slot that nothing has used in the section.
    """
    last = len(steps)
    spans: dict[Any, list[int]] = {}
    for position, step in enumerate(steps):
        for buffer, _, _, _ in dst_operands(step.call):
            span = spans.setdefault(buffer, [position, position])
            span[1] = last if step.packs else max(span[1], position)
    for value, span in spans.items():
        first = steps[span[0]]
        known = OPS[op_name(first.call)]
        if value in loaded or (known.accumulates and not first.packs):
            span[0] = -1
        if value in stored:
            span[1] = last
    slots: dict[Any, int] = {}
    for value, (start, _) in sorted(spans.items(), key=lambda item: item[1][0]):
        busy = {slots[other] for other in slots if spans[other][1] >= start}
        slots[value] = next(number for number in range(len(spans) + 1) if number not in busy)
    return slots, max(slots.values(), default=0) + 1


def _grid(steps: list[Step]) -> tuple[int, int]:
    """Rows and columns of tiles of the product among the steps."""
    product = next(step for step in steps if step.is_matmul)
    columns, rows = (int(value.value) for value in arguments(product.call)[7:9])
    return rows, columns


def _all_steps(part: Any) -> list[Step]:
    if isinstance(part, Group):
        return part.steps
    return [step for inner in walk(part) if (step := as_step(inner)) is not None]


def _all_groups(part: Any, manager: _Manager) -> list[Group]:
    if isinstance(part, Group):
        return [part]
    found: list[Group] = []
    for inner in [part, *walk(part.body)]:
        if isinstance(inner, tirx.For) and as_step(inner) is None:
            found += [one for one in manager.groups(statements(inner.body)) if isinstance(one, Group)]
    return found


def _slots_with(groups: list[Group], value: Any) -> int:
    """The most slots that a group needs which touches the value."""
    widths = [
        _slots(group.steps, frozenset({value}), frozenset({value}))[1]
        for group in groups
        if any(value.same_as(one) for one in group.values)
    ]
    return max(widths, default=1)


def _statements_of(part: Any) -> list[Any]:
    if isinstance(part, Group):
        return [step.statement for step in part.steps]
    return part if isinstance(part, list) else [part]


def _live(rest: list[Any], value: Any, live_after: frozenset[Any]) -> bool:
    access = first_access(rest, value)
    return access == "read" or (access is None and any(value.same_as(one) for one in live_after))


def _is_pack(statement: Any) -> bool:
    step = as_step(statement)
    return step is not None and step.packs


def _is_zero_fill(statement: Any) -> bool:
    step = as_step(statement)
    if step is None or op_name(step.call) != "tt.fill_tile":
        return False
    value = arguments(step.call)[2]
    return isinstance(value, tirx.FloatImm) and float(value.value) == 0.0


def _first(body: list[Any], value: Any) -> int:
    return next(i for i, one in enumerate(body) if any(value.same_as(v) for v in values_in(one)))


def _plus(a: Any, b: Any) -> Any:
    if isinstance(b, int) and b == 0:
        return a
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if isinstance(a, int):
        return b if a == 0 else b + a
    zero = constant(a) == 0
    return b if zero else (a if constant(b) == 0 else a + b) if not isinstance(b, int) else a + b


def _times(a: Any, factor: int) -> Any:
    if isinstance(a, int):
        return a * factor
    return a * factor if factor != 1 else a


def _replace(expression: Any, values: dict[Any, Any]) -> Any:
    import tvm_ffi

    if not isinstance(expression, ir.Expr) or isinstance(expression, tirx.FloatImm):
        return expression
    return tvm_ffi.structural_map(expression, (ir.Var, lambda v: values.get(v, v)), order="post")


def _substituted(statement: Any, values: dict[Any, Any]) -> Any:
    from tvm import sym

    analyzer = sym.Analyzer()
    parts = [
        analyzer.simplify(_replace(value, values))
        if isinstance(value, ir.Expr) and not isinstance(value, ir.Var | tirx.FloatImm | tirx.IntImm)
        else values.get(value, value)
        if isinstance(value, ir.Var)
        else value
        for value in arguments(statement)
    ]
    return op(op_name(statement)[3:], *parts, span=statement.span)


def _stamped(made: Any, statement: Any) -> Any:
    stamp(made, statement.span)
    return made
