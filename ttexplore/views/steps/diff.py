"""What one step changed, in the IR and in the plan, as HTML and as text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from ttexplore.errors import coded
from ttexplore.record import ErrorRecord, Line, StepRecord
from ttexplore.views.markup import content_id, escape, paragraphs, plural, visible
from ttexplore.views.steps.origins import ORIGIN_NOTE, origin_html
from ttexplore.views.steps.plan_lines import inline_value
from ttexplore.views.steps.rows import (
    GLYPHS,
    NO_CHANGE,
    Counts,
    DiffRow,
    RowKind,
    Tokens,
    UnchangedLines,
    counts,
    ir_rows,
    plan_rows,
    with_context,
)
from ttexplore.views.theme import fragment

Layout = Literal["split", "unified"]


def rows_html(
    rows: Sequence[DiffRow | UnchangedLines],
    *,
    label: str,
    layout: Layout = "split",
    max_rows: int = 400,
    max_bytes: int = 50_000,
    with_origins: bool = True,
) -> str:
    """A table of rows, side by side or unified; what is beyond the limits is counted in its last row.

    Cells have no classes, the style knows them by their place: a page holds thousands.
    """
    make = _split_row if layout == "split" else _unified_row
    columns = (3 if layout == "unified" else 6) + with_origins
    markup: list[str] = []
    size_bytes = shown = 0
    for item in rows:
        if isinstance(item, UnchangedLines):
            text = gap_row(f"⋯ {plural(item.lines, 'unchanged line')}", columns)
        else:
            text = make(item, with_origins)
        size_bytes += len(text.encode())
        if shown == max_rows or size_bytes > max_bytes:
            break
        markup.append(text)
        shown += 1
    cut = sum(1 for item in rows[shown:] if isinstance(item, DiffRow))
    if cut:
        markup.append(gap_row(f"… {plural(cut, 'more row')} not shown here", columns))
    group = ""
    if layout == "split":
        side = '<col class="cn"><col class="cg"><col>'
        group = f"<colgroup>{side}{side}" + ('<col class="cl">' if with_origins else "") + "</colgroup>"
    classes = f"t {layout} o" if with_origins else f"t {layout}"
    return f'<table class="{classes}" aria-label="{escape(label)}">{group}{"".join(markup)}</table>'


def gap_row(content: str, columns: int) -> str:
    """A row that stands for others. `content` is escaped already."""
    return f'<tr class="gap"><td class="gap" colspan="{columns}">{content}</td></tr>'


def _text(line: Line | None, tokens: Tokens) -> str:
    if line is None:
        return ""
    if not tokens:
        return escape(line.text)
    return "".join(f"<b>{escape(text)}</b>" if differs else escape(text) for text, differs in tokens)


_ROW_CLASSES = {"removed": "r", "added": "a", "changed": "c", "indented": "w", "renamed": "w", "moved": "w"}


def _row(kind: RowKind, cells: Sequence[str | int | None]) -> str:
    side = f' class="{_ROW_CLASSES[kind]}"' if kind != "equal" else ""
    return f"<tr{side}>" + "".join(f"<td>{cell or ''}</td>" for cell in cells) + "</tr>"


def _split_row(row: DiffRow, with_origins: bool) -> str:
    glyphs = {"removed": ("−", ""), "added": ("", "+"), "changed": ("−", "+")}
    glyph = GLYPHS[row.kind].strip()
    both = (glyph if row.before else "", glyph if row.after else "")
    before_glyph, after_glyph = glyphs.get(row.kind, both)
    before = (row.before_number, before_glyph, _text(row.before, row.before_tokens))
    after = (row.after_number, after_glyph, _text(row.after, row.after_tokens))
    return _row(row.kind, (*before, *after, *_origins(row, with_origins)))


def _unified_row(row: DiffRow, with_origins: bool) -> str:
    if row.kind == "changed":
        old = DiffRow("removed", row.before, None, row.before_number, None, row.before_tokens)
        new = DiffRow("added", None, row.after, None, row.after_number, (), row.after_tokens)
        return _unified_row(old, with_origins) + _unified_row(new, with_origins)
    text = _text(row.after, row.after_tokens) if row.after else _text(row.before, row.before_tokens)
    glyph = GLYPHS[row.kind].strip()
    return _row(row.kind, (*_origins(row, with_origins), row.after_number or row.before_number, glyph, text))


def _origins(row: DiffRow, with_origins: bool) -> tuple[str, ...]:
    line = row.after or row.before
    return (origin_html(line.origins) if line else "",) if with_origins else ()


def error_html(error: ErrorRecord) -> str:
    """The card of an error: what, where, and what to do."""
    where = f" <code>{escape(str(error.span))}</code>" if error.span else ""
    told = re.sub("`([^`]+)`", r"<code>\1</code>", paragraphs(error.hint))
    hint = f'<p class="pre"><span class="q">hint:</span> {told}</p>' if error.hint else ""
    code = f' <span class="q">{escape(error.code)}</span>' if error.code else ""
    return (
        f'<div class="card fault"><p><b><span class="bad">✖</span> {escape(error.kind)}</b>{where}{code}</p>'
        f'<p class="pre m">{paragraphs(error.message)}</p>{hint}</div>'
    )


def step_body(
    step: StepRecord, *, layout: Layout, max_rows: int, max_plan_rows: int, max_bytes: int, context: int = 3
) -> str:
    """The error, the plan diff and the IR diff of a step, without a style of their own."""
    markup: list[str] = [error_html(step.error)] if step.error else []
    plan, ir = plan_rows(step), ir_rows(step)
    ir_changed = counts(ir) != NO_CHANGE
    if counts(plan) != NO_CHANGE:
        table = rows_html(
            with_context(plan, 0), label=f"plan of {step.name}", layout=layout, max_rows=max_plan_rows,
            max_bytes=max_bytes // 3 if ir_changed else max_bytes, with_origins=False,
        )  # fmt: skip
        markup.append(f"<h4>Plan {counts_html(counts(plan))}</h4>{table}")
        max_bytes -= len(table.encode())
    if ir_changed:
        table = rows_html(
            with_context(ir, context), label=f"{_kind(step)} of {step.name}", layout=layout, max_rows=max_rows,
            max_bytes=max_bytes,
        )  # fmt: skip
        markup.append(f"<h4>{_kind(step)} {counts_html(counts(ir))}</h4>{table}")
    if not markup:
        markup.append(f'<p class="q">Neither the {_kind(step)} nor the plan changes.</p>')
    return "".join(markup)


def _kind(step: StepRecord) -> str:
    """What the listings of a step are: a step of a lowering has IR, one between two files what these have."""
    return {"tir": "IR", "cpp": "C++"}.get(step.after.language, "text")


def counts_html(number: Counts) -> str:
    """``+42 −17 ~3`` with each part in its colour; a dot where nothing changed."""
    counted = (
        ("plus", f"+{number.added}"), ("minus", f"−{number.removed}"), ("tilde", f"~{number.indented}"),
        ("tilde", f"≈{number.renamed}"), ("tilde", f"⇄{number.moved}"),
    )  # fmt: skip
    present = [f'<span class="{name}">{text}</span>' for name, text in counted if text[1:] != "0"]
    return " ".join(present) or '<span class="q">·</span>'


def diff_html(step: StepRecord, *, layout: Layout = "split", max_rows: int = 400, max_bytes: int = 95_000) -> str:
    """What one step changed, as an HTML fragment: the plan and the IR before and after.

    At most `max_rows` rows of the plan, as many of the IR, and `max_bytes` bytes of tables are shown; the rest is
    counted.
    """
    options = ", ".join(f"{name}={inline_value(value)}" for name, value in step.options.items())
    title = f"{step.letter} {step.name}".lstrip()
    head = (
        f'<div class="head"><h3>{escape(title)}</h3> <span class="q">{escape(step.stage)}</span>'
        + (f" <code>{escape(options)}</code>" if options else "")
        + f"</div><p>{escape(step.summary)}</p>"
    )
    body = step_body(step, layout=layout, max_rows=max_rows, max_plan_rows=max_rows, max_bytes=max_bytes)
    identifier = content_id("ttx-diff", step.name, body, layout)
    return fragment(identifier, f"step {title}", head + body + ORIGIN_NOTE)


def diff_text(step: StepRecord) -> str:
    """What one step changed, unified: ``-`` and ``+`` lines, ``~`` for a line that is only indented differently."""
    texts = [f"{visible(step.letter)} {visible(step.name)}: {visible(step.summary)}".lstrip()]
    if step.error:
        where = f"{visible(str(step.error.span))}: " if step.error.span else ""
        texts.append(f"✖ {where}{visible(coded(step.error.message, step.error.code))}")
    for name, rows, context in (("plan", plan_rows(step), 0), (_kind(step), ir_rows(step), 3)):
        number = counts(rows)
        if str(number) != "no change":
            texts += [f"--- {name}: {number}", *_unified(with_context(rows, context))]
    if len(texts) == 1:
        texts.append("no change")
    return "\n".join(texts) + "\n"


def _unified(rows: Sequence[DiffRow | UnchangedLines]) -> list[str]:
    lines: list[str] = []
    for row in rows:
        if isinstance(row, UnchangedLines):
            lines.append(f"  ⋯ {plural(row.lines, 'unchanged line')}")
            continue
        old, new = visible(row.before.text) if row.before else "", visible(row.after.text) if row.after else ""
        match row.kind:
            case "changed":
                lines += [f"- {old}", f"+ {new}"]
            case "removed":
                lines.append(f"- {old}")
            case "renamed":
                lines += [f"≈ {old}", f"≈ {new}"]
            case "moved":
                side = "from" if row.after else "to"
                lines.append(f"⇄ {new or old}  ({side} line {row.partner})")
            case "equal" | "added" | "indented":
                lines.append(f"{GLYPHS[row.kind]} {new}")
    return lines
