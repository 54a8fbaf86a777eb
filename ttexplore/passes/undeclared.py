"""Hides from a step what it does not declare to read, so that lowerings that differ only there share what it makes.

Hidden are the options of other steps, and four facts that most steps hand on: the math fidelity, the notes and the
choices so far, and the record of the options. The math fidelity is an option too, which A2 puts into the plan unread.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any, NoReturn

from ttexplore.options import Options
from ttexplore.plan import Plan

FIDELITY = "math_fidelity"
# How the plan begins with the facts that a step does not read; it can add notes and choices.
_ADDED_TO = ("notes", "choices")


class Undeclared:
    """Stands for a fact that a step hands on. Reading it raises AssertionError; comparing it with itself does not."""

    def __init__(self, name: str) -> None:
        self.name = name

    def _refuse(self, *_: object) -> NoReturn:
        raise AssertionError(f"{self.name} is read, which is not declared")

    def __eq__(self, other: object) -> bool:
        return self is other or self._refuse()

    def __getattr__(self, name: str) -> NoReturn:
        self._refuse()

    __bool__ = __format__ = __getitem__ = __hash__ = __iter__ = __len__ = __repr__ = _refuse


_HIDDEN = {name: Undeclared(name) for name in (FIDELITY, "options", *_ADDED_TO)}


class DeclaredOptions:
    """The options that a step declares to read, and no others."""

    def __init__(self, options: Mapping[str, object], reads: Collection[str]) -> None:
        vars(self).update((name, value) for name, value in options.items() if name in reads)

    def __getattr__(self, name: str) -> NoReturn:
        raise AssertionError(f"the option {name} is read, which is not declared")


def declared(options: Mapping[str, object], plan: Plan, reads: Collection[str]) -> dict[str, object]:
    """What a step reads, by name: of the options, and of the facts of a plan."""
    facts = {} if plan.compute is None else {FIDELITY: plan.compute.math_fidelity}
    facts |= {"notes": plan.notes, "choices": plan.choices, "options": plan.options}
    return {name: facts[name] if name in facts else options[name] for name in reads}


def shown_options(options: Mapping[str, object], reads: Collection[str]) -> dict[str, object]:
    """A step's own options, without the math fidelity unless it reads that."""
    return {name: value if name in reads or name != FIDELITY else _HIDDEN[name] for name, value in options.items()}


def hidden(plan: Plan, reads: Collection[str] = ()) -> Plan:
    """The plan without the facts that are not in `reads`: plans that differ only in these are equal."""
    facts = {name: (fact,) if name in _ADDED_TO else fact for name, fact in _HIDDEN.items() if name not in reads}
    return _replaced(plan, facts)


def with_facts(plan: Plan, shown: Plan, before: Plan, options: Options) -> Plan:
    """The plan with the facts of `shown`, which a step made of `before` without those that it does not read."""
    facts: dict[str, object] = {
        name: tuple(
            fact
            for entry in getattr(shown, name)
            for fact in (getattr(before, name) if entry is _HIDDEN[name] else (entry,))
        )
        for name in _ADDED_TO
    }
    facts["options"] = before.options if shown.options is _HIDDEN["options"] else shown.options
    if shown.compute is not None:
        fidelity = shown.compute.math_fidelity
        current = options.math_fidelity if before.compute is None else before.compute.math_fidelity
        facts[FIDELITY] = current if fidelity is _HIDDEN[FIDELITY] else fidelity
    return _replaced(plan, facts)


def _replaced(plan: Plan, facts: dict[str, Any]) -> Plan:
    fidelity = facts.pop(FIDELITY, None)
    if fidelity is not None and plan.compute is not None and plan.compute.math_fidelity is not fidelity:
        facts["compute"] = dataclasses.replace(plan.compute, math_fidelity=fidelity)
    return plan.replace(**facts)
