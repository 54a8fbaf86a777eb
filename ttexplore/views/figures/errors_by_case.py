"""The errors of a kernel in several cases, one row each, on an axis that they share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ttexplore.views.figures.axes import LogAxis
from ttexplore.views.figures.svg import drawing, path, text, tooltip
from ttexplore.views.markup import content_id, plural, shortened

_WIDTH, _LEFT, _RIGHT, _TOP, _ROW = 690, 190, 672, 64, 18
_LONGEST_LABEL = 26
_STYLE = """
.ttx-svg .on{fill:var(--ttx-change)}
.ttx-svg .other{fill:none;stroke:var(--ttx-change);stroke-width:1.5}
.ttx-svg .bad{fill:none;stroke:var(--ttx-remove);stroke-width:2}
"""
# Errors of single roundings to the dtypes that tensors have, by name.
_ROUNDINGS = {"bfloat16": 2.0**-9, "float32": 2.0**-24}


@dataclass(frozen=True, slots=True)
class CaseErrors:
    """A case: what it is called and, for each target, its largest relative error, None if it has none, and what became
    of it."""

    called: str
    targets: tuple[tuple[str, float | None, str], ...]


def errors_by_case_svg(cases: Sequence[CaseErrors], kernel: str) -> str:
    """A row for each case with a mark for each target, on a logarithmic axis; exact results stand at its left end, and
    infinite errors at its right. Lines show what one rounding to bfloat16 and to float32 does."""
    names = list(dict.fromkeys(name for case in cases for name, _, _ in case.targets))
    finite = [e for case in cases for _, e, _ in case.targets if e is not None and 0 < e < math.inf]
    told = f"largest errors of {plural(len(cases), 'case')} on {', '.join(names)}"
    bottom = _TOP + _ROW * len(cases)
    axis = LogAxis.of([*finite, *_ROUNDINGS.values()], _LEFT + 40, _RIGHT - 30)
    shapes = [text(2, 14, f"errors of {kernel}", "b"), text(2, 31, "largest error, relative to the largest value", "s")]
    for name, size in _ROUNDINGS.items():
        x = axis.at(size)
        shapes.append(path(f"M{x:.1f} {_TOP - 8}V{bottom}", "rule"))
        shapes.append(text(x, _TOP - 12, f"one rounding to {name}", "s", anchor="middle"))
    for power in range(-8, 1, 2):
        if _LEFT + 40 <= axis.at(10.0**power) <= _RIGHT - 30:
            shapes.append(text(axis.at(10.0**power), bottom + 16, f"1e{power}", "s", anchor="middle"))
    shapes.append(text(_LEFT + 6, bottom + 16, "exact", "s"))
    for row, case in enumerate(cases):
        y = _TOP + _ROW * row + _ROW // 2
        shapes.append(text(_LEFT - 8, y + 4, shortened(case.called, _LONGEST_LABEL), anchor="end"))
        shapes.append(path(f"M{_LEFT} {y}H{_RIGHT}", "rule"))
        for name, error, state in case.targets:
            if error is not None:
                x = _LEFT + 14 if error == 0 else _RIGHT - 12 if error == math.inf else axis.at(error)
                label = f"{case.called} on {name}: {error:.1e}"
                shapes.append(_shape(x, y, names.index(name), failed=state == "failed", label=label))
        missing = dict.fromkeys(state for _, error, state in case.targets if error is None)
        shapes += [text(_RIGHT, y - 3, ", ".join(missing), "s", anchor="end")] if missing else []
    for number, name in enumerate(names):
        x = 2 + 150 * number
        shapes.append(_shape(x + 5, bottom + 34, number, failed=False, label=""))
        shapes.append(text(x + 16, bottom + 38, name, "s"))
    content = f"<style>{_STYLE}</style>{''.join(shapes)}"
    return drawing(content_id("ttx-errors", content), f"errors of {kernel}", told, _WIDTH, bottom + 46, content)


def _shape(x: float, y: float, number: int, *, failed: bool, label: str) -> str:
    """A dot for the first target, a ring for the second, a square for others; a cross where it failed."""
    title = tooltip(label) if label else ""
    if failed:
        return f'<path class="bad" d="M{x - 4:.1f} {y - 4}l8 8m0 -8l-8 8">{title}</path>'
    match number:
        case 0:
            return f'<circle class="on" cx="{x:.1f}" cy="{y}" r="3">{title}</circle>'
        case 1:
            return f'<circle class="other" cx="{x:.1f}" cy="{y}" r="5">{title}</circle>'
        case _:
            return f'<rect class="other" x="{x - 4:.1f}" y="{y - 4}" width="8" height="8">{title}</rect>'
