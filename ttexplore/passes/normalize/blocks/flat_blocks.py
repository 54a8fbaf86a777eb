"""Blocks of three and more dimensions as matrices, and T.Parallel over three and more variables as over two."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tvm import ir, sym, tirx

from ttexplore.analysis.added_buffers import NewBuffers
from ttexplore.ir.adapter import call
from ttexplore.ir.arithmetic.limited import is_limited
from ttexplore.ir.arithmetic.sizes import constant_extents
from ttexplore.ir.build import (
    allocation,
    arguments,
    constant,
    dtype_of,
    is_whole,
    number_of,
    op_name,
    operation,
    parallel_loops,
    parallel_nest,
    regions,
    runs,
    scope_of,
    shape_of,
    variable,
    whole_region,
    with_arguments,
)
from ttexplore.ir.dag import nodes_of, replaced, uses, written_out
from ttexplore.ir.dataflow import is_on_chip, loads_of
from ttexplore.ir.operations.copies import is_block_of
from ttexplore.ir.operations.reductions import reduction_of
from ttexplore.ir.rewrite import Context, Firings, StatementRule, rewrite
from ttexplore.ops import language as tl
from ttexplore.passes.normalize.blocks.nest_loops import (
    NestLoops,
    indices_of_element,
    loops_of_nest,
    number_of_element,
)


def with_joined_loops(function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
    """The kernel whose T.Parallel loops store along each axis with one variable.

    for i, j in T.Parallel(4, 8):        for i_j in T.Parallel(32):
        c[i * 8 + j] = a[i, j]     ==>       c[i_j] = a[i_j // 8, i_j % 8]

    A nest that stores all elements of a block in order, seen in another shape, counts along the axes of the block.
    """
    return rewrite([_JOINED], _Joining(function, firings))


def with_flat_blocks(function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
    """The kernel whose blocks have at most two dimensions: all axes but the last one become the rows.

    A reduction along another axis than the last is one of rows, after that axis has become the last. Raises Unsupported
    for parts of such blocks that are no rows.
    """
    return rewrite(_FLAT, _Flattening(function, firings))


class _Joining(Context):
    def nest(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        loops = loops_of_nest(statement) if self.is_nest(statement) else None
        if loops is None:
            return None
        fired = False
        while (pair := self.pair(loops)) is not None:
            loops.join(*pair)
            fired = True
        if (shape := self.shape(loops)) is not None:
            loops.reshape(shape)
            fired = True
        return [loops.made()] if fired else None

    @staticmethod
    def shape(loops: NestLoops) -> tuple[int, ...] | None:
        """The shape of the blocks to which the stores of a nest go, all elements in order, if they divide for that."""
        names = {statement.var: statement.value for statement in loops.body if isinstance(statement, tirx.Bind)}
        analyzer = loops.ranges()
        iteration = number_of_element(loops.variables, loops.extents)
        shapes: set[tuple[int, ...]] = set()
        divides = False
        for store in loops.body:
            if not isinstance(store, tirx.BufferStore):
                continue
            indices = [written_out(index, names) for index in store.indices]
            if not is_on_chip(store.buffer) or any(map(loads_of, indices)):
                return None
            divides |= any(isinstance(node, tirx.FloorDiv) for index in indices for node in nodes_of(index))
            shape = shape_of(store.buffer)
            shapes.add(shape)
            if not divides or constant(analyzer.simplify(number_of_element(indices, shape) - iteration)) != 0:
                return None
        if len(shapes) != 1:
            return None
        (shape,) = shapes
        return shape if math.prod(shape) == math.prod(loops.extents) else None

    def pair(self, loops: NestLoops) -> tuple[int, int] | None:
        """Two variables that a store's index counts with as with one."""
        names = {statement.var: statement.value for statement in loops.body if isinstance(statement, tirx.Bind)}
        analyzer = loops.ranges()
        for store in loops.body:
            if not isinstance(store, tirx.BufferStore):
                continue
            for index in store.indices:
                index = written_out(index, names)
                if loads_of(index):
                    continue
                used = [n for n, loop_var in enumerate(loops.variables) if uses(index, loop_var)]
                for outer in used:
                    for inner in used:
                        a, b = loops.variables[outer], loops.variables[inner]
                        if outer == inner:
                            continue
                        rest = nodes_of(analyzer.simplify(index - (a * loops.extents[inner] + b)))
                        if not any(node.same_as(a) or node.same_as(b) for node in rest):
                            return outer, inner
        return None


class _Flattening(NewBuffers):
    """`flat` are the matrices in place of the blocks of more dimensions."""

    def __init__(self, function: tirx.PrimFunc, firings: Firings) -> None:
        super().__init__(function, firings)
        self.flat: dict[tirx.Buffer, tirx.AllocBuffer] = {}

    def allocation(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        if not isinstance(statement, tirx.AllocBuffer) or not _is_deep(statement.buffer):
            return None
        buffer = statement.buffer
        shape = shape_of(buffer)
        flat = (math.prod(shape[:-1]), shape[-1])
        flattened = allocation(str(buffer.name), flat, dtype_of(buffer), scope_of(buffer), statement.span)
        self.flat[buffer] = flattened
        return [flattened]

    def matrix(self, buffer: tirx.Buffer) -> tirx.Buffer:
        return self.flat[buffer].buffer if buffer in self.flat else buffer

    def temporary(self, like: tirx.Buffer, name: str, shape: Sequence[int]) -> tirx.AllocBuffer:
        return self.allocate(f"{like.name}_{name}", shape, dtype_of(like))

    # Elements

    def nest(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        loops = loops_of_nest(statement) if self.is_nest(statement) else None
        if loops is None:
            return None
        deep = [buffer for buffer in self.loads(loops) if buffer in self.flat]
        deep += [
            inner.buffer for inner in loops.body if isinstance(inner, tirx.BufferStore) and inner.buffer in self.flat
        ]
        if len(loops.variables) < 3 and not deep:
            return None
        while len(loops.variables) > 2:
            loops.join(0, 1)
        analyzer = loops.ranges()

        def rule(expr: ir.Expr) -> ir.Expr:
            if not isinstance(expr, ir.TensorLoad) or expr.source not in self.flat:
                return expr
            return tirx.BufferLoad(
                self.matrix(expr.source), self.places(expr.source, expr.indices, analyzer), expr.span
            )

        for number, inner in enumerate(loops.body):
            value = replaced(inner.value, rule)
            if isinstance(inner, tirx.Bind):
                loops.body[number] = tirx.Bind(inner.var, value, inner.span)
                continue
            indices = self.places(inner.buffer, [replaced(index, rule) for index in inner.indices], analyzer)
            loops.body[number] = tirx.BufferStore(self.matrix(inner.buffer), value, indices, inner.span)
        return [loops.made()]

    @staticmethod
    def loads(loops: NestLoops) -> list[tirx.Buffer]:
        return [load.source for statement in loops.body for load in loads_of(statement.value)]

    def places(self, buffer: tirx.Buffer, indices: Sequence[ir.Expr], analyzer: sym.Analyzer) -> list[ir.Expr]:
        """The row and the column in the matrix of an element of a block."""
        if buffer not in self.flat:
            return [*indices]
        return [analyzer.simplify(_row(indices, shape_of(buffer))), indices[-1]]

    # Operations on regions

    def operation(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        name = op_name(statement)
        if name not in tl.STATEMENTS:
            return None
        if not any(region.source in self.flat for region in regions(statement)):
            return None
        if any(region.source in self.flat and self.rows(region) is None for region in regions(statement)):
            return self.staged(statement)
        if name == tl.COPY.name and (reshaped := self.reshaped(statement)) is not None:
            return reshaped
        reduction = reduction_of(statement)
        if reduction is not None and regions(statement)[0].source in self.flat:
            return self.reduced(statement)
        attributes = operation(statement).attrs
        attrs = {} if attributes is None else {str(key): value for key, value in attributes.items()}
        operands = [
            self.region(operand) if isinstance(operand, ir.TensorRegion) else operand
            for operand in arguments(statement)
        ]
        return [tirx.Evaluate(call(name, operands, attrs), statement.span)]

    def region(self, region: ir.TensorRegion) -> ir.TensorRegion:
        """The rows of the matrix that a region of a block is."""
        if region.source not in self.flat:
            return region
        rows = self.rows(region)
        assert rows is not None, "other parts have blocks of their own"
        return tirx.BufferRegion(self.matrix(region.source), [rows, region.region[-1]])

    @staticmethod
    def rows(region: ir.TensorRegion) -> ir.Range | None:
        """The rows of the matrix that a region of a block is; None for rows that do not follow one another."""
        start: ir.Expr = tirx.const(0, "int32")
        count, is_open = 1, False
        extents, lengths = constant_extents(region)[:-1], shape_of(region.source)[:-1]
        for interval, extent, length in zip(region.region[:-1], extents, lengths, strict=True):
            if is_open and extent != length:
                return None
            is_open = is_open or extent > 1
            start, count = start * length + interval.min, count * extent
        return ir.Range.from_min_extent(sym.Analyzer().simplify(start), tirx.const(count, "int32"))

    def staged(self, statement: tirx.Stmt) -> list[tirx.Stmt]:
        """An operation with blocks of their own for parts whose rows do not follow one another."""
        operands = arguments(statement)
        operation = tl.BLOCKS.get(op_name(statement))
        before: list[tirx.Stmt] = []
        after: list[tirx.Stmt] = []
        for position, region in enumerate(operands):
            if not isinstance(region, ir.TensorRegion) or region.source not in self.flat or self.rows(region):
                continue
            lengths = constant_extents(region)
            block = self.temporary(region.source, "part", lengths).buffer
            matrix = self.flat[block] = self.temporary(region.source, "part", (math.prod(lengths[:-1]), lengths[-1]))
            before += [matrix, self.moved(region, matrix.buffer, loads=True)]
            if operation is not None and position == operation.target:
                if runs(statement, tl.COPY, tl.FILL):
                    before.pop()
                after.append(self.moved(region, matrix.buffer, loads=False))
            operands[position] = whole_region(block)
        staged_operation = with_arguments(statement, operands)
        return [*before, *(self.operation(staged_operation) or [staged_operation]), *after]

    def reshaped(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        """A copy between a tensor and a block with other columns, by way of a block with those of the tensor; None for
        other copies."""
        source, target = regions(statement)
        loads = not is_on_chip(source.source)
        tensor, chip_region = (source, target) if loads else (target, source)
        if is_on_chip(tensor.source) or chip_region.source not in self.flat or is_limited(tensor):
            return None
        extents, block_extents = constant_extents(tensor), constant_extents(chip_region)
        if is_block_of(extents, block_extents):
            return None
        shape = (math.prod(extents[:-1]), extents[-1])
        block = self.temporary(tensor.source, "block", shape)
        # T.Parallel stores at its own indices, and reads at any.
        lengths = (math.prod(block_extents[:-1]), block_extents[-1]) if loads else shape
        at, analyzer = [variable("i"), variable("j")], sym.Analyzer()
        for loop_var, extent in zip(at, lengths, strict=True):
            analyzer.bind(loop_var, ir.Range.from_min_extent(tirx.const(0, "int32"), tirx.const(extent, "int32")))
        flat = number_of_element(at, lengths)
        ours = [
            interval.min + index
            for interval, index in zip(chip_region.region, indices_of_element(flat, block_extents), strict=True)
        ]
        matrix, matrix_indices = self.matrix(chip_region.source), self.places(chip_region.source, ours, analyzer)
        theirs = [analyzer.simplify(index) for index in indices_of_element(flat, shape)]
        if loads:
            value = tirx.BufferLoad(block.buffer, theirs)
            if value.ty != matrix.ty.dtype:
                value = tirx.Cast(matrix.ty.dtype, value)
            store = tirx.BufferStore(matrix, value, matrix_indices)
            return [block, _copied(tensor, whole_region(block.buffer)), parallel_loops(at, lengths, store)]
        value = tirx.BufferLoad(matrix, matrix_indices)
        if value.ty != block.buffer.ty.dtype:
            value = tirx.Cast(block.buffer.ty.dtype, value)
        store = tirx.BufferStore(block.buffer, value, theirs)
        return [block, parallel_loops(at, lengths, store), _copied(whole_region(block.buffer), tensor)]

    def moved(self, region: ir.TensorRegion, block: tirx.Buffer, *, loads: bool) -> tirx.Stmt:
        """The T.Parallel that loads a part of a block into a block of its own, or stores it from there."""
        loop_vars, extents = [variable("i"), variable("j")], shape_of(block)
        analyzer = sym.Analyzer()
        for loop_var, extent in zip(loop_vars, extents, strict=True):
            analyzer.bind(loop_var, ir.Range.from_min_extent(tirx.const(0, "int32"), tirx.const(extent, "int32")))
        indices = [*indices_of_element(loop_vars[0], constant_extents(region)[:-1]), loop_vars[1]]
        indices = [interval.min + index for interval, index in zip(region.region, indices, strict=True)]
        matrix_indices = self.places(region.source, indices, analyzer)
        matrix = self.matrix(region.source)
        if loads:
            store = tirx.BufferStore(block, tirx.BufferLoad(matrix, matrix_indices), [*loop_vars])
        else:
            store = tirx.BufferStore(matrix, tirx.BufferLoad(block, [*loop_vars]), matrix_indices)
        return parallel_loops(loop_vars, extents, store)

    def reduced(self, statement: tirx.Stmt) -> list[tirx.Stmt]:
        """A reduction of a block of more dimensions: of a matrix with the axis of it as columns, along its rows."""
        reduction = reduction_of(statement)
        assert reduction is not None
        source, target = regions(statement)
        shape = [number_of(interval.extent) for interval in source.region]
        rest_lengths = [length for axis, length in enumerate(shape) if axis != reduction.dim]
        before: list[tirx.Stmt] = []
        block = self.part(source, "part", statement, before)
        if reduction.dim != len(shape) - 1:
            turned = self.temporary(source.source, "turned", (math.prod(rest_lengths), shape[reduction.dim]))
            analyzer = sym.Analyzer()

            def element(where: list[ir.Var]) -> ir.Expr:
                for loop_var, extent in zip(where, shape_of(turned.buffer), strict=True):
                    analyzer.bind(
                        loop_var, ir.Range.from_min_extent(tirx.const(0, "int32"), tirx.const(extent, "int32"))
                    )
                indices = indices_of_element(where[0], rest_lengths)
                indices.insert(reduction.dim, where[1])
                return tirx.BufferLoad(block, [analyzer.simplify(_row(indices, shape)), indices[-1]])

            before += [turned, parallel_nest(turned.buffer, element)]
            block = turned.buffer
        rows = self.temporary(target.source, "rows", (math.prod(rest_lengths),))
        attrs = {"kind": reduction.kind, "dim": 1, "clear": 1}
        before += [rows, tirx.Evaluate(call(tl.REDUCE.name, [whole_region(block), whole_region(rows.buffer)], attrs))]
        old: list[tirx.Stmt] = []
        out = self.part(target, "result", statement, old)
        # What is replaced need not be there.
        before += old if not reduction.clear else old[:1]
        joined = reduction.joining.expression

        def result(where: list[ir.Var]) -> ir.Expr:
            analyzer, flat = sym.Analyzer(), where[0]
            for loop_var, extent in zip(where, shape_of(out), strict=True):
                analyzer.bind(loop_var, ir.Range.from_min_extent(tirx.const(0, "int32"), tirx.const(extent, "int32")))
            for loop_var, length in zip(where[1:], shape_of(out)[1:], strict=True):
                flat = flat * length + loop_var
            new = tirx.BufferLoad(rows.buffer, [analyzer.simplify(flat)])
            return new if reduction.clear else joined(tirx.BufferLoad(out, where), new)

        after = [] if is_whole(target) else [_copied(whole_region(out), self.region(target))]
        return [*before, parallel_nest(out, result), *after]

    def part(
        self, region: ir.TensorRegion, name: str, statement: tirx.Stmt, added: list[tirx.Stmt]
    ) -> tirx.Buffer:  # fmt: skip
        """The matrix or vector that holds a region: for a part of a block, a new one, whose allocation and copy `added`
        gets."""
        if is_whole(region):
            return self.matrix(region.source)
        extents = [number_of(interval.extent) for interval in region.region]
        shape = (math.prod(extents[:-1]), extents[-1]) if region.source in self.flat else extents
        temporary = self.temporary(region.source, name, shape)
        added += [temporary, _copied(self.region(region), whole_region(temporary.buffer))]
        return temporary.buffer


def _copied(source: ir.TensorRegion, target: ir.TensorRegion) -> tirx.Stmt:
    return tirx.Evaluate(call(tl.COPY.name, [source, target]))


def _row(indices: Sequence[ir.Expr], shape: Sequence[int]) -> ir.Expr:
    """The row in the matrix of a block of a shape, in which an element lies."""
    return number_of_element(indices[:-1], shape[:-1])


def _is_deep(buffer: tirx.Buffer) -> bool:
    return is_on_chip(buffer) and scope_of(buffer) != "local.var" and len(shape_of(buffer)) > 2


_JOINED = StatementRule(
    "joined loops", "Variables that count along one axis of a block or tensor together become one.", _Joining.nest
)
_FLAT = (
    StatementRule(
        "flat block", "A block of more than two dimensions becomes a matrix.", _Flattening.allocation
    ),
    StatementRule("flat T.Parallel", "A T.Parallel over more than two variables is one over two.", _Flattening.nest),
    StatementRule(
        "operation on a flat block", "An operation works on rows of a block that has become a matrix.",
        _Flattening.operation,
    ),
)  # fmt: skip
