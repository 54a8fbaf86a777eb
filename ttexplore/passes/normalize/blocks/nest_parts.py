"""The parts of blocks that a T.Parallel nest reads and stores, as whole blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from tvm import ir, sym, tirx

from ttexplore.analysis.added_buffers import NewBuffers
from ttexplore.errors import KernelError, Unsupported
from ttexplore.ir.adapter import call, span_of
from ttexplore.ir.build import (
    constant,
    dtype_of,
    parallel_nest,
    scope_of,
    shape_of,
    whole_region,
    with_nest,
    with_value,
)
from ttexplore.ir.dag import factor_of, replaced, same_expression, same_expressions, uses, written_out
from ttexplore.ir.dataflow import is_on_chip, loads_of, parallel_body, same_indices
from ttexplore.ir.rewrite import Firings
from ttexplore.ops import language as tl
from ttexplore.ops.small import is_small
from ttexplore.passes.normalize.blocks.begun_blocks import BegunBlocks
from ttexplore.passes.normalize.blocks.rearranged import nearest, rearranged
from ttexplore.plan import SMALL_WHOLES, TILE_COLUMNS, TILE_ROWS


@dataclass(frozen=True)
class _Index:
    """An index of a block: a multiple of a loop variable with something added to it, or something that is the same for
    all turns."""

    variable: ir.Var | None
    start: ir.Expr
    factor: int = 1

    def same_as(self, other: _Index) -> bool:
        if (self.variable is None) != (other.variable is None) or self.factor != other.factor:
            return False
        if self.variable is not None and not self.variable.same_as(other.variable):
            return False
        return same_expression(self.start, other.start)


def _same_place(first: Sequence[_Index], second: Sequence[_Index]) -> bool:
    return all(a.same_as(b) for a, b in zip(first, second, strict=True))


class PartRewriting(NewBuffers):
    """A rewrite that works on parts of blocks: `begun` are blocks that need a beginning."""

    def __init__(self, function: tirx.PrimFunc, firings: Firings) -> None:
        super().__init__(function, firings)
        self.begun = BegunBlocks(function)

    def of(self, source: tirx.Buffer, name: str, shape: Sequence[int], dtype: str = "") -> tirx.AllocBuffer:
        """The allocation of a block with elements of another one, in its dtype or another."""
        return self.allocate(f"{source.name}_{name}", shape, dtype or dtype_of(source))

    def nest(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        """The replacement of a T.Parallel, for a rule of the pass."""
        if not self.is_nest(statement):
            return None
        return Nest(self, statement, statement).whole()

    def of_nest(self, nest: tirx.Stmt, statement: tirx.Stmt) -> list[tirx.Stmt]:
        """What a T.Parallel becomes that was made of a statement of the kernel."""
        replacement = Nest(self, nest, statement).whole()
        return [nest] if replacement is None else replacement


@dataclass
class _Stored:
    """What a nest stores to a part of a block: where, and the block that holds it until the nest has ended."""

    buffer: tirx.Buffer
    place: list[_Index]
    allocation: tirx.AllocBuffer
    turned: bool


@dataclass
class _PartRead:
    """A part of a block that a nest reads, as a block of its own."""

    buffer: tirx.Buffer
    place: list[_Index]
    made: tirx.Buffer
    indices: list[ir.Expr]


@dataclass
class _Gathered:
    """A block of the elements of another one at computed places."""

    source: tirx.Buffer
    places: list[ir.Expr]
    made: tirx.Buffer
    indices: list[ir.Expr]


@dataclass
class Nest:
    """A T.Parallel nest that is to read and store whole blocks only; `statement` is the kernel's own. `names` are those
    of indices, `before` and `after` the statements around the nest."""

    parts: PartRewriting
    nest: tirx.Stmt
    statement: tirx.Stmt
    names: dict[ir.Var, ir.Expr] = field(default_factory=dict["ir.Var", "ir.Expr"])
    before: list[tirx.Stmt] = field(default_factory=list["tirx.Stmt"])
    stores: list[_Stored] = field(default_factory=list[_Stored])
    reads: list[_PartRead] = field(default_factory=list[_PartRead])
    gathered: list[_Gathered] = field(default_factory=list[_Gathered])

    def __post_init__(self) -> None:
        self.loops, self.body = parallel_body(self.nest)
        self.variables = [loop.loop_var for loop in self.loops]
        self.extents = [constant(loop.extent) or 0 for loop in self.loops]
        stores = [statement for statement in self.body if isinstance(statement, tirx.BufferStore)]
        self.kept = [store.buffer for store in stores if self.is_whole(store)]

    def whole(self) -> list[tirx.Stmt] | None:
        """The nest with what comes before and after it; None where nothing changes."""
        if len(self.loops) > 2 or not all(self.extents):
            return None
        inside: list[tirx.Stmt] = []
        for statement in self.body:
            match statement:
                case tirx.Bind():
                    inside.append(with_value(statement, self.read(statement.value)))
                    if not loads_of(statement.value):
                        self.names[statement.var] = statement.value
                case tirx.BufferStore() if not is_on_chip(statement.buffer):
                    return None
                case tirx.BufferStore():
                    value = self.read(statement.value)
                    if self.is_whole(statement):
                        inside.append(with_value(statement, value))
                        continue
                    axis_indices = self.place(statement.indices)
                    if axis_indices is None or self.is_kept(statement.buffer):
                        return None
                    block = self.stored(statement, axis_indices)
                    inside.append(tirx.BufferStore(block.allocation.buffer, value, [*self.variables], statement.span))
                case _:
                    return None
        if not self.reads and not self.stores and not self.gathered:
            return None
        after = [statement for stored in self.stores for statement in self.merged(stored)]
        allocated = [stored.allocation for stored in self.stores]
        return [*self.before, *allocated, with_nest(self.loops, inside), *after]

    def is_whole(self, store: tirx.BufferStore) -> bool:
        return same_indices(store.indices, self.variables) and [*shape_of(store.buffer)] == self.extents

    def is_kept(self, buffer: tirx.Buffer) -> bool:
        return any(buffer.same_as(kept_buffer) for kept_buffer in self.kept)

    def place(self, indices: Sequence[ir.Expr]) -> list[_Index] | None:
        """What the indices of an element are; None for others than starts with a multiple of a loop variable each."""
        axis_indices: list[_Index] = []
        for index in indices:
            index = written_out(index, self.names)
            if loads_of(index):
                return None
            used = [loop_var for loop_var in self.variables if uses(index, loop_var)]
            if not used:
                axis_indices.append(_Index(None, sym.Analyzer().simplify(index)))
                continue
            factor = factor_of(index, used[0])
            start = sym.Analyzer().simplify(index - used[0] * factor)
            if not factor or any(uses(start, loop_var) for loop_var in self.variables):
                return None
            axis_indices.append(_Index(used[0], start, factor))
        variables = [axis_index.variable for axis_index in axis_indices if axis_index.variable is not None]
        return axis_indices if len({*variables}) == len(variables) else None

    def extent(self, index: _Index) -> int:
        """How many elements an index reaches."""
        positions = [
            n
            for n, loop_var in enumerate(self.variables)
            if index.variable is not None and loop_var.same_as(index.variable)
        ]
        return self.extents[positions[0]] if positions else 1

    def ends(self, index: _Index) -> tuple[ir.Expr, ir.Expr]:
        """The least and the greatest value of an index."""
        last = index.start + index.factor * (self.extent(index) - 1)
        return (index.start, last) if index.factor > 0 else (last, index.start)

    def check_inside(self, access: ir.TensorLoad | tirx.BufferStore, axis_indices: Sequence[_Index]) -> None:
        """Raise KernelError where indices leave a block."""
        buffer = access.buffer if isinstance(access, tirx.BufferStore) else access.source
        for axis, (axis_index, length, index) in enumerate(
            zip(axis_indices, shape_of(buffer), access.indices, strict=True)
        ):
            low, high = (constant(end) for end in self.ends(axis_index))
            if low is not None and high is not None and (low < 0 or high >= length):
                reached = low if low < 0 else high
                index_text = (
                    "the index"
                    if axis_index.variable is None
                    else str(axis_index.variable.name if axis_index.factor == 1 else index)
                )
                raise KernelError(
                    "K001",
                    f"{buffer.name} has {length} elements along axis {axis}, but {index_text} reaches {reached}",
                    hint="make the buffer as large as the loop",
                    span=span_of(access),
                )

    # Reading

    def read(self, value: ir.Expr) -> ir.Expr:
        return replaced(value, lambda node: self.load(node) if isinstance(node, ir.TensorLoad) else node)

    def load(self, load: ir.TensorLoad) -> ir.Expr:
        buffer = load.source
        if not is_on_chip(buffer) or scope_of(buffer) == "local.var":
            return load
        if self.is_kept(buffer):
            if same_indices(load.indices, self.variables):
                return load
            raise self.refusal(load, f"one T.Parallel stores to {buffer.name} and reads it at other elements")
        axis_indices = self.place(load.indices)
        if axis_indices is None:
            if any(stored.buffer.same_as(buffer) for stored in self.stores):
                raise self.refusal(load, f"one T.Parallel stores to {buffer.name} and reads it at other elements")
            return self.computed(load)
        steps = any(axis_index.factor != 1 for axis_index in axis_indices)
        if not steps:
            self.check_inside(load, axis_indices)
        for stored in reversed(self.stores):
            if not stored.buffer.same_as(buffer):
                continue
            if _same_place(stored.place, axis_indices):
                return tirx.BufferLoad(stored.allocation.buffer, [*self.variables], load.span)
            if not self.are_apart(stored.place, axis_indices):
                raise self.refusal(load, f"one T.Parallel stores to {buffer.name} and reads it at other elements")
        if steps:
            return self.computed(load)
        if self.fits(load):
            return load
        for earlier_read in self.reads:
            if earlier_read.buffer.same_as(buffer) and _same_place(earlier_read.place, axis_indices):
                return tirx.BufferLoad(earlier_read.made, earlier_read.indices, load.span)
        part_buffer, indices = self.part(buffer, axis_indices, load)
        self.reads.append(_PartRead(buffer, axis_indices, part_buffer, indices))
        return tirx.BufferLoad(part_buffer, indices, load.span)

    def computed(self, load: ir.TensorLoad) -> ir.Expr:
        """The element of a block that holds those at the computed places of a load."""
        buffer, indices = load.source, [written_out(index, self.names) for index in load.indices]
        if any(loads_of(index) for index in indices):
            return load
        for gathered in self.gathered:
            if gathered.source.same_as(buffer) and same_expressions(gathered.places, indices):
                return tirx.BufferLoad(gathered.made, gathered.indices, load.span)
        # Elements that are the same for all rows are a row, those that are the same for all columns a column.
        used = [loop_var for loop_var in self.variables if any(uses(index, loop_var) for index in indices)]
        block_vars = [*used] or [*self.variables]
        shape = [
            extent
            for loop_var, extent in zip(self.variables, self.extents, strict=True)
            if _is_in(loop_var, block_vars)
        ]
        rearranged_block = self.parts.of(buffer, "rearranged", shape)

        def source_indices(at: Sequence[ir.Expr]) -> list[ir.Expr]:
            values: dict[ir.Expr, ir.Expr] = dict(zip(block_vars, at, strict=True))
            return [replaced(index, lambda node: values.get(node, node)) for index in indices]

        self.before += [
            rearranged_block,
            rearranged(buffer, rearranged_block.buffer, source_indices, self.parts.bounds, span_of(load)),
        ]
        self.gathered.append(_Gathered(buffer, indices, rearranged_block.buffer, [*block_vars]))
        return tirx.BufferLoad(rearranged_block.buffer, [*block_vars], load.span)

    def fits(self, load: ir.TensorLoad) -> bool:
        """Whether tiles of a block can be read as they are where the load is."""
        shape, indices = [*shape_of(load.source)], [*load.indices]
        if same_indices(indices, self.variables):
            return shape == self.extents
        if all(constant(index) == 0 for index in indices):
            return True
        if len(self.variables) != 2:
            return False
        row, column = self.variables
        if same_indices(indices, [column, row]):
            return shape == self.extents[::-1]
        if len(indices) == 1:
            return any(indices[0].same_as(loop_var) for loop_var in self.variables)
        zero = [constant(index) == 0 for index in indices]
        return (zero[0] and bool(indices[1].same_as(column))) or (zero[1] and bool(indices[0].same_as(row)))

    def part(
        self, buffer: tirx.Buffer, axis_indices: list[_Index], load: ir.TensorLoad
    ) -> tuple[tirx.Buffer, list[ir.Expr]]:
        """A block that holds the part that a load reads, and the indices of its element."""
        axis = 0
        for axis_index in axis_indices:
            if axis_index.variable is None:
                buffer, statements = self.chosen(buffer, axis, axis_index.start)
                self.before += statements
            else:
                axis += 1
        along = [axis_index for axis_index in axis_indices if axis_index.variable is not None]
        if not along:
            return buffer, [tirx.const(0, "int32")]
        if len(along) == 2 and along[0].variable is not None and along[0].variable.same_as(self.variables[1]):
            target_shape = self.extents[::-1]
        elif len(along) == len(self.variables):
            target_shape = self.extents
        else:
            # A row or column may be longer than the nest: the tiles of its first elements are where they are.
            target_shape = [*shape_of(buffer)]
            if constant(along[0].start) != 0:
                target_shape = [self.extents[number] for number, loop_var in enumerate(self.variables)
                          if loop_var.same_as(along[0].variable)]  # fmt: skip
        starts = [axis_index.start for axis_index in along]
        if [*shape_of(buffer)] != target_shape or any(constant(start) != 0 for start in starts):
            buffer = self.moved(buffer, starts, target_shape, load)
        return buffer, [axis_index.variable for axis_index in along if axis_index.variable is not None]

    def chosen(self, buffer: tirx.Buffer, axis: int, at: ir.Expr) -> tuple[tirx.Buffer, list[tirx.Stmt]]:
        """The block without an axis, of which only the elements at one index are left, and what makes it."""
        shape = shape_of(buffer)
        name, dtype = "element" if len(shape) == 1 else ("row", "column")[axis], dtype_of(buffer)
        remaining_shape = (*shape[:axis], *shape[axis + 1 :]) or (1,)
        # Numbers of 8 bits have no sums of their own.
        wide = dtype if not is_small(dtype) else "int32" if dtype in SMALL_WHOLES else "float32"
        masked = self.parts.of(buffer, "masked", shape, wide)
        result = self.parts.of(buffer, name, remaining_shape, wide)
        zero = tirx.const(0, wide)
        mask = parallel_nest(masked.buffer, lambda where: tirx.if_then_else(
            tirx.EQ(where[axis], at), _cast(tirx.BufferLoad(buffer, where), wide), zero
        ))  # fmt: skip
        attrs = {"kind": "sum", "dim": axis, "clear": 1}
        reduced = call(tl.REDUCE.name, [whole_region(masked.buffer), whole_region(result.buffer)], attrs)
        statements = [masked, mask, result, tirx.Evaluate(reduced)]
        if wide == dtype:
            return result.buffer, statements
        small = self.parts.of(buffer, name, remaining_shape)
        cast = parallel_nest(small.buffer, lambda where: _cast(tirx.BufferLoad(result.buffer, where), dtype))
        return small.buffer, [*statements, small, cast]

    def moved(
        self, buffer: tirx.Buffer, starts: Sequence[ir.Expr], shape: Sequence[int], load: ir.TensorLoad
    ) -> tirx.Buffer:
        """The block of another shape that holds what is in another one from these starts on."""
        moved_block = self.parts.of(buffer, "part", shape)
        tile_starts = [self.tiles(start, tile) for start, tile in zip(starts, _tiles(len(shape)), strict=True)]
        tiles = [tile_start for tile_start in tile_starts if tile_start is not None]
        if len(tiles) == len(tile_starts):
            moved = _copied_tiles(buffer, moved_block.buffer, tiles)
        else:

            def source_indices(at: Sequence[ir.Expr]) -> list[ir.Expr]:
                return [start + index for start, index in zip(starts, at, strict=True)]

            moved = rearranged(buffer, moved_block.buffer, source_indices, self.parts.bounds, span_of(load))
        self.before += [moved_block, moved]
        return moved_block.buffer

    def tiles(self, start: ir.Expr, tile: int) -> ir.Expr | None:
        """The tile at which a part starts; None for a part that starts inside of one."""
        if not self.parts.bounds.is_multiple(start, tile):
            return None
        return sym.Analyzer().simplify(tirx.floordiv(start, tile))

    # Storing

    def stored(self, store: tirx.BufferStore, axis_indices: list[_Index]) -> _Stored:
        """Where a nest keeps what it stores to a part of a block."""
        self.check_inside(store, axis_indices)
        used = [axis_index.variable for axis_index in axis_indices if axis_index.variable is not None]
        for variable, extent in zip(self.variables, self.extents, strict=True):
            if extent != 1 and not any(variable.same_as(used_var) for used_var in used):
                raise Unsupported(
                    "L003",
                    f"{_shown(store)}: each turn of {variable.name} stores to the same element",
                    hint="store each element once; sums over turns are T.reduce_sum, or "
                    f"T.atomic_add({_shown(store)}, value)",
                    span=span_of(store),
                )
        for earlier in self.stores:
            if earlier.buffer.same_as(store.buffer):
                if _same_place(earlier.place, axis_indices):
                    return earlier
                if not self.are_apart(earlier.place, axis_indices):
                    raise self.refusal(store, f"two stores of one T.Parallel to {store.buffer.name} may overlap")
        self.parts.begun.store_part(store.buffer, self.statement, self.parts.around)
        block = self.parts.of(store.buffer, "part", self.extents)
        turned = len(used) == 2 and bool(used[0].same_as(self.variables[1]))
        stored = _Stored(store.buffer, axis_indices, block, turned)
        self.stores.append(stored)
        return stored

    def merged(self, stored: _Stored) -> list[tirx.Stmt]:
        """The block with what a nest stored to a part of it."""
        buffer, block = stored.buffer, stored.allocation.buffer
        shape = shape_of(buffer)
        statements: list[tirx.Stmt] = []
        variables = self.variables
        if len(shape) == 1 and len(variables) == 2:
            # The elements for a vector are the only row, or the only column, of the nest.
            along = stored.place[0].variable
            axis = 0 if along is None or along.same_as(variables[1]) else 1
            variables = [variables[1 - axis]]
            block, statements = self.chosen(block, axis, tirx.const(0, "int32"))
        target_shape = [1] * len(variables)
        along = [_Index(None, tirx.const(0, "int32")) for _ in variables]
        axes: dict[int, int] = {}
        for axis, axis_index in enumerate(stored.place):
            for number, variable in enumerate(variables):
                if axis_index.variable is not None and axis_index.variable.same_as(variable):
                    target_shape[number], along[number], axes[number] = shape[axis], axis_index, axis
        if [*shape_of(block)] != target_shape or any(
            constant(axis_index.start) != 0 or axis_index.factor != 1 for axis_index in along
        ):
            sizes = _tiles(len(target_shape))[:: -1 if stored.turned else 1]
            placed = self.parts.of(buffer, "placed", target_shape)
            backs = [
                self.tiles(axis_index.start, tile)
                for axis_index, tile in zip(along, sizes, strict=True)
                if axis_index.factor == 1
            ]
            tiles = [sym.Analyzer().simplify(0 - offset) for offset in backs if offset is not None]
            if len(tiles) == len(along):
                statements += [placed, _copied_tiles(block, placed.buffer, tiles)]
            else:
                block_shape = shape_of(block)

                def source_indices(at: Sequence[ir.Expr]) -> list[ir.Expr]:
                    return [
                        nearest(index, axis_index.start, length, axis_index.factor)
                        for index, axis_index, length in zip(at, along, block_shape, strict=True)
                    ]

                statements += [
                    placed,
                    rearranged(block, placed.buffer, source_indices, self.parts.bounds, span_of(self.statement)),
                ]
            block = placed.buffer

        def value(where: list[ir.Var]) -> ir.Expr:
            inside: ir.Expr | None = None
            for axis, axis_index in enumerate(stored.place):
                for test in self.tests(where[axis], axis_index, shape[axis]):
                    inside = test if inside is None else tirx.And(inside, test)
            at: list[ir.Expr] = [
                where[axes[number]] if number in axes else tirx.const(0, "int32") for number in range(len(target_shape))
            ]
            new = tirx.BufferLoad(block, at)
            return new if inside is None else tirx.if_then_else(inside, new, tirx.BufferLoad(buffer, where))

        return [*statements, parallel_nest(buffer, value)]

    def tests(self, index: ir.Var, at: _Index, length: int) -> list[ir.Expr]:
        """What holds for an index of the part, of those of the block along one axis."""
        if at.variable is None:
            return [] if length == 1 else [tirx.EQ(index, at.start)]
        low, high = self.ends(at)
        unit = abs(at.factor)
        conditions: list[ir.Expr] = []
        if constant(low) not in range(unit):
            conditions.append(index >= low)
        if constant(high) not in range(length - unit, length):
            conditions.append(index < high + 1)
        if unit != 1:
            rest = tirx.floormod(index - at.start, tirx.const(unit, "int32"))
            conditions.append(tirx.EQ(sym.Analyzer().simplify(rest), tirx.const(0, "int32")))
        return conditions

    def are_apart(self, first: Sequence[_Index], second: Sequence[_Index]) -> bool:
        """Whether two parts of a block have no element in common: along an axis one ends before the other one begins,
        or they are others of the elements that a step leaves between."""
        for a, b in zip(first, second, strict=True):
            (low, high), (least, most) = self.ends(a), self.ends(b)
            if self.parts.bounds.proves(high < least) or self.parts.bounds.proves(most < low):
                return True
            unit = math.gcd(*(abs(index.factor) for index in (a, b) if index.variable is not None))
            between = constant(sym.Analyzer().simplify(a.start - b.start))
            if unit > 1 and between is not None and between % unit:
                return True
        return False

    def refusal(self, access: ir.TensorLoad | tirx.BufferStore, why: str) -> Unsupported:
        return Unsupported(
            "L003",
            f"{_shown(access)}: {why}",
            hint="store each element once, and use two T.Parallel nests where one needs what the other stores",
            span=span_of(access),
        )


def _shown(access: ir.TensorLoad | tirx.BufferStore) -> str:
    buffer = access.buffer if isinstance(access, tirx.BufferStore) else access.source
    return f"{buffer.name}[{', '.join(str(index) for index in access.indices)}]"


def _is_in(variable: ir.Var, variables: Sequence[ir.Var]) -> bool:
    return any(variable.same_as(candidate) for candidate in variables)


def _tiles(rank: int) -> list[int]:
    return [TILE_ROWS, TILE_COLUMNS][2 - rank :]


def _copied_tiles(source: tirx.Buffer, target: tirx.Buffer, tiles: Sequence[ir.Expr]) -> tirx.Stmt:
    return tirx.Evaluate(call(tl.COPY_TILES.name, [whole_region(source), whole_region(target), *tiles]))


def _cast(value: ir.Expr, dtype: str) -> ir.Expr:
    return value if str(value.ty.dtype) == dtype else tirx.Cast(ir.PrimType(dtype), value)
