"""Sweeps on a cluster of Dask: the table is that of one process, also if a worker is killed."""

from __future__ import annotations

import importlib
import os
import signal
from collections.abc import Generator
from typing import Any

import pytest

import ttexplore as ttx
from tests.sweeping.conftest import GEMM, SIZES
from ttexplore.control import FREE
from ttexplore.errors import BackendError, UsageError
from ttexplore.sweeping import sweep as module
from ttexplore.sweeping.workers import Cluster, LostTask

SPACE = {"block_M": [32, 64, 128, 512], "block_N": [32, 64, 512], "policy": ["contiguous", "strided"]}


@pytest.fixture
def distributed() -> Any:
    """Without it the tests are skipped, in CI they fail."""
    if os.environ.get("CI") == "true":
        return importlib.import_module("distributed")
    return pytest.importorskip("distributed")


@pytest.fixture
def cluster(distributed: Any) -> Generator[Any]:
    """Three workers, each a process with one thread."""
    made = distributed.LocalCluster(
        n_workers=3, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
    )
    with made:
        yield made


@pytest.mark.slow
def test_a_killed_worker_loses_no_results(cluster: Any, distributed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = ttx.sweep(GEMM, SPACE, workers=1, prove=0, **SIZES)
    monkeypatch.setattr(module, "_TELL_SECONDS", 0.0)
    killed: list[int] = []

    def progress(text: str) -> None:
        if "] 0 of" not in text and not killed:
            killed.append(next(iter(cluster.workers.values())).pid)
            os.kill(killed[0], signal.SIGKILL)

    with distributed.Client(cluster, set_as_default=False) as client:
        found = ttx.sweep(GEMM, SPACE, client=client, prove=0, fresh=True, progress=progress, **SIZES)
    assert len(killed) == 1
    assert found.complete
    assert found.table() == alone.table()
    # By the address, everything again, without what is kept.
    again = ttx.sweep(GEMM, SPACE, scheduler=cluster.scheduler_address, prove=0, fresh=True, **SIZES)
    assert again.table() == alone.table()


def ends(number: int) -> int:
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 2:
        raise ValueError("two")
    return number


@pytest.mark.slow
def test_a_task_that_ends_all_workers_is_lost(cluster: Any, distributed: Any) -> None:
    with distributed.Client(cluster, set_as_default=False) as client:
        found = dict(Cluster(client).answers(ends, [0, 1], FREE))
        assert found[0] == 0
        assert isinstance(found[1], LostTask)
        with pytest.raises(BackendError, match="a worker failed: ValueError: two"):
            dict(Cluster(client).answers(ends, [2], FREE))
        # What cannot travel is refused, not evaluated somewhere else.
        traced = ttx.explore(GEMM, **SIZES).kernel
        with pytest.raises(UsageError, match="cannot be sent to a cluster"):
            ttx.sweep(traced, {"policy": ["contiguous", "strided"]}, client=client)


def test_a_scheduler_that_is_not_there(distributed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ttexplore.sweeping.workers._CONNECT_SECONDS", 1)
    with pytest.raises(BackendError, match=r"the scheduler tcp://127\.0\.0\.1:9 cannot be reached") as caught:
        ttx.sweep(GEMM, {"block_M": [32, 64]}, scheduler="tcp://127.0.0.1:9", **SIZES)
    assert caught.value.code == "TTX-B034"
    assert "dask scheduler" in caught.value.hint
    with pytest.raises(BackendError, match="the scheduler nowhere://x cannot be reached"):
        ttx.sweep(GEMM, {"block_M": [32, 64]}, scheduler="nowhere://x", **SIZES)
