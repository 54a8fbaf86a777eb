"""Parts of blocks: rows, columns, elements and regions of blocks on the chip, as whole blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import tvm_ffi
from tvm import ir, sym, tirx

from ttexplore.errors import KernelError, Unsupported
from ttexplore.ir.adapter import call, identity, span_of
from ttexplore.ir.build import (
    allocation,
    arguments,
    attribute,
    constant,
    dtype_of,
    op_name,
    operation,
    parallel_nest,
    regions,
    scope_of,
    shape_of,
    statements,
    whole_region,
    with_nest,
)
from ttexplore.ir.dag import nodes_of, replaced
from ttexplore.ir.dataflow import is_on_chip, is_parallel, loads_of, parallel_body, same_indices
from ttexplore.ir.names import unused_name
from ttexplore.ir.rewrite import Context, Firings, StatementRule, rewrite, walk
from ttexplore.ops.op import UNWRITTEN
from ttexplore.passes.added_buffers import taken_names
from ttexplore.plan import TILE_COLUMNS, TILE_ROWS


def with_whole_blocks(function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
    """The kernel whose statements work on whole blocks.

        for i, j in T.Parallel(4, 64):          a_masked = a where its row is 2, else 0
            o[i, j] = a[2, j] * b[i, j]    ==>  T.reduce_sum(a_masked, a_row, dim=0)
                                                for i, j in T.Parallel(4, 64):
                                                    o[i, j] = a_row[j] * b[i, j]

        T.copy(a[:, 64:96], b)             ==>  T.copy_tiles(a, b, 0, 2)

        T.copy(v, a[:, k])                 ==>  a[i, j] = v[i] where j is k, else a[i, j]

    A row, a column or an element is chosen with a mask and a sum, which is exact: all other terms are zero. Regions
    that start at tiles move as tiles. What is stored to a part of a block is chosen there, and the rest of the block
    stays. What has another form is left as it is, for later passes to refuse.
    """
    parts = _Parts(function, firings)
    fired = len(firings.all)
    made = rewrite(_RULES, parts)
    if parts.begun:
        made = rewrite([_BEGUN], parts.filled(made))
    return made if len(firings.all) > fired else function


@dataclass(frozen=True)
class _Index:
    """An index of a block: a loop variable with something added to it, or something that is the same for all turns."""

    variable: ir.Var | None
    start: ir.Expr

    def same_as(self, other: _Index) -> bool:
        if (self.variable is None) != (other.variable is None):
            return False
        if self.variable is not None and not self.variable.same_as(other.variable):
            return False
        return bool(tvm_ffi.structural_equal(self.start, other.start))


def _same_place(one: Sequence[_Index], other: Sequence[_Index]) -> bool:
    return all(a.same_as(b) for a, b in zip(one, other, strict=True))


class _Parts(Context):
    """`begun` are the blocks of which parts are stored before the whole is."""

    def __init__(self, function: tirx.PrimFunc, firings: Firings) -> None:
        super().__init__(function, firings)
        self.names = taken_names(function)
        self.begun: list[tirx.Buffer] = []
        self._order = {identity(one): number for number, one in enumerate(walk(function.body))}
        self._wholes = _whole_writes(function)

    def filled(self, function: tirx.PrimFunc) -> _Begun:
        return _Begun(function, self.firings, self.begun)

    def allocate(self, like: tirx.Buffer, name: str, shape: Sequence[int]) -> tirx.AllocBuffer:
        unique = unused_name(f"{like.name}_{name}", self.names)
        self.names.add(unique)
        return allocation(unique, shape, dtype_of(like), "local.fragment")

    def begin(self, buffer: tirx.Buffer, statement: tirx.Stmt) -> None:
        """Note that a part of a buffer is stored, and whether the buffer has been written as a whole before."""
        place, around = self._order[identity(statement)], [identity(one) for one in self.around]
        for before, loops in self._wholes.get(buffer, ()):
            if before < place and loops == around[: len(loops)]:
                return
        if not any(buffer.same_as(one) for one in self.begun):
            self.begun.append(buffer)

    # Operations on regions

    def operation(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        name = op_name(statement)
        places = {"tl.copy": 2, "tl.fill": 1, "tl.gemm": 3, "tl.reduce": 2}.get(name)
        if places is None:
            return None
        parts = arguments(statement)
        given = [part for part in parts[:places] if isinstance(part, ir.TensorRegion)]
        if name == "tl.copy" and all(is_on_chip(one.source) for one in given):
            source, target = given
            if _is_whole(source) and _is_whole(target) and shape_of(source.source) == shape_of(target.source):
                return None
            return self.copied(source, target, statement)
        if not any(is_on_chip(one.source) and not _is_whole(one) for one in given):
            return None
        if name == "tl.fill":
            return self.stored(given[0], parts[1], statement)
        return self.staged(name, parts, given, statement)

    def staged(
        self, name: str, parts: list[ir.Expr], given: list[ir.TensorRegion], statement: tirx.Stmt
    ) -> list[tirx.Stmt]:
        """An operation on blocks in place of the parts."""
        before: list[tirx.Stmt] = []
        after: list[tirx.Stmt] = []
        clears = bool(attribute(statement, {"tl.gemm": "clear_accum", "tl.reduce": "clear"}.get(name, "")))
        for place, region in enumerate(given):
            if not is_on_chip(region.source) or _is_whole(region):
                continue
            block = self.allocate(region.source, "part", _extents(region))
            whole, writes = whole_region(block.buffer), place == len(given) - 1
            before.append(block)
            if not writes or (name != "tl.copy" and not clears):
                before += self.copied(region, whole, statement)
            if writes:
                after += self.copied(whole, region, statement)
            parts[place] = whole
        attrs = operation(statement).attrs
        kept = {} if attrs is None else {str(key): value for key, value in attrs.items()}
        return [*before, tirx.Evaluate(call(name, parts, kept), statement.span), *after]

    def copied(self, source: ir.TensorRegion, target: ir.TensorRegion, statement: tirx.Stmt) -> list[tirx.Stmt]:
        """The copy of a part of a block, as a T.Parallel over it."""
        driver, other = (source, target) if _is_whole(source) and not _is_whole(target) else (target, source)
        axes = [*enumerate(_extents(driver))]
        if not _is_whole(driver):
            axes = [(axis, extent) for axis, extent in axes if extent != 1] or axes[-1:]
        if len(axes) > 2:
            raise Unsupported(
                "L010",
                f"a copy of {len(axes)} axes of {driver.source.name}",
                hint="copy parts of at most two axes, in a loop over the others",
            )
        variables = [tirx.Var(name, "int32") for name, _ in zip("ij", axes, strict=False)]
        extents = [extent for _, extent in axes]
        own = dict(zip((axis for axis, _ in axes), variables, strict=True))
        longs = [variable for variable, extent in zip(variables, extents, strict=True) if extent != 1]
        theirs: dict[int, ir.Var] = {}
        for axis, extent in enumerate(_extents(other)):
            if extent != 1:
                theirs[axis] = longs[len(theirs)]
        places = {driver: _indices(driver, own), other: _indices(other, theirs)}
        value: ir.Expr = tirx.BufferLoad(source.source, places[source], statement.span)
        if source.source.ty.dtype != target.source.ty.dtype:
            value = tirx.Cast(target.source.ty.dtype, value)
        store = tirx.BufferStore(target.source, value, places[target], statement.span)
        return self.of_nest(_nest(variables, extents, store), statement)

    def stored(self, target: ir.TensorRegion, value: ir.Expr, statement: tirx.Stmt) -> list[tirx.Stmt]:
        """One value for all elements of a part of a block."""
        axes = [(axis, extent) for axis, extent in enumerate(_extents(target)) if extent != 1]
        axes = axes or [(len(target.region) - 1, 1)]
        variables = [tirx.Var(name, "int32") for name, _ in zip("ij", axes, strict=False)]
        own = dict(zip((axis for axis, _ in axes), variables, strict=True))
        store = tirx.BufferStore(target.source, value, _indices(target, own), statement.span)
        return self.of_nest(_nest(variables, [extent for _, extent in axes], store), statement)

    # Elements in T.Parallel

    def nest(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        if not is_parallel(statement) or (self.around and is_parallel(self.around[-1])):
            return None
        return _Nest(self, statement, statement).whole()

    def of_nest(self, nest: tirx.Stmt, statement: tirx.Stmt) -> list[tirx.Stmt]:
        made = _Nest(self, nest, statement).whole()
        return [nest] if made is None else made


@dataclass
class _Stored:
    """What a nest stores to a part of a block: where, and the block that holds it until the nest has ended."""

    buffer: tirx.Buffer
    place: list[_Index]
    allocation: tirx.AllocBuffer
    turned: bool


@dataclass
class _Read:
    """A part of a block that a nest reads, as a block of its own."""

    buffer: tirx.Buffer
    place: list[_Index]
    made: tirx.Buffer
    indices: list[ir.Expr]


@dataclass
class _Nest:
    """A T.Parallel nest that is to read and store whole blocks only; `statement` is the kernel's own. `names` are those
    of indices, `before` and `after` the statements around the nest."""

    parts: _Parts
    nest: tirx.Stmt
    statement: tirx.Stmt
    names: dict[ir.Var, ir.Expr] = field(default_factory=dict["ir.Var", "ir.Expr"])
    before: list[tirx.Stmt] = field(default_factory=list["tirx.Stmt"])
    stores: list[_Stored] = field(default_factory=list[_Stored])
    reads: list[_Read] = field(default_factory=list[_Read])

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
                    inside.append(tirx.Bind(one.var, self.read(one.value), one.span))
                    if not loads_of(one.value):
                        self.names[one.var] = one.value
                case tirx.BufferStore() if not is_on_chip(one.buffer):
                    return None
                case tirx.BufferStore():
                    value = self.read(one.value)
                    if self.is_whole(one):
                        inside.append(tirx.BufferStore(one.buffer, value, list(one.indices), one.span))
                        continue
                    place = self.place(one.indices)
                    if place is None or self.is_kept(one.buffer):
                        return None
                    block = self.stored(one, place)
                    inside.append(tirx.BufferStore(block.allocation.buffer, value, [*self.variables], one.span))
                case _:
                    return None
        if not self.reads and not self.stores:
            return None
        after = [part for one in self.stores for part in self.merged(one)]
        allocated = [one.allocation for one in self.stores]
        return [*self.before, *allocated, with_nest(self.loops, inside), *after]

    def is_whole(self, store: tirx.BufferStore) -> bool:
        return same_indices(store.indices, self.variables) and [*shape_of(store.buffer)] == self.extents

    def is_kept(self, buffer: tirx.Buffer) -> bool:
        return any(buffer.same_as(one) for one in self.kept)

    def place(self, indices: Sequence[ir.Expr]) -> list[_Index] | None:
        """What the indices of an element are; None for others than starts with a loop variable each."""
        found: list[_Index] = []
        for index in indices:
            while any(part in self.names for part in nodes_of(index) if isinstance(part, ir.Var)):
                index = replaced(index, lambda part: self.names.get(part, part) if isinstance(part, ir.Var) else part)
            if loads_of(index):
                return None
            used = [one for one in self.variables if any(part.same_as(one) for part in nodes_of(index))]
            if not used:
                found.append(_Index(None, sym.Analyzer().simplify(index)))
                continue
            start = sym.Analyzer().simplify(index - used[0])
            if any(part.same_as(one) for part in nodes_of(start) for one in self.variables):
                return None
            found.append(_Index(used[0], start))
        variables = [one.variable for one in found if one.variable is not None]
        return found if len({*variables}) == len(variables) else None

    def extent(self, index: _Index) -> int:
        """How many elements an index reaches."""
        found = [
            n for n, one in enumerate(self.variables) if index.variable is not None and one.same_as(index.variable)
        ]
        return self.extents[found[0]] if found else 1

    def check_inside(self, access: ir.TensorLoad | tirx.BufferStore, place: Sequence[_Index]) -> None:
        """Raise KernelError where indices leave a block."""
        buffer = access.buffer if isinstance(access, tirx.BufferStore) else access.source
        for axis, (one, length) in enumerate(zip(place, shape_of(buffer), strict=True)):
            first = constant(one.start)
            if first is not None and (first < 0 or first + self.extent(one) > length):
                reached = first if first < 0 else first + self.extent(one) - 1
                what = "the index" if one.variable is None else str(one.variable.name)
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
            return load
        self.check_inside(load, place)
        for one in reversed(self.stores):
            if not one.buffer.same_as(buffer):
                continue
            if _same_place(one.place, place):
                return tirx.BufferLoad(one.allocation.buffer, [*self.variables], load.span)
            if not self.are_apart(one.place, place):
                raise self.refusal(load, f"one T.Parallel stores to {buffer.name} and reads it at other elements")
        if self.fits(load):
            return load
        for known in self.reads:
            if known.buffer.same_as(buffer) and _same_place(known.place, place):
                return tirx.BufferLoad(known.made, known.indices, load.span)
        made, indices = self.part(buffer, place, load)
        self.reads.append(_Read(buffer, place, made, indices))
        return tirx.BufferLoad(made, indices, load.span)

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
            if one.variable is None and len(shape_of(buffer)) > 2:
                raise Unsupported(
                    "L007",
                    f"{load.source.name} has {len(shape_of(buffer))} dimensions, and one of its slots is read",
                    hint="allocate a buffer of two dimensions for each slot",
                    span=span_of(load),
                )
            if one.variable is None:
                buffer = self.chosen(buffer, axis, one.start)
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

    def chosen(self, buffer: tirx.Buffer, axis: int, at: ir.Expr) -> tirx.Buffer:
        """The block without an axis, of which only the elements at one index are left."""
        shape = shape_of(buffer)
        name = "element" if len(shape) == 1 else ("row", "column")[axis]
        masked = self.parts.allocate(buffer, "masked", shape)
        result = self.parts.allocate(buffer, name, (*shape[:axis], *shape[axis + 1 :]) or (1,))
        zero = tirx.const(0, buffer.ty.dtype)
        mask = parallel_nest(masked.buffer, lambda where: tirx.if_then_else(
            tirx.EQ(where[axis], at), tirx.BufferLoad(buffer, where), zero
        ))  # fmt: skip
        attrs = {"kind": "sum", "dim": axis, "clear": 1}
        reduced = call("tl.reduce", [whole_region(masked.buffer), whole_region(result.buffer)], attrs)
        self.before += [masked, mask, result, tirx.Evaluate(reduced)]
        return result.buffer

    def moved(
        self, buffer: tirx.Buffer, starts: Sequence[ir.Expr], shape: Sequence[int], load: ir.TensorLoad
    ) -> tirx.Buffer:
        """The block of another shape that holds the tiles from these starts on."""
        tiles = [self.tiles(start, tile, load) for start, tile in zip(starts, _tiles(len(shape)), strict=True)]
        made = self.parts.allocate(buffer, "part", shape)
        self.before += [made, _copied_tiles(buffer, made.buffer, tiles)]
        return made.buffer

    def tiles(self, start: ir.Expr, tile: int, access: ir.TensorLoad | tirx.BufferStore) -> ir.Expr:
        """The tile at which a part starts. Raises Unsupported for a part that starts elsewhere."""
        if not self.parts.bounds.is_multiple(start, tile):
            raise self.refusal(access, f"the part starts at {start}, and only whole tiles move", tile)
        return sym.Analyzer().simplify(tirx.floordiv(start, tile))

    # Storing

    def stored(self, store: tirx.BufferStore, place: list[_Index]) -> _Stored:
        """Where a nest keeps what it stores to a part of a block."""
        self.check_inside(store, place)
        used = [one.variable for one in place if one.variable is not None]
        for variable, extent in zip(self.variables, self.extents, strict=True):
            if extent != 1 and not any(variable.same_as(one) for one in used):
                raise self.refusal(store, f"each turn of {variable.name} stores to the same element")
        for one in self.stores:
            if one.buffer.same_as(store.buffer):
                if _same_place(one.place, place):
                    return one
                if not self.are_apart(one.place, place):
                    raise self.refusal(store, f"two stores of one T.Parallel to {store.buffer.name} may overlap")
        self.parts.begin(store.buffer, self.statement)
        block = self.parts.allocate(store.buffer, "part", self.extents)
        turned = len(used) == 2 and bool(used[0].same_as(self.variables[1]))
        made = _Stored(store.buffer, place, block, turned)
        # Starts are checked here, where the store is at hand.
        for one, tile, length in zip(place, _tiles(len(place)), shape_of(store.buffer), strict=True):
            if one.variable is not None and length != 1:
                self.tiles(one.start, tile, store)
        self.stores.append(made)
        return made

    def merged(self, stored: _Stored) -> list[tirx.Stmt]:
        """The block with what a nest stored to a part of it."""
        buffer, block = stored.buffer, stored.allocation.buffer
        shape = shape_of(buffer)
        wanted = [1] * len(self.variables)
        starts: list[ir.Expr] = [tirx.const(0, "int32") for _ in self.variables]
        axes: dict[int, int] = {}
        for axis, one in enumerate(stored.place):
            for number, variable in enumerate(self.variables):
                if one.variable is not None and one.variable.same_as(variable):
                    wanted[number], starts[number], axes[number] = shape[axis], 0 - one.start, axis
        made: list[tirx.Stmt] = []
        if [*shape_of(block)] != wanted or any(constant(start) != 0 for start in starts):
            sizes = _tiles(len(wanted))
            if stored.turned:
                sizes = sizes[::-1]
            tiles = [
                sym.Analyzer().simplify(0 - tirx.floordiv(0 - start, tile))
                for start, tile in zip(starts, sizes, strict=True)
            ]
            placed = self.parts.allocate(buffer, "placed", wanted)
            made += [placed, _copied_tiles(block, placed.buffer, tiles)]
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
        extent = self.extent(at)
        found: list[ir.Expr] = []
        if constant(at.start) != 0:
            found.append(index >= at.start)
        if constant(at.start + extent) != length:
            found.append(index < at.start + extent)
        return found

    def are_apart(self, one: Sequence[_Index], other: Sequence[_Index]) -> bool:
        """Whether two parts of a block have no element in common."""

        return any(
            self.parts.bounds.proves(a.start + self.extent(a) <= b.start)
            or self.parts.bounds.proves(b.start + self.extent(b) <= a.start)
            for a, b in zip(one, other, strict=True)
        )

    def refusal(self, access: ir.TensorLoad | tirx.BufferStore, why: str, tile: int = 0) -> Unsupported:
        buffer = access.buffer if isinstance(access, tirx.BufferStore) else access.source
        indices = ", ".join(str(index) for index in access.indices)
        hint = "store each element once, and use two T.Parallel nests where one needs what the other stores"
        if tile:
            hint = f"start at a multiple of {tile}, or T.copy the part from the tensor to a block of its own"
        return Unsupported(
            "L007" if tile else "L003", f"{buffer.name}[{indices}]: {why}", hint=hint, span=span_of(access)
        )


# The dtypes in which an element that was never written shows.
_SHOWING = ("float32", "bfloat16", "float16", "int32")


class _Begun(Context):
    """Blocks that are filled where they are allocated, with what the reference finds in elements never written."""

    def __init__(self, function: tirx.PrimFunc, firings: Firings, begun: Sequence[tirx.Buffer]) -> None:
        super().__init__(function, firings)
        self.begun = begun

    def allocation(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        if not isinstance(statement, tirx.AllocBuffer) or not any(statement.buffer.same_as(one) for one in self.begun):
            return None
        dtype = dtype_of(statement.buffer)
        nothing = UNWRITTEN["int32" if dtype == "int32" else "float32"] if dtype in _SHOWING else 0
        value = tirx.const(nothing, statement.buffer.ty.dtype)
        return [statement, tirx.Evaluate(call("tl.fill", [whole_region(statement.buffer), value]))]


def _whole_writes(function: tirx.PrimFunc) -> dict[tirx.Buffer, list[tuple[int, list[int]]]]:
    """For each block the statements that write all of it: their number, and the loops and branches around them."""
    found: dict[tirx.Buffer, list[tuple[int, list[int]]]] = {}
    order = {identity(one): number for number, one in enumerate(walk(function.body))}

    def visit(body: tirx.Stmt, around: list[int]) -> None:
        for statement in statements(body):
            number = order[identity(statement)]
            if is_parallel(statement):
                loops, inside = parallel_body(statement)
                variables, extents = [one.loop_var for one in loops], [constant(one.extent) for one in loops]
                for one in inside:
                    if (
                        isinstance(one, tirx.BufferStore)
                        and same_indices(one.indices, variables)
                        and [*shape_of(one.buffer)] == extents
                    ):
                        found.setdefault(one.buffer, []).append((number, around))
            elif isinstance(statement, tirx.For | tirx.While):
                visit(statement.body, [*around, identity(statement)])
            elif isinstance(statement, tirx.IfThenElse):
                visit(statement.then_case, [*around, identity(statement)])
                if statement.else_case is not None:
                    # What one branch writes the other does not find.
                    visit(statement.else_case, [*around, -identity(statement)])
            elif op_name(statement) in ("tl.copy", "tl.fill", "tl.reduce", "tl.gemm"):
                target = regions(statement)[-1]
                if is_on_chip(target.source) and _is_whole(target):
                    found.setdefault(target.source, []).append((number, around))

    visit(function.body, [])
    return found


def _is_whole(region: ir.TensorRegion) -> bool:
    return _extents(region) == [*shape_of(region.source)] if is_on_chip(region.source) else True


def _extents(region: ir.TensorRegion) -> list[int]:
    found = [constant(part.extent) for part in region.region]
    if None in found:
        raise Unsupported("L006", f"{region.source.name}: a region of variable size", hint="use constant block sizes")
    return [extent for extent in found if extent is not None]


def _indices(region: ir.TensorRegion, variables: dict[int, ir.Var]) -> list[ir.Expr]:
    """The indices of the element of a region at loop variables, by axis."""
    return [
        part.min if axis not in variables
        else variables[axis] if constant(part.min) == 0
        else part.min + variables[axis]
        for axis, part in enumerate(region.region)
    ]  # fmt: skip


def _nest(variables: Sequence[ir.Var], extents: Sequence[int], body: tirx.Stmt) -> tirx.Stmt:
    for variable, extent in reversed([*zip(variables, extents, strict=True)]):
        body = tirx.For(
            variable, tirx.const(0, "int32"), tirx.const(extent, "int32"), tirx.ForKind.PARALLEL, body, span=body.span
        )
    return body


def _tiles(rank: int) -> list[int]:
    return [TILE_ROWS, TILE_COLUMNS][2 - rank :]


def _copied_tiles(source: tirx.Buffer, target: tirx.Buffer, tiles: Sequence[ir.Expr]) -> tirx.Stmt:
    return tirx.Evaluate(call("tl.copy_tiles", [whole_region(source), whole_region(target), *tiles]))


_RULES = (
    StatementRule(
        "part of a block", "An operation on a part of a block works on a block of its own.", _Parts.operation
    ),
    StatementRule(
        "parts of blocks", "A T.Parallel reads and stores whole blocks; masks choose their parts.", _Parts.nest
    ),
)  # fmt: skip
_BEGUN = StatementRule(
    "before the first part", "A block of which parts are stored first begins with NaN, which shows.", _Begun.allocation
)
