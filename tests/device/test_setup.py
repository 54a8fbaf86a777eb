"""The set-up on this machine: complete, and nothing to do when it is called again."""

from __future__ import annotations

from pathlib import Path

import pytest

from ttexplore.backends.ttnn.environment import read_environment, verified_file
from ttexplore.backends.ttnn.setup import set_up

pytestmark = [pytest.mark.device, pytest.mark.slow, pytest.mark.xdist_group("wormhole_n150")]


def test_a_complete_environment_is_left_as_it_is(environment: Path) -> None:
    before = read_environment(environment)
    told: list[str] = []
    assert (set_up(environment, report=told.append), told) == (before, [])
    assert verified_file(before).exists()


def test_the_environment_has_both_chips_and_the_compiler_that_the_sdk_accepts(environment: Path) -> None:
    made = read_environment(environment)
    assert set(made.wolfpine_folders) == {"wormhole", "blackhole"}
    assert made.compiler_version.startswith("tenstorrent/sfpi:7.8")
