# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false
"""Row-major tensors: what the plan says, what is moved at a tail, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus.rows import ROWS, total
from tests.corpus.sizes import any_size_gemm
from ttexplore.errors import Unsupported


def test_pages_of_a_row_major_tensor() -> None:
    plan = ttx.explore(total((33, 50), (32, 32), "float32"), options={"layouts": {"A": ROWS}}).plan
    layout, accessor = plan.layout("A"), plan.accessor("A")
    assert (layout.page, layout.padded_shape, layout.padding) == ("row", (33, 50), "none")
    assert (accessor.page_bytes, accessor.pages, accessor.page_strides) == (200, 33, (1, 1))
    cost = "A is row-major: the reader moves 64 runs of 16 elements (64 bytes) for each tile, instead of one page"
    assert cost in plan.notes


@pytest.mark.parametrize("width", [1, 15, 16, 31, 48])
def test_tails_of_rows(width: int) -> None:
    """The last run of a row is as long as what is left: nothing beyond the row is read or written."""
    kernel = total((3, width), (32, 32), "bfloat16")
    exploration = ttx.explore(kernel, options={"layouts": dict.fromkeys("ABC", ROWS)})
    assert exploration.check(), str(exploration.check())
    run = exploration.run()
    assert run.passed, run.message
    tail = width % 16 * 2
    assert (f"noc.async_read(A, a_buffer, {tail}," in exploration.code["reader"]) == (tail > 0)
    assert (f"noc.async_write(c_buffer, C, {tail}," in exploration.code["writer"]) == (tail > 0)


def test_an_annotation_asks_for_rows() -> None:
    kernel = T.annotate_tt_layout(total((32, 32), (32, 32), "bfloat16"), {"A": {"page": "row"}})
    assert [one.page for one in ttx.explore(kernel).plan.layouts] == ["row", "tile", "tile"]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"page": "row", "memory": "L1"}, "A row by row in L1"),
        ({"page": "row", "shard": "height"}, "A row by row in shards"),
    ],
)
def test_rows_lie_in_dram(asked: dict[str, Any], message: str) -> None:
    error = ttx.explore(total((64, 64), (32, 32), "bfloat16"), options={"layouts": {"A": asked}}).error
    assert isinstance(error, Unsupported)
    assert error.message == message
    assert error.hint == 'leave it in DRAM, interleaved, or in tiles: page="tile"'


def test_rows_of_sizes_that_are_known_when_the_kernel_runs() -> None:
    error = ttx.explore(any_size_gemm(), options={"layouts": {"A": ROWS}}).error
    assert isinstance(error, Unsupported)
    assert error.span is not None
    assert "A row by row with T.dynamic sizes; leave it in tiles" in f"{error.message}; {error.hint}"


def test_runs_of_bfloat16_are_no_unit_of_the_memory_of_blackhole() -> None:
    kernel = total((64, 64), (32, 32), "bfloat16")
    error = ttx.explore(kernel, target="blackhole_p150", options={"layouts": {"A": ROWS}}).error
    assert isinstance(error, Unsupported)
    assert error.span is not None
    assert "its runs of 16 elements are 32 bytes, and the memory of this chip is read in units of 64" in error.message
    assert 'use float32, or leave the tensor in tiles: page="tile"' in str(error.hint)
    assert ttx.explore(kernel, target="blackhole_p150", options={"layouts": {"C": ROWS}}).run().passed
