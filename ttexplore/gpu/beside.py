"""Both lanes of a kernel, linked: passes by what they do, lines by their kernel line, and the concept map."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ttexplore.characters import Printed
from ttexplore.errors import UsageError
from ttexplore.gpu.aligned import Purpose, purposes
from ttexplore.gpu.concepts import STYLE, ConceptMap, beside_table, concept_map, concepts_table, runs
from ttexplore.gpu.lane import GpuLane
from ttexplore.gpu.programs import GpuProgram, TileProgram
from ttexplore.gpu.tables import TABLES, Programs, SideBySideTable, side_by_side, side_by_side_html
from ttexplore.plan import KERNEL_ROLES, KernelRole
from ttexplore.record import Listing, StepRecord
from ttexplore.target import Target
from ttexplore.views.markup import content_id, escape, plural, visible
from ttexplore.views.theme import fragment

_NONE = "·"
# Lines of code that a row of the page shows on each side.
_SHOWN_LINES = 40


@dataclass(frozen=True, slots=True)
class AlignedPasses:
    """What passes do, TileLang's that do it for this kernel, and ours."""

    purpose: Purpose
    gpu: tuple[StepRecord, ...]
    ours: tuple[StepRecord, ...]


@dataclass(frozen=True, eq=False, repr=False)
class PassTable(Printed):
    """The passes of both pipelines, aligned by what they do."""

    arch: str
    target: str
    rows: tuple[AlignedPasses, ...]

    def __repr__(self) -> str:
        return f"<passes for {self.arch} beside {self.target}: {len(self.rows)} purposes>"

    def __str__(self) -> str:
        texts: list[str] = []
        for row in self.rows:
            texts += [row.purpose.name, f"  {row.purpose.sentence}"]
            for side, steps in ((self.arch, row.gpu), (self.target, row.ours)):
                texts.append(f"  {side:<14}{', '.join(map(step_words, steps)) or _NONE}")
        return "\n".join([*texts, "", "● changes the program or the plan, ○ changes nothing"]) + "\n"

    def _repr_html_(self) -> str:
        content = STYLE + passes_table(self)
        return fragment(content_id("ttx-passes", content), "passes of both pipelines", content)


def step_words(step: StepRecord) -> str:
    """The letter and name of a pass, with the sign of whether it changes something."""
    sign = "✖" if step.error else "●" if step.changed_ir or step.changed_plan else "○"
    return f"{sign} {step.letter} {step.name}"


@dataclass(frozen=True, slots=True)
class LinkedLine:
    """A line of the kernel, and the lines of the generated source and of our kernels that come from it, from 1."""

    line: int
    text: str
    gpu: tuple[int, ...]
    ours: Mapping[KernelRole, tuple[int, ...]]


@dataclass(frozen=True, eq=False, repr=False)
class LineLinks(Printed):
    """The lines of a kernel with what becomes of them on both sides; ``links[25]`` is that of line 25.

    `gpu_share` and `our_share` are the shares of generated lines that are linked to any line of the kernel, without
    blank lines, comments and preprocessor lines.
    """

    arch: str
    target: str
    rows: tuple[LinkedLine, ...]
    gpu_share: float
    our_share: float
    source: Listing
    files: Mapping[KernelRole, Listing]

    def __getitem__(self, line: int) -> LinkedLine:
        """The line with this number. Raises UsageError for one that is not in the kernel."""
        for row in self.rows:
            if row.line == line:
                return row
        first, last = self.rows[0].line, self.rows[-1].line
        raise UsageError("U001", f"line {line} is not in the kernel", hint=f"its lines are {first} to {last}")

    def __repr__(self) -> str:
        linked = sum(bool(row.gpu) and any(row.ours.values()) for row in self.rows)
        return f"<links of {plural(len(self.rows), 'line')}: {linked} in both programs>"

    @property
    def told(self) -> str:
        """The shares of linked lines, as a sentence."""
        return (
            f"linked to lines of the kernel: {self.gpu_share:.0%} of the lines for {self.arch}, {self.our_share:.0%} "
            f"of ours for {self.target}"
        )

    def __str__(self) -> str:
        width = max((len(visible(row.text)) for row in self.rows), default=0)
        heads = ("generated", *KERNEL_ROLES)
        cells = [
            [runs(row.gpu) or _NONE, *(runs(row.ours[role]) or _NONE for role in KERNEL_ROLES)] for row in self.rows
        ]
        widths = [max(len(text) for text in column) for column in zip(heads, *cells, strict=True)]

        def row(first: str, rest: Iterable[str]) -> str:
            return "  ".join([first, *(cell.ljust(size) for cell, size in zip(rest, widths, strict=True))]).rstrip()

        lines = [row(" " * (width + 6), heads)]
        for link, rest in zip(self.rows, cells, strict=True):
            lines.append(row(f"{link.line:>4}  {visible(link.text).ljust(width)}", rest))
        return "\n".join([*lines, "", self.told]) + "\n"

    def _repr_html_(self) -> str:
        content = STYLE + links_table(self)
        return fragment(content_id("ttx-links", content), "lines of both programs", content)


@dataclass(frozen=True, eq=False, repr=False)
class Beside(Printed):
    """A kernel's GPU lane beside its lowering for a Tenstorrent chip.

    `passes` are those of both pipelines by what they do, `links` the lines of both programs by their kernel line,
    `concepts` what stands for what in the two programs, `tables` the tables in which TileLang's documents put both
    machines side by side ("authoring", "execution", "tensor cores"), with what the two programs do in each row. All but
    the first raise the error of a lane whose lowering failed.
    """

    lane: GpuLane
    steps: tuple[StepRecord, ...]
    ours: TileProgram
    target: Target

    @property
    def files(self) -> Mapping[KernelRole, Listing]:
        return self.ours.files

    @functools.cached_property
    def passes(self) -> PassTable:
        rows = tuple(
            AlignedPasses(
                purpose,
                tuple(step for step in self.lane.records if step.name in purpose.gpu),
                tuple(step for step in self.steps if step.letter in purpose.ours),
            )
            for purpose in purposes()
        )
        return PassTable(self.lane.arch, self.target.name, rows)

    @functools.cached_property
    def links(self) -> LineLinks:
        source = self.lane.code.listing
        rows: list[LinkedLine] = []
        by_line = {role: _by_line(listing) for role, listing in self.files.items()}
        generated = _by_line(source)
        for line in self.lane.source.lines:
            if not line.origins:
                continue
            span = line.origins[0].span
            key = (span.file, span.line)
            ours: dict[KernelRole, tuple[int, ...]] = {role: by_line[role].get(key, ()) for role in KERNEL_ROLES}
            rows.append(LinkedLine(span.line, line.text, generated.get(key, ()), ours))
        return LineLinks(
            self.lane.arch, self.target.name, tuple(rows), self.lane.linked_share, _share(self.files.values()),
            source, self.files,
        )  # fmt: skip

    @functools.cached_property
    def _gpu(self) -> GpuProgram:
        return GpuProgram(self.lane.file, self.lane.code.listing, self.lane.records[-1].before.text)

    @functools.cached_property
    def concepts(self) -> ConceptMap:
        return concept_map(self._gpu, self.ours, self.lane.arch, self.target)

    @functools.cached_property
    def tables(self) -> Mapping[str, SideBySideTable]:
        passes = {row.purpose.name: (row.gpu, row.ours) for row in self.passes.rows}
        both = Programs(self.lane, self._gpu, self.ours, self.concepts, passes)
        return {name: side_by_side(name, topics, both) for name, topics in TABLES.items()}

    def __repr__(self) -> str:
        return f"<{self.lane.kernel} for {self.lane.arch} beside {self.target.name}>"

    def __str__(self) -> str:
        return "\n".join(map(str, (self.concepts, self.links, self.passes)))

    def _repr_html_(self) -> str:
        tables = "".join(
            f"<h4>{escape(purpose.name)}</h4>{side_by_side_html(purpose)}" for purpose in self.tables.values()
        )
        parts = (
            ("What stands for what", concepts_table(self.concepts)), ("Lines", links_table(self.links)),
            ("Passes", passes_table(self.passes)), ("As in TileLang's documents", tables),
        )  # fmt: skip
        title = f'<div class="head"><h3>{escape(self.lane.kernel)}</h3><span>{escape(self.lane.arch)} beside '
        title += f"{escape(self.target.name)}</span></div>"
        sections = "".join(
            f"<details{' open' if number == 0 else ''}><summary><b>{name}</b></summary>{table}</details>"
            for number, (name, table) in enumerate(parts)
        )
        content = f'{STYLE}{title}<div class="files">{sections}</div>'
        return fragment(content_id("ttx-beside", content), f"{self.lane.kernel} on both machines", content)


def _by_line(listing: Listing) -> dict[tuple[str, int], tuple[int, ...]]:
    """The lines of a listing, from 1, by the file and line of the kernel that they come from."""
    numbers: dict[tuple[str, int], list[int]] = {}
    for number, line in enumerate(listing.lines, 1):
        for origin in line.origins:
            lines = numbers.setdefault((origin.span.file, origin.span.line), [])
            if number not in lines:
                lines.append(number)
    return {key: tuple(lines) for key, lines in numbers.items()}


def _share(listings: Iterable[Listing]) -> float:
    linked, lines = map(sum, zip(*(listing.linked for listing in listings), strict=True))
    return linked / max(lines, 1)


def passes_table(table: PassTable) -> str:
    """The aligned passes as an HTML table."""

    def cell(steps: Iterable[StepRecord]) -> str:
        return escape(", ".join(map(step_words, steps)) or _NONE)

    rows = [
        (f"<b>{escape(row.purpose.name)}</b>: {escape(row.purpose.sentence)}", cell(row.gpu), cell(row.ours))
        for row in table.rows
    ]
    note = '<p class="q">● changes the program or the plan, ○ changes nothing</p>'
    return beside_table("passes", table.arch, table.target, rows) + note


def links_table(links: LineLinks) -> str:
    """The lines of the kernel, each with the lines of both programs, which unfold."""

    def code(name: str, listing: Listing, lines: tuple[int, ...]) -> str:
        if not lines:
            return ""
        hidden = len(lines) - _SHOWN_LINES
        rows = "".join(
            f"<tr><td>{number}</td><td>{escape(listing.lines[number - 1].text)}</td></tr>"
            for number in lines[:_SHOWN_LINES]
        )
        more = f'<tr><td></td><td class="q">{plural(hidden, "more line")}</td></tr>' if hidden > 0 else ""
        return f'<div class="q">{escape(name)}</div><table class="t code">{rows}{more}</table>'

    rows: list[str] = []
    for link in links.rows:
        gpu = code(links.arch, links.source, link.gpu)
        ours = "".join(code(role, links.files[role], link.ours[role]) for role in KERNEL_ROLES)
        head = f"<code>{link.line:>4}  {escape(link.text)}</code>"
        if gpu or ours:
            counts = [
                f"{escape(links.arch)} {len(link.gpu)}",
                *(f"{role} {len(link.ours[role])}" for role in KERNEL_ROLES),
            ]
            rows.append(
                f'<details><summary><span class="pre">{head}</span> <span class="q">{" · ".join(counts)}</span>'
                f'</summary><table class="t beside"><tr><td>{gpu}</td><td>{ours}</td></tr></table></details>'
            )
        else:
            rows.append(f'<div class="unlinked pre">{head}</div>')
    return f'<div class="links">{"".join(rows)}</div><p class="q">{escape(links.told)}</p>'
