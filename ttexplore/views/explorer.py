"""What the explorer widget shows of one lowering, as plain JSON: the Python half of the widget.

Texts, origins and listings are stored once and referred to by their positions, because most steps change little.
The browser computes nothing about the lowering: alignment, changes within a line, coverage and figures come from here.
Every text is passed through :func:`visible`, and the browser only ever shows it as text.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, get_args

from ttexplore.options import option_text
from ttexplore.plan import Argument, CoreWork, Plan
from ttexplore.record import ErrorRecord, Line, Listing, OptionForm, Origin, StepRecord, Trace, Work
from ttexplore.target import Target
from ttexplore.views.figures.core_map import core_map_svg, summary
from ttexplore.views.figures.l1_map import l1_map_svg
from ttexplore.views.figures.work_map import work_map_svg
from ttexplore.views.flow.drawing import flows_data
from ttexplore.views.markup import byte_size, visible
from ttexplore.views.runs.measures import core_measures, figures
from ttexplore.views.runs.settings import OptionSetting
from ttexplore.views.runs.tile_history import tile_grid
from ttexplore.views.steps.facts import plan_facts, prose, source_location, status
from ttexplore.views.steps.origins import ORIGIN_KINDS, coverage
from ttexplore.views.steps.plan_lines import inline_value, plan_lines
from ttexplore.views.steps.rows import Counts, DiffRow, Tokens, counts, ir_rows, plan_rows, renames
from ttexplore.views.terms import definitions

# Version of this form: a page made by another version says so instead of showing nonsense.
FORM = 5

# The tabs of the explorer, in order.
TABS = ("Steps", "Cores", "Buffers", "Code", "Run", "What if", "GPU")

# What lines do, in the order in which a reader who follows a kernel line wants to see them.
_WORK: tuple[str, ...] = get_args(Work)

ROW_KINDS = ("equal", "added", "removed", "changed", "indented", "renamed", "moved")

# Lines that a reader may want out of the way, by what they belong to.
LINE_CLASSES: tuple[Work, ...] = ("declarations", "init", "DST", "protocol")


@dataclass
class _Tables:
    """Values that are stored once. Each `..._of` gives the position of a value, adding it where it is new."""

    texts: dict[str, int] = field(default_factory=dict[str, int])
    places: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    origins: dict[tuple[int, ...], int] = field(default_factory=dict[tuple[int, ...], int])
    listings: dict[tuple[int, ...], int] = field(default_factory=dict[tuple[int, ...], int])
    _by_origin: dict[tuple[Origin, ...], int] = field(default_factory=dict[tuple[Origin, ...], int])

    def text_of(self, text: str) -> int:
        return self.texts.setdefault(visible(text), len(self.texts))

    def origins_of(self, origins: tuple[Origin, ...]) -> int:
        if origins not in self._by_origin:
            best: dict[int, int] = {}
            for origin in origins:
                index = self.places.setdefault((origin.span.file, origin.span.line), len(self.places))
                kind = ORIGIN_KINDS.index(origin.kind)
                best[index] = min(kind, best.get(index, kind))
            flat = tuple(number for index, kind in sorted(best.items()) for number in (index, kind))
            self._by_origin[origins] = self.origins.setdefault(flat, len(self.origins))
        return self._by_origin[origins]

    def listing_of(self, lines: Sequence[Line]) -> int:
        flat: list[int] = []
        for line in lines:
            is_around = line.work in LINE_CLASSES
            belongs, work = LINE_CLASSES.index(line.work) + 1 if is_around else 0, "" if is_around else line.work
            flat += (self.text_of(line.text), self.origins_of(line.origins), belongs, _WORK.index(work))
        return self.listings.setdefault(tuple(flat), len(self.listings))

    def data(self) -> dict[str, Any]:
        """The tables themselves, once they are complete."""
        return {
            "texts": list(self.texts),
            "places": [[visible(file), line] for file, line in self.places],
            "origins": list(self.origins),
            "listings": list(self.listings),
        }


def listings_data(listings: Sequence[Listing]) -> tuple[dict[str, Any], tuple[int, ...]]:
    """Listings with tables of their own, which the page adds to those of a lowering; and their numbers."""
    tables = _Tables()
    numbers = tuple(tables.listing_of(listing.lines) for listing in listings)
    return tables.data(), numbers


def explorer_data(
    trace: Trace,
    plan: Plan,
    target: Target | None,
    forms: Mapping[str, OptionForm] | None = None,
    settings: Iterable[OptionSetting] = (),
) -> dict[str, Any]:
    """The lowering as the widget wants it. `forms` say how options are given, `settings` what they are set to."""
    tables = _Tables()
    source = tables.listing_of(trace.source.lines)
    set_to = {setting.name: setting for setting in settings}
    steps: list[dict[str, Any]] = []
    for step in trace.steps:
        count = len(steps)
        steps.append(_step(tables, step, forms or {}, set_to, -1))
        steps += [_step(tables, part, forms or {}, set_to, count) for part in step.parts]
    files = [_file(tables, name, listing) for name, listing in trace.files.items()]
    data: dict[str, Any] = {
        "form": FORM,
        "kernel": visible(trace.kernel),
        "target": visible(trace.target),
        "where": source_location(trace),
        "facts": [[name, value] for name, value in plan_facts(plan, target)],
        "source": {"listing": source, "lines": [_own_line(line) for line in trace.source.lines]},
        "steps": steps,
        "files": files,
        "classes": list(LINE_CLASSES),
        "inputs": [
            f"{visible(layout.name)} {layout.dtype} {layout.shape}"
            for layout in sorted(plan.layouts, key=lambda layout: layout.position)
            if layout.role != "output"
        ],
        "outputs": [
            {"name": visible(layout.name), "tiles": list(tile_grid(layout))}
            for layout in sorted(plan.layouts, key=lambda layout: layout.position)
            if layout.role != "input"
        ],
        "cores": _cores(plan, target),
        "buffers": _buffers(plan, target),
        "flows": flows_data(trace, plan),
        "figures": [list(figure) for figure in figures(trace, plan)],
        "terms": definitions(),
    }
    return data | tables.data()


def packed(data: dict[str, Any]) -> bytes:
    """The data as the browser receives it: JSON, deflated (RFC 1950)."""
    # Parts of characters that stand alone, which UTF-8 does not have, are escaped as JSON has them.
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    return zlib.compress(text.encode("utf-8", "backslashreplace"), 6)


def _own_line(line: Line) -> int:
    """The number of a line of kernel source; 0 where it is not known."""
    return line.origins[0].span.line if line.origins else 0


def _step(
    tables: _Tables,
    step: StepRecord,
    forms: Mapping[str, OptionForm],
    settings: Mapping[str, OptionSetting],
    part_of: int,
) -> dict[str, Any]:
    ir, plan = ir_rows(step), plan_rows(step)
    glyph, state = status(step)
    return {
        "name": visible(step.name), "letter": visible(step.letter), "stage": visible(step.stage), "part_of": part_of,
        "summary": visible(step.summary), "prose": [visible(line) for line in prose(step).splitlines()],
        "glyph": glyph, "state": state, "ms": round(1000 * step.seconds, 2),
        "ir": _diff(tables, step.before.lines, step.after.lines, ir, step),
        "plan": _diff(tables, plan_lines(step.plan_before), plan_lines(step.plan_after), plan),
        "coverage": coverage(step.after),
        "options": [
            _option(name, value, forms.get(name, OptionForm()), settings.get(name))
            for name, value in step.options.items()
        ],
        "error": error_data(step.error) if step.error else None,
    }  # fmt: skip


# The rules that replaced or made a line, each with the lines before the step that it replaced, from 0.
_Rules = tuple[tuple[str, tuple[int, ...]], ...]


def _whys(step: StepRecord) -> tuple[list[_Rules], list[_Rules]]:
    """For each line of the program before the step what replaced it, and for each line after it which rules made it."""
    numbers = [
        {line.node: number for number, line in enumerate(listing.lines)} for listing in (step.before, step.after)
    ]
    before, after = ([_Rules()] * len(listing.lines) for listing in (step.before, step.after))
    for firing in step.firings:
        rule = ((firing.rule, tuple(sorted(numbers[0][node] for node in firing.before))),)
        for number in rule[0][1]:
            before[number] += rule
        for node in firing.after:
            after[numbers[1][node]] += rule
    return before, after


def _option(name: str, value: Any, form: OptionForm, setting: OptionSetting | None) -> dict[str, Any]:
    return {
        "name": name, "text": option_text(value), "shown": inline_value(value), "example": form.example,
        "choices": [option_text(choice) for choice in form.choices], "policy": form.policy,
        "by": visible(setting.by) if setting else "", "help": visible(setting.sentence) if setting else "",
        "idle": visible(setting.idle) if setting else "",
    }  # fmt: skip


def error_data(error: ErrorRecord) -> dict[str, Any]:
    """An error as the widget shows it."""
    return {
        "kind": visible(error.kind),
        "message": [visible(line) for line in error.message.splitlines()],
        "hint": [visible(line) for line in error.hint.splitlines()],
        "where": visible(str(error.span)) if error.span else "",
        "line": error.span.line if error.span else 0,
        "code": error.code,
    }


def _diff(
    tables: _Tables, before: Sequence[Line], after: Sequence[Line], rows: Sequence[DiffRow],
    step: StepRecord | None = None,
) -> dict[str, Any]:  # fmt: skip
    number: Counts = counts(rows)
    names = renames(rows)
    rules = [*step.rules] if step else []
    # Position 0 stands for none.
    numbers: dict[_Rules, int] = {(): 0}
    why = [
        [numbers.setdefault(rules_of_line, len(numbers)) for rules_of_line in side]
        for side in (_whys(step) if step else ())
    ]
    return {
        "before": tables.listing_of(before),
        "after": tables.listing_of(after),
        "rows": _packed_rows(rows),
        "counts": [number.added, number.removed, number.indented, number.renamed, number.moved],
        "rules": [[visible(rule), visible(step.rules[rule])] for rule in rules] if step else [],
        "why": why,
        "made": [[[rules.index(rule), list(lines)] for rule, lines in rules_of_line] for rules_of_line in numbers],
        "renames": [[visible(old), visible(new)] for old, new in names.items()],
    }


def _packed_rows(rows: Sequence[DiffRow]) -> list[list[Any]]:
    """Rows as [kind, line before, line after, ...] with positions from 0, -1 for none. A run of equal rows is one
    entry that ends in its length; a changed row ends in the lengths of its pieces, alternately same and other; a moved
    row ends in the number of its partner."""
    packed_rows: list[list[Any]] = []
    for row in rows:
        entry: list[Any] = [ROW_KINDS.index(row.kind), (row.before_number or 0) - 1, (row.after_number or 0) - 1]
        if row.kind == "equal":
            last = packed_rows[-1] if packed_rows else None
            if last and last[0] == 0 and last[1] + last[3] == entry[1] and last[2] + last[3] == entry[2]:
                last[3] += 1
                continue
            entry.append(1)
        elif row.kind in ("changed", "renamed"):
            entry += (_piece_lengths(row.before_tokens), _piece_lengths(row.after_tokens))
        elif row.kind == "moved":
            entry.append(row.partner)
        packed_rows.append(entry)
    return packed_rows


def _piece_lengths(tokens: Tokens) -> list[int]:
    lengths: list[int] = []
    differs = True
    for text, differs_here in tokens:
        if differs_here == differs and lengths:
            lengths[-1] += len(visible(text))
            continue
        if not lengths and differs_here:
            lengths.append(0)
        lengths.append(len(visible(text)))
        differs = differs_here
    return lengths


def _file(tables: _Tables, name: str, listing: Listing) -> dict[str, Any]:
    return {
        "name": visible(name),
        "language": listing.language,
        "listing": tables.listing_of(listing.lines),
        "coverage": coverage(listing),
    }


def _cores(plan: Plan, target: Target | None) -> dict[str, Any] | None:
    partition = plan.partition
    if partition is None:
        return None
    return {
        "svg": core_map_svg(target, partition, plan.shared, partials=plan.partials),
        "work": work_map_svg(partition),
        "summary": summary(partition),
        "cores": [_core(plan, core, target) for core in partition.cores],
        "measures": [asdict(measure) for measure in core_measures(plan)],
    }


def _core(plan: Plan, core: CoreWork, target: Target | None) -> dict[str, Any]:
    return {
        "x": core.x, "y": core.y, "items": core.items,
        "noc": list(target.physical(core.x, core.y)) if target else None,
        "values": [[visible(name), value] for name, value in core.values.items()],
        "listed": list(core.listed),
        "arguments": {
            arguments.kernel: [[visible(each.name), _argument_value(core, each)] for each in arguments.runtime]
            for arguments in plan.signature
        },
    }  # fmt: skip


def _argument_value(core: CoreWork, argument: Argument) -> str:
    match argument.source:
        case "tensor_address":
            return f"address of {visible(argument.of)}"
        case "core_value":
            return str(core.values[argument.of])
        case "noc_x" | "noc_y":
            x, y = argument.place(core.values)
            return f"{argument.source[-1]} of core ({x}, {y}) on the NoC"
        case "core_list":
            return ", ".join(map(str, core.listed))
        case "constant":
            return str(argument.value)
        case _:
            return visible(argument.of)


def _buffers(plan: Plan, target: Target | None) -> dict[str, Any] | None:
    if not plan.buffers:
        return None
    edges = plan.graph.edges if plan.graph else ()
    rates = {(edge.source, edge.target): edge.tiles_per_item for edge in edges}
    return {
        "l1": l1_map_svg(plan, target) if target else "",
        "buffers": [
            {
                "name": visible(buffer.name), "index": buffer.index, "format": buffer.data_format,
                "pages": buffer.pages,
                "block_pages": buffer.block_pages, "stages": buffer.stages, "page_size": byte_size(buffer.page_bytes),
                "size": byte_size(buffer.total_bytes), "producer": buffer.producer, "consumer": buffer.consumer,
                "line": buffer.origin.line if buffer.origin else 0, "reason": visible(buffer.reason),
                "in": rates.get((buffer.producer, buffer.name)), "out": rates.get((buffer.name, buffer.consumer)),
            }
            for buffer in plan.buffers
        ],
    }  # fmt: skip
