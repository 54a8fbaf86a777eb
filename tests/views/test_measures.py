"""The numbers that the explorer shows of cores, computed here from the plan."""

from __future__ import annotations

import dataclasses
import re

import pytest

from ttexplore import Exploration, explore
from ttexplore.plan import Plan
from ttexplore.views.runs.measures import core_measures, figures

KERNEL = "notebooks/kernels/gemm.py::matmul"


@pytest.fixture(scope="module")
def uneven() -> Exploration:
    """3 cores that do 6, 5 and 5 of 16 items; an item reads 2 x 2 x 4 tiles twice and writes 2 x 2."""
    return explore(KERNEL, M=256, N=256, K=128, block_M=64, block_N=64, block_K=32, options={"cores": (3, 1)})


def test_measures_of_the_cores(uneven: Exploration) -> None:
    found = {one.name: one for one in core_measures(uneven.plan)}
    assert uneven.plan.partition is not None
    assert [core.items for core in uneven.plan.partition.cores] == [6, 5, 5]
    assert found["work items"].shown == ("6", "5", "5")
    assert found["work items"].steps == (8, 7, 7)
    assert found["tiles moved"].shown == ("120", "100", "100")
    # A tile of bfloat16 has 2 KiB.
    assert found["bytes moved"].shown == ("240 KiB", "200 KiB", "200 KiB")
    assert found["bytes moved"].labels == ("246k", "205k", "205k")
    assert found["L1 in use"].shown == ("32 KiB",) * 3
    # Where all are the same, a quiet step of the scale says so.
    assert found["L1 in use"].steps == (2, 2, 2)
    assert found["share of the mean"].shown == ("112 %", "94 %", "94 %")
    assert found["share of the mean"].labels == ("112", "94", "94")


def test_each_measure_has_the_legend_of_its_colours(uneven: Exploration) -> None:
    for one in core_measures(uneven.plan):
        labels = re.findall(r">([^<]+)</text>", one.legend)
        assert labels == [*sorted(set(one.shown), key=lambda text: float(text.split()[0])), one.name]
        assert {f"h{step}" for step in one.steps} == set(re.findall(r'class="(h\d)"', one.legend))


def test_a_measure_that_is_not_known_is_left_out(uneven: Exploration) -> None:
    before = dataclasses.replace(uneven.plan, graph=None)
    assert [one.name for one in core_measures(before)] == ["work items", "L1 in use", "share of the mean"]
    assert core_measures(Plan(kernel="k", target="t")) == ()


def test_figures_of_the_lowering(uneven: Exploration) -> None:
    found = dict(figures(uneven.trace, uneven.plan))
    assert found["cores in use"] == "3 of 3 cores"
    assert found["items on the busiest core"] == "6"
    assert found["circular buffers"] == "3"
    assert found["L1 per core"] == "32 KiB"
    assert found["tiles per item"] == "20"
    assert found["lines of compute.cpp"] == str(len(uneven.code["compute"].lines))
    refused = explore(KERNEL, M=1024, N=1024, K=1024, block_M=1024, block_N=1024, block_K=1024)
    assert dict(figures(refused.trace, refused.plan))["lines of compute.cpp"] == "–"
