# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false
"""A1: where tensors lie. Shards cover a tensor, in whole tiles, each on a core of its own."""

from __future__ import annotations

import linecache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus import gemm
from tests.corpus.schedules import blocks
from ttexplore.analysis.core_sets import ranges_of_options
from ttexplore.analysis.place_tensors import l1_bytes_per_core, placed, tile_rows_and_columns
from ttexplore.errors import ResourceError, TTExploreError, Unsupported, UsageError
from ttexplore.layout_request import layout_request
from ttexplore.options import DEFAULTS, Options
from ttexplore.plan import Sharding, TensorLayout
from ttexplore.target import get_target

TARGET = get_target("wormhole_n150")


def layout(shape: tuple[int, ...]) -> TensorLayout:
    return TensorLayout("A", 0, "input", shape, "bfloat16", "Float16_b", shape)


def shards(shape: tuple[int, ...], asked: Any, **options: Any) -> Sharding:
    made = placed(layout(shape), layout_request("A", asked), TARGET, ranges_of_options(TARGET, Options(**options)))
    assert made.sharding is not None
    assert made.arrangement == "sharded"
    return made.sharding


@given(
    st.integers(1, 3), st.integers(1, 12), st.integers(1, 12), st.sampled_from(["height", "width", "block"]),
    st.integers(1, 8), st.integers(1, 8), st.sampled_from(["row_major", "column_major"]),
)  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_shards_cover_the_tensor_in_whole_tiles(
    batch: int, rows: int, columns: int, kind: str, width: int, height: int, order: str
) -> None:
    shape = (batch, rows * 32, columns * 32)
    made = shards(shape, {"shard": kind, "order": order}, cores=(width, height))
    tile_rows, tile_columns = tile_rows_and_columns(layout(shape))
    shard_rows, shard_columns = made.shard_shape[0] // 32, made.shard_shape[1] // 32
    assert made.shard_shape == (shard_rows * 32, shard_columns * 32)
    for grid, size, tiles in zip(made.grid, (shard_rows, shard_columns), (tile_rows, tile_columns), strict=True):
        # The last shard may be shorter; none is empty.
        assert (grid - 1) * size < tiles <= grid * size
    assert len(set(made.cores)) == len(made.cores) == made.grid[0] * made.grid[1]
    assert all(x < width and y < height for x, y in made.cores)
    assert made.grid[1] == 1 or kind != "height"


def test_projection_of_shards_of_more_dimensions() -> None:
    """Shards of a rank-3 tensor as a matrix whose rows are those of all its matrices."""
    made = shards((2, 96, 128), {"nd_shard": {"axes": [0, 1, 2], "grid": [2, 3, 2]}}, cores=(2, 6))
    assert (made.kind, made.grid, made.shard_shape) == ("block", (6, 2), (32, 64))
    made = shards((4, 64, 128), T.TTShard(axis=0, placement="L1"), cores=(3, 1))
    assert (made.kind, made.grid, made.shard_shape) == ("height", (2, 1), (128, 128))
    made = shards((256, 256), {"nd_shard": {"axes": [0, 1], "grid": [4, 4], "shard_shape_elems": [64, 60]}})
    assert (made.kind, made.shard_shape) == ("block", (64, 64))
    made = shards((256, 256), {"nd_shard": {"axes": [1], "grid": [2], "projected_grid": [1, 2]}})
    assert (made.kind, made.grid) == ("width", (1, 2))


def test_shards_lie_on_the_cores_that_may_work() -> None:
    ranges = [((2, 2), (3, 2)), ((0, 0), (0, 2))]
    assert shards((160, 64), {"shard": "height"}, core_ranges=ranges).cores == (
        (2, 2), (3, 2), (0, 0), (0, 1), (0, 2),
    )  # fmt: skip
    across = shards((96, 64), {"shard": "block", "order": "column_major"}, cores=(3, 2), core_offset=(1, 1))
    assert across.cores == ((1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2))
    banks = shards((64, 512), {"memory": "DRAM", "shard": "width"})
    assert banks.cores == tuple((bank, 0) for bank in range(8))


def test_the_part_of_l1_that_a_tensor_takes() -> None:
    ranges = ranges_of_options(TARGET, DEFAULTS)
    assert l1_bytes_per_core(layout((64, 64)), TARGET) == 0
    assert l1_bytes_per_core(placed(layout((320, 320)), layout_request("A", "L1"), TARGET, ranges), TARGET) == 2 * 2048
    sharded = placed(layout((320, 320)), layout_request("A", T.TTShard(1, placement="L1")), TARGET, ranges)
    assert l1_bytes_per_core(sharded, TARGET) == 10 * 2048


@pytest.mark.parametrize(
    ("shape", "asked", "kind", "message"),
    [
        ((64, 64), "L2", UsageError, "there is no memory 'L2'"),
        ((64, 64), {"memry": "L1"}, UsageError, "there is no key of the layout of A 'memry'\n  hint: did you mean mem"),
        ((64, 64), {"layout": "shraded"}, UsageError, "there is no layout 'shraded'\n  hint: did you mean sharded?"),
        ((64, 64), 7, UsageError, "the layout of A is 7"),
        ((64, 64), {"halo": [1, 1]}, Unsupported,
         "the layout of A requests a halo, [1, 1], but shards cannot overlap on this chip\n  hint: read the neigh"),
        ((64, 64), {"tile_shape": [16, 16]}, Unsupported, "A requests tiles of [16, 16], which are not supported"),
        ((64, 64), {"layout": "column_major"}, Unsupported, "A cannot be stored in column_major order"),
        ((64, 64), {"dtype": "float32"}, Unsupported, "A is stored as Float16_b, but float32 is requested"),
        ((64, 64), {"grid": [2]}, UsageError, "A has a grid of shards but is interleaved"),
        ((64, 64), {"shard": "high"}, UsageError, "there is no shard 'high'"),
        ((64, 64), {"shard": "height", "grid": [2, 2]}, UsageError, "the grid (2, 2) of A has 2 entries"),
        ((64, 64), {"shard": "height", "grid": [3]}, UsageError, "A cannot be divided into 3 parts: it has 2 rows"),
        ((160, 64), {"shard": "height", "grid": [4]}, UsageError, "A has 5 x 2 tiles: of 4 x 1 shards with 2 x 2 ti"),
        ((64, 64), {"nd_shard": {"axes": [0]}}, UsageError, "nd_shard of A lacks the key grid"),
        ((64, 64), {"nd_shard": [2]}, UsageError, "nd_shard of A is [2]"),
        ((64, 64), {"nd_shard": {"axes": [2], "grid": [2]}}, UsageError, "A has no dimension 2"),
        ((64, 64), {"nd_shard": {"axes": [0, 0], "grid": [2, 2]}}, UsageError, "A is divided twice along one dimensi"),
        ((64, 64), {"nd_shard": {"axes": ["x"], "grid": [2]}}, UsageError, "nd_shard of A: axes is ['x']"),
        ((64, 64), {"nd_shard": {"axes": [0], "grid": [2, 2]}}, UsageError, "nd_shard of A: grid is [2, 2]"),
        (
            (64, 64), {"nd_shard": {"axes": [0], "grid": [2], "order": "block_linear"}}, Unsupported,
            "nd_shard of A: the order block_linear is not supported",
        ),
        (
            (2, 64, 64), {"nd_shard": {"axes": [1], "grid": [2]}}, Unsupported,
            "shards of A along axis 1 would not be contiguous rows: axis 0 has 2 elements and is divided into 1",
        ),
        (
            (2, 96, 64), {"nd_shard": {"axes": [0, 1], "grid": [2, 2]}}, Unsupported,
            "2 shards do not divide axis 1 of A evenly: it has 3 rows of tiles",
        ),
        (
            (64, 64), {"nd_shard": {"axes": [0], "grid": [2], "shard_shape_elems": [20], "align_tiles": False}},
            UsageError, "shards of 20 along axis 0 of A are not whole tiles of 32",
        ),
        (
            (128, 64), {"nd_shard": {"axes": [0], "grid": [2], "shard_shape_elems": [32]}},
            UsageError, "2 shards of 32 do not divide the 128 elements of axis 0 of A\n  hint: use 2 shards of",
        ),
        (
            (64, 64), {"nd_shard": {"axes": [0], "grid": [2], "shard_shape_elems": [32, 32, 32]}},
            UsageError, "the shards of A are (32, 32, 32)",
        ),
        (
            (64, 64), {"nd_shard": {"axes": [0], "grid": [2], "projected_grid": [1, 2]}},
            UsageError, "projected_grid of A is (1, 2); the shards have (2, 1)",
        ),
        ((64, 64), {"memory": "DRAM", "shard": "block"}, Unsupported, "A: block shards in DRAM banks"),
        ((640, 64), {"memory": "DRAM", "shard": "height", "grid": [20]}, ResourceError, "A has 20 shards; wormhole_"),
        ((3200, 64), {"shard": "height", "grid": [100]}, ResourceError, "A has 100 shards for 64 cores"),
        ((640, 64), {"shard": "block", "grid": [10, 2]}, ResourceError, "A has 10 x 2 shards, which do not"),
    ],
)  # fmt: skip
def test_requests_that_are_refused(
    shape: tuple[int, ...], asked: Any, kind: type[TTExploreError], message: str
) -> None:
    with pytest.raises(kind) as caught:
        placed(layout(shape), layout_request("A", asked), TARGET, ranges_of_options(TARGET, DEFAULTS))
    assert str(caught.value).startswith(message)
    assert caught.value.hint


def test_blocks_want_one_rectangle_of_cores() -> None:
    with pytest.raises(UsageError, match="A: block shards need one rectangle of cores, 2 are given"):
        shards((64, 64), {"shard": "block"}, core_ranges=[((0, 0), (0, 0)), ((1, 1), (2, 2))])


def test_the_name_of_no_tensor() -> None:
    error = ttx.explore(gemm(), options={"layouts": {"AA": "L1"}}).error
    assert isinstance(error, UsageError)
    assert str(error).startswith("there is no tensor 'AA'\n  hint: did you mean A? use one of A, B, C")


def test_tensors_in_l1_count() -> None:
    error = ttx.explore(
        gemm(1024, 1024, 1024, 128, 128, 128), options={"layouts": {"A": T.TTShard(0, placement="L1")}, "cores": (1, 1)}
    ).error
    assert isinstance(error, ResourceError)
    assert "the circular buffers and tensors need" in error.message
    assert "A                        its part of the tensor  2,097,152 B" in error.message
    assert error.hint == "keep A in DRAM, or share it among more cores"


def test_a_block_that_is_larger_than_all_tensors_in_l1() -> None:
    error = ttx.explore(
        gemm(32, 512, 2048, 32, 512, 2048), options={"layouts": {"A": T.TTShard(0, placement="L1")}, "cores": (1, 1)}
    ).error
    assert isinstance(error, ResourceError)
    assert error.hint == "make the block of b smaller, or use fewer stages and move a tensor to DRAM"


def test_a_tensor_that_is_too_large_for_l1_is_named_at_the_line_that_uses_it() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 288, 3), "float32"), C: T.Tensor((64, 288), "float32")):
        with T.Kernel(3, 2) as (bx, by):
            for i, j in T.Parallel(32, 96):
                C[by * 32 + i, bx * 96 + j] = A[by * 32 + i, bx * 96 + j, 0]

    error = ttx.explore(kernel, options={"cores": (1, 1), "layouts": {"A": {"memory": "L1", "shard": "width"}}}).error
    assert isinstance(error, ResourceError)
    assert "A                        its part of the tensor  2,359,296 B" in error.message
    assert error.hint == "keep A in DRAM, or share it among more cores"
    # The buffers are those of a pass: the statement that they were added for is the line.
    assert error.span is not None
    assert linecache.getline(error.span.file, error.span.line).strip().startswith("for i, j in T.Parallel")


def test_the_plan_says_who_asked() -> None:
    plan = ttx.explore(blocks(), options={"layouts": {"A": "L1"}}).plan
    assert [(one.memory, one.reason) for one in plan.layouts] == [("l1", "option"), ("dram", "default")]
