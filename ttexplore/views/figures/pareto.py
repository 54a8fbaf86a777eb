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


def front(points: Sequence[ParetoPoint]) -> list[ParetoPoint]:
    """The places that no other one beats: smaller in one direction and not larger in the other. From left to right."""
    on_front: list[ParetoPoint] = []
    for point in sorted(points, key=lambda point: (point.x, point.y)):
        if not on_front or point.y < on_front[-1].y:
            on_front.append(point)
    return on_front


def pareto_svg(points: Sequence[ParetoPoint], x_name: str, y_name: str, title: str) -> str:
    """The plane with logarithmic axes: a dot for each place, the front as a line of steps, a ring around the best."""
    usable = [point for point in points if point.x > 0 and point.y > 0]
    on_front = front(usable)
    told = f"{plural(len(usable), 'schedule')}, {len(on_front)} of them on the Pareto front"
    shapes = [text(2, 14, title, "b"), text(2, 31, told, "s")]
    if usable:
        x = LogAxis.of([point.x for point in usable], _LEFT, _RIGHT)
        y = LogAxis.of([point.y for point in usable], _BOTTOM, _TOP)
        shapes += grid(x, y)
        beaten = [point for point in usable if point not in on_front]
        # One path: a thousand elements would be slow.
        shapes.append(path("".join(f"M{x.at(point.x):.1f} {y.at(point.y):.1f}h0" for point in beaten), "dots"))
        shapes.append(path(_steps(on_front, x, y), "front"))
        shapes += [_dot(point, x, y) for point in on_front]
        shapes += [
            f'<circle class="ring" cx="{x.at(point.x):.1f}" cy="{y.at(point.y):.1f}" '
            f'r="7">{tooltip(point.label)}</circle>'
            for point in usable
            if point.best
        ]
    best = next((point for point in usable if point.best), None)
    if best is not None:
        shapes.append(text(_LEFT, _HEIGHT - 4, f"◯ best: {shortened(best.label, _LONGEST_LABEL)}", "s"))
    shapes.append(text(_RIGHT, _BOTTOM + 32, x_name, "s", "t", anchor="end"))
    shapes.append(text(_LEFT + 4, _TOP + 4, y_name, "s", "t"))
    content = f"<style>{_STYLE}</style>{''.join(shapes)}"
    return drawing(content_id("ttx-pareto", content), title, told, _WIDTH, _HEIGHT, content)


def _steps(points: Sequence[ParetoPoint], x: LogAxis, y: LogAxis) -> str:
    start = f"M{x.at(points[0].x):.1f} {y.at(points[0].y):.1f}"
    return start + "".join(f"H{x.at(point.x):.1f}V{y.at(point.y):.1f}" for point in points[1:])


def _dot(point: ParetoPoint, x: LogAxis, y: LogAxis) -> str:
    label = tooltip(f"{point.label}: {axis_number(point.x)}, {axis_number(point.y)}")
    return f'<circle class="on" cx="{x.at(point.x):.1f}" cy="{y.at(point.y):.1f}" r="4">{label}</circle>'
