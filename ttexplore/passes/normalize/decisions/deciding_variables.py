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
    candidates = _candidates(function)
    while candidates:
        trial = _Variables(function, Firings(), candidates)
        rewrite(_RULES, trial)
        if not trial.lost:
            return rewrite(_RULES, _Variables(function, firings, candidates))
        candidates -= trial.lost
    return function


def _candidates(function: tirx.PrimFunc) -> frozenset[tirx.Buffer]:
    body = walk(function.body)
    buffers = {
        node.buffer for node in body
        if isinstance(node, tirx.AllocBuffer) and dtype_of(node.buffer) in ("int32", "bool")
        and [*map(constant, node.buffer.ty.shape)] == [1]
    }  # fmt: skip
    if buffers:
        buffers &= steering(function)
    for statement in body if buffers else ():
        if is_parallel(statement):
            buffers -= {store.buffer for store in parallel_body(statement)[1] if isinstance(store, tirx.BufferStore)}
        if op_name(statement):
            buffers -= {region.source for region in regions(statement)}
    return frozenset(buffers)


class _Variables(Context):
    """`values` are the names of what variables hold; `lost` are the variables of which that is not known where they are
    read."""

    def __init__(self, function: tirx.PrimFunc, firings: Firings, variables: frozenset[tirx.Buffer]) -> None:
        super().__init__(function, firings)
        self.own = variables
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
        stored = {inner.buffer for inner in walk(statement) if isinstance(inner, tirx.BufferStore)} & self.own
        if stored and self.is_of_variables(statement):
            return self.turn([statement], {}, None)
        new: tirx.For | tirx.IfThenElse
        if isinstance(statement, tirx.For):
            low, extent = self.known(statement.min), self.known(statement.extent)
            self.forget(stored)
            new = self.inside(statement, lambda body: rewrite_body(body, _RULES, self))
            new = tirx.For(
                new.loop_var, low, extent, new.kind, new.body, new.thread_binding, new.annotations, new.step,
                new.span,
            )  # fmt: skip
        else:
            condition = self.known(statement.condition)
            before = dict(self.values)

            def side(body: list[tirx.Stmt]) -> list[tirx.Stmt]:
                self.values = dict(before)
                return rewrite_body(body, _RULES, self)

            new = self.inside(statement, side)
            new = tirx.IfThenElse(condition, new.then_case, new.else_case, new.span)
            self.values = before
        self.forget(stored)
        return [new]

    def others(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        """A statement that reads variables."""
        if self.is_in_nest:
            return None
        match statement:
            case tirx.For():
                loops, body = parallel_body(statement)
                inside = [self.with_known(inner) for inner in body]
                same = all(old.same_as(new) for old, new in zip(body, inside, strict=True))
                return None if same else [with_nest(loops, inside)]
            case tirx.Bind() | tirx.BufferStore():
                rewritten = self.with_known(statement)
                return None if rewritten.same_as(statement) else [rewritten]
            case tirx.Evaluate() if op_name(statement):
                operands = [self.known(operand) for operand in arguments(statement)]
                same = all(new.same_as(old) for new, old in zip(operands, arguments(statement), strict=True))
                return None if same else [with_arguments(statement, operands)]
            case _:
                return None

    # Values

    def known(self, e: ir.Expr) -> ir.Expr:
        """An expression with names in place of variables."""
        if isinstance(e, ir.TensorRegion):
            ranges = [
                ir.Range.from_min_extent(self.known(interval.min), self.known(interval.extent)) for interval in e.region
            ]
            same = all(
                a.min.same_as(b.min) and a.extent.same_as(b.extent) for a, b in zip(ranges, e.region, strict=True)
            )
            return e if same else tirx.BufferRegion(e.source, ranges)

        def value(expr: ir.Expr) -> ir.Expr:
            if not isinstance(expr, ir.TensorLoad) or expr.source not in self.own:
                return expr
            if expr.source not in self.values:
                self.lost |= {expr.source}
                return expr
            return self.values[expr.source]

        return replaced(e, value)

    def with_known(self, statement: tirx.Stmt) -> tirx.Stmt:
        if not isinstance(statement, tirx.Bind | tirx.BufferStore):
            return statement
        value = self.known(statement.value)
        if isinstance(statement, tirx.BufferStore):
            indices = [self.known(index) for index in statement.indices]
            if not all(new.same_as(old) for new, old in zip(indices, statement.indices, strict=True)):
                return tirx.BufferStore(statement.buffer, value, indices, statement.span)
        return statement if value.same_as(statement.value) else with_value(statement, value)

    def forget(self, stored: set[tirx.Buffer]) -> None:
        self.values = {buffer: value for buffer, value in self.values.items() if buffer not in stored}

    # Statements of variables alone

    def is_of_variables(self, statement: tirx.Stmt) -> bool:
        """Whether a loop or branch does nothing but store variables, in a few turns."""
        for inner in walk(statement):
            match inner:
                case tirx.For():
                    if (
                        inner.kind != tirx.ForKind.SERIAL
                        or constant(inner.min) is None
                        or self.most_turns(inner) > MAX_TURNS
                    ):
                        return False
                case tirx.BufferStore():
                    if inner.buffer not in self.own:
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
        unrolled: list[tirx.Stmt] = []

        def value(e: ir.Expr) -> ir.Expr:
            return replaced(self.known(e), lambda node: placed.get(node, node))

        def named(name: str, e: ir.Expr, span: ir.Span | None) -> ir.Var:
            # Kernels that need some of these values only still call them the same.
            name = unused_name(name, self.names)
            self.names.add(name)
            unrolled.append(tirx.Bind(tirx.Var(name, str(e.ty.dtype)), e, span))
            bound = unrolled[-1]
            assert isinstance(bound, tirx.Bind)
            self.enter(bound)
            return bound.var

        for statement in body:
            match statement:
                case tirx.Bind():
                    bound_value = _where(condition, value(statement.value))
                    placed[statement.var] = named(str(statement.var.name), bound_value, statement.span)
                case tirx.BufferStore():
                    new, dtype = value(statement.value), dtype_of(statement.buffer)
                    new = new if str(new.ty.dtype) == dtype else tirx.Cast(ir.PrimType(dtype), new)
                    if condition is not None:
                        old = self.known(tirx.BufferLoad(statement.buffer, list(statement.indices)))
                        new = tirx.if_then_else(condition, new, old)
                    self.values[statement.buffer] = named(str(statement.buffer.name), new, statement.span)
                case tirx.IfThenElse():
                    test = named("chosen", _where(condition, value(statement.condition)), statement.span)
                    unrolled += self.turn(statements(statement.then_case), placed, _both(condition, test))
                    if statement.else_case is not None:
                        unrolled += self.turn(statements(statement.else_case), placed, _both(condition, tirx.Not(test)))
                case tirx.For():
                    first, extent = constant(statement.min) or 0, value(statement.extent)
                    for number in range(self.most_turns(statement)):
                        placed[statement.loop_var] = tirx.const(first + number, "int32")
                        runs = None if constant(extent) is not None else extent > number
                        unrolled += self.turn(statements(statement.body), placed, _both(condition, runs))
                case _:
                    raise AssertionError(f"{statement} is no statement of variables alone")
        return unrolled


def _where(condition: ir.Expr | None, value: ir.Expr) -> ir.Expr:
    """A value that nobody asks for where a condition does not hold: elements in it need not be there then."""
    if condition is None or not loads_of(value):
        return value
    # Not 0, which other values may be divided by.
    return tirx.if_then_else(condition, value, tirx.const(1, str(value.ty.dtype)))


def _both(first: ir.Expr | None, second: ir.Expr | None) -> ir.Expr | None:
    return second if first is None else first if second is None else tirx.And(first, second)


_RULES = (
    StatementRule("no variable", "A variable that decides something is a name for each value.", _Variables.allocation),
    StatementRule("value of a variable", "What a variable holds gets a name.", _Variables.store),
    StatementRule(
        "values of variables", "Loops and branches over variables alone become choices.", _Variables.control
    ),
    StatementRule("variable read", "A name is read in place of a variable.", _Variables.others),
)  # fmt: skip
