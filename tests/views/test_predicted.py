"""The predicted time as the explorer shows it, against the estimate itself."""

from __future__ import annotations

import dataclasses
import re

import pytest

from tests.corpus import gemm
from ttexplore import Exploration, explore
from ttexplore.clock.estimate import ACCURACY, Estimate
from ttexplore.errors import UsageError
from ttexplore.views.runs.predicted import (
    WAIT_KINDS,
    estimate_data,
    estimate_measures,
    megabytes,
    trace_data,
)
from ttexplore.views.runs.times import short_time

KERNEL = "notebooks/kernels/gemm.py::matmul"


@pytest.fixture(scope="module")
def shared() -> Exploration:
    """4 cores that share both inputs: the core (0, 0) reads a block of each, (1, 0) and (0, 1) one, (1, 1) none."""
    return explore(KERNEL, M=256, N=256, K=256, block_M=128, block_N=128, options={"multicast": "all", "cores": (2, 2)})


@pytest.fixture(scope="module")
def found(shared: Exploration) -> Estimate:
    found = shared.estimate()
    assert isinstance(found, Estimate)
    return found


@pytest.mark.parametrize(("count", "text"), [(640, "640 B"), (65_536, "65.5 kB"), (33_554_432, "33.6 MB")])
def test_sizes(count: int, text: str) -> None:
    assert megabytes(count) == text


def test_the_line_says_that_it_is_an_estimate_how_long_why_and_how_good(shared: Exploration, found: Estimate) -> None:
    data = shared.estimate_data()
    share = f"{found.compute_share:.0%}"[:-1]
    assert data["badge"] == f"{short_time(found.us)} estimate · {found.bound} bound · {share} % of peak"
    assert data["share"] == int(share)
    assert "an estimate, nothing was run" in data["title"]
    assert all("(estimate)" in name for name, _ in data["figures"])


def test_the_card_has_the_error_and_all_gains(shared: Exploration, found: Estimate) -> None:
    data = shared.estimate_data()
    facts = dict(data["facts"])
    assert facts["error"].replace(" %", "%") == ACCURACY
    assert facts["DRAM"] == (
        f"{megabytes(found.read_bytes)} read, {megabytes(found.written_bytes)} written; the tensors have "
        f"{megabytes(found.tensor_bytes)}"
    )
    assert facts["roofline"].startswith(short_time(found.roofline_us))
    names, times, shares = zip(*data["gains"], strict=True)
    assert {*names} == {*found.gains_us}
    assert (names[0], times[0]) == (found.bound, short_time(found.us - found.gains_us[found.bound]))
    assert list(shares) == sorted((round(100 * one / found.us) for one in found.gains_us.values()), reverse=True)


def test_idle_cores_are_told_with_what_they_would_bring_at_most() -> None:
    """One block on one core of 64, and as many as there are cores."""
    alone = explore(gemm(64, 64, 256, 64, 64, 32))
    estimate = alone.estimate()
    assert isinstance(estimate, Estimate)
    launch = estimate.us - estimate.kernels_us
    least = launch + max(core.end_us for core in estimate.cores) / 64
    assert dict(alone.estimate_data()["facts"])["idle cores"] == (
        f"63 of 64: the same work on all of them takes {short_time(least)} at least"
    )
    everywhere = explore(gemm(512, 512, 64, 64, 64, 32))
    assert "idle cores" not in dict(everywhere.estimate_data()["facts"])


def test_cores_read_what_they_send(shared: Exploration, found: Estimate) -> None:
    """Blocks of 128 x 256 and 256 x 128 elements of 2 bytes are read by their senders, 128 x 128 are written by all."""
    assert shared.plan.partition is not None
    measure = next(one for one in estimate_measures(found, shared.plan) if one.name == "DRAM bytes (estimate)")
    read, written = 128 * 256 * 2, 128 * 128 * 2
    expected = {(0, 0): 2 * read, (1, 0): read, (0, 1): read, (1, 1): 0}
    assert measure.shown == tuple(megabytes(expected[core.x, core.y] + written) for core in shared.plan.partition.cores
                                  if core.items)  # fmt: skip
    assert sum(len(one.cores) * one.read_bytes for one in found.cores) == found.read_bytes == 4 * read


def test_shares_of_the_time_have_one_scale(shared: Exploration, found: Estimate) -> None:
    measures = {one.name: one for one in estimate_measures(found, shared.plan)}
    busy = next(one for one in found.cores if (0, 0) in one.cores).processors["math"].busy_us
    assert measures["math busy (estimate)"].shown[0] == f"{round(100 * busy / found.us)} %"
    assert measures["waits for other cores (estimate)"].shown[0] == "0 %"
    assert measures["waits for other cores (estimate)"].shown[-1] != "0 %"
    for one in measures.values():
        assert any(text.startswith(one.name) for text in re.findall(r">([^<]+)</text>", one.legend))


def test_cores_without_work_have_no_colour_and_what_nobody_does_is_left_out(
    shared: Exploration, found: Estimate
) -> None:  # fmt: skip
    partition = shared.plan.partition
    assert partition is not None
    first, *others = partition.cores
    idle = dataclasses.replace(partition, cores=(dataclasses.replace(first, items=0), *others))
    for one in estimate_measures(found, dataclasses.replace(shared.plan, partition=idle)):
        assert [label == "" for label in one.labels] == [True, False, False, False]
    alone = explore(KERNEL, M=64, N=64, K=64, block_M=32, block_N=32, options={"multicast": "off"})
    names = [one["name"] for one in alone.estimate_data()["measures"]]
    assert "waits for other cores (estimate)" not in names
    assert "math busy (estimate)" in names


def test_nothing_computed_and_all_in_l1_has_no_roofline(found: Estimate, shared: Exploration) -> None:
    free = dataclasses.replace(found, compute_peak_us=0.0, dram_peak_us=0.0)
    assert dict(estimate_data(free, shared.plan)["facts"])["roofline"] == "0.0 µs (compute 0.0 µs, DRAM 0.0 µs)"


def test_the_trace_of_a_core_is_in_nanoseconds_of_its_clock(shared: Exploration, found: Estimate) -> None:
    data = shared.trace_data((1, 0))
    one = next(one for one in found.cores if (1, 0) in one.cores)
    assert data["note"].startswith("core (1, 0)")
    assert "An estimate: microseconds of the device" in data["unit"]
    assert [part["name"] for part in data["processors"]] == list(one.processors)
    for part in data["processors"]:
        processor = one.processors[part["name"]]
        starts, ends, busy, kinds = (part["parts"][k::4] for k in range(4))
        assert ends[-1] == pytest.approx(1000 * processor.end_us, abs=2)
        assert sum(busy) == pytest.approx(1000 * processor.busy_us, rel=0.02, abs=50)
        others = [
            e - s for s, e, kind in zip(starts, ends, kinds, strict=True) if kind == WAIT_KINDS.index("other cores")
        ]
        assert sum(others) == pytest.approx(1000 * processor.waits_us.get("semaphore", 0), rel=0.02, abs=50)
        assert part["told"].startswith(f"works {short_time(processor.busy_us)}")
    assert max(data["processors"][0]["parts"][1::4]) <= data["end"]


def test_a_trace_with_a_gap_says_where(found: Estimate) -> None:
    traces = [dataclasses.replace(one, gaps=((1000, 2000),), until=3000) for one in found._traces]
    cut = dataclasses.replace(found, _find_traces=lambda: tuple(traces))
    (first, last), end = trace_data(cut, (0, 0))["gaps"], max(one.end_us for one in found.cores if (0, 0) in one.cores)
    assert first == [1000, 2000]
    assert last == [3000, round(1000 * end)]


def test_a_core_without_kernels_has_no_trace(shared: Exploration) -> None:
    with pytest.raises(UsageError, match=r"core \(5, 5\) does not run the program"):
        shared.trace_data((5, 5))
