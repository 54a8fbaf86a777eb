"""Facts that most passes hand on without looking at them: what such a pass gives is the same but for these facts.

They are the math fidelity, the notes and the choices so far, and the record of the options. While a pass runs, each of
them is replaced by a value that knows whether the pass looked at it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ttexplore.notes import Note
from ttexplore.plan import Plan

# The places: an option, and fields of the plan, of which NOTES and CHOICES are how many there are.
FIDELITY, NOTES, CHOICES = "math_fidelity", "plan.notes", "plan.choices"
_PLANNED_FIDELITY, _RECORDED_OPTIONS = "plan.compute.math_fidelity", "plan.options"


class Unseen:
    """Stands for a fact, the one at `place`. Comparing it with anything but itself, hashing and printing call `look`;
    it can be put elsewhere without that. Nothing else can be done with it."""

    __slots__ = ("look", "place", "value")

    def __init__(self, place: str, value: object, look: Callable[[str, object], None]) -> None:
        self.place, self.value, self.look = place, value, look

    def seen(self) -> object:
        self.look(self.place, self.value)
        return self.value

    @property
    def kind(self) -> str:
        """The kind of a note."""
        seen = self.seen()
        assert isinstance(seen, Note)
        return seen.kind

    def __eq__(self, other: object) -> bool:
        if self is other:  # equal, whatever it stands for; plans hold the same one where a pass has handed it on
            return True
        return self.seen() == (other.seen() if isinstance(other, Unseen) else other)

    def __hash__(self) -> int:
        return hash(self.seen())

    def __bool__(self) -> bool:
        return bool(self.seen())

    def __str__(self) -> str:
        return str(self.seen())

    def __repr__(self) -> str:
        return repr(self.seen())

    def __format__(self, form: str) -> str:
        return format(self.seen(), form)


def seen(fact: Any) -> Any:
    """A fact that a pass looks at, which may be unseen."""
    return fact.seen() if isinstance(fact, Unseen) else fact


@dataclass(frozen=True, slots=True)
class Facts:
    """Those facts of a plan. Each is known, or stands for the one at the same place of another plan (:class:`Unseen`);
    `fidelity` is None before A2."""

    fidelity: object
    notes: tuple[object, ...]
    options: object
    choices: tuple[object, ...]

    @classmethod
    def of(cls, plan: Plan) -> Facts:
        return cls(
            None if plan.compute is None else plan.compute.math_fidelity, plan.notes, plan.options, plan.choices
        )  # fmt: skip

    @property
    def by_place(self) -> dict[str, object]:
        """The facts by the names of their places."""
        lists = {NOTES: self.notes, CHOICES: self.choices}
        entries = {f"{name}[{number}]": one for name, facts in lists.items() for number, one in enumerate(facts)}
        counts = {name: len(facts) for name, facts in lists.items()}
        return {_PLANNED_FIDELITY: self.fidelity, _RECORDED_OPTIONS: self.options, **counts, **entries}

    def unseen(self, look: Callable[[str, object], None]) -> Facts:
        """These facts for a pass or a check, of which `look` is told what it looks at."""

        def each(name: str, facts: tuple[object, ...]) -> tuple[Unseen, ...]:
            return tuple(Unseen(f"{name}[{number}]", one, look) for number, one in enumerate(facts))

        return Facts(
            Unseen(_PLANNED_FIDELITY, self.fidelity, look), each(NOTES, self.notes),
            Unseen(_RECORDED_OPTIONS, self.options, look), each(CHOICES, self.choices),
        )  # fmt: skip

    def known(self, values: Mapping[str, object]) -> Facts:
        """These facts where those that they stand for have these values, by place."""

        def value(one: object) -> object:
            return values[one.place] if isinstance(one, Unseen) else one

        return Facts(
            value(self.fidelity), tuple(map(value, self.notes)), value(self.options), tuple(map(value, self.choices))
        )  # fmt: skip

    def put_into(self, plan: Plan) -> Plan:
        """The plan with these facts in place of its own."""
        changes: dict[str, Any] = {"notes": self.notes, "options": self.options, "choices": self.choices}
        if plan.compute is not None and plan.compute.math_fidelity is not self.fidelity:
            changes["compute"] = dataclasses.replace(plan.compute, math_fidelity=self.fidelity)  # pyright: ignore[reportArgumentType]
        return plan.replace(**changes)


def _refused(place: str, value: object) -> None:
    raise AssertionError(f"a check looks at {place} ({value}); programs that differ only there share its verdict")


_HIDDEN = Facts(Unseen(FIDELITY, None, _refused), (), Unseen(_RECORDED_OPTIONS, None, _refused), ())


def hidden(plan: Plan) -> Plan:
    """The plan without these facts: plans that differ only in them are equal. To look at one is an error."""
    return _HIDDEN.put_into(plan)
