"""The card of a run: its comparisons side by side, their histograms, and the map of errors."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import pytest

from ttexplore.views.figures.error_map import LARGEST_CELLS, TileErrors, error_map_svg, summary
from ttexplore.views.figures.ulp_histogram import compact_count, histogram_axis_svg, histogram_svg
from ttexplore.views.runs.run import SideFigures, run_html

CLASSES = ("equal", "≤ 1", "≤ 2", "≤ 4", "≤ 8", "≤ 16", "≤ 64", "more", "broken")
COUNTS = (60012, 5400, 120, 4, 0, 0, 0, 0, 0)
TILES = TileErrors("output 0", ((0.0, 0.25, 0.5), (1.0, 0.0, 0.03125)))
SVG = "{http://www.w3.org/2000/svg}"


def side(name: str = "ttnn against reference", tiles: TileErrors | None = None) -> SideFigures:
    return SideFigures(
        name, True, 0.9999981, 0.00215, 1.0, 0.9157, "(1, 0)", tuple(zip(CLASSES, COUNTS, strict=True)), tiles
    )


def card(*sides: SideFigures, passed: bool = True) -> str:
    return run_html(backend="ttnn", passed=passed, pcc=0.9999981, max_rel_error=0.00215, message="fine", sides=sides)


def shown(page: str) -> list[str]:
    """The text that a reader sees, without styles and tooltips, and what is never drawn between them."""
    page = re.sub(r"<(style|title|desc)\b.*?</\1>", "", page, flags=re.DOTALL)
    # Terms stand inside their labels.
    page = re.sub(r"</?abbr\b[^>]*>", "", page)
    return [text for text in re.split(r"<[^>]*>", page) if text.strip(" :.|\n")]


def maps(page: str) -> list[str]:
    return re.findall(r'<svg [^>]*id="(ttx-errors-\w+)"', page)


def cells(drawing: str) -> dict[str, str]:
    """The style of each cell by the text of its tooltip."""
    root = ElementTree.fromstring(drawing)
    return {
        path[0].text or "": group.get("class") or ""
        for group in root.iter(f"{SVG}g")
        for path in group.iter(f"{SVG}path")
        if len(path)
    }


def test_each_side_is_a_row_of_figures_and_bars() -> None:
    texts = shown(card(side(), side("ttnn against emulator")))
    start = texts.index("compared")
    assert texts[start : start + 6] == ["compared", "PCC", "max relative error", "max ULP", "equal", "worst tile"]
    row = texts.index("ttnn against emulator")
    figures = ["0.999998", "2.15e-03", "1.0", "91.57%", "(1, 0)"]
    assert texts[row + 1 : row + 10] == [*figures, "60k", "5.4k", "120", "4"]


def test_a_run_with_one_side_that_passed_stays_one_line() -> None:
    texts = shown(card(side(tiles=TILES)))
    assert texts == [
        "✔", " passed", "backend", "ttnn", "PCC", "0.999998", "max relative error", "0.00215", "fine",
    ]  # fmt: skip
    failed = card(side(tiles=TILES), passed=False)
    assert "ttnn against reference" in shown(failed)
    assert len(maps(failed)) == 1


def test_the_map_is_drawn_only_where_there_are_errors() -> None:
    assert len(maps(card(side(tiles=TILES), side()))) == 1
    for tiles in (None, TileErrors("output 0", ((0.0, 0.0),)), TileErrors("output 0", ())):
        assert maps(card(side(tiles=tiles), side(tiles=TILES))) == []


def test_bars_grow_with_their_counts_and_say_them_in_full() -> None:
    drawing = histogram_svg(tuple(zip(CLASSES, COUNTS, strict=True)), passed=True)
    root = ElementTree.fromstring(drawing)
    assert (root.get("role"), root.get("aria-label")) == ("img", "equal: 60012, ≤ 1: 5400, ≤ 2: 120, ≤ 4: 4")
    bars = list(root.iter("rect"))
    assert [bar[0].text for bar in bars[:3]] == ["equal: 60,012", "≤ 1: 5,400", "≤ 2: 120"]
    heights = [float(bar.get("height") or 0) for bar in bars]
    assert heights[:5] == sorted(heights[:5], reverse=True)
    assert len(set(heights[:5])) == 5
    assert heights[4:] == [1.0] * 5
    assert {float(bar.get("y") or 0) + height for bar, height in zip(bars, heights, strict=True)} == {31.0}
    assert histogram_svg((), passed=True).count("no elements") == 1


def test_classes_darken_with_the_error() -> None:
    drawing = histogram_svg([(label, 7) for label in CLASSES], passed=True)
    assert re.findall(r'<rect class="(\w+)"', drawing) == ["x0", "x3", "x4", "x5", "x6", "x6", "x7", "x8", "broken"]


def test_the_axis_stands_over_the_bars() -> None:
    axis = ElementTree.fromstring(histogram_axis_svg(CLASSES))
    bars = ElementTree.fromstring(histogram_svg([(label, 1) for label in CLASSES], passed=True))
    assert axis.get("width") == bars.get("width")
    assert [text.text for text in axis.iter("text")] == [label.replace("≤ ", "≤") for label in CLASSES]
    places = [[text.get("x") for text in drawing.iter("text")] for drawing in (axis, bars)]
    assert places[0] == places[1]


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0"), (999, "999"), (1000, "1k"), (4096, "4.1k"), (9949, "9.9k"), (9950, "10k"), (65536, "66k"),
     (999_499, "999k"), (999_500, "1M"), (1_048_576, "1M"), (12_345_678, "12M"), (2 * 10**9, "2G")],
)  # fmt: skip
def test_counts_take_four_characters_at_most(count: int, text: str) -> None:
    assert compact_count(count) == text


def test_cells_are_tinted_by_their_share_of_the_largest_error() -> None:
    assert cells(error_map_svg(TILES)) == {
        "(0, 0): equal": "surface", "(0, 1): 0.25": "x2", "(0, 2): 0.5": "x4", "(1, 0): 1": "x8",
        "(1, 1): equal": "surface", "(1, 2): 0.031": "x1",
    }  # fmt: skip
    assert summary(TILES) == "2 × 3 tiles, 2 of them equal; worst tile (1, 0): 1"
    texts = shown(error_map_svg(TILES))
    assert texts[:7] == ["largest error per tile", "output 0", "worst (1, 0): 1", "0", "2", "0", "1"]


def test_only_what_is_beyond_the_bound_has_a_hue_of_alarm() -> None:
    errors = ((0.0, 0.25, 0.5), (1.0, 0.0, 0.03125))
    for within in (TileErrors("output 0", errors), TileErrors("output 0", errors, 1.0)):
        assert re.search(r'class="[^"]*beyond', error_map_svg(within)) is None
    drawing = error_map_svg(TileErrors("output 0", errors, 0.3))
    assert {cell for cell, style in cells(drawing).items() if "beyond" in style} == {"(0, 2): 0.5", "(1, 0): 1"}
    assert shown(drawing)[-4:] == ["1", "worst", "within", "beyond 0.3"]
    exact = error_map_svg(TileErrors("output 0", errors, 0.0))
    assert shown(exact)[-1] == "not equal"
    assert {style for cell, style in cells(exact).items() if not cell.endswith("equal")} >= {"x8 beyond", "x1 beyond"}
    # In the legend of the scale, too.
    legend = re.findall(r'<rect [^>]*height="8"[^>]*class="(x\d[^"]*)"', drawing)
    assert legend == ["x1", "x2", "x3 beyond", *(f"x{step} beyond" for step in range(4, 9))]


def test_bars_of_a_comparison_that_passed_are_neutral() -> None:
    classes = tuple(zip(CLASSES, COUNTS, strict=True))
    assert "beyond" not in histogram_svg(classes, passed=True)
    assert histogram_svg(classes, passed=False).startswith('<svg class="ttx-svg bars beyond" ')


def test_broken_tiles_have_a_cross_and_no_place_on_the_scale() -> None:
    tiles = TileErrors("output 0", ((0.5, math.inf), (math.inf, 0.25)))
    drawing = error_map_svg(tiles)
    assert cells(drawing) == {
        "(0, 0): 0.5": "x8", "(0, 1): not finite": "broken", "(1, 0): not finite": "broken", "(1, 1): 0.25": "x4",
    }  # fmt: skip
    crosses = [path.get("d") or "" for path in ElementTree.fromstring(drawing).iter(f"{SVG}path")
               if path.get("class") == "cross"]  # fmt: skip
    assert [cross.count("M") for cross in crosses] == [2, 1]  # the cells and the legend
    assert shown(drawing)[-4:] == ["0", "0.5", "not finite", "worst"]
    assert summary(tiles) == (
        "2 × 2 tiles, 0 of them equal; worst tile (0, 1): not finite; 2 tiles with elements that are not finite"
    )
    only = error_map_svg(TileErrors("output 0", ((math.inf,),)))
    assert shown(only) == [
        "largest error per tile", "output 0", "worst (0, 0): not finite", "0", "0", "not finite", "worst",
    ]  # fmt: skip


def test_many_tiles_share_cells_with_the_largest_of_their_errors() -> None:
    errors = [[0.5] * 50 for _ in range(70)]
    errors[69][49] = 2.0
    drawing = error_map_svg(TileErrors("output 0", errors))
    found = cells(drawing)
    assert len(found) == math.ceil(70 / 3) * math.ceil(50 / 3)
    assert found["from (69, 48): 2"] == "x8"
    assert found["from (0, 0): 0.5"] == "x2"
    assert "worst (69, 49): 2; a cell is 3×3 tiles" in shown(drawing)
    largest = error_map_svg(TileErrors("output 0", [[0.001234 * (1 + i + j) for i in range(32)] for j in range(32)]))
    assert len(cells(largest)) == LARGEST_CELLS**2
    assert len(largest.encode()) <= 90_000


def test_no_tiles_cannot_be_drawn() -> None:
    for errors in ((), ((),)):
        with pytest.raises(ValueError, match="output 3 has no tiles to draw"):
            error_map_svg(TileErrors("output 3", errors))


def test_hostile_names_are_shown_not_obeyed() -> None:
    name = "<script>alert(1)</script>\u202e\x07\"'"
    page = card(side(name, TileErrors(name, ((1.0,),))), side(name))
    assert "<script" not in page
    assert not set("\u202e\x07") & set(page)
    assert page.count("⟨U+202E⟩") >= 4
    ElementTree.fromstring(error_map_svg(TileErrors(name, ((1.0,),))))


def test_two_cards_are_the_same_bytes_and_ids_are_their_own() -> None:
    one = card(side(tiles=TILES), side())
    assert one == card(side(tiles=TILES), side())
    ids = re.findall(r'\bid="([^"]*)"', one)
    assert len(ids) == len(set(ids)) == 4
    assert re.search(r'aria-labelledby="([^"]*)"', one)
    assert set((re.findall(r'aria-labelledby="([^"]*)"', one)[0]).split()) < set(ids)
