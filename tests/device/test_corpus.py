"""The corpus on a simulated chip, but for what is left out for its time: what passes on the emulator passes there.

The kernels take turns on the two chips, so that each chip has its half.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import ttexplore as ttx
from tests.corpus import CORPUS, Case

pytestmark = [pytest.mark.device, pytest.mark.slow]

CHIPS = ("wormhole_n150", "blackhole_p150")
# These do not end within the limit of 300 seconds: the first on neither simulated chip, the second not on Blackhole.
ON_NEITHER, ON_WORMHOLE = ("index_in_two_loops",), ("convolution",)


@pytest.mark.parametrize(
    ("case", "target"),
    [
        pytest.param(case, target, id=f"{case.name}-{target}", marks=pytest.mark.xdist_group(target))
        for number, case in enumerate(case for case in CORPUS if case.on_chip)
        if case.name not in ON_NEITHER
        for target in (CHIPS[0 if case.name in ON_WORMHOLE else number % 2],)
    ],
)
def test_the_chip_gives_the_emulators_numbers(case: Case, target: str, environment: Path) -> None:
    # The simulated chip takes its time for each core: one, unless the case is about the cores.
    cores = {} if {"core_ranges", "work_lists"} & case.options.keys() else {"cores": (1, 1)}
    exploration = ttx.explore(case.make(), target=target, options={**cores, **case.options})
    run = exploration.run(backend="ttnn", device="wolfpine", environment=environment)
    assert run.passed, str(run)
    against_emulator = next(side.comparison for side in run.sides if side.name == "ttnn against emulator")
    assert against_emulator.equal_share == 1.0, str(run)
