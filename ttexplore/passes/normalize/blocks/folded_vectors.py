"""Vectors that hold the elements of matrices, row by row, as matrices."""

from __future__ import annotations

import math
from collections import defaultdict

from tvm import ir, tirx

from ttexplore.analysis.added_buffers import NewBuffers
from ttexplore.ir.adapter import call
from ttexplore.ir.build import (
    allocation,
    arguments,
    attributes,
    constant,
    dtype_of,
    expressions_of,
    is_whole,
    op_name,
    regions,
    runs,
    scope_of,
    shape_of,
    whole_region,
    with_arguments,
)
from ttexplore.ir.dag import nodes_of, replaced, written_out
from ttexplore.ir.dataflow import blocks, is_on_chip, is_parallel, loads_of
from ttexplore.ir.operations.reductions import reduction_of
from ttexplore.ir.rewrite import Firings, StatementRule, rewrite, walk
from ttexplore.ops import language as tl
from ttexplore.passes.normalize.blocks.nest_loops import NestLoops, loops_of_nest


def with_folded_vectors(function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
    """The kernel whose vectors are matrices where a T.Parallel computes them from those, row by row.

        for v in T.Parallel(4096):                        for i, j in T.Parallel(64, 64):
            p[v] = a[v // 64, v % 64] * 2.0      ==>          p[i, j] = a[i, j] * 2.0
        T.reduce_sum(p, s)                                T.reduce_sum(p, p_rows, dim=1)
                                                          T.reduce_sum(p_rows, s, dim=0)

    A vector is a row of tiles, of which each holds 32 of its elements: a matrix of as many elements takes less room.
    """
    columns = _columns(function)
    return rewrite(_RULES, _Folding(function, firings, columns)) if columns else function


def _columns(function: tirx.PrimFunc) -> dict[tirx.Buffer, int]:
    """How many columns the matrix has that a vector is, for each vector that is used as one only."""
    lengths = defaultdict[tirx.Buffer, set[int]](set)
    vectors: set[tirx.Buffer] = set()
    together: list[set[tirx.Buffer]] = []
    for statement in blocks(function.body):
        if isinstance(statement, tirx.AllocBuffer):
            vectors |= {statement.buffer} if _is_vector(statement.buffer) else set()
        elif is_parallel(statement):
            inside = _vectors_in(statement)
            loops = loops_of_nest(statement)
            if loops is None or len(loops.variables) != 1 or not _go_along(loops, inside):
                vectors -= inside
                continue
            together.append(inside)
            for buffer in inside:
                lengths[buffer] |= _divisors(loops)
        elif not runs(statement, tl.FILL, tl.REDUCE) or not all(map(is_whole, regions(statement))):
            vectors -= _vectors_in(statement)
        elif reduction_of(statement) is not None:
            vectors -= {regions(statement)[1].source}
    # Vectors of one T.Parallel are matrices together.
    before, count = -1, 0
    while before != count:
        before = count
        for inside in together:
            lengths.update(dict.fromkeys(inside, set[int]().union(*(lengths[buffer] for buffer in inside))))
        count = sum(map(len, lengths.values()))
    columns: dict[tirx.Buffer, int] = {}
    for buffer in vectors:
        (extent,) = shape_of(buffer)
        if len(lengths[buffer]) == 1 and 1 < (width := min(lengths[buffer])) < extent and extent % width == 0:
            columns[buffer] = width
    while divided := [inside for inside in together if inside & columns.keys() and not _alike(inside, columns)]:
        columns = {
            buffer: count for buffer, count in columns.items() if not any(buffer in inside for inside in divided)
        }
    return columns


def _alike(vectors: set[tirx.Buffer], columns: dict[tirx.Buffer, int]) -> bool:
    return len({columns.get(buffer) for buffer in vectors}) == 1


def _is_vector(buffer: tirx.Buffer) -> bool:
    return is_on_chip(buffer) and scope_of(buffer) != "local.var" and len(shape_of(buffer)) == 1


def _vectors_in(statement: tirx.Stmt) -> set[tirx.Buffer]:
    """The vectors that a statement reads or stores."""
    inner = [*walk(statement)] if is_parallel(statement) else [statement]
    used = [load.source for nested in inner for value in expressions_of(nested) for load in loads_of(value)]
    used += [nested.buffer for nested in inner if isinstance(nested, tirx.BufferStore)]
    used += [region.source for region in (regions(statement) if op_name(statement) else [])]
    return {buffer for buffer in used if _is_vector(buffer)}


def _go_along(loops: NestLoops, vectors: set[tirx.Buffer]) -> bool:
    """Whether a T.Parallel goes along vectors, and uses each at its own element only."""
    uses = [(load.source, [*load.indices]) for nested in loops.body for load in loads_of(nested.value)]
    uses += [(nested.buffer, [*nested.indices]) for nested in loops.body if isinstance(nested, tirx.BufferStore)]
    return all(
        shape_of(buffer) == (*loops.extents,) and indices[0].same_as(loops.variables[0])
        for buffer, indices in uses
        if buffer in vectors
    )


def _divisors(loops: NestLoops) -> set[int]:
    """By what a T.Parallel over one variable divides it, to find rows and columns."""
    names = {nested.var: nested.value for nested in loops.body if isinstance(nested, tirx.Bind)}
    indices = [index for nested in loops.body for load in loads_of(nested.value) for index in load.indices]
    divided = [node for index in indices for node in nodes_of(written_out(index, names))]
    counts = [
        constant(node.b)
        for node in divided
        if isinstance(node, tirx.FloorDiv | tirx.FloorMod) and node.a.same_as(loops.variables[0])
    ]
    return {count for count in counts if count is not None}


class _Folding(NewBuffers):
    """`columns` are those of the vectors that become matrices."""

    def __init__(self, function: tirx.PrimFunc, firings: Firings, columns: dict[tirx.Buffer, int]) -> None:
        super().__init__(function, firings)
        self.columns = columns
        self.matrices: dict[tirx.Buffer, tirx.Buffer] = {}

    def allocation(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        if not isinstance(statement, tirx.AllocBuffer) or statement.buffer not in self.columns:
            return None
        vector = statement.buffer
        count = self.columns[vector]
        shape = (math.prod(shape_of(vector)) // count, count)
        matrix = allocation(str(vector.name), shape, dtype_of(vector), scope_of(vector), statement.span)
        self.matrices[vector] = matrix.buffer
        return [matrix]

    def nest(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        if not self.is_nest(statement) or not (folded := _vectors_in(statement) & self.matrices.keys()):
            return None
        loops = loops_of_nest(statement)
        assert loops is not None, "these vectors are used in such nests only"
        loops.reshape(shape_of(self.matrices[min(folded, key=lambda vector: str(vector.name))]))

        def rule(e: ir.Expr) -> ir.Expr:
            if isinstance(e, ir.TensorLoad) and e.source in self.matrices:
                return tirx.BufferLoad(self.matrices[e.source], [*loops.variables], e.span)
            return e

        for number, nested in enumerate(loops.body):
            value = replaced(nested.value, rule)
            if isinstance(nested, tirx.Bind):
                loops.body[number] = tirx.Bind(nested.var, value, nested.span)
            elif nested.buffer in self.matrices:
                store = tirx.BufferStore(self.matrices[nested.buffer], value, [*loops.variables], nested.span)
                loops.body[number] = store
            else:
                loops.body[number] = tirx.BufferStore(nested.buffer, value, [*nested.indices], nested.span)
        return [loops.made()]

    def operation(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        if not runs(statement, tl.FILL, tl.REDUCE) or regions(statement)[0].source not in self.matrices:
            return None
        matrix = self.matrices[regions(statement)[0].source]
        operands = [whole_region(matrix), *arguments(statement)[1:]]
        if not runs(statement, tl.REDUCE):
            return [with_arguments(statement, operands)]
        attrs = attributes(statement)
        target = regions(statement)[1].source
        rows = self.allocate(f"{matrix.name}_rows", shape_of(matrix)[:1], dtype_of(target))
        along = call(tl.REDUCE.name, [operands[0], whole_region(rows.buffer)], {**attrs, "dim": 1, "clear": 1})
        down = call(tl.REDUCE.name, [whole_region(rows.buffer), operands[1]], {**attrs, "dim": 0})
        return [rows, *(tirx.Evaluate(reduction, statement.span) for reduction in (along, down))]


_RULES = (
    StatementRule("folded vector", "A vector that holds a matrix row by row becomes a matrix.", _Folding.allocation),
    StatementRule("folded T.Parallel", "A T.Parallel along such vectors is one over rows and columns.", _Folding.nest),
    StatementRule(
        "operation on a folded vector",
        "A reduction of such a vector is one of rows, and one of what they give.",
        _Folding.operation,
    ),
)
