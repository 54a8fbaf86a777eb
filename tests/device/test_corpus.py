"""The corpus on a simulated chip: what passes on the emulator passes there.

Each chip has about half of the kernels. The name of a kernel tells which: a new kernel does not move others.
"""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

import ttexplore as ttx
from tests.corpus import CORPUS, Case

pytestmark = [pytest.mark.device, pytest.mark.slow]

CHIPS = ("wormhole_n150", "blackhole_p150")


@pytest.mark.parametrize(
    ("case", "target"),
    [
        pytest.param(case, target, id=f"{case.name}-{target}", marks=pytest.mark.xdist_group(target))
        for case in CORPUS
        if case.on_chip
        for target in (CHIPS[zlib.crc32(case.name.encode()) % 2],)
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
