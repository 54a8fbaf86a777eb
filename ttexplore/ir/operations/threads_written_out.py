"""What a kernel for single threads does, written out for all of them: what runs as the kernel before its lowering."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tvm import ir, tirx

from ttexplore.ir.build import (
    allocation,
    dtype_of,
    parallel_loops,
    regions,
    runs,
    shape_of,
    statements,
    variable,
    when,
    with_body,
    with_function_body,
)
from ttexplore.ir.build import loop as serial_loop
from ttexplore.ir.dag import replaced
from ttexplore.ir.dataflow import is_on_chip, is_parallel
from ttexplore.ir.names import unused_name
from ttexplore.ir.operations.atomics import plain, updates
from ttexplore.ir.operations.by_thread import ThreadKernel, fill_as_stores
from ttexplore.ir.operations.reductions import JOININGS
from ttexplore.ir.operations.thread_indices import over_threads
from ttexplore.ops import language as tl


def written_out_threads(function: tirx.PrimFunc, kernel: ThreadKernel) -> tirx.PrimFunc:
    """What a kernel for single threads does: each statement for all threads before the next one, those that store to
    one element one after another."""
    body: Sequence[tirx.Stmt] = _WrittenOut(kernel).body(kernel.body, ())
    for grid_loop in reversed(kernel.launch):
        body = [with_body(grid_loop, body)]
    return with_function_body(function, body)


class _WrittenOut:
    def __init__(self, kernel: ThreadKernel) -> None:
        self.kernel = kernel
        self.extents = tuple(axis.extent for axis in kernel.axes)
        self.names = {*kernel.names}
        # The buffers with those of all threads in them.
        self.buffers: dict[ir.Var, tirx.Buffer] = {}

    def body(self, body: Sequence[tirx.Stmt], guards: tuple[ir.Expr, ...]) -> list[tirx.Stmt]:
        return [new for statement in body for new in self.statement(statement, guards)]

    def statement(self, statement: tirx.Stmt, guards: tuple[ir.Expr, ...]) -> list[tirx.Stmt]:
        kernel = self.kernel
        match statement:
            case tirx.AllocBuffer() if statement.buffer in kernel.owned:
                buffer = statement.buffer
                shape = (*self.extents, *shape_of(buffer))
                allocated = allocation(str(buffer.name), shape, dtype_of(buffer), "local.fragment", statement.span)
                self.buffers[buffer] = allocated.buffer
                return [allocated]
            case tirx.IfThenElse() if kernel.axes_of([statement.condition]):
                then = self.body(statements(statement.then_case), (*guards, statement.condition))
                otherwise = [] if statement.else_case is None else statements(statement.else_case)
                return [*then, *self.body(otherwise, (*guards, tirx.Not(statement.condition)))]
            case tirx.IfThenElse():
                then = self.body(statements(statement.then_case), guards)
                otherwise = None if statement.else_case is None else self.body(statements(statement.else_case), guards)
                return [when(statement.condition, then, statement.span, otherwise=otherwise)]
            case tirx.For() if not is_parallel(statement):
                return [with_body(statement, self.body(statements(statement.body), guards))]
            case tirx.BufferStore() if (joined := over_threads(statement.value)) is not None:
                return self.over_threads(statement, *joined)
            case tirx.BufferStore():
                is_owned = statement.buffer in kernel.owned
                if not is_owned and not kernel.axes_of([statement.value, *statement.indices, *guards]):
                    if updates(statement.value):
                        return self.for_each(statement, (), range(len(self.extents)))
                    return [statement]
                axes = range(len(self.extents)) if is_owned else sorted(kernel.axes_of([*statement.indices]))
                return self.for_each(statement, guards, [axis for axis in range(len(self.extents)) if axis not in axes])
            case tirx.Evaluate() if runs(statement, tl.FILL) and regions(statement)[0].source in kernel.owned:
                return self.body(fill_as_stores(statement), guards)
            case _:
                return [statement]

    def for_each(self, store: tirx.BufferStore, guards: Sequence[ir.Expr], serial: Iterable[int]) -> list[tirx.Stmt]:
        """A store of all threads, along some axes one after another."""
        in_order = [*serial]
        variables = [variable(str(axis.variable.name)) for axis in self.kernel.axes]
        indices = [self.expression(index, variables) for index in store.indices]
        value = self.expression(store.value, variables)
        target = store.buffer
        if target in self.buffers:
            target, indices = self.buffers[target], [*variables, *indices]
        elif is_on_chip(target):
            value = plain(value)
        inner: tirx.Stmt = tirx.BufferStore(target, value, indices, store.span)
        for guard in reversed(guards):
            inner = when(self.expression(guard, variables), [inner], store.span)
        at_once = [axis for axis in range(len(variables)) if axis not in in_order]
        nest: tirx.Stmt = parallel_loops(
            [variables[axis] for axis in at_once], [self.extents[axis] for axis in at_once], inner
        )
        if not at_once:
            nest = parallel_loops([variable("i")], [1], inner)
        for axis in reversed(in_order):
            nest = serial_loop(variables[axis], self.extents[axis], [nest], span=store.span)
        return [nest]

    def over_threads(self, store: tirx.BufferStore, kind: str, value: ir.Expr, axis: int) -> list[tirx.Stmt]:
        """What the threads along an axis join, one after another, in the first one's element; then each reads it."""
        dtype, joining = str(value.ty.dtype), JOININGS[kind]
        name = unused_name("joined", self.names)
        self.names.add(name)
        allocated = allocation(name, self.extents, dtype, "local.fragment", store.span)
        joined, kernel_variables = allocated.buffer, [each.variable for each in self.kernel.axes]
        at_first = [tirx.const(0, "int32") if number == axis else var for number, var in enumerate(kernel_variables)]
        before = tirx.BufferLoad(joined, at_first)
        steps = (
            (tirx.const(joining.neutral_of(dtype), dtype), ()),
            (joining.expression(before, value), (axis,)),
        )
        new: list[tirx.Stmt] = [allocated]
        for joined_value, in_order in steps:
            new += self.for_each(tirx.BufferStore(joined, joined_value, at_first, store.span), (), in_order)
        return [*new, *self.for_each(tirx.BufferStore(store.buffer, before, [*store.indices], store.span), (), ())]

    def expression(self, expression: ir.Expr, variables: Sequence[ir.Var]) -> ir.Expr:
        fresh = {axis.variable: var for axis, var in zip(self.kernel.axes, variables, strict=True)}

        def rule(node: ir.Expr) -> ir.Expr:
            if isinstance(node, ir.TensorLoad) and node.source in self.buffers:
                return tirx.BufferLoad(self.buffers[node.source], [*variables, *node.indices], node.span)
            return fresh.get(node, node) if isinstance(node, ir.Var) else node

        return replaced(expression, rule)
