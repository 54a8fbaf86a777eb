"""Sums that several cores of a simulated chip add up: what they send arrives, in order, and nothing hangs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ttexplore as ttx
from tests.corpus.sums import split_k, sums_of_heads

pytestmark = [pytest.mark.device, pytest.mark.slow]


@pytest.mark.parametrize(
    ("kernel", "options"),
    [
        pytest.param(split_k(32, 32, 128, 4), {}, id="four cores hand on one block"),
        pytest.param(split_k(64, 64, 128, 2), {"multicast": "auto"}, id="two blocks for each core"),
        pytest.param(sums_of_heads(2, 2, 2), {}, id="two tensors"),
    ],
)
@pytest.mark.parametrize(
    "target", [pytest.param(one, marks=pytest.mark.xdist_group(one)) for one in ("wormhole_n150", "blackhole_p150")]
)
def test_cores_hand_on_partial_sums(target: str, kernel: Any, options: dict[str, Any], environment: Path) -> None:
    given = {"cores": (2, 2), "partials": "noc", **options}
    exploration = ttx.explore(kernel, target=target, options=given)
    assert exploration.error is None, str(exploration.error)
    assert any(len(chain) > 1 for sums in exploration.plan.partials for chain in sums.chains)
    run = exploration.run(backend="ttnn", device="wolfpine", environment=environment)
    assert run.passed, str(run)
    against_emulator = next(side.comparison for side in run.sides if side.name == "ttnn against emulator")
    assert against_emulator.equal_share == 1.0, str(run)
