"""Reductions of tiles: what they give, and what they leave undefined."""

from __future__ import annotations

import numpy as np
import pytest

from ttexplore.ops import OPS
from ttexplore.ops.op import UNWRITTEN, Op, TileKind
from ttexplore.ops.reduce import REDUCE_BLOCK_MAX_ROW, REDUCE_OPS, SFPU_REDUCTIONS

VALUES = np.random.default_rng(3).integers(-(2**20), 2**20, (32, 32)).astype(np.int32)


@pytest.mark.parametrize("op", REDUCE_OPS, ids=lambda op: op.name)
def test_a_reduction_defines_one_row_or_column(op: Op) -> None:
    kind: TileKind = "int32" if op.takes == "int32" else "float32"
    values = VALUES.astype(kind)
    assert op.meaning is not None
    result = op.meaning(values, *([np.ones_like(values)] if op.engine == "fpu" else []))
    assert result.dtype == kind
    pool = next(pool for pool in ("sum", "max", "min") if f"_{pool}_" in op.name)
    of = {"sum": sum, "max": max, "min": min}[pool]
    if op.leaves == "column 0":
        wanted = [of(int(value) for value in row) for row in VALUES]
        left, rest = result[:, 0], result[:, 1:]
    else:
        wanted = [of(int(value) for value in column) for column in VALUES.T]
        left, rest = result[0], result[1:]
    np.testing.assert_allclose(left, wanted, rtol=0 if kind == "int32" or pool != "sum" else 1e-6)
    np.testing.assert_array_equal(rest, np.full_like(rest, UNWRITTEN[kind]))


def test_the_rows_of_a_block_have_one_maximum() -> None:
    tiles = np.stack([VALUES.astype(np.float32), -VALUES.astype(np.float32), np.full((32, 32), -np.inf, np.float32)])
    assert REDUCE_BLOCK_MAX_ROW.meaning is not None
    result = REDUCE_BLOCK_MAX_ROW.meaning(tiles, np.ones((32, 32), np.float32))
    np.testing.assert_array_equal(result[:, 0], np.abs(VALUES).max(axis=1))


def test_sums_of_integers_wrap_around() -> None:
    meaning = OPS["tt.sfpu_reduce_sum_row_int32"].meaning
    assert meaning is not None
    largest = np.full((32, 32), 2**31 - 1, np.int32)
    assert meaning(largest)[:, 0].tolist() == [-32] * 32


def test_sums_of_the_fpu_are_scaled() -> None:
    meaning = OPS["tt.reduce_sum_col"].meaning
    assert meaning is not None
    ones = np.ones((32, 32), np.float32)
    assert meaning(ones, ones / 32)[0].tolist() == [1] * 32


def test_extremes_of_columns_are_initialised_after_those_of_rows() -> None:
    """The SDK has one init for both, whose traces a reduction of rows overwrites."""
    for op in SFPU_REDUCTIONS:
        if "_row" in op.name:
            other = OPS[op.ir_name.replace("_row", "_col")]
            assert (op.init == other.init) == ("_sum_" in op.name)
