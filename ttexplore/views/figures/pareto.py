"""Many lowerings as points of a plane, and the front of those that no other one beats in both directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ttexplore.views.figures.axes import LogAxis, axis_number, grid
from ttexplore.views.figures.svg import drawing, path, text, tooltip
from ttexplore.views.markup import content_id, plural, shortened

_WIDTH, _HEIGHT = 690, 392
_LEFT, _RIGHT, _TOP, _BOTTOM = 66, 672, 44, 336
_STYLE = """
.ttx-svg .dots{fill:none;stroke:var(--ttx-muted);stroke-width:5;stroke-linecap:round;opacity:.45}
.ttx-svg .front{fill:none;stroke:var(--ttx-change);stroke-width:1.25}
.ttx-svg .on{fill:var(--ttx-change)}
.ttx-svg .ring{fill:none;stroke:var(--ttx-text);stroke-width:1.5}
"""
_LONGEST_LABEL = 64


@dataclass(frozen=True, slots=True)
class ParetoPoint:
    """A lowering at `x` and `y`, both better where they are smaller, and what it is called."""

    x: float
    y: float
    label: str
    best: bool = False


def front(places: Sequence[ParetoPoint]) -> list[ParetoPoint]:
    """The places that no other one beats: smaller in one direction and not larger in the other. From left to right."""
    found: list[ParetoPoint] = []
    for place in sorted(places, key=lambda one: (one.x, one.y)):
        if not found or place.y < found[-1].y:
            found.append(place)
    return found


def pareto_svg(places: Sequence[ParetoPoint], x_name: str, y_name: str, title: str) -> str:
    """The plane with logarithmic axes: a dot for each place, the front as a line of steps, a ring around the best."""
    usable = [place for place in places if place.x > 0 and place.y > 0]
    on_front = front(usable)
    told = f"{plural(len(usable), 'schedule')}, {len(on_front)} of them on the Pareto front"
    parts = [text(2, 14, title, "b"), text(2, 31, told, "s")]
    if usable:
        x = LogAxis.of([place.x for place in usable], _LEFT, _RIGHT)
        y = LogAxis.of([place.y for place in usable], _BOTTOM, _TOP)
        parts += grid(x, y)
        beaten = [place for place in usable if place not in on_front]
        # One path: a thousand elements would be slow.
        parts.append(path("".join(f"M{x.at(one.x):.1f} {y.at(one.y):.1f}h0" for one in beaten), "dots"))
        parts.append(path(_steps(on_front, x, y), "front"))
        parts += [_dot(place, x, y) for place in on_front]
        parts += [
            f'<circle class="ring" cx="{x.at(one.x):.1f}" cy="{y.at(one.y):.1f}" r="7">{tooltip(one.label)}</circle>'
            for one in usable
            if one.best
        ]
    best = next((place for place in usable if place.best), None)
    if best is not None:
        parts.append(text(_LEFT, _HEIGHT - 4, f"◯ best: {shortened(best.label, _LONGEST_LABEL)}", "s"))
    parts.append(text(_RIGHT, _BOTTOM + 32, x_name, "s", "t", anchor="end"))
    parts.append(text(_LEFT + 4, _TOP + 4, y_name, "s", "t"))
    content = f"<style>{_STYLE}</style>{''.join(parts)}"
    return drawing(content_id("ttx-pareto", content), title, told, _WIDTH, _HEIGHT, content)


def _steps(places: Sequence[ParetoPoint], x: LogAxis, y: LogAxis) -> str:
    start = f"M{x.at(places[0].x):.1f} {y.at(places[0].y):.1f}"
    return start + "".join(f"H{x.at(one.x):.1f}V{y.at(one.y):.1f}" for one in places[1:])


def _dot(place: ParetoPoint, x: LogAxis, y: LogAxis) -> str:
    label = tooltip(f"{place.label}: {axis_number(place.x)}, {axis_number(place.y)}")
    return f'<circle class="on" cx="{x.at(place.x):.1f}" cy="{y.at(place.y):.1f}" r="4">{label}</circle>'
