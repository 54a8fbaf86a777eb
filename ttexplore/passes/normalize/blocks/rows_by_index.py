"""Blocks whose rows elements of an index tensor choose, row by row."""

from __future__ import annotations

import functools

from tvm import ir, tirx

from ttexplore.analysis.added_buffers import NewBuffers
from ttexplore.ir.adapter import call, line_of
from ttexplore.ir.arithmetic.sizes import extents_of
from ttexplore.ir.build import (
    bind,
    constant,
    dtype_of,
    loop,
    parallel_loops,
    parallel_nest,
    shape_of,
    to_expr,
    variable,
    when,
    whole_region,
)
from ttexplore.ir.dag import replaced, same_expression, uses, written_out
from ttexplore.ir.dataflow import is_on_chip, is_parallel, loads_of, parallel_body, same_indices
from ttexplore.ir.rewrite import Firings, StatementRule, rewrite
from ttexplore.notes import Note, note
from ttexplore.ops import language as tl


def with_rows_by_index(function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
    """The kernel with a loop over the rows of a block that elements of an index tensor choose.

    What lies outside of the tensor is zero, and so is what lies outside of the index tensor. A vector is a column of
    rows of one element.
    """
    return rewrite([ROWS], _Rows(function, firings))


def note_on_rows(statement: tirx.Stmt) -> Note:
    """What the plan says about a block whose rows are chosen."""
    loops, body = parallel_body(statement)
    store = body[-1]
    assert isinstance(store, tirx.BufferStore)
    reads = constant(loops[0].extent)
    return note("chosen rows", buffer=str(store.buffer.name), line=line_of(statement), reads=reads)


class _Rows(NewBuffers):
    def nest(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        if not is_parallel(statement) or self.is_in_nest:
            return None
        loops, body = parallel_body(statement)
        variables = [for_loop.loop_var for for_loop in loops]
        *names, store = body
        if not isinstance(store, tirx.BufferStore) or not all(isinstance(binding, tirx.Bind) for binding in names):
            return None
        block = store.buffer
        extents = [constant(for_loop.extent) for for_loop in loops]
        if (
            not is_on_chip(block)
            or not 1 <= len(loops) <= 2
            or not same_indices(store.indices, variables)
            or extents != [*shape_of(block)]
        ):
            return None
        meanings = {binding.var: binding.value for binding in names if isinstance(binding, tirx.Bind)}
        value = written_out(store.value, meanings)
        chosen = [load for load in loads_of(value) if any(map(loads_of, load.indices))]
        if not chosen or not all(same_expression(load, chosen[0]) for load in chosen):
            return None
        chosen_load = chosen[0]
        deciding = [load for index in chosen_load.indices for load in loads_of(index)]
        # Elements that decide differ in rows only, and nothing else of blocks is read.
        plain_loads = [load for load in loads_of(value) if not _is_one_of(load, [*chosen, *deciding])]
        if (
            is_on_chip(chosen_load.source)
            or any(is_on_chip(load.source) for load in plain_loads)
            or any(loads_of(index) for load in deciding for index in load.indices)
            or not all(uses(load, variables[0]) for load in deciding)
            or (len(loops) == 2 and any(uses(load, variables[1]) for load in deciding))
        ):
            return None
        return self.rows(statement, store, chosen_load, deciding, value)

    def rows(
        self, statement: tirx.Stmt, store: tirx.BufferStore, chosen_load: ir.TensorLoad, deciding: list[ir.TensorLoad],
        value: ir.Expr,
    ) -> list[tirx.Stmt]:  # fmt: skip
        loops, _ = parallel_body(statement)
        block, row_var = store.buffer, loops[0].loop_var
        width = shape_of(block)[1] if len(loops) == 2 else 1
        row = variable("row")
        column = loops[1].loop_var if len(loops) == 2 else variable("j")
        row_block = self.allocate(f"{block.name}_row", (width,), dtype_of(block), span=statement.span)
        numbers: list[tirx.Bind] = []
        self.bounds.counts(loop(row, loops[0].extent, []))
        number_vars: list[tuple[ir.TensorLoad, ir.Var]] = []

        def of_row(e: ir.Expr) -> ir.Expr:
            """An expression in one row."""

            def substitute(expr: ir.Expr) -> ir.Expr:
                if expr.same_as(row_var):
                    return row
                if isinstance(expr, ir.TensorLoad):
                    for load, name in number_vars:
                        if same_expression(load, expr):
                            return name
                return expr

            return replaced(e, substitute)

        for load in deciding:
            read = of_row(load)
            if isinstance(read, ir.TensorLoad) and not _is_one_of(read, [load for load, _ in number_vars]):
                numbers += self.number(read)
                number_vars.append((read, numbers[-1].var))
        row_indices = [of_row(index) for index in chosen_load.indices]
        inside = [
            test
            for index, length in zip(row_indices, extents_of(chosen_load.source), strict=True)
            if not uses(index, column) and any(uses(index, name) for _, name in number_vars)
            for test in (index >= 0, index < length)
        ]
        here = of_row(value)
        zero = tirx.const(0, str(chosen_load.ty.dtype))
        moved = of_row(chosen_load)
        outside = replaced(here, lambda node: zero if same_expression(node, moved) else node)

        def filled(e: ir.Expr) -> tirx.Stmt:
            return parallel_loops([column], [width], tirx.BufferStore(row_block.buffer, e, [column], store.span))

        fill = when(functools.reduce(tirx.And, inside), [filled(here)], otherwise=[_fresh(filled(outside), column)])
        zeros = tirx.Evaluate(call(tl.FILL.name, [whole_region(block), tirx.const(0, dtype_of(block))]))

        def joined(at: list[ir.Var]) -> ir.Expr:
            row_value = tirx.BufferLoad(row_block.buffer, [at[1] if len(at) == 2 else tirx.const(0, "int32")])
            return tirx.if_then_else(tirx.EQ(at[0], row), row_value, tirx.BufferLoad(block, at))

        return [zeros, row_block, loop(row, loops[0].extent, [*numbers, fill, parallel_nest(block, joined)])]

    def number(self, load: ir.TensorLoad) -> list[tirx.Bind]:
        """The names, the last of which is an element of an index tensor: zero where it lies outside, as elsewhere."""
        name = tirx.Var(f"{load.source.name}_value", load.ty)
        nearest: list[ir.Expr] = []
        inside: list[ir.Expr] = []
        for index, length in zip(load.indices, extents_of(load.source), strict=True):
            least, most = index >= 0, index < length
            nearest.append(index)
            if not self.bounds.proves(least):
                inside.append(least)
                nearest[-1] = tirx.Max(nearest[-1], tirx.const(0, "int32"))
            if not self.bounds.proves(most):
                inside.append(most)
                nearest[-1] = tirx.Min(nearest[-1], to_expr(length - 1))
        binding = bind(name, tirx.BufferLoad(load.source, nearest, load.span))
        if not inside:
            return [binding]
        checked_var = tirx.Var(f"{load.source.name}_or_zero", load.ty)
        zero = tirx.const(0, str(load.ty.dtype))
        return [binding, bind(checked_var, tirx.Select(functools.reduce(tirx.And, inside), name, zero))]


def _fresh(nest: tirx.Stmt, column: ir.Var) -> tirx.Stmt:
    """A nest with a loop variable of its own."""
    assert isinstance(nest, tirx.For)
    fresh_column = variable(str(column.name))
    store = nest.body
    assert isinstance(store, tirx.BufferStore)
    value = replaced(store.value, lambda node: fresh_column if node.same_as(column) else node)
    return tirx.For(
        fresh_column,
        nest.min,
        nest.extent,
        nest.kind,
        tirx.BufferStore(store.buffer, value, [fresh_column], store.span),
        span=nest.span,
    )


def _is_one_of(load: ir.TensorLoad, loads: list[ir.TensorLoad]) -> bool:
    return any(same_expression(load, candidate) for candidate in loads)


ROWS = StatementRule(
    "rows by index", "A block whose rows elements of a tensor choose is filled in a loop over its rows.", _Rows.nest
)
