"""The corpus as parameters of tests, and its explorations, which tests of one kernel share."""

from __future__ import annotations

import functools

import pytest

import ttexplore as ttx
from tests.corpus import CORPUS
from ttexplore.exploration import Exploration

CASES = {case.name: case for case in CORPUS}
# All tests of a kernel run in one process, one after another.
NAMES = [pytest.param(name, marks=pytest.mark.xdist_group(f"corpus {name}")) for name in CASES]


@functools.lru_cache(maxsize=4)
def explored(name: str, target: str = "wormhole_n150") -> Exploration:
    """A kernel of the corpus, lowered with its options. Raises the error that stops it."""
    exploration = ttx.explore(CASES[name].make(), target=target, options=CASES[name].options)
    if exploration.error is not None:
        raise exploration.error
    return exploration
