"""What operations cost: together it is what the estimate says of the processors, and it stands at the right lines."""

from __future__ import annotations

from typing import Any

import pytest

import ttexplore as ttx
from tests.clock.test_trace import ALONE, CASES, estimated
from tests.corpus import gemm
from ttexplore.clock.estimate import CoreEstimate, Estimate


def last_core(estimate: Estimate) -> CoreEstimate:
    return max(estimate.cores, key=lambda core: core.end_us)


@pytest.mark.parametrize("case", CASES, ids=lambda one: one.name)
def test_costs_add_up_to_what_the_processors_do(case: Any) -> None:
    estimate = estimated(ttx.explore(case.make(), options=case.options))
    core = last_core(estimate)
    for name, processor in core.processors.items():
        costs = [cost for cost in estimate.costs if cost.processor == name]
        assert sum(cost.busy_us for cost in costs) == pytest.approx(processor.busy_us, rel=0.01, abs=0.02)
        waited = sum(sum(cost.waits_us.values()) for cost in costs)
        assert waited == pytest.approx(sum(processor.waits_us.values()), rel=0.01, abs=0.02)


@pytest.mark.parametrize("size", [64, 256, 1024])
def test_periods_count_for_the_operations_that_repeat(size: int) -> None:
    """Bytes, which nothing rounds, and the products: one for each tile of the core's blocks along K."""
    exploration = ttx.explore(gemm(size, size, size, 64, 64, 32), options=ALONE)
    estimate = estimated(exploration)
    core = last_core(estimate)
    assert sum(cost.moved_bytes for cost in estimate.costs) == core.read_bytes + core.written_bytes
    costs = exploration.costs_data()
    lines = exploration.code["compute"].splitlines()
    most = max(costs["files"]["compute.cpp"].items(), key=lambda item: item[1][0])
    assert any(call in lines[int(most[0]) - 1] for call in ("matmul_block", "copy_tile", "pack_tile"))
    products = [cost for line, cost in costs["files"]["compute.cpp"].items() if "matmul_block(" in lines[int(line) - 1]]
    assert len(products) == 1
    assert "math works" in products[0][2]


def test_lines_of_the_kernel_have_what_their_operations_cost() -> None:
    exploration = ttx.explore(gemm(256, 256, 256, 64, 64, 32), options=ALONE)
    costs = exploration.costs_data()
    text = {line.origins[0].span.line: line.text for line in exploration.kernel.source.lines if line.origins}
    assert "T.gemm" in text[int(max(costs["kernel"], key=lambda line: costs["kernel"][line][0]))]
    assert exploration.estimate_data()["costs"] == costs
    assert all(0 <= works <= 100.1 and 0 <= waits <= 100.1 for works, waits, _ in costs["kernel"].values())
