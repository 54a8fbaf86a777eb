"""What a step changed: aligned rows of the IR and of the plan, and their HTML.

Lines are aligned by their text without indentation, so a statement that only moved into a loop stays one row, marked
``~``. The plan is compared as ``path: value`` lines, aligned by path.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ttexplore.record import ErrorRecord, Line, Listing, Origin, StepRecord
from ttexplore.views.markup import content_id, escape, paragraphs, plural
from ttexplore.views.theme import fragment

RowKind = Literal["equal", "added", "removed", "changed", "indented"]
Layout = Literal["split", "unified"]
# Pieces of a line and whether each differs from the other side.
Tokens = tuple[tuple[str, bool], ...]

GLYPHS: dict[RowKind, str] = {"equal": " ", "added": "+", "removed": "−", "changed": "±", "indented": "~"}

_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
# Two lines are shown as one changed line when at least this share of their tokens agrees.
_SIMILAR = 0.5
# Replaced blocks larger than this are not searched for pairs: the search is quadratic.
_LARGEST_PAIRING = 4000
# Lines longer than this are compared whole, not token by token.
_LONGEST_LINE = 1000
_LINE_WIDTH = 100


@dataclass(frozen=True, slots=True)
class DiffRow:
    """One row: a line before, after or both. Numbers count from 1; tokens mark what differs within the line."""

    kind: RowKind
    before: Line | None
    after: Line | None
    before_number: int | None
    after_number: int | None
    before_tokens: Tokens = ()
    after_tokens: Tokens = ()


@dataclass(frozen=True, slots=True)
class Gap:
    """Unchanged lines that are not shown."""

    lines: int


@dataclass(frozen=True, slots=True)
class Counts:
    """How many lines came, went, and only changed their indentation. A changed line counts as gone and come."""

    added: int
    removed: int
    indented: int

    def __str__(self) -> str:
        parts = ((f"+{self.added}", self.added), (f"−{self.removed}", self.removed), (f"~{self.indented}", self.indented))
        return " ".join(text for text, count in parts if count) or "no change"


def ir_rows(step: StepRecord) -> tuple[DiffRow, ...]:
    """All rows of the IR before and after a step."""
    return align(step.before.lines, step.after.lines, [line.text.strip() for line in step.before.lines],
                 [line.text.strip() for line in step.after.lines])  # fmt: skip


def plan_rows(step: StepRecord) -> tuple[DiffRow, ...]:
    """All rows of the plan before and after a step."""
    before, after = flat_plan(step.plan_before), flat_plan(step.plan_after)
    return align(
        tuple(Line(f"{path}: {value}") for path, value in before),
        tuple(Line(f"{path}: {value}") for path, value in after),
        [path for path, _ in before],
        [path for path, _ in after],
    )


def counts(rows: Sequence[DiffRow]) -> Counts:
    """The numbers shown beside a step."""
    number = Counter(row.kind for row in rows)
    return Counts(number["added"] + number["changed"], number["removed"] + number["changed"], number["indented"])


def flat_plan(plan: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """The plan's JSON form as (path, value) pairs, in order; empty values are left out.

    Entries of a list go by their name, tensor or kernel; those without one, such as cores, stay on one line each.
    """
    found: list[tuple[str, str]] = []
    for key, value in plan.items():
        _flatten(key, value, found)
    return tuple(found)


def _flatten(path: str, value: Any, found: list[tuple[str, str]]) -> None:
    if value is None or value == "" or value == [] or value == {}:
        return
    inline = _inline(value)
    if not isinstance(value, dict | list) or _is_span(value) or (_is_flat(value) and len(inline) <= _LINE_WIDTH):
        found.append((path, inline))
    elif isinstance(value, dict):
        for key, item in value.items():
            _flatten(f"{path}.{key}", item, found)
    else:
        for position, item in enumerate(value):
            name = next((item[key] for key in ("name", "tensor", "kernel") if key in item), None) if isinstance(item, dict) else None
            if name is None or _is_flat(item) and len(_inline(item)) <= _LINE_WIDTH:
                found.append((f"{path}[{position if name is None else name}]", _inline(item)))
            else:
                for key, part in item.items():
                    if part != name:
                        _flatten(f"{path}[{name}].{key}", part, found)


def _is_span(value: Any) -> bool:
    return isinstance(value, dict) and {"file", "line", "column"} <= value.keys()


def _is_flat(value: Any) -> bool:
    items = value.values() if isinstance(value, dict) else value
    return not any(isinstance(item, dict | list) and not _is_span(item) for item in items)


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        if _is_span(value):
            return f"{value['file']}:{value['line']}"
        return ", ".join(f"{key} {_nested(item)}" for key, item in value.items() if item is not None and item != "")
    if isinstance(value, list):
        return "[" + ", ".join(_nested(item) for item in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _nested(value: Any) -> str:
    return f"({_inline(value)})" if isinstance(value, dict) and not _is_span(value) else _inline(value)


def align(
    before: Sequence[Line], after: Sequence[Line], before_keys: Sequence[str], after_keys: Sequence[str]
) -> tuple[DiffRow, ...]:
    """Rows that pair the lines with equal keys in order, and similar lines in between."""
    if before_keys == after_keys and all(one.text == other.text for one, other in zip(before, after, strict=True)):
        return tuple(_paired(before, after, i, i) for i in range(len(before)))
    rows: list[DiffRow] = []
    # The junk heuristic drops frequent lines; it only pays where the search would be slow without it.
    matcher = difflib.SequenceMatcher(None, before_keys, after_keys, autojunk=max(len(before), len(after)) > 1000)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            rows.extend(_paired(before, after, i, j) for i, j in zip(range(i1, i2), range(j1, j2), strict=True))
        else:
            rows.extend(_replaced(before, after, range(i1, i2), range(j1, j2)))
    return tuple(rows)


def _paired(before: Sequence[Line], after: Sequence[Line], i: int, j: int) -> DiffRow:
    old, new = before[i], after[j]
    if old.text == new.text:
        return DiffRow("equal", old, new, i + 1, j + 1)
    if old.text.strip() == new.text.strip():
        return DiffRow("indented", old, new, i + 1, j + 1)
    old_tokens, new_tokens = _token_changes(old.text, new.text)
    return DiffRow("changed", old, new, i + 1, j + 1, old_tokens, new_tokens)


def _replaced(before: Sequence[Line], after: Sequence[Line], old: range, new: range) -> list[DiffRow]:
    rows: list[DiffRow] = []
    i, j = old.start, new.start
    for pair_i, pair_j in [*_similar_pairs(before, after, old, new), (old.stop, new.stop)]:
        rows.extend(DiffRow("removed", before[k], None, k + 1, None) for k in range(i, pair_i))
        rows.extend(DiffRow("added", None, after[k], None, k + 1) for k in range(j, pair_j))
        if pair_i < old.stop and pair_j < new.stop:
            rows.append(_paired(before, after, pair_i, pair_j))
        i, j = pair_i + 1, pair_j + 1
    return rows


def _similar_pairs(before: Sequence[Line], after: Sequence[Line], old: range, new: range) -> list[tuple[int, int]]:
    """Pairs in order with the largest sum of similarities, each at least :data:`_SIMILAR`."""
    if not old or not new or len(old) * len(new) > _LARGEST_PAIRING:
        return []
    old_bags = [Counter(_words(before[i].text)) for i in old]
    new_bags = [Counter(_words(after[j].text)) for j in new]
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    score = [[_similarity(one, other) for other in new_bags] for one in old_bags]
    for i in reversed(range(len(old))):
        for j in reversed(range(len(new))):
            together = best[i + 1][j + 1] + score[i][j] if score[i][j] >= _SIMILAR else 0.0
            best[i][j] = max(best[i + 1][j], best[i][j + 1], together)
    pairs: list[tuple[int, int]] = []
    i = j = 0
    while i < len(old) and j < len(new):
        if score[i][j] >= _SIMILAR and best[i][j] == best[i + 1][j + 1] + score[i][j]:
            pairs.append((old[i], new[j]))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def _similarity(one: Counter[str], other: Counter[str]) -> float:
    total = one.total() + other.total()
    return 2 * (one & other).total() / total if total else 1.0


def _token_changes(old: str, new: str) -> tuple[Tokens, Tokens]:
    if max(len(old), len(new)) > _LONGEST_LINE:
        return ((old, True),), ((new, True),)
    old_tokens, new_tokens = _TOKEN.findall(old), _TOKEN.findall(new)
    before: list[tuple[str, bool]] = []
    after: list[tuple[str, bool]] = []
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, old_tokens, new_tokens, autojunk=False).get_opcodes():
        differs = tag != "equal"
        before.extend([("".join(old_tokens[i1:i2]), differs)] if i2 > i1 else [])
        after.extend([("".join(new_tokens[j1:j2]), differs)] if j2 > j1 else [])
    return tuple(before), tuple(after)


def with_context(rows: Sequence[DiffRow], context: int = 3) -> tuple[DiffRow | Gap, ...]:
    """The changed rows with `context` equal rows around each; longer equal runs become a :class:`Gap`."""
    keep: set[int] = set()
    for position, row in enumerate(rows):
        if row.kind != "equal":
            keep.update(range(max(0, position - context), min(len(rows), position + context + 1)))
    shown: list[DiffRow | Gap] = []
    hidden = 0
    for position, row in enumerate(rows):
        # A gap of one line takes as much room as the line.
        alone = position - 1 in keep and position + 1 in keep
        if position in keep or alone:
            if hidden:
                shown.append(Gap(hidden))
                hidden = 0
            shown.append(row)
        else:
            hidden += 1
    if hidden:
        shown.append(Gap(hidden))
    return tuple(shown)


def origin_label(origins: Sequence[Origin]) -> str:
    """The kernel lines of a line, best known first: ``L18``, ``L18 L22``, ``L18 L22 +3``; empty if unknown."""
    lines = _origin_lines(origins)
    more = f" +{len(lines) - 2}" if len(lines) > 2 else ""
    return " ".join(f"L{line}" for line, _ in lines[:2]) + more


def origin_html(origins: Sequence[Origin]) -> str:
    """The label with each line underlined: solid for exact, dashed for derived, dotted for inferred."""
    lines = _origin_lines(origins)
    more = f" +{len(lines) - 2}" if len(lines) > 2 else ""
    return " ".join(f'<span class="{kind[0]}">L{line}</span>' for line, kind in lines[:2]) + more


def _origin_lines(origins: Sequence[Origin]) -> list[tuple[int, str]]:
    kinds = ("exact", "derived", "inferred")
    best: dict[int, str] = {}
    for origin in sorted(origins, key=lambda one: (kinds.index(one.kind), one.span.line)):
        best.setdefault(origin.span.line, origin.kind)
    return list(best.items())


ORIGIN_NOTE = (
    '<p class="q">L<i>n</i> is the kernel line: <span class="e">exact</span>, '
    '<span class="d">derived</span> by a pass, <span class="i">inferred</span> from what encloses it.</p>'
)


def rows_html(
    rows: Sequence[DiffRow | Gap],
    *,
    label: str,
    layout: Layout = "split",
    max_rows: int = 400,
    max_bytes: int = 50_000,
    with_origins: bool = True,
) -> str:
    """A table of rows, side by side or unified; what is beyond the limits is counted in its last row."""
    make = _split_row if layout == "split" else _unified_row
    columns = (4 if layout == "unified" else 6) + with_origins
    parts: list[str] = []
    size_bytes = shown = 0
    for item in rows:
        text = _gap_row(item.lines, columns) if isinstance(item, Gap) else make(item, with_origins)
        if shown == max_rows or size_bytes + len(text.encode()) > max_bytes:
            break
        parts.append(text)
        size_bytes += len(text.encode())
        shown += 1
    cut = sum(1 for item in rows[shown:] if isinstance(item, DiffRow))
    if cut:
        parts.append(f'<tr class="gap"><td colspan="{columns}">… {plural(cut, "more row")} not shown here</td></tr>')
    classes, group = "t", ""
    if layout == "split":
        classes = "t split"
        side = '<col class="cn"><col class="cg"><col>'
        group = f"<colgroup>{side}{side}" + ('<col class="cl">' if with_origins else "") + "</colgroup>"
    return f'<table class="{classes}" aria-label="{escape(label)}">{group}{"".join(parts)}</table>'


def _gap_row(lines: int, columns: int) -> str:
    return f'<tr class="gap"><td colspan="{columns}">⋯ {plural(lines, "unchanged line")}</td></tr>'


def _text(line: Line | None, tokens: Tokens) -> str:
    if line is None:
        return ""
    if not tokens:
        return escape(line.text)
    return "".join(f"<b>{escape(text)}</b>" if differs else escape(text) for text, differs in tokens)


# The class of each side of a row: removed, added, indentation only.
_SIDES: dict[RowKind, tuple[str, str]] = {
    "equal": ("", ""),
    "removed": ("r", ""),
    "added": ("", "a"),
    "changed": ("r", "a"),
    "indented": ("w", "w"),
}


def _cells(side: str, number: int | None, glyph: str, text: str, extra: str = "") -> str:
    return (
        f'<td class="{_classes("n", side, extra)}">{number or ""}</td><td class="{_classes("g", side, extra)}">{glyph}'
        f'</td><td class="{_classes("x", side, extra)}">{text}</td>'
    )


def _classes(*names: str) -> str:
    return " ".join(name for name in names if name)


def _split_row(row: DiffRow, with_origins: bool) -> str:
    before_side, after_side = _SIDES[row.kind]
    before_glyph, after_glyph = {"removed": ("−", ""), "added": ("", "+"), "changed": ("−", "+")}.get(
        row.kind, (GLYPHS[row.kind].strip(),) * 2
    )
    # `h` hides a half where the table is too narrow for two: the half that says nothing new.
    hide_before = "h" if row.kind in ("equal", "added", "indented") else ""
    hide_after = "h" if row.kind == "removed" else ""
    before = _cells(before_side, row.before_number, before_glyph, _text(row.before, row.before_tokens), hide_before)
    after = _cells(after_side, row.after_number, after_glyph, _text(row.after, row.after_tokens), hide_after)
    # In one column, the text of a removed line also takes the place of the kernel line.
    before = before.replace('class="x', 'class="p x', 1)
    after = after.replace('class="n', 'class="v n', 1)
    return f"<tr>{before}{after}{_origin_cell(row, with_origins)}</tr>"


def _unified_row(row: DiffRow, with_origins: bool) -> str:
    if row.kind == "changed":
        old = DiffRow("removed", row.before, None, row.before_number, None, row.before_tokens)
        new = DiffRow("added", None, row.after, None, row.after_number, (), row.after_tokens)
        return _unified_row(old, with_origins) + _unified_row(new, with_origins)
    side = "".join(_SIDES[row.kind]) if row.kind != "indented" else "w"
    line, tokens = (row.after, row.after_tokens) if row.after else (row.before, row.before_tokens)
    return (
        f'<tr><td class="{_classes("n", side)}">{row.before_number or ""}</td>'
        + _cells(side, row.after_number, GLYPHS[row.kind].strip(), _text(line, tokens))
        + f"{_origin_cell(row, with_origins)}</tr>"
    )


def _origin_cell(row: DiffRow, with_origins: bool) -> str:
    if not with_origins:
        return ""
    line = row.after or row.before
    hide = " h" if row.kind == "removed" else ""
    return f'<td class="l{hide}">{origin_html(line.origins) if line else ""}</td>'


def error_html(error: ErrorRecord) -> str:
    """The card of an error: what, where, and what to do."""
    where = f' <code>{escape(str(error.span))}</code>' if error.span else ""
    hint = f'<p class="pre"><span class="q">hint:</span> {paragraphs(error.hint)}</p>' if error.hint else ""
    return (
        f'<div class="card fault"><p><b><span class="bad">✖</span> {escape(error.kind)}</b>{where}</p>'
        f'<p class="pre m">{paragraphs(error.message)}</p>{hint}</div>'
    )


def step_body(step: StepRecord, *, layout: Layout, max_rows: int, max_bytes: int) -> str:
    """The IR diff, the plan diff and the error of a step, without a style of their own."""
    parts: list[str] = [error_html(step.error)] if step.error else []
    plan, ir = plan_rows(step), ir_rows(step)
    plan_changed, ir_changed = str(counts(plan)) != "no change", str(counts(ir)) != "no change"
    if plan_changed:
        shown = with_context(plan, 1)
        share = max_bytes // 2 if ir_changed else max_bytes
        half = max_rows // 2 if ir_changed else max_rows
        table = rows_html(shown, label=f"plan of {step.name}", layout=layout, max_rows=half, max_bytes=share,
                          with_origins=False)  # fmt: skip
        parts.append(f"<h4>Plan {_counts_html(counts(plan))}</h4>{table}")
        max_bytes -= len(table.encode())
        max_rows -= min(len(shown), half)
    if ir_changed:
        table = rows_html(with_context(ir), label=f"IR of {step.name}", layout=layout, max_rows=max_rows, max_bytes=max_bytes)  # fmt: skip
        parts.append(f"<h4>IR {_counts_html(counts(ir))}</h4>{table}")
    if not parts:
        parts.append('<p class="q">Neither the IR nor the plan changes.</p>')
    return "".join(parts)


def counts_html(number: Counts) -> str:
    """``+42 −17 ~3`` with each part in its colour; a dot where nothing changed."""
    parts = (("plus", f"+{number.added}"), ("minus", f"−{number.removed}"), ("tilde", f"~{number.indented}"))
    present = [f'<span class="{name}">{text}</span>' for name, text in parts if text[1:] != "0"]
    return " ".join(present) or '<span class="q">·</span>'


_counts_html = counts_html


def diff_html(step: StepRecord, *, layout: Layout = "split", max_rows: int = 400, max_bytes: int = 95_000) -> str:
    """What one step changed, as an HTML fragment: the plan and the IR before and after.

    At most `max_rows` rows and `max_bytes` bytes of tables are shown; the rest is counted.
    """
    options = ", ".join(f"{name}={_inline(value)}" for name, value in step.options.items())
    title = f"{step.letter} {step.name}"
    head = (
        f'<div class="head"><h3>{escape(title)}</h3><span class="q">{escape(step.stage)}</span>'
        + (f"<code>{escape(options)}</code>" if options else "")
        + f'</div><p>{escape(step.summary)}</p>'
    )
    body = step_body(step, layout=layout, max_rows=max_rows, max_bytes=max_bytes)
    identifier = content_id("ttx-diff", step.name, body, layout)
    return fragment(identifier, f"step {escape(title)}", head + body + ORIGIN_NOTE)


def difference(before: Listing, after: Listing) -> Counts:
    """The counts of two listings, for instance of the same step in two explorations."""
    step_rows = align(before.lines, after.lines, [x.text.strip() for x in before.lines], [x.text.strip() for x in after.lines])
    return counts(step_rows)
