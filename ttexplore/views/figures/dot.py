"""The dataflow and the passes as graphs in Graphviz's language, for papers and slides."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ttexplore.plan import Plan
from ttexplore.record import StepRecord, Trace
from ttexplore.views.markup import byte_size, plural, visible
from ttexplore.views.steps.facts import with_parts
from ttexplore.views.steps.rows import counts, ir_rows, plan_rows

_STYLE = ('node [fontname="Helvetica", fontsize=11, shape=box];', 'edge [fontname="Helvetica", fontsize=10];')
_SHAPES = {"tensor": "box", "circular_buffer": "cylinder", "kernel": "component"}


def dataflow_dot(plan: Plan) -> str:
    """Tensors, kernels and circular buffers; edges carry tiles per work item. Empty before C3."""
    lines: list[str] = []
    buffers = {buffer.name: buffer for buffer in plan.buffers}
    layouts = {layout.name: layout for layout in plan.layouts}
    for node in plan.graph.nodes if plan.graph else ():
        label = [node.name]
        if node.name in buffers:
            buffer = buffers[node.name]
            number = "" if buffer.index is None else f"CB {buffer.index}, "
            label.append(
                f"{number}{buffer.data_format}, {plural(buffer.pages, 'page')}, {byte_size(buffer.total_bytes)}"
            )
        elif node.name in layouts:
            layout = layouts[node.name]
            label.append(f"{' × '.join(map(str, layout.shape))} {layout.data_format}, {layout.memory}")
        lines.append(f"{_quoted(node.name)} [label={_quoted(*label)}, shape={_SHAPES[node.kind]}];")
    for edge in plan.graph.edges if plan.graph else ():
        tiles = "varies" if edge.tiles_per_item is None else f"{edge.tiles_per_item:,}"
        lines.append(f"{_quoted(edge.source)} -> {_quoted(edge.target)} [label={_quoted(tiles)}];")
    return _graph(f"dataflow of {plan.kernel}", "LR", lines)


def passes_dot(trace: Trace) -> str:
    """The passes in order, by stage, each with what it decides (the plan) and what it rewrites (the IR). A pass with
    parts is a box around those that did something."""
    lines: list[str] = []
    stages: dict[str, list[StepRecord]] = {}
    for step in trace.steps:
        stages.setdefault(step.stage, []).append(step)
    for position, (stage, steps) in enumerate(stages.items()):
        lines += [f"subgraph cluster_{position} {{", f"label={_quoted(stage)};", 'color="gray60";']
        for step in steps:
            parts = _inner(step)
            if parts == [step]:
                lines.append(_step(step))
                continue
            title = _quoted(f"{step.letter} {step.name}")
            lines += [f"subgraph cluster_{position}_{len(lines)} {{", f"label={title};", *map(_step, parts), "}"]
        lines.append("}")
    drawn = [part for step in trace.steps for part in _inner(step)]
    for before, after in pairwise(drawn):
        lines.append(f"{_quoted(before.letter)} -> {_quoted(after.letter)};")
    return _graph(f"passes of {trace.kernel} on {trace.target}", "TB", lines)


def _inner(step: StepRecord) -> list[StepRecord]:
    """The parts of a step that did something, or the step itself."""
    return [part for part, is_part in with_parts([step]) if is_part] or [step]


def _step(step: StepRecord) -> str:
    label = [f"{step.letter} {step.name}"]
    if step.changed_plan:
        label.append(f"decides: plan {counts(plan_rows(step))}")
    if step.changed_ir:
        label.append(f"rewrites: IR {counts(ir_rows(step))}")
    if step.error:
        label.append(f"failed: {step.error.kind}")
    style = (
        ', style=bold, color="red3"' if step.error else "" if step.changed_plan or step.changed_ir else ", style=dashed"
    )
    return f"{_quoted(step.letter)} [label={_quoted(*label)}{style}];"


def _graph(name: str, direction: str, lines: Sequence[str]) -> str:
    body = "".join(f"  {line}\n" for line in (f"rankdir={direction};", *_STYLE, *lines))
    return f"digraph {_quoted(name)} {{\n{body}}}\n"


def _quoted(*lines: str) -> str:
    """Lines as one quoted string. Only backslashes and quotes mean anything in it, and neither is left to."""
    escaped = (visible(line).replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return '"' + "\\n".join(escaped) + '"'
