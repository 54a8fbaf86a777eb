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
        turn = _IterationValues(_variables(body))
        tests = [turn.value(one) for one in conjuncts(statement.condition)]
        turn.body(body)
        progress = _Progress(self, statement, turn, [one for one in tests if one is not None])
        if len(progress.tests) != len(tests):
            raise control_refused(statement)
        asked = [one for one in turn.begins if one in turn.asked]
        forms = {one: progress.form(one) for one in asked}
        firsts = {one: variable(f"{one.name}_first") for one in asked}

        def at_first(e: ir.Expr) -> ir.Expr:
            return turn.placed(e, firsts)

        count = functools.reduce(tirx.Min, [at_first(progress.turns(one, forms)) for one in progress.tests])
        turns, number = variable("turns"), variable("turn")
        starts = [_store(one, at_first(form.at(number)), statement) for one, form in forms.items()]
        ends = [_store(one, at_first(form.after(turns)), statement) for one, form in forms.items()]
        return [
            *(bind(first, tirx.BufferLoad(one, [_ZERO])) for one, first in firsts.items()),
            bind(turns, count),
            loop(number, turns, [*starts, *body], span=statement.span),
            *ends,
        ]


def _variables(body: Sequence[tirx.Stmt]) -> list[tirx.Buffer]:
    """The integer variables that the statements store to."""
    stored = [one.buffer for part in body for one in walk(part) if isinstance(one, tirx.BufferStore)]
    return [
        one for one in dict.fromkeys(stored)
        if is_on_chip(one) and dtype_of(one) == "int32" and shape_of(one) == (1,)
    ]  # fmt: skip


def _store(buffer: tirx.Buffer, value: ir.Expr, like: tirx.Stmt) -> tirx.Stmt:
    return tirx.BufferStore(buffer, value, [_ZERO], like.span)


class _IterationValues:
    """What a turn makes of variables. `begins` are names for what they hold when it begins; `now` is what they hold, by
    these names, None where that is not known. `asked` are those that are read before they are stored to, `changed` are
    all buffers that change in a turn."""

    def __init__(self, variables: Iterable[tirx.Buffer]) -> None:
        self.begins = {one: variable(str(one.name)) for one in variables}
        self.now: dict[tirx.Buffer, ir.Expr | None] = {**self.begins}
        self.names: dict[ir.Var, ir.Expr | None] = {}
        self.inner: set[ir.Var] = set()
        self.asked: set[tirx.Buffer] = set()
        self.changed: set[tirx.Buffer] = set()

    def value(self, e: ir.Expr) -> ir.Expr | None:
        """An expression by the names for what variables hold when the turn begins; None where that is not known."""
        is_known = True

        def known(part: ir.Expr) -> ir.Expr:
            nonlocal is_known
            if isinstance(part, ir.Var) and part in self.names:
                found = self.names[part]
            elif isinstance(part, ir.TensorLoad) and part.source in self.now:
                found = self.now[part.source]
            else:
                is_known &= part not in self.inner
                return part
            is_known &= found is not None
            return part if found is None else found

        made = replaced(e, known)
        nodes = {*nodes_of(made)}
        self.asked |= {one for one, name in self.begins.items() if name in nodes}
        return made if is_known else None

    def placed(self, e: ir.Expr, values: dict[tirx.Buffer, ir.Var] | dict[tirx.Buffer, ir.Expr]) -> ir.Expr:
        """An expression with these values in place of those at the start of the turn."""
        places: dict[ir.Expr, ir.Expr] = {name: values[one] for one, name in self.begins.items() if one in values}
        return replaced(e, lambda part: places.get(part, part))

    def body(self, body: Sequence[tirx.Stmt]) -> None:
        for one in body:
            values = [self.value(e) for e in expressions_of(one)]
            match one:
                case tirx.Bind():
                    self.names[one.var] = values[0]
                case tirx.BufferStore():
                    self.changed.add(one.buffer)
                    if one.buffer in self.now:
                        self.now[one.buffer] = values[0]
                case tirx.Evaluate():
                    used = {part.source for part in regions(one)}
                    self.changed |= used
                    self.now |= {key: None for key in self.now if key in used}
                case tirx.IfThenElse():
                    before = dict(self.now)
                    self.body(statements(one.then_case))
                    then, self.now = self.now, before
                    self.body([] if one.else_case is None else statements(one.else_case))
                    self.now = {key: _either(values[0], then[key], value) for key, value in self.now.items()}
                case tirx.For():
                    # What a loop makes of variables is not followed.
                    lost = {*_variables([one])}
                    self.inner.add(one.loop_var)
                    self.now |= {key: None for key in self.now if key in lost}
                    self.body(statements(one.body))
                    self.now |= {key: None for key in self.now if key in lost}
                case tirx.Break() | tirx.Continue():
                    raise control_refused(one)
                case _:
                    pass


def _either(condition: ir.Expr | None, then: ir.Expr | None, other: ir.Expr | None) -> ir.Expr | None:
    if then is None or other is None or then.same_as(other):
        return then if other is not None else None
    return None if condition is None else tirx.Select(condition, then, other)


@dataclass(frozen=True)
class _IteratedSum:
    """A variable to which each turn adds the same; `first` is what it holds before the loop."""

    first: ir.Expr
    step: ir.Expr

    def at(self, turn: ir.Expr) -> ir.Expr:
        return self.first + turn * self.step

    def after(self, turns: ir.Expr) -> ir.Expr:
        return self.at(turns)


@dataclass(frozen=True)
class _Multiples:
    """A variable that moves on to the next multiple of `unit`, or to the `end` of the loop where that comes first."""

    first: ir.Expr
    unit: int
    end: ir.Expr

    def at(self, turn: ir.Expr) -> ir.Expr:
        return tirx.Max(self.first, (tirx.floordiv(self.first, self.unit) + turn) * self.unit)

    def after(self, turns: ir.Expr) -> ir.Expr:
        return tirx.Select(turns > 0, tirx.Min(self.at(turns), self.end), self.first)


_Form = _IteratedSum | _Multiples


class _Progress:
    """How far a turn of a loop comes, by its `tests`."""

    def __init__(self, context: Context, statement: tirx.While, turn: _IterationValues, tests: list[ir.Expr]) -> None:
        self.context, self.statement, self.turn, self.tests = context, statement, turn, tests
        self.now = {one: value for one, value in turn.now.items() if value is not None}
        self.known = sym.Analyzer()

    def is_same(self, e: ir.Expr) -> bool:
        """Whether an expression has one value in all turns."""
        begins = {*self.turn.begins.values()}
        loads = (one.source for one in loads_of(e))
        return not any(one in begins for one in nodes_of(e)) and not any(one in self.turn.changed for one in loads)

    def difference(self, one: ir.Expr, other: ir.Expr) -> ir.Expr:
        return self.known.simplify(one - other)

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
            divisions = [one for one in nodes_of(moved) if isinstance(one, tirx.FloorDiv | tirx.FloorMod)]
            for unit in {constant(one.b) or 0 for one in divisions}:
                for end in ends if unit > 0 and self.is_next_multiple(moved, first, unit) else []:
                    if least is None or constant(self.difference(least, end)) == 0:
                        # Where nothing says where the loop ends, it goes past it.
                        return _Multiples(first, unit, self.next_multiple(end, unit) if least is None else end)
        return None

    @staticmethod
    def next_multiple(value: ir.Expr, unit: int) -> ir.Expr:
        return tirx.floordiv(value + (unit - 1), unit) * unit

    def is_next_multiple(self, moved: ir.Expr, first: ir.Var, unit: int) -> bool:
        known, whole, rest = sym.Analyzer(), variable("whole"), variable("rest")
        known.bind(rest, ir.Range.from_min_extent(_ZERO, tirx.const(unit, "int32")))
        split = replaced(moved, lambda part: whole * unit + rest if part.same_as(first) else part)
        return constant(known.simplify(split - (whole + 1) * unit)) == 0

    def end(self, test: ir.Expr, first: ir.Var) -> ir.Expr | None:
        """Where the loop ends if a test says that a variable is less than that."""
        left = _left(test)
        end = None if left is None else self.difference(left, -first)
        return end if end is not None and self.is_same(end) else None

    def turns(self, test: ir.Expr, forms: dict[tirx.Buffer, _Form]) -> ir.Expr:
        """For how many turns a test holds. Raises Unsupported where that is not known."""
        left = _left(test)
        if left is not None and not self.is_same(left):
            for form in forms.values():
                if isinstance(form, _Multiples) and isinstance(form.first, ir.Var):
                    end = self.end(test, form.first)
                    if end is not None:
                        count = tirx.floordiv(end + (form.unit - 1), form.unit) - tirx.floordiv(form.first, form.unit)
                        return tirx.Select(form.first < end, count, _ZERO)
            step = self.known.simplify(left - self.turn.placed(left, self.now))
            if self.is_same(step):
                if not self.context.bounds.proves(step >= 1):
                    raise self.refused(
                        f"`while`: no turn is known to bring {format_expression(test)} closer to its end: it may turn "
                        "for ever",
                        "let each turn add a number that is at least 1, such as T.max(step, 1), or write "
                        "`for t in range(n)`",
                    )
                count = left if constant(step) == 1 else tirx.floordiv(left + (step - 1), step)
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
            left = _left(inner)
            return None if left is None else 1 - left
        case _:
            return None


_RULES = (StatementRule("turns counted", "A `while` becomes a loop over the number of its turns.", _Whiles.counted),)
