"""The golden file of a pass: small kernels, and the IR and the plan before and after the pass."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

import ttexplore as ttx
from ttexplore.passes.pipeline import PIPELINE
from ttexplore.record import Listing, StepRecord
from ttexplore.views.steps.plan_lines import flat_plan


@dataclass(frozen=True)
class Shown:
    """A kernel that shows one thing that a pass does, in a few words, and the options that it is lowered with."""

    what: str
    kernel: Any
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


PassGolden = Callable[..., None]


@pytest.fixture
def pass_golden(golden: Callable[[str, str], None]) -> PassGolden:
    """``pass_golden("C1", Shown(...), ...)`` compares what pass C1 does with tests/golden/passes/C1_<its name>.txt."""

    def check(letter: str, *cases: Shown) -> None:
        every = [one for step in PIPELINE for one in (step, *step.parts)]
        title = next(f"{one.letter} {one.name}: {one.summary}" for one in every if one.letter == letter)
        parts = [title]
        shown: Any = None
        for case in cases:
            exploration = ttx.explore(case.kernel, options=case.options)
            assert exploration.error is None, exploration.error
            step = exploration.steps[letter].record
            options = ", ".join(f"{name}={value!r}" for name, value in case.options.items())
            parts.append(f"# {case.what}{': ' if options else ''}{options}")
            source = ["kernel:", _indented(textwrap.dedent(exploration.kernel.source.text))]
            parts += [*(source if case.kernel is not shown else ["kernel: the same"]), *_ir(step), *_plan(step)]
            shown = case.kernel
        golden(f"passes/{title.partition(':')[0].replace(' ', '_')}.txt", "\n\n".join(parts) + "\n")

    return check


def _indented(text: str) -> str:
    return textwrap.indent(text.rstrip(), "    ")


def _ir(step: StepRecord) -> list[str]:
    """The functions that the pass changes, before and after."""
    before, after = _functions(step.before), _functions(step.after)
    if before == after:
        return ["IR: unchanged"]
    changed = [_indented("\n\n".join(one for one in these if one not in others))
               for these, others in ((before, after), (after, before))]  # fmt: skip
    same = [f"(unchanged: {', '.join(one.partition('(')[0][4:] for one in before if one in after)})"]
    return ["IR before:", changed[0], "IR after:", changed[1], *(same if set(before) & set(after) else [])]


def _functions(listing: Listing) -> list[str]:
    return listing.text.rstrip().split("\n\n")


def _plan(step: StepRecord) -> list[str]:
    """The lines of the plan that the pass removes and adds, without the lines of this file that they come from."""
    before, after = (
        [re.sub(r",? origin \S+", "", f"{path}: {value}") for path, value in flat_plan(plan) if ".origin" not in path]
        for plan in (step.plan_before, step.plan_after)
    )
    lines = [f"- {line}" for line in before if line not in after] + [
        f"+ {line}" for line in after if line not in before
    ]
    return ["plan:", _indented("\n".join(lines))] if lines else ["plan: unchanged"]
