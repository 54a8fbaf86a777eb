"""How many elements of a result are how far off, as a row of bars small enough for a table."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ttexplore.views.figures.svg import apart, text, tooltip
from ttexplore.views.markup import escape

# One class takes a column of this width; its bar is as wide as its widest number.
_COLUMN, _BAR = 33, 27
_COUNT_HEIGHT, _BAR_HEIGHT, _AXIS_HEIGHT = 11, 20, 14

# Darker is worse; the same eight tints as in the map of errors, of which bars skip the palest.
_BROKEN = "broken"
_PALEST_TINT, _STRONGEST_TINT = 3, 8


def histogram_svg(classes: Sequence[tuple[str, int]], *, passed: bool) -> str:
    """One bar for each class (label, number of elements), the first for elements without an error. Only the bars of a
    comparison that has not `passed` have an alarming hue.

    Heights are logarithmic, since a few large errors matter beside many small ones. The number stands above its bar,
    shortened to three digits; hovering and the label give it in full. Has the width of :func:`histogram_axis_svg`.
    """
    most = max((count for _, count in classes), default=0)
    floor = _COUNT_HEIGHT + _BAR_HEIGHT
    shapes: list[str] = []
    for index, (label, count) in enumerate(classes):
        height = 2 + (_BAR_HEIGHT - 2) * math.log1p(count) / math.log1p(most) if count else 1
        x = index * _COLUMN + (_COLUMN - _BAR) / 2
        shapes.append(
            f'<rect class="{_style(label, index, len(classes)) if count else "none"}" x="{x:g}" '
            f'y="{floor - height:.1f}" width="{_BAR}" height="{height:.1f}">{tooltip(f"{label}: {count:,}")}</rect>'
        )
        if count:
            shapes.append(text(x + _BAR / 2, floor - height - 2.5, compact_count(count), "c"))
    told = ", ".join(f"{label}: {count}" for label, count in classes if count) or "no elements"
    style = "ttx-svg bars" if passed else "ttx-svg bars beyond"
    return (
        f'<svg class="{style}" width="{len(classes) * _COLUMN}" height="{floor}" role="img" '
        f'aria-label="{escape(told)}">{apart("".join(shapes))}</svg>'
    )


def histogram_axis_svg(labels: Sequence[str]) -> str:
    """The labels of the classes, to stand above or below the bars of several histograms."""
    shown = "".join(
        text((index + 0.5) * _COLUMN, 10, label.replace("≤ ", "≤"), "c") for index, label in enumerate(labels)
    )
    # The bars say their labels themselves.
    size = f'width="{len(labels) * _COLUMN}" height="{_AXIS_HEIGHT}"'
    return f'<svg class="ttx-svg bars" {size} aria-hidden="true">{apart(shown)}</svg>'


def compact_count(count: int) -> str:
    """A number of elements in at most four characters: ``999``, ``4.1k``, ``66k``, ``1M``."""
    for unit, size in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if count >= size - size // 2000:
            value = count / size
            return (f"{value:.1f}".removesuffix(".0") if value < 9.95 else f"{value:.0f}") + unit
    return str(count)


def _style(label: str, index: int, classes: int) -> str:
    if index == 0:
        return "x0"
    if label == _BROKEN:
        return "broken"
    share = (index - 1) / max(1, classes - 3)
    return f"x{min(_STRONGEST_TINT, round(_PALEST_TINT + (_STRONGEST_TINT - _PALEST_TINT) * share))}"
