"""Work that goes to the shards: match_shard, and circular buffers that are shards."""

from __future__ import annotations

from typing import Any

import pytest

import ttexplore as ttx
from tests.corpus import gemm
from tests.corpus.schedules import LOCAL, added, blocks
from ttexplore.errors import ResourceError, TTExploreError, UsageError
from ttexplore.exploration import Exploration
from ttexplore.plan import item_block

HEIGHT = {"shard": "height"}


def explored(kernel: Any, **options: Any) -> Exploration:
    exploration = ttx.explore(kernel, options=options)
    assert exploration.error is None, str(exploration.error)
    return exploration


def test_items_go_to_the_core_that_holds_their_shard() -> None:
    exploration = explored(blocks(4, 6), layouts={"B": {"shard": "block", "grid": [3, 2]}}, policy="match_shard")
    partition, sharding = exploration.plan.partition, exploration.plan.layout("B").sharding
    assert partition is not None
    assert sharding is not None
    assert (sharding.shard_shape, len(partition.cores)) == ((64, 64), 6)
    for core in partition.cores:
        row, column = divmod(sharding.cores.index((core.x, core.y)), 2)
        for item in partition.items_of(core):
            x, y = item_block(partition.grid, item)
            assert (y // 2, x // 2) == (row, column)


def test_a_shard_that_is_a_circular_buffer_is_not_moved() -> None:
    kernel = added(160, 64, 32, 64)
    local = explored(kernel, layouts=dict.fromkeys("ABC", HEIGHT), cores=(2, 1), **LOCAL)
    moved = explored(kernel, layouts=dict.fromkeys("ABC", HEIGHT), cores=(2, 1), policy="match_shard", match="A")
    assert [(one.name, one.shard_of, one.pages) for one in local.plan.buffers] == [
        ("a", "A", 6), ("b", "B", 6), ("c", "C", 6),
    ]  # fmt: skip
    for role in ("reader", "writer"):
        assert "noc.async" not in local.code[role].text
        assert "noc.async" in moved.code[role].text
        assert local.plan.kernel_signature(role).common_runtime == ()
    assert "get_arg_val" in local.code["reader"].text
    assert "set_globally_allocated_address(*A_tensor->get_backing_buffer())" in local.code["host"].text
    events = local.run().execution
    assert events is not None
    assert events.events is not None
    operations = {events.events.operations[one] for one in set(events.events.records["operation"])}
    assert not {"read", "write"} & operations
    assert local.run().outputs[0].tobytes() == moved.run().outputs[0].tobytes()


def test_shards_that_are_buffers_count_once() -> None:
    """Three shards of 432 KB fill L1; buffers beside them would not fit."""
    kernel, layouts = added(27 * 32 * 64, 256, 32, 256), dict.fromkeys("ABC", HEIGHT)
    assert explored(kernel, layouts=layouts, **LOCAL).plan.partition is not None
    error = ttx.explore(kernel, options={"layouts": layouts}).error
    assert isinstance(error, ResourceError)
    assert "the circular buffers and tensors need" in error.message


def test_only_some_tensors_are_worked_on_in_place() -> None:
    exploration = explored(added(128, 64, 64, 64), layouts={"A": HEIGHT}, cores=(2, 1), **LOCAL)
    assert [one.shard_of for one in exploration.plan.buffers] == ["A", "", ""]
    assert exploration.run().passed


def refusal(kernel: Any, options: dict[str, Any]) -> TTExploreError | None:
    """The error of a pass, or of an option itself."""
    try:
        return ttx.explore(kernel, options=options).error
    except TTExploreError as error:
        return error


@pytest.mark.parametrize(
    ("kernel", "options", "message"),
    [
        (blocks(), {"policy": "match_shard"}, "the policy match_shard needs one tensor; none is sharded in L1"),
        (
            blocks(), {"policy": "match_shard", "layouts": {"A": HEIGHT, "B": HEIGHT}},
            "the policy match_shard needs one tensor; A, B are sharded in L1\n  hint: choose one: match='A'",
        ),
        (
            blocks(), {"policy": "match_shard", "match": "A", "layouts": {"A": "L1"}},
            "the policy match_shard needs A sharded in L1; no tensor is",
        ),
        (blocks(), {"match": "A"}, "match is given, but the policy is contiguous"),
        (blocks(), {"mode": "local"}, "there is no mode 'local'\n  hint: did you mean"),
        (blocks(), {"mode": "local_shard"}, "no shard can be a circular buffer: no tensor is sharded in L1"),
        (
            gemm(128, 64, 128, 32, 32, 32),
            {"layouts": {"A": HEIGHT, "B": {"shard": "width"}}, "cores": (4, 1), **LOCAL},
            "no shard can be a circular buffer: A: core (0, 0) moves tile 0 of its shard as number 4; B: core (0, 0) "
            "moves tile (0, 1), which core (1, 0) holds",
        ),
        (
            blocks(2, 4), {"layouts": {"A": {"shard": "height", "grid": [2]}}, "mode": "local_shard"},
            "no shard can be a circular buffer: A: core (1, 0) moves tile (0, 1), which core (0, 0) holds",
        ),
        (
            blocks(2, 4), {"layouts": {"A": {"shard": "height", "grid": [2]}}, "mode": "local_shard", "cores": (3, 1)},
            "no shard can be a circular buffer: A: core (1, 0) moves tile (1, 1), which core (0, 0) holds",
        ),
        (
            added(96, 64, 64, 64), {"layouts": {"A": {"shard": "height", "grid": [1]}}, "cores": (1, 1), **LOCAL},
            "no shard can be a circular buffer: A: ",
        ),
    ],
)  # fmt: skip
def test_what_is_no_shard_in_its_place(kernel: Any, options: dict[str, Any], message: str) -> None:
    error = refusal(kernel, options)
    assert isinstance(error, UsageError), repr(error)
    assert str(error).startswith(message)
    assert error.hint


def test_depths_of_single_buffers() -> None:
    plan = explored(gemm(64, 64, 128, 32, 32, 32), cb_depth={"a": 3}, chunk_k_tiles=4).plan
    assert {one.name: one.stages for one in plan.buffers if one.name in "ab"} == {"a": 3, "b": 4}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cb_depth": {"aa": 3}}, "there is no circular buffer 'aa'\n  hint: did you mean a?"),
        ({"cb_depth": {"a": 0}}, "the depth of a is 0\n  hint: did you mean 1? the depth of a takes a whole number"),
        ({"chunk_k_tiles": 3}, "chunk_k_tiles is 3; a block of a is 2 tiles along the summed dimension"),
    ],
)
def test_wrong_depths(options: dict[str, Any], message: str) -> None:
    error = refusal(gemm(64, 64, 128, 32, 32, 64), options)
    assert isinstance(error, TTExploreError)
    assert str(error).startswith(message)


def test_chunks_without_a_product() -> None:
    error = ttx.explore(blocks(), options={"chunk_k_tiles": 4}).error
    assert isinstance(error, UsageError)
    assert str(error).startswith("chunk_k_tiles is given, but no product loads an operand from DRAM")
