"""Defaults that are the same for all kernels, held to the clock: choosing them by time would gain little."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clock.test_choices import product
from ttexplore.analysis.dst_blocks import sub_blocks

# The time with another depth or sub-block, against that with the default.
WORTH = 0.95
TARGETS = ["wormhole_n150", "blackhole_p150"]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("options", [{}, {"multicast": "off"}, {"accumulate": "l1"}], ids=str)
@pytest.mark.parametrize(
    ("m", "n", "k", "blocks"),
    [
        (512, 512, 512, (64, 64, 64)), (256, 1024, 1024, (32, 128, 64)), (512, 512, 2048, (256, 64, 32)),
    ],
)  # fmt: skip
def test_more_than_two_blocks_gain_little(
    m: int, n: int, k: int, blocks: tuple[int, int, int], options: dict[str, Any], target: str
) -> None:
    """With two, a block is loaded while another one is computed; more only even out turns of different length."""
    two = product(target, m, n, k, blocks, math_fidelity="LoFi", **options)
    assert {one.stages for one in two.plan.buffers if one.name in ("A_shared", "B_shared")} == {2}
    assert min(two.fork(at="A2", stages=depth).estimate().us for depth in (3, 6)) >= WORTH * two.estimate().us


@pytest.mark.parametrize("target", TARGETS)
def test_one_block_is_not_enough(target: str) -> None:
    one, two = (
        product(target, 1024, 1024, 1024, (128, 128, 128), math_fidelity="LoFi", stages=depth).estimate().us
        for depth in (1, 2)
    )
    assert two < 0.8 * one


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "options", [{"math_fidelity": "LoFi"}, {"math_fidelity": "HiFi4"}, {"accumulate": "l1"}], ids=str
)
@pytest.mark.parametrize(("rows", "columns", "depth"), [(4, 4, 1), (1, 8, 4), (6, 7, 1)])
def test_no_other_sub_block_is_much_faster(
    rows: int, columns: int, depth: int, options: dict[str, Any], target: str
) -> None:  # fmt: skip
    """D5 takes the one with the fewest cycles of its own model, which knows less than the clock."""
    blocks = (32 * rows, 32 * columns, 32 * depth)
    chosen = product(target, *blocks[:2], 8 * blocks[2], blocks, cores=(1, 1), **options)
    forks = (chosen.fork(at="D5", subblock=(one.rows, one.columns)) for one in sub_blocks((rows, columns), 8))
    us = [one.estimate().us for one in forks if one.error is None]
    assert min(us) >= WORTH * chosen.estimate().us
    assert len(us) > 1
