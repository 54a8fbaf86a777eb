"""Machine models: counts of the data sheets, harvesting, and what wrong use says."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from ttexplore.errors import UsageError
from ttexplore.record import from_json
from ttexplore.target import TARGETS, Target, get_target

# Compute cores, workers, Ethernet cores, DRAM nodes and all nodes of each target, from the data sheets.
COUNTS = {
    "wormhole_n150": (64, 72, 16, 18, 10 * 12),
    "wormhole_n300": (64, 64, 16, 18, 10 * 12),
    "blackhole_p100": (110, 120, 14, 24, 17 * 12),
    "blackhole_p150": (110, 120, 14, 24, 17 * 12),
}


@pytest.mark.parametrize("name", TARGETS)
def test_floorplan_counts(name: str) -> None:
    assert name in COUNTS, "count the cores of the target here, as its data sheet says"
    cores, workers, ethernet, dram_nodes, nodes = COUNTS[name]
    target = get_target(name)
    floorplan = target.floorplan()
    kinds = Counter(node.kind for node in floorplan)
    assert len(floorplan) == len({(node.x, node.y) for node in floorplan}) == nodes
    assert (kinds["tensix"], kinds["ethernet"], kinds["dram"]) == (workers, ethernet, dram_nodes)
    assert kinds["tensix"] + kinds["harvested"] == len(target.worker_columns) * len(target.worker_rows)
    assert target.cores == cores
    logical = [node.logical for node in floorplan if node.logical is not None]
    assert len(logical) == len(set(logical)) == cores


@pytest.mark.parametrize("name", TARGETS)
def test_the_page_of_the_device_names_the_target(name: str) -> None:
    page = (Path(__file__).parents[1] / "docs" / "device.md").read_text(encoding="utf-8")
    assert re.search(rf"^\| .*`{name}`", page, re.MULTILINE)


@pytest.mark.parametrize("name", TARGETS)
def test_logical_cores_are_working_nodes(name: str) -> None:
    target = get_target(name)
    nodes = {(node.x, node.y): node for node in target.floorplan()}
    columns, rows = target.compute_grid
    for y in range(rows):
        for x in range(columns):
            node = nodes[target.physical(x, y)]
            assert (node.kind, node.logical) == ("tensix", (x, y))


def test_dst_tiles() -> None:
    target = get_target("wormhole_n150")
    assert [target.dst_tiles(wide, sync) for wide in (False, True) for sync in (False, True)] == [8, 16, 4, 8]


def test_limits_differ_by_chip() -> None:
    wormhole, blackhole = get_target("wormhole_n300"), get_target("blackhole_p150")
    assert (wormhole.circular_buffers, blackhole.circular_buffers) == (32, 64)
    assert (wormhole.dram_banks, blackhole.dram_banks, get_target("blackhole_p100").dram_banks) == (12, 8, 7)
    assert (wormhole.dram_alignment_bytes, blackhole.dram_alignment_bytes) == (32, 64)
    assert wormhole.l1_usable_bytes < wormhole.l1_bytes < blackhole.l1_bytes


def test_read_latency_agrees_with_the_published_table() -> None:
    """One L1 read of 64 bytes: 205 and 293 cycles on Wormhole (12 and 22 hops), 226 and 373 on Blackhole."""
    for name, hops_and_cycles in {
        "wormhole_n150": ((12, 205), (22, 293)),
        "blackhole_p150": ((12, 226), (29, 373)),
    }.items():
        costs = get_target(name).costs
        for hops, cycles in hops_and_cycles:
            assert costs.noc_read_cycles + hops * costs.noc_hop_cycles == pytest.approx(cycles, rel=0.03)


def test_peak_rates_agree_with_the_data_sheet() -> None:
    """262 and 65.5 TFLOP/s at LoFi and HiFi4 on 64 Wormhole cores, 608 and 152 on 110 Blackhole cores."""
    for name, lofi, hifi4 in (("wormhole_n150", 262e12, 65.5e12), ("blackhole_p150", 608e12, 152e12)):
        target = get_target(name)
        for fidelity, expected in (("LoFi", lofi), ("HiFi4", hifi4)):
            seconds = target.costs.matmul_tile_cycles[fidelity] / target.clock_hz
            assert 2 * 32**3 * target.cores / seconds == pytest.approx(expected, rel=0.01)


def test_harvested_wormhole_rows_are_skipped() -> None:
    target = get_target("wormhole_n150", harvested=(2, 9))
    assert target.compute_grid == (8, 8)
    assert [target.physical(0, y)[1] for y in range(8)] == [1, 3, 4, 5, 7, 8, 10, 11]
    assert target.translated(0, 0) == (18, 18)
    assert target.translated(7, 7) == (25, 25)
    assert sum(node.kind == "harvested" for node in target.floorplan()) == 16


def test_harvested_blackhole_columns_are_skipped() -> None:
    target = get_target("blackhole_p150", harvested=[1, 12])
    assert [target.physical(x, 0)[0] for x in range(11)] == [2, 3, 4, 5, 6, 7, 10, 11, 13, 14, 15]
    assert target.translated(0, 0) == (1, 2)
    assert target.translated(7, 9) == (10, 11)


def test_harvesting_shrinks_the_compute_grid() -> None:
    assert get_target("wormhole_n150", harvested=4).compute_grid == (8, 6)
    assert get_target("blackhole_p100", harvested=5).compute_grid == (9, 10)
    whole = get_target("blackhole_p150", harvested=0, grid=(13, 10))
    assert (whole.compute_grid, whole.worker_grid, whole.cores) == ((13, 10), (14, 10), 130)


def test_grid_of_a_given_target() -> None:
    small = get_target(get_target("wormhole_n150", grid=(4, 2)))
    assert small.compute_grid == (4, 2)
    assert sum(node.logical is not None for node in small.floorplan()) == 8


def test_json_both_ways() -> None:
    for target in TARGETS.values():
        assert from_json(Target, json.loads(json.dumps(target.to_json()))) == target


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"target": "wormhole_n15"},
            f"there is no target 'wormhole_n15'\n  hint: did you mean wormhole_n150? use one of {', '.join(TARGETS)}",
        ),
        (
            {"target": "h100"},
            f"there is no target 'h100'\n  hint: use one of {', '.join(TARGETS)}",
        ),
        (
            {"target": "wormhole_n150", "grid": (9, 4)},
            "wormhole_n150 has 8x9 workers, not 9x4\n  hint: use a grid within that, or change harvested",
        ),
        (
            {"target": "wormhole_n150", "harvested": 10},
            "10 of 10 rows cannot be harvested\n  hint: use a number from 0 to 9",
        ),
        (
            {"target": "blackhole_p150", "harvested": (8,)},
            "columns [8] of blackhole_p150 contain no workers\n"
            "  hint: use columns with workers: 1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15, 16",
        ),
        (
            {"target": "wormhole_n150", "harvested": (1, 2, 3, 4, 5, 7, 8, 9, 10, 11)},
            "wormhole_n150 would have no workers left\n  hint: keep at least one of its rows",
        ),
    ],
)
def test_wrong_use(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        get_target(**arguments)  # pyright: ignore[reportArgumentType]
    assert told(caught.value) == message


def told(error: UsageError) -> str:
    """The message and the hint, without the code behind them."""
    return f"{error.message}\n  hint: {error.hint}"


def test_core_outside_the_grid() -> None:
    with pytest.raises(UsageError) as caught:
        get_target("wormhole_n150").physical(8, 0)
    assert told(caught.value) == "wormhole_n150 has no core (8, 0)\n  hint: use cores from (0, 0) to (7, 7)"
