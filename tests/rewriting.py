"""Changing the statements of a function that has been lowered: what tests plant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ttexplore.ir.rewrite import Context, Firings, Rule, StatementRule
from ttexplore.ir.rewrite import rewrite as rewritten

PLANTED = Rule("planted", "A test plants this.")


def rewrite(function: Any, change: Callable[[Any], list[Any] | None]) -> Any:
    """The function with each statement replaced by what `change` gives for it, where that is not None."""
    return rewritten(
        [StatementRule(PLANTED.name, PLANTED.sentence, lambda _, statement: change(statement))],
        Context(function, Firings()),
    )


def placed(statement: Any, source: Any) -> Any:
    """A new statement with the span of another one."""
    return Firings().made(PLANTED, source, [statement])[0]
