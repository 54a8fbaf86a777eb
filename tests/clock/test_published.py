"""Predictions against published times of silicon, and the page that lists them."""

from __future__ import annotations

import re
import statistics
from functools import cache
from pathlib import Path

import pytest

from tests.clock import measured
from tests.clock.published import FORMATS, GEMMS, PATTERNS, SIZES, Gemm, Pattern
from tests.clock.sdk import matmul
from tests.conftest import compare_golden
from ttexplore.clock.estimate import LARGEST_ERROR, MEDIAN_ERROR
from ttexplore.clock.rates import rates_of
from ttexplore.clock.replay import replay

PAGE = Path(__file__).parents[2] / "docs" / "clock.md"
MARK = "<!-- generated below -->\n"


@cache
def predicted(row: Gemm) -> tuple[float, float]:
    """Microseconds until all have ended, with the launch, and until the math processors have."""
    tile_bytes, fidelity = FORMATS[row.format]
    found = replay(matmul(row.target, row.sizes, tile_bytes, fidelity), rates_of(row.target))
    assert not found.stuck
    math = max(processors["math"].end for processors in found.processors)
    to_us = 1e6 / row.target.clock_hz
    return (found.cycles + row.target.costs.launch_cycles) * to_us, math * to_us


def computing(row: Gemm) -> float:
    """The published microseconds of the math processors: from their share of the peak."""
    m, k, n = (size // 32 for size in row.sizes)
    ideal = m * k * n * row.target.costs.matmul_tile_cycles[FORMATS[row.format][1]] / row.target.cores
    return ideal / (row.utilization / 100) / row.target.clock_hz * 1e6


def errors() -> list[float]:
    return [predicted(row)[0] / row.us - 1 for row in GEMMS]


def test_the_error_is_the_one_that_estimates_tell() -> None:
    """Every row of the report counts; no constant belongs to a row."""
    found = [abs(error) for error in errors()]
    assert len(found) == 117
    assert statistics.median(found) == pytest.approx(MEDIAN_ERROR, abs=0.005)
    assert max(found) == pytest.approx(LARGEST_ERROR, abs=0.005)
    assert MEDIAN_ERROR < 0.15
    assert LARGEST_ERROR < 0.30


def test_math_processors_end_when_they_did() -> None:
    """What the writers do after them, and the launch, are predicted apart from what they do."""
    found = [abs(predicted(row)[1] / computing(row) - 1) for row in GEMMS]
    assert statistics.median(found) < 0.10


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda one: f"{one.target.arch} {one.name} {one.count}")
def test_patterns_of_the_noc(pattern: Pattern) -> None:
    for size, cycles in zip(SIZES, pattern.cycles, strict=True):
        found = replay(pattern.events(size), rates_of(pattern.target)).cycles
        assert found == pytest.approx(cycles, rel=0.20), f"{size} bytes"


def table() -> str:
    lines = [
        "Median and largest error of what the clock predicts, by kind of measurement (`tests/clock/measured.json` has "
        "the rows with their sources, `python -m tests.clock.measured` prints each):",
        "",
        measured.table(measured.rows()),
        "",
        f"{len(GEMMS)} times of matmuls: error {statistics.median(map(abs, errors())):.1%} in the median, "
        f"{max(map(abs, errors())):.1%} at most.",
        "",
        "| Cores | M, K, N | Format | Published, us | Predicted, us | Error |",
        "|---|---|---|---|---|---|",
    ]
    for row, error in zip(GEMMS, errors(), strict=True):
        columns, rows = row.target.compute_grid
        lines.append(
            f"| {row.target.name} {columns}x{rows} | {', '.join(map(str, row.sizes))} | {row.format} "
            f"{FORMATS[row.format][1]} | {row.us:.1f} | {predicted(row)[0]:.1f} | {error:+.0%} |"
        )
    lines += [
        "", "Cycles of one core that makes several transfers of 64, 2048 and 8192 bytes, with one barrier:", "",
        "| Chip | Transfers | Published | Predicted |", "|---|---|---|---|",
    ]  # fmt: skip
    for one in PATTERNS:
        found = [replay(one.events(size), rates_of(one.target)).cycles for size in SIZES]
        to = f" to {one.receivers} cores" if one.receivers else ""
        name = one.name.replace("l1", "L1").replace("bank", "a DRAM bank")
        lines.append(
            f"| {one.target.name} | {one.count} x {name}{to} | {', '.join(map(str, one.cycles))} | "
            f"{', '.join(map(str, found))} |"
        )
    return "\n".join(lines) + "\n"


def test_the_page_lists_them(request: pytest.FixtureRequest) -> None:
    text = PAGE.read_text(encoding="utf-8")
    written, _, _ = text.partition(MARK)
    compare_golden(PAGE, f"{written}{MARK}\n{table()}", update=bool(request.config.getoption("--update-golden")))


def test_the_page_tells_the_error() -> None:
    text = PAGE.read_text(encoding="utf-8").partition(MARK)[0]
    assert re.search(rf"{MEDIAN_ERROR:.0%} in the\s+median, {LARGEST_ERROR:.0%}", text)
