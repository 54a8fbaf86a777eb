"""The law that each line that a step changes was made, or taken away, by a rule that the step names."""

from __future__ import annotations

from ttexplore.record import Line, StepRecord
from ttexplore.views.steps.rows import ir_rows


def check_changed_lines(step: StepRecord) -> None:
    """Of each line that a step, or a part of one, makes or takes away, the step says by which rule; a line that a rule
    made comes from the lines that it was made of."""
    assert not step.changed_ir or step.firings, f"{step.letter} changes lines by no rule"
    before, after = _by_node(step.before.lines), _by_node(step.after.lines)
    replaced = {node for firing in step.firings for node in firing.before}
    made = {node for firing in step.firings for node in firing.after}
    assert made <= after.keys()
    assert replaced <= before.keys()
    for row in ir_rows(step) if step.firings else ():
        if row.kind in ("added", "changed") and row.after and row.after.node is not None:
            assert row.after.node in made, (step.letter, row.after.text)
        if row.kind in ("removed", "changed") and row.before and row.before.node is not None:
            assert row.before.node in replaced, (step.letter, row.before.text)
    for firing in step.firings:
        assert firing.after or firing.before, (step.letter, firing)
        assert step.rules[firing.rule].endswith("."), firing.rule
        places = {origin.span for node in firing.before for origin in before[node].origins}
        for node in firing.after if firing.before else ():
            own = {origin.span for origin in after[node].origins}
            assert own & places, (step.letter, firing.rule, after[node], places)


def _by_node(lines: tuple[Line, ...]) -> dict[int, Line]:
    return {line.node: line for line in lines if line.node is not None}
