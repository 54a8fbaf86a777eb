"""Loops with a condition, as loops that count their turns."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tvm import ir, sym, tirx

from ttexplore.errors import Unsupported
from ttexplore.ir.adapter import span_of
from ttexplore.ir.arithmetic.expression import format_expression
from ttexplore.ir.build import (
    bind,
    constant,
    dtype_of,
    expressions_of,
    loop,
    regions,
    shape_of,
    statements,
    variable,
)
from ttexplore.ir.dag import conjuncts, nodes_of, replaced
from ttexplore.ir.dataflow import control_refused, is_on_chip, loads_of
from ttexplore.ir.rewrite import Context, Firings, StatementRule, rewrite, rewrite_body, walk

_ZERO = tirx.const(0, "int32")


def with_counted_loops(function: tirx.PrimFunc, firings: Firings) -> tirx.PrimFunc:
    """The kernel with a loop over a number of turns in place of each `while`.

    What a variable holds at the start of each turn is known where a turn adds a number to it that is the same in all
    turns, or where it moves on to the next multiple of a number or to an end, as in stream-K:
    ``x = T.min((x // 8 + 1) * 8, end)``. How many turns there are is known where each turn brings a comparison of such
    variables closer to its end, by at least 1. The body stays as it is. Raises Unsupported for other loops.
    """
    return rewrite(_RULES, _Whiles(function, firings))


class _Whiles(Context):
    def counted(self, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        if not isinstance(statement, tirx.While):
            return None
        body = rewrite_body(statements(statement.body), _RULES, self)
        iteration = _IterationValues(_variables(body))
        tests = [iteration.value(conjunct) for conjunct in conjuncts(statement.condition)]
        iteration.body(body)
        progress = _Progress(self, statement, iteration, [test for test in tests if test is not None])
        if len(progress.tests) != len(tests):
            raise control_refused(statement)
        asked = [buffer for buffer in iteration.begins if buffer in iteration.asked]
        forms = {buffer: progress.form(buffer) for buffer in asked}
        firsts = {buffer: variable(f"{buffer.name}_first") for buffer in asked}

        def at_first(e: ir.Expr) -> ir.Expr:
            return iteration.placed(e, firsts)

        count = functools.reduce(tirx.Min, [at_first(progress.turns(test, forms)) for test in progress.tests])
        turns, number = variable("turns"), variable("turn")
        starts = [_store(buffer, at_first(form.at(number)), statement) for buffer, form in forms.items()]
        ends = [_store(buffer, at_first(form.after(turns)), statement) for buffer, form in forms.items()]
        return [
            *(bind(first, tirx.BufferLoad(buffer, [_ZERO])) for buffer, first in firsts.items()),
            bind(turns, count),
            loop(number, turns, [*starts, *body], span=statement.span),
            *ends,
        ]


def _variables(body: Sequence[tirx.Stmt]) -> list[tirx.Buffer]:
    """The integer variables that the statements store to."""
    stored = [inner.buffer for statement in body for inner in walk(statement) if isinstance(inner, tirx.BufferStore)]
    return [
        buffer for buffer in dict.fromkeys(stored)
        if is_on_chip(buffer) and dtype_of(buffer) == "int32" and shape_of(buffer) == (1,)
    ]  # fmt: skip


def _store(buffer: tirx.Buffer, value: ir.Expr, like: tirx.Stmt) -> tirx.Stmt:
    return tirx.BufferStore(buffer, value, [_ZERO], like.span)


class _IterationValues:
    """What a turn makes of variables. `begins` are names for what they hold when it begins; `now` is what they hold, by
    these names, None where that is not known. `asked` are those that are read before they are stored to, `changed` are
    all buffers that change in a turn."""

    def __init__(self, variables: Iterable[tirx.Buffer]) -> None:
        self.begins = {buffer: variable(str(buffer.name)) for buffer in variables}
        self.now: dict[tirx.Buffer, ir.Expr | None] = {**self.begins}
        self.names: dict[ir.Var, ir.Expr | None] = {}
        self.inner: set[ir.Var] = set()
        self.asked: set[tirx.Buffer] = set()
        self.changed: set[tirx.Buffer] = set()

    def value(self, e: ir.Expr) -> ir.Expr | None:
        """An expression by the names for what variables hold when the turn begins; None where that is not known."""
        is_known = True

        def substitute(expr: ir.Expr) -> ir.Expr:
            nonlocal is_known
            if isinstance(expr, ir.Var) and expr in self.names:
                replacement = self.names[expr]
            elif isinstance(expr, ir.TensorLoad) and expr.source in self.now:
                replacement = self.now[expr.source]
            else:
                is_known &= expr not in self.inner
                return expr
            is_known &= replacement is not None
            return expr if replacement is None else replacement

        rewritten = replaced(e, substitute)
        nodes = {*nodes_of(rewritten)}
        self.asked |= {buffer for buffer, name in self.begins.items() if name in nodes}
        return rewritten if is_known else None

    def placed(self, e: ir.Expr, values: dict[tirx.Buffer, ir.Var] | dict[tirx.Buffer, ir.Expr]) -> ir.Expr:
        """An expression with these values in place of those at the start of the turn."""
        replacements: dict[ir.Expr, ir.Expr] = {
            name: values[buffer] for buffer, name in self.begins.items() if buffer in values
        }
        return replaced(e, lambda node: replacements.get(node, node))

    def body(self, body: Sequence[tirx.Stmt]) -> None:
        for statement in body:
            values = [self.value(e) for e in expressions_of(statement)]
            match statement:
                case tirx.Bind():
                    self.names[statement.var] = values[0]
                case tirx.BufferStore():
                    self.changed.add(statement.buffer)
                    if statement.buffer in self.now:
                        self.now[statement.buffer] = values[0]
                case tirx.Evaluate():
                    used = {region.source for region in regions(statement)}
                    self.changed |= used
                    self.now |= {key: None for key in self.now if key in used}
                case tirx.IfThenElse():
                    before = dict(self.now)
                    self.body(statements(statement.then_case))
                    then, self.now = self.now, before
                    self.body([] if statement.else_case is None else statements(statement.else_case))
                    self.now = {key: _either(values[0], then[key], value) for key, value in self.now.items()}
                case tirx.For():
                    # What a loop makes of variables is not followed.
                    lost = {*_variables([statement])}
                    self.inner.add(statement.loop_var)
                    self.now |= {key: None for key in self.now if key in lost}
                    self.body(statements(statement.body))
                    self.now |= {key: None for key in self.now if key in lost}
                case tirx.Break() | tirx.Continue():
                    raise control_refused(statement)
                case _:
                    pass


def _either(condition: ir.Expr | None, then: ir.Expr | None, otherwise: ir.Expr | None) -> ir.Expr | None:
    if then is None or otherwise is None or then.same_as(otherwise):
        return then if otherwise is not None else None
    return None if condition is None else tirx.Select(condition, then, otherwise)


@dataclass(frozen=True)
class _IteratedSum:
    """A variable to which each turn adds the same; `first` is what it holds before the loop."""

    first: ir.Expr
    step: ir.Expr

    def at(self, iteration: ir.Expr) -> ir.Expr:
        return self.first + iteration * self.step

    def after(self, turns: ir.Expr) -> ir.Expr:
        return self.at(turns)


@dataclass(frozen=True)
class _Multiples:
    """A variable that moves on to the next multiple of `unit`, or to the `end` of the loop where that comes first."""

    first: ir.Expr
    unit: int
    end: ir.Expr

    def at(self, iteration: ir.Expr) -> ir.Expr:
        return tirx.Max(self.first, (tirx.floordiv(self.first, self.unit) + iteration) * self.unit)

    def after(self, turns: ir.Expr) -> ir.Expr:
        return tirx.Select(turns > 0, tirx.Min(self.at(turns), self.end), self.first)


_Form = _IteratedSum | _Multiples


class _Progress:
    """How far a turn of a loop comes, by its `tests`."""

    def __init__(
        self, context: Context, statement: tirx.While, iteration: _IterationValues, tests: list[ir.Expr]
    ) -> None:
        self.context, self.statement, self.turn, self.tests = context, statement, iteration, tests
        self.now = {buffer: value for buffer, value in iteration.now.items() if value is not None}
        self.known = sym.Analyzer()

    def is_same(self, e: ir.Expr) -> bool:
        """Whether an expression has one value in all turns."""
        begins = {*self.turn.begins.values()}
        loads = (load.source for load in loads_of(e))
        return not any(node in begins for node in nodes_of(e)) and not any(
            buffer in self.turn.changed for buffer in loads
        )

    def difference(self, first: ir.Expr, second: ir.Expr) -> ir.Expr:
        return self.known.simplify(first - second)

    def form(self, buffer: tirx.Buffer) -> _Form:
        """What a variable holds at the start of each turn. Raises Unsupported where that is not known."""
        first, after = self.turn.begins[buffer], self.now.get(buffer)
        if after is not None:
            step = self.difference(after, first)
            if self.is_same(step):
                return _IteratedSum(first, step)
            if (form := self.multiples(first, after)) is not None:
                return form
        raise self.refused(
            f"what {buffer.name} holds in each turn of `while` is not known before the kernel runs",
            f"let each turn add a number that is the same in all turns: {buffer.name} += 4; or store to "
            f"{buffer.name} in the turn before it is read",
        )

    def multiples(self, first: ir.Var, after: ir.Expr) -> _Multiples | None:
        """The form of a variable that moves on to the next multiple of a number."""
        ends = [end for test in self.tests if (end := self.end(test, first)) is not None]
        sides = [(after, None)]
        if isinstance(after, tirx.Min):
            sides += [(after.a, after.b), (after.b, after.a)]
        for moved, least in sides:
            divisions = [node for node in nodes_of(moved) if isinstance(node, tirx.FloorDiv | tirx.FloorMod)]
            for unit in {constant(division.b) or 0 for division in divisions}:
                for end in ends if unit > 0 and self.is_next_multiple(moved, first, unit) else []:
                    if least is None or constant(self.difference(least, end)) == 0:
                        # Where nothing says where the loop ends, it goes past it.
                        return _Multiples(first, unit, self.next_multiple(end, unit) if least is None else end)
        return None

    @staticmethod
    def next_multiple(value: ir.Expr, unit: int) -> ir.Expr:
        return tirx.floordiv(value + (unit - 1), unit) * unit

    def is_next_multiple(self, moved: ir.Expr, first: ir.Var, unit: int) -> bool:
        analyzer, quotient, rest = sym.Analyzer(), variable("whole"), variable("rest")
        analyzer.bind(rest, ir.Range.from_min_extent(_ZERO, tirx.const(unit, "int32")))
        split = replaced(moved, lambda node: quotient * unit + rest if node.same_as(first) else node)
        return constant(analyzer.simplify(split - (quotient + 1) * unit)) == 0

    def end(self, test: ir.Expr, first: ir.Var) -> ir.Expr | None:
        """Where the loop ends if a test says that a variable is less than that."""
        remaining = _left(test)
        end = None if remaining is None else self.difference(remaining, -first)
        return end if end is not None and self.is_same(end) else None

    def turns(self, test: ir.Expr, forms: dict[tirx.Buffer, _Form]) -> ir.Expr:
        """For how many turns a test holds. Raises Unsupported where that is not known."""
        remaining = _left(test)
        if remaining is not None and not self.is_same(remaining):
            for form in forms.values():
                if isinstance(form, _Multiples) and isinstance(form.first, ir.Var):
                    end = self.end(test, form.first)
                    if end is not None:
                        count = tirx.floordiv(end + (form.unit - 1), form.unit) - tirx.floordiv(form.first, form.unit)
                        return tirx.Select(form.first < end, count, _ZERO)
            step = self.known.simplify(remaining - self.turn.placed(remaining, self.now))
            if self.is_same(step):
                if not self.context.bounds.proves(step >= 1):
                    raise self.refused(
                        f"`while`: no turn is known to bring {format_expression(test)} closer to its end: it may turn "
                        "for ever",
                        "let each turn add a number that is at least 1, such as T.max(step, 1), or write "
                        "`for t in range(n)`",
                    )
                count = remaining if constant(step) == 1 else tirx.floordiv(remaining + (step - 1), step)
                return tirx.Max(count, _ZERO)
        raise control_refused(self.statement)

    def refused(self, message: str, hint: str) -> Unsupported:
        return Unsupported("L005", message, hint=hint, span=span_of(self.statement))


def _left(test: ir.Expr) -> ir.Expr | None:
    """A number that is positive where a test holds, and no more than 0 where it does not."""
    match test:
        case tirx.LT():
            return test.b - test.a
        case tirx.GT():
            return test.a - test.b
        case tirx.LE():
            return test.b - test.a + 1
        case tirx.GE():
            return test.a - test.b + 1
        case tirx.Not(a=tirx.LT() | tirx.LE() | tirx.GT() | tirx.GE() as inner):
            remaining = _left(inner)
            return None if remaining is None else 1 - remaining
        case _:
            return None


_RULES = (StatementRule("turns counted", "A `while` becomes a loop over the number of its turns.", _Whiles.counted),)
