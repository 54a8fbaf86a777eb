"""Cores that are looked at together: the same is known of each as if it were alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
from tests.corpus import gemm
from ttexplore.ir.arithmetic.index import Binary, CoreItem, CoreValue, Expression, Range, Select, Variable
from ttexplore.ir.kernel import FunctionReader
from ttexplore.passes.verify.alike_cores import Apart, CoreRanges, by_likeness
from ttexplore.passes.verify.needed_pages import needed_pages
from ttexplore.passes.verify.sharing import _followed  # pyright: ignore[reportPrivateUsage]
from ttexplore.plan import CoreWork

CORES = [CoreWork(x, 0, 2, {"start": 3 * x, "by": x % 2, "all": 7}, (5, x)[: 1 + (x != 1)]) for x in range(4)]
START, BY, TURN, UNKNOWN = CoreValue("start"), CoreValue("by"), Variable(0, "t"), Variable(1, "u")


def ranges(cores: list[CoreWork]) -> CoreRanges:
    found = CoreRanges(cores)
    at = np.arange(3).reshape(-1, 1)
    found.learn(TURN, (at, at))
    return found


def seen(cores: list[CoreWork], e: Expression) -> Range | None:
    known = ranges(cores)
    return known.item(e) if isinstance(e, CoreItem) else known.of(e)


@pytest.mark.parametrize(
    ("e", "groups"),
    [
        (Binary("+", START, 1), [[0, 1, 2, 3]]),
        (Binary("+", Binary("*", START, TURN), CoreValue("all")), [[0, 1, 2, 3]]),
        (Select(Binary("==", START, 3), START, TURN), [[0, 1, 2, 3]]),
        (Binary("+", START, UNKNOWN), [[0, 1, 2, 3]]),
        # Core 1 has no second number.
        (CoreItem("listed", 0), [[0, 1, 2, 3]]),
        (CoreItem("listed", BY), [[1], [0, 2, 3]]),
        # Two of them divide by 0.
        (Binary("//", START, BY), [[3], [2], [1], [0]]),
    ],
)
def test_each_core_has_what_it_has_alone(e: Expression, groups: list[list[int]]) -> None:
    found = by_likeness(CORES, lambda cores: seen([*cores], e))
    assert [[core.x for core in cores] for cores, _ in found] == groups
    for cores, together in found:
        for number, core in enumerate(cores):
            alone = seen([core], e)
            assert (alone is None) == (together is None)
            for one, other in zip(alone or (), together or (), strict=True):
                shape = np.broadcast_shapes(np.shape(other), (len(cores),))
                mine = np.broadcast_to(other, shape)[..., number : number + 1]
                assert np.array_equal(mine, np.broadcast_to(one, mine.shape))


def test_cores_come_apart_where_a_value_must_be_the_same() -> None:
    known = CoreRanges(CORES)
    with pytest.raises(Apart) as apart:
        known.same(np.asarray([4, 4, 6, 4]))
    assert apart.value.labels == [4, 4, 6, 4]
    assert known.same(np.asarray([4])) == known.same(4) == 4


@pytest.mark.parametrize(
    ("kernel", "options"),
    [
        (gemm(128, 128, 96, 32, 32, 32), {"cores": (2, 2)}),
        # Some cores have one work item more, and make more turns.
        (gemm(160, 96, 64, 32, 32, 32), {"cores": (2, 2)}),
        (gemm(160, 96, 64, 32, 32, 32), {"cores": (4, 1), "policy": "strided"}),
    ],
)
@pytest.mark.parametrize("most", [1 << 20, 5])
def test_pages_are_those_of_each_core(
    kernel: Any, options: dict[str, Any], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ttexplore.passes.verify.needed_pages._MOST_TOGETHER", most)
    explored = ttx.explore(kernel, options=options)
    functions, plan = explored.steps["E1"].after.functions, explored.plan
    reader = FunctionReader().read("reader", functions["reader"])
    assert plan.partition is not None
    for buffer in ("a", "b"):
        groups = needed_pages(reader, plan.partition.cores, [buffer])
        assert sum(len(cores) for cores, _ in groups) == len(plan.partition.cores)
        for cores, together in groups:
            for number, core in enumerate(cores):
                ((_, alone),) = needed_pages(reader, [core], [buffer])
                assert alone
                assert alone.keys() == together.keys()
                for call, pages in alone.items():
                    assert np.array_equal(pages[..., 0], together[call][..., number])


@pytest.mark.parametrize(
    ("kernel", "options"),
    [
        (gemm(256, 256, 96, 32, 32, 32), {"cores": (2, 2)}),
        (gemm(256, 256, 96, 32, 32, 32), {"cores": (2, 2), "policy": "rectangular"}),
        # One turn of the innermost loop, one of the loop around it, and three work items for some cores.
        (gemm(256, 64, 32, 32, 32, 32), {"cores": (2, 2), "policy": "rectangular"}),
    ],
)
def test_loops_that_only_repeat_others_are_one_sequence(
    kernel: Any, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is counted is what all turns do, one by one."""
    program = ttx.explore(kernel, options={**options, "multicast": "all", "loaded_by": "reader"}).steps["D3"].after
    functions, plan = program.functions, program.plan
    assert plan.shared
    assert plan.partition is not None
    reader = {"reader": FunctionReader().read("reader", functions["reader"])}
    some = _followed(reader, plan, plan.partition)
    monkeypatch.setattr("ttexplore.passes.verify.sharing._TURNS", 1 << 20)
    for few, every in zip(some, _followed(reader, plan, plan.partition), strict=True):
        assert few.numbers == every.numbers
        assert len(few.kernels["reader"]) < len(every.kernels["reader"])
