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
            block_vars = [tirx.Var(name, "int32") for name in ("row", "column")]
            values: dict[ir.Expr, ir.Expr] = dict(
                zip(self.variables, block_vars[2 - len(self.variables) :], strict=True)
            )
            indices = [replaced(index, lambda node: values.get(node, node)) for index in self.places]
            return tirx.Evaluate(call(tl.GATHER.name, [self.region, target, *block_vars, *indices]))
        return self._copy([self.region, target])

    def store(self) -> list[tirx.Stmt]:
        """The statements that store the block: of its rows and columns those for which its condition holds."""
        if self.condition is None:
            return [self._copy([whole_region(self.buffer), self.region])]
        statements: list[tirx.Stmt] = []
        region, tests = list(self.region.region), list[ir.Expr]()
        for conjunct in conjuncts(self.condition):
            axes = [axis for axis, run in enumerate(self.axes) if run is not None and uses(conjunct, run)]
            varying = [run for run in self.variables if uses(conjunct, run)]
            if not varying:
                tests.append(conjunct)
                continue
            full = constant(self.region.region[axes[0]].extent) if len(axes) == len(varying) == 1 else None
            if full == 1:
                tests.append(_at(conjunct, varying[0], 0))
                continue
            stored = None if full is None else _count(conjunct, varying[0], full)
            if stored is None:
                raise store_refused(self.region.source, conjunct)
            axis = axes[0]
            region[axis] = ir.Range.from_min_extent(region[axis].min, tirx.Min(region[axis].extent, stored))
        for axis, interval in enumerate(region):
            if constant(interval.extent) != constant(self.region.region[axis].extent):
                name = variable("stored")
                statements.append(tirx.Bind(name, interval.extent))
                region[axis] = ir.Range.from_min_extent(interval.min, name)
        statements.append(self._copy([whole_region(self.buffer), tirx.BufferRegion(self.region.source, region)]))
        return [when(functools.reduce(tirx.And, tests), statements)] if tests else statements

    def _copy(self, operand_regions: list[ir.TensorRegion]) -> tirx.Stmt:
        return tirx.Evaluate(call(tl.COPY.name, operand_regions, {ATOMIC: self.atomic} if self.atomic else None))


class _Staging(NewBuffers):
    # Operations on regions

    def operation(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        name = op_name(statement)
        if name not in tl.STATEMENTS:
            return None
        operands = arguments(statement)
        direct = [n for n, operand in enumerate(operands) if _is_tensor(operand)]
        if not direct or not runs(statement, tl.FILL, tl.COPY, tl.REDUCE, tl.GEMM):
            return None
        target = tl.BLOCKS[name].target
        if name == tl.COPY.name:
            # A block in between is all that a copy between tensors needs.
            return self.between(statement) if len(direct) == len(operands) else None
        loads: list[tirx.Stmt] = []
        stores: list[tirx.Stmt] = []
        for position in direct:
            region = operands[position]
            matrix = name == tl.GEMM.name or (name == tl.REDUCE.name and position != target)
            assert isinstance(region, ir.TensorRegion)
            block = _TensorBlock(region, self.block_of(region.source, _shape(region, keeps_matrix=matrix)), ())
            loads.append(block.allocation)
            if position != target or not overwrites(statement):
                loads.append(block.load())
            if position == target:
                stores += block.store()
            operands[position] = whole_region(block.buffer)
        attrs = attributes(statement)
        if name == tl.REDUCE.name:
            # The axes that the block does not have come before the others.
            before, after = regions(statement)[0], operands[0]
            assert isinstance(after, ir.TensorRegion)
            axis = attribute(statement, "dim") - (len(before.region) - len(after.region))
            if axis < 0:
                raise Unsupported(
                    "L007",
                    f"a reduction of {before.source.name} along an axis of one element",
                    hint="copy the block: there is nothing to join",
                )
            attrs["dim"] = axis
        operation = tirx.Evaluate(call(name, operands, attrs), statement.span)
        return [*loads, operation, *stores]

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
        stores = [inner for inner in body if isinstance(inner, tirx.BufferStore) and not is_on_chip(inner.buffer)]
        loads = [
            load for inner in body if isinstance(inner, tirx.BufferStore | tirx.Bind)
            for load in loads_of(inner.value) if not is_on_chip(load.source)
        ]  # fmt: skip
        if not stores and not loads:
            return None
        for inner in stores:
            if index_loads := [load for index in inner.indices for load in loads_of(index)]:
                raise _scattered(inner, index_loads[0])
        if any(loads_of(index) for access in (*stores, *loads) for index in access.indices):
            # Where to read or write depends on elements: that is refused where all such uses are.
            return None
        elements = _TensorElements(
            self, loops, {inner.var: inner.value for inner in body if isinstance(inner, tirx.Bind)}, stores
        )
        inside: list[tirx.Stmt] = []
        for inner in body:
            match inner:
                case tirx.Bind():
                    inside.append(with_value(inner, elements.read(inner.value)))
                case tirx.BufferStore():
                    inside.append(elements.store(inner))
                case _:
                    inside.append(inner)
        elements.check_order()
        allocated = [block.allocation for block in elements.stored]
        after = [inner for block in elements.stored for inner in block.store()]
        if (only := _only_moves(inside, elements.loaded)) is not None:
            return [*allocated, elements.loaded[0].load(only), *after]
        before = [inner for block in elements.loaded for inner in (block.allocation, block.load())]
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
        if not same or not _same_axes(*(tuple(loop_var for loop_var, _ in run.others) for run in (self, other))):
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

        def load(expr: ir.Expr) -> ir.Expr:
            if not isinstance(expr, ir.TensorLoad) or is_on_chip(expr.source):
                return expr
            atomic = kinds if updated is not None and expr.source.same_as(updated) else 0
            try:
                block = self.block(expr, atomic=atomic)
            except Unsupported:
                gathered = None if atomic else self.gathered(expr)
                if gathered is None:
                    raise
                block = gathered
            return tirx.BufferLoad(block.buffer, block.indices, expr.span)

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
            run for run in map(self.steps, (peer for peer in self.stores if peer.buffer.same_as(store.buffer)))
            if run is not None
        ]  # fmt: skip
        store_run = self.steps(store)
        if store_run is None or len(runs) != sum(peer.buffer.same_as(store.buffer) for peer in self.stores):
            return None
        apart = [store_run.apart(run) for run in runs]
        if None in apart:
            return None
        first = min(distance for distance in apart if distance is not None)
        if {distance - first for distance in apart if distance is not None} != {*range(abs(store_run.factor))}:
            beside = [*store.indices]
            beside[store_run.axis] = sym.Analyzer().simplify(beside[store_run.axis] + 1)
            shown = [f"{store.buffer.name}[{', '.join(map(str, indices))}]" for indices in (store.indices, beside)]
            raise self.refusal(
                store, "stores to", f"of each {abs(store_run.factor)} elements it leaves some as they are",
                hint=f"store all of them in one T.Parallel: {shown[0]}, {shown[1]} and so on",
            )  # fmt: skip
        low = store_run.low + first + min(store_run.factor, 0) * (store_run.extent - 1)
        return replace(store_run, low=sym.Analyzer().simplify(low))

    def steps(self, store: tirx.BufferStore) -> _Run | None:
        """The run that a store begins whose index counts in steps along one axis, and along others one by one."""
        positions: list[tuple[ir.Var | None, ir.Expr]] = []
        run: _Run | None = None
        for axis, index in enumerate(store.indices):
            index = written_out(index, self.names)
            used = [loop_var for loop_var in self.variables if uses(index, loop_var)]
            if not used:
                positions.append((None, index))
                continue
            factor = factor_of(index, used[0])
            low = sym.Analyzer().simplify(index - used[0] * factor)
            extent = self.extents.get(used[0])
            if not factor or extent is None or any(uses(low, loop_var) for loop_var in self.variables):
                return None
            positions.append((used[0], low))
            if factor != 1 and run is not None:
                return None
            if factor != 1:
                run = _Run(axis, used[0], factor, extent, low)
        if run is None or len({loop_var for loop_var, _ in positions if loop_var is not None}) < len(self.variables):
            return None
        return replace(run, others=tuple(position for axis, position in enumerate(positions) if axis != run.axis))

    def stored_in(
        self, run: _Run, store: tirx.BufferStore, value: ir.Expr, condition: ir.Expr | None
    ) -> tirx.BufferStore:  # fmt: skip
        """The store to the block of a run."""
        positions = [*run.others]
        positions.insert(run.axis, (run.variable, run.low))
        lengths = {**self.extents, run.variable: run.extent * abs(run.factor)}
        region = tirx.BufferRegion(store.buffer, [
            ir.Range.from_min_extent(low, tirx.const(1 if loop_var is None else lengths[loop_var], "int32"))
            for loop_var, low in positions
        ])  # fmt: skip
        block = next((candidate for candidate in self.stored if _same_region(candidate.region, region)), None)
        if block is None:
            used = tuple(loop_var for loop_var, _ in positions if loop_var is not None)
            buffer = self.staging.block_of(store.buffer, tuple(lengths[loop_var] for loop_var in used))
            block = _TensorBlock(
                region, buffer, used, tuple(loop_var for loop_var, _ in positions), condition=condition
            )
            self.stored.append(block)
        elif not _same_condition(block.condition, condition):
            raise self.refusal(store, "stores to", "other stores to these elements have other conditions")
        at = sym.Analyzer().simplify(written_out(store.indices[run.axis], self.names) - run.low)
        indices = [at if loop_var.same_as(run.variable) else loop_var for loop_var in block.variables]
        return tirx.BufferStore(block.buffer, value, indices, store.span)

    def gathered(self, load: ir.TensorLoad) -> _TensorBlock | None:
        """The block of elements at computed places; None where the nest is no block."""
        extents = [self.extents.get(loop_var) for loop_var in self.variables]
        if not 1 <= len(extents) <= 2 or None in extents or any(loads_of(index) for index in load.indices):
            return None
        indices = [written_out(index, self.names) for index in load.indices]
        for block in self.loaded:
            if block.places and block.region.source.same_as(load.source) and same_expressions(block.places, indices):
                return block
        shape = tuple(extent for extent in extents if extent is not None)
        block = _TensorBlock(
            whole_tensor(load.source), self.staging.block_of(load.source, shape), tuple(self.variables),
            axes=(None,) * len(indices), places=tuple(indices),
        )  # fmt: skip
        self.loaded.append(block)
        return block

    def block(self, access: _Access, *, atomic: int, condition: ir.Expr | None = None) -> _TensorBlock:
        """The block that an element is one of, as its loop variables run; `condition` is that of a store."""
        writes = isinstance(access, tirx.BufferStore)
        tensor = access.buffer if writes else access.source
        does = "stores to" if writes else "reads"
        positions = [self.place(access, index, does) for index in access.indices]
        axes = tuple(variable for variable, _ in positions)
        used = [variable for variable, _ in positions if variable is not None]
        if len({*used}) < len(used):
            raise self.refusal(access, does, "one variable runs along two axes")
        if writes:
            if missing := [
                loop_var for loop_var in self.variables if loop_var not in used and self.extents.get(loop_var) != 1
            ]:
                hint = f"add up these turns on the chip, with T.reduce_sum, and the sums to {tensor.name}"
                why = f"each turn of {missing[0].name} stores to the same element"
                raise self.refusal(access, does, why, hint if atomic else "")
            # Loops of one turn are axes of the block, too: the store indexes it with all variables.
            for number, loop_var in enumerate(self.variables):
                if loop_var not in used:
                    used.insert(number, loop_var)
        region = tirx.BufferRegion(tensor, [
            ir.Range.from_min_extent(low, tirx.const(1 if variable is None else self.extents[variable], "int32"))
            for variable, low in positions
        ])  # fmt: skip
        # What the nest has stored is read from where it was stored.
        for block in self.stored if writes else (*self.stored, *self.loaded):
            if _same_region(block.region, region) and _same_axes(block.axes, axes) and block.atomic == atomic:
                if (writes or block in self.stored) and not _same_condition(block.condition, condition):
                    raise self.refusal(access, does, "other stores to these elements have other conditions")
                return block
        shape = tuple(self.extents[loop_var] for loop_var in used) or (1,)
        new_block = _TensorBlock(
            region, self.staging.block_of(tensor, shape), tuple(used), axes, atomic, condition=condition
        )
        (self.stored if writes else self.loaded).append(new_block)
        return new_block

    def check_order(self) -> None:
        """Raise Unsupported where a tensor is stored to and read at other elements: all blocks are read before."""
        for stored in self.stored:
            tensor = stored.region.source
            rivals = [block for block in self.stored if block.atomic or stored.atomic]
            for block in (*self.loaded, *rivals):
                same = _same_region(block.region, stored.region) and _same_axes(block.axes, stored.axes)
                if block.region.source.same_as(tensor) and not (same and block.atomic == stored.atomic):
                    raise Unsupported(
                        "L003",
                        f"one T.Parallel stores to {tensor.name} and uses it at other elements, or in another way",
                        hint="use two T.Parallel nests, one after the other",
                    )

    def place(self, access: _Access, index: ir.Expr, does: str) -> tuple[ir.Var | None, ir.Expr]:
        """The loop variable that an index counts up with, and where it starts."""
        index = written_out(index, self.names)
        used = [loop_var for loop_var in self.variables if uses(index, loop_var)]
        if not used:
            low, variable = index, None
        else:
            variable = used[0]
            low = sym.Analyzer().simplify(index - variable)
            if variable not in self.extents:
                raise self.refusal(access, does, f"the length of {variable.name} is only known when the kernel runs")
        for node in nodes_of(low):
            if node in self.variables:
                divides = any(isinstance(index_node, tirx.FloorDiv | tirx.FloorMod) for index_node in nodes_of(index))
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


def _scattered(store: tirx.BufferStore, load: ir.TensorLoad) -> Unsupported:
    tensor = store.buffer.name
    return Unsupported(
        "L003",
        f"T.Parallel stores to {tensor} where an element of {load.source.name} says, another one in each turn",
        hint="store one element after another, where elements of a tensor say: "
        f"for i in range(n): {tensor}[N[i]] = ...",
        span=span_of(store),
    )


def _only_moves(inside: list[tirx.Stmt], loaded: list[_TensorBlock]) -> tirx.Buffer | None:
    """The block on the chip that a nest fills with elements at computed places as they are."""
    stores = [statement for statement in inside if isinstance(statement, tirx.BufferStore)]
    if len(stores) != 1 or len(loaded) != 1 or not loaded[0].places or len(inside) != 1:
        return None
    (store,) = stores
    value, block = store.value, loaded[0]
    if not isinstance(value, ir.TensorLoad) or not value.source.same_as(block.buffer):
        return None
    covers = same_indices(store.indices, block.variables) and shape_of(store.buffer) == shape_of(block.buffer)
    return store.buffer if covers and store.buffer.ty.dtype == block.buffer.ty.dtype else None


def _same_region(first: ir.TensorRegion, second: ir.TensorRegion) -> bool:
    return first.source.same_as(second.source) and all(
        same_expression(a.min, b.min) and same_expression(a.extent, b.extent)
        for a, b in zip(first.region, second.region, strict=True)
    )


def _same_axes(first: tuple[ir.Var | None, ...], second: tuple[ir.Var | None, ...]) -> bool:
    return all(a is b or (a is not None and b is not None and a.same_as(b)) for a, b in zip(first, second, strict=True))


def _same_condition(first: ir.Expr | None, second: ir.Expr | None) -> bool:
    return (first is None and second is None) or (
        first is not None and second is not None and same_expression(first, second)
    )


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
    return replaced(condition, lambda node: number if variable.same_as(node) else node)


def _is_tensor(expr: ir.Expr) -> TypeIs[ir.TensorRegion]:
    return isinstance(expr, ir.TensorRegion) and not is_on_chip(expr.source)


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
