"""The pictures of an estimate show its figures, to scale, and the roofline lies where times are equal."""

from __future__ import annotations

import itertools
import math
import re
from html import unescape
from xml.etree import ElementTree

import pytest

import ttexplore as ttx
from tests.corpus import gemm
from tests.corpus.launches import two_products
from tests.views.samples import HOSTILE, HOSTILE_PREDICTION, PREDICTION
from ttexplore.clock.estimate import Estimate, LaunchEstimates
from ttexplore.errors import UsageError
from ttexplore.views.runs.estimate import (
    RoofPoint,
    gains_svg,
    prediction_html,
    processors_svg,
    roofline_svg,
)
from ttexplore.views.runs.times import duration, plain_time, short_time

SVG = "{http://www.w3.org/2000/svg}"


def drawn(svg: str) -> ElementTree.Element:
    """A drawing that is whole: labelled, with ids that occur once and are there."""
    root = ElementTree.fromstring(svg)
    ids = [str(one.get("id")) for one in root.iter() if one.get("id")]
    assert len(ids) == len({*ids})
    assert {*str(root.get("aria-labelledby")).split()} <= {*ids}
    assert {*re.findall(r"url\(#([^)]*)\)", svg)} <= {*ids}
    # Each class has its style inside: a page may hold this drawing alone.
    classes = {name for one in root.iter() for name in str(one.get("class", "")).split()} - {"ttx-svg"}
    assert classes <= {*re.findall(r"\.ttx-svg \.([a-z0-9]+)\{", svg)}
    return root


def description(svg: str) -> str:
    return unescape(svg[svg.index("<desc") : svg.index("</desc>")].partition(">")[2])


def bars(root: ElementTree.Element, *kinds: str) -> list[float]:
    """The widths of the rectangles of these classes."""
    return [float(str(one.get("width"))) for one in root.iter(f"{SVG}rect") if one.get("class") in kinds]


def segments(svg: str) -> list[tuple[str, float]]:
    """The parts of all processors: what they are called, and how wide they are drawn."""
    found = re.findall(r"<g><title>([^<:]*):[^<]*</title> <rect x=\"[\d.]+\" y=\"[\d.]+\" width=\"([\d.]+)\"", svg)
    return [(name, float(width)) for name, width in found]


def test_bars_are_as_long_as_what_is_left_when_a_resource_is_free() -> None:
    svg = gains_svg(PREDICTION)
    root = drawn(svg)
    whole, *rest = bars(root, "all", "freed", "peak")
    assert [width / whole for width in rest] == pytest.approx([0.6, 0.9, 0.25, 0.2], abs=0.001)
    texts = [one.text for one in root.iter(f"{SVG}text")]
    assert texts[1:3] == ["estimate", "100.0 µs"]
    assert texts[3:7] == ["DRAM free", "60.0 µs, saves 40%", "math free", "90.0 µs, saves 10%"]
    assert texts[-1] == "less than 1% each: NoC"
    assert "60.0 µs if DRAM were free" in description(svg)
    assert "compute peak 25.0 µs; DRAM peak 20.0 µs" in description(svg)


def test_a_processor_is_a_bar_of_its_work_and_its_waits() -> None:
    svg = processors_svg(PREDICTION)
    root = drawn(svg)
    pixel = 380 / 100
    wanted = [("works", 10), ("waits for pages or room in a circular buffer", 30), ("waits for its reads", 40),
              ("works", 50), ("waits for registers", 40)]  # fmt: skip
    found = segments(svg)
    assert [name for name, _ in found] == [name for name, _ in wanted]
    assert [width for _, width in found] == pytest.approx([us * pixel - 0.5 for _, us in wanted], abs=0.06)
    texts = [str(one.text) for one in root.iter(f"{SVG}text")]
    assert texts[1] == "one of the 3 of 4 cores that end last; shares of 100.0 µs, not their order"
    assert texts[2:7] == ["reader", "10%", "buffer 30%", "read 40%", "works 10%"]
    # The legend has each part that occurs, once.
    assert texts[-4:] == ["works", wanted[1][0], "waits for registers", "waits for its reads"]
    assert description(svg).startswith("reader: works 10.0 µs, waits for pages or room in a circular buffer 30.0 µs, ")
    assert "that end last" not in processors_svg(HOSTILE_PREDICTION)


def test_an_estimate_shows_the_bars_of_its_slowest_core() -> None:
    exploration = ttx.explore(gemm(256, 256, 256, 64, 64, 64), options={"cores": (3, 2)})
    found = exploration.estimate()
    assert isinstance(found, Estimate)
    one = found.drawn
    slowest = max(found.cores, key=lambda core: core.end_us)
    assert [bar.name for bar in one.processors] == ["reader", "writer", "unpack", "math", "pack"]
    assert one.core in slowest.cores
    assert (one.last, one.cores) == (len(slowest.cores), 6)
    for bar in one.processors:
        # Nothing of its time is lost: a bar ends where the processor does.
        assert bar.busy_us + sum(bar.waits_us.values()) == pytest.approx(bar.end_us, abs=0.01)
        assert bar.end_us <= found.us
    assert one.bound == found.bound
    html = found._repr_html_()
    for svg in (gains_svg(one), processors_svg(one)):
        assert svg in html
    assert f"{duration(found.us)} (estimate), bound by {found.bound}" in html
    assert "4% in the median, at most 28%, against published times" in html
    assert html == exploration.fork().estimate()._repr_html_()


def test_launches_are_shown_one_by_one() -> None:
    found = ttx.explore(two_products()).estimate()
    assert isinstance(found, LaunchEstimates)
    html = found._repr_html_()
    assert f"{duration(found.us)} (estimate) for 2 launches" in html
    assert all(processors_svg(one.drawn, str(number)) in html for number, one in enumerate(found.launches))
    assert html.count("<details") == 2
    opened = html.index("<details open>")
    longest = max(range(2), key=lambda number: found.launches[number].us)
    assert html[opened:].startswith(f"<details open><summary>launch {longest}: ")


def test_times_are_in_the_unit_that_suits_them() -> None:
    assert [duration(us) for us in (0.04, 9999.94, 12_345.0)] == ["0.0 µs", "9,999.9 µs", "12.35 ms"]
    assert plain_time(213.94) == "213.9 us"
    assert [short_time(us) for us in (7.26, 99.94, 213.9, 9999, 12_430)] == [
        "7.3 µs", "99.9 µs", "214 µs", "9,999 µs", "12.4 ms"
    ]  # fmt: skip


def test_hostile_text_is_shown() -> None:
    points = [RoofPoint(HOSTILE, 9.0, 3.0, 2.0)]
    shown = [gains_svg(HOSTILE_PREDICTION), processors_svg(HOSTILE_PREDICTION), roofline_svg(points, [(HOSTILE, 5.0)])]
    for one in shown:
        drawn(one)
    for one in (*shown, prediction_html(HOSTILE_PREDICTION)):
        assert "<script" not in one
        assert "⟨U+202E⟩" in one


# The roofline


def circles(svg: str) -> list[tuple[float, float]]:
    found = [one for one in drawn(svg).iter(f"{SVG}circle")]
    return [(float(str(one.get("cx"))), float(str(one.get("cy")))) for one in found]


def roofs(svg: str) -> tuple[tuple[float, float], tuple[float, float]]:
    """Where the slope begins, and where it meets the flat part."""
    found = re.search(r'<path d="M([-\d.]+) ([-\d.]+)L([-\d.]+) ([-\d.]+)H676" class="roof"/>', svg)
    assert found is not None
    a, b, c, d = map(float, found.groups())
    return (a, b), (c, d)


def test_a_program_at_a_peak_lies_on_the_roof() -> None:
    svg = roofline_svg([RoofPoint("DRAM", 80.0, 80.0, 10.0), RoofPoint("math", 10.0, 5.0, 10.0)])
    (a, b), (c, d) = roofs(svg)
    (x, y), (right, level) = circles(svg)
    assert (y - b) / (d - b) == pytest.approx((x - a) / (c - a), abs=0.005)
    assert level == pytest.approx(d, abs=0.06)
    assert x < c < right


def test_faster_is_higher_and_fewer_bytes_are_further_right() -> None:
    points = [RoofPoint(f"step {n}", us, traffic, 10.0) for n, (us, traffic) in
              enumerate([(300.0, 120.0), (200.0, 60.0), (90.0, 22.0), (60.0, 22.0)])]  # fmt: skip
    svg = roofline_svg(points, [("the vendor's", 69.0)])
    (a, b), (c, d) = roofs(svg)
    places = circles(svg)
    assert [x for x, _ in places] == sorted(x for x, _ in places)
    assert [y for _, y in places] == sorted((y for _, y in places), reverse=True)
    # All are below the slope, and the further the longer they take than their transfers.
    below = [y - (b + (x - a) * (d - b) / (c - a)) for x, y in places]
    octaves = [math.log2(one.us / one.traffic_us) for one in points]
    assert [one / below[0] for one in below] == pytest.approx([one / octaves[0] for one in octaves], rel=0.02)
    mark = re.search(r'<path d="M60 ([\d.]+)H676" class="mark"/>', svg)
    assert mark is not None
    assert places[3][1] < float(mark[1]) < places[2][1]
    told = description(svg)
    assert told.startswith("1 step 0: 300.0 µs, compute peak 10.0 µs, DRAM peak 120.0 µs; 2 step 1: ")
    assert told.endswith("the vendor's: 69.0 µs")


def test_labels_do_not_cover_one_another() -> None:
    points = [RoofPoint(f"step {n}", 90.0 - n / 10, 22.0, 10.0) for n in range(6)]
    texts = [one for one in drawn(roofline_svg(points)).iter(f"{SVG}text") if "step" in str(one.text)]
    lines = sorted(float(str(one.get("y"))) for one in texts)
    assert len(lines) == 6
    assert all(below - above >= 14 for above, below in itertools.pairwise(lines))


@pytest.mark.parametrize(
    "points",
    [
        [RoofPoint("in L1", 5.0, 0.0, 2.0)],
        [RoofPoint("a copy", 5.0, 3.0, 0.0)],
        [RoofPoint("nothing", 5.0, 0.0, 0.0)],
        [RoofPoint("in L1", 5.0, 0.0, 2.0), RoofPoint("in DRAM", 7.0, 3.0, 2.0)],
    ],
    ids=lambda points: points[0].label + str(len(points)),
)
def test_what_has_no_traffic_or_computes_nothing_is_drawn_inside(points: list[RoofPoint]) -> None:
    places = circles(roofline_svg(points))
    assert len(places) == len(points)
    assert all(60 <= x <= 676 and 46 <= y <= 392 for x, y in places)


def test_lowerings_are_drawn_with_what_they_take() -> None:
    one = ttx.explore(gemm(256, 256, 256, 64, 64, 64))
    other, launches = one.fork(math_fidelity="HiFi2"), ttx.explore(two_products())
    found = ttx.roofline({"first": one, "second": other.estimate(), "two": launches}, {"measured": 30})
    estimates = [each.estimate() for each in (one, other, launches)]
    told = description(found.svg)
    for number, (label, each) in enumerate(zip(("first", "second", "two"), estimates, strict=True), 1):
        assert f"{number} {label}: {duration(each.us)}, compute peak {duration(each.compute_peak_us)}" in told
        assert each.traffic_us >= each.dram_peak_us > 0
    assert estimates[0].compute_peak_us == 2 * estimates[1].compute_peak_us
    assert "measured: 30.0 µs" in told


@pytest.mark.parametrize(
    ("lowerings", "marks", "message"),
    [
        ({}, None, "lowerings is {}"),
        ([1], None, r"lowerings is \[1\]"),
        ({"a": 3}, None, "the lowering 'a' is 3"),
        ({1: 3}, None, "a key of lowerings is 1"),
        ("one", {"m": 0}, "the mark 'm' is 0"),
        ("one", {"m": "fast"}, "the mark 'm' is 'fast'"),
        ("one", {"m": math.nan}, "the mark 'm' is nan"),
        ("one", {"m": math.inf}, "the mark 'm' is inf"),
        ("one", {"m": 10**400}, "the mark 'm' is 10"),
        ("one", [5], r"marks is \[5\]"),
    ],
)
def test_what_cannot_be_drawn_is_refused(lowerings: object, marks: object, message: str) -> None:
    given = {"a": ttx.explore(gemm(64, 64, 64, 32, 32, 32))} if lowerings == "one" else lowerings
    with pytest.raises(UsageError, match=message) as caught:
        ttx.roofline(given, marks)  # pyright: ignore[reportArgumentType]
    assert caught.value.code == "TTX-U010"
    assert "takes" in (caught.value.hint or "")
