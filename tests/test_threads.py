"""Threads of one process explore, run and check at once."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import ttexplore as ttx
from tests.corpus import gemm
from ttexplore.record import to_json

ELEMENTWISE = f"{Path(__file__).parents[1] / 'notebooks' / 'kernels' / 'elementwise.py'}::bias_exp"


@pytest.mark.slow
def test_threads_explore_at_once() -> None:
    """Kernels of files and of Python, explored, checked and run at once, give what they give one after another."""

    def told(number: int) -> str:
        exploration = ttx.explore(gemm(64, 64, 64, 32, 32, 32)) if number % 2 else ttx.explore(ELEMENTWISE, M=64, N=64)
        record = to_json(exploration.trace)
        for step in [leaf for one in record["steps"] for leaf in (one, *one["parts"])]:
            del step["seconds"]
        return f"{json.dumps(record)} {exploration.check()} {exploration.run().outputs}"

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            together = list(pool.map(told, range(8)))
    finally:
        sys.setswitchinterval(interval)
    assert together == [told(0), told(1)] * 4
