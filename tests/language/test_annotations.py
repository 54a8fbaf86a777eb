# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportUndefinedVariable=false
"""Annotations of the schedule and of tensors act, and what they accept is checked at their line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ttexplore as ttx
import ttexplore.language as T
from ttexplore.errors import TTExploreError, Unsupported, UsageError
from ttexplore.exploration import Exploration
from ttexplore.language.api.annotations import annotate_tt_layout, annotate_tt_schedule, annotate_tt_sharding

COPY = """\
import tilelang.language as T
from tilelang.tenstorrent import TTShard, annotate_tt_layout, annotate_tt_schedule, annotate_tt_sharding


{above}@T.prim_func
def copy(A: T.Tensor((96, 160), "bf16"), B: T.Tensor((96, 160), "bf16")):
    {first}
    with T.Kernel(5, 3) as (bx, by):
        {inside}
        S = T.alloc_shared((32, 32), "bf16")
        T.copy(A[by * 32, bx * 32], S)
        T.copy(S, B[by * 32, bx * 32])
"""


def explored(folder: Path, first: str = "pass", inside: str = "pass", above: str = "", **options: Any) -> Exploration:
    file = folder / "copy.py"
    file.write_text(COPY.format(first=first, inside=inside, above=above and above + "\n"))
    return ttx.explore(f"{file}::copy", options=options)


FORMS = [
    {"first": "T.annotate_tt_schedule(policy='strided', order='column_major')"},
    {"inside": "T.annotate_tt_schedule(policy='strided', order='column_major')"},
    {"inside": "annotate_tt_schedule({'policy': 'strided', 'order': 'column_major'})"},
    {"above": "@annotate_tt_schedule(policy='strided', order='column_major')"},
]


@pytest.mark.parametrize("form", FORMS)
def test_a_schedule_acts_wherever_it_stands(form: dict[str, str], tmp_path: Path) -> None:
    exploration = explored(tmp_path, **form)
    partition = exploration.plan.partition
    assert exploration.run().passed
    assert partition is not None
    assert (partition.policy, partition.order) == ("strided", "column_major")
    line = next(number for number, text in enumerate(COPY.splitlines(), 1) if next(iter(form)) in text)
    where = "annotation" if "above" in form else f"annotation at {tmp_path}/copy.py:{line}"
    assert partition.reason.startswith(where)


def test_options_win_and_the_plan_says_so(tmp_path: Path) -> None:
    first = "T.annotate_tt_schedule(policy='z_order'); T.annotate_tt_layout({A: {'memory': 'L1'}, B: {'memory': 'L1'}})"
    plan = explored(tmp_path, first, policy="strided", layouts={"A": {"shard": "height", "memory": "L1"}}).plan
    assert plan.partition is not None
    assert plan.partition.policy == "strided"
    assert plan.partition.reason.startswith("option, instead of the annotation at ")
    assert plan.layout("A").sharding is not None
    assert plan.layout("A").reason.startswith("option, instead of the annotation at ")
    assert (plan.layout("B").memory, plan.layout("B").sharding) == ("l1", None)
    assert plan.layout("B").reason.startswith("annotation at ")
    assert [(one.option, one.tensor, one.value, one.taken) for one in plan.annotations] == [
        ("policy", "", "z_order", False), ("layouts", "A", "memory l1", False), ("layouts", "B", "memory l1", True),
    ]  # fmt: skip


def test_an_order_or_lists_replace_a_policy_that_is_an_order(tmp_path: Path) -> None:
    first = "T.annotate_tt_schedule(policy='z_order', order='z_order')"
    plan = explored(tmp_path, first, order="column_major").plan
    assert plan.partition is not None
    assert (plan.partition.policy, plan.partition.order) == ("contiguous", "column_major")
    plan = explored(tmp_path, first, work_lists={(0, 0): list(range(15))}).plan
    assert plan.partition is not None
    assert plan.partition.policy == "explicit"


def test_sharding_in_all_its_forms(tmp_path: Path) -> None:
    shard = "TTShard(axis=0, tiles=('rows', 32), placement='L1', order='column_major', faces='16x16')"
    exploration = explored(tmp_path, f"T.annotate_tt_sharding({{A: T.{shard}, B: T.TTShard(axis=(0, 1))}})")
    made = exploration.plan.layout("A").sharding
    assert made is not None
    assert (made.kind, made.order, made.grid) == ("height", "column_major", (3, 1))
    assert (exploration.plan.layout("B").memory, exploration.plan.layout("B").arrangement) == ("dram", "interleaved")
    above = f'@annotate_tt_sharding({{"A": {shard}, "B": {{"layout": "row_major"}}}})'
    assert explored(tmp_path, above=above).plan.layout("A").sharding == made
    asked = "memory='L1', layout='sharded', tile_shape=[32, 32], nd_shard={'axes': [1], 'grid': [5]}"
    made = explored(tmp_path, f"T.annotate_tt_layout(A, {asked})").plan.layout("A").sharding
    assert made is not None
    assert (made.kind, made.grid) == ("width", (1, 5))


def test_annotations_of_a_kernel_from_outside() -> None:
    @T.prim_func
    def copy(A: T.Tensor((64, 64), "bf16"), B: T.Tensor((64, 64), "bf16")):
        with T.Kernel(2, 2) as (bx, by):
            S = T.alloc_shared((32, 32), "bf16")
            T.copy(A[by * 32, bx * 32], S)
            T.copy(S, B[by * 32, bx * 32])

    made = annotate_tt_schedule(copy, {"policy": "rect", "rect": (0, 0, 2, 1)})
    made = annotate_tt_sharding(made, {"A": T.TTShard(axis=1, placement="L1")})
    made = annotate_tt_layout(made, {"B": {"memory": "L1", "layout": "interleaved"}})
    plan = ttx.explore(made).plan
    assert plan.partition is not None
    assert [core.values for core in plan.partition.cores] == [
        {"x_start": 0, "x_count": 1, "y_start": 0, "y_count": 2},
        {"x_start": 1, "x_count": 1, "y_start": 0, "y_count": 2},
    ]  # fmt: skip
    assert [layout.memory for layout in plan.layouts] == ["l1", "l1"]
    assert ttx.explore(copy).plan.annotations == ()
    with pytest.raises(UsageError, match="there is no tensor 'D'"):
        annotate_tt_layout(copy, {"D": {"memory": "L1"}})
    with pytest.raises(UsageError, match="3 cannot be annotated from outside"):
        annotate_tt_schedule(3, {"policy": "strided"})
    with pytest.raises(UsageError, match="annotate_tt_layout takes a dictionary, not 'L1'"):
        annotate_tt_layout(copy, "L1")


def test_stride_and_rectangles(tmp_path: Path) -> None:
    partition = explored(tmp_path, "T.annotate_tt_schedule(policy='strided', stride=(0, 4))").plan.partition
    assert partition is not None
    assert (len(partition.cores), partition.step) == (4, 4)
    partition = explored(tmp_path, "T.annotate_tt_schedule(rect=(0, 0, 1, 3))").plan.partition
    assert partition is not None
    assert [core.items for core in partition.cores] == [3, 2, 3, 2, 3, 2]


@pytest.mark.parametrize(
    ("first", "kind", "message"),
    [
        ("T.annotate_tt_schedule(polcy='strided')", UsageError, "there is no key of the schedule 'polcy'"),
        ("T.annotate_tt_schedule(policy='contigous')", UsageError, "there is no policy 'contigous'"),
        ("T.annotate_tt_schedule(order='snake')", UsageError, "there is no order 'snake'"),
        ("T.annotate_tt_schedule(rect=(1, 0, 2, 2))", UsageError, "rect=(1, 0, 2, 2) leaves out the blocks before"),
        ("T.annotate_tt_schedule(rect=(0, 2))", UsageError, "rect is (0, 2)"),
        ("T.annotate_tt_schedule(stride=(2, 4))", UsageError, "stride=(2, 4) leaves out the first 2 work items"),
        ("T.annotate_tt_schedule(policy='strided', rect=(0, 0, 1, 1))", UsageError, "rectangle is given, but the pol"),
        ("T.annotate_tt_schedule(stride=(0, 99))", TTExploreError, "a stride of 99 distributes items over 99 cores"),
        ("T.annotate_tt_schedule(rect=(0, 0, 0, 1))", TTExploreError, "rectangle is (1, 0)"),
        ("T.annotate_tt_sharding({A: T.TTShard(axis=0, placement='SRAM')})", UsageError, "there is no placement 'SR"),
        ("T.annotate_tt_sharding({A: T.TTShard(axis=0, order='row-major')})", UsageError, "there is no order 'row-"),
        ("T.annotate_tt_sharding({A: T.TTShard(axis=(), placement='L1')})", UsageError, "TTShard: no axis is given"),
        ("T.annotate_tt_sharding({A: T.TTShard(axis='x')})", UsageError, "TTShard: axis is ('x',)"),
        ("T.annotate_tt_sharding({A: T.TTShard(axis=0, tiles=('rows', 16))})", Unsupported, "TTShard: tiles of 16"),
        ("T.annotate_tt_sharding({A: T.TTShard(axis=0, tiles=('row', 32))})", UsageError, "there is no kind of tiles"),
        ("T.annotate_tt_sharding({A: T.TTShard(axis=0, faces='8x8')})", Unsupported, "TTShard: faces of '8x8'"),
        ("T.annotate_tt_sharding({A: T.TTShard(0, order='column_major')})", Unsupported, "tiles in DRAM cannot be"),
        ("T.annotate_tt_layout(A, memory='L1', halo=[1, 1])", Unsupported, "the layout of A requests a halo, [1, 1]"),
        ("T.annotate_tt_layout({A: {'memory': 'L3'}})", UsageError, "there is no memory 'L3'"),
        ("T.annotate_tt_layout({'Z': {'memory': 'L1'}})", UsageError, "there is no tensor 'Z'"),
        ("T.annotate_tt_layout({5: {'memory': 'L1'}})", UsageError, "5 is not a tensor"),
        ("T.annotate_tt_layout(A, shard='height', grid=[4])", UsageError, "A cannot be divided into 4 parts: it has 3"),
        (
            "T.annotate_tt_schedule(policy='strided'); T.annotate_tt_schedule(policy='z_order')", UsageError,
            "the kernel asks for policy 'strided' and 'z_order'",
        ),
    ],
)  # fmt: skip
def test_wrong_annotations_are_refused_at_their_line(
    first: str, kind: type[TTExploreError], message: str, tmp_path: Path
) -> None:
    try:
        error = explored(tmp_path, first).error
    except TTExploreError as raised:
        error = raised
    assert isinstance(error, kind), repr(error)
    assert error.message.startswith(message)
    assert error.hint
    assert error.span is not None
    assert error.span.line == 7
