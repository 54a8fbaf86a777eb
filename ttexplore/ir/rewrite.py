"""Rewriting: a rule answers what replaces a statement; this module walks, stamps spans and lifts errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import tirx

from ttexplore.errors import TTExploreError
from ttexplore.ir.adapter import set_span, span_of
from ttexplore.ir.build import sequence, statements, with_body, with_function_body

Rule = Callable[[Any], "list[Any] | None"]


def rewrite(function: Any, rule: Rule) -> Any:
    """`function` with every statement replaced by what `rule` returns for it.

    The rule sees a statement before its parts; None leaves it and goes on inside, a list replaces it whole. New
    statements without a span get the span of the one they replace. A TTExploreError gets the statement's line.
    """
    return with_function_body(function, rewrite_body(statements(function.body), rule))


def rewrite_body(body: list[Any], rule: Rule) -> list[Any]:
    """Like :func:`rewrite`, for a list of statements."""
    return [made for statement in body for made in _rewrite(statement, rule)]


def _rewrite(statement: Any, rule: Rule) -> list[Any]:
    try:
        made = rule(statement)
    except TTExploreError as error:
        raise error.at(span_of(statement)) from error.__cause__
    if made is not None:
        for part in made:
            stamp(part, statement.span)
        return made
    if isinstance(statement, tirx.For):
        inner = rewrite_body(statements(statement.body), rule)
        return [with_body(statement, inner)]
    if isinstance(statement, tirx.IfThenElse):
        then = sequence(rewrite_body(statements(statement.then_case), rule))
        otherwise = statement.else_case
        if otherwise is not None:
            otherwise = sequence(rewrite_body(statements(otherwise), rule))
        return [tirx.IfThenElse(statement.condition, then, otherwise, statement.span)]
    return [statement]


def stamp(statement: Any, span: Any) -> None:
    """Give `span` to a new statement and to the statements in it that have none."""
    if span is None:
        return
    for part in statements(statement):
        if part.span is None:
            set_span(part, span)
        if isinstance(part, tirx.For):
            stamp(part.body, span)
        elif isinstance(part, tirx.IfThenElse):
            stamp(part.then_case, span)
            if part.else_case is not None:
                stamp(part.else_case, span)


def walk(body: Any) -> list[Any]:
    """All statements below `body` in pre-order, sequences left out."""
    found: list[Any] = []
    _collect(body, found)
    return found


def _collect(body: Any, found: list[Any]) -> None:
    for statement in statements(body):
        found.append(statement)
        kind = type(statement)
        if kind is tirx.For or kind is tirx.While:
            _collect(statement.body, found)
        elif kind is tirx.IfThenElse:
            _collect(statement.then_case, found)
            if statement.else_case is not None:
                _collect(statement.else_case, found)
