"""One screen of text: what a terminal, a test log and a notebook without HTML show."""

from __future__ import annotations

from collections.abc import Sequence

from ttexplore.record import StepRecord, Trace
from ttexplore.target import Target
from ttexplore.views.facts import plan_facts, source_location, status, trace_plan
from ttexplore.views.markup import plural, visible
from ttexplore.views.rows import GLYPHS, DiffRow, Gap, counts, ir_rows, plan_rows, with_context


def exploration_text(trace: Trace, target: Target | None = None, *, times: bool = False) -> str:
    """The steps with their changes, then cores, circular buffers, L1 and files. Times only when asked for."""
    plan = trace_plan(trace)
    title = [visible(trace.kernel), visible(trace.target), source_location(trace)]
    lines = ["  ".join(part for part in title if part), ""]
    lines += _step_table(trace.steps, times)
    if failed := next((step.error for step in trace.steps if step.error), None):
        where = f"{visible(str(failed.span))}: " if failed.span else ""
        lines += [
            "",
            f"✖ {visible(failed.kind)}: {where}" + "\n  ".join(visible(line) for line in failed.message.splitlines()),
        ]
        lines += [f"  hint: {visible(failed.hint)}"] if failed.hint else []
    facts = plan_facts(plan, target)
    if trace.files:
        facts.append(
            ("files", ", ".join(f"{visible(name)} {len(file.lines)}" for name, file in trace.files.items()) + " lines")
        )
    if facts:
        lines += ["", *(f"{name:<8} {value}" for name, value in facts)]
    return "\n".join(lines) + "\n"


def _step_table(steps: Sequence[StepRecord], times: bool) -> list[str]:
    rows = [("", "", "step", "IR", "plan", "ms" if times else "")]
    for step in steps:
        glyph, _ = status(step)
        rows.append((
            glyph, visible(step.letter), visible(step.name), _change(str(counts(ir_rows(step)))),
            _change(str(counts(plan_rows(step)))), f"{1000 * step.seconds:.1f}" if times else "",
        ))  # fmt: skip
    widths = [max(len(row[column]) for row in rows) for column in range(6)]
    lines = [
        "  ".join(
            cell.rjust(width) if column == 5 else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    stages = ["stage", *(visible(step.stage) for step in steps)]
    width = max(len(stage) for stage in stages)
    shown: list[str] = []
    for position, (stage, line) in enumerate(zip(stages, lines, strict=True)):
        first = position == 0 or stage != stages[position - 1]
        shown.append(f"{stage if first else '':<{width}}  {line}".rstrip())
    return shown


def _change(text: str) -> str:
    return "·" if text == "no change" else text


def diff_text(step: StepRecord) -> str:
    """What one step changed, unified: ``-`` and ``+`` lines, ``~`` for a line that is only indented differently."""
    parts = [f"{visible(step.letter)} {visible(step.name)}: {visible(step.summary)}"]
    if step.error:
        where = f"{visible(str(step.error.span))}: " if step.error.span else ""
        parts.append(f"✖ {where}{visible(step.error.message)}")
    for name, rows, context in (("plan", plan_rows(step), 1), ("IR", ir_rows(step), 3)):
        number = counts(rows)
        if str(number) != "no change":
            parts += [f"--- {name}: {number}", *_unified(with_context(rows, context))]
    if len(parts) == 1:
        parts.append("no change")
    return "\n".join(parts) + "\n"


def _unified(rows: Sequence[DiffRow | Gap]) -> list[str]:
    lines: list[str] = []
    for row in rows:
        if isinstance(row, Gap):
            lines.append(f"  ⋯ {plural(row.lines, 'unchanged line')}")
            continue
        old, new = visible(row.before.text) if row.before else "", visible(row.after.text) if row.after else ""
        match row.kind:
            case "changed":
                lines += [f"- {old}", f"+ {new}"]
            case "removed":
                lines.append(f"- {old}")
            case "equal" | "added" | "indented":
                lines.append(f"{GLYPHS[row.kind]} {new}")
    return lines
