"""Branches and loops inside of T.Parallel, as choices between elements and as one turn after another."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from tvm import ir, sym, tirx

from ttexplore.errors import Unsupported
from ttexplore.ir.adapter import span_of
from ttexplore.ir.arithmetic.expression import format_expression
from ttexplore.ir.arithmetic.limited import stored_if
from ttexplore.ir.arithmetic.sizes import extents_of
from ttexplore.ir.build import constant, statements, with_nest, with_value
from ttexplore.ir.dag import conjuncts, nodes_of, replaced, same_expressions
from ttexplore.ir.dataflow import is_on_chip, is_parallel, loads_of, parallel_body
from ttexplore.ir.operations.atomics import updates
from ttexplore.ir.rewrite import Context, Firings, StatementRule, rewrite, walk

# More stores than this are no element-wise code any more, and would make a kernel of as many operations.
MAX_TURNS = 64


def with_plain_elements(function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
    """The kernel without branches and loops inside of T.Parallel.

    What only one branch stores keeps its value in the other. Stores to tensors keep their condition, unless it only
    says that an element is one of the tensor's: others are never stored. Raises Unsupported for stores to tensors under
    a condition that is about values of elements, and for loops of unknown or great length.
    """
    return rewrite([_PLAIN], Context(function, firings))


def flattened(branch: tirx.IfThenElse) -> list[tirx.Stmt]:
    """The stores and names in a branch one after another, with choices in place of the condition."""
    return _Flat(set()).branch(branch, [])


def _plain(context: Context, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
    if not context.is_nest(statement):
        return None
    loops, body = parallel_body(statement)
    if not any(isinstance(statement, tirx.IfThenElse | tirx.For) for statement in body):
        return None
    inside = {loop.loop_var for loop in loops} | {
        statement.var for statement in walk(loops[-1].body) if isinstance(statement, tirx.Bind)
    }
    return [with_nest(loops, _Flat(inside).body(body, []))]


class _Flat:
    """The statements of a nest one after another. `inside` are the variables that differ in its turns, `placed` the
    values of the loop variables that are gone, `named` those of the names that are kept."""

    def __init__(self, inside: set[ir.Var]) -> None:
        self.inside = inside
        self.placed: dict[ir.Expr, ir.Expr] = {}
        self.named: dict[ir.Expr, ir.Expr] = {}

    def body(self, body: Sequence[tirx.Stmt], conditions: list[ir.Expr]) -> list[tirx.Stmt]:
        flat_body: list[tirx.Stmt] = []
        for statement in body:
            match statement:
                case tirx.Bind():
                    name = tirx.Var(str(statement.var.name), statement.var.ty)
                    value = self.value(statement.value)
                    flat_body.append(tirx.Bind(name, value, statement.span))
                    self.placed[statement.var] = name
                    self.named[name] = self.written_out(value)
                case tirx.BufferStore():
                    flat_body.append(self.store(statement, conditions))
                case tirx.IfThenElse():
                    flat_body += self.branch(statement, conditions)
                case tirx.For() if not is_parallel(statement):
                    flat_body += self.turns(statement, conditions)
                case tirx.For():
                    loops, inner = parallel_body(statement)
                    self.inside |= {loop.loop_var for loop in loops}
                    flat_body.append(with_nest(loops, self.body(inner, conditions)))
                case _:
                    # Operations on blocks are refused wherever they are in a T.Parallel.
                    flat_body.append(statement)
        return flat_body

    def value(self, expression: ir.Expr) -> ir.Expr:
        return replaced(expression, lambda node: self.placed.get(node, node)) if self.placed else expression

    def written_out(self, expression: ir.Expr) -> ir.Expr:
        return replaced(expression, lambda node: self.named.get(node, node)) if self.named else expression

    def store(self, statement: tirx.BufferStore, conditions: list[ir.Expr]) -> tirx.Stmt:
        indices = [self.value(index) for index in statement.indices]
        value = self.value(statement.value)
        if not is_on_chip(statement.buffer):
            expanded_indices = [self.written_out(index) for index in indices]
            conditions = [self.written_out(condition) for condition in conditions]
            conditions = [
                condition for condition in conditions if not _is_inside(condition, statement.buffer, expanded_indices)
            ]
            if conditions and not updates(value):
                for test, load in ((condition, load) for condition in conditions for load in loads_of(condition)):
                    if any(node in self.inside for index in load.indices for node in nodes_of(index)):
                        raise store_refused(statement.buffer, test).at(span_of(statement))
                value = stored_if(functools.reduce(tirx.And, conditions), value)
                return tirx.BufferStore(statement.buffer, value, indices, statement.span)
        for condition in reversed(conditions):
            old = tirx.BufferLoad(statement.buffer, indices)
            value = tirx.if_then_else(condition, value, old)
        return with_value(statement, value, indices)

    def branch(self, statement: tirx.IfThenElse, conditions: list[ir.Expr]) -> list[tirx.Stmt]:
        condition = self.value(statement.condition)
        flat_body: list[tirx.Stmt] = []
        written = {inner.buffer for inner in walk(statement) if isinstance(inner, tirx.BufferStore)}
        if any(load.source in written for load in loads_of(condition)):
            # What the branches store must not change which of them runs.
            name = tirx.Var("chosen", condition.ty)
            flat_body.append(tirx.Bind(name, condition, statement.span))
            condition = name
        if statement.else_case is not None:
            # Each side is made plain once, whatever becomes of it, so that long chains of branches stay short work.
            first, second = (self.body(statements(case), []) for case in (statement.then_case, statement.else_case))
            both = _chosen(condition, first, second) or _joined(condition, first, second)
            if both is not None:
                return [*flat_body, *self.body(both, conditions)]
            flat_body += self.body(first, [*conditions, *conjuncts(condition)])
            return [*flat_body, *self.body(second, [*conditions, tirx.Not(condition)])]
        return [*flat_body, *self.body(statements(statement.then_case), [*conditions, *conjuncts(condition)])]

    def turns(self, loop: tirx.For, conditions: list[ir.Expr]) -> list[tirx.Stmt]:
        extent, first = constant(loop.extent), constant(loop.min)
        if extent is None or first is None or loop.kind != tirx.ForKind.SERIAL or extent > MAX_TURNS:
            raise Unsupported(
                "L001",
                "a loop inside T.Parallel whose length is only known when the kernel runs"
                if extent is None or first is None
                else f"a loop of {extent} turns inside T.Parallel",
                hint=f"give it a constant length of at most {MAX_TURNS}, or write the T.Parallel inside of the loop",
                span=span_of(loop),
            )
        unrolled: list[tirx.Stmt] = []
        for iteration in range(first, first + extent):
            self.placed[loop.loop_var] = tirx.const(iteration, "int32")
            unrolled += self.body(statements(loop.body), conditions)
        return unrolled


def store_refused(tensor: tirx.Buffer, condition: ir.Expr) -> Unsupported:
    """The refusal of a store to a tensor under a condition that says of no first rows and columns that they are
    stored."""
    return Unsupported(
        "L003",
        f"a store to the tensor {tensor.name} under the condition {format_expression(condition)}",
        hint=f"choose what is stored: {tensor.name}[...] = T.if_then_else(condition, value, 0); a condition may decide "
        "whether an element is stored if it compares one loop variable with an end: i < n",
    )


def _chosen(condition: ir.Expr, first: list[tirx.Stmt], second: list[tirx.Stmt]) -> list[tirx.Stmt] | None:
    """The statements of two branches that store the same elements in the same order, with a choice for each of them;
    None for other branches."""
    if not all(isinstance(statement, tirx.Bind | tirx.BufferStore) for statement in (*first, *second)):
        return None
    stores = [[statement for statement in body if isinstance(statement, tirx.BufferStore)] for body in (first, second)]
    if len(stores[0]) != len(stores[1]) or not all(map(_same_element, *stores)):
        return None
    merged: list[tirx.Stmt] = []
    rest = iter(second)
    for statement in first:
        if not isinstance(statement, tirx.BufferStore):
            merged.append(statement)
            continue
        for two in rest:
            if isinstance(two, tirx.BufferStore):
                value = tirx.if_then_else(condition, statement.value, two.value)
                merged.append(with_value(statement, value))
                break
            merged.append(two)
    return merged


def _joined(condition: ir.Expr, first: list[tirx.Stmt], second: list[tirx.Stmt]) -> list[tirx.Stmt] | None:
    """The statements of two branches with names for what they store on the chip, and after them a choice for each
    element that one of them stores; None where they store or read several elements of one block."""
    elements: list[tirx.BufferStore] = []
    for statement in (*first, *second):
        if not isinstance(statement, tirx.Bind | tirx.BufferStore):
            return None
        if not isinstance(statement, tirx.BufferStore):
            continue
        alike = [store for store in elements if store.buffer.same_as(statement.buffer)]
        if (
            not is_on_chip(statement.buffer)
            or updates(statement.value)
            or (alike and not _same_element(alike[0], statement))
        ):
            return None
        if not alike:
            elements.append(statement)
    loads = [load for statement in (*first, *second) if isinstance(statement, tirx.Bind | tirx.BufferStore)
             for load in loads_of(statement.value)]  # fmt: skip
    for store in elements:
        if any(load.source.same_as(store.buffer) and not _is_element(store, load.source, load.indices)
               for load in loads):  # fmt: skip
            return None
    joined: list[tirx.Stmt] = []
    values: list[dict[tirx.Buffer, ir.Expr]] = []
    for side in (first, second):
        stored: dict[tirx.Buffer, ir.Expr] = {}

        def value(expr: ir.Expr, stored: dict[tirx.Buffer, ir.Expr] = stored) -> ir.Expr:
            return stored.get(expr.source, expr) if isinstance(expr, ir.TensorLoad) else expr

        for statement in side:
            match statement:
                case tirx.BufferStore():
                    name = tirx.Var(f"{statement.buffer.name}_value", statement.value.ty)
                    joined.append(tirx.Bind(name, replaced(statement.value, value), statement.span))
                    stored[statement.buffer] = name
                case tirx.Bind():
                    joined.append(with_value(statement, replaced(statement.value, value)))
                case _:
                    joined.append(statement)
        values.append(stored)
    for statement in elements:
        old = tirx.BufferLoad(statement.buffer, [*statement.indices])
        then, otherwise = (stored.get(statement.buffer, old) for stored in values)
        joined.append(with_value(statement, tirx.if_then_else(condition, then, otherwise)))
    return joined


def _same_element(first: tirx.BufferStore, second: tirx.BufferStore) -> bool:
    return _is_element(first, second.buffer, second.indices)


def _is_element(store: tirx.BufferStore, buffer: tirx.Buffer, indices: Sequence[ir.Expr]) -> bool:
    return store.buffer.same_as(buffer) and same_expressions([*store.indices], [*indices])


_COMPARISONS = (tirx.LT, tirx.LE, tirx.GT, tirx.GE)


def _is_inside(condition: ir.Expr, tensor: tirx.Buffer, indices: list[ir.Expr]) -> bool:
    """Whether a condition says no more than that an index of a store lies in the tensor, as `index <= length - 1` does
    and `index >= 0`."""
    if not isinstance(condition, _COMPARISONS) or not str(condition.a.ty.dtype).startswith("int"):
        return False
    low, high = (condition.a, condition.b) if isinstance(condition, tirx.LT | tirx.LE) else (condition.b, condition.a)
    room = high - low if isinstance(condition, tirx.LT | tirx.GT) else high - low + 1
    # It holds wherever low < high; an index of the tensor is below its length, and above -1.
    for index, length in zip(indices, extents_of(tensor), strict=True):
        for inside in (length - index, index + 1):
            more = constant(sym.Analyzer().simplify(room - inside))
            if more is not None and more >= 0:
                return True
    return False


_PLAIN = StatementRule(
    "plain elements", "In a T.Parallel branches become choices, and loops one turn after another.", _plain
)
