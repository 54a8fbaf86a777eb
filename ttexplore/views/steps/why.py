"""Which rule made a line of the program after a step, and of which lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ttexplore.characters import Printed
from ttexplore.record import FiringRecord, StepRecord
from ttexplore.views.markup import content_id, escape, visible
from ttexplore.views.theme import fragment


@dataclass(frozen=True)
class MadeBy:
    """A rule that made a line: its name, what it does, and the lines that it replaced or was asked about, with their
    numbers, from 1, in the program before the step."""

    rule: str
    sentence: str
    before: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Why(Printed):
    """What made a line of the program after a step: rules in the order in which they did, none where it was kept."""

    letter: str
    line: int
    text: str
    made_by: tuple[MadeBy, ...]

    def __str__(self) -> str:
        rows = [f"{self.letter} line {self.line}: {visible(self.text.strip())}", ""]
        if not self.made_by:
            rows.append("kept: no rule of this step changed it")
        for rule in self.made_by:
            rows.append(f"{rule.rule}: {rule.sentence}")
            rows += [f"{number:>6}  {visible(text.strip())}" for number, text in rule.before]
        return "\n".join(rows)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        markup = "".join(
            f"<p><b>{escape(rule.rule)}</b>: {escape(rule.sentence)}</p>"
            + "".join(f"<div>{number} <code>{escape(text.strip())}</code></div>" for number, text in rule.before)
            for rule in self.made_by
        )
        head = f'<div class="head"><h3>{escape(self.letter)}</h3> <code>{escape(self.text.strip())}</code></div>'
        content = head + (markup or "<p>kept: no rule of this step changed it</p>")
        return fragment(content_id("ttx-why", content), f"what made line {self.line} of {self.letter}", content)


def why(step: StepRecord, line: int) -> Why:
    """What made a line, counted from 1, of the program after a step."""
    row = step.after.lines[line - 1]
    lines = {each.node: (number, each.text) for number, each in enumerate(step.before.lines, 1)}
    rules = tuple(
        MadeBy(firing.rule, step.rules[firing.rule], tuple(lines[node] for node in firing.before))
        for firing in firings_of(step, row.node)
    )
    return Why(step.letter, line, row.text, rules)


def firings_of(step: StepRecord, node: int | None) -> Iterator[FiringRecord]:
    """The firings that made a statement after a step."""
    return (firing for firing in step.firings if node in firing.after)
