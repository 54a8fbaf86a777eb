"""The whole exploration on one page: the steps with their diffs, the cores, the circular buffers, the code."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from ttexplore.errors import coded
from ttexplore.plan import Plan
from ttexplore.record import Listing, StepRecord, Trace
from ttexplore.target import Target
from ttexplore.views.figures.cb_graph import cb_graph_svg
from ttexplore.views.figures.core_map import core_map_svg
from ttexplore.views.figures.l1_map import l1_map_svg
from ttexplore.views.markup import content_id, escape, paragraphs, plural, visible
from ttexplore.views.steps.code import code_table
from ttexplore.views.steps.diff import counts_html, error_html, step_body
from ttexplore.views.steps.facts import plan_facts, prose, source_location, status, tally, with_parts
from ttexplore.views.steps.origins import ORIGIN_NOTE
from ttexplore.views.steps.plan_lines import flat_plan, inline_value
from ttexplore.views.steps.rows import counts, ir_rows, plan_rows
from ttexplore.views.terms import defined
from ttexplore.views.theme import fragment, html_style, svg_style

# The largest fragment, as a notebook stores one for every shown exploration.
_LARGEST_BYTES = 120_000
# The kernels get this share at most of what the drawings leave, then the diffs take what they need, then other files.
_KERNEL_SHARE = 0.4
_KERNEL_FILES = ("reader.cpp", "compute.cpp", "writer.cpp")
_SMALLEST_TABLE_BYTES = 500
# The drawings show what the plan says of cores and buffers; its first lines are enough here.
_PLAN_ROWS = 32
# Headings and frames around a table.
_FRAME_BYTES = 400

_CUT_NOTE = (
    '<p class="q">Diffs and files that are cut here are complete in <code>steps["D5"].diff()</code> and '
    '<code>code["host"]</code>.</p>'
)


def exploration_html(
    trace: Trace, target: Target | None, plan: Plan, *, times: bool = False, remarks: str = "", cut: str = _CUT_NOTE
) -> str:
    """The exploration as one HTML fragment of at most 120 kB, without scripts.

    With a target, cores are drawn on its floorplan and L1 against its budget. Times differ from run to run, so they
    are shown only when asked for. Diffs and listings that do not fit are cut, and say how much is missing; `cut` says
    where they are complete. `remarks` is HTML below the head.
    """
    drawings: list[str] = []
    if plan.graph:
        drawings.append(_section("Tile dataflow", cb_graph_svg(plan)))
    pair: list[str] = []
    if plan.partition:
        pair.append(_section("Cores", core_map_svg(target, plan.partition, plan.shared, partials=plan.partials)))
    if plan.buffers and target:
        pair.append(_section("L1 per core", l1_map_svg(plan, target)))
    if pair:
        drawings.append(f'<div class="pair">{"".join(pair)}</div>')
    head = _head(trace, plan_facts(plan, target)) + remarks
    rows = with_parts(trace.steps)
    shells = [_shell(step, is_part, times) for step, is_part in rows]
    skeleton = len((head + "".join(drawings).replace(svg_style(), "") + html_style()).encode()) + sum(
        len(shell.encode()) + 40 for shell in shells
    )
    room = max(_LARGEST_BYTES - skeleton - 1_500, 10_000)
    listings = {name: listing for name, listing in trace.files.items() if name in _KERNEL_FILES}
    kernels = _files({"kernel source": trace.source, **listings}, int(room * _KERNEL_SHARE))
    room -= len(kernels.encode())
    steps = _steps(rows, shells, room)
    room -= len(steps.encode()) - sum(map(len, shells))
    host = _files({name: listing for name, listing in trace.files.items() if name not in _KERNEL_FILES}, room)
    files = f'<h4>Code</h4><div class="files">{kernels}{host}</div>'
    # The page's own style covers its drawings.
    shown = "".join(drawings).replace(svg_style(), "")
    content = head + steps + shown + files + ORIGIN_NOTE + cut
    return fragment(content_id("ttx", content), f"exploration of {trace.kernel}", content)


def exploration_text(trace: Trace, plan: Plan, target: Target | None = None, *, times: bool = False) -> str:
    """The steps with their changes, then cores, circular buffers, L1 and files. Times only when asked for."""
    title = [visible(trace.kernel), visible(trace.target), source_location(trace)]
    lines = ["  ".join(text for text in title if text), ""]
    lines += _step_table([step for step, _ in with_parts(trace.steps)], times)
    if failed := next((step.error for step in trace.steps if step.error), None):
        where = f"{visible(str(failed.span))}: " if failed.span else ""
        lines += [
            "",
            f"✖ {visible(failed.kind)}: {where}"
            + "\n  ".join(visible(line) for line in coded(failed.message, failed.code).splitlines()),
        ]
        lines += [f"  hint: {visible(coded(failed.hint, failed.code))}"] if failed.hint else []
    facts = [*([("passes", tally(trace.steps))] if trace.steps else []), *plan_facts(plan, target)]
    if trace.files:
        facts.append(
            ("files", ", ".join(f"{visible(name)} {len(file.lines)}" for name, file in trace.files.items()) + " lines")
        )
    if facts:
        width = max(len(name) for name, _ in facts)
        lines += ["", *(f"{name:<{width}}  {value}" for name, value in facts)]
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


def _head(trace: Trace, facts: list[tuple[str, str]]) -> str:
    where = source_location(trace)
    location = f' <code class="q">{escape(where)}</code>' if where else ""
    failed = next((leaf for step in trace.steps for leaf in step.leaves if leaf.error), None)
    result = tally(trace.steps)
    if failed:
        result = f'<span class="bad">✖</span> stopped at {escape(failed.letter)} {escape(failed.name)}'
    rows = "".join(f"<tr><td>{defined(name)}</td><td>{escape(value)}</td></tr>" for name, value in facts)
    table = f'<table class="t facts" aria-label="facts">{rows}</table>' if rows else ""
    return (
        f'<div class="head"><h3>{escape(trace.kernel)}</h3> <span>{escape(trace.target)}</span>{location}'
        f' <span class="q">{result}</span></div>{table}'
    )


def _section(title: str, drawing: str) -> str:
    head = f"<summary><b>{escape(title)}</b></summary>"
    return f'<details open class="drawn">{head}<div class="body scroll">{drawing}</div></details>'


def _steps(rows: Sequence[tuple[StepRecord, bool]], shells: Sequence[str], room_bytes: int) -> str:
    """The rows of the steps and of their parts. A step whose parts are shown leaves the diffs to them."""
    heads = [_step_head(step) for step, _ in rows]
    room_bytes -= sum(len(head.encode()) for head in heads)
    bodies = dict(enumerate(heads))
    waiting = sorted(
        (number for number, (step, is_part) in enumerate(rows) if is_part or not _shown_parts(step)),
        key=lambda number: _diff_size(rows[number][0]),
    )
    # Small diffs first: what they leave of their share goes to the larger ones.
    for position, number in enumerate(waiting):
        share = max(room_bytes // (len(waiting) - position), _SMALLEST_TABLE_BYTES + 2 * _FRAME_BYTES)
        diff = _step_diff(rows[number][0], min(share, room_bytes))
        bodies[number] += diff
        room_bytes -= len(diff.encode())
    markup: list[str] = []
    for stage, numbers in groupby(range(len(rows)), key=lambda number: rows[number][0].stage):
        markup.append(f"<h4>{escape(stage)}</h4>")
        markup.extend(shells[number].replace(_BODY, bodies[number]) for number in numbers)
    return f'<div class="steps">{"".join(markup)}</div>'


def _shown_parts(step: StepRecord) -> list[StepRecord]:
    return [part for part, is_part in with_parts([step]) if is_part]


def _diff_size(step: StepRecord) -> int:
    """Roughly how many bytes the diff of a step takes."""
    plan = sum(len(value) for _, value in flat_plan(step.plan_after)) if step.changed_plan else 0
    return plan + (len(step.before.text) + len(step.after.text) if step.changed_ir else 0)


def _step_head(step: StepRecord) -> str:
    """What the step does, its options, and which of its parts did something."""
    options = ", ".join(f"{name}={inline_value(value)}" for name, value in step.options.items())
    return (
        (f'<p class="pre m">{paragraphs(text)}</p>' if (text := prose(step)) else "")
        + (f'<p><span class="q">options</span> <code>{escape(options)}</code></p>' if options else "")
        + (f'<p class="q">{_of_parts(step)}</p>' if step.parts else "")
    )


def _of_parts(step: StepRecord) -> str:
    shown = ", ".join(escape(part.letter) for part in _shown_parts(step))
    if not shown:
        return f"None of its {len(step.parts)} parts changes anything."
    return f"Of its {plural(len(step.parts), 'part')}, these change something or fail: {shown}. Their diffs are below."


def _step_diff(step: StepRecord, room_bytes: int) -> str:
    room_bytes -= 2 * _FRAME_BYTES
    if room_bytes < _SMALLEST_TABLE_BYTES:
        error = error_html(step.error) if step.error else ""
        note = '<p class="q">The diff is too long for this page; <code>diff()</code> of this step shows it.</p>'
        return error + note
    return step_body(step, layout="unified", max_rows=400, max_plan_rows=_PLAN_ROWS, max_bytes=room_bytes, context=2)


# Stands for the content of a row until the room for it is known; no text has it, for all are escaped.
_BODY = "<body>"


def _shell(step: StepRecord, is_part: bool, times: bool) -> str:
    """The row of a step without its content."""
    glyph, meaning = status(step)
    state = {"✖": "bad", "○": "q"}.get(glyph, "tilde")
    milliseconds = f' <span class="ms">{1000 * step.seconds:.1f} ms</span>' if times else ""
    classes = " ".join(["part"] * is_part + ["noop"] * (glyph == "○"))
    attributes = (" open" if step.error and not step.parts else "") + (f' class="{classes}"' if classes else "")
    return (
        f"<details{attributes}><summary>"
        f'<span class="k {state}" role="img" aria-label="{meaning}" title="{meaning}">{glyph}</span> '
        f'<span class="letter">{escape(step.letter)}</span> <span class="name">{escape(step.name)}</span> '
        f'<span class="ir">{_labelled("IR", counts_html(counts(ir_rows(step))))}</span> '
        f'<span class="pl">{_labelled("plan", counts_html(counts(plan_rows(step))))}</span>{milliseconds} '
        f'<span class="what">{escape(step.summary)}</span></summary><div class="body">{_BODY}</div></details>'
    )


def _labelled(label: str, content: str) -> str:
    return content if "·" in content else f'<span class="q">{label}</span> {content}'


def _files(files: dict[str, Listing], room_bytes: int) -> str:
    """The listings in order. Small ones come first in sharing the room; one without room only says how long it is."""
    tables: dict[str, str] = {}
    waiting = sorted(
        (name for name, listing in files.items() if listing.lines), key=lambda name: len(files[name].lines)
    )
    for position, name in enumerate(waiting):
        share = room_bytes // (len(waiting) - position) - _FRAME_BYTES
        tables[name] = '<p class="q">This file is too long for this page.</p>'
        if share >= _SMALLEST_TABLE_BYTES:
            tables[name] = code_table(files[name], max_bytes=share, label=name)
        room_bytes -= len(tables[name].encode()) + _FRAME_BYTES
    return "".join(
        f'<details><summary><code>{escape(name)}</code> <span class="q">{plural(len(listing.lines), "line")}</span>'
        f'</summary><div class="body">{tables[name]}</div></details>'
        for name, listing in files.items()
        if name in tables
    )
