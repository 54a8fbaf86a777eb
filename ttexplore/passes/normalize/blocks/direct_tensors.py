"""Tensors that a kernel works on directly: their elements in T.Parallel, and whole regions as operands."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tvm import ir, sym, tirx

from ttexplore.analysis.added_buffers import NewBuffers
from ttexplore.errors import Unsupported
from ttexplore.ir.adapter import call, span_of
from ttexplore.ir.arithmetic.limited import condition_of, value_of
from ttexplore.ir.arithmetic.sizes import constant_extents, matrix_extents
from ttexplore.ir.build import (
    arguments,
    attribute,
    attributes,
    constant,
    dtype_of,
    op_name,
    overwrites,
    regions,
    runs,
    shape_of,
    variable,
    when,
    whole_region,
    whole_tensor,
    with_nest,
    with_value,
)
from ttexplore.ir.dag import (
    conjuncts,
    factor_of,
    nodes_of,
    replaced,
    same_expression,
    same_expressions,
    uses,
    written_out,
)
from ttexplore.ir.dataflow import is_on_chip, loads_of, parallel_body, same_indices
from ttexplore.ir.operations.atomics import ATOMIC, kinds_of, plain
from ttexplore.ir.rewrite import Firings, StatementRule, rewrite
from ttexplore.ops import language as tl
from ttexplore.passes.normalize.blocks.plain_elements import store_refused

if TYPE_CHECKING:
    from typing_extensions import TypeIs


def with_staged_tensors(function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
    """The kernel with every tensor copied to and from blocks on the chip, where it works on tensors directly.

        for i, j in T.Parallel(32, 64):                   T.copy(A[by * 32 : +32, bx * 64 : +64], A_block)
            C[by * 32 + i, bx * 64 + j] =            ==>  for i, j in T.Parallel(32, 64):
                A[by * 32 + i, bx * 64 + j] * 2               C_block[i, j] = A_block[i, j] * 2
                                                          T.copy(C_block, C[by * 32 : +32, bx * 64 : +64])

        T.copy(A[bx * 64 : +64], B[bx * 64 : +64])   ==>  T.copy(A[bx * 64 : +64], A_block)
                                                          T.copy(A_block, B[bx * 64 : +64])

    Raises Unsupported for elements that make no block.
    """
    return rewrite(_RULES, _Staging(function, firings))


# An element of a tensor that is read or stored.
_Access = ir.TensorLoad | tirx.BufferStore


@dataclass(frozen=True)
class _TensorBlock:
    """A block of a tensor: the region of it, the buffer on the chip, and the loop variables that index that; none of
    them index the single element of a block of one. `axes` are the variables along the tensor's axes, of a T.Parallel.
    An `atomic` one is updated, or read for that: it has a bit for each kind of update."""

    region: ir.TensorRegion
    allocation: tirx.AllocBuffer
    variables: tuple[ir.Var, ...]
    axes: tuple[ir.Var | None, ...] = ()
    atomic: int = 0
    # The indices of elements at computed places.
    places: tuple[ir.Expr, ...] = ()
    # The condition under which the elements of a block are stored.
    condition: ir.Expr | None = None

    @property
    def buffer(self) -> tirx.Buffer:
        return self.allocation.buffer

    @property
    def indices(self) -> list[ir.Expr]:
        return [*self.variables] or [tirx.const(0, "int32")]

    def load(self, into: tirx.Buffer | None = None) -> tirx.Stmt:
        """The statement that loads the block, perhaps into another buffer of its shape."""
        target = whole_region(self.buffer if into is None else into)
        if self.places:
            own = [tirx.Var(name, "int32") for name in ("row", "column")]
            values: dict[ir.Expr, ir.Expr] = dict(zip(self.variables, own[2 - len(self.variables) :], strict=True))
            places = [replaced(one, lambda part: values.get(part, part)) for one in self.places]
            return tirx.Evaluate(call(tl.GATHER.name, [self.region, target, *own, *places]))
        return self._copy([self.region, target])

    def store(self) -> list[tirx.Stmt]:
        """The statements that store the block: of its rows and columns those for which its condition holds."""
        if self.condition is None:
            return [self._copy([whole_region(self.buffer), self.region])]
        made: list[tirx.Stmt] = []
        region, tests = list(self.region.region), list[ir.Expr]()
        for one in conjuncts(self.condition):
            axes = [axis for axis, run in enumerate(self.axes) if run is not None and uses(one, run)]
            varying = [run for run in self.variables if uses(one, run)]
            if not varying:
                tests.append(one)
                continue
            full = constant(self.region.region[axes[0]].extent) if len(axes) == len(varying) == 1 else None
            if full == 1:
                tests.append(_at(one, varying[0], 0))
                continue
            stored = None if full is None else _count(one, varying[0], full)
            if stored is None:
                raise store_refused(self.region.source, one)
            axis = axes[0]
            region[axis] = ir.Range.from_min_extent(region[axis].min, tirx.Min(region[axis].extent, stored))
        for axis, part in enumerate(region):
            if constant(part.extent) != constant(self.region.region[axis].extent):
                name = variable("stored")
                made.append(tirx.Bind(name, part.extent))
                region[axis] = ir.Range.from_min_extent(part.min, name)
        made.append(self._copy([whole_region(self.buffer), tirx.BufferRegion(self.region.source, region)]))
        return [when(functools.reduce(tirx.And, tests), made)] if tests else made

    def _copy(self, parts: list[ir.TensorRegion]) -> tirx.Stmt:
        return tirx.Evaluate(call(tl.COPY.name, parts, {ATOMIC: self.atomic} if self.atomic else None))


class _Staging(NewBuffers):
    # Operations on regions

    def operation(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        name = op_name(statement)
        if name not in tl.STATEMENTS:
            return None
        parts = arguments(statement)
        direct = [n for n, one in enumerate(parts) if _is_tensor(one)]
        if not direct or not runs(statement, tl.FILL, tl.COPY, tl.REDUCE, tl.GEMM):
            return None
        target = tl.BLOCKS[name].target
        if name == tl.COPY.name:
            # A block in between is all that a copy between tensors needs.
            return self.between(statement) if len(direct) == len(parts) else None
        loads: list[tirx.Stmt] = []
        stores: list[tirx.Stmt] = []
        for place in direct:
            region = parts[place]
            matrix = name == tl.GEMM.name or (name == tl.REDUCE.name and place != target)
            assert isinstance(region, ir.TensorRegion)
            block = _TensorBlock(region, self.block_of(region.source, _shape(region, keeps_matrix=matrix)), ())
            loads.append(block.allocation)
            if place != target or not overwrites(statement):
                loads.append(block.load())
            if place == target:
                stores += block.store()
            parts[place] = whole_region(block.buffer)
        attrs = attributes(statement)
        if name == tl.REDUCE.name:
            # The axes that the block does not have come before the others.
            before, after = regions(statement)[0], parts[0]
            assert isinstance(after, ir.TensorRegion)
            axis = attribute(statement, "dim") - (len(before.region) - len(after.region))
            if axis < 0:
                raise Unsupported(
                    "L007",
                    f"a reduction of {before.source.name} along an axis of one element",
                    hint="copy the block: there is nothing to join",
                )
            attrs["dim"] = axis
        made = tirx.Evaluate(call(name, parts, attrs), statement.span)
        return [*loads, made, *stores]

    def between(self, statement: tirx.Stmt) -> list[tirx.Stmt]:
        source, target = regions(statement)
        block = _TensorBlock(source, self.block_of(source.source, _shape(source, keeps_matrix=False)), ())
        stored = tirx.Evaluate(call(tl.COPY.name, [whole_region(block.buffer), target]), statement.span)
        return [block.allocation, block.load(), stored]

    def block_of(self, tensor: tirx.Buffer, shape: tuple[int, ...]) -> tirx.AllocBuffer:
        """The allocation of a block with elements of a tensor."""
        return self.allocate(f"{tensor.name}_block", shape, dtype_of(tensor))

    # Elements in T.Parallel

    def nest(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        if not self.is_nest(statement):
            return None
        loops, body = parallel_body(statement)
        stores = [one for one in body if isinstance(one, tirx.BufferStore) and not is_on_chip(one.buffer)]
        loads = [
            load for one in body if isinstance(one, tirx.BufferStore | tirx.Bind)
            for load in loads_of(one.value) if not is_on_chip(load.source)
        ]  # fmt: skip
        if not stores and not loads:
            return None
        for one in stores:
            if known := [load for index in one.indices for load in loads_of(index)]:
                raise _scattered(one, known[0])
        if any(loads_of(index) for one in (*stores, *loads) for index in one.indices):
            # Where to read or write depends on elements: that is refused where all such uses are.
            return None
        elements = _TensorElements(
            self, loops, {one.var: one.value for one in body if isinstance(one, tirx.Bind)}, stores
        )
        inside: list[tirx.Stmt] = []
        for one in body:
            match one:
                case tirx.Bind():
                    inside.append(with_value(one, elements.read(one.value)))
                case tirx.BufferStore():
                    inside.append(elements.store(one))
                case _:
                    inside.append(one)
        elements.check_order()
        allocated = [block.allocation for block in elements.stored]
        after = [one for block in elements.stored for one in block.store()]
        if (only := _only_moves(inside, elements.loaded)) is not None:
            return [*allocated, elements.loaded[0].load(only), *after]
        before = [part for block in elements.loaded for part in (block.allocation, block.load())]
        return [*before, *allocated, with_nest(loops, inside), *after]


@dataclass(frozen=True)
class _Run:
    """Elements of a tensor that the turns of a loop store in steps along one axis: `low` is the first of them. `others`
    are the loop variables and the starts of the other axes."""

    axis: int
    variable: ir.Var
    factor: int
    extent: int
    low: ir.Expr
    others: tuple[tuple[ir.Var | None, ir.Expr], ...] = ()

    def apart(self, other: _Run) -> int | None:
        """How many elements after this one another store begins; None where they are no parts of one run."""
        same = self.axis == other.axis and self.factor == other.factor and self.variable.same_as(other.variable)
        if not same or not _same_axes(*(tuple(one for one, _ in run.others) for run in (self, other))):
            return None
        if not same_expressions(*([low for _, low in run.others] for run in (self, other))):
            return None
        return constant(sym.Analyzer().simplify(other.low - self.low))


class _TensorElements:
    """The blocks that the elements of tensors in one T.Parallel nest make. `names` are those of the nest and what they
    stand for, `stores` its stores to tensors."""

    def __init__(
        self, staging: _Staging, loops: list[tirx.For], names: dict[ir.Var, ir.Expr], stores: list[tirx.BufferStore]
    ) -> None:
        self.staging, self.names, self.stores = staging, names, stores
        self.extents = {loop.loop_var: extent for loop in loops if (extent := constant(loop.extent)) is not None}
        self.variables = [loop.loop_var for loop in loops]
        self.loaded: list[_TensorBlock] = []
        self.stored: list[_TensorBlock] = []

    def read(self, value: ir.Expr, updated: tirx.Buffer | None = None, kinds: int = 0) -> ir.Expr:
        """The value with elements of blocks instead of tensors; of the tensor `updated`, in these ways, it is the old
        value."""

        def load(part: ir.Expr) -> ir.Expr:
            if not isinstance(part, ir.TensorLoad) or is_on_chip(part.source):
                return part
            atomic = kinds if updated is not None and part.source.same_as(updated) else 0
            try:
                block = self.block(part, atomic=atomic)
            except Unsupported:
                gathered = None if atomic else self.gathered(part)
                if gathered is None:
                    raise
                block = gathered
            return tirx.BufferLoad(block.buffer, block.indices, part.span)

        return replaced(value, load)

    def store(self, statement: tirx.BufferStore) -> tirx.Stmt:
        if is_on_chip(statement.buffer):
            value = self.read(statement.value)
            return with_value(statement, value)
        atomic, condition = kinds_of(statement.value), condition_of(statement.value)
        value = plain(self.read(value_of(statement.value), statement.buffer, atomic))
        if condition is not None:
            condition = written_out(condition, self.names)
        run = None if atomic else self.run(statement)
        if run is not None and (condition is None or not uses(condition, run.variable)):
            return self.stored_in(run, statement, value, condition)
        block = self.block(statement, atomic=atomic, condition=condition)
        return tirx.BufferStore(block.buffer, value, block.indices, statement.span)

    def run(self, store: tirx.BufferStore) -> _Run | None:
        """The run of elements that a store with others like it stores to a tensor, each some of them."""
        runs = [
            run for run in map(self.steps, (one for one in self.stores if one.buffer.same_as(store.buffer)))
            if run is not None
        ]  # fmt: skip
        own = self.steps(store)
        if own is None or len(runs) != sum(one.buffer.same_as(store.buffer) for one in self.stores):
            return None
        apart = [own.apart(one) for one in runs]
        if None in apart:
            return None
        first = min(one for one in apart if one is not None)
        if {one - first for one in apart if one is not None} != {*range(abs(own.factor))}:
            beside = [*store.indices]
            beside[own.axis] = sym.Analyzer().simplify(beside[own.axis] + 1)
            shown = [f"{store.buffer.name}[{', '.join(map(str, one))}]" for one in (store.indices, beside)]
            raise self.refusal(
                store, "stores to", f"of each {abs(own.factor)} elements it leaves some as they are",
                hint=f"store all of them in one T.Parallel: {shown[0]}, {shown[1]} and so on",
            )  # fmt: skip
        low = own.low + first + min(own.factor, 0) * (own.extent - 1)
        return replace(own, low=sym.Analyzer().simplify(low))

    def steps(self, store: tirx.BufferStore) -> _Run | None:
        """The run that a store begins whose index counts in steps along one axis, and along others one by one."""
        places: list[tuple[ir.Var | None, ir.Expr]] = []
        found: _Run | None = None
        for axis, index in enumerate(store.indices):
            index = written_out(index, self.names)
            used = [one for one in self.variables if uses(index, one)]
            if not used:
                places.append((None, index))
                continue
            factor = factor_of(index, used[0])
            low = sym.Analyzer().simplify(index - used[0] * factor)
            extent = self.extents.get(used[0])
            if not factor or extent is None or any(uses(low, one) for one in self.variables):
                return None
            places.append((used[0], low))
            if factor != 1 and found is not None:
                return None
            if factor != 1:
                found = _Run(axis, used[0], factor, extent, low)
        if found is None or len({one for one, _ in places if one is not None}) < len(self.variables):
            return None
        return replace(found, others=tuple(one for axis, one in enumerate(places) if axis != found.axis))

    def stored_in(
        self, run: _Run, store: tirx.BufferStore, value: ir.Expr, condition: ir.Expr | None
    ) -> tirx.BufferStore:  # fmt: skip
        """The store to the block of a run."""
        places = [*run.others]
        places.insert(run.axis, (run.variable, run.low))
        lengths = {**self.extents, run.variable: run.extent * abs(run.factor)}
        region = tirx.BufferRegion(store.buffer, [
            ir.Range.from_min_extent(low, tirx.const(1 if one is None else lengths[one], "int32"))
            for one, low in places
        ])  # fmt: skip
        block = next((one for one in self.stored if _same_region(one.region, region)), None)
        if block is None:
            used = tuple(one for one, _ in places if one is not None)
            buffer = self.staging.block_of(store.buffer, tuple(lengths[one] for one in used))
            block = _TensorBlock(region, buffer, used, tuple(one for one, _ in places), condition=condition)
            self.stored.append(block)
        elif not _same_condition(block.condition, condition):
            raise self.refusal(store, "stores to", "other stores to these elements have other conditions")
        at = sym.Analyzer().simplify(written_out(store.indices[run.axis], self.names) - run.low)
        indices = [at if one.same_as(run.variable) else one for one in block.variables]
        return tirx.BufferStore(block.buffer, value, indices, store.span)

    def gathered(self, load: ir.TensorLoad) -> _TensorBlock | None:
        """The block of elements at computed places; None where the nest is no block."""
        extents = [self.extents.get(one) for one in self.variables]
        if not 1 <= len(extents) <= 2 or None in extents or any(loads_of(index) for index in load.indices):
            return None
        places = [written_out(index, self.names) for index in load.indices]
        for block in self.loaded:
            if block.places and block.region.source.same_as(load.source) and same_expressions(block.places, places):
                return block
        shape = tuple(extent for extent in extents if extent is not None)
        block = _TensorBlock(
            whole_tensor(load.source), self.staging.block_of(load.source, shape), tuple(self.variables),
            axes=(None,) * len(places), places=tuple(places),
        )  # fmt: skip
        self.loaded.append(block)
        return block

    def block(self, access: _Access, *, atomic: int, condition: ir.Expr | None = None) -> _TensorBlock:
        """The block that an element is one of, as its loop variables run; `condition` is that of a store."""
        writes = isinstance(access, tirx.BufferStore)
        tensor = access.buffer if writes else access.source
        does = "stores to" if writes else "reads"
        places = [self.place(access, index, does) for index in access.indices]
        axes = tuple(variable for variable, _ in places)
        used = [variable for variable, _ in places if variable is not None]
        if len({*used}) < len(used):
            raise self.refusal(access, does, "one variable runs along two axes")
        if writes:
            if missing := [one for one in self.variables if one not in used and self.extents.get(one) != 1]:
                hint = f"add up these turns on the chip, with T.reduce_sum, and the sums to {tensor.name}"
                why = f"each turn of {missing[0].name} stores to the same element"
                raise self.refusal(access, does, why, hint if atomic else "")
            # Loops of one turn are axes of the block, too: the store indexes it with all variables.
            for number, one in enumerate(self.variables):
                if one not in used:
                    used.insert(number, one)
        region = tirx.BufferRegion(tensor, [
            ir.Range.from_min_extent(low, tirx.const(1 if variable is None else self.extents[variable], "int32"))
            for variable, low in places
        ])  # fmt: skip
        # What the nest has stored is read from where it was stored.
        for block in self.stored if writes else (*self.stored, *self.loaded):
            if _same_region(block.region, region) and _same_axes(block.axes, axes) and block.atomic == atomic:
                if (writes or block in self.stored) and not _same_condition(block.condition, condition):
                    raise self.refusal(access, does, "other stores to these elements have other conditions")
                return block
        shape = tuple(self.extents[one] for one in used) or (1,)
        made = _TensorBlock(
            region, self.staging.block_of(tensor, shape), tuple(used), axes, atomic, condition=condition
        )
        (self.stored if writes else self.loaded).append(made)
        return made

    def check_order(self) -> None:
        """Raise Unsupported where a tensor is stored to and read at other elements: all blocks are read before."""
        for stored in self.stored:
            tensor = stored.region.source
            others = [one for one in self.stored if one.atomic or stored.atomic]
            for one in (*self.loaded, *others):
                same = _same_region(one.region, stored.region) and _same_axes(one.axes, stored.axes)
                if one.region.source.same_as(tensor) and not (same and one.atomic == stored.atomic):
                    raise Unsupported(
                        "L003",
                        f"one T.Parallel stores to {tensor.name} and uses it at other elements, or in another way",
                        hint="use two T.Parallel nests, one after the other",
                    )

    def place(self, access: _Access, index: ir.Expr, does: str) -> tuple[ir.Var | None, ir.Expr]:
        """The loop variable that an index counts up with, and where it starts."""
        index = written_out(index, self.names)
        used = [one for one in self.variables if uses(index, one)]
        if not used:
            low, variable = index, None
        else:
            variable = used[0]
            low = sym.Analyzer().simplify(index - variable)
            if variable not in self.extents:
                raise self.refusal(access, does, f"the length of {variable.name} is only known when the kernel runs")
        for part in nodes_of(low):
            if part in self.variables:
                divides = any(isinstance(one, tirx.FloorDiv | tirx.FloorMod) for one in nodes_of(index))
                hint = (
                    "through a view of another shape, T.copy a block on the chip: one that divides the last axes of "
                    "the tensor, or is a multiple of them"
                )
                why = f"{index} is no loop variable with something added to it"
                raise self.refusal(access, does, why, hint if divides and isinstance(access, tirx.BufferStore) else "")
        return variable, low

    def refusal(self, access: _Access, does: str, why: str, hint: str = "") -> Unsupported:
        tensor = access.buffer if isinstance(access, tirx.BufferStore) else access.source
        indices = ", ".join(str(index) for index in access.indices)
        return Unsupported(
            "L003",
            f"T.Parallel {does} {tensor.name}[{indices}]: {why}",
            hint=hint
            or "index each axis by one loop variable, with a start that is the same for all turns: "
            f"{tensor.name}[start + i, j]; or T.copy a block and index that",
            span=span_of(access),
        )


def _scattered(store: tirx.BufferStore, place: ir.TensorLoad) -> Unsupported:
    tensor = store.buffer.name
    return Unsupported(
        "L003",
        f"T.Parallel stores to {tensor} where an element of {place.source.name} says, another one in each turn",
        hint="store one element after another, where elements of a tensor say: "
        f"for i in range(n): {tensor}[N[i]] = ...",
        span=span_of(store),
    )


def _only_moves(inside: list[tirx.Stmt], loaded: list[_TensorBlock]) -> tirx.Buffer | None:
    """The block on the chip that a nest fills with elements at computed places as they are."""
    stores = [one for one in inside if isinstance(one, tirx.BufferStore)]
    if len(stores) != 1 or len(loaded) != 1 or not loaded[0].places or len(inside) != 1:
        return None
    (store,) = stores
    value, block = store.value, loaded[0]
    if not isinstance(value, ir.TensorLoad) or not value.source.same_as(block.buffer):
        return None
    whole = same_indices(store.indices, block.variables) and shape_of(store.buffer) == shape_of(block.buffer)
    return store.buffer if whole and store.buffer.ty.dtype == block.buffer.ty.dtype else None


def _same_region(one: ir.TensorRegion, other: ir.TensorRegion) -> bool:
    return one.source.same_as(other.source) and all(
        same_expression(a.min, b.min) and same_expression(a.extent, b.extent)
        for a, b in zip(one.region, other.region, strict=True)
    )


def _same_axes(one: tuple[ir.Var | None, ...], other: tuple[ir.Var | None, ...]) -> bool:
    return all(a is b or (a is not None and b is not None and a.same_as(b)) for a, b in zip(one, other, strict=True))


def _same_condition(one: ir.Expr | None, other: ir.Expr | None) -> bool:
    return (one is None and other is None) or (one is not None and other is not None and same_expression(one, other))


def _count(condition: ir.Expr, variable: ir.Var, extent: int) -> ir.Expr | None:
    """For how many of the first values of a loop variable a condition holds; None where it may hold for others, too."""
    if not isinstance(condition, tirx.LT | tirx.LE | tirx.GT | tirx.GE) or str(condition.a.ty.dtype) != "int32":
        return None
    low, high = (condition.a, condition.b) if isinstance(condition, tirx.LT | tirx.LE) else (condition.b, condition.a)
    end = sym.Analyzer().simplify(high - low + variable + int(isinstance(condition, tirx.LE | tirx.GE)))
    if uses(end, variable):
        return None
    # The difference is only computed where it is small.
    some = tirx.Select(_at(condition, variable, 0), end, tirx.const(0, "int32"))
    return tirx.Select(_at(condition, variable, extent - 1), tirx.const(extent, "int32"), some)


def _at(condition: ir.Expr, variable: ir.Var, value: int) -> ir.Expr:
    number = tirx.const(value, "int32")
    return replaced(condition, lambda part: number if variable.same_as(part) else part)


def _is_tensor(part: ir.Expr) -> TypeIs[ir.TensorRegion]:
    return isinstance(part, ir.TensorRegion) and not is_on_chip(part.source)


def _shape(region: ir.TensorRegion, *, keeps_matrix: bool) -> tuple[int, ...]:
    """The shape of a block for a region, without axes of one element; of a matrix only those before it go."""
    if keeps_matrix:
        return tuple(matrix_extents(region))
    return tuple(size for size in constant_extents(region) if size != 1) or (1,)


_RULES = (
    StatementRule(
        "operand on the chip", "A tensor that an operation works on is copied to or from a block on the chip.",
        _Staging.operation,
    ),
    StatementRule(
        "elements on the chip", "Elements of tensors in a T.Parallel are blocks, copied before it and after it.",
        _Staging.nest,
    ),
)  # fmt: skip
