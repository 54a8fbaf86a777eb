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
    if not any(isinstance(one, tirx.IfThenElse | tirx.For) for one in body):
        return None
    inside = {loop.loop_var for loop in loops} | {one.var for one in walk(loops[-1].body) if isinstance(one, tirx.Bind)}
    return [with_nest(loops, _Flat(inside).body(body, []))]


class _Flat:
    """The statements of a nest one after another. `inside` are the variables that differ in its turns, `placed` the
    values of the loop variables that are gone, `named` those of the names that are kept."""

    def __init__(self, inside: set[ir.Var]) -> None:
        self.inside = inside
        self.placed: dict[ir.Expr, ir.Expr] = {}
        self.named: dict[ir.Expr, ir.Expr] = {}

    def body(self, body: Sequence[tirx.Stmt], conditions: list[ir.Expr]) -> list[tirx.Stmt]:
        made: list[tirx.Stmt] = []
        for one in body:
            match one:
                case tirx.Bind():
                    name = tirx.Var(str(one.var.name), one.var.ty)
                    value = self.value(one.value)
                    made.append(tirx.Bind(name, value, one.span))
                    self.placed[one.var] = name
                    self.named[name] = self.written_out(value)
                case tirx.BufferStore():
                    made.append(self.store(one, conditions))
                case tirx.IfThenElse():
                    made += self.branch(one, conditions)
                case tirx.For() if not is_parallel(one):
                    made += self.turns(one, conditions)
                case _:
                    made.append(one)
        return made

    def value(self, expression: ir.Expr) -> ir.Expr:
        return replaced(expression, lambda part: self.placed.get(part, part)) if self.placed else expression

    def written_out(self, expression: ir.Expr) -> ir.Expr:
        return replaced(expression, lambda part: self.named.get(part, part)) if self.named else expression

    def store(self, statement: tirx.BufferStore, conditions: list[ir.Expr]) -> tirx.Stmt:
        indices = [self.value(one) for one in statement.indices]
        value = self.value(statement.value)
        if not is_on_chip(statement.buffer):
            places = [self.written_out(one) for one in indices]
            conditions = [self.written_out(one) for one in conditions]
            conditions = [one for one in conditions if not _is_inside(one, statement.buffer, places)]
            if conditions and not updates(value):
                for test, load in ((one, load) for one in conditions for load in loads_of(one)):
                    if any(part in self.inside for index in load.indices for part in nodes_of(index)):
                        raise store_refused(statement.buffer, test).at(span_of(statement))
                value = stored_if(functools.reduce(tirx.And, conditions), value)
                return tirx.BufferStore(statement.buffer, value, indices, statement.span)
        for one in reversed(conditions):
            old = tirx.BufferLoad(statement.buffer, indices)
            value = tirx.if_then_else(one, value, old)
        return with_value(statement, value, indices)

    def branch(self, statement: tirx.IfThenElse, conditions: list[ir.Expr]) -> list[tirx.Stmt]:
        condition = self.value(statement.condition)
        made: list[tirx.Stmt] = []
        written = {one.buffer for one in walk(statement) if isinstance(one, tirx.BufferStore)}
        if any(load.source in written for load in loads_of(condition)):
            # What the branches store must not change which of them runs.
            name = tirx.Var("chosen", condition.ty)
            made.append(tirx.Bind(name, condition, statement.span))
            condition = name
        if statement.else_case is not None:
            # Each side is made plain once, whatever becomes of it, so that long chains of branches stay short work.
            first, other = (self.body(statements(one), []) for one in (statement.then_case, statement.else_case))
            both = _chosen(condition, first, other) or _joined(condition, first, other)
            if both is not None:
                return [*made, *self.body(both, conditions)]
            made += self.body(first, [*conditions, *conjuncts(condition)])
            return [*made, *self.body(other, [*conditions, tirx.Not(condition)])]
        return [*made, *self.body(statements(statement.then_case), [*conditions, *conjuncts(condition)])]

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
        made: list[tirx.Stmt] = []
        for turn in range(first, first + extent):
            self.placed[loop.loop_var] = tirx.const(turn, "int32")
            made += self.body(statements(loop.body), conditions)
        return made


def store_refused(tensor: tirx.Buffer, condition: ir.Expr) -> Unsupported:
    """The refusal of a store to a tensor under a condition that says of no first rows and columns that they are
    stored."""
    return Unsupported(
        "L003",
        f"a store to the tensor {tensor.name} under the condition {format_expression(condition)}",
        hint=f"choose what is stored: {tensor.name}[...] = T.if_then_else(condition, value, 0); a condition may decide "
        "whether an element is stored if it compares one loop variable with an end: i < n",
    )


def _chosen(condition: ir.Expr, first: list[tirx.Stmt], other: list[tirx.Stmt]) -> list[tirx.Stmt] | None:
    """The statements of two branches that store the same elements in the same order, with a choice for each of them;
    None for other branches."""
    stores = [[one for one in body if isinstance(one, tirx.BufferStore)] for body in (first, other)]
    if len(stores[0]) != len(stores[1]) or not all(map(_same_element, *stores)):
        return None
    made: list[tirx.Stmt] = []
    rest = iter(other)
    for one in first:
        if not isinstance(one, tirx.BufferStore):
            made.append(one)
            continue
        for two in rest:
            if isinstance(two, tirx.BufferStore):
                value = tirx.if_then_else(condition, one.value, two.value)
                made.append(with_value(one, value))
                break
            made.append(two)
    return made


def _joined(condition: ir.Expr, first: list[tirx.Stmt], other: list[tirx.Stmt]) -> list[tirx.Stmt] | None:
    """The statements of two branches with names for what they store on the chip, and after them a choice for each
    element that one of them stores; None where they store or read several elements of one block."""
    elements: list[tirx.BufferStore] = []
    for one in (*first, *other):
        if not isinstance(one, tirx.Bind | tirx.BufferStore):
            return None
        if not isinstance(one, tirx.BufferStore):
            continue
        alike = [known for known in elements if known.buffer.same_as(one.buffer)]
        if not is_on_chip(one.buffer) or updates(one.value) or (alike and not _same_element(alike[0], one)):
            return None
        if not alike:
            elements.append(one)
    loads = [load for one in (*first, *other) if isinstance(one, tirx.Bind | tirx.BufferStore)
             for load in loads_of(one.value)]  # fmt: skip
    for known in elements:
        if any(load.source.same_as(known.buffer) and not _is_element(known, load.source, load.indices)
               for load in loads):  # fmt: skip
            return None
    made: list[tirx.Stmt] = []
    values: list[dict[tirx.Buffer, ir.Expr]] = []
    for side in (first, other):
        stored: dict[tirx.Buffer, ir.Expr] = {}

        def value(part: ir.Expr, stored: dict[tirx.Buffer, ir.Expr] = stored) -> ir.Expr:
            return stored.get(part.source, part) if isinstance(part, ir.TensorLoad) else part

        for one in side:
            match one:
                case tirx.BufferStore():
                    name = tirx.Var(f"{one.buffer.name}_value", one.value.ty)
                    made.append(tirx.Bind(name, replaced(one.value, value), one.span))
                    stored[one.buffer] = name
                case tirx.Bind():
                    made.append(with_value(one, replaced(one.value, value)))
                case _:
                    made.append(one)
        values.append(stored)
    for one in elements:
        old = tirx.BufferLoad(one.buffer, [*one.indices])
        then, otherwise = (stored.get(one.buffer, old) for stored in values)
        made.append(with_value(one, tirx.if_then_else(condition, then, otherwise)))
    return made


def _same_element(one: tirx.BufferStore, other: tirx.BufferStore) -> bool:
    return _is_element(one, other.buffer, other.indices)


def _is_element(one: tirx.BufferStore, buffer: tirx.Buffer, indices: Sequence[ir.Expr]) -> bool:
    return one.buffer.same_as(buffer) and same_expressions([*one.indices], [*indices])


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
