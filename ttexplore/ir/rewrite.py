"""Rewrite statements by rules: this module walks a function, sets spans, and records which rule made what."""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeGuard, TypeVar, overload

from tvm import ir, tirx

from ttexplore.control import look_around
from ttexplore.errors import TTExploreError
from ttexplore.ir.adapter import identity, set_span, span_of, spans_of, to_tvm_spans
from ttexplore.ir.arithmetic.bounds import Bounds
from ttexplore.ir.build import sequence, statements, with_body, with_function_body
from ttexplore.ir.dataflow import is_parallel
from ttexplore.record import Span

ContextT = TypeVar("ContextT", bound="Context")
_Rewritten = Callable[[list[tirx.Stmt]], list[tirx.Stmt]]


@dataclass(frozen=True)
class Rule:
    """A change that a pass makes to statements: its name within the pass, and a sentence for the user."""

    name: str
    sentence: str


@dataclass(frozen=True)
class Placement(Rule):
    """A rule that puts statements elsewhere as they are, perhaps in several places."""


@dataclass(frozen=True)
class StatementRule(Rule, Generic[ContextT]):
    """A rule that :func:`rewrite` asks about each statement: `replacement` gives the statements that take its place, or
    None where the rule has nothing to say. A statement that is in the answer as it was is kept."""

    replacement: Callable[[ContextT, tirx.Stmt], Sequence[tirx.Stmt] | None]


class Firing(NamedTuple):
    """What a rule made: the `statements` took the place of `source`, or were added because of it; None is the whole
    kernel. Without statements, `source` was left out."""

    rule: Rule
    source: tirx.Stmt | None
    statements: tuple[tirx.Stmt, ...]


class Firings:
    """The firings of a pass's rules, in order."""

    def __init__(self) -> None:
        self.all: list[Firing] = []

    def made(self, rule: Rule, source: tirx.Stmt | None, replacement: Iterable[tirx.Stmt]) -> list[tirx.Stmt]:
        """The statements that `rule` made of `source`. Those without a span, and those in them, get its span."""
        new = tuple(replacement)
        span = None if source is None else source.span
        for statement in new:
            _stamp(statement, span)
        self.all.append(Firing(rule, source, new))
        return [*new]


class Context:
    """The position of a rewrite. A pass derives a class with what its rules need in addition."""

    def __init__(self, function: tirx.PrimFunc, firings: Firings) -> None:
        self.function, self.firings = function, firings
        # The loops and branches around the statement, the innermost last.
        self.around: list[tirx.For | tirx.IfThenElse] = []
        # Loops and names that the bounds have not heard of: most rules never ask for these.
        self._passed: list[tirx.For | tirx.IfThenElse | tirx.Bind] = []
        self._bounds: Bounds | None = None

    @property
    def bounds(self) -> Bounds:
        """What is known of the variables around the statement: of the loops that it is in, of the names before it."""
        if self._bounds is None:
            self._bounds = Bounds(self.function)
        for statement in self._passed:
            self._bounds.enter(statement)
        self._passed.clear()
        return self._bounds

    @property
    def is_in_nest(self) -> bool:
        """Whether the statement is in a T.Parallel."""
        return bool(self.around) and is_parallel(self.around[-1])

    def is_nest(self, statement: tirx.Stmt) -> TypeGuard[tirx.For]:
        """Whether a statement is a T.Parallel nest, from its first loop on."""
        return is_parallel(statement) and not self.is_in_nest

    def made(self, rule: Rule, source: tirx.Stmt | None, replacement: Iterable[tirx.Stmt]) -> list[tirx.Stmt]:
        """See :meth:`Firings.made`."""
        return self.firings.made(rule, source, replacement)

    def enter(self, statement: tirx.For | tirx.IfThenElse | tirx.Bind) -> None:
        """Enter a loop or branch, or pass a binding."""
        if not isinstance(statement, tirx.Bind):
            self.around.append(statement)
        self._passed.append(statement)

    def leave(self) -> None:
        """Leave the innermost loop or branch."""
        ended = self.around.pop()
        if not isinstance(ended, tirx.For):
            return
        # What has been checked in it holds no longer.
        for index, passed in enumerate(self._passed):
            if passed.same_as(ended):
                del self._passed[index:]
                return
        if self._bounds is not None:
            self.bounds.leave(ended)

    @overload
    def inside(self, statement: tirx.For, rewritten: _Rewritten) -> tirx.For: ...
    @overload
    def inside(self, statement: tirx.IfThenElse, rewritten: _Rewritten) -> tirx.IfThenElse: ...
    def inside(self, statement: tirx.For | tirx.IfThenElse, rewritten: _Rewritten) -> tirx.For | tirx.IfThenElse:
        """Rewrite the bodies of a loop or branch; return the same node if nothing changes."""
        self.enter(statement)
        if isinstance(statement, tirx.For):
            before = statements(statement.body)
            body = rewritten(before)
            rebuilt = statement if _same(before, body) else with_body(statement, body)
        else:
            before = statements(statement.then_case)
            other_before = [] if statement.else_case is None else statements(statement.else_case)
            then, otherwise = rewritten(before), rewritten(other_before)
            rebuilt = statement
            if not (_same(before, then) and _same(other_before, otherwise)):
                else_case = None if statement.else_case is None else sequence(otherwise)
                rebuilt = tirx.IfThenElse(statement.condition, sequence(then), else_case, statement.span)
        self.leave()
        return rebuilt


def _same(before: list[tirx.Stmt], after: list[tirx.Stmt]) -> bool:
    return len(before) == len(after) and all(old.same_as(new) for old, new in zip(before, after, strict=True))


def rewrite(rules: Sequence[StatementRule[ContextT]], context: ContextT) -> tirx.PrimFunc:
    """The context's function with every statement replaced by what the first of the `rules` that answers says; the
    function itself where none answers.

    Rules see a statement before those in it. A TTExploreError gets the statement's line.
    """
    before = statements(context.function.body)
    body = rewrite_body(before, rules, context)
    return context.function if _same(before, body) else with_function_body(context.function, body)


def rewrite_body(body: list[tirx.Stmt], rules: Sequence[StatementRule[ContextT]], context: ContextT) -> list[tirx.Stmt]:
    """Rewrite a list of statements as :func:`rewrite` does."""
    rewritten: list[tirx.Stmt] = []
    for statement in body:
        rewritten += _rewritten(statement, rules, context)
        if type(statement) is tirx.Bind:
            context.enter(statement)
    return rewritten


def _rewritten(statement: tirx.Stmt, rules: Sequence[StatementRule[ContextT]], context: ContextT) -> list[tirx.Stmt]:
    for rule in rules:
        try:
            replacement = rule.replacement(context, statement)
        except TTExploreError as error:
            raise error.at(span_of(statement)) from error.__cause__
        if replacement is not None:
            new = context.made(rule, statement, replacement)
            inherit_places(statement, new)
            return new
    if type(statement) is tirx.For or type(statement) is tirx.IfThenElse:
        return [context.inside(statement, lambda body: rewrite_body(body, rules, context))]
    return [statement]


def _stamp(statement: tirx.Stmt, span: ir.Span | None) -> None:
    if span is None:
        return
    for nested in statements(statement):
        if nested.span is None:
            set_span(nested, span)
        if type(nested) is tirx.For:
            _stamp(nested.body, span)
        elif type(nested) is tirx.IfThenElse:
            _stamp(nested.then_case, span)
            if nested.else_case is not None:
                _stamp(nested.else_case, span)


def inherit_places(source: tirx.Stmt, replacement: Sequence[tirx.Stmt]) -> None:
    """Give the statements that replace `source` the places in the kernel that would be lost with it.

    What a statement in `source` said is now said by what came of it, if that has no place of its own any more, by what
    came of the statements in it, around it, and so on: the outermost new statements of these.
    """
    if not isinstance(source, tirx.For | tirx.IfThenElse | tirx.While) and any(
        statement.span is not None and statement.span.same_as(source.span) for statement in replacement
    ):
        return
    remaining = _places(replacement)
    if remaining.issuperset(_places([source])):
        return
    heirs = _Heirs(replacement, {identity(nested) for nested in walk(source)})
    lost: dict[int, tuple[tirx.Stmt, dict[Span, None]]] = {}

    def look(statement: tirx.Stmt, around: tuple[tirx.Stmt, ...]) -> None:
        within = (*around, statement)
        # A declaration says nothing of what happens around it.
        alone = around and isinstance(statement, tirx.AllocBuffer)
        if not alone and (spans := [span for span in spans_of(statement) if span not in remaining]):
            chosen = (candidates for outer in reversed(within) if (candidates := heirs.of(outer)))
            for heir in next(chosen, heirs.first):
                lost.setdefault(identity(heir), (heir, {}))[1].update(dict.fromkeys(spans))
        for body in bodies(statement):
            for nested in statements(body):
                look(nested, within)

    look(source, ())
    for heir, spans in lost.values():
        set_span(heir, to_tvm_spans((*spans_of(heir), *spans)))


def _places(body: Sequence[tirx.Stmt]) -> set[Span]:
    return {span for statement in body for nested in walk(statement) for span in spans_of(nested)}


class _Heirs:
    """Which new statements came of a statement: the outermost ones that have its place, or that of one in it."""

    def __init__(self, replacement: Sequence[tirx.Stmt], old: set[int]) -> None:
        # The new statements that have a place, in order, and the one around each.
        self.having: dict[Span, list[tirx.Stmt]] = {}
        self.around: dict[int, tirx.Stmt | None] = {}
        self.known: dict[int, list[tirx.Stmt]] = {}
        self.first = [
            statement for each in replacement for statement in statements(each) if identity(statement) not in old
        ]
        for each in replacement:
            self._enter(each, None, old)

    def _enter(self, body: tirx.Stmt, around: tirx.Stmt | None, old: set[int]) -> None:
        for statement in statements(body):
            is_new = identity(statement) not in old
            if is_new:
                self.around[identity(statement)] = around
                for span in dict.fromkeys(spans_of(statement)):
                    self.having.setdefault(span, []).append(statement)
            for inner in bodies(statement):
                self._enter(inner, statement if is_new else around, old)

    def of(self, statement: tirx.Stmt) -> list[tirx.Stmt]:
        if identity(statement) not in self.known:
            heirs = {identity(heir): heir for span in _places([statement]) for heir in self.having.get(span, ())}
            self.known[identity(statement)] = [heir for heir in heirs.values() if not self._is_within(heir, heirs)]
        return self.known[identity(statement)]

    def _is_within(self, statement: tirx.Stmt, heirs: Container[int]) -> bool:
        outer = self.around[identity(statement)]
        while outer is not None and identity(outer) not in heirs:
            outer = self.around[identity(outer)]
        return outer is not None


def bodies(statement: tirx.Stmt) -> list[tirx.Stmt]:
    """The bodies of a loop or branch, none of another statement."""
    # By exact types, because TVM's own isinstance is slow where every walk comes by.
    if type(statement) is tirx.For or type(statement) is tirx.While:
        return [statement.body]
    if type(statement) is tirx.IfThenElse:
        return [branch for branch in (statement.then_case, statement.else_case) if branch is not None]
    return []


def walk(body: tirx.Stmt) -> list[tirx.Stmt]:
    """Return all statements below `body` in pre-order, without sequences."""
    look_around()
    return [*_walked(body)]


@functools.lru_cache(1 << 6)
def _walked(body: tirx.Stmt) -> tuple[tirx.Stmt, ...]:
    collected: list[tirx.Stmt] = []
    _collect(body, collected)
    return tuple(collected)


def _collect(body: tirx.Stmt, collected: list[tirx.Stmt]) -> None:
    for statement in statements(body):
        collected.append(statement)
        for inner in bodies(statement):
            _collect(inner, collected)
