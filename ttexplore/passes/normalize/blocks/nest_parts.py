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


def _same_place(one: Sequence[_Index], other: Sequence[_Index]) -> bool:
    return all(a.same_as(b) for a, b in zip(one, other, strict=True))


class PartRewriting(NewBuffers):
    """A rewrite that works on parts of blocks: `begun` are blocks that need a beginning."""

    def __init__(self, function: tirx.PrimFunc, firings: Firings) -> None:
        super().__init__(function, firings)
        self.begun = BegunBlocks(function)

    def of(self, whole: tirx.Buffer, name: str, shape: Sequence[int], dtype: str = "") -> tirx.AllocBuffer:
        """The allocation of a block with elements of another one, in its dtype or another."""
        return self.allocate(f"{whole.name}_{name}", shape, dtype or dtype_of(whole))

    def nest(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        """The replacement of a T.Parallel, for a rule of the pass."""
        if not self.is_nest(statement):
            return None
        return Nest(self, statement, statement).whole()

    def of_nest(self, nest: tirx.Stmt, statement: tirx.Stmt) -> list[tirx.Stmt]:
        """What a T.Parallel becomes that was made of a statement of the kernel."""
        made = Nest(self, nest, statement).whole()
        return [nest] if made is None else made


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
        self.variables = [one.loop_var for one in self.loops]
        self.extents = [constant(one.extent) or 0 for one in self.loops]
        stores = [one for one in self.body if isinstance(one, tirx.BufferStore)]
        self.kept = [one.buffer for one in stores if self.is_whole(one)]

    def whole(self) -> list[tirx.Stmt] | None:
        """The nest with what comes before and after it; None where nothing changes."""
        if len(self.loops) > 2 or not all(self.extents):
            return None
        inside: list[tirx.Stmt] = []
        for one in self.body:
            match one:
                case tirx.Bind():
                    inside.append(with_value(one, self.read(one.value)))
                    if not loads_of(one.value):
                        self.names[one.var] = one.value
                case tirx.BufferStore() if not is_on_chip(one.buffer):
                    return None
                case tirx.BufferStore():
                    value = self.read(one.value)
                    if self.is_whole(one):
                        inside.append(with_value(one, value))
                        continue
                    place = self.place(one.indices)
                    if place is None or self.is_kept(one.buffer):
                        return None
                    block = self.stored(one, place)
                    inside.append(tirx.BufferStore(block.allocation.buffer, value, [*self.variables], one.span))
                case _:
                    return None
        if not self.reads and not self.stores and not self.gathered:
            return None
        after = [part for one in self.stores for part in self.merged(one)]
        allocated = [one.allocation for one in self.stores]
        return [*self.before, *allocated, with_nest(self.loops, inside), *after]

    def is_whole(self, store: tirx.BufferStore) -> bool:
        return same_indices(store.indices, self.variables) and [*shape_of(store.buffer)] == self.extents

    def is_kept(self, buffer: tirx.Buffer) -> bool:
        return any(buffer.same_as(one) for one in self.kept)

    def place(self, indices: Sequence[ir.Expr]) -> list[_Index] | None:
        """What the indices of an element are; None for others than starts with a multiple of a loop variable each."""
        found: list[_Index] = []
        for index in indices:
            index = written_out(index, self.names)
            if loads_of(index):
                return None
            used = [one for one in self.variables if uses(index, one)]
            if not used:
                found.append(_Index(None, sym.Analyzer().simplify(index)))
                continue
            factor = factor_of(index, used[0])
            start = sym.Analyzer().simplify(index - used[0] * factor)
            if not factor or any(uses(start, one) for one in self.variables):
                return None
            found.append(_Index(used[0], start, factor))
        variables = [one.variable for one in found if one.variable is not None]
        return found if len({*variables}) == len(variables) else None

    def extent(self, index: _Index) -> int:
        """How many elements an index reaches."""
        found = [
            n for n, one in enumerate(self.variables) if index.variable is not None and one.same_as(index.variable)
        ]
        return self.extents[found[0]] if found else 1

    def ends(self, index: _Index) -> tuple[ir.Expr, ir.Expr]:
        """The least and the greatest value of an index."""
        last = index.start + index.factor * (self.extent(index) - 1)
        return (index.start, last) if index.factor > 0 else (last, index.start)

    def check_inside(self, access: ir.TensorLoad | tirx.BufferStore, place: Sequence[_Index]) -> None:
        """Raise KernelError where indices leave a block."""
        buffer = access.buffer if isinstance(access, tirx.BufferStore) else access.source
        for axis, (one, length, index) in enumerate(zip(place, shape_of(buffer), access.indices, strict=True)):
            low, high = (constant(end) for end in self.ends(one))
            if low is not None and high is not None and (low < 0 or high >= length):
                reached = low if low < 0 else high
                what = "the index" if one.variable is None else str(one.variable.name if one.factor == 1 else index)
                raise KernelError(
                    "K001",
                    f"{buffer.name} has {length} elements along axis {axis}, but {what} reaches {reached}",
                    hint="make the buffer as large as the loop",
                    span=span_of(access),
                )

    # Reading

    def read(self, value: ir.Expr) -> ir.Expr:
        return replaced(value, lambda part: self.load(part) if isinstance(part, ir.TensorLoad) else part)

    def load(self, load: ir.TensorLoad) -> ir.Expr:
        buffer = load.source
        if not is_on_chip(buffer) or scope_of(buffer) == "local.var":
            return load
        if self.is_kept(buffer):
            if same_indices(load.indices, self.variables):
                return load
            raise self.refusal(load, f"one T.Parallel stores to {buffer.name} and reads it at other elements")
        place = self.place(load.indices)
        if place is None:
            if any(one.buffer.same_as(buffer) for one in self.stores):
                raise self.refusal(load, f"one T.Parallel stores to {buffer.name} and reads it at other elements")
            return self.computed(load)
        steps = any(one.factor != 1 for one in place)
        if not steps:
            self.check_inside(load, place)
        for one in reversed(self.stores):
            if not one.buffer.same_as(buffer):
                continue
            if _same_place(one.place, place):
                return tirx.BufferLoad(one.allocation.buffer, [*self.variables], load.span)
            if not self.are_apart(one.place, place):
                raise self.refusal(load, f"one T.Parallel stores to {buffer.name} and reads it at other elements")
        if steps:
            return self.computed(load)
        if self.fits(load):
            return load
        for known in self.reads:
            if known.buffer.same_as(buffer) and _same_place(known.place, place):
                return tirx.BufferLoad(known.made, known.indices, load.span)
        made, indices = self.part(buffer, place, load)
        self.reads.append(_PartRead(buffer, place, made, indices))
        return tirx.BufferLoad(made, indices, load.span)

    def computed(self, load: ir.TensorLoad) -> ir.Expr:
        """The element of a block that holds those at the computed places of a load."""
        buffer, indices = load.source, [written_out(one, self.names) for one in load.indices]
        if any(loads_of(one) for one in indices):
            return load
        for known in self.gathered:
            if known.source.same_as(buffer) and same_expressions(known.places, indices):
                return tirx.BufferLoad(known.made, known.indices, load.span)
        # Elements that are the same for all rows are a row, those that are the same for all columns a column.
        used = [one for one in self.variables if any(uses(index, one) for index in indices)]
        own = [*used] or [*self.variables]
        shape = [extent for one, extent in zip(self.variables, self.extents, strict=True) if _is_in(one, own)]
        made = self.parts.of(buffer, "rearranged", shape)

        def places(at: Sequence[ir.Expr]) -> list[ir.Expr]:
            values: dict[ir.Expr, ir.Expr] = dict(zip(own, at, strict=True))
            return [replaced(one, lambda part: values.get(part, part)) for one in indices]

        self.before += [made, rearranged(buffer, made.buffer, places, self.parts.bounds, span_of(load))]
        self.gathered.append(_Gathered(buffer, indices, made.buffer, [*own]))
        return tirx.BufferLoad(made.buffer, [*own], load.span)

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
            return any(indices[0].same_as(one) for one in self.variables)
        zero = [constant(index) == 0 for index in indices]
        return (zero[0] and bool(indices[1].same_as(column))) or (zero[1] and bool(indices[0].same_as(row)))

    def part(self, buffer: tirx.Buffer, place: list[_Index], load: ir.TensorLoad) -> tuple[tirx.Buffer, list[ir.Expr]]:
        """A block that holds the part that a load reads, and the indices of its element."""
        axis = 0
        for one in place:
            if one.variable is None:
                buffer, made = self.chosen(buffer, axis, one.start)
                self.before += made
            else:
                axis += 1
        along = [one for one in place if one.variable is not None]
        if not along:
            return buffer, [tirx.const(0, "int32")]
        if len(along) == 2 and along[0].variable is not None and along[0].variable.same_as(self.variables[1]):
            wanted = self.extents[::-1]
        elif len(along) == len(self.variables):
            wanted = self.extents
        else:
            # A row or column may be longer than the nest: the tiles of its first elements are where they are.
            wanted = [*shape_of(buffer)]
            if constant(along[0].start) != 0:
                wanted = [self.extents[number] for number, one in enumerate(self.variables)
                          if one.same_as(along[0].variable)]  # fmt: skip
        starts = [one.start for one in along]
        if [*shape_of(buffer)] != wanted or any(constant(start) != 0 for start in starts):
            buffer = self.moved(buffer, starts, wanted, load)
        return buffer, [one.variable for one in along if one.variable is not None]

    def chosen(self, buffer: tirx.Buffer, axis: int, at: ir.Expr) -> tuple[tirx.Buffer, list[tirx.Stmt]]:
        """The block without an axis, of which only the elements at one index are left, and what makes it."""
        shape = shape_of(buffer)
        name, dtype = "element" if len(shape) == 1 else ("row", "column")[axis], dtype_of(buffer)
        left = (*shape[:axis], *shape[axis + 1 :]) or (1,)
        # Numbers of 8 bits have no sums of their own.
        wide = dtype if not is_small(dtype) else "int32" if dtype in SMALL_WHOLES else "float32"
        masked = self.parts.of(buffer, "masked", shape, wide)
        result = self.parts.of(buffer, name, left, wide)
        zero = tirx.const(0, wide)
        mask = parallel_nest(masked.buffer, lambda where: tirx.if_then_else(
            tirx.EQ(where[axis], at), _cast(tirx.BufferLoad(buffer, where), wide), zero
        ))  # fmt: skip
        attrs = {"kind": "sum", "dim": axis, "clear": 1}
        reduced = call(tl.REDUCE.name, [whole_region(masked.buffer), whole_region(result.buffer)], attrs)
        made = [masked, mask, result, tirx.Evaluate(reduced)]
        if wide == dtype:
            return result.buffer, made
        small = self.parts.of(buffer, name, left)
        cast = parallel_nest(small.buffer, lambda where: _cast(tirx.BufferLoad(result.buffer, where), dtype))
        return small.buffer, [*made, small, cast]

    def moved(
        self, buffer: tirx.Buffer, starts: Sequence[ir.Expr], shape: Sequence[int], load: ir.TensorLoad
    ) -> tirx.Buffer:
        """The block of another shape that holds what is in another one from these starts on."""
        made = self.parts.of(buffer, "part", shape)
        found = [self.tiles(start, tile) for start, tile in zip(starts, _tiles(len(shape)), strict=True)]
        tiles = [one for one in found if one is not None]
        if len(tiles) == len(found):
            moved = _copied_tiles(buffer, made.buffer, tiles)
        else:

            def places(at: Sequence[ir.Expr]) -> list[ir.Expr]:
                return [start + one for start, one in zip(starts, at, strict=True)]

            moved = rearranged(buffer, made.buffer, places, self.parts.bounds, span_of(load))
        self.before += [made, moved]
        return made.buffer

    def tiles(self, start: ir.Expr, tile: int) -> ir.Expr | None:
        """The tile at which a part starts; None for a part that starts inside of one."""
        if not self.parts.bounds.is_multiple(start, tile):
            return None
        return sym.Analyzer().simplify(tirx.floordiv(start, tile))

    # Storing

    def stored(self, store: tirx.BufferStore, place: list[_Index]) -> _Stored:
        """Where a nest keeps what it stores to a part of a block."""
        self.check_inside(store, place)
        used = [one.variable for one in place if one.variable is not None]
        for variable, extent in zip(self.variables, self.extents, strict=True):
            if extent != 1 and not any(variable.same_as(one) for one in used):
                raise Unsupported(
                    "L003",
                    f"{_shown(store)}: each turn of {variable.name} stores to the same element",
                    hint="store each element once; sums over turns are T.reduce_sum, or "
                    f"T.atomic_add({_shown(store)}, value)",
                    span=span_of(store),
                )
        for one in self.stores:
            if one.buffer.same_as(store.buffer):
                if _same_place(one.place, place):
                    return one
                if not self.are_apart(one.place, place):
                    raise self.refusal(store, f"two stores of one T.Parallel to {store.buffer.name} may overlap")
        self.parts.begun.store_part(store.buffer, self.statement, self.parts.around)
        block = self.parts.of(store.buffer, "part", self.extents)
        turned = len(used) == 2 and bool(used[0].same_as(self.variables[1]))
        made = _Stored(store.buffer, place, block, turned)
        self.stores.append(made)
        return made

    def merged(self, stored: _Stored) -> list[tirx.Stmt]:
        """The block with what a nest stored to a part of it."""
        buffer, block = stored.buffer, stored.allocation.buffer
        shape = shape_of(buffer)
        made: list[tirx.Stmt] = []
        variables = self.variables
        if len(shape) == 1 and len(variables) == 2:
            # The elements for a vector are the only row, or the only column, of the nest.
            along = stored.place[0].variable
            axis = 0 if along is None or along.same_as(variables[1]) else 1
            variables = [variables[1 - axis]]
            block, made = self.chosen(block, axis, tirx.const(0, "int32"))
        wanted = [1] * len(variables)
        along = [_Index(None, tirx.const(0, "int32")) for _ in variables]
        axes: dict[int, int] = {}
        for axis, one in enumerate(stored.place):
            for number, variable in enumerate(variables):
                if one.variable is not None and one.variable.same_as(variable):
                    wanted[number], along[number], axes[number] = shape[axis], one, axis
        if [*shape_of(block)] != wanted or any(constant(one.start) != 0 or one.factor != 1 for one in along):
            sizes = _tiles(len(wanted))[:: -1 if stored.turned else 1]
            placed = self.parts.of(buffer, "placed", wanted)
            backs = [self.tiles(one.start, tile) for one, tile in zip(along, sizes, strict=True) if one.factor == 1]
            tiles = [sym.Analyzer().simplify(0 - one) for one in backs if one is not None]
            if len(tiles) == len(along):
                made += [placed, _copied_tiles(block, placed.buffer, tiles)]
            else:
                given = shape_of(block)

                def places(at: Sequence[ir.Expr]) -> list[ir.Expr]:
                    return [
                        nearest(index, one.start, length, one.factor)
                        for index, one, length in zip(at, along, given, strict=True)
                    ]

                made += [placed, rearranged(block, placed.buffer, places, self.parts.bounds, span_of(self.statement))]
            block = placed.buffer

        def value(where: list[ir.Var]) -> ir.Expr:
            inside: ir.Expr | None = None
            for axis, one in enumerate(stored.place):
                for test in self.tests(where[axis], one, shape[axis]):
                    inside = test if inside is None else tirx.And(inside, test)
            at: list[ir.Expr] = [
                where[axes[number]] if number in axes else tirx.const(0, "int32") for number in range(len(wanted))
            ]
            new = tirx.BufferLoad(block, at)
            return new if inside is None else tirx.if_then_else(inside, new, tirx.BufferLoad(buffer, where))

        return [*made, parallel_nest(buffer, value)]

    def tests(self, index: ir.Var, at: _Index, length: int) -> list[ir.Expr]:
        """What holds for an index of the part, of those of the block along one axis."""
        if at.variable is None:
            return [] if length == 1 else [tirx.EQ(index, at.start)]
        low, high = self.ends(at)
        unit = abs(at.factor)
        found: list[ir.Expr] = []
        if constant(low) not in range(unit):
            found.append(index >= low)
        if constant(high) not in range(length - unit, length):
            found.append(index < high + 1)
        if unit != 1:
            rest = tirx.floormod(index - at.start, tirx.const(unit, "int32"))
            found.append(tirx.EQ(sym.Analyzer().simplify(rest), tirx.const(0, "int32")))
        return found

    def are_apart(self, one: Sequence[_Index], other: Sequence[_Index]) -> bool:
        """Whether two parts of a block have no element in common: along an axis one ends before the other one begins,
        or they are others of the elements that a step leaves between."""
        for a, b in zip(one, other, strict=True):
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
    return any(variable.same_as(one) for one in variables)


def _tiles(rank: int) -> list[int]:
    return [TILE_ROWS, TILE_COLUMNS][2 - rank :]


def _copied_tiles(source: tirx.Buffer, target: tirx.Buffer, tiles: Sequence[ir.Expr]) -> tirx.Stmt:
    return tirx.Evaluate(call(tl.COPY_TILES.name, [whole_region(source), whole_region(target), *tiles]))


def _cast(value: ir.Expr, dtype: str) -> ir.Expr:
    return value if str(value.ty.dtype) == dtype else tirx.Cast(ir.PrimType(dtype), value)
