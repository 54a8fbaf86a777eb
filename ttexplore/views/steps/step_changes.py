"""Which steps of two lowerings of a kernel decide or rewrite differently.

Most steps pass on what earlier ones decided, so their program and plan differ as soon as one earlier step does. What
counts is a step's own part: the plan facts that it sets, and the lines that it writes otherwise where the programs
before it were alike.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal, cast

from ttexplore.characters import Printed
from ttexplore.record import JsonObject, Listing, StepRecord, Trace
from ttexplore.views.markup import content_id, escape, visible
from ttexplore.views.steps.plan_lines import inline_value
from ttexplore.views.steps.rows import DiffRow, align, ir_rows
from ttexplore.views.theme import fragment

Change = Literal["same", "carried", "plan", "program", "stopped"]

GLYPHS: dict[Change, str] = {"same": "=", "carried": "↓", "plan": "◐", "program": "●", "stopped": "✖"}
WORDS: dict[Change, str] = {
    "same": "the same",
    "carried": "only passes on earlier differences",
    "plan": "decides differently",
    "program": "rewrites differently",
    "stopped": "fails or is not reached",
}

# The plan repeats what was asked for, and explains its decisions: neither is a decision.
_NO_DECISIONS = ("options", "annotations", "target", "notes", "choices")
_EXPLANATIONS = ("reason", "reasons")
_SHOWN_FACTS = 3
_NOTHING_ELSE: tuple[Change, ...] = ("same", "carried")
# By these an entry of a list is known, the first that it has.
_IDENTITIES = (("name",), ("tensor",), ("kernel",), ("x", "y"), ("source", "target"))


@dataclass(frozen=True, slots=True)
class StepChange:
    """A step of two lowerings: whether it does something else in the second one. `plan` says which plan facts it sets
    otherwise: path, value in the first, value in the second; None where it does not set it. `parts` are the same for
    each part of the step."""

    letter: str
    name: str
    kind: Change
    plan: tuple[tuple[str, object, object], ...] = ()
    parts: tuple[StepChange, ...] = ()

    @property
    def glyph(self) -> str:
        return GLYPHS[self.kind]

    @property
    def words(self) -> str:
        """What the kind means, with the first facts that differ."""
        facts = [f"{path} {_shown(old)} → {_shown(new)}" for path, old, new in self.plan[:_SHOWN_FACTS]]
        more = [f"and {len(self.plan) - _SHOWN_FACTS} more"] if len(self.plan) > _SHOWN_FACTS else []
        return ": ".join([WORDS[self.kind], *([", ".join(facts + more)] if facts else [])])


def _shown(value: object) -> str:
    return "nothing" if value is None else visible(inline_value(value))


class StepChanges(Printed, tuple[StepChange, ...]):
    """What each step of two lowerings does; text in a terminal, a table in a notebook. Both show those parts of a step
    that do something else."""

    @property
    def with_parts(self) -> list[StepChange]:
        """The steps, each followed by all of its parts."""
        return [change for step in self for change in (step, *step.parts)]

    @property
    def _rows(self) -> list[StepChange]:
        """The steps, each followed by those of its parts that do something else."""
        return [
            change for step in self
            for change in (step, *(part for part in step.parts if part.kind not in _NOTHING_ELSE))
        ]  # fmt: skip

    def __str__(self) -> str:
        rows = self._rows
        letters, width = max(3, *(len(change.letter) for change in rows)), max(len(change.name) for change in rows)
        return "\n".join(
            f"{change.glyph} {change.letter:<{letters}} {change.name:<{width}}  {change.words}" for change in rows
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><td title="{WORDS[change.kind]}">{change.glyph}</td><td>{change.letter} {escape(change.name)}</td>'
            f"<td>{escape(change.words)}</td></tr>"
            for change in self._rows
        )
        table = f'<table class="t facts" aria-label="steps of two lowerings"><tbody>{rows}</tbody></table>'
        return fragment(content_id("ttx-steps", table), "steps of two lowerings", table)


def step_changes(here: Sequence[StepRecord], there: Sequence[StepRecord]) -> StepChanges:
    """Each step of two lowerings of one kernel, in order."""
    return StepChanges(_change(first, second) for first, second in zip_longest(here, there))


def _change(here: StepRecord | None, there: StepRecord | None) -> StepChange:
    either = here or there
    assert either is not None, "one of the lowerings has this step"
    both = [step.parts if step else () for step in (here, there)]
    parts = tuple(_change(first, second) for first, second in zip_longest(*both))
    if here is None or there is None or here.error or there.error:
        return StepChange(either.letter, either.name, "stopped" if here != there else "same", parts=parts)
    first, second = plan_delta(here), plan_delta(there)
    facts = tuple(
        (path, first.get(path), second.get(path)) for path in {**first, **second} if first.get(path) != second.get(path)
    )
    kind: Change = "program" if _rewrites_differently(here, there) else "plan" if facts else "carried"
    if kind == "carried" and here.after.text == there.after.text and _decided(here) == _decided(there):
        kind = "same"
    return StepChange(here.letter, here.name, kind, facts, parts)


def changed_files(here: Trace, there: Trace) -> tuple[str, ...]:
    """The emitted files whose text differs, without the plan, which steps compare."""
    first, second = (
        {name: listing.text for name, listing in side.files.items() if listing.language != "json"}
        for side in (here, there)
    )
    return tuple(name for name in {**first, **second} if first.get(name) != second.get(name))


def between(first: StepRecord, second: StepRecord) -> StepRecord:
    """The programs and plans after two steps, of one lowering or of two, as what one step would have changed."""
    two = first.name != second.name
    return dataclasses.replace(
        second, name=f"{first.name} → {second.letter} {second.name}" if two else second.name, letter=first.letter,
        summary="the programs and plans after two steps" if two else "the same step of two lowerings",
        stage="", before=first.after, plan_before=first.plan_after, options={}, rules={}, firings=(), error=None,
        parts=(),
    )  # fmt: skip


def between_files(first: Listing, second: Listing) -> StepRecord:
    """Two emitted files as what a step would have changed."""
    return StepRecord(
        0, second.name, "", "", "the same file of two lowerings", "", first.text != second.text, False, 0.0, first,
        second, {}, {}, {},
    )  # fmt: skip


# The plan


def plan_delta(step: StepRecord) -> dict[str, object]:
    """The facts that a step sets, by path; None for one that it removes."""
    before, after = dict(_facts(step.plan_before)), dict(_facts(step.plan_after))
    return {path: after.get(path) for path in {**before, **after} if before.get(path) != after.get(path)}


def _decided(step: StepRecord) -> dict[str, object]:
    return dict(_facts(step.plan_after))


def _facts(plan: JsonObject) -> Iterator[tuple[str, object]]:
    for key, value in plan.items():
        if key not in _NO_DECISIONS:
            yield from _leaves(key, value)


def _leaves(path: str, value: Any) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        for key, item in cast(JsonObject, value).items():
            if key not in _EXPLANATIONS:
                yield from _leaves(f"{path}.{key}", item)
    elif isinstance(value, list) and any(isinstance(item, dict) for item in cast(list[object], value)):
        for position, item in enumerate(cast(list[JsonObject], value)):
            yield from _leaves(f"{path}[{_entry(item, position)}]", item)
    elif value not in (None, "", []):
        yield path, value


def _entry(item: JsonObject, position: int) -> str:
    for names in _IDENTITIES:
        if all(name in item for name in names):
            return ", ".join(str(item[name]) for name in names)
    return str(position)


# The program


def _rewrites_differently(here: StepRecord, there: StepRecord) -> bool:
    """Whether the programs after the step differ anywhere but where they come from what differed before it."""
    if here.after.text == there.after.text:
        return False
    differed = _differences(here.before, there.before)
    shared = {pair for row in differed for pair in _substitutions(row)}
    touched = (
        _descendants(here, {row.before_number for row in differed if row.before_number}),
        _descendants(there, {row.after_number for row in differed if row.after_number}),
    )
    return not all(
        row.before_number in touched[0]
        or row.after_number in touched[1]
        or (row.kind == "changed" and _substitutions(row) <= shared)
        for row in _differences(here.after, there.after)
    )


def _differences(here: Listing, there: Listing) -> list[DiffRow]:
    first, second = ([line.text.strip() for line in listing.lines] for listing in (here, there))
    return [row for row in align(here.lines, there.lines, first, second) if row.kind not in ("equal", "indented")]


def _substitutions(row: DiffRow) -> set[tuple[str, str]]:
    """What stands in the first lowering's line for what in the second's, piece by piece."""
    before, after = ([text for text, differs in tokens if differs] for tokens in (row.before_tokens, row.after_tokens))
    return set(zip_longest(before, after, fillvalue=""))


def _descendants(step: StepRecord, before: set[int]) -> set[int]:
    """The lines after a step that stand for, or were made from, some lines before it; all numbers count from 1."""
    nodes = {line.node for number, line in enumerate(step.before.lines, 1) if number in before}
    descended = {node for firing in step.firings if not nodes.isdisjoint(firing.before) for node in firing.after}
    numbers = {number for number, line in enumerate(step.after.lines, 1) if line.node in descended}
    for row in ir_rows(step):
        old = row.before_number or (row.kind == "moved" and row.partner)
        if row.after_number and old in before:
            numbers.add(row.after_number)
    return numbers
