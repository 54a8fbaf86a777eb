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


def gains_svg(found: Prediction, place: str = "") -> str:
    """A bar for the predicted time, one for each resource that would shorten it if it were free, and the two peaks.

    `place` keeps equal drawings of one page apart.
    """
    scale = _BAR / max(found.us, found.compute_peak_us, found.dram_peak_us)
    shown = [(name, us) for name, us in found.gains_us.items() if us >= _LEAST_SHARE * found.us]
    shown.sort(key=lambda one: -one[1])
    others = [name for name in found.gains_us if name not in dict(shown)]
    content: list[str] = []
    told = [f"the estimate is {duration(found.us)}"]
    y = 44
    content += _bar_row(y, "estimate", found.us * scale, "all", duration(found.us))
    for name, us in shown:
        y += _ROW
        left, saved = found.us - us, f"saves {us / found.us:.0%}"
        content += _bar_row(y, f"{name} free", left * scale, "freed", f"{duration(left)}, {saved}", us * scale)
        told.append(f"{duration(left)} if {name} were free")
    y += 8
    for name, us in (("compute peak", found.compute_peak_us), ("DRAM peak", found.dram_peak_us)):
        y += _ROW
        content += _bar_row(y, name, us * scale, "peak", duration(us))
        told.append(f"{name} {duration(us)}")
    if others:
        y += _ROW
        content.append(text(_LEFT, y, f"less than {_LEAST_SHARE:.0%} each: {', '.join(others)}", "s"))
    title = "What bounds it, and what would help"
    return _drawn("ttx-gains", place, title, "; ".join(told), y + 10, content)


def _bar_row(y: float, label: str, width: float, kind: str, value: str, saved: float = 0.0) -> list[str]:
    made = [text(_LEFT - 8, y, label, anchor="end"), rectangle(_LEFT, y - 12, max(width, 1), 15, kind)]
    if saved:
        made.append(rectangle(_LEFT + width, y - 12, saved, 15, fill="url(#HATCH)"))
    return [*made, text(_LEFT + width + saved + 8, y, value, "s")]


def processors_svg(found: Prediction, place: str = "") -> str:
    """For each processor of one core, how long it works and for what it waits: shares, not the order in time.

    `place` keeps equal drawings of one page apart.
    """
    scale = _BAR / max(found.us, max((one.end_us for one in found.processors), default=0.0))
    content: list[str] = []
    told: list[str] = []
    used: list[str] = []
    y = 34
    for one in found.processors:
        y += _ROW
        parts = {_WORKS: one.busy_us, **one.waits_us}
        spent = [(name, parts[name]) for name in _PARTS if parts.get(name, 0.0) > 0]
        spent += [(name, us) for name, us in parts.items() if name not in _PARTS and us > 0]
        content.append(text(_LEFT - 8, y, one.name, anchor="end"))
        content.append(path(f"M{_LEFT} {y - 4.5}h{found.us * scale:.1f}", "rule"))
        x = float(_LEFT)
        for name, us in spent:
            content.append(_segment(x, y, us * scale, name, us, us / found.us))
            x += us * scale
        used += [name for name, _ in spent if name not in used]
        content.append(text(_LEFT + found.us * scale + 8, y, f"works {one.busy_us / found.us:.0%}", "s"))
        told.append(f"{one.name}: {', '.join(f'{_words(name)} {duration(us)}' for name, us in spent) or 'nothing'}")
    x, y = float(_LEFT), y + _ROW + 2
    for name in sorted(used, key=lambda one: ([*_PARTS].index(one) if one in _PARTS else len(_PARTS), one)):
        width = 16 + 6.2 * len(_words(name))
        if x > _LEFT and x + width > _WIDTH:
            x, y = float(_LEFT), y + 18
        content.append(rectangle(x, y - 10, 11, 11, fill=_colours(name)[0], radius=2))
        content.append(text(x + 16, y, _words(name), "s"))
        x += width + 8
    (column, row), count = found.core, plural(found.cores, "core")
    title = f"Who works and who waits on core ({column}, {row})"
    many = f"one of the {found.last:,} of {count} that end last; " if found.cores > 1 else ""
    note = f"{many}shares of {duration(found.us)}, not their order"
    return _drawn("ttx-processors", place, title, "; ".join(told), y + 8, [text(2, 30, note, "s"), *content])


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


def _drawn(prefix: str, place: str, title: str, told: str, height: float, content: Sequence[str]) -> str:
    identifier = content_id(prefix, place, title, *content)
    hatch = f"<defs>{hatch_pattern(identifier + '-h')}</defs>"
    inside = "".join([text(2, 14, title, "b"), *content]).replace("#HATCH", f"#{identifier}-h")
    style = f"<style>{_SVG_STYLE}</style>"
    return drawing(identifier, title, told, _WIDTH, round(height), f"{style}{hatch}{inside}")


def prediction_html(found: Prediction) -> str:
    """The whole estimate of one launch as a fragment."""
    content = f'<div class="head"><h3>{escape(found.title)}</h3><span>{escape(found.summary)}</span></div>'
    return _region(found.title, content + _body(found))


def predictions_html(title: str, launches: Sequence[Prediction]) -> str:
    """The estimates of the launches of a kernel as a fragment, one under the other; the longest is open."""
    summary = f"{duration(sum(one.us for one in launches))} (estimate) for {plural(len(launches), 'launch')}"
    content = f'<div class="head"><h3>{escape(title)}</h3><span>{escape(summary)}</span></div>'
    longest = max((one.us for one in launches), default=0.0)
    for number, one in enumerate(launches):
        opened = " open" if one.us == longest else ""
        head = f'launch {number}: {escape(one.title)} <span class="q">{escape(one.summary)}</span>'
        content += (
            f'<details{opened}><summary>{head}</summary><div class="body">{_body(one, str(number))}</div></details>'
        )
    return _region(title, content)


def _region(title: str, content: str) -> str:
    return fragment(content_id("ttx-estimate", content), f"estimated time of {title}", content)


def _body(found: Prediction, place: str = "") -> str:
    rows = "".join(f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in found.facts)
    drawn = "".join(
        f'<div class="scroll drawn">{one}</div>' for one in (gains_svg(found, place), processors_svg(found, place))
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
    times = [one.us for one in points] + [us for _, us in marks]
    computing = sorted({one.compute_us for one in points if one.compute_us > 0})
    traffic = [one.traffic_us for one in points if one.traffic_us > 0]
    x = LogAxis.of(traffic + computing or times, _AXIS_RIGHT, _AXIS_LEFT)
    y = LogAxis.of(times + (computing or traffic), _AXIS_TOP, _AXIS_BOTTOM)
    told = "; ".join(
        [f"{number} {one.label}: {duration(one.us)}, compute peak {duration(one.compute_us)}, DRAM peak "
         f"{duration(one.traffic_us)}" for number, one in enumerate(points, 1)]
        + [f"{label}: {duration(us)}" for label, us in marks]
    )  # fmt: skip
    title = "Roofline"
    parts = [text(2, 14, title, "b"), text(2, 31, "time, µs: faster is higher", "s"), *grid(x, y)]
    parts += _roofs(computing, x, y)
    labels: list[tuple[float, float, str]] = []
    for label, us in marks:
        parts.append(path(f"M{_AXIS_LEFT} {y.at(us):.1f}H{_AXIS_RIGHT}", "mark"))
        shown = f"{shortened(label, _LABEL_CHARACTERS)}: {duration(us)}"
        parts.append(text(_AXIS_LEFT + 6, y.at(us) - 5, shown, "s", "halo"))
    places = [(x.at(one.traffic_us) if one.traffic_us > 0 else float(_AXIS_RIGHT), y.at(one.us)) for one in points]
    if len(places) > 1:
        parts.append(path("M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in places), "way"))
    for number, (one, (a, b)) in enumerate(zip(points, places, strict=True), 1):
        labels.append((a, b, f"{number} {shortened(one.label, _LABEL_CHARACTERS)}: {duration(one.us)}"))
        share = f"{one.compute_us / one.us:.0%} of the compute peak"
        hint = tooltip(f"{one.label}: {duration(one.us)}, {share}; DRAM at its peak: {duration(one.traffic_us)}")
        parts.append(f'<circle class="point" cx="{a:.1f}" cy="{b:.1f}" r="5">{hint}</circle>')
    parts += _labels(labels)
    below = "transfers at the peak of DRAM, µs: fewer bytes are further right"
    parts.append(text(_AXIS_RIGHT, _AXIS_BOTTOM + 32, below, "s", anchor="end"))
    identifier = content_id("ttx-roofline", *parts)
    content = "".join(parts).replace("#HATCH", f"#{identifier}-h").replace("#PLOT", f"#{identifier}-p")
    plot = rectangle(_AXIS_LEFT, _AXIS_TOP, _AXIS_RIGHT - _AXIS_LEFT, _AXIS_BOTTOM - _AXIS_TOP)
    clip = f'<clipPath id="{identifier}-p">{plot}</clipPath>'
    defs = f"<style>{_ROOF_STYLE}</style><defs>{hatch_pattern(identifier + '-h')}{clip}</defs>"
    return drawing(identifier, title, told, _WIDTH, _AXIS_BOTTOM + 40, defs + content)


def _roofs(computing: Sequence[float], x: LogAxis, y: LogAxis) -> list[str]:
    """The slope of DRAM, the flat part of each compute peak, and what lies behind the furthest of them."""
    most, least = math.exp(x.high), computing[0] if computing else math.exp(x.low)
    corner = f"{x.at(least):.1f} {y.at(least):.1f}"
    slope = f"M{x.at(most):.1f} {y.at(most):.1f}L{corner}H{_AXIS_RIGHT}"
    made = [
        f'<g clip-path="url(#PLOT)"><path d="{slope}V{_AXIS_TOP}H{_AXIS_LEFT}z" fill="url(#HATCH)"/>'
        f"{path(slope, 'roof')}</g>"
    ]
    # Where the slope is in sight.
    low, high = max(math.log(least), y.low), min(x.high, y.high)
    if low < high:
        middle = math.exp((low + high) / 2)
        made.append(text(x.at(middle) - 10, y.at(middle) - 4, "DRAM at its peak", "s", "halo", anchor="end"))
    for number, us in enumerate(computing):
        if number:
            made.append(path(f"M{max(x.at(us), _AXIS_LEFT):.1f} {y.at(us):.1f}H{_AXIS_RIGHT}", "limit"))
        made.append(text(_AXIS_RIGHT - 4, y.at(us) - 5, f"compute peak: {duration(us)}", "s", "halo", anchor="end"))
    return made


def _labels(wanted: Sequence[tuple[float, float, str]]) -> list[str]:
    """Labels beside their points, at the side with more room, moved down where they would cover one another."""
    made: list[str] = []
    for at_left in (True, False):
        free = -math.inf
        side = [one for one in wanted if (one[0] > (_AXIS_LEFT + _AXIS_RIGHT) / 2) == at_left]
        for x, y, label in sorted(side, key=lambda one: one[1]):
            place = max(y, free)
            free = place + _LINE
            way = -1 if at_left else 1
            if place - y > 2:
                made.append(path(f"M{x:.1f} {y:.1f}L{x + 14 * way:.1f} {place:.1f}", "lead"))
            made.append(text(x + 16 * way, place + 4, label, "halo", anchor="end" if at_left else "start"))
    return made
