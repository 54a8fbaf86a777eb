"""Where a kernel line went, and where a text first appears: what the explorer's links and search say, as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ttexplore.characters import Printed
from ttexplore.record import Listing, StepRecord, Trace
from ttexplore.views.markup import content_id, escape, plural, visible
from ttexplore.views.steps.facts import with_parts
from ttexplore.views.steps.origins import ORIGIN_KINDS
from ttexplore.views.steps.plan_lines import flat_plan
from ttexplore.views.theme import fragment


@dataclass(frozen=True)
class LineHistory(Printed):
    """The lines that come from one kernel line: how many after each step, and after each part of one that changed the
    program (letter, name, count), and which lines of each file, counted from 1, with the best kind of link."""

    line: int
    text: str
    steps: tuple[tuple[str, str, int], ...]
    files: tuple[tuple[str, tuple[int, ...], str], ...]

    def __str__(self) -> str:
        rows = [f"L{self.line}  {visible(self.text.strip())}", ""]
        rows += [f"{letter:<5} {visible(name):<32} {plural(count, 'line')}" for letter, name, count in self.steps]
        rows.append("")
        rows += [f"{visible(name):<12} {ranges(lines) or '–'}  {kind}".rstrip() for name, lines, kind in self.files]
        return "\n".join(rows)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        most = max((count for _, _, count in self.steps), default=0)
        rows = "".join(
            _row(letter, escape(name), str(count), "▇" * round(12 * count / most))
            for letter, name, count in self.steps
            if most
        )
        files = "".join(
            _row(escape(name), f'<span class="{kind[:1]}">{ranges(lines) or "–"}</span>', kind)
            for name, lines, kind in self.files
        )
        content = (
            f'<div class="head"><h3>L{self.line}</h3> <code>{escape(self.text.strip())}</code></div>'
            f'<table class="t facts">{rows}</table><h4>emitted</h4><table class="t facts">{files}</table>'
        )
        return fragment(content_id("ttx-history", content), f"history of kernel line {self.line}", content)


def _row(*cells: str) -> str:
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def line_history(trace: Trace, line: int) -> LineHistory:
    """The history of a line of the kernel's file. Raises ValueError for a line that is not the kernel's."""
    of_line = [row for row in trace.source.lines if row.origins and row.origins[0].span.line == line]
    if not of_line:
        numbers = [row.origins[0].span.line for row in trace.source.lines if row.origins]
        raise ValueError(f"line {line} is not in the kernel, which spans lines {min(numbers)} to {max(numbers)}")
    file = of_line[0].origins[0].span.file
    steps = tuple(
        (step.letter, step.name, len(_linked(step.after, file, line)))
        for step, is_part in with_parts(trace.steps)
        if step.changed_ir or not is_part
    )
    files: list[tuple[str, tuple[int, ...], str]] = []
    for name, listing in trace.files.items():
        if name in ("reader.cpp", "compute.cpp", "writer.cpp"):
            linked = _linked(listing, file, line)
            best = min((ORIGIN_KINDS.index(kind) for _, kind in linked), default=None)
            files.append((name, tuple(number for number, _ in linked), "" if best is None else ORIGIN_KINDS[best]))
    return LineHistory(line, of_line[0].text, steps, tuple(files))


def _linked(listing: Listing, file: str, line: int) -> list[tuple[int, str]]:
    """The lines of a listing that come from a kernel line, counted from 1, with the kind of link."""
    linked: list[tuple[int, str]] = []
    for number, row in enumerate(listing.lines, start=1):
        kinds = [origin.kind for origin in row.origins if (origin.span.file, origin.span.line) == (file, line)]
        if kinds:
            linked.append((number, min(kinds, key=ORIGIN_KINDS.index)))
    return linked


@dataclass(frozen=True)
class Found(Printed):
    """Where a text stands: the letter and name of each step, and of each part of one that changed something, and how
    many lines of its program and of its plan have it. `first` is the letter of the first step that has it, `gone` of
    the first that has lost it; where these are steps of several parts, that of the part."""

    text: str
    steps: tuple[tuple[str, str, int, int], ...]
    first: str | None = None
    gone: str | None = None

    def __str__(self) -> str:
        if self.first is None:
            return f"{visible(self.text)!r} appears in no step"
        head = f"{visible(self.text)!r} appears first in {self.first}" + (f", gone at {self.gone}" if self.gone else "")
        rows = [f"{letter:<5} {visible(name):<32} program {program:>3}  plan {plan:>3}"
                for letter, name, program, plan in self.steps if program + plan]  # fmt: skip
        return "\n".join([head, *rows])

    __repr__ = __str__


def find_text(trace: Trace, text: str) -> Found:
    """Looks for `text` in the program and the plan after each step, in any case of letters."""
    lowered = text.lower()

    def count(step: StepRecord) -> tuple[int, int]:
        plan = [f"{path}: {value}" for path, value in flat_plan(step.plan_after)]
        program, decided = (
            sum(lowered in line.lower() for line in lines) for lines in ([line.text for line in step.after.lines], plan)
        )
        return program, decided

    leaves = [leaf for step in trace.steps for leaf in step.leaves]
    having = [number for number, leaf in enumerate(leaves) if any(count(leaf))]
    after = leaves[having[-1] + 1 :] if having else []
    first = leaves[having[0]].letter if having else None
    if having[:1] == [0] and any(lowered in line.text.lower() for line in leaves[0].before.lines):
        # It is the kernel's own, and no part brought it.
        first = trace.steps[0].letter
    return Found(
        text, tuple((step.letter, step.name, *count(step)) for step, _ in with_parts(trace.steps)), first,
        after[0].letter if after else None,
    )  # fmt: skip


def ranges(numbers: Sequence[int]) -> str:
    """``3, 7–9`` of numbers in order."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"{a}" if a == b else f"{a}–{b}" for a, b in runs)
