"""The predicted time of a program: what bounds it, who works and who waits, and how far it is from the roofline."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ttexplore.views.figures.axes import LogAxis, grid
from ttexplore.views.figures.svg import drawing, hatch_pattern, path, rectangle, text, tooltip
from ttexplore.views.markup import content_id, escape, plural, shortened
from ttexplore.views.runs.times import duration
from ttexplore.views.theme import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILLION, fragment

_WIDTH = 690
_LEFT, _BAR, _ROW = 118, 380, 22
# Below this share of the time, resources are only listed.
_LEAST_SHARE = 0.01
_WORKS = "works"
# What a processor does in its time: the words of the legend, the colour, and what stands out on it.
_PARTS: dict[str, tuple[str, str, str]] = {
    _WORKS: ("works", BLUE, "#ffffff"),
    "buffer": ("waits for pages or room in a circular buffer", ORANGE, "#000000"),
    "semaphore": ("waits for another core", PURPLE, "#000000"),
    "registers": ("waits for registers", SKY, "#000000"),
    "read": ("waits for its reads", GREEN, "#000000"),
    "write": ("waits for its writes", VERMILLION, "#000000"),
}
# So many pixels wide is a share in per cent, and the name of a part beside it.
_SHARE_WIDTH, _CHARACTER = 32, 7
_SVG_STYLE = """
.ttx-svg .all{fill:var(--ttx-change)}
.ttx-svg .freed{fill:var(--ttx-change);opacity:.55}
.ttx-svg .peak{fill:var(--ttx-muted)}
"""


@dataclass(frozen=True, slots=True)
class ProcessorBar:
    """The microseconds in which a processor worked and, by reason, waited, until its end at `end_us`."""

    name: str
    busy_us: float
    waits_us: Mapping[str, float]
    end_us: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """The predicted time of a launch in microseconds.

    `gains_us` is what it would save if one resource were free, `bound` the one that saves most. `processors` are those
    of `core`, in logical coordinates: one of the `last` cores that end last, of `cores`. `facts` are names and values
    to show beside.
    """

    title: str
    us: float
    bound: str
    gains_us: Mapping[str, float]
    compute_peak_us: float
    dram_peak_us: float
    processors: tuple[ProcessorBar, ...]
    core: tuple[int, int]
    last: int
    cores: int
    facts: tuple[tuple[str, str], ...]

    @property
    def summary(self) -> str:
        share = self.compute_peak_us / self.us
        return f"{duration(self.us)} (estimate), bound by {self.bound}, {share:.0%} of the compute peak"


# One launch


def gains_svg(prediction: Prediction, salt: str = "") -> str:
    """A bar for the predicted time, one for each resource that would shorten it if it were free, and the two peaks.

    `salt` keeps equal drawings of one page apart.
    """
    scale = _BAR / max(prediction.us, prediction.compute_peak_us, prediction.dram_peak_us)
    shown = [(name, us) for name, us in prediction.gains_us.items() if us >= _LEAST_SHARE * prediction.us]
    shown.sort(key=lambda gain: -gain[1])
    small = [name for name in prediction.gains_us if name not in dict(shown)]
    content: list[str] = []
    told = [f"the estimate is {duration(prediction.us)}"]
    y = 44
    content += _bar_row(y, "estimate", prediction.us * scale, "all", duration(prediction.us))
    for name, us in shown:
        y += _ROW
        rest, saved = prediction.us - us, f"saves {us / prediction.us:.0%}"
        content += _bar_row(y, f"{name} free", rest * scale, "freed", f"{duration(rest)}, {saved}", us * scale)
        told.append(f"{duration(rest)} if {name} were free")
    y += 8
    for name, us in (("compute peak", prediction.compute_peak_us), ("DRAM peak", prediction.dram_peak_us)):
        y += _ROW
        content += _bar_row(y, name, us * scale, "peak", duration(us))
        told.append(f"{name} {duration(us)}")
    if small:
        y += _ROW
        content.append(text(_LEFT, y, f"less than {_LEAST_SHARE:.0%} each: {', '.join(small)}", "s"))
    title = "What bounds it, and what would help"
    return _drawn("ttx-gains", salt, title, "; ".join(told), y + 10, content)


def _bar_row(y: float, label: str, width: float, kind: str, value: str, saved: float = 0.0) -> list[str]:
    row = [text(_LEFT - 8, y, label, anchor="end"), rectangle(_LEFT, y - 12, max(width, 1), 15, kind)]
    if saved:
        row.append(rectangle(_LEFT + width, y - 12, saved, 15, fill="url(#HATCH)"))
    return [*row, text(_LEFT + width + saved + 8, y, value, "s")]


def processors_svg(prediction: Prediction, salt: str = "") -> str:
    """For each processor of one core, how long it works and for what it waits: shares, not the order in time.

    `salt` keeps equal drawings of one page apart.
    """
    scale = _BAR / max(prediction.us, max((processor.end_us for processor in prediction.processors), default=0.0))
    content: list[str] = []
    told: list[str] = []
    used: list[str] = []
    y = 34
    for processor in prediction.processors:
        y += _ROW
        spent_on = {_WORKS: processor.busy_us, **processor.waits_us}
        spent = [(name, spent_on[name]) for name in _PARTS if spent_on.get(name, 0.0) > 0]
        spent += [(name, us) for name, us in spent_on.items() if name not in _PARTS and us > 0]
        content.append(text(_LEFT - 8, y, processor.name, anchor="end"))
        content.append(path(f"M{_LEFT} {y - 4.5}h{prediction.us * scale:.1f}", "rule"))
        x = float(_LEFT)
        for name, us in spent:
            content.append(_segment(x, y, us * scale, name, us, us / prediction.us))
            x += us * scale
        used += [name for name, _ in spent if name not in used]
        content.append(
            text(_LEFT + prediction.us * scale + 8, y, f"works {processor.busy_us / prediction.us:.0%}", "s")
        )
        told.append(
            f"{processor.name}: {', '.join(f'{_words(name)} {duration(us)}' for name, us in spent) or 'nothing'}"
        )
    x, y = float(_LEFT), y + _ROW + 2
    for name in sorted(used, key=lambda kind: ([*_PARTS].index(kind) if kind in _PARTS else len(_PARTS), kind)):
        width = 16 + 6.2 * len(_words(name))
        if x > _LEFT and x + width > _WIDTH:
            x, y = float(_LEFT), y + 18
        content.append(rectangle(x, y - 10, 11, 11, fill=_colours(name)[0], radius=2))
        content.append(text(x + 16, y, _words(name), "s"))
        x += width + 8
    (column, row), count = prediction.core, plural(prediction.cores, "core")
    title = f"Who works and who waits on core ({column}, {row})"
    many = f"one of the {prediction.last:,} of {count} that end last; " if prediction.cores > 1 else ""
    note = f"{many}shares of {duration(prediction.us)}, not their order"
    return _drawn("ttx-processors", salt, title, "; ".join(told), y + 8, [text(2, 30, note, "s"), *content])


def _segment(x: float, y: float, width: float, name: str, us: float, share: float) -> str:
    fill, ink = _colours(name)
    label, shown = f"{share:.0%}", ""
    if width >= _SHARE_WIDTH + _CHARACTER * (len(name) + 1):
        shown = f"{name} {label}"
    elif width >= _SHARE_WIDTH:
        shown = label
    inside = f'<text class="n" x="{x + width / 2:.1f}" y="{y - 0.5:.1f}" style="fill:{ink}">{escape(shown)}</text>'
    bar = rectangle(x, y - 13, max(width - 0.5, 0.5), 17, fill=fill)
    return f"<g>{tooltip(f'{_words(name)}: {duration(us)}, {label}')}{bar}{inside if shown else ''}</g>"


def _words(name: str) -> str:
    return _PARTS[name][0] if name in _PARTS else f"waits: {name}"


def _colours(name: str) -> tuple[str, str]:
    return _PARTS[name][1:] if name in _PARTS else ("var(--ttx-muted)", "var(--ttx-surface)")


def _drawn(prefix: str, salt: str, title: str, told: str, height: float, content: Sequence[str]) -> str:
    identifier = content_id(prefix, salt, title, *content)
    hatch = f"<defs>{hatch_pattern(identifier + '-h')}</defs>"
    inside = "".join([text(2, 14, title, "b"), *content]).replace("#HATCH", f"#{identifier}-h")
    style = f"<style>{_SVG_STYLE}</style>"
    return drawing(identifier, title, told, _WIDTH, round(height), f"{style}{hatch}{inside}")


def prediction_html(prediction: Prediction) -> str:
    """The whole estimate of one launch as a fragment."""
    content = f'<div class="head"><h3>{escape(prediction.title)}</h3><span>{escape(prediction.summary)}</span></div>'
    return _region(prediction.title, content + _body(prediction))


def predictions_html(title: str, launches: Sequence[Prediction]) -> str:
    """The estimates of the launches of a kernel as a fragment, one under the other; the longest is open."""
    summary = f"{duration(sum(launch.us for launch in launches))} (estimate) for {plural(len(launches), 'launch')}"
    content = f'<div class="head"><h3>{escape(title)}</h3><span>{escape(summary)}</span></div>'
    longest = max((launch.us for launch in launches), default=0.0)
    for number, launch in enumerate(launches):
        opened = " open" if launch.us == longest else ""
        head = f'launch {number}: {escape(launch.title)} <span class="q">{escape(launch.summary)}</span>'
        content += (
            f'<details{opened}><summary>{head}</summary><div class="body">{_body(launch, str(number))}</div></details>'
        )
    return _region(title, content)


def _region(title: str, content: str) -> str:
    return fragment(content_id("ttx-estimate", content), f"estimated time of {title}", content)


def _body(prediction: Prediction, salt: str = "") -> str:
    rows = "".join(f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in prediction.facts)
    drawn = "".join(
        f'<div class="scroll drawn">{figure}</div>'
        for figure in (gains_svg(prediction, salt), processors_svg(prediction, salt))
    )
    return f'{drawn}<div class="drawn"><table class="t facts"><tbody>{rows}</tbody></table></div>'


# Several lowerings beside the roofline


@dataclass(frozen=True, slots=True)
class RoofPoint:
    """A lowering that takes `us`, transfers in `traffic_us` at the peak of DRAM and computes in `compute_us` at the
    peak of its math fidelity."""

    label: str
    us: float
    traffic_us: float
    compute_us: float


_AXIS_LEFT, _AXIS_RIGHT, _AXIS_TOP, _AXIS_BOTTOM = 60, 676, 46, 392
_LINE = 16
_LABEL_CHARACTERS = 40
_ROOF_STYLE = """
.ttx-svg .roof{fill:none;stroke:var(--ttx-text);stroke-width:1.75}
.ttx-svg .limit{fill:none;stroke:var(--ttx-text);stroke-width:1.25;stroke-dasharray:4 3}
.ttx-svg .point{fill:var(--ttx-change);stroke:var(--ttx-surface);stroke-width:1.5}
.ttx-svg .way{fill:none;stroke:var(--ttx-change);stroke-width:1.25;stroke-dasharray:2 3}
.ttx-svg .lead{fill:none;stroke:var(--ttx-muted);stroke-width:.75}
.ttx-svg .mark{fill:none;stroke:var(--ttx-warn);stroke-width:1.5;stroke-dasharray:7 4}
.ttx-svg .halo{paint-order:stroke;stroke:var(--ttx-surface);stroke-width:4px;stroke-linejoin:round}
"""


def roofline_svg(points: Sequence[RoofPoint], marks: Sequence[tuple[str, float]] = ()) -> str:
    """The roofline with times in place of rates: both axes are logarithmic, faster is higher, and less traffic is
    further right. A program is on the slope if it takes just the time of its transfers, and on the flat part if it
    takes that of its computations. `marks` are times of others, as lines.

    Points need times above 0; traffic may be 0.
    """
    times = [point.us for point in points] + [us for _, us in marks]
    computing = sorted({point.compute_us for point in points if point.compute_us > 0})
    traffic = [point.traffic_us for point in points if point.traffic_us > 0]
    x = LogAxis.of(traffic + computing or times, _AXIS_RIGHT, _AXIS_LEFT)
    y = LogAxis.of(times + (computing or traffic), _AXIS_TOP, _AXIS_BOTTOM)
    told = "; ".join(
        [f"{number} {point.label}: {duration(point.us)}, compute peak {duration(point.compute_us)}, DRAM peak "
         f"{duration(point.traffic_us)}" for number, point in enumerate(points, 1)]
        + [f"{label}: {duration(us)}" for label, us in marks]
    )  # fmt: skip
    title = "Roofline"
    shapes = [text(2, 14, title, "b"), text(2, 31, "time, µs: faster is higher", "s"), *grid(x, y)]
    shapes += _roofs(computing, x, y)
    labels: list[tuple[float, float, str]] = []
    for label, us in marks:
        shapes.append(path(f"M{_AXIS_LEFT} {y.at(us):.1f}H{_AXIS_RIGHT}", "mark"))
        shown = f"{shortened(label, _LABEL_CHARACTERS)}: {duration(us)}"
        shapes.append(text(_AXIS_LEFT + 6, y.at(us) - 5, shown, "s", "halo"))
    centers = [
        (x.at(point.traffic_us) if point.traffic_us > 0 else float(_AXIS_RIGHT), y.at(point.us)) for point in points
    ]
    if len(centers) > 1:
        shapes.append(path("M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in centers), "way"))
    for number, (point, (a, b)) in enumerate(zip(points, centers, strict=True), 1):
        labels.append((a, b, f"{number} {shortened(point.label, _LABEL_CHARACTERS)}: {duration(point.us)}"))
        share = f"{point.compute_us / point.us:.0%} of the compute peak"
        hint = tooltip(f"{point.label}: {duration(point.us)}, {share}; DRAM at its peak: {duration(point.traffic_us)}")
        shapes.append(f'<circle class="point" cx="{a:.1f}" cy="{b:.1f}" r="5">{hint}</circle>')
    shapes += _labels(labels)
    below = "transfers at the peak of DRAM, µs: fewer bytes are further right"
    shapes.append(text(_AXIS_RIGHT, _AXIS_BOTTOM + 32, below, "s", anchor="end"))
    identifier = content_id("ttx-roofline", *shapes)
    content = "".join(shapes).replace("#HATCH", f"#{identifier}-h").replace("#PLOT", f"#{identifier}-p")
    plot = rectangle(_AXIS_LEFT, _AXIS_TOP, _AXIS_RIGHT - _AXIS_LEFT, _AXIS_BOTTOM - _AXIS_TOP)
    clip = f'<clipPath id="{identifier}-p">{plot}</clipPath>'
    defs = f"<style>{_ROOF_STYLE}</style><defs>{hatch_pattern(identifier + '-h')}{clip}</defs>"
    return drawing(identifier, title, told, _WIDTH, _AXIS_BOTTOM + 40, defs + content)


def _roofs(computing: Sequence[float], x: LogAxis, y: LogAxis) -> list[str]:
    """The slope of DRAM, the flat part of each compute peak, and what lies behind the furthest of them."""
    most, least = math.exp(x.high), computing[0] if computing else math.exp(x.low)
    corner = f"{x.at(least):.1f} {y.at(least):.1f}"
    slope = f"M{x.at(most):.1f} {y.at(most):.1f}L{corner}H{_AXIS_RIGHT}"
    shapes = [
        f'<g clip-path="url(#PLOT)"><path d="{slope}V{_AXIS_TOP}H{_AXIS_LEFT}z" fill="url(#HATCH)"/>'
        f"{path(slope, 'roof')}</g>"
    ]
    # Where the slope is in sight.
    low, high = max(math.log(least), y.low), min(x.high, y.high)
    if low < high:
        middle = math.exp((low + high) / 2)
        shapes.append(text(x.at(middle) - 10, y.at(middle) - 4, "DRAM at its peak", "s", "halo", anchor="end"))
    for number, us in enumerate(computing):
        if number:
            shapes.append(path(f"M{max(x.at(us), _AXIS_LEFT):.1f} {y.at(us):.1f}H{_AXIS_RIGHT}", "limit"))
        shapes.append(text(_AXIS_RIGHT - 4, y.at(us) - 5, f"compute peak: {duration(us)}", "s", "halo", anchor="end"))
    return shapes


def _labels(labels: Sequence[tuple[float, float, str]]) -> list[str]:
    """Labels beside their points, at the side with more room, moved down where they would cover one another."""
    shapes: list[str] = []
    for at_left in (True, False):
        free = -math.inf
        side = [label for label in labels if (label[0] > (_AXIS_LEFT + _AXIS_RIGHT) / 2) == at_left]
        for x, y, label in sorted(side, key=lambda label: label[1]):
            label_y = max(y, free)
            free = label_y + _LINE
            way = -1 if at_left else 1
            if label_y - y > 2:
                shapes.append(path(f"M{x:.1f} {y:.1f}L{x + 14 * way:.1f} {label_y:.1f}", "lead"))
            shapes.append(text(x + 16 * way, label_y + 4, label, "halo", anchor="end" if at_left else "start"))
    return shapes
