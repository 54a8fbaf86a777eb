"""The static views: the same bytes each time, safe, small, well formed, and with the plan's own numbers."""

from __future__ import annotations

import dataclasses
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from html.parser import HTMLParser

import pytest

import ttexplore as ttx
from tests.corpus.gemms import shared_operand
from tests.views.samples import (
    AFTER,
    BEFORE,
    BUFFERS,
    CPP,
    DECIDE,
    FAILED,
    HOSTILE,
    HOSTILE_PREDICTION,
    NOTHING,
    PLAN,
    PREDICTION,
    REWRITE,
    SOURCE,
    START,
    TRACE,
    hostile_trace,
    layout,
    line,
    long_trace,
    partition,
    step,
)
from ttexplore.plan import CircularBuffer, CoreRange, GraphEdge, Multicast, PartialSums, Plan, SharedInput, TileGraph
from ttexplore.record import ErrorRecord, Listing, Origin, Trace, from_json
from ttexplore.target import TARGETS, Target, get_target
from ttexplore.views.figures.cb_graph import cb_graph_svg
from ttexplore.views.figures.core_map import core_map_svg, summary
from ttexplore.views.figures.l1_map import l1_map_svg
from ttexplore.views.markup import byte_size, escape, visible
from ttexplore.views.runs.estimate import RoofPoint, prediction_html, predictions_html, roofline_svg
from ttexplore.views.runs.run import SideFigures, correlation, run_html
from ttexplore.views.steps.code import code_html, coloured_lines
from ttexplore.views.steps.diff import diff_html, diff_text, error_html
from ttexplore.views.steps.exploration import exploration_html, exploration_text
from ttexplore.views.steps.facts import tally
from ttexplore.views.steps.origins import origin_html
from ttexplore.views.steps.plan_lines import flat_plan
from ttexplore.views.steps.rows import UnchangedLines, align, counts, ir_rows, plan_rows, with_context
from ttexplore.views.steps.why import MadeBy, Why
from ttexplore.views.theme import HEAT, HEAT_TEXT, heat_step

N150 = get_target("wormhole_n150")
P150 = get_target("blackhole_p150")
FULL = get_target("blackhole_p150", harvested=0, grid=(14, 10))


def plan_of(trace: Trace) -> Plan:
    return from_json(Plan, trace.plan)


def run_card(message: str = "", backend: str = "emulator") -> str:
    return run_html(backend=backend, passed=True, pcc=0.99999996, max_rel_error=0.00213, message=message)


def device_card(name: str = "ttnn against emulator") -> str:
    classes = (("equal", 4000), ("≤ 1", 90), ("≤ 2", 0), ("more", 6))
    side = SideFigures(name, True, 0.99999996, 0.00213, 9.0, 4000 / 4096, "(1, 0)", classes)
    return run_html(backend="ttnn", passed=True, pcc=0.9999, max_rel_error=0.002, sides=(side, side))


PAGES: dict[str, Callable[[], str]] = {
    "exploration": lambda: exploration_html(TRACE, N150, PLAN),
    "exploration without target": lambda: exploration_html(TRACE, None, PLAN),
    "failed exploration": lambda: exploration_html(dataclasses.replace(TRACE, steps=(DECIDE, FAILED)), N150, PLAN),
    "long exploration": lambda: exploration_html(long_trace(400), N150, PLAN),
    "hostile exploration": lambda: exploration_html(hostile_trace(), N150, plan_of(hostile_trace())),
    "diff": lambda: diff_html(REWRITE),
    "unified diff": lambda: diff_html(REWRITE, layout="unified"),
    "hostile diff": lambda: diff_html(hostile_trace().steps[0]),
    "long diff": lambda: diff_html(long_trace(1200).steps[0]),
    "device run": device_card,
    "hostile device run": lambda: device_card("<script>alert(1)</script>\u202e\x07"),
    "code": lambda: code_html(CPP),
    "hostile why": lambda: Why(HOSTILE, 1, HOSTILE, (MadeBy(HOSTILE, HOSTILE, ((1, HOSTILE),)),))._repr_html_(),
    "hostile code": lambda: code_html(hostile_trace().source),
    "long code": lambda: code_html(long_trace(1200).source),
    "run": run_card,
    "hostile run": lambda: run_card(HOSTILE, HOSTILE),
    "estimate": lambda: prediction_html(PREDICTION),
    "estimates": lambda: predictions_html("gemm", [PREDICTION, PREDICTION]),
    "hostile estimates": lambda: predictions_html(HOSTILE, [HOSTILE_PREDICTION]),
}
DRAWINGS: dict[str, Callable[[], str]] = {
    "cores": lambda: core_map_svg(N150, partition()),
    "cores without target": lambda: core_map_svg(None, partition()),
    "cores of a whole Blackhole": lambda: core_map_svg(FULL, partition(14, 10, 1000)),
    "few cores": lambda: core_map_svg(P150, partition(11, 10, 7)),
    "graph": lambda: cb_graph_svg(PLAN),
    "no graph": lambda: cb_graph_svg(START),
    "hostile graph": lambda: cb_graph_svg(plan_of(hostile_trace())),
    "L1": lambda: l1_map_svg(PLAN, N150),
    "empty L1": lambda: l1_map_svg(START, N150),
    "hostile L1": lambda: l1_map_svg(plan_of(hostile_trace()), N150),
    "roofline": lambda: roofline_svg([RoofPoint("a", 9.0, 3.0, 2.0), RoofPoint("b", 5.0, 3.0, 1.0)], [("mark", 7.0)]),
    "hostile roofline": lambda: roofline_svg([RoofPoint(HOSTILE, 9.0, 3.0, 2.0)], [(HOSTILE, 7.0)]),
}


class Checker(HTMLParser):
    """Collects text, ids and links, and fails on anything that runs or is not closed."""

    VOID = frozenset({"col", "br", "meta"})

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.text: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in {"script", "iframe", "object", "embed", "link", "img", "form", "a"}
        for name, value in attrs:
            assert not name.startswith("on")
            assert name not in {"src", "href", "xlink:href"}
            if name == "id":
                self.ids.append(value or "")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text.append(data)


def checked(page: str) -> Checker:
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert checker.open == []
    return checker


def labels(drawing: str) -> list[str]:
    root = ElementTree.fromstring(drawing)
    return [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize("name", [*PAGES, *DRAWINGS])
def test_two_calls_give_the_same_bytes(name: str) -> None:
    make = (PAGES | DRAWINGS)[name]
    assert make() == make()


@pytest.mark.parametrize("name", PAGES)
def test_pages_are_balanced_small_and_without_scripts_or_requests(name: str) -> None:
    page = PAGES[name]()
    checker = checked(page)
    assert len(page.encode()) <= 120_000
    assert len(checker.ids) == len(set(checker.ids))
    assert re.findall(r"url\((?!#)|@import|https?://(?!www\.w3\.org/2000/svg)", page) == []


def test_the_page_of_a_small_product_has_all_diffs() -> None:
    """What a step says of itself is no part of the room that its diff has."""
    page = ttx.explore(shared_operand())._repr_html_()
    assert "<details" in page
    assert "The diff is too long" not in page


@pytest.mark.parametrize("name", DRAWINGS)
def test_drawings_are_well_formed_labelled_and_small(name: str) -> None:
    drawing = DRAWINGS[name]()
    root = ElementTree.fromstring(drawing)
    assert root.get("role") == "img"
    assert len(drawing.encode()) <= 40_000
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    assert set((root.get("aria-labelledby") or "").split()) <= set(ids)
    used = re.findall(r"url\(#([^)]*)\)", drawing)
    assert set(used) <= set(ids)


class Words(HTMLParser):
    """What a page says where drawings and styles are taken out of it, as JupyterLab does with what it does not trust.

    `run_together` has the ends of texts that stand without a space beside the next one; coloured code may.
    """

    LINES = frozenset({"div", "p", "h3", "h4", "table", "tr", "th", "td", "details", "summary"})

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.before = " "
        self.run_together: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in Checker.VOID:
            self.open.append(tag)
        if tag in self.LINES:
            self.before = " "

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        self.open.pop()
        if tag in self.LINES:
            self.before = " "

    def handle_data(self, data: str) -> None:
        # The n of Ln, and code, of which each piece has its own colour.
        if self.open[-1:] in (["style"], ["i"]) or "td" in self.open:
            return
        if (self.before[-1] + data[0]).isalnum():
            self.run_together.append(f"{self.before[-20:]}|{data[:20]}")
        self.before = data


@pytest.mark.parametrize("name", [*PAGES, *DRAWINGS])
def test_words_stay_apart_where_drawings_and_styles_are_taken_out(name: str) -> None:
    words = Words()
    words.feed({**PAGES, **DRAWINGS}[name]())
    words.close()
    assert words.run_together == []


@pytest.mark.parametrize("name", [name for name in (*PAGES, *DRAWINGS) if name.startswith("hostile")])
def test_hostile_text_is_shown_not_obeyed(name: str) -> None:
    shown = (PAGES | DRAWINGS)[name]()
    for character in "\u202e\u200b\x07":
        assert character not in shown
    assert "<script" not in shown
    assert "⟨U+202E⟩" in shown or "…" in shown


def test_invisible_characters_are_written_as_code_points() -> None:
    assert visible("a\u202eb\u2066c\x00\td\ud800\n") == "a⟨U+202E⟩b⟨U+2066⟩c⟨U+0000⟩    d⟨U+D800⟩⟨U+000A⟩"
    assert visible("größe 矩阵 × λ") == "größe 矩阵 × λ"
    assert escape("<a href=\"x\" b='y'>&") == "&lt;a href=&quot;x&quot; b=&#x27;y&#x27;&gt;&amp;"


def test_sizes_are_printed_exactly_to_a_tenth() -> None:
    assert [byte_size(size) for size in (0, 96, 2048, 1536, 1_393_312)] == [
        "0 B",
        "96 B",
        "2 KiB",
        "1.5 KiB",
        "1,360.7 KiB",
    ]


def test_rows_pair_lines_that_moved_or_changed() -> None:
    rows = ir_rows(REWRITE)
    assert [(row.kind, row.before_number, row.after_number) for row in rows] == [
        ("equal", 1, 1),
        ("removed", 2, None),
        ("added", None, 2),
        ("added", None, 3),
        ("added", None, 4),
        ("changed", 3, 5),
        ("indented", 4, 6),
    ]
    number = counts(rows)
    assert (number.added, number.removed, number.indented) == (4, 2, 1)
    assert str(number) == "+4 −2 ~1"
    changed = rows[5]
    assert [text for text, differs in changed.before_tokens if differs] == ["32", "32"]
    assert [text for text, differs in changed.after_tokens if differs] == ["64", "64"]
    assert "".join(text for text, _ in changed.after_tokens) == AFTER.lines[4].text


def test_every_line_stands_in_exactly_one_row() -> None:
    for record in (REWRITE, long_trace(120).steps[3], hostile_trace().steps[0]):
        rows = ir_rows(record)
        assert [row.before_number for row in rows if row.before] == list(range(1, len(record.before.lines) + 1))
        assert [row.after_number for row in rows if row.after] == list(range(1, len(record.after.lines) + 1))
        assert tuple(row.before for row in rows if row.before) == record.before.lines
        assert tuple(row.after for row in rows if row.after) == record.after.lines


def test_equal_runs_collapse_with_their_length() -> None:
    old = tuple(line(f"line {n}") for n in range(20))
    new = (*old[:10], line("new"), *old[10:])
    rows = align(old, new, [x.text for x in old], [x.text for x in new])
    shown = with_context(rows, 3)
    assert [item.lines if isinstance(item, UnchangedLines) else item.after_number for item in shown] == [
        7, 8, 9, 10, 11, 12, 13, 14, 7,
    ]  # fmt: skip
    assert [
        item.lines for item in with_context(align(old, old, ["x"] * 20, ["x"] * 20)) if isinstance(item, UnchangedLines)
    ] == [20]


def test_the_plan_is_compared_by_path() -> None:
    doubled = PLAN.replace(buffers=(dataclasses.replace(BUFFERS[0], stages=4), *BUFFERS[1:]))
    rows = [row for row in plan_rows(step(0, "A2", "a", "s", BEFORE, BEFORE, PLAN, doubled)) if row.kind != "equal"]
    assert [(row.kind, row.before.text, row.after.text) for row in rows if row.before and row.after] == [
        ("changed", "buffers[A_shared].stages: 2", "buffers[A_shared].stages: 4")
    ]
    assert len(rows) == 1


def test_plan_lines_name_their_entries_and_leave_out_what_is_empty() -> None:
    lines = dict(flat_plan(DECIDE.plan_after))
    assert lines["layouts[C].shape"] == "[1024, 2144]"
    assert lines["buffers[B_shared].origin"] == "gemm.py:15"
    assert lines["partition.cores[3]"] == "x 3, y 0, items 1, values (work_start 6, work_count 1)"
    assert lines["compute.fp32_dest_acc_en"] == "true"
    assert lines["buffers[A_shared].index"] == "0"
    assert not [path for path in lines if path.startswith(("graph", "notes", "signature"))]


def test_plan_lines_of_a_core_with_many_values_are_no_wider_than_others() -> None:
    values = {f"A_value_{number}": number * 1000 for number in range(14)}
    lines = flat_plan({"partition": {"cores": [{"x": 3, "y": 0, "items": [1], "values": values}]}})
    core = "partition.cores[0]"
    assert [path for path, _ in lines] == [core, *(f"{core}.values ({part} of 7)" for part in range(1, 8))]
    assert lines[0][1] == "x 3, y 0, items [1]"
    assert ", ".join(text for _, text in lines[1:]) == ", ".join(f"{name} {value}" for name, value in values.items())
    assert max(len(f"{path}: {text}") for path, text in lines) <= 80


def test_diff_text_is_readable_line_by_line() -> None:
    assert diff_text(REWRITE).splitlines() == [
        "B2 grid_to_core_grid: Do grid_to_core_grid.",
        "--- IR: +4 −2 ~1",
        "  def matmul():",
        "-     for bx in T.thread_binding(67):",
        '+     work_start = tt.core_value("work_start")',
        "+     for item in range(work_count):",
        "+         bx = work_start + item",
        "-         T.copy(A[bx * 32 : +32, 0 : +512], A_shared)",
        "+         T.copy(A[bx * 64 : +64, 0 : +512], A_shared)",
        "~             T.gemm(A_shared, B_shared, C_local)",
    ]
    assert diff_text(NOTHING).splitlines()[1:] == ["no change"]


def test_what_is_cut_is_counted() -> None:
    page = diff_html(long_trace(1200).steps[0], max_rows=50)
    cut = [int(n.replace(",", "")) for n in re.findall(r"… ([\d,]+) more rows not shown here", page)]
    plan, ir = plan_rows(long_trace(1200).steps[0]), ir_rows(long_trace(1200).steps[0])
    total = sum(row.kind != "equal" for row in (*plan, *ir))
    assert sum(cut) + len(re.findall('<tr class="[raciw]">', page)) == total
    code = code_html(long_trace(1200).source)
    shown = len(re.findall(r"<tr><td>", code))
    assert re.findall(r"… ([\d,]+) more lines not shown here", code) == [f"{1200 - shown:,}"]


def test_kernel_lines_stand_beside_the_code() -> None:
    assert re.sub(r"<[^>]*>", "", origin_html(AFTER.lines[1].origins)) == "L6"
    several = tuple(Origin(one.origins[0].span, "inferred") for one in SOURCE.lines)
    told = origin_html((*several, *SOURCE.lines[3].origins))
    assert re.sub(r"<[^>]*>", "", told) == "L8 L5 +2"
    rows = re.findall(r"<tr>(.*?)</tr>", code_html(CPP))
    assert re.findall(r'<i class="(.)">(L\d+)</i>', rows[3]) == [("d", "L7")]
    assert "L" not in re.sub(r"<[^>]*>", "", rows[0])


def test_coloured_code_has_the_text_of_the_listing() -> None:
    for listing in (
        CPP,
        SOURCE,
        hostile_trace().source,
        Listing("json", (line("{"), line('  "a": 1'), line("}"), line(""))),
    ):
        lines = coloured_lines(listing)
        assert len(lines) == len(listing.lines)
        for text, original in zip(lines, listing.lines, strict=True):
            assert "".join(checked(text).text) == visible(original.text)


def test_colours_of_an_unknown_language_are_refused() -> None:
    with pytest.raises(ValueError, match="no colours for 'rust'; known are python, tir, cpp and json"):
        coloured_lines(Listing("rust", (line("x"),)))  # pyright: ignore


@pytest.mark.parametrize("target", [N150, P150, FULL])
def test_the_core_map_shows_each_core_of_the_plan(target: Target) -> None:
    columns, rows = target.compute_grid
    work = partition(columns, rows, 3 * columns * rows + 5)
    drawing = core_map_svg(target, work)
    root = ElementTree.fromstring(drawing)
    found = re.findall(
        r"core \((\d+), (\d+)\): (\d+) items, work_start (\d+), work_count (\d+); NoC \((\d+), (\d+)\)",
        " ".join(element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}title")),
    )
    expected = [
        (
            core.x,
            core.y,
            core.items,
            core.values["work_start"],
            core.values["work_count"],
            *target.physical(core.x, core.y),
        )
        for core in work.cores
    ]
    assert sorted(tuple(map(int, one)) for one in found) == sorted(expected)


def test_the_core_map_shows_who_sends_what() -> None:
    """A dot at each sender, and a line along each row, column or rectangle that receives, but for cores alone."""
    row = Multicast((0, 0), CoreRange((0, 0), (3, 0)))
    alone = Multicast((0, 1), CoreRange((0, 1), (0, 1)))
    block = Multicast((4, 2), CoreRange((4, 2), (6, 5)))
    shared = (
        SharedInput("A", "a", "row", 0, 1, (row, alone), 4096, 1024),
        SharedInput("B<", "b", "grid", 2, 3, (block,), 2048, 1024),
    )
    drawing = core_map_svg(N150, partition(), shared)
    root = ElementTree.fromstring(drawing)
    dots = [one for one in root.iter("{http://www.w3.org/2000/svg}circle") if one.get("class") == "tip"]
    # One for each rectangle that receives, one for each line of the legend.
    assert len(dots) == 2 + 2
    texts = [one.text or "" for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "A: multicast to the cores of its row, 3,072 bytes read instead of 4,096" in texts
    assert "B<: multicast to a rectangle of cores, 1,024 bytes read instead of 2,048" in texts
    assert "circle" not in core_map_svg(N150, partition())


def test_the_core_map_shows_who_hands_on_partial_sums() -> None:
    """A line through the cores of each chain, in their order, with a dot at the first one; none for a core alone."""
    sums = PartialSums("C<", "c", "d", 0, 1, (((0, 0), (2, 0), (1, 1)), ((3, 0), (3, 1)), ((5, 5),)), (2, 1, 1), 4096)
    root = ElementTree.fromstring(core_map_svg(N150, partition(), partials=(sums,)))
    ways = [one.get("d") or "" for one in root.iter("{http://www.w3.org/2000/svg}path") if one.get("class") == "edge"]
    points = [[tuple(map(int, at.split())) for at in way[1:].split("L")] for way in ways if "L" in way]
    # Each line has a halo.
    long, short = points[::2]
    assert points[1::2] == [long, short]
    cell = [(x - long[0][0], y - long[0][1]) for x, y in long]
    assert cell == [(0, 0), (2 * 36, 0), (36, 36)]
    assert [(x - short[0][0], y - short[0][1]) for x, y in short] == [(0, 0), (0, 36)]
    dots = [one for one in root.iter("{http://www.w3.org/2000/svg}circle") if one.get("class") == "tip"]
    assert [(int(one.get("cx") or 0), int(one.get("cy") or 0)) for one in dots[:2]] == [long[0], short[0]]
    texts = [one.text or "" for one in root.iter("{http://www.w3.org/2000/svg}text")]
    # Twice to two cores, once to one.
    assert "C<: handed on from core to core, by up to 3 cores, 20,480 bytes sent" in texts
    many = PartialSums("C", "c", "d", 0, 1, tuple(((x, 0), (x, 1)) for x in range(8)), (1,) * 8, 4096)
    drawing = core_map_svg(N150, partition(), partials=(many,))
    assert "the first 7 of 8 chains are drawn" in drawing
    assert len(re.findall(r' d="M\d+ \d+L', drawing)) == 2 * 7


def test_idle_cores_are_hatched_and_every_noc_node_is_drawn() -> None:
    drawing = core_map_svg(P150, partition(11, 10, 7))
    titles = re.findall(r"<g[^>]*><title>(.*?)</title>", drawing)
    routers = sum(node.kind == "router" for node in P150.floorplan())
    assert len(titles) == 17 * 12 - routers
    # The legend has one, too.
    assert drawing.count('<path class="panel"') == routers + 24 + 14 + 10 + 20 + 3 + 1
    assert sum("no work" in title for title in titles) == 110 - 7
    assert sum(title.startswith("harvested") for title in titles) == 20
    assert sum(title.startswith("DRAM channel") for title in titles) == 24


@pytest.mark.parametrize("target", TARGETS.values(), ids=list(TARGETS))
def test_the_legend_of_the_cores_names_every_letter(target: Target) -> None:
    drawing = core_map_svg(target, partition(2, 2, 4))
    cells, legend = drawing[: drawing.index('class="legend"')], drawing[drawing.index('class="legend"') :]
    letters = {letter for letter in re.findall(r'class="n s"[^>]*>(\D)', cells)}
    assert letters >= {"D", "E"}
    named = re.findall(r'class="b s">([^<]+)</text> <text [^>]*class="s t">([^<]+)<', legend)
    assert {letter for letter, _ in named} == letters
    kinds = {"D": "DRAM", "E": "Ethernet", "A": "ARC", "P": "PCIe", "–": "dispatch", "×": "harvested"}
    assert all(kinds[letter] == name for letter, name in named)
    assert (">router<" in legend) == any(node.kind == "router" for node in target.floorplan())


def test_every_step_counts_once() -> None:
    def of(*changes: tuple[bool, bool]) -> str:
        return tally([dataclasses.replace(TRACE.steps[0], changed_ir=ir, changed_plan=plan) for ir, plan in changes])

    both, rewrites, decides, nothing = (True, True), (True, False), (False, True), (False, False)
    assert of(*[rewrites] * 6, *[decides] * 8, both) == ("15 steps: 6 rewrite the program, 8 decide facts, 1 does both")
    assert of(rewrites, decides, both, both, nothing) == (
        "5 steps: 1 rewrites the program, 1 decides facts, 2 do both, 1 changes nothing"
    )


def test_the_summary_tells_the_imbalance() -> None:
    assert summary(partition(8, 8, 64)) == "64 of 64 cores work, 1 item each, contiguous"
    # 67 items on 64 cores: the busiest does 2, the mean is 67 / 64.
    assert summary(partition()) == (
        "64 of 64 cores work, 1 to 2 items each, contiguous, busiest core 1.91 times the mean of those that work"
    )
    # As many items are not as much work where these take different times.
    balanced = dataclasses.replace(partition(), policy="balanced")
    assert summary(balanced) == "64 of 64 cores work, 1 to 2 items each, balanced"
    # That all who work do the same must not hide those that do nothing.
    assert summary(partition(8, 8, 16)) == "16 of 64 cores work (48 idle), 1 item each, contiguous"
    assert summary(partition(8, 8, 1)) == "1 of 64 cores works (63 idle), 1 item each, contiguous"
    assert summary(partition(8, 8, 0)) == "none of 64 cores works"


def test_heat_goes_from_zero_to_the_largest_and_its_text_stands_out() -> None:
    assert [heat_step(value, 8) for value in range(9)] == list(range(9))
    assert heat_step(5, 0) == 0

    def luminance(colour: str) -> float:
        parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for colour, text in zip(HEAT, HEAT_TEXT, strict=True):
        low, high = sorted((luminance(colour), luminance(text)))
        assert (high + 0.05) / (low + 0.05) >= 4.5


def test_the_graph_shows_the_numbers_of_the_plan() -> None:
    shown = labels(cb_graph_svg(PLAN))
    for text in (
        "CB 0 · Float16_b", "4 × 2 × 2 KiB = 16 KiB", "CB 1 · Float16_b", "4 × 3 × 2 KiB = 24 KiB",
        "CB 16 · Float16_b", "16 × 2 × 2 KiB = 64 KiB", "CB 24 · Float32", "16 × 1 × 4 KiB = 64 KiB",
        "1024 × 2144", "HiFi4 · fp32 DST", "4 DST tiles · reload",
    ):  # fmt: skip
        assert shown.count(text) == 1
    assert [shown.count(number) for number in ("128", "132", "16")] == [3, 3, 3]


def test_boxes_of_the_graph_do_not_overlap() -> None:
    spills = tuple(CircularBuffer(f"loop_{n}", 1, 1, "Float32", "compute", "compute", 25 + n) for n in range(3))
    copies = (CircularBuffer("pass", 1, 2, "Float16_b", "reader", "writer", 2),)
    plan = PLAN.replace(buffers=(*BUFFERS, *spills, *copies))
    root = ElementTree.fromstring(cb_graph_svg(plan))
    boxes = [
        tuple(float(element.get(key) or 0) for key in ("x", "y", "width", "height"))
        for element in root.iter("{http://www.w3.org/2000/svg}rect")
        if element.get("class") in ("box", "panel")
    ]
    assert len(boxes) == 3 + 3 + len(plan.buffers)
    for position, (x, y, width, height) in enumerate(boxes):
        assert x + width <= float(root.get("width") or 0)
        assert y + height <= float(root.get("height") or 0)
        for x2, y2, width2, height2 in boxes[:position]:
            assert x + width <= x2 or x2 + width2 <= x or y + height <= y2 or y2 + height2 <= y


def test_edges_that_have_no_lane_are_named() -> None:
    graph = PLAN.graph or TileGraph((), ())
    odd = PLAN.replace(graph=TileGraph(graph.nodes, (*graph.edges, GraphEdge("A", "compute", 1))))
    assert "not drawn: A → compute" in labels(cb_graph_svg(odd))
    assert [text for text in labels(cb_graph_svg(PLAN)) if text.startswith("not drawn")] == []


def test_l1_that_overflows_says_by_how_much() -> None:
    large = PLAN.replace(buffers=(dataclasses.replace(BUFFERS[0], block_pages=400), *BUFFERS[1:]))
    drawing = l1_map_svg(large, N150)
    assert "end of usable L1" in labels(drawing)
    rectangles = [element for element in ElementTree.fromstring(drawing).iter() if element.tag.endswith("rect")]
    assert max(float(one.get("x") or 0) + float(one.get("width") or 0) for one in rectangles[1:]) <= 690


def test_exploration_text_is_one_screen() -> None:
    facts = len(flat_plan(DECIDE.plan_after)) - len(flat_plan(DECIDE.plan_before))
    assert exploration_text(TRACE, PLAN, N150).splitlines() == [
        "matmul  wormhole_n150  gemm.py:5",
        "",
        "stage             step                         IR        plan",
        f"partition  ◐  B1  layout_aware_work_partition  ·         +{facts}",
        "           ●  B2  grid_to_core_grid            +4 −2 ~1  ·",
        "tiles      ○  C2  lower_tt_tile_intrinsics     ·         ·",
        "",
        "passes         3 steps: 1 rewrites the program, 1 decides facts, 1 changes nothing",
        f"cores          grid 67 on 8×8 cores: {summary(partition())}",
        "buffers        4 circular buffers, tiles: A_shared 8, B_shared 12, C_local_out 32, C_local_partials 16",
        "L1             168 KiB of 1,360.7 KiB (12.3 %) per core",
        "math fidelity  HiFi4",
        "DST            4 tiles, fp32",
        "accumulation   reload",
        "files          reader.cpp 5 lines",
    ]
    assert exploration_text(TRACE, PLAN, N150, times=True).splitlines()[3].endswith("  1.2")


def test_times_are_shown_only_when_asked_for() -> None:
    slower = dataclasses.replace(TRACE, steps=tuple(dataclasses.replace(one, seconds=9.87) for one in TRACE.steps))
    assert exploration_html(slower, N150, PLAN) == exploration_html(TRACE, N150, PLAN)
    assert "9870.0 ms" in exploration_html(slower, N150, PLAN, times=True)
    assert "s</span>" not in run_card()


def test_a_failed_step_is_open_and_shows_its_error() -> None:
    page = PAGES["failed exploration"]()
    text = " ".join(checked(page).text)
    assert "stopped at" in text
    for part in ("Unsupported", "gemm.py:8", "T.atomic_add is not lowered", "use a reduction"):
        assert part in text
    assert page.count("<details open><summary>") == 1
    shown = exploration_text(dataclasses.replace(TRACE, steps=(DECIDE, FAILED)), PLAN)
    assert "✖ Unsupported: gemm.py:8: T.atomic_add is not lowered\n  at all\n  hint: use a reduction\n" in shown


def test_a_hint_shows_what_is_quoted_as_code() -> None:
    card = error_html(ErrorRecord("E", "m", "write `a < b` or `c`, not `d"))
    assert "write <code>a &lt; b</code> or <code>c</code>, not `d</p>" in card


def test_the_page_has_every_step_and_file() -> None:
    text = " ".join(checked(PAGES["exploration"]()).text)
    for record in TRACE.steps:
        assert record.name in text
        assert record.summary in text
    assert "reader.cpp" in text
    assert "policy=contiguous" in text


def test_the_correlation_is_never_rounded_up_to_one() -> None:
    assert [correlation(value) for value in (1.0, 0.99999996, 0.5, -0.25)] == [
        "1.000000",
        "0.999999",
        "0.500000",
        "-0.250000",
    ]
    assert correlation(float("nan")) == "nan"
    text = "".join(checked(run_card("fine")).text)
    assert "0.999999" in text
    assert "0.00213" in text


def test_rank_one_and_four_shapes_fit_their_boxes() -> None:
    wide = PLAN.replace(
        layouts=(*PLAN.layouts[:2], dataclasses.replace(layout("C", 2, "output", 1, 1), shape=(1024,) * 4))
    )
    assert max(len(text) for text in labels(cb_graph_svg(wide)) if "1024" in text) <= 20


def test_a_device_run_shows_its_comparisons() -> None:
    card = device_card()
    assert card.count("ttnn against emulator") == 2
    assert 'aria-label="equal: 4000, ≤ 1: 90, more: 6"' in card
    assert "97.66%" in card
    heights = [float(text) for text in re.findall(r'<rect [^>]*height="([\d.]+)"', card)][:4]
    assert heights[0] > heights[1] > heights[3] > heights[2] > 0
