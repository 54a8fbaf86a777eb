"""Kernels of the gallery on both simulated chips: the chip gives the emulator's numbers, bit by bit. Some are small,
and some are those of the gallery, compared with their record.

Sums are those of the FPU: wolfpine adds up wrongly on the SFPU.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ttexplore as ttx
from benchmarks.gallery import chip_status
from ttexplore.course.gallery import CHIPS, read_gallery

pytestmark = [pytest.mark.device, pytest.mark.slow]

FOLDER = Path(__file__).parents[2] / "notebooks" / "gallery"
SMALL: dict[str, dict[str, Any]] = {
    "attention.py::full_attention": {"heads": 1, "seq_len": 64, "dim": 32, "block_M": 32, "block_N": 32},
    "attention.py::causal_attention": {"heads": 1, "seq_len": 64, "dim": 32, "block_M": 32, "block_N": 32},
    "norms.py::layer_norm": {"M": 32, "N": 64},
    "linear_attention.py::retention": {"heads": 1, "seq_len": 64},
}


@pytest.mark.parametrize(
    ("name", "target"),
    [
        pytest.param(name, target, id=f"{name}-{target}", marks=pytest.mark.xdist_group(target))
        for name in SMALL
        for target in ("wormhole_n150", "blackhole_p150")
    ],
)
def test_the_chip_gives_the_emulators_numbers(name: str, target: str, environment: Path) -> None:
    options = {"cores": (1, 1), "eltwise": "fpu"}
    explored = ttx.explore(f"{FOLDER}/{name}", target=target, options=options, **SMALL[name])
    run = explored.run(backend="ttnn", device="wolfpine", environment=environment)
    assert run.passed, str(run)
    against_emulator = next(side.comparison for side in run.sides if side.name == "ttnn against emulator")
    assert against_emulator.equal_share == 1.0, str(run)


# Of the quickest, one for each kind of operand: blocks, products, groups of threads.
SAMPLE = ("add", "gemm", "producer_and_consumer")


@pytest.mark.parametrize(
    ("name", "target"),
    [
        pytest.param(name, target, id=f"{name}-{target}", marks=pytest.mark.xdist_group(target))
        for name in SAMPLE
        for target in CHIPS
    ],
)
@pytest.mark.usefixtures("environment")
def test_the_record_holds(name: str, target: str) -> None:
    entry = read_gallery(FOLDER).entry(name)
    found = chip_status(f"{FOLDER}/{entry.kernel}", target)
    recorded = entry.record["chips"][target]
    assert (found["result"], found["options"]) == (recorded["result"], recorded["options"])
