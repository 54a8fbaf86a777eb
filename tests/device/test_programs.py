"""Emitted programs through the real SDK, on a simulated Wormhole and a simulated Blackhole."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import ttexplore as ttx
from tests.corpus import copy_block, elementwise, gemm, row_bias

pytestmark = [pytest.mark.device, pytest.mark.slow]


@dataclass(frozen=True)
class DeviceCase:
    """A kernel, the options it is lowered with, and how many cores must have work."""

    name: str
    kernel: Any
    cores: int
    options: dict[str, Any] = field(default_factory=dict[str, Any])


CASES = (
    DeviceCase("copy", copy_block(), 6),
    DeviceCase("add", elementwise(lambda a, b: a + b), 2),
    DeviceCase("expression", elementwise(lambda a, b: ttx.language.exp(a) * b + 0.5), 1, {"cores": (1, 1)}),
    DeviceCase("row_broadcast", row_bias("bfloat16", True), 1, {"cores": (1, 1)}),
    DeviceCase("gemm_one_core", gemm(64, 64, 96, 64, 64, 32), 1, {"cores": (1, 1)}),
    DeviceCase("gemm_2x2_spilled", gemm(128, 192, 64, 64, 96, 32), 4, {"cores": (2, 2)}),
    DeviceCase("gemm_tall", gemm(256, 32, 64, 32, 32, 32), 4, {"cores": (1, 4)}),
    DeviceCase("strided", copy_block(), 4, {"policy": "strided", "cores": (2, 2)}),
    DeviceCase("loaded_by_both", gemm(96, 64, 96, 32, 32, 32), 4, {"cores": (2, 2), "loaded_by": "both"}),
    # By default, because that is predicted to be faster.
    DeviceCase("loaded_by_choice", gemm(64, 64, 512, 32, 32, 32), 4, {"cores": (2, 2), "multicast": "all"}),
    DeviceCase(
        "sent_by_both",
        gemm(128, 128, 96, 32, 32, 32),
        4,
        {"policy": "rectangular", "cores": (2, 2), "multicast": "all", "loaded_by": "both"},
    ),
    DeviceCase(
        "sent_to_all_by_both",
        gemm(64, 64, 64, 32, 32, 32),
        4,
        {"cores": (2, 2), "multicast": "all", "loaded_by": {"A": "writer"}},
    ),
    DeviceCase("rectangular", gemm(96, 64, 32, 32, 32, 32), 4, {"policy": "rectangular", "cores": (2, 2)}),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize(
    "target",
    # One worker of the tests for each chip: a chip is opened once.
    [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in ("wormhole_n150", "blackhole_p150")],
)
def test_the_chip_gives_the_reference(case: DeviceCase, target: str, environment: Path) -> None:
    exploration = ttx.explore(case.kernel, target=target, options=case.options)
    partition = exploration.plan.partition
    assert partition is not None
    assert len(partition.cores) == case.cores
    run = exploration.run(backend="ttnn", device="wolfpine", environment=environment)
    assert run.passed, run.message
    assert run.pcc >= 0.99999, str(run)
    against_emulator = next(side.comparison for side in run.sides if side.name == "ttnn against emulator")
    assert against_emulator.equal_share == 1.0, str(run)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.xdist_group("blackhole_p150")
def test_attention_with_fast_functions_is_that_of_the_emulator(causal: bool, environment: Path) -> None:
    """With maxima of a row of tiles at once, and scores of which one outweighs all others, or that are all equal."""
    exploration = ttx.explore(
        "benchmarks/sdk_attention.py::attention", target="blackhole_p150", heads=1, groups=1, seq_len=128, block_M=64,
        block_N=64, causal=causal, options={"sfpu": "fast", "eltwise": "fpu", "math_fidelity": "HiFi2"},
    )  # fmt: skip
    assert "reduce_block_max_row<" in exploration.code["compute"].text
    q, k, v = (array.copy() for array in exploration.inputs())
    q[0, 0] *= 60
    q[0, 1] = 0
    q[0, 70:80] *= -30
    run = exploration.run([q, k, v], backend="ttnn", device="wolfpine", environment=environment)
    assert run.passed, run.message
    against_emulator = next(side.comparison for side in run.sides if side.name == "ttnn against emulator")
    assert against_emulator.equal_share == 1.0, str(run)
