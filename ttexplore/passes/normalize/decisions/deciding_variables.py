"""Scalar variables that places, lengths and conditions depend on, as names of values."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import ir, tirx

from ttexplore.ir.build import (
    arguments,
    constant,
    dtype_of,
    op_name,
    regions,
    statements,
    with_arguments,
    with_nest,
    with_value,
)
from ttexplore.ir.dag import replaced
from ttexplore.ir.dataflow import is_parallel, loads_of, parallel_body
from ttexplore.ir.names import unused_name
from ttexplore.ir.rewrite import Context, Firings, StatementRule, rewrite, rewrite_body, walk
from ttexplore.passes.normalize.decisions.scalar_values import steering

# Longer loops over scalars alone stay loops.
MAX_TURNS = 64


def with_named_variables(function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
    """The kernel with names in place of integer variables that decide something, as far as it is known where each value
    comes from.

    Loops of at most 64 turns over such variables are unrolled, also where fewer turns are taken. A variable that is
    carried through a loop over blocks, or that a branch around blocks stores, stays as it is.
    """
    own = _candidates(function)
    while own:
        made = _Variables(function, Firings(), own)
        rewrite(_RULES, made)
        if not made.lost:
            return rewrite(_RULES, _Variables(function, firings, own))
        own -= made.lost
    return function


def _candidates(function: tirx.PrimFunc) -> frozenset[tirx.Buffer]:
    body = walk(function.body)
    found = {
        one.buffer for one in body
        if isinstance(one, tirx.AllocBuffer) and dtype_of(one.buffer) in ("int32", "bool")
        and [*map(constant, one.buffer.ty.shape)] == [1]
    }  # fmt: skip
    if found:
        found &= steering(function)
    for one in body if found else ():
        if is_parallel(one):
            found -= {store.buffer for store in parallel_body(one)[1] if isinstance(store, tirx.BufferStore)}
        if op_name(one):
            found -= {region.source for region in regions(one)}
    return frozenset(found)


class _Variables(Context):
    """`values` are the names of what variables hold; `lost` are the variables of which that is not known where they are
    read."""

    def __init__(self, function: tirx.PrimFunc, firings: Firings, own: frozenset[tirx.Buffer]) -> None:
        super().__init__(function, firings)
        self.own = own
        self.values: dict[tirx.Buffer, ir.Expr] = {}
        self.lost = frozenset[tirx.Buffer]()
        self.names = set[str]()

    # Rules

    def allocation(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        return [] if isinstance(statement, tirx.AllocBuffer) and statement.buffer in self.own else None

    def store(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        if not isinstance(statement, tirx.BufferStore) or statement.buffer not in self.own:
            return None
        return self.turn([statement], {}, None)

    def control(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        """A loop or a branch."""
        if not isinstance(statement, tirx.For | tirx.IfThenElse) or is_parallel(statement):
            return None
        stored = {one.buffer for one in walk(statement) if isinstance(one, tirx.BufferStore)} & self.own
        if stored and self.is_of_variables(statement):
            return self.turn([statement], {}, None)
        made: tirx.For | tirx.IfThenElse
        if isinstance(statement, tirx.For):
            low, extent = self.known(statement.min), self.known(statement.extent)
            self.forget(stored)
            made = self.inside(statement, lambda body: rewrite_body(body, _RULES, self))
            made = tirx.For(
                made.loop_var, low, extent, made.kind, made.body, made.thread_binding, made.annotations, made.step,
                made.span,
            )  # fmt: skip
        else:
            condition = self.known(statement.condition)
            before = dict(self.values)

            def side(body: list[tirx.Stmt]) -> list[tirx.Stmt]:
                self.values = dict(before)
                return rewrite_body(body, _RULES, self)

            made = self.inside(statement, side)
            made = tirx.IfThenElse(condition, made.then_case, made.else_case, made.span)
            self.values = before
        self.forget(stored)
        return [made]

    def others(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        """A statement that reads variables."""
        if self.is_in_nest:
            return None
        match statement:
            case tirx.For():
                loops, body = parallel_body(statement)
                inside = [self.with_known(one) for one in body]
                same = all(one.same_as(other) for one, other in zip(body, inside, strict=True))
                return None if same else [with_nest(loops, inside)]
            case tirx.Bind() | tirx.BufferStore():
                made = self.with_known(statement)
                return None if made.same_as(statement) else [made]
            case tirx.Evaluate() if op_name(statement):
                given = [self.known(part) for part in arguments(statement)]
                same = all(one.same_as(other) for one, other in zip(given, arguments(statement), strict=True))
                return None if same else [with_arguments(statement, given)]
            case _:
                return None

    # Values

    def known(self, e: ir.Expr) -> ir.Expr:
        """An expression with names in place of variables."""
        if isinstance(e, ir.TensorRegion):
            ranges = [ir.Range.from_min_extent(self.known(one.min), self.known(one.extent)) for one in e.region]
            same = all(
                a.min.same_as(b.min) and a.extent.same_as(b.extent) for a, b in zip(ranges, e.region, strict=True)
            )
            return e if same else tirx.BufferRegion(e.source, ranges)

        def value(part: ir.Expr) -> ir.Expr:
            if not isinstance(part, ir.TensorLoad) or part.source not in self.own:
                return part
            if part.source not in self.values:
                self.lost |= {part.source}
                return part
            return self.values[part.source]

        return replaced(e, value)

    def with_known(self, statement: tirx.Stmt) -> tirx.Stmt:
        if not isinstance(statement, tirx.Bind | tirx.BufferStore):
            return statement
        value = self.known(statement.value)
        if isinstance(statement, tirx.BufferStore):
            indices = [self.known(one) for one in statement.indices]
            if not all(one.same_as(other) for one, other in zip(indices, statement.indices, strict=True)):
                return tirx.BufferStore(statement.buffer, value, indices, statement.span)
        return statement if value.same_as(statement.value) else with_value(statement, value)

    def forget(self, stored: set[tirx.Buffer]) -> None:
        self.values = {one: value for one, value in self.values.items() if one not in stored}

    # Statements of variables alone

    def is_of_variables(self, statement: tirx.Stmt) -> bool:
        """Whether a loop or branch does nothing but store variables, in a few turns."""
        for one in walk(statement):
            match one:
                case tirx.For():
                    if one.kind != tirx.ForKind.SERIAL or constant(one.min) is None or self.most_turns(one) > MAX_TURNS:
                        return False
                case tirx.BufferStore():
                    if one.buffer not in self.own:
                        return False
                case tirx.IfThenElse() | tirx.Bind():
                    pass
                case _:
                    return False
        return True

    def most_turns(self, loop: tirx.For) -> int:
        return self.bounds.range(self.known(loop.extent))[1]

    def turn(
        self, body: Sequence[tirx.Stmt], placed: dict[ir.Expr, ir.Expr], condition: ir.Expr | None
    ) -> list[tirx.Stmt]:  # fmt: skip
        """The statements of a body as names. `placed` are values of the loops' variables and names inside, `condition`
        is what the statements run under."""
        made: list[tirx.Stmt] = []

        def value(e: ir.Expr) -> ir.Expr:
            return replaced(self.known(e), lambda part: placed.get(part, part))

        def named(name: str, e: ir.Expr, span: ir.Span | None) -> ir.Var:
            # Kernels that need some of these values only still call them the same.
            name = unused_name(name, self.names)
            self.names.add(name)
            made.append(tirx.Bind(tirx.Var(name, str(e.ty.dtype)), e, span))
            bound = made[-1]
            assert isinstance(bound, tirx.Bind)
            self.enter(bound)
            return bound.var

        for one in body:
            match one:
                case tirx.Bind():
                    known = _where(condition, value(one.value))
                    placed[one.var] = named(str(one.var.name), known, one.span)
                case tirx.BufferStore():
                    new, dtype = value(one.value), dtype_of(one.buffer)
                    new = new if str(new.ty.dtype) == dtype else tirx.Cast(ir.PrimType(dtype), new)
                    if condition is not None:
                        old = self.known(tirx.BufferLoad(one.buffer, list(one.indices)))
                        new = tirx.if_then_else(condition, new, old)
                    self.values[one.buffer] = named(str(one.buffer.name), new, one.span)
                case tirx.IfThenElse():
                    test = named("chosen", _where(condition, value(one.condition)), one.span)
                    made += self.turn(statements(one.then_case), placed, _both(condition, test))
                    if one.else_case is not None:
                        made += self.turn(statements(one.else_case), placed, _both(condition, tirx.Not(test)))
                case tirx.For():
                    first, extent = constant(one.min) or 0, value(one.extent)
                    for number in range(self.most_turns(one)):
                        placed[one.loop_var] = tirx.const(first + number, "int32")
                        runs = None if constant(extent) is not None else extent > number
                        made += self.turn(statements(one.body), placed, _both(condition, runs))
                case _:
                    raise AssertionError(f"{one} is no statement of variables alone")
        return made


def _where(condition: ir.Expr | None, value: ir.Expr) -> ir.Expr:
    """A value that nobody asks for where a condition does not hold: elements in it need not be there then."""
    if condition is None or not loads_of(value):
        return value
    # Not 0, which other values may be divided by.
    return tirx.if_then_else(condition, value, tirx.const(1, str(value.ty.dtype)))


def _both(one: ir.Expr | None, other: ir.Expr | None) -> ir.Expr | None:
    return other if one is None else one if other is None else tirx.And(one, other)


_RULES = (
    StatementRule("no variable", "A variable that decides something is a name for each value.", _Variables.allocation),
    StatementRule("value of a variable", "What a variable holds gets a name.", _Variables.store),
    StatementRule(
        "values of variables", "Loops and branches over variables alone become choices.", _Variables.control
    ),
    StatementRule("variable read", "A name is read in place of a variable.", _Variables.others),
)  # fmt: skip
